"""Propose: a declaration of sources, made from the data themselves, for a person to correct.

Looks at the first rows of a file or frame, guesses what each column is (`columns` has the rules), and writes a
`sources.yaml` that says why. Reads the files it is given and writes nothing.
"""

import codecs
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.columns import Guess, guess
from treadle.analyst.errors import AnalystError
from treadle.analyst.formats import parse_format
from treadle.analyst.place import Place
from treadle.analyst.session import Bounds, Session
from treadle.analyst.source import Dimension, Kind, Measure, Source, TextFormat
from treadle.analyst.table import Demand
from treadle.analyst.tables import open_table
from treadle.analyst.terms import cast, quoted

if TYPE_CHECKING:
    from sqlglot import exp

_KINDS: dict[str, Kind] = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json",
    ".jsonl": "json", ".ndjson": "json", ".duckdb": "duckdb", ".ddb": "duckdb", ".sqlite": "sqlite",
    ".sqlite3": "sqlite", ".db": "sqlite",
}  # fmt: skip
_ROWS = 10_000


class Proposal(Struct, frozen=True):
    """A source made from data; `guesses` says of each column what it was taken for and why."""

    source: Source
    guesses: dict[str, Guess]


def propose(file: Path, bounds: Bounds | None = None) -> list[Proposal]:
    """Returns a source for the file, or for each table of a database file.

    Args:
        file: CSV, Parquet or JSON (also gzipped), or a DuckDB or SQLite database.
        bounds: what looking at it may use.

    Raises:
        AnalystError: the file is of no kind that is known by its ending, or cannot be read.
    """
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    kind = _KINDS.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise AnalystError(f"{file}: its ending is not that of a kind of source; there are: {', '.join(_KINDS)}")
    if not file.is_file():
        raise AnalystError(f"{file} {'is a folder, not a file' if file.is_dir() else 'does not exist'}")
    text = _text_format(file) if kind == "csv" else TextFormat()
    name = _name(file.name.split(".")[0])
    tables = _tables(file, kind) if kind in ("duckdb", "sqlite") else [""]
    found = []
    for table in tables:
        source = Source(
            name=_name(table) if len(tables) > 1 else name, kind=kind, path=file.name, table=table, text=text
        )
        found.append(_proposed(Place(file.resolve().parent), source, bounds))
    return found


def propose_frame(name: str, frame: object) -> Source:
    """Returns a source of kind "frame" with the dimensions and measures that its columns look like."""
    source = Source(name=name, kind="frame")
    return _proposed(Place(frames={name: frame}), source, None).source


def declaration(proposals: Iterable[tuple[Path, Proposal]], folder: Path) -> str:
    """Returns the text of a `sources.yaml`.

    Args:
        proposals: the sources, each with its file.
        folder: where the text will be kept; paths start from it.

    Raises:
        AnalystError: two sources have the same name.
    """
    lines = ["# Proposed from the data. Look through it: the comments say what each column was taken for and why.", ""]
    roots: list[str] = []
    parts: list[str] = []
    names: set[str] = set()
    for file, proposal in proposals:
        source = proposal.source
        if source.name.casefold() in names:
            raise AnalystError(
                f"two of the files would be called {source.name!r}; propose them one by one, and rename one"
            )
        names.add(source.name.casefold())
        place = file.resolve()
        inside = place.is_relative_to(folder.resolve())
        if not inside and str(place.parent) not in roots:
            roots.append(str(place.parent))
        parts += _source_lines(proposal, str(place.relative_to(folder.resolve()) if inside else place))
    if roots:
        lines.append(f"roots: [{', '.join(map(_scalar, roots))}]")
    return "\n".join([*lines, "sources:", *parts]) + "\n"


def _proposed(place: Place, source: Source, bounds: Bounds | None) -> Proposal:
    with Session(place, [source], bounds or Bounds(seconds=60)) as session:
        columns = open_table(session, source, Demand((), ())).columns
        wanted = tuple(Dimension(name=f"c{at}", column=column) for at, column in enumerate(columns))
        table = open_table(session, source, Demand(wanted, ()))
        samples = _samples(session, table.relation, list(columns))
    text = _signs(source.text, samples.values()) if source.kind == "csv" else source.text
    guesses = {
        column: guess(column, "DOUBLE" if column in table.floating else table.columns[column], values, text.decimal,
                      text.thousands)
        for column, values in samples.items()
    }  # fmt: skip
    currencies = [column for column, each in guesses.items() if each.currency]
    taken: set[str] = set()
    names = {column: _name(column, taken) for column in columns}
    dimensions = tuple(
        Dimension(name=names[column], column=_other(column, names), type=each.type, format=parse_format(each.format))
        for column, each in guesses.items()
        if each.role == "dimension"
    )
    measures = tuple(
        Measure(
            name=names[column],
            column=_other(column, names),
            # Half of the last decimal is a tolerance: a guess of fewer than two would let 20.55 match 21.
            decimals=each.decimals if (each.decimals or 0) >= 2 else None,
            currency=names[currencies[0]] if len(currencies) == 1 and each.decimals != 0 else "",
        )
        for column, each in guesses.items()
        if each.role == "measure"
    )
    if not measures:
        measures = (Measure(name=_name("rows", taken), column="*", aggregation="count"),)
    return Proposal(replace(source, dimensions=dimensions, measures=measures, text=text), guesses)


