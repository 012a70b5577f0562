"""Columns with names that the analyst itself uses for counts."""

from pathlib import Path

import pytest

from treadle.analyst import AnalystError, Catalog, Measure, QueryRequest, declaration, propose, query


def test_a_column_called_as_all_rows_is_not_added_up_as_their_number(tmp_path: Path) -> None:
    """`sources init` proposed it as a measure, whose total was then the number of rows: 2 for 2 and 3."""
    (tmp_path / "s.csv").write_text('k,"*",v\nx,2,1.5\ny,3,2.5\n')
    written = declaration([(tmp_path / "s.csv", one) for one in propose(tmp_path / "s.csv")], tmp_path)
    assert "# numbers, but a column called * cannot be added up: rename it" in written
    (tmp_path / "sources.yaml").write_text(written)
    found = query(Catalog.load(tmp_path / "sources.yaml"), QueryRequest(source="s"))
    assert {name: str(value) for name, value in found.totals.items()} == {"v": "4.00"}


@pytest.mark.parametrize("declared", ['{column: "*"}', '{column: "*", aggregation: max}', "{expression: '\"*\" * 2'}"])
def test_whole_rows_are_counted_and_nothing_else(tmp_path: Path, declared: str) -> None:
    (tmp_path / "s.csv").write_text('k,"*"\nx,2\n')
    (tmp_path / "sources.yaml").write_text(
        f"sources:\n  s: {{kind: csv, path: s.csv, dimensions: {{k: {{}}}}, measures: {{n: {declared}}}}}\n"
    )
    with pytest.raises(AnalystError, match="can be counted and not added up"):
        Catalog.load(tmp_path / "sources.yaml")
    with pytest.raises(ValueError, match="can be counted and not added up"):
        Measure(name="n", column="*", aggregation="avg")
