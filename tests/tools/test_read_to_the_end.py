"""What is checked as it is read is read before a tool is called: what is wrong with an item stops nothing half-way."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from treadle import Agent, Tool, ToolContext, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@dataclass
class Order:
    amounts: Iterable[int]


async def called(one: Tool, arguments: dict[str, Any]) -> str:
    result = await Agent(ScriptedModel([[(one.name, arguments)], "done"]), tools=[one]).run("go")
    return result.tool_calls_made[0].result.text


def paying(into: list[Any], kind: Any) -> Tool:
    def one(amount: int) -> None:
        into.append(amount)

    def pay(amounts: Any) -> str:
        """Pays each of the amounts."""
        for amount in amounts.amounts if isinstance(amounts, Order) else amounts:
            one(amount)
        return "paid"

    pay.__annotations__["amounts"] = kind
    return tool(pay)


@pytest.mark.parametrize("kind", [Iterable[int], Generator[int, None, None], Iterable[int] | None, Order])
async def test_nothing_is_done_where_an_item_is_wrong(kind: Any) -> None:
    paid: list[Any] = []
    pay = paying(paid, kind)

    def given(*items: Any) -> Any:
        return {"amounts": {"amounts": [*items]} if kind is Order else [*items]}

    assert "should be a valid integer" in await called(pay, given(5, 7, "x"))
    assert paid == []
    assert await called(pay, given(5, 7)) == "paid"
    assert paid == [5, 7]


async def test_a_text_is_no_items() -> None:
    paid: list[Any] = []
    assert "should be a valid array" in await called(paying(paid, Iterable[int]), {"amounts": "57"})
    assert paid == []


async def test_the_items_are_there_at_each_attempt() -> None:
    sums: list[int] = []

    @tool(effect="read", retries=1)
    def total(items: Iterable[int], context: ToolContext) -> str:
        """Sums up the items."""
        sums.append(sum(items))
        if context.attempt == 1:
            raise ConnectionError("no answer")
        return f"{sums[-1]} of {context.arguments['items']}"

    assert await called(total, {"items": [1, 2, 3]}) == "6 of [1, 2, 3]"
    assert sums == [6, 6]
