"""Text format: how a CSV file is to be read, as its beginning and its numbers show it.

What the data leave open, such as whether 1.234 is a little more than one or more than a thousand, is not guessed but
left as a question. Reads the beginning of the file; its neighbour is `propose`.
"""

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from io import StringIO
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from treadle.analyst.asking.column_names import is_code
from treadle.analyst.asking.columns import special_values
from treadle.analyst.declared.formats import period_of
from treadle.analyst.declared.source import UNKNOWN, TextFormat
from treadle.analyst.reading.encodings import beginning, is_whole, looks_like, quoting
from treadle.analyst.reading.footers import first_text
from treadle.analyst.reading.number_spelling import looked_at
from treadle.analyst.reading.ruled import is_ruled
from treadle.analyst.reading.totals import says_so

# Where two are as likely, a comma is that of decimals.
_DELIMITERS = (";", "\t", "|", ",")
_LINES = 200
_FEW = 3
_NAMING = re.compile(r"(19|20)\d\d")
_GROUPED = r"(\d+|[1-9]\d{0,2}([%s]\d{3})+%s)"
# In India all but the last three digits stand in pairs.
_PAIRS = r"|[1-9]\d?(,\d\d)+,\d{3}"
_READINGS = {
    sign: re.compile(rf"[-+]?({grouped}?{re.escape(sign)}\d+|{grouped}{re.escape(sign)}?)-?")
    for sign, grouped in ((".", _GROUPED % (",' ", _PAIRS)), (",", _GROUPED % (".' ", "")))
}


def text_format(file: Path) -> TextFormat:
    """Returns the encoding and delimiter of a CSV file, and how many lines stand before that of the columns' names."""
    head = beginning(file)
    encoding = looks_like(head)
    # Lines as they are skipped: no other sign ends one.
    every = StringIO(head.decode(encoding, errors="replace").lstrip("\ufeff"), newline="").readlines()
    lines = every[:_LINES]
    if is_ruled(lines):
        return TextFormat(delimiter="|", encoding=encoding, ruled=True)
    delimiter, width = _delimiter({sign: _rows(lines, sign) for sign in _DELIMITERS})
    apart, columns = _delimiter({sign: _rows(lines, sign, quotes=False) for sign in _DELIMITERS})
    cut = not is_whole(head)
    # One that says that it is no row, such as a short total, may be of any width.
    whole = [line for line in (every[:-1] if cut else every) if not _is_no_row(line)]
    # A delimiter within quotes parts fields where they are taken for signs, so that another one may seem to part more.
    # And where each row stands over as many lines, these are alike too, and have fewer fields.
    held = (width >= columns and _is_quoted(whole, delimiter, width)) or (
        width > columns and _is_held(whole, delimiter, width, cut=cut)
    )
    if not (quotes := held or not _is_unquoted(whole, apart, columns)):
        delimiter, width = apart, columns
    skip = _title_lines(lines, delimiter, width, quotes)
    return TextFormat(delimiter=delimiter, encoding=encoding, quotes=None if quotes else False, skip=skip)


def _is_no_row(line: str) -> bool:
    """Whether a line has no quote, and says by its first text that it is no row."""
    firsts = (first_text(line.split(sign)) for sign in _DELIMITERS)
    return '"' not in line and any(map(says_so, firsts))


def _delimiter(rows: Mapping[str, Sequence[Sequence[str]]]) -> tuple[str, int]:
    """The delimiter by which most lines have the same number of fields, and how many; of several, that with more."""
    widths = {sign: Counter(len(row) for row in found if len(row) > 1) for sign, found in rows.items()}
    fits = {sign: max(((n, width) for width, n in found.items()), default=(0, 0)) for sign, found in widths.items()}
    delimiter = max(_DELIMITERS, key=lambda sign: fits[sign]) if any(widths.values()) else ","
    count, width = fits[","]
    others = [sign for sign in _DELIMITERS[:-1] if fits[sign][0] * 2 >= max(count, 1) and fits[sign][1] >= width]
    if delimiter == "," and others and _is_of_decimals([row for row in rows[","] if len(row) == width]):
        # Lines of totals with fewer fields have it as often as the others, and the line of names has not.
        delimiter = max(others, key=lambda sign: fits[sign])
    return delimiter, fits[delimiter][1]


def _is_of_decimals(rows: Sequence[Sequence[str]]) -> bool:
    """Whether what parts the fields stands between digits everywhere, as the sign of decimals does."""
    return all(one[-1:].isdigit() and other[:1].isdigit() for row in rows for one, other in pairwise(row))


