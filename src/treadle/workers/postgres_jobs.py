"""The jobs of procrastinate, as orders to drive a run are kept in them."""

import hashlib
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.schema import SchemaManager
from psycopg.errors import ProgramLimitExceeded, UndefinedColumn, UndefinedFunction
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from treadle.drivers.dispatch import Order
from treadle.journal.postgres.address import Address, address_of
from treadle.journal.postgres.connection import DEFAULTS
from treadle.workers.deliveries import OrderRefused, QueueUnavailable

DRIVE: Final = "treadle.drive"
"""What a job is called that drives a run."""

FIRST: Final = 2**31 - 1
"""The priority of a run that was under way: it does not wait behind those that have not begun."""

_MAKING: Final = 0x7472_6471
"""The lock under which the tables are made, so that of two that start at once only one does."""


def database_of(url: str) -> Address:
    """The queue's database; its tables are in the schema that the server looks in first.

    Raises:
        Misuse: `url` names none.
    """
    return address_of(url, "public")


def connector(database: Address) -> PsycopgConnector:
    """Connections to the queue's database."""
    return _Connector(
        conninfo=database.dsn, min_size=1, max_size=4, configure=_configured, pool_factory=_Pool.without_check
    )


class _Pool(AsyncConnectionPool):
    """Opens a connection anew at once that the server, or what is between, has closed while it was idle.

    What the pool does by itself where it is told to check a connection is to wait a second before it looks at the next,
    which a server that lets none be idle for so long has closed by then: it went round so until its time was up.
    """

    @classmethod
    def without_check(cls, **given: Any) -> "_Pool":
        """One with what procrastinate gives, but for the check."""
        return cls(**{**given, "check": None})

    async def getconn(self, timeout: float | None = None) -> psycopg.AsyncConnection[Any]:  # noqa: ASYNC109 - the pool's
        """See `AsyncConnectionPool`."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            connection = await super().getconn(max(0.0, end - time.monotonic()))
            try:
                await self.check_connection(connection)
            except BaseException as error:
                await self.putconn(connection)
                if not isinstance(error, psycopg.Error):
                    raise
            else:
                return connection


class _Connector(PsycopgConnector):
    """Leaves nothing half open: a pool's task that connects takes no notice of being cancelled, and stays."""

    async def open_async(self, pool: Any = None) -> None:
        """See `PsycopgConnector`."""
        try:
            await super().open_async(pool)
        except BaseException:
            await self.close_async()
            raise


async def _configured(connection: psycopg.AsyncConnection[Any]) -> None:
    # A process that is stopped in the middle of a transaction does not keep an order to itself for longer than this.
    await connection.execute(b"SELECT set_config('idle_in_transaction_session_timeout', '3s', false), " + DEFAULTS)
    await connection.commit()


def queue_of(agent: str) -> str:
    """The name of the queue of an agent: its own, or the beginning of it where that is too long to listen to."""
    if len(agent.encode()) <= _LONGEST:
        return agent
    digest = hashlib.sha256(agent.encode()).hexdigest()[:12]
    return f"{agent.encode()[: _LONGEST - 13].decode(errors='ignore')}-{digest}"


_LONGEST: Final = 40
"""Bytes; PostgreSQL takes 63 for the name of a channel, and procrastinate puts 23 before it."""


def lock_of(order: Order, per_key: int | None) -> str | None:
    """The lock that no two jobs under way share; each key has as many as it may have runs.

    What has a time has none until a worker is given it: a job that waits keeps others of its lock waiting.
    """
    if per_key is None or not order.key or order.at is not None:
        return None
    return f"{order.key}#{zlib.crc32(order.run_id.encode()) % per_key}"


async def withdraw_others(connection: Any, order: Order) -> None:
    """Takes away an order that waits under the id of this one's run and is another: of a run that was deleted since.

    One that only waits to be tried again, or was put before all as its worker was gone, is the run's own.

    Raises:
        OrderRefused: its time is none.
    """
    given = {
        "run_id": order.run_id, "agent": order.agent, "key": order.key, "at": _time_of(order),
        "priorities": [order.priority, FIRST],
    }  # fmt: skip
    await connection.execute(_WITHDRAW, given)


_WITHDRAW: Final = """
DELETE FROM procrastinate_jobs WHERE queueing_lock = %(run_id)s AND status = 'todo' AND (
    args->>'agent' IS DISTINCT FROM %(agent)s
    OR attempts = 0 AND (
        args->>'key' IS DISTINCT FROM %(key)s
        OR priority <> ALL(%(priorities)s)
        OR greatest(scheduled_at, now()) IS DISTINCT FROM greatest(%(at)s::timestamptz, now())
    )
)
"""


def _time_of(order: Order) -> datetime | None:
    """When an order is due. Raises `OrderRefused` where that is no time."""
    try:
        return None if order.at is None else datetime.fromtimestamp(order.at, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise OrderRefused(f"its time, {order.at} in Unix seconds, cannot be told in UTC: {error}") from error


async def put(app: App, order: Order, lock: str | None, connection: Any = None) -> None:
    """Queues the order; within the transaction of `connection`, if there is one.

    Raises:
        AlreadyEnqueued: an order of the run waits there already.
        ConnectorException: the database cannot be used.
        OrderRefused: its time is none.
    """
    job = app.configure_task(
        DRIVE,
        queue=queue_of(order.agent),
        priority=order.priority,
        lock=lock,
        queueing_lock=order.run_id,
        schedule_at=_time_of(order),
        connection=connection,
    )
    await job.defer_async(run_id=order.run_id, agent=order.agent, key=order.key)


def remedy_of(cause: BaseException | None, otherwise: str) -> str:
    """What is to be done about an error of the database; what is done `otherwise` where its tables are those wanted."""
    if not isinstance(cause, UndefinedColumn | UndefinedFunction):
        return otherwise
    return (
        "The tables of the queue are of another version of procrastinate than the one that is installed here: bring "
        "them up by its migrations, or install the one that made them"
    )


@contextmanager
def explained(database: Address) -> Iterator[None]:
    """Says of an error of the database what it means for runs, without the secrets of its address.

    Raises:
        OrderRefused: the database takes orders, and not this one.
        QueueUnavailable: in place of what procrastinate or psycopg raises.
    """
    try:
        yield
    except (ConnectorException, psycopg.Error, PoolTimeout) as error:
        cause = error.__cause__ or error
        # The message alone: what the server adds shows its functions, and what was to be stored.
        said = (cause.diag.message_primary if isinstance(cause, psycopg.Error) else None) or str(cause)
        why = database.clean(said.strip())
        if isinstance(cause, psycopg.DataError | ProgramLimitExceeded):
            raise OrderRefused(f"the queue does not take it: {why}") from error
        again = (
            "What was recorded is in the journal; when the database is there again, the workers queue what was not "
            "queued, within two minutes, and so does `treadle submit --again RUN`"
        )
        raise QueueUnavailable(f"the queue cannot be used: {why}. {remedy_of(cause, again)}") from error


async def make_tables(database: Address) -> None:
    """Makes the tables of the queue where there are none.

    Raises:
        QueueUnavailable: the database cannot be used.
    """
    with explained(database):
        # By a connection of its own: a pool says of a wrong password only that it took too long.
        async with await psycopg.AsyncConnection.connect(database.dsn) as connection:
            await _configured(connection)
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MAKING])
            found = await connection.execute("SELECT to_regclass('procrastinate_jobs')")
            if await found.fetchone() == (None,):
                # Its comments have signs that the database may have none for.
                await connection.execute(SchemaManager.get_schema().encode("ascii", "replace"))
