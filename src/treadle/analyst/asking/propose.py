"""Propose: a declaration of sources, made from the data themselves, for a person to correct.

Looks at the first rows of a file or frame, guesses what each column is (`columns` has the rules), and writes a
`sources.yaml` that says why. Reads the files it is given and writes nothing.
"""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.asking.column_names import is_figure
from treadle.analyst.asking.columns import Guess, guess
from treadle.analyst.asking.currency_columns import currency_columns
from treadle.analyst.asking.doubts import (
    about_days,
    asked_counts,
    asked_empty,
    asked_marks,
    asked_totals,
    cut_off,
    names_of_fewer,
    no_names,
    of_one_name,
    one_column,
    spelled_otherwise,
    told_once,
    under_no_name,
    unsigned,
)
from treadle.analyst.asking.footers import footers_of, without_short_lines
from treadle.analyst.asking.footing import adds_up, has_nothing, has_unmarked, no_coincidence, told_apart, usual_marks
from treadle.analyst.asking.kinds import kind_of
from treadle.analyst.asking.sums_within import adds_up_others, runs_on
from treadle.analyst.asking.text_format import any_text, number_signs, side_by_side, text_format, title_rows
from treadle.analyst.declared.errors import AnalystError, HeldRows
from treadle.analyst.declared.formats import parse_format
from treadle.analyst.declared.place import Place
from treadle.analyst.declared.source import UNKNOWN, Dimension, Kind, Measure, Source, TextFormat
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.ctrl_c import ctrl_c
from treadle.analyst.reading.excel import sheet_names, sheet_of, sheet_rows
from treadle.analyst.reading.number_spelling import SIGNS
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand
from treadle.analyst.reading.tables import head_of
from treadle.analyst.reading.totals import COUNTS, USUAL, WITH_NAMES
from treadle.analyst.remote.opening import open_table
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import cast, quoted

_ROWS = 10_000


class Proposal(Struct, frozen=True):
    """A source made from data.

    Attributes:
        source: the source.
        guesses: what each column was taken for and why.
        footers: what marks lines of totals of which each has other fields than a row has.
    """

    source: Source
    guesses: dict[str, Guess]
    footers: tuple[str, ...] = ()

    @property
    def questions(self) -> tuple[str, ...]:
        """What the data leave open, for a person to say; until then nothing is taken for either."""
        return self.source.questions


def propose(file: str | Path, bounds: Bounds | None = None, *, decimal: str | None = None) -> list[Proposal]:
    """Returns a source for the file, or for each table of a database file and each sheet of an Excel file.

    Args:
        file: CSV, Parquet or JSON (also gzipped), an Excel file, or a DuckDB or SQLite database.
        bounds: what looking at it may use.
        decimal: the decimal sign of numbers in a CSV file, or in texts of an Excel file, that do not prove it; without
            one, that is a question.

    Raises:
        AnalystError: the file is of no kind that is known by its ending, or cannot be read.
    """
    file = Path(file)
    kind = kind_of(file)
    text = text_format(file) if kind == "csv" else TextFormat()
    name = _name(file.name.split(".")[0])
    tables = _tables(file, kind) if kind in ("duckdb", "sqlite", "xlsx") else [""]
    found = []
    for table in tables:
        if kind == "xlsx":
            text = TextFormat(skip=title_rows(sheet_rows(file, table, str(file))))
        source = Source(
            name=_name(table) if len(tables) > 1 else name, kind=kind, path=file.name, table=table, text=text
        )
        found.append(_proposed(Place(file.resolve().parent), source, bounds, decimal))
    return found


def propose_frame(name: str, frame: object) -> Source:
    """Returns a source of kind "frame" with the dimensions and measures that its columns look like."""
    source = Source(name=name, kind="frame")
    return _proposed(Place(frames={name: frame}), source, None).source


def _proposed(place: Place, source: Source, bounds: Bounds | None, decimal: str | None = None) -> Proposal:
    try:
        return _seen(place, source, bounds, decimal)
    except HeldRows as held:
        # A session of its own: one remembers what it left out of a file.
        found = _seen(place, replace(source, text=replace(source.text, quotes=True)), bounds, decimal)
        open_still = replace(found.source, text=replace(found.source.text, quotes=None))
        return _asking(replace(found, source=open_still), str(held).partition(": ")[2])


