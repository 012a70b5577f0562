"""What matches, what differs a little, what differs a lot: thresholds, zeros, signs, missing sides."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from treadle.analyst import CompareRequest, Comparison, Source, Tolerance

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal

CASES = [
    # a, b, status, a piece of the reason
    ("100.00", "100.00", "match", "equal"),
    ("100.00", "99.99", "match", "0.01 is within the tolerance of 0.01"),
    ("100.00", "99.98", "minor_diff", "0.02 % of A is below 1 %"),
    ("100.00", "99.01", "minor_diff", "0.99 % of A is below 1 %"),
    ("100.00", "99.00", "major_diff", "1 % of A is at or above 1 %"),
    ("100.00", "98.99", "major_diff", "1.01 % of A is at or above 1 %"),
    ("500000.00", "495000.00", "major_diff", "5,000.00 is at or above the materiality of 5,000"),
    (
        "500100.00",
        "495100.01",
        "minor_diff",
        "4,999.99 is below the materiality of 5,000 and 0.9998 % of A is below 1 %",
    ),
    ("10000000.00", "9995000.00", "major_diff", "though 0.05 % of A is below 1 %"),
    ("0.00", "0.01", "match", "within the tolerance"),
    ("0.00", "0.02", "major_diff", "A is zero, so no share of it is small"),
    ("0.02", "0.00", "major_diff", "100 % of A is at or above 1 %"),
    ("100.00", "0.00", "major_diff", "100 % of A is at or above 1 %"),
    ("1000000.00", "8.00", "major_diff", "99.999 % of A is at or above 1 %"),
    ("1000000.00", "-8.00", "major_diff", "100.001 % of A is at or above 1 %"),
    ("100.00", "-100.00", "major_diff", "200 % of A is at or above 1 %"),
    ("-100.00", "-99.50", "minor_diff", "0.5 % of A is below 1 %"),
    ("100.00", None, "major_diff", "right has rows but no amount"),
    (None, None, "match", "equal"),
    (None, "0.00", "match", "left has rows but no amount"),
]


@pytest.mark.parametrize("kinds", [("csv", "parquet"), ("sqlite", "duckdb"), ("json", "csv")])
def test_class_and_reason(
    make: Callable[..., Source], confront: Callable[..., Comparison], kinds: tuple[str, str]
) -> None:
    left = make("left", [(str(at), case[0] and D(case[0])) for at, case in enumerate(CASES)], kind=kinds[0])
    right = make("right", [(str(at), case[1] and D(case[1])) for at, case in enumerate(CASES)], kind=kinds[1])
    rows = {row.key["company"]: row for row in confront(left, right).rows}
    assert len(rows) == len(CASES)
    for at, (a, b, status, reason) in enumerate(CASES):
        row = rows[str(at)]
        assert (a, b, row.status) == (a, b, status)
        assert reason in row.reason
        assert (row.source_a_value, row.source_b_value) == (a and D(a), b and D(b))


def test_missing_sides(make: Callable[..., Source], confront: Callable[..., Comparison]) -> None:
    left = make("left", [("1", "10.00"), ("2", "5.00")])
    right = make("right", [("2", "5.00"), ("3", "7.00"), ("4", None)])
    found = confront(left, right)
    states = {row.key["company"]: (row.status, row.diff, row.reason) for row in found.rows}
    assert states["1"] == ("missing_in_b", D("10.00"), "only in left, with 10.00; right has no row for this key")
    assert states["3"][:2] == ("missing_in_a", D("-7.00"))
    assert states["4"] == ("missing_in_a", D("0.00"), "only in right, without an amount; left has no row for this key")
    assert found.summary.match_rate == 25.0
    assert found.summary.total_absolute_diff == D("17.00")


@pytest.mark.parametrize(
    ("asked", "on_measure", "on_source", "status"),
    [
        ({}, None, None, "minor_diff"),
        ({"tolerance": "0.50"}, None, None, "match"),
        ({}, Tolerance(absolute=D("0.50")), None, "match"),
        ({}, None, Tolerance(absolute=D("0.50")), "match"),
        ({}, Tolerance(absolute=D("0.49")), Tolerance(absolute=D("0.50")), "minor_diff"),
        ({"tolerance": "0.10"}, Tolerance(absolute=D("0.50")), None, "minor_diff"),
        ({"relative_tolerance": "0.005"}, None, None, "major_diff"),
        ({"relative_tolerance": "0.00501"}, None, None, "minor_diff"),
        ({"relative_tolerance": 0.00501}, None, None, "minor_diff"),
        ({"relative_tolerance": "0.5 %"}, None, None, "major_diff"),
        ({"relative_tolerance": "500%"}, None, None, "minor_diff"),
        ({"relative_tolerance": D(5)}, None, None, "minor_diff"),
        ({"materiality": "0.50"}, None, None, "major_diff"),
        ({"materiality": "0.505"}, None, None, "minor_diff"),
    ],
)
def test_thresholds_come_from_the_request_the_measure_the_source(
    make: Callable[..., Source],
    confront: Callable[..., Comparison],
    asked: dict[str, Any],
    on_measure: Tolerance | None,
    on_source: Tolerance | None,
    status: str,
) -> None:
    import msgspec

    left = make("left", [("1", "100.00")], tolerance=on_measure)
    left = msgspec.structs.replace(left, tolerance=on_source)
    assert confront(left, make("right", [("1", "99.50")]), **asked).rows[0].status == status


@pytest.mark.parametrize("given", [5, 5.0, "5", "1"])
def test_a_relative_threshold_that_may_be_percent_or_a_share_is_asked_about(given: object) -> None:
    """A program that meant 5 percent by 5 had 500 %: nearly nothing was a major difference."""
    with pytest.raises(ValueError, match="write which of them, with the percent sign"):
        CompareRequest.model_validate({"source_a": "a", "source_b": "b", "relative_tolerance": given})


@pytest.mark.parametrize("given", ["500%", D(5), D(1), D("0.05"), "1e-6%", None])
def test_a_request_that_was_written_as_json_is_read_again(given: object) -> None:
    asked = CompareRequest.model_validate({"source_a": "a", "source_b": "b", "relative_tolerance": given})
    assert CompareRequest.model_validate_json(asked.model_dump_json()) == asked


@pytest.mark.parametrize(
    ("decimals", "b", "status"),
    [(0, "99.5", "match"), (0, "99.4", "minor_diff"), (3, "99.9995", "match"), (3, "99.999", "minor_diff")],
)
def test_default_tolerance_is_half_the_last_decimal(
    make: Callable[..., Source], confront: Callable[..., Comparison], decimals: int, b: str, status: str
) -> None:
    left, right = (make(name, [("1", value)], decimals=decimals) for name, value in (("left", "100"), ("right", b)))
    assert confront(left, right).rows[0].status == status


def test_totals_are_classed_by_the_same_rule(make: Callable[..., Source], confront: Callable[..., Comparison]) -> None:
    left = make("left", [("1", "100.00"), ("2", "200.00")])
    right = make("right", [("1", "101.00"), ("2", "199.00")])
    found = confront(left, right)
    assert found.summary.total_status == "match"
    assert found.summary.total_diff == 0
    assert found.summary.total_absolute_diff == D("2.00")
    assert "agree only because differences offset each other" in found.interpretation
    grand = confront(left, right, dimensions=[])
    assert [(row.key, row.status) for row in grand.rows] == [({}, "match")]
    assert grand.dimensions == ()


def test_a_match_rate_of_100_means_all(make: Callable[..., Source], confront: Callable[..., Comparison]) -> None:
    rows = [(str(number), "1.00") for number in range(30_000)]
    found = confront(make("left", rows), make("right", [*rows[:-1], ("29999", "2.00")]), top=1, keep=5)
    assert found.summary.match_rate == 99.997
    assert "nearly all of the keys match" in found.interpretation
    assert (len(found.rows), found.rows_cut) == (5, True)


def test_ties_are_ordered_by_key_and_the_cut_is_told(
    make: Callable[..., Source], confront: Callable[..., Comparison]
) -> None:
    left = make("left", [(key, "10.00") for key in "dbacfe"])
    right = make("right", [(key, "20.00") for key in "fedcba"])
    found = confront(left, right, top=3)
    assert [row.key["company"] for row in found.top_differences] == ["a", "b", "c"]
    assert found.to_dict()["note"] == "top_differences shows the 3 largest of 6 differences; the summary is over all"


def test_parts_by_dimension(make: Callable[..., Source], confront: Callable[..., Comparison]) -> None:
    columns = ("company", "period", "amount")
    left = make("left", [("1", "01", "10.00"), ("1", "02", "10.00"), ("2", "01", "10.00")], columns=columns)
    right = make("right", [("1", "01", "13.00"), ("1", "02", "10.00"), ("2", "01", "9.00")], columns=columns)
    parts = confront(left, right).by_dimension
    assert [(part.value, part.absolute_diff, part.differences, part.rows, part.share) for part in parts["company"]] == [
        ("1", D("3.00"), 1, 2, 75.0),
        ("2", D("1.00"), 1, 1, 25.0),
    ]
    assert [(part.value, part.absolute_diff) for part in parts["period"]] == [("01", D("4.00"))]


@pytest.mark.parametrize(
    ("aggregation", "totals", "statuses"),
    [
        ("sum", (D("6.00"), D("7.00")), {"1": "major_diff", "2": "match"}),
        ("min", (D("1.00"), D("1.00")), {"1": "match", "2": "match"}),
        ("max", (D("3.00"), D("3.00")), {"1": "major_diff", "2": "match"}),
        ("avg", (D("2.00"), D("2.333333")), {"1": "major_diff", "2": "match"}),
        ("count", (D(3), D(3)), {"1": "match", "2": "match"}),
    ],
)
def test_aggregations(
    make: Callable[..., Source],
    confront: Callable[..., Comparison],
    aggregation: str,
    totals: tuple[Decimal, Decimal],
    statuses: dict[str, str],
) -> None:
    left = make("left", [("1", "1.00"), ("1", "2.00"), ("2", "3.00")], kind="parquet", aggregation=aggregation)
    right = make("right", [("1", "1.00"), ("1", "3.00"), ("2", "3.00")], kind="duckdb", aggregation=aggregation)
    found = confront(left, right)
    assert {row.key["company"]: row.status for row in found.rows} == statuses
    assert found.summary.total_source_a == totals[0]
    assert found.summary.total_source_b == pytest.approx(totals[1], abs=D("0.000001"))


def test_that_one_side_is_told_in_whole_numbers_makes_no_cents_equal(make: Any, confront: Any) -> None:
    """Nothing is declared of the other, whose amounts have cents: half of a whole number was taken for rounding."""

    def found(*decimals: int | None) -> Comparison:
        sides = [
            make(name, [("1", amount)], decimals=places)
            for name, amount, places in zip(("left", "right"), ("5", "5.40"), decimals, strict=True)
        ]
        told: Comparison = confront(*sides)
        return told

    for pair in ((0, None), (None, 0), (0, 2)):
        assert (found(*pair).tolerance.absolute, found(*pair).summary.matches) == (D("0.01"), 0)
    assert (found(0, 0).tolerance.absolute, found(0, 0).summary.matches) == (D("0.5"), 1)
    assert [found(*pair).tolerance.absolute for pair in ((3, None), (None, None))] == [D("0.0005"), D("0.01")]
