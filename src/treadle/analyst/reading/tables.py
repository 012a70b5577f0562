"""Tables: how each kind of source becomes rows in a session.

A reader makes one kind of source readable and says with what types; it is told what is wanted of it.
CSV is read as text and never guessed at: what is a number, and how exact, is decided when amounts are computed.
Neighbours: `staged`, for what the engine had better not read itself; `opening`, which adds databases.
"""

import codecs
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, tee
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source, TextFormat
from treadle.analyst.reading.copies import written
from treadle.analyst.reading.encodings import beginning, looks_like, opener, quoting
from treadle.analyst.reading.extra_fields import Head, refuse_extra_fields
from treadle.analyst.reading.faults import ONE_NAME
from treadle.analyst.reading.footers import without_footers
from treadle.analyst.reading.headings import each_named, numbered, twice_in
from treadle.analyst.reading.held_rows import refuse_held_rows
from treadle.analyst.reading.ruled import without_lines
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.staged import read_json, read_sqlite
from treadle.analyst.reading.table import Demand, Table
from treadle.analyst.reading.totals import without_totals
from treadle.analyst.reading.uniqueness import unique_columns
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import cast, literal, quoted, scan
from treadle.analyst.sql.types import INTEGERS
from treadle.tools.errors import nearest

# The engine's type of a column of Arrow or Parquet data, or of a view, in which no row has a value.
_NO_TYPE = '"NULL"'
_MOST_DIGITS = 38
_FEW, _SHOWN = 6, 40
_NATIVE_ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16", "iso8859-1": "latin-1"}
_END = re.compile(r"\r\n|\r|\n")
# Columns of one name have numbers there, by which they are told apart.
_NUMBERED = ("csv", "parquet", "xlsx", "frame")


class Reader(Protocol):
    """Makes the rows of one kind of source readable in a session."""

    def __call__(self, session: Session, source: Source, demand: Demand) -> Table:
        """Returns the table. Raises AnalystError if it cannot be read or lacks a column."""


def read_with(read: Reader, session: Session, source: Source, demand: Demand) -> Table:
    """Returns the rows of `source`, as a reader of its kind makes them, with the columns that `demand` needs."""
    lowered: dict[str, str] = {}
    for column in demand.columns:
        other = lowered.setdefault(column.lower(), column)
        if other != column and source.kind not in _NUMBERED:
            raise AnalystError(
                f"source {source.name!r}: the columns {other!r} and {column!r} differ only in case, so that they "
                f"cannot be used together; rename one of them, such as in a view",
                argument="source",
                given=column,
            )
    try:
        table = read(session, source, demand)
    except OSError as error:
        raise AnalystError(f"source {source.name!r}: its data cannot be read: {error.strerror or error}") from error
    for column in demand.columns:
        if column not in table.columns:
            near = nearest(column, table.columns)
            few = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…" for name in [*table.columns][:_FEW]]
            there = f"; there are {', '.join(few)}{', …' if len(table.columns) > _FEW else ''}" if few else ""
            advice = f"; did you mean {near!r}?" if near else there
            wanted = Demand(source.dimensions, source.measures).columns
            if source.kind == "csv" and len(table.columns) == 1 < len(wanted):
                advice = f"{there}: {ONE_NAME}"
            if alike := numbered(column, table.columns):
                listed = ", ".join(map(repr, alike))
                advice = f", but {listed}: those of one name are counted from the left, so say which is meant"
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
    found = session.files[source.name]
    if source.text.ruled:
        found = [without_lines(session, file, source.text.encoding) for file in found]
        source = replace(source, text=replace(source.text, delimiter="|", encoding="utf-8", quotes=True, skip=0))
    text = source.text
    headers = {file: head_of(file, source) for file in found}
    columns = next(iter(headers.values())).names
    for file, head in headers.items():
        if head.names != columns:
            raise AnalystError(f"source {source.name!r}: the columns of {file.name} are not those of the other files")
    native = _NATIVE_ENCODINGS.get(text.encoding)
    copied = not native or any(_odd_titles(file, text) for file in headers)
    files = [_copied(session, file, text) for file in headers] if copied else list(headers)
    options = _options(source, columns, {head.end for head in headers.values() if head.end})
    if not copied:
        options |= {"skip": literal(text.skip), "encoding": literal(native or "utf-8")}
    each = list(zip(headers.items(), files, strict=True))
    cut = [without_footers(session, source, file, read, head, options) for (file, head), read in each]
    if any(cut):
        files = [
            copy or (read if copied else _copied(session, file, text))
            for copy, ((file, _), read) in zip(cut, each, strict=True)
        ]
        options |= {"skip": literal(0), "encoding": literal("utf-8")}
    for (file, head), read in zip(headers.items(), files, strict=True):
        refuse_extra_fields(session, source, file, read, head, options)
        refuse_held_rows(session, source, file, read, head, options)
    rows = scan("read_csv", [session.plain(file) for file in files], options)
    return without_totals(Table(rows, dict.fromkeys(columns, "VARCHAR")), source)


