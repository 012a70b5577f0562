"""What used to end in a traceback, or in a refusal of data that are in order, on every engine."""

from decimal import Decimal
from typing import Any

import pytest

from treadle.analyst import Filter

from .conftest import in_turn

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
ALL = ("csv", "json", "sqlite", "parquet", "duckdb", "frame", "postgres", "alchemy-postgres", "alchemy-sqlite")
ROWS = [("x", "5", "1"), ("y", "5", "20"), ("x", "9", "300"), (None, "5", "4000")]
SHAPE: dict[str, Any] = {
    "columns": ("key", "scenario", "amount"),
    "types": ("text", "text", "integer"),
    "decimals": 0,
}


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize("sides", ["a", "b", "ab"])
def test_default_filters_of_either_side(world: Any, engine: str, sides: str) -> None:
    for name in "ab":
        world.lay(engine, name, ROWS, **SHAPE)
        if name in sides:
            world.change(name, default_filters=(Filter(dimension="scenario", value="5"),))
    found = world.confront(dimensions=["key"])
    whole, held = {"x": 301, "y": 20, None: 4000}, {"x": 1, "y": 20, None: 4000}
    expected = {key: ((held if "a" in sides else whole)[key], (held if "b" in sides else whole)[key]) for key in whole}
    assert {row.key["key"]: (row.source_a_value, row.source_b_value) for row in found.rows} == expected
    assert found.filters_a == (("scenario = 5",) if "a" in sides else ())
    assert found.filters_b == (("scenario = 5",) if "b" in sides else ())


@pytest.mark.parametrize("engine", ALL)
def test_a_default_filter_on_a_column_that_the_other_side_lacks(world: Any, engine: str) -> None:
    world.lay(engine, "a", [("x", "1"), ("y", "20")], types=("text", "integer"), decimals=0)
    world.lay(engine, "b", ROWS, **SHAPE)
    world.change("b", default_filters=(Filter(dimension="scenario", op=">=", value="9"),))
    found = world.confront()
    assert {row.key["key"]: row.source_b_value for row in found.rows} == {"x": 300, "y": None}


@pytest.mark.parametrize("engine", ALL)
def test_a_default_filter_gives_way_to_one_that_is_asked_for(world: Any, engine: str) -> None:
    for name in "ab":
        world.lay(engine, name, ROWS, **SHAPE)
    world.change("b", default_filters=(Filter(dimension="scenario", value="5"),))
    found = world.confront(dimensions=["key"], filters={"scenario": "9"})
    assert [(row.key["key"], row.source_a_value, row.source_b_value) for row in found.rows] == [("x", 300, 300)]


NOWHERE: list[dict[str, Any]] = [
    {"dimension": "scenario", "value": "7"},
    {"dimension": "scenario", "op": "in", "value": ["7", "8"]},
    {"dimension": "scenario", "op": "like", "value": "7%"},
    {"dimension": "scenario", "op": "between", "value": ["7", "8"]},
    {"dimension": "scenario", "op": "is null"},
]
EMPTY = [
    pytest.param(engine, empty, where, id=f"{where.get('op', '=')}-{empty}-{engine}")
    for at, where in enumerate(NOWHERE)
    for number, empty in enumerate(("a", "b", "ab"), at)
    for engine in ALL
    if in_turn(engine, number)
]


@pytest.mark.parametrize(("engine", "empty", "where"), EMPTY)
def test_a_side_without_rows(world: Any, engine: str, empty: str, where: dict[str, Any]) -> None:
    held = [("x", None if where.get("op") == "is null" else "7", "1")]
    for name in "ab":
        world.lay(engine, name, ROWS if name in empty else [*ROWS, *held], **SHAPE)
    found = world.confront(dimensions=["key"], filters=[where])
    totals = (found.summary.total_source_a, found.summary.total_source_b)
    assert totals == tuple(None if name in empty else D(1) for name in "ab")
    told = [finding.message for finding in found.warnings if finding.kind == "no_rows"]
    assert told == [f"{name} has no row that passes the filters" for name in empty]


@pytest.mark.parametrize("engine", ALL)
def test_a_source_without_any_row(world: Any, engine: str) -> None:
    world.lay(engine, "a", ROWS, **SHAPE)
    world.lay(engine, "b", [], **SHAPE)
    found = world.confront(dimensions=["key"], filters={"scenario": "5"})
    assert found.summary.missing_in_b == 3
    assert world.total("b") is None


@pytest.mark.parametrize("engine", ALL)
def test_groups_of_nulls(world: Any, engine: str) -> None:
    rows = [("x", None), ("x", None), ("y", "1"), (None, None)]
    for name in "ab":
        world.lay(engine, name, rows, types=("text", "integer"), decimals=0)
    assert world.by_key() == {"x": None, "y": 1, None: None}
    found = world.confront()
    assert (found.summary.total_rows, found.summary.matches, found.summary.total_source_a) == (3, 3, D(1))
    world.change("a", measures=tuple(_as(measure, "avg") for measure in world.sources["a"].measures))
    assert world.by_key() == {"x": None, "y": 1, None: None}


