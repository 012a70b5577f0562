"""Deliveries: what a worker does with the runs that a queue brings it, whichever queue that is."""

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from math import inf, isfinite
from typing import Any, Final, Literal

from msgspec import Struct

from treadle.agent import Agent
from treadle.drivers.dispatch import QUEUED, Dispatcher, Pausing, is_queued, order_of
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.journal import (
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    Leases,
    RunHeld,
    RunInfo,
    UnknownRun,
    Wanted,
)
from treadle.journal.families import every, is_there
from treadle.journal.ones_own import cancels_itself, read_of
from treadle.kernel.errors import Misuse, PassesThrough
from treadle.result import RunResult
from treadle.tools.raised import log_raised

log = logging.getLogger("treadle")

Deps = Callable[[str], Any] | None
"""What gives the tools of a run, named by its id, their dependencies; it may be asynchronous."""

SILENT: Final = 1.25
"""Heartbeats after which a worker counts as gone: others have its runs before two are over."""

LOST_AFTER: Final = 60.0
"""Seconds after which a run that says that it is queued, and that no queue may know of, is queued again."""

LOOK: Final = 60.0
"""Seconds between two looks for such runs, by a worker that is up."""

_SHARE: Final = 20
"""How many times as long as a look takes it is until the next one, at least: very many runs may wait."""


class WorkerStopped(RuntimeError):
    """The worker ended by itself, such as where its database went away. Its runs go on elsewhere; start it again."""


class QueueUnavailable(PassesThrough):
    """The queue cannot be used. What was recorded is in the journal, and can be dispatched again."""


class OrderRefused(QueueUnavailable):
    """The queue can be used, and does not take this order."""


class RunRaised(Exception):
    """A run was stopped by an error that nobody expected, such as one of the application's own code.

    Its words may have in them what was said. They stay in this worker's log, as the run's journal would have them: what
    carries runs to workers logs, or keeps, whatever a delivery raises.
    """


class Delivered(Struct, frozen=True):
    """What has come of a delivery.

    Attributes:
        status: "finished"; "waiting" for a person; "queued" again, because this worker is to end; "held" by somebody
            else, who drives it: look again later; "elsewhere" if somebody else has the run, and its journal cannot say
            whether that one lives; "unknown" if it was deleted; "away" if something that it needs cannot be reached:
            look again later.
        reason: why it ended or waits, in a word.
    """

    status: Literal["finished", "waiting", "queued", "held", "elsewhere", "unknown", "away"]
    reason: str = ""


