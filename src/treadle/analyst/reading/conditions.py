"""Conditions: what a filter says of the value of its key, in the embedded engine. Builds expressions; reads nothing."""

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter, Scalar, Under
from treadle.analyst.reading.filter_values import spelled_out, typed_value
from treadle.analyst.reading.key_values import ENGINE_TYPES
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.ranges import Order, order_of
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import call, cast, compared, within


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
            known = exp.and_(exp.Not(this=missing.copy()), exp.paren(exp.or_(*wanted))) if wanted else exp.false()
            found = exp.paren(exp.or_(known, missing) if None in condition.values else known)
            return found if condition.op == "in" else exp.Not(this=found)
        case _:
            order = order_for(key, condition)
            one, *ends = ((order.operand if order else key.format.sortable)(each) for each in (value, *values))
            if condition.op == "between":
                return within(condition.ends, one, *ends)
            return compared(condition.op, one, *ends)


def spans_of(condition: Filter) -> list[Filter]:
    """Returns the ranges in a filter: itself, or those below a group."""
    return condition.spans if isinstance(condition, Under) else [condition]


def order_for(key: Key, condition: Filter) -> Order | None:
    """Returns by what the values of `key` are ordered for a filter; see `order_of`."""
    return order_of(key, condition, [spelled_out(key, value) for value in condition.values if value is not None])


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
    names = exp.select(call("unnest", cast(parameters.add(list(condition.names)), "VARCHAR[]")))
    parts: list[exp.Expr] = [exp.In(this=cast(value.copy(), "VARCHAR"), query=names.subquery())]
    parts += [holds(key, span, value.copy(), parameters) for span in condition.spans]
    return exp.paren(exp.or_(*parts))
