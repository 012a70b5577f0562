"""Arguments hold what was said and nothing else: no month for a day, no bound for a span, no condition in a search."""

from typing import Any, Literal

import pytest

from treadle import Agent, tool

CALLS: list[dict[str, Any]] = []


def note(**given: Any) -> None:
    CALLS.append({name: value for name, value in given.items() if value not in (None, False)})


@tool(effect="read")
def events_on(day: str) -> list[str]:
    """The events in the calendar on a day.

    Args:
        day: a day (YYYY-MM-DD).
    """
    note(day=day)
    return ["dentist"]


@tool(effect="read")
def search_products(query: str, max_price: float | None = None) -> list[str]:
    """Search the catalogue for products."""
    note(query=query, max_price=max_price)
    return ["K2"]


@tool(effect="read")
def headcount(department: Literal["sales", "logistics"], include_contractors: bool = False) -> dict[str, int]:
    """How many people work in a department."""
    note(department=department, include_contractors=include_contractors)
    return {"people": 58}


@tool(effect="read")
def vacation_days(employee: str, year: int | None = None) -> dict[str, int]:
    """How many days of vacation an employee has left."""
    note(employee=employee, year=year)
    return {"days_left": 13}


@tool(effect="read")
def list_employees(department: Literal["sales", "logistics"], hired_after: str | None = None) -> list[str]:
    """The employees of a department.

    Args:
        department: the department.
        hired_after: only those hired after this day (YYYY-MM-DD).
    """
    note(department=department, hired_after=hired_after)
    return ["Ines"]


@tool(effect="read")
def average_reading(sensor: str, hours: int) -> dict[str, float]:
    """The average reading of a sensor over the last hours."""
    note(sensor=sensor, hours=hours)
    return {"average": 39.2}


@tool(effect="read")
def revenue(year: int, quarter: Literal[1, 2, 3, 4] | None = None) -> dict[str, float]:
    """The revenue of a year or quarter."""
    note(year=year, quarter=quarter)
    return {"revenue": 88123.5}


@tool(effect="read")
def account_balance(account: str, as_of: str | None = None) -> dict[str, str]:
    """The balance of an account.

    Args:
        account: the account number.
        as_of: a day (YYYY-MM-DD).
    """
    note(account=account, as_of=as_of)
    return {"balance": "5161.07"}


@tool(effect="read")
def list_postings(account: str, min_amount: float | None = None) -> list[str]:
    """The postings of an account."""
    note(account=account, min_amount=min_amount)
    return ["P9"]


@tool(effect="read")
def find_flights(origin: str, destination: str) -> list[str]:
    """Find flights from one city to another."""
    note(origin=origin, destination=destination)
    return ["XQ 12"]


HR = [headcount, vacation_days, list_employees]


def asked(tools: list[Any], question: str) -> str:
    CALLS.clear()
    return Agent("offline", tools=tools).run_sync(question).text


@pytest.mark.parametrize(
    ("tools", "question"),
    [
        ([events_on], "Which events do I have in July 2024?"),
        ([events_on], "Which events do I have between 2024-07-04 and 2024-07-06?"),
        ([search_products], "Search for kettles, but not red ones"),
        ([search_products], "Search for kettles over 30"),
        ([search_products], "Search for tents between 100 and 200"),
        (HR, "How many people work in marketing?"),
        (HR, "List the employees of sales hired on 2023-01-01"),
        (HR, "List the employees of sales hired before 2023-01-01"),
        ([average_reading], "Is the reading of sensor T-12 between 30 and 40?"),
        ([revenue], "What was the revenue since 2021?"),
        ([revenue], "What was the revenue from 2021 to 2023?"),
        ([revenue], "What was the revenue in March 2023?"),
        ([revenue], "What was the revenue in the first half of 2023?"),
        ([account_balance], "What was the balance of account 4711 before 2024-02-29?"),
    ],
)
def test_what_cannot_be_asked_is_not_asked(tools: list[Any], question: str) -> None:
    answer = asked(tools, question)
    assert CALLS == [], answer


@pytest.mark.parametrize(
    ("tools", "question", "word"),
    [
        (HR, "How many contractors work in logistics?", "contractors"),
        ([find_flights], "Find return flights from Oslo to Lisbon", "return"),
        ([list_postings], "Who made the postings of account 4711?", "Who"),
    ],
)
def test_what_is_left_out_is_said_first(tools: list[Any], question: str, word: str) -> None:
    answer = asked(tools, question)
    assert word in answer.splitlines()[0]
    assert answer.startswith(("Left out of account", "I cannot"))


@pytest.mark.parametrize(
    ("tools", "question", "arguments"),
    [
        ([revenue], "What was the revenue in 2023?", [{"year": 2023}]),
        ([revenue], "What was the revenue in the second quarter of 2023?", [{"year": 2023, "quarter": 2}]),
        ([revenue], "What was the revenue in Q3 2023?", [{"year": 2023, "quarter": 3}]),
        ([revenue], "What was the revenue in 2022 and 2023?", [{"year": 2022}, {"year": 2023}]),
        ([revenue], "Was the revenue in 2023 above 80000?", [{"year": 2023}]),
        (
            HR,
            "How many vacation days does Ines Prado have left in 2025?",
            [{"employee": "Ines Prado", "year": 2025}],
        ),
        (
            HR,
            "List the employees of sales hired after 2023-01-01",
            [{"department": "sales", "hired_after": "2023-01-01"}],
        ),
        (
            HR,
            "How many people work in logistics including contractors?",
            [{"department": "logistics", "include_contractors": True}],
        ),
        (
            [account_balance],
            "Balance of account 4711 as of 2024-06-30",
            [{"account": "4711", "as_of": "2024-06-30"}],
        ),
        (
            [list_postings],
            "List the postings of account 4711 of at least 500",
            [{"account": "4711", "min_amount": 500}],
        ),
        ([search_products], "Search for tents up to 200", [{"query": "tents", "max_price": 200}]),
        (
            [average_reading],
            "What is the average reading of sensor T-12 over the last 6 hours?",
            [{"sensor": "T-12", "hours": 6}],
        ),
    ],
)
def test_plain_questions_are_asked(tools: list[Any], question: str, arguments: list[dict[str, Any]]) -> None:
    answer = asked(tools, question)
    assert arguments == CALLS, answer
