"""Doubts: what the columns of a table make one ask a person, where no column alone tells.

Pure. Neighbours: `treadle.analyst.asking.columns`, which guesses what each column is; `treadle.analyst.asking.propose`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise

from msgspec.structs import replace

from treadle.analyst.asking.column_names import DAILY, is_figure
from treadle.analyst.asking.columns import Guess, is_day
from treadle.analyst.declared.days import BLANKS
from treadle.analyst.declared.formats import period_of
from treadle.analyst.declared.scalar import scalar
from treadle.analyst.reading.faults import HELD_DELIMITER
from treadle.analyst.reading.headings import as_written
from treadle.analyst.reading.number_spelling import looked_at
from treadle.analyst.reading.totals import USUAL

_DEBITS_AND_CREDITS = {"s": "h", "d": "c", "soll": "haben", "debit": "credit", "dr": "cr", "+": "-", "1": "-1"}
# Names of columns that say debit or credit, also where all rows are credit.
_SIDED = re.compile(
    r"shkzg|drcrk|^sens$|(debit|soll)[\W_]*(or|oder)?[\W_]*(credit|haben)|(?<![a-z])([sd]|dr)[\W_]*([hc]|cr)(?![a-z])"
    r"|^\W*(debit|credit|soll|haben)([\W_]*(ind\w*|flag|kz|kennz\w*|mark\w*|sign|side|code|type))?\W*$",
    re.IGNORECASE,
)
# SAP's posting keys, of which the first digit says it, but for those of assets.
_KEYED = re.compile(r"bschl|posting[\W_]*key|buchungsschl(ü|ue)ssel", re.IGNORECASE)
_DEBIT_KEYS, _CREDIT_KEYS = re.compile(r"0?[1-9]|[248]\d|70"), re.compile(r"[1359]\d|75")
_SPELLED = re.compile(r"[-+\u2212(]?\s*\d[\d.,'\u2019\s]*[-)]?")
# Amounts that are written for no program: in per cent, thousands or powers, or as text for a spreadsheet.
_DRESSED = re.compile(rf"[='\"]*{_SPELLED.pattern}(e[-+]?\d+)?\s*(%|k|t|tsd|m|mn|mio|mrd|bn)?\.?['\"]*", re.IGNORECASE)
# What may part the names of several columns in one: no delimiter that is looked for by itself, or in quotes.
_SEVERAL = re.compile(r"""\w["')]*\s*(?:(?P<sign>[\^~¦§])|[;,|\t]|\s{2,})\s*["'(]*\w""")
_MARKED = re.compile(rf"{_SPELLED.pattern}(?P<mark>cr|dr|c|d|s|h|soll|haben|credit|debit)\.?", re.IGNORECASE)
_KEPT_DIGITS = 15
_FIRST_DAY = date(1899, 12, 30)
_FIRST_DAY_ON_A_MAC = date(1904, 1, 1)
_YEAR = re.compile(r"(19|20)\d\d")


def cut_off(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Returns a question if a column of an Excel file has whole numbers of more digits than Excel keeps.

    Args:
        columns: their names.
        rows: the cells, as the file has them: what is text there has all of its digits.
    """
    for at, column in enumerate(columns):
        long = next((cell for row in rows if _is_cut_off(cell := row[at])), None)
        if long is not None and not is_figure(column):
            return (
                f"{column} has {long:.0f}, and Excel keeps {_KEPT_DIGITS} digits of a number: if these are codes, "
                f"those that differ behind them may be one here, until the cells are text"
            )
    return ""


def _is_cut_off(cell: object) -> bool:
    most = 10 ** (2 * _KEPT_DIGITS)
    return isinstance(cell, (int, float)) and 10**_KEPT_DIGITS <= cell < most and float(cell).is_integer()


def about_days(guesses: Mapping[str, Guess], rows: Sequence[Sequence[object]]) -> dict[str, Guess]:
    """Returns the guesses of the columns of an Excel file, with a question about days that are kept as something else.

    Args:
        guesses: what each column is taken for, in their order.
        rows: the cells, as the file has them.
    """
    found = dict(guesses)
    for at, (column, each) in enumerate(guesses.items()):
        cells = [row[at] for row in rows if row[at] not in ("", None)]
        others = [cell for cell in cells if not isinstance(cell, date)]
        if len(others) < len(cells):
            if others and not (each.format or each.type):
                one = f"{others[0]:g}" if isinstance(others[0], float) else scalar(str(others[0]))
                asked = f"{column} has days in some cells, and in others what is none, such as {one}"
                found[column] = replace(each, question=each.question or f"{asked}: have one of the two in all of them")
        elif cells and DAILY.search(column) and all(map(_may_be_counted_day, cells)):
            first = float(str(cells[0]))
            day, later = (since + timedelta(days=int(first)) for since in (_FIRST_DAY, _FIRST_DAY_ON_A_MAC))
            asked = (
                f"{column} has numbers such as {first:g}, and is named as days are, of which Excel counts that as "
                f"{day}, or in a file with the 1904 date system as {later}: if they are days, show these cells as days "
                f"in the file"
            )
            found[column] = replace(each, question=asked)
    return found


def _may_be_counted_day(cell: object) -> bool:
    """Whether a cell has a number by which Excel counts a day of the years that figures are of."""
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and 20_000 <= cell < 60_000


def unsigned(guesses: Mapping[str, Guess], samples: Mapping[str, Sequence[str | None]]) -> str:
    """Returns a question if a column says whether amounts are debit or credit, and their signs do not."""
    measures = [column for column, each in guesses.items() if each.role == "measure"]
    for column in guesses:
        beside = [(text or "").strip(BLANKS) for text in samples[column]]
        said = {*beside} - {""}
        credit = _credits(column, said)
        if column in measures or not credit:
            continue
        sides = [*sorted(said - credit), *sorted(credit)]
        below = [
            [_is_below_zero(text) for side, text in zip(beside, samples[measure], strict=True) if text and side == one]
            for measure in measures
            for one in sides
        ]
        if not any(below) or any(sum(each) * 2 > len(each) for each in below):
            return ""
        signs = "most amounts of either have no minus" if any(map(any, below)) else "no amount has a sign"
        told = "these are debit and credit, they are added up as if they were one"
        told = told if sides[1:] else "that is credit, it is added up as if it were debit"
        return (
            f"{column} has {_and(sides)}, and {signs}: if {told}; declare 'expression' with an if for the amounts of "
            f"{_and(sorted(credit))}"
        )
    return ""


def _credits(column: str, said: set[str]) -> set[str]:
    """Those of the texts in a column that say credit; none if there is another than those of debit and credit."""
    if _KEYED.search(column) and all(_DEBIT_KEYS.fullmatch(text) or _CREDIT_KEYS.fullmatch(text) for text in said):
        return {text for text in said if _CREDIT_KEYS.fullmatch(text)}
    plain = {text.casefold() for text in said}
    for debit, credit in _DEBITS_AND_CREDITS.items():
        if plain == {debit, credit} or (plain == {credit} and _SIDED.search(column)):
            return {text for text in said if text.casefold() == credit}
    return set()


def _and(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def _is_below_zero(text: str) -> bool:
    return "-" in looked_at(text)[0]


def told_once(guesses: Mapping[str, Guess], samples: Mapping[str, Sequence[str | None]]) -> str:
    """Returns a question if the first column has each value in one row, as reports have what stands for several."""
    dimensions = [column for column, each in guesses.items() if each.role == "dimension"]
    keys = [column for column in dimensions if any(map(_filled, samples[column]))]
    if len(keys) < 2:
        return ""
    first, *others = keys
    values = [_filled(value) for value in samples[first]]
    below = [
        at for at, value in enumerate(values) if not value and any(_filled(samples[other][at]) for other in others)
    ]
    # A report writes a value again only where another has come between.
    repeated = any(one == other for one, other in pairwise(filter(None, values)))
    if not below or not values[0] or repeated:
        return ""
    value = next(values[at] for at in range(below[0], -1, -1) if values[at])
    return (
        f"{first} has {scalar(value)} in one row and nothing in that below it, and no value twice running: if it "
        f"stands for the rows below it too, have it written in each of them, as they count without one"
    )


def _filled(value: str | None) -> str:
    return (value or "").strip(BLANKS)


def spelled_otherwise(
    guesses: Mapping[str, Guess], samples: Mapping[str, Sequence[str | None]], asked_before: Sequence[str]
) -> tuple[str, ...]:
    """Returns a question for each column of text with the name of a figure, and amounts whose signs are not known.

    Args:
        guesses: what each column is taken for.
        samples: its values.
        asked_before: the questions that there are already, of which a column needs no second.
    """
    asked = []
    for column, each in guesses.items():
        texts = [text for value in samples[column] if (text := (value or "").strip(BLANKS))]
        plain = each.role == "dimension" and not (each.format or each.type or each.question)
        plain = plain and not any(question.startswith(f"{column} has ") for question in asked_before)
        if not (plain and texts and is_figure(column) and all(map(_DRESSED.fullmatch, texts))):
            continue
        signs = "declare 'decimal' and 'thousands' under 'text', and it under 'measures'"
        advice = signs if all(map(_SPELLED.fullmatch, texts)) else "have the file written with plain numbers"
        asked.append(f"{column} has text such as {texts[0]}, which is not added up: if these are amounts, {advice}")
    return tuple(asked)


def one_column(columns: Sequence[str]) -> str:
    """Returns a question if all of a file is one column, whose name looks like those of several."""
    found = _SEVERAL.search(columns[0]) if len(columns) == 1 else None
    if found is None:
        return ""
    told = f"; or declare 'delimiter: \"{found['sign']}\"' under 'text'" if found["sign"] else ""
    return (
        f"{columns[0]} has the names of several columns, and is read as one: have the file written with semicolons or "
        f"tabs between its fields, and no line in quotes as a whole{told}"
    )


def asked_marks(guesses: Mapping[str, Guess], samples: Mapping[str, Sequence[str | None]]) -> tuple[str, ...]:
    """Returns a question for each column of text with the name of a figure in which words stand for signs."""
    asked = []
    for column, each in guesses.items():
        marked = (_MARKED.fullmatch((value or "").strip(BLANKS)) for value in samples[column])
        plain = each.role == "dimension" and not (each.format or each.type or each.question)
        if plain and is_figure(column) and (found := next(filter(None, marked), None)):
            asked.append(
                f"{column} has text such as {found[0]}, which is not added up: if {found['mark']} says its sign, have "
                f"the file written with signs, or with that mark in a column of its own, and declare under 'measures' "
                f"an expression such as if(mark = 'H', -amount, amount)"
            )
    return tuple(asked)


def no_names(columns: Sequence[str]) -> str:
    """Returns a question if the names of columns look like the values of a row; else an empty text."""
    columns = as_written(columns)
    odd = [
        name for name in columns if re.fullmatch(r"[-+(]?\d[\d.,' ]*[.,]\d+[-)]?", looked_at(name)[0]) or is_day(name)
    ]
    whole = [name for name in columns if re.fullmatch(r"\d+", name.strip()) and not _YEAR.fullmatch(name.strip())]
    first = int(whole[0]) if whole else 0
    # Two amounts may be next to each other by chance.
    counting = len(whole) > (1 if first < 2 else 2) and [int(name) - first for name in whole] == [*range(len(whole))]
    odd += [name for name in whole if not counting and name not in odd]
    if not odd and not all(re.fullmatch(r"\d+", name.strip()) for name in columns):
        return ""
    if all(period_of(name) for name in odd) and odd:
        return ""
    shown = ", ".join(columns[:3])
    return (
        f"the columns would be called {shown}: if that is a row, it does not count until a line with names precedes it"
    )


def of_one_name(columns: Iterable[str]) -> str:
    """Returns a question if columns have numbers as several of one name are given them, or as they have in the data."""
    names = list(columns)
    alike = [name for name, written in zip(names, as_written(names), strict=True) if name != written]
    if not alike:
        return ""
    shown = f"{', '.join(alike[:4])}, …" if len(alike) > 4 else f"{', '.join(alike[:-1])} and {alike[-1]}"
    return (
        f"columns are called {shown}, as those of one name are, counted from the left: name each by what it is, and "
        f"leave out what is of another table"
    )


def under_no_name(samples: Mapping[str, Sequence[str | None]], unnamed: Sequence[str]) -> str:
    """Returns a question if a value stands behind the last column that has a name."""
    for column in unnamed:
        if value := next((text.strip() for text in samples.get(column, ()) if text and text.strip()), ""):
            return f"{column} has no name, and has values such as {value}: {HELD_DELIMITER}; if it is a column, name it"
    return ""


def names_of_fewer(above: Sequence[str], names: Sequence[str]) -> str:
    """Returns a question if the line above that of names could have them, for fewer columns, and none twice."""
    if as_written(above) != list(above):
        return ""
    if not no_names(names) or not len(names) // 2 < len(above) < len(names) or no_names(above):
        return ""
    return (
        f"the lines below that with {', '.join(above[:3])} have more fields than it, so that it is no line of names: "
        f"{HELD_DELIMITER}; if they end in a delimiter, let that line end in one too"
    )


def asked_totals(marks: Sequence[str]) -> str:
    """Returns the question whether lines with these texts are totals; an empty one is that of those without a key."""
    listed = ", ".join(map(scalar, marks))
    which = "without any key" if "" in marks else f"with {listed}"
    return f"there are lines {which}, which count as rows: if they are totals, add 'totals: [{listed}]' under 'text'"


_SHOWN = 60


def asked_short(mark: str, line: str, *, shared: bool) -> str:
    """Returns the question what a line with other fields than there are names is."""
    shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
    add = f"add {scalar(mark)} to 'totals' under 'text'"
    alone = f", or, if no line with {scalar(mark)} is one, {add}" if mark in USUAL else ""
    none = f"take it out of the file{alone}" if shared else add
    return (
        f"there is a line with more or fewer fields than the names, {shown!r}, and the file is refused as long as it "
        f"is: if it is no row, {none}; if it is one that was cut off, complete it"
    )


def asked_counts(marks: Sequence[str]) -> str:
    """Returns the question whether lines with these texts say how many rows there are."""
    listed = ", ".join(map(scalar, marks))
    return (
        f"there are lines with {listed}, which count as rows: if they say how many rows there are, add them to "
        f"'totals' under 'text'"
    )


def asked_empty(marks: Sequence[str]) -> str:
    """Returns the question of lines in which nothing stands, as spreadsheets leave them below a table."""
    listed = ", ".join(map(scalar, marks))
    return (
        f"there are lines in which nothing stands, each of which counts as a row without a key: if no amount stands "
        f"without a key, add 'totals: [{listed}]' under 'text', which leaves them out"
    )
