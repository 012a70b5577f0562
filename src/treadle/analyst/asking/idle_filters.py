"""Idle filters: conditions that do not do what who asked may think: what they name has no row, is a whole period, or is
a day of which they mean the beginning only.

Only conditions of the question are looked at: what a source always leaves out need not be there each time. Neighbour:
`diagnose`, which tells of conditions that leave nothing at all.
"""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import chain

from treadle.analyst.asking.loading import narrowed
from treadle.analyst.asking.lookups import again
from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.stages import Condition
from treadle.analyst.declared.days import BLANKS, day_of
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.formats import period_of
from treadle.analyst.reading.conditions import holds
from treadle.analyst.reading.filter_values import has_points, text_of
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof, proof_of, together
from treadle.analyst.sql.terms import call

_LEFT_OUT = ("!=", "not in")
_AT_ONCE = 100

Asked = Sequence[tuple[Side, Key]]
"""The sides that a condition holds on, each with its key."""


def idle_filters(session: Session, sides: Sequence[Side]) -> Iterator[Claim]:
    """Yields what conditions of a question leave out or ask for and no row has, which days stand for whole periods, and
    which for their beginning among points in time.

    Args:
        session: may read the sources.
        sides: what is asked; what one of several has is no idle condition on all of them.
    """
    for condition, asked in _conditions(sides):
        yield from _whole_periods(condition, asked[0][1])
        yield from _begun_days(session, condition, asked)
        yield from _days_alone(session, condition, asked)
        # What one of two sides lacks is told by their keys: databases are asked no more for it.
        if condition.op in _LEFT_OUT or (condition.op == "in" and len(sides) == 1):
            yield from _without_rows(session, condition, asked, sides)


def begun_days(session: Session, side: Side) -> Iterator[Claim]:
    """Yields which days stand for their beginning among points in time, of a side of which no row passes.

    Args:
        session: may read the source.
        side: what is asked.
    """
    for condition, asked in _conditions([side]):
        yield from _begun_days(session, condition, asked)
        yield from _days_alone(session, condition, asked)


def _conditions(sides: Sequence[Side]) -> list[tuple[Filter, Asked]]:
    """The conditions of the question, each with the sides that it is on."""
    found: dict[int, tuple[Filter, list[tuple[Side, Key]]]] = {}
    for side in sides:
        for key, condition in side.conditions:
            if not any(condition is usual for usual in side.source.default_filters):
                found.setdefault(id(condition), (condition, []))[1].append((side, key))
    return list(found.values())


def _without_rows(session: Session, condition: Filter, asked: Asked, sides: Sequence[Side]) -> Iterator[Claim]:
    """The values of a condition that no row has which fulfils the others.

    Of two conditions that leave out the same row neither is idle, so that others that leave out are not looked at.
    """
    values = [value for value in condition.values if value is not None]
    proofs: list[Proof] = []
    for side, key in asked:
        others = _others(side, condition)
        there = _there(session, side, key, others, Filter(dimension=key.name, op="in", value=list(values)))
        values = [value for value, is_there in zip(values, there[0], strict=True) if not is_there]
        proofs.append(there[1])
        if not values:
            return
    # What is asked for alone and has no row is told by there being none.
    if condition.op == "in" and len(values) == len(condition.values):
        return
    facts = {
        "sides": list(dict.fromkeys(side.called for side, _ in asked)), "dimension": asked[0][1].name,
        "values": [text_of(value) for value in values], "left_out": condition.op in _LEFT_OUT,
    }  # fmt: skip
    every = [] if len(asked) < len(sides) else sides
    held = _held([side for side, _ in asked], condition, named=bool(every) and len(sides) > 1)
    yield Claim(kind="values_without_rows", facts=facts, filters=held, proof=together(*proofs))


def _there(
    session: Session,
    side: Side,
    key: Key,
    others: Sequence[Condition],
    wanted: Filter,
    each: Sequence[Filter] = (),
    by: tuple[Filter, bool] | None = None,
) -> tuple[list[bool], Proof]:
    """Which of the values that are wanted, or whether any in a range, or of `each` within it, a row has that fulfils
    the other conditions, and that the filter `by` leaves out, or takes in; and the query."""
    rows = narrowed(session, side, key, (*others, (key, wanted)))
    if side.table.remote is not None:
        rows = again(side, rows)
    found: list[bool] = []
    proofs: list[Proof] = []
    single = [Filter(dimension=key.name, value=value) for value in wanted.values] if wanted.op == "in" else [wanted]
    single = [*each] or single
    for start in range(0, len(single), _AT_ONCE):
        some, parameters = single[start : start + _AT_ONCE], Parameters()
        tests = [holds(key, one, rows.value_of(key), parameters) for one in some]
        if by is not None:
            itself = exp.paren(holds(key, by[0], rows.value_of(key), parameters), copy=False)
            tests = [exp.and_(one, exp.Not(this=itself.copy()) if by[1] else itself.copy()) for one in tests]
        looked = [exp.Coalesce(this=call("bool_or", one), expressions=[exp.false()]) for one in tests]
        statement = rows.filtered(exp.select(*looked), parameters)
        found += session.run(statement, parameters)[0]
        proofs.append(proof_of(statement, parameters))
    return found, together(*proofs)


