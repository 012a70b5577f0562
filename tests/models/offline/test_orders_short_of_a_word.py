"""Orders that lack the one thing that they are to be done to: nothing else that stands in them is it."""

from typing import Any, Literal

import pytest

from treadle import Agent, tool

MADE: list[tuple[str, dict[str, Any]]] = []


@tool(effect="read")
def list_tickets() -> list[dict[str, Any]]:
    """Lists tickets."""
    return [
        {"ticket_id": 11, "title": "Login fails", "priority": "high", "assignee": "Kim"},
        {"ticket_id": 12, "title": "Slow page", "priority": "low", "assignee": "Sam"},
    ]


@tool(effect="write")
def assign_ticket(ticket_id: int, assignee: str) -> str:
    """Assigns a ticket to someone."""
    MADE.append(("assign_ticket", {"ticket_id": ticket_id, "assignee": assignee}))
    return "assigned"


@tool(effect="write")
def set_priority(ticket_id: int, priority: Literal["low", "high"]) -> str:
    """Sets the priority of a ticket."""
    MADE.append(("set_priority", {"ticket_id": ticket_id, "priority": priority}))
    return "set"


@tool(effect="write")
def book_flight(flight: str, passengers: int = 1) -> str:
    """Books a flight."""
    MADE.append(("book_flight", {"flight": flight, "passengers": passengers}))
    return "booked"


@tool(effect="write")
def shut_off(household: str) -> str:
    """Shuts off the water of a household."""
    MADE.append(("shut_off", {"household": household}))
    return "shut off"


@tool(effect="write")
def lock_sim(number: str) -> str:
    """Locks a SIM card by its number."""
    MADE.append(("lock_sim", {"number": number}))
    return "locked"


@tool(effect="write")
def reject_claim(claim: str, reason: str) -> str:
    """Rejects a claim for a reason."""
    MADE.append(("reject_claim", {"claim": claim, "reason": reason}))
    return "rejected"


@tool(effect="write")
def clean_room(room: int) -> str:
    """Cleans a room."""
    MADE.append(("clean_room", {"room": room}))
    return "cleaned"


TOOLS = [clean_room, list_tickets, assign_ticket, set_priority, book_flight, shut_off, lock_sim, reject_claim]


@pytest.mark.parametrize(
    "order",
    [
        "Assign a ticket to Kim",
        "Assign ticket to Sam",
        "Set the priority of the ticket to high",
        "Book a flight for 2 passengers",
        "Shut off the water of the household",
        "Shut off the water of household",
        "Lock SIM",
        "Clean 2 rooms",
        'Reject claim K-5 for the reason late"',
        'Reject claim K-5 for the reason "late',
    ],
)
def test_nothing_is_changed(order: str) -> None:
    """Regression: the ticket that is Kim's already was assigned to her, as its row has her name."""
    MADE.clear()
    Agent("offline", tools=TOOLS).run_sync(order)
    assert MADE == []


@pytest.mark.parametrize(
    ("order", "made"),
    [
        ("Assign ticket 12 to Kim", ("assign_ticket", {"ticket_id": 12, "assignee": "Kim"})),
        ("Book flight LX2 for 2 passengers", ("book_flight", {"flight": "LX2", "passengers": 2})),
        ("Clean room 2", ("clean_room", {"room": 2})),
        ("Shut off the water of household H-9", ("shut_off", {"household": "H-9"})),
    ],
)
def test_with_it_the_order_is_carried_out(order: str, made: tuple[str, dict[str, Any]]) -> None:
    MADE.clear()
    text = Agent("offline", tools=TOOLS).run_sync(order).text
    assert [made] == MADE, text
