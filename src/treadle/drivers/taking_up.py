"""Taking up: how a run goes on that is paused, that a limit stopped, or whose process died."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from treadle.conversation import Conversation
from treadle.drivers.answers import Answers, answer, require_waiting
from treadle.drivers.approvals import require_budgets, require_budgets_to_end, require_rules
from treadle.drivers.beginning import Begun, lent
from treadle.drivers.below import parts_below
from treadle.drivers.checks import (
    Input,
    OnEvent,
    all_budgets,
    asked_of,
    check_limits,
    check_whose,
    kind,
    require_dependencies,
    watcher_of,
    with_budgets,
)
from treadle.drivers.configuration import Configuration
from treadle.drivers.conversing import require_last
from treadle.drivers.drive import DRIVER, end
from treadle.drivers.ended import settle_ended
from treadle.drivers.heartbeat import Lease
from treadle.drivers.lease import taken
from treadle.drivers.lifted import tell_lifted
from treadle.drivers.purse.drawing import Budgets, whose_again, whose_run
from treadle.drivers.purse.patience import patiently
from treadle.drivers.run import Run
from treadle.drivers.undisturbed import undisturbed
from treadle.event_loop import running_loop
from treadle.journal import Journal
from treadle.journal.ones_own import read_of, standing_of
from treadle.journal.redaction import redacted
from treadle.kernel.errors import Misuse
from treadle.kernel.events import FORMAT, Event, MessageAdded, NudgeGiven, RunPaused, RunStarted
from treadle.kernel.messages import AssistantMessage, Message
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.result import RunResult, conversation_part, history, result_of

ROOM = "There is room to go on now. Go on with the task."
"""What a run that ended on the model's word is told when it goes on and nobody says anything."""


class GoingOn(NamedTuple):
    """What a run goes on with; see `treadle.Agent.resume`. To be driven `elsewhere`, it needs no dependencies.

    `origin` is what says the message, as it stands in the journal. With `last` it goes on only if it is the last run of
    its conversation, and with `seen` only if it has that many events still. One that is only `ended` does nothing more,
    so that any agent may do it that has its budgets. `as_said` gives back to its events what their journal redacted.
    With `queued` it only waits for a worker then.
    Where whoever takes it up is cancelled once that is recorded, it ends as cancelled, unless it is `left` as it is, or
    to be driven elsewhere.
    """

    answers: Answers = Answers()
    message: Input = None
    conversation: Conversation | None = None
    deps: Any = None
    limits: Limits | None = None
    on_event: OnEvent = None
    budget: Budgets = None
    user: str | None = None
    elsewhere: bool = False
    takeover: bool = False
    by: str = ""
    origin: str = ""
    last: bool = False
    seen: int | None = None
    ended: bool = False
    as_said: Callable[[Sequence[Event]], Sequence[Event]] = tuple
    queued: RunPaused | None = None
    left: bool = False


class Overtaken(Misuse):
    """A run has gone on since it was seen."""


class _Found(NamedTuple):
    """A run as it was found.

    Attributes:
        state: where it stands.
        events: all of it.
        kept: the journal that is kept with its result, if that was given and has it.
        journal: the journal that has it and those of the runs below it; None if none has.
    """

    state: RunState
    events: Sequence[Event]
    kept: Journal | None
    journal: Journal | None


