"""PostgresWorker: fetches orders with procrastinate's workers, drives the runs, and looks after silent workers.

procrastinate fetches, and keeps priorities, locks and heartbeats. What is added is what a heartbeat that stops means:
the job of a silent worker is deleted and its order given out as another, in one transaction. To give out the same job
again, as procrastinate's own recipe has it, would let a worker that was only asleep close the job of the one that
took over; nobody would then see that one die.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from procrastinate import App, JobContext
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import Job
from procrastinate.periodic import PeriodicDeferrer
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.worker import Worker

from treadle.drivers.dispatch import Dispatcher, Order
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.journal import JournalDamaged, JournalUnavailable
from treadle.journal.postgres.address import Address
from treadle.kernel.errors import Misuse
from treadle.workers.deliveries import SILENT, Delivered, Deliveries, QueueUnavailable, WorkerStopped, about_run
from treadle.workers.postgres_closing import CLOSE, Jobs
from treadle.workers.postgres_jobs import DRIVE, FIRST, connector, explained, lock_of, put, queue_of, remedy_of
from treadle.workers.schedule import Schedule

log = logging.getLogger("treadle")

ATTEMPTS: Final = 6
"""Deliveries of a run whose own code raises, before it is left alone; `treadle runs` then says that it is running."""

MISSED: Final = 600.0
"""Seconds after its time at which a run of a schedule is begun no more."""

CLOCK: Final = 30.0
"""Seconds at most between looks at the clock for schedules: while the machine sleeps, no wait comes to its end."""

LOOKS: Final = 8
"""Times a heartbeat that silent workers are looked for, so that no run waits for more than two."""

_POLL: Final = 1.0
"""Seconds at most between looks for orders that nobody announces: those whose time has come."""

_BEAT: Final = "UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = ANY(%(ids)s) RETURNING id"

_STALLED: Final = """
SELECT job.id, job.task_name, job.queue_name, job.args FROM procrastinate_jobs AS job
LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
WHERE job.status = 'doing' AND job.queue_name = ANY(%(queues)s)
AND (worker.id IS NULL OR worker.last_heartbeat < now() - make_interval(secs => %(silent)s))
FOR UPDATE OF job SKIP LOCKED
"""

_DUE: Final = """
SELECT EXISTS (
    SELECT FROM procrastinate_jobs AS job WHERE job.queue_name = ANY(%(queues)s) AND (
        job.status = 'doing' AND job.worker_id = ANY(%(own)s)
        OR job.status = 'todo' AND (job.scheduled_at IS NULL OR job.scheduled_at <= now()) AND NOT EXISTS (
            SELECT FROM procrastinate_jobs AS other
            WHERE other.lock = job.lock AND other.status = 'todo' AND other.queue_name <> ALL(%(queues)s)
            AND (other.priority, -other.id) > (job.priority, -job.id)
        )
    )
) AS due
"""

_LOOK: Final = 0.05
"""Seconds between looks for what is still due, of a worker that is to end when nothing is."""

_AWAY: Final = (JournalUnavailable, BudgetUnavailable, QueueUnavailable)
"""What a delivery that needs something raises while that cannot be reached."""


class _Ended(Exception):
    """The worker is over."""


class _Retries(BaseRetryStrategy):
    """A delivery that failed is made again after 2, 4, 8, … 32 seconds; always, where what it needs is away."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """When the job is done again; None if it is not."""
        away = isinstance(exception, _AWAY) and not isinstance(exception, JournalDamaged)
        if isinstance(exception, Misuse) or (job.attempts + 1 >= ATTEMPTS and not away):
            return None
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=2 ** min(job.attempts + 1, ATTEMPTS - 1)))


class PostgresWorker:
    """What `PostgresQueue.work` runs; its arguments are explained there."""

    def __init__(
        self,
        queue: Dispatcher,
        database: Address,
        per_key: int | None,
        deliveries: Deliveries,
        heartbeat: float,
        schedules: Sequence[Schedule],
    ) -> None:
        self._queue, self._database, self._per_key = queue, database, per_key
        self._deliveries, self._heartbeat = deliveries, heartbeat
        self._connector = connector(database)
        self._app = App(connector=self._connector)
        self._app.job_manager = self._jobs = Jobs(self._connector)
        self._jobs.patience = SILENT * heartbeat
        self._app.task(name=DRIVE, pass_context=True, retry=_Retries())(self._drive)
        self._workers: list[_Worker] = []
        self._ending = False
        self._begins = [queue_of(f"begin {one.name}") for one in schedules]
        for one, name in zip(schedules, self._begins, strict=True):
            begin = self._app.task(name=f"treadle.begin {one.name}", queue=name, retry=_Retries())(
                partial(self._begin, one)
            )
            self._app.periodic(cron=one.cron, periodic_id=one.name)(begin)

    async def run(self, shares: Sequence[tuple[Sequence[str], int]], grace: float, *, once: bool) -> None:
        """Works until it is cancelled, or nothing is left."""
        self._deliveries.check_leases(1.5 * self._heartbeat)
        async with self._app.open_async():
            again = await self._deliveries.queue_again(self._queue, time.time())
            if again:
                log.info("runs that say that they are queued: %d; those that were not any more are queued again", again)
            queues = [([queue_of(name) for name in names], most) for names, most in shares]
            if self._begins:
                queues.append((self._begins, 1))
            self._workers = [self._worker(names, most) for names, most in queues]
            names = [name for found, _ in queues for name in found]
            why: BaseException | None = None
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._stopping(grace))
                    group.create_task(self._watch(names))
                    group.create_task(self._deliveries.keep_queued(self._queue))
                    working = [group.create_task(self._until_stopped(one)) for one in self._workers]
                    if once:
                        await self._until_nothing_is_due(names)
                        self._ending = True
                        for one in self._workers:
                            one.stop()  # type: ignore[no-untyped-call]  # Procrastinate's
                    await asyncio.wait(working)
                    raise _Ended
            except* _Ended:
                pass
            except* (WorkerStopped, QueueUnavailable) as stopped:
                why = stopped.exceptions[0]
            if why is not None:
                # Not in the clause, where Python 3.11.3 and before put it into a group once more.
                raise why from None

    def _worker(self, queues: Sequence[str], concurrency: int) -> "_Worker":
        return _Worker(
            self._app,
            queues=queues,
            concurrency=concurrency,
            fetch_job_polling_interval=min(_POLL, self._heartbeat / 10),
            delete_jobs="successful",
            install_signal_handlers=False,
            update_heartbeat_interval=self._heartbeat,
            stalled_worker_timeout=max(60.0, 10 * self._heartbeat),
        )

    async def _drive(self, context: JobContext, run_id: str, agent: str, key: str) -> None:
        job = context.job
        lock = lock_of(Order(run_id, agent, key), self._per_key)
        if lock is not None and job.lock is None:
            # It was queued for later: now that its time has come it takes its turn.
            await self._put(Order(run_id, agent, key, job.priority), lock)
            return
        try:
            found = await self._deliveries.drive(agent, run_id)
        except asyncio.CancelledError:
            # This worker is to end, and did not wait for the end of the step.
            found = Delivered("queued")
        except JournalDamaged:
            raise
        except _AWAY as away:
            found = Delivered("away", str(away))
        if found.status == "queued":
            # As another order: how often its worker had to end, or what it needs was away, is no attempt at the run.
            await self._put(Order(run_id, agent, key, FIRST), lock)
        elif found.status in ("held", "away"):
            # Its owner may be dead, and its lease not run out yet: there is an order until the run has ended.
            wait = self._heartbeat / (10 if found.status == "held" else 1)
            with explained(self._database):
                later = (await self._jobs.time()).timestamp() + wait
            await self._put(Order(run_id, agent, key, job.priority, later), None)
        log.info("run %s: %s %s", run_id, found.status, found.reason, extra=about_run(run_id, agent))

    async def _put(self, order: Order, lock: str | None) -> None:
        with explained(self._database), suppress(AlreadyEnqueued):
            await put(self._app, order, lock)

    async def _begin(self, schedule: Schedule, timestamp: int) -> None:
        agent, run_id = self._deliveries.agents[schedule.agent], schedule.run_id(timestamp)
        now = (await self._jobs.time()).timestamp()
        if timestamp > now:
            # The clock of the worker that found it is ahead.
            task = f"treadle.begin {schedule.name}"
            again = self._app.configure_task(task, schedule_at=datetime.fromtimestamp(timestamp, UTC))
            await again.defer_async(timestamp=timestamp)
            return
        if min(now, time.time()) - timestamp > MISSED:
            words = "run %s of schedule %s was missed, and is not begun any more"
            log.warning(words, run_id, schedule.name, extra=about_run(run_id, schedule.agent))
            return
        try:
            await agent.submit(
                schedule.input, to=self._queue, key=schedule.name, priority=schedule.priority, run_id=run_id
            )
        except Misuse:
            # It was recorded before in other words, such as those of another version or minute, and may not be queued.
            if not await self._deliveries.queue_recorded(agent, run_id, self._queue):
                raise

    async def _stopping(self, grace: float) -> None:
        """Has the runs pause when the worker is to end, and leaves those that do not."""
        try:
            await asyncio.Event().wait()
        finally:
            self._deliveries.pausing.pause()
            asyncio.get_running_loop().call_later(grace, self._deliveries.pausing.give_up)

    async def _watch(self, queues: Sequence[str]) -> None:
        """Gives signs of life, and takes the orders of workers that give none.

        Raises:
            WorkerStopped: the database was away for so long that others have taken this worker for gone.
        """
        last, task = time.monotonic(), asyncio.current_task()
        # Until Python 3.12 a cancellation may be lost that comes at once with what is waited for.
        while task is not None and not task.cancelling():
            await asyncio.sleep(self._heartbeat / LOOKS)
            try:
                with explained(self._database):
                    await self._beat()
                    await self._take_over(queues)
            except QueueUnavailable as error:
                if time.monotonic() - last > SILENT * self._heartbeat:
                    raise WorkerStopped(f"this worker has lost its database: {error}") from error
                log.warning("a sign of life could not be given: %s", error)
            else:
                last = time.monotonic()

    async def _beat(self) -> None:
        own = {one.worker_id for one in self._workers if one.worker_id is not None}
        rows = await self._connector.execute_query_all_async(_BEAT, ids=list(own))
        struck = own - {row["id"] for row in rows}
        if struck.intersection(one.worker_id for one in self._workers):
            raise WorkerStopped("this worker was silent for so long that others have struck it off; start it again")

    async def _take_over(self, queues: Sequence[str]) -> None:
        silent = SILENT * self._heartbeat
        async with self._connector.pool.connection() as connection:
            found = await connection.execute(_STALLED, {"queues": list(queues), "silent": silent})
            for job_id, task, queue, args in await found.fetchall():
                await connection.execute(CLOSE, {"id": job_id})
                if task != DRIVE:
                    # It was to begin a run of a schedule, which begins once, whoever tries.
                    again = self._app.configure_task(task, queue=queue, connection=connection)
                    await again.defer_async(**args)
                    continue
                order = Order(args["run_id"], args["agent"], args["key"], FIRST)
                with suppress(AlreadyEnqueued):
                    async with connection.transaction():
                        await put(self._app, order, lock_of(order, self._per_key), connection)
                words = "the worker of run %s is silent: the run is queued for another"
                log.warning(words, order.run_id, extra=about_run(order.run_id, order.agent))

    async def _until_nothing_is_due(self, queues: Sequence[str]) -> None:
        """Returns when no run waits that is due, but behind one of an agent that this worker does not have.

        That a worker finds none to fetch does not say so: one may wait for its key.
        """
        due = True
        while due:
            await asyncio.sleep(_LOOK)
            own = [one.worker_id for one in self._workers if one.worker_id is not None]
            with explained(self._database):
                found = await self._connector.execute_query_one_async(_DUE, queues=list(queues), own=own)
            due = found["due"]

    async def _until_stopped(self, worker: "_Worker") -> None:
        """Works until it is told to stop.

        Raises:
            WorkerStopped: it stopped by itself; the message says why.
        """
        running: Awaitable[None] = worker.run()  # type: ignore[no-untyped-call]  # Procrastinate's
        why: BaseException | None
        try:
            await running
        except Exception as error:
            why = error
        else:
            if self._ending:
                return
            why = worker.failed
        cause = None if why is None else why.__cause__ or why
        told = "it ended by itself" if why is None else f"{type(why).__name__}: {cause}"
        remedy = remedy_of(cause, "Start it again")
        raise WorkerStopped(f"this worker has stopped: {self._database.clean(told)}. {remedy}") from why


class _Deferrer(PeriodicDeferrer):
    """Finds the times of schedules that have come, by the clock, and leaves out those that were missed.

    Procrastinate sleeps until the next, however far that is, and makes up for all since the last.
    """

    def get_timestamps(self, periodic_task: Any, since: int | None, until: float) -> Iterable[int]:
        """See `PeriodicDeferrer`."""
        if since is not None:
            # Where the clock was ahead, the last is in the time to come: nothing would come until then.
            since = max(since, int(until - self.max_delay)) if since <= until else None
        return super().get_timestamps(periodic_task, since, until)

    async def wait(self, next_tick: float) -> None:
        """See `PeriodicDeferrer`."""
        await super().wait(min(next_tick, CLOCK))


class _Worker(Worker):
    """Keeps why it stopped, of which procrastinate only writes to its log; its schedules go by the clock."""

    failed: BaseException | None = None

    async def _periodic_deferrer(self) -> None:
        await _Deferrer(self.app.periodic_registry, MISSED).worker()

    async def _monitor_side_tasks(self, side_tasks: list[asyncio.Task[Any]]) -> None:
        try:
            await super()._monitor_side_tasks(side_tasks)
        finally:
            over = [task for task in side_tasks if task.done() and not task.cancelled()]
            self.failed = next((found for task in over if (found := task.exception()) is not None), None)
