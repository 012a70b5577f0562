"""Differing: the keys that do not match, the largest difference first, and where they are; read from `aligned`."""

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import Struct

from treadle.analyst.asking.alignment import Aligned, Pair, in_passes
from treadle.analyst.asking.summing import gap_of, percentage
from treadle.analyst.declared.errors import NotEnoughMemory
from treadle.analyst.reading.amounts import EXACT, trimmed
from treadle.analyst.reading.key_values import ENGINE_TYPES
from treadle.analyst.reading.session import Row, Session
from treadle.analyst.showing.classify import reason
from treadle.analyst.showing.comparison import Difference, Part, Summary
from treadle.analyst.showing.interpret import Largest
from treadle.analyst.showing.units import Units
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof
from treadle.analyst.sql.terms import call, cast, columns, count_if, literal, named, table

_PARTS = 10
# Up to how many values a column is compared with one by one.
_COMPARED = 4


class Carriers(Struct, frozen=True):
    """The values of a dimension that carry the differences.

    Attributes:
        parts: the largest, first the one that carries most.
        lacking: the values that A lacks and those that B lacks, each in order; None if these have to be looked for.
    """

    parts: list[Part]
    lacking: list[list[Any]] | None


class Differing(Struct, frozen=True):
    """The keys of a comparison by one measure: where they are read, the measure, and what it is measured in."""

    aligned: Aligned
    pair: Pair
    units: Units

    def listed(self, session: Session, limit: int, few: bool) -> list[Difference]:
        """Returns keys, the largest difference first; those that do not match come before equally large ones that do.

        Args:
            session: the engine.
            limit: how many at most.
            few: whether the first of them stand among those that differ, so that not all keys have to be looked at.
        """
        if not limit:
            return []
        statement = self._ordered(self.aligned.differing if few else None).limit(literal(limit), copy=False)
        return [self._difference(row) for row in session.run(statement)]

    def first(self, session: Session, currency: str | None = None) -> list[Difference]:
        """Returns the two largest differences of those that do not match, of one currency if there are several."""
        return [self._difference(row) for row in session.run(self._first(currency))]

    def proof_of_first(self, currency: str | None = None) -> Proof:
        """Returns the query that says which are the `first`."""
        return Proof(lambda: self.aligned.proof(self._first(currency)).text)

    def _first(self, currency: str | None) -> "exp.Select":
        state = exp.NEQ(this=exp.column(f"s{self.pair.at}"), expression=literal("match"))
        statement = self._ordered(self.aligned.differing).where(state, copy=False).limit(literal(2), copy=False)
        if self.units.currency is not None:
            code = exp.null() if currency is None else literal(currency)
            same = exp.NullSafeEQ(this=exp.column(f"k{self.units.currency}"), expression=code)
            statement = statement.where(same, copy=False)
        return statement

    def _ordered(self, rows: "exp.Expr | None") -> "exp.Select":
        at, keys = self.pair.at, self.aligned.keys
        names = [f"k{n}" for n in range(len(keys))]
        figures = [f"a{at}", f"b{at}", f"d{at}", f"s{at}", "na", "nb"]
        statement = exp.select(*columns(*names, *figures)).from_(rows or table("aligned"), copy=False)
        state = exp.EQ(this=exp.column(f"s{at}"), expression=literal("match"))
        return statement.order_by(
            exp.Ordered(this=state, desc=False),
            exp.Ordered(this=exp.Abs(this=exp.column(f"d{at}")), desc=True),
            *(
                exp.Ordered(this=key.format.sortable(exp.column(name)), desc=False, nulls_first=False)
                for key, name in zip(keys, names, strict=True)
            ),
            copy=False,
        )

    def _difference(self, row: Row) -> Difference:
        keys, places = self.aligned.keys, self.pair.places
        a, b, d, state, rows_a, rows_b = row[len(keys) :]
        a, b, difference = trimmed(a, places), trimmed(b, places), gap_of(d, places)
        absolute = difference.copy_abs()
        return Difference(
            key=dict(zip([key.name for key in keys], row, strict=False)),
            source_a_value=a,
            source_b_value=b,
            diff=difference,
            absolute_diff=absolute,
            percentage_diff=percentage(absolute, EXACT.abs(a or Decimal(0))),
            status=state,
            reason=reason(state, a, b, self.pair.limits, self.aligned.names, self.units.of(row)),
            rows_a=rows_a,
            rows_b=rows_b,
        )


