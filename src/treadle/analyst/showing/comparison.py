"""What a comparison says: plain data with a JSON form, amounts as decimals (in JSON as text, which loses no digit)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.classify import Status, Thresholds
from treadle.analyst.showing.plain import plain
from treadle.analyst.sql.proof import Proof


class Total(Struct, frozen=True, kw_only=True):
    """The figures of one currency over all keys.

    Attributes:
        currency: the currency; None for rows without one.
        source_a_value: the figure of A; None if it has no row or no amount.
        source_b_value: the figure of B.
        diff: A - B, what is missing counted as zero.
        absolute_diff: the differences of its keys added up without their signs.
        percentage_diff: |A - B| in percent of |A|; None if that is zero.
        status: the class.
        reason: which threshold put it there.
        rows: how many keys it has.
        differences: how many of them do not match.
        worst: the worst class among them: `match`, `minor_diff`, `major_diff`, or one of those that are missing.
    """

    currency: str | None
    source_a_value: Decimal | None
    source_b_value: Decimal | None
    diff: Decimal
    absolute_diff: Decimal
    percentage_diff: float | None
    status: Status
    reason: str
    rows: int
    differences: int
    worst: Status


class Subtotal(Total, frozen=True, kw_only=True):
    """The figures of one group of a hierarchy over all keys below it, of one currency where there are several.

    Attributes:
        group: its name; None for the keys that are in no group.
        level: how deep it stands, 1 for the first.
        parent: the group right above it, the first of them where it stands in several; None if there is none.
    """

    group: str | None
    level: int
    parent: str | None


class Summary(Struct, frozen=True, kw_only=True):
    """The whole in figures.

    Attributes:
        total_rows: keys on either side.
        matches: keys whose figures match.
        minor_differences: keys that differ a little.
        major_differences: keys that differ a lot.
        missing_in_a: keys that only B has.
        missing_in_b: keys that only A has.
        total_source_a: the figure of A over all keys; None if A has no amount at all, or amounts of several currencies.
        total_source_b: the figure of B over all keys.
        total_diff: total_source_a - total_source_b; None where there are several currencies.
        total_absolute_diff: the differences of all keys added up without their signs; None where there are several
            currencies.
        match_rate: matches in percent of total_rows, rounded as `match_rate` says; None without rows.
        total_percentage_diff: |total_diff| in percent of |total_source_a|; None if that is zero.
        total_status: the class of the totals themselves; None without rows, and where there are several currencies.
        total_reason: why.
        by_currency: the totals of each currency, where there are several.
    """

    total_rows: int
    matches: int
    minor_differences: int
    major_differences: int
    missing_in_a: int
    missing_in_b: int
    total_source_a: Decimal | None
    total_source_b: Decimal | None
    total_diff: Decimal | None
    total_absolute_diff: Decimal | None
    match_rate: float | None
    total_percentage_diff: float | None
    total_status: Status | None
    total_reason: str
    by_currency: tuple[Total, ...] = ()

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
        currency: the currency that this part is of, where there are several; `share` is then of its differences.
    """

    value: Any
    source_a_value: Decimal | None
    source_b_value: Decimal | None
    absolute_diff: Decimal
    differences: int
    rows: int
    share: float
    currency: str | None = None


