"""A transaction of the writer's: what it stores, worked out under locks, and what came of it for each of its jobs."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any
from uuid import uuid4

from treadle.journal.batch import Growth, growth
from treadle.journal.errors import JournalError, TakenOver
from treadle.journal.leases import Held
from treadle.journal.line import Line, sealed
from treadle.journal.postgres.actions import Action, Append, Delete, Renew
from treadle.journal.postgres.connection import Connection
from treadle.journal.postgres.lease_rows import holding
from treadle.journal.postgres.rows import DatabaseRows, lines_of
from treadle.journal.postgres.statements import Statements, key
from treadle.journal.verified import found_line, told_anew
from treadle.journal.worker import Job
from treadle.kernel.events import RunFinished, RunPaused

_NOTED = 400
"""Runs that a notification names at most: it has 8,000 bytes."""


class Transaction:
    """Either any number of appends, or one other job.

    Args:
        statements: the statements over the journal's schema.
        jobs: what it is for.
        where: the journal, as a person would name it.
        earlier: others for the same jobs, of which it is not known whether they were stored.

    Attributes:
        sent: whether its end was sent, so that it may be stored although nobody has said so.
    """

    def __init__(
        self, statements: Statements, jobs: Sequence[Job[Action]], where: str, earlier: Iterable["Transaction"]
    ) -> None:
        self.sent = False
        self._statements = statements
        self._jobs = jobs
        self._where = where
        self._number = ""
        self._existed: bool = any(one._existed for one in earlier)
        self._before: dict[str, Line | None] = {}
        self._after: dict[str, Line | None] = {}
        self._growths: list[tuple[str, Growth]] = []
        self._outcomes: list[Any] = []
        self._leases: dict[str, str] = {}
        self._begun: list[Held] = []
        self._over: list[str] = []

    def begin(self, connection: Connection) -> None:
        """Lock the lines of the runs that it is about, and work out what becomes of them."""
        say = self._statements
        names = sorted({key(run_id) for run_id in self._run_ids()})
        held = sorted({key(one.held.run_id) for one in self._appends() if one.held is not None and not one.begins})
        with connection.pipeline():
            connection.execute(say.begin)
            number = connection.execute(say.transaction_id)
            found = connection.execute(say.lock_lines, (names,), binary=True)
            loose = connection.execute(say.without_line, (names,), binary=True)
            leases = connection.execute(say.lock_leases, (held,)) if held else None
        ((self._number,),) = number.fetchall()
        self._before = dict.fromkeys(self._run_ids())
        self._before.update(lines_of(found.fetchall()))
        for (name,) in loose:
            # It has events, and no line: that is for the checks to tell.
            del self._before[name.decode()]
        self._leases = {} if leases is None else {name.decode(): owner for name, owner in leases.fetchall()}
        self._existed = self._existed or None not in self._before.values()
        rows = DatabaseRows(connection, say, self._before)
        for job in self._jobs:
            if isinstance(job.action, Append):
                self._outcomes.append(self._grow(rows, job.action))
            elif isinstance(job.action, Renew):
                self._outcomes.append(self._renew(rows, job.action))
            else:
                self._outcomes.append(self._existed)

    def stored_by(self, connection: Connection) -> bool:
        """Whether it was stored; asked of another transaction, that has begun, if its own was lost."""
        mine = [(key(run_id), new.rows[-1]) for run_id, new in self._growths]
        asked = ([name for name, _ in mine], [row[0] for _, row in mine], [row[2] for _, row in mine], self._number)
        return bool(mine) and connection.execute(self._statements.written_by, asked).fetchone() is not None

    def end(self, connection: Connection) -> None:
        """Write it all, and have it stored."""
        say = self._statements
        self.sent = True
        with connection.pipeline():
            if isinstance(action := self._jobs[0].action, Delete):
                connection.execute(say.delete_events, (key(action.run_id),))
                connection.execute(say.delete_line, (key(action.run_id),))
                connection.execute(say.end_leases, ([key(action.run_id)],))
            elif isinstance(action, Renew):
                self._try_out(connection)
            self._write(connection)
            for held in self._begun:
                connection.execute(say.hold, holding(held, takeover=True))
            if self._over:
                connection.execute(say.end_leases, ([*map(key, self._over)],))
            connection.execute(say.commit)
            connection.execute(say.notify, (say.channel, noted(self._run_ids())))

    def settle(self) -> None:
        """Give each job what came of it."""
        for job, outcome in zip(self._jobs, self._outcomes, strict=True):
            if isinstance(outcome, JournalError):
                job.error = outcome
            else:
                job.value = outcome

    def _run_ids(self) -> Iterable[str]:
        for job in self._jobs:
            if isinstance(job.action, Renew):
                yield from job.action.run_ids
            else:
                yield job.action.run_id

    def _grow(self, rows: DatabaseRows, action: Append) -> JournalError | None:
        run_id = action.run_id
        try:
            if run_id in self._after:
                line = self._after[run_id]
            else:
                line = found_line(rows, run_id, self._where)
                if line is not None and not line.sealed:
                    line = told_anew(rows, line, self._where)
            new = growth(line, run_id, action.seq, action.batch, self._where)
            if action.held is not None:
                self._require(action.held, begins=action.begins)
        except JournalError as error:
            return error
        if new is not None:
            if isinstance(action.batch.events[-1], (RunPaused, RunFinished)):
                self._over.append(run_id)
            self._growths.append((run_id, new))
            self._after[run_id] = new.line
        return None

    def _require(self, held: Held, *, begins: bool) -> None:
        """Raises `TakenOver` if the lease is lost; one that begins is this process's from here on."""
        if begins:
            self._begun.append(held)
            self._leases[held.run_id] = held.holder.name
        elif self._leases.get(held.run_id) != held.holder.name:
            raise TakenOver(held.run_id, where=self._where)

    def _appends(self) -> Iterable[Append]:
        return (job.action for job in self._jobs if isinstance(job.action, Append))

    def _renew(self, rows: DatabaseRows, action: Renew) -> JournalError | None:
        try:
            for run_id in action.run_ids:
                if (line := self._before.get(run_id)) is not None and not line.sealed:
                    self._after[run_id] = told_anew(rows, line, self._where)
        except JournalError as error:
            return error
        return None

    def _write(self, connection: Connection) -> None:
        say = self._statements
        events = [(key(run_id), *row) for run_id, new in self._growths for row in new.rows]
        if events:
            connection.execute(say.add_events, [*map(list, zip(*events, strict=True))])
        for statement, begun in ((say.add_lines, True), (say.change_lines, False)):
            lines = [line for name, line in self._after.items() if line and (self._before.get(name) is None) is begun]
            if lines:
                connection.execute(statement, [*map(list, zip(*map(_row, lines), strict=True))])

    def _try_out(self, connection: Connection) -> None:
        """Write a run of its own, and take it back."""
        say = self._statements
        name = uuid4().bytes
        connection.execute(say.add_events, ([name], [0], [0.0], [b""], [b""]))
        connection.execute(say.add_lines, ([name], [0.0], [b""], [b""], [b""]))
        connection.execute(say.change_lines, ([name], [0.0], [b""], [b""], [b""]))
        connection.execute(say.delete_events, (name,))
        connection.execute(say.delete_line, (name,))


def _row(line: Line) -> tuple[bytes, float, bytes, bytes, bytes]:
    found, text = sealed(line.info, line.head)
    return key(line.info.run_id), line.info.started_at, line.head, found, text


def noted(run_ids: Iterable[str]) -> str:
    """What a notification says of changes to these runs; "*" for any run."""
    names = {note(run_id) for run_id in run_ids}
    return ",".join(sorted(names)) if len(names) <= _NOTED else "*"


def note(run_id: str) -> str:
    """How a notification names the run: whatever its id is, in 16 letters."""
    return blake2b(key(run_id), digest_size=8).hexdigest()
