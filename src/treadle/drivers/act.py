"""Act: the tool calls of one reply, validated, started and run, each to exactly one result.

Calls run together in a task group, except where a tool asks to be alone or shares a named resource; `waves` says which
with which. What a tool may have done already is in the journal before it is started.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from treadle.drivers.approvals import verdict
from treadle.drivers.reaction import AskUser, reacted
from treadle.drivers.run import Run, ToolProgress
from treadle.drivers.think import seconds_left
from treadle.kernel.events import ApprovalRequested, Event, ResultAwaited, ToolFinished, ToolStarted
from treadle.kernel.messages import Json, ToolMessage
from treadle.kernel.step import CallRecord, cut_off
from treadle.tools import Tool, ToolContext, ToolError
from treadle.tools.errors import did_you_mean, nearest
from treadle.tools.output import encode_error


class Admitted(Struct, frozen=True):
    """A call that may be run: its record, its tool, and its arguments as validated."""

    record: CallRecord
    tool: Tool
    arguments: dict[str, Any]


async def act(run: Run, records: Sequence[CallRecord]) -> None:
    """Runs `records`, and feeds what became of each."""
    admitted: list[Admitted] = []
    for record in records:
        outcome = admit(run, record)
        if isinstance(outcome, Admitted):
            admitted.append(outcome)
            run.feed(ToolStarted(len(run.state.steps), record.id))
        else:
            run.feed(outcome)
    await run.commit()
    if len(admitted) == 1:
        run.feed(await execute(run, admitted[0]))
        return
    try:
        for wave in waves(admitted):
            async with asyncio.TaskGroup() as group:
                for one in wave:
                    group.create_task(_finish(run, one))
    except ExceptionGroup as raised:
        # Tools raise nothing; this is the agent's own code, and its caller knows no task group.
        raise raised.exceptions[0] from None


async def _finish(run: Run, admitted: Admitted) -> None:
    run.feed(await execute(run, admitted))


def waves(admitted: Sequence[Admitted]) -> list[list[Admitted]]:
    """Which calls run together, in call order: a tool that is `alone` has a wave of its own."""
    out: list[list[Admitted]] = []
    for one in admitted:
        if one.tool.alone or not out or out[-1][-1].tool.alone:
            out.append([one])
        else:
            out[-1].append(one)
    return out


def admit(run: Run, record: CallRecord) -> Admitted | Event:
    """`record` ready to be run, or the event that says why it is not: an error, an approval or a result to wait for."""
    step = len(run.state.steps)
    tool = _offered(run, record)
    if tool is None:
        return _failed(step, record, _unknown_tool(run, record))
    if record.status == "interrupted" and tool.effect == "write":
        if run.config.on_interrupted == "tell":
            return ToolFinished(step, record.id, cut_off(), is_error=True)
        return ApprovalRequested(step, record.id, "interrupted")
    try:
        arguments = tool.validate(record.arguments_json)
    except ToolError as error:
        return _failed(step, record, error)
    if record.status == "asked":
        action, reason = verdict(run.config.approvals, tool, arguments)
        if action == "deny":
            why = f": {reason}" if reason else ""
            return _failed(step, record, ToolError(f"This call is not allowed{why}.", executed=False))
        if action == "ask":
            return ApprovalRequested(step, record.id, reason=reason)
    if tool.external:
        return ResultAwaited(step, record.id, tool.wait)
    return Admitted(record, tool, arguments)


def _offered(run: Run, record: CallRecord) -> Tool | None:
    """The tool that `record` names, if the step offered it."""
    prepared = run.state.prepared
    if prepared is not None and prepared.tools is not None and record.name not in prepared.tools:
        return None
    return run.config.tools.get(record.name)


def _unknown_tool(run: Run, record: CallRecord) -> ToolError:
    prepared = run.state.prepared
    names = list(run.config.tools if prepared is None or prepared.tools is None else prepared.tools)
    near = nearest(record.name, names)
    hints: Json = {"given": record.name, **({"nearest": near} if near else {}), "available_tools": names}
    return ToolError(f"There is no tool {record.name!r}{did_you_mean(near)}", **hints)


async def execute(run: Run, admitted: Admitted) -> Event:
    """Runs one call to its result."""
    record, tool = admitted.record, admitted.tool
    context = _context(run, record) if tool.injected else None
    if tool.resource is None:
        output = await tool.call(admitted.arguments, context)
    else:
        async with _lock(tool.resource):
            output = await tool.call(admitted.arguments, context)
    recorded = run.outcomes.pop(record.id, None)
    if recorded is not None:
        return recorded(output)
    step = len(run.state.steps)
    if run.config.on_tool_result is not None:
        shown = replace(record, result=ToolMessage(record.id, record.name, output.content, output.is_error))
        reaction = await reacted(
            run, shown, tool, output, lambda other: _context(run, record) if other.injected else None
        )
        if isinstance(reaction, AskUser):
            return ResultAwaited(step, record.id, wait=True, question=reaction.question)
        output = reaction
    return ToolFinished(step, record.id, output.content, output.is_error, output.app)


def _failed(step: int, record: CallRecord, error: ToolError) -> ToolFinished:
    return ToolFinished(step, record.id, encode_error(error).content, is_error=True)


def _context(run: Run, record: CallRecord) -> ToolContext:
    step = len(run.state.steps)
    left = seconds_left(run)
    return ToolContext(
        run_id=run.run_id,
        tool_name=record.name,
        call_id=record.id,
        step=step,
        deadline=None if left is None else run.state.now + left,
        deps=run.deps,
        progress=lambda update: run.show(ToolProgress(record.id, record.name, update)),
        history=lambda: [replace(one, whole=one.content) for one in run.state.shelf.values()],
    )


_locks: "WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[str, asyncio.Lock]]" = WeakKeyDictionary()


def _lock(resource: str) -> asyncio.Lock:
    """The lock of a named resource, shared by all runs of this event loop."""
    return _locks.setdefault(asyncio.get_running_loop(), defaultdict(asyncio.Lock))[resource]
