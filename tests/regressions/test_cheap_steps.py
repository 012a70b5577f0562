"""What a journaled step costs less for: its result and the step that follows go to the journal together.

Nothing may come between them that could take long: a function of the application's, or a call that is still under way.

- a pause is written while the deadline may still cut it off -> tests/simulate, seed 402
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, SqliteJournal, tool
from treadle.journal import Held
from treadle.kernel.events import FORMAT, Event, MessageAdded, RunPaused, RunResumed, RunStarted
from treadle.kernel.messages import AssistantMessage, ToolCall, UserMessage
from treadle.kernel.stop import Stop
from treadle.models import ModelReply, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Noted(SqliteJournal):
    """Notes what it is given at a time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.given: list[list[str]] = []

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        self.given.append([type(one).__name__ for one in events])
        return super().put(run_id, seq, events, held)


@tool(effect="write")
async def pay() -> str:
    """Pay."""
    return "paid"


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


async def test_a_step_is_handed_over_twice(tmp_path: Path) -> None:
    async with Noted(tmp_path / "a.db") as journal:
        agent = Agent(ScriptedModel([[("pay", {})], [("pay", {})], "done"]), tools=[pay], journal=journal)
        assert (await agent.run("go")).text == "done"
    assert journal.given == [
        ["RunStarted", "StepPrepared"],
        ["ModelReplied", "ToolStarted"],
        ["ToolFinished", "StepPrepared"],
        ["ModelReplied", "ToolStarted"],
        ["ToolFinished", "StepPrepared"],
        ["ModelReplied", "RunFinished"],
    ]


@pytest.mark.parametrize("name", ["prepare_step", "stop_when"])
async def test_a_result_is_handed_over_before_the_application_is_asked(tmp_path: Path, name: str) -> None:
    seen: list[list[str]] = []
    async with Noted(tmp_path / "a.db") as journal:

        def asked(_: Any) -> None:
            seen.append(journal.given[-1] if journal.given else [])

        model = ScriptedModel([[("pay", {})], "done"])
        agent = Agent(model, tools=[pay], journal=journal, **{name: asked})
        assert (await agent.run("go")).text == "done"
    assert ["ToolFinished"] in seen


async def test_a_result_is_handed_over_while_an_early_call_is_under_way(tmp_path: Path) -> None:
    handed = asyncio.Event()

    class Telling(Noted):
        def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
            if any(getattr(one, "content", None) == "paid" for one in events):
                handed.set()
            return super().put(run_id, seq, events, held)

    @tool(effect="read")
    async def slow() -> str:
        """Look for long."""
        await handed.wait()
        return "seen"

    async def streamed() -> Any:
        yield ToolCallStarted("a", "slow")
        yield ToolCallDelta("a", "{}")
        yield ToolCallCompleted("a")
        await asyncio.sleep(0.01)
        message = AssistantMessage((ToolCall("a", "slow", "{}"), ToolCall("b", "pay", "{}")))
        yield ModelReply(message, finish="tool_calls")

    async with Telling(tmp_path / "a.db") as journal:
        agent = Agent(ScriptedModel([streamed(), "done"]), tools=[pay, slow], journal=journal)
        async with asyncio.timeout(5):
            result = await agent.run("go")
        assert result.text == "done"


async def test_by_hand_a_result_is_handed_over_at_once(tmp_path: Path) -> None:
    from treadle.kernel.decide import CallModel, PrepareStep, RunTools

    async with Noted(tmp_path / "a.db") as journal:
        agent = Agent(ScriptedModel([[("pay", {})], "done"]), tools=[pay], journal=journal)
        run = agent.start("go")
        while not (isinstance(command := run.next(), PrepareStep) and run.state.steps):
            match command:
                case PrepareStep():
                    run.feed(run.prepare(command))
                case CallModel():
                    async for event in agent.model.stream(run.request()):
                        reply = event
                    run.feed(reply)
                case RunTools(records=records):
                    for record in records:
                        await run.call_tool(record)
                    break
            await run.commit()
        assert journal.given[-1] == ["ToolFinished"]
        await run.commit()


@pytest.mark.parametrize("runs", [1, 2, 3, 600, 1100])
async def test_however_many_runs_come_together_each_is_stored_whole(tmp_path: Path, runs: int) -> None:
    ids = [f"run-{number}" for number in range(runs)]
    async with SqliteJournal(tmp_path / "a.db") as journal:
        for seq, event in enumerate((None, RunPaused(Stop("waiting")), RunResumed(), MessageAdded(UserMessage("on")))):
            given = [event or RunStarted(run_id=one, messages=(), format=FORMAT) for one in ids]
            for future in [journal.put(one, seq, [each]) for one, each in zip(ids, given, strict=True)]:
                await asyncio.wrap_future(future)
        await journal.check()
        assert {one.events for one in await journal.list(limit=2000)} == {4}
        assert len(await journal.read(ids[-1])) == 4
