"""One comparison, dressed in everything that sources may declare, is the comparison of the same rows as they are.

Each side of a generated pair is written twice: as it stands, and as people have it, in any kind of file, as a frame or
in a database, with the old accounts and a mapping, foreign amounts and rates, an opening text, lines of totals, other
spellings, signs, names and default filters, all at once. Figures, classes, subtotals and claims must be the same. The
undressed comparison is held against plain Python elsewhere (`test_claims`, `test_oracle`).

`make dressed PAIRS=2000 SEED=1` tries more pairs.
"""

import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import asdict

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Comparison,
    Difference,
    DrillRequest,
    Hierarchy,
    Measure,
    QueryRequest,
    compare,
    drill,
    query,
)

from .conftest import QUICK
from .dressing import CLOSING, MAPPED, NAMES, PERIODS, changed, dress, dressed, plain, rows_of, tables
from .shelf import DATABASES, Shelf

pytestmark = pytest.mark.usefixtures("one_engine")

PAIRS = int(os.environ.get("TREADLE_DRESSED", "12"))
FIRST = int(os.environ.get("TREADLE_DRESSED_SEED", "0"))
GROUPS = {"Result": ("Revenue", "Costs"), "Revenue": ("8000..8999",), "Costs": ("4100", "4200..4299"), "Odd": ("4300",)}


FILTERS: list[dict[str, Any]] = [
    {"dimension": "company", "value": "1002"},
    {"dimension": "company", "op": "!=", "value": "1001"},
    {"dimension": "company", "op": "in", "value": ["1001", "2001"]},
    {"dimension": "company", "op": "is null"},
    {"dimension": "company", "op": "not in", "value": ["1002"]},
    {"dimension": "company", "op": "between", "value": ["1001", "1500"]},
    {"dimension": "company", "op": "like", "value": "10%"},
    {"dimension": "period", "value": "202402"},
    {"dimension": "period", "op": "between", "value": ["202401", "202402"]},
    {"dimension": "period", "op": "ytd", "value": "202402"},
    {"dimension": "period", "op": "rolling", "value": ["202403", 2]},
    {"dimension": "period", "op": "rolling", "value": ["202402", 4]},
    {"dimension": "period", "op": "ytd", "value": "202313"},
    {"dimension": "period", "op": "qtd", "value": "202316"},
    {"dimension": "period", "op": "between", "value": ["202312", "202401"]},
    {"dimension": "period", "op": "not in", "value": ["202400", "202316"]},
    {"dimension": "period", "op": ">", "value": "202401"},
    {"dimension": "account", "op": "under", "value": "Revenue"},
    {"dimension": "account", "op": "under", "value": "Result"},
    {"dimension": "account", "op": ">=", "value": "4300"},
    {"dimension": "account", "value": "4300"},
    {"dimension": "account", "op": "like", "value": "8%"},
    {"dimension": "currency", "value": "EUR"},
    {"dimension": "currency", "op": "!=", "value": "USD"},
]


def filters(chance: Random, count: int) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in chance.sample(FILTERS, len(FILTERS)):
        if len(found) < count:
            found.setdefault(one["dimension"], one)
    return list(found.values())


def asked(chance: Random, money: bool) -> dict[str, Any]:
    request: dict[str, Any] = {
        "dimensions": chance.choice(
            [["account"], ["company", "account"], ["period", "account"], ["company"], ["period"], [], list(NAMES[:3])]
        ),
        "filters": filters(chance, chance.choice([0, 0, 1, 1, 2])),
        "filters_a": filters(chance, chance.choice([0, 0, 0, 1])),
        "filters_b": filters(chance, chance.choice([0, 0, 0, 1])),
    }
    if "account" in request["dimensions"]:
        request["subtotals"] = chance.choice([[], ["tree"]])
    if chance.random() < 0.3:
        request["tolerance"] = chance.choice(["0", "10", "1000"])
    if chance.random() < 0.2:
        request["materiality"] = chance.choice(["1", "100000"])
    return request


def told(found: Comparison, looked_up: bool, rounded: Sequence[str]) -> dict[str, Any]:
    """What must be the same.

    Not of rows that are split among accounts how many there are, nor which are alike; nor, of the sides whose amounts
    are binary fractions, that they are.
    """
    skip, left = ({"rows_a", "rows_b"}, {"duplicates", "filter_without_rows"}) if looked_up else (set(), set())
    claims = [
        (one.kind, one.filters, {name: value for name, value in one.facts.items() if name not in skip})
        for one in [*found.claims, *found.warnings]
        if one.kind not in left and not (one.kind == "approximate" and one.facts["side"] in rounded)
    ]
    return {
        "dimensions": found.dimensions,
        "filters": (found.filters, found.filters_a, found.filters_b),
        "units": (found.unit, found.unit_a, found.unit_b),
        "tolerance": found.tolerance,
        "summary": found.summary,
        "parts": found.by_dimension,
        "subtotals": found.subtotals,
        "rows": sorted(
            str({name: value for name, value in asdict(row).items() if name not in skip}) for row in found.rows
        ),
        "claims": claims,
    }


