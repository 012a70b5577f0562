"""A tool is ordered by what it does: nobody who asks to be shown or told something has a door opened, or a thing
deleted."""

from typing import Any

import pytest

from treadle import Agent, tool


def report(item: int) -> str:
    """Deletes an item."""
    return "deleted"


def show_room(room: int) -> str:
    """Opens a room."""
    return "opened"


def status(door: str) -> str:
    """Starts the alarm of a door."""
    return "alarm"


def report_bug(title: str) -> str:
    """Files a bug."""
    return "filed"


def read_file(path: str) -> str:
    """Opens a file and returns its lines."""
    return "lines"


def made(question: str, *functions: Any, **options: Any) -> list[tuple[str, dict[str, Any]]]:
    result = Agent("offline", tools=[tool(**options)(each) for each in functions]).run_sync(question)
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@pytest.mark.parametrize("options", [{}, {"effect": "write"}, {"effect": "idempotent"}])
@pytest.mark.parametrize(
    "question",
    ["Report item 7", "Report on item 7", "Show room 5", "Show me room 5", "What about room 5?", "Tell me of room 5"],
)
def test_what_asks_to_be_told_orders_nothing_else(question: str, options: dict[str, Any]) -> None:
    assert made(question, report, show_room, **options) == []


@pytest.mark.parametrize("options", [{}, {"effect": "write"}])
def test_it_is_ordered_by_what_it_does(options: dict[str, Any]) -> None:
    assert made("Delete item 7", report, show_room, **options) == [("report", {"item": 7})]
    assert made("Open room 5", report, show_room, **options) == [("show_room", {"room": 5})]


@pytest.mark.parametrize("question", ["What is the status of door D1?", "Status of door D1", "Show the status of D1"])
def test_what_is_set_going_is_not_asked_for(question: str) -> None:
    assert made(question, status) == []


def test_what_one_reports_something_by_is_ordered_so() -> None:
    assert made('Report the bug "it hangs"', report_bug, effect="write") == [("report_bug", {"title": "it hangs"})]


def test_what_opens_a_thing_to_tell_of_it_tells() -> None:
    assert made("Read the file notes.txt", read_file) == [("read_file", {"path": "notes.txt"})]


def show_lights(tank: str) -> str:
    """Switches on the lights of a tank."""
    return "on"


@pytest.mark.parametrize("options", [{}, {"effect": "write"}])
def test_what_is_switched_on_is_not_shown(options: dict[str, Any]) -> None:
    assert made("Show the lights of tank T4", show_lights, **options) == []
    assert made("Switch on the lights of tank T4", show_lights, **options) == [("show_lights", {"tank": "T4"})]


def clean_room(room: int) -> str:
    """Has a room cleaned."""
    return "cleaned"


def hide_post(post: int) -> str:
    return "hidden"


def show_post(post: int) -> str:
    """Unhides a post."""
    return "shown"


def get_logs(service: str) -> str:
    """Pulls the logs of a service."""
    return "all is well"


@pytest.mark.parametrize(
    "question",
    [
        "Is room 201 clean?",
        "Check room 102",
        "What is in post 6?",
        "Show post 6",
        "Show me post 6",
        "Is post 6 hidden?",
    ],
)
def test_what_nobody_says_tells_something_is_not_asked(question: str) -> None:
    """Regression: it was asked whether a room is clean, and it was cleaned."""
    assert made(question, clean_room, hide_post, show_post) == []


@pytest.mark.parametrize(
    ("order", "call"),
    [
        ("Clean room 201", ("clean_room", {"room": 201})),
        ("Hide post 6", ("hide_post", {"post": 6})),
        ("Unhide post 6", ("show_post", {"post": 6})),
        ("Get the logs of service api", ("get_logs", {"service": "api"})),
    ],
)
def test_it_is_done_where_it_is_ordered(order: str, call: tuple[str, dict[str, Any]]) -> None:
    assert made(order, clean_room, hide_post, show_post, get_logs) == [call]