def _options(source: Source, columns: Sequence[str], ends: set[str]) -> dict[str, "exp.Expr"]:
    """How the engine reads CSV files in UTF-8 that begin with the names of these columns.

    Raises:
        AnalystError: their lines end in several ways, of which the engine would take the one within a name.
    """
    text = source.text
    options: dict[str, exp.Expr] = {
        "auto_detect": exp.false(),
        "header": exp.true(),
        "skip": literal(0),
        "delim": literal(text.delimiter),
        "quote": literal('"' if text.has_quotes else ""),
        "escape": literal('"' if text.has_quotes else ""),
        "nullstr": literal(""),
        "allow_quoted_nulls": exp.false(),
        "encoding": literal("utf-8"),
        "columns": exp.Struct(
            expressions=[
                exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=literal("VARCHAR"))
                for name in columns
            ]
        ),
    }
    if len(ends) == 1:
        # The engine takes it from the first break of a line that it sees, which may stand within a quoted name.
        options["new_line"] = literal(next(iter(ends)).replace("\r", r"\r").replace("\n", r"\n"))
    elif ends and any(_END.search(name) for name in columns):
        raise AnalystError(
            f"source {source.name!r}: a column's name has a line break, and the lines of its files end in several "
            f"ways: save the files alike"
        )
    return options


def read_parquet(session: Session, source: Source, demand: Demand) -> Table:
    """Parquet files, with their own types."""
    files = session.files[source.name]
    read = {file: session.parquet_types(session.plain(file)) for file in files}
    described = {file: _as_called(session, source, file, demand, found) for file, found in read.items()}
    first = next(iter(described.values()))
    called = {file: dict(zip(read[file], found, strict=True)) for file, found in described.items()}
    for file, found in described.items():
        # The engine puts those together that it calls alike, whatever they are called here.
        if called[file] != called[files[0]] and (found is not read[file] or first is not read[files[0]]):
            raise AnalystError(f"source {source.name!r}: the columns of {file.name} are not those of the other files")
    types = _agreed(source, described, demand)
    # The engine takes the types of the first file, also where it has no value, and so no type, in a column.
    by_name = types != first and all(found.keys() == first.keys() for found in described.values())
    options: dict[str, exp.Expr] = {"union_by_name": exp.true()} if by_name else {}
    rows = scan("read_parquet", [session.plain(file) for file in files], options)
    if first is not read[files[0]]:
        names = [exp.to_identifier(name, quoted=True) for name in first]
        rows.set("alias", exp.TableAlias(this=exp.to_identifier("file"), columns=names))
    return _typed(Table(rows, types, whole=all(found == first for found in described.values())))