def _is_quoted(lines: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether each line below the names of the columns is a row of one width, with what stands in quotes held together.

    The name of a column may stand in quotes over several lines: then no row below its last line does.
    """
    below = lines[_title_lines(lines, delimiter, width, quotes=False) :]
    rows = _rows(below, delimiter, strict=True)
    return width > 1 and len(rows) == len(below) and len({len(row) for row in rows if any(map(str.strip, row))}) <= 1


def _is_held(lines: Sequence[str], delimiter: str, width: int, *, cut: bool) -> bool:
    """Whether quotes hold lines below the titles together to rows of `width`; the last row may be `cut`."""
    below = lines[_title_lines(lines, delimiter, width, quotes=True) :]
    # A text has a few lines, such as an address.
    ends = range(len(below), max(0, len(below) - 6) if cut else len(below) - 1, -1)
    read = next(filter(None, (_rows(below[:end], delimiter, strict=True) for end in ends)), [])
    return {len(row) for row in read if any(map(str.strip, row))} == {width}


def _is_unquoted(lines: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether a quote is an inch sign, or begins a word: each line below the names of the columns is a row by itself,
    and would be none, or a part of one, or of another width, if quotes held it together."""
    if width < 2 or _is_quoted(lines, delimiter, width):
        return False
    below = lines[_title_lines(lines, delimiter, width, quotes=False) :]
    return {len(row) for row in _rows(below, delimiter, quotes=False) if any(map(str.strip, row))} == {width}


def number_signs(
    text: TextFormat, samples: Mapping[str, Sequence[str | None]], decimal: str | None = None
) -> tuple[TextFormat, tuple[str, ...]]:
    """Returns the format with the signs for decimals and thousands, and what only a person can say of them.

    Args:
        text: the format so far.
        samples: values of each column.
        decimal: the decimal sign where the numbers prove none, if that has been said.
    """
    columns = _columns_of_numbers(samples)
    readable = {
        column: {sign for sign, form in _READINGS.items() if all(form.fullmatch(value) for value in values)}
        for column, values in columns.items()
    }
    # A period such as 2024.10, or an account such as 4000.10, says nothing of amounts.
    figures = [column for column in readable if not is_code(column)]
    figures = figures if any(set(value) & set(".,") for column in figures for value in columns[column]) else [*readable]
    proving = {sign: [column for column in figures if readable[column] == {sign}] for sign in ".,"}
    open_columns = [
        column for column in figures if len(readable[column]) > 1 and any(set(v) & set(".,") for v in columns[column])
    ]
    questions: list[str] = []
    said = decimal
    decimal = max(".,", key=lambda sign: (sign == said and bool(proving[sign]), len(proving[sign]), sign == said))
    if open_columns and said is None and not proving[decimal]:
        decimal = UNKNOWN
        questions.append(_asked(open_columns[0], columns[open_columns[0]]))
    elif open_columns and said not in (None, decimal):
        questions.append(
            f"{proving[decimal][0]} proves that {decimal!r} is the decimal sign, so that {open_columns[0]} is read "
            f"with it, and not with the {said!r} that was said: if that is right, declare 'decimal: \"{said}\"'"
        )
    other = {",": ".", ".": ","}.get(decimal, "")
    questions += [
        f"{column} has numbers with another decimal sign than the other columns; it is taken for text"
        for column in (readable if other and proving[decimal] else ())
        if readable[column] == {other}
    ]
    questions += [
        _both_signs(column, columns[column])
        for column, signs in readable.items()
        if not signs and all(map(_is_number, columns[column]))
    ]
    proven = [value for column in (*proving.get(decimal, ()), *open_columns) for value in columns[column]]
    every = [value for values in columns.values() for value in values]
    grouped = next((sign for sign in "' " if any(sign in value for value in every)), "")
    if not grouped and decimal != UNKNOWN and any(other in value for value in proven):
        grouped = other
    return replace(text, decimal=decimal, thousands=grouped), tuple(questions)


def _columns_of_numbers(samples: Mapping[str, Sequence[str | None]]) -> dict[str, list[str]]:
    """The numbers of each column that is one of numbers, without what stands beside them."""
    columns: dict[str, list[str]] = {}
    for column, values in samples.items():
        filled = [value.strip() for value in values if value and value.strip()]
        if filled and special_values(column, filled) is None:
            columns[column] = [looked_at(value)[0] for value in filled]
    whole = {column: values for column, values in columns.items() if all(map(_is_number, values))}
    if not any(set(value) & set(".,") for values in whole.values() for value in values):
        # Only then does a column count that holds something else, such as a dash for nothing, among its numbers.
        numbers = {column: [value for value in values if _is_number(value)] for column, values in columns.items()}
        whole = {
            column: found
            for column, found in numbers.items()
            if len(found) * 2 >= len(columns[column]) or (found and _has_no_words(columns[column]))
        }
    return whole


def _both_signs(column: str, values: Sequence[str]) -> str:
    first = next(value for value in values if not _READINGS["."].fullmatch(value))
    second = next(value for value in values if not _READINGS[","].fullmatch(value))
    return (
        f"{column} has numbers such as {first}, and such as {second}, which have no decimal sign in common: it is "
        f"taken for text until the file has them with one"
    )


def _has_no_words(texts: Sequence[str]) -> bool:
    return not any(map(str.isalnum, "".join(text for text in texts if not _is_number(text))))


def _is_number(text: str) -> bool:
    return any(form.fullmatch(text) for form in _READINGS.values())


def title_rows(rows: Sequence[Sequence[object]]) -> int:
    """Returns how many rows of a sheet stand before the one with the names of its columns."""
    filled = [sum(str(cell).strip() != "" for cell in row) for row in rows[:_LINES]]
    width = max(filled, default=0)
    # Of many columns, one may have no name.
    first = next((at for at, count in enumerate(filled) if count >= width - (width > _FEW)), 0)
    return _names_above([[_written(cell) for cell in row] for row in rows[: first + 1]])


def _asked(column: str, values: Sequence[str]) -> str:
    example = next(value for value in values if set(value) & set(".,"))
    sign = "." if "." in example else ","
    whole = example.replace(sign, "")
    return (
        f"{column} has {example}: if that is {whole}, declare 'decimal: \"{',' if sign == '.' else '.'}\"' and "
        f"'thousands: \"{sign}\"'; if it is {example.replace(sign, '.')} in decimals, 'decimal: \"{sign}\"'"
    )


def _rows(lines: Sequence[str], delimiter: str, *, quotes: bool = True, strict: bool = False) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=delimiter, quoting=quoting(quotes), strict=strict))
    except csv.Error:
        return []


