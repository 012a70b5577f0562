"""What the figures of two things come to is worked out where both results tell the one that is asked for."""

from dataclasses import dataclass
from typing import Any

import pytest

from treadle import Agent, tool

from .asked.judge import DECLINED


@dataclass
class Account:
    owner: str
    balance: float
    currency: str


ACCOUNTS = {
    "Dana": Account("Dana", 1200.0, "EUR"),
    "Omar": Account("Omar", 950.5, "EUR"),
    "Lin": Account("Lin", 3000.0, "USD"),
}


@tool(effect="read")
def get_balance(owner: str) -> Account:
    """Get the account balance of a customer."""
    return ACCOUNTS[owner]


@tool(effect="read")
def get_salary(name: str) -> dict[str, Any]:
    """Get the salary of an employee."""
    return {"name": name, "salary": {"Ana": 52000, "Bo": 48000}[name]}


@tool(effect="read")
def get_weather(city: str) -> dict[str, Any]:
    """Current weather in a city: temperature in celsius, humidity in percent."""
    return {"city": city, "temperature": {"Oslo": 4, "Cairo": 33}[city], "humidity": 50}


@tool(effect="read")
def get_stock(item: str) -> dict[str, Any]:
    """Get stock information about an item."""
    return {"item": item, "quantity": {"bolt": 400, "nut": 150}[item.rstrip("s")], "unit_price": 0.5}


def asked(question: str, reads: Any) -> str:
    return Agent("offline", tools=[reads]).run_sync(question).text


@pytest.mark.parametrize(
    ("question", "reads", "told"),
    [
        ("How much more does Dana have than Omar?", get_balance, "Difference: 249.5 EUR (Dana has more)"),
        ("Who has more, Dana or Omar?", get_balance, "Difference: 249.5 EUR (Dana has more)"),
        ("What is the difference between the balances of Omar and Dana?", get_balance, "249.5 EUR (Dana has more)"),
        ("What do Dana and Omar have in total?", get_balance, "In total: 2150.5 EUR"),
        ("What is the total balance of Dana and Omar?", get_balance, "In total: 2150.5 EUR"),
        ("How much more does Ana earn than Bo?", get_salary, "Difference: 4000 (Ana has more)"),
        ("What is the average salary of Ana and Bo?", get_salary, "Average: 50,000"),
        ("What is the salary of Bo?", get_salary, "Bo: salary 48000"),
        ("How much warmer is it in Cairo than in Oslo?", get_weather, "Difference: 29 (Cairo has more)"),
        ("What is the temperature difference between Oslo and Cairo?", get_weather, "Difference: 29"),
        ("What is the average temperature of Oslo and Cairo?", get_weather, "Average: 18.5"),
        ("How many more bolts than nuts do we have?", get_stock, "Difference: 250"),
        ("How many bolts and nuts do we have in total?", get_stock, "In total: 550"),
    ],
)
def test_two_figures_are_put_together(question: str, reads: Any, told: str) -> None:
    assert told in asked(question, reads)


@pytest.mark.parametrize(
    ("question", "reads"),
    [
        ("How much more does Dana have than Lin?", get_balance),
        ("What is the total balance of Dana and Lin?", get_balance),
        ("What do Dana and Lin have in total?", get_balance),
        ("How much more does Ana have than Bo?", get_salary),
        ("What is the total temperature of Oslo and Cairo?", get_weather),
        ("What is the average weather of Oslo and Cairo?", get_weather),
        ("How much more did Dana have than Omar?", get_balance),
        ("How much more does Dana have than usual?", get_balance),
    ],
)
def test_what_is_no_figure_of_both_is_not(question: str, reads: Any) -> None:
    text = asked(question, reads)
    assert DECLINED.search(text)
    assert not any(word in text for word in ("Difference", "In total", "Average"))
