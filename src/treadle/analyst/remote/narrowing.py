"""Narrowing: the part of a filter that a database can surely decide as treadle does.

A condition that is pushed down lets pass at least every row that the filter lets pass; unless it is exact, the filter
is applied to the groups once more. Formats (ALPHA, fiscal periods, blanks) are narrowed by patterns that every spelling
of the value fits. What cannot be narrowed is left to the groups. Pure, like its neighbour `pushdown`.
"""

import re
from decimal import Decimal, InvalidOperation

from msgspec import Struct

from treadle.analyst.declared.days import BLANKS
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter, Scalar, Under
from treadle.analyst.declared.formats import period_of
from treadle.analyst.reading.dialect import Column, Dialect, quoted_column
from treadle.analyst.reading.filter_values import as_held, text_of, typed_value
from treadle.analyst.reading.keys import Key
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import compared, within

# How many names and ranges of a hierarchy a database is told; some take no more than 999 values.
_MOST_BELOW = 500
_CENTURIES = ["%19__%", "%20__%"]
_SPELLED = {"trim", "blank_as_null", "alpha", "fiscal_period"}


class Narrowing(Struct, frozen=True):
    """A condition for the database; `exact` if it lets nothing pass but what the filter does."""

    condition: "exp.Expr"
    exact: bool = False


def narrowing(
    dialect: Dialect, key: Key, name: str, column: Column, condition: Filter, parameters: Parameters
) -> Narrowing | None:
    """Returns what of a filter the database can decide, or None.

    Args:
        dialect: of the database.
        key: what the filter is on, its type settled.
        name: the column.
        column: what the database says of it.
        condition: the filter.
        parameters: takes the values.
    """
    if any(member.format.day for member in key.members):
        return None  # what a day is spelled like is known to treadle alone
    if condition.op == "under":
        return _below(dialect, key, name, column, condition, parameters)
    condition = as_held(key, condition)
    value = quoted_column(name)
    if condition.op in ("is null", "is not null"):
        missing = exp.Is(this=value, expression=exp.null())
        blank = "blank_as_null" in key.format.steps or (key.type != "string" and column.kind in ("text", "other"))
        if condition.op == "is null":
            return None if blank else Narrowing(missing, True)
        return Narrowing(exp.Not(this=missing), not blank)
    if condition.op in ("=", "in") and not condition.values:
        return Narrowing(exp.false(), True)
    if key.type != "string":
        if condition.of_periods:
            return None  # whether the column has fiscal periods is only seen where all of its values come
        same = key.type == column.kind and (column.scale is not None or column.kind != "decimal")
        if not same or not dialect.typed or (column.kind == "decimal" and not dialect.postgres):
            return None
        found = _decided(value, key, condition, parameters)
        return Narrowing(found, True) if found is not None else None
    if column.kind == "integer" and dialect.typed:
        return _whole_numbers(value, key, condition, parameters)
    if column.kind != "text":
        return None
    # PostgreSQL compares an enumeration with nothing but its own values.
    chosen = exp.cast(value, "TEXT") if dialect.postgres and column.name == "enum" else value
    return _text(dialect, chosen, key, condition, parameters)


def _below(
    dialect: Dialect, key: Key, name: str, column: Column, condition: Filter, parameters: Parameters
) -> Narrowing | None:
    """The names and ranges below a group, unless there are too many of them, or one cannot be narrowed."""
    if not isinstance(condition, Under):
        return None
    names = [each for each in condition.names if _may_be(key, column, each)]
    if len(names) + len(condition.ranges) > _MOST_BELOW:
        return None
    parts = [Filter(dimension=condition.dimension, op="in", value=list(names))] if names else []
    ranges = [list(ends) for ends in condition.ranges]
    parts += [Filter(dimension=condition.dimension, op="between", value=list(ends)) for ends in ranges]
    tried = [narrowing(dialect, key, name, column, part, parameters) for part in parts]
    found = [part.condition for part in tried if part is not None]
    if len(found) < len(parts):
        return None
    return Narrowing(exp.paren(exp.or_(*found)) if found else exp.false())


def _may_be(key: Key, column: Column, name: str) -> bool:
    """Whether a name in a hierarchy may be a value of the column: its groups have names that seldom are."""
    if key.type != "string":
        try:
            typed_value(key, name)
        except AnalystError:
            return False
        return True
    if column.kind != "integer":
        return True
    return bool(re.fullmatch(r"-?[0-9]{1,38}", _plain(name))) or period_of(name) is not None


def _decided(value: "exp.Expr", key: Key, condition: Filter, parameters: Parameters) -> "exp.Expr | None":
    """A condition on a column whose values the database orders as treadle does."""
    if condition.op not in ("=", "in", "<", "<=", ">", ">=", "between"):
        return None
    values = [parameters.add(typed_value(key, item)) for item in condition.values if item is not None]
    return _or_missing(value, _compared(value, condition, values), condition)


def _compared(value: "exp.Expr", condition: Filter, values: "list[exp.Expr]") -> "exp.Expr":
    match condition.op:
        case "in":
            return exp.In(this=value, expressions=values) if values else exp.false()
        case "between":
            return within(condition.ends, value, values[0], values[1])
        case _:
            return compared(condition.op, value, values[0])


