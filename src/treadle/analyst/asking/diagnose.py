"""Diagnosis: what is probably wrong when two sources differ, and what should be known before figures are used.

Each check is a query over the aligned keys (or over a source's filtered rows) whose answer is a claim; it is told only
where it holds, with what to declare or look at. Nothing here changes a figure. Neighbours: `patterns` (factors, signs,
rows taken in twice), `duplicates`, `currencies`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from treadle.analyst.asking.alignment import Aligned
from treadle.analyst.asking.currencies import mixed_currencies
from treadle.analyst.asking.duplicates import duplicates
from treadle.analyst.asking.idle_filters import begun_days, idle_filters
from treadle.analyst.asking.loading import unfiltered
from treadle.analyst.asking.patterns import currency_factors, patterns
from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.spans import leaves_nothing
from treadle.analyst.asking.summing import Summed
from treadle.analyst.declared.errors import NotEnoughMemory
from treadle.analyst.declared.formats import Format, parse_format
from treadle.analyst.reading.footers import left_out
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.comparison import Summary
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import NOTHING, Proof, proof_of, together
from treadle.analyst.sql.terms import call, cast, literal, matches, named, quoted, table, when

# Tried one after the other on keys that meet nothing; the first that makes any meet is the one proposed.
_PERIOD = "fiscal_period"
_CASE = "upper"
_TRIALS = ("trim", "alpha(18)", _PERIOD, _CASE, "nfc", "trim, upper", "blank_as_null")
# The first is of days to which a program added midnight.
_DAYS = ("date(YYYY-MM-DD)", "date(DD.MM.YYYY)", "date(YYYYMMDD)", "date(MM/DD/YYYY)", "date(DD/MM/YYYY)")
_DAY = r"\d{4}-\d\d-\d\d.*"
_MISSING = ("missing_in_a", "missing_in_b")
# Texts of which none of the trials nor spellings of days makes another: most numbers, and words without small letters.
_SETTLED = r"[1-9](\d{0,5}|\d{8,17})|[!-/:-`{-~]([ -`{-~]*[!-`{-~])?"
# Texts of which only a change of case makes another.
_CASED = r"[1-9](\d{0,5}|\d{8,17})|[!-/:-~]([ -~]*[!-~])?"
_MOST_SHOWN = 5

Filters = tuple[str, ...]
Lacking = Sequence[Sequence[Any]]


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
            "spellings": _spellings(session, aligned, summary, filters),
            "granularity": _granularity(session, aligned, summary, filters, currency),
            "values that one side lacks": _absent_values(session, aligned, summary, filters, lacking),
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
    counted = exp.select(exp.column("n")).from_(table("figures"), copy=False).where(whole, copy=False)
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
        if session.run(alone.filtered(exp.select(literal(1)), parameters).limit(1), parameters):
            continue
        value = named(alone.value_of(key), "v")
        every = exp.select(value).distinct().from_(alone.table.relation.copy())
        every = every.order_by(exp.Ordered(this=exp.column("v"), nulls_first=False)).limit(_MOST_SHOWN + 1)
        # As the engine spells them: Python has no day that never comes.
        every = exp.select(cast(exp.column("v"), "VARCHAR")).from_(every.subquery("those_of_it"))
        facts = {
            "side": side.called, "condition": str(condition), "dimension": key.name,
            "values": [row[0] for row in session.run(every)],
        }  # fmt: skip
        yield Claim(kind="filter_without_rows", facts=facts, proof=proof_of(every))


def _spellings(session: Session, aligned: Aligned, summary: Summary, filters: Filters) -> Iterator[Claim]:
    """Keys that would meet if one dimension were spelled alike."""
    if not (summary.missing_in_a and summary.missing_in_b):
        return
    for at, trials in _tried(session, aligned).items():
        key = aligned.keys[at]
        for form in trials or _changing(session, aligned, at, _TRIALS):
            meeting = _meeting(aligned, at, form)
            if count := session.run(meeting)[0][0]:
                facts = _spelled_alike(count, key, form, list(aligned.names))
                yield Claim(kind="spelling", facts=facts, filters=filters, proof=aligned.proof(meeting))
                break
        else:
            if not trials:
                yield from _days(session, aligned, at, filters)
            if _PERIOD in key.format.steps:
                yield from _no_periods(session, aligned, at, filters)


def _no_periods(session: Session, aligned: Aligned, at: int, filters: Filters) -> Iterator[Claim]:
    """What one side has in place of fiscal periods, and the other has nowhere."""
    column = exp.column(f"k{at}")
    # Text without a digit, as BW's # for what is not assigned, is none on purpose.
    odd = exp.and_(exp.Not(this=matches(column, r"\d{6}")), matches(column.copy(), r"(?s).*\d.*"))
    for side, here, there in zip(aligned.sides, ("na", "nb"), ("nb", "na"), strict=True):
        every = exp.select(column.copy()).from_(_absent(aligned, f"k{at}", here, there)).where(odd)
        values = [str(row[0]) for row in session.run(every.order_by(column.copy()).limit(_MOST_SHOWN + 1))]
        if values:
            facts = {"side": side.called, "dimension": aligned.keys[at].name, "values": values[:_MOST_SHOWN]}
            more = {"more": len(values) > _MOST_SHOWN}
            yield Claim(kind="no_periods", facts=facts | more, filters=filters, proof=aligned.proof(every))


def _tried(session: Session, aligned: Aligned) -> dict[int, list[Format]]:
    """The dimensions of which another form may make keys meet that meet nothing, each with the only form that may.

    Without any where all have to be tried. Most keys are of a few plain kinds, which one look tells for all dimensions.
    Those that are declared to be periods are among them, whatever they hold.
    """
    texts = [at for at, key in enumerate(aligned.keys) if key.type == "string"]
    if not texts:
        return {}
    other = [
        call("bool_or", exp.Not(this=matches(exp.column(f"k{at}"), kind)))
        for at in texts
        for kind in (_SETTLED, _CASED)
    ]
    missing = exp.or_(*(exp.EQ(this=aligned.column("s"), expression=literal(status)) for status in _MISSING))
    looked = exp.select(*other).from_(aligned.differing, copy=False).where(missing, copy=False)
    found = session.run(looked)[0]
    each = zip(texts, found[::2], found[1::2], strict=True)
    periods = [at for at in texts if _PERIOD in aligned.keys[at].format.steps]
    return {
        at: [] if uncased else [parse_format(_CASE)] for at, unsettled, uncased in each if unsettled or at in periods
    }


def _days(session: Session, aligned: Aligned, at: int, filters: Filters) -> Iterator[Claim]:
    """Keys that would meet if one side's days were read in the spelling by which most do."""
    found = []
    for form in _changing(session, aligned, at, _DAYS):
        for side in aligned.sides:
            meeting = _meeting(aligned, at, form, side.index)
            found.append((session.run(meeting)[0][0], form, side.called, meeting))
    if not found:
        return
    (count, form, name, meeting), (second, *_), *_ = sorted(found, key=lambda each: -each[0])
    if count > second:
        facts = _spelled_alike(count, aligned.keys[at], form, [name])
        yield Claim(kind="spelling", facts=facts, filters=filters, proof=aligned.proof(meeting))


