"""The same rows in every kind of source: a trap is laid in each engine that it concerns."""

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from msgspec.structs import replace

from treadle.analyst import (
    Bounds,
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    Measure,
    QueryRequest,
    QueryResult,
    Source,
    compare,
    parse_format,
    query,
)

from ..conftest import database

Rows = Sequence[tuple[Any, ...]]
QUICK = Bounds(threads=1, seconds=60)

# What each engine calls a type; those that have none of their own hold text.
TYPES: dict[str, dict[str, str]] = {
    "duckdb": {"text": "VARCHAR", "integer": "BIGINT", "decimal": "DECIMAL(18, 2)", "float": "DOUBLE", "date": "DATE",
               "timestamp": "TIMESTAMP", "zoned": "TIMESTAMPTZ", "boolean": "BOOLEAN", "wide": "DECIMAL(38, 8)"},
    "postgres": {"text": "text", "integer": "bigint", "decimal": "numeric(18,2)", "float": "double precision",
                 "date": "date", "timestamp": "timestamp", "zoned": "timestamptz", "boolean": "boolean",
                 "wide": "numeric"},
    "sqlite": {"text": "TEXT", "integer": "INTEGER", "decimal": "TEXT", "float": "REAL", "date": "TEXT",
               "timestamp": "TEXT", "zoned": "TEXT", "boolean": "TEXT", "wide": "TEXT"},
}  # fmt: skip


# They hold the same types, and the embedded engine reads them by the same statement.
ALIKE = ("json", "parquet", "duckdb", "frame")


def in_turn(engine: str, number: int) -> bool:
    """Whether question number `number` is asked of an engine: those that are alike take turns, all others have each.

    `make differential` asks all of them anything.
    """
    return engine not in ALIKE or number % len(ALIKE) == ALIKE.index(engine)


