"""What is a number in the data is that number, whatever signs are declared for the text beside it."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import (
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    TextFormat,
    compare,
    parse_format,
    propose,
    query,
)

from .conftest import QUICK, write_sqlite

pytestmark = pytest.mark.usefixtures("one_engine")

COLUMNS = ("key", "amount", "told")
ROWS = [("a", 1.234, "1.234,50"), ("b", 12.5, "2,00-"), (2024.01, 1234, "7")]


def written(folder: Path, kind: str, rows: Sequence[Sequence[Any]] = ROWS) -> dict[str, str]:
    path = folder / f"{kind}.{kind}"
    if kind == "json":
        path.write_text(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows]))
    elif kind == "sqlite":
        write_sqlite(path, list(COLUMNS), [tuple(row) for row in rows])
    else:
        book = pytest.importorskip("xlsxwriter").Workbook(str(path))
        sheet = book.add_worksheet("t")
        for line, row in enumerate([COLUMNS, *rows]):
            for at, cell in enumerate(row):
                (sheet.write_string if isinstance(cell, str) else sheet.write_number)(line, at, cell)
        book.close()
    return {"kind": kind, "path": path.name, "table": "t" if kind == "sqlite" else ""}


def source(name: str, place: dict[str, Any], spelled: str = "", **signs: Any) -> Source:
    return Source(
        name=name,
        **place,
        text=TextFormat(**signs),
        dimensions=(Dimension(name="key", format=parse_format(spelled)),),
        measures=(
            Measure(name="amount"),
            Measure(name="told"),
            Measure(name="twice", expression="amount * 2 + told"),
        ),
    )


@pytest.mark.parametrize("kind", ["json", "sqlite", "xlsx"])
def test_a_number_is_not_read_by_the_signs_of_text(tmp_path: Path, kind: str) -> None:
    """Of 1.234 in a JSON file was made 1,234 where its text has a point between thousands."""
    german = source("s", written(tmp_path, kind), decimal=",", thousands=".")
    found = query(Catalog([german], tmp_path), QueryRequest(source="s", dimensions=["key"]), bounds=QUICK)
    assert {row["key"]: (row["amount"], row["told"], row["twice"]) for row in found.rows} == {
        "a": (Decimal("1.234"), Decimal("1234.5"), Decimal("1236.968")),
        "b": (Decimal("12.5"), -2, 23),
        "2024.01": (1234, 7, 2475),
    }


@pytest.mark.parametrize("kind", ["json", "sqlite", "xlsx"])
@pytest.mark.parametrize("other", ["json", "xlsx"])
def test_keys_that_are_numbers_are_told_with_a_point_whatever_the_signs_of_text(
    tmp_path: Path, kind: str, other: str
) -> None:
    """Of the period 2024.01 in an Excel file was made 2024,01, which is none, and which the other side lacked."""
    a = source("a", written(tmp_path, kind), "fiscal_period", decimal=",", thousands=".")
    plain = [(key, amount, amount) for key, amount, _ in ROWS]
    (tmp_path / "plain").mkdir()
    place = written(tmp_path / "plain", other, plain)
    b = source("b", place | {"path": f"plain/{place['path']}"})
    request = CompareRequest(source_a="a", source_b="b", measures=["amount"], dimensions=["key"])
    found = compare(Catalog([a, b], tmp_path), request, bounds=QUICK)
    assert {row.key["key"]: row.status for row in found.rows} == dict.fromkeys(("a", "b", "202401"), "match")


@pytest.mark.parametrize("type_", ["decimal", "integer"])
@pytest.mark.parametrize("kind", ["json", "sqlite", "xlsx"])
def test_keys_that_are_declared_numbers_are_these(tmp_path: Path, kind: str, type_: Any) -> None:
    numbers = [(1.5 if type_ == "decimal" else 15, 1, "1"), (2, 3, "4")]
    place = written(tmp_path, kind, numbers)
    signed = Source(
        name="s",
        **place,  # type: ignore[arg-type]
        text=TextFormat(decimal=",", thousands="."),
        dimensions=(Dimension(name="key", type=type_),),
        measures=(Measure(name="amount"),),
    )
    found = query(Catalog([signed], tmp_path), QueryRequest(source="s", dimensions=["key"]), bounds=QUICK)
    assert {row["key"]: row["amount"] for row in found.rows} == {numbers[0][0]: 1, 2: 3}


@pytest.mark.parametrize("kind", ["json", "sqlite", "xlsx"])
def test_a_column_that_is_a_key_and_a_figure_has_the_same_numbers_in_both(tmp_path: Path, kind: str) -> None:
    """A SQLite file's numbers were refused: they were "text that is none", though no text stands there."""
    place = written(tmp_path, kind, [("a", 0.001, "1,5"), ("b", 2.5, "3"), ("c", 4, "3")])
    priced = Source(
        name="s",
        **place,  # type: ignore[arg-type]
        text=TextFormat(decimal=",", thousands="."),
        dimensions=(Dimension(name="key"), Dimension(name="price", column="amount", type="decimal")),
        measures=(Measure(name="amount"), Measure(name="twice", expression="amount * 2 + told")),
    )
    expected = {"a": ("0.001", "1.502"), "b": ("2.5", "8"), "c": ("4", "11")}
    for dimensions in (["key"], ["key", "price"]):
        found = query(Catalog([priced], tmp_path), QueryRequest(source="s", dimensions=dimensions), bounds=QUICK)
        told = {row["key"]: (row["amount"], row["twice"]) for row in found.rows}
        assert told == {key: (Decimal(amount), Decimal(twice)) for key, (amount, twice) in expected.items()}
        assert all(row.get("price", row["amount"]) == row["amount"] for row in found.rows)


def test_rows_that_are_alike_are_found_where_a_number_stands_among_text(tmp_path: Path) -> None:
    rows = [("a", 1.234, "1"), ("a", 1.234, "1"), ("b", 5, "2")]
    (tmp_path / "once").mkdir()
    once = written(tmp_path / "once", "json", rows[1:])
    a = source("a", written(tmp_path, "json", rows), decimal=",", thousands=".")
    b = source("b", once | {"path": f"once/{once['path']}"}, decimal=",", thousands=".")
    request = CompareRequest(source_a="a", source_b="b", measures=["amount"], dimensions=["key"])
    found = compare(Catalog([a, b], tmp_path), request, bounds=QUICK)
    assert [claim.kind for claim in found.warnings] == ["duplicates"]
    assert found.summary.total_diff == Decimal("1.234")


def test_texts_in_a_sheet_that_prove_their_signs_are_amounts(tmp_path: Path) -> None:
    path = written(tmp_path, "xlsx", [("a", "1.234,50", "1"), ("b", "2,00-", "2")])["path"]
    (found,) = propose(tmp_path / path, QUICK)
    assert not found.questions
    request = QueryRequest(source=found.source.name, measures=["amount"])
    assert query(Catalog([found.source], tmp_path), request).totals == {"amount": Decimal("1232.50")}


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_amounts_in_text_of_other_signs_are_asked_about(tmp_path: Path, kind: str) -> None:
    """They were taken for text without a word, and rows were counted in their place."""
    path = written(tmp_path, kind, [("a", "1.234,50", "1"), ("b", "2,00-", "2")])["path"]
    (found,) = propose(tmp_path / path, QUICK)
    (question,) = (one for one in found.questions if one.startswith("amount"))
    assert "amount has text such as 1.234,50, which is not added up" in question
    assert "declare 'decimal' and 'thousands' under 'text'" in question
