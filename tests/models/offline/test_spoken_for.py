"""Each word of an order is spoken for, the small ones too, and a word that is not makes it no order to the tool."""

from typing import Any, Literal

import pytest

from treadle import Agent

MADE: list[dict[str, Any]] = []


def release_berth(berth: str) -> str:
    """Release a berth."""
    MADE.append({"berth": berth})
    return "released"


def move_child(child: str, group: Literal["bears", "foxes"]) -> str:
    """Move a child to a group."""
    MADE.append({"child": child, "group": group})
    return "moved"


def cancel_job(job: int) -> str:
    """Cancel a print job."""
    MADE.append({"job": job})
    return "cancelled"


def scale(service: str, replicas: int) -> str:
    """Scale a service to a number of replicas."""
    MADE.append({"service": service, "replicas": replicas})
    return "scaled"


def split_bill(table: int, people: int) -> str:
    """Split the bill of a table between people."""
    MADE.append({"table": table, "people": people})
    return "split"


def admit(animal: str, cage: int) -> str:
    """Admit an animal to a cage."""
    MADE.append({"animal": animal, "cage": cage})
    return "admitted"


def close_path(path: str, days: int) -> str:
    """Close a path for some days."""
    MADE.append({"path": path, "days": days})
    return "closed"


def take_gold(player: str, gold: int) -> str:
    """Take gold from a player."""
    MADE.append({"player": player, "gold": gold})
    return "taken"


def set_price(product: str, price: float) -> str:
    """Set the price of a product in euros."""
    MADE.append({"product": product, "price": price})
    return "set"


def assign_ticket(ticket: int, agent: str) -> str:
    """Assign a ticket to an agent."""
    MADE.append({"ticket": ticket, "agent": agent})
    return "assigned"


def add_salt(tank: int, grams: float) -> str:
    """Add salt to a tank."""
    MADE.append({"tank": tank, "grams": grams})
    return "added"


TOOLS = [
    release_berth,
    move_child,
    cancel_job,
    scale,
    split_bill,
    admit,
    close_path,
    take_gold,
    set_price,
    assign_ticket,
    add_salt,
]


def asked(question: str) -> str:
    MADE.clear()
    return Agent("offline", tools=TOOLS).run_sync(question).text


@pytest.mark.parametrize(
    "question",
    [
        "Release berth B4 only",
        "Release only berth B4",
        "Release berth B4 with it",
        "Release berth B4 on me",
        "Release berth B4 as one",
        "Release those of B4",
        "Move Lotta from the bears",
        "Cancel my job at 5",
        "Scale billing down from 5 replicas",
        "Scale jointly billing to 5 replicas",
        "Split table 5 between 4 people",
        "Admit that Bo is in cage 7",
        "Close path W4 for 10 nights",
        "Take Knut 20 gold",
        "Set the price of cheaply the lamp to 24.90",
        "Set the price of the lamp to 24.90 partially euros",
        "Assign ticket 12 to myself",
        "Add 30 grams of salt to tank 4. Wait, no.",
        "How much is 30 grams of salt in tank 4?",
    ],
)
def test_a_word_that_is_left_over_makes_no_change(question: str) -> None:
    asked(question)
    assert MADE == []


@pytest.mark.parametrize(
    ("question", "given"),
    [
        ("Please release our berth B4 for me, thank you very much!", {"berth": "B4"}),
        ("Move Lotta to the bears now", {"child": "Lotta", "group": "bears"}),
        ("Cancel print job 5", {"job": 5}),
        ("Scale web to 5 replicas", {"service": "web", "replicas": 5}),
        ("Split the bill of table 5 between 4 people", {"table": 5, "people": 4}),
        ("Admit Bo to cage 7", {"animal": "Bo", "cage": 7}),
        ("Close path W4 for 10 days", {"path": "W4", "days": 10}),
        ("Take 20 gold from Knut", {"player": "Knut", "gold": 20}),
        ("Set the price of the lamp to 24.90 euros", {"product": "lamp", "price": 24.9}),
        ("Assign ticket 12 to Kim", {"ticket": 12, "agent": "Kim"}),
        ("Add 30 grams of salt to tank 4", {"tank": 4, "grams": 30}),
    ],
)
def test_what_is_wholly_said_is_done(question: str, given: dict[str, Any]) -> None:
    asked(question)
    assert [given] == MADE
