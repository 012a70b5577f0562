"""Figures are told alike by all that tells them: comparisons, their files, queries, rows behind a key, JSON, sentences.

Each is held against plain Python, and all against each other, in worlds by chance (`told_worlds`).
"""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from depth import deep
from python_calamine import CalamineWorkbook

from treadle.analyst import (
    CompareRequest,
    Comparison,
    DrillRequest,
    QueryRequest,
    RowsRequest,
    compare,
    compare_rows,
    drill,
    figures_from_results,
    page,
    query,
)

from .conftest import QUICK
from .test_dressed import Shelve, shelve  # noqa: F401 - a fixture
from .told_worlds import EXACT, NAMES, D, World, as_text, classed, currency_is_added, figure, grouped, passing, world

pytestmark = pytest.mark.usefixtures("one_engine")

FILTERS = ("filters", "filters_a", "filters_b")
AMOUNTS = ("source_a_value", "source_b_value", "diff", "absolute_diff")


@pytest.mark.parametrize("seed", range(deep(2)))
def test_all_that_is_told_is_the_same(tmp_path: Path, seed: int, shelve: Shelve) -> None:  # noqa: F811 - the fixture
    chance = Random(seed)
    made = world(chance, tmp_path, shelve)
    files = {ending: tmp_path / f"found.{ending}" for ending in ("json", "csv", "parquet", "xlsx", "html")}
    request = CompareRequest(source_a="a", source_b="b", **made.asked)
    found = compare(made.catalog, request, bounds=QUICK, exports=list(files.values()))
    assert list(found.dimensions) == made.dimensions
    results = [found, *found.more]
    assert [one.measure for one in results] == ["amount", "pieces"]
    tables = tables_in(files)
    for one in results:
        keys_are_right(made, one)
        totals_are_right(made, one)
        parts_are_right(made, one)
        for which, rows in tables.items():
            files_are_alike(made, one, which, rows)
    json_is_alike(found, json.loads(files["json"].read_text()))
    sentences_have_no_other_figures(results)
    for at in (0, 1):
        query_is_right(chance, made, at, tmp_path)
    for row in chance.sample(found.rows, min(3, len(found.rows))):
        rows_behind_are_right(made, row.key)
    rows_compared_are_right(made)


