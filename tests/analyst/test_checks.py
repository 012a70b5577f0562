"""Checks from a file: what is declared, what passes, and what can never pass; held against plain Python."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.analyst import (
    AnalystError,
    Bounds,
    Cancelled,
    Catalog,
    CompareRequest,
    Dimension,
    Hierarchy,
    Interrupt,
    Measure,
    Source,
    Tolerance,
    compare,
)
from treadle.analyst.checks import (
    Allowed,
    Check,
    CheckFile,
    Known,
    Levels,
    Report,
    judge,
    read_checks,
    run_checks,
)
from treadle.analyst.showing.comparison import match_rate

from .conftest import QUICK, write_csv

pytestmark = pytest.mark.usefixtures("one_engine")

Rows = Sequence[tuple[Any, ...]]
HOSTILE = ["1001", "]]><b>&\"'", "=1+1", "ü\u202e", None, "", "a\nb", "\x07"]
KEYS = st.sampled_from(HOSTILE)
AMOUNTS = st.one_of(st.none(), st.decimals(-9000, 9000, places=2), st.sampled_from([Decimal("0.01"), Decimal(5000)]))
TABLES = st.lists(st.tuples(KEYS, AMOUNTS), max_size=12)
LEVELS = st.builds(Levels, *(st.sampled_from(["ignore", "warn", "error"]),) * 3)
ALLOWED = st.builds(Allowed, *(st.integers(0, 3),) * 3)
LIMITS = st.builds(
    Tolerance,
    st.sampled_from([Decimal(0), Decimal("0.01"), Decimal(100)]),
    st.sampled_from([Decimal(0), Decimal("0.01"), Decimal("0.5")]),
    st.sampled_from([Decimal(0), Decimal(50), Decimal(5000)]),
)
KNOWN = st.lists(
    st.builds(
        Known,
        st.lists(KEYS, min_size=1, max_size=3).map(lambda values: {"company": tuple(values)}),
        st.just("agreed"),
        st.sampled_from([None, Decimal(0), Decimal(100)]),
        st.sampled_from([None, date(2024, 1, 31), date(2024, 2, 29)]),
    ),
    max_size=2,
)
GROUPS = {"All": ("Some", "ü\u202e", "a\nb"), "Some": ("1001", "=1+1")}
MEMBERS: dict[str, set[str | None]] = {"All": {"1001", "=1+1", "ü\u202e", "a\nb"}, "Some": {"1001", "=1+1"}}
NOW = datetime(2024, 2, 15, 12, tzinfo=UTC)


def source(place: Path, name: str, rows: Rows, **measure: Any) -> Source:
    write_csv(place / f"{name}.csv", ("company", "amount"), rows)
    return Source(
        name=name,
        kind="csv",
        path=f"{name}.csv",
        dimensions=(Dimension(name="company"),),
        measures=(Measure(name="amount", decimals=2, **measure),),
    )


def check(**given: Any) -> Check:
    request = CompareRequest(source_a="a", source_b="b", **given.pop("request", {"dimensions": ["company"]}), keep=1000)
    return Check(name=given.pop("name", "a check"), request=request, **given)


def ran(place: Path, sources: Sequence[Source], *checks: Check, **options: Any) -> Report:
    declared = CheckFile(path=place / "checks.yaml", sources=place / "s.yaml", history=place / "h.db", checks=checks)
    return run_checks(declared, **{"catalog": Catalog(sources, place), "bounds": QUICK, "now": NOW} | options)


# An oracle that shares nothing with the engine: sums by key in fractions, and the rule as the docs tell it.


def sums(rows: Rows) -> dict[str | None, Fraction | None]:
    found: dict[str | None, list[Fraction]] = defaultdict(list)
    for key, amount in rows:
        found[key] += [] if amount is None else [Fraction(amount)]
    return {key: sum(values, Fraction(0)) if values else None for key, values in found.items()}


def classed(a: Fraction | None, b: Fraction | None, limits: Tolerance) -> str:
    gap, base = abs((a or Fraction(0)) - (b or Fraction(0))), abs(a or Fraction(0))
    absolute, relative, materiality = (Fraction(getattr(limits, name) or 0) for name in limits.__struct_fields__)
    if gap <= absolute:
        return "match"
    return "minor" if gap < materiality and gap < relative * base else "major"


def expected(a: Rows, b: Rows, limits: Tolerance, given: Check) -> str:
    left, right = sums(a), sums(b)
    if any(all(value is None for value in side.values()) for side in (left, right)):
        return "not_run"
    order = ["match", "minor", "major", "missing"]
    counts = dict.fromkeys(order[1:], 0)
    classes: dict[str | None, str] = {}
    for key in {**left, **right}:
        name = "missing" if key not in left or key not in right else classed(left[key], right[key], limits)
        classes[key] = name
        if name == "match":
            continue
        gap = abs((left.get(key) or Fraction(0)) - (right.get(key) or Fraction(0)))
        accepted = any(
            key in known.key["company"]
            and (known.up_to is None or gap <= known.up_to)
            and (known.until is None or NOW.date() <= known.until)
            for known in given.known
        )
        counts[name] += not accepted
    bad = [name for name in counts if counts[name] > getattr(given.allow, name)]
    for keys in [set(classes), *(MEMBERS.values() if given.request.subtotals else ())]:
        sides = [{key: value for key, value in side.items() if key in keys} for side in (left, right)]
        summed = [sum((value for value in side.values() if value is not None), Fraction(0)) for side in sides]
        whole = "match" if not any(sides) else classed(*summed, limits) if all(sides) else "missing"
        if order.index(whole) > max((order.index(classes[key]) for key in keys & set(classes)), default=0):
            bad.append(whole)
    levels = [getattr(given.levels, name) for name in bad]
    return "failed" if "error" in levels else "warned" if "warn" in levels else "passed"


@settings(max_examples=deep(20), deadline=None)
@given(TABLES, TABLES, LIMITS, LEVELS, ALLOWED, KNOWN, st.booleans(), st.booleans())
def test_a_check_ends_as_plain_python_says(
    a: Rows, b: Rows, limits: Tolerance, levels: Levels, allow: Allowed, known: list[Known], by_measure: bool,
    grouped: bool,
) -> None:  # fmt: skip
    tolerances = {"amount": limits} if by_measure else {}
    thresholds = {
        "tolerance": limits.absolute,
        "relative_tolerance": limits.relative,
        "materiality": limits.materiality,
    }
    # Thresholds of the measure come before those of the whole check.
    wide = {"tolerance": Decimal(10**6)} if by_measure else thresholds
    given_check = check(
        request={"dimensions": ["company"], "subtotals": ["groups"] if grouped else [], **wide},
        tolerances=tolerances,
        levels=levels,
        allow=allow,
        known=tuple(known),
    )
    with TemporaryDirectory() as place:
        sources = [source(Path(place), "a", a), source(Path(place), "b", b)]
        groups = Hierarchy(name="groups", of="company", groups=GROUPS)
        report = ran(Path(place), sources, given_check, catalog=Catalog(sources, Path(place), hierarchies=[groups]))
    assert report.outcome == expected(a, b, limits, given_check), report.verdicts[0].sentence
    assert report.counted()[report.outcome] == 1


@settings(max_examples=deep(6), deadline=None)
@given(TABLES, TABLES)
def test_what_matches_on_both_sides_passes_and_what_is_turned_round_ends_alike(a: Rows, b: Rows) -> None:
    with TemporaryDirectory() as place:
        sources = [source(Path(place), "a", a), source(Path(place), "b", b)]
        forth = ran(Path(place), sources, check())
        request = check().request
        back = ran(
            Path(place), sources, Check(name="x", request=request.model_copy(update={"source_a": "b", "source_b": "a"}))
        )
        alone = ran(Path(place), sources, Check(name="x", request=request.model_copy(update={"source_b": "a"})))
    assert forth.outcome == back.outcome
    assert alone.outcome == ("passed" if any(amount is not None for _, amount in a) else "not_run")


# What can never pass.


def obstacle(place: Path, a: Source, b: Source, **given: Any) -> str:
    report = ran(place, [a, b], check(levels=Levels("ignore", "ignore", "ignore"), **given))
    assert report.outcome == "not_run"
    return report.verdicts[0].why[0]


def test_no_rows_on_one_side_or_on_both_is_no_pass(tmp_path: Path) -> None:
    full, empty = source(tmp_path, "a", [("1", "5")]), source(tmp_path, "b", [])
    assert "b has no row" in obstacle(tmp_path, full, empty)
    assert "neither a nor b" in obstacle(tmp_path, source(tmp_path, "a", []), empty)
    assert "a has no row" in obstacle(tmp_path, source(tmp_path, "a", []), source(tmp_path, "b", [("1", "5")]))
    wrong = {"dimensions": ["company"], "filters": {"company": "2"}}
    assert "neither" in obstacle(
        tmp_path, source(tmp_path, "a", [("1", "5")]), source(tmp_path, "b", []), request=wrong
    )


def test_rows_without_any_amount_are_no_pass(tmp_path: Path) -> None:
    nothing = [("1", None), ("2", None)]
    assert "no value" in obstacle(tmp_path, source(tmp_path, "a", nothing), source(tmp_path, "b", nothing))


def test_a_missing_file_is_no_pass_and_the_other_checks_run(tmp_path: Path) -> None:
    a, b = source(tmp_path, "a", [("1", "5")]), source(tmp_path, "b", [("1", "5")])
    gone = Source(name="gone", kind="csv", path="gone.csv", dimensions=a.dimensions, measures=a.measures)
    lost = Check(name="lost", request=CompareRequest(source_a="a", source_b="gone"))
    unknown = Check(name="unknown", request=CompareRequest(source_a="a", source_b="bb"))
    report = ran(tmp_path, [a, b, gone], lost, unknown, check(name="good"))
    assert [one.outcome for one in report.verdicts] == ["not_run", "not_run", "passed"]
    assert report.outcome == "not_run"
    assert "gone.csv" in report.verdicts[0].sentence
    assert "there is no source 'bb'" in report.verdicts[1].sentence


def test_a_database_that_is_down_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("NO_DATABASE", "postgresql://me:secret@127.0.0.1:9/none?connect_timeout=1")
    a = source(tmp_path, "a", [("1", "5")])
    down = Source(
        name="b", kind="postgres", table="t", dsn_env="NO_DATABASE", dimensions=a.dimensions, measures=a.measures
    )
    why = obstacle(tmp_path, a, down)
    assert "secret" not in why


def test_a_fault_within_one_check_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle.analyst.checks import running

    def broken(catalog: Any, request: CompareRequest, **options: Any) -> Any:
        if request.filters:
            raise KeyError("a column")
        return compare(catalog, request, **options)

    monkeypatch.setattr(running, "compare", broken)
    sources = [source(tmp_path, "a", [("1", "5")]), source(tmp_path, "b", [("1", "5")])]
    bad = check(name="bad", request={"dimensions": ["company"], "filters": {"company": "1"}})
    report = ran(tmp_path, sources, bad, check(name="good"))
    assert [one.outcome for one in report.verdicts] == ["not_run", "passed"]
    assert "KeyError" in report.verdicts[0].sentence


def test_a_run_that_is_cancelled_says_nothing(tmp_path: Path) -> None:
    interrupt = Interrupt()
    interrupt.set()
    sources = [source(tmp_path, "a", [("1", "5")]), source(tmp_path, "b", [("1", "5")])]
    with pytest.raises(Cancelled):
        ran(tmp_path, sources, check(), interrupt=interrupt)


def money(place: Path, name: str, rows: Rows, **measure: Any) -> Source:
    write_csv(place / f"{name}.csv", ("company", "currency", "amount"), rows)
    return Source(
        name=name,
        kind="csv",
        path=f"{name}.csv",
        dimensions=(Dimension(name="company"), Dimension(name="currency")),
        measures=(Measure(name="amount", decimals=2, **measure),),
    )


CURRENCY = {"currency": "currency"}
EUR, USD = [("1", "EUR", "5.00")], [("1", "USD", "5.00")]


@pytest.mark.parametrize(
    ("a", "b", "how_a", "how_b"),
    [
        (EUR, USD, CURRENCY, CURRENCY),
        ([("1", None, "5.00")], [("1", None, "5.00")], CURRENCY, CURRENCY),
        (EUR + USD, EUR + USD, CURRENCY, {}),
        (EUR, [("1", None, "5.00")], CURRENCY, CURRENCY),
        (EUR, EUR, {"unit": "EUR"}, {"unit": "TEUR"}),
        (EUR, USD, CURRENCY, {"unit": "USD"}),
        (EUR, EUR, CURRENCY, {}),
    ],
)
def test_unlike_or_unknown_currencies_are_no_pass(
    tmp_path: Path, a: Rows, b: Rows, how_a: dict[str, Any], how_b: dict[str, Any]
) -> None:
    lenient = Levels("ignore", "ignore", "ignore")
    sources = [money(tmp_path, "a", a, **how_a), money(tmp_path, "b", b, **how_b)]
    report = ran(tmp_path, sources, check(levels=lenient))
    assert report.outcome == "not_run", report.verdicts[0].sentence


@pytest.mark.parametrize(
    ("a", "how_a", "how_b", "dimensions"),
    [
        (EUR, CURRENCY, CURRENCY, ["company"]),
        (EUR, CURRENCY, {"unit": "EUR"}, ["company"]),
        (EUR, {"unit": "EUR"}, {"unit": "EUR"}, ["company"]),
        (EUR + USD, CURRENCY, CURRENCY, ["company", "currency"]),
        (EUR + USD, CURRENCY, CURRENCY, ["company"]),
    ],
)
def test_equal_currencies_pass(
    tmp_path: Path, a: Rows, how_a: dict[str, Any], how_b: dict[str, Any], dimensions: list[str]
) -> None:
    request = {"dimensions": dimensions}
    sources = [money(tmp_path, "a", a, **how_a), money(tmp_path, "b", a, **how_b)]
    report = ran(tmp_path, sources, check(request=request))
    assert report.outcome == "passed", report.verdicts[0].sentence


def test_totals_are_judged_and_told_by_currency(tmp_path: Path) -> None:
    a = [(str(number), currency, "1.00") for number in range(1000) for currency in ("EUR", "USD")]
    b = [(str(number), currency, "0.99" if currency == "USD" else "1.00") for number, currency, _ in a]
    sources = [money(tmp_path, "a", a, **CURRENCY), money(tmp_path, "b", b, **CURRENCY)]
    report = ran(tmp_path, sources, check())
    assert report.outcome == "failed"
    sentence = report.verdicts[0].sentence
    assert "the totals in USD come out worse than any of their keys" in sentence
    assert sentence.endswith("the totals are 10.00 USD apart")


def test_totals_that_differ_more_than_any_key_count(tmp_path: Path) -> None:
    a = [(str(number), "1.00") for number in range(1000)]
    b = [(str(number), "0.99") for number in range(1000)]
    report = ran(tmp_path, [source(tmp_path, "a", a), source(tmp_path, "b", b)], check())
    assert report.outcome == "failed"
    assert "the totals come out worse than any of their keys" in report.verdicts[0].sentence


def test_totals_of_a_currency_and_of_a_group_count_where_they_are_worse_than_their_own_keys(tmp_path: Path) -> None:
    """What differs a lot elsewhere, and is known, hides nothing of them."""
    a = [*((f"8{number}", "USD", "1000.00") for number in range(600)), ("9", "EUR", "20000.00")]
    b = [*((f"8{number}", "USD", "990.10") for number in range(600)), ("9", "EUR", "100.00")]
    sources = [money(tmp_path, "a", a, **CURRENCY), money(tmp_path, "b", b, **CURRENCY)]
    late = Known(key={"company": ("9",)}, why="late")
    asked = check(levels=Levels(minor="ignore"), known=[late])
    (verdict,) = ran(tmp_path, sources, asked).verdicts
    assert (verdict.outcome, len(verdict.why)) == ("failed", 1), verdict.sentence
    assert verdict.why[0].startswith("the totals in USD come out worse than any of their keys: 5,940.00 USD")
    plain = [source(tmp_path, name, [(key, amount) for key, _, amount in rows]) for name, rows in (("a", a), ("b", b))]
    groups = {"Revenue": ("80..8999",), "Late": ("9",)}
    catalog = Catalog(plain, tmp_path, hierarchies=[Hierarchy(name="h", of="company", groups=groups)])
    request = {"dimensions": ["company"], "subtotals": ["h"]}
    grouped = check(levels=Levels(minor="ignore"), known=[late], request=request)
    (verdict,) = ran(tmp_path, plain, grouped, catalog=catalog).verdicts
    assert (verdict.outcome, len(verdict.why)) == ("failed", 1), verdict.sentence
    assert verdict.why[0].startswith("the subtotals of Revenue come out worse than any of their keys: 5,940.00 is")


def test_averages_that_come_out_worse_than_their_keys_are_not_called_totals(tmp_path: Path) -> None:
    a, b = [("1", "100.00")] * 9 + [("2", "0.00")], [("1", "100.00")] + [("2", "0.00")] * 9
    sources = [source(tmp_path, name, rows, aggregation="avg") for name, rows in (("a", a), ("b", b))]
    (verdict,) = ran(tmp_path, sources, check()).verdicts
    assert verdict.why[0].startswith("the averages come out worse than any of their keys"), verdict.sentence
    assert "total" not in verdict.sentence


# Conditions of each side.


def test_each_side_has_conditions_of_its_own(tmp_path: Path) -> None:
    a = source(tmp_path, "a", [("1", "5"), ("2", "6")])
    b = source(tmp_path, "b", [("1", "7"), ("2", "5")])
    request = {"dimensions": [], "filters_a": {"company": "1"}, "filters_b": {"company": "2"}}
    report = ran(tmp_path, [a, b], check(request=request))
    found = report.verdicts[0].comparison
    assert found is not None
    assert (report.outcome, found.summary.total_source_a, found.filters_a, found.filters_b) == (
        "passed", Decimal("5.00"), ("company = 1",), ("company = 2",),
    )  # fmt: skip


def test_a_dimension_that_both_sides_fix_is_not_compared_by(tmp_path: Path) -> None:
    """This month against the last: by period no key could meet."""
    write_csv(tmp_path / "a.csv", ("company", "period", "amount"), [("1", "01", "5"), ("1", "02", "5")])
    a = Source(
        name="a", kind="csv", path="a.csv",
        dimensions=(Dimension(name="company"), Dimension(name="period", synonyms=("month",))),
        measures=(Measure(name="amount"),),
    )  # fmt: skip
    request = CompareRequest(source_a="a", source_b="a", filters_a={"period": "01"}, filters_b={"month": "02"})
    found = compare(Catalog([a], tmp_path), request, bounds=QUICK)
    assert (found.dimensions, found.summary.matches, found.summary.total_rows) == (("company",), 1, 1)


def test_conditions_of_a_run_take_the_place_of_those_of_the_check(tmp_path: Path) -> None:
    from treadle.analyst import Filter

    a, b = source(tmp_path, "a", [("1", "5"), ("2", "6")]), source(tmp_path, "b", [("1", "5"), ("2", "7")])
    declared = check(request={"dimensions": ["company"], "filters": {"company": "1"}})
    assert ran(tmp_path, [a, b], declared).outcome == "passed"
    assert ran(tmp_path, [a, b], declared, filters=[Filter(dimension="Company", value="2")]).outcome == "failed"


def test_a_condition_on_a_dimension_that_only_one_side_has(tmp_path: Path) -> None:
    a = money(tmp_path, "a", [("1", "EUR", "5"), ("1", "USD", "6")])
    b = source(tmp_path, "b", [("1", "5")])
    request = {"dimensions": ["company"], "filters_a": {"currency": "EUR"}}
    assert ran(tmp_path, [a, b], check(request=request)).outcome == "passed"
    with pytest.raises(AnalystError, match="there is no dimension 'currency' in source 'b'"):
        compare(Catalog([a, b], tmp_path), CompareRequest(source_a="a", source_b="b", filters_b={"currency": "EUR"}))


# Known differences.


def test_what_is_known_must_name_what_is_compared_by(tmp_path: Path) -> None:
    known = (Known({"account": ("1",)}, "agreed"),)
    sources = [source(tmp_path, "a", [("1", "5")]), source(tmp_path, "b", [("1", "9")])]
    assert "'known' names account" in obstacle(tmp_path, *sources, known=known)


def test_a_known_difference_that_is_gone_or_over_is_told(tmp_path: Path) -> None:
    sources = [source(tmp_path, "a", [("1", "5"), ("2", "5")]), source(tmp_path, "b", [("1", "5"), ("2", "9")])]
    known = (
        Known({"company": ("1",)}, "agreed"),
        Known({"company": ("2",)}, "in transit", until=date(2024, 2, 14)),
        Known({"company": ("2",)}, "small", up_to=Decimal(3)),
    )
    verdict = ran(tmp_path, sources, check(known=known)).verdicts[0]
    assert verdict.outcome == "failed"
    assert verdict.notes == (
        "company 2 was accepted until 2024-02-14 (in transit)",
        "company 2 is larger than the 3 that is accepted (small)",
        "nothing differs any more at company 1 (agreed): take it out of 'known'",
    )


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        ("decimal", "1.50", "1.5"),
        ("integer", "7", "7"),
        ("date", "2024-01-31", "2024-01-31"),
        ("boolean", "true", "true"),
    ],
)
def test_a_known_key_is_written_as_people_write_it(tmp_path: Path, kind: Any, value: str, written: str) -> None:
    rows = [(value, "5")]
    a, b = source(tmp_path, "a", rows), source(tmp_path, "b", [(value, "9")])
    a, b = (
        Source(name=one.name, kind="csv", path=one.path, dimensions=(Dimension(name="company", type=kind),),
               measures=one.measures)
        for one in (a, b)
    )  # fmt: skip
    assert ran(tmp_path, [a, b], check(known=(Known({"company": (written,)}, "agreed"),))).outcome == "passed"


def test_unknown_classes_of_keys_are_worded(tmp_path: Path) -> None:
    a = [("1", "100"), ("2", "100"), ("3", "100"), ("4", "100"), ("5", "100")]
    b = [("1", "100"), ("2", "99.5"), ("3", "99.4"), ("4", "0"), (None, "1")]
    sources = [source(tmp_path, "a", a), source(tmp_path, "b", b)]
    given_check = check(allow=Allowed(minor=1), known=(Known({"company": ("4", None)}, "agreed"),))
    sentence = ran(tmp_path, sources, given_check).verdicts[0].sentence
    assert sentence == (
        "1 of 6 keys match (16.7 %): 1 missing, 2 minor (1 allowed); 1 missing known, 1 major known; "
        "the totals are 200.10 apart"
    )


# The file.

SOURCES = """\
sources:
  a: {kind: csv, path: a.csv, dimensions: {company: {}}, measures: {amount: {}}}
  b: {kind: csv, path: b.csv, dimensions: {company: {}}, measures: {amount: {}}}
