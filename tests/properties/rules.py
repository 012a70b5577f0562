"""What must hold of every run: the invariants, each as a check that says what broke it."""

from collections.abc import Sequence
from typing import Any

import msgspec
from toolbox import World
from worlds import Player

from treadle import Event, RunResult
from treadle.kernel.events import ContextEdited, RunFinished, RunPaused, RunStarted, ToolFinished
from treadle.kernel.messages import AssistantMessage, Message, Opaque, SystemMessage, Text, Thinking, ToolMessage
from treadle.kernel.state import RunState
from treadle.kernel.stop import STOP_REASONS, Limits


def valid(messages: Sequence[Message]) -> None:
    """The strictest provider would take these messages."""
    i = 0
    while i < len(messages):
        message = messages[i]
        assert not isinstance(message, SystemMessage) or i == 0, f"a system message at {i}: {messages}"
        assert not isinstance(message, ToolMessage), f"a result at {i} that answers nothing: {messages}"
        i += 1
        if isinstance(message, AssistantMessage):
            says_something = any(
                isinstance(part, (Thinking, Opaque)) or (isinstance(part, Text) and part.text.strip())
                for part in message.content
            )
            assert says_something or message.calls, f"an assistant message that says nothing: {messages}"
            ids = [call.id for call in message.calls]
            assert all(ids), f"a call without an id: {messages}"
            assert len(set(ids)) == len(ids), f"calls with the same id: {messages}"
            for call in message.calls:
                assert i < len(messages), f"call {call.id} has no result: {messages}"
                result = messages[i]
                assert isinstance(result, ToolMessage), f"call {call.id} is not answered at once: {messages}"
                assert (result.call_id, result.name) == (call.id, call.name), f"results out of order: {messages}"
                i += 1


def requests_valid(player: Player) -> None:
    """Every request that was sent was valid, is unchanged since, and ends with something to answer."""
    for request, sent in zip(player.requests, player.sent, strict=True):
        assert list(request.messages) == sent
        valid(sent)
        assert sent, "a request without messages"


def one_stop(result: RunResult, events: Sequence[Event]) -> None:
    """The run has one stop reason, from the list, and is closed in its journal or paused there."""
    assert result.stop.reason in STOP_REASONS
    assert result.finished == (result.stop.reason in ("answered", "condition", "external_tool"))
    finishes = [event for event in events if isinstance(event, RunFinished)]
    if result.stop.reason == "waiting":
        assert not finishes
        assert isinstance(events[-1], RunPaused)
        assert events[-1].stop == result.stop
        assert result.pending
    else:
        assert len(finishes) == 1
        assert finishes[0] is events[-1] or finishes[0] == events[-1]
        assert finishes[0].stop == result.stop
        assert not result.pending
    assert sum(isinstance(event, RunStarted) for event in events) == 1
    assert bool(result.stop.advice) != result.finished


def found_is_returned(result: RunResult) -> None:
    """Every reply and result that was recorded is in the result; after an edit of the context, in its steps."""
    replies = [step.message for step in result.steps if step.message is not None]
    said = [message for message in replies if message.calls or message.text.strip()]
    spoken = [message for message in result.messages if isinstance(message, AssistantMessage)]
    for message in said:
        assert message in spoken or any(isinstance(event, ContextEdited) for event in result.events)
    texts = [step.text for step in result.steps if step.text.strip()]
    if texts and not any(step.failures for step in result.steps) and result.error is None:
        assert result.text.strip()


def limits_kept(result: RunResult, limits: Limits, player: Player, world: World, honest: bool) -> None:
    """No limit was exceeded."""
    steps = {request.step for request in player.requests}
    assert steps == set(range(len(steps)))
    if limits.steps is not None:
        assert len(steps) <= limits.steps
    if limits.tool_calls is not None:
        assert len(world.executed) <= limits.tool_calls
        assert len(result.tool_calls_made) <= limits.tool_calls or not world.executed
    if honest and limits.tokens is not None:
        assert result.usage.total_tokens <= limits.tokens
    if honest and limits.budget is not None:
        assert (result.cost or 0) <= limits.budget
    if limits.consecutive_errors is not None:
        errors = 0
        for step in result.steps:
            assert errors < limits.consecutive_errors or step.landing is not None
            if step.calls:
                errors = errors + 1 if all(call.is_error for call in step.calls) else 0
            elif step.message is not None and not step.text.strip() and step.finish != "pause":
                errors += 1


def only_what_was_offered(player: Player, world: World) -> None:
    """No tool was executed that the step's request did not offer, and none with tools off."""
    offered = {
        request.step: set() if request.tool_choice == "none" else {spec.name for spec in request.tools}
        for request in player.requests
    }
    for name, step, _ in world.executed:
        assert name in offered[step], f"{name} was executed in step {step}, which offered {offered[step]}"


def errors_shown(events: Sequence[Event]) -> None:
    """Every failed result is JSON that says so."""
    for event in events:
        if isinstance(event, ToolFinished) and event.is_error:
            assert isinstance(event.content, str)
            shown = msgspec.json.decode(event.content)
            assert shown["error"] is True
            assert shown["message"]


def decided_well(world: World) -> None:
    """What shares a resource was alone with it, and what runs alone was alone."""
    assert world.most_in_door <= 1
    assert not world.beside_alone


def same(one: RunState, other: RunState) -> bool:
    """Equal, field by field; says which field differs."""
    for name in one.__struct_fields__:
        mine, others = getattr(one, name), getattr(other, name)
        assert mine == others, f"{name}: {mine!r} is not {others!r}"
    return True


def events_of(journal: Any, run_id: str) -> list[Event]:
    """What a MemoryJournal holds of a run, without an event loop; nothing if the run is unknown to it."""
    return list(journal._runs.get(run_id, []))
