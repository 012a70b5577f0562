"""Diagnosis: what is probably wrong when two sources differ, and what should be known before figures are used.

Each check is a query over the aligned keys (or over a source's filtered rows) whose answer is a fact; it is told only
where the fact holds, with what to declare or look at. Nothing here changes a figure.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from treadle.analyst.alignment import Aligned
from treadle.analyst.comparison import Finding, Summary
from treadle.analyst.duplicates import duplicates
from treadle.analyst.errors import NotEnoughMemory
from treadle.analyst.formats import Format, parse_format
from treadle.analyst.keys import Key
from treadle.analyst.parameters import Parameters
from treadle.analyst.remote import unfiltered
from treadle.analyst.rows import Side
from treadle.analyst.session import Session
from treadle.analyst.source import Measure
from treadle.analyst.terms import call, cast, literal, named, when

if TYPE_CHECKING:
    from sqlglot import exp

# Tried one after the other on keys that meet nothing; the first that makes any meet is the one proposed.
_TRIALS = ("trim", "alpha(18)", "fiscal_period", "upper", "nfc", "trim, upper", "blank_as_null")
_MOST_SHOWN = 5


def comparison_findings(
    session: Session, aligned: Aligned, summary: Summary, used: Sequence[Sequence[str]]
) -> list[Finding]:
    """Returns what is probably wrong in a comparison, the most telling first.

    Args:
        session: where the table `aligned` is.
        aligned: what is needed to read it.
        summary: the comparison's figures.
        used: the currencies on each side.
    """
    found = list(_empty_sides(session, aligned, summary))
    if summary.differences and not found:
        checks = {
            "spellings": _spellings(session, aligned, summary),
            "granularity": _granularity(session, aligned, summary),
            "values that one side lacks": _absent_values(session, aligned, summary),
            "factors and flipped signs": _patterns(session, aligned, summary),
            "duplicates": duplicates(session, aligned),
        }
        for what, check in checks.items():
            try:
                found += check
            except NotEnoughMemory:
                found.append(Finding("not_examined", f"there was not enough memory to look for {what}"))
    for side, values in zip(aligned.sides, used, strict=True):
        found += _floating(session, side, aligned.at, "aligned")
        found += _mixed(side, side.measures[aligned.at], values)
    return found


def data_findings(session: Session, side: Side) -> list[Finding]:
    """Returns what should be known of the amounts in a query, whose groups are in the table `figures`."""
    found: list[Finding] = []
    for at, measure in enumerate(side.measures):
        found += _floating(session, side, at, "figures")
        found += _mixed(side, measure, currencies(session, side, measure))
    return found


def currencies(session: Session, side: Side, measure: Measure) -> list[str]:
    """Returns the first currencies among a side's rows, if its measure is declared to have any."""
    from sqlglot import exp

    if not measure.currency or measure.aggregation == "count":
        return []
    dimension = side.source.dimension(measure.currency)
    key = Key(dimension.name, (dimension,) * (side.index + 1), "string", dimension.format)
    parameters = Parameters()
    value = named(side.value_of(key), "currency")
    statement = side.filtered(exp.select(value).distinct(), parameters).order_by("currency").limit(_MOST_SHOWN + 1)
    return ["(none)" if row[0] is None else str(row[0]) for row in session.run(statement, parameters)]


def _floating(session: Session, side: Side, at: int, table: str) -> Iterator[Finding]:
    from sqlglot import exp

    measure, amount = side.measures[at], side.amount(at)
    where = f"{measure.name} of {side.source.name}"
    if amount.floating:
        yield Finding(
            "approximate",
            f"{where} is approximate: its column holds floating-point numbers; differences that these "
            f"can be off by count as matches",
        )
    if amount.not_a_number is not None:
        count = session.run(
            exp.select(
                exp.Max(this=exp.column(f"{side.name(at)}_nan"))
                if table == "figures"
                else exp.Sum(this=exp.column(f"{side.name(at)}_nan"))
            ).from_(table)
        )[0][0]
        if count:
            yield Finding("not_a_number", f"{where}: {count} rows hold NaN and are left out, as if they were empty")


def _mixed(side: Side, measure: Measure, used: Sequence[str]) -> Iterator[Finding]:
    if len(used) < 2:
        return
    dimension = side.source.dimension(measure.currency)
    each = any(item.members[side.index].name == dimension.name for item in side.keys)
    what = "the totals" if each else "sums"
    advice = "read them by currency only" if each else f"ask by {dimension.name}, or filter to one"
    yield Finding(
        "mixed_currencies",
        f"{what} of {measure.name} in {side.source.name} add up several currencies ({_listed(used)}); {advice}",
    )