async def taken_up(
    config: Configuration, run: str | RunResult[Any], going_on: GoingOn, on_event: OnEvent = None
) -> Begun:
    """A run with what it goes on with, watched by `on_event` too.

    Raises:
        UnknownRun: the journal has no such run.
        RunHeld: it is under way in another process, or another task of this one, and is not to be taken over.
        GoneOn: its conversation has gone on without it, and it is to be the last of that.
        Misuse: an answer names a call that does not wait for it, the run was started under stricter rules than these,
            it works for another run, its tools want dependencies, or more was said in the conversation meanwhile.
    """
    config, going_on = with_budgets(config, going_on.budget), going_on._replace(on_event=on_event or going_on.on_event)
    if going_on.limits is not None:
        check_limits(config, going_on.limits)
    events, journal = await recorded(config, "cancel" if going_on.ended else "resume", run)
    events = going_on.as_said(events)
    kept = run.sub_runs if isinstance(run, RunResult) else None
    found, there = _Found(standing(events, going_on), events, kept, kept or journal), kept or journal
    if _over(found.state, going_on):
        return await _as_it_is(config, found)
    if there is None:
        raise Misuse(
            f"run {found.state.run_id} is kept in a journal, and this agent has none, or this result is a copy of the "
            "run's own: another might go on with the run too and do everything twice. Give the agent that journal, or "
            "resume the very result that the run returned (a run by hand without a journal is to be committed first)"
        )
    # One that is refused takes it from nobody.
    _require_fit(config, going_on, found.state)
    if going_on.takeover:
        await require_waiting(await _that_fits(config, going_on, found), going_on.answers)
    lease = await taken(there, found.state.run_id, going_on.takeover)
    if lease is None:
        return Begun(await _gone_on(config, going_on, found, None), events)
    try:
        # What its owner wrote until it had it no longer; where somebody chose its name, it may be another run by now.
        known = () if found.state.started.nonce else events
        events = going_on.as_said([*known, *await read_of(there, found.state.run_id, len(known))])
        found = found._replace(state=standing(events, going_on), events=events)
        if not _over(found.state, going_on):
            return Begun(await _gone_on(config, going_on, found, lease), events)
    except BaseException:
        lease.give_back(over=False)
        raise
    lease.give_back(over=False)
    return await _as_it_is(config, found)


def standing(events: Sequence[Event], going_on: GoingOn) -> RunState:
    """Where a run stands.

    Raises:
        JournalDamaged: an event cannot follow on those before it.
        Overtaken: it has gone on meanwhile.
        Misuse: it is not to go on by itself, or nothing of it waits to be decided.
    """
    state, answers = standing_of(events), going_on.answers
    if going_on.seen not in (None, len(events)):
        raise Overtaken(f"run {state.run_id} has gone on meanwhile: look at it again")
    if answers and state.phase == "finished":
        raise Misuse(f"run {state.run_id} has finished: no call of it waits to be decided ({', '.join(answers.calls)})")
    above = state.started.parent
    if above is not None and not _over(state, going_on):
        raise Misuse(
            f"run {state.run_id} works for run {above.run_id}, under the rules and limits of that one too, and goes on "
            "or ends with it: name that one"
        )
    return state


async def _as_it_is(config: Configuration, found: _Found) -> Begun:
    await settle_ended(config, found.state, found.events, found.journal)
    return Begun(Run(config, DRIVER, state=found.state, journal=found.kept), found.events, to_do=False)


def _require_fit(config: Configuration, going_on: GoingOn, state: RunState) -> None:
    """Raises `Misuse` where a run is not to go on with an agent, or not with what is given."""
    if not going_on.elsewhere:
        require_dependencies(config.tools, going_on.deps)
    started, parts = state.started, parts_below(config)
    if going_on.ended:
        require_budgets_to_end(state, config.hooks, parts)
    else:
        require_rules(state.run_id, started.rules, started.hooks, config.rules, config.hooks, parts)
    require_budgets(state, config.hooks)
    kind("conversation", going_on.conversation, lambda it: isinstance(it, Conversation), "a Conversation(…)")


async def _that_fits(config: Configuration, going_on: GoingOn, found: _Found) -> Run:
    """The run, where it may go on with an agent and with all that is given but answers; nothing is changed yet."""
    state, conversation = found.state, going_on.conversation
    if going_on.last and found.journal is not None:
        await require_last(found.journal, found.events)
    _require_fit(config, going_on, state)
    whom = whose_run(going_on.user, None if conversation is None else conversation.name)
    whose = await patiently(lambda: whose_again(all_budgets(config), state, whom))
    if not going_on.ended:
        check_whose(config, whose)
        check_limits(config, going_on.limits or state.limits)
    asked_of(going_on.message, "message")
    watcher, over = watcher_of(going_on.on_event), lent(conversation)
    driven = Run(config, DRIVER, deps=going_on.deps, on_event=watcher, state=state, over=over, journal=found.kept)
    driven.driven.ends = going_on.ended
    driven.draw_on(state.run_id, whose)
    if conversation is not None:
        conversation.require_free(*_said_in(conversation, found))
    return driven


