"""Drive: the loop. Asks the run what is next, carries it out, until the run has finished or is paused.

    perceive  PrepareStep  assemble the request
    think     CallModel    call the model
    act       RunTools     carry out the tool calls (`drivers/calls/door.py`)

The deadline is one scope around all of it: when it is reached, or when another process is found to have taken the run
over, whatever is in flight is cancelled.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, assert_never
from weakref import ref

from msgspec.structs import replace

from treadle.context.policies import DEFAULT
from treadle.drivers.calls.door import act
from treadle.drivers.calls.early import Early
from treadle.drivers.calls.subrun import cut_short, left_below
from treadle.drivers.commit import commit_before_asking
from treadle.drivers.compact import compact, make_room, overflowed
from treadle.drivers.configuration import StepSettings
from treadle.drivers.driven import ENDS_A_TASK, cancelled_itself
from treadle.drivers.hooks import objection_of, settings_of
from treadle.drivers.lease import hold
from treadle.drivers.outcome import handed_on
from treadle.drivers.output import answer_in, sent_back
from treadle.drivers.purse.claims import settle
from treadle.drivers.run import Driver, Run
from treadle.drivers.stock import serving, take_stock
from treadle.drivers.think import seconds_left, think
from treadle.drivers.turn import prepared_in_turn
from treadle.drivers.undisturbed import undisturbed
from treadle.journal import JournalError
from treadle.kernel.decide import CallModel, Finish, Nudge, Pause, PrepareStep, RunTools
from treadle.kernel.events import Event, NudgeGiven, RunFinished
from treadle.kernel.state import RunState
from treadle.kernel.stop import LIMIT_REASONS, Stop, stopped
from treadle.result import RunResult

CALLED = "mcp"
"""The origin of a run that is one call of a tool, which somebody else asked for."""

_ONE_STEP = Stop(
    "max_steps",
    "one step was made; to go on, call step again with result.messages",
    "To have all the steps made that a task takes, use run.",
)


async def drive(run: Run) -> None:
    """Carries `run` to its end, or to a pause. Whatever happens, what was recorded is valid and can be continued.

    Raises:
        JournalError: the journal failed, or another process has taken the run over.
        asyncio.CancelledError: this task was cancelled; the run is recorded as `cancelled`.
        Exception: the agent's own code (`prepare_step`, a stop condition, a hook) raised it; the run can be resumed.
    """
    is_top = run.parent is None
    if is_top:
        await hold(run)
    try:
        await run.driven.carry(partial(_driven, run))
    finally:
        if is_top:
            run.let_go()


async def _driven(run: Run) -> None:
    run.at_work.here()
    lease = run.lease
    deadline = run.driven.deadline = asyncio.timeout(seconds_left(run))
    try:
        try:
            await run.driven.heed()
            async with serving(run.config.servers), deadline:
                if lease is not None and run.parent is None:
                    lease.when_lost(_at_once(run, deadline))
                await _steps(run)
        except BaseException as error:
            if not _is_the_applications(run, deadline, error):
                raise
            # A deadline above, or a cancellation, may come before it is written: the run ends by that then.
            await _broken_off(run)
            if isinstance(error, asyncio.CancelledError):
                raise cancelled_itself("a function of the application's", error) from error
            raise
    except TimeoutError:
        if not deadline.expired():
            raise
        await _late(run)
    except asyncio.CancelledError:
        if run.driven.is_given_up():
            raise
        # What a task group of the application's has left behind keeps the scope of the deadline from telling its own.
        if not deadline.expired() or run.driven.is_told():
            await end(run, run.driven.cancelled_as)
            raise
        await _late(run)
    await run.commit()


async def _late(run: Run) -> None:
    """Ends a run whose deadline is over. Raises JournalConflict where it was taken over, which ends that scope too."""
    run.driven.deadline = None
    if run.lease is not None:
        run.lease.require()
    limit = run.state.limits.seconds
    await end(run, stopped("deadline", f"the time limit of {limit:g} s is reached."))


def _is_the_applications(run: Run, deadline: asyncio.Timeout, error: BaseException) -> bool:
    """Whether a function of the application's raised it: neither the journal nor whoever ends the run."""
    if isinstance(error, asyncio.CancelledError):
        return not (run.driven.is_given_up() or run.driven.is_cancelled())
    ended = isinstance(error, TimeoutError) and deadline.expired()
    return not isinstance(error, (*ENDS_A_TASK, GeneratorExit, JournalError)) and not ended


