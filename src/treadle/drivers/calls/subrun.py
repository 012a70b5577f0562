"""Sub-runs: an agent as a tool of another, and hand-offs, which pass the conversation on.

A sub-run has a journal of its own beside its parent's, under a name that follows from the call it works for: when the
parent is taken up again after a crash or a pause, the sub-run is too, and nothing of it is paid for twice. It draws
on its parent's limits (`purse.claims`), its parent's rules hold for it, whoever watches the parent is shown its events,
its cancellation follows the parent's, and what it waits for, the parent waits for.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from treadle.context.completed import completed
from treadle.context.shown import text_with_shown
from treadle.drivers.approvals import budgets_beside, require_budgets, require_rules
from treadle.drivers.below import Below, below_of, parts_below, run_id_below
from treadle.drivers.calls.admission import hands_on
from treadle.drivers.calls.made import calls_so_far, records_of
from treadle.drivers.calls.unfinished import changes_told, told_in_words
from treadle.drivers.commit import confirm
from treadle.drivers.configuration import Configuration, RunContext
from treadle.drivers.instructing import TookTooLong, instructions_of
from treadle.drivers.outcome import is_without_answer
from treadle.drivers.output import as_json
from treadle.drivers.purse.claims import calls_begun, give_back, left_of, limits_again, paid_before, settle
from treadle.drivers.purse.reckoning import lost_call, require_price
from treadle.drivers.run import Run
from treadle.drivers.think import seconds_left
from treadle.drivers.watching import RunEvent, SubRunEvent
from treadle.journal import JournalConflict, UnknownRun
from treadle.journal.families import works_for
from treadle.journal.ones_own import read_of, standing_of
from treadle.kernel.accounts import NOTHING_SPENT, Spent
from treadle.kernel.calls import Awaited, CallRecord, cut_off
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, Parent, ResultAwaited, RunResumed, RunStarted, ToolFinished
from treadle.kernel.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from treadle.kernel.reply import in_doubt
from treadle.kernel.state import RunState
from treadle.kernel.stop import stopped
from treadle.result import history, told_of
from treadle.tools import Tool, ToolError, ToolOutput
from treadle.tools.output import encode, encode_error

LEFT = stopped("cancelled", "the run that it works for goes on without it")
"""The end of a run below that nobody waits for any more."""

MOST_LOOKS = 5
"""How often a run below is looked at that another process still adds to."""


class OfAnEarlierRun(Misuse):
    """A run stands under the name of one below that worked for an earlier run of the name above, deleted without it."""


def run_id_of(parent: Run, record: CallRecord) -> str:
    """The name of the run that works on a call; the same whenever the call is taken up again."""
    return run_id_below(parent.run_id, len(parent.state.steps), record.id, record.made)


async def carried(
    parent: Run, below: Below, record: CallRecord, tool: Tool, arguments: dict[str, Any], begun: Run | None
) -> tuple[ToolFinished | ResultAwaited, ToolOutput]:
    """Carries the sub-run of a call to its end or to a pause: what is to be recorded of the call.

    `begun` is the sub-run, if `begun_below` has taken it up.
    """
    try:
        child = await _child(parent, below, record, arguments) if begun is None else begun
    except ToolError as error:
        output = encode_error(error)
        return ToolFinished(len(parent.state.steps), record.id, output.content, True), output
    if child.finished:
        give_back(child)
    else:
        try:
            await parent.driver.drive(child)
        except asyncio.CancelledError:
            # What it took is told, also where the parent ends at once. Where anything else is raised it is not, and
            # stays claimed: the call is taken up again.
            if not parent.driven.is_given_up():
                parent.feed(recorded_for_call(len(parent.state.steps), record, tool, child, below.final)[0])
                give_back(child)
            raise
        give_back(child)
    return recorded_for_call(len(parent.state.steps), record, tool, child, below.final)


async def begun_below(parent: Run, records: Sequence[CallRecord]) -> dict[str, Run]:
    """The sub-runs that were under way when a process died, by the call that they work on.

    What they have taken is claimed of their parent before anything goes on: none may use what another has used up.
    Those of agents that there are no longer are among them, to be ended by `left_below`.
    """
    found: dict[str, Run] = {}
    for record in records:
        if record.status in ("interrupted", "approved") and _may_be_left(parent, record):
            child = await _own_taken_up_again(parent, record)
            if child is not None:
                found[record.id] = child
    return found


def is_orphan(parent: Run, record: CallRecord) -> bool:
    """Whether the run below that works on a call was taken up, and the agent is gone that it is a run of."""
    return record.id in parent.begun and _agent(parent, record) is None


def _agent(parent: Run, record: CallRecord) -> Below | None:
    """The agent that works on a call; None if its tool is none, or gone."""
    return below_of(parent.config.tools.get(record.doing.name))


def _may_be_left(parent: Run, record: CallRecord) -> bool:
    """Whether a run below may have been begun for a call before it was taken up here, whatever its tool is by now."""
    return parent.keeps and (record.in_doubt or (record.status == "approved" and record.executed))


async def _taken_up_again(parent: Run, record: CallRecord) -> Run | None:
    """The run below that works on a call, taken up here; None if none has begun. Without an agent it can only be ended.

    That it is taken up is in the journal before anything else is done: a process that still drives it, though the run
    above was taken from it, fails at its next step. What it has done until then is read again. And before that, whether
    this run has not been taken over itself, by whoever has begun the run below or taken it up.
    """
    below = _agent(parent, record)
    for _ in range(MOST_LOOKS):
        events = await recorded_below(parent, record)
        if events is None:
            return None
        await confirm(parent)
        child = _orphan(parent, record, events) if below is None else taken_up(parent, below, record, events)
        paid_before(child, record.spent)
        if not child.finished:
            changed = below is not None and parent.state.limits != parent.state.started.limits
            limits = limits_again(child, parent, seconds_left(parent), child.config.limits) if changed else None
            lost = lost_call(child.state, None if below is None else child.model)
            child.feed(RunResumed(limits, lost, budgets_beside(child.state.started.hooks, child.config.hooks)))
            settle(child)
        try:
            # Of one that has ended, its process may have died before that was told to budgets of its own.
            await child.commit()
        except JournalConflict as error:
            give_back(child)
            conflict = error
            continue
        child.begun = await begun_below(child, calls_so_far(child))
        return child
    raise conflict


async def _own_taken_up_again(parent: Run, record: CallRecord) -> Run | None:
    """As `_taken_up_again`, where nothing is begun: another run under the name is then no concern of this one's."""
    try:
        return await _taken_up_again(parent, record)
    except OfAnEarlierRun:
        return None


