"""Patterns: one explanation for the keys of both sides, such as a factor, a flipped sign, rows taken in more than once.

A factor and a sign are of all data of a source or of none, and are claimed only where nearly all keys that both sides
have show them: one key that happens to be tenfold, beside fifty that match, says nothing. All of one currency may show
a factor by themselves, as systems keep yen with two decimals that they have not. So neither is looked for where many
keys are equal, nor rows taken in more than once where each key has as many on one side as on the other.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from treadle.analyst.asking.alignment import Aligned
from treadle.analyst.asking.summing import Summed
from treadle.analyst.declared.filters import Filter
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.proof import proof_of
from treadle.analyst.sql.terms import call, literal, named

if TYPE_CHECKING:
    from treadle.analyst.showing.sentences import Facts, Kind

# A product beyond 38 digits, decimals included, cannot be formed; amounts so large are not tested for factors.
_MOST_DIGITS = 22
_MOST_WITH_DECIMALS = 35


def patterns(session: Session, aligned: Aligned, whole: Summed, filters: tuple[str, ...]) -> Iterator[Claim]:
    """Yields what nearly all keys, or nearly all that do not match, have in common.

    Args:
        session: where the table `aligned` is.
        aligned: what is needed to read it.
        whole: the comparison's figures.
        filters: the conditions that hold.
    """
    summary = whole.summary
    off = summary.minor_differences + summary.major_differences
    # Those that both sides have, and that are not zero on both.
    unequal = whole.unequal - summary.missing_in_a - summary.missing_in_b
    total = unequal + whole.equal
    possible = {
        # A number of rows or values has no decimals and is in no thousands.
        "factor": aligned.measure.aggregation != "count" and _nearly_all(unequal, total),
        "sign": _nearly_all(unequal, total),
        "repeated": whole.uneven > 0 and _nearly_all(off, summary.differences),
    }
    if not off or not any(possible.values()):
        return
    tests = {key: test for key, test in _tests().items() if possible[key[0]]}
    # Most comparisons are done here: only what shows among the few keys that differ is looked for among all.
    seen = _run(session, _counted(aligned, aligned.differing, tests))
    if not seen:
        return
    shown = {kind: test for (kind, test), count in zip(tests.items(), seen, strict=True) if count}
    if not shown or not (counts := _run(session, _counted(aligned, None, shown))):
        return
    for (kind, factor, on_a), count in zip(shown, counts, strict=True):
        among = summary.differences if kind == "repeated" else total
        # One key of several, or one that happens to be double, is a coincidence.
        enough = count > 1 or (summary.total_rows == 1 and kind != "repeated")
        if not (count and enough and _nearly_all(count, among)):
            continue
        facts = _facts(aligned, count, among, factor, on_a=on_a)
        counted = _counted(aligned, None, {(kind, factor, on_a): shown[kind, factor, on_a]})
        yield Claim(kind=kind, facts=facts, filters=filters, proof=proof_of(counted.select("COUNT(*) AS total")))


def _facts(aligned: Aligned, count: int, total: int, factor: int, *, on_a: bool) -> "Facts":
    large, small = aligned.names if on_a else aligned.names[::-1]
    return {
        "count": count, "total": total, "factor": factor, "large": large, "small": small,
        "measure": aligned.measure.name,
    }  # fmt: skip


def currency_factors(
    session: Session, aligned: Aligned, whole: Summed, filters: tuple[str, ...], currency: int | None
) -> Iterator[Claim]:
    """Yields the factors between nearly all keys of one currency, where there are several.

    Args:
        session: where the table `aligned` is.
        aligned: what is needed to read it.
        whole: the comparison's figures.
        filters: the conditions that hold.
        currency: the number of the key that tells currencies apart; None if there is none.
    """
    if currency is None or whole.unequal < 2 or aligned.measure.aggregation == "count":
        return
    tests = {key: test for key, test in _tests().items() if key[0] == "factor"}
    code = exp.column(f"k{currency}")
    counted = _counted(aligned, None, tests)
    if not _run(session, counted):
        return
    each = counted.select(code, exp.Count(this=exp.Star())).group_by(code.copy())
    rows = session.run(each)
    every = sum(row[-1] for row in rows)
    for at, (_, factor, on_a) in enumerate(tests):
        if len(rows) < 2 or _nearly_all(sum(row[at] for row in rows), every):
            # That is told of all of them.
            continue
        for count, value, total in sorted((row[at], str(row[-2]), row[-1]) for row in rows if row[-2] is not None):
            if count < 2 or not _nearly_all(count, total):
                continue
            facts = _facts(aligned, count, total, factor, on_a=on_a)
            where = (*filters, str(Filter(dimension=aligned.keys[currency].name, value=value)))
            proof = _counted(aligned, None, {("factor", factor, on_a): tests["factor", factor, on_a]})
            proof = proof.select("COUNT(*) AS total").where(exp.EQ(this=code.copy(), expression=literal(value)))
            yield Claim(kind="factor", facts=facts, filters=where, proof=proof_of(proof))


def _nearly_all(count: int, among: int) -> bool:
    return count * 10 >= among * 9


def _run(session: Session, counted: "exp.Select") -> list[int]:
    """The counts; none where the amounts are too large to be multiplied."""
    source = counted.args["from_"].copy()
    largest = exp.Max(this=call("greatest", exp.Abs(this=exp.column("a")), exp.Abs(this=exp.column("b"))))
    size = session.run(exp.select(largest).from_(source.this))[0][0]
    if size is None:
        return []
    written = Decimal(size)
    if written.adjusted() > _MOST_DIGITS or len(written.as_tuple().digits) > _MOST_WITH_DECIMALS:
        return []
    return list(session.run(counted)[0])


def _counted(
    aligned: Aligned, rows: "exp.Expr | None", tests: "Mapping[tuple[Kind, int, bool], exp.Expr]"
) -> "exp.Select":
    """How many of the keys that both sides have, with an amount other than zero on either, fulfil each test."""
    counted = [named(exp.func("count_if", test.copy()), f"t{at}") for at, test in enumerate(tests.values())]
    return _pairs(aligned, rows).select(*counted, append=False)


def _pairs(aligned: Aligned, rows: "exp.Expr | None") -> "exp.Select":
    amounts = [named(exp.Coalesce(this=aligned.column(letter), expressions=[literal(0)]), letter) for letter in "ab"]
    keys = [f"k{at}" for at in range(len(aligned.keys))]
    both = exp.select(*amounts, "na", "nb", named(aligned.column("s"), "s"), *keys).from_(rows or "aligned")
    both = both.where("na > 0", "nb > 0")
    zero = [exp.NEQ(this=exp.column(letter), expression=literal(0)) for letter in "ab"]
    return exp.select(exp.Count(this=exp.Star())).from_(both.subquery("amounts", copy=False)).where(exp.or_(*zero))


def _tests() -> "dict[tuple[Kind, int, bool], exp.Expr]":
    """What holds of amounts a and b, and of the rows na and nb that they are made of; last whether A is the larger."""

    def equal(large: str, factor: int, small: str) -> "exp.Expr":
        product = exp.Mul(this=exp.column(small), expression=literal(factor))
        return exp.EQ(this=exp.column(large), expression=product)

    tests: dict[tuple[Kind, int, bool], exp.Expr] = {}
    for factor in (10, 100, 1000):
        tests["factor", factor, True] = equal("a", factor, "b")
        tests["factor", factor, False] = equal("b", factor, "a")
    tests["sign", 1, True] = exp.EQ(this=exp.column("a"), expression=exp.Neg(this=exp.column("b")))
    unlike = exp.NEQ(this=exp.column("s"), expression=literal("match"))
    for factor in (2, 3):
        rows = (equal("na", factor, "nb"), equal("nb", factor, "na"))
        tests["repeated", factor, True] = exp.and_(equal("a", factor, "b"), rows[0], unlike.copy())
        tests["repeated", factor, False] = exp.and_(equal("b", factor, "a"), rows[1], unlike.copy())
    return tests
