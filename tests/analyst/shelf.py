"""Where the rows of a test are kept: files of any kind, frames in memory, and tables of a database."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from msgspec import Struct, field
from postgres_server import Server

from .conftest import named, write_csv, write_json, write_sqlite, write_table

DATABASES = ("postgres", "sqlalchemy")


class Shelf(Struct):
    """A folder, frames by the names of their sources, and the schema of a database.

    Attributes:
        folder: Where files are written.
        server: What has the tables of sources of the kinds `DATABASES`.
        frames: The frames that were made.
        schema: That of the tables, made with the first of them.
    """

    folder: Path
    server: Server | None = None
    frames: dict[str, Any] = field(default_factory=dict)
    schema: str = field(default_factory=lambda: f"shelf_{token_hex(6)}")

    def put(self, name: str, kind: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Keeps rows of columns, each with its type in SQL, and returns the kind and the place of a source."""
        path = self.folder / f"{name}.{kind}"
        match kind:
            case "csv":
                write_csv(path, list(columns), rows)
            case "json":
                write_json(path, list(columns), rows)
            case "sqlite":
                write_sqlite(path, list(columns), [tuple(row) for row in rows])
            case "duckdb" | "parquet":
                cells = [tuple(row) for row in rows]
                write_table(path, list(columns), list(columns.values()), cells, parquet=kind == "parquet")
            case "xlsx":
                _write_sheet(path, list(columns), rows)
            case "pandas" | "polars":
                self.frames[name] = _frame(kind, columns, rows)
                return {"kind": "frame"}
            case _:
                return {"kind": kind, "table": self._table(name, columns, rows), "dsn_env": variable(kind)}
        return {"kind": kind, "path": path.name, "table": "t" if kind in ("duckdb", "sqlite") else ""}

    def open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lets sources of this process find the tables."""
        if self.server is not None:
            monkeypatch.setenv(variable("postgres"), self.server.dsn())
            monkeypatch.setenv(variable("sqlalchemy"), self.server.url())

    def _table(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> str:
        assert self.server is not None
        import psycopg

        table = f"{self.schema}.{name}"
        listed = ", ".join(f"{named(column)} {kind}" for column, kind in columns.items())
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}".encode())
            cursor.execute(f"CREATE TABLE {table} ({listed})".encode())
            with cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
        return table


def variable(kind: str) -> str:
    """The environment variable that has the address of a database for sources of a kind."""
    return f"TREADLE_SHELF_{kind.upper()}"


def _frame(kind: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Any:
    module = pytest.importorskip(kind)
    cells = {column: [row[at] for row in rows] for at, column in enumerate(columns)}
    if kind == "pandas":
        return module.DataFrame(cells, dtype=object)
    kinds = {
        column: module.Decimal(*map(int, re.findall(r"\d+", sql))) if sql.startswith("DECIMAL") else module.String
        for column, sql in columns.items()
    }
    return module.DataFrame(cells, schema=kinds)


def _write_sheet(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Keys as texts, with their zeros, and amounts as the numbers that Excel keeps."""
    book = pytest.importorskip("xlsxwriter").Workbook(str(path))
    sheet = book.add_worksheet("t")
    sheet.write_row(0, 0, columns)
    for line, row in enumerate(rows, 1):
        for at, cell in enumerate(row):
            if isinstance(cell, Decimal):
                sheet.write_number(line, at, cell)
            elif cell is not None:
                sheet.write_string(line, at, cell)
    book.close()
