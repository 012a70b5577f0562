"""What a change is made to, and for whom: a mail goes to an address, and each value to where it is said to go."""

from typing import Any

import pytest

from treadle import Agent, Conversation, tool

ADDRESSES = {"ann": "ann@ex.org", "ben": "ben@ex.org"}
SENT: list[tuple[str, str, str]] = []
CHANGED: list[tuple[Any, ...]] = []


@tool(effect="read")
def find_contact(name: str) -> dict[str, Any]:
    """Look up a person's email address by name."""
    return {"name": name, "email": ADDRESSES[name.lower()]}


@tool
def send_email(to: str, subject: str, body: str) -> dict[str, Any]:
    """Send an email to an address."""
    SENT.append((to, subject, body))
    return {"sent": True}


@tool
def set_salary(name: str, salary: int) -> dict[str, Any]:
    """Set an employee's yearly salary."""
    CHANGED.append((name, salary))
    return {"ok": True}


@tool
def deposit(account: str, amount: float) -> dict[str, Any]:
    """Deposit money into an account."""
    CHANGED.append((account, amount))
    return {"ok": True}


@tool
def delete_todo(todo_id: int) -> dict[str, Any]:
    """Delete a todo item."""
    CHANGED.append((todo_id,))
    return {"ok": True}


@tool(effect="read")
def convert_currency(amount: float, from_currency: str, to_currency: str) -> float:
    """Convert an amount of money from one currency to another, e.g. from USD to EUR."""
    worth = {"USD": 1.0, "EUR": 1.25, "GBP": 1.5, "JPY": 0.01}
    return round(amount * worth[from_currency] / worth[to_currency], 2)


def told(question: str, *tools: Any, talk: Conversation | None = None) -> str:
    SENT.clear()
    CHANGED.clear()
    return str(Agent("offline", tools=tools).run_sync(question, conversation=talk).text)


@pytest.mark.parametrize(
    ("question", "sent"),
    [
        ("Send an email to Ann with subject 'Hi' and body 'Yo'", [("ann@ex.org", "Hi", "Yo")]),
        ("Email Ann with the subject 'Hi' and the body 'Yo'", [("ann@ex.org", "Hi", "Yo")]),
        ("Send Ann an email with subject 'Ben' and body 'Yo'", [("ann@ex.org", "Ben", "Yo")]),
        (
            "Send an email to Ann and Ben with subject 'Hi' and body 'Yo'",
            [("ann@ex.org", "Hi", "Yo"), ("ben@ex.org", "Hi", "Yo")],
        ),
        ("Send an email to ann@ex.org with subject 'Hi' and body 'Yo'", [("ann@ex.org", "Hi", "Yo")]),
        ("Send an email to Ann or Ben with subject 'Hi' and body 'Yo'", []),
        ("Send an email with subject 'Ann' and body 'Ben'", []),
    ],
)
def test_mail_goes_to_the_address_of_whom_it_is_for(question: str, sent: list[tuple[str, str, str]]) -> None:
    told(question, find_contact, send_email)
    assert sent == SENT


def test_a_name_is_no_address_where_nothing_tells_one() -> None:
    assert "offline planner" in told("Send an email to Ann with subject 'Hi' and body 'Yo'", send_email)
    assert not SENT


def test_mail_to_whom_was_spoken_of_goes_to_the_address() -> None:
    talk = Conversation()
    told("What is Ann's email address?", find_contact, send_email, talk=talk)
    told("Send her an email with subject 'Hi' and body 'Hello Ben'", find_contact, send_email, talk=talk)
    assert SENT == [("ann@ex.org", "Hi", "Hello Ben")]


@pytest.mark.parametrize(
    ("question", "figures"),
    [
        ("Convert 100 USD to EUR and GBP", ["80", "66.67"]),
        ("Convert $100 to EUR and GBP", ["80", "66.67"]),
        ("Convert 100 dollars to euros, pounds and yen", ["80", "66.67", "10000"]),
        ("Convert 100 USD to EUR", ["80"]),
    ],
)
def test_an_amount_is_in_the_currency_beside_it(question: str, figures: list[str]) -> None:
    answer = told(question, convert_currency)
    assert all(figure in answer for figure in figures)


@pytest.mark.parametrize(
    "question",
    [
        "Convert 100 to EUR and GBP",
        "Convert 100 USD and EUR to GBP",
        "Convert 100 USD from EUR to GBP",
        "Convert 100 USD to EUR and to GBP",
    ],
)
def test_a_currency_that_goes_nowhere_forbids_an_answer(question: str) -> None:
    answer = told(question, convert_currency)
    assert not any(figure in answer for figure in ("80", "66.67", "83.33", "120.0"))


@pytest.mark.parametrize(
    ("question", "changed"),
    [
        ("Set Nora's salary to 55000", [("Nora", 55000)]),
        ("Set the salary of Nora to 55000", [("Nora", 55000)]),
        ("Set the salary of the manager to 55000", []),
        ("Set the salary of Nora's manager to 55000", []),
        ("Deposit 200 into Bob", [("Bob", 200)]),
        ("Deposit 20 or 30 into Bob", []),
        ("Delete todo item 2", [(2,)]),
        ("Delete item 2", [(2,)]),
        ("Delete 2 items", []),
        ("Delete item 2 or 3", []),
    ],
)
def test_each_value_goes_where_it_is_said(question: str, changed: list[tuple[Any, ...]]) -> None:
    told(question, set_salary, deposit, delete_todo)
    assert changed == CHANGED
