"""Sheet: rows as CSV that is safe to open in a spreadsheet."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

_FORMULA: Final = re.compile("[\t\r\n]| *[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_PLAIN_NUMBER: Final = re.compile(r"[-+]?[0-9]+([.,][0-9]+)*")


def sheet(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """`rows` as CSV (RFC 4180) under their `columns`; None is empty, and a truth value "true" or "false".

    A text that a spreadsheet would take for a formula is marked as text with an apostrophe; plain numbers are not.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([[_cell(value) for value in row] for row in rows])
    return out.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    return f"'{text}" if _FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text) else text