def _at_once(run: Run, deadline: asyncio.Timeout) -> Callable[[], None]:
    """Ends the scope of `deadline` now, from any thread, unless the run is over by then."""
    # What keeps its lease must not keep it: where its event loop was closed under it, or forgotten, it is collected.
    loop_of, run_of, scope_of = ref(asyncio.get_running_loop()), ref(run), ref(deadline)

    def expire() -> None:
        run, scope = run_of(), scope_of()
        # Its end may have been reached meanwhile.
        with suppress(RuntimeError):
            if run is not None and scope is not None and run.state.phase not in ("paused", "finished"):
                scope.reschedule(asyncio.get_running_loop().time())

    def told() -> None:
        loop = loop_of()
        # The loop may be closed by now.
        with suppress(RuntimeError):
            if loop is not None:
                loop.call_soon_threadsafe(expire)

    return told


async def _broken_off(run: Run) -> None:
    """The application's own code raised. What runs below have used stays claimed until they are taken up again."""
    if run.state.phase == "prepared":
        settle(run)
    await run.commit()


async def end(run: Run, stop: Stop) -> None:
    """Finishes `run` for a reason from outside, unless it already has.

    A cancellation that comes while those below are being ended is raised when they are: what they took would be lost.

    Raises:
        JournalError: a run below it could not be ended: it has not ended either, and can be taken up again.
    """
    try:
        await undisturbed(partial(_settle_below, run))
    except JournalError:
        raise
    except BaseException:
        await _finished(run, stop)
        raise
    await _finished(run, stop)


async def _finished(run: Run, stop: Stop) -> None:
    if not run.finished:
        run.feed(RunFinished(stop))
    await run.commit()


async def _settle_below(run: Run) -> None:
    """Ends the runs below that nobody goes on with as the run ends, and records what they took."""
    step = run.state.step
    for record in () if step is None else step.calls:
        spent = await left_below(run, record)
        if spent is not None:
            run.feed(cut_short(run, record, spent))


DRIVER = Driver(drive, act, end)
"""Who carries out the runs of agents."""


async def _steps(run: Run) -> None:
    if not run.recorded and not _goes_on_at_once(run):
        # What a run sets aside that is in no journal nobody could ever give back; and one that waits for a function of
        # the application's, which is told its id, or for a server, can be looked at and cancelled by then.
        await run.commit()
    if not run.config.eager:
        await _loop(run, None)
        return
    failure: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            early = Early(run, group)
            try:
                await _loop(run, early)
            except ENDS_A_TASK:
                raise
            except BaseException as error:
                # Raised below, outside the group, which would wrap it.
                failure = error
                if not isinstance(error, JournalError | GeneratorExit):
                    await early.come_back()
            finally:
                early.stop()
    except asyncio.CancelledError:
        if not isinstance(failure, JournalError):
            raise
    # A journal that failed goes before what a function of the application's raised: no more of it can be recorded.
    failure = early.failure or failure
    if failure is not None:
        raise failure


async def _loop(run: Run, early: Early | None) -> None:
    while True:
        if not run.driven.goes_on():
            await run.driven.heed()
        match run.next() if run.config.stop_when is None else await run.judged():
            case PrepareStep() as command:
                if run.pause_wanted is not None:
                    run.feed(run.pause_wanted)
                    return
                over = one_step_made(run, command)
                if over is not None:
                    run.feed(over)
                    return
                if run.config.servers and await take_stock(run):
                    again = await run.judged()
                    if not isinstance(again, PrepareStep):
                        continue
                    command = again
                await perceive(run, command)
                if run.writes:
                    await commit_before_asking(run)
            case CallModel():
                if run.driven.is_late():
                    await run.driven.in_time()
                hear = None if early is None else early.hear
                await think(run, hear)
                if overflowed(run) and await make_room(run):
                    await run.commit()
                    await think(run, hear)
                if early is not None:
                    early.replied()
            case RunTools(records=records):
                await act(run, records, goes_on=run.writes and _goes_on_at_once(run))
            case Nudge() | Pause() as command:
                run.feed(command.event())
            case Finish() as command:
                await finish(run, command)
            case None:
                if early is None or not await early.settle():
                    return
            case unknown:
                assert_never(unknown)


