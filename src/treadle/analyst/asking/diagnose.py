"""Diagnosis: what is probably wrong when two sources differ, and what should be known before figures are used.

Each check is a query over the aligned keys (or over a source's filtered rows) whose answer is a claim; it is told only
where it holds, with what to declare or look at. Nothing here changes a figure. Neighbours: `patterns` (factors, signs,
rows taken in twice), `meeting`, `absences`, `duplicates`, `currencies`.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from treadle.analyst.asking.absences import Filters, Lacking, absent_values, has_rows
from treadle.analyst.asking.alignment import Aligned
from treadle.analyst.asking.currencies import mixed_currencies
from treadle.analyst.asking.duplicates import duplicates
from treadle.analyst.asking.idle_filters import begun_days, idle_filters
from treadle.analyst.asking.loading import unfiltered
from treadle.analyst.asking.meeting import spellings
from treadle.analyst.asking.patterns import currency_factors, patterns
from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.spans import leaves_nothing
from treadle.analyst.asking.summing import Summed
from treadle.analyst.declared.errors import NotEnoughMemory
from treadle.analyst.reading.footers import left_out
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.comparison import Summary
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import NOTHING, Proof, proof_of, together
from treadle.analyst.sql.terms import cast, literal, named, quoted, table, when

_MOST_SHOWN = 5


def comparison_findings(
    session: Session,
    aligned: Aligned,
    whole: Summed,
    filters: Filters,
    currency: int | None,
    lacking: Sequence[Lacking | None],
    idle: Sequence[Claim],
) -> list[Claim]:
    """Returns what is probably wrong in a comparison, the most telling first.

    Args:
        session: where the table `aligned` is.
        aligned: what is needed to read it.
        whole: the comparison's figures.
        filters: the conditions under which they hold.
        currency: the number of the key that tells currencies apart, which nobody can do without; None if there is none.
        lacking: for each key the values that A lacks and those that B lacks, in order; None where they are not known.
        idle: what there is to say of the conditions where both sides have rows, by whatever measure.
    """
    summary = whole.summary
    empty = _empty_sides(session, aligned, summary, filters)
    found = empty or [*idle]
    if summary.differences and not empty:
        checks = {
            "spellings": spellings(session, aligned, summary, filters),
            "granularity": _granularity(session, aligned, summary, filters, currency),
            "values that one side lacks": absent_values(session, aligned, summary, filters, lacking),
            "factors and flipped signs": patterns(session, aligned, whole, filters),
            "factors of a currency": currency_factors(session, aligned, whole, filters, currency),
            "duplicates": duplicates(session, aligned, whole, filters),
        }
        for what, check in checks.items():
            try:
                found += check
            except NotEnoughMemory:
                told = {"what": f"there was not enough memory to look for {what}", "why": ""}
                found.append(Claim(kind="not_examined", facts=told, filters=filters))
    for side in aligned.sides:
        found += _floating(session, side, aligned.at, "aligned", filters)
    return found + _left_out(session, aligned.sides) + _to_be_said(aligned.sides)


def data_findings(session: Session, side: Side, filters: Filters) -> list[Claim]:
    """Returns what should be known of the amounts in a query, whose groups are in the table `figures`."""
    found: list[Claim] = []
    whole = exp.EQ(this=exp.column("total"), expression=literal(1))
    counted = exp.select(exp.column("n"), copy=False).from_(table("figures"), copy=False).where(whole, copy=False)
    if any(row[0] for row in session.run(counted)):
        found += idle_filters(session, [side])
    else:
        found += _unfulfilled(session, side)
        found += begun_days(session, side)
        found.append(Claim(kind="no_rows", facts={"side": side.called}, filters=filters, proof=proof_of(counted)))
    for at, measure in enumerate(side.measures):
        found += _floating(session, side, at, "figures", filters)
        found += mixed_currencies(session, side, measure, filters)
    return found + _left_out(session, [side]) + _to_be_said([side])


def _left_out(session: Session, sides: Sequence[Side]) -> list[Claim]:
    """Short lines that are left out as totals, and may be rows that were cut off; once of what is on both sides."""
    found: list[Claim] = []
    for name, source in {side.source.name: side.source for side in sides}.items():
        lines = [line for file in session.files[name] for line in left_out(session, source, file)]
        if lines:
            facts = {"side": name, "count": len(lines), "lines": lines[:_MOST_SHOWN]}
            found.append(Claim(kind="left_out", facts=facts))
    return found


def _to_be_said(sides: Sequence[Side]) -> list[Claim]:
    """What the data of sources leave open that nobody has declared; once of one that is on both sides."""
    asked = dict.fromkeys((side.source.name, question) for side in sides for question in side.source.questions)
    return [Claim(kind="to_be_said", facts={"side": name, "question": question}) for name, question in asked]


def _floating(session: Session, side: Side, at: int, table: str, filters: Filters) -> Iterator[Claim]:
    measure, amount = side.measures[at], side.amount(at)
    facts = {"measure": measure.name, "side": side.called}
    if amount.floating:
        columns = [call for name in measure.columns if (call := _kind_of(side, name)) is not None]
        proof = exp.select(*columns).from_(side.table.relation.copy()).limit(1) if columns else None
        yield Claim(
            kind="approximate", facts=facts, filters=filters, proof=NOTHING if proof is None else proof_of(proof)
        )
    if amount.not_a_number is not None:
        column = exp.column(f"{side.name(at)}_nan")
        counted = exp.select(exp.Max(this=column) if table == "figures" else exp.Sum(this=column)).from_(table)
        if count := session.run(counted)[0][0]:
            told = facts | {"count": int(count)}
            yield Claim(kind="not_a_number", facts=told, filters=filters, proof=proof_of(counted))


def _kind_of(side: Side, column: str) -> "exp.Expr | None":
    """The type of a column of the data, where it is in the session as it is in the source."""
    return exp.func("typeof", quoted(column)) if column in side.table.columns else None


def _empty_sides(session: Session, aligned: Aligned, summary: Summary, filters: Filters) -> list[Claim]:
    """A side without rows, with the values that its filtered dimensions do have."""
    found: list[Claim] = []
    for side, missing in zip(aligned.sides, (summary.missing_in_a, summary.missing_in_b), strict=True):
        if missing < summary.total_rows:
            continue
        # What is so of a condition whatever the rows are is said once.
        found += [claim for claim in _unfulfilled(session, side) if claim not in found]
        found += begun_days(session, side)
        counted = exp.select(exp.Sum(this=exp.column(f"n{side.letter}"))).from_("aligned")
        found.append(Claim(kind="no_rows", facts={"side": side.called}, filters=filters, proof=proof_of(counted)))
    return found


def _unfulfilled(session: Session, side: Side) -> Iterator[Claim]:
    """Conditions that no row fulfils, with the values that there are."""
    for key, condition in side.conditions:
        if condition.op == "between" and leaves_nothing(session, key, condition):
            yield Claim(kind="nothing_between", facts={"condition": str(condition)}, proof=NOTHING)
            continue
        if condition.op not in ("=", "in", "between", "like", "under") or key.members[side.index].mapping:
            continue
        table = unfiltered(session, side, key)
        alone = replace(side, keys=(), declared=(), conditions=((key, condition),), table=table, pushed=())
        parameters = Parameters()
        if session.run(alone.filtered(exp.select(literal(1)), parameters).limit(literal(1), copy=False), parameters):
            continue
        value = named(alone.value_of(key), "v")
        every = exp.select(value, copy=False).distinct(copy=False).from_(alone.table.relation.copy(), copy=False)
        every = every.order_by(exp.Ordered(this=exp.column("v"), nulls_first=False), copy=False)
        every = every.limit(literal(_MOST_SHOWN + 1), copy=False)
        # As the engine spells them: Python has no day that never comes.
        told = exp.select(cast(exp.column("v"), "VARCHAR"), copy=False)
        every = told.from_(every.subquery("those_of_it", copy=False), copy=False)
        facts = {
            "side": side.called, "condition": str(condition), "dimension": key.name,
            "values": [row[0] for row in session.run(every)],
        }  # fmt: skip
        yield Claim(kind="filter_without_rows", facts=facts, proof=proof_of(every))


def _granularity(
    session: Session, aligned: Aligned, summary: Summary, filters: Filters, currency: int | None
) -> Iterator[Claim]:
    """A dimension that one side does not break down by, of two sides that have no key in common."""
    if summary.missing_in_a + summary.missing_in_b < summary.total_rows:
        return
    for at, key in enumerate(aligned.keys):
        in_a, in_b = session.run(_values_of(at))[0]
        if at == currency or (in_a > 1) == (in_b > 1):
            continue
        coarse, fine = aligned.sides if in_a == 1 else aligned.sides[::-1]
        value = _one_value(session, coarse, key)
        without = _without(aligned, at)
        meeting, proof = session.run(without)[0][0], proof_of(without)
        if value is None or not meeting:
            continue
        facts = {
            "coarse": coarse.called, "fine": fine.called, "dimension": key.name, "value": value[0],
            "meeting": meeting,
        }  # fmt: skip
        yield Claim(kind="granularity", facts=facts, filters=filters, proof=together(value[1], proof))


def _values_of(at: int) -> "exp.Select":
    """How many values a dimension has in the rows of A, and in those of B; none is a value like any other."""
    column = exp.column(f"k{at}")
    counts = []
    for rows in ("na", "nb"):
        values = exp.Count(this=exp.Distinct(expressions=[when(has_rows(rows), column.copy())]))
        none = exp.func("count_if", exp.and_(has_rows(rows), exp.Is(this=column.copy(), expression=exp.null())))
        counts.append(exp.Add(this=values, expression=exp.cast(exp.GT(this=none, expression=literal(0)), "INT")))
    return exp.select(*counts).from_("aligned")


def _one_value(session: Session, side: Side, key: Key) -> tuple[object, Proof] | None:
    """The only value that a dimension has in a source, whatever the filters, and the query; None if it has several."""
    if side.conditions and side.table.remote is not None and key.members[side.index].mapping:
        # What the filters leave out of a database would have to be fetched, and looked up, for a hint.
        return None
    table = unfiltered(session, side, key) if side.conditions else side.table
    every = exp.select(named(side.value_of(key), "v")).distinct().from_(table.relation.copy()).limit(2)
    rows = session.run(every)
    return (None if rows[0][0] is None else str(rows[0][0]), proof_of(every)) if len(rows) == 1 else None


def _without(aligned: Aligned, at: int) -> "exp.Select":
    """How many keys meet if one dimension is left out."""
    rest = [f"k{number}" for number in range(len(aligned.keys)) if number != at] or ["1"]
    sides = [exp.select(*rest).from_("aligned").where(has_rows(rows)) for rows in ("na", "nb")]
    both = exp.Intersect(this=sides[0], expression=sides[1], distinct=True).subquery("meeting")
    return exp.select(exp.Count(this=exp.Star())).from_(both)
