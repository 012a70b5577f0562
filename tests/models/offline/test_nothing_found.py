"""That nothing was found answers only what was looked for, and what is told is of the kind that was asked for."""

from typing import Any, Literal

import pytest

from treadle import Agent, Conversation, RunResult, tool

from .asked.judge import DECLINED

BOOKS = [
    {"title": "Solaris", "author": "Lem", "year": 1961},
    {"title": "Dune", "author": "Herbert", "year": 1965},
]
ORDERS = [
    {"order_id": 7, "customer": "Ada", "status": "shipped", "placed": "2026-11-02"},
    {"order_id": 10, "customer": "Chen", "status": "open", "placed": "2026-10-15"},
]


@tool(effect="read")
def search_books(author: str | None = None, title: str | None = None) -> list[dict[str, Any]]:
    """Searches the library's books.

    Args:
        author: the author's name.
        title: the title.
    """
    return [b for b in BOOKS if author in (None, b["author"]) and title in (None, b["title"])]


@tool(effect="read")
def member_loans(member: str) -> list[dict[str, Any]]:
    """Lists the books that a member has on loan, and when they are due.

    Args:
        member: the member's name.
    """
    return [{"title": "Solaris", "due": "2026-12-01"}] if member == "Tom" else []


@tool(effect="read")
def get_order(order_id: int) -> dict[str, Any]:
    """Gets one order: its customer, status, and when it was placed.

    Args:
        order_id: the order's number.
    """
    return next(order for order in ORDERS if order["order_id"] == order_id)


@tool(effect="read")
def get_forecast(city: str, days: int = 3) -> list[dict[str, Any]]:
    """Gets the weather forecast of a city for the next days.

    Args:
        city: the city's name.
        days: for how many days.
    """
    return [{"day": day, "high": 10 + day, "rain_mm": 2.5 * day} for day in range(days)]


@tool(effect="read")
def search_tickets(status: str = "", priority: str = "") -> list[dict[str, Any]]:
    """Searches tickets.

    Args:
        status: open or closed.
        priority: low or high.
    """
    return [{"number": 1, "status": "open", "priority": "high"}, {"number": 2, "status": "open", "priority": "high"}]


def asked(question: str) -> RunResult:
    tools = [search_books, member_loans, get_order, get_forecast, search_tickets]
    return Agent("offline", tools=tools).run_sync(question)


@pytest.mark.parametrize(
    "question",
    [
        "Is there a book Dune?",
        "Tom's books",
        "Which books of Lem are lent out?",
        "Books from the sixties",
        "Books for children",
        "Books with pictures",
    ],
)
def test_nothing_is_said_to_be_found_where_the_name_may_be_that_of_something_else(question: str) -> None:
    text = asked(question).text
    assert "No results were found" not in text
    assert "not clear whether" in text or DECLINED.search(text)


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("Books by Tom", {"author": "Tom"}),
        ("What has Zoe borrowed?", {"member": "Zoe"}),
        ("What is the member Zoe's loan?", {"member": "Zoe"}),
    ],
)
def test_nothing_is_found_of_what_the_words_say_that_it_is(question: str, arguments: dict[str, str]) -> None:
    result = asked(question)
    assert dict(result.tool_calls_made[-1].arguments) == arguments
    assert "No results were found" in result.text


def test_who_did_something_is_not_when_it_was_done() -> None:
    text = asked("Who placed order 10?").text
    assert "Chen" in text


def test_when_it_was_done_is_told_alone() -> None:
    text = asked("When was order 10 placed?").text
    assert "2026-10-15" in text
    assert "Chen" not in text


@pytest.mark.parametrize("question", ["Where is order 7?", "Where was order 7 placed?"])
def test_where_something_is_is_told_by_no_day(question: str) -> None:
    text = asked(question).text
    assert DECLINED.search(text)
    assert "2026" not in text


@pytest.mark.parametrize(
    "question",
    [
        "How many days will it rain in Oslo over the next 5 days?",
        "How many days of the next 4 days will be wet in Oslo?",
    ],
)
def test_a_number_of_days_in_the_question_is_not_the_number_of_those_that_are_asked_for(question: str) -> None:
    result = asked(question)
    assert not result.tool_calls_made
    assert "listed" not in result.text


def test_what_is_counted_may_be_called_by_the_word_for_its_choice() -> None:
    result = asked("How many high priority tickets are open?")
    assert dict(result.tool_calls_made[-1].arguments) == {"status": "open", "priority": "high"}
    assert "2 listed" in result.text


def test_a_follow_up_keeps_the_name_of_which_nothing_was_found() -> None:
    @tool(effect="read")
    def find_books(
        author: str | None = None, title: str | None = None, language: Literal["Polish", "German"] | None = None
    ) -> list[dict[str, Any]]:
        """Finds the library's books.

        Args:
            author: the author's name.
            title: the title.
            language: the language that the book is in.
        """
        return [] if author else [{"title": "Fiasco", "author": "Lem", "language": language}]

    agent, talk = Agent("offline", tools=[find_books]), Conversation()
    agent.run_sync("Do you have the book Dune in German?", conversation=talk)
    text = agent.run_sync("in Polish?", conversation=talk).text
    assert "Fiasco" not in text
