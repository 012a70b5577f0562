"""Excel: a sheet of a workbook as rows of a session.

Cells are copied as text with every digit, like SQLite's and JSON's; numbers are floating-point ones there, so that what
has decimals is approximate. A cell with an error in it, or a formula that was never computed, is refused where it is
asked for: the reader has no value for it, and no value is not zero. Uses python-calamine.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from posixpath import join, normpath, split
from typing import IO, Any
from xml.etree import ElementTree

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.headings import each_named
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.staged import decimal_signs, shortest
from treadle.analyst.reading.table import Demand, Table
from treadle.analyst.reading.totals import without_totals
from treadle.analyst.sql.lazy import exp

_EXACT = 2**53
_MOST_SHOWN = 3
_HEAD = 1024


def read_xlsx(session: Session, source: Source, demand: Demand) -> Table:
    """The rows of a sheet, below the line with the names of its columns, as text."""
    file = session.files[source.name][0]
    told = f"source {source.name!r}"
    rows = sheet_rows(file, sheet_of(file, source.table, told), told)
    session.check()
    if len(rows) <= source.text.skip:
        raise AnalystError(f"{told}: {file.name} has no line of column names in its sheet")
    columns = _header(rows[source.text.skip], file, told)
    wanted = {at + 1 for at, name in enumerate(columns) if name in demand.columns}
    _check_cells(file, sheet_of(file, source.table, told), wanted, source.text.skip + 1, told, rows)
    floating: set[str] = set()
    signs = decimal_signs(source)

    def texts() -> Iterator[list[str | None]]:
        for row in rows[source.text.skip + 1 :]:
            if any(cell != "" for cell in row):
                cells = zip(columns, row, strict=True)
                yield [_text(cell, column, signs.get(column, "."), floating) for column, cell in cells]

    staged = exp.to_table(session.stage(columns, texts(), [source.name]))
    return without_totals(Table(staged, dict.fromkeys(columns, "VARCHAR"), frozenset(floating)), source)


def sheet_names(file: Path, told: str) -> list[str]:
    """Returns the names of a workbook's sheets. Raises AnalystError if it cannot be read."""
    with _reading(file, told) as calamine:
        return list(calamine.CalamineWorkbook.from_path(str(file)).sheet_names)


def sheet_of(file: Path, named: str, told: str) -> str:
    """Returns the sheet called `named`, or the only one that there is.

    Raises:
        AnalystError: there is none of that name, or there are several to choose from.
    """
    names = sheet_names(file, told)
    if named in names or (not named and len(names) == 1):
        return named or names[0]
    if not names:
        raise AnalystError(f"{told}: {file.name} has no sheet", argument="source")
    listed = ", ".join(map(repr, names))
    what = f"has no sheet {named!r}" if named else "has several sheets"
    raise AnalystError(
        f"{told}: {file.name} {what}; declare 'table' as one of: {listed}", argument="source", available=names
    )


def sheet_rows(file: Path, sheet: str, told: str) -> list[list[Any]]:
    """Returns the cells of a sheet, all rows equally long, an empty text for what is empty."""
    with _reading(file, told) as calamine:
        book = calamine.CalamineWorkbook.from_path(str(file))
        return list(book.get_sheet_by_name(sheet).to_python(skip_empty_area=False))


def other_kind(file: Path) -> str:
    """Returns what a file is that has the name of a sheet, in words; empty if it may be an Excel workbook."""
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
        if not head.startswith(b"PK"):
            old = head.startswith(b"\xd0\xcf\x11\xe0") and file.suffix.lower() == ".xls"
            text = "a web page" if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<" else "text"
            written = bool(head) and (b"\0" not in head or head[:2] in (b"\xff\xfe", b"\xfe\xff"))
            return "an older Excel file (.xls)" if old else f"{text}, whatever its name says" if written else ""
        with zipfile.ZipFile(file) as book:
            names = set(book.namelist())
            if "mimetype" in names and b"opendocument" in book.read("mimetype"):
                return "an OpenDocument sheet (.ods)"
    except (OSError, zipfile.BadZipFile):
        # What is wrong with it is told by whoever reads it.
        return ""
    return "a binary Excel file (.xlsb)" if "xl/workbook.bin" in names else ""


