"""What a fresh set of questions found: other money, many for one, a part for the whole, a list for a sum, mere words
for a name, and figures chosen by words that were said to be left out."""

from typing import Any, Literal

import pytest

from treadle import Agent, RunResult, tool

from .asked.judge import DECLINED

Account = Literal["rent", "holiday", "savings"]
HIVES = [
    {"hive": "Rosemary", "site": "orchard", "honey_kg": 14.5},
    {"hive": "Thyme", "site": "roof", "honey_kg": 3.25},
]


@tool
def transfer(source: Account, target: Account, euros: float) -> str:
    """Transfers money from one account to another.

    Args:
        source: the account to take from.
        target: the account to give to.
        euros: how much.
    """
    return f"{euros} EUR moved from {source} to {target}"


@tool
def refund(order: str, amount: float) -> str:
    """Refunds an order.

    Args:
        order: its number, such as "O-12".
        amount: how much, in euros.
    """
    return f"{amount} for {order}"


@tool
def pay(to: str, amount: float, currency: Literal["EUR", "CHF", "USD"] = "EUR") -> str:
    """Pays somebody.

    Args:
        to: who is paid.
        amount: how much.
        currency: to pay in.
    """
    return f"{amount} {currency} to {to}"


@tool
def move_appointment(pet: str, day: str) -> str:
    """Moves the appointment of an animal to another day.

    Args:
        pet: the animal's name.
        day: the new day, such as "2026-10-05".
    """
    return f"{pet} is now on {day}"


@tool(effect="read")
def balance(account: Account) -> float:
    """Tells the balance of an account in euros."""
    return 3200.0


@tool(effect="read")
def pantry(page: int = 1) -> dict[str, Any]:
    """Lists what is in the pantry, two things to a page.

    Args:
        page: which page, from 1.
    """
    return {"items": ["rice", "flour"], "page": page, "pages": 3, "total": 5}


@tool(effect="read")
def hives() -> list[dict[str, Any]]:
    """Lists the bee hives with their site and honey in kilograms."""
    return HIVES


@tool(effect="read")
def votes(district: str, year: int) -> dict[str, Any]:
    """Tells the votes of a district in an election year.

    Args:
        district: its name.
        year: of the election.
    """
    return {"district": district, "greens": 1222, "reds": 900}


@tool(effect="read")
def rehearsals(month: str) -> list[str]:
    """Lists the days on which the choir rehearses in a month.

    Args:
        month: such as "2026-03".
    """
    return [f"{month}-04"]


@tool(effect="read")
def rental_price(instrument: str, months: int) -> dict[str, Any]:
    """Tells what renting an instrument costs.

    Args:
        instrument: such as "cello".
        months: for how long.
    """
    return {"price": 35.0 * months, "deposit": 100.0}


def asked(question: str, *tools: Any) -> RunResult:
    return Agent("offline", tools=list(tools)).run_sync(question)


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


@pytest.mark.parametrize(
    "question",
    [
        "Transfer 50 dollars from savings to rent.",
        "Transfer $50 from savings to rent.",
        "Refund 20 dollars for O-12.",
        "Refund £20 for O-12.",
        "Pay 50 yen to Ann.",
    ],
)
def test_an_amount_in_other_money_is_not_paid(question: str) -> None:
    assert calls(asked(question, transfer, refund, pay)) == []


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ("Transfer 50 euros from savings to rent.", {"source": "savings", "target": "rent", "euros": 50}),
        ("Refund €20 for O-12.", {"order": "O-12", "amount": 20}),
        ("Pay $50 to Ann.", {"to": "Ann", "amount": 50, "currency": "USD"}),
        ("Pay 50 dollars to Ann.", {"to": "Ann", "amount": 50, "currency": "USD"}),
    ],
)
def test_an_amount_is_paid_in_the_money_that_was_said(question: str, call: dict[str, Any]) -> None:
    assert [arguments for _, arguments in calls(asked(question, transfer, refund, pay))] == [call]


@pytest.mark.parametrize(
    "question",
    [
        "Move all appointments of Dr. Orth to 2026-10-06.",
        "Move the appointments of Mimi to 2026-10-06.",
        "Move every appointment of Mimi to 2026-10-06.",
    ],
)
def test_a_command_about_many_is_none_to_a_tool_that_takes_one(question: str) -> None:
    assert calls(asked(question, move_appointment)) == []


def test_a_page_is_not_told_for_the_whole_list() -> None:
    text = asked("What is in the pantry?", pantry).text
    assert text.startswith("This is only a part of the list (page 1, pages 3, total 5).")


@pytest.mark.parametrize("beside", [{"total": 40}, {"pages": 320}, {"next": "2026-05-01"}, {"remaining": 9}])
def test_a_list_beside_other_figures_is_no_part(beside: dict[str, Any]) -> None:
    @tool(effect="read")
    def order(number: str) -> dict[str, Any]:
        """Shows an order."""
        return {"number": number, "things": ["pen", "ink"], **beside}

    assert "part of the list" not in asked("Show order O-12.", order).text


def test_a_list_is_not_told_for_its_sum() -> None:
    text = asked("How much honey is there?", hives).text
    assert "I cannot answer that" in text
    assert "14.5" not in text
    assert "17.75" in asked("How much honey do we have in total?", hives).text


def test_figures_of_each_day_are_not_told_for_their_sum() -> None:
    @tool(effect="read")
    def workouts() -> dict[str, Any]:
        """Shows this week's runs: kilometres and minutes for each day."""
        return {"Mon": {"run_km": 5.2}, "Sat": {"run_km": 12.4}}

    assert "I cannot answer that" in asked("How many kilometres did I run this week?", workouts).text


def test_a_name_and_no_other_word_is_taken_for_what_a_tool_needs() -> None:
    result = asked("How many votes were there in Harbour in 2022?", votes)
    assert calls(result) == [("votes", {"district": "Harbour", "year": 2022})]
    assert DECLINED.search(asked("How many votes were bought in Harbour in 2022?", votes).text)


def test_a_tool_of_months_is_asked_about_no_day() -> None:
    assert calls(asked("Which rehearsals are there on 2026-03-11?", rehearsals)) == []
    assert calls(asked("Which rehearsals are there in March 2026?", rehearsals)) == [
        ("rehearsals", {"month": "2026-03"})
    ]


def test_no_figure_is_chosen_by_a_word_that_was_left_out() -> None:
    text = asked("What does a cello cost for 6 months including the deposit?", rental_price).text
    assert "“deposit”" in text
    assert "210" not in text


def test_a_question_without_some_of_its_words_is_not_answered_yes_or_no() -> None:
    text = asked("Should I transfer 20 euros from savings to rent?", balance, transfer).text
    assert "No." not in text
    assert calls(asked("Should I transfer 20 euros from savings to rent?", balance, transfer)) == []
