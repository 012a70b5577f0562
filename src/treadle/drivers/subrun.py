"""Sub-runs: an agent as a tool of another, and hand-offs, which pass the conversation on.

A sub-run has a journal of its own beside its parent's, under a name that follows from the call it works for: when the
parent is taken up again after a crash or a pause, the sub-run is too, and nothing of it is paid for twice. It draws on
its parent's limits (`lending.py`), its events are shown to whoever watches the parent, its cancellation follows the
parent's, and what it waits for, the parent waits for.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from msgspec import Struct
from pydantic_core import to_jsonable_python

from treadle.drivers.checks import kind
from treadle.drivers.configuration import Configuration, RunContext, require_price
from treadle.drivers.decisions import Decisions, decided
from treadle.drivers.drive import drive
from treadle.drivers.lending import give_back, left_of
from treadle.drivers.run import CURRENT, Run, RunEvent, SubRunEvent
from treadle.drivers.think import seconds_left
from treadle.journal import UnknownRun
from treadle.kernel.context import completed
from treadle.kernel.events import Parent, ResultAwaited, Spent, ToolFinished
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import Message, SystemMessage, UserMessage
from treadle.kernel.state import RunState
from treadle.kernel.step import Awaited
from treadle.kernel.stop import Limits
from treadle.result import RunResult
from treadle.tools import Tool, ToolContext, ToolError, ToolOutput, tool


class Begin(Struct, frozen=True):
    """How an agent makes a run below another: `start` a new one, or `take_up` one that has begun."""

    name: str
    limits: Limits
    start: Callable[[Run, str, Parent, list[Message], Limits, Callable[[RunEvent], None]], Run]
    take_up: Callable[[Run, RunState, Callable[[RunEvent], None]], Run]


def begin_of(config: Configuration, system: Callable[[str | None], list[Message]]) -> Begin:
    """How an agent of `config` makes runs below another; `system` makes its system message of its instructions."""

    def below(parent: Run) -> Configuration:
        return replace(config, journal=parent.journal)

    def start(
        parent: Run,
        run_id: str,
        link: Parent,
        messages: list[Message],
        limits: Limits,
        on_event: Callable[[RunEvent], None],
    ) -> Run:
        instructions: Any = config.instructions
        if callable(instructions):
            instructions = instructions(RunContext(run_id, config.name, parent.deps))
            kind("instructions of an agent as a tool", instructions, lambda it: isinstance(it, str), "a text")
        require_price(config.model, limits)
        run = Run(below(parent), deps=parent.deps, on_event=on_event, parent=parent)
        run.start(run_id, [*system(instructions), *messages], limits, link)
        return run

    def take_up(parent: Run, state: RunState, on_event: Callable[[RunEvent], None]) -> Run:
        return Run(below(parent), deps=parent.deps, on_event=on_event, state=state, parent=parent)

    return Begin(config.name, config.limits, start, take_up)


def agent_tool(begin: Begin, name: str, description: str, **options: Any) -> Tool:
    """A tool that gives a task to an agent and returns its answer."""

    async def ask(task: str, context: ToolContext) -> Any:
        return await _carried(begin, context, lambda parent: [UserMessage(task)], final=False)

    ask.__doc__ = f"{description}\n\nArgs:\n    task: The whole task; the agent sees nothing else."
    return tool(name=name, description=description, effect="idempotent", timeout=None, **options)(ask)


def handoff_tool(begin: Begin, name: str, description: str) -> Tool:
    """A tool that passes the conversation on to an agent, whose answer is the run's."""

    async def hand_on(context: ToolContext, reason: str = "") -> Any:
        return await _carried(begin, context, lambda parent: _so_far(parent, reason), final=True)

    hand_on.__doc__ = f"{description}\n\nArgs:\n    reason: Why, in a few words, for the one who goes on."
    return tool(name=name, description=description, effect="idempotent", timeout=None, alone=True)(hand_on)


def _so_far(parent: Run, reason: str) -> list[Message]:
    """The conversation up to the message that handed it on."""
    said = [message for message in parent.state.messages if not isinstance(message, SystemMessage)]
    note: list[Message] = [UserMessage(f"(This conversation was handed on to you: {reason})")] if reason else []
    return [*completed(said[:-1]), *note]


async def _carried(begin: Begin, context: ToolContext, messages: Callable[[Run], list[Message]], *, final: bool) -> Any:
    """Carries the sub-run of a call to its end or to a pause, and leaves with its parent what is to be recorded."""
    parent = CURRENT.get()
    if parent is None:
        raise ToolError("an agent can only be called as a tool from a run of another agent")
    child = await _child(begin, parent, context, messages)
    if isinstance(child, RunResult):
        return _recorded(parent, context, child, final)
    try:
        await drive(child)
    finally:
        give_back(child)
    return _recorded(parent, context, child.result, final)


async def _child(
    begin: Begin, parent: Run, context: ToolContext, messages: Callable[[Run], list[Message]]
) -> Run | RunResult:
    run_id = f"{parent.run_id}.{context.step}.{context.call_id}"

    def show(event: RunEvent) -> None:
        parent.show(SubRunEvent(run_id, context.call_id, begin.name, event))

    try:
        events = await parent.journal.read(run_id)
    except UnknownRun:
        limits = left_of(parent, seconds_left(parent), begin.limits)
        if limits is None:
            raise ToolError("the run has no step left that this agent could take; answer from what you have") from None
        link = Parent(parent.run_id, context.step, context.call_id)
        return begin.start(parent, run_id, link, messages(parent), limits, show)
    child = begin.take_up(parent, fold_all(events), show)
    if child.finished:
        return child.result
    decided(child, parent.passed_down.pop(context.call_id, Decisions({}, {}, {})), None)
    return child


def _recorded(parent: Run, context: ToolContext, result: RunResult, final: bool) -> Any:
    """What the tool returns; how the driver is to record it is left in `parent.outcomes`."""
    step, call_id = context.step, context.call_id
    if result.stop.reason == "waiting" and result.pending:
        waits = tuple(Awaited(one.call_id, one.tool, one.arguments_json, one.kind) for one in result.pending)
        parent.outcomes[call_id] = lambda output: ResultAwaited(step, call_id, True, result.run_id, waits)
        return ""
    spent = Spent(len(result.steps) + result.sub_steps, result.usage, result.cost)
    answer = result.finished and final

    def event(output: ToolOutput) -> ToolFinished:
        app = output.app if result.output is None else to_jsonable_python(result.output)
        return ToolFinished(step, call_id, output.content, output.is_error, app, spent, answer)

    parent.outcomes[call_id] = event
    if result.finished:
        return result.text if result.output is None else to_jsonable_python(result.output)
    raise ToolError(
        f"{context.tool_name} stopped before it was done ({result.stop.reason}: {result.stop.detail})",
        found=result.text,
    )