"""


def test_everything_that_can_be_declared(tmp_path: Path) -> None:
    (tmp_path / "checks.yaml").write_text("""\
sources: s.yaml
history: h.db
checks:
  "a: b":
    description: why
    compare: [a, b]
    by: [company]
    measures:
      amount: {absolute: 0.5, materiality: 10_000, relative: 1 %}
      count:
    where: {company: [0100, ~], period: }
    where_a: [{dimension: company, op: between, value: [1, 2]}]
    where_b: {company: 01}
    tolerance: 0.02
    level: {minor: ignore, major: warn}
    allow: {minor: 3, missing: 1}
    known:
      - {key: {company: [0100, ~]}, why: agreed, up_to: 1_000.50, until: 2024-03-31}
    top: 5
""")
    declared = read_checks(tmp_path / "checks.yaml")
    assert (declared.sources, declared.history) == (tmp_path / "s.yaml", tmp_path / "h.db")
    (one,) = declared.checks
    request = one.request
    assert (one.name, one.description, request.source_a, request.source_b, request.top) == ("a: b", "why", "a", "b", 5)
    assert [str(item) for item in request.filters] == ["company in ['0100', None]", "period is null"]
    assert [str(item) for item in request.filters_a] == ["company between ['1', '2']"]
    assert [str(item) for item in request.filters_b] == ["company = 01"]
    assert (request.measures, request.tolerance) == (["amount", "count"], Decimal("0.02"))
    assert one.tolerances == {"amount": Tolerance(Decimal("0.5"), Decimal("0.01"), Decimal(10_000))}
    assert (one.levels, one.allow) == (Levels("ignore", "warn", "error"), Allowed(3, 0, 1))
    assert one.known == (Known({"company": ("0100", None)}, "agreed", Decimal("1000.50"), date(2024, 3, 31)),)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("compare: [a]", "line 3: checks.x.compare: must be a list of two sources"),
        ("compare: [a, b, c]", "must be a list of two sources"),
        ("by: [company]", "'compare' is missing"),
        ("compare: [a, b]\n    levle: warn", "did you mean 'level'?"),
        ("compare: [a, b]\n    level: ignore", "'ignore' is not supported; there are: 'warn', 'error'"),
        ("compare: [a, b]\n    level: {minor: of}", "line 4: checks.x.level.minor: 'of' is not supported"),
        ("compare: [a, b]\n    allow: {minor: -1}", "is not a whole number"),
        ("compare: [a, b]\n    allow: {minor: ²}", "is not a whole number"),
        ("compare: [a, b]\n    allow: 3", "must be a mapping"),
        ("compare: [a, b]\n    known: [{key: {a: 1}}]", "'why' is missing"),
        ("compare: [a, b]\n    known: [{key: {}, why: so}]", "would accept every difference"),
        ("compare: [a, b]\n    known: [{key: {a: 1}, why: so, up_to: -1}]", "must be a number from 0 on"),
        ("compare: [a, b]\n    known: [{key: {a: 1}, why: so, up_to: NaN}]", "must be a number from 0 on"),
        ("compare: [a, b]\n    known: [{key: {a: 1}, why: so, until: 31.03.2024}]", "is not a day such as 2024-03-31"),
        ("compare: [a, b]\n    tolerance: -1", "must be a number from 0"),
        ("compare: [a, b]\n    where: {company: {op: =}}", "must be a single value"),
        ("compare: [a, b]\n    where: [{dimension: company, op: near, value: 1}]", "checks.x.where[0]"),
        ("compare: [a, b]\n    measures: {}", "names no measure"),
        ("compare: [a, b]\n    top: 10001", "less than or equal to 10000"),
        ("compare: [a, b]\n  x:\n    compare: [a, b]", "stands here twice"),
    ],
)
def test_a_mistake_is_told_with_its_line_before_anything_runs(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "checks.yaml").write_text(f"checks:\n  x:\n    {line}\n", encoding="utf-8")
    with pytest.raises(AnalystError) as failed:
        read_checks(tmp_path / "checks.yaml")
    assert says in str(failed.value)
    assert "checks.yaml, line " in str(failed.value)


@pytest.mark.parametrize("text", ["", "checks:", "checks: {}", "sources: s.yaml", "[]", "checks: [", "\x00"])
def test_a_file_that_declares_nothing_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "checks.yaml").write_text(text)
    with pytest.raises(AnalystError):
        read_checks(tmp_path / "checks.yaml")
    with pytest.raises(AnalystError, match="cannot be read"):
        read_checks(tmp_path / "none.yaml")


def test_the_sources_are_those_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sources.yaml").write_text(SOURCES)
    (tmp_path / "checks.yaml").write_text("checks:\n  x: {compare: [a, b]}\n")
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("company,amount\n1,5\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    declared = read_checks("../checks.yaml")
    assert run_checks(declared, bounds=Bounds(threads=1)).outcome == "passed"
    assert declared.history == tmp_path / "checks.history.db"
    with pytest.raises(AnalystError, match="there is no check 'y'"):
        declared.only(["y"])


@pytest.mark.parametrize(
    ("worst", "fails"),
    [("minor", {"minor", "major", "missing"}), ("major", {"major", "missing"}), ("missing", {"missing"})],
)
def test_failing_on_a_class_fails_on_what_is_worse_too(
    tmp_path: Path, worst: Any, fails: set[str], confront: Callable[..., Any]
) -> None:
    a = source(tmp_path, "a", [("1", "100"), ("2", "100")])
    for kind, rows in {
        "minor": [("1", "100"), ("2", "99.50")],
        "major": [("1", "100"), ("2", "1")],
        "missing": [("1", "100")],
    }.items():
        found = confront(a, source(tmp_path, "b", rows))
        assert (judge(found, Levels.failing_on(worst)).outcome == "failed") is (kind in fails), kind


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_match_rate_is_rounded_and_never_looks_like_all_or_none(matches: int, more: int) -> None:
    total = matches + more - 1
    rate = match_rate(matches, total)
    if not total:
        assert rate is None
        return
    assert rate is not None
    exact = Fraction(matches * 100, total)
    assert abs(Fraction(str(rate)) - exact) <= Fraction(1, 20)
    for edge in (0, 100):
        assert (f"{rate:g}" == str(edge)) == (exact == edge)


def test_the_match_rate_of_the_worked_example() -> None:
    assert [match_rate(87, 90), match_rate(1, 3), match_rate(9999, 10_000), match_rate(1, 10**7)] == [
        96.7, 33.3, 99.99, 0.0001,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("      amount: {absolute: 0,01}", "a number has a decimal point here, not a comma: such as 0.01"),
        ("      amount: {absolute: '1.000,00'}", "'1.000,00' is not a number written with a decimal point"),
        ("\t  amount: {absolute: 1}", "line 6: not valid YAML: there is a tab, where only blanks may stand"),
        ("      amount: {}\n       top: 5", "line 7: not valid YAML: the line has more or fewer blanks before it than"),
        (
            '      "C:\\checks": {}',
            "not valid YAML: a \\ within double quotes: in the path of a file, write / in its place",
        ),
    ],
)
def test_numbers_and_tabs_are_told_to_who_has_never_seen_such_a_file(tmp_path: Path, written: str, told: str) -> None:
    """`0,01` in braces was told as the unknown name '01'."""
    text = f"sources: sources.yaml\nchecks:\n  one:\n    compare: [a, b]\n    measures:\n{written}\n"
    (tmp_path / "checks.yaml").write_text(text)
    with pytest.raises(AnalystError) as refused:
        read_checks(tmp_path / "checks.yaml")
    assert told in str(refused.value)
