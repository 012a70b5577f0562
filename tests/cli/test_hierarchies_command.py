"""Subtotals of hierarchies on the command line, on the page, and in checks."""

import json
from pathlib import Path
from typing import Any

import pytest
from declared import COMPANIES

TREE = ("--subtotals", "tree", "--sources", "sources.yaml")
CHECKS = """\
checks:
  companies: {compare: [a, b], by: [company], subtotals: tree, tolerance: {absolute: 1}}
  keys alone: {compare: [a, b], by: [company], tolerance: {absolute: 1}}
"""


@pytest.fixture
def place(treadle: Any) -> Path:
    """Every key matches within 1, and the totals do; those of Europe are 2.70 apart."""
    folder: Path = treadle.folder
    (folder / "sources.yaml").write_text(COMPANIES)
    (folder / "checks.yaml").write_text(CHECKS)
    (folder / "a.csv").write_text("company,amount\n1,10\n2,20\n3,30\n4,0\n5,1\n6,1\n")
    (folder / "b.csv").write_text("company,amount\n1,10.90\n2,20.90\n3,30.90\n4,-0.9\n5,0.1\n6,0.1\n")
    return folder


def test_subtotals_of_a_comparison(treadle: Any, place: Path) -> None:
    done = treadle("compare", "a", "b", *TREE, "--tolerance", "1", "--html", "page.html", "--xlsx", "book.xlsx")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert ["Group", "60.00", "61.80", "-1.80", "3.00", "0", "of", "4", "major_diff"] in lines
    assert ["·", "Europe", "60.00", "62.70", "-2.70", "4.50", "0", "of", "3", "major_diff"] in lines
    assert ["in", "no", "group", "2.00", "0.20", "1.80", "90.00", "0", "of", "2", "major_diff"] in lines
    assert "company 5, 6 are in no group of hierarchy tree" in done.out
    page = (place / "page.html").read_text()
    assert "Subtotals of tree" in page
    assert "· <bdi>Europe</bdi>" in page
    assert (place / "book.xlsx").exists()
    found = json.loads(treadle("compare", "a", "b", *TREE, "--json").out)
    assert [(one["group"], one["parent"], one["source_b_value"]) for one in found["subtotals"]["tree"]] == [
        ("Group", None, "61.80"), ("Europe", "Group", "62.70"), (None, None, "0.20"),
    ]  # fmt: skip


def test_subtotals_of_a_query(treadle: Any, place: Path) -> None:
    asked = ("query", "a", "--by", "company", *TREE)
    found = json.loads(treadle(*asked, "--json").out)
    assert [(one["group"], one["figures"]["amount"]) for one in found["subtotals"]["tree"]] == [
        ("Group", "60.00"), ("Europe", "60.00"), (None, "2.00"),
    ]  # fmt: skip
    assert treadle(*asked).out.count("· Europe") == 1
    assert "hierarchy  tree" in treadle("sources", "a", "--sources", "sources.yaml").out
    assert treadle("query", "a", *TREE).code != 0


def test_a_check_fails_by_a_subtotal_that_is_worse_than_every_key(treadle: Any, place: Path) -> None:
    done = treadle("check", "checks.yaml", "--no-history", "--json", "found.json")
    assert done.code == 6
    first, second = done.out.splitlines()[:2]
    assert first.startswith(
        "failed   companies: 6 of 6 keys match (100 %): the subtotals of Group come out worse than any"
    )
    assert second.startswith("passed   keys alone")
    found = json.loads((place / "found.json").read_text())["verdicts"][0]["comparison"]
    assert [one["group"] for one in found["subtotals"]["tree"]] == ["Group", "Europe", None]
