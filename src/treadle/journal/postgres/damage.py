"""How the whole of a journal in PostgreSQL is looked through."""

from treadle.journal.errors import Damage, JournalDamaged
from treadle.journal.line import Line
from treadle.journal.payloads import references
from treadle.journal.postgres.connection import Connection
from treadle.journal.postgres.rows import DatabaseRows
from treadle.journal.postgres.statements import Statements, found_by, key
from treadle.journal.verified import events_of, found_line, told_anew


def find_damage(connection: Connection, statements: Statements, where: str) -> list[str]:
    """Look at every event; the runs of which something that is derived from them is not what they say.

    Raises:
        JournalDamaged: runs are damaged; says which.
    """
    rows = DatabaseRows(connection, statements)
    damage: list[Damage] = []
    stale: list[str] = []
    for (name,) in connection.execute(statements.all_runs, binary=True).fetchall():
        run_id = name.decode(errors="replace")
        try:
            line = found_line(rows, run_id, where)
            if line is not None and _is_stale(connection, statements, line, where):
                stale.append(run_id)
        except JournalDamaged as error:
            damage.extend(error.damage)
    if damage:
        raise JournalDamaged(damage, where=where)
    return stale


def _is_stale(connection: Connection, statements: Statements, line: Line, where: str) -> bool:
    """Whether the run's line, or what it is found by, or its uses of payloads must be told anew; after a look at all.

    Raises:
        JournalDamaged: one of its events is not what was stored.
    """
    rows, run_id = DatabaseRows(connection, statements), line.info.run_id
    if not line.sealed:
        told_anew(rows, line, where)
        return True
    events_of(rows, line, 0, where)
    found = connection.execute(statements.found_by, (key(run_id),), binary=True).fetchone()
    stored = set(connection.execute(statements.uses, (key(run_id),), binary=True).fetchall())
    return found != found_by(line.info) or stored != {*uses_of(rows, run_id)}


def uses_of(rows: DatabaseRows, run_id: str) -> list[tuple[int, bytes]]:
    """Which payloads the events of the run refer to."""
    return [(seq, one) for seq, _, _, body in rows.events(run_id, 0) for one in references(body)]
