"""Jobs: how a worker tells the queue in PostgreSQL that an order is done, or is to be brought again later."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, get_channel_for_queues
from psycopg.errors import RaiseException

log = logging.getLogger("treadle")

CLOSE: Final = "DELETE FROM procrastinate_jobs WHERE id = %(id)s"
"""Takes an order out of the queue."""

_FREE: Final = """SELECT pg_notify(%(channel)s, '{"type": "job_inserted", "job_id": 0}')"""

_LOOK: Final = 0.05
"""Seconds between tries, where the database is away for a moment."""


class Jobs(JobManager):
    """Closes jobs, or puts them off; one that was given to another worker meanwhile is that one's to close.

    Attributes:
        patience: seconds for which it is tried; after that this worker counts as gone.
    """

    patience = 0.0

    async def time(self) -> datetime:
        """What the clock of the server shows, by which it gives out what is due."""
        found: datetime = (await self.connector.execute_query_one_async("SELECT clock_timestamp() AS time"))["time"]
        return found

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """See `JobManager`. Whoever waits for the lock of the job is told, which procrastinate leaves to be found."""
        await self._told(job.id, partial(super().finish_job, job, status, delete_job))
        if job.lock is not None:
            with suppress(ConnectorException):
                for channel in get_channel_for_queues([job.queue]):
                    await self.connector.execute_query_async(_FREE, channel=channel)

    async def retry_job_by_id_async(self, job_id: int, retry_at: datetime, *more: Any, **named: Any) -> None:
        """See `JobManager`. What is due is told by the server's clock, of which that of this worker may differ."""
        later, again = retry_at - datetime.now(UTC), super().retry_job_by_id_async

        async def put_off() -> None:
            try:
                await again(job_id, await self.time() + later, *more, **named)
            except UniqueViolation:
                # The run was queued anew meanwhile, and waits once.
                await self.connector.execute_query_async(CLOSE, id=job_id)

        await self._told(job_id, put_off)

    async def _told(self, job_id: int | None, tell: Callable[[], Awaitable[None]]) -> None:
        """Has the database told, which may be away for a moment: a job of a living worker nobody else looks after."""
        end = time.monotonic() + self.patience
        while True:
            try:
                with _given_away(job_id):
                    await tell()
                return
            except ConnectorException:
                if time.monotonic() >= end:
                    raise
            await asyncio.sleep(_LOOK)


@contextmanager
def _given_away(job_id: int | None) -> Iterator[None]:
    try:
        yield
    except ConnectorException as error:
        if not isinstance(error.__cause__, RaiseException):
            raise
        log.info("order %s was given to another worker", job_id)
