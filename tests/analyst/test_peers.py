"""Where pandas is exact, in whole cents, it finds the same: figures, differences and what is missing, key by key."""

from decimal import Decimal
from pathlib import Path

import duckdb
import numpy
import pandas
import pytest

from treadle.analyst import Bounds, Catalog, CompareRequest, Dimension, Measure, Source, compare

KEYS = ["company", "account"]


def table(seed: int, rows: int, companies: int) -> pandas.DataFrame:
    random = numpy.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "company": random.integers(1000, 1000 + companies, rows).astype(str),
            "account": random.integers(400_000, 400_040, rows).astype(str),
            "cents": random.integers(-(10**9), 10**9, rows),
        }
    )


def source(folder: Path, name: str, frame: pandas.DataFrame) -> Source:
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute(
            "COPY (SELECT company, account, (cents::DECIMAL(18, 0) / 100::DECIMAL(3, 0))::DECIMAL(18, 2) AS amount, "
            f"cents FROM frame) TO '{folder / name}.parquet' (FORMAT parquet)"
        )
    dimensions = tuple(Dimension(name=key) for key in KEYS)
    measures = (Measure(name="cents"), Measure(name="most", column="cents", aggregation="max"))
    return Source(name=name, kind="parquet", path=f"{name}.parquet", dimensions=dimensions, measures=measures)


@pytest.mark.parametrize(("rows_a", "rows_b"), [(5000, 5000), (300, 4000), (0, 50)])
@pytest.mark.parametrize(("measure", "how"), [("cents", "sum"), ("most", "max")])
def test_pandas_finds_the_same(tmp_path: Path, rows_a: int, rows_b: int, measure: str, how: str) -> None:
    frames = [table(1, rows_a, 9), table(2, rows_b, 12)]
    if rows_a == rows_b:
        frames[1] = pandas.concat([frames[0].iloc[: rows_a // 2], frames[1].iloc[:20]])
    catalog = Catalog([source(tmp_path, name, frame) for name, frame in zip("ab", frames, strict=True)], tmp_path)
    asked = CompareRequest(source_a="a", source_b="b", measures=[measure], dimensions=KEYS, tolerance=Decimal(0))
    found = compare(catalog, asked, bounds=Bounds(threads=1))

    sides = [frame.groupby(KEYS, as_index=False)["cents"].agg(how) for frame in frames]
    merged = sides[0].merge(sides[1], on=KEYS, how="outer", suffixes=("_a", "_b"), indicator=True)
    # The nullable type keeps whole numbers whole where a key is missing.
    a, b = (merged[f"cents_{side}"].astype("Int64") for side in "ab")
    expected = {
        (company, account): (None if pandas.isna(x) else int(x), None if pandas.isna(y) else int(y))
        for company, account, x, y in zip(merged["company"], merged["account"], a, b, strict=True)
    }
    assert {
        (row.key["company"], row.key["account"]): (
            None if row.source_a_value is None else int(row.source_a_value),
            None if row.source_b_value is None else int(row.source_b_value),
        )
        for row in found.rows
    } == expected
    summary = found.summary
    assert summary.total_absolute_diff == int((a.fillna(0) - b.fillna(0)).abs().sum())
    assert summary.matches == int((a == b).fillna(False).sum())
    assert summary.missing_in_b == int((merged["_merge"] == "left_only").sum())
    assert summary.missing_in_a == int((merged["_merge"] == "right_only").sum())
