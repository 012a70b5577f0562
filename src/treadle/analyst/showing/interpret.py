"""Interpretation: what a comparison's figures say, as claims that follow from them and from nothing else."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from treadle.analyst.declared.source import Aggregation
from treadle.analyst.reading.amounts import EXACT
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.classify import Thresholds
from treadle.analyst.showing.comparison import Difference, Summary, Total
from treadle.analyst.showing.units import Measured, Units
from treadle.analyst.sql.proof import Proof

_MOST_CURRENCIES = 10


class About(Struct, frozen=True, kw_only=True):
    """What a comparison is about, which its claims speak of.

    Attributes:
        names: what A and B are called.
        measure: the measure's name.
        aggregation: what is made of its amounts.
        dimensions: what it compares by.
        units: what the amounts are measured in.
        limits: the thresholds that hold.
        additive: whether the figures of keys add up to the total.
        noisy: whether the figures may be off, because they are floating-point numbers.
        filters: the conditions under which all of it holds.
        proof: the query of the summary.
    """

    names: tuple[str, str]
    measure: str
    aggregation: Aggregation
    dimensions: tuple[str, ...]
    units: Units
    limits: Thresholds
    additive: bool
    noisy: bool
    filters: tuple[str, ...]
    proof: Proof

    def claim(self, kind: Any, proof: Proof | None = None, **facts: Any) -> Claim:
        """Returns a claim about it, proved by the query of the summary if by no other."""
        told = {"a": self.names[0], "b": self.names[1], **facts}
        return Claim(kind=kind, facts=told, filters=self.filters, proof=self.proof if proof is None else proof)


class Largest(Struct, frozen=True):
    """The key that differs most of those that do not match, of one currency where there are several; its query; and
    whether another differs as much."""

    found: Difference
    measured: Measured
    proof: Proof
    currency: str | None = None
    tied: bool = False


def interpret(about: About, summary: Summary, largest: Sequence[Largest]) -> list[Claim]:
    """Returns the interpretation of one comparison, a claim a sentence.

    Args:
        about: what is compared.
        summary: its figures.
        largest: the keys that differ most; may be empty.
    """
    if not summary.total_rows:
        return [about.claim("nothing")]
    for at, missing in enumerate((summary.missing_in_a, summary.missing_in_b)):
        if missing == summary.total_rows:
            return [_one_empty(about, summary, at)]
    claims = _totals(about, summary)
    if about.dimensions:
        claims.append(_keys(about, summary))
        if about.additive:
            claims += _offsets(about, summary)
        claims += [_largest(about, one) for one in largest]
    return claims


def _one_empty(about: About, summary: Summary, empty: int) -> Claim:
    totals = summary.by_currency
    if totals:
        values = [(one.source_a_value if empty else one.source_b_value, one.currency or "") for one in totals]
    else:
        value = summary.total_source_a if empty else summary.total_source_b
        values = [(value, (about.units.a if empty else about.units.b).text)]
    return about.claim(
        "one_empty", measure=about.measure, empty=about.names[empty], other=about.names[1 - empty], amounts=values
    )


def _totals(about: About, summary: Summary) -> list[Claim]:
    units = about.units
    if not summary.by_currency:
        measured = units.measured
        facts = {
            "value_a": summary.total_source_a, "value_b": summary.total_source_b, "difference": summary.total_diff,
            "status": summary.total_status, "reason": summary.total_reason,
        }  # fmt: skip
        return [_total(about, measured, facts)]
    key = about.dimensions[units.currency or 0]
    claims = [
        about.claim(
            "by_currency", measure=about.measure, dimension=key, currencies_a=list(units.a.currencies),
            currencies_b=list(units.b.currencies),
        )
    ]  # fmt: skip
    for one in summary.by_currency[:_MOST_CURRENCIES]:
        facts = {
            "value_a": one.source_a_value, "value_b": one.source_b_value, "difference": one.diff,
            "status": one.status, "reason": one.reason, "currency": one.currency,
        }  # fmt: skip
        claims.append(_total(about, _measured(units, one.currency), facts))
    if more := len(summary.by_currency) - _MOST_CURRENCIES:
        claims += [about.claim("more_currencies", count=more)] if more > 0 else []
    return claims


def _total(about: About, measured: Measured, facts: dict[str, Any]) -> Claim:
    return about.claim(
        "totals", measure=about.measure, aggregation=about.aggregation, unit_a=measured.a, unit_b=measured.b,
        unit=measured.both, known=measured.known, **facts,
    )  # fmt: skip


def _measured(units: Units, currency: str | None) -> Measured:
    return units.of((*[None] * (units.currency or 0), currency))


def _keys(about: About, summary: Summary) -> Claim:
    return about.claim(
        "keys",
        dimensions=list(about.dimensions),
        total=summary.total_rows,
        matches=summary.matches,
        minor=summary.minor_differences,
        major=summary.major_differences,
        missing_in_a=summary.missing_in_a,
        missing_in_b=summary.missing_in_b,
        rate=summary.match_rate,
        known=about.units.currency is not None or about.units.measured.known,
    )


def _offsets(about: About, summary: Summary) -> list[Claim]:
    """Whether differences hide each other in a total."""
    if not summary.differences:
        return []
    if not summary.by_currency:
        if summary.total_diff is None or summary.total_absolute_diff is None:
            return []
        agree = summary.total_status == "match"
        return _offset(about, about.units.measured, summary.total_diff, summary.total_absolute_diff, agree)
    found = []
    for one in summary.by_currency[:_MOST_CURRENCIES]:
        measured = _measured(about.units, one.currency)
        if one.differences and one.status not in ("missing_in_a", "missing_in_b"):
            found += _offset(about, measured, one.diff, one.absolute_diff, one.status == "match", one)
    return found


def _offset(
    about: About, measured: Measured, net: Decimal, gross: Decimal, agree: bool, of: Total | None = None
) -> list[Claim]:
    more = EXACT.subtract(gross, net.copy_abs())
    # Within the tolerance, or within what floating-point amounts can be off, totals agree whatever the signs.
    only = agree and not about.noisy and gross > about.limits.absolute
    if not more or not measured.known or (agree and not only):
        return []
    return [
        about.claim(
            "offset", net=net, gross=gross, more=more, only=only, unit=measured.both,
            tolerance=about.limits.absolute, currency=of.currency if of else None,
        )
    ]  # fmt: skip


def _largest(about: About, one: Largest) -> Claim:
    return about.claim(
        "largest",
        one.proof,
        key=one.found.key,
        difference=one.found.absolute_diff,
        unit=_unit_of(one),
        status=one.found.status,
        reason=one.found.reason,
        currency=one.currency,
        parted=about.units.currency is not None,
        tied=one.tied,
    )


def _unit_of(one: Largest) -> str:
    """What the difference is measured in; of a key that one side lacks, it is that of the other's amount."""
    match one.found.status:
        case "missing_in_b":
            return one.measured.a
        case "missing_in_a":
            return one.measured.b
        case _:
            return one.measured.both