def _goes_on_at_once(run: Run) -> bool:
    """Whether nobody is asked, or waited for, before the next step: no hook, server, model or budget.

    A writer's thread begins when the event loop has nothing more to do: so what is handed over with the next step is
    not stored later than if it had been handed over before.
    """
    config = run.config
    asks = config.stop_when is not None or config.prepare_step or config.servers or run.purses
    return not asks and config.context in (None, (), DEFAULT)


def one_step_made(run: Run, command: PrepareStep) -> RunFinished | None:
    """The end of a run that was to make one step, and has made it."""
    if not (run.state.started.one_step and len(run.state.steps) > run.state.taken_up):
        return None
    limit = command.landing
    if limit is not None and limit.reason != "max_steps":
        return RunFinished(limit)
    return RunFinished(_call_made(run.state) if run.state.started.origin == CALLED else _ONE_STEP)


def _call_made(state: RunState) -> Stop:
    """The end of a run that was begun for one call of a tool: that call is its task."""
    (record,) = state.steps[-1].calls
    if record.is_error:
        advice = "Its result says what went wrong."
        return Stop("consecutive_errors", f"the call of {record.name} was answered with an error", advice)
    return Stop("answered", f"the call of {record.name} was answered with its result")


async def perceive(run: Run, command: PrepareStep) -> None:
    """Chooses the step's request: what of the history fits, what `prepare_step` says, within what the limits leave."""
    chosen = await choose(run, command)
    if chosen is not None:
        # Only budgets may have to be waited for.
        run.feed(await prepared_in_turn(run, *chosen) if run.purses else run.prepare(*chosen))


async def choose(run: Run, command: PrepareStep) -> tuple[PrepareStep, StepSettings | None] | None:
    """The step that is to be made, and what `prepare_step` chose for it; None if none is after all."""
    if run.config.context and await compact(run):
        again = await run.judged()
        if not isinstance(again, PrepareStep):
            return None
        command = again
    return command, await settings_of(run, command.step) if run.config.prepare_step else None


async def driven(run: Run, earlier: Sequence[Event] = ()) -> RunResult[Any]:
    """Carries `run` to its end, or to a pause, and gives back what it was lent: what came of it.

    Args:
        run: a run that has begun, or was taken up.
        earlier: its events that this process has not added.

    Raises:
        RunStopped: a limit was reached, and it was begun with `on_limit="raise"`; never for a single step, which is a
            part of a loop that looks at the reason itself.
        Exception: as `drive`.
    """
    try:
        await drive(run)
    finally:
        run.release()
    result, state = run.result_after(earlier), run.state
    raises = state.on_limit == "raise" and not state.started.one_step
    return result.require() if raises and result.stop.reason in LIMIT_REASONS else result


async def finish(run: Run, command: Finish) -> None:
    """Ends the run, if its answer is what was asked for; else tells the model what is wrong with it."""
    output, event, stop, state = run.config.output, command.event(), command.stop, run.state
    answered = stop.reason == "answered" and not state.handed_on
    # An output that was read may be None, as that of `output=int | None`.
    found = output is None or stop.reason == "external_tool" or event.output is not None
    answer: Any = state.text
    refused = False
    try:
        if output is None or stop.reason == "external_tool":
            pass
        elif state.handed_on:
            event, found = replace(event, output=handed_on(run.config, state)), True
        elif state.phase == "replied" or (stop.reason == "condition" and len(state.steps) > 0):
            answer, json = answer_in(state.steps[-1], output)
            if not (refused := stop.reason == "condition" and sent_back(state)):
                event, found = replace(event, output=json), True
    except ValueError as error:
        event, found = replace(event, output=None), False
        if answered and output is not None:
            run.feed(NudgeGiven(f"That is not a valid {output.name}. {error}", fault=True))
            return
    if answered and run.config.on_answer:
        await run.commit()
        if wrong := await objection_of(run, answer):
            run.feed(NudgeGiven(wrong, fault=True))
            return
        if len(run.state.messages) > len(state.messages):
            # Somebody said something meanwhile, which was taken: the model is to answer that too.
            return
    if stop.finished and not found and output is not None:
        holds = "what came back of the hand-off is" if state.handed_on else "the last reply holds"
        why = "the last reply was sent back" if refused else f"{holds} no {output.name}"
        detail = f"{stop.detail}; there is no output: {why}".lstrip("; ")
        event = replace(event, stop=replace(stop, detail=detail))
    run.feed(event)
