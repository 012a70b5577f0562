"""Conditions: what a filter says of the value of its key, in the embedded engine. Builds expressions; reads nothing."""

from collections.abc import Sequence

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter, Scalar, Under
from treadle.analyst.declared.hierarchy import Span
from treadle.analyst.reading.ends import as_filter, by_order, ends_of, operand, order_for
from treadle.analyst.reading.filter_values import as_held, spelled_out, typed_value
from treadle.analyst.reading.key_values import ENGINE_TYPES
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.ranges import Order
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import call, cast, compared, literal, named, within


def holds(key: Key, condition: Filter, value: "exp.Expr", parameters: Parameters) -> "exp.Expr":
    """Returns whether a filter holds for a canonical value.

    Args:
        key: what the filter is on, its type settled.
        condition: the filter.
        value: the value of the key.
        parameters: takes the filter's values.

    Raises:
        AnalystError: a value of the filter is none of the key's type, or its range cannot be decided.
    """
    if condition.op == "under":
        return _below(key, condition, value, parameters)
    condition = as_held(key, condition)
    if condition.op == "like":
        text = value if key.type == "string" else cast(value, "VARCHAR")
        return exp.Like(this=text, expression=cast(parameters.add(str(condition.value)), "VARCHAR"))
    values = [_bound(key, one, parameters) for one in condition.values if one is not None]
    missing = exp.Is(this=value.copy(), expression=exp.null())
    match condition.op:
        case "is null":
            return missing
        case "is not null":
            return exp.Not(this=missing)
        case "=":
            return exp.EQ(this=value, expression=values[0])
        case "!=":
            return exp.NullSafeNEQ(this=value, expression=values[0])
        case "in" | "not in":
            wanted = [exp.In(this=value, expressions=values)] if values else []
            # A comparison with NULL is neither true nor false: a row without a value is decided on its own.
            there = exp.Not(this=missing.copy())
            known = exp.and_(there, exp.paren(wanted[0], copy=False), copy=False) if wanted else exp.false()
            found = exp.paren(exp.or_(known, missing, copy=False) if None in condition.values else known, copy=False)
            return found if condition.op == "in" else exp.Not(this=found)
        case _:
            order = order_for(key, condition)
            one, *ends = ((order.operand if order else key.format.sortable)(each) for each in (value, *values))
            if condition.op == "between":
                return within(condition.ends, one, *ends)
            return compared(condition.op, one, *ends)


def orders_in(key: Key, condition: Filter) -> list[tuple[Order | None, Filter]]:
    """Returns by what the values of a key are ordered for a filter, or for the ranges below the group that it names;
    each order with a filter that has it."""
    if not isinstance(condition, Under):
        return [(order_for(key, condition), condition)]
    return [(order, as_filter(key, those[0])) for order, those in by_order(key, _spans(condition)).items()]


def _bound(key: Key, value: Scalar, parameters: Parameters) -> "exp.Expr":
    if key.type == "string":
        return key.format.apply(cast(parameters.add(spelled_out(key, value)), "VARCHAR"))
    return cast(parameters.add(typed_value(key, value)), ENGINE_TYPES[key.type])


def _below(key: Key, condition: Filter, value: "exp.Expr", parameters: Parameters) -> "exp.Expr":
    """Whether a value is below a group."""
    if not isinstance(condition, Under):
        raise AnalystError(
            f"{str(condition)!r} names a group, which a filter of a table that others are looked up in cannot",
            argument="default_filters",
            given=condition.dimension,
        )
    names = exp.select(call("unnest", cast(parameters.add(list(condition.names)), "VARCHAR[]")), copy=False)
    parts: list[exp.Expr] = [exp.In(this=cast(value.copy(), "VARCHAR"), query=names.subquery(copy=False))]
    orders = by_order(key, _spans(condition))
    parts += [_within(key, order, those, value, parameters) for order, those in orders.items()]
    return exp.paren(exp.or_(*parts, copy=False), copy=False)


def _spans(condition: Under) -> list[Span]:
    return [Span("", first, last) for first, last in condition.ranges]


def _within(
    key: Key, order: Order | None, spans: Sequence[Span], value: "exp.Expr", parameters: Parameters
) -> "exp.Expr":
    """Whether a value is in any of the ranges, which stand in a query of their own: there may be hundreds."""
    taken = {column.name.casefold() for column in value.find_all(exp.Column)}
    low, high = ("low", "high")
    while taken & {low, high}:
        low, high = f"{low}_", f"{high}_"
    ends = exp.select(named(exp.column("low"), low), named(exp.column("high"), high), copy=False)
    ends = ends.from_(ends_of(key, order, spans, parameters).subquery("ends", copy=False), copy=False)
    compared_with = operand(key, order, value.copy())
    inside = exp.and_(
        exp.LTE(this=exp.column(low), expression=compared_with),
        exp.GTE(this=exp.column(high), expression=compared_with.copy()),
        copy=False,
    )
    those = exp.select(literal(1), copy=False).from_(ends.subquery("each_range", copy=False), copy=False)
    return exp.Exists(this=those.where(inside, copy=False))
