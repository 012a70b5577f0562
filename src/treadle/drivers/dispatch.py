"""Dispatch: how a run is begun for a worker to drive, how it is decided on, and how a worker drives it.

Whatever dispatches runs keeps one contract: call `drive(run_id)` until it returns. It may call late, twice, at the same
time from two machines, or in any order: a run has one owner in its journal, and whoever is not it stops before it does
anything. What is to be driven stands in the journal first: a run whose dispatch got lost is there, says that it is
queued, and can be dispatched again. Only names cross to the dispatcher; what was said and found stays in the journal.
"""

import asyncio
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.drivers.beginning import Asked, begun, by_chance
from treadle.drivers.checks import with_budgets
from treadle.drivers.configuration import Configuration
from treadle.drivers.drive import DRIVER, drive, end
from treadle.drivers.purse.budget import checked_name
from treadle.drivers.purse.drawing import Budgets
from treadle.drivers.run import Run
from treadle.drivers.taking_up import GoingOn, recorded, standing, taken_up
from treadle.drivers.undisturbed import undisturbed
from treadle.event_loop import running_loop
from treadle.journal import JournalConflict
from treadle.journal.families import is_there
from treadle.journal.ones_own import read_of, standing_of
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, Queued, RunFinished, RunForked, RunPaused, RunStarted, StepPrepared
from treadle.kernel.stop import Stop, stopped
from treadle.result import RunResult

QUEUED: Final = Stop("waiting", "queued", "A worker goes on with it; `treadle worker` starts one.")
"""Why a run waits that a worker is to drive."""

MOST_NAME: Final = 500
"""Bytes of a name that a queue is given; PostgreSQL indexes 2,704, and Temporal takes 1,000 characters."""

_ATTEMPTS: Final = 5
"""How often a run that goes on meanwhile is taken from whoever drives it."""


class Order(Struct, frozen=True):
    """A run that a worker is to drive.

    Attributes:
        run_id: the run.
        agent: the name of its agent.
        key: in whose turn it runs, such as a user or a tenant; empty for nobody's.
        priority: those with a higher one go first.
        at: Unix seconds before which it does not begin; None for at once.
    """

    run_id: str
    agent: str
    key: str = ""
    priority: int = 0
    at: float | None = None


class Dispatcher(Protocol):
    """Brings runs to workers. Any queue that delivers at least once will do."""

    async def accept(self, agent: str) -> None:
        """Looks whether one more run of `agent` may be queued, before anything of it is recorded.

        Raises:
            QueueFull: too many wait.
        """

    async def dispatch(self, order: Order) -> None:
        """Has a worker drive the run. When it returns, the order outlives this process.

        An order of a run that waits for a worker already may be dropped.
        """


class QueueFull(RuntimeError):
    """As many runs wait for a worker as may; nothing was recorded. Try again later, or start another worker."""


class Pausing:
    """The runs that this process drives, to be paused or left when it is to end.

    Args:
        stop: why they then wait; None for a worker that goes on with them.
    """

    def __init__(self, stop: Stop | None = None) -> None:
        self._stop = stop
        self._runs: dict[Run, asyncio.Task[Any] | None] = {}
        self._wanted = False

    @property
    def wanted(self) -> bool:
        """Whether runs are to pause."""
        return self._wanted

    def pause(self) -> None:
        """Has each run pause before its next step, for another worker to go on with."""
        self._wanted = True
        for run in self._runs:
            self._ask(run)

    def give_up(self, run_id: str | None = None) -> None:
        """Leaves each run, or that one, as if this process had died: cancels what is under way, and records nothing."""
        for run, task in self._runs.items():
            if run_id is None or run.run_id == run_id:
                run.driven.given_up = True
                if task is not None:
                    task.cancel()

    @contextmanager
    def holding(self, run: Run) -> Iterator[None]:
        """`run` is driven in this task."""
        self._runs[run] = asyncio.current_task()
        if self._wanted:
            self._ask(run)
        try:
            yield
        finally:
            del self._runs[run]

    def _ask(self, run: Run) -> None:
        # One that a person asked for is for that person to end, and for no process that comes after this one.
        if run.pause_wanted is None:
            queued = None if self._stop is not None else run.driven.order or Queued()
            run.pause_wanted = RunPaused(self._stop or QUEUED, queued)


def sent_name(where: str, name: object) -> str:
    """`name`, if every queue takes it: a text of 500 bytes at most, without control characters.

    Raises:
        Misuse: it is none.
    """
    text = checked_name(where, name)
    if len(text.encode()) > MOST_NAME or any(unicodedata.category(sign) == "Cc" for sign in text):
        raise Misuse(
            f"{where} takes a text of {MOST_NAME} bytes at most without control characters, for queues refuse others; "
            f"it was given {text!r:.100}"
        )
    return text