def _seen(place: Place, source: Source, bounds: Bounds | None, decimal: str | None) -> Proposal:
    with Session(place, [source], bounds or Bounds(seconds=60)) as session:
        look = _looked_at if source.kind in ("csv", "xlsx") else _guessed
        return look(session, source, decimal)


def _looked_at(session: Session, source: Source, decimal: str | None) -> Proposal:
    """What a file or sheet looks like, without the lines that are no rows."""
    short = without_short_lines(session, source) if source.kind == "csv" else []
    found = _without_totals(session, _guessed(session, source, decimal), decimal)
    marks, questions = footers_of(session, found.source, short)
    added = tuple(mark for mark in marks if mark not in found.source.text.totals)
    text = replace(found.source.text, totals=(*found.source.text.totals, *added))
    return _asking(replace(found, source=replace(found.source, text=text), footers=added), *questions)


def _guessed(session: Session, source: Source, decimal: str | None, proved: TextFormat | None = None) -> Proposal:
    """What the rows look like; where they do not prove the signs of their numbers, those that are `proved` hold."""
    columns = open_table(session, source, Demand((), ())).columns
    binary = _binary(session.files[source.name][0], source.table, list(columns)) if source.kind == "sqlite" else []
    columns = {column: kind for column, kind in columns.items() if column not in binary}
    wanted = tuple(Dimension(name=f"c{at}", column=column) for at, column in enumerate(columns))
    table = open_table(session, source, Demand(wanted, ()))
    samples = _samples(session, table.relation, list(columns))
    text, questions = source.text, tuple[str, ...]()
    if source.kind == "csv":
        unnamed = _unnamed_at_the_end(session, source)
        # Not declared, one without a value is refused as soon as it has any.
        samples = {column: values for column, values in samples.items() if column not in unnamed or any_text(values)}
        columns = {column: columns[column] for column in samples}
        text, questions = number_signs(source.text, samples, decimal)
        questions = (*filter(None, [under_no_name(samples, unnamed), _above_the_names(session, source)]), *questions)
        if proved is not None:
            text, questions = _with_signs(text, questions, proved, samples)
    cells = _cells(session.files[source.name][0], source) if source.kind == "xlsx" else []
    if cells:
        text, questions = number_signs(source.text, _spelled_cells(list(columns), cells), decimal)
    guesses = {
        column: guess(column, "DOUBLE" if column in table.floating else table.columns[column], values, text.decimal,
                      text.thousands)
        for column, values in samples.items()
    }  # fmt: skip
    guesses = about_days(_told_by_column(guesses, samples), cells)
    questions += tuple(f"{column} holds binary data, and is left out" for column in binary)
    if source.kind in ("csv", "xlsx") and (odd := no_names(list(columns))):
        questions += (odd,)
    questions += tuple(filter(None, [cut_off(list(columns), cells), one_column(list(columns))]))
    questions += tuple(each.question for each in guesses.values() if each.question)
    questions += (*spelled_otherwise(guesses, samples, questions), *asked_marks(guesses, samples))
    asked = [unsigned(guesses, samples), runs_on(guesses, samples, text), currency_columns(guesses)[1]]
    asked += [side_by_side(samples), of_one_name(samples)]
    if source.kind in ("csv", "xlsx") and not side_by_side(samples):
        asked.append(told_once(guesses, samples))
    questions += tuple(filter(None, asked))
    if (star := guesses.get("*")) and star.role == "measure":
        # As the column of a measure it would stand for whole rows.
        told = "numbers, but a column called * cannot be added up: rename it"
        guesses["*"] = replace(star, role="dimension", reason=told)
    dimensions, measures = _members(guesses)
    found = replace(source, dimensions=dimensions, measures=measures, text=text, questions=questions)
    return Proposal(found, guesses)


def _unnamed_at_the_end(session: Session, source: Source) -> list[str]:
    """What the columns of a CSV file are called that have no name and stand behind all that have one."""
    if source.text.ruled:
        return []
    head = head_of(session.files[source.name][0], source)
    return head.names[len(head.names) - head.unnamed :]