async def _gone_on(config: Configuration, going_on: GoingOn, found: _Found, lease: Lease | None) -> Run:
    state, limits, conversation = found.state, going_on.limits, going_on.conversation
    driven = await _that_fits(config, going_on, found)
    driven.lease = lease
    driven.observe(found.events)
    if conversation is not None:
        conversation.begin(*_said_in(conversation, found))
    try:
        await settle_ended(config, state, found.events, found.journal)
        tell_lifted(state.run_id, state.limits, limits)
        said = partial(_told, driven, state, going_on)
        await answer(driven, going_on.answers, limits, going_on.by, said=said)
    except asyncio.CancelledError:
        try:
            if driven.recorder.saved and not (going_on.left or going_on.elsewhere):
                # It is under way in the journal, and nobody else knows that it is to go on.
                await undisturbed(partial(end, driven, driven.driven.cancelled_as))
        finally:
            driven.release()
        raise
    except BaseException:
        driven.release()
        raise
    return driven


def _said_in(conversation: Conversation, found: _Found) -> tuple[Sequence[Message], Sequence[Message] | None, str]:
    """What a run has of its conversation, and what its journal has of `conversation`; see `Conversation.begin`."""
    state = found.state
    known = conversation_part(history(state, result_of(state).stop))
    return known, _as_kept(conversation, state.run_id, found.journal), state.run_id


def _as_kept(conversation: Conversation, run_id: str, journal: Journal | None) -> Sequence[Message] | None:
    """What was said in `conversation`, as a journal that redacts has it; None if it has it as it is."""
    redact = getattr(journal, "redact", None)
    if redact is None:
        return None
    (begun,) = redacted(run_id, 0, [RunStarted(run_id, tuple(conversation.messages), FORMAT)], redact, "")
    return begun.messages if isinstance(begun, RunStarted) else None


def _over(state: RunState, going_on: GoingOn) -> bool:
    """Whether a run stays as it is: it has finished, and nothing is given that it could go on with."""
    done = state.stop is not None and state.stop.finished
    more = going_on.limits is not None or going_on.budget is not None
    return state.phase == "finished" and going_on.message is None and (not more or done)


def _told(run: Run, before: RunState, going_on: GoingOn) -> None:
    """Says what is said to the run; where it ended on the model's word, and nobody says anything, that it may go on."""
    question = asked_of(going_on.message, "message")
    if question is not None:
        run.feed(MessageAdded(question, going_on.origin, by=going_on.by))
    elif _has_nothing_to_answer(before):
        run.feed(NudgeGiven(ROOM))
    if going_on.queued is not None:
        run.feed(going_on.queued)


def _has_nothing_to_answer(state: RunState) -> bool:
    """Whether a run ended on the model's word, or was taken up after that by who could not say what for.

    A reply that its provider has paused is gone on with as it is.
    """
    paused = bool(state.steps) and state.steps[-1].finish == "pause"
    return isinstance(state.messages[-1], AssistantMessage) and state.phase in ("finished", "ready") and not paused


async def recorded(
    config: Configuration, what: str, run: str | RunResult[Any]
) -> tuple[Sequence[Event], Journal | None]:
    """The events of a run, and the journal that has them and those of the runs below it; None if none has.

    Raises:
        UnknownRun: the journal has no such run.
        Misuse: it is no run, or there is neither a journal nor a result to read it from; `what` was asked to.
    """
    running_loop()
    if not isinstance(run, (str, RunResult)):
        raise Misuse(f"{what} takes a run's id, or the result of the run; it was given {run!r:.100}")
    journal = config.journal
    if journal is None and isinstance(run, RunResult):
        journal = run.sub_runs
        if journal is None:
            return run.events, None
    if journal is not None:
        return await read_of(journal, run if isinstance(run, str) else run.run_id), journal
    raise Misuse(
        f"run {run!r} cannot be found: this agent keeps no journal. Give it one (journal=SqliteJournal(path)), "
        f"or give {what} the result of the run"
    )
