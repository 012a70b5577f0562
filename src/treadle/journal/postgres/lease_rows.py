"""The leases of a journal in PostgreSQL; see `leases.py`. Each function is a transaction of its own."""

from collections.abc import Collection
from typing import Any

import msgspec
from msgspec.structs import replace

from treadle.journal.holder import Holder, has_let_go
from treadle.journal.leases import Held
from treadle.journal.postgres.connection import Connection
from treadle.journal.postgres.statements import Statements, key

_holders = msgspec.json.Decoder(Holder)


def holding(held: Held, *names: str, takeover: bool) -> tuple[Any, ...]:
    """The values of the statement that takes a lease: free, one of `names`, or with `takeover` anybody's."""
    return key(held.run_id), held.holder.name, msgspec.json.encode(held.holder), held.seconds, [*names], takeover


def hold(connection: Connection, statements: Statements, held: Held, takeover: bool) -> Holder | None:
    """See `Leases.hold`."""
    while True:
        row = connection.execute(statements.leases, ([key(held.run_id)],)).fetchone()
        before = None if row is None else _decoded(row)
        if before is not None and before.name != held.holder.name and not takeover and not _has_let_go(row, before):
            return before
        names = [held.holder.name] if before is None else [held.holder.name, before.name]
        # Where somebody was quicker, it is theirs.
        if connection.execute(statements.hold, holding(held, *names, takeover=takeover)).rowcount:
            return None


def beat(
    connection: Connection, statements: Statements, run_ids: Collection[str], holder: Holder, seconds: float
) -> list[str]:
    """See `Leases.beat`."""
    asked = seconds, [*map(key, run_ids)], holder.name
    renewed = {bytes(name) for (name,) in connection.execute(statements.beat, asked)}
    return [run_id for run_id in run_ids if key(run_id) not in renewed]


def let_go(connection: Connection, statements: Statements, run_id: str, holder: Holder) -> None:
    """See `Leases.let_go`."""
    connection.execute(statements.let_go, (key(run_id), holder.name))


def holders(connection: Connection, statements: Statements, run_ids: Collection[str]) -> dict[str, Holder]:
    """See `Leases.holders`."""
    rows = connection.execute(statements.leases, ([*map(key, run_ids)],)).fetchall()
    found = ((bytes(row[0]).decode(), _decoded(row), row) for row in rows)
    return {run_id: holder for run_id, holder, row in found if not _has_let_go(row, holder)}


def _decoded(row: tuple[Any, ...]) -> Holder:
    return replace(_holders.decode(bytes(row[1])), beat_at=row[2])


def _has_let_go(row: tuple[Any, ...] | None, holder: Holder) -> bool:
    """Whether the holder is silent, or gone."""
    return row is None or has_let_go(holder, row[3], row[4])