def _above_the_names(session: Session, source: Source) -> str:
    """A question if the last title of a CSV file looks like names, and those below it like a row."""
    if source.text.ruled or not source.text.skip:
        return ""
    file = session.files[source.name][0]
    try:
        above = head_of(file, replace(source, text=replace(source.text, skip=source.text.skip - 1)))
    except AnalystError:
        # Nothing stands in it.
        return ""
    return names_of_fewer(above.names, head_of(file, source).names)


def _with_signs(
    text: TextFormat, questions: tuple[str, ...], proved: TextFormat, samples: Mapping[str, list[str | None]]
) -> tuple[TextFormat, tuple[str, ...]]:
    """The signs of some rows; those of all where some prove none, as a line of totals is written like the others."""
    if text.decimal == UNKNOWN != proved.decimal:
        text, questions = number_signs(text, samples, proved.decimal)
    if text.decimal == proved.decimal and not text.thousands:
        text = replace(text, thousands=proved.thousands)
    return text, questions


def _told_by_column(guesses: dict[str, Guess], samples: Mapping[str, list[str | None]]) -> dict[str, Guess]:
    """The guesses, with the currency of amounts whose sign is that of several where a column has but that one, and with
    what a name says that amounts are in where no column says it, or a question where one says something else."""
    columns = [column for column, each in guesses.items() if each.currency]
    codes = {value.strip() for column in columns for value in samples[column] if value is not None} - {""}
    code = codes.pop() if len(codes) == 1 else ""

    def told(column: str, each: Guess) -> Guess:
        if each.sign and SIGNS.get(code) == each.sign:
            reason = f"amounts in {each.sign}, and {columns[0]} has {code}"
            return replace(each, unit=code, question="", reason=reason)
        if each.named and not columns:
            return replace(each, unit=each.named, reason=f"{each.reason}; by its name amounts in {each.named}")
        if each.named not in ("", code):
            asked = (
                f"{column} is in {each.named} by its name, and {columns[0]} has currencies: declare "
                f"'unit: {each.named}' in place of 'currency' if these are those of other amounts"
            )
            return replace(each, question=each.question or asked)
        return each

    return {column: told(column, each) for column, each in guesses.items()}


def _members(guesses: Mapping[str, Guess]) -> tuple[tuple[Dimension, ...], tuple[Measure, ...]]:
    """The dimensions and measures that the columns look like."""
    currencies, _ = currency_columns(guesses)
    taken: set[str] = set()
    names = {column: _name(column, taken) for column in guesses}
    dimensions = tuple(
        Dimension(name=names[column], column=_other(column, names), type=each.type, format=parse_format(each.format))
        for column, each in guesses.items()
        if each.role == "dimension"
    )
    measures = tuple(
        Measure(
            name=names[column],
            column=_other(column, names),
            # Fewer than two would make the tolerance wider than it is without a guess.
            decimals=each.decimals if each.decimals is not None and each.decimals > 1 else None,
            currency=names[currencies[column]] if column in currencies else "",
            unit=each.unit,
        )
        for column, each in guesses.items()
        if each.role == "measure"
    )
    return dimensions, measures or (Measure(name=_name("rows", taken), column="*", aggregation="count"),)


def _without_totals(session: Session, found: Proposal, decimal: str | None) -> Proposal:
    """The proposal without the lines of totals that add up the others; a question where some only look like it."""
    source, signs = found.source, found.source.text
    table = open_table(session, source, Demand((), ()))
    seen = usual_marks(session, table, (*USUAL, *WITH_NAMES, *COUNTS))
    marked, named, counting = (tuple(mark for mark in seen if mark in of) for of in (USUAL, WITH_NAMES, COUNTS))
    for marks in filter(None, dict.fromkeys((marked, (*marked, *named)))):
        tried = _guessed(session, replace(source, text=replace(source.text, totals=marks)), decimal, signs)
        if adds_up(session, tried.source) and told_apart(session, tried.source, sure=marks == marked):
            found = tried
            break
    else:
        if marked or named:
            found = _asking(found, asked_totals((*marked, *named)))
    if counting:
        found = _asking(found, asked_counts(counting))
    source = found.source
    if source.dimensions and has_unmarked(session, source):
        text = replace(source.text, totals=(*source.text.totals, ""))
        tried = _guessed(session, replace(source, text=text), decimal, signs)
        if adds_up(session, tried.source):
            sure = no_coincidence(session, tried.source)
            found = _asking(tried, *found.questions) if sure else _asking(found, asked_totals(text.totals))
        elif has_nothing(session, source):
            found = _asking(found, asked_empty(text.totals))
    if found.source is source and not (marked or named or source.text.totals):
        samples = _samples(session, table.relation, list(found.guesses))
        if all(len(values) < _ROWS for values in samples.values()):
            found = _asking(found, *filter(None, [adds_up_others(found.guesses, samples, source.text)]))
    return found


