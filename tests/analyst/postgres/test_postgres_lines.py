"""Single rows out of PostgreSQL: behind a key, and row by row; only what is asked for is fetched."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from treadle.analyst import AnalystError, Bounds, Catalog, Filter, Hierarchy, Source
from treadle.analyst.asking import drill as drilling
from treadle.analyst.asking.drill import DrillRequest, drill
from treadle.analyst.asking.row_compare import RowsRequest, compare_rows

QUICK = Bounds(threads=1, seconds=60)
COLUMNS = ("account", "text", "amount")


def test_rows_behind_a_key(table: Callable[..., Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        ("100", "x", "5.00"),
        ("100", "x", "5.00"),
        ("100", "y", "7.00"),
        (None, "z", "1.00"),
        ("200", None, "2.00"),
    ]
    a, b = table("a", rows, columns=COLUMNS), table("b", [("100", "q", "7.00")], columns=COLUMNS)
    catalog = Catalog([a, b], tmp_path)
    found = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"account": "100"}), bounds=QUICK)
    assert (found.a.total_rows, found.a.total, found.pairs) == (3, Decimal("17.00"), 1)
    assert [(line.values["text"], line.times) for line in found.a.rows] == [("x", 2), ("y", 1)]
    assert [line.amount for line in found.a.rows] == [Decimal("5.00"), Decimal("7.00")]
    none = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"account": None}), bounds=QUICK)
    assert [line.values for line in none.a.rows] == [{"account": None, "text": "z", "amount": "1"}]
    monkeypatch.setattr(drilling, "_MOST_FETCHED", 2)
    with pytest.raises(AnalystError, match="has 3 rows behind this key"):
        drill(catalog, DrillRequest(source_a="a", source_b="b", key={"account": "100"}), bounds=QUICK)


def test_rows_below_a_group(table: Callable[..., Source], tmp_path: Path) -> None:
    """The table of what is below it was made once more for the rows, under the name of that for their number."""
    rows = [("100", "x", "5.00"), ("200", "y", "7.00"), ("300", "x", "1.00")]
    a, b = table("a", rows, columns=COLUMNS), table("b", rows[1:], columns=COLUMNS)
    tree = table("tree", [("Low", "100", "1"), ("Low", "200", "1")], columns=("group", "member", "amount"))
    hierarchy = Hierarchy(name="h", of="account", source="tree", group="group", member="member")
    request = DrillRequest(
        source_a="a", source_b="b", key={"text": "x"}, filters=[Filter(dimension="account", op="under", value="Low")]
    )
    found = drill(Catalog([a, b, tree], tmp_path, hierarchies=[hierarchy]), request, bounds=QUICK)
    assert [line.values["account"] for line in found.a.rows] == ["100"]
    assert found.b.rows == ()


def test_row_by_row(table: Callable[..., Source], tmp_path: Path) -> None:
    a = table("a", [("1", "x", "1"), ("2", None, "1"), ("3", "z", "1"), ("3", "z", "1")], columns=COLUMNS)
    b = table("b", [("1", "x", "9"), ("2", "n", "1"), ("3", "z", "1"), ("4", "q", "1")], columns=COLUMNS)
    found = compare_rows(
        Catalog([a, b], tmp_path), RowsRequest(source_a="a", source_b="b", key=["account"]), bounds=QUICK
    )
    assert (found.keys, found.equal, found.differing, found.missing_in_a, found.repeated) == (4, 1, 1, 1, 1)
    (column,) = found.columns
    assert [(one.key, one.a, one.b) for one in column.examples] == [({"account": "2"}, None, "n")]


def test_decimals_that_are_texts_have_no_noughts_at_their_end(table: Callable[..., Source], tmp_path: Path) -> None:
    """A number of more than ten decimals was told with all that its column has, unlike the same in a file."""
    kinds = ("numeric(18,12)", "numeric", "numeric(18,2)")
    a = table("a", [("1.6", "0.50", "1"), ("0", "0.5", "1")], columns=("rate", "share", "amount"), types=kinds)
    b = table("b", [("1.6", "0.5", "1"), ("0", "0.5", "1")], columns=("rate", "share", "amount"))
    found = compare_rows(Catalog([a, b], tmp_path), RowsRequest(source_a="a", source_b="b", key=["rate"]), bounds=QUICK)
    assert (found.keys, found.equal) == (2, 2)


def test_rows_with_money_in_them(table: Callable[..., Source], tmp_path: Path) -> None:
    """No row of such a table could be shown, and none be looked into, whichever column was asked for."""
    kinds = ("text", "money", "money")
    a = table("a", [("1", "1.50", "2.25"), ("1", None, "-7")], columns=("k", "fee", "amount"), types=kinds)
    b = table("b", [("1", "1.5", "2.25")], columns=("k", "fee", "amount"))
    catalog = Catalog([a, b], tmp_path)
    found = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"k": "1"}), bounds=QUICK)
    assert [line.values for line in found.a.rows] == [
        {"k": "1", "fee": None, "amount": "-7"},
        {"k": "1", "fee": "1.5", "amount": "2.25"},
    ]
    assert (found.a.total, found.pairs) == (Decimal("-4.75"), 1)
    rows = compare_rows(
        catalog,
        RowsRequest(source_a="a", source_b="b", key=["k"], filters=[Filter(dimension="fee", value="1.5")]),
        bounds=QUICK,
    )
    assert (rows.keys, rows.equal) == (1, 1)
