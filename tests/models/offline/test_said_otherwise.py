"""Questions that were answered as others: what was hired, what undoes itself, times of day, millions, spellings."""

from typing import Any

import pytest

from treadle import Agent, Conversation, tool
from treadle.analyst import analyst_skill
from treadle.models.offline.grammar.language import is_german
from treadle.models.offline.grammar.quantities import find_large_numbers, find_times

CALLS: list[tuple[str, dict[str, Any]]] = []


@tool(effect="read")
def list_employees(department: str, hired_after: str | None = None) -> list[dict[str, str]]:
    """Lists the employees of a department.

    Args:
        department: the department.
        hired_after: only those hired after this day (YYYY-MM-DD).
    """
    CALLS.append(("list_employees", {"department": department, "hired_after": hired_after}))
    return [{"name": "Ada"}, {"name": "Bob"}]


@tool(effect="write")
def cancel_order(order_id: str) -> str:
    """Cancels an order."""
    CALLS.append(("cancel_order", {"order_id": order_id}))
    return "cancelled"


@tool(effect="write")
def cancel_subscription() -> str:
    """Cancels the subscription."""
    CALLS.append(("cancel_subscription", {}))
    return "cancelled"


@tool(effect="write")
def withdraw_cancellation(order_id: str) -> str:
    """Withdraws the cancellation of an order."""
    CALLS.append(("withdraw_cancellation", {"order_id": order_id}))
    return "withdrawn"


@tool(effect="write")
def book_room(room: str, day: str, time: str) -> str:
    """Books a room.

    Args:
        room: the room.
        day: the day, as YYYY-MM-DD.
        time: the time of day, as HH:MM.
    """
    CALLS.append(("book_room", {"room": room, "day": day, "time": time}))
    return "booked"


@tool(effect="read")
def convert_currency(amount: float, from_currency: str, to_currency: str) -> float:
    """Converts an amount of money from one currency to another."""
    CALLS.append(("convert_currency", {"amount": amount}))
    return amount * 2


@tool(effect="read")
def get_weather(city: str) -> str:
    """Gets the weather in a city."""
    CALLS.append(("get_weather", {"city": city}))
    return "sunny"


TOOLS = [list_employees, cancel_order, cancel_subscription, book_room, convert_currency, get_weather]


def asked(question: str, tools: Any = TOOLS) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    CALLS.clear()
    return Agent("offline", tools=tools).run_sync(question, conversation=Conversation()).text, list(CALLS)


@pytest.mark.parametrize("question", [
    "How many were hired in sales?", "How many employees were hired in sales?", "Who was hired in sales?",
    "List the employees hired in sales",
])  # fmt: skip
def test_a_word_of_a_bound_that_is_not_given_is_not_left_out(question: str) -> None:
    answer, calls = asked(question)
    assert calls == [] or "Left out of account: “hired”" in answer
    assert calls == [], answer


def test_the_bound_is_given_where_it_is_said() -> None:
    _, calls = asked("List the employees of sales hired after 2023-01-01")
    assert calls == [("list_employees", {"department": "sales", "hired_after": "2023-01-01"})]


@pytest.mark.parametrize("question", [
    "Cancel my cancellation", "Cancel the cancellation of order O-17", "Stop the cancellation of order O-17",
    "Cancel the subscription cancellation", "Undo the cancellation of order O-17", "Abort the cancellation of O-17",
    "Please cancel my cancellation of order O-17",
])  # fmt: skip
def test_what_undoes_a_cancellation_cancels_nothing(question: str) -> None:
    assert asked(question)[1] == []


def test_an_order_to_cancel_still_cancels_and_its_undoing_is_found() -> None:
    assert asked("Cancel order O-17")[1] == [("cancel_order", {"order_id": "O-17"})]
    assert asked("Cancel my subscription")[1] == [("cancel_subscription", {})]
    found = asked("Withdraw the cancellation of order O-17", [*TOOLS, withdraw_cancellation])[1]
    assert found == [("withdraw_cancellation", {"order_id": "O-17"})]


@pytest.mark.parametrize(
    ("said", "time"),
    [("10:00", "10:00"), ("9:30", "09:30"), ("10am", "10:00"), ("2:15 pm", "14:15"), ("12 a.m.", "00:00")],
)  # fmt: skip
def test_a_time_of_day_is_one_and_nothing_else(said: str, time: str) -> None:
    expected = [("book_room", {"room": "Aspen", "day": "2025-03-04", "time": time})]
    assert asked(f"Book Aspen on 2025-03-04 at {said}")[1] == expected
    assert asked(f"Book room Aspen at {said} on 4 March 2025")[1] == expected


