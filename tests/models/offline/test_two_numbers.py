"""Of two numbers of an order that stand beside each other, nothing says which is which."""

import pytest

from treadle import Agent, tool


@tool(effect="write")
def set_limit(account: int, limit: int) -> str:
    """Sets the limit of an account."""
    return "set"


@pytest.mark.parametrize(
    "order",
    ["Set limit 4711 500", "Set account 4711 500", "Set the limit of 500 and 600", "Set 4711, 500", "Set 500 4711"],
)
def test_neither_of_two_numbers_beside_each_other_is_passed(order: str) -> None:
    assert not Agent("offline", tools=[set_limit]).run_sync(order).tool_calls_made


@pytest.mark.parametrize(
    "order", ["Set the limit of 4711 to 500", "Set account 4711, limit 500", "Set limit 500 for account 4711"]
)
def test_two_numbers_that_are_told_apart_are_passed(order: str) -> None:
    result = Agent("offline", tools=[set_limit]).run_sync(order)
    assert [call.arguments for call in result.tool_calls_made] == [{"account": 4711, "limit": 500}]
