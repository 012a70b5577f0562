"""What is asked for may stand in a result alone, of a tool that only reads and does not say what it returns."""

from typing import Any

import pytest

from treadle import Agent, RunResult, tool

from .asked.judge import DECLINED

TICKETS = [
    {"number": 4711, "title": "Login fails", "status": "open", "parcel": {"price": 5}},
    {"number": 4712, "title": "Typo", "status": "closed", "parcel": {"price": 6}},
]
DONE: list[int] = []


@tool(effect="read")
def get_ticket(number: int) -> dict:  # type: ignore[type-arg]
    """Shows a ticket.

    Args:
        number: the ticket's number.
    """
    return next(ticket for ticket in TICKETS if ticket["number"] == number)


@tool
def poke_case(number: int) -> dict[str, Any]:
    """Pokes a case.

    Args:
        number: the case's number.
    """
    DONE.append(number)
    return {"number": number, "mood": "cross"}


@tool(effect="write")
def discharge(id: int) -> str:
    """Discharges a patient.

    Args:
        id: the patient's number.
    """
    DONE.append(id)
    return f"patient {id} discharged"


def asked(question: str) -> RunResult:
    DONE.clear()
    return Agent("offline", tools=[get_ticket, poke_case, discharge]).run_sync(question)


@pytest.mark.parametrize(
    ("question", "told", "untold"),
    [
        ("What is the status of ticket 4711?", "status open", "Login"),
        ("What is ticket 4712's status?", "status closed", "Typo"),
        ("ticket 4711's title", "title Login fails", "open"),
    ],
)
def test_a_field_of_the_result_is_told(question: str, told: str, untold: str) -> None:
    text = asked(question).text
    assert told in text
    assert untold not in text


@pytest.mark.parametrize(
    "question",
    [
        "What is the age of ticket 4711?",
        "What is the price of ticket 4711?",
        "What was the status of ticket 4711?",
        "What is the latest status of ticket 4711?",
        "What should be the status of ticket 4711?",
    ],
)
def test_what_the_result_does_not_have_is_not_answered(question: str) -> None:
    text = asked(question).text
    assert DECLINED.search(text)
    assert "open" not in text


def test_no_tool_that_may_change_something_is_called_to_see_what_it_returns() -> None:
    asked("What is the mood of case 12?")
    assert DONE == []


def test_a_number_is_that_of_what_the_description_says() -> None:
    asked("Discharge patient 12")
    assert DONE == [12]


@pytest.mark.parametrize("question", ["Discharge ward 12", "Discharge 12 patients", "Discharge patient 12 tomorrow"])
def test_it_is_that_of_nothing_else(question: str) -> None:
    asked(question)
    assert DONE == []
