"""PostgresQueue: orders in PostgreSQL, in the journal's own database, kept by procrastinate."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from procrastinate import App
from procrastinate.exceptions import AlreadyEnqueued

from treadle.agent import Agent
from treadle.drivers.dispatch import Order, QueueFull
from treadle.event_loop import running_loop
from treadle.kernel.errors import Misuse
from treadle.workers.deliveries import DEFAULT, Deliveries, Deps, at_once, checked_seconds
from treadle.workers.postgres_jobs import (
    connector,
    database_of,
    explained,
    lock_of,
    make_tables,
    put,
    queue_of,
    withdraw_others,
)
from treadle.workers.postgres_worker import PostgresWorker
from treadle.workers.schedule import Schedule


class PostgresQueue:
    """A queue in PostgreSQL. Its tables, those of procrastinate, are made when they are first needed.

    One object serves one event loop.

    Args:
        url: the database, as for `PostgresJournal`, and best the same: then one backup has both.
        per_key: how many runs of one key may be under way at once, on all workers together; None for any number. All
            who submit are to say the same.
        most_waiting: how many runs of an agent may wait; `submit` refuses more with `QueueFull`. None for any number.

    Raises:
        Misuse: a number is none, or `url` names no database. What is wrong with an address is not told in its words.
    """

    def __init__(self, url: str, *, per_key: int | None = None, most_waiting: int | None = None) -> None:
        for name, value in (("per_key", per_key), ("most_waiting", most_waiting)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise Misuse(f"PostgresQueue takes {name}= as a whole number from 1, or None; it was given {value!r}")
        self._database, self._per_key, self._most_waiting = database_of(url), per_key, most_waiting
        self._connector = connector(self._database)
        self._app = App(connector=self._connector)
        self._opening, self._is_open = asyncio.Lock(), False

    async def accept(self, agent: str) -> None:
        """See `Dispatcher.accept`.

        Raises:
            QueueFull: as many wait as may.
            QueueUnavailable: the database cannot be used.
        """
        if self._most_waiting is None:
            return
        await self._opened()
        with explained(self._database):
            found = await self._connector.execute_query_one_async(
                "SELECT count(*) AS waiting FROM (SELECT FROM procrastinate_jobs WHERE status = 'todo' AND "
                "queue_name = %(queue)s LIMIT %(most)s) AS found",
                queue=queue_of(agent), most=self._most_waiting,
            )  # fmt: skip
        if found["waiting"] >= self._most_waiting:
            raise QueueFull(
                f"as many runs of agent {agent!r} wait for a worker as may ({found['waiting']}): nothing was recorded; "
                "try again later, or start another worker"
            )

    async def dispatch(self, order: Order) -> None:
        """See `Dispatcher.dispatch`.

        Raises:
            QueueUnavailable: the database cannot be used.
        """
        await self._opened()
        lock = lock_of(order, self._per_key)
        with explained(self._database), suppress(AlreadyEnqueued):
            try:
                await put(self._app, order, lock)
            except AlreadyEnqueued:
                async with self._connector.pool.connection() as connection, connection.transaction():
                    await withdraw_others(connection, order)
                    await put(self._app, order, lock, connection)

    async def work(
        self,
        agents: Agent[Any, Any] | Iterable[Agent[Any, Any]],
        *,
        concurrency: int | Mapping[str, int] = DEFAULT,
        heartbeat: float = 10.0,
        grace: float = 25.0,
        deps: Deps = None,
        schedules: Sequence[Schedule] = (),
        once: bool = False,
    ) -> None:
        """Drives the runs that are queued for `agents`, until it is cancelled.

        Cancelled, it takes no more; each run under way pauses after its step, and is queued again. What is not there
        after `grace` is left as it is, as if the process had died, and queued again too.

        Args:
            agents: whose runs; each is known by its name.
            concurrency: runs under way at once in this worker; or by the agent's name, each agent its own number.
            heartbeat: seconds between two signs of life. Silent for one and a quarter a worker counts as gone; others
                go on with its runs, no later than two after its last.
            grace: seconds that steps under way are given to end when it is cancelled.
            deps: called with the id of a run for what its tools are given as dependencies.
            schedules: runs to be begun at times.
            once: end when nothing waits that is due.

        Raises:
            Misuse: something does not fit; the message says what would.
            QueueUnavailable: the database cannot be used.
            WorkerStopped: it lost its database, or others took it for gone; start it again.
        """
        for name, value in (("heartbeat", heartbeat), ("grace", grace)):
            checked_seconds(name, value)
        deliveries = Deliveries([agents] if isinstance(agents, Agent) else agents, deps)
        for one in schedules:
            if one.agent not in deliveries.agents:
                raise Misuse(f"schedule {one.name!r} is of agent {one.agent!r}, which this worker does not have")
        if len({one.name for one in schedules}) < len(schedules):
            raise Misuse("two schedules have one name, by which their runs are called: give each its own")
        shares = at_once(concurrency, deliveries.agents)
        await self._opened()
        worker = PostgresWorker(self, self._database, self._per_key, deliveries, heartbeat, schedules)
        await worker.run(shares, grace, once=once)

    async def close(self) -> None:
        """Lets go of its connections; it may be used again."""
        async with self._opening:
            if self._is_open:
                self._is_open = False
                await self._app.close_async()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _opened(self) -> None:
        running_loop()
        async with self._opening:
            if not self._is_open:
                await make_tables(self._database)
                await self._app.open_async()
                self._is_open = True