class Deliveries:
    """The agents of a worker, by name, and the runs of theirs that it drives.

    Raises:
        Misuse: there is no agent, two have one name, or one keeps no journal.
    """

    def __init__(self, agents: Iterable[Agent[Any, Any]], deps: Deps = None) -> None:
        self.agents: dict[str, Agent[Any, Any]] = {}
        self.pausing = Pausing()
        self._deps = deps
        # When the last event came to the runs that were found to be queued, and need not be queued once more.
        self._queued: dict[str, float] = {}
        for agent in agents:
            if self.agents.setdefault(agent.name, agent) is not agent:
                raise Misuse(f"two agents of the worker are called {agent.name!r}: give each its own, Agent(name=…)")
            if agent.journal is None:
                raise Misuse(f"agent {agent.name!r} keeps no journal; a worker drives what is recorded: journal=…")
        if not self.agents:
            raise Misuse("a worker needs an agent whose runs it is to drive")

    def check_leases(self, longest: float) -> None:
        """Warns where a run is held for longer than `longest` seconds after its worker has gone silent."""
        for agent in self.agents.values():
            journal = agent.journal
            if isinstance(journal, Leases) and longest < journal.lease < inf:
                log.warning(
                    "runs of agent %s wait for %g s when a worker on another machine dies, for so long do its leases "
                    "last; give the journal lease=%g", agent.name, journal.lease, longest,
                )  # fmt: skip

    async def drive(self, agent: str, run_id: str) -> Delivered:
        """Drives a run to its end or to a pause, unless it is no longer for this worker to drive.

        Raises:
            JournalError, BudgetUnavailable, QueueUnavailable: something that it needs cannot be used.
            Misuse: the agent may not take it up.
            RunRaised: the application's own code raised; the run can be driven again.
        """
        try:
            return await self._drive(agent, run_id)
        except (JournalError, BudgetUnavailable, QueueUnavailable, Misuse):
            raise
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not cancels_itself():
                raise
            # A cancellation that nobody asked for, such as that of a pool, is the application's own too.
            what, about = f"run {run_id} was stopped by an error", about_run(run_id, agent)
            redact = getattr(self.agents[agent].journal, "redact", None)
            log_raised(what, error, redact, about, level=logging.ERROR)
            told = RunRaised(f"{what} of type {type(error).__name__}; the log of its worker has it")
        raise told

    async def _drive(self, agent: str, run_id: str) -> Delivered:
        deps = None if self._deps is None else self._deps(run_id)
        if inspect.isawaitable(deps):
            deps = await deps
        one = self.agents[agent]
        try:
            result = await one.drive(run_id, deps=deps, pausing=self.pausing)
        except (RunHeld, JournalConflict) as elsewhere:
            log.info("run %s goes on elsewhere: %s", run_id, elsewhere, extra=about_run(run_id, agent))
            return Delivered("held" if isinstance(one.journal, Leases) else "elsewhere")
        except UnknownRun:
            log.warning("run %s is not in the journal: it was deleted", run_id, extra=about_run(run_id, agent))
            return Delivered("unknown")
        return delivered(result)

    async def queue_recorded(self, agent: Agent[Any, Any], run_id: str, queue: Dispatcher) -> bool:
        """Dispatches a run that says that it is queued, if it is there: whether it is."""
        journal = agent.journal
        if journal is None or not await is_there(journal, run_id):
            return False
        events = await read_of(journal, run_id)
        if is_queued(events):
            await queue.dispatch(order_of(events))
        return True

    async def keep_queued(self, queue: Dispatcher) -> None:
        """Looks now and then for runs that say that they are queued and may not be, until it is cancelled.

        Whoever submitted one may have found the queue's database away.
        """
        took, task = 0.0, asyncio.current_task()
        # Until Python 3.12 a cancellation may be lost that comes at once with what is waited for.
        while task is not None and not task.cancelling():
            await asyncio.sleep(max(LOOK, _SHARE * took))
            began = time.monotonic()
            try:
                if again := await self.queue_again(queue, time.time()):
                    log.info(
                        "runs that say that they are queued: %d; those that were not any more are queued again", again
                    )
            except (JournalError, QueueUnavailable) as error:
                log.warning("it cannot be told which runs are to be queued again: %s", error)
            took = time.monotonic() - began
        raise asyncio.CancelledError

    async def queue_again(self, queue: Dispatcher, now: float) -> int:
        """Dispatches runs that say that they are queued and have stood so for a minute, each once: how many.

        Whoever submitted one may have died before it was dispatched. Of one that is in its place nothing comes.
        """
        stand = [line for agent in self.agents.values() async for line in _queued(agent, now)]
        before, self._queued = self._queued, {}
        found = 0
        for line in stand:
            if before.get(line.run_id) == line.updated_at or await self._queue_again(line, queue):
                self._queued[line.run_id] = line.updated_at
                found += before.get(line.run_id) != line.updated_at
        return found

    async def _queue_again(self, line: RunInfo, queue: Dispatcher) -> bool:
        """Dispatches a run; whether that is all that can be done for it."""
        journal = self.agents[line.agent].journal
        assert journal is not None  # noqa: S101 - there was none otherwise
        try:
            await queue.dispatch(order_of(await read_of(journal, line.run_id)))
        except (JournalError, OrderRefused) as error:
            log.warning(
                "run %r of agent %s cannot be queued again: %s. The others go on; end it with "
                "agent.cancel(%r), or agent.resubmit(%r, to=queue) once what is said is mended",
                line.run_id, line.agent, error, line.run_id, line.run_id,
                extra=about_run(line.run_id, line.agent),
            )  # fmt: skip
            return isinstance(error, JournalDamaged) or not isinstance(error, JournalUnavailable)
        return True


async def _queued(agent: Agent[Any, Any], now: float) -> AsyncIterator[RunInfo]:
    """The runs of an agent that have said for a minute that they are queued."""
    if agent.journal is None:
        return
    async for line in every(agent.journal, Wanted(status="waiting", agent=agent.name)):
        # For how long one has stood so whose time lies ahead, by a clock that was set since, nobody can say.
        if line.stop == QUEUED and abs(now - line.updated_at) >= LOST_AFTER:
            yield line


def about_run(run_id: str, agent: str) -> dict[str, object]:
    """The fields of a line about a run."""
    return {"run_id": run_id, "agent": agent}


def delivered(result: RunResult[Any]) -> Delivered:
    """What `result` says of the delivery that it came of."""
    reason = result.stop.reason
    if reason != "waiting":
        return Delivered("finished", reason)
    return Delivered("queued" if is_queued(result.events) else "waiting", reason)


def at_once(concurrency: int | Mapping[str, int], agents: Iterable[str]) -> list[tuple[tuple[str, ...], int]]:
    """How many runs of which agents together may be under way.

    Raises:
        Misuse: a number is none, or is given for an agent that is not there.
    """
    names = tuple(agents)
    if not isinstance(concurrency, Mapping):
        concurrency = {"": concurrency}
    for name, most in concurrency.items():
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise Misuse(f"concurrency takes how many runs may be under way at once, 1 or more; it was given {most!r}")
        if name and name not in names:
            raise Misuse(f"concurrency is given for agent {name!r}; this worker has {', '.join(names)}")
    own = [((name,), most) for name, most in concurrency.items() if name]
    rest = tuple(name for name in names if name not in concurrency)
    return [*own, *([(rest, concurrency.get("", DEFAULT))] if rest else [])]


def checked_seconds(name: str, given: float) -> float:
    """`given`, if it is a number of seconds above 0.

    Raises:
        Misuse: it is none.
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given) or given <= 0:
        raise Misuse(f"{name} takes a number of seconds above 0; it was given {given!r:.100}")
    return given


DEFAULT: Final = 10
"""Runs that a worker drives at once."""
