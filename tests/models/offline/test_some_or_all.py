"""Those of whom something is so are not all that a tool lists, and what is done is what was commanded, of one thing."""

from typing import Any

import pytest

from treadle import Agent, RunResult, tool

STAFF = [
    {"name": "Aya Ito", "team": "design", "left": None, "part_time": False},
    {"name": "Ben Oduya", "team": "design", "left": "2026-03-31", "part_time": True},
    {"name": "Cleo Fox", "team": "sales", "left": None, "part_time": False},
]


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@tool(effect="read")
def staff() -> list[dict[str, Any]]:
    """Lists the staff with team (design or sales), the day they left, and whether they work part time."""
    return STAFF


@tool(effect="read")
def duty_hours(pilot: str, week: int) -> float:
    """Tells how many hours a pilot was on duty in a calendar week.

    Args:
        pilot: the pilot's name.
        week: the number of the week.
    """
    return 42.0


@tool
def give_bonus(name: str, euros: int) -> str:
    """Gives a bonus to somebody.

    Args:
        name: who gets it.
        euros: how much.
    """
    return f"{euros} to {name}"


@tool
def play_song(title: str) -> str:
    """Plays a song.

    Args:
        title: the song's title.
    """
    return f"playing {title}"


@tool
def cancel_invoice(invoice: str) -> str:
    """Cancels an invoice.

    Args:
        invoice: its number, such as "R-1".
    """
    return f"cancelled {invoice}"


@pytest.mark.parametrize(
    "question",
    ["Who has left?", "Who left?", "Who works part time?", "How many staff have left?", "Which staff work in sales?"],
)
def test_all_are_not_told_for_those_of_whom_something_is_so(question: str) -> None:
    assert "Cleo" not in asked(question, staff).text


def test_all_are_told_where_they_are_asked_for() -> None:
    for question in ("List the staff.", "List the staff with the day they left.", "Which staff do we have?"):
        assert "Cleo" in asked(question, staff).text


def test_off_duty_is_not_on_duty() -> None:
    assert calls(asked("How many hours was Selma off duty in week 22?", duty_hours)) == []
    assert "42" in asked("How many hours was Selma on duty in week 22?", duty_hours).text


@pytest.mark.parametrize(
    "question",
    [
        "Has Aya Ito got a bonus of 500 euros?",
        "Give everybody in design a bonus of 500 euros.",
        "Give Aya Ito a bonus of 500 euros in design.",
        "Play a song by Nena.",
        "Cancel invoice R-2 and refund it.",
        "Cancel invoice R-2?",
    ],
)
def test_nothing_is_changed_that_was_not_commanded_of_one_thing(question: str) -> None:
    assert calls(asked(question, give_bonus, play_song, cancel_invoice)) == []


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("Give Aya Ito a bonus of 500 euros.", ("give_bonus", {"name": "Aya Ito", "euros": 500})),
        ("Can you cancel invoice R-2?", ("cancel_invoice", {"invoice": "R-2"})),
        ("Cancel invoice R-2, please?", ("cancel_invoice", {"invoice": "R-2"})),
    ],
)
def test_what_is_commanded_is_done(question: str, call: tuple[str, Any]) -> None:
    assert calls(asked(question, give_bonus, play_song, cancel_invoice)) == [call]


@pytest.mark.parametrize("question", ["Which staff only work in design?", "Who works both in design and in sales?"])
def test_only_and_both_are_not_passed_over(question: str) -> None:
    assert "Aya" not in asked(question, staff).text


@tool
def book_seat(show: str, seat: str, name: str) -> str:
    """Books a seat of a show.

    Args:
        show: the show's title.
        seat: such as "A1".
        name: for whom.
    """
    return f"{seat} of {show} for {name}"


@tool
def restart(server: str) -> str:
    """Restarts a server.

    Args:
        server: its name, such as "web-1".
    """
    return f"{server} restarted"


@tool
def scale(server: str, memory_gb: int) -> str:
    """Gives a server another amount of memory.

    Args:
        server: its name, such as "web-1".
        memory_gb: the new memory in gigabytes.
    """
    return f"{server} has {memory_gb} GB"


@pytest.mark.parametrize(
    "question",
    [
        "Book seat A2 of 'Cats' for Lena.",
        "Book seat A2 of 'Cats' in the name of Lena.",
        "Restart the server in the EU.",
        "Scale web-1 down by 8 GB.",
        "Scale web-1 to 32 MB.",
    ],
)
def test_no_change_is_made_to_what_may_be_another(question: str) -> None:
    wrong = [
        call
        for call in calls(asked(question, book_seat, restart, scale))
        if call != ("book_seat", {"seat": "A2", "show": "Cats", "name": "Lena"})
    ]
    assert wrong == []


def test_a_server_that_is_named_is_scaled() -> None:
    assert calls(asked("Scale web-1 to 32 GB.", restart, scale)) == [("scale", {"server": "web-1", "memory_gb": 32})]