def _samples(session: Session, relation: "exp.Expr", columns: list[str]) -> dict[str, list[str | None]]:
    from sqlglot import exp

    if not columns:
        return {}
    texts = [cast(quoted(column), "VARCHAR") for column in columns]
    rows = session.run(exp.select(*texts).from_(relation.copy()).limit(_ROWS))
    return {column: [row[at] for row in rows] for at, column in enumerate(columns)}


def _tables(file: Path, kind: Kind) -> list[str]:
    if kind == "sqlite":
        try:
            with closing(sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)) as database:
                names = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
                found = [str(row[0]) for row in database.execute(f"{names} ORDER BY name")]
        except sqlite3.Error as error:
            raise AnalystError(f"{file} cannot be read as a SQLite database: {error}") from error
    else:
        import duckdb

        try:
            with duckdb.connect(str(file), read_only=True) as connection:
                names = "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal ORDER BY ALL"
                found = [
                    table if schema == "main" else f"{schema}.{table}"
                    for schema, table in connection.execute(names).fetchall()
                ]
        except duckdb.Error as error:
            raise AnalystError(f"{file} cannot be read as a DuckDB database: {str(error).splitlines()[0]}") from error
    if not found:
        raise AnalystError(f"{file} has no table")
    return found


def _text_format(file: Path) -> TextFormat:
    """The encoding and delimiter of a CSV file, by its beginning."""
    import gzip

    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
        head = opened.read(1 << 20)
    encoding = "utf-8"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            encoding = "cp1252"
    lines = head.decode(encoding, errors="replace").splitlines()
    counts = {sign: lines[0].count(sign) if lines else 0 for sign in (",", ";", "\t", "|")}
    return TextFormat(delimiter=max(counts, key=lambda sign: counts[sign]), encoding=encoding)


def _signs(text: TextFormat, samples: Iterable[Sequence[str | None]]) -> TextFormat:
    """The signs for decimals and thousands: those that more columns can be read with."""
    votes = {".": 0, ",": 0}
    grouped = {".": 0, ",": 0}
    for values in samples:
        filled = [value.strip() for value in values if value and value.strip()]
        for sign, other in ((".", ","), (",", ".")):
            point, group = re.escape(sign), re.escape(other)
            form = re.compile(rf"[-+]?(\d+|\d{{1,3}}({group}\d{{3}})+)({point}\d+)?-?")
            if filled and all(form.fullmatch(value) for value in filled):
                votes[sign] += any(re.search(rf"{point}\d+-?$", value) for value in filled)
                grouped[sign] += any(other in value for value in filled)
    decimal = "," if votes[","] > votes["."] else "."
    thousands = ("." if decimal == "," else ",") if grouped[decimal] and votes[decimal] else ""
    return replace(text, decimal=decimal, thousands=thousands)


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


def _source_lines(proposal: Proposal, path: str) -> list[str]:
    source = proposal.source
    lines = [f"  {_scalar(source.name)}:", f"    kind: {source.kind}", f"    path: {_scalar(path)}"]
    if source.table:
        lines.append(f"    table: {_scalar(source.table)}")
    usual = TextFormat()
    fields = [(name, getattr(source.text, name)) for name in usual.__struct_fields__]
    told = [f"{name}: {_scalar(value)}" for name, value in fields if value != getattr(usual, name)]
    if told:
        lines.append(f"    text: {{{', '.join(told)}}}")
    lines.append("    dimensions:" if source.dimensions else "    dimensions: {}")
    for item in source.dimensions:
        parts = [("column", item.column), ("type", item.type or ""), ("format", str(item.format))]
        lines += _member_lines(item.name, parts, proposal.guesses[item.source_column].reason)
    lines.append("    measures:")
    for measure in source.measures:
        decimals = "" if measure.decimals is None else str(measure.decimals)
        aggregation = "" if measure.aggregation == "sum" else measure.aggregation
        parts = [("column", measure.column), ("aggregation", aggregation), ("currency", measure.currency)]
        reason = (
            proposal.guesses[measure.source_column].reason if measure.source_column != "*" else "no figure was found"
        )
        lines += _member_lines(measure.name, [*parts, ("decimals", decimals)], reason)
    return lines


def _member_lines(name: str, parts: Sequence[tuple[str, str]], reason: str) -> list[str]:
    told = ", ".join(f"{field}: {_scalar(value)}" for field, value in parts if value)
    comment = " ".join(reason.split())
    printable = "".join(sign if sign.isprintable() else "?" for sign in comment)
    return [f"      # {printable}", f"      {_scalar(name)}: {{{told}}}"]


def _scalar(text: str) -> str:
    """The text as YAML: plain where nothing could be taken for something else, else in double quotes as JSON."""
    plain = re.fullmatch(r"[A-Za-z_][\w./() -]*", text, re.ASCII) and text == text.strip()
    words = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
    return text if (plain and text.lower() not in words) or re.fullmatch(r"[0-9]{1,2}", text) else json.dumps(text)