def largest(
    session: Session, aligned: Aligned, pair: Pair, summary: Summary, units: Units, rows: Sequence[Difference]
) -> list[Largest]:
    """Returns the key that differs most of those that do not match, for each currency where there are several.

    Args:
        session: the engine.
        aligned: the keys.
        pair: the measure.
        summary: the comparison's figures.
        units: what its amounts are measured in.
        rows: the first keys as they are listed, the largest difference first; two need not be looked up again.
    """
    if not summary.differences or not aligned.keys:
        return []
    read = Differing(aligned, pair, units)
    found = []
    for currency in [one.currency for one in summary.by_currency if one.differences][:_PARTS] or [None]:
        known = rows[:2] if len(rows) >= min(2, summary.total_rows) and units.currency is None else None
        first_two = known or read.first(session, currency)
        if first_two:
            first = first_two[0]
            alike = [one for one in first_two if one.status != "match" and one.absolute_diff == first.absolute_diff]
            told = units.of(tuple(first.key.values()))
            found.append(Largest(first, told, read.proof_of_first(currency), currency, len(alike) > 1))
    return found


def carriers(
    session: Session, aligned: Aligned, pair: Pair, summary: Summary, units: Units, few: bool
) -> dict[str, Carriers]:
    """Returns, for each dimension, the values that carry the differences.

    Args:
        session: the engine.
        aligned: the keys.
        pair: the measure.
        summary: the comparison's figures.
        units: what its amounts are measured in.
        few: whether keys and differences are so few that one look at all of them does for all dimensions.
    """
    whole: dict[str | None, Decimal | None] = {one.currency: one.absolute_diff for one in summary.by_currency}
    apart = [] if units.currency is None else [f"k{units.currency}"]
    whole = whole or {None: summary.total_absolute_diff}
    found = {key.name: Carriers([], None) for key in aligned.keys}
    if not summary.differences:
        return found
    by = [list(dict.fromkeys([f"k{at}", *apart])) for at in range(len(aligned.keys))]
    together = _together(session, aligned, by) if few and by else None
    for at, (key, names) in enumerate(zip(aligned.keys, by, strict=True)):
        rows = together[at] if together else _one_by_one(session, aligned, names)
        every = together is not None or len(rows) < _PARTS
        found[key.name] = _carriers(rows, len(names), every, bool(apart), pair, whole)
    return found


def _carriers(
    rows: list[Row],
    width: int,
    every: bool,
    apart: bool,
    pair: Pair,
    whole: "dict[str | None, Decimal | None]",
) -> Carriers:
    """What rows say of a dimension: its value, the currency where several are told apart, and the figures.

    Args:
        rows: the first values at least.
        width: how many columns a row has before its figures.
        every: whether all values are there.
        apart: whether currencies are told apart.
        pair: the measure.
        whole: all differences without their signs, by currency.
    """
    rows.sort(key=partial(_place, width, width + 2))
    additive = pair.measures[0].additive
    made = []
    for row in rows[:_PARTS]:
        a, b, total, count, keys, *_ = row[width:]
        currency = None if not apart or row[width - 1] is None else str(row[width - 1])
        made.append(
            Part(
                value=row[0],
                source_a_value=trimmed(a, pair.places) if additive else None,
                source_b_value=trimmed(b, pair.places) if additive else None,
                absolute_diff=gap_of(total, pair.places),
                differences=count,
                rows=keys,
                share=_share(Decimal(total), whole.get(currency) or Decimal(0)),
                currency=currency,
            )
        )
    lacking = [sorted((row[0] for row in rows if not row[at]), key=_last) for at in (-2, -1)]
    return Carriers(made, lacking if every and not apart else None)


def _share(part: Decimal, whole: Decimal) -> float:
    """A part of all differences in percent, rounded to 4 decimals; 100 means all of them."""
    found = percentage(part, whole) or 0.0
    return 99.9999 if found >= 100 and part != whole else found


def _place(width: int, at: int, row: Row) -> tuple[Any, ...]:
    """Where a row stands among those of a dimension: its difference is column `at`, and how many differ the next one.

    It is the order of several passes together; a value that is None comes last, as in each.
    """
    return (row[at].copy_negate(), -row[at + 1], *map(_last, row[:width]))


def _last(value: Any) -> tuple[bool, Any]:
    return value is None, 0 if value is None else value


