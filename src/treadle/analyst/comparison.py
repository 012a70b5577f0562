"""What a comparison says: plain data with a JSON form, amounts as decimals (in JSON as text, which loses no digit)."""

from decimal import Decimal
from typing import Any

from msgspec import Struct, to_builtins

from treadle.analyst.classify import Status, Thresholds


class Summary(Struct, frozen=True, kw_only=True):
    """The whole in figures.

    Attributes:
        total_rows: keys on either side.
        matches: keys whose figures match.
        minor_differences: keys that differ a little.
        major_differences: keys that differ a lot.
        missing_in_a: keys that only B has.
        missing_in_b: keys that only A has.
        total_source_a: the figure of A over all keys; None if A has no amount at all.
        total_source_b: the figure of B over all keys.
        total_diff: total_source_a - total_source_b.
        total_absolute_diff: the differences of all keys added up without their signs.
        match_rate: matches in percent of total_rows, rounded as `match_rate` says; None without rows.
        total_percentage_diff: |total_diff| in percent of |total_source_a|; None if that is zero.
        total_status: the class of the totals themselves; None without rows.
        total_reason: why.
    """

    total_rows: int
    matches: int
    minor_differences: int
    major_differences: int
    missing_in_a: int
    missing_in_b: int
    total_source_a: Decimal | None
    total_source_b: Decimal | None
    total_diff: Decimal
    total_absolute_diff: Decimal
    match_rate: float | None
    total_percentage_diff: float | None
    total_status: Status | None
    total_reason: str

    @property
    def differences(self) -> int:
        """Keys that do not match, missing ones included."""
        return self.total_rows - self.matches


def match_rate(matches: int, total: int) -> float | None:
    """Returns `matches` in percent of `total`, to one decimal: 96.7. None if there is nothing to match.

    100 means all and 0 none: what is not, is given up to four decimals, and cut off there, rather than look so.
    """
    if not total:
        return None
    if matches in (0, total):
        return 100.0 if matches else 0.0
    for places in range(1, 5):
        power = int(10**places)
        rounded = (200 * matches * power + total) // (2 * total)
        if 0 < rounded < 100 * power:
            return rounded / power
    return 99.9999 if 2 * matches > total else 0.0001


class Difference(Struct, frozen=True, kw_only=True):
    """One key on both sides.

    Attributes:
        key: the dimensions' values.
        source_a_value: the figure of A; None if it has no row or no amount.
        source_b_value: the figure of B.
        diff: A - B, what is missing counted as zero.
        absolute_diff: |A - B|.
        percentage_diff: |A - B| in percent of |A|, rounded to 4 decimals; None if A is zero or missing.
        status: the class.
        reason: which threshold put it there.
        rows_a: rows of A that the figure is made of.
        rows_b: rows of B.
    """

    key: dict[str, Any]
    source_a_value: Decimal | None
    source_b_value: Decimal | None
    diff: Decimal
    absolute_diff: Decimal
    percentage_diff: float | None
    status: Status
    reason: str
    rows_a: int
    rows_b: int


class Part(Struct, frozen=True, kw_only=True):
    """What one value of a dimension has to do with the differences.

    Attributes:
        value: the dimension's value.
        source_a_value: the figure of A over its keys; None for figures that do not add up (averages, minima).
        source_b_value: the figure of B.
        absolute_diff: the differences of its keys added up without their signs.
        differences: how many of its keys do not match.
        rows: how many keys it has.
        share: its part of all absolute differences, in percent.
    """

    value: Any
    source_a_value: Decimal | None
    source_b_value: Decimal | None
    absolute_diff: Decimal
    differences: int
    rows: int
    share: float


class Finding(Struct, frozen=True):
    """Something that should be known before the figures are signed.

    `kind` is its name for programs, `message` the sentence for people.
    """

    kind: str
    message: str


class Comparison(Struct, frozen=True, kw_only=True):
    """Two sources side by side, by one measure.

    Attributes:
        source_a: the source that is the base of percentages.
        source_b: the other one.
        measure: the measure, as A calls it.
        unit: what its amounts are measured in; empty if that is not declared.
        units: what the amounts of A, and those of B, are measured in: the currencies of the rows, or else the unit that
            is declared; empty where neither is known, and cut to the first six.
        by_currency: whether the keys tell currencies apart on both sides, so that no key mixes any.
        dimensions: what the keys are made of.
        filters: the conditions on both sides.
        filters_a: conditions that held besides on A alone: those of the request, and default ones of the source.
        filters_b: the same of B.
        tolerance: the thresholds that held.
        summary: the whole in figures.
        top_differences: keys that do not match, the largest difference first; cut to the number asked for.
        by_dimension: for each dimension the values that carry most of the differences.
        interpretation: what the figures say.
        warnings: what is probably wrong, or should be known.
        rows: every key, the largest difference first, up to the number kept.
        rows_cut: whether there were more keys than were kept.
        more: the same for further measures, if several were asked for.
    """

    source_a: str
    source_b: str
    measure: str
    unit: str
    dimensions: tuple[str, ...]
    filters: tuple[str, ...]
    filters_a: tuple[str, ...]
    filters_b: tuple[str, ...]
    tolerance: Thresholds
    summary: Summary
    top_differences: list[Difference]
    by_dimension: dict[str, list[Part]]
    interpretation: str
    warnings: list[Finding]
    rows: list[Difference]
    rows_cut: bool = False
    units: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    by_currency: bool = False
    more: "tuple[Comparison, ...]" = ()

    def to_dict(self, *, rows: bool = False) -> dict[str, Any]:
        """Returns JSON values, decimals as text so that no digit is lost; with every key if `rows`."""
        data: dict[str, Any] = to_builtins(self)
        if not rows:
            del data["rows"], data["rows_cut"]
        data["more"] = [other.to_dict(rows=rows) for other in self.more]
        if not self.more:
            del data["more"]
        shown, found = len(self.top_differences), self.summary.differences
        if shown < found:
            data["note"] = f"top_differences shows the {shown} largest of {found} differences; the summary is over all"
        return data