def _as(measure: Any, aggregation: str) -> Any:
    from msgspec.structs import replace

    return replace(measure, aggregation=aggregation)


EMPTY_COLUMNS = [
    pytest.param({"key": ["x", "y"], "amount": [None, None]}, {"x": None, "y": None}, id="amounts"),
    pytest.param({"key": [None, None], "amount": [1, 2]}, {None: D(3)}, id="keys"),
    pytest.param({"key": [None, None], "amount": [None, None]}, {None: None}, id="both"),
]


@pytest.mark.parametrize(("data", "expected"), EMPTY_COLUMNS)
@pytest.mark.parametrize("engine", ["arrow", "pandas", "polars", "parquet", "duckdb-view"])
def test_columns_without_any_value(
    world: Any, engine: str, data: dict[str, list[Any]], expected: dict[Any, Any]
) -> None:
    _lay_columns(world, engine, "a", data)
    _lay_columns(world, engine, "b", data)
    assert world.by_key() == expected
    assert world.by_key(filters=[{"dimension": "key", "op": "is not null"}]) == {
        key: value for key, value in expected.items() if key is not None
    }
    found = world.confront()
    assert {row.key["key"]: (row.source_a_value, row.status) for row in found.rows} == {
        key: (value, "match") for key, value in expected.items()
    }
    for aggregation in ("avg", "min", "count"):
        world.change("a", measures=tuple(_as(measure, aggregation) for measure in world.sources["a"].measures))
        assert set(world.by_key()) == set(expected)


@pytest.mark.parametrize("first", [0, 1])
def test_a_file_of_several_whose_column_is_empty(world: Any, first: int) -> None:
    import pyarrow
    import pyarrow.parquet

    from treadle.analyst import Dimension, Measure, Source

    tables = [{"key": ["x"], "amount": [None]}, {"key": ["y"], "amount": [D("1.50")]}]
    for at, data in enumerate(tables):
        pyarrow.parquet.write_table(pyarrow.table(data), world.folder / f"m{(at + first) % 2}.parquet")
    world.sources["a"] = Source(
        name="a",
        kind="parquet",
        path="m*.parquet",
        dimensions=(Dimension(name="key"),),
        measures=(Measure(name="amount"),),
    )
    assert world.by_key() == {"x": None, "y": D("1.50")}


def _lay_columns(world: Any, engine: str, name: str, data: dict[str, list[Any]]) -> None:
    import duckdb
    import pyarrow
    import pyarrow.parquet

    from treadle.analyst import Dimension, Measure, Source

    place: dict[str, Any] = {"kind": "frame"}
    match engine:
        case "arrow":
            world.frames[name] = pyarrow.table(data)
        case "pandas":
            world.frames[name] = pytest.importorskip("pandas").DataFrame(data)
        case "polars":
            world.frames[name] = pytest.importorskip("polars").DataFrame(data)
        case "parquet":
            pyarrow.parquet.write_table(pyarrow.table(data), world.folder / f"{name}.parquet")
            place = {"kind": "parquet", "path": f"{name}.parquet"}
        case _:
            rows = zip(*data.values(), strict=True)
            cells = ["SELECT " + ", ".join("NULL" if cell is None else repr(cell) for cell in row) for row in rows]
            (world.folder / f"{name}.duckdb").unlink(missing_ok=True)
            with duckdb.connect(str(world.folder / f"{name}.duckdb")) as connection:
                connection.execute(f"CREATE VIEW t(key, amount) AS {' UNION ALL '.join(cells)}")
            place = {"kind": "duckdb", "path": f"{name}.duckdb", "table": "t"}
    world.sources[name] = Source(
        name=name, dimensions=(Dimension(name="key"),), measures=(Measure(name="amount"),), **place
    )


def test_columns_of_types_that_the_engine_lacks() -> None:
    import pyarrow

    from treadle.analyst import AnalystError, Catalog, QueryRequest, query

    half = pyarrow.array([1.5, None, 2.25]).cast(pyarrow.float16())
    wide = pyarrow.array([D("1.50"), None, D("2.25")], pyarrow.decimal256(60, 10))
    found = query(
        Catalog.of({"a": pyarrow.table({"k": ["x", "y", "z"], "half": half, "wide": wide})}), QueryRequest(source="a")
    )
    assert found.totals == {"half": D("3.75"), "wide": D("3.75")}
    large = pyarrow.array([D("1e40")], pyarrow.decimal256(60, 10))
    with pytest.raises(AnalystError, match="cannot be held exactly"):
        Catalog.of({"a": pyarrow.table({"k": ["x"], "large": large})})
