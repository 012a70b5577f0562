"""The SQL that is shown runs as it stands, also where the sources are DuckDB files; frames fail in words."""

from pathlib import Path

import duckdb
import pytest

from treadle.analyst import AnalystError, Catalog, CompareRequest, QueryRequest, compare, query


def test_statements_over_duckdb_files_attach_them(tmp_path: Path) -> None:
    for name, more in (("a", 0), ("b'c", 1)):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as made:
            made.execute(
                f"CREATE TABLE t AS SELECT 'k' || i AS k, (i + {more})::DECIMAL(18, 2) AS amount FROM range(3) r(i)"
            )
    one = '  {0}: {{kind: duckdb, path: "{1}.duckdb", table: t, dimensions: {{k: {{}}}}, measures: {{amount: {{}}}}}}\n'
    (tmp_path / "sources.yaml").write_text(
        f"sources:\n{one.format('a', 'a')}{one.format('b', chr(98) + chr(39) + 'c')}"
    )
    catalog = Catalog.load(tmp_path / "sources.yaml")
    found = compare(catalog, CompareRequest(source_a="a", source_b="b"))
    with duckdb.connect() as engine:
        for statement in found.sql:
            engine.execute(statement)
        assert [engine.execute(claim.sql).fetchall() for claim in found.claims if claim.sql]
    asked = query(catalog, QueryRequest(source="b", dimensions=["k"]))
    with duckdb.connect() as engine:
        for statement in asked.sql:
            engine.execute(statement)
        assert engine.execute("SELECT v0 FROM figures WHERE total = 1").fetchone() == (asked.totals["amount"],)


def test_a_frame_with_numbers_beyond_64_bits_is_refused_in_words() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"k": ["x", "y"], "amount": [10**37, 1]})
    with pytest.raises(AnalystError, match="the frame cannot be held exactly"):
        Catalog.of({"a": frame})
