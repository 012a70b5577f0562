"""Judging: whether a comparison passes, and why not. Pure.

What cannot be judged never passes: a side without rows or without an amount, and amounts in different currencies.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Literal

from msgspec import Struct

from treadle.analyst.checks.declared import CLASSES, NOTHING, Allowed, Class, Known, Levels, told
from treadle.analyst.showing.comparison import Comparison, Difference, Total
from treadle.analyst.showing.sentences import FIGURES
from treadle.visible import seen

Outcome = Literal["passed", "warned", "failed", "not_run"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "warned", "failed", "not_run")
"""How a check can end, the worst last."""

_CLASS_OF: dict[str, Class] = {
    "minor_diff": "minor", "major_diff": "major", "missing_in_a": "missing", "missing_in_b": "missing",
}  # fmt: skip


class Judgement(Struct, frozen=True):
    """What came of holding a comparison against its levels.

    Attributes:
        outcome: how it ended; `not_run` if it cannot be judged.
        why: what counts against it, or what stands in the way, in a few words each.
        accepted: what differs and does not count, in a few words each.
        known: how many of its differences are accounted for.
        notes: what there is to say of differences that are declared to be known.
        idle: what there is to say of those at which nothing differs.
    """

    outcome: Outcome
    why: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    known: int = 0
    notes: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


def judge(
    found: Comparison,
    levels: Levels,
    allow: Allowed = NOTHING,
    known: Sequence[Known] = (),
    today: date | None = None,
) -> Judgement:
    """Returns whether a comparison passes.

    A class of keys counts once there are more of it than are allowed or accounted for. The class of the totals counts
    if it is worse than that of each of their keys: then the keys alone would hide it. That holds for subtotals too,
    and for the totals of each currency, whatever differs elsewhere.

    Args:
        found: the comparison, by one measure; accounted for can be what is among its `rows`.
        levels: how bad each class is.
        allow: how many keys of each class may differ.
        known: differences that are accounted for.
        today: the day on which it is judged; for `known` with an end.
    """
    if obstacle := _obstacle(found) or _unknown_keys(found, known):
        return Judgement("not_run", (obstacle,))
    counts = _counts(found)
    accounted, notes, idle = _accounted(found, known, today)
    worst: Outcome = "passed"
    why, accepted = [], []
    for name in reversed(CLASSES):
        left, most, outcome = counts[name] - accounted[name], getattr(allow, name), _OUTCOME[getattr(levels, name)]
        if accounted[name]:
            accepted.append(f"{accounted[name]:,} {name} known")
        if left > most and outcome != "passed":
            worst = max(worst, outcome, key=OUTCOMES.index)
            why.append(f"{left:,} {name}" + (f" ({most:,} allowed)" if most else ""))
        elif left:
            accepted.append(f"{left:,} {name} {'allowed' if left <= most else 'ignored'}")
    for total, where, reason in _totals(found, counts):
        outcome = _OUTCOME[getattr(levels, total)]
        worst = max(worst, outcome, key=OUTCOMES.index)
        if outcome != "passed":
            why.append(f"{where} come out worse than any of their keys: {reason}")
    return Judgement(worst, tuple(why), tuple(accepted), sum(accounted.values()), notes, idle)


_OUTCOME: dict[str, Outcome] = {"ignore": "passed", "warn": "warned", "error": "failed"}


_UNITS = ("contradicted_unit", "unknown_currency", "unknown_unit")
"""What a comparison warns of where it cannot say what amounts are measured in."""


def _obstacle(found: Comparison) -> str:
    """Why a comparison says nothing; empty if it does."""
    total = found.summary
    narrowed = found.filters or found.filters_a or found.filters_b
    passing = "that passes the filters" if narrowed else "at all"
    # A condition that no value can fulfil is at fault, and not the data.
    never = next((f": {claim.message}" for claim in found.warnings if claim.kind == "nothing_between"), "")
    names = (found.source_a, found.source_b)
    if names[0] == names[1]:
        names = (f"{names[0]} (A)", f"{names[1]} (B)")
    if not total.total_rows:
        return f"neither {names[0]} nor {names[1]} has a row {passing}{never}"
    figures = [(one.source_a_value, one.source_b_value) for one in total.by_currency]
    figures = figures or [(total.total_source_a, total.total_source_b)]
    for at, (name, missing) in enumerate(zip(names, (total.missing_in_a, total.missing_in_b), strict=True)):
        if missing == total.total_rows:
            return f"{name} has no row {passing}{never}"
        if all(pair[at] is None for pair in figures):
            return f"{name} has rows, but {found.measure} has no value in any of them"
    if all(None in pair for pair in figures):
        codes = [seen(one.currency or None) for one in total.by_currency]
        a, b = ([code for code, pair in zip(codes, figures, strict=True) if pair[at] is not None] for at in (0, 1))
        return f"{found.measure} is in unlike currencies: {', '.join(a)} in {names[0]} and {', '.join(b)} in {names[1]}"
    return next((warning.message for warning in found.warnings if warning.kind in _UNITS), "")


def _totals(found: Comparison, counts: dict[Class, int]) -> Iterator[tuple[Class, str, str]]:
    """The class of totals and subtotals, of each currency where there are several, if it is worse than that of each of
    their keys; and why."""
    each: list[tuple[str | None, Class | None, str, str]]
    if found.currency:
        total = found.summary.by_currency
        each = [(one.status, _CLASS_OF.get(one.worst), f"{whole(found)}{_of(found, one)}", one.reason) for one in total]
    else:
        worst = next((name for name in reversed(CLASSES) if counts[name]), None)
        each = [(found.summary.total_status, worst, whole(found), found.summary.total_reason)]
    # What is in no group is no subtotal: nobody asked for that sum.
    each += [
        (one.status, _CLASS_OF.get(one.worst), f"the subtotals of {seen(one.group)}{_of(found, one)}", one.reason)
        for groups in found.subtotals.values()
        for one in groups
        if one.group is not None
    ]
    for status, worst, where, reason in each:
        if (kind := _CLASS_OF.get(status or "")) and (worst is None or CLASSES.index(kind) > CLASSES.index(worst)):
            yield kind, where, reason


def whole(found: Comparison) -> str:
    """What the figures of all keys together are called: the totals, or what is no total, such as averages."""
    return next((FIGURES[one.facts["aggregation"]] for one in found.claims if one.kind == "totals"), "the totals")


def _of(found: Comparison, total: Total) -> str:
    return f" in {seen(total.currency or None)}" if found.currency else ""


def _unknown_keys(found: Comparison, known: Sequence[Known]) -> str:
    names = [name for one in known for name in one.key if name not in found.dimensions]
    return (
        f"'known' names {names[0]}, but what is compared by is {', '.join(found.dimensions) or 'nothing'}"
        if names
        else ""
    )


def _counts(found: Comparison) -> dict[Class, int]:
    total = found.summary
    return {
        "minor": total.minor_differences,
        "major": total.major_differences,
        "missing": total.missing_in_a + total.missing_in_b,
    }


def _accounted(
    found: Comparison, known: Sequence[Known], today: date | None
) -> tuple[dict[Class, int], tuple[str, ...], tuple[str, ...]]:
    """How many keys of each class are accounted for, and what there is to say of what accounts for them, and of what
    accounts for none."""
    counts: dict[Class, int] = dict.fromkeys(CLASSES, 0)
    used, notes, seen = set[int](), list[str](), 0
    for row in found.rows:
        if (kind := _CLASS_OF.get(row.status)) is None:
            continue
        seen += 1
        meant = [at for at, one in enumerate(known) if _means(one, row)]
        used.update(meant)
        refusals = [_refusal(known[at], row, today) for at in meant]
        if "" in refusals:
            counts[kind] += 1
        else:
            notes += refusals
    idle = []
    if seen == found.summary.differences:
        idle = [_idle(found, one) for at, one in enumerate(known) if at not in used]
    return counts, tuple(dict.fromkeys(notes)), tuple(idle)


def _idle(found: Comparison, known: Known) -> str:
    """What is to be said where nothing differs."""
    there = any(_means(known, row) for row in found.rows)
    if found.rows_cut or there:
        return f"nothing differs any more at {_shown(known)} ({known.why}): take it out of 'known'"
    told = f"nothing that is compared has {_shown(known)} ({known.why})"
    return f"{told}: take it out of 'known', or spell it as keys are told"


def _refusal(known: Known, row: Difference, today: date | None) -> str:
    """Why a difference is not accepted although it is known; empty if it is."""
    if known.until is not None and today is not None and today > known.until:
        return f"{_shown(known)} was accepted until {known.until} ({known.why})"
    if known.up_to is not None and row.absolute_diff > known.up_to:
        return f"{_shown(known)} is larger than the {known.up_to:,f} that is accepted ({known.why})"
    return ""


def _means(known: Known, row: Difference) -> bool:
    return all(told(row.key[name]) in values for name, values in known.key.items())


def _shown(known: Known) -> str:
    parts = ((name, ", ".join(map(seen, values))) for name, values in known.key.items())
    return ", ".join(f"{name} {values}" for name, values in parts)
