"""Over generated tables the engine agrees with Python's decimals, and with itself when a question is turned round."""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from depth import deep
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from treadle.analyst import (
    Bounds,
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    compare,
    query,
)

pytestmark = pytest.mark.usefixtures("one_engine")

KEYS = st.sampled_from([None, "", "a", "b", "0001", "1", "a ", "ä", "NULL"])
AMOUNTS = (
    st.none()
    | st.decimals(-(10**9), 10**9, places=2)
    | st.sampled_from(
        [
            Decimal(text)
            for text in ("0.00", "100.00", "99.00", "99.01", "100.01", "5000.00", "10000.00", "-100.00", "500000.00")
        ]
    )
)
# A row that stands twice is added up twice.
TABLES = st.lists(st.tuples(KEYS, KEYS, AMOUNTS), max_size=12).map(lambda rows: rows + rows[-1:])
COLUMNS = ("k", "l", "v")
QUICK = Bounds(threads=1)
FEW = settings(max_examples=deep(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

Rows = list[tuple[Any, Any, Decimal | None]]


def source(folder: Path, name: str, rows: Rows) -> Source:
    def cell(value: object) -> str:
        return "" if value is None else f'"{value}"'

    lines = [",".join(COLUMNS), *(",".join(map(cell, row)) for row in rows)]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Source(
        name=name,
        kind="csv",
        path=f"{name}.csv",
        dimensions=(Dimension(name="k"), Dimension(name="l")),
        measures=(Measure(name="v", decimals=2),),
    )


def run(a: Rows, b: Rows, **asked: Any) -> Comparison:
    with TemporaryDirectory() as place:
        folder = Path(place)
        catalog = Catalog([source(folder, "a", a), source(folder, "b", b)], folder)
        return compare(catalog, CompareRequest(source_a="a", source_b="b", **asked), bounds=QUICK)


def figures(rows: Rows) -> dict[tuple[Any, Any], Fraction | None]:
    groups: dict[tuple[Any, Any], list[Fraction]] = defaultdict(list)
    for k, other, v in rows:
        groups[k, other] += [] if v is None else [Fraction(v)]
    return {key: sum(values, Fraction(0)) if values else None for key, values in groups.items()}


def expected_status(in_a: bool, in_b: bool, a: Fraction, b: Fraction) -> str:
    if not in_b:
        return "missing_in_b"
    if not in_a:
        return "missing_in_a"
    gap = abs(a - b)
    if gap <= Fraction(1, 100):
        return "match"
    return "minor_diff" if gap < 5000 and gap < abs(a) / 100 else "major_diff"


def at_thresholds(*pairs: tuple[str, str]) -> tuple[Rows, Rows]:
    rows: list[Rows] = [[(str(at), None, Decimal(pair[side])) for at, pair in enumerate(pairs)] for side in (0, 1)]
    return rows[0], rows[1]


@FEW
@given(TABLES, TABLES)
@example(*at_thresholds(("100.00", "99.00"), ("100.00", "99.01"), ("-100.00", "-101.00"), ("100.00", "99.99")))
@example(*at_thresholds(("500000.00", "495000.00"), ("600000.00", "595000.01"), ("0.00", "0.01"), ("0.00", "0.02")))
def test_comparison_agrees_with_plain_python(a: Rows, b: Rows) -> None:
    found = run(a, b, dimensions=["k", "l"])
    left, right = figures(a), figures(b)
    expected = {}
    for key in left.keys() | right.keys():
        value_a, value_b = left.get(key), right.get(key)
        state = expected_status(key in left, key in right, value_a or Fraction(0), value_b or Fraction(0))
        expected[key] = (value_a, value_b, state)
    seen = {
        (row.key["k"], row.key["l"]): (
            None if row.source_a_value is None else Fraction(row.source_a_value),
            None if row.source_b_value is None else Fraction(row.source_b_value),
            row.status,
        )
        for row in found.rows
    }
    assert seen == expected
    gaps = [(value_a or 0) - (value_b or 0) for value_a, value_b, _ in expected.values()]
    summary = found.summary
    assert Fraction(summary.total_diff) == sum(gaps, Fraction(0))
    assert Fraction(summary.total_absolute_diff) == sum(map(abs, gaps), Fraction(0))
    counted = [
        summary.matches,
        summary.minor_differences,
        summary.major_differences,
        summary.missing_in_a,
        summary.missing_in_b,
    ]
    names = ["match", "minor_diff", "major_diff", "missing_in_a", "missing_in_b"]
    assert counted == [sum(state == name for _, _, state in expected.values()) for name in names]
    assert [row.absolute_diff for row in found.top_differences] == sorted(
        (row.absolute_diff for row in found.rows if row.status != "match"), reverse=True
    )[:20]
    for dimension in ("k", "l"):
        parts = found.by_dimension[dimension]
        assert sum(part.differences for part in parts) == summary.total_rows - summary.matches


@FEW
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("xyz"), AMOUNTS), max_size=40), TABLES, TABLES)
def test_parts_agree_with_plain_python(shared: Rows, a: Rows, b: Rows) -> None:
    left, right = figures([*shared, *a]), figures([*shared, *b])
    found = run([*shared, *a], [*shared, *b], dimensions=["k", "l"])
    states = {(row.key["k"], row.key["l"]): row.status for row in found.rows}
    for at, dimension in enumerate(("k", "l")):
        expected = []
        for value in {key[at] for key in states}:
            keys = [key for key in states if key[at] == value]
            gap = sum((abs((left.get(key) or 0) - (right.get(key) or 0)) for key in keys), Fraction(0))
            count = sum(states[key] != "match" for key in keys)
            sums = [[side[key] for key in keys if side.get(key) is not None] for side in (left, right)]
            totals = [sum(known, Fraction(0)) if known else None for known in sums]
            if count:
                expected.append((-gap, -count, value is None, value or "", *totals, len(keys)))
        seen = [
            (
                -Fraction(part.absolute_diff),
                -part.differences,
                part.value is None,
                part.value or "",
                *(None if v is None else Fraction(v) for v in (part.source_a_value, part.source_b_value)),
                part.rows,
            )
            for part in found.by_dimension[dimension]
        ]
        assert seen == sorted(expected, key=lambda part: part[:4])[:10]