def _changing(session: Session, aligned: Aligned, at: int, trials: Sequence[str]) -> list[Format]:
    """Those of the formats that change a value of the dimension, among the keys that meet nothing.

    One that leaves all of them as they are makes none meet: that is known at one look at all formats, and takes a
    fraction of what looking for keys that meet takes.
    """
    forms = [parse_format(trial) for trial in trials]
    column = exp.column(f"k{at}")
    changed = [
        call("bool_or", exp.NullSafeNEQ(this=form.apply(column.copy()), expression=column.copy())) for form in forms
    ]
    missing = [exp.EQ(this=aligned.column("s"), expression=literal(status)) for status in _MISSING]
    days = [call("bool_or", exp.and_(matches(column.copy(), _DAY), one.copy())) for one in missing]
    looked = exp.select(*changed, *days).from_(aligned.differing, copy=False).where(exp.or_(*missing), copy=False)
    *told, days_in_b, days_in_a = session.run(looked)[0]
    # Two days of a month are no two spellings of one period.
    never = _PERIOD if days_in_a and days_in_b else ""
    return [form for form, any_of_it in zip(forms, told, strict=True) if any_of_it and str(form) != never]


def _spelled_alike(count: int, key: Key, form: Format, declaring: list[str]) -> dict[str, Any]:
    return {
        "count": count, "dimension": key.name, "format": str(key.format | form), "trial": str(form),
        "declaring": declaring,
    }  # fmt: skip