def test_a_booking_without_a_time_is_not_made() -> None:
    answer, calls = asked("Book Aspen on 2025-03-04")
    assert calls == []
    assert "`time`" in answer


@pytest.mark.parametrize(
    ("said", "amount"),
    [("2m EUR", 2e6), ("1.5m EUR", 1.5e6), ("2 million EUR", 2e6), ("2k EUR", 2e3), ("3bn EUR", 3e9),
     ("1,500k EUR", 1.5e6)],
)  # fmt: skip
def test_thousands_and_millions_are_read_whole(said: str, amount: float) -> None:
    assert asked(f"Convert {said} to USD")[1] == [("convert_currency", {"amount": amount})]


@pytest.mark.parametrize("question", ["Convert 1.5x EUR to USD", "Convert 2.5kg EUR to USD"])
def test_a_number_that_is_not_read_whole_is_not_read_at_all(question: str) -> None:
    assert asked(question)[1] == []


@pytest.mark.parametrize(
    "text", ["it is 25:00", "12:60", "10:00:00:00", "2025-01-01T10:00", "13 pm", "page 10.30", "a10am"]
)
def test_what_is_no_time_of_day(text: str) -> None:
    assert list(find_times(text)) == []


@pytest.mark.parametrize("text", ["5m", "5 m long", "2.5.3m EUR", "5kg", "10 k", "20m walk", "5 MB", "3M tape"])
def test_what_is_no_large_number(text: str) -> None:
    assert list(find_large_numbers(text)) == []


@pytest.mark.parametrize("question", [
    "Wie ist das Wetter in Berlin?", "Wie viele Mitarbeiter hat Sales?", "Storniere Bestellung O-17",
    "Welche Bestellungen gibt es?",
])  # fmt: skip
def test_a_german_question_is_told_to_be_one(question: str) -> None:
    answer, calls = asked(question)
    assert calls == []
    assert "it looks like German, and I read English only" in answer


@pytest.mark.parametrize("question", [
    "What is the weather in Köln?", "Cancel order der-17", "Die casting: how many?", "weather in Wien",
    "Who is Otto von Bismarck?",
    "List all employees in Bad Homburg vor der Höhe",
])  # fmt: skip
def test_english_questions_with_german_names_are_english(question: str) -> None:
    assert not is_german(question)


ANALYST = analyst_skill()


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What is the amount of fi_reporting for company 1001 for accounts like 80%?", "account like 80%"),
        ("What is the amount of fi_reporting for company 1001 for accounts starting with 80?", "account like 80%"),
        ("Compare fi_reporting with consolidation_mart for company 1001 where account like 80%", "account like 80%"),
        ("What is the amount of fi_reporting for company 1001 where account is not null?", "account is not null"),
        ("What is the amount of fi_reporting for company 1001 where account is null?", "account is null"),
        ("What is the amount of fi_reporting without an account?", "account is null"),
    ],
)
def test_conditions_on_how_values_are_spelled_or_missing(question: str, says: str) -> None:
    answer = Agent("offline", skills=[ANALYST]).run_sync(question, conversation=Conversation()).text
    assert f"{says};" in answer or f"{says}." in answer or f"{says} " in answer, answer
    assert "cannot" not in answer


@pytest.mark.parametrize("question", [
    "What is the amount of fi_reporting for accounts like 80?",
    "What is the amount of fi_reporting for accounts not like 80%?",
    "What is the amount of fi_reporting for accounts starting with 8_?",
])  # fmt: skip
def test_what_no_operator_says_is_not_answered(question: str) -> None:
    answer = Agent("offline", skills=[ANALYST]).run_sync(question, conversation=Conversation()).text
    assert "amount" not in answer.partition("What I can do")[0] or "cannot" in answer, answer


def test_year_to_date_without_a_month_asks_for_it() -> None:
    question = "What is the amount of fi_reporting for company 1001 year to date?"
    answer = Agent("offline", skills=[ANALYST]).run_sync(question, conversation=Conversation()).text
    assert "Say up to which month “year to date” goes, such as “year to date 202403”" in answer
