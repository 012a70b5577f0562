"""Aggregates: how amounts of many rows become one figure, exactly, and by how much a floating-point one may be off.

Builds SQLGlot expressions in DuckDB's terms. Neighbour: `amounts` (the amount of one row).
"""

from typing import assert_never

from treadle.analyst.declared.source import Measure
from treadle.analyst.reading.amounts import Amount, unit_at
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, is_null, literal

RELATIVE_ERROR = 2.5e-16


# An average has so many decimals, whatever holds the amounts; more where its measure declares many of its own.
_MEAN_SCALE = 10
_BEYOND_DECLARED = 4


def common_scale(measure: Measure, amount: Amount) -> int:
    """How many decimals the aggregate of `amount` has in the engine."""
    match measure.aggregation:
        case "count":
            return 0
        case "avg":
            return max(_MEAN_SCALE, (measure.decimals or 0) + _BEYOND_DECLARED)
        case "sum" | "min" | "max":
            return amount.scale
        case _:
            assert_never(measure.aggregation)


def aggregates(measure: Measure, amount: Amount, name: str) -> dict[str, "exp.Expr"]:
    """Returns the aggregates, by column name, from which the figure of `measure` is made.

    The rows that they are taken over have the amount in column `name`, and `name_bad` and `name_nan` where those can
    be.
    """
    column = exp.column(name)
    found: dict[str, exp.Expr] = {}
    match measure.aggregation:
        case "sum" | "avg":
            found[name] = exp.Sum(this=column)
        case "min":
            found[name] = exp.Min(this=column)
        case "max":
            found[name] = exp.Max(this=column)
        case "count":
            counted = exp.Coalesce(this=exp.Sum(this=column), expressions=[literal(0)])
            found[name] = counted if amount.grouped else exp.Count(this=column)
    if measure.aggregation == "avg" or amount.floating:
        counts = exp.Coalesce(this=exp.Sum(this=exp.column(f"{name}_n")), expressions=[literal(0)])
        found[f"{name}_n"] = counts if amount.grouped else exp.Count(this=column.copy())
    if amount.floating:
        size = cast(exp.Abs(this=column.copy()), "DOUBLE") if amount.size is None else exp.column(f"{name}_size")
        found[f"{name}_size"] = exp.Sum(this=size)
    if amount.bad is not None:
        found[f"{name}_bad"] = exp.Sum(this=exp.column(f"{name}_bad"))
    if amount.not_a_number is not None:
        found[f"{name}_nan"] = exp.Sum(this=exp.column(f"{name}_nan"))
    return found


def of_one_row(aggregate: "exp.Expr") -> "exp.Expr":
    """Returns what an aggregate over a single row is, and over a row that an outer join has made up, of NULLs."""

    def alone(node: "exp.Expr") -> "exp.Expr":
        value: exp.Expr = node.this
        match node:
            case exp.Sum() | exp.Min() | exp.Max():
                return value
            case exp.Count():
                return cast(exp.paren(exp.Not(this=is_null(value))), "BIGINT")
        return node

    return aggregate.transform(alone)


def figure(measure: Measure, amount: Amount, name: str, scale: int) -> "exp.Expr":
    """Returns the figure of `measure` as DECIMAL(38, scale), made of its aggregates.

    An average is the whole sum divided by the number of amounts, rounded once, half away from zero, at `scale`
    decimals, by whole-number division: how many decimals the amounts are read at makes no difference to it.
    """
    kind = f"DECIMAL(38, {scale})"
    if measure.aggregation != "avg":
        return cast(exp.column(name), kind)
    more, fewer = max(0, scale - amount.scale), max(0, amount.scale - scale)
    total = cast(exp.column(name), f"DECIMAL(38, {amount.scale})")
    # The digits without their point: a product with a power of ten would have no room for 38 of them.
    digits = cast(call("replace", cast(total, "VARCHAR"), literal("."), literal("")), "HUGEINT")
    size = exp.Abs(this=digits)
    count = call("nullif", cast(exp.column(f"{name}_n"), "HUGEINT"), literal(0))
    divisor = exp.paren(exp.Mul(this=count, expression=_power(fewer)))
    whole = exp.Mul(this=exp.paren(exp.IntDiv(this=size, expression=divisor)), expression=_power(more))
    left = exp.Mul(this=exp.paren(exp.Mod(this=size.copy(), expression=divisor.copy())), expression=_power(more))
    twice = exp.paren(exp.Add(this=exp.Mul(this=literal(2), expression=left), expression=divisor.copy()))
    rounded = exp.IntDiv(this=twice, expression=exp.paren(exp.Mul(this=literal(2), expression=divisor.copy())))
    units = exp.Mul(this=call("sign", digits.copy()), expression=exp.paren(exp.Add(this=whole, expression=rounded)))
    unit = cast(literal(f"{unit_at(scale):f}"), f"DECIMAL({scale}, {scale})")
    return cast(exp.Mul(this=cast(units, "DECIMAL(38, 0)"), expression=unit), kind)


def _power(places: int) -> "exp.Expr":
    return cast(literal(str(10**places)), "HUGEINT")


def noise(measure: Measure, amount: Amount, name: str, scale: int) -> "exp.Expr":
    """Returns how far a floating-point figure may be from what was meant, as DOUBLE; zero for exact ones.

    Each value is off by half a unit in its last binary place (2**-53 of its size for a double, doubled here for the way
    it was computed before it was stored) and by half of the last decimal it is read at.
    """
    if not amount.floating or measure.aggregation == "count":
        return cast(literal(0), "DOUBLE")
    size = exp.Mul(this=exp.column(f"{name}_size"), expression=literal(RELATIVE_ERROR))
    last = exp.Mul(this=exp.column(f"{name}_n"), expression=literal(10.0**-amount.scale))
    total = exp.Coalesce(this=exp.Add(this=size, expression=last), expressions=[literal(0)])
    if measure.aggregation == "sum":
        return total
    return call(
        "greatest",
        exp.Div(
            this=exp.paren(total),
            expression=call("greatest", exp.column(f"{name}_n"), literal(1)),
        ),
        cast(literal(10.0**-scale), "DOUBLE"),
    )
