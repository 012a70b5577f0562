"""Slips of the pen are read where nothing is lost by it, and a sum that goes on with a result is one sum."""

from typing import Any

import pytest

from treadle import Agent, Conversation, RunResult, tool
from treadle.tools.builtin import basics

STOCK = {"screws": 1200, "gizmos": 42}
DONE: list[str] = []


@tool(effect="read")
def check_stock(item_name: str) -> int:
    """Returns how many of an item are in stock.

    Args:
        item_name: the item's name.
    """
    return STOCK.get(item_name.lower(), STOCK.get(f"{item_name.lower()}s", 0))


@tool(effect="read")
def get_weather(city: str) -> dict[str, Any]:
    """Get the current weather in a city: condition and temperature.

    Args:
        city: the city's name.
    """
    return {"city": city, "condition": "rain", "temperature": 7}


@tool(effect="write")
def cancel_order(order_id: int) -> str:
    """Cancels an order.

    Args:
        order_id: the order's number.
    """
    DONE.append(f"cancelled {order_id}")
    return f"order {order_id} cancelled"


@tool(effect="write")
def add_note(text: str) -> str:
    """Adds a note.

    Args:
        text: what it says.
    """
    DONE.append(text)
    return "noted"


def asked(question: str) -> RunResult:
    DONE.clear()
    tools = [check_stock, get_weather, cancel_order, add_note]
    return Agent("offline", tools=tools, skills=[basics]).run_sync(question)


@pytest.mark.parametrize(
    ("question", "read_as", "told"),
    [
        ("wether in Oslo pls", "weather in Oslo pls", "temperature 7"),
        ("how mny screws", "how many screws", "1200"),
        ("whats the wether in Oslo", "what's the weather in Oslo", "temperature 7"),
    ],
)
def test_a_slip_is_put_right_and_said(question: str, read_as: str, told: str) -> None:
    text = asked(question).text
    assert f"I read that as: “{read_as}”." in text
    assert told in text


@pytest.mark.parametrize(
    "question", ["cancell order 8", "cancle order 8", "dont cancel order 8", "cna you cancel order 8"]
)
def test_nothing_is_changed_for_a_slip_that_was_put_right(question: str) -> None:
    result = asked(question)
    assert DONE == []
    assert "cancelled" not in result.text


def test_what_is_written_down_keeps_its_slips() -> None:
    asked('Add the note "whats teh wether"')
    assert DONE == ["whats teh wether"]


@pytest.mark.parametrize("question", ["cancel order 8 pls", "pls cancel order 8"])
def test_an_order_may_be_short_about_its_please(question: str) -> None:
    asked(question)
    assert DONE == ["cancelled 8"]


@pytest.mark.parametrize("question", ["whetter in Oslo", "weaver in Oslo"])
def test_another_word_is_no_slip(question: str) -> None:
    assert not asked(question).tool_calls_made


@pytest.mark.parametrize(
    ("question", "expression", "result"),
    [
        ("Add 3 and 4, then multiply the result by 10", "(3 + 4) * 10", "70"),
        ("Add 3 and 4. Then multiply the result by 10.", "(3 + 4) * 10", "70"),
        ("Subtract 3 from 10, then divide by 7 and add 2", "((10 - 3) / 7) + 2", "3"),
        ("take 5 away from 12 and double it", "(12 - 5) * 2", "14"),
        ("What is 10% of 50, and add 3 to that", "(10 / 100 * 50) + 3", "8"),
    ],
)
def test_a_sum_that_goes_on_with_the_result_is_one(question: str, expression: str, result: str) -> None:
    run = asked(question)
    assert [dict(call.arguments) for call in run.tool_calls_made] == [{"expression": expression}]
    assert f"= {result}" in run.text


@pytest.mark.parametrize(
    "question",
    [
        "Add 3 and 4, then multiply 2 by 10",
        "add 3 and 4 and multiply the result by 10%",
        "Add 3 and 4, but do not multiply the result by 10",
        "Add 3 and 4, or multiply it by 10",
        "Add 3 and 4 to the price of a gizmo, then multiply it by 10",
        "Add 3 and 4 screws, then multiply the result by 10",
    ],
)
def test_what_does_not_go_on_with_the_result_is_no_part_of_its_sum(question: str) -> None:
    assert {"expression": "(3 + 4) * 10"} not in [dict(call.arguments) for call in asked(question).tool_calls_made]


@pytest.mark.parametrize("question", ["Add 3 and 4, then multiply the result by 10", "Add 3 and 4"])
def test_what_is_added_afterwards_takes_no_number_of_a_sum_in_its_place(question: str) -> None:
    agent, talk = Agent("offline", skills=[basics]), Conversation()
    agent.run_sync(question, conversation=talk)
    text = agent.run_sync("and add 5", conversation=talk).text
    assert "35" not in text
    assert "= 8" not in text
