"""A transaction of the writer's: what it stores, worked out under locks, and what came of it for each of its jobs."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any
from uuid import uuid4

from treadle.journal.batch import Growth, fork_of, growth
from treadle.journal.errors import JournalConflict, JournalError, TakenOver, UnknownRun
from treadle.journal.info import STOPS, unknown
from treadle.journal.leases import Held
from treadle.journal.line import Line, sealed
from treadle.journal.payloads import Payload
from treadle.journal.port import too_short
from treadle.journal.postgres.actions import Action, Append, Delete, Fork, Renew
from treadle.journal.postgres.connection import Connection
from treadle.journal.postgres.damage import uses_of
from treadle.journal.postgres.lease_rows import holding
from treadle.journal.postgres.rows import DatabaseRows, lines_of
from treadle.journal.postgres.statements import Statements, found_by, key
from treadle.journal.verified import first_events, found_line, told_anew
from treadle.journal.worker import Job

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
        version: the row with the version of the tables, as it is while it lasts.
    """

    def __init__(
        self, statements: Statements, jobs: Sequence[Job[Action]], where: str, earlier: Iterable["Transaction"]
    ) -> None:
        self.sent = False
        self.version: tuple[Any, ...] | None = None
        self._statements = statements
        self._jobs = jobs
        self._where = where
        self._number = ""
        self._existed: bool = any(one._existed for one in earlier)
        self._before: dict[str, Line | None] = {}
        self._after: dict[str, Line] = {}
        self._growths: list[tuple[str, Growth]] = []
        self._payloads: dict[bytes, bytes] = {}
        self._uses: list[tuple[bytes, int, bytes]] = []
        self._unused: list[bytes] = []
        self._shared: tuple[bytes, bytes, bytes, int] | None = None
        self._heirs: Sequence[tuple[Any, ...]] = ()
        self._heritage: tuple[Any, ...] | None = None
        self._outcomes: list[Any] = []
        self._leases: dict[str, str] = {}
        self._begun: list[Held] = []
        self._over: list[str] = []

    def begin(self, connection: Connection) -> None:
        """Lock the lines of the runs that it is about, and work out what becomes of them."""
        say = self._statements
        names = sorted({key(run_id) for run_id in self._run_ids()})
        large = {one.hash: one.data for job in self._jobs for _, one in _large(job.action)}
        under = sorted({key(one.held.run_id) for one in self._appends() if one.held is not None and not one.begins})
        with connection.pipeline():
            connection.execute(say.begin)
            if isinstance(self._jobs[0].action, Fork | Delete):
                connection.execute(say.hold_forks, (say.channel,))
            number = connection.execute(say.transaction_id)
            found = connection.execute(say.lock_lines, (names,), binary=True)
            # Who brings the tables to a later version waits for what has locked a line, and is seen after that.
            version = connection.execute(say.layout.version)
            loose = connection.execute(say.without_line, (names,), binary=True)
            held = connection.execute(say.hold_payloads, ([*large],), binary=True) if large else ()
            leases = connection.execute(say.lock_leases, (under,)) if under else None
        ((self._number,),) = number.fetchall()
        self.version = version.fetchone()
        for (one,) in held:
            # It is there, and stays.
            del large[one]
        self._payloads = large
        self._before = dict.fromkeys(self._run_ids())
        self._before.update(lines_of(found.fetchall()))
        for (name,) in loose:
            # It has events, and no line: that is for the checks to tell.
            del self._before[name.decode()]
        self._leases = {} if leases is None else {name.decode(): owner for name, owner in leases.fetchall()}
        self._existed = self._existed or None not in self._before.values()
        rows = DatabaseRows(connection, say, self._before)
        for job in self._jobs:
            match job.action:
                case Append() as append:
                    self._outcomes.append(self._grow(rows, append))
                case Fork() as fork:
                    self._outcomes.append(self._fork(rows, fork))
                case Delete(run_id):
                    self._outcomes.append(self._existed)
                    self._heirs = connection.execute(say.forks, (key(run_id),), binary=True).fetchall()
                    self._heritage = connection.execute(say.fork, (key(run_id),), binary=True).fetchone()
                case Renew() as renew:
                    self._outcomes.append(self._renew(rows, renew))
                    self._unused = [one for (one,) in connection.execute(say.hold_unused, binary=True)]

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
            match self._jobs[0].action:
                case Delete(run_id):
                    name = key(run_id)
                    self._leave(connection, name)
                    connection.execute(say.hold_used, (name,))
                    connection.execute(say.delete_used, (name, name))
                    for statement in (say.delete_uses, say.delete_events, say.delete_line):
                        connection.execute(statement, (name,))
                    connection.execute(say.end_leases, ([name],))
                case Renew(run_ids):
                    self._try_out(connection)
                    for name in map(key, run_ids):
                        connection.execute(say.delete_uses, (name,))
                        connection.execute(say.delete_line, (name,))
            self._write(connection)
            if self._unused:
                connection.execute(say.delete_unused, (self._unused,))
            for held in self._begun:
                connection.execute(say.hold, holding(held, takeover=True))
            if self._over:
                connection.execute(say.end_leases, ([*map(key, self._over)],))
            connection.execute(say.commit)
            connection.execute(say.notify, (say.channel, noted(self._run_ids())))

    def settle(self) -> None:
        """Give each job what came of it."""
        for job, outcome in zip(self._jobs, self._outcomes, strict=True):
            if isinstance(outcome, Exception):
                job.error = outcome
            else:
                job.value = outcome

    def _run_ids(self) -> Iterable[str]:
        for job in self._jobs:
            match job.action:
                case Renew(run_ids):
                    yield from run_ids
                case Fork(source=source, run_id=run_id):
                    yield from (source, run_id)
                case Append(run_id=run_id) | Delete(run_id):
                    yield run_id

    def _grow(self, rows: DatabaseRows, append: Append) -> JournalError | None:
        run_id = append.run_id
        try:
            line = self._after.get(run_id)
            if line is None:
                line = found_line(rows, run_id, self._where)
                if line is not None and not line.sealed:
                    line = told_anew(rows, line, self._where)
            new = growth(line, run_id, append.seq, append.batch, self._where)
            if append.held is not None:
                self._require(append.held, begins=append.begins)
        except JournalError as error:
            return error
        if new is not None:
            if type(append.batch.events[-1]) in STOPS:
                self._over.append(run_id)
            self._growths.append((run_id, new))
            self._after[run_id] = new.line
            self._uses += [(key(run_id), seq, one.hash) for seq, one in append.large]
        return None

    def _fork(self, rows: DatabaseRows, fork: Fork) -> Exception | None:
        try:
            line = found_line(rows, fork.source, self._where)
            if line is None:
                return UnknownRun(fork.source, rows.newest(), where=self._where)
            if not line.sealed:
                line = told_anew(rows, line, self._where)
            if line.info.events < fork.seq:
                return too_short(fork.source, line.info.events, fork.seq)
            if (there := found_line(rows, fork.run_id, self._where)) is not None:
                return JournalConflict(fork.run_id, 0, there.info.events, where=self._where)
            new = fork_of(*first_events(rows, line, fork.seq, self._where), fork.batch)
        except JournalError as error:
            return error
        lineage = rows.lineage(fork.source)
        self._shared = (key(fork.run_id), key(lineage.origin), key(lineage.owner(fork.seq - 1)), fork.seq)
        self._growths.append((fork.run_id, new))
        self._after[fork.run_id] = new.line
        self._uses += [(key(fork.run_id), seq, one.hash) for seq, one in fork.large]
        return None

    def _leave(self, connection: Connection, name: bytes) -> None:
        """Take the run out of the lineages: its rows that forks share become those of the one that shares most."""
        say = self._statements
        connection.execute(say.delete_fork, (name,))
        if self._heirs:
            heir, seq = self._heirs[0]
            _, source, start = self._heritage or (name, None, 0)
            connection.execute(say.give_events, (heir, name, seq))
            connection.execute(say.give_uses, (heir, name, seq))
            connection.execute(say.change_fork, (source, start, heir))
            connection.execute(say.change_sources, (heir, name))

    def _require(self, held: Held, *, begins: bool) -> None:
        """Raises `TakenOver` if the lease is lost; one that begins is this process's from here on."""
        if begins:
            self._begun.append(held)
            self._leases[held.run_id] = held.holder.name
        elif self._leases.get(held.run_id) != held.holder.name:
            raise TakenOver(held.run_id, where=self._where)

    def _appends(self) -> Iterable[Append]:
        return (job.action for job in self._jobs if isinstance(job.action, Append))

    def _renew(self, rows: DatabaseRows, renew: Renew) -> JournalError | None:
        try:
            for run_id in renew.run_ids:
                if (line := self._before.pop(run_id, None)) is not None:
                    self._after[run_id] = line if line.sealed else told_anew(rows, line, self._where)
                    self._uses += [(key(run_id), seq, one) for seq, one in uses_of(rows, run_id)]
        except JournalError as error:
            return error
        return None

    def _write(self, connection: Connection) -> None:
        say = self._statements
        if self._shared is not None:
            connection.execute(say.add_fork, self._shared)
        lines, used = [*self._after.items()], {one for *_, one in self._uses}
        for statement, rows in (
            (say.add_events, [(key(run_id), *row) for run_id, new in self._growths for row in new.rows]),
            (say.add_payloads, [row for row in self._payloads.items() if row[0] in used]),
            (say.add_uses, self._uses),
            (say.add_lines, [_added(line) for name, line in lines if self._before.get(name) is None]),
            (say.change_lines, [_changed(line) for name, line in lines if self._before.get(name) is not None]),
        ):
            if rows:
                connection.execute(statement, [*map(list, zip(*rows, strict=True))])

    def _try_out(self, connection: Connection) -> None:
        """Write a run of its own, and take it back."""
        say = self._statements
        name, line = uuid4().bytes, Line(unknown("", 0.0), b"", sealed=True)
        connection.execute(say.add_events, ([name], [0], [0.0], [b""], [b""]))
        connection.execute(say.add_lines, [[each] for each in (name, *_added(line)[1:])])
        connection.execute(say.change_lines, [[each] for each in (name, *_changed(line)[1:])])
        connection.execute(say.delete_events, (name,))
        connection.execute(say.delete_line, (name,))


def _large(action: Action) -> Sequence[tuple[int, Payload]]:
    return action.large if isinstance(action, Append | Fork) else ()


def _added(line: Line) -> tuple[Any, ...]:
    found, text = sealed(line.info, line.head)
    return (key(line.info.run_id), line.info.started_at, line.head, found, text, *found_by(line.info))


def _changed(line: Line) -> tuple[Any, ...]:
    found, text = sealed(line.info, line.head)
    return key(line.info.run_id), line.head, found, text, line.info.status


def noted(run_ids: Iterable[str]) -> str:
    """What a notification says of changes to these runs; "*" for any run."""
    names = {note(run_id) for run_id in run_ids}
    return ",".join(sorted(names)) if len(names) <= _NOTED else "*"


def note(run_id: str) -> str:
    """How a notification names the run: whatever its id is, in 16 letters."""
    return blake2b(key(run_id), digest_size=8).hexdigest()
