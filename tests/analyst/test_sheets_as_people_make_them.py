"""Excel files as people make them: what would be read as something else than a person sees is refused, or right."""

import re
import zipfile
from datetime import date
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import (
    AnalystError,
    Catalog,
    Dimension,
    Measure,
    QueryRequest,
    QueryResult,
    Source,
    TextFormat,
    propose,
    query,
)

from .conftest import QUICK

pytestmark = pytest.mark.usefixtures("one_engine")

pytest.importorskip("python_calamine")
xlsxwriter = pytest.importorskip("xlsxwriter")


def book(path: Path, rows: list[list[Any]], merged: tuple[str, ...] = ()) -> None:
    with xlsxwriter.Workbook(str(path), {"default_date_format": "dd.mm.yyyy"}) as made:
        sheet = made.add_worksheet("S")
        for at, row in enumerate(rows):
            sheet.write_row(at, 0, row)
        for place in merged:
            sheet.merge_range(place, rows[int(place[1]) - 1][ord(place[0]) - 65])


def asked(
    place: Path, rows: list[list[Any]], merged: tuple[str, ...] = (), by: str = "company", **text: Any
) -> QueryResult:
    book(place / "s.xlsx", rows, merged)
    source = Source(
        name="s", kind="xlsx", path="s.xlsx", text=TextFormat(**text), measures=(Measure(name="amount"),),
        dimensions=(Dimension(name="company"), Dimension(name="account")),
    )  # fmt: skip
    return query(Catalog([source], place), QueryRequest(source="s", dimensions=[by]), bounds=QUICK)


ROWS: list[list[Any]] = [["company", "account", "amount"], ["1001", "1", 10], [None, "2", 20], ["1002", "1", 5]]


@pytest.mark.parametrize("place", ["A2:A3", "A1:A2"])
def test_cells_merged_over_lines_are_refused_where_they_count(tmp_path: Path, place: str) -> None:
    """Only the first of them has the value: the rows below it would be of no company."""
    with pytest.raises(AnalystError, match=f"merged over several lines.*{place}; unmerge them"):
        asked(tmp_path, ROWS, (place,))
    assert asked(tmp_path, ROWS, (place,), by="account").rows[0]["amount"] == 15


def test_cells_merged_within_a_line_or_above_the_header_change_nothing(tmp_path: Path) -> None:
    rows = [["Report", None, None], [None, None, None], *ROWS[:2], ["Total", None, 10]]
    found = asked(tmp_path, rows, ("A1:C2", "A5:B5"), skip=2, totals=("Total",))
    assert [list(row.values()) for row in found.rows] == [["1001", 10]]


def test_fractions_are_read_beside_text_with_a_decimal_comma(tmp_path: Path) -> None:
    rows = [ROWS[0], ["1", "1", 12.5], ["1", "1", "1.250,75"], ["1", "1", "(0,25)"], ["1", "1", 1], ["1", "1", 1e-7]]
    found = asked(tmp_path, rows, decimal=",", thousands=".")
    assert f"{found.totals['amount']}" == "1264.0000001"
    assert "approximate" in found.warnings[0]


@pytest.mark.parametrize("decimal", [",", "."])
def test_what_is_no_number_is_told_as_that(tmp_path: Path, decimal: str) -> None:
    rows = [ROWS[0], ["1", "1", 12.5], ["1", "1", True], ["1", "1", "n/a"]]
    with pytest.raises(AnalystError, match="has text that is no number, 2 in all, such as 'n/a', 'true'"):
        asked(tmp_path, rows, decimal=decimal)


def test_a_formula_that_came_to_an_empty_text_was_computed(tmp_path: Path) -> None:
    """`=IF(A3="","",…)`, down a whole column: it was refused as one without a value."""
    with xlsxwriter.Workbook(str(tmp_path / "written.xlsx")) as made:
        made.calc_on_load = False
        sheet = made.add_worksheet("S")
        for at, row in enumerate([*ROWS[:2], ["1002", "1", 5]]):
            sheet.write_row(at, 0, row)
        for line in (3, 4):
            for column in range(3):
                sheet.write_formula(line, column, '=IF(Z1="","",Z1)', None, "")
        sheet.write_string(4, 0, "1003")
    # Excel says of such a cell that it is a text, which this library leaves out.
    with zipfile.ZipFile(tmp_path / "written.xlsx") as whole, zipfile.ZipFile(tmp_path / "s.xlsx", "w") as out:
        for name in whole.namelist():
            out.writestr(name, re.sub(rb'(<c r="\w+")(><f>[^<]*</f><v></v>)', rb'\1 t="str"\2', whole.read(name)))
    dimensions = (Dimension(name="company"), Dimension(name="account"))
    source = Source(name="s", kind="xlsx", path="s.xlsx", dimensions=dimensions, measures=(Measure(name="amount"),))
    found = query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"]), bounds=QUICK)
    assert [tuple(row.values()) for row in found.rows] == [("1001", 10), ("1002", 5), ("1003", None)]
    assert found.source_rows == 3