def _meeting(aligned: Aligned, at: int, form: Format, side: int | None = None) -> "exp.Select":
    """How many keys that only one side has, and as many of the other, are alike with a dimension in another form.

    Of the given side only, if it is one side that writes it otherwise.
    """
    missing = [
        exp.select(*_spelled(aligned, at, form if side in (None, own) else Format()))
        .distinct(copy=False)
        .from_(aligned.differing, copy=False)
        .where(exp.EQ(this=aligned.column("s"), expression=literal(status)), copy=False)
        for own, status in zip((1, 0), _MISSING, strict=True)
    ]
    both = exp.Intersect(this=missing[0], expression=missing[1], distinct=True).subquery("meeting", copy=False)
    return exp.select(exp.Count(this=exp.Star())).from_(both, copy=False)


def _spelled(aligned: Aligned, at: int, form: Format) -> list["exp.Expr"]:
    columns = [exp.column(f"k{number}") for number in range(len(aligned.keys))]
    return [
        named(form.apply(column) if number == at else column, f"k{number}") for number, column in enumerate(columns)
    ]


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
        values = exp.Count(this=exp.Distinct(expressions=[when(_has_rows(rows), column.copy())]))
        none = exp.func("count_if", exp.and_(_has_rows(rows), exp.Is(this=column.copy(), expression=exp.null())))
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
    sides = [exp.select(*rest).from_("aligned").where(_has_rows(rows)) for rows in ("na", "nb")]
    both = exp.Intersect(this=sides[0], expression=sides[1], distinct=True).subquery("meeting")
    return exp.select(exp.Count(this=exp.Star())).from_(both)


def _absent_values(
    session: Session, aligned: Aligned, summary: Summary, filters: Filters, lacking: Sequence[Lacking | None]
) -> Iterator[Claim]:
    """Values of a dimension, such as a period or a company, that one side has rows for and the other none."""
    directions = (
        ("na", "nb", summary.missing_in_b, *aligned.names),
        ("nb", "na", summary.missing_in_a, *aligned.names[::-1]),
    )
    asked = [(at, one) for at in range(len(aligned.keys)) for one in directions if one[2]]
    unknown = [_absent(aligned, f"k{at}", here, there) for at, (here, there, *_) in asked if lacking[at] is None]
    counts = iter(_counts(session, unknown))
    for at, (here, there, _, own, other) in asked:
        known = lacking[at]
        values = None if known is None else known[here == "na"]
        total = next(counts) if values is None else len(values)
        if not total:
            continue
        order = exp.Ordered(this=exp.column(f"k{at}"), nulls_first=False)
        every = exp.select(exp.column(f"k{at}")).from_(_absent(aligned, f"k{at}", here, there)).order_by(order)
        if values is None:
            values = [row[0] for row in session.run(every.limit(_MOST_SHOWN))]
        facts = {
            "side": other, "other": own, "dimension": aligned.keys[at].name, "count": total,
            "values": [None if value is None else str(value) for value in values[:_MOST_SHOWN]],
        }  # fmt: skip
        yield Claim(kind="absent", facts=facts, filters=filters, proof=aligned.proof(every))


def _counts(session: Session, absences: "Sequence[exp.Subquery]") -> Sequence[int]:
    """How many values each of the queries has."""
    if not absences:
        return ()
    counts = [exp.select(exp.Count(this=exp.Star())).from_(absent).subquery() for absent in absences]
    try:
        return session.run(exp.select(*counts))[0]
    except NotEnoughMemory:
        return [session.run(exp.select(count))[0][0] for count in counts]


def _absent(aligned: Aligned, column: str, here: str, there: str) -> "exp.Subquery":
    """The values of a column that have rows `here` and none `there`."""
    # Few values are missing among the keys that differ; only those are looked for among all keys.
    doubted = exp.select(exp.column(column)).from_(aligned.differing, copy=False)
    doubted = doubted.group_by(exp.column(column), copy=False).having(
        exp.EQ(this=exp.Sum(this=exp.column(there)), expression=literal(0)),
        exp.GT(this=exp.Sum(this=exp.column(here)), expression=literal(0)),
        copy=False,
    )
    same = exp.NullSafeEQ(this=exp.column(column, table="aligned"), expression=exp.column(column, table="doubted"))
    present = exp.select(literal(1)).from_(table("aligned"), copy=False).where(same, _has_rows(there), copy=False)
    absent = exp.select(exp.column(column)).from_(doubted.subquery("doubted", copy=False), copy=False)
    return absent.where(exp.Not(this=exp.Exists(this=present)), copy=False).subquery("absent", copy=False)


def _has_rows(column: str) -> "exp.Expr":
    return exp.GT(this=exp.column(column), expression=literal(0))