def _others(side: Side, condition: Filter) -> tuple[Condition, ...]:
    """The conditions on a side beside one, without those that leave something out."""
    return tuple(one for one in side.conditions if one[1] is not condition and one[1].op not in _LEFT_OUT)


def _held(sides: Sequence[Side], condition: Filter, *, named: bool) -> tuple[str, ...]:
    """The other conditions; where sides are `named`, those that hold on one of them only with its name."""
    others = [[str(one) for _, one in _others(side, condition)] for side in sides]
    everywhere = [text for text in others[0] if all(text in texts for texts in others)]
    own = [
        f"{text} in {side.called}" if named else text
        for side, texts in zip(sides, others, strict=True)
        for text in texts
        if text not in everywhere
    ]
    return tuple(dict.fromkeys(chain(everywhere, own)))


def _whole_periods(condition: Filter, key: Key) -> Iterator[Claim]:
    """Days that a condition on periods takes for the whole of the period that they are in."""
    if "fiscal_period" not in key.format.steps:
        return
    told = {}
    for at, value in enumerate(condition.values):
        day = None if value is None else _day(text_of(value), key)
        if day is not None and not _is_edge(condition, at, day) and (period := period_of(day.isoformat())):
            told[text_of(value or "")] = period
    if told:
        facts = {"condition": str(condition), "dimension": key.name, "days": list(told), "periods": [*told.values()]}
        yield Claim(kind="whole_periods", facts=facts)


def _begun_days(session: Session, condition: Filter, asked: Asked) -> Iterator[Claim]:
    """Days at an end of a range of points in time, with rows behind their beginning that the end says nothing of."""
    ends = dict(zip(condition.ends if condition.op == "between" else [condition.op], condition.values, strict=False))
    for op, value in ends.items():
        # A set of days has its last one to the end.
        if op not in ("<=", ">") or value is None or condition.to_the_end is not condition:
            continue
        text = text_of(value).strip(BLANKS)
        if (after := _after(text)) is None:
            continue
        for side, key in asked:
            if not has_points(key):
                continue
            others = tuple(one for one in side.conditions if one[1] is not condition)
            left_out = op == "<="
            behind = _behind(key, text, after)
            (is_there,), proof = _there(session, side, key, others, behind, by=(condition, left_out))
            if is_there:
                facts = {
                    "side": side.called, "dimension": key.name, "condition": str(condition), "days": [text],
                    "after": after, "left_out": left_out, "asked": False,
                }  # fmt: skip
                held = tuple(str(one) for _, one in others)
                yield Claim(kind="begun_days", facts=facts, filters=held, proof=proof)


def _days_alone(session: Session, condition: Filter, asked: Asked) -> Iterator[Claim]:
    """Days that are asked for or left out among points in time, of which they are the first, with rows behind that."""
    if condition.op not in ("=", "in", *_LEFT_OUT):
        return
    texts = [text_of(value).strip(BLANKS) for value in condition.values if value is not None]
    days = {text: after for text in texts if (after := _after(text)) is not None}
    for side, key in asked:
        if not days or not has_points(key):
            continue
        behind = [_behind(key, day, after) for day, after in days.items()]
        others = tuple(one for one in side.conditions if one[1] is not condition)
        held, first, last = others, min(days), max(days)
        if side.table.remote is not None and key.type == "string":
            # A range of days in text is one that no database decides on: it would send all of its values.
            shared = next(first[:size] for size in range(len(first), -1, -1) if last.startswith(first[:size]))
            held = (*others, (key, Filter(dimension=key.name, op="like", value=f"{shared}%")))
        left_out = condition.op not in _LEFT_OUT
        found, proof = _there(session, side, key, held, _behind(key, first, days[last]), behind, (condition, left_out))
        if late := [day for day, is_there in zip(days, found, strict=True) if is_there]:
            facts = {
                "side": side.called, "dimension": key.name, "condition": str(condition), "days": late,
                "after": days[late[0]], "left_out": left_out, "asked": True,
            }  # fmt: skip
            yield Claim(kind="begun_days", facts=facts, filters=tuple(str(one) for _, one in others), proof=proof)


def _after(text: str) -> str | None:
    """The day after the one that a text is in full, as points in time begin; None if it is none, or the last of all."""
    day = day_of(text, "YYYY-MM-DD")
    return None if day is None or day == date.max or str(day) != text else str(day + timedelta(days=1))


def _behind(key: Key, first: str, after: str) -> Filter:
    """The points in time behind the beginning of a day up to that of another."""
    return Filter(dimension=key.name, op="between", value=[first, after], inclusive="neither")


def _day(text: str, key: Key) -> date | None:
    """The day that a filter's value names, in ISO's spelling or one that a side declares."""
    spellings = ["YYYY-MM-DD", *(member.format.day for member in key.members if member.format.day)]
    days = (day_of(text.strip(BLANKS)[:10], spelling) for spelling in spellings)
    return next((day for day in days if day is not None), None)


def _is_edge(condition: Filter, at: int, day: date) -> bool:
    """Whether a day is where a period begins or ends, and the condition says no less of the one than of the other."""
    op = condition.op if condition.op != "between" else condition.ends[at]
    if op in (">=", "<"):
        return day.day == 1
    return op in ("<=", ">") and day.day == monthrange(day.year, day.month)[1]