def _empty_sides(session: Session, aligned: Aligned, summary: Summary) -> Iterator[Finding]:
    """A side without rows, with the values that its filtered dimensions do have."""
    from sqlglot import exp

    for side, missing in zip(aligned.sides, (summary.missing_in_a, summary.missing_in_b), strict=True):
        if missing < summary.total_rows:
            continue
        for key, condition in side.conditions:
            if condition.op not in ("=", "in", "between", "like") or key.members[side.index].mapping:
                continue
            alone = Side(side.letter, side.index, side.source, [], [], [(key, condition)])
            alone.table = unfiltered(session, side, key)
            parameters = Parameters()
            if session.run(alone.filtered(exp.select(literal(1)), parameters).limit(1), parameters):
                continue
            value = named(alone.value_of(key), "v")
            every = exp.select(value).distinct().from_(alone.table.relation.copy()).order_by("v").limit(_MOST_SHOWN + 1)
            values = [str(row[0]) for row in session.run(every)]
            yield Finding(
                "filter_without_rows",
                f"{side.source.name} has no row with {condition}; its values of "
                f"{key.name} are {_listed(values) or 'none at all'}",
            )
        yield Finding("no_rows", f"{side.source.name} has no row that passes the filters")


def _spellings(session: Session, aligned: Aligned, summary: Summary) -> Iterator[Finding]:
    """Keys that would meet if one dimension were spelled alike."""
    from sqlglot import exp

    if not (summary.missing_in_a and summary.missing_in_b):
        return
    for at, key in enumerate(aligned.keys):
        if key.type != "string":
            continue
        for trial in _TRIALS:
            form = parse_format(trial)
            missing = [
                exp.select(*_spelled(aligned, at, form))
                .distinct()
                .from_(aligned.differing)
                .where(exp.EQ(this=aligned.column("s"), expression=literal(status)))
                for status in ("missing_in_a", "missing_in_b")
            ]
            meeting = exp.Intersect(this=missing[0], expression=missing[1], distinct=True).subquery("meeting")
            count = session.run(exp.select(exp.Count(this=exp.Star())).from_(meeting))[0][0]
            if count:
                declared = str(key.format | form)
                yield Finding(
                    "spelling",
                    f"{count} keys that are missing on one side each would meet if {key.name} were "
                    f"compared in another spelling: declare 'format: {declared}' on dimension "
                    f"{key.name} of {aligned.names[0]} or {aligned.names[1]}",
                )
                break


def _spelled(aligned: Aligned, at: int, form: Format) -> list["exp.Expr"]:
    from sqlglot import exp

    columns = [exp.column(f"k{number}") for number in range(len(aligned.keys))]
    return [
        named(form.apply(column) if number == at else column, f"k{number}") for number, column in enumerate(columns)
    ]


def _granularity(session: Session, aligned: Aligned, summary: Summary) -> Iterator[Finding]:
    """A dimension that one side does not break down by, of two sides that have no key in common."""
    from sqlglot import exp

    if summary.missing_in_a + summary.missing_in_b < summary.total_rows:
        return
    for at, key in enumerate(aligned.keys):
        value = exp.Coalesce(this=cast(exp.column(f"k{at}"), "VARCHAR"), expressions=[literal("")])
        counts = [
            exp.Count(this=exp.Distinct(expressions=[when(_has_rows(column), value.copy())])) for column in ("na", "nb")
        ]
        in_a, in_b = session.run(exp.select(*counts).from_("aligned"))[0]
        if (in_a > 1) == (in_b > 1):
            continue
        coarse, fine = aligned.names if in_a == 1 else aligned.names[::-1]
        yield Finding(
            "granularity",
            f"{coarse} does not break down by {key.name} (all its rows have one value there), "
            f"{fine} does: compare without {key.name}",
        )


def _absent_values(session: Session, aligned: Aligned, summary: Summary) -> Iterator[Finding]:
    """Values of a dimension, such as a period or a company, that one side has and the other lacks altogether."""
    from sqlglot import exp

    directions = (
        ("na", "nb", summary.missing_in_b, *aligned.names),
        ("nb", "na", summary.missing_in_a, *aligned.names[::-1]),
    )
    for at in range(len(aligned.keys)):
        for here, there, missing, own, other in directions:
            if not missing:
                continue
            absent = _absent(aligned, f"k{at}", here, there)
            total = session.run(exp.select(exp.Count(this=exp.Star())).from_(absent))[0][0]
            if not total:
                continue
            value = exp.Ordered(this=exp.column(f"k{at}"), nulls_first=False)
            first = exp.select(f"k{at}").from_(absent.copy()).order_by(value).limit(_MOST_SHOWN)
            values = ["(none)" if row[0] is None else str(row[0]) for row in session.run(first)]
            rest = f" and {total - len(values)} more" if total > len(values) else ""
            name = aligned.keys[at].name
            yield Finding("absent", f"{other} has no row at all for {name} {', '.join(values)}{rest}, {own} has")


