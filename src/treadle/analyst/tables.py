"""Tables: how each kind of source becomes rows in a session.

A reader makes one kind of source readable and says with what types; it is told what is wanted of it.
CSV is read as text and never guessed at: what is a number, and how exact, is decided when amounts are computed. JSON is
parsed here and not by the engine, which would pass its numbers through floating point.
"""

import csv
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.catalog import Dimension, Measure, Source
from treadle.analyst.errors import AnalystError
from treadle.analyst.session import Session
from treadle.analyst.terms import call, literal, quoted
from treadle.analyst.uniqueness import Unique, unique_columns
from treadle.tools.errors import nearest

if TYPE_CHECKING:
    from sqlglot import exp

    from treadle.analyst.pushdown import Partial
    from treadle.analyst.remote import Remote

_NATIVE_ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16", "iso8859-1": "latin-1"}


class Demand(Struct, frozen=True):
    """What is wanted of a source: the dimensions and measures that a question touches."""

    dimensions: tuple[Dimension, ...]
    measures: tuple[Measure, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in the data, each once."""
        measured = [column for item in self.measures for column in item.columns]
        return tuple(dict.fromkeys([*(item.source_column for item in self.dimensions), *measured]))


class Table(Struct, frozen=True):
    """Rows in a session.

    Attributes:
        relation: what stands after FROM.
        columns: the engine's type of each column, by name.
        floating: columns of text whose values were floating-point numbers in the source.
        whole: whether all columns of the source are there, not only those that were wanted.
        weight: the column that says how many rows of the source a row stands for; empty where that is one.
        partials: for rows that stand for several, the columns that hold what is known of each measure, by its name.
        remote: the database that the rows come from, where they are in one.
        unique: sets of columns in which no two rows are alike.
    """

    relation: "exp.Expr"
    columns: dict[str, str]
    floating: frozenset[str] = frozenset()
    whole: bool = True
    weight: str = ""
    partials: "Mapping[str, Partial]" = {}
    remote: "Remote | None" = None
    unique: Unique = ()


class Reader(Protocol):
    """Makes the rows of one kind of source readable in a session."""

    def __call__(self, session: Session, source: Source, demand: Demand) -> Table:
        """Returns the table. Raises AnalystError if it cannot be read or lacks a column."""


def open_table(session: Session, source: Source, demand: Demand) -> Table:
    """Returns the rows of `source` with the columns that `demand` needs."""
    lowered: dict[str, str] = {}
    for column in demand.columns:
        if (other := lowered.setdefault(column.lower(), column)) != column:
            raise AnalystError(
                f"source {source.name!r}: the columns {other!r} and {column!r} differ only in case, so that they "
                f"cannot be used together; rename one of them, such as in a view",
                argument="source",
                given=column,
            )
    table = READERS[source.kind](session, source, demand)
    for column in demand.columns:
        if column not in table.columns:
            near = nearest(column, table.columns)
            advice = f"; did you mean {near!r}?" if near else ""
            raise AnalystError(
                f"source {source.name!r} has no column {column!r} in its data{advice}",
                argument="source",
                given=column,
                nearest=near,
                available=list(table.columns),
            )
    return table


def read_csv(session: Session, source: Source, demand: Demand) -> Table:
    """CSV files, gzipped or not, as text; all must have the same columns."""
    from sqlglot import exp

    text = source.text
    headers = {file: _header(file, source) for file in session.files[source.name]}
    columns = next(iter(headers.values()))
    for file, header in headers.items():
        if header != columns:
            raise AnalystError(f"source {source.name!r}: the columns of {file.name} are not those of the other files")
    native = _NATIVE_ENCODINGS.get(text.encoding)
    files = list(headers) if native else [_transcoded(session, file, text.encoding) for file in headers]
    options: dict[str, exp.Expr] = {
        "auto_detect": exp.false(),
        "header": exp.true(),
        "delim": literal(text.delimiter),
        "quote": literal('"'),
        "escape": literal('"'),
        "nullstr": literal(""),
        "allow_quoted_nulls": exp.false(),
        "encoding": literal(native or "utf-8"),
        "columns": exp.Struct(
            expressions=[
                exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=literal("VARCHAR"))
                for name in columns
            ]
        ),
    }
    return Table(_scan("read_csv", [session.plain(file) for file in files], options), dict.fromkeys(columns, "VARCHAR"))


def read_parquet(session: Session, source: Source, demand: Demand) -> Table:
    """Parquet files, with their own types."""
    files = session.files[source.name]
    types: dict[str, str] = {}
    alike = True
    for file in files:
        found = _described(session, _scan("read_parquet", [session.plain(file)], {}))
        types = types or found
        alike = alike and found == types
        for column in demand.columns:
            # The engine would turn the values of later files into the first one's type, and round them.
            if not _widens(found.get(column), types.get(column)):
                raise AnalystError(
                    f"source {source.name!r}: column {column!r} is {types[column]} in {files[0].name} and "
                    f"{found[column]} in {file.name}; write both with one type, or declare them as two sources",
                    argument="source",
                    given=source.name,
                )
    scan = _scan("read_parquet", [session.plain(file) for file in files], {})
    return Table(scan, types, whole=alike)


def read_duckdb(session: Session, source: Source, demand: Demand) -> Table:
    """A table or view of a DuckDB file that the session has attached."""
    from sqlglot import exp

    file = session.files[source.name][0]
    parts = source.table.split(".")
    table = exp.Table(
        this=exp.to_identifier(parts[-1], quoted=True),
        db=exp.to_identifier(parts[-2] if len(parts) > 1 else "main", quoted=True),
        catalog=exp.to_identifier(session.database(file), quoted=True),
    )
    types = _described(session, table)
    unique = unique_columns(session, table)
    texts = [quoted(name) for name, kind in types.items() if kind == "VARCHAR"]
    if not texts:
        return Table(table, types, unique=unique)
    # A column may be declared with a collation, which makes "a" and "A" one key and one filter value.
    binary = exp.to_identifier("binary", quoted=True)
    told = [exp.Alias(this=exp.Collate(this=text, expression=binary.copy()), alias=text.this.copy()) for text in texts]
    rows = exp.select(exp.Star(replace=told)).from_(table)
    return Table(rows.subquery("told_apart"), types, unique=unique)


def read_sqlite(session: Session, source: Source, demand: Demand) -> Table:
    """A table or view of a SQLite file, its columns copied as text; which of them held floats is kept."""
    return _from_sqlite(session, source, demand.columns)


def repeated_sqlite(session: Session, source: Source, wanted: Sequence[str]) -> Table:
    """The rows of a SQLite table of which another is alike in every column, each once with their number."""
    return _from_sqlite(session, source, wanted, _weight(wanted))


def _from_sqlite(session: Session, source: Source, wanted: Sequence[str], weight: str = "") -> Table:
    file = session.files[source.name][0]
    table = source.table.replace('"', '""')
    floating: set[str] = set()
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, check_same_thread=False)
        ) as database:
            stop = database.interrupt
            session.interrupt.on_set(stop)
            try:
                known = [row[1] for row in database.execute(f'PRAGMA table_xinfo("{table}")')]
                if not known:
                    raise AnalystError(f"source {source.name!r}: there is no table {source.table!r} in {file.name}")
                columns = [name for name in wanted if name in known]
                listed = [_quoted(name) for name in columns] or ["1"]
                alike = ""
                if weight:
                    listed.append("COUNT(*)")
                    each = [f"{name} COLLATE BINARY, TYPEOF({name})" for name in map(_quoted, known)]
                    alike = f" GROUP BY {', '.join(each)} HAVING COUNT(*) > 1"
                # The names come from the catalogue and are quoted; SQLite has no placeholders for names.
                rows = database.execute(f'SELECT {", ".join(listed)} FROM "{table}"{alike}')  # noqa: S608
                staged = [*(columns or ["1"]), *([weight] if weight else [])]
                name = session.stage(staged, _sqlite_text(rows, staged, floating, source))
            finally:
                session.interrupt.forget(stop)
    except sqlite3.Error as error:
        session.check()
        raise AnalystError(f"source {source.name!r}: {file.name} cannot be read: {error}") from error
    return replace(_staged(name, columns, floating, known), weight=weight)


def read_json(session: Session, source: Source, demand: Demand) -> Table:
    """JSON files, an array of objects or an object a line, copied as text with every digit."""
    files = session.files[source.name]
    columns = list(demand.columns)
    floating: set[str] = set()
    seen: set[str] = set()

    def rows() -> Iterator[list[str | None]]:
        for file in files:
            for record in _records(file, source):
                seen.update(record)
                yield [_json_text(record.get(column)) for column in columns] or [None]

    name = session.stage(columns or ["1"], rows())
    found = [column for column in columns if column in seen] if seen else columns
    return _staged(name, found, floating, list(seen))


def repeated_json(session: Session, source: Source, wanted: Sequence[str]) -> Table:
    """The objects of which another is alike in every member, each once with their number."""
    from sqlglot import exp

    weight = _weight(wanted)

    def rows() -> Iterator[list[str | None]]:
        for file in session.files[source.name]:
            for record in _records(file, source):
                whole = json.dumps(record, sort_keys=True).encode()
                texts = [_json_text(record.get(column)) for column in wanted]
                yield [*texts, hashlib.blake2b(whole, digest_size=16).hexdigest()]

    staged = exp.to_table(session.stage([*wanted, weight], rows()))
    columns = [quoted(column) for column in wanted]
    number = exp.Alias(this=exp.Count(this=exp.Star()), alias=exp.to_identifier(weight, quoted=True))
    alike = exp.select(*columns, number).from_(staged).group_by(*columns, quoted(weight)).having("COUNT(*) > 1")
    return Table(alike.subquery("repeated"), dict.fromkeys(wanted, "VARCHAR"), whole=False, weight=weight)


def read_frame(session: Session, source: Source, demand: Demand) -> Table:
    """A frame that the application put into the catalogue."""
    from sqlglot import exp

    from treadle.analyst.frames import arrow_table

    name = f"frame{list(session.frames).index(source.name)}"
    session.register(name, arrow_table(source.name, session.frames[source.name]))
    table = exp.to_table(name)
    return Table(table, _described(session, table))


def read_remote(session: Session, source: Source, demand: Demand) -> Table:
    """A table or view of a database that makes the groups itself."""
    from treadle.analyst.remote import open_remote

    return open_remote(session, source, demand)


READERS: dict[str, Reader] = {
    "csv": read_csv,
    "parquet": read_parquet,
    "duckdb": read_duckdb,
    "sqlite": read_sqlite,
    "json": read_json,
    "frame": read_frame,
    "postgres": read_remote,
    "sqlalchemy": read_remote,
}


def _scan(function: str, files: list[Path], options: Mapping[str, "exp.Expr"]) -> "exp.Expr":
    from sqlglot import exp

    paths = exp.Array(expressions=[literal(str(file)) for file in files])
    named = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]
    return exp.Table(this=call(function, paths, *named))


def _widens(kind: str | None, first: str | None) -> bool:
    """Whether values of `kind` are the same values, or refused, where they become those of `first`."""
    whole = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
    if kind is None or first is None or kind == first:
        return True
    return bool(whole.fullmatch(kind) and whole.fullmatch(first))


def _described(session: Session, relation: "exp.Expr") -> dict[str, str]:
    from sqlglot import exp

    statement = exp.Describe(this=exp.select("*").from_(relation.copy()))
    return {str(row[0]): str(row[1]) for row in session.run(statement)}


def _weight(columns: Sequence[str]) -> str:
    """A column's name that none of the columns has, in whatever case."""
    weight = "w"
    while weight in map(str.casefold, columns):
        weight += "_"
    return weight


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _staged(name: str, columns: list[str], floating: set[str], known: list[str]) -> Table:
    from sqlglot import exp

    types = dict.fromkeys(columns, "VARCHAR")
    return Table(
        exp.to_table(name), types if columns else dict.fromkeys(known, "VARCHAR"), frozenset(floating), whole=False
    )


def _header(file: Path, source: Source) -> list[str]:
    encoding = "utf-8-sig" if source.text.encoding == "utf-8" else source.text.encoding
    opened = _opener(file)
    try:
        with opened(encoding) as lines:
            header = next(csv.reader(lines, delimiter=source.text.delimiter), None)
    except (OSError, UnicodeError, csv.Error) as error:
        raise AnalystError(f"source {source.name!r}: {file.name} cannot be read as {encoding} text: {error}") from error
    if not header:
        raise AnalystError(f"source {source.name!r}: {file.name} has no line of column names")
    # What pandas writes before the first column, and SAP after the last one, has no name.
    header = [name or f"column{at}" for at, name in enumerate(header, 1)]
    lowered = [name.lower() for name in header]
    for name in header:
        if lowered.count(name.lower()) > 1:
            raise AnalystError(f"source {source.name!r}: {file.name} has two columns called {name!r}")
    return header


def _opener(file: Path) -> Callable[[str], Any]:
    import gzip

    if file.suffix == ".gz":
        return lambda encoding: gzip.open(file, "rt", encoding=encoding, newline="")
    return lambda encoding: file.open(encoding=encoding, newline="")


def _transcoded(session: Session, file: Path, encoding: str) -> Path:
    """A copy of the file in UTF-8, for encodings that the engine does not read."""
    number = len(list(session.folder.glob("text*.csv")))
    copy = session.folder / f"text{number}.csv"
    try:
        with _opener(file)(encoding) as lines, copy.open("w", encoding="utf-8", newline="") as out:
            while piece := lines.read(1 << 20):
                session.check()
                out.write(piece)
    except UnicodeError as error:
        raise AnalystError(f"{file.name} is not {encoding} text: {error}") from error
    return copy


def _records(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """The objects of a JSON file: an array of them, or one a line."""
    try:
        with _opener(file)("utf-8-sig") as lines:
            first = lines.read(1024).lstrip()[:1]
            lines.seek(0)
            read = json.JSONDecoder(
                parse_float=_shortest, parse_int=_shortest, parse_constant=str, object_pairs_hook=_object
            ).decode
            records = read(lines.read()) if first == "[" else (read(line) for line in lines if line.strip())
            for record in records:
                if not isinstance(record, dict):
                    raise AnalystError(f"source {source.name!r}: {file.name} holds something other than objects")
                yield record
    except (OSError, ValueError) as error:
        raise AnalystError(f"source {source.name!r}: {file.name} is not valid JSON: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values. Raises ValueError where a name stands twice: which value counts?"""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice in one object")
    return found


def _shortest(number: str) -> str:
    """A number's spelling without what does not change it: 1001 for 1001.0, 0 for -0."""
    if "." in number and "e" not in number.lower():
        number = number.rstrip("0").rstrip(".")
    return "0" if number == "-0" else number


def _json_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _sqlite_text(
    rows: Iterator[tuple[object, ...]], columns: list[str], floating: set[str], source: Source
) -> Iterator[list[str | None]]:
    for row in rows:
        texts: list[str | None] = []
        for column, value in zip(columns, row, strict=False):
            if isinstance(value, bytes):
                raise AnalystError(f"source {source.name!r}: column {column!r} holds binary data")
            if isinstance(value, float):
                floating.add(column)
            texts.append(value if value is None or isinstance(value, str) else _shortest(repr(value)))
        yield texts or [None]
