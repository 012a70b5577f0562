"""Identical rows are found by the database that holds them, in columns of any type."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from postgres_server import Server

from treadle.analyst import Bounds, Catalog, CompareRequest, Source, compare

from .conftest import DSN

COLUMNS = ("company", "note", "made", "amount")
TYPES = ("text", "json", "timestamptz", "numeric(18,2)")
NOON, LATER = "2024-01-01 12:00+00", "2024-01-01 13:00+00"
ROWS = [
    ("1", '{"a": 1}', NOON, "5.00"),
    ("1", '{"a": 1}', LATER, "5.00"),
    ("2 ", "[]", NOON, "-7.25"),
    (None, None, None, "1.50"),
    ("3", "[]", NOON, "0.25"),
    ("4", "[1]", NOON, None),
]
TWICE = [*ROWS, ROWS[2], ROWS[2], ROWS[3], ("3", "[ ]", NOON, "0.25"), ("1", '{"a": 2}', NOON, "5.00"), ROWS[5]]


def duplicates(a: Source, b: Source, **asked: Any) -> list[str]:
    request = CompareRequest(source_a=a.name, source_b=b.name, dimensions=["company"], **asked)
    found = compare(Catalog([a, b]), request, bounds=Bounds(threads=1, seconds=60))
    return [finding.message for finding in found.warnings if finding.kind in ("duplicates", "not_examined")]


@pytest.mark.parametrize("kind", ["postgres", "sqlalchemy"])
def test_identical_rows_are_found(
    table: Callable[..., Source], server: Server, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "sqlalchemy":
        pytest.importorskip("sqlalchemy")
        monkeypatch.setenv(DSN, server.url())
    a, b = (
        replace(made, dimensions=made.dimensions[:1])
        for made in (
            table(name, rows, columns=COLUMNS, types=TYPES, formats={"company": "trim"}, kind=kind)
            for name, rows in (("a", ROWS), ("b", TWICE))
        )
    )
    assert duplicates(a, b) == ["b holds identical rows; taken once each, 2 keys that differ would be equal"]
    assert duplicates(b, a) == ["b holds identical rows; taken once each, 2 keys that differ would be equal"]
    assert "1 key that differs would be equal" in duplicates(a, b, filters={"company": ["2", "3"]})[0]
    assert duplicates(a, b, filters={"company": ["1", "3"]}) == []


def test_what_a_database_cannot_group_is_told(table: Callable[..., Source], server: Server) -> None:
    source = replace(table("a", ROWS, columns=COLUMNS, types=TYPES), dimensions=table("x", []).dimensions)
    view = source.table.replace(".a", ".b")
    # The note is computed when it is read: what the comparison needs can be read, and a whole row cannot.
    server.execute(
        f"CREATE VIEW {view} AS SELECT company, (1 / (amount - amount))::text AS note, amount FROM {source.table} "
        f"UNION ALL SELECT company, note::text, amount FROM {source.table}"
    )
    (told,) = duplicates(source, replace(source, name="b", table=view))
    assert told.startswith("b could not be searched for identical rows: ")
    assert "division by zero" in told