async def _child(parent: Run, below: Below, record: CallRecord, arguments: dict[str, Any]) -> Run:
    child = await _taken_up_again(parent, record)
    if child is not None:
        return child
    if record.spent != NOTHING_SPENT:
        raise is_gone(parent, record)
    config = below.config
    limits = left_of(parent, seconds_left(parent), config.limits)
    if limits is None:
        raise ToolError("the run has no step left that this agent could take; answer from what you have")
    run_id, began = run_id_of(parent, record), parent.clock.now()
    context = RunContext(run_id, config.name, parent.deps)
    function = f"the instructions of {config.name}"
    try:
        instructions = await parent.driven.own(instructions_of, function, config, context, limits.seconds)
    except TookTooLong as error:
        raise ToolError(str(error)) from error
    if callable(config.instructions) and not isinstance(instructions, str):
        raise Misuse(f"{function} are a text; it was given {instructions!r}")
    require_price(config.model, config.settings, limits)
    child = _run(parent, below, record, None)
    system = below.config.system(instructions, child.config.output)
    said = _so_far(parent, record, arguments.get("reason")) if below.final else [UserMessage(arguments["task"])]
    link = Parent(parent.run_id, len(parent.state.steps), record.id, parent.state.started.at)
    messages = [*system, *said]
    asked, nonce = _asked(parent, messages) if below.final else (), parent.state.started.nonce
    child.start(run_id, messages, limits, link, asked=asked, nonce=nonce, at=began)
    return child


