"""Excel files that are written: numbers where no digit is lost, text elsewhere, and no formulas."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import AnalystError, Catalog, CompareRequest, QueryRequest, compare, query

calamine = pytest.importorskip("python_calamine")
pytest.importorskip("xlsxwriter")

D = Decimal


def sheet(path: Path, name: str) -> list[list[Any]]:
    return calamine.CalamineWorkbook.from_path(str(path)).get_sheet_by_name(name).to_python()


def test_a_query(make: Any, tmp_path: Path) -> None:
    rows = [("=1+1", "1.50"), ("0100", "12345678901234.56"), (None, "-7.25"), ("ä", "123456789.125")]
    source = make("s", rows, decimals=3)
    query(
        Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"]), exports=[tmp_path / "out.xlsx"]
    )
    assert sheet(tmp_path / "out.xlsx", "figures") == [
        ["company", "amount"], ["0100", "12345678901234.560"], ["=1+1", 1.5], ["ä", 123456789.125], ["", -7.25],
    ]  # fmt: skip


def test_a_comparison(make: Any, tmp_path: Path) -> None:
    a, b = make("a", [("x", "10.00"), ("y", "5.00")]), make("b", [("x", "10.00"), ("z", "1.00")])
    compare(Catalog([a, b], tmp_path), CompareRequest(source_a="a", source_b="b"), exports=[tmp_path / "out.xlsx"])
    told = dict(line[:2] for line in sheet(tmp_path / "out.xlsx", "summary"))
    assert (told["A"], told["matches"], told["total_source_a"]) == ("a", 1, 15)
    found = sheet(tmp_path / "out.xlsx", "differences")
    assert found[0][:4] == ["measure", "company", "source_a_value", "source_b_value"]
    assert [line[1] for line in found[1:]] == ["y", "z", "x"]


@pytest.mark.parametrize("name", ["x.parquet", "x.html", "x.txt"])
def test_a_query_is_written_to_no_other_kind(make: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(AnalystError, match=r"cannot be written|is written to"):
        query(Catalog([make("s", [("x", "1")])], tmp_path), QueryRequest(source="s"), exports=[tmp_path / name])
    assert not (tmp_path / name).exists()


def test_a_file_is_left_alone_if_anything_fails(make: Any, tmp_path: Path) -> None:
    (tmp_path / "out.xlsx").write_text("old")
    source = make("s", [("x", "one")])
    with pytest.raises(AnalystError, match="no number"):
        query(Catalog([source], tmp_path), QueryRequest(source="s"), exports=[tmp_path / "out.xlsx"])
    assert (tmp_path / "out.xlsx").read_text() == "old"