def _absent(aligned: Aligned, column: str, here: str, there: str) -> "exp.Subquery":
    """The values of a column that have rows `here` and none `there`."""
    from sqlglot import exp

    # Few values are missing among the keys that differ; only those are looked for among all keys.
    doubted = exp.select(column).from_(aligned.differing).group_by(column)
    doubted = doubted.having(
        exp.EQ(this=exp.Sum(this=exp.column(there)), expression=literal(0)),
        exp.GT(this=exp.Sum(this=exp.column(here)), expression=literal(0)),
    )
    same = exp.NullSafeEQ(this=exp.column(column, table="aligned"), expression=exp.column(column, table="doubted"))
    present = exp.select("1").from_("aligned").where(same, _has_rows(there))
    absent = exp.select(column).from_(doubted.subquery("doubted"))
    return absent.where(exp.Not(this=exp.Exists(this=present))).subquery("absent")


def _has_rows(column: str) -> "exp.Expr":
    from sqlglot import exp

    return exp.GT(this=exp.column(column), expression=literal(0))


def _patterns(session: Session, aligned: Aligned, summary: Summary) -> Iterator[Finding]:
    """One explanation for all keys that differ: a factor, a flipped sign, rows taken in more than once."""
    from sqlglot import exp

    if not summary.minor_differences + summary.major_differences:
        return
    amounts = [named(exp.Coalesce(this=aligned.column(letter), expressions=[literal(0)]), letter) for letter in "ab"]
    differing = exp.In(this=aligned.column("s"), expressions=[literal("minor_diff"), literal("major_diff")])
    rows = exp.select(*amounts, "na", "nb").from_(aligned.differing).where(differing).subquery("amounts", copy=False)
    a, b = exp.column("a"), exp.column("b")
    nonzero = [exp.NEQ(this=value.copy(), expression=literal(0)) for value in (a, b)]
    largest = exp.Max(this=call("greatest", exp.Abs(this=a.copy()), exp.Abs(this=b.copy())))
    sizes = exp.select(exp.Count(this=exp.Star()), largest).from_(rows).where(*nonzero)
    total, size = session.run(sizes)[0]
    # A product beyond 38 digits cannot be formed; amounts so large are not tested for factors.
    if not total or Decimal(size).adjusted() > 22:
        return
    tests = _pattern_tests()
    counted = [exp.func("count_if", test) for test in tests.values()]
    counts = session.run(sizes.select(*counted, append=False))[0]
    for (kind, factor, on_a), count in zip(tests, counts, strict=True):
        # One key that happens to be double is no sign of rows taken in twice.
        enough = total > 1 or kind != "repeated"
        if enough and (count == total or (total > 9 and count * 10 >= total * 9)):
            large, small = aligned.names if on_a else aligned.names[::-1]
            yield Finding(
                kind,
                _PATTERNS[kind].format(
                    count=count, total=total, factor=factor, large=large, small=small, measure=aligned.measure.name
                ),
            )


def _pattern_tests() -> "dict[tuple[str, int, bool], exp.Expr]":
    """What holds of amounts a and b, and of the rows na and nb that they are made of; last whether A is the larger."""
    from sqlglot import exp

    def equal(large: str, factor: int, small: str) -> "exp.Expr":
        product = exp.Mul(this=exp.column(small), expression=literal(factor))
        return exp.EQ(this=exp.column(large), expression=product)

    tests: dict[tuple[str, int, bool], exp.Expr] = {}
    for factor in (10, 100, 1000):
        tests["factor", factor, True] = equal("a", factor, "b")
        tests["factor", factor, False] = equal("b", factor, "a")
    tests["sign", 1, True] = exp.EQ(this=exp.column("a"), expression=exp.Neg(this=exp.column("b")))
    for factor in (2, 3):
        tests["repeated", factor, True] = exp.and_(equal("a", factor, "b"), equal("na", factor, "nb"))
        tests["repeated", factor, False] = exp.and_(equal("b", factor, "a"), equal("nb", factor, "na"))
    return tests


_PATTERNS = {
    "factor": "in {count} of {total} keys that differ {large} is exactly {factor} times {small}: probably currency "
    "decimals, or a unit such as thousands",
    "sign": "in {count} of {total} keys that differ the two sides have the same amount with opposite signs: declare "
    "'sign: -1' on measure {measure} of one of them",
    "repeated": "in {count} of {total} keys that differ {large} has {factor} times the amount and {factor} times the "
    "rows of {small}: its rows were probably taken in {factor} times",
}


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(values[:_MOST_SHOWN])
    return f"{shown}, …" if len(values) > _MOST_SHOWN else shown