def answer(catalog: Catalog, request: dict[str, Any], looked_up: bool, rounded: Sequence[str]) -> Any:
    try:
        found = compare(catalog, CompareRequest(source_a="a", source_b="b", **request), bounds=QUICK)
    except AnalystError as error:
        return f"refused: {error}", None
    return told(found, looked_up, rounded), found


Shelve = Callable[[Sequence[str]], Shelf]


@pytest.fixture
def shelve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Shelve:
    """Makes a shelf for these kinds; without PostgreSQL, only what wants it is skipped."""

    def made(kinds: Sequence[str]) -> Shelf:
        (tmp_path / "worn").mkdir()
        found = Shelf(tmp_path / "worn")
        if not set(kinds).isdisjoint(DATABASES):
            found.server = request.getfixturevalue("server")
            found.open(monkeypatch)
        return found

    return made


@pytest.mark.parametrize("number", range(FIRST, FIRST + PAIRS))
def test_a_comparison_is_the_same_however_its_sides_are_written(tmp_path: Path, number: int, shelve: Shelve) -> None:
    chance = Random(number)
    mapped = [chance.random() < 0.4 for _ in "ab"]
    converted = chance.random() < 0.3
    codes: list[str | None] = chance.choice([["EUR"], ["EUR"], ["EUR", "USD"], ["EUR", "USD", "GBP"]])
    if not converted and chance.random() < 0.1:
        codes = [*codes, None]
    periods = CLOSING if chance.random() < 0.4 else PERIODS
    old, new = sorted(MAPPED), ["4100", "4200", "4300", "8000", "8100"]
    first = rows_of(chance, codes, old if mapped[0] else new, periods)
    if mapped[0] == mapped[1]:
        second = changed(chance, first, old if mapped[1] else new, periods)
    else:
        second = rows_of(chance, codes, old if mapped[1] else new, periods)
    hows = [dress(chance, one, converted, periods) for one in mapped]
    for own, other in (hows, hows[::-1]):
        # The format of the other side holds for what this one spells in several ways.
        own.mixed = other.padded and not own.padded
    figure = "sum" if any(mapped) else chance.choice(["sum", "sum", "min", "max", "count"])
    measure = Measure(
        name="amount",
        decimals=None if figure == "count" else 2,
        aggregation=figure,  # type: ignore[arg-type]
        unit="EUR" if converted and figure != "count" else "",
        currency="" if converted else "currency",
    )
    tree = Hierarchy(name="tree", of="account", groups=GROUPS)
    sides = list(zip("ab", (first, second), hows, strict=True))
    tidy = tmp_path / "tidy"
    tidy.mkdir()
    shelf = shelve([how.kind for how in hows])
    second_hand = [dressed(shelf, *side, measure) for side in sides]
    catalogs = [
        Catalog([plain(tidy, *side, measure) for side in sides], tidy, hierarchies=[tree]),
        Catalog([*second_hand, *tables(shelf.folder)], shelf.folder, frames=shelf.frames, hierarchies=[tree]),
    ]
    request = asked(chance, converted)
    looked_up = any(mapped) or converted or any(how.mixed or how.coded or how.period == "calendar" for how in hows)
    rounded = [side for side, _, how in sides if how.kind == "xlsx"]
    (expected, _), (got, made) = (answer(catalog, request, looked_up, rounded) for catalog in catalogs)
    if isinstance(expected, str) or isinstance(got, str):
        assert type(got) is type(expected), (hows, request, expected, got)
        return
    for name in expected:
        assert got[name] == expected[name], (name, hows, request)
    single = QueryRequest(
        source="b" if hows[0].mixed else "a",
        dimensions=request["dimensions"],
        filters=[*request["filters"]],
        subtotals=request.get("subtotals", []),
    )
    other, one = (query(catalog, single, bounds=QUICK) for catalog in catalogs)
    assert (one.rows, one.totals, one.subtotals) == (other.rows, other.totals, other.subtotals), (hows, request)
    for row in chance.sample(made.rows, min(2, len(made.rows))):
        _is_made_of_its_lines(catalogs[1], request, row, figure)


def _is_made_of_its_lines(catalog: Catalog, request: dict[str, Any], row: Difference, figure: str) -> None:
    """The lines behind a key make its figures, on both sides."""
    conditions = {name: request[name] for name in ("filters", "filters_a", "filters_b")}
    asked = DrillRequest(source_a="a", source_b="b", key=row.key, limit=1000, **conditions)
    behind = drill(catalog, asked, bounds=QUICK)
    assert (behind.a.total_rows, behind.b.total_rows) == (row.rows_a, row.rows_b), (request, row)
    made: dict[str, Callable[[list[Decimal]], Any]] = {"sum": sum, "count": len, "min": min, "max": max}
    for side, value in ((behind.a, row.source_a_value), (behind.b, row.source_b_value)):
        amounts = [line.amount for line in side.rows for _ in range(line.times) if line.amount is not None]
        assert (made[figure](amounts) if amounts else 0) == (value or 0), (request, row)
        assert (sum(amounts) if amounts else None) == side.total
