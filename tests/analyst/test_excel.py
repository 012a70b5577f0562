"""Excel files: read with every digit, or refused; written as numbers where no digit is lost, and without formulas."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    TextFormat,
    compare,
    propose,
    query,
)

calamine = pytest.importorskip("python_calamine")
xlsxwriter = pytest.importorskip("xlsxwriter")

D = Decimal


def sheet(path: Path, name: str) -> list[list[Any]]:
    return calamine.CalamineWorkbook.from_path(str(path)).get_sheet_by_name(name).to_python()


def test_a_query(make: Any, tmp_path: Path) -> None:
    rows = [("=1+1", "1.50"), ("0100", "12345678901234.56"), (None, "-7.25"), ("ä", "123456789.125")]
    source = make("s", rows, decimals=3)
    query(
        Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"]), exports=[tmp_path / "out.xlsx"]
    )
    assert sheet(tmp_path / "out.xlsx", "figures") == [
        ["company", "amount"], ["0100", "12345678901234.560"], ["=1+1", 1.5], ["ä", 123456789.125], ["", -7.25],
    ]  # fmt: skip


def test_a_comparison(make: Any, tmp_path: Path) -> None:
    a, b = make("a", [("x", "10.00"), ("y", "5.00")]), make("b", [("x", "10.00"), ("z", "1.00")])
    compare(Catalog([a, b], tmp_path), CompareRequest(source_a="a", source_b="b"), exports=[tmp_path / "out.xlsx"])
    told = dict(line[:2] for line in sheet(tmp_path / "out.xlsx", "summary"))
    assert (told["A"], told["matches"], told["total_source_a"]) == ("a", 1, 15)
    found = sheet(tmp_path / "out.xlsx", "differences")
    assert found[0][:4] == ["measure", "company", "source_a_value", "source_b_value"]
    assert [line[1] for line in found[1:]] == ["y", "z", "x"]


def test_the_day_that_excel_has_and_no_calendar(tmp_path: Path) -> None:
    """The reader takes day 60, 29 February 1900, for the 28th, so that two keys were one."""

    def ask(name: str, days: list[float], options: dict[str, Any]) -> list[Any]:
        book = xlsxwriter.Workbook(str(tmp_path / name), options)
        page = book.add_worksheet()
        page.write_row(0, 0, ["day", "number", "amount"])
        for line, day in enumerate(days, 1):
            page.write_number(line, 0, day, book.add_format({"num_format": "dd.mm.yyyy hh:mm"}))
            page.write_row(line, 1, [day, 1])
        book.close()
        dimensions = (Dimension(name="day", type="date"), Dimension(name="number"))
        source = Source(name="s", kind="xlsx", path=name, dimensions=dimensions, measures=(Measure(name="amount"),))
        catalog = Catalog([source], tmp_path)
        query(catalog, QueryRequest(source="s", dimensions=["number"]))
        return [row["day"] for row in query(catalog, QueryRequest(source="s", dimensions=["day"])).rows]

    assert ask("1900.xlsx", [59, 61], {}) == [date(1900, 2, 28), date(1900, 3, 1)]
    assert ask("1904.xlsx", [60], {"date_1904": True}) == [date(1904, 3, 1)]
    for day in (60, 60.5):
        with pytest.raises(AnalystError, match=r"A3 \(29 February 1900, a day that never was\)"):
            ask(f"{day}.xlsx", [59, day, 61], {})


def test_moments_are_written_as_they_are_or_as_text(tmp_path: Path) -> None:
    """Excel rounds to the second that it shows: the last moment of a day was the next day, and two keys were one."""
    moments = ["2024-01-31 23:59:59.999999", "2024-01-31 23:59:59.999998", "2024-01-31 12:30:15", "2024-02-01 00:00:00",
               "1900-01-01 00:00:00", "1900-01-02 06:00:00", "9999-12-31 23:59:59.999999"]  # fmt: skip
    (tmp_path / "s.csv").write_text("\n".join(["at,amount", *[f"{moment},1" for moment in moments]]))
    at = (Dimension(name="at", type="timestamp"),)
    source = Source(name="s", kind="csv", path="s.csv", dimensions=at, measures=(Measure(name="amount"),))
    request = QueryRequest(source="s", dimensions=["at"])
    found = query(Catalog([source], tmp_path), request, exports=[tmp_path / "out.xlsx"])
    written = Source(name="s", kind="xlsx", path="out.xlsx", table="figures", dimensions=at, measures=source.measures)
    assert query(Catalog([written], tmp_path), request).rows == found.rows
    assert len(found.rows) == len(moments)
    assert isinstance(sheet(tmp_path / "out.xlsx", "figures")[3][0], datetime)


@pytest.mark.parametrize("name", ["x.parquet", "x.html", "x.txt"])
def test_a_query_is_written_to_no_other_kind(make: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(AnalystError, match=r"cannot be written|is written to"):
        query(Catalog([make("s", [("x", "1")])], tmp_path), QueryRequest(source="s"), exports=[tmp_path / name])
    assert not (tmp_path / name).exists()


def test_text_that_a_cell_cannot_hold_is_refused(make: Any, tmp_path: Path) -> None:
    """It was cut without a word: two keys that differ behind that were one."""
    long = "x" * 32_767
    for rows, fits in (
        ([(long, 1)], True),
        ([(long + "1", 1), (long + "2", 2)], False),
        ([("\U0001f600" * 20_000, 1)], False),
    ):
        catalog = Catalog([make("a", rows)], tmp_path)
        request = QueryRequest(source="a", dimensions=["company"])
        if fits:
            query(catalog, request, exports=[tmp_path / "out.xlsx"])
            continue
        with pytest.raises(AnalystError, match="a cell of an Excel file holds 32,767 characters"):
            query(catalog, request, exports=[tmp_path / "out.xlsx"])


def test_a_file_is_left_alone_if_anything_fails(make: Any, tmp_path: Path) -> None:
    (tmp_path / "out.xlsx").write_text("old")
    source = make("s", [("x", "one")])
    with pytest.raises(AnalystError, match="no number"):
        query(Catalog([source], tmp_path), QueryRequest(source="s"), exports=[tmp_path / "out.xlsx"])
    assert (tmp_path / "out.xlsx").read_text() == "old"


def book(path: Path, sheets: dict[str, list[list[Any]]], *, computed: bool = True) -> None:
    with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False}) as made:
        made.calc_on_load = not computed
        days = made.add_format({"num_format": "yyyy-mm-dd"})
        for name, rows in sheets.items():
            sheet = made.add_worksheet(name)
            for at, row in enumerate(rows):
                for column, cell in enumerate(row):
                    if isinstance(cell, date):
                        sheet.write_datetime(at, column, cell, days)
                    elif isinstance(cell, tuple):
                        sheet.write_formula(at, column, cell[0], None, cell[1])
                    elif cell is not None:
                        sheet.write(at, column, cell)


def declared(path: str, **more: Any) -> Source:
    return Source(
        name="s", kind="xlsx", path=path, dimensions=(Dimension(name="company"), Dimension(name="day", type="date")),
        measures=(Measure(name="amount"),), **more,
    )  # fmt: skip


HEAD = ["company", "amount", "day", "note"]


def test_cells_of_every_kind(tmp_path: Path) -> None:
    rows = [
        ["0100", 10.55, date(2024, 1, 31), None], [1001, "7.25", "2024-02-01", True], [1001.5, None, None, 1],
        [None, ("=1+1", 2), datetime(2024, 1, 31), "x"], [None, None, None, None], [True, "-3", None, None],
    ]  # fmt: skip
    book(tmp_path / "b.xlsx", {"Data": [HEAD, *rows]})
    found = query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s", dimensions=["company", "day"]))
    assert {(row["company"], str(row["day"])): row["amount"] for row in found.rows} == {
        ("0100", "2024-01-31"): D("10.55"), ("1001", "2024-02-01"): D("7.25"), ("1001.5", "None"): None,
        (None, "2024-01-31"): D("2.00"), ("true", "None"): D("-3.00"),
    }  # fmt: skip
    assert found.source_rows == 5
    assert "approximate" in found.warnings[0]


def test_titles_totals_and_sheets(tmp_path: Path) -> None:
    rows = [
        ["Balances"],
        ["January", None, date(2024, 1, 31)],
        HEAD,
        ["a", 1, None],
        ["b", 2, None],
        ["Summe", 3, None],
    ]
    book(tmp_path / "b.xlsx", {"Data": rows, "Notes": [["nothing"]], "Empty": []})
    with pytest.raises(AnalystError, match="has several sheets; declare 'table' as one of: 'Data', 'Notes', 'Empty'"):
        query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s"))
    with pytest.raises(AnalystError, match="has no sheet 'Dat'"):
        query(Catalog([declared("b.xlsx", table="Dat")], tmp_path), QueryRequest(source="s"))
    source = declared("b.xlsx", table="Data", text=TextFormat(skip=2, totals=("Summe",)))
    assert query(Catalog([source], tmp_path), QueryRequest(source="s")).totals == {"amount": 3}
    found = {each.source.name: each.source for each in propose(tmp_path / "b.xlsx")}
    assert sorted(found) == ["data", "notes"]
    assert query(Catalog([found["data"]], tmp_path), QueryRequest(source="data")).totals["amount"] == 3


@pytest.mark.parametrize("cell", [("=1/0", "#DIV/0!"), ("=A1", "#N/A")])
def test_a_cell_with_an_error_is_refused_where_it_counts(tmp_path: Path, cell: tuple[str, str]) -> None:
    book(tmp_path / "b.xlsx", {"Data": [HEAD, ["a", 1, None, cell], ["b", 2, None]]})
    assert query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s")).totals == {"amount": 3}
    book(tmp_path / "b.xlsx", {"Data": [HEAD, ["a", 1], ["b", cell]]})
    with pytest.raises(AnalystError, match="cells without a value: B3 "):
        query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s"))


def test_a_formula_that_was_never_computed_is_refused(tmp_path: Path) -> None:
    import zipfile

    book(tmp_path / "a.xlsx", {"Data": [HEAD, ["a", 1], ["b", ("=1+1", 2)]]})
    with zipfile.ZipFile(tmp_path / "a.xlsx") as whole, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as cut:
        for name in whole.namelist():
            cut.writestr(name, whole.read(name).replace(b"<f>1+1</f><v>2</v>", b"<f>1+1</f>"))
    with pytest.raises(AnalystError, match=r"B3 \(a formula without a value\)"):
        query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s"))


def test_formulas_that_the_file_wants_computed_first_are_refused(tmp_path: Path) -> None:
    """Libraries that compute nothing write a zero beside each formula, which was added up."""
    for computed in (True, False):
        book(tmp_path / "b.xlsx", {"Data": [[*HEAD, "sum"], ["a", 1, None, ("=B2", 0)], ["b", ("=1+1", 0)]]},
             computed=computed)  # fmt: skip
        if computed:
            assert query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s")).totals == {"amount": 1}
            continue
        with pytest.raises(AnalystError, match=r"without a value: B3 \(a formula that is still to be computed\); corr"):
            query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s"))
    book(tmp_path / "b.xlsx", {"Data": [HEAD, ["a", 1, None, ("=B2", 0)]]}, computed=False)
    assert query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s")).totals == {"amount": 1}


@pytest.mark.parametrize("content", [b"", b"x\0", b"PK\x03\x04 broken"])
def test_what_is_no_excel_file_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b.xlsx").write_bytes(content)
    with pytest.raises(AnalystError, match="cannot be read as an Excel file"):
        query(Catalog([declared("b.xlsx")], tmp_path), QueryRequest(source="s"))
    with pytest.raises(AnalystError, match="cannot be read as an Excel file"):
        propose(tmp_path / "b.xlsx")


def test_against_a_csv_file_with_rows_behind(make: Any, tmp_path: Path) -> None:
    book(tmp_path / "b.xlsx", {"Data": [HEAD, ["x", 10.5], ["y", 2.25], ["y", 2.25]]})
    a = make("a", [("x", "10.50"), ("y", "2.25")])
    found = compare(
        Catalog([a, declared("b.xlsx")], tmp_path), CompareRequest(source_a="a", source_b="s", dimensions=["company"])
    )
    assert {row.key["company"]: row.status for row in found.rows} == {"x": "match", "y": "major_diff"}
    assert "duplicates" in [finding.kind for finding in found.warnings]


DAYS = (
    "has numbers such as 45292, and is named as days are, of which Excel counts that as 2024-01-01, "
    "or in a file with the 1904 date system as 2028-01-02: if"
)
MIXED = "has days in some cells, and in others what is none"


@pytest.mark.parametrize(
    ("name", "cells", "asked"),
    [
        ("Datum", [45292, 45293, 45300], DAYS), ("Buchungsdatum", [45292, 45293.5], DAYS),
        ("Datum", [date(2024, 1, 1), 45300], f"{MIXED}, such as 45300"),
        ("Datum", [date(2024, 1, 1), "02.01.2024", 45300], MIXED), ("Datum", [date(2024, 1, 1), "offen"], MIXED),
        ("Betrag", [1.5, date(2024, 1, 1)], f"{MIXED}, such as 1.5"),
        ("Datum", [date(2024, 1, 1), "2024-01-02"], ""), ("Datum", [date(2024, 1, 31), "29.01.2024"], ""),
        ("Datum", [date(2024, 1, 1), None], ""), ("Updates", [45292, 45293], ""), ("Datum", [1, 45293], ""),
    ],
)  # fmt: skip
def test_days_that_are_kept_as_something_else_are_asked_about(
    tmp_path: Path, name: str, cells: list[Any], asked: str
) -> None:
    """Such numbers were taken for codes, and such a mixture for text, of which nothing was said."""
    with xlsxwriter.Workbook(str(tmp_path / "s.xlsx"), {"default_date_format": "dd.mm.yyyy"}) as book:
        rows = book.add_worksheet()
        for at, row in enumerate([["k", name], *(["a", cell] for cell in cells)]):
            rows.write_row(at, 0, row)
    (found,) = propose(tmp_path / "s.xlsx")
    said = "\n".join(found.questions)
    assert f"{name} {asked}" in said if asked else (MIXED not in said and "as days are" not in said)
