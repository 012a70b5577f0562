"""Totals: the lines of a file that add up others and are no rows themselves.

They are told by what is declared under `text.totals`; as rows, they would count twice. Builds SQLGlot expressions in
DuckDB's terms.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from treadle.analyst.declared.source import Source
from treadle.analyst.reading.amounts import BLANKS
from treadle.analyst.reading.table import Table
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, is_null, literal, matches, quoted

USUAL = (
    "summe", "gesamt", "gesamtsumme", "gesamtergebnis", "zwischensumme", "endsumme", "total", "totals", "grand total",
    "sum", "subtotal", "sub-total", "sub total", "totale", "total général", "sous-total", "totaal", "suma", "*", "**",
    "***", "ergebnis", "gesamtbetrag", "insgesamt", "overall result", "overall total", "result", "grand-total",
    "total general", "saldo", "endsaldo", "gesamtsaldo", "somme", "sous total", "subtotale",
)  # fmt: skip
"""Texts that usually mark a line of totals, in lower case."""
WITH_NAMES = (
    "summe %", "zwischensumme %", "gesamt %", "total %", "subtotal %", "sub-total %", "grand total %", "% total",
    "% ergebnis", "% result", "ergebnis %", "somme %", "sous-total %",
)  # fmt: skip
"""The same where the line also names what it is the total of, such as `Summe Konto 1000`."""
COUNTS = (
    "number of entries%", "number of records%", "number of rows%", "number of lines%", "anzahl einträge%",
    "anzahl der einträge%", "anzahl datensätze%", "anzahl der datensätze%", "anzahl sätze%", "anzahl zeilen%",
    "*% lines", "*% rows", "*% entries", "*% zeilen", "*% einträge", "*% sätze", "*% datensätze",
)  # fmt: skip
"""Texts that usually mark a line which counts the others."""
_WORDED = [
    re.compile(form, re.DOTALL) for form in (r"\*+(\s.*)?", *(re.escape(mark).replace("%", ".*") for mark in COUNTS))
]


def says_so(text: str) -> bool:
    """Returns whether a text, in lower case, says that the line which begins with it is no row."""
    return text in USUAL or any(form.fullmatch(text) for form in _WORDED)


def without_totals(table: Table, source: Source) -> Table:
    """Returns the table without the lines that the source declares to be totals."""
    if not source.text.totals:
        return table
    rows = exp.select(exp.Star()).from_(table.relation.copy(), copy=False)
    for marked in marks(source, list(table.columns)):
        rows = rows.where(exp.Not(this=exp.paren(marked)))
    return replace(table, relation=rows.subquery("rows_of_it"))


def marks(source: Source, columns: list[str]) -> list["exp.Expr"]:
    """Returns, for each text that marks lines of totals, whether a line is marked by it."""
    found: list[exp.Expr] = []
    for mark in (item.strip(f"{BLANKS}:").lower() for item in source.text.totals):
        if mark:
            each = [_marked(column, mark) for column in columns]
            found.append(exp.or_(*each))
        elif source.dimensions:
            each = [is_null(said_in(column)) for column in key_columns(source)]
            found.append(exp.and_(*each))
    return found


def has_text(column: str) -> "exp.Expr":
    """Whether anything stands in a field."""
    return exp.Not(this=is_null(said_in(column)))


def key_columns(source: Source) -> list[str]:
    """Returns the columns without any of which a line is no row.

    A currency stands beside a total too, and is none of them unless it is all there is.
    """
    codes = {item.name for one in source.measures if one.currency and (item := source.find_dimension(one.currency))}
    keys = [item.source_column for item in source.dimensions if item.name not in codes]
    return keys or [item.source_column for item in source.dimensions]


def may_be_marked(column: str, marks: Sequence[str]) -> "exp.Expr":
    """Whether a field is marked by any of these texts, as one look at it tells; NULL for none."""
    each = "|".join(re.escape(mark).replace("%", ".*") for mark in marks)
    return matches(call("lower", quoted(column)), f"(?s)[{BLANKS}]*(?:{each})[{BLANKS}:]*")


def _marked(column: str, mark: str) -> "exp.Expr":
    return is_mark(exp.Coalesce(this=said_in(column), expressions=[literal("")]), mark)


def is_mark(text: "exp.Expr", mark: str) -> "exp.Expr":
    """Whether a text, as of `said_in`, is one that marks a line of totals; NULL for none."""
    kind = exp.Like if "%" in mark else exp.EQ
    return kind(this=text, expression=literal(mark))


def said_in(column: str) -> "exp.Expr":
    """What stands in a field, in lower case and without what does not count; NULL for nothing."""
    plain = call("rtrim", call("trim", call("lower", quoted(column)), literal(BLANKS)), literal(f":{BLANKS}"))
    return call("nullif", plain, literal(""))
