"""Faults: what the engine says went wrong, in words by which a person can put it right."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from treadle.analyst.declared.errors import NOT_PLAIN, AnalystError, DiskFull, NotEnoughMemory, NotPlain, OfSeveral
from treadle.analyst.declared.scalar import scalar
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.encodings import beginning, looks_like, opener, quoting
from treadle.analyst.reading.keys import DECIMAL_KEY, MOST_KEY_DECIMALS, MOST_KEY_DIGITS
from treadle.analyst.reading.number_spelling import NO_NUMBER

# What the engine says of a number that is one, and does not fit.
_BEYOND = re.compile(
    r"to type DECIMAL\(\d+,\s*\d+\) failed: value is out of range|Could not cast value -?\d+ to DECIMAL"
)

_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")

HELD_DELIMITER = (
    "if a value has the delimiter in it, as 12,50 between commas has, have the file written with another delimiter, or "
    "such values in quotes"
)
"""What to do about a line with more fields than there are columns."""
ONE_NAME = (
    "the line of names is read as one name: look at 'delimiter' under 'text', and at 'skip', the lines before that one"
)
"""What to do about a table of one column that should have others."""


def fault(
    error: Exception, bounds: Bounds, folder: Path, names: Sequence[str], copies: Mapping[Path, tuple[Path, int]]
) -> AnalystError:
    """Returns what an error of the engine means.

    Args:
        error: what it raised, not because it was interrupted.
        bounds: what it may use.
        folder: where it spills to.
        names: the sources that it can be about.
        copies: what was made of files for the engine, each with the file and how many of its lines were left out.
    """
    import duckdb

    message = str(error)
    match error:
        case duckdb.OutOfMemoryException():
            return _no_memory(message, bounds)
        case duckdb.IOException() if "Could not write" in message:
            # It writes nowhere but to its own folder.
            return DiskFull(
                f"the disk that holds {folder} cannot take more ({first_line(error).rpartition(': ')[2]}); free "
                f"some of it, set TMPDIR to a folder on a larger one, or narrow the question with filters"
            )
        case _ if NOT_PLAIN in message:
            return NotPlain("text is not spelled as programs spell numbers")
    listed = " or ".join(map(repr, names))
    kind = OfSeveral if len(names) > 1 else AnalystError
    told = _told(error, copies)
    return kind(f"source {listed}: {told}" if listed else told)


def _told(error: Exception, copies: Mapping[Path, tuple[Path, int]]) -> str:
    """What is wrong with the data, and what to do."""
    import duckdb

    message = str(error)
    match error:
        case duckdb.OutOfRangeException():
            return _too_large(error)
        case duckdb.ConversionException():
            return _too_large(error) if _BEYOND.search(message) else _unlike(first_line(error))
        case duckdb.BinderException() if "DECIMAL type" in message:
            return _too_large(error)
        case duckdb.CatalogException() | duckdb.BinderException():
            return (
                f"the engine finds no such table, or a view of it lacks one ({first_line(error)}); look at its 'table'"
            )
        case duckdb.PermissionException():
            return f"a view of it reads no file of a source ({first_line(error)}); declare a table, or that file"
        case _ if "Could not set lock on file" in message or "Unique file handle conflict" in message:
            return (
                f"its DuckDB file is open for writing elsewhere, in another program or in this one, and is not read as "
                f"long as it is ({first_line(error)}); close it there, or read a copy"
            )
        case _ if "CSV Parser state machine" in message:
            return (
                "a line of a CSV file ends in another way than those before it, with or without a carriage return: "
                "save the file so that all lines end alike"
            )
        case _:
            return _csv_fault(message, copies) or (
                f"the engine could not read the data: {first_line(error)}; look whether all of the file is there, and "
                f"whether it is of the declared kind"
            )


def _no_memory(message: str, bounds: Bounds) -> NotEnoughMemory:
    if "max_temp_directory_size" not in message:
        return NotEnoughMemory(
            f"this needs more memory than {bounds.memory}; ask for fewer dimensions or narrow it with filters"
        )
    return DiskFull(
        f"this needs more memory than {bounds.memory}, and more than {bounds.spill} to spill to disk; "
        f"ask for fewer dimensions or narrow it with filters"
    )


def _too_large(error: Exception) -> str:
    return (
        f"the amounts are too large to be computed exactly (38 digits is the most, those of the tolerance after the "
        f"point included): {first_line(error).partition('. ')[0].rstrip('.;')}; narrow the question with filters, or "
        f"round what they are computed of"
    )


def _csv_fault(message: str, copies: Mapping[Path, tuple[Path, int]]) -> str:
    """Which line of which file is wrong and how, out of what the engine says of a CSV file; empty if it is no such."""
    line, file = re.search(r"CSV Error on Line: (\d+)", message), re.search(r"^\s*file = (.+)$", message, re.MULTILINE)
    if line is None or file is None:
        return ""
    told = message[line.end() :].partition("Possible")[0].strip().splitlines()
    read, left_out = copies.get(Path(file[1]), (Path(file[1]), 0))
    where = f"{read.name}, line {_line_of(int(line[1]), Path(file[1]), message) + left_out}, cannot be read"
    if width := re.search(r"^Expected Number of Columns: (\d+) Found: (\d+)", "\n".join(told), re.MULTILINE):
        text = "\n".join(told).removeprefix("Original Line:").partition("Expected Number of Columns:")[0].strip()
        fields, found, names = _fields_of(text, message), int(width[2]), int(width[1])
        # Of a line with more the engine reads only the first that is too many.
        found = max(found, len(fields)) if found > names else found
        return f"{where}, {other_width(fields, found, names, text)}"
    shown = "; ".join(_cut(part) for part in told if part.strip())
    quoted = "quote" in " ".join(told[-1:])
    advice = "; if quotes are part of its texts, declare 'quotes: false' under 'text'" if quoted else ""
    return f"{where}: {shown}{advice}"


def other_width(fields: Sequence[str], count: int, names: int, text: str) -> str:
    """Returns what is wrong with a line with more or fewer fields than there are names, and what to do.

    Args:
        fields: what stands in it, of which the first that is filled counts.
        count: how many fields it has.
        names: how many names there are.
        text: the line.
    """
    mark = next((field.strip() for field in fields if field.strip()), "")
    shown = _cut(" ".join(text.splitlines()))
    which = "a text in it that no row has" if count < names else "the text that it begins with if no row has that"
    such = f", such as {scalar(mark)}," if any(map(str.isalpha, mark)) or mark[:1] == "*" else ""
    return (
        f"because it has {_fields(count)} and the line of names {_fields(names)}: {shown}; if it is no row, such "
        f"as one of totals, or one that says how many there are, add {which}{such} to 'totals' "
        f"under 'text' (% stands for any text), or take it out of the file; "
        f"{'if it is one, complete it' if count < names else HELD_DELIMITER}"
    )


def _fields_of(text: str, message: str) -> list[str]:
    """What stands in a line of a CSV file that the engine tells of."""
    delimiter = re.search(r"^  delimiter = (.) ", message, re.MULTILINE)
    if delimiter is None:
        return text.split()
    lines = text.splitlines(keepends=True)
    try:
        return next(csv.reader(lines, delimiter=delimiter[1], quoting=quoting('  quote = "' in message)), [])
    except csv.Error:
        return text.split(delimiter[1])


def _line_of(record: int, file: Path, message: str) -> int:
    """In which line of a CSV file its nth record begins; the engine counts one with line breaks in it as one."""
    delimiter = re.search(r"^  delimiter = (.) ", message, re.MULTILINE)
    if not delimiter or '  quote = "' not in message:
        return record
    try:
        with opener(file)(looks_like(beginning(file))) as lines:
            records = csv.reader(lines, delimiter=delimiter[1])
            for _ in range(record - 1):
                next(records, None)
            return records.line_num + 1
    except (OSError, UnicodeError, csv.Error):
        return record


def _cut(text: str) -> str:
    return f"{text[:120]}…" if len(text) > 120 else text


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _unlike(message: str) -> str:
    """Which value is not of the type of its dimension, and what to do, out of what the engine says."""
    found = re.search(r"""(["'])(.*)\1""", message)
    value = found[2].replace(NO_NUMBER, "") if found else ""
    if _DECIMAL.fullmatch(value) and DECIMAL_KEY.replace(" ", "") in message.replace(" ", ""):
        return (
            f"{value} has too many digits for a decimal that is compared by, which may have {MOST_KEY_DIGITS} before "
            f"its point and {MOST_KEY_DECIMALS} after it; declare the dimension's 'type' as string, which tells values "
            f"apart by all of their digits"
        )
    told = repr(value) if found else message
    return (
        f"a value is not what its column is declared to be: {told}; correct it in the data, or declare the dimension's "
        f"'type' or 'format' as the values are, such as date(DD.MM.YYYY) for days, or the signs of numbers under 'text'"
    )


def first_line(error: Exception) -> str:
    """What the engine says in its first line; the rest is of its own making."""
    return str(error).splitlines()[0]
