"""Interpretation: what a comparison's figures say, in sentences that follow from them and from nothing else."""

from collections.abc import Sequence
from decimal import Decimal

from treadle.analyst.amounts import EXACT
from treadle.analyst.classify import money
from treadle.analyst.comparison import Difference, Summary

# From which match rate (percent) the keys are said to agree how far.
_BANDS = ((100.0, "all"), (99.0, "nearly all"), (90.0, "most"), (50.0, "more than half"), (0.01, "less than half"))


def interpret(
    summary: Summary,
    top: Sequence[Difference],
    names: tuple[str, str],
    measure: str,
    unit: str,
    dimensions: Sequence[str],
    additive: bool,
) -> str:
    """Returns the interpretation of one comparison.

    Args:
        summary: its figures.
        top: its largest differences, the largest first; may be empty.
        names: what A and B are called.
        measure: the measure's name.
        unit: what its amounts are measured in.
        dimensions: what it compares by.
        additive: whether the figures of keys add up to the total.
    """
    if not summary.total_rows:
        return f"Neither {names[0]} nor {names[1]} has a row that passes the filters: there is nothing to compare."
    for here, there, missing in ((*names, summary.missing_in_a), (*names[::-1], summary.missing_in_b)):
        if missing == summary.total_rows:
            value = summary.total_source_b if here == names[0] else summary.total_source_a
            return (
                f"{here} has no row that passes the filters, while {there} has {measure} of {money(value, unit)}: "
                f"there is nothing to compare it with."
            )
    sentences = [_totals(summary, names, measure, unit)]
    if dimensions:
        sentences.append(_keys(summary, names, dimensions))
        if additive:
            sentences += _offsets(summary, unit)
        if top:
            sentences.append(_largest(top[0], unit))
    return " ".join(sentences)


def _totals(summary: Summary, names: tuple[str, str], measure: str, unit: str) -> str:
    a, b = summary.total_source_a, summary.total_source_b
    opening = f"{measure}: {names[0]} has {money(a, unit)} and {names[1]} has {money(b, unit)}"
    if not summary.total_diff:
        return f"{opening}: the totals are equal."
    side = "higher" if summary.total_diff > 0 else "lower"
    gap = f"{opening}, so {names[0]} is {side} by {money(summary.total_diff.copy_abs(), unit)}"
    match summary.total_status:
        case "match":
            return f"{gap}: the totals match ({summary.total_reason})."
        case "minor_diff":
            return f"{gap}: a minor difference ({summary.total_reason})."
        case _:
            return f"{gap}: a major difference ({summary.total_reason})."


def _keys(summary: Summary, names: tuple[str, str], dimensions: Sequence[str]) -> str:
    by = " and ".join([", ".join(dimensions[:-1]), dimensions[-1]] if len(dimensions) > 1 else dimensions)
    total, matches, rate = summary.total_rows, summary.matches, summary.match_rate or 0.0
    if summary.missing_in_a + summary.missing_in_b == total:
        return (
            f"By {by} the two have no key in common: {summary.missing_in_b} only in {names[0]}, "
            f"{summary.missing_in_a} only in {names[1]}."
        )
    if matches == total:
        return f"By {by} all {total} keys match." if total > 1 else f"By {by} the one key matches."
    if total == 1:
        return f"By {by} there is one key, and it does not match."
    band = next((words for limit, words in _BANDS if rate >= limit), "none" if not matches else "less than half")
    parts = [
        f"{count} {words}"
        for count, words in (
            (summary.major_differences, "with a major difference"),
            (summary.minor_differences, "with a minor difference"),
            (summary.missing_in_a, f"missing in {names[0]}"),
            (summary.missing_in_b, f"missing in {names[1]}"),
        )
        if count
    ]
    return f"By {by}, {band} of the keys match ({matches:,} of {total:,}, {rate:g} %); {', '.join(parts)}."


def _offsets(summary: Summary, unit: str) -> list[str]:
    """Whether differences hide each other in the total."""
    net, gross = summary.total_diff.copy_abs(), summary.total_absolute_diff
    if not summary.differences or gross == net:
        return []
    if summary.total_status == "match":
        return [
            f"The totals agree only because differences offset each other: without their signs they add up to "
            f"{money(gross, unit)}."
        ]
    return [
        f"Differences partly offset each other: without their signs they add up to {money(gross, unit)}, "
        f"{money(EXACT.subtract(gross, net), unit)} more than the totals show."
    ]


def _largest(first: Difference, unit: str) -> str:
    key = ", ".join(f"{name} {'(none)' if value is None else value}" for name, value in first.key.items())
    if first.absolute_diff == Decimal(0):
        return f"The first of them is {key}: {first.reason}."
    return f"The largest difference is {money(first.absolute_diff, unit)} at {key} ({first.status})."