@contextmanager
def _reading(file: Path, told: str) -> Iterator[Any]:
    """The reader; what it finds wrong with the file, when it is opened or later, is told as that."""
    if other := other_kind(file):
        told_of = f"{told}: {file.name} is {other}"
        if other.startswith("text"):
            raise AnalystError(f"{told_of}: declare it as 'kind: csv', with what parts its fields as 'delimiter'")
        raise AnalystError(f"{told_of}, and only .xlsx and .xlsm files are read: save it as one (Excel Workbook)")
    try:
        calamine = import_module("python_calamine")
    except ImportError as error:
        raise AnalystError(f"{told}: Excel files are read by python-calamine: pip install 'treadle[excel]'") from error
    try:
        yield calamine
    except calamine.PasswordError as error:
        raise AnalystError(f"{told}: {file.name} is protected by a password; save it without one") from error
    except calamine.WorksheetNotFound as error:
        raise AnalystError(f"{told}: {file.name} names the sheet {error}, but has no table of cells for it") from error
    except (calamine.CalamineError, calamine.ZipError, calamine.XmlError, OSError) as error:
        raise AnalystError(
            f"{told}: {file.name} cannot be read as an Excel file: {error}; look whether all of it is there, and save "
            f"it as .xlsx (Excel Workbook) with a program that opens it"
        ) from error


def _header(cells: Sequence[Any], file: Path, told: str) -> list[str]:
    return each_named([str(_text(cell, "", ".", set()) or "") for cell in cells], f"{told}: {file.name}")


def _text(cell: Any, column: str, sign: str, floating: set[str]) -> str | None:
    """A cell as text, numbers with this decimal sign."""
    match cell:
        case "" | None:
            return None
        case str():
            return cell
        case bool():
            return str(cell).lower()
        case int() | float():
            if abs(cell) > _EXACT or not float(cell).is_integer():
                floating.add(column)
            return shortest(repr(cell)).replace(".", sign)
        case datetime():
            return cell.isoformat(" ")
        case date() | time():
            return cell.isoformat()
        case _:
            return str(cell)


