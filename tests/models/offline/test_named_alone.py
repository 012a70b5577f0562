"""A name with nothing beside it that says what it is: what it may be, and what is done to it."""

from typing import Any

import pytest

from treadle import Agent, tool

from .asked.judge import DECLINED

EMPLOYEES = [{"name": "Ana", "department": "Sales"}, {"name": "Cy", "department": "IT"}]
DONE: list[tuple[Any, ...]] = []


@tool(effect="read")
def list_employees(department: str | None = None) -> list[dict[str, Any]]:
    """List employees, optionally only those of one department."""
    return [each for each in EMPLOYEES if department in (None, each["department"])]


@tool(effect="write")
def set_salary(employee: str, salary: float) -> str:
    """Set an employee's yearly salary."""
    DONE.append((employee, salary))
    return "done"


@tool(effect="write")
def raise_salary(name: str, percent: float) -> str:
    """Raise somebody's salary by a percentage."""
    DONE.append((name, percent))
    return "raised"


@tool(effect="write")
def pay(recipient: str, amount: float) -> str:
    """Pay an amount to a person."""
    DONE.append((recipient, amount))
    return "paid"


@tool(effect="write")
def send_email(to: str, subject: str, body: str = "") -> str:
    """Send an email.

    Args:
        to: Address of the recipient.
        subject: The subject line.
        body: The text.
    """
    DONE.append((to, subject))
    return "sent"


def told(order: str, *tools: Any) -> str:
    DONE.clear()
    return Agent("offline", tools=list(tools)).run_sync(order).text


def test_what_a_list_knows_as_another_thing_is_not_changed() -> None:
    assert "'Sales' is a department, and no employee" in told(
        "Set the salary of Sales to 50", list_employees, set_salary
    )
    assert "'IT' is a department" in told("Set the salary of IT to 50", list_employees, set_salary)
    assert DONE == []
    told("Set the salary of Cy to 50000", list_employees, set_salary)
    assert DONE == [("Cy", 50000)]


@tool(effect="read")
def list_teams() -> list[dict[str, Any]]:
    """Teams with lead, budget and headcount."""
    return [{"team": "Core", "lead": "Ann", "budget": 90000}, {"team": "Web", "lead": "Ben", "budget": 60000}]


@tool(effect="write")
def set_budget(team: str, budget: float) -> str:
    """Set the yearly budget of a team."""
    DONE.append((team, budget))
    return "set"


def test_the_lead_of_a_team_is_not_the_team() -> None:
    assert "'Ann' is a lead, and no team" in told("Set the budget of Ann to 95000", list_teams, set_budget)
    assert DONE == []
    told("Set the budget of Core to 95000", list_teams, set_budget)
    assert DONE == [("Core", 95000)]


def test_the_staff_of_a_department_is_nobody() -> None:
    told("Set the salary of Sales staff to 50", set_salary)
    assert DONE == []


def test_whose_salary_it_is_tells_whom_a_name_is_of() -> None:
    told("Raise Cy's salary by 5 percent", raise_salary)
    assert DONE == [("Cy", 5)]
    assert DECLINED.search(told("Raise the salary by 5 percent", raise_salary))
    for whose in ("the manager", "Cy's manager", "the best employee", "everybody", "Sales staff"):
        told(f"Raise the salary of {whose} by 5 percent", raise_salary)
        assert DONE == [], whose
    assert "is a percentage" in told("Raise Cy's salary by 5", raise_salary)
    assert DONE == []


@pytest.mark.parametrize(
    ("order", "done"),
    [
        ("Pay Dana 50", [("Dana", 50)]),
        ("Pay Dana Meyer 50.", [("Dana Meyer", 50)]),
        ("Pay Dana 62.40", [("Dana", 62.4)]),
        ("Pay Flat 12", []),
        ("Pay Dana and Omar 50", []),
        ("Pay Dana 50 and Omar 30", [("Dana", 50.0), ("Omar", 30.0)]),
        ("Pay Flat 12 and Omar 30", []),
        ("Pay Dana 50 times", []),
        ("Did we pay Dana 50?", []),
    ],
)
def test_a_number_behind_somebody_is_what_is_paid(order: str, done: list[Any]) -> None:
    text = told(order, pay)
    assert done == DONE
    assert done or "cannot" in text or DECLINED.search(text)


def test_an_address_of_what_sends_mail_is_no_name() -> None:
    assert "needs `to`" in told('Send an email to Ana with the subject "Hello"', send_email)
    assert DONE == []
    told('Send an email to ana@x.org with the subject "Hello"', send_email)
    assert DONE == [("ana@x.org", "Hello")]