def named(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


class World:
    """A catalogue whose sources hold rows in engines of one's choice."""

    def __init__(self, folder: Path, fixture: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._fixture, self._monkeypatch = folder, fixture, monkeypatch
        self.sources: dict[str, Source] = {}
        self.frames: dict[str, Any] = {}

    def lay(
        self,
        engine: str,
        name: str,
        rows: Rows,
        *,
        columns: Sequence[str] = ("key", "amount"),
        types: Sequence[str] = ("text", "decimal"),
        formats: dict[str, str] | None = None,
        key_types: dict[str, Any] | None = None,
        **measure: Any,
    ) -> Source:
        """Writes rows whose cells are text, whole numbers or None; the last column is the measure `amount`."""
        place = getattr(self, f"_{engine.replace('-', '_')}")(name, rows, columns, types)
        self.sources[name] = Source(
            name=name,
            dimensions=tuple(
                Dimension(
                    name=column, format=parse_format((formats or {}).get(column, "")),
                    type=(key_types or {}).get(column),
                )
                for column in columns[:-1]
            ),
            measures=(Measure(name="amount", column=columns[-1], **({"decimals": 2} | measure)),),
            **place,
        )  # fmt: skip
        return self.sources[name]

    def change(self, name: str, **fields: Any) -> None:
        """Declares a source otherwise."""
        self.sources[name] = replace(self.sources[name], **fields)

    @property
    def server(self) -> Any:
        """The PostgreSQL server, started when it is first asked for."""
        return self._fixture("server")

    @property
    def catalog(self) -> Catalog:
        return Catalog(list(self.sources.values()), self.folder, frames=self.frames)

    def ask(self, name: str = "a", **request: Any) -> QueryResult:
        return query(self.catalog, QueryRequest(source=name, **request), bounds=QUICK)

    def by_key(self, name: str = "a", **request: Any) -> dict[Any, Any]:
        return {row["key"]: row["amount"] for row in self.ask(name, dimensions=["key"], **request).rows}

    def total(self, name: str = "a", **request: Any) -> Any:
        return self.ask(name, **request).totals["amount"]

    def confront(self, **request: Any) -> Comparison:
        return compare(self.catalog, CompareRequest(source_a="a", source_b="b", **request), bounds=QUICK)

    def _csv(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        def cell(value: Any) -> str:
            return "" if value is None else '"{}"'.format(str(value).replace('"', '""'))

        lines = [",".join(map(named, columns)), *(",".join(map(cell, row)) for row in rows)]
        (self.folder / f"{name}.csv").write_bytes(("\n".join(lines) + "\n").encode())
        return {"kind": "csv", "path": f"{name}.csv"}

    def _json(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        import json

        def cell(value: Any, kind: str) -> str:
            number = kind in ("integer", "decimal", "float", "wide") and value is not None and "Inf" not in str(value)
            return str(value) if number else json.dumps(value)

        lines = [
            "{" + ", ".join(f"{json.dumps(c)}: {cell(v, t)}" for c, v, t in zip(columns, row, types, strict=True)) + "}"
            for row in rows
        ]
        (self.folder / f"{name}.json").write_text("[" + ",\n".join(lines) + "]", encoding="utf-8")
        return {"kind": "json", "path": f"{name}.json"}

    def _fill(
        self, connection: duckdb.DuckDBPyConnection, rows: Rows, columns: Sequence[str], types: Sequence[str]
    ) -> None:
        kinds = [TYPES["duckdb"].get(kind, kind) for kind in types]
        listed = ", ".join(f"{named(column)} {kind}" for column, kind in zip(columns, kinds, strict=True))
        connection.execute(f"CREATE TABLE t ({listed})")
        marks = ", ".join(f"CAST(? AS {kind.partition(' COLLATE')[0]})" for kind in kinds)
        for row in rows:
            connection.execute(f"INSERT INTO t VALUES ({marks})", [None if c is None else str(c) for c in row])

    def _duckdb(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        (self.folder / f"{name}.duckdb").unlink(missing_ok=True)
        with database(self.folder / f"{name}.duckdb") as connection:
            self._fill(connection, rows, columns, types)
        return {"kind": "duckdb", "path": f"{name}.duckdb", "table": "t"}

    def _parquet(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        with database() as connection:
            self._fill(connection, rows, columns, types)
            connection.table("t").write_parquet(str(self.folder / f"{name}.parquet"))
        return {"kind": "parquet", "path": f"{name}.parquet"}

    def _frame(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        with database() as connection:
            self._fill(connection, rows, columns, types)
            self.frames[name] = pyarrow.table(connection.table("t").to_arrow_table())
        return {"kind": "frame"}

    def _sqlite(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        kinds = [TYPES["sqlite"].get(kind, kind) for kind in types]
        listed = ", ".join(f"{named(column)} {kind}" for column, kind in zip(columns, kinds, strict=True))
        with closing(sqlite3.connect(self.folder / "all.db")) as database:
            database.execute(f"DROP TABLE IF EXISTS {named(name)}")
            database.execute(f"CREATE TABLE {named(name)} ({listed})")
            plain = [tuple(float(c) if k == "float" and c is not None else c for c, k in zip(row, types, strict=True))
                     for row in rows]  # fmt: skip
            database.executemany(f"INSERT INTO {named(name)} VALUES ({', '.join('?' * len(columns))})", plain)
            database.commit()
        return {"kind": "sqlite", "path": "all.db", "table": name}

    def _alchemy_sqlite(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        pytest.importorskip("sqlalchemy")
        self._monkeypatch.setenv("TREADLE_TRAPS_SQLITE", f"sqlite:///{self.folder / 'all.db'}")
        self._sqlite(name, rows, columns, types)
        return {"kind": "sqlalchemy", "table": name, "dsn_env": "TREADLE_TRAPS_SQLITE"}

    def _postgres(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        import psycopg

        for variable in ("PGTZ", "PGOPTIONS", "PGDATESTYLE"):
            self._monkeypatch.delenv(variable, raising=False)
        self._monkeypatch.setenv("TREADLE_TRAPS_DSN", self.server.dsn())
        self._monkeypatch.setenv("TREADLE_TRAPS_URL", self.server.url())
        table = f"{name}_{secrets.token_hex(6)}"
        kinds = [TYPES["postgres"].get(kind, kind) for kind in types]
        listed = ", ".join(f"{named(column)} {kind}" for column, kind in zip(columns, kinds, strict=True))
        with psycopg.connect(self.server.dsn(), autocommit=True, options="-c TimeZone=UTC") as connection:
            connection.execute(f"CREATE TABLE {named(table)} ({listed})".encode())
            with connection.cursor().copy(f"COPY {named(table)} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
        return {"kind": "postgres", "table": f"public.{table}", "dsn_env": "TREADLE_TRAPS_DSN"}

    def _alchemy_postgres(self, name: str, rows: Rows, columns: Sequence[str], types: Sequence[str]) -> dict[str, Any]:
        pytest.importorskip("sqlalchemy")
        place = self._postgres(name, rows, columns, types)
        return place | {"kind": "sqlalchemy", "dsn_env": "TREADLE_TRAPS_URL"}


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, request.getfixturevalue, monkeypatch)