def tables_in(files: dict[str, Path]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each file."""
    packed = duckdb.sql(f"select * from '{files['parquet']}'")
    book = CalamineWorkbook.from_path(str(files["xlsx"]))
    names, *rows = book.get_sheet_by_name("differences").to_python(skip_empty_area=False)
    return {
        "csv": list(csv.DictReader(StringIO(files["csv"].read_bytes().decode(), newline=""))),
        "parquet": [dict(zip(packed.columns, row, strict=True)) for row in packed.fetchall()],
        "xlsx": [dict(zip(map(str, names), row, strict=True)) for row in rows],
        "json": [row | row["key"] for row in json.loads(files["json"].read_text())["rows"]],
    }


def keys_are_right(made: World, one: Comparison) -> None:
    """Each key has its figures, their difference and its class, the largest difference first."""
    limits, want = made.limits[one.measure], made.figures(one.measure)
    assert (one.tolerance.absolute, one.tolerance.relative, one.tolerance.materiality) == limits
    got = {tuple(as_text(row.key[name]) for name in made.dimensions): row for row in one.rows}
    assert set(got) == set(want)
    kinds: Counter[str] = Counter()
    for key, (a, b) in want.items():
        row, counts = got[key], [len(group.get(key, [])) for group in made.groups]
        assert (row.source_a_value, row.source_b_value, [row.rows_a, row.rows_b]) == (a, b, counts)
        gap = EXACT.subtract(a or D(0), b or D(0))
        assert (row.diff, row.absolute_diff) == (gap, abs(gap))
        assert row.status == classed(*counts, a, b, limits)[0]
        kinds[row.status] += 1
        if a:
            share = EXACT.divide(EXACT.multiply(abs(gap), D(100)), abs(a))
            assert row.percentage_diff == pytest.approx(float(share), rel=1e-12, abs=0.0001)
        else:
            assert row.percentage_diff is None
    order = [(row.status == "match", -row.absolute_diff) for row in one.rows]
    assert order == sorted(order)
    s = one.summary
    told = (s.matches, s.minor_differences, s.major_differences, s.missing_in_a, s.missing_in_b)
    assert told == tuple(kinds[name] for name in ("match", "minor_diff", "major_diff", "missing_in_a", "missing_in_b"))
    assert s.total_rows == len(want)


def gross(made: World, measure: str, keys: Sequence[Any]) -> D:
    """The differences of keys, each without its sign."""
    want = made.figures(measure)
    return sum((abs((want[key][0] or D(0)) - (want[key][1] or D(0))) for key in keys), D(0))


def totals_are_right(made: World, one: Comparison) -> None:
    """The totals are those of the rows, in each currency where there are several."""
    s, how = one.summary, made.aggregation(one.measure)
    parts: list[Any] = [(None, s.total_source_a, s.total_source_b, s.total_diff, s.total_absolute_diff, s.total_status)]
    if one.currency:
        assert s.total_diff is None
        parts = [
            (p.currency, p.source_a_value, p.source_b_value, p.diff, p.absolute_diff, p.status) for p in s.by_currency
        ]
        assert {part[0] for part in parts} == {row.currency for rows in made.passed for row in rows}
    elif not made.keys:
        return
    for code, a, b, diff, absolute, status in parts:
        inside = [[row for row in rows if not one.currency or row.currency == code] for rows in made.passed]
        want = [figure(how, one.measure, rows) for rows in inside]
        assert [a, b] == want
        assert diff == EXACT.subtract(a or D(0), b or D(0))
        assert status == classed(*map(len, inside), a, b, made.limits[one.measure])[0]
        keys = [k for k in made.keys if not one.currency or k[made.dimensions.index("currency")] == code]
        assert absolute == gross(made, one.measure, keys)


def parts_are_right(made: World, one: Comparison) -> None:
    """What is told of the values of a dimension is that of their keys."""
    want = made.figures(one.measure)
    for name, parts in one.by_dimension.items():
        at = made.dimensions.index(name)
        for part in parts:
            keys = [key for key in made.keys if key[at] == as_text(part.value)]
            if one.currency:
                keys = [key for key in keys if key[made.dimensions.index("currency")] == part.currency]
            assert (part.rows, part.absolute_diff) == (len(keys), gross(made, one.measure, keys))
            if made.aggregation(one.measure) == "sum":
                for side, value in enumerate((part.source_a_value, part.source_b_value)):
                    values = [known for key in keys if (known := want[key][side]) is not None]
                    assert value == (sum(values, D(0)) if values else None)


def files_are_alike(made: World, one: Comparison, which: str, rows: Sequence[dict[str, Any]]) -> None:
    """A file has what the result has, in its order."""
    own = [row for row in rows if row["measure"] == one.measure]
    for line, row in zip(own, one.rows, strict=True):
        for name in made.dimensions:
            told, key = as_text(line[name]), as_text(row.key[name])
            # What a spreadsheet would compute has an apostrophe before it.
            assert told in ((key or "", f"'{key}") if which in ("csv", "xlsx") else (key,))
        for name in AMOUNTS:
            amount_is_alike(which, line[name], getattr(row, name))
        assert (line["status"], int(line["rows_a"]), int(line["rows_b"])) == (row.status, row.rows_a, row.rows_b)
        limits = made.limits[one.measure]
        crossed = classed(row.rows_a, row.rows_b, row.source_a_value, row.source_b_value, limits)[1]
        assert line["crossed"] == crossed


def amount_is_alike(which: str, told: Any, value: D | None) -> None:
    """An amount is the same; in Excel files, which have floating-point numbers, or text where these have no room."""
    found = None if told in (None, "") else D(str(told))
    if which != "xlsx" or value is None or found is None:
        assert found == value
        return
    assert abs(found - value) <= abs(value) * D("1e-14")
    if value and len(value.normalize().as_tuple().digits) > 15:
        assert isinstance(told, str)


def json_is_alike(found: Comparison, told: dict[str, Any]) -> None:
    """The file is the result, but for its rows, which have all keys."""
    plain = json.loads(json.dumps(found.to_dict(rows=True)))
    assert plain.pop("rows_cut") is False
    apart = ("rows", "more")
    assert {k: v for k, v in told.items() if k not in apart} == {k: v for k, v in plain.items() if k not in apart}
    assert page(found)


def sentences_have_no_other_figures(results: Sequence[Comparison]) -> None:
    """Sentences have the figures of the results."""
    data = [json.loads(json.dumps(one.to_dict(rows=True, explain=True))) for one in results]
    for one in results:
        said = [one.interpretation, *(item.message for item in one.warnings), *(row.reason for row in one.rows)]
        assert [item.text for item in figures_from_results(" ".join(said), data)] == []


def query_is_right(chance: Random, made: World, at: int, folder: Path) -> None:
    """A query of one source has the same figures as its side, and so have its files."""
    rows = passing(made.rows[at], made.conditions, made.hows[at])
    order, limit = chance.choice([[], ["pieces desc"], ["pieces"]]), chance.choice([None, None, 2])
    files = [folder / f"asked{at}.{ending}" for ending in ("json", "csv", "xlsx")]
    asked = QueryRequest(
        source="ab"[at], dimensions=made.by, filters=made.asked["filters"], order=order, limit=limit
    )  # fmt: skip
    found = query(made.catalog, asked, bounds=QUICK, exports=files)
    names = currency_is_added([rows], made.by)
    assert list(found.dimensions) == names
    want = {
        key: (figure("sum", "amount", own), figure(made.pieces, "pieces", own))
        for key, own in grouped(rows, names).items()
    }
    got = {tuple(as_text(row[name]) for name in names): (row["amount"], row["pieces"]) for row in found.rows}
    assert got == {key: want[key] for key in got}
    assert len(got) == (len(want) if limit is None else min(limit, len(want)))
    assert (found.total_rows, found.source_rows) == (len(want), len(rows))
    if order:
        known = sorted((v for _, v in want.values() if v is not None), reverse="desc" in order[0])
        told = [row["pieces"] for row in found.rows if row["pieces"] is not None]
        assert told == known[: len(told)]
    query_files_are_alike(found, files)


def query_files_are_alike(found: Any, files: Sequence[Path]) -> None:
    """The files of a query have its figures."""
    amounts = [row["amount"] for row in found.rows]
    assert json.loads(files[0].read_text()) == json.loads(json.dumps(found.to_dict()))
    lines = csv.DictReader(StringIO(files[1].read_bytes().decode(), newline=""))
    for line, amount in zip(lines, amounts, strict=True):
        amount_is_alike("csv", line["amount"], amount)
    sheet = CalamineWorkbook.from_path(str(files[2])).get_sheet_by_name("figures")
    cells = sheet.to_python(skip_empty_area=False)[1 : len(amounts) + 1]
    for row, amount in zip(cells, amounts, strict=True):
        amount_is_alike("xlsx", row[len(found.dimensions)], amount)


def rows_behind_are_right(made: World, key: dict[str, Any]) -> None:
    """The rows behind a key are its rows, and pairs those that alone have their amount."""
    conditions = {name: made.asked[name] for name in FILTERS}
    behind = drill(
        made.catalog, DrillRequest(source_a="a", source_b="b", key=key, limit=1000, **conditions), bounds=QUICK
    )
    told = tuple(as_text(key[name]) for name in made.dimensions)
    counts = []
    for side, group in zip((behind.a, behind.b), made.groups, strict=True):
        rows = group.get(told, [])
        count = Counter(row.amount for row in rows)
        assert Counter(line.amount for line in side.rows for _ in range(line.times)) == count
        assert side.total_rows == len(rows)
        if len({row.currency for row in rows}) <= 1:
            assert side.total == figure("sum", "amount", rows)
        counts.append(count)
    a, b = counts
    assert behind.pairs == sum(amount is not None and a[amount] == b[amount] == 1 for amount in a)


def rows_compared_are_right(made: World) -> None:
    """Rows are equal or differ as those of their keys do."""
    conditions = {name: made.asked[name] for name in FILTERS}
    asked = RowsRequest(source_a="a", source_b="b", key=list(NAMES[:2]), **conditions)
    found = compare_rows(made.catalog, asked, bounds=QUICK)
    a, b = (grouped(rows, NAMES[:2]) for rows in made.passed)
    every = a.keys() | b.keys()
    single = [key for key in every if len(a.get(key, [])) == len(b.get(key, [])) == 1]
    differing = [[getattr(a[key][0], name) != getattr(b[key][0], name) for key in single] for name in NAMES[2:]]
    unequal = sum(map(any, zip(*differing, strict=True)))
    missing = (len(every - a.keys()), len(every - b.keys()))
    assert (found.keys, found.equal, found.differing) == (len(every), len(single) - unequal, unequal)
    assert (found.missing_in_a, found.missing_in_b) == missing
    assert found.repeated == len(every) - len(single) - sum(missing)
    rows = {one.column: one.rows for one in found.columns}
    assert [rows[name] for name in NAMES[2:]] == [sum(each) for each in differing]
