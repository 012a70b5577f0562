"""Ruled: tables that are drawn, as SAP writes its lists into files: `|` around every field, and lines of dashes.

    -----------------------
    |BUKRS|      HSL|WAERS|
    |---------------------|
    |1001 |64.285,72-|EUR |
    -----------------------

Lines before the names of the columns are titles, on each page that begins with them. Whatever else is no row is
refused, so that no row is lost because its line was cut off.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.reading.copies import written
from treadle.analyst.reading.encodings import opener
from treadle.analyst.reading.session import Session

_DRAWN = set("-|+=_ ")
_LEAST = 5


def is_ruled(lines: Sequence[str]) -> bool:
    """Returns whether the first lines of a file draw a table."""
    return any(map(_is_line, lines)) and sum(_is_row(line) for line in lines) > 1


def without_lines(session: Session, file: Path, encoding: str) -> Path:
    """Returns a copy of the file in the session's folder, as CSV with `|` between fields, in UTF-8.

    Raises:
        AnalystError: a line below the names of the columns is no row, or the file cannot be read as such text.
    """
    number = len(list(session.folder.glob("ruled*.csv")))
    copy = session.folder / f"ruled{number}.csv"
    decoding = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        with opener(file)(decoding) as lines, written(copy) as out:
            rows = csv.writer(out, delimiter="|", lineterminator="\n")
            for count, row in enumerate(_rows(file, lines)):
                if count % 10_000 == 0:
                    session.check()
                rows.writerow(row)
    except UnicodeError as error:
        raise AnalystError(f"{file.name} is not {encoding} text: {error}") from error
    return copy


def _rows(file: Path, lines: Iterable[str]) -> Iterator[list[str]]:
    """The names of the columns, and the rows."""
    names: list[str] | None = None
    title: tuple[int, str] | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip() or _is_line(line):
            continue
        if not _is_row(line):
            if line.strip()[0] == "|" and names is not None:
                raise _no_row(file, number, line)
            title = title or (number, line)
            continue
        row = [field.strip() for field in line.strip()[1:-1].split("|")]
        if names is not None and len(row) != len(names):
            raise AnalystError(
                f"{file.name}, line {number}: this has {len(row)} fields, and the names of the columns are "
                f"{len(names)}: is there a '|' in a text? Export the list as a text with tabs or a spreadsheet"
            )
        if row != names:
            if title is not None and names is not None:
                raise _no_row(file, *title)
            yield row
        names, title = names or row, None
    if title is not None and names is not None:
        raise _no_row(file, *title)


def _no_row(file: Path, number: int, line: str) -> AnalystError:
    return AnalystError(
        f"{file.name}, line {number}: this is no row, which begins and ends with '|', nor a line of dashes: "
        f"{line.strip()[:80]!r}; take it out, or export the list as a text with tabs or a spreadsheet"
    )


def _is_line(line: str) -> bool:
    core = line.strip()
    return len(core) >= _LEAST and set(core) <= _DRAWN and "--" in core


def _is_row(line: str) -> bool:
    core = line.strip()
    return len(core) > 2 and core[0] == core[-1] == "|" and not _is_line(line)
