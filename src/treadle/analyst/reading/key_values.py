"""Key values: a column of the data as the type that keys have, in the embedded engine: the same value, or an error.

Pure; its neighbour `rows` groups and filters by them.
"""

import re

from treadle.analyst.declared.source import KeyType
from treadle.analyst.reading.keys import DECIMAL_KEY, MOST_KEY_DECIMALS, MOST_KEY_DIGITS, Key, natural_type
from treadle.analyst.reading.number_spelling import NO_NUMBER
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, is_null, literal, matches, try_cast, when
from treadle.analyst.sql.types import FINEST

MOST_WHOLE, FIRST_DECIMAL = 38, -20
"""A floating-point number that is a key is told without an exponent if it has fewer whole digits than this and one, and
if its first digit stands no further behind the point than that."""

ENGINE_TYPES: dict[str, str] = {
    "integer": "HUGEINT",
    "decimal": DECIMAL_KEY,
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "boolean": "BOOLEAN",
}


def typed_column(column: "exp.Expr", kind: str, type_: KeyType) -> "exp.Expr":
    """The column as a type that it need not have: the same value, or an error, never a rounded one."""
    text = text_of_column(column, kind)
    if kind == "VARCHAR":
        text = call("nullif", call("trim", text), literal(""))
    match type_:
        case "integer" if natural_type(kind) != "integer":
            return _spelled(text, r"[-+]?\d+(\.0*)?", ENGINE_TYPES[type_])
        case "decimal" if natural_type(kind) not in ("integer", "decimal"):
            places = rf"[-+]?(\d+\.?|\d*\.\d{{1,{MOST_KEY_DECIMALS}}})0*"
            return _spelled(text, places, ENGINE_TYPES[type_])
        case "decimal" if _digits_before_the_point(kind) > MOST_KEY_DIGITS:
            fits = exp.Not(this=is_null(try_cast(column.copy(), ENGINE_TYPES[type_])))
            return _right(text, exp.or_(is_null(column.copy()), fits), ENGINE_TYPES[type_])
        case "date" | "timestamp" if kind == "VARCHAR":
            # Text may name an offset from UTC, which a type without a time zone would leave out.
            return cast(cast(text, "TIMESTAMPTZ"), ENGINE_TYPES[type_])
        case "timestamp" if kind == FINEST:
            whole = exp.EQ(this=cast(cast(column, ENGINE_TYPES[type_]), FINEST), expression=column.copy())
            return _right(text, exp.or_(is_null(column.copy()), whole), ENGINE_TYPES[type_])
        case _:
            return cast(text if kind == "VARCHAR" else column, ENGINE_TYPES[type_])


def _digits_before_the_point(kind: str) -> int:
    """How many digits a number of the engine's type may have before its point."""
    found = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", kind)
    return int(found[1]) - int(found[2]) if found else 39 if "HUGEINT" in kind else 20


def _spelled(text: "exp.Expr", pattern: str, kind: str) -> "exp.Expr":
    """The text as another type where it is of the pattern; else the engine raises an error that quotes it."""
    return _right(text, exp.or_(is_null(text), matches(text, pattern)), kind)


def _right(text: "exp.Expr", right: "exp.Expr", kind: str) -> "exp.Expr":
    """The text as another type where `right` holds; else the engine raises an error that quotes it."""
    return cast(when(right, text, exp.DPipe(this=text.copy(), expression=literal(NO_NUMBER))), kind)


def told_as_it_is(column: "exp.Expr", type_: KeyType | None) -> "exp.Expr":
    """The key that a column holds; an error that quotes it where it is a day or a time that no calendar has.

    The engine's `infinity` would be told as the last of all days, and a year that is not 1 to 9999 as another kind.
    """
    if type_ not in ("date", "timestamp"):
        return column
    first, last = (cast(literal(end), ENGINE_TYPES[type_]) for end in ("0001-01-01", "9999-12-31 23:59:59.999999"))
    known = exp.Between(this=column.copy(), low=first, high=last)
    quoted = cast(exp.DPipe(this=cast(column.copy(), "VARCHAR"), expression=literal(NO_NUMBER)), ENGINE_TYPES[type_])
    return when(exp.or_(is_null(column), known), column, quoted)


def tells_apart(key: Key, kind: str) -> bool:
    """Whether different values of a column of this kind have different keys."""
    match key.type:
        case "string":
            return not key.format.steps and (kind == "VARCHAR" or natural_type(kind) == "integer" or kind == "DATE")
        case "integer":
            return natural_type(kind) == "integer"
        case _:
            return kind == ENGINE_TYPES[key.type]


def _written_out(text: "exp.Expr") -> "exp.Expr":
    """A floating-point number's text without an exponent, where its digits fit."""
    large, small = (matches(text.copy(), rf"-?\d(\.\d+)?e{power}") for power in (r"\+\d+", r"-(0\d|1\d|20)"))
    digits = {large: f"DECIMAL({MOST_WHOLE}, 0)", small: f"DECIMAL({MOST_WHOLE}, {MOST_WHOLE - 1})"}
    plain = [when(test, cast(try_cast(text.copy(), kind), "VARCHAR")) for test, kind in digits.items()]
    return when(call("contains", text.copy(), literal("e")), call("coalesce", *plain, text.copy()), text)


def text_of_column(column: "exp.Expr", kind: str) -> "exp.Expr":
    """The column as text in its shortest form: 1001 for 1001.0, a day for its midnight."""
    if kind == "VARCHAR":
        return column
    text: exp.Expr = cast(column, "VARCHAR")
    if kind.startswith(("DECIMAL", "DOUBLE", "FLOAT")):
        if not kind.startswith("DECIMAL"):
            text = _written_out(text)
        pattern, by = r"(\.\d*?)0+$", r"\1"
        if _digits_before_the_point(kind) == 0:
            # The engine writes such a number without the nought before its point.
            text = call("regexp_replace", text, literal(r"^(-?)\."), literal(r"\10."))
        text = call("rtrim", call("regexp_replace", text, literal(pattern), literal(by)), literal("."))
        return text if kind.startswith("DECIMAL") else call("regexp_replace", text, literal("^-0$"), literal("0"))
    if kind.startswith("TIMESTAMP"):
        return call("regexp_replace", text, literal(r" 00:00:00(\+00)?$"), literal(""))
    return text