def _asking(found: Proposal, *questions: str) -> Proposal:
    """The proposal with more questions."""
    every = tuple(dict.fromkeys((*found.questions, *questions)))
    return replace(found, source=replace(found.source, questions=every))


def _samples(session: Session, relation: "exp.Expr", columns: list[str]) -> dict[str, list[str | None]]:
    if not columns:
        return {}
    texts = [cast(quoted(column), "VARCHAR") for column in columns]
    rows = session.run(exp.select(*texts).from_(relation.copy()).limit(_ROWS))
    return {column: [row[at] for row in rows] for at, column in enumerate(columns)}


def _cells(file: Path, source: Source) -> list[list[Any]]:
    """The rows of a sheet below its line of names, as the file has them."""
    return sheet_rows(file, sheet_of(file, source.table, str(file)), str(file))[source.text.skip + 1 :]


def _spelled_cells(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[str | None]]:
    """The texts among what may be amounts in a sheet: what is a number there has no sign of its own."""
    found: dict[str, list[str | None]] = {}
    for at, column in enumerate(columns):
        cells = [row[at] for row in rows]
        if is_figure(column) or any(isinstance(cell, float) for cell in cells):
            found[column] = [cell for cell in cells if isinstance(cell, str)]
    return found


def _tables(file: Path, kind: Kind) -> list[str]:
    if kind == "xlsx":
        found = [sheet for sheet in sheet_names(file, str(file)) if sheet_rows(file, sheet, str(file))]
    elif kind == "sqlite":
        try:
            with closing(_sqlite(file)) as database:
                names = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
                found = [str(row[0]) for row in database.execute(f"{names} ORDER BY name")]
        except sqlite3.Error as error:
            raise AnalystError(f"{file} cannot be read as a SQLite database: {error}") from error
    else:
        import duckdb

        try:
            with ctrl_c(), duckdb.connect(str(file), read_only=True) as connection:
                names = "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal ORDER BY ALL"
                found = [
                    table if schema == "main" else f"{schema}.{table}"
                    for schema, table in connection.execute(names).fetchall()
                ]
        except duckdb.Error as error:
            raise AnalystError(f"{file} cannot be read as a DuckDB database: {str(error).splitlines()[0]}") from error
    if not found:
        raise AnalystError(f"{file} has no {'sheet with rows' if kind == 'xlsx' else 'table'}")
    return found


def _binary(file: Path, table: str, columns: Sequence[str]) -> list[str]:
    """The columns of a SQLite table that hold binary data in any row, such as pictures."""
    names = [_identifier(column) for column in columns]
    looked = ", ".join(f"max(typeof({name}) = 'blob')" for name in names)
    try:
        with closing(_sqlite(file)) as database:
            found = database.execute(f"SELECT {looked} FROM {_identifier(table)}").fetchone()  # noqa: S608 - quoted
    except sqlite3.Error:
        # What is wrong with it is told by whoever reads the rows.
        return []
    return [column for column, held in zip(columns, found, strict=True) if held]


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)


def _name(column: str, taken: set[str] | None = None) -> str:
    """A name that is easy to type, and no other column's."""
    name = re.sub(r"\W+", "_", column.strip()).strip("_").lower() or "column"
    number, found = 2, name
    while taken is not None and found in taken:
        found, number = f"{name}_{number}", number + 1
    if taken is not None:
        taken.add(found)
    return found


def _other(column: str, names: dict[str, str]) -> str:
    return "" if names[column] == column else column