async def left_below(parent: Run, record: CallRecord) -> Spent | None:
    """Ends the run below that works on a call under way which nobody goes on with: what it took for it.

    None where no run has begun to work on it. A run that waits for somebody is left as it is: it does nothing, and
    whoever takes the run above over may still ask for what it waits for.
    """
    child = parent.begun.pop(record.id, None)
    begun_here = record.status == "started" and _agent(parent, record) is not None
    if child is None and record.result is None and (begun_here or _may_be_left(parent, record)):
        child = await _own_taken_up_again(parent, record)
    if child is None:
        return None
    if not child.finished:
        await parent.driver.end(child, LEFT)
    give_back(child)
    return _spent(child.state)


def cut_short(parent: Run, record: CallRecord, spent: Spent | None) -> ToolFinished:
    """What is recorded of a call whose run below was ended after it had `spent`: what is known of it stays true."""
    known = in_doubt(record, "", parent.state.now)
    content = cut_off() if known.result is None else known.result.content
    return ToolFinished(len(parent.state.steps), record.id, content, known.is_error, known.app, spent=spent)


async def recorded_below(parent: Run, record: CallRecord) -> list[Event] | None:
    """The events of the run that works on a call; None if it has not begun.

    Raises:
        JournalError: the journal cannot be read.
        OfAnEarlierRun: what stands there under its name is another.
    """
    run_id = run_id_of(parent, record)
    try:
        events = await read_of(parent.journal, run_id)
    except UnknownRun:
        return None
    first = events[0]
    if isinstance(first, RunStarted) and not works_for(first.parent, parent.state.started.at):
        raise OfAnEarlierRun(
            f"run {run_id} worked for an earlier run {parent.run_id}, which was deleted without it, so that this run "
            f"cannot begin one of that name: delete {run_id}, and those that worked for it, and resume {parent.run_id}"
        )
    return events


def is_gone(parent: Run, record: CallRecord) -> Misuse:
    """That the run below which has worked on a call, as `parent` knows, was deleted."""
    return Misuse(
        f"the journal no longer has run {run_id_of(parent, record)}, which worked on call {record.id!r}, so nothing "
        "can be decided there, and begun anew it would do once more what it has done: end run "
        f"{parent.run_id} with agent.cancel(…); it then goes on if something is said to it"
    )


def taken_up(parent: Run, below: Below, record: CallRecord, events: list[Event]) -> Run:
    """The run that works on a call, from its events.

    Raises:
        Misuse: it was started under stricter rules than those of the agent.
    """
    child = _run(parent, below, record, events)
    child.observe(events)
    started, config = child.state.started, child.config
    if not child.finished and not child.driven.ends:
        require_rules(child.run_id, started.rules, started.hooks, config.rules, config.hooks, parts_below(config))
    if not child.finished:
        require_budgets(child.state, config.hooks)
    return child


def _orphan(parent: Run, record: CallRecord, events: list[Event]) -> Run:
    """The run that works on a call, from its events, of an agent that is gone: it has nothing to go on with."""
    state = standing_of(events)
    child = _run_of(Configuration(parent.config.model, state.started.agent), parent, record, state)
    child.observe(events)
    return child


def _run(parent: Run, below: Below, record: CallRecord, events: list[Event] | None) -> Run:
    state = None if events is None else standing_of(events)
    return _run_of(below.config_below(parent.config), parent, record, state, handed_on=below.final)


def _run_of(
    config: Configuration, parent: Run, record: CallRecord, state: RunState | None, *, handed_on: bool = False
) -> Run:
    run_id = run_id_of(parent, record)

    def show(event: RunEvent) -> None:
        parent.audience.show(SubRunEvent(run_id, record.id, config.name, event, handed_on))

    config = replace(config, journal=parent.journal)
    parent.below[record.id] = child = Run(
        config, parent.driver, deps=parent.deps, on_event=show, state=state, parent=parent
    )
    child.draw_on(run_id, parent.whose)
    return child


