"""Spans: the ranges of values in a hierarchy or a filter, and which values of a key are within them.

They are ordered as a range filter orders them: numbers as numbers, days and fiscal periods as such, and where a value
cannot be placed the question is refused. Neighbour: `tree`.
"""

from collections.abc import Sequence

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.hierarchy import Span
from treadle.analyst.reading.ends import NODE, as_filter, by_order, ends_of, operand, order_for
from treadle.analyst.reading.filter_values import text_of
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.ranges import Order, refused
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import cast, named

MEMBER = "member"
"""The column of a value below a group."""


def placed(key: Key, spans: Sequence[Span], values: "exp.Select", parameters: Parameters) -> "exp.Expr":
    """Returns the query of the values within spans: rows of a `node` and a `member`, each once.

    Args:
        key: what the values are of, its type settled.
        spans: the ranges; their groups become the nodes.
        values: the query of the values, in column v.
        parameters: takes the ends.
    """
    found: list[exp.Expr] = []
    for order, those in by_order(key, spans).items():
        rows = exp.select("v", named(operand(key, order, exp.column("v")), "o")).from_(values.subquery("each_value"))
        ends = ends_of(key, order, those, parameters)
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
        for order, those in by_order(key, spans).items():
            if (wrong := _backwards(session, key, order, those)) is not None:
                raise AnalystError(f"the range {those[wrong - 1]} ends before it begins")
            if order is None or not order.pattern or values is None:
                continue
            rows = exp.select("v").from_(values.subquery("each_value")).where(order.doubtful(exp.column("v"))).limit(3)
            if found := session.run(rows):
                shown = ", ".join(repr(str(row[0])[:40]) for row in sorted(found))
                raise refused(key, as_filter(key, those[0]), f"there is {shown}, and not {order.like}")
    except AnalystError as error:
        hints = error.hints | {"argument": "hierarchies"}
        raise AnalystError(f"{told}: {error}", **hints) from error


def leaves_nothing(session: Session, key: Key, condition: Filter) -> bool:
    """Returns whether the ends of a `between` leave no value between them, whatever the rows have."""
    first, last = (text_of(value) for value in condition.values if value is not None)
    test = "low > high" if condition.inclusive == "both" else "low >= high"
    return _backwards(session, key, order_for(key, condition), [Span("", first, last)], test) is not None


def _backwards(
    session: Session, key: Key, order: Order | None, spans: Sequence[Span], test: str = "low > high"
) -> int | None:
    """The number of a range, from 1 on, of whose ends the test holds; None if there is none."""
    parameters = Parameters()
    ends = ends_of(key, order, spans, parameters)
    rows = session.run(exp.select("number").from_(ends.subquery("ends")).where(test).limit(1), parameters)
    return int(rows[0][0]) if rows else None
