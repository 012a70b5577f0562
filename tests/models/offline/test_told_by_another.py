"""A thing that is told by another one is not called like that one: "to H3's site" is no move to a site "H3"."""

from typing import Any

import pytest

from treadle import Agent, RunResult, tool

HIVES = [
    {"hive": "H1", "queen": "Rose", "honey_kg": 14.5, "site": "Ridge"},
    {"hive": "H2", "queen": "May", "honey_kg": 9.0, "site": "Ridge"},
    {"hive": "H3", "queen": "Ada", "honey_kg": 22.0, "site": "Lock"},
]
DONE: list[tuple[str, ...]] = []


@tool(effect="read")
def hives(site: str | None = None) -> dict[str, Any]:
    """Hives with queen and honey."""
    found = [hive for hive in HIVES if site in (None, hive["site"])]
    return {"count": len(found), "hives": found}


@tool(effect="read")
def hive(name: str) -> dict[str, Any]:
    """One hive with its queen, site and honey in kg."""
    return next(each for each in HIVES if each["hive"] == name)


@tool(effect="read")
def weather(city: str) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "temp": 7}


@tool(effect="write")
def move_hive(hive: str, site: str) -> dict[str, str]:
    """Moves a hive to a site."""
    DONE.append((hive, site))
    return {"hive": hive, "site": site}


@tool(effect="write")
def transfer_class(pupil: str, class_name: str) -> dict[str, str]:
    """Transfers a pupil to a class."""
    DONE.append((pupil, class_name))
    return {"pupil": pupil, "class": class_name}


@tool(effect="write")
def set_keeper(hive: str, keeper: str) -> dict[str, str]:
    """Sets the keeper of a hive."""
    DONE.append((hive, keeper))
    return {"hive": hive, "keeper": keeper}


@tool(effect="write")
def ship_parcel(parcel: str, address: str) -> dict[str, str]:
    """Ships a parcel to an address."""
    DONE.append((parcel, address))
    return {"parcel": parcel, "address": address}


@tool(effect="write")
def close_account(account: str) -> dict[str, str]:
    """Closes an account."""
    DONE.append((account,))
    return {"account": account}


TOOLS = [hives, hive, weather, move_hive, transfer_class, set_keeper, ship_parcel, close_account]


def asked(question: str) -> RunResult:
    DONE.clear()
    return Agent("offline", tools=TOOLS).run_sync(question)


@pytest.mark.parametrize(
    "order",
    [
        "Move H1 to H3's site",
        "Move H1 to the site of H3",
        "Move H1 to where H3 is",
        "Move H1 to wherever H3 is",
        "Move H1 to a new site",
        "Move H1 to its old site",
        "Move the hive of Rose to Lock",
        "Move the hive at Ridge to Lock",
        "Move the hive for Ann to Lock",
        "Ship P1 to the customer",
        "Close the wrong account",
        "Close the suspicious account",
        "Close an expired account",
        "Move H1 to the red site",
        "Close what A-1 says",
        "Transfer Tom to the class of Ines",
        "Transfer Tom to Ines's class",
    ],
)
def test_nothing_is_changed_to_what_only_tells_the_thing(order: str) -> None:
    result = asked(order)

    assert DONE == []
    assert "cannot" in result.text or "could not" in result.text


@pytest.mark.parametrize(
    ("order", "done"),
    [
        ("Move H1 to Lock", ("H1", "Lock")),
        ("Move hive H1 to site Lock", ("H1", "Lock")),
        ("Move H1 to the site Lock", ("H1", "Lock")),
        ("Ship P1 to 5 Mill Lane", ("P1", "5 Mill Lane")),
        ("Close the A-1 account", ("A-1",)),
        ("Close account savings", ("savings",)),
        ('Close the "savings" account', ("savings",)),
        ("Move H1 to the Lock site", ("H1", "Lock")),
        ("Transfer Tom to the class 7b", ("Tom", "7b")),
        ("Set the keeper of H1 to Bill", ("H1", "Bill")),
    ],
)
def test_what_is_named_itself_is_still_changed(order: str, done: tuple[str, ...]) -> None:
    asked(order)

    assert done == DONE[0]
    assert len(DONE) == 1


@pytest.mark.parametrize(
    "question", ["What is the weather in Ann's city?", "honey at the site of H1", "hives at the site of H3"]
)
def test_nothing_is_told_of_what_only_tells_the_thing(question: str) -> None:
    text = asked(question).text

    assert "cannot" in text
    assert "temp" not in text
    assert "14.5" not in text


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("weather in the city of Bonn", "7"),
        ("What's the site of H3?", "Lock"),
        ("hives at Ridge", "Rose"),
    ],
)
def test_what_is_named_itself_is_still_told(question: str, told: str) -> None:
    assert told in asked(question).text


def test_a_list_with_its_length_is_no_total() -> None:
    text = asked("How much honey at Ridge?").text

    assert "cannot answer that as it was asked" in text
    assert "14.5" not in text


def test_the_total_of_a_list_with_its_length_is_worked_out() -> None:
    assert "Sum of honey kg: 45.5 (of 3 that hives tells of)" in asked("honey in total").text