def _or_missing(value: "exp.Expr", found: "exp.Expr", condition: Filter) -> "exp.Expr":
    """The condition, and rows without a value where the filter lists None."""
    if condition.op != "in" or None not in condition.values:
        return found
    return exp.paren(exp.or_(found, exp.Is(this=value.copy(), expression=exp.null())))


def _whole_numbers(value: "exp.Expr", key: Key, condition: Filter, parameters: Parameters) -> Narrowing | None:
    """A column of whole numbers that is compared as text: those numbers that may be spelled like the values."""
    if condition.op not in ("=", "in") or not set(key.format.steps) <= _SPELLED:
        return None
    wanted: list[int] = []
    for item in condition.values:
        if item is None:
            continue
        text = _plain(item)
        period = period_of(text) if "fiscal_period" in key.format.steps else None
        if period:
            wanted += [int(period), int(f"{period[:4]}0{period[4:]}")]
        elif re.fullmatch(r"-?[0-9]{1,38}", text):
            wanted.append(int(text))
        else:
            return None
    numbers = [parameters.add(item) for item in wanted]
    found = exp.In(this=value, expressions=numbers) if numbers else exp.false()
    return Narrowing(_or_missing(value, found, condition))


def _text(dialect: Dialect, value: "exp.Expr", key: Key, condition: Filter, parameters: Parameters) -> Narrowing | None:
    steps = set(key.format.steps)
    texts = [text_of(item) for item in condition.values if item is not None]
    if any("\0" in text for text in texts):
        return None
    if condition.op == "in" and None in condition.values and "blank_as_null" in steps:
        return None  # every blank is no value, too
    if condition.op in ("=", "in"):
        if not steps:
            found = _compared(value, condition, [parameters.add(text) for text in texts])
        elif steps <= _SPELLED and not {"alpha", "fiscal_period"} <= steps:
            patterns = [pattern for text in texts for pattern in _patterns(text, steps)]
            found = _alike(dialect, value, patterns, parameters)
        else:
            return None
        return Narrowing(_or_missing(value, found, condition))
    if condition.op == "like" and not steps:
        # To some databases a sign is more than one character, and a text goes on in blanks; to SQLite it ends at a NUL.
        pattern = _loose(str(condition.value).replace("_", "%"))
        pattern = pattern.partition("%")[0] if dialect.name == "sqlite" else pattern
        return Narrowing(_alike(dialect, value, [f"{pattern}%"], parameters))
    ordered = condition.op in ("<", "<=", ">", ">=", "between")
    # The values that a range on digits cannot place are only seen where all of them come.
    plain = not any(character.isdigit() for text in texts for character in text)
    if ordered and plain and not steps and dialect.postgres:
        binary = dialect.binary(exp.cast(value, "TEXT"))
        return Narrowing(_compared(binary, condition, [parameters.add(text) for text in texts]), True)
    if condition.op == "between" and steps <= {"trim", "fiscal_period"} and "fiscal_period" in steps:
        if not (years := _years(*texts)):
            return None
        # What has no year at all may be a period that is not read, for which the range is refused where it is seen.
        dated = _alike(dialect, value, _CENTURIES, parameters)
        within_years = _alike(dialect, value, [f"%{year}%" for year in years], parameters)
        return Narrowing(exp.paren(exp.or_(within_years, exp.Not(this=dated))))
    return None


def _alike(dialect: Dialect, value: "exp.Expr", patterns: list[str], parameters: Parameters) -> "exp.Expr":
    """Whether the text is like any of the patterns."""
    # PostgreSQL refuses LIKE on a column whose collation takes different texts for the same.
    text = dialect.binary(exp.cast(value, "TEXT")) if dialect.postgres else value
    likes = [exp.Like(this=text.copy(), expression=parameters.add(pattern)) for pattern in dict.fromkeys(patterns)]
    return exp.paren(exp.or_(*likes)) if likes else exp.false()


def _patterns(text: str, steps: set[str]) -> list[str]:
    """Patterns one of which every spelling of `text` fits."""
    core = text.strip(BLANKS)
    period = period_of(core) if "fiscal_period" in steps else None
    if period:
        # January may be spelled 1/2024.
        year, part = period[:4], period[4:].removeprefix("0")
        return [f"%{year}%{part}%", f"%{part}%{year}%"]
    if "alpha" in steps:
        core = core.lstrip("0")
    return [f"%{_loose(core)}%"]


def _loose(text: str) -> str:
    """The text as part of a pattern: signs that are special to some database stand for any sign."""
    return re.sub(r"[\\\[\]!^]", "_", text)


def _years(low: str, high: str) -> list[str]:
    """The years of a range of periods within one decade, where texts between them begin with one of these years."""
    first, last = period_of(low), period_of(high)
    if first is None or last is None or first[:3] != last[:3]:
        return []
    return [f"{first[:3]}{digit}" for digit in range(int(first[3]), int(last[3]) + 1)]


def _plain(value: Scalar) -> str:
    """A value as the text of a whole number, where it is one."""
    text = text_of(value).strip(BLANKS)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    whole = text.isascii() and number.is_finite() and number.adjusted() < 40 and number == number.to_integral_value()
    return str(int(number)) if whole else text
