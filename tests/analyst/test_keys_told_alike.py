"""A key has one form in all that is told of it: in results, in files, and in the rows behind it."""

import csv
import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from treadle.analyst import (
    Catalog,
    CompareRequest,
    Dimension,
    DrillRequest,
    Measure,
    QueryRequest,
    Source,
    compare,
    drill,
    query,
)

from .conftest import QUICK

pytestmark = pytest.mark.usefixtures("one_engine")

KEYS: dict[str, tuple[pa.DataType, Sequence[Any], list[str]]] = {
    "timestamp": (
        pa.timestamp("us"),
        [datetime(2024, 1, 31, 10, microsecond=500_000), datetime(2024, 1, 31, 10), datetime(2024, 1, 31),
         datetime(1, 1, 1, second=1)],
        ["0001-01-01T00:00:01", "2024-01-31T00:00:00", "2024-01-31T10:00:00", "2024-01-31T10:00:00.500000"],
    ),
    "decimal": (
        pa.decimal128(12, 3),
        [Decimal("2.000"), Decimal("-0.500"), Decimal("10.125")],
        ["-0.5000000000", "10.1250000000", "2.0000000000"],
    ),
}  # fmt: skip


def lines(path: Path) -> list[str]:
    with path.open(newline="") as opened:
        return sorted(line["k"] for line in csv.DictReader(opened))


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_has_one_form(tmp_path: Path, kind: str) -> None:
    type_, values, told = KEYS[kind]
    rows = pa.table({"k": pa.array(values, type_), "v": [1] * len(values)})
    sources = [Source(name=name, kind="frame", dimensions=(Dimension(name="k"),), measures=(Measure(name="v"),))
               for name in "ab"]  # fmt: skip
    catalog = Catalog(sources, tmp_path, frames=dict.fromkeys("ab", rows))
    files = [tmp_path / f"compared.{ending}" for ending in ("csv", "json")]
    found = compare(catalog, CompareRequest(source_a="a", source_b="b", dimensions=["k"]), bounds=QUICK, exports=files)
    asked = QueryRequest(source="a", dimensions=["k"])
    answer = query(catalog, asked, bounds=QUICK, exports=[tmp_path / "asked.csv"])
    assert sorted(row["key"]["k"] for row in json.loads(json.dumps(found.to_dict(rows=True)))["rows"]) == told
    assert sorted(row["k"] for row in json.loads(json.dumps(answer.to_dict()))["rows"]) == told
    assert lines(files[0]) == told
    assert lines(tmp_path / "asked.csv") == told
    assert sorted(row["key"]["k"] for row in json.loads(files[1].read_text())["rows"]) == told
    if kind == "decimal":
        for row in found.rows:
            behind = drill(catalog, DrillRequest(source_a="a", source_b="b", key=row.key), bounds=QUICK)
            assert [line.values["k"] for line in behind.a.rows] == [str(row.key["k"])]
