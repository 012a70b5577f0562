"""Computed: the amount of a measure that is an expression, in the embedded engine.

Each column is read as an amount of its own, exact, and the formula is written over them in decimals of 38 digits, where
the engine raises an error rather than round or overflow. What is off in floating-point columns is carried along. Builds
SQLGlot expressions in DuckDB's terms; its neighbour `amounts` reads the columns.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.expression import Expression, Number, Term
from treadle.analyst.declared.formula import Fits, Operation, Shape, doubt, formula, shape
from treadle.analyst.declared.source import Measure, Source
from treadle.analyst.reading.aggregates import RELATIVE_ERROR
from treadle.analyst.reading.amounts import Amount, Scale, amount_of, signed
from treadle.analyst.reading.table import Table
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, literal, quoted

# A product needs the decimals of all its factors: of text and floating-point numbers, each is read at its share.
_TEXT_SCALES, _FLOAT_SCALES = (6, 12), (10, 24)


def computed(
    source: Source, measure: Measure, wanted: Expression, table: Table, scales: Mapping[str, Scale | None]
) -> Amount:
    """Returns the amount of `measure` in the rows of `table`.

    Args:
        source: where the measure belongs.
        measure: the measure.
        wanted: its expression.
        table: the rows.
        scales: at how many decimals columns of text are read, where the usual number has proved not to be enough.

    Raises:
        AnalystError: a column holds something else than the expression takes it for, or its figures cannot be exact.
    """
    operands: dict[str, Amount] = {}
    for column in wanted.amounts:
        usual = _usual_scale(table, column, wanted.factors)
        plain = replace(measure, column=column, expression="", sign=1, aggregation="sum", decimals=None)
        operands[column] = amount_of(source, plain, table, scales.get(column) or usual)
    for column in wanted.texts:
        if table.columns[column] != "VARCHAR" or column in table.floating:
            raise compared_with_text(source, measure, column, table.columns[column])
    words = _Words(operands)
    found = shape(wanted.term, words.shape, _fits(source, measure))
    value = cast(formula(wanted.term, words), f"DECIMAL(38, {found.scale or 0})")
    off = None if measure.aggregation == "count" else doubt(wanted.term, words, words)
    bad = [operand.bad for operand in operands.values() if operand.bad is not None]
    nan = [operand.not_a_number for operand in operands.values() if operand.not_a_number is not None]
    return Amount(
        signed(value, measure),
        found.scale or 0,
        floating=off is not None,
        bad=exp.or_(*bad) if bad else None,
        not_a_number=exp.or_(*nan) if nan else None,
        size=off,
        operands=operands,
    )


def compared_with_text(source: Source, measure: Measure, column: str, kind: str) -> AnalystError:
    """The error that a column which holds no text is compared with one."""
    return AnalystError(
        f"source {source.name!r}: the expression of measure {measure.name!r} compares column {column!r} with a text, "
        f"but it is {kind}; write a number without quotes",
        argument="measures",
        given=measure.name,
    )


class _Words:
    """DuckDB's words, and how far its values may be off; see `treadle.analyst.declared.formula`."""

    def __init__(self, operands: Mapping[str, Amount]) -> None:
        self._operands = operands

    def amount(self, column: str) -> "exp.Expr":
        operand = self._operands[column]
        return cast(operand.value.copy(), f"DECIMAL(38, {operand.scale})")

    def text(self, column: str) -> "exp.Expr":
        return quoted(column)

    def value(self, column: str) -> "exp.Expr":
        return quoted(column)

    def number(self, number: Number) -> "exp.Expr":
        # Wider than it is: the engine's type for a sum or product of narrow decimals may be too narrow.
        return cast(literal(format(number.value, "f")), f"DECIMAL(38, {number.scale})")

    def constant(self, text: str) -> "exp.Expr":
        return literal(text)

    def rounded(self, value: "exp.Expr", places: int) -> "exp.Expr":
        return call("round", value, literal(places))

    def shape(self, column: str) -> Shape:
        return Shape(38, self._operands[column].scale)

    def scale(self, term: Term) -> int | None:
        return shape(term, self.shape, lambda op, parts, found: None).scale

    def level(self, value: "exp.Expr", scale: int) -> "exp.Expr":
        return cast(value, f"DECIMAL(38, {scale})")

    def rough(self, value: "exp.Expr") -> "exp.Expr":
        return cast(value, "DOUBLE")

    def of_amount(self, column: str) -> "exp.Expr | None":
        operand = self._operands[column]
        if not operand.floating:
            return None
        size = exp.Abs(this=cast(operand.value.copy(), "DOUBLE"))
        last = literal(10.0**-operand.scale / RELATIVE_ERROR)
        return exp.paren(exp.Add(this=size, expression=last), copy=False)

    def of_number(self, number: Number) -> "exp.Expr | None":
        return None


def _usual_scale(table: Table, column: str, factors: int) -> Scale | None:
    """At how many decimals a column is read where its own type does not say; None for the usual number."""
    kind = table.columns[column]
    floating = kind in ("DOUBLE", "FLOAT") or column in table.floating
    if not floating and kind != "VARCHAR":
        return None
    most, shared = _FLOAT_SCALES if floating else _TEXT_SCALES
    return Scale(max(1, min(most, shared // factors)))


def _fits(source: Source, measure: Measure) -> Fits:
    def check(op: Operation, parts: Sequence[Shape], found: Shape) -> None:
        if found.scale is not None and found.scale > 38:
            raise AnalystError(
                f"source {source.name!r}: the expression of measure {measure.name!r} needs {found.scale} decimals; "
                f"exact amounts have 38 at most; round its factors",
                argument="measures",
                given=measure.name,
            )

    return check
