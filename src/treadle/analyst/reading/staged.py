"""Staged: SQLite tables and JSON files, read here and copied into a session as text, with every digit.

The engine would pass the numbers of both through floating point. Neighbour: `tables`, for what the engine reads itself.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import UNKNOWN, Source
from treadle.analyst.reading.encodings import opener
from treadle.analyst.reading.key_values import FIRST_DECIMAL, MOST_WHOLE
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand, Table
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import quoted


def read_sqlite(session: Session, source: Source, demand: Demand) -> Table:
    """A table or view of a SQLite file, its columns copied as text; which of them held floats is kept."""
    return _from_sqlite(session, source, demand.columns)


def repeated_sqlite(session: Session, source: Source, wanted: Sequence[str]) -> Table:
    """The rows of a SQLite table of which another is alike in every column, each once with their number."""
    return _from_sqlite(session, source, wanted, _weight(wanted))


def _from_sqlite(session: Session, source: Source, wanted: Sequence[str], weight: str = "") -> Table:
    file = session.files[source.name][0]
    signs = _signs_of_keys(source)
    table = source.table.replace('"', '""')
    floating: set[str] = set()
    try:
        with _opened(session, file) as database:
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
                rows = database.execute(f'SELECT {", ".join(listed)} FROM "{table}"{alike}')  # noqa: S608 - quoted
                staged = [*(columns or ["1"]), *([weight] if weight else [])]
                name = session.stage(staged, _sqlite_text(rows, staged, floating, source, signs), [source.name])
            finally:
                session.interrupt.forget(stop)
    except sqlite3.Error as error:
        session.check()
        raise AnalystError(f"source {source.name!r}: {file.name} cannot be read: {error}") from error
    return replace(_staged(name, columns, floating, known), weight=weight)


@contextmanager
def _opened(session: Session, file: Path) -> Iterator[sqlite3.Connection]:
    """The file, for all of a question in one state where that keeps nobody from writing: with a write-ahead log."""
    if (known := session.states.get(file)) is not None:
        yield known
        return
    database = sqlite3.connect(
        f"file:{quote(str(file))}?mode=ro", uri=True, check_same_thread=False, isolation_level=None
    )
    try:
        if database.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            database.execute("BEGIN")
            # It is in that state from the first that it reads.
            database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            session.states[file] = database
        yield database
    finally:
        if file not in session.states:
            database.close()


def read_json(session: Session, source: Source, demand: Demand) -> Table:
    """JSON files, an array of objects or an object a line, copied as text with every digit."""
    files = session.files[source.name]
    columns = list(demand.columns)
    floating: set[str] = set()
    # In the order of the file, of which a proposal makes names.
    seen: dict[str, None] = {}
    signs = decimal_signs(source)

    def rows() -> Iterator[list[str | None]]:
        for file in files:
            for record in _records(file, source):
                seen.update(dict.fromkeys(record))
                yield [_json_text(record.get(column), signs.get(column, ".")) for column in columns] or [None]

    name = session.stage(columns or ["1"], rows(), [source.name])
    found = [column for column in columns if column in seen] if seen else columns
    return _staged(name, found, floating, list(seen))


def repeated_json(session: Session, source: Source, wanted: Sequence[str]) -> Table:
    """The objects of which another is alike in every member, each once with their number."""
    weight = _weight(wanted)
    signs = decimal_signs(source)

    def rows() -> Iterator[list[str | None]]:
        for file in session.files[source.name]:
            for record in _records(file, source):
                whole = json.dumps(record, sort_keys=True).encode()
                texts = [_json_text(record.get(column), signs.get(column, ".")) for column in wanted]
                yield [*texts, hashlib.blake2b(whole, digest_size=16).hexdigest()]

    staged = exp.to_table(session.stage([*wanted, weight], rows(), [source.name]))
    columns = [quoted(column) for column in wanted]
    number = exp.Alias(this=exp.Count(this=exp.Star()), alias=exp.to_identifier(weight, quoted=True))
    alike = exp.select(*columns, number).from_(staged).group_by(*columns, quoted(weight)).having("COUNT(*) > 1")
    return Table(alike.subquery("repeated"), dict.fromkeys(wanted, "VARCHAR"), whole=False, weight=weight)


def _weight(columns: Sequence[str]) -> str:
    """A column's name that none of the columns has, in whatever case."""
    weight = "w"
    while weight in map(str.casefold, columns):
        weight += "_"
    return weight


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _staged(name: str, columns: list[str], floating: set[str], known: list[str]) -> Table:
    types = dict.fromkeys(columns, "VARCHAR")
    return Table(
        exp.to_table(name), types if columns else dict.fromkeys(known, "VARCHAR"), frozenset(floating), whole=False
    )


def _records(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """The objects of a JSON file: an array of them, or one a line."""
    try:
        with opener(file)("utf-8-sig") as lines:
            first = lines.read(1024).lstrip()[:1]
            lines.seek(0)
            read = json.JSONDecoder(
                parse_float=_number, parse_int=_number, parse_constant=str, object_pairs_hook=_object
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


def shortest(number: str) -> str:
    """A number's spelling without what does not change it: 1001 for 1001.0, 0 for -0, 2000 for 2e3."""
    if "e" in number.lower():
        number = _written_out(number)
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return "0" if number == "-0" else number


def _written_out(number: str) -> str:
    """A number without an exponent where its digits fit, as `key_values.text_of_column` has those of the engine."""
    try:
        value = Decimal(number)
    except InvalidOperation:  # An exponent of more digits than anybody counts with.
        return number
    if not value:
        return "0"
    return format(value, "f") if FIRST_DECIMAL <= value.adjusted() < MOST_WHOLE else number


class _Number(str):
    """A number of a JSON file, which is no text there."""

    __slots__ = ()


def _number(text: str) -> _Number:
    return _Number(shortest(text))


def decimal_signs(source: Source) -> dict[str, str]:
    """Returns, for each column whose text is read as numbers, the decimal sign that is declared for text: what is a
    number in the data already is put among such text, and has to be spelled like it. In any other column it is told
    with a point."""
    if source.text.decimal in (".", UNKNOWN):
        return {}
    columns = [column for measure in source.measures for column in measure.columns]
    columns += [item.source_column for item in source.dimensions if item.type in ("integer", "decimal")]
    return dict.fromkeys(columns, source.text.decimal)


def _signs_of_keys(source: Source) -> dict[str, str]:
    """Those of a SQLite file: what is a number in a measure's column is told apart from text by what is kept of it."""
    return decimal_signs(replace(source, measures=()))


def spells_numbers(source: Source, column: str) -> bool:
    """Returns whether the floating-point numbers of a column stand among its text as that is declared to be spelled."""
    return source.kind == "xlsx" or (source.kind == "sqlite" and column in _signs_of_keys(source))


def _json_text(value: object, sign: str) -> str | None:
    if isinstance(value, _Number):
        return value.replace(".", sign)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _sqlite_text(
    rows: Iterator[tuple[object, ...]],
    columns: list[str],
    floating: set[str],
    source: Source,
    signs: Mapping[str, str],
) -> Iterator[list[str | None]]:
    for row in rows:
        texts: list[str | None] = []
        for column, value in zip(columns, row, strict=False):
            if isinstance(value, bytes):
                raise AnalystError(f"source {source.name!r}: column {column!r} holds binary data")
            if isinstance(value, float):
                floating.add(column)
            if value is None or isinstance(value, str):
                texts.append(value)
            else:
                texts.append(shortest(repr(value)).replace(".", signs.get(column, ".")))
        yield texts or [None]