def own_run_id(run_id: object, where: str = "run_id") -> str:
    """A run's id that somebody chose, if queues, the command line and addresses take it.

    Raises:
        Misuse: it is none.
    """
    text = sent_name(where, run_id)
    if text == "last" or text.startswith("-"):
        raise Misuse(
            f'{where} takes a name that the command line can say: not "last", which means the newest run, and '
            f'without a "-" at its beginning; it was given {text!r:.100}'
        )
    if "." in text:
        raise Misuse(
            f"{where} takes a name with no dot, which is in the names of runs that work for others; it was given "
            f"{text!r:.100}"
        )
    if "/" in text:
        raise Misuse(
            f"{where} takes a name with no /, where servers and proxies part addresses, also if it is escaped; it "
            f"was given {text!r:.100}"
        )
    return text


def queued_as(key: str | None, priority: int, at: datetime | None) -> Queued:
    """How a run waits for a worker.

    Raises:
        Misuse: a queue does not take the key; the priority is no whole number of 32 bits; the time has no zone, or
            cannot be told in UTC.
    """
    if isinstance(priority, bool) or not isinstance(priority, int) or not -(2**31) <= priority < 2**31:
        raise Misuse(f"priority takes a whole number, the higher the sooner; it was given {priority!r:.100}")
    if at is not None and (not isinstance(at, datetime) or at.tzinfo is None):
        raise Misuse(f"at takes a datetime with its zone, such as datetime.now(UTC) + …; it was given {at!r:.100}")
    return Queued(
        "" if key is None else sent_name("key, which is the user's name if none is given,", key), priority, _seconds(at)
    )


def _seconds(at: datetime | None) -> float | None:
    if at is None:
        return None
    try:
        seconds = at.timestamp()
        datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise Misuse(f"at takes a time that can be told in UTC, of the years 1 to 9999; it was given {at!s}") from None
    return seconds


async def submitted(config: Configuration, asked: Asked, to: Dispatcher, queued: Queued) -> str:
    """Records a run that waits for a worker, and dispatches it; its id.

    Raises:
        Misuse: the question cannot be right, the agent keeps no journal, the id is that of another run, or a queue does
            not take a name.
        QueueFull: too many wait; nothing was recorded.
    """
    running_loop()
    if config.journal is None:
        raise Misuse("submit needs a journal that the workers share: Agent(…, journal=PostgresJournal(url))")
    sent_name("Agent(name=…) of an agent whose runs are submitted", config.name)
    if asked.run_id is not None:
        own_run_id(asked.run_id)
    if asked.user is not None:
        sent_name("user", asked.user)
    try:
        await to.accept(config.name)
    except QueueFull:
        # One that is there already is no further one, and its order may be among those that wait.
        if asked.run_id is None or not await is_there(config.journal, asked.run_id):
            raise
    run = await begun(config, asked._replace(nonce=0 if asked.run_id is None else by_chance()))
    run.feed(RunPaused(QUEUED, queued))
    try:
        await run.commit()
    except JournalConflict as conflict:
        if asked.run_id is None or conflict.found == 0:
            raise
        events = await read_of(config.journal, asked.run_id)
        _require_same(run, events)
        # By what was read here: a worker may have brought it to a person since, who is none of this caller's concern.
        if standing_of(events).phase != "finished" and not _waits_for_somebody(events):
            await to.dispatch(order_of(events))
        return asked.run_id
    await to.dispatch(_order(run.run_id, config.name, queued))
    return run.run_id


async def submitted_again(config: Configuration, run_id: str, going_on: GoingOn, to: Dispatcher) -> str:
    """Records what was decided of a run, and dispatches it; its id. One that has finished is not dispatched.

    Raises:
        UnknownRun: the journal has no such run.
        RunHeld: something is decided of it, and it is under way.
        Misuse: it waits for a decision and none is given, one that is given does not fit, or it works for another run.
    """
    events, _ = await recorded(config, "resubmit", run_id)
    state = standing(events, going_on)
    order = _again(events)
    more = going_on.limits is not None or going_on.budget is not None or going_on.message is not None
    if going_on.answers or more:
        done = list[bool]()

        async def work() -> None:
            done.append(await _queued_with(config, run_id, going_on._replace(queued=RunPaused(QUEUED, order))))

        # Half of it would be a run that is under way, and that no worker looks for.
        await undisturbed(work)
        if not done.pop():
            return run_id
    elif state.phase == "finished":
        return run_id
    elif _waits_for_somebody(events):
        waits = state.stop.detail if state.stop is not None else ""
        raise Misuse(f"run {run_id} waits ({waits}): say what was decided, with approve=, deny=, results= or message=")
    await to.dispatch(_order(run_id, state.agent, order))
    return run_id