def _title_lines(lines: Sequence[str], delimiter: str, width: int, quotes: bool) -> int:
    """How many lines stand before the names of the columns: the first of the usual width that is mostly filled."""
    if width < 2:
        return next((at for at, line in enumerate(lines) if line.strip()), 0)
    for at in range(len(lines)):
        # A name may have line breaks in it.
        fields = next(csv.reader(lines[at:], delimiter=delimiter, quoting=quoting(quotes)), [])
        if len(fields) == width and sum(map(bool, map(str.strip, fields))) * 2 > width:
            rows = (csv.reader([line], delimiter=delimiter, quoting=quoting(quotes)) for line in lines[:at])
            above = [next(row, []) for row in rows]
            return _names_above([*above, fields])
    return 0


def _names_above(lines: Sequence[Sequence[str]]) -> int:
    """Which of the lines has the names of the columns: the last, unless that is a row already, as an index has no name.

    Then it is the nearest above it that has no figure; a title is none, nor is one above a line that is empty or of
    another width.
    """
    last = len(lines) - 1
    for at in range(last, -1, -1):
        if len(lines[at]) != len(lines[last]) or not any(map(str.strip, lines[at])):
            break
        if not _has_figures(lines[at]) and not _is_title(lines[at]):
            return at
    return last


def _is_title(fields: Sequence[str]) -> bool:
    """Whether a line is what stands over a table: a column of amounts, which come last, has a name in that of names."""
    return sum(map(bool, map(str.strip, fields))) * 2 <= len(fields) and not fields[-1].strip()


def _has_figures(fields: Sequence[str]) -> bool:
    """Whether a line has numbers that name no column, as years, periods and numbers that count up do."""
    texts = [looked_at(field)[0] for field in fields]
    at = [place for place, text in enumerate(texts) if _is_number(text) and not _NAMING.fullmatch(text)]
    at = [place for place in at if period_of(texts[place]) is None]
    counting = [str(place - at[0] + int(texts[at[0]])) for place in at] if at and texts[at[0]].isdecimal() else []
    return bool(at) and not (len(at) >= _FEW and counting == [texts[place] for place in at])


def _written(cell: object) -> str:
    """A cell as text; a whole number without the point that Excel's have."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def side_by_side(samples: Mapping[str, Sequence[str | None]]) -> str:
    """Returns a question if a column without name and value parts two tables: a row has something in only one of them.

    Args:
        samples: some values of each column, in the order of the columns.
    """
    columns = list(samples)
    for at, column in enumerate(columns):
        if column != f"column{at + 1}" or any_text(samples[column]):
            continue
        left, right = (_rows_with(samples, names) for names in (columns[:at], columns[at + 1 :]))
        if any(left) and any(right) and left != right:
            return (
                f"{column} is empty, and rows stand on one side of it only, as of two tables: keep the columns of one "
                f"of them, and add 'totals: [\"\"]' under 'text', which leaves out rows with none of its dimensions"
            )
    return ""


def _rows_with(samples: Mapping[str, Sequence[str | None]], names: Sequence[str]) -> list[bool]:
    """Which rows have a value in any of these columns."""
    return [any(map(_has, row)) for row in zip(*(samples[name] for name in names), strict=True)]


def any_text(values: Sequence[str | None]) -> bool:
    """Returns whether anything stands in a column."""
    return any(map(_has, values))


def _has(text: str | None) -> bool:
    return text is not None and text.strip() != ""
