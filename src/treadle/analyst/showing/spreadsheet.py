"""Spreadsheet: rows as files for programs that show tables, and compute what looks like a formula.

Text that such a program would compute is marked as text. An Excel file holds numbers in floating point, which keeps 15
digits: an amount of more is written as text, so that no digit is lost. Excel files need XlsxWriter, which is imported
when one is written.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError

MOST_ROWS = 1_048_576
"""How many rows a sheet has, its heading included."""

_KEPT_DIGITS = 15
_MOST_TEXT = 32_767
_FIRST_YEAR = 1900
_FORMULA = re.compile("[\t\r\n]| *[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_PLAIN_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)*")

Rows = Iterable[Sequence[Any]]


def write_csv(path: Path, columns: Sequence[str], rows: Rows) -> None:
    """Writes rows to a CSV file; text that would be computed begins with an apostrophe."""
    with path.open("w", encoding="utf-8", newline="") as out:
        # With another end of lines, Python before 3.13 quotes no carriage return, at which programs begin a line.
        writer = csv.writer(_Lines(out))
        writer.writerow([_guarded(name) for name in columns])
        writer.writerows([_guarded(cell) if isinstance(cell, str) else _told(cell) for cell in row] for row in rows)


class _Lines(Struct, frozen=True):
    """A file whose lines are written as `csv` ends them, and end as a program expects it of a CSV file."""

    out: TextIO

    def write(self, line: str) -> int:
        return self.out.write(line.removesuffix("\r\n") + "\n")


def write_xlsx(path: Path, sheets: Mapping[str, tuple[Sequence[str], Rows]]) -> None:
    """Writes an Excel file.

    Args:
        path: the file.
        sheets: by name, the columns' names and the rows.

    Raises:
        AnalystError: XlsxWriter is not installed, or there are more rows than a sheet has.
    """
    book = _writer().Workbook(str(path), {"constant_memory": True})
    try:
        bold, days = book.add_format({"bold": True}), book.add_format({"num_format": "yyyy-mm-dd"})
        times, amounts = (
            book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
            book.add_format({"num_format": "#,##0.00"}),
        )
        for name, (columns, rows) in sheets.items():
            sheet = book.add_worksheet(name)
            sheet.freeze_panes(1, 0)
            for at, column in enumerate(columns):
                sheet.write_string(0, at, column, bold)
            for number, row in enumerate(rows, 1):
                if number >= MOST_ROWS:
                    raise AnalystError(
                        f"an Excel sheet has {MOST_ROWS:,} rows, and there are more; write a .csv or .parquet file"
                    )
                for at, cell in enumerate(row):
                    match cell:
                        case None:
                            continue
                        case bool():
                            sheet.write_boolean(number, at, cell)
                        case datetime() if cell.year >= _FIRST_YEAR and cell.tzinfo is None:
                            sheet.write_datetime(number, at, cell, times)
                        case date() if not isinstance(cell, datetime) and cell.year >= _FIRST_YEAR:
                            sheet.write_datetime(number, at, cell, days)
                        case Decimal() | int() if len(Decimal(cell).as_tuple().digits) <= _KEPT_DIGITS:
                            sheet.write_number(number, at, cell, amounts if isinstance(cell, Decimal) else None)
                        case float():
                            sheet.write_number(number, at, cell)
                        case _:
                            sheet.write_string(number, at, str(_told(cell))[:_MOST_TEXT])
    finally:
        book.close()


def _writer() -> Any:
    try:
        return import_module("xlsxwriter")
    except ImportError as error:
        raise AnalystError("Excel files are written by XlsxWriter: pip install 'treadle[excel]'") from error


def _told(cell: Any) -> Any:
    match cell:
        case None:
            return ""
        case bool():
            return str(cell).lower()
        case Decimal():
            return format(cell, "f")
        case datetime() | date() | time():
            return cell.isoformat()
        case _:
            return cell


def _guarded(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text) else text