async def _queued_with(config: Configuration, run_id: str, going_on: GoingOn) -> bool:
    """Records what was decided of a run, and that it waits for a worker; whether anything is left to do for it."""
    run, _, to_do = await taken_up(config, run_id, going_on)
    if to_do:
        run.let_go()
    return to_do


async def carried(
    config: Configuration, run_id: str, going_on: GoingOn, pausing: Pausing | None = None
) -> RunResult[Any]:
    """Drives a run to its end or to a pause. One that has finished, or waits for a person, is left as it is.

    Raises:
        UnknownRun: the journal has no such run.
        RunHeld: somebody else drives it; there may be something to do once that one is gone.
        JournalConflict: somebody else has taken it over.
        Misuse: this agent may not take it up.
    """
    events, _ = await recorded(config, "drive", run_id)
    state = standing_of(events)
    if _waits_for_somebody(events):
        return Run(config, DRIVER, state=state).result_after(events)
    # Others go on with what a worker leaves.
    run, earlier, to_do = await taken_up(config, run_id, going_on._replace(left=pausing is not None))
    if not to_do:
        return run.result_after(earlier)
    run.driven.order = replace(_again(earlier), at=None)
    try:
        with (pausing or Pausing()).holding(run):
            await drive(run)
    finally:
        run.let_go()
        run.release()
    return run.result_after(earlier)


async def cancelled(
    config: Configuration, run: str | RunResult[Any], stop: Stop | None = None, budget: Budgets = None
) -> RunResult[Any]:
    """Ends a run, whoever drives it: that one's next append fails, and it does nothing more.

    Raises:
        UnknownRun: the journal has no such run.
        JournalConflict: it goes on too fast to be caught; ask again. Only where the journal keeps no leases.
    """
    # As the agent's own: one that has ended does not go on for it.
    config, ended = with_budgets(config, budget), list[RunResult[Any]]()

    async def work() -> None:
        ended.append(await _cancelled(config, run, stop))

    # A tool or a hook of the very run may ask for it, which is cancelled as soon as that is taken from its driver.
    await undisturbed(work)
    return ended.pop()


async def _cancelled(config: Configuration, run: str | RunResult[Any], stop: Stop | None) -> RunResult[Any]:
    attempts = _ATTEMPTS
    while True:
        try:
            return await _cancelled_now(config, run, stop)
        except JournalConflict:
            attempts -= 1
            if not attempts:
                raise


async def _cancelled_now(config: Configuration, of: str | RunResult[Any], stop: Stop | None) -> RunResult[Any]:
    run, earlier, to_do = await taken_up(config, of, GoingOn(elsewhere=True, takeover=True, ended=True))
    if not to_do:
        return run.result_after(earlier)
    try:
        await end(run, stop or stopped("cancelled"))
    finally:
        run.let_go()
        run.release()
    return run.result_after(earlier)


def is_queued(events: Sequence[Event]) -> bool:
    """Whether the run waits for a worker."""
    last = events[-1]
    return isinstance(last, RunPaused) and last.queued is not None


def _waits_for_somebody(events: Sequence[Event]) -> bool:
    """Whether the run has paused, and not for a worker."""
    return standing_of(events).phase == "paused" and not is_queued(events)


def order_of(events: Sequence[Event]) -> Order:
    """The order by which a run was last queued."""
    state = standing_of(events)
    return _order(state.run_id, state.agent, _queued_last(events) or Queued())


def _queued_last(events: Sequence[Event]) -> Queued | None:
    pauses = (event.queued for event in reversed(events) if isinstance(event, RunPaused))
    return next((queued for queued in pauses if queued is not None), None)


def _order(run_id: str, agent: str, queued: Queued) -> Order:
    return Order(run_id, agent, queued.key, queued.priority, queued.at)


def _again(events: Sequence[Event]) -> Queued:
    """How a run is queued again: not before its time, unless somebody has begun, forked or ended it before."""
    order = _queued_last(events) or Queued()
    begun = any(isinstance(event, StepPrepared | RunForked | RunFinished) for event in events)
    return replace(order, at=None) if begun else order


def _require_same(run: Run, events: Sequence[Event]) -> None:
    """Refuses a run that is begun twice under one id, with another question."""
    first, mine = events[0], run.state.started
    if not isinstance(first, RunStarted) or (first.agent, first.messages) != (mine.agent, mine.messages):
        raise Misuse(
            f"there is a run {run.run_id!r} already, of another agent, or with another question or other instructions "
            "as they are recorded: give each its own, or resubmit the one that is there"
        )
