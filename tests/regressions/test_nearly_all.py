"""Percentages that are rounded: what is not all of something is not told as 100 %."""

import re
from pathlib import Path

import pytest

from treadle.analyst import Catalog, CompareRequest, compare
from treadle.cli.app import run

SOURCES = """\
sources:
  a: {kind: csv, path: a.csv, dimensions: {g: {}, k: {}}, measures: {v: {unit: EUR}}}
  b: {kind: csv, path: b.csv, dimensions: {g: {}, k: {}}, measures: {v: {unit: EUR}}}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "s.yaml").write_text(SOURCES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(place: Path, one: str, other: str) -> None:
    """Two groups that differ, one of them by next to nothing."""
    (place / "a.csv").write_text("g,k,v\nX,1,1000000.00\nY,2,100.00\n")
    (place / "b.csv").write_text(f"g,k,v\nX,1,{one}\nY,2,{other}\n")


def test_a_part_of_the_differences_that_is_not_all_is_not_100_percent(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """99.997 % of A, and 99.999 % of all differences, stood as 100.00 beside the other group that differs."""
    written(place, "30.00", "92.00")
    assert run(["compare", "a", "b", "--sources", "s.yaml", "--by", "g,k", "--html", "o.html"]) == 0
    shown = capsys.readouterr().out
    assert ">99.99 " in shown
    assert ">99.9 %" in shown
    assert not re.search(r"\b100\.00? ?%|100\.00  +█", shown)
    page = (place / "o.html").read_text()
    assert "&gt; 99.99" in page


@pytest.mark.parametrize(("one", "other", "share"), [("0.00", "99.99", 99.9999), ("0.00", "100.00", 100.0)])
def test_100_percent_of_the_differences_are_all_of_them(place: Path, one: str, other: str, share: float) -> None:
    written(place, one, other)
    request = CompareRequest(source_a="a", source_b="b", dimensions=["g", "k"], tolerance=0)
    found = compare(Catalog.load("s.yaml"), request)
    assert found.by_dimension["g"][0].share == share


def test_all_of_the_keys_of_a_class_but_one_are_not_100_percent_of_them(place: Path) -> None:
    """The page told 29,999 of 30,000 keys as 100.00 % of them."""
    keys = range(30_000)
    (place / "a.csv").write_text("g,k,v\n" + "".join(f"X,{key},100.00\n" for key in keys))
    (place / "b.csv").write_text("g,k,v\nX,0,100.00\n" + "".join(f"X,{key},50.00\n" for key in keys if key))
    assert run(["compare", "a", "b", "--sources", "s.yaml", "--by", "k", "--html", "o.html"]) == 0
    classes = (place / "o.html").read_text().partition("% of keys")[2].partition("</table>")[0]
    assert "29,999" in classes
    assert "&gt; 99.99" in classes
    assert "100.00" not in classes