def _as_called(session: Session, source: Source, file: Path, demand: Demand, found: dict[str, str]) -> dict[str, str]:
    """The engine's types of the columns of a Parquet file, with those of one name as they are told apart.

    Raises:
        AnalystError: they cannot be, or the engine reads decimals as floating-point numbers, for want of digits.
    """
    # The engine calls the second of two columns of one name name_1, and so on.
    alike = twice_in([re.sub(r"(_\d+)+$", "", name) for name in found])
    if not alike and not any(found.get(name) == "DOUBLE" for name in demand.columns):
        return found
    own = _parquet_columns(session, file)
    if twice_in([name for name, _ in own]):
        names = each_named([name for name, _ in own], f"source {source.name!r}: {file.name}")
        found = dict(zip(names, found.values(), strict=True))
    for column, (_, digits) in zip(found, own, strict=True):
        if digits > _MOST_DIGITS and found[column] == "DOUBLE" and column in demand.columns:
            raise AnalystError(
                f"source {source.name!r}: column {column!r} of {file.name} has decimals of {digits} digits, and "
                f"{_MOST_DIGITS} is the most that are exact; write it as decimal({_MOST_DIGITS}, …)",
                argument="source",
                given=source.name,
            )
    return found


def _parquet_columns(session: Session, file: Path) -> list[tuple[str, int]]:
    """The columns of a Parquet file as it calls them, each with how many digits its decimals have, 0 if it has none."""
    told = exp.select(*map(exp.column, ("name", "precision", "logical_type", "num_children")))
    _, *nodes = session.run(told.from_(scan("parquet_schema", [session.plain(file)], {})))
    found, within = [], 0
    for name, digits, kind, children in nodes:
        if within:
            within -= 1
        else:
            found.append((str(name), int(digits or 0) if str(kind).startswith("Decimal") else 0))
        within += children or 0
    return found


def read_duckdb(session: Session, source: Source, demand: Demand) -> Table:
    """A table or view of a DuckDB file that the session has attached."""
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
        return _typed(Table(table, types, unique=unique))
    # A column may be declared with a collation, which makes "a" and "A" one key and one filter value.
    binary = exp.to_identifier("binary", quoted=True)
    told = [exp.Alias(this=exp.Collate(this=text, expression=binary.copy()), alias=text.this.copy()) for text in texts]
    rows = exp.select(exp.Star(replace=told)).from_(table)
    return _typed(Table(rows.subquery("told_apart"), types, unique=unique))


def read_frame(session: Session, source: Source, demand: Demand) -> Table:
    """A frame that the application put into the catalogue."""
    from treadle.analyst.reading.frames import arrow_table

    name = f"frame{list(session.frames).index(source.name)}"
    session.register(name, arrow_table(source.name, session.frames[source.name]), source.name)
    table = exp.to_table(name)
    return _typed(Table(table, _described(session, table)))


def read_excel(session: Session, source: Source, demand: Demand) -> Table:
    """A sheet of an Excel file, copied as text."""
    from treadle.analyst.reading.excel import read_xlsx

    return read_xlsx(session, source, demand)


READERS: dict[str, Reader] = {
    "xlsx": read_excel,
    "csv": read_csv,
    "parquet": read_parquet,
    "duckdb": read_duckdb,
    "sqlite": read_sqlite,
    "json": read_json,
    "frame": read_frame,
}
"""The reader of each kind of source that is no database server."""


def _agreed(source: Source, described: Mapping[Path, Mapping[str, str]], demand: Demand) -> dict[str, str]:
    """The types of all columns of several files: of each the first that a file has for it.

    Raises:
        AnalystError: files differ in the type of a column that is asked for.
    """
    types: dict[str, str] = {}
    said: dict[str, Path] = {}
    first = next(iter(described.values()))
    for file, found in described.items():
        for column, kind in found.items():
            if column in first and types.get(column, _NO_TYPE) == _NO_TYPE:
                types[column], said[column] = kind, file
        for column in demand.columns:
            # The engine would turn the values of later files into the first one's type, and round them.
            if found.get(column) != _NO_TYPE and not _widens(found.get(column), types.get(column)):
                raise AnalystError(
                    f"source {source.name!r}: column {column!r} is {types[column]} in {said[column].name} and "
                    f"{found[column]} in {file.name}; write both with one type, or declare them as two sources",
                    argument="source",
                    given=source.name,
                )
    return types


def _typed(table: Table) -> Table:
    """The table with columns of text where it has columns without any value, and so of no type."""
    empty = [name for name, kind in table.columns.items() if kind == _NO_TYPE]
    if not empty:
        return table
    told = [exp.Alias(this=cast(quoted(name), "VARCHAR"), alias=quoted(name).this) for name in empty]
    rows = exp.select(exp.Star(replace=told)).from_(table.relation.copy()).subquery("typed")
    return replace(table, relation=rows, columns=table.columns | dict.fromkeys(empty, "VARCHAR"))


