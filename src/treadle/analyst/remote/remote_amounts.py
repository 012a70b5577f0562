"""Remote amounts: what a measure has in a row of a database's table, in that database's words.

Neighbours: `pushdown` (which aggregates them), `amounts` and `computed` (the same for rows of the embedded engine).
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.expression import Expression, Number, Term
from treadle.analyst.declared.formula import Fits, Operation, Shape, doubt, formula, shape
from treadle.analyst.declared.source import Measure, Source
from treadle.analyst.reading.amounts import BLANKS
from treadle.analyst.reading.computed import compared_with_text
from treadle.analyst.reading.dialect import Column, Dialect, quoted_column
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters


class RemoteAmount(Struct, frozen=True):
    """The amount of a measure in a row.

    Attributes:
        value: it, NULL for none.
        column: what kind of number it is.
        nan: true where the row holds NaN; None where that cannot be.
        untyped: columns that may hold text all the same.
        size: by how much it may be off in multiples of a floating-point number's relative error, if it is one.
    """

    value: "exp.Expr"
    column: Column
    nan: "exp.Expr | None"
    untyped: tuple[str, ...]
    size: "exp.Expr"


def remote_amount(
    dialect: Dialect, source: Source, measure: Measure, columns: Mapping[str, Column], parameters: Parameters
) -> RemoteAmount:
    """Returns the amount of `measure`.

    Args:
        dialect: of the database.
        source: where the measure belongs.
        measure: has a column or an expression.
        columns: the table's columns, by name.
        parameters: takes the texts of an expression.

    Raises:
        AnalystError: a column holds something that cannot be added up, or the expression cannot be exact there.
    """
    if measure.formula:
        return _computed(dialect, source, measure, measure.formula, columns, parameters)
    column = _number(source, measure, columns[measure.source_column], measure.source_column)
    value, nan = _value(dialect, measure.source_column, column)
    if column.kind == "integer":
        value = dialect.whole(value)
    untyped = () if dialect.typed else (measure.source_column,)
    return RemoteAmount(value, column, nan, untyped, exp.Abs(this=value.copy()))


def remote_count(dialect: Dialect, name: str, column: Column) -> "tuple[exp.Expr, exp.Expr | None]":
    """Returns what has a value where a row counts, and where a row holds NaN: neither that nor a text of blanks counts.

    Args:
        dialect: of the database.
        name: of the column.
        column: what kind of value it holds.
    """
    value: exp.Expr = quoted_column(name)
    if column.kind == "text" or not dialect.typed:
        bare = dialect.binary(exp.cast(value, "TEXT") if dialect.postgres else value)
        # Databases differ in what they trim; a text from which all blanks are taken is empty if it had nothing else.
        for blank in BLANKS:
            bare = exp.Anonymous(this="REPLACE", expressions=[bare, exp.Literal.string(blank), exp.Literal.string("")])
        return exp.Nullif(this=bare, expression=exp.Literal.string("")), None
    if column.kind not in ("decimal", "floating"):
        return value, None
    _, nan = _value(dialect, name, column)
    return (value, None) if nan is None else (exp.Case(ifs=[exp.If(this=exp.Not(this=nan), true=value)]), nan.copy())


def _computed(
    dialect: Dialect,
    source: Source,
    measure: Measure,
    wanted: Expression,
    columns: Mapping[str, Column],
    parameters: Parameters,
) -> RemoteAmount:
    read = {name: _number(source, measure, columns[name], name) for name in wanted.amounts}
    for name in wanted.texts:
        if columns[name].kind != "text":
            raise compared_with_text(source, measure, name, columns[name].name or columns[name].kind)
    words = _Words(dialect, read, parameters)
    value = formula(wanted.term, words)
    found = Column("floating")
    if not any(column.kind == "floating" for column in read.values()):
        exact = shape(wanted.term, lambda name: read[name].shape, _fits(dialect, source, measure))
        found = Column("decimal", exact.scale, digits=exact.digits)
    nan = [each for name, column in read.items() if (each := _value(dialect, name, column)[1]) is not None]
    return RemoteAmount(
        value,
        found,
        exp.or_(*nan) if nan else None,
        () if dialect.typed else wanted.amounts,
        doubt(wanted.term, words, words) or exp.Literal.number(0),
    )


class _Words:
    """A database's words, and how far its values may be off; see `treadle.analyst.declared.formula`."""

    def __init__(self, dialect: Dialect, columns: Mapping[str, Column], parameters: Parameters) -> None:
        self._dialect, self._columns, self._parameters = dialect, columns, parameters

    def amount(self, column: str) -> "exp.Expr":
        known = self._columns[column]
        value, _ = _value(self._dialect, column, known)
        if known.kind == "integer" or (known.kind == "decimal" and self._dialect.name == "bigquery"):
            return self._dialect.decimal(value, known.shape)
        return value

    def text(self, column: str) -> "exp.Expr":
        value = quoted_column(column)
        return self._dialect.binary(exp.cast(value, "TEXT") if self._dialect.postgres else value)

    def value(self, column: str) -> "exp.Expr":
        return quoted_column(column)

    def number(self, number: Number) -> "exp.Expr":
        plain = format(abs(number.value), "f")
        spelled: exp.Expr = exp.Literal.number(plain)
        if self._dialect.name not in ("postgres", "sqlite"):
            # A database may take 0.1 for a floating-point number.
            spelled = self._dialect.decimal(exp.Literal.string(plain), Shape(number.digits, number.scale))
        return exp.paren(exp.Neg(this=spelled)) if number.value < 0 else spelled

    def constant(self, text: str) -> "exp.Expr":
        return self._parameters.add(text)

    def rounded(self, value: "exp.Expr", places: int) -> "exp.Expr":
        return exp.Round(this=value, decimals=exp.Literal.number(places))

    def scale(self, term: Term) -> int | None:
        return None

    def level(self, value: "exp.Expr", scale: int) -> "exp.Expr":
        return value

    def rough(self, value: "exp.Expr") -> "exp.Expr":
        return value

    def of_amount(self, column: str) -> "exp.Expr | None":
        exact = self._dialect.postgres and self._columns[column].kind != "floating"
        return None if exact else exp.Abs(this=self.amount(column))

    def of_number(self, number: Number) -> "exp.Expr | None":
        return None if self._dialect.postgres else exp.Abs(this=self.number(number))


