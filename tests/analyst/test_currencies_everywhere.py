"""Amounts of several currencies have a total each wherever they are told, and one sum nowhere."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    DrillRequest,
    Hierarchy,
    Measure,
    QueryRequest,
    Source,
    compare,
    drill,
    page,
    parse_format,
    query,
)
from treadle.analyst.checks import read_checks, run_checks
from treadle.analyst.checks.page import checks_page

from .conftest import QUICK, write_csv

pytestmark = pytest.mark.usefixtures("one_engine")

ROWS = [("1", "EUR", "1.10", "1"), ("1", "USD", "2.20", "2"), ("2", "EUR", "0.05", "3")]
SUMS = ["3.35", "3.55"]
"""What nobody wants to see: the sum over both currencies, of either side."""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    columns = ("account", "code", "amount", "pieces")
    write_csv(tmp_path / "a.csv", columns, ROWS)
    write_csv(tmp_path / "b.csv", columns, [*ROWS[:2], ("2", "EUR", "0.25", "3")])
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", measures=(
            Measure(name="amount", currency="code", decimals=2), Measure(name="pieces", unit="pieces"),
        ), dimensions=(Dimension(name="account"), Dimension(name="code")))
        for name in "ab"
    ]  # fmt: skip
    return Catalog(sources, tmp_path, hierarchies=[Hierarchy(name="t/*", of="account", groups={"Top": ("1..9",)})])


def sheets(path: Path) -> dict[str, list[list[Any]]]:
    calamine = pytest.importorskip("python_calamine")
    pytest.importorskip("xlsxwriter")
    book = calamine.CalamineWorkbook.from_path(str(path))
    return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}


def test_in_the_excel_file_of_a_query(catalog: Catalog, tmp_path: Path) -> None:
    request = QueryRequest(source="a", dimensions=["account"], subtotals=["t/*"])
    found = query(catalog, request, exports=[tmp_path / "q.xlsx"], bounds=QUICK)
    told = sheets(tmp_path / "q.xlsx")
    assert told["totals"] == [
        ["code", "amount", "pieces"], ["EUR", 1.15, ""], ["USD", 2.2, ""], ["", "", 6.0],
    ]  # fmt: skip
    assert told["subtotals 1"] == [
        ["level", "t/*", "code", "amount", "pieces"], [1.0, "Top", "EUR", 1.15, 4.0], [1.0, "Top", "USD", 2.2, 2.0],
    ]  # fmt: skip
    assert SUMS[0] not in json.dumps(found.to_dict())
    alone = QueryRequest(source="a", measures=["pieces"])
    query(catalog, alone, exports=[tmp_path / "p.xlsx"], bounds=QUICK)
    assert sheets(tmp_path / "p.xlsx")["totals"] == [["pieces"], [6.0]]


def compared(catalog: Catalog, **more: Any) -> Comparison:
    request = CompareRequest(source_a="a", source_b="b", dimensions=["account"], measure="amount")
    return compare(catalog, request, bounds=QUICK, **more)


def test_in_the_excel_file_and_the_page_of_a_comparison(catalog: Catalog, tmp_path: Path) -> None:
    found = compared(catalog, exports=[tmp_path / "c.xlsx"])
    told = sheets(tmp_path / "c.xlsx")
    heads, *rows = told["totals by currency"]
    assert [dict(zip(heads, row, strict=True))["diff"] for row in rows] == [-0.2, 0.0]
    assert [row[:4] for row in rows] == [["amount", "EUR", 1.15, 1.35], ["amount", "USD", 2.2, 2.2]]
    everything = json.dumps([found.to_dict(), told], default=str) + page(found)
    assert not [sum_ for sum_ in SUMS if sum_ in everything]
    assert "Total(" not in everything


def test_in_a_check_and_behind_a_key(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "checks.yaml").write_text("checks:\n  x: {compare: [a, b], by: [], measures: [amount]}\n")
    report = run_checks(read_checks(tmp_path / "checks.yaml"), catalog=catalog)
    assert report.verdicts[0].sentence.endswith("the totals are 0.20 EUR apart")
    assert not [sum_ for sum_ in SUMS if sum_ in json.dumps(report.to_dict(), default=str) + checks_page(report)]
    behind = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"account": "1"}), bounds=QUICK)
    assert behind.a.total is None
    assert behind.a.figure == "1.10 EUR and 2.20 USD"
    assert [(one.currency, one.total) for one in behind.a.totals_by_currency] == [
        ("EUR", Decimal("1.10")), ("USD", Decimal("2.20")),
    ]  # fmt: skip


def test_currencies_that_are_spelled_apart_are_not_told_as_different_without_a_word(tmp_path: Path) -> None:
    """Amounts in EUR and in " eur " were "amounts of different currencies", and no more."""
    for name, rows in (("a", "x,EUR,5\nx, eur ,7\n"), ("b", "x,EUR,12\n")):
        (tmp_path / f"{name}.csv").write_text(f"k,currency,v\n{rows}")
    sources = [
        Source(
            name=name,
            kind="csv",
            path=f"{name}.csv",
            dimensions=(Dimension(name="k"), Dimension(name="currency")),
            measures=(Measure(name="v", currency="currency"),),
        )
        for name in "ab"
    ]
    found = compare(Catalog(sources, tmp_path), CompareRequest(source_a="a", source_b="b", dimensions=["k"]))
    (told,) = [claim.message for claim in found.warnings if claim.kind == "different_currencies"]
    assert "' eur ', EUR are taken for several because they are spelled so" in told
    assert "'format: trim, upper' on dimension currency" in told


@pytest.mark.parametrize("rows", ["x,EUR  ,5\n", "x,eur,5\n", "x,EUR,2\nx,EUR  ,3\n"])
@pytest.mark.parametrize(
    ("own", "other"),
    [
        ({"unit": "EUR"}, {"currency": "currency"}),
        ({"currency": "currency"}, {"currency": "currency"}),
        ({"unit": "EUR"}, {"unit": "EUR", "currency": "currency"}),
        ({"unit": "eur"}, {"currency": "currency"}),
    ],
)
def test_what_is_advised_of_currencies_that_are_spelled_apart_makes_them_one(
    tmp_path: Path, rows: str, own: dict[str, str], other: dict[str, str]
) -> None:
    """A currency with SAP's blanks behind it was another unit, to be multiplied by a thousand or converted by rates."""

    def compared(form: str) -> Comparison:
        sources = [
            Source(
                name=name,
                kind="csv",
                path=f"{name}.csv",
                dimensions=(Dimension(name="k"), Dimension(name="currency", format=parse_format(form))),
                measures=(
                    Measure(
                        name="v", unit=unit if form else declared.get("unit", ""), currency=declared.get("currency", "")
                    ),
                ),
            )
            for name, declared in (("a", own), ("b", other))
            for unit in (declared.get("unit", "").upper(),)
        ]
        return compare(Catalog(sources, tmp_path), CompareRequest(source_a="a", source_b="b", dimensions=["k"]))

    for name, text in (("a", "x,EUR,5\n"), ("b", rows)):
        (tmp_path / f"{name}.csv").write_text(f"k,currency,v\n{text}")
    if own.get("unit") == "eur" and rows == "x,eur,5\n":
        assert not compared("").warnings
        return
    try:
        told = " ".join(claim.message for claim in compared("").warnings)
    except AnalystError as error:
        told = str(error)
    assert "are taken for several because they are spelled so" in told
    unit = " and 'unit: EUR' in place of eur" * (own.get("unit") == "eur")
    assert f"declare 'format: trim, upper' on dimension currency{unit} if they are one" in told
    found = compared("trim, upper")
    assert (list(found.warnings), found.unit, found.summary.matches) == ([], "EUR", 1)
