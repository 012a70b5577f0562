"""A comparison that can be computed is not refused for a hint that cannot: factors are looked for by multiplying."""

from pathlib import Path

import duckdb
import pytest

from treadle.analyst import Catalog, CompareRequest, Dimension, Measure, Source, compare


@pytest.mark.parametrize(("scale", "whole"), [(20, 5 * 10**15), (15, 5 * 10**20), (15, 10**20 - 10), (2, 10**25)])
def test_amounts_of_many_digits_are_compared(tmp_path: Path, scale: int, whole: int) -> None:
    for name, step in (("a", 1), ("b", 2)):
        value = f"CAST('{whole}' AS DECIMAL(38, {scale})) + i * {step}"
        duckdb.sql(f"COPY (SELECT i AS k, {value} AS v FROM range(5) t(i)) TO '{tmp_path / name}.parquet'")
    sources = [
        Source(
            name=name,
            kind="parquet",
            path=f"{name}.parquet",
            dimensions=(Dimension(name="k"),),
            measures=(Measure(name="v"),),
        )
        for name in "ab"
    ]
    found = compare(Catalog(sources, tmp_path), CompareRequest(source_a="a", source_b="b"))
    assert found.summary.differences == 4
    assert found.summary.total_absolute_diff == 10
