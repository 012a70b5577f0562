"""Two tables that hold each key once are joined; what is found is what the aggregate finds."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.analyst import Bounds, Catalog, CompareRequest, Comparison, Dimension, Measure, Source, compare

from .conftest import database

pytestmark = pytest.mark.usefixtures("one_engine")

MEASURES = (
    Measure(name="v"),
    Measure(name="mean", column="v", aggregation="avg"),
    Measure(name="least", column="v", aggregation="min"),
    Measure(name="most", column="v", aggregation="max", sign=-1),
    Measure(name="some", column="v", aggregation="count"),
    Measure(name="rows", column="*", aggregation="count"),
    Measure(name="f"),
    Measure(name="t"),
)
AMOUNTS = st.none() | st.decimals(-(10**6), 10**6, places=2)
ROWS = st.dictionaries(
    st.tuples(st.sampled_from(["", "a", "b", "a ", "ä", "1", "01"]), st.integers(0, 3)),
    st.tuples(AMOUNTS, st.none() | st.floats(-1e6, 1e6), st.sampled_from([None, "1", "2.5", "1e-9", " 3 "])),
    max_size=12,
)


def made(folder: Path, name: str, definition: str, rows: Sequence[tuple[Any, ...]]) -> None:
    with database(folder / f"{name}.duckdb") as connection:
        connection.execute(definition)
        if rows:
            connection.executemany(f"INSERT INTO x VALUES ({', '.join('?' * len(rows[0]))})", rows)


def source(name: str, *dimensions: str, measures: Sequence[Measure] = (Measure(name="v"),)) -> Source:
    return Source(
        name=name,
        kind="duckdb",
        path=f"{name}.duckdb",
        table="x",
        dimensions=tuple(Dimension(name=dimension) for dimension in dimensions),
        measures=tuple(measures),
    )


def compared(folder: Path, a: Source, b: Source, told: list[str] | None = None, **asked: Any) -> Comparison:
    request = CompareRequest(source_a=a.name, source_b=b.name, **asked)
    tell = None if told is None else told.append
    return compare(Catalog([a, b], folder), request, bounds=Bounds(threads=1), tell=tell)


@settings(max_examples=deep(3), deadline=None)
@given(ROWS, ROWS, st.sampled_from([None, {"k": "a"}, {"n": [1, 2]}]))
def test_a_join_finds_what_the_aggregate_finds(a: dict[Any, Any], b: dict[Any, Any], filters: Any) -> None:
    found = []
    for constraint in (", PRIMARY KEY (k, n)", ""):
        with TemporaryDirectory() as place:
            folder = Path(place)
            definition = f"CREATE TABLE x (k VARCHAR, n INTEGER, v DECIMAL(18, 2), f DOUBLE, t VARCHAR{constraint})"
            for name, rows in (("a", a), ("b", b)):
                made(folder, name, definition, [(*key, *values) for key, values in rows.items()])
            sources = [source(name, "k", "n", measures=MEASURES) for name in "ab"]
            told: list[str] = []
            asked = {"filters": filters} if filters else {}
            found.append(compared(folder, *sources, told=told, dimensions=["k", "n"], **asked).to_dict(rows=True))
            assert any("once" in one for one in told) == bool(constraint)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("definition", "dimensions", "joined"),
    [
        ("k VARCHAR PRIMARY KEY, l VARCHAR, v INTEGER", ["k"], True),
        ("k VARCHAR PRIMARY KEY, l VARCHAR, v INTEGER", ["k", "l"], True),
        ("k VARCHAR PRIMARY KEY, l VARCHAR, v INTEGER", ["l"], False),
        ("k VARCHAR PRIMARY KEY, l VARCHAR, v INTEGER", [], False),
        ("k VARCHAR NOT NULL UNIQUE, l VARCHAR, v INTEGER", ["k"], True),
        ("k VARCHAR UNIQUE, l VARCHAR, v INTEGER", ["k"], False),
        ("k VARCHAR COLLATE NOCASE PRIMARY KEY, l VARCHAR, v INTEGER", ["k"], False),
        ("k VARCHAR, l VARCHAR, v INTEGER, PRIMARY KEY (k, l)", ["k"], False),
        ("k DATE PRIMARY KEY, l VARCHAR, v INTEGER", ["k"], True),
        ("k DOUBLE PRIMARY KEY, l VARCHAR, v INTEGER", ["k"], False),
    ],
)
def test_only_keys_that_are_held_to_be_unique_are_joined(
    tmp_path: Path, definition: str, dimensions: list[str], joined: bool
) -> None:
    for name in "ab":
        made(tmp_path, name, f"CREATE TABLE x ({definition})", [])
    told: list[str] = []
    compared(tmp_path, source("a", "k", "l"), source("b", "k", "l"), told, dimensions=dimensions)
    assert any("once" in one for one in told) == joined


def test_keys_that_a_spelling_brings_together_are_added_up(tmp_path: Path) -> None:
    from msgspec.structs import replace

    from treadle.analyst import parse_format

    for name in "ab":
        made(tmp_path, name, "CREATE TABLE x (k VARCHAR PRIMARY KEY, v INTEGER)", [("1", 2), ("001", 3)])
    a = replace(source("a", "k"), dimensions=(Dimension(name="k", format=parse_format("alpha(4)")),))
    found = compared(tmp_path, a, source("b", "k"))
    assert (found.summary.total_rows, found.rows[0].rows_a, str(found.rows[0].source_a_value)) == (1, 2, "5")
