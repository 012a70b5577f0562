"""Terms: the small pieces of SQL that the analyst's statements are made of, as SQLGlot expressions in DuckDB's terms.

An expression that stands in a statement already is copied before it is used again. Names are made into expressions
here: as text SQLGlot would parse them, and copy with each where in the text it stood.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from treadle.analyst.sql.lazy import exp


def literal(value: str | int | float) -> "exp.Expr":
    """A text, quoted, or a number."""
    return exp.Literal.string(value) if isinstance(value, str) else exp.Literal.number(repr(value))


def call(function: str, *arguments: "exp.Expr") -> "exp.Expr":
    """A call of one of DuckDB's functions."""
    return exp.Anonymous(this=function, expressions=[_free(argument) for argument in arguments])


def cast(value: "exp.Expr", kind: str) -> "exp.Expr":
    """The value as another type; the engine raises an error if it is none."""
    return exp.Cast(this=_free(value), to=data_type(kind))


def try_cast(value: "exp.Expr", kind: str) -> "exp.Expr":
    """The value as another type; NULL if it is none."""
    return exp.TryCast(this=_free(value), to=data_type(kind))


def named(value: "exp.Expr", name: str, *, quoted: bool | None = None) -> "exp.Expr":
    """The value as a column called `name`, which is quoted where it has to be, or as is said."""
    return exp.Alias(this=_free(value), alias=exp.to_identifier(name, quoted=quoted))


def columns(*names: str) -> "list[exp.Column]":
    """Columns of those names."""
    return [exp.column(name) for name in names]


def table(name: str) -> "exp.Table":
    """A table of the session."""
    return exp.Table(this=exp.to_identifier(name))


def is_null(value: "exp.Expr") -> "exp.Expr":
    """Whether there is no value."""
    return exp.Is(this=_free(value), expression=exp.null())


def when(condition: "exp.Expr", then: "exp.Expr", otherwise: "exp.Expr | None" = None) -> "exp.Expr":
    """`then` where `condition` holds, else `otherwise`, else NULL."""
    default = None if otherwise is None else _free(otherwise)
    return exp.Case(ifs=[exp.If(this=_free(condition), true=_free(then))], default=default)


def compared(op: str, value: "exp.Expr", other: "exp.Expr") -> "exp.Expr":
    """A value against another, by =, <, <=, > or >=."""
    kinds: dict[str, type[exp.Expr]] = {"=": exp.EQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}
    return kinds[op](this=_free(value), expression=_free(other))


def within(ends: tuple[str, str], value: "exp.Expr", low: "exp.Expr", high: "exp.Expr") -> "exp.Expr":
    """A value between two, `ends` being what holds against each."""
    if ends == (">=", "<="):
        return exp.Between(this=value, low=low, high=high)
    return exp.and_(compared(ends[0], value, low), compared(ends[1], value.copy(), high), copy=False)


def scan(function: str, files: Sequence[Path], options: Mapping[str, "exp.Expr"]) -> "exp.Expr":
    """The rows of files, as one of DuckDB's functions reads them."""
    paths = exp.Array(expressions=[literal(str(file)) for file in files])
    named = [exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]
    return exp.Table(this=call(function, paths, *named))


def matches(value: "exp.Expr", pattern: str) -> "exp.Expr":
    """Whether the whole of a text is of the pattern."""
    return call("regexp_full_match", value, literal(pattern))


def quoted(column: str) -> "exp.Expr":
    """A column of the data, by its exact name."""
    return exp.Column(this=exp.to_identifier(column, quoted=True))


def count_if(condition: "exp.Expr") -> "exp.Expr":
    """How many rows fulfil the condition."""
    return exp.CountIf(this=_free(condition))


def data_type(kind: str) -> "exp.DataType":
    """A type, by the engine's name of it."""
    name, _, within = kind.removesuffix(")").partition("(")
    # Most are one of these two, which take longer to parse, and to copy, than to make.
    if name == "DECIMAL" and within:
        digits = [exp.DataTypeParam(this=literal(int(number))) for number in within.split(",")]
        return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=digits, nested=False)
    if name == "ENUM":
        words = [literal(word.strip(" '")) for word in within.split(",")]
        return exp.DataType(this=exp.DataType.Type.ENUM, expressions=words, nested=False)
    return _parsed(kind).copy()


@cache
def _parsed(kind: str) -> "exp.DataType":
    return exp.DataType.build(kind, dialect="duckdb")


def _free(value: "exp.Expr") -> "exp.Expr":
    return value.copy() if value.parent else value