class Comparison(Struct, frozen=True, kw_only=True):
    """Two sources side by side, by one measure.

    Attributes:
        source_a: the source that is the base of percentages.
        source_b: the other one.
        measure: the measure, as A calls it.
        unit: what the amounts of both sides are measured in; empty if that is not known, or not the same.
        unit_a: what those of A are measured in, as it is declared or as its rows say; empty if neither does.
        unit_b: what those of B are measured in.
        currency: the dimension that tells currencies apart, where there are several; empty where there is one.
        dimensions: what the keys are made of: those asked for, and the currency where there are several.
        filters: the conditions on both sides.
        filters_a: conditions that held besides on A alone: those of the request, and default ones of the source.
        filters_b: the same of B.
        tolerance: the thresholds that held.
        summary: the whole in figures.
        top_differences: keys that do not match, the largest difference first; cut to the number asked for.
        by_dimension: for each dimension the values that carry most of the differences.
        subtotals: for each hierarchy that was asked for, its groups that have a row, each before those below it, and at
            last what is in none.
        claims: what the figures say, each statement with its figures, its conditions and the query that proves it.
        warnings: what is probably wrong, or should be known, in the same form.
        made: the statements behind all of it.
        rows: every key, the largest difference first, up to the number kept.
        rows_cut: whether there were more keys than were kept.
        more: the same for further measures, if several were asked for.
    """

    source_a: str
    source_b: str
    measure: str
    unit: str
    unit_a: str = ""
    unit_b: str = ""
    currency: str = ""
    dimensions: tuple[str, ...]
    filters: tuple[str, ...]
    filters_a: tuple[str, ...]
    filters_b: tuple[str, ...]
    tolerance: Thresholds
    summary: Summary
    top_differences: list[Difference]
    by_dimension: dict[str, list[Part]]
    subtotals: dict[str, list[Subtotal]] = {}
    claims: list[Claim]
    warnings: list[Claim]
    rows: list[Difference]
    rows_cut: bool = False
    made: tuple[Proof, ...] = ()
    more: "tuple[Comparison, ...]" = ()

    @property
    def interpretation(self) -> str:
        """What the figures say: the sentences of its claims."""
        return " ".join(claim.message for claim in self.claims)

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements that the queries of claims come after; the last makes the table `aligned`, a row a key."""
        return tuple(proof.text for proof in self.made)

    def absolute_of(self, key: Mapping[str, Any]) -> Decimal | None:
        """Returns all differences without their signs, of the currency of a key where there are several."""
        if not self.currency:
            return self.summary.total_absolute_diff
        code = None if key.get(self.currency) is None else str(key[self.currency])
        return next((one.absolute_diff for one in self.summary.by_currency if one.currency == code), None)

    def to_dict(self, *, rows: bool = False, explain: bool = False, numbers: bool = False) -> dict[str, Any]:
        """Returns JSON values, decimals as text so that no digit is lost.

        Args:
            rows: with every key.
            explain: with the figures, conditions and SQL of each statement.
            numbers: amounts as floats, with their exact text beside them, such as `total_diff_exact`.
        """
        data: dict[str, Any] = {}
        for name, value in plain(_without_claims(self), numbers=numbers).items():
            if name == "claims":
                data["interpretation"] = self.interpretation
                data["warnings"] = [claim.to_dict(explain=explain) for claim in self.warnings]
            elif name not in _APART:
                data[name] = value
        if rows:
            data |= {"rows": plain(self.rows, numbers=numbers), "rows_cut": self.rows_cut}
        if explain:
            data |= {"claims": [claim.to_dict(explain=True) for claim in self.claims], "sql": list(self.sql)}
        if not self.subtotals:
            del data["subtotals"]
        if not self.summary.by_currency:
            _forget_currencies(data)
        if self.more:
            data["more"] = [other.to_dict(rows=rows, explain=explain, numbers=numbers) for other in self.more]
        shown, found = len(self.top_differences), self.summary.differences
        if shown < found:
            data["note"] = f"top_differences shows the {shown} largest of {found} differences; the summary is over all"
        return data


_APART = ("warnings", "rows", "rows_cut", "made", "more")


def _without_claims(found: Comparison) -> Comparison:
    """The comparison without what has a form of its own, so that nothing is written out for nothing."""
    return replace(found, claims=[], warnings=[], rows=[], made=(), more=())


def _forget_currencies(data: dict[str, Any]) -> None:
    """Leaves out what only several currencies have."""
    del data["summary"]["by_currency"], data["currency"]
    for parts in (*data["by_dimension"].values(), *data.get("subtotals", {}).values()):
        for part in parts:
            del part["currency"]
