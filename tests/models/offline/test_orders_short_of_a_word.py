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


@tool(effect="write")
def shred(id: str) -> str:
    """Shreds the contents of a box.

    Args:
        id: such as 0007.
    """
    MADE.append(("shred", {"id": id}))
    return "shredded"


@tool(effect="write")
def evacuate(number: int) -> str:
    """Evacuates a shaft.

    Args:
        number: which.
    """
    MADE.append(("evacuate", {"number": number}))
    return "evacuated"


@tool(effect="write")
def mark_read(id: str) -> str:
    """Marks a mail as read.

    Args:
        id: like m1.
    """
    MADE.append(("mark_read", {"id": id}))
    return "marked"


@tool(effect="write")
def set_default(printer: str) -> str:
    """Makes a printer the default."""
    MADE.append(("set_default", {"printer": printer}))
    return "set"


@tool(effect="write")
def promote(pid: int, grade: str) -> str:
    """Promotes an employee.

    Args:
        pid: personnel number.
        grade: the new grade, such as E7.
    """
    MADE.append(("promote", {"pid": pid, "grade": grade}))
    return "promoted"


@tool(effect="write")
def plant(number: int) -> str:
    """Plants a number of trees."""
    MADE.append(("plant", {"number": number}))
    return "planted"


@tool(effect="write")
def deal(n: int, table: str) -> str:
    """Deals cards to a table."""
    MADE.append(("deal", {"n": n, "table": table}))
    return "dealt"


@tool(effect="write")
def delete_users(ids: list[int]) -> str:
    """Deletes users."""
    MADE.append(("delete_users", {"ids": ids}))
    return "deleted"


@tool(effect="write")
def change_price(item: str, price: float) -> str:
    """Changes the price of an item."""
    MADE.append(("change_price", {"item": item, "price": price}))
    return "changed"


BY_A_VERB = [
    shred, evacuate, mark_read, set_default, promote, plant, deal, delete_users, change_price
]  # fmt: skip
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
        ("Shred 3 boxes", None),
        ("Shred box 0007", ("shred", {"id": "0007"})),
        ("Shred 0007", ("shred", {"id": "0007"})),
        ("Evacuate 2 shafts", None),
        ("Evacuate shaft 4", ("evacuate", {"number": 4})),
        ("Mark m1", None),
        ("Mark m1 as read", ("mark_read", {"id": "m1"})),
        ("Set printer P2", None),
        ("Set P2 as the default", ("set_default", {"printer": "P2"})),
        ("Promote 3090 from E7", None),
        ("Promote 3090 to E7", ("promote", {"pid": 3090, "grade": "E7"})),
        ("Plant 3 trees", ("plant", {"number": 3})),
        ("Deal 5 cards to table T1", ("deal", {"n": 5, "table": "T1"})),
        ("Delete 3 users", None),
        ("Delete users 3 and 4", ("delete_users", {"ids": [3, 4]})),
        ("Change the price of tea from 4", None),
        ("Change the price of tea to 4", ("change_price", {"item": "tea", "price": 4.0})),
    ],
)
def test_what_a_verb_is_done_to_is_called_by_the_noun_of_its_description(
    order: str, made: tuple[str, dict[str, Any]] | None
) -> None:
    """Regression: shaft 2 was evacuated for "Evacuate 2 shafts", and none for "Evacuate shaft 4"."""
    MADE.clear()
    text = Agent("offline", tools=BY_A_VERB).run_sync(order).text
    assert ([made] if made else []) == MADE, text


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
