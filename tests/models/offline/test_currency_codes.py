"""A currency's code beside an amount is its currency, as its sign and its name are."""

from typing import Any

import pytest

from treadle import Agent, tool


@tool(effect="write")
def pay_supplier(supplier: str, amount: float, currency: str = "EUR") -> str:
    """Pays a supplier."""
    return "paid"


@tool(effect="write")
def pay_bill(supplier: str, amount: float, currency: str) -> str:
    """Pays a bill of a supplier."""
    return "paid"


@pytest.mark.parametrize("tool_", [pay_supplier, pay_bill], ids=["optional", "required"])
@pytest.mark.parametrize(("said", "code"), [("450 EUR", "EUR"), ("450 USD", "USD"), ("450 euros", "EUR")])
def test_a_code_behind_an_amount_is_its_currency(tool_: Any, said: str, code: str) -> None:
    result = Agent("offline", tools=[tool_]).run_sync(f"Pay Alto Foods {said}")
    assert [call.arguments for call in result.tool_calls_made] == [
        {"supplier": "Alto Foods", "amount": 450, "currency": code}
    ]


@pytest.mark.parametrize("tool_", [pay_supplier, pay_bill], ids=["optional", "required"])
@pytest.mark.parametrize(
    "said",
    [
        "450 EUR or 500 USD",
        "450 EUR, not USD",
        "450 EUR in USD",
        "450 EUR (USD)",
        "450 EUR worth of USD",
        "USD 450 EUR",
    ],
)
def test_of_two_currencies_none_is_paid(tool_: Any, said: str) -> None:
    result = Agent("offline", tools=[tool_]).run_sync(f"Pay Alto Foods {said}")
    assert not result.tool_calls_made
