"""Queries: grouping, order, limits and totals."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import AnalystError, Catalog, QueryRequest, query

D = Decimal
COLUMNS = ("company", "period", "amount")
ROWS = [("1", "01", "5.00"), ("1", "02", "7.00"), ("2", "01", "7.00"), ("2", "02", None), (None, "01", "1.50")]


@pytest.fixture
def catalog(make: Any, tmp_path: Path) -> Catalog:
    return Catalog([make("s", ROWS, columns=COLUMNS, synonyms={"company": ("entity",)})], tmp_path)


def rows(catalog: Catalog, **asked: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in query(catalog, QueryRequest(source="s", **asked)).rows]


def test_groups_and_totals(catalog: Catalog) -> None:
    found = query(catalog, QueryRequest(source="S", dimensions=["Entity", "entity"]))
    assert found.rows == [
        {"company": "1", "amount": D("12.00")},
        {"company": "2", "amount": D("7.00")},
        {"company": None, "amount": D("1.50")},
    ]
    assert (found.total_rows, found.totals, found.source_rows) == (3, {"amount": D("20.50")}, 5)


def test_grand_total_is_one_row(catalog: Catalog) -> None:
    found = query(catalog, QueryRequest(source="s"))
    assert (found.rows, found.total_rows) == ([{"amount": D("20.50")}], 1)


def test_no_rows(catalog: Catalog) -> None:
    for dimensions in ([], ["company"]):
        found = query(catalog, QueryRequest(source="s", dimensions=dimensions, filters={"company": "9"}))
        assert (found.rows, found.total_rows, found.totals, found.source_rows) == ([], 0, {"amount": None}, 0)


def test_order(catalog: Catalog) -> None:
    by = ["company", "period"]
    assert rows(catalog, dimensions=by, order=["amount desc"])[:3] == [
        ("1", "02", D("7.00")),
        ("2", "01", D("7.00")),
        ("1", "01", D("5.00")),
    ]
    assert rows(catalog, dimensions=by, order=["amount"])[-1] == ("2", "02", None)
    assert rows(catalog, dimensions=by, order=["period DESC", "entity asc"])[0][:2] == ("1", "02")
    assert rows(catalog, dimensions=["company"], order=["company desc"])[0][0] == "2"


def test_an_order_by_something_else_is_refused(catalog: Catalog) -> None:
    with pytest.raises(AnalystError, match="no asked dimension or measure 'period'") as caught:
        query(catalog, QueryRequest(source="s", dimensions=["company"], order=["period desc"]))
    assert caught.value.hints["available"] == ["amount", "company"]


def test_a_limit_is_told(catalog: Catalog) -> None:
    found = query(catalog, QueryRequest(source="s", dimensions=["company", "period"], limit=2))
    assert (len(found.rows), found.total_rows) == (2, 5)
    assert found.totals == {"amount": D("20.50")}
    assert found.to_dict(rows=1)["note"] == "1 of 5 rows are shown; totals are of all 5"
    assert "note" not in query(catalog, QueryRequest(source="s")).to_dict()


def test_dimensions_without_measures(catalog: Catalog) -> None:
    assert rows(catalog, dimensions=["period"], measures=[]) == [("01",), ("02",)]
