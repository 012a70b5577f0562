"""Small sources in a temporary folder, made of rows in Python."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from depth import DEPTH

from treadle.analyst import (
    Bounds,
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    Measure,
    Source,
    compare,
    parse_format,
    sample_catalog,
)

from .formulas import Formulas
from .one_engine import OneEngine

Rows = Sequence[tuple[Any, ...]]
QUICK = Bounds(threads=1, seconds=60)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return sample_catalog(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="session")
def _one(tmp_path_factory: pytest.TempPathFactory) -> OneEngine:
    return OneEngine(tmp_path_factory.getbasetemp())


@pytest.fixture
def one_engine(_one: OneEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has what is asked answered by one engine; `make properties` has an engine opened for each question."""
    if DEPTH <= 1:
        monkeypatch.setattr(duckdb, "connect", _one.connect)


def named(column: str) -> str:
    return '"{}"'.format(column.replace('"', '""'))


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Quotes what is not empty, so that an empty text and no value differ."""
    with path.open("w", encoding="utf-8", newline="") as out:
        out.write(",".join(map(named, columns)) + "\n")
        for row in rows:
            cells = ['"{}"'.format(str(cell).replace('"', '""')) if cell is not None else "" for cell in row]
            out.write(",".join(cells) + "\n")


def write_json(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    def shown(cell: Any) -> str:
        return str(cell) if isinstance(cell, Decimal) else json.dumps(cell)

    lines = [
        "{" + ", ".join(f"{json.dumps(c)}: {shown(v)}" for c, v in zip(columns, row, strict=True)) + "}" for row in rows
    ]
    path.write_text("[" + ",\n".join(lines) + "]", encoding="utf-8")


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect(":memory:", config={"threads": 1})
    made.execute("SET TimeZone = 'UTC'")
    return made


@contextmanager
def database(path: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A new database to write to, at `path` or in memory; what is written is there once it is left.

    One engine writes them all: to begin one takes several times as long as to write a small table.
    """
    engine = _engine()
    place = str(path or ":memory:").replace("'", "''")
    engine.execute(f"ATTACH '{place}' AS written; USE written; BEGIN")
    try:
        yield engine
        engine.commit()
    except BaseException:
        engine.rollback()
        raise
    finally:
        engine.execute("USE memory; DETACH written")


def write_table(path: Path, columns: Sequence[str], types: Sequence[str], rows: Rows, *, parquet: bool) -> None:
    with database(None if parquet else path) as connection:
        listed = ", ".join(f"{named(name)} {kind}" for name, kind in zip(columns, types, strict=True))
        connection.execute(f"CREATE TABLE t ({listed})")
        if rows:
            connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
        if parquet:
            connection.table("t").write_parquet(str(path))


def write_sqlite(path: Path, columns: Sequence[str], rows: Rows) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t ({})".format(", ".join(map(named, columns))))
        plain = [tuple(str(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in rows]
        database.executemany("INSERT INTO t VALUES ({})".format(", ".join("?" * len(columns))), plain)
        database.commit()


Make = Callable[..., Source]


def written(
    place: Path,
    name: str,
    kind: str,
    columns: Sequence[str],
    rows: Rows,
    types: Sequence[str] = (),
    figure: str = "DECIMAL(18, 2)",
) -> dict[str, Any]:
    """Writes rows as a source of that kind, texts and at last a figure, and returns its name, kind and place."""
    path = place / f"{name}.{kind}"
    path.unlink(missing_ok=True)
    match kind:
        case "csv":
            write_csv(path, columns, rows)
        case "json":
            write_json(path, columns, rows)
        case "sqlite":
            write_sqlite(path, columns, rows)
        case _:
            kinds = types or (*["VARCHAR"] * (len(columns) - 1), figure)
            write_table(path, columns, kinds, rows, parquet=kind == "parquet")
    return {"name": name, "kind": kind, "path": path.name, "table": "t" if kind in ("duckdb", "sqlite") else ""}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes rows to a file of some kind and returns the source; the last column is the measure `amount`."""

    def made(
        name: str,
        rows: Rows,
        *,
        kind: str = "csv",
        columns: Sequence[str] = ("company", "amount"),
        types: Sequence[str] = (),
        formats: dict[str, str] | None = None,
        synonyms: dict[str, tuple[str, ...]] | None = None,
        key_types: dict[str, Any] | None = None,
        **measure: Any,
    ) -> Source:
        place = written(tmp_path, name, kind, columns, rows, types)
        dimensions = tuple(
            Dimension(
                name=column,
                format=parse_format((formats or {}).get(column, "")),
                synonyms=(synonyms or {}).get(column, ()),
                type=(key_types or {}).get(column),
            )
            for column in columns[:-1]
        )
        return Source(
            **place,
            dimensions=dimensions,
            measures=(Measure(name="amount", column=columns[-1], **({"decimals": 2} | measure)),),
        )

    return made


@pytest.fixture
def confront(tmp_path: Path) -> Callable[..., Comparison]:
    """Compares two sources by all dimensions that they share."""

    def run(a: Source, b: Source, **request: Any) -> Comparison:
        asked = CompareRequest(source_a=a.name, source_b=b.name, **request)
        return compare(Catalog([a, b], tmp_path), asked, bounds=QUICK)

    return run


@pytest.fixture
def formulas() -> Formulas:
    return Formulas()
