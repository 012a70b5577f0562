"""A run that was begun under a server's `needs_approval` is not taken up without it; it was, and nobody was asked.

- nor by an agent below, of which nothing was told but its server's rule, that has come to allow the server's calls
  -> test_nor_with_an_agent_below_that_allows_them_now
- nor where an agent works for a tool that has the server's name -> test_nor_beside_a_tool_of_the_servers_name
"""

from typing import Any

import pytest

pytest.importorskip("mcp")

from treadle import Agent, MemoryJournal, Misuse, allow, ask_before, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool
def mail(to: str) -> str:
    """Sends a mail."""
    return f"sent to {to}"


def head(journal: MemoryJournal, *servers: Any, below: bool = False, **options: Any) -> Agent:
    writes = [("raw__count", {})]
    writer = ScriptedModel(lambda asked: "done" if asked.step else writes)
    clerk = Agent(writer, name="clerk", tools=[*servers], **options)
    second: Any = [("clerk", {"task": "write"})] if below else writes
    script = [[("mail", {"to": "Ann"})], second]
    model = ScriptedModel(lambda asked: script[asked.step] if asked.step < 2 else "done")
    return Agent(
        model, tools=[mail, *([clerk.as_tool()] if below else servers)], approvals=[ask_before("mail")], journal=journal
    )


@pytest.mark.parametrize("below", [False, True])
async def test_a_run_is_not_taken_up_with_a_server_whose_calls_nobody_is_asked_about_any_more(
    raw: Any, notes: Any, below: bool
) -> None:
    journal = MemoryJournal()
    waiting = await head(journal, raw(needs_approval=True), below=below).run("go")
    lacks = "of clerk: of raw: ask" if below else "of raw: ask"
    with pytest.raises(Misuse, match=f"this agent lacks: {lacks} what may do more than read"):
        await head(journal, raw(), below=below).resume(waiting.run_id, approve=waiting.pending)
    assert notes("count") == []

    asked = await head(journal, raw(needs_approval=True), below=below).resume(waiting.run_id, approve=waiting.pending)
    assert [one.tool for one in asked.pending] == ["raw__count"]


async def test_nor_with_an_agent_below_that_allows_them_now(raw: Any, notes: Any) -> None:
    journal, server = MemoryJournal(), raw(needs_approval=True)
    waiting = await head(journal, server, below=True).run("go")
    loose = head(journal, server, below=True, approvals=[allow("raw__count")])
    with pytest.raises(Misuse, match="it allows more: of clerk: allow raw__count"):
        await loose.resume(waiting.run_id, approve=waiting.pending)
    assert notes("count") == []


async def test_nor_beside_a_tool_of_the_servers_name(raw: Any, notes: Any) -> None:
    def both(journal: MemoryJournal, server: Any) -> Agent:
        return head(journal, server, Agent(ScriptedModel(["done"]), name="raw").as_tool())

    journal = MemoryJournal()
    waiting = await both(journal, raw(needs_approval=True)).run("go")
    with pytest.raises(Misuse, match="this agent lacks: of raw: ask what may do more than read"):
        await both(journal, raw()).resume(waiting.run_id, approve=waiting.pending)
    assert notes("count") == []


async def test_a_run_goes_on_without_the_server(raw: Any) -> None:
    journal = MemoryJournal()
    waiting = await head(journal, raw(needs_approval=True)).run("go")
    result = await head(journal).resume(waiting.run_id, approve=waiting.pending)
    assert result.text == "done"
    assert "raw__count" in result.tool_calls_made[1].result.text