def _number(source: Source, measure: Measure, column: Column, name: str) -> Column:
    """The column, if it holds numbers."""
    if column.kind in ("integer", "decimal", "floating"):
        return column
    raise AnalystError(
        f"source {source.name!r}: measure {measure.name!r} cannot be a {measure.aggregation}, because its column "
        f"{name!r} is {column.name or column.kind}; declare 'aggregation: count', another column, or a view that casts "
        f"it to a number",
        argument="measures",
        given=measure.name,
    )


def _value(dialect: Dialect, name: str, column: Column) -> "tuple[exp.Expr, exp.Expr | None]":
    """A column's amount, and where it is NaN: PostgreSQL's floating-point numbers by the shortest decimals that they
    print as, without NaN."""
    value = quoted_column(name)
    if not dialect.postgres or column.kind == "integer":
        return value, None
    if column.name == "money":
        return exp.cast(value, "DECIMAL"), None
    kind = "DOUBLE" if column.kind == "floating" else "DECIMAL"
    nan = exp.cast(exp.Literal.string("NaN"), kind)
    number: exp.Expr = value.copy()
    if column.kind == "floating":
        number = exp.cast(exp.cast(number, "TEXT"), "DECIMAL")
    filled = exp.Case(ifs=[exp.If(this=exp.NEQ(this=value, expression=nan), true=number)])
    return filled, exp.EQ(this=value.copy(), expression=nan.copy())


def _fits(dialect: Dialect, source: Source, measure: Measure) -> Fits:
    def check(op: Operation, parts: Sequence[Shape], found: Shape) -> None:
        if dialect.keeps(op, parts, found):
            return
        raise AnalystError(
            f"source {source.name!r}: its database would round or lose what the expression of measure {measure.name!r} "
            f"computes; take a view whose columns are decimals of fewer digits, such as DECIMAL(18, 2)",
            argument="measures",
            given=measure.name,
        )

    return check
