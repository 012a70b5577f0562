"""Meeting: keys that meet nothing, and would if one dimension were spelled alike on both sides.

Neighbours: `diagnose`, which tells it, and `absences`, of values that one side has no rows for.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from treadle.analyst.asking.absences import Filters, no_periods
from treadle.analyst.asking.alignment import Aligned
from treadle.analyst.declared.formats import Format, parse_format
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.comparison import Summary
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, is_null, literal, matches, named

# Tried one after the other on keys that meet nothing; the first that makes any meet is the one proposed.
_PERIOD = "fiscal_period"
_CASE = "upper"
_TRIALS = ("trim", "alpha(18)", _PERIOD, _CASE, "nfc", "trim, upper", "blank_as_null")
# The first is of days to which a program added midnight.
_DAYS = ("date(YYYY-MM-DD)", "date(DD.MM.YYYY)", "date(YYYYMMDD)", "date(MM/DD/YYYY)", "date(DD/MM/YYYY)")
_DAY = r"\d{4}-\d\d-\d\d.*"
_MISSING = ("missing_in_a", "missing_in_b")
# Texts of which none of the trials nor spellings of days makes another, and which are no -5.0: most numbers, and words
# without small letters.
_SETTLED = r"[1-9](\d{0,5}|\d{8,17})|[!-,./:-`{-~]([ -`{-~]*[!-`{-~])?"
# Whole numbers that a program wrote as decimals, such as 1001.0, and those of others.
_WHOLE = r"(0|-?[1-9]\d{0,17})(\.0+)?"
# Texts of which only a change of case makes another.
_CASED = r"[1-9](\d{0,5}|\d{8,17})|[!-,./:-~]([ -~]*[!-~])?"


def spellings(session: Session, aligned: Aligned, summary: Summary, filters: Filters) -> Iterator[Claim]:
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
                yield from _whole_numbers(session, aligned, at, filters)
            if _PERIOD in key.format.steps:
                yield from no_periods(session, aligned, at, filters)


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


class _Whole:
    """Whole numbers without the decimals that they do not have."""

    def apply(self, value: "exp.Expr") -> "exp.Expr":
        return call("regexp_replace", value, literal(r"\.0+$"), literal(""))


def _whole_numbers(session: Session, aligned: Aligned, at: int, filters: Filters) -> Iterator[Claim]:
    """Keys that would meet if they were compared as the whole numbers that all values of a dimension are."""
    if aligned.keys[at].format.steps:
        return
    column = exp.column(f"k{at}")
    whole = exp.or_(is_null(column), matches(column.copy(), _WHOLE))
    if not session.run(exp.select(call("bool_and", whole), copy=False).from_("aligned", copy=False))[0][0]:
        return
    meeting = _meeting(aligned, at, _Whole())
    if count := session.run(meeting)[0][0]:
        # Declared on one side only, both would be compared as text.
        facts = {
            "count": count, "dimension": aligned.keys[at].name, "declare": "type: integer", "trial": "type: integer",
            "declaring": [" and ".join(aligned.names)],
        }  # fmt: skip
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
        "declare": f"format: {key.format | form}", "declaring": declaring,
    }  # fmt: skip


def _meeting(aligned: Aligned, at: int, form: Format | _Whole, side: int | None = None) -> "exp.Select":
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


def _spelled(aligned: Aligned, at: int, form: Format | _Whole) -> list["exp.Expr"]:
    columns = [exp.column(f"k{number}") for number in range(len(aligned.keys))]
    return [
        named(form.apply(column) if number == at else column, f"k{number}") for number, column in enumerate(columns)
    ]