def _together(session: Session, aligned: Aligned, by: Sequence[Sequence[str]]) -> list[list[Row]] | None:
    """All values with differences of each dimension, in one look at all keys; None where there is no memory for that.

    A row has the value, in the currency if these are told apart, both sums, how much and how many differ, how many keys
    there are and how many rows on either side.
    """
    names = [f"k{at}" for at in range(len(aligned.keys))]
    sets = [exp.Tuple(expressions=columns(*own)) for own in by]
    absolute, differing = _sizes(aligned)
    statement = exp.select(
        call("grouping", *columns(*names)),
        *columns(*names),
        *_sums(aligned),
        absolute,
        named(differing, "differing"),
        *_rows(),
    )
    statement = statement.from_(table("aligned"), copy=False)
    statement.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
    statement = statement.having(exp.GT(this=exp.column("differing"), expression=literal(0)), copy=False)
    try:
        rows = session.run(statement)
    except NotEnoughMemory:
        return None
    found = []
    for own in by:
        # One bit for each column that a row is not grouped by, the last column's first.
        missing = sum(1 << at for at, name in enumerate(reversed(names)) if name not in own)
        places = [1 + names.index(name) for name in own]
        of_it = [row for row in rows if row[0] == missing]
        found.append([(*(row[at] for at in places), *row[1 + len(names) :]) for row in of_it])
    return found


def _sizes(aligned: Aligned) -> "tuple[exp.Expr, exp.Expr]":
    """The differences of several keys without their signs, and how many of these do not match."""
    unlike = exp.NEQ(this=aligned.column("s"), expression=literal("match"))
    return exp.Sum(this=exp.Abs(this=aligned.column("d"))), count_if(unlike)


def _sums(aligned: Aligned) -> "list[exp.Expr]":
    return [exp.Sum(this=aligned.column(letter)) for letter in "ab"]


def _rows() -> "list[exp.Expr]":
    """How many keys there are, and how many rows on each side."""
    return [exp.Count(this=exp.Star()), *(exp.Sum(this=column) for column in columns("na", "nb"))]


def _one_by_one(session: Session, aligned: Aligned, names: Sequence[str]) -> list[Row]:
    """The values of a dimension with the largest differences, and the figures of all their keys.

    A row is as those of `_together`.
    """
    width = len(names)
    first = in_passes(session, partial(_carrying, aligned, names), names[0])
    first = sorted(first, key=partial(_place, width, width))[:_PARTS]
    if not first:
        return []
    parameters = Parameters()
    figures = session.run(_all_keys(aligned, names, first, parameters), parameters)
    sizes = {row[:width]: row[width:] for row in first}
    return [(*row[: width + 2], *sizes[row[:width]], *row[width + 2 :]) for row in figures]


def _carrying(aligned: Aligned, names: Sequence[str], conditions: "Sequence[exp.Expr]") -> "exp.Select":
    """The first values of a dimension among keys that fulfil the conditions, and how much and how many differ there."""
    orders = [
        exp.Ordered(this=exp.column("absolute"), desc=True),
        exp.Ordered(this=exp.column("differing"), desc=True),
        *(exp.Ordered(this=column, desc=False, nulls_first=False) for column in columns(*names)),
    ]
    absolute, differing = _sizes(aligned)
    first = exp.select(*columns(*names), named(absolute, "absolute"), named(differing, "differing"))
    first = first.from_(aligned.differing, copy=False).where(*conditions, copy=False)
    first = first.group_by(*columns(*names), copy=False)
    first = first.having(exp.GT(this=exp.column("differing"), expression=literal(0)), copy=False)
    return first.order_by(*orders, copy=False).limit(literal(_PARTS), copy=False)


def _all_keys(aligned: Aligned, names: Sequence[str], first: Sequence[Row], parameters: Parameters) -> "exp.Select":
    """The figures of all keys that have one of these values.

    Args:
        aligned: the keys.
        names: the columns of the dimension.
        first: the values, in the first columns of these rows.
        parameters: takes them.
    """
    statement = exp.select(*columns(*names), *_sums(aligned), *_rows()).from_(table("aligned"), copy=False)
    statement = statement.group_by(*columns(*names), copy=False)
    values = dict(zip(names, zip(*first, strict=True), strict=False))
    kinds = {name: ENGINE_TYPES.get(aligned.keys[int(name[1:])].type or "", "VARCHAR") for name in names}
    if len(first) <= _COMPARED and len(names) == 1 and None not in values[names[0]]:
        # So few are told sooner one by one than by a hash.
        among = [cast(parameters.add(value), kinds[name]) for name in names for value in values[name]]
        return statement.where(exp.In(this=exp.column(names[0]), expressions=among), copy=False)
    listed = [
        named(call("unnest", cast(parameters.add(list(values[name])), f"{kinds[name]}[]")), f"v{name[1:]}")
        for name in names
    ]
    same = []
    for name in names:
        # NULL is such a value, too; where there is none, the engine has ways to skip rows of other values.
        alike = exp.NullSafeEQ if None in values[name] else exp.EQ
        same.append(alike(this=exp.column(name), expression=exp.column(f"v{name[1:]}")))
    first_values = exp.select(*listed).subquery("first", copy=False)
    return statement.join(first_values, on=exp.and_(*same, copy=False), copy=False)
