"""A session of the embedded engine: one private DuckDB in memory, for one question, closed in every way it could do
harm.

It may read the files of the sources it was opened for and nothing else, write only to its own temporary folder, and use
bounded memory, threads and time. Its configuration is locked before the first statement. Statements come as SQLGlot
expressions with bound values; there is no way in for SQL text. Neighbours: `tables` says how each kind of source is
read, `faults` what the engine's errors mean.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from treadle.analyst.declared.errors import AnalystError, NotEnoughMemory
from treadle.analyst.declared.packages import ENGINE, engine_version, need_packages
from treadle.analyst.declared.place import Place
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.ctrl_c import ctrl_c
from treadle.analyst.reading.faults import fault, first_line
from treadle.analyst.reading.interrupt import AGAIN, Cancelled, Interrupt
from treadle.analyst.reading.progress import Progress
from treadle.analyst.reading.scratch import Scratch
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof
from treadle.analyst.sql.terms import cast, data_type, literal, table

if TYPE_CHECKING:
    import sqlite3

    from duckdb import DuckDBPyConnection

    from treadle.analyst.reading.database import Database

Row = tuple[Any, ...]
Found = TypeVar("Found")
_BATCH = 10_000
_OPENED_WITH = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "preserve_insertion_order": "false",
}
"""What an engine is opened with in each session: a statement that sets as much later takes longer."""
_READS_AHEAD = 2
"""The version of the engine that has threads of its own to read files ahead, which local files do not need."""
_SETTINGS = {
    "python_enable_replacements": "FALSE",
    # Local files: fetching whole columns ahead of what is read of them costs more than it spares.
    "disable_parquet_prefetching": "TRUE",
    # Its own bar would go to standard output; how far it is is told by `Progress`.
    "enable_progress_bar": "TRUE",
    "enable_progress_bar_print": "FALSE",
    "TimeZone": "'UTC'",
    "enable_external_access": "FALSE",
    "lock_configuration": "TRUE",
}
"""What is set once it is open, in this order: the last one forbids to set any."""


class Session:
    """An open engine; use it in a `with` block.

    Args:
        place: says where the sources' data are.
        sources: what may be read.
        bounds: what it may use.
        interrupt: stops it from outside.
        tell: is told, in a few words, what is being done; may be called from another thread than the caller's.

    Raises:
        AnalystError: a file is missing or lies outside the place's folders.
        Misuse: the packages that the analyst needs are not installed.
    """

    def __init__(
        self,
        place: Place,
        sources: Sequence[Source],
        bounds: Bounds | None = None,
        interrupt: Interrupt | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        need_packages(*ENGINE)
        self._progress = None if tell is None else Progress(tell, self._share)
        self.bounds = bounds or Bounds()
        self.interrupt = interrupt or Interrupt()
        self.files = {source.name: place.files(source) for source in sources}
        self._stamps = self._stamp()
        self._late = False
        self._databases: dict[Path, str] = {
            self.files[source.name][0]: f"db{at}" for at, source in enumerate(sources) if source.kind == "duckdb"
        }
        self._staged = 0
        self._tables: dict[str, Sequence[str]] = {}
        self._stops: list[Callable[[], None]] = []
        self.frames = place.frames
        self.connections: dict[tuple[str, str], Database] = {}
        self.states: dict[Path, sqlite3.Connection] = {}
        self.sound: set[tuple[Path | int | str, ...]] = set()
        # Copies of CSV files without their short lines of totals, by file and declaration; None for those without any.
        self.cut: dict[tuple[object, ...], Path | None] = {}
        # Of those lines, by file and declaration, what may be a row that was cut off.
        self.doubtful: dict[tuple[object, ...], list[str]] = {}
        # What was made of a file for the engine, with the file and how many of its first lines were left out.
        self.copies: dict[Path, tuple[Path, int]] = {}

    def __enter__(self) -> Self:
        self._scratch = Scratch()
        try:
            self._connection = self._opened()
            try:
                self._close_off()
            except BaseException:
                self._connection.close()
                raise
        except BaseException as error:
            self._scratch.close()
            self._refuse_changed(error)
            raise
        self._stop = self._connection.interrupt
        self.interrupt.on_set(self._stop)
        self._deadline = time.monotonic() + self.bounds.seconds
        self._timer = threading.Timer(self.bounds.seconds, self._time_out)
        self._timer.daemon = True
        self._timer.start()
        if self._progress is not None:
            self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.__exit__(kind, error, traceback)
        self._timer.cancel()
        self._timer.join()
        self.interrupt.forget(self._stop)
        try:
            for state in self.states.values():
                state.close()
            for database in self.connections.values():
                database.close()
        finally:
            self._connection.close()
            self._scratch.close()
        self._refuse_changed(error)

    @property
    def folder(self) -> Path:
        """Where temporary files of this session may be put."""
        return self._scratch.path

    @property
    def seconds_left(self) -> float:
        """How long this session may still take."""
        return self._deadline - time.monotonic()

    @property
    def told(self) -> bool:
        """Whether anyone is told what is being done."""
        return self._progress is not None

    def tell(self, doing: str, *, measured: bool = False, rows: int | None = None) -> None:
        """Tells what is being done; see `Progress.begin`."""
        if self._progress is not None:
            self._progress.begin(doing, measured=measured, rows=rows)

    def _share(self) -> float:
        return float(self._connection.query_progress())

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Has `stop` called, from another thread, when the session is cancelled or its time is over."""
        self._stops.append(stop)
        self.interrupt.on_set(stop)

    def forget(self, stop: Callable[[], None]) -> None:
        """Undoes `on_stop`."""
        self._stops.remove(stop)
        self.interrupt.forget(stop)

    def register(self, name: str, rows: object, of: str) -> None:
        """Makes the Arrow table of a source readable as `name`.

        Raises:
            AnalystError: the engine has no type for a column.
        """
        import duckdb

        self._tables[name] = [of]
        try:
            self._connection.register(name, rows)
        except duckdb.Error as error:
            raise AnalystError(
                f"source {of!r}: the engine cannot read a column of the frame ({first_line(error)}); leave it out, or "
                f"cast it to text or to a number",
                argument="source",
                given=of,
            ) from error

    def plain(self, file: Path) -> Path:
        """A path to the file that the engine does not take for a pattern."""
        if not any(sign in str(file) for sign in "*?["):
            return file
        link = self.folder / f"link{len(list(self.folder.iterdir()))}{''.join(file.suffixes[-2:])}"
        link.symlink_to(file)
        self.copies[link] = self.copies.get(file, (file, 0))
        return link

    def database(self, file: Path) -> str:
        """The name under which a DuckDB file is attached."""
        return self._databases[file]

    @property
    def attached(self) -> tuple[Proof, ...]:
        """The statements that make the databases of the sources known under the names that other statements use."""
        return tuple(Proof(partial(str, text)) for text in self._attach())

    def _attach(self) -> list[str]:
        return [
            f"ATTACH {literal(str(file)).sql('duckdb')} AS {name} (READ_ONLY)" for file, name in self._databases.items()
        ]

    def run(self, statement: "exp.Expr", parameters: Parameters | None = None) -> list[Row]:
        """Runs a statement and returns its rows.

        Raises:
            Cancelled: the interrupt was set.
            AnalystError: it took too long, too much memory, or the data could not be computed with exactly.
        """
        sql = statement.sql(dialect="duckdb", copy=False)
        return self._execute(sql, parameters.values if parameters else None)

    def parquet_types(self, file: Path) -> dict[str, str]:
        """The engine's types of the columns of a Parquet file, by name.

        Raises:
            AnalystError: the file cannot be read.
        """
        rows = self._guarded(str(file), lambda: self._connection.from_parquet(str(file)))
        return dict(zip(rows.columns, map(str, rows.types), strict=True))

    def stage(self, columns: Sequence[str], rows: Iterable[Sequence[str | None]], of: Sequence[str] = ()) -> str:
        """Copies rows of text, those of the sources `of`, into a table of this session and returns the table's name."""
        self._staged += 1
        name = f"staged{self._staged}"
        self._tables[name] = of
        definitions = [
            exp.ColumnDef(this=exp.to_identifier(column, quoted=True), kind=data_type("VARCHAR")) for column in columns
        ]
        self.run(exp.Create(kind="TABLE", this=exp.Schema(this=table(name), expressions=definitions)))
        batch: list[Sequence[str | None]] = []
        for row in rows:
            batch.append(row)
            if len(batch) == _BATCH:
                self._insert(name, batch)
                batch = []
        if batch:
            self._insert(name, batch)
        return name

    def check(self) -> None:
        """Raises if the session is to stop; for loops that run outside the engine."""
        if self._late:
            raise AnalystError(f"this took longer than {self.bounds.seconds:g} seconds; narrow it with filters")
        if self.interrupt.is_set:
            raise Cancelled("cancelled")

    def _insert(self, name: str, batch: list[Sequence[str | None]]) -> None:
        self.check()
        parameters = Parameters()
        columns = [
            exp.func("unnest", cast(parameters.add(list(column)), "VARCHAR[]")) for column in zip(*batch, strict=True)
        ]
        self.run(exp.Insert(this=table(name), expression=exp.select(*columns, copy=False)), parameters)

    def _opened(self) -> "DuckDBPyConnection":
        import duckdb

        given = _OPENED_WITH | {"temp_directory": str(self.folder), "memory_limit": self.bounds.memory}
        if self.bounds.threads:
            given["threads"] = str(self.bounds.threads)
        if engine_version() >= _READS_AHEAD:
            given["async_threads"] = "0"
        return self._guarded("", lambda: duckdb.connect(":memory:", config=dict(given)))

    def _close_off(self) -> None:
        for statement in self._attach():
            self._execute(statement, None)
        files = [literal(str(file)) for files in self.files.values() for file in files]
        given = {
            "allowed_paths": exp.Array(expressions=files).sql("duckdb"),
            "allowed_directories": exp.Array(expressions=[literal(str(self.folder))]).sql("duckdb"),
            # Given as it is opened it would be shown, and not hold.
            "max_temp_directory_size": literal(self.bounds.spill).sql("duckdb"),
        }
        self._execute("; ".join(f"SET {name} = {value}" for name, value in (given | _SETTINGS).items()), None)

    def _execute(self, sql: str, values: dict[str, object] | None) -> list[Row]:
        return self._guarded(sql, lambda: self._connection.execute(sql, values).fetchall())

    def _guarded(self, sql: str, do: "Callable[[], Found]") -> "Found":
        """What the engine does for `sql`, its errors in words."""
        import duckdb

        self.check()
        try:
            with ctrl_c():
                return do()
        except duckdb.InterruptException as error:
            self.check()
            raise Cancelled("cancelled") from error
        except duckdb.Error as error:
            raise fault(error, self.bounds, self.folder, self._read_by(f"{sql} {error}"), self.copies) from error

    def _read_by(self, text: str) -> list[str]:
        """The sources of which there are rows in a statement or message; all if none is seen there."""
        marks = {name: [str(file) for file in files] for name, files in self.files.items()}
        for file, database in self._databases.items():
            for name, files in self.files.items():
                marks[name] += [f'"{database}"'] if file in files else []
        for copy, (file, _) in self.copies.items():
            for name, files in self.files.items():
                marks[name] += [str(copy)] if file in files else []
        for held, names in self._tables.items():
            for name in names:
                marks[name].append(held)
        found = [name for name, signs in marks.items() if any(re.search(rf"{re.escape(s)}(?!\w)", text) for s in signs)]
        return found or list(self.files)

    def _time_out(self) -> None:
        self._late = True
        while True:
            self._connection.interrupt()
            for stop in list(self._stops):
                stop()
            if self._timer.finished.wait(AGAIN):
                return

    def _refuse_changed(self, error: BaseException | None) -> None:
        """Raises AnalystError if a file changed, unless what a question ended with has nothing to do with its files.

        What is found wrong in one that is taken away or written to says nothing of it as it is now.
        """
        of_data = isinstance(error, (AnalystError, OSError)) and not isinstance(error, (Cancelled, NotEnoughMemory))
        if (error is None or (of_data and not self._late)) and (changed := self._changed()):
            raise AnalystError(
                f"a file changed while it was read, so that the figures may mix old and new: {', '.join(changed)}; ask "
                f"again, or ask a copy of it where it is written to all the time"
            ) from error

    def _changed(self) -> list[str]:
        """The files that are others than they were, but for what was written behind the state that is read."""
        logs = {_log_of(file) for file in self.states}
        unlike = set(self._stamp()) ^ set(self._stamps)
        return sorted({file.name for file, *_ in unlike if file not in logs})

    def _stamp(self) -> list[tuple[Path, int, int, int]]:
        stamps = []
        for file in (file for files in self.files.values() for file in files):
            # What is written to a SQLite database may stand in its write-ahead log alone.
            for part in (file, _log_of(file)):
                try:
                    state = part.stat()
                except OSError:
                    continue
                if part == file or state.st_size:
                    # A file may bear any date, but not another's place on the disk.
                    stamps.append((part, state.st_mtime_ns, state.st_size, state.st_ino))
        return stamps


def _log_of(file: Path) -> Path:
    """Where the write-ahead log of a SQLite file is, if it has one."""
    return file.with_name(f"{file.name}-wal")
