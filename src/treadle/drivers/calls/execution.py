"""Execution: what is done with a call that was admitted and started. There are two ways, and no other: a function is
called, or a run below this one is driven.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from treadle.context.storable import storable
from treadle.drivers.below import below_of
from treadle.drivers.calls.admission import Admitted, about_call
from treadle.drivers.calls.made import calls_so_far
from treadle.drivers.calls.subrun import carried
from treadle.drivers.commit import confirm_before_effect
from treadle.drivers.run import Run
from treadle.drivers.think import seconds_left
from treadle.drivers.watching import ToolProgress
from treadle.kernel.calls import CallRecord, parsed, told
from treadle.kernel.events import ApprovalRequested, Event, ResultAwaited, ToolFinished
from treadle.kernel.messages import Message
from treadle.tools import ToolContext, ToolError, ToolOutput, encode_error


async def executed(run: Run, admitted: Admitted, below: Run | None = None) -> tuple[Event, ToolOutput]:
    """Runs one call: the event that records how it came back, and what it gave.

    `below` is the run that works on it already, if it was under way when a process died.

    Raises:
        JournalError: a run below could not be recorded.
        asyncio.CancelledError: this run was cancelled.
    """
    record, tool, step = admitted.record, admitted.tool, len(run.state.steps)
    if (agent := below_of(tool)) is not None:
        return await carried(run, agent, record, tool, admitted.arguments, below)
    context = context_of(run, record, admitted.arguments) if tool.injected else None
    if run.lease is not None:
        await confirm_before_effect(run)
    about = about_call(run, record.call.id, tool)
    given = (admitted.arguments, context, run.driven.is_cancelled, run.config.errors, about, run.redact)
    output = await run.driven.apart(tool.call(*given))
    if (record.in_doubt or record.ran) and output.is_error:
        output = _with_what_was_before(output, in_doubt=record.in_doubt)
    if output.asks is not None:
        question, again = output.asks
        return ResultAwaited(step, record.call.id, wait=True, question=question, again=again), output
    if output.in_doubt and tool.effect == "write":
        why = f"{tool.name} was under way, and what served it gave no answer"
        if run.config.on_interrupted == "ask":
            return ApprovalRequested(step, record.id, "interrupted", f"{why}."), output
        words = f"{why}; its outcome is unknown: it may or may not have taken effect."
        output = replace(output, content=told(words, executed="unknown"))
    content, failed, app, raised = output.content, output.is_error, output.app, output.raised
    return ToolFinished(step, record.call.id, content, failed, app, raised=raised, at=run.clock.now()), output


def _with_what_was_before(output: ToolOutput, *, in_doubt: bool) -> ToolOutput:
    """What a call gave that was made again, by another process or for a reaction: that one may have taken effect."""
    shown = parsed(output.content) if isinstance(output.content, str) else None
    if not isinstance(shown, dict) or shown.get("executed") is not False:
        return output
    said = f"{shown['message']}. " if "message" in shown else ""
    before = "It was under way once before, and the outcome of that is unknown: it may have taken effect."
    if not in_doubt:
        before = "This was tried after a call that had been made before, and that may have taken effect."
    error = ToolError(said + before, **{**shown, "executed": "unknown"})
    return replace(output, content=encode_error(error).content)


def context_of(run: Run, record: CallRecord, arguments: dict[str, Any]) -> ToolContext:
    """What a tool may know about the call that it serves."""
    left = seconds_left(run)
    name = record.doing.name
    return ToolContext(
        run_id=run.run_id,
        tool_name=name,
        call_id=record.id,
        step=len(run.state.steps),
        deadline=None if left is None else run.clock.on_the_wall(run.clock.now() + left),
        deps=run.deps,
        progress=lambda update: run.audience.show(storable(ToolProgress(record.id, name, update))),
        made=record.made,
        other=record.other,
        nonce=run.state.started.nonce,
        again="" if record.answer is None else record.again,
        answer=None if record.answer is None else parsed(record.answer),
        history=lambda: _said_so_far(run),
        arguments=MappingProxyType(arguments),
        redact=run.redact,
    )


def _said_so_far(run: Run) -> Sequence[Message]:
    """The messages of a run, and the results that the step under way has brought."""
    return [*run.state.messages, *(record.result for record in calls_so_far(run) if record.result is not None)]


_locks: "WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[str, asyncio.Lock]]" = WeakKeyDictionary()


def lock_of(resource: str) -> asyncio.Lock:
    """The lock of a named resource, shared by all runs of this event loop."""
    return _locks.setdefault(asyncio.get_running_loop(), defaultdict(asyncio.Lock))[resource]