def _so_far(parent: Run, record: CallRecord, reason: str | None) -> list[Message]:
    """The conversation up to the call that handed it on.

    What was called beside that stands in it, with what came of it: who goes on must not do it again.
    """
    before = [message for message in parent.state.messages if not isinstance(message, SystemMessage)][:-1]
    note: list[Message] = [UserMessage(f"(This conversation was handed on to you: {reason})")] if reason else []
    return [*completed([*before, *_beside(parent, record)]), *note]


def _asked(parent: Run, messages: Sequence[Message]) -> list[int]:
    """Where in a conversation that is handed on what was asked of the run above stands, and the note about that."""
    asked = frozenset(parent.state.pinned)
    last = len(messages) - 1
    return [i for i, one in enumerate(messages) if isinstance(one, UserMessage) and (i == last or one in asked)]


def _beside(parent: Run, record: CallRecord) -> list[Message]:
    """The reply that hands the conversation on, without that call, and the results of its other calls.

    Nothing where it has no others. A call that waits has a result that says so.
    """
    state = parent.state
    given = [one.id for one in calls_so_far(parent) if one.id == record.id or hands_on(parent, one)]
    beside: list[Message] = []
    for message in history(state, stopped("running"))[len(state.messages) - 1 :]:
        if isinstance(message, AssistantMessage):
            kept = [part for part in message.content if not isinstance(part, ToolCall) or part.id not in given]
            if not any(isinstance(part, ToolCall) for part in kept):
                return []
            beside.append(AssistantMessage(tuple(kept)))
        elif isinstance(message, ToolMessage):
            # Those of calls that are not kept are left out where the whole is made valid.
            beside.append(message)
    return beside


def recorded_for_call(
    step: int, record: CallRecord, tool: Tool, child: Run, final: bool
) -> tuple[ToolFinished | ResultAwaited, ToolOutput]:
    """What is recorded of a call when the run that works on it has come as far as it goes for now."""
    result = child.result
    spent = _spent(child.state)
    if result.stop.reason == "waiting" and result.pending:
        waits = tuple(
            Awaited(one.call_id, one.tool, one.arguments_json, one.kind, one.question, one.found, one.asked, one.run_id)
            for one in result.pending
        )
        return ResultAwaited(step, record.id, True, result.run_id, waits, spent=spent), ToolOutput("")
    said = result.steps[-1].message if result.steps and not result.text else None
    text = result.text if said is None else text_with_shown(said)
    if result.finished and not is_without_answer(child.config, child.state, final):
        if not text.strip() and result.output is None:
            # One that a condition ended on a call must not look as if nothing had been done, and has not failed.
            ended = f"{tool.name} ended without a word ({told_of(result.stop)})."
            text = told_in_words(ended, records_of(child), child.config.tools)
        value = text if result.output is None else as_json(result.output, child.state.output)
        output = encode(value, tool.max_output)
        # The answer of a run is read anew from the JSON that it was read from here.
        app = child.state.output if final else output.app if result.output is None else value
        return ToolFinished(step, record.id, output.content, False, app, spent, final), output
    why = f"{tool.name} stopped before it was done ({told_of(result.stop)})"
    output = encode_error(
        ToolError(why, found=result.text, **changes_told(records_of(child), child.config.tools)), tool.max_output
    )
    return ToolFinished(step, record.id, output.content, True, spent=spent), output


def _spent(state: RunState) -> Spent:
    """What the run in `state` has taken in all, the step under way included."""
    accounts, steps = state.accounts, len(state.steps) + (state.step is not None) + state.sub_steps
    return Spent(steps, accounts.usage, accounts.cost, calls_begun(state), accounts.unpriced, accounts.presumed)
