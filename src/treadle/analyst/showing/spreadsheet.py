"""Spreadsheet: rows as files for programs that show tables, and compute what looks like a formula.

Text that such a program would compute is marked as text. An Excel file holds numbers in floating point, which keeps 15
digits: an amount of more is written as text, so that no digit is lost, and so is a time that is finer than a second.
Excel files need XlsxWriter, which is imported when one is written.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from treadle.analyst.declared.errors import AnalystError

MOST_ROWS = 1_048_576
"""How many rows a sheet has, its heading included."""

_KEPT_DIGITS = 15
_MOST_TEXT = 32_767
_FIRST_YEAR = 1900
_FORMULA = re.compile("'*([\t\r\n]| *[=+\\-@\uff1d\uff0b\uff0d\uff20])")
_QUOTED = re.compile('[,"\r\n]')
_PLAIN_NUMBER = re.compile(r"[-+]?[0-9]+([.,][0-9]+)*")

Rows = Iterable[Sequence[Any]]


def write_csv(path: Path, columns: Sequence[str], rows: Rows) -> None:
    """Writes rows to a CSV file; text that would be computed begins with an apostrophe.

    As in the files of comparisons, an empty text is one in quotes, and nothing at all no value.
    """
    with path.open("w", encoding="utf-8", newline="") as out:
        out.write(_line([_field(_guarded(name)) for name in columns]))
        out.writelines(
            _line([_field(_guarded(cell)) if isinstance(cell, str) else str(_told(cell)) for cell in row])
            for row in rows
        )


def _field(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""')) if not text or _QUOTED.search(text) else text


def _line(fields: Sequence[str]) -> str:
    """A line of fields; what has nothing in it would be no line to who reads it."""
    return (",".join(fields) or '""') + "\n"


def write_xlsx(path: Path, sheets: Mapping[str, tuple[Sequence[str], Rows]]) -> None:
    """Writes an Excel file.

    Args:
        path: the file.
        sheets: by name, the columns' names and the rows.

    Raises:
        AnalystError: XlsxWriter is not installed, or there are more rows than a sheet has.
        OSError: it cannot be written.
    """
    writer, made = _writer(), BytesIO()
    book = writer.Workbook(made, {"constant_memory": True})
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
                sheet.write_string(0, at, _fitting(column), bold)
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
                        case datetime() if _fits_a_cell(cell):
                            sheet.write_datetime(number, at, cell, times)
                        case date() if not isinstance(cell, datetime) and cell.year >= _FIRST_YEAR:
                            sheet.write_datetime(number, at, cell, days)
                        case Decimal() | int() if len(Decimal(cell).as_tuple().digits) <= _KEPT_DIGITS:
                            sheet.write_number(number, at, cell, amounts if isinstance(cell, Decimal) else None)
                        case float():
                            sheet.write_number(number, at, cell)
                        case _:
                            sheet.write_string(number, at, _fitting(str(_told(cell))))
    finally:
        _close(book, writer.exceptions.FileCreateError)
    path.write_bytes(made.getbuffer())


def _close(book: Any, refusal: type[Exception]) -> None:
    """Closes a workbook. Raises OSError if what it is made of cannot be written."""
    refused = None
    try:
        book.close()
    except refusal as error:
        # Raised from the error, it would keep a zip file half written, which Python complains of in the end.
        refused = OSError(*error.args[0].args)
    if refused is not None:
        raise refused


def _fitting(text: str) -> str:
    """The text of a cell. Raises AnalystError if a cell cannot hold it: cut short, two keys may be one."""
    # Excel counts what is beyond the first 65,536 characters of Unicode as two.
    if len(text) + sum(sign > "\uffff" for sign in text) > _MOST_TEXT:
        raise AnalystError(
            f"a cell of an Excel file holds {_MOST_TEXT:,} characters, and a text that begins with {text[:40]!r} has "
            f"more; write a .csv or .parquet file"
        )
    return text


def _fits_a_cell(moment: datetime) -> bool:
    """Whether a cell shows a moment as it is.

    What is finer than a second is rounded there, the last moment of a day to the next day. Of the first day that Excel
    knows, which stands for no date in some databases, XlsxWriter writes the time of day alone.
    """
    return moment.tzinfo is None and not moment.microsecond and moment.date() > date(_FIRST_YEAR, 1, 1)


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
    # What has apostrophes before a formula gets one more: it would be read as that formula's text.
    formula = _FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text.lstrip("'"))
    return f"'{text}" if formula else text
