"""Whoever awaits treadle without an event loop of asyncio, as in trio, is told so at each door, and nothing is done."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from treadle import Agent, MemoryJournal, Misuse, SqliteJournal, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

made: list[int] = []


@tool(effect="write")
def sell(number: int) -> str:
    """Sells one."""
    made.append(number)
    return "sold"


class Nobody:
    """A queue that is never asked."""

    async def accept(self, agent: str) -> None:
        raise AssertionError(agent)

    async def dispatch(self, order: Any) -> None:
        raise AssertionError(order)


def by_hand(door: Callable[[], Awaitable[object]]) -> None:
    """Awaits as another library's loop does: without asyncio."""

    async def main() -> None:
        await door()

    main().send(None)


async def _entered(agent: Agent[Any, Any]) -> None:
    async with agent.stream("Sell one."):
        pass


async def _committed(agent: Agent[Any, Any]) -> None:
    await agent.start("Sell one.").commit()


async def _watched(agent: Agent[Any, Any], run_id: str) -> None:
    assert agent.journal is not None
    async for _ in agent.journal.watch(run_id, 100):
        pass


DOORS: dict[str, Callable[[Agent[Any, Any], str], Awaitable[object]]] = {
    "run": lambda agent, run_id: agent.run("Sell one."),
    "step": lambda agent, run_id: agent.step("Sell one."),
    "stream": lambda agent, run_id: _entered(agent),
    "estimate": lambda agent, run_id: agent.estimate("Sell one."),
    "submit": lambda agent, run_id: agent.submit("Sell one.", to=Nobody(), at=datetime.now(UTC)),
    "resume": lambda agent, run_id: agent.resume(run_id, message="Another."),
    "fork": lambda agent, run_id: agent.fork(run_id, at=1),
    "begin_fork": lambda agent, run_id: agent.begin_fork(run_id, at=1),
    "drive": lambda agent, run_id: agent.drive(run_id),
    "cancel": lambda agent, run_id: agent.cancel(run_id),
    "resubmit": lambda agent, run_id: agent.resubmit(run_id, to=Nobody()),
    "replay": lambda agent, run_id: agent.replay(run_id),
    "spending": lambda agent, run_id: agent.spending(run_id),
    "commit": lambda agent, run_id: _committed(agent),
    "watch": lambda agent, run_id: _watched(agent, run_id),
}
IN_A_FILE: dict[str, Callable[[SqliteJournal, str], Awaitable[object]]] = {
    "read": lambda journal, run_id: journal.read(run_id),
    "list": lambda journal, run_id: journal.list(),
    "delete": lambda journal, run_id: journal.delete(run_id),
    "compact": lambda journal, run_id: journal.compact(),
    "close": lambda journal, run_id: journal.close(),
}


def selling(journal: MemoryJournal | SqliteJournal) -> tuple[Agent[Any, Any], str]:
    """An agent and a run of it that sold one."""
    agent = Agent(ScriptedModel([[("sell", {"number": 1})], "Sold."] * 2), tools=[sell], journal=journal)
    run_id = agent.run_sync("Sell one.").run_id
    made.clear()
    return agent, run_id


@pytest.mark.parametrize("kept", ["memory", "file"])
@pytest.mark.parametrize("door", DOORS)
def test_each_door_says_that_it_wants_asyncio(door: str, kept: str, tmp_path: Path) -> None:
    agent, run_id = selling(MemoryJournal() if kept == "memory" else SqliteJournal(tmp_path / "runs.db"))

    with pytest.raises(Misuse, match=r"runs on asyncio.*trio\.to_thread\.run_sync"):
        by_hand(lambda: DOORS[door](agent, run_id))

    assert not made


@pytest.mark.parametrize("door", IN_A_FILE)
def test_a_file_is_left_as_it_is(door: str, tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "runs.db")
    _, run_id = selling(journal)

    with pytest.raises(Misuse, match="runs on asyncio"):
        by_hand(lambda: IN_A_FILE[door](journal, run_id))

    assert asyncio.run(journal.read(run_id))


def test_a_web_server_on_another_loop_is_told_as_it_starts() -> None:
    pytest.importorskip("starlette")
    from treadle.serve import app

    served = app([Agent(ScriptedModel([]), name="clerk", journal=MemoryJournal())])

    with pytest.raises(Misuse, match="runs on asyncio"):
        by_hand(lambda: served.lifespan(served).__aenter__())


def test_a_server_of_tools_is_not_begun() -> None:
    pytest.importorskip("mcp")
    from treadle.mcp import MCPServer

    server = MCPServer.stdio("no-such-program", name="shop")

    with pytest.raises(Misuse, match="runs on asyncio"):
        by_hand(server.listed)


def in_a_task_of_trio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trio.lowlevel", SimpleNamespace(in_trio_task=lambda: True))  # type: ignore[arg-type]


def test_run_sync_begins_no_loop_within_that_of_trio(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_task_of_trio(monkeypatch)

    with pytest.raises(Misuse, match=r"an event loop is running.*trio\.to_thread\.run_sync\(agent\.run_sync"):
        Agent(ScriptedModel(["Hello."])).run_sync("Hello?")


async def test_a_guest_of_asyncio_is_told_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_task_of_trio(monkeypatch)

    with pytest.raises(Misuse, match="runs on asyncio"):
        await Agent(ScriptedModel(["Hello."])).run("Hello?")
