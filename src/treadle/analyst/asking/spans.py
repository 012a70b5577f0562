"""Spans: the ranges of values in a hierarchy, and which values of a key are within them.

They are ordered as a range filter orders them: numbers as numbers, days and fiscal periods as such, and where a value
cannot be placed the question is refused. Neighbour: `tree`.
"""

from collections.abc import Sequence

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.hierarchy import Span
from treadle.analyst.reading.conditions import order_for
from treadle.analyst.reading.filter_values import spelled_out, typed_value
from treadle.analyst.reading.key_values import ENGINE_TYPES
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.ranges import Order, refused
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import call, cast, literal, named

NODE, MEMBER = "node", "member"
"""The columns of a group, and of a value below it."""


def placed(key: Key, spans: Sequence[Span], values: "exp.Select", parameters: Parameters) -> "exp.Expr":
    """Returns the query of the values within spans: rows of a `node` and a `member`, each once.

    Args:
        key: what the values are of, its type settled.
        spans: the ranges; their groups become the nodes.
        values: the query of the values, in column v.
        parameters: takes the ends.
    """
    found: list[exp.Expr] = []
    for order, those in _by_order(key, spans).items():
        rows = exp.select("v", named(_operand(key, order, exp.column("v")), "o")).from_(values.subquery("each_value"))
        ends = _ends(key, order, those, parameters)
        within = exp.and_("o >= low", "o <= high")
        chosen = exp.select(NODE, named(cast(exp.column("v"), "VARCHAR"), MEMBER)).distinct()
        found.append(chosen.from_(rows.subquery("valued")).join(ends.subquery("ends"), on=within))
    first, *more = found
    for one in more:
        first = exp.Union(this=first, expression=one, distinct=True)
    return first


def refuse_unclear(session: Session, key: Key, spans: Sequence[Span], values: "exp.Select | None", told: str) -> None:
    """Looks at ranges before they are used.

    Args:
        session: the engine.
        key: what the values are of, its type settled.
        spans: the ranges.
        values: the query of the values, in column v; None if they are looked at elsewhere.
        told: what has the ranges, for errors.

    Raises:
        AnalystError: a range ends before it begins, an end is no value of the key, or a value cannot be placed.
    """
    try:
        for order, those in _by_order(key, spans).items():
            parameters = Parameters()
            ends = _ends(key, order, those, parameters)
            wrong = session.run(
                exp.select("number").from_(ends.subquery("ends")).where("low > high").limit(1), parameters
            )
            if wrong:
                raise AnalystError(f"the range {those[wrong[0][0] - 1]} ends before it begins")
            if order is None or not order.pattern or values is None:
                continue
            rows = exp.select("v").from_(values.subquery("each_value")).where(order.doubtful(exp.column("v"))).limit(3)
            if found := session.run(rows):
                shown = ", ".join(repr(str(row[0])[:40]) for row in sorted(found))
                raise refused(key, _filter(key, those[0]), f"there is {shown}, and not {order.like}")
    except AnalystError as error:
        hints = error.hints | {"argument": "hierarchies"}
        raise AnalystError(f"{told}: {error}", **hints) from error


def _by_order(key: Key, spans: Sequence[Span]) -> dict[Order | None, list[Span]]:
    """The ranges by what their values are ordered by."""
    found: dict[Order | None, list[Span]] = {}
    for span in spans:
        found.setdefault(order_for(key, _filter(key, span)), []).append(span)
    return found


def _filter(key: Key, span: Span) -> Filter:
    return Filter(dimension=key.name, op="between", value=[span.first, span.last])


def _ends(key: Key, order: Order | None, spans: Sequence[Span], parameters: Parameters) -> "exp.Select":
    """Rows of a node, the number of a range from 1 on, and its ends as values are compared with them."""
    nodes = cast(parameters.add([span.group for span in spans]), "VARCHAR[]")
    first, last = (cast(parameters.add([_end(key, end) for end in ends]), "VARCHAR[]")
                   for ends in ([span.first for span in spans], [span.last for span in spans]))  # fmt: skip
    rows = exp.select(
        named(call("unnest", nodes), NODE),
        named(call("generate_subscripts", nodes.copy(), literal(1)), "number"),
        named(call("unnest", first), "first_text"),
        named(call("unnest", last), "last_text"),
    )
    low, high = (_operand(key, order, _typed(key, exp.column(f"{name}_text"))) for name in ("first", "last"))
    return exp.select(NODE, "number", named(low, "low"), named(high, "high")).from_(rows.subquery("written"))


def _end(key: Key, text: str) -> str:
    return spelled_out(key, text) if key.type == "string" else str(typed_value(key, text))


def _typed(key: Key, text: "exp.Expr") -> "exp.Expr":
    return key.format.apply(text) if key.type == "string" else cast(text, ENGINE_TYPES[key.type])


def _operand(key: Key, order: Order | None, value: "exp.Expr") -> "exp.Expr":
    return order.operand(value) if order else key.format.sortable(value)