def _widens(kind: str | None, first: str | None) -> bool:
    """Whether values of `kind` are the same values, or refused, where they become those of `first`."""
    return kind is None or first is None or kind == first or {kind, first} <= INTEGERS


def _described(session: Session, relation: "exp.Expr") -> dict[str, str]:
    statement = exp.Describe(this=exp.select(exp.Star()).from_(relation.copy(), copy=False))
    return {str(row[0]): str(row[1]) for row in session.run(statement)}


def head_of(file: Path, source: Source) -> Head:
    """Returns how a CSV file begins, as the source is declared.

    Raises:
        AnalystError: it is no such text, has no names of columns, or one as another is given to tell it apart.
    """
    encoding = "utf-8-sig" if source.text.encoding == "utf-8" else source.text.encoding
    opened = opener(file)
    try:
        with opened(encoding) as lines:
            for _ in range(source.text.skip):
                lines.readline()
            taken, again = tee(lines)
            rows = csv.reader(taken, delimiter=source.text.delimiter, quoting=quoting(source.text.has_quotes))
            header = next(rows, None)
            read = list(islice(again, rows.line_num))
            extra = max(0, _width_of_next(rows) - len(header or ()))
    except (OSError, UnicodeError, csv.Error) as error:
        told = f"source {source.name!r}: {file.name} cannot be read as {source.text.encoding} text: {error}"
        raise AnalystError(told + (_advice(file, source) if isinstance(error, UnicodeError) else "")) from error
    if "\0" in "".join(header or ()):
        told = f"source {source.name!r}: {file.name} is no {source.text.encoding} text: its names have zeros in them"
        raise AnalystError(told + _advice(file, source))
    if not header:
        raise AnalystError(f"source {source.name!r}: {file.name} has no line of column names")
    end = _END.search(read[-1])
    names = each_named(header, f"source {source.name!r}: {file.name}")
    named = max((at for at, name in enumerate(header, 1) if name.strip()), default=len(header))
    return Head(names, end[0] if end else "", len(header) - named, extra)


def _width_of_next(rows: Iterator[list[str]]) -> int:
    """How many fields the next row has; 0 if that cannot be told, which whoever reads the rows tells."""
    try:
        return len(next(filter(None, rows), ()))
    except (csv.Error, UnicodeError):
        return 0


def _advice(file: Path, source: Source) -> str:
    """What to do about a file that is not of the declared encoding; empty if it looks like that all the same."""
    seen = looks_like(beginning(file))
    same = codecs.lookup(seen).name == codecs.lookup(source.text.encoding).name
    return "" if same else f"; declare its 'encoding' under 'text', such as {seen}"


def _odd_titles(file: Path, text: TextFormat) -> bool:
    """Whether the engine would skip others than the lines before the one with the columns' names.

    It finds no row below titles that end in another way than that one, and skips lines within quotes as one.
    """
    with opener(file)(text.encoding) as lines:
        read = [lines.readline() for _ in range(text.skip + 1)]
    ends = [_END.search(line) for line in read]
    return len({found[0] for found in ends if found}) > 1 or (
        text.has_quotes and any('"' in line for line in read[: text.skip])
    )


def _copied(session: Session, file: Path, text: TextFormat) -> Path:
    """A copy of the file in UTF-8 from the line with the columns' names on, for what the engine does not read."""
    number = len(list(session.folder.glob("text*.csv")))
    copy = session.folder / f"text{number}.csv"
    session.copies[copy] = (file, text.skip)
    encoding = "utf-8-sig" if text.encoding == "utf-8" else text.encoding
    try:
        with opener(file)(encoding) as lines, written(copy) as out:
            for _ in range(text.skip):
                lines.readline()
            while piece := lines.read(1 << 20):
                session.check()
                out.write(piece)
    except UnicodeError as error:
        raise AnalystError(f"{file.name} is not {text.encoding} text: {error}") from error
    return copy
