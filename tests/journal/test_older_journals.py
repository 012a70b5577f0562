"""Journals that treadle 0.1.0 recorded: they load, mean what they meant, and their runs can be taken up.

`recorded/0.1.0.jsonl` has a journal a line, `{"expected": {...}, "events": [...]}`: the events as that version
wrote them, and what its fold made of them.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, MemoryJournal, Misuse, Price, RunResult, RunStopped, Tool, external_tool, handoff, tool
from treadle.kernel.events import Event, RunFinished, RunPaused, RunStarted, ToolFinished, decode_event
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, Message, ToolMessage
from treadle.kernel.state import RunState
from treadle.models.port import ModelRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

FILE = Path(__file__).parent / "recorded" / "0.1.0.jsonl"
RECORDED = [json.loads(line) for line in FILE.read_text("utf-8").strip().split("\n")]
JOURNALS = [[decode_event(json.dumps(event)) for event in row["events"]] for row in RECORDED]
NUMBERS = range(len(RECORDED))


def started_by(events: Sequence[Event]) -> RunStarted:
    [started] = [event for event in events if isinstance(event, RunStarted)]
    return started


PAUSES = [
    (number, end)
    for number in NUMBERS
    for end, event in enumerate(JOURNALS[number], 1)
    if isinstance(event, RunPaused) and started_by(JOURNALS[number]).parent is None
]


def told(message: Message) -> list[Any]:
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    result = message if isinstance(message, ToolMessage) else None
    return [
        message.role,
        message.text,
        [[call.id, call.name, call.arguments] for call in calls],
        "" if result is None else result.call_id,
        result is not None and result.is_error,
    ]


def answered(messages: Sequence[Any]) -> list[Any]:
    """The messages, but for a last word that tools are off to which nothing was said: it is kept no more."""
    unheard = messages[-1][0] == "user" and "Tools are off now." in messages[-1][1]
    return [*messages[:-1]] if unheard else [*messages]


@pytest.mark.parametrize("number", NUMBERS)
def test_it_folds_at_every_prefix_to_what_it_meant(number: int) -> None:
    state, expected = RunState(), RECORDED[number]["expected"]
    for count, event in enumerate(JOURNALS[number], 1):
        state = fold(state, event)
        assert state.events == count
    assert (state.phase, None if state.stop is None else state.stop.reason) == (expected["phase"], expected["stop"])
    found = {
        "steps": len(state.steps),
        "tool_calls": state.tool_calls,
        "sub_steps": state.sub_steps,
        "tokens": state.usage.total_tokens,
        "elapsed": pytest.approx(state.elapsed),
        "errors": state.errors,
        "text": state.text,
        "messages": [told(message) for message in state.messages],
    }
    assert found == {name: expected[name] for name in found} | {"messages": answered(expected["messages"])}
    assert state.cost == (None if expected["cost"] is None else Decimal(expected["cost"]))


def tools(names: Sequence[str]) -> list[Tool | Agent]:
    """Tools of those names, each doing the least it can."""

    def named(name: str) -> Tool:
        if name in ("done", "ask"):
            return external_tool(name, "Answer.", {"type": "object"}, wait=name == "ask")

        @tool(name=name, effect="write" if "write" in name else "idempotent", needs_approval=name in ("guarded", "pay"))
        async def does(n: int = 0) -> str:
            """Do something."""
            return f"{name} {n}"

        return does

    below = Agent(model(), name="below", tools=[named("pay")])
    other = Agent(model(), name="other")
    agents = {"below": below.as_tool(), "transfer_to_other": handoff(other)}
    return [agents.get(name) or named(name) for name in names if name != "read_result"]


def model() -> ScriptedModel:
    def turn(request: ModelRequest) -> Any:
        return "It is done."

    return ScriptedModel(turn, price=Price(1, 1))


async def taken_up(number: int, end: int) -> tuple[RunResult, list[Event]]:
    """The run of a journal that ends after `end` events, gone on with to its end; and the journal then."""
    events = JOURNALS[number][:end]
    started, journal = started_by(events), MemoryJournal()
    await journal.append(started.run_id, 0, events)
    for below in JOURNALS:
        parent = started_by(below).parent
        if parent is not None and parent.run_id == started.run_id:
            pauses = [i for i, event in enumerate(below, 1) if isinstance(event, RunPaused)]
            await journal.append(started_by(below).run_id, 0, below[: pauses[0]] if pauses else below)
    agent = Agent(model(), tools=tools(started.tools), journal=journal)
    result = await gone_on(agent, started.run_id)
    return result, await journal.read(started.run_id)


async def gone_on(agent: Agent, run_id: str) -> RunResult:
    """A run that is gone on with to its end, whatever it waits for."""
    try:
        result = await agent.resume(run_id)
        while result.stop.reason == "waiting":
            asked = {one.call_id for one in result.pending if one.kind == "approval"}
            answers = {one.call_id: "so it is" for one in result.pending if one.call_id not in asked}
            result = await agent.resume(run_id, approve=asked, results=answers)
    except RunStopped as stopped:
        result = stopped.result
    return result


@pytest.mark.parametrize(("number", "end"), PAUSES)
async def test_a_paused_run_is_taken_up_and_ends(number: int, end: int) -> None:
    result, events = await taken_up(number, end)
    assert events[:end] == JOURNALS[number][:end]
    assert isinstance(events[-1], RunFinished)
    assert fold_all(events).messages == result.messages


@pytest.mark.parametrize("number", [number for number in NUMBERS if started_by(JOURNALS[number]).parent is None])
async def test_a_run_whose_process_died_before_its_end_is_taken_up_and_ends(number: int) -> None:
    events = JOURNALS[number]
    results = [end for end, event in enumerate(events) if isinstance(event, ToolFinished)]
    for end in {len(events) - 1, len(events) // 2, *results[:1]}:
        result, after = await taken_up(number, end)
        assert after[:end] == events[:end]
        assert isinstance(after[-1], RunFinished)
        assert fold_all(after).messages == result.messages


@pytest.mark.parametrize("number", [number for number in NUMBERS if started_by(JOURNALS[number]).parent is None])
async def test_a_run_is_forked_at_each_of_its_steps_and_each_fork_ends(number: int) -> None:
    events = JOURNALS[number]
    started, journal = started_by(events), MemoryJournal()
    await journal.append(started.run_id, 0, events)
    state = fold_all(events)
    agent = Agent(model(), tools=tools(started.tools), journal=journal)
    for at in range(len(state.steps) + 1):
        made = state.steps[at - 1].calls if at else ()
        others = [{}, *[{one.id: "another result"} for one in made if one.status != "refused"][:2]]
        for results in others:
            try:
                fork = await agent.begin_fork(started.run_id, at=at, message="Go on.", tool_results=results)
            except Misuse as refused:
                if "cannot have another result" in str(refused) or "came back after one" in str(refused):
                    continue
                raise
            result = await gone_on(agent, fork)
            after = await journal.read(fork)
            assert isinstance(after[-1], RunFinished)
            assert fold_all(after).messages == result.messages
            history_is_valid(result.messages)
            assert all(value in [one.text for one in result.messages] for value in results.values())
    assert await journal.read(started.run_id) == events


def history_is_valid(messages: Sequence[Message]) -> None:
    """Each call is answered once, right after the message that made it."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            open_calls.remove(message.call_id)
        else:
            assert not open_calls
        if isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.calls]
    assert not open_calls