@FEW
@given(TABLES, TABLES)
def test_turning_a_and_b_round_mirrors_the_result(a: Rows, b: Rows) -> None:
    forth, again = run(a, b), run(b, a)
    there, back = forth.summary, again.summary
    assert by_key(forth) == {key: (y, x, -gap) for key, (x, y, gap) in by_key(again).items()}
    assert there.total_diff == -back.total_diff
    assert there.total_absolute_diff == back.total_absolute_diff
    assert (there.matches, there.missing_in_a, there.missing_in_b) == (
        back.matches,
        back.missing_in_b,
        back.missing_in_a,
    )


def by_key(found: Comparison) -> dict[tuple[Any, ...], tuple[Decimal | None, Decimal | None, Decimal]]:
    """Both figures and the difference of each key."""
    return {tuple(row.key.values()): (row.source_a_value, row.source_b_value, row.diff) for row in found.rows}


@FEW
@given(TABLES, TABLES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(a: Rows, b: Rows, random: Any) -> None:
    first = run(a, b)
    shuffled_a, shuffled_b = list(a), list(b)
    random.shuffle(shuffled_a)
    random.shuffle(shuffled_b)
    assert run(shuffled_a, shuffled_b).to_dict(rows=True) == first.to_dict(rows=True)


@FEW
@given(TABLES)
def test_splitting_an_amount_over_rows_changes_nothing(rows: Rows) -> None:
    piece = Decimal("1.25")
    split = [(k, other, part) for k, other, v in rows for part in ([v] if v is None else [v - piece, piece])]
    found = run(rows, split).summary
    assert found.matches == found.total_rows
    assert found.total_absolute_diff == 0


@FEW
@given(TABLES, TABLES)
def test_splitting_a_group_splits_its_figures(a: Rows, b: Rows) -> None:
    """What a coarse comparison says of a key is what a finer one says of its parts together."""
    coarse, fine = run(a, b, dimensions=["k"]), run(a, b, dimensions=["k", "l"])
    sums: dict[Any, list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 3)
    rows: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    for row in fine.rows:
        parts = (row.source_a_value or 0, row.source_b_value or 0, row.diff)
        sums[row.key["k"]] = [old + Fraction(new) for old, new in zip(sums[row.key["k"]], parts, strict=True)]
        rows[row.key["k"]] = [rows[row.key["k"]][0] + row.rows_a, rows[row.key["k"]][1] + row.rows_b]
    assert {row.key["k"]: [row.source_a_value or 0, row.source_b_value or 0, row.diff] for row in coarse.rows} == sums
    assert {row.key["k"]: [row.rows_a, row.rows_b] for row in coarse.rows} == rows
    assert coarse.summary.total_diff == fine.summary.total_diff
    assert coarse.summary.total_absolute_diff <= fine.summary.total_absolute_diff


def scaled(rows: Rows, factor: int) -> Rows:
    return [(k, other, None if v is None else v * factor) for k, other, v in rows]


@FEW
@given(TABLES, TABLES, st.sampled_from([-1, 7, -1000, 10**12]))
def test_scaling_both_sides_scales_the_differences_alone(a: Rows, b: Rows, factor: int) -> None:
    """With thresholds of the same scale every class, percentage and order stays."""
    size = abs(factor)
    plain = run(a, b, tolerance=Decimal("0.01"), materiality=5000)
    large = run(scaled(a, factor), scaled(b, factor), tolerance=Decimal("0.01") * size, materiality=5000 * size)
    assert [(row.key, row.status, row.percentage_diff) for row in large.rows] == [
        (row.key, row.status, row.percentage_diff) for row in plain.rows
    ]
    assert [row.diff for row in large.rows] == [row.diff * factor for row in plain.rows]
    assert large.summary.total_diff == plain.summary.total_diff * factor
    assert large.summary.total_absolute_diff == plain.summary.total_absolute_diff * size
    assert (large.summary.match_rate, large.summary.total_status) == (
        plain.summary.match_rate,
        plain.summary.total_status,
    )


@FEW
@given(TABLES, TABLES, TABLES)
def test_the_same_rows_more_on_both_sides_change_no_difference(a: Rows, b: Rows, more: Rows) -> None:
    plain, longer = by_key(run(a, b)), by_key(run(a + more, b + more))
    gaps = {(k, other): Decimal(0) for k, other, _ in more} | {key: gap for key, (_, _, gap) in plain.items()}
    assert {key: gap for key, (_, _, gap) in longer.items()} == gaps


@FEW
@given(TABLES, TABLES, st.sampled_from(["a", "0001", "", "zz"]))
def test_a_filter_and_its_opposite_make_the_whole(a: Rows, b: Rows, value: str) -> None:
    parts = [run(a, b, filters=[{"dimension": "k", "op": op, "value": value}], dimensions=["k", "l"])
             for op in ("=", "!=")]  # fmt: skip
    whole = run(a, b, dimensions=["k", "l"])
    assert by_key(parts[0]) | by_key(parts[1]) == by_key(whole)
    assert len(parts[0].rows) + len(parts[1].rows) == len(whole.rows)
    assert sum(part.summary.total_diff for part in parts) == whole.summary.total_diff


@FEW
@given(TABLES, TABLES)
def test_totals_do_not_depend_on_the_dimensions(a: Rows, b: Rows) -> None:
    wide, narrow = run(a, b, dimensions=["k", "l"]).summary, run(a, b, dimensions=[]).summary
    assert (wide.total_source_a, wide.total_source_b, wide.total_status) == (
        narrow.total_source_a,
        narrow.total_source_b,
        narrow.total_status,
    )


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null"])
@settings(max_examples=deep(3), deadline=None)
@given(rows=TABLES, value=st.sampled_from(["", "a", "b", "1", "zz"]))
def test_filters_agree_with_plain_python(op: str, rows: Rows, value: str) -> None:
    assume(op[0] not in "<>" or value != "1")  # a range of numbers, which test_ranges has
    tests: dict[str, Any] = {
        "=": lambda k: k == value,
        "!=": lambda k: k != value,
        "<": lambda k: k is not None and k < value,
        "<=": lambda k: k is not None and k <= value,
        ">": lambda k: k is not None and k > value,
        ">=": lambda k: k is not None and k >= value,
        "in": lambda k: k in (value, "0001"),
        "not in": lambda k: k not in (value, "0001"),
        "is null": lambda k: k is None,
        "is not null": lambda k: k is not None,
    }
    given_value = {"in": [value, "0001"], "not in": [value, "0001"], "is null": None, "is not null": None}.get(
        op, value
    )
    with TemporaryDirectory() as place:
        catalog = Catalog([source(Path(place), "a", rows)], place)
        condition = {"dimension": "k", "op": op, "value": given_value}
        found = query(catalog, QueryRequest(source="a", dimensions=["k", "l"], filters=[condition]), bounds=QUICK)
    seen = {(row["k"], row["l"]): None if row["v"] is None else Fraction(row["v"]) for row in found.rows}
    assert seen == figures([row for row in rows if tests[op](row[0])])
