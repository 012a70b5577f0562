"""A condition whose `return` was forgotten says neither yes nor no: nothing is paid on the strength of it."""

from typing import Any

import pytest

from treadle import Agent, allow, ask_before, deny, tool
from treadle.testing import ScriptedModel


def large(arguments: dict[str, Any]) -> bool:
    arguments["amount"] > 100  # type: ignore[return]  # noqa: B015


async def large_too(arguments: dict[str, Any]) -> bool:
    return large(arguments)


def bank(**options: Any) -> tuple[list[int], Any]:
    paid: list[int] = []

    @tool(**options)
    def pay(amount: int) -> str:
        """Pays an amount of money."""
        paid.append(amount)
        return "paid"

    return paid, pay


pytestmark = pytest.mark.anyio

SCRIPT: list[Any] = [[("pay", {"amount": 500})], "done"]


@pytest.mark.parametrize("condition", [large, large_too])
async def test_needs_approval_that_returns_none_asks_and_says_why(condition: Any) -> None:
    paid, pay = bank(needs_approval=condition)
    agent = Agent(ScriptedModel(SCRIPT), tools=[pay])
    waiting = await agent.run("Pay.")
    assert (waiting.stop.reason, paid) == ("waiting", [])
    assert "returned None, which is neither yes nor no" in (waiting.pending[0].question or "")
    assert (await agent.resume(waiting, approve=waiting.pending)).finished
    assert paid == [500]


@pytest.mark.parametrize("rule", [deny, ask_before])
async def test_a_rule_whose_condition_returns_none_is_careful(rule: Any) -> None:
    paid, pay = bank()
    agent = Agent(ScriptedModel(SCRIPT), tools=[pay], approvals=[rule("pay", when=large, reason="too much")])
    result = await agent.run("Pay.")
    assert paid == []
    said = result.messages[-2].text if rule is deny else result.pending[0].question or ""
    assert "returned None" in said
    assert "too much" not in said


async def test_a_rule_that_allows_does_not_where_its_condition_returns_none() -> None:
    paid, pay = bank(needs_approval=True)
    waiting = await Agent(ScriptedModel(SCRIPT), tools=[pay], approvals=[allow("pay", when=large)]).run("Pay.")
    assert (waiting.stop.reason, paid) == ("waiting", [])


def failed(value: Any) -> bool:
    value == "no"  # type: ignore[return]  # noqa: B015


async def failed_too(value: Any) -> bool:
    return failed(value)


@pytest.mark.parametrize("errors", [failed, failed_too])
async def test_a_function_of_failures_that_returns_none_is_told_of_in_the_log(errors: Any, caplog: Any) -> None:
    """The call counted as done, and nobody was told that it had not been looked at."""

    @tool(effect="read", errors=errors)
    def fetch() -> str:
        """Fetches."""
        return "no"

    result = await Agent(ScriptedModel([[("fetch", {})], "done"]), tools=[fetch]).run("Fetch.")
    assert not result.tool_calls_made[0].result.is_error
    assert "the errors= of tool fetch returned None, which is neither yes nor no" in caplog.text
