"""How the runs of a journal in PostgreSQL are found in its index."""

from collections.abc import Iterator
from typing import Any

import msgspec

from treadle.journal.info import RunInfo, Wanted
from treadle.journal.postgres.connection import Connection
from treadle.journal.postgres.rows import SPOILT, DatabaseRows, ends_of, lines_of, look_again
from treadle.journal.postgres.statements import Statements, key
from treadle.journal.verified import shown

_PAGE = 200
"""Runs that are looked at together, at most."""


def list_runs(
    connection: Connection, statements: Statements, limit: int, before: RunInfo | None, wanted: Wanted, where: str
) -> list[RunInfo]:
    """The wanted runs that started before `before`, newest first."""
    found: list[RunInfo] = []
    while len(found) < limit:
        size = min(limit - len(found), _PAGE)
        page = _page(connection, statements, size, before, wanted, where)
        found += [line for line in page if wanted.fits(line)]
        if len(page) < size:
            break
        before = page[-1]
    return found


def _page(
    connection: Connection, statements: Statements, size: int, before: RunInfo | None, wanted: Wanted, where: str
) -> list[RunInfo]:
    """The first runs that started before `before` and may be wanted."""
    conditions = [*_conditions(before, wanted)]
    words = b" AND ".join(text for text, _ in conditions)
    asked = statements.page.replace(b"*where*", b"WHERE " + words if words else b"")
    values = [value for _, some in conditions for value in some]
    lines = lines_of(connection.execute(asked, (*values, size), binary=True).fetchall())
    lasts = {name: line.info.events - 1 for name, line in lines.items() if line.sealed and not line.info.damage}
    try:
        ends = ends_of(connection, statements, lasts)
    except SPOILT:
        # Then one after the other, so that the rest are shown.
        look_again(connection, statements)
        ends = {}
    rows = DatabaseRows(connection, statements, ends=ends)
    return [shown(rows, line, where) for line in lines.values()]


def _conditions(before: RunInfo | None, wanted: Wanted) -> Iterator[tuple[bytes, tuple[Any, ...]]]:
    if before is not None:
        yield b"(started_at, run_id) < (%b, %b)", (before.started_at, key(before.run_id))
    # One that is damaged may have any other status here.
    if wanted.status not in (None, "damaged"):
        yield b"status = %t", (wanted.status,)
    if wanted.agent is not None:
        yield b"agent = %b", (key(wanted.agent),)
    if wanted.model is not None:
        yield b"model = %b", (key(wanted.model),)
    if wanted.since is not None:
        yield b"started_at >= %b", (float(wanted.since),)
    if wanted.until is not None:
        yield b"started_at < %b", (float(wanted.until),)
    for name, value in (("user", wanted.user), ("conversation", wanted.conversation)):
        if value is not None:
            yield b"position(%b in info) > 0", (key(f'"{name}":{msgspec.json.encode(value).decode()}'),)
    if wanted.top:
        yield b"position(%b in info) > 0", (b'"parent":null',)
    if wanted.text:
        yield b"position(%b in searched) > 0", (key(wanted.text.casefold()),)