def _check_cells(
    file: Path, sheet: str, columns: set[int], header: int, told: str, rows: Sequence[Sequence[Any]]
) -> None:
    """Raises AnalystError for cells of those columns, below the header, that have no value of their own: with an error,
    with a formula that was not computed, with a day that never was, or merged over several lines."""
    wrong: list[str] = []
    merged: list[str] = []
    try:
        with zipfile.ZipFile(file) as book, book.open(_part(book, sheet)) as part:
            uncomputed = _is_to_be_computed(book)
            for cell, line, column in _placed(part):
                if cell.tag.endswith("}mergeCell") and _over_lines(cell.get("ref", ""), columns, header):
                    merged.append(cell.get("ref", ""))
                if not cell.tag.endswith("}c") or line <= header or column not in columns:
                    continue
                value = next((child.text for child in cell if child.tag.endswith("}v")), None)
                formula = any(child.tag.endswith("}f") for child in cell)
                # A formula whose outcome is an empty text was computed: it stands there as a text, with nothing in it.
                emptied = cell.get("t") == "str" and any(child.tag.endswith("}v") for child in cell)
                if cell.get("t") == "e" or (formula and value is None and not emptied):
                    wrong.append(f"{_letters(column)}{line} ({value or 'a formula without a value'})")
                elif formula and uncomputed:
                    wrong.append(f"{_letters(column)}{line} (a formula that is still to be computed)")
                elif value and cell.get("t", "n") == "n" and _never_was(value, rows[line - 1][column - 1]):
                    wrong.append(f"{_letters(column)}{line} (29 February 1900, a day that never was)")
                if len(wrong) == _MOST_SHOWN:
                    break
    except (zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise AnalystError(f"{told}: {file.name} cannot be read as an Excel file: {error}") from error
    except (KeyError, StopIteration) as error:
        raise AnalystError(
            f"{told}: {file.name} cannot be read as an Excel file: parts of it are not where it says they are; save it "
            f"once with a program for such files"
        ) from error
    if wrong:
        raise AnalystError(
            f"{told}: sheet {sheet!r} of {file.name} has cells without a value: {', '.join(wrong)}; correct them, and "
            f"save the file once with a program that computes them"
        )
    if merged:
        shown = ", ".join(merged[:_MOST_SHOWN]) + (", …" if len(merged) > _MOST_SHOWN else "")
        raise AnalystError(
            f"{told}: sheet {sheet!r} of {file.name} has cells merged over several lines, of which only the first has "
            f"the value: {shown}; unmerge them, and write the value into each"
        )


def _never_was(number: str, read: object) -> bool:
    """Whether a number is Excel's day 60, which the reader takes for the day before it."""
    # Days that are counted from 1904 have a true day of that number.
    return isinstance(read, date) and read.year == 1900 and 60 <= float(number) < 61


def _placed(part: IO[bytes]) -> Iterator[tuple[ElementTree.Element, int, int]]:
    """What a sheet's file holds, in order, each with the numbers of the line and the column of the cell before its end.

    A cell need not say where it is: it stands behind the one before it then, and a line below the one before it.
    """
    line = column = 0
    for event, item in ElementTree.iterparse(part, ("start", "end")):  # noqa: S314 - expat bounds what entities expand to
        if event == "start":
            if item.tag.endswith("}row"):
                line, column = int(item.get("r") or line + 1), 0
            continue
        if item.tag.endswith("}c"):
            place = re.fullmatch(r"([A-Z]+)(\d+)", item.get("r", "").upper())
            column, line = (_number(place[1]), int(place[2])) if place else (column + 1, line)
        yield item, line, column
        if item.tag.endswith(("}c", "}row")):
            item.clear()


def _over_lines(place: str, columns: set[int], header: int) -> bool:
    """Whether merged cells, such as A2:B5, cover several lines of the columns below the header."""
    found = re.fullmatch(r"([A-Z]+)(\d+):([A-Z]+)(\d+)", place)
    if found is None:
        return False
    covered = range(_number(found[1]), _number(found[3]) + 1)
    return int(found[4]) > max(int(found[2]), header) and not columns.isdisjoint(covered)


def _number(letters: str) -> int:
    """The number of a column: 1 for A, 27 for AA."""
    found = 0
    for letter in letters:
        found = found * 26 + ord(letter) - 64
    return found


def _letters(column: int) -> str:
    """The name of a column: A for 1, AA for 27."""
    found = ""
    while column:
        column, rest = divmod(column - 1, 26)
        found = chr(65 + rest) + found
    return found


def _part(book: zipfile.ZipFile, sheet: str) -> str:
    """The name of the file, within the workbook's, that holds a sheet."""
    stored, main, items = _workbook(book)
    key = next(
        value for item in items if item.tag.endswith("}sheet") and item.get("name") == sheet
        for name, value in item.attrib.items() if name.endswith("}id")
    )  # fmt: skip
    return stored[next(target for _, name, target in _links(book, stored, main) if name == key)]


def _is_to_be_computed(book: zipfile.ZipFile) -> bool:
    """Whether a workbook says that all formulas are to be computed once it is opened, as one does that was written by
    what computes none: the value beside a formula is a zero then, or that of other cells than there are."""
    # A program that has computed them all takes it away: ECMA-376, part 1, 18.2.2.
    return any(item.get("fullCalcOnLoad") in ("1", "true") for item in _workbook(book)[2])


def _workbook(book: zipfile.ZipFile) -> tuple[dict[str, str], str, list[ElementTree.Element]]:
    """The names of all files by their small letters, that of the workbook's own, and what it holds."""
    stored = {name.lower(): name for name in book.namelist()}
    # Where the workbook is, is for the package to say; names are the same in any case.
    main = next(target for kind, _, target in _links(book, stored, "") if kind.endswith("/officeDocument"))
    return stored, main, list(ElementTree.fromstring(book.read(stored[main])).iter())  # noqa: S314 - as above


def _links(book: zipfile.ZipFile, stored: Mapping[str, str], part: str) -> Iterator[tuple[str, str, str]]:
    """What a part of the package leads to, the package itself if it is empty: kind, id and file, in small letters."""
    folder, name = split(part)
    links = ElementTree.fromstring(book.read(stored[join(folder, "_rels", f"{name}.rels")]))  # noqa: S314 - as above
    for link in links:
        target = normpath(join("/", folder, link.get("Target", ""))).lstrip("/").lower()
        yield link.get("Type", ""), link.get("Id", ""), target
