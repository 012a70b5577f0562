"""Queues: the queue that a command brings runs to, or a worker takes them from."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from treadle.cli.storage import journal_named
from treadle.journal.addresses import apart_from_schema, in_postgres, without_password

if TYPE_CHECKING:
    from treadle.workers import PostgresQueue, TemporalQueue


def queue_named(
    named: str | None, journal: str | None, *, per_key: int | None = None, heartbeat: float = 10.0
) -> "PostgresQueue | TemporalQueue":
    """The queue at `named`: postgresql://… or temporal://HOST:PORT/NAMESPACE; by default the journal's own database.

    Raises:
        click.UsageError: it is neither, or what it needs is not installed.
    """
    where = named or journal_named(journal)
    try:
        if in_postgres(where):
            from treadle.workers import PostgresQueue

            return PostgresQueue(apart_from_schema(where)[0], per_key=per_key)
        if where.startswith("temporal://"):
            from treadle.workers import TemporalQueue

            parts = urlsplit(where)
            if per_key is not None:
                raise click.UsageError("--per-key is for a queue in PostgreSQL; in Temporal keys take turns")
            return TemporalQueue(parts.netloc, namespace=parts.path.strip("/") or "default", heartbeat=heartbeat)
    except ModuleNotFoundError as error:
        raise click.UsageError(str(error)) from error
    what = (
        f"it was given {without_password(where)!r}"
        if named
        else "it is left out only where the journal is in PostgreSQL"
    )
    raise click.UsageError(f"--queue takes postgresql://… or temporal://HOST:PORT/NAMESPACE; {what}")