def test_hidden_rows_and_sheets_count_and_a_number_is_what_the_cell_holds(tmp_path: Path) -> None:
    """As `docs/sources.md` says: neither a filter nor a format changes a figure."""
    with xlsxwriter.Workbook(str(tmp_path / "s.xlsx")) as made:
        sheet = made.add_worksheet("S")
        for at, row in enumerate(ROWS):
            sheet.write_row(at, 0, row)
        sheet.autofilter(0, 0, 3, 2)
        sheet.filter_column(1, "x == 1")
        sheet.set_row(2, None, None, {"hidden": True})
        sheet.write_number(3, 2, 1234567, made.add_format({"num_format": "#,##0,"}))
    source = Source(
        name="s",
        kind="xlsx",
        path="s.xlsx",
        dimensions=(Dimension(name="account"),),
        measures=(Measure(name="amount"),),
    )
    assert query(Catalog([source], tmp_path), QueryRequest(source="s"), bounds=QUICK).totals["amount"] == 1234597


@pytest.mark.parametrize(
    ("cell", "told"), [('t="e"><v>#N/A</v>', "B3 (#N/A)"), ("><f>1+1</f>", "B3 (a formula without a value)")]
)
@pytest.mark.parametrize("placed", [True, False])
def test_an_error_is_refused_in_files_that_do_not_say_where_a_cell_is(
    tmp_path: Path, cell: str, told: str, placed: bool
) -> None:
    """A cell need not have its place: the figure was told without the one that had an error in it."""
    with xlsxwriter.Workbook(str(tmp_path / "written.xlsx")) as made:
        sheet = made.add_worksheet("S")
        for at, row in enumerate([["company", "amount"], [1001, 10], [1001, 777]]):
            sheet.write_row(at, 0, row)
    with zipfile.ZipFile(tmp_path / "written.xlsx") as whole, zipfile.ZipFile(tmp_path / "s.xlsx", "w") as out:
        for name in whole.namelist():
            held = whole.read(name)
            if name.endswith("sheet1.xml"):
                assert b"><v>777</v>" in held
                held = held.replace(b"><v>777</v>", f" {cell}".encode().replace(b" >", b">"))
                held = held if placed else re.sub(rb'(<row|<c) r="\w+"', rb"\1", held)
            out.writestr(name, held)
    source = Source(
        name="s",
        kind="xlsx",
        path="s.xlsx",
        dimensions=(Dimension(name="company"),),
        measures=(Measure(name="amount"),),
    )
    catalog = Catalog([source], tmp_path)
    with pytest.raises(AnalystError, match=re.escape(f"has cells without a value: {told}")):
        query(catalog, QueryRequest(source="s", dimensions=["company"]), bounds=QUICK)


def test_a_sheet_that_has_no_table_of_cells_is_told_as_that(tmp_path: Path) -> None:
    """A sheet of a chart alone, or one whose part is not there."""
    book(tmp_path / "written.xlsx", ROWS)
    with zipfile.ZipFile(tmp_path / "written.xlsx") as whole, zipfile.ZipFile(tmp_path / "s.xlsx", "w") as out:
        for name in whole.namelist():
            out.writestr(name, whole.read(name).replace(b'Target="worksheets/', b'Target="./worksheets/'))
    source = Source(name="s", kind="xlsx", path="s.xlsx", measures=(Measure(name="amount"),))
    with pytest.raises(AnalystError, match=r"source 's': s.xlsx names the sheet S, but has no table of cells for it"):
        query(Catalog([source], tmp_path), QueryRequest(source="s"), bounds=QUICK)


@pytest.mark.parametrize("how", ["elsewhere", "in another case", "without sheets", "nowhere"])
def test_the_workbook_is_where_the_file_says(tmp_path: Path, how: str) -> None:
    """Others write it to another place than Excel does; it ended in "There is no item named"."""
    import xlsxwriter

    with xlsxwriter.Workbook(str(tmp_path / "plain.xlsx")) as made:
        for at, row in enumerate([("account", "amount"), ("1", 5)]):
            made.add_worksheet("t") if not at else None
            made.get_worksheet_by_name("t").write_row(at, 0, row)
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as plain, zipfile.ZipFile(tmp_path / "s.xlsx", "w") as moved:
        for name in plain.namelist():
            content, place = plain.read(name), name
            if how == "elsewhere":
                place, content = name.replace("xl/", "book/"), content.replace(b"xl/", b"book/")
            elif how == "in another case" and name.endswith(("workbook.xml", "sheet1.xml")):
                place = name.replace("workbook", "Workbook").replace("sheet1", "Sheet1")
            elif how == "without sheets":
                content = re.sub(rb"<sheet .*?/>", b"", content)
            if how != "nowhere" or name != "xl/workbook.xml":
                moved.writestr(place, content)
    declared = Source(
        name="s",
        kind="xlsx",
        path="s.xlsx",
        dimensions=(Dimension(name="account"),),
        measures=(Measure(name="amount"),),
    )
    catalog = Catalog([declared], tmp_path)
    if how in ("without sheets", "nowhere"):
        with pytest.raises(AnalystError, match=r"s\.xlsx has no sheet"):
            query(catalog, QueryRequest(source="s"), bounds=QUICK)
    else:
        assert query(catalog, QueryRequest(source="s"), bounds=QUICK).totals["amount"] == 5


