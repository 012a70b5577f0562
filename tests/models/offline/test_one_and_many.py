"""A tool that tells of one thing is not asked for many, nor for what belongs to somebody whom it only names."""

from datetime import date
from typing import Any

import pytest

from treadle import Agent, RunResult, tool

from .asked.judge import DECLINED


@tool(effect="read")
def animal(name: str) -> dict[str, Any]:
    """Tells about an animal of the zoo: species, age in years, enclosure and keeper.

    Args:
        name: the animal's name.
    """
    return {"name": name, "species": "elephant", "age": 34, "enclosure": "savanna", "keeper": "Paul Fuchs"}


@tool(effect="read")
def animals(species: str | None = None, enclosure: str | None = None) -> list[dict[str, Any]]:
    """Lists the animals of the zoo.

    Args:
        species: only of this species.
        enclosure: only in this enclosure.
    """
    return [{"name": "Jumbo", "species": "elephant"}, {"name": "Kira", "species": "lion"}]


@tool(effect="read")
def invoice(number: str) -> dict[str, Any]:
    """Shows an invoice: client, amount in EUR and whether it is paid.

    Args:
        number: the invoice's number, such as I-1.
    """
    return {"number": number, "client": "Acme", "amount": 400.0, "paid": False}


@tool(effect="read")
def invoices(client: str | None = None, paid: bool | None = None) -> list[dict[str, Any]]:
    """Lists invoices.

    Args:
        client: only of this client.
        paid: only paid ones, or only unpaid ones.
    """
    return [{"invoice": "I-2", "client": "Acme", "amount": 400.0}]


@tool(effect="read")
def next_game(team: str, after: date | None = None) -> dict[str, Any]:
    """Tells when and where a team plays next, and against whom.

    Args:
        team: the team.
        after: only after this day.
    """
    return {"team": team, "day": "2026-12-05", "place": "Hamburg", "opponent": "Lions"}


@tool(effect="read")
def course(code: str) -> dict[str, Any]:
    """Shows a course: title, teacher and how many students are enrolled.

    Args:
        code: the course's code, such as M101.
    """
    return {"code": code, "title": "Algebra", "teacher": "Dr. Noll", "enrolled": 42}


@tool(effect="read")
def exchange(amount: float, source: str, target: str) -> float:
    """Converts an amount of money from one currency to another.

    Args:
        amount: how much.
        source: the currency it is in, such as EUR.
        target: the currency it is wanted in.
    """
    return amount * 4


def asked(question: str) -> RunResult:
    return Agent("offline", tools=[animal, animals, invoice, invoices, next_game, course, exchange]).run_sync(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which animals are in the savanna?",
        "Animals of the savanna",
        "Invoices of 2026",
        "How many lions does the zoo have?",
    ],
)
def test_what_is_asked_of_many_is_told_of_none(question: str) -> None:
    text = asked(question).text
    assert DECLINED.search(text)
    assert "34" not in text
    assert "Acme" not in text


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is the amount of invoice I-2?", "400"),
        ("What are the amounts of invoices I-1 and I-2?", "I-1: amount 400"),
        ("Which enclosure is Jumbo in?", "savanna"),
        ("Who do the Bears play next?", "Lions"),
    ],
)
def test_what_is_asked_of_one_is_told(question: str, told: str) -> None:
    assert told in asked(question).text


@pytest.mark.parametrize(
    "question", ["What is Jumbo's keeper's age?", "What is the age of Jumbo's keeper?", "Is Jumbo older than the zoo?"]
)
def test_the_age_of_somebody_else_is_not_told(question: str) -> None:
    assert "34" not in asked(question).text


def test_who_plays_for_a_team_is_not_whom_it_plays_against() -> None:
    assert "Lions" not in asked("Who plays for the Bears?").text


def test_which_ones_there_are_is_not_told_by_a_record_of_something_else() -> None:
    assert "Noll" not in asked("Which students are in M101?").text


def test_a_country_is_no_currency() -> None:
    assert "40" not in asked("10 EUR in the currency of Peru").text
