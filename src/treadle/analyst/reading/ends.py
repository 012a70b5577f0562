"""Ends: the first and the last values of ranges, as the values of a key are compared with them. Builds expressions."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.hierarchy import Span
from treadle.analyst.reading.filter_values import spelled_out, typed_value
from treadle.analyst.reading.key_values import ENGINE_TYPES
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.ranges import Order, order_of
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import call, cast, columns, literal, named

NODE = "node"
"""The column of a group."""


def order_for(key: Key, condition: Filter) -> Order | None:
    """Returns by what the values of `key` are ordered for a filter; see `order_of`."""
    return order_of(key, condition, [spelled_out(key, value) for value in condition.values if value is not None])


def by_order(key: Key, spans: Sequence[Span]) -> dict[Order | None, list[Span]]:
    """Returns ranges by what the values in them are ordered by. Raises AnalystError for a range in no order."""
    found: dict[Order | None, list[Span]] = {}
    for span in spans:
        order = order_for(key, as_filter(key, span))
        found.setdefault(next((known for known in found if _alike(known, order)), order), []).append(span)
    return found


def _alike(one: Order | None, other: Order | None) -> bool:
    """Whether two orders are the same, whatever value they name as an example."""
    return one == other if one is None or other is None else replace(one, like="") == replace(other, like="")


def as_filter(key: Key, span: Span) -> Filter:
    """Returns a range as a filter."""
    return Filter(dimension=key.name, op="between", value=[span.first, span.last])


def operand(key: Key, order: Order | None, value: "exp.Expr") -> "exp.Expr":
    """Returns what of a value is compared with the ends of ranges in that order."""
    return order.operand(value) if order else key.format.sortable(value)


def ends_of(key: Key, order: Order | None, spans: Sequence[Span], parameters: Parameters) -> "exp.Select":
    """Returns the query of rows of a `node`, the `number` of a range from 1 on, and its ends `low` and `high`.

    Raises:
        AnalystError: an end is no value of the key.
    """
    nodes = cast(parameters.add([span.group for span in spans]), "VARCHAR[]")
    first, last = (cast(parameters.add([_end(key, end) for end in ends]), "VARCHAR[]")
                   for ends in ([span.first for span in spans], [span.last for span in spans]))  # fmt: skip
    rows = exp.select(
        named(call("unnest", nodes), NODE),
        named(call("generate_subscripts", nodes.copy(), literal(1)), "number"),
        named(call("unnest", first), "first_text"),
        named(call("unnest", last), "last_text"),
    )
    low, high = (operand(key, order, _typed(key, exp.column(f"{name}_text"))) for name in ("first", "last"))
    ends = exp.select(*columns(NODE, "number"), named(low, "low"), named(high, "high"), copy=False)
    return ends.from_(rows.subquery("written", copy=False), copy=False)


def _end(key: Key, text: str) -> str:
    return spelled_out(key, text) if key.type == "string" else str(typed_value(key, text))


def _typed(key: Key, text: "exp.Expr") -> "exp.Expr":
    return key.format.apply(text) if key.type == "string" else cast(text, ENGINE_TYPES[key.type])
