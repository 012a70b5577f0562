"""A call that waits for the client's person, and about which somebody else decides, or whose client gives it up."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("mcp")

import mcp_types as types
from mcp import Client

from treadle import Agent, MemoryJournal, tool
from treadle.mcp import server_of
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


def paying(paid: list[int]) -> Any:
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays an amount to the shop."""
        paid.append(amount)
        return f"paid {amount}"

    return pay


@ERAS
@pytest.mark.parametrize("allowed", [True, False])
async def test_who_asked_is_told_what_came_of_it(mode: str, allowed: bool) -> None:
    """The client was told of an error though the amount was paid, and might have called again."""
    paid: list[int] = []
    journal, served = MemoryJournal(), paying(paid)
    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "It is paid."]), tools=[served], journal=journal, name="a")

    async def answer(_: Any, params: Any) -> types.ElicitResult:
        (run,) = await journal.list(5)
        (pending,) = (await agent.drive(run.run_id)).pending
        decision: dict[str, Any] = {"approve": [pending]} if allowed else {"deny": {pending.call_id: "too much"}}
        await agent.resume(run.run_id, **decision)
        return types.ElicitResult(action="accept", content={"allow": True})

    async with Client(server_of(agent), mode=mode, elicitation_callback=answer) as client:
        found = await client.call_tool("a", {"task": "pay"})
    assert (found.is_error, found.content[0].text) == (False, "It is paid.")
    assert paid == ([5] if allowed else [])


@ERAS
async def test_a_call_that_is_cancelled_as_it_waits_is_not_made_and_asked_about_again(mode: str) -> None:
    paid: list[int] = []
    journal, asked, allow = MemoryJournal(), asyncio.Event(), asyncio.Event()

    async def answer(_: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await allow.wait()
        return types.ElicitResult(action="accept", content={"allow": True})

    given: Any = {"meta": {"io.treadle/idempotency-key": "k"}}
    async with Client(server_of([paying(paid)], journal=journal), mode=mode, elicitation_callback=answer) as client:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(client.call_tool("pay", {"amount": 5}, **given))
            await asked.wait()
            call.cancel()
        assert call.cancelled()
        allow.set()
        (run,) = await journal.list(5)
        assert (run.status, paid) == ("waiting", [])
        found = await client.call_tool("pay", {"amount": 5}, **given)
    assert (found.content[0].text, paid) == ("paid 5", [5])


@pytest.mark.parametrize("kept", [True, False])
@ERAS
async def test_who_closes_a_question_has_said_neither_yes_nor_no(mode: str, kept: bool) -> None:
    """In the newest version it stood in the journal as a refusal by the person."""
    paid, answers = list[int](), [types.ElicitResult(action="cancel")]
    journal = MemoryJournal() if kept else None

    async def answer(_: Any, params: Any) -> types.ElicitResult:
        return answers.pop() if answers else types.ElicitResult(action="accept", content={"allow": True})

    given: Any = {"meta": {"io.treadle/idempotency-key": "k"}}
    async with Client(server_of([paying(paid)], journal=journal), mode=mode, elicitation_callback=answer) as client:
        found = await client.call_tool("pay", {"amount": 5}, **given)
        assert (found.is_error, "waits for a person, who has not answered" in found.content[0].text) == (True, True)
        assert journal is None or [one.status for one in await journal.list(5)] == ["waiting"]
        found = await client.call_tool("pay", {"amount": 5}, **given)
    assert (found.content[0].text, paid) == ("paid 5", [5])
