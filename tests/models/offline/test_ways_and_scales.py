"""Numbers that are led by where something goes, temperatures with their scale, what a quotation is led by, and lists
that are asked to be shown."""

from typing import Any

import pytest

from treadle import Agent

MADE: list[dict[str, Any]] = []


def move_fish(count: int, from_tank: int, to_tank: int) -> str:
    """Moves fish from one tank to another."""
    MADE.append({"count": count, "from": from_tank, "to": to_tank})
    return "moved"


def move_bed(to_ward: int, from_ward: int) -> str:
    """Moves a bed from one ward to another."""
    MADE.append({"from": from_ward, "to": to_ward})
    return "moved"


def set_tank(tank: int, celsius: float) -> str:
    """Set the temperature of a tank."""
    MADE.append({"tank": tank, "celsius": celsius})
    return "set"


def set_oven(oven: int, temp_f: float) -> str:
    """Set the heat of an oven."""
    MADE.append({"oven": oven, "temp_f": temp_f})
    return "set"


def send_note(to: str, text: str) -> str:
    """Sends a note to somebody."""
    MADE.append({"to": to, "text": text})
    return "sent"


def asked(question: str, *tools: Any) -> str:
    MADE.clear()
    return Agent("offline", tools=[*tools]).run_sync(question).text


@pytest.mark.parametrize(
    ("question", "given"),
    [
        ("Move 3 fish from tank 1 to tank 2", {"count": 3, "from": 1, "to": 2}),
        ("Move 3 fish to tank 2 from tank 1", {"count": 3, "from": 1, "to": 2}),
        ("Move 3 fish from tank 1 to 2", {"count": 3, "from": 1, "to": 2}),
        ("Move the bed from 1 to 3", {"from": 1, "to": 3}),
        ("Move the bed to ward 3 from ward 1", {"from": 1, "to": 3}),
        ("Set tank 2 to 4 °C", {"tank": 2, "celsius": 4}),
        ("Set tank 2 to 4°C please", {"tank": 2, "celsius": 4}),
        ("Set tank 2 to -4 degrees C", {"tank": 2, "celsius": -4}),
        ("Set oven 1 to 400 °F", {"oven": 1, "temp_f": 400}),
        ('Send a note to Ann saying "call me"', {"to": "Ann", "text": "call me"}),
        ('Send Ann a note that says "call me"', {"to": "Ann", "text": "call me"}),
    ],
)
def test_each_value_goes_where_its_words_say(question: str, given: dict[str, Any]) -> None:
    asked(question, move_fish, move_bed, set_tank, set_oven, send_note)
    assert [given] == MADE


@pytest.mark.parametrize(
    "question",
    [
        "Move 3 fish from tank 1",
        "Move 3 fish to tank 2",
        "Move 3 fish to tank 1 to tank 2",
        "Move 3 fish between tank 1 and tank 2",
        "Move the bed from ward 1, not to ward 2",
        "Move the bed from ward 1 or ward 3 to ward 2",
        "Set tank 2 to 40 °F",
        "Set tank 2 to 4 K",
        "Set oven 1 to 200 °C",
        'Saying "no" to Ann',
        'Send a note to Ann saying "call me" or "write me"',
    ],
)
def test_what_is_not_said_or_is_said_in_another_scale_changes_nothing(question: str) -> None:
    asked(question, move_fish, move_bed, set_tank, set_oven, send_note)
    assert MADE == []


def expenses(category: str | None = None) -> list[dict[str, Any]]:
    """Expenses, optionally by category."""
    rows = [
        {"who": "Nora", "amount": 120.0, "category": "travel"},
        {"who": "Paul", "amount": 45.5, "category": "meals"},
    ]
    return [row for row in rows if category in (None, row["category"])]


@pytest.mark.parametrize("name", ["expenses", "list_expenses"])
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Show me the expenses", ["120.0", "45.5"]),
        ("Can you show me the expenses?", ["120.0", "45.5"]),
        ("Give me the expenses", ["120.0", "45.5"]),
        ("How many expenses are there?", ["2 listed"]),
        ("What is the total of all expenses?", ["165.5"]),
        ("Show meals expenses", ["45.5"]),
    ],
)
def test_a_list_with_an_option_is_shown(name: str, question: str, told: list[str]) -> None:
    def listed(category: str | None = None) -> list[dict[str, Any]]:
        return expenses(category)

    listed.__name__, listed.__doc__ = name, expenses.__doc__
    answer = asked(question, listed)
    assert all(each in answer for each in told), answer


@pytest.mark.parametrize(
    "question",
    [
        "Show me the hotels",
        "Give up expenses",
        "Give Ann the expenses",
        "Show me the expenses of Gus",
        "Show me the expenses without a receipt",
    ],
)
def test_nothing_else_is_shown(question: str) -> None:
    assert "120.0" not in asked(question, expenses)


def list_runs(from_km: int, to_km: int) -> list[str]:
    """List runs by distance."""
    return [f"{from_km} to {to_km}"]


def list_files(from_kb: int, to_kb: int) -> list[str]:
    """List files by size."""
    return [f"{from_kb} to {to_kb}"]


def random_int(from_num: int, to_num: int) -> str:
    """Get a random integer in a range."""
    return f"{from_num} to {to_num}"


@pytest.mark.parametrize(
    ("function", "question"),
    [
        (list_runs, "List runs between 5 and 10 km"),
        (list_runs, "Runs from 5 to 10 km"),
        (list_files, "List files between 5 and 10 KB"),
        (random_int, "Give me a random integer between 5 and 10"),
    ],
)
def test_two_ends_in_a_unit_are_no_way(function: Any, question: str) -> None:
    assert "5 to 10" in asked(question, function)