BESIDE: list[list[Any]] = [
    ["company", "amount", None, "account", "limit"], ["1001", 10, None, "A7", 5], ["1002", 5, None, "A8", 6],
    [None, None, None, "A9", 7],
]  # fmt: skip


def test_two_tables_side_by_side_are_asked_about(tmp_path: Path) -> None:
    book(tmp_path / "s.xlsx", BESIDE)
    (question,) = propose(tmp_path / "s.xlsx", QUICK)[0].questions
    assert question.startswith("column3 is empty, and rows stand on one side of it only, as of two tables: keep")
    dimensions = (Dimension(name="company"),)
    source = Source(
        name="s", kind="xlsx", path="s.xlsx", text=TextFormat(totals=("",)), dimensions=dimensions,
        measures=(Measure(name="amount"),),
    )  # fmt: skip
    found = query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"]), bounds=QUICK)
    assert ([row["company"] for row in found.rows], found.source_rows) == (["1001", "1002"], 2)


def test_an_empty_column_within_a_table_is_not_asked_about(tmp_path: Path) -> None:
    book(tmp_path / "s.xlsx", BESIDE[:3])
    assert propose(tmp_path / "s.xlsx", QUICK)[0].questions == ()


def packed(member: str, content: str = "") -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as made:
        made.writestr(member, content)
    return written.getvalue()


OTHERS = {
    "o.ods": (packed("mimetype", "application/vnd.oasis.opendocument.spreadsheet"), "an OpenDocument sheet"),
    "b.xlsb": (packed("xl/workbook.bin"), "a binary Excel file"),
    "old.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an older Excel file"),
    "web.xls": (b"\xef\xbb\xbf<html><table></table></html>", "a web page"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_another_kind_of_sheet_is_told_with_what_to_do(tmp_path: Path, name: str) -> None:
    """The errors of three programs were told, such as that 'xl/workbook.bin' was not found."""
    content, what = OTHERS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AnalystError, match=rf"is {what}.* save it as \.xlsx"):
        propose(tmp_path / name)
    source = Source(name="s", kind="xlsx", path=name, measures=(Measure(name="amount"),))
    with pytest.raises(AnalystError, match=rf"is {what}.* only \.xlsx .*save it as one"):
        query(Catalog([source], tmp_path), QueryRequest(source="s"), bounds=QUICK)


def test_text_under_the_name_of_a_sheet_is_read_as_text(tmp_path: Path) -> None:
    """So are lists written to a file that Excel is to open."""
    (tmp_path / "list.xls").write_bytes("BUKRS\tHSL\n1001\t5,25\n".encode("utf-16"))
    (proposal,) = propose(tmp_path / "list.xls")
    assert (proposal.source.kind, proposal.source.text.delimiter) == ("csv", "\t")
    found = query(Catalog([proposal.source], tmp_path), QueryRequest(source="list"), bounds=QUICK)
    assert found.totals["hsl"] == Decimal("5.25")
    source = Source(name="s", kind="xlsx", path="list.xls", measures=(Measure(name="amount"),))
    with pytest.raises(AnalystError, match="is text, whatever its name says: declare it as 'kind: csv'"):
        query(Catalog([source], tmp_path), QueryRequest(source="s"), bounds=QUICK)


def test_days_in_cells_and_in_texts_of_one_column_are_the_same_days(tmp_path: Path) -> None:
    """They were two keys, and nothing was said of it."""
    book(tmp_path / "s.xlsx", [["account", "posted", "amount"], ["1", date(2024, 1, 31), 1], ["1", "31.01.2024", 2]])
    (proposal,) = propose(tmp_path / "s.xlsx")
    found = query(Catalog([proposal.source], tmp_path), QueryRequest(source="s", dimensions=["posted"]), bounds=QUICK)
    assert [row["posted"] for row in found.rows] == [date(2024, 1, 31)]


@pytest.mark.parametrize(
    ("days", "asked_about"),
    [
        ((date(2024, 2, 1), "01/31/2024"), True),
        ((date(2024, 2, 1), "31/01/2024"), True),
        ((date(2024, 2, 1), "31-01-2024"), True),
        # What it can read it has read.
        ((date(2024, 1, 31), "01/31/2024"), False),
        ((date(2024, 2, 1), "31.01.2024"), False),
        ((date(2024, 2, 1), "20240131"), False),
    ],
)
def test_days_that_a_spreadsheet_may_have_turned_round_are_asked_about(
    tmp_path: Path, days: tuple[Any, ...], asked_about: bool
) -> None:
    """Of days of another country it takes those that it can for its own, as 01/02/2024 for the first of February."""
    book(tmp_path / "s.xlsx", [["account", "posted", "amount"], *([str(at), day, at] for at, day in enumerate(days))])
    (proposal,) = propose(tmp_path / "s.xlsx")
    assert any("day and month the other way round" in one for one in proposal.questions) == asked_about
