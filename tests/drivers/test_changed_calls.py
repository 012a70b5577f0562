"""A function that changes calls, and what goes wrong in it."""

import asyncio

import pytest

from treadle import Agent, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool
async def pay(amount: int) -> str:
    """Pay somebody an amount."""
    return f"paid {amount}"


async def test_a_function_that_cancels_itself_is_named():
    async def change(call):
        raise asyncio.CancelledError

    agent = Agent(ScriptedModel([[("pay", {"amount": 1})], "done"]), tools=[pay], on_tool_call=change)
    with pytest.raises(RuntimeError, match=r"^on_tool_call cancelled itself$"):
        await agent.run("go")
