"""Which line of a file has the names of its columns, and what is asked of columns whose name does not say enough.

A row that is taken for names counts nowhere, so that a proposal that takes one without a question tells a wrong total.
"""

import json
import sqlite3
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    declaration,
    propose,
    query,
)

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
QUICK = Bounds(threads=1, seconds=60)
Rows = list[list[Any]]


def proposed(file: Path) -> tuple[Source, tuple[str, ...], Catalog]:
    (found,) = propose(file, QUICK)
    (file.parent / "sources.yaml").write_text(declaration([(file, found)], file.parent), encoding="utf-8")
    catalog = Catalog.load(file.parent / "sources.yaml")
    return catalog.source(found.source.name), found.questions, catalog


def written(folder: Path, kind: str, rows: Rows) -> Path:
    file = folder / f"f.{kind}"
    if kind == "csv":
        lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file
    book = pytest.importorskip("xlsxwriter").Workbook(str(file))
    sheet = book.add_worksheet("t")
    for at, row in enumerate(rows):
        sheet.write_row(at, 0, row)
    book.close()
    return file


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize(
    "header",
    [
        [None, "amount"],
        [None, "k", "amount"],
        ["k", None, "amount"],
        [None, None, "k", "amount"],
    ],
)
@pytest.mark.parametrize("titled", [False, True])
def test_columns_without_a_name_do_not_make_a_row_one_of_names(
    tmp_path: Path, kind: str, header: list[Any], titled: bool
) -> None:
    """An index that pandas writes has no name: the first row was taken for names, and its amount was in no total."""
    width = len(header)
    title = [["Balances", *[None] * (width - 1)]] if titled else []
    rows = [[*[at] * (width - 2), "abc"[at], amount] for at, amount in enumerate([1, 20, 300])]
    source, questions, catalog = proposed(written(tmp_path, kind, [*title, header, *rows]))
    total = query(catalog, QueryRequest(source="f"), bounds=QUICK).totals["amount"]
    assert (total, source.text.skip) == (D("321.00"), int(titled)), questions


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("names", [["account", 2024, 2023], ["account", 202401, 202402], ["account", 1, 2, 3]])
def test_years_periods_and_numbers_that_count_up_are_names(tmp_path: Path, kind: str, names: list[Any]) -> None:
    title = ["Balances", *[None] * (len(names) - 1)]
    rows = [["a", *range(5, 4 + len(names))], ["b", *range(7, 6 + len(names))]]
    source, _, catalog = proposed(written(tmp_path, kind, [title, names, *rows]))
    assert source.text.skip == 1
    totals = query(catalog, QueryRequest(source="f"), bounds=QUICK).totals
    assert totals[str(names[1])] == D("12.00")


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize(
    "titles",
    [
        [["Sales", None, None, None]],
        [["Sales", "2024", None, None]],
        [["Sales", None, None, None], ["Company", 1001, None, None]],
        [[None, "Sales", None, None]],
    ],
)
def test_a_title_is_no_line_of_names_of_columns_that_are_called_by_numbers(
    tmp_path: Path, kind: str, titles: list[list[Any]]
) -> None:
    """The numbers of stores, or of accounts, were amounts of the first row, without a question."""
    rows = [["month", 101, 102, 205], ["jan", 5, 6, 7], ["feb", 8, 9, 10]]
    source, questions, catalog = proposed(written(tmp_path, kind, [*titles, *rows]))
    assert source.text.skip == len(titles)
    totals = query(catalog, QueryRequest(source="f"), bounds=QUICK).totals
    assert totals == {"101": D(13), "102": D(15), "205": D(17)}
    assert any("the columns would be called month, 101" in question for question in questions)


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_line_with_the_name_of_an_index_leaves_the_names_above_it(tmp_path: Path, kind: str) -> None:
    """As pandas writes a table whose columns have a name of their own."""
    rows = [[None, "amount", "vat"], ["k", None, None], ["a", 5, 7], ["b", 6, 8]]
    _, _, catalog = proposed(written(tmp_path, kind, rows))
    assert query(catalog, QueryRequest(source="f"), bounds=QUICK).totals == {"amount": D(11), "vat": D(15)}


@pytest.mark.parametrize("first", [["a", 10], ["a", 10, 20], ["a", 5, 6]])
def test_a_file_that_has_no_names_is_asked_about_where_its_amounts_are_whole(tmp_path: Path, first: list[Any]) -> None:
    _, questions, _ = proposed(written(tmp_path, "csv", [first, ["b", *[7] * (len(first) - 1)]]))
    assert any(f"the columns would be called a, {first[1]}" in question for question in questions)


def test_special_periods_under_a_name_that_says_nothing_may_be_weeks(tmp_path: Path) -> None:
    """Weeks 1 to 16 were fiscal periods without a word, so that the quarter of week 14 was all of 10 to 14."""
    rows = [[f"2024{at:02}", 1] for at in range(1, 17)]
    _, questions, _ = proposed(written(tmp_path, "csv", [["time", "amount"], *rows]))
    assert any("time has 202413" in question and "weeks" in question for question in questions)
    for header, told in (("period", rows), ("time", rows[:12])):
        _, questions, _ = proposed(written(tmp_path, "csv", [[header, "amount"], *told]))
        assert not questions


@pytest.mark.parametrize(
    ("days", "asked"),
    [(["240131", "240201"], "date(YYMMDD) or format: date(DDMMYY)"), (["991231", "980131"], ""),
     (["010224", "020224"], "format: date(MMDDYY)")],
)  # fmt: skip
def test_days_of_six_digits_are_days_where_their_name_says_so(tmp_path: Path, days: list[str], asked: str) -> None:
    """They were codes, or numbers filled up with zeros, whose first zero was taken away."""
    source, questions, _ = proposed(written(tmp_path, "csv", [["posting_date", "amount"], *[[day, 1] for day in days]]))
    if asked:
        assert any(asked in question for question in questions)
        assert str(source.dimension("posting_date").format) == ""
    else:
        assert str(source.dimension("posting_date").format) == "date(YYMMDD)"


def test_digits_that_may_be_days_under_the_name_of_a_code_are_asked_about(tmp_path: Path) -> None:
    rows = [["20240131", 1], ["20231231", 2]]
    for name, asks in (("customer", True), ("posting_date", False)):
        _, questions, _ = proposed(written(tmp_path, "csv", [[name, "amount"], *rows]))
        assert any("if they are codes" in question for question in questions) == asks


def test_codes_of_more_digits_than_excel_keeps_are_asked_about(tmp_path: Path) -> None:
    """Two of them may be one number in the file: their amounts were one without a word."""
    rows = [[9007199254740992, 1], [9007199254740994, 2]]
    _, questions, _ = proposed(written(tmp_path, "xlsx", [["card", "amount"], *rows]))
    assert any("card has 9007199254740992, and Excel keeps 15 digits" in question for question in questions)
    _, questions, _ = proposed(written(tmp_path, "xlsx", [["card", "amount"], *[[str(card), 1] for card, _ in rows]]))
    assert not any("Excel keeps" in question for question in questions)


def test_a_column_of_pictures_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    """One of any table ended in an error, and nothing of the database was proposed."""
    with closing(sqlite3.connect(tmp_path / "f.sqlite")) as database:
        database.execute('CREATE TABLE "order" (k TEXT, amount INTEGER, "the ""picture" BLOB)')
        database.executemany('INSERT INTO "order" VALUES (?, ?, ?)', [("a", 5, None), ("b", 7, b"\x89PNG")])
        database.commit()
    source, questions, catalog = proposed(tmp_path / "f.sqlite")
    assert questions == ('the "picture holds binary data, and is left out',)
    assert query(catalog, QueryRequest(source=source.name), bounds=QUICK).totals == {"amount": D(12)}


@pytest.mark.parametrize(
    ("cells", "total"),
    [
        (["10,5", 20.25, "1.234,50"], "1265.25"), (["10.5", 20.25, "1,234.50"], "1265.25"), (["1.234", 20.25], None),
        (["1.234", "5.678"], None), ([1, "(1.234,5)"], "-1233.5"), ([1.5, 2.25], "3.75"),
    ],
)  # fmt: skip
def test_texts_among_the_amounts_of_a_sheet_prove_their_decimal_sign_or_are_asked_about(
    tmp_path: Path, cells: list[Any], total: str | None
) -> None:
    """A German 1.234 was taken for a little more than one, and 10,5 for no number."""
    file = written(tmp_path, "xlsx", [["Konto", "Betrag"], *[["abc"[at], cell] for at, cell in enumerate(cells)]])
    source, questions, catalog = proposed(file)
    if total is not None:
        assert not questions
        assert query(catalog, QueryRequest(source="f"), bounds=QUICK).totals["betrag"] == D(total)
        return
    assert source.text.decimal == "?"
    assert questions[0].startswith("Betrag has 1.234: if that is 1234, declare")
    with pytest.raises(AnalystError, match="nobody has said yet which sign is the decimal one"):
        query(catalog, QueryRequest(source="f"), bounds=QUICK)
    (said,) = propose(file, QUICK, decimal=",")
    assert (said.source.text.decimal, said.source.text.thousands) == (",", ".")


def test_outline_numbers_of_a_sheet_are_no_amounts(tmp_path: Path) -> None:
    file = written(tmp_path, "xlsx", [["Kapitel", "Betrag"], ["1.100", 2.5], ["1.200", 3.25]])
    source, questions, _ = proposed(file)
    assert (source.text.decimal, "decimal" in "".join(questions)) == (".", False)


def test_the_sign_that_is_said_is_of_files_that_do_not_prove_theirs(tmp_path: Path) -> None:
    """It was said of all files of one command: a column of 1.50 became text."""
    (tmp_path / "f.csv").write_text("Artikel;Betrag\n1;1.50\n2;2.5\n", encoding="utf-8")
    (found,) = propose(tmp_path / "f.csv", QUICK, decimal=",")
    assert (found.source.text.decimal, [one.name for one in found.source.measures]) == (".", ["betrag"])


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet", "frame"])
def test_columns_of_one_name_are_counted_from_the_left(tmp_path: Path, kind: str) -> None:
    """An amount in two currencies stands under one name twice: which is meant is said, and is not the first."""
    names = ["account", "Betrag", "curr", "betrag", "curr"]
    rows: Rows = [["a", 1, "EUR", 2, "USD"], ["b", 10, "EUR", 20, "USD"]]
    measures = (
        Measure(name="first", column="Betrag (1)", currency="own"),
        Measure(name="second", column="betrag (2)", currency="group"),
        Measure(name="both", expression='"Betrag (1)" + "betrag (2)"'),
    )
    dimensions = (Dimension(name="account"), Dimension(name="own", column="curr (1)"),
                  Dimension(name="group", column="curr (2)"))  # fmt: skip
    source = Source(name="f", kind=kind, path="" if kind == "frame" else f"f.{kind}",  # type: ignore[arg-type]
                    dimensions=dimensions, measures=measures)  # fmt: skip
    table = pytest.importorskip("pyarrow").table([list(column) for column in zip(*rows, strict=True)], names=names)
    frames = {"f": table} if kind == "frame" else None
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "f.parquet")
    elif kind != "frame":
        written(tmp_path, kind, [names, *rows])
    found = query(Catalog([source], tmp_path, frames=frames), QueryRequest(source="f"), bounds=QUICK)
    assert (found.totals, found.units) == ({"first": D(11), "second": D(22), "both": D(33)},
                                           {"first": "EUR", "second": "USD"})  # fmt: skip
    for column in ("betrag", "curr"):
        one = replace(source, measures=(Measure(name="n", column=column),))
        with pytest.raises(AnalystError, match=rf"no column '{column}' in its data, but '\w+ \(1\)', '\w+ \(2\)'"):
            query(Catalog([one], tmp_path, frames=frames), QueryRequest(source="f"), bounds=QUICK)


def test_columns_of_one_name_in_a_pandas_frame(tmp_path: Path) -> None:
    """Arrow takes no such frame: what it holds is looked at by the names that its columns are given."""
    frame = pytest.importorskip("pandas").DataFrame([["a", 1, "x", 2, 4]], columns=["k", "m", "k", "m", "M"])
    source = Source(name="f", kind="frame", dimensions=(Dimension(name="k", column="k (2)"),),
                    measures=(Measure(name="m", column="m (2)"), Measure(name="n", column="M (3)")))  # fmt: skip
    catalog = Catalog([source], tmp_path, frames={"f": frame})
    found = query(catalog, QueryRequest(source="f", dimensions=["k"]), bounds=QUICK)
    assert found.rows == [{"k": "x", "m": D(2), "n": D(4)}]
    assert list(frame.columns) == ["k", "m", "k", "m", "M"]
    days = [date(2024, 1, 31), datetime(2024, 1, 31, 10)]
    mixed = type(frame)([[1, days[0], "x"], [2, days[1], "y"]], columns=["m", "day", "day"])
    source = replace(source, dimensions=(), measures=(Measure(name="m"),))
    with pytest.raises(AnalystError, match=r"column 'day \(1\)' holds days and times without a zone"):
        query(Catalog([source], tmp_path, frames={"f": mixed}), QueryRequest(source="f"), bounds=QUICK)


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet", "frame"])
def test_a_column_called_as_one_that_is_counted_is_refused(tmp_path: Path, kind: str) -> None:
    names, row = ["Betrag", "betrag (1)", "Betrag"], [1, 2, 3]
    table = pytest.importorskip("pyarrow").table([[cell] for cell in row], names=names)
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "f.parquet")
    elif kind != "frame":
        written(tmp_path, kind, [names, row])
    source = Source(name="f", kind=kind, path="" if kind == "frame" else f"f.{kind}",  # type: ignore[arg-type]
                    measures=(Measure(name="m", column="betrag (1)"),))  # fmt: skip
    with pytest.raises(AnalystError, match=r"^source 'f': .+ has two columns called 'Betrag \(1\)'; rename one"):
        query(Catalog([source], tmp_path, frames={"f": table} if kind == "frame" else None), QueryRequest(source="f"))


def test_columns_of_one_name_in_several_files(tmp_path: Path) -> None:
    """What is within a column has no part in it."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for year, amount in (("2024", 1), ("2025", 10)):
        (tmp_path / f"year={year}").mkdir()
        cells = [["a"], [{"amount": 5, "of": [1, 2]}], [amount], [2.5], [amount + 1]]
        table = arrow.table([arrow.array(cell) for cell in cells], names=["k", "sub", "amount", "amount_1", "Amount"])
        parquet.write_table(table, tmp_path / f"year={year}" / "f.parquet")
    measures = tuple(Measure(name=name) for name in ("amount (1)", "Amount (2)", "amount_1"))
    source = Source(name="f", kind="parquet", path="*/f.parquet", dimensions=(Dimension(name="k"),), measures=measures)
    found = query(Catalog([source], tmp_path), QueryRequest(source="f", dimensions=["k"]), bounds=QUICK)
    assert found.totals == {"amount (1)": D(11), "Amount (2)": D(13), "amount_1": D(5)}
    (tmp_path / "year=2026").mkdir()
    for names in (["k", "amount", "amount_1"], ["k", "Amount", "amount"]):
        parquet.write_table(arrow.table([["a"], [1], [2]], names=names), tmp_path / "year=2026" / "f.parquet")
        with pytest.raises(AnalystError, match=r"the columns of f\.parquet are not those of the other files"):
            query(Catalog([source], tmp_path), QueryRequest(source="f", dimensions=["k"]), bounds=QUICK)
    (proposal,) = propose(tmp_path / "year=2024" / "f.parquet", QUICK)
    told = "columns are called amount (1) and Amount (2), as those of one name are, counted from the left"
    assert any(question.startswith(told) for question in proposal.questions)


@pytest.mark.parametrize(
    ("names", "other", "told"),
    [
        (["k", "m", "m", "m_1"], ["k", "m", "m_1", "m"], True),
        (["k", "m (1)", "m (2)", "n"], ["k", "m", "m", "n"], True),
        (["k", "m", "m", "n"], ["m", "k", "n", "m"], False),
    ],
)
def test_columns_of_one_name_meet_those_of_other_files_that_are_counted_alike(
    tmp_path: Path, names: list[str], other: list[str], told: bool
) -> None:
    """The engine puts together what it calls alike: a column called as it would call another was added to that one."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for number, header in enumerate((names, other)):
        cells = [["a"] if name == "k" else [100 if name in ("n", "m_1") else at] for at, name in enumerate(header)]
        parquet.write_table(arrow.table(cells, names=header), tmp_path / f"f{number}.parquet")
    measures = (Measure(name="m (1)"), Measure(name="m (2)"))
    source = Source(name="f", kind="parquet", path="f*.parquet", dimensions=(Dimension(name="k"),), measures=measures)
    if told:
        with pytest.raises(AnalystError, match=r"the columns of f1\.parquet are not those of the other files"):
            query(Catalog([source], tmp_path), QueryRequest(source="f"), bounds=QUICK)
    else:
        found = query(Catalog([source], tmp_path), QueryRequest(source="f"), bounds=QUICK)
        assert found.totals == {"m (1)": D(1), "m (2)": D(5)}


def test_a_column_of_one_name_with_another_is_not_read_wider_than_exact(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    wide = arrow.array([D("1.5")], arrow.decimal256(60, 2))
    parquet.write_table(arrow.table([arrow.array([D(1)]), wide], names=["m", "m"]), tmp_path / "f.parquet")
    source = Source(name="f", kind="parquet", path="f.parquet", measures=(Measure(name="m", column="m (2)"),))
    with pytest.raises(AnalystError, match=r"column 'm \(2\)' of f\.parquet has decimals of 60 digits"):
        query(Catalog([source], tmp_path), QueryRequest(source="f"), bounds=QUICK)


def test_columns_of_one_name_are_asked_about(tmp_path: Path) -> None:
    source, questions, catalog = proposed(
        written(tmp_path, "csv", [["k", "k", "amount"], ["a", "b", 1], ["c", "d", 2]])
    )
    assert [item.source_column for item in source.dimensions] == ["k (1)", "k (2)"]
    assert any(
        question.startswith("columns are called k (1) and k (2), as those of one name are, counted from")
        for question in questions
    )
    assert query(catalog, QueryRequest(source="f"), bounds=QUICK).totals == {"amount": D(3)}
    _, questions, _ = proposed(written(tmp_path, "csv", [[7, 7, 7], [1, 2, 3], [4, 5, 6]]))
    assert any(question.startswith("the columns would be called 7, 7, 7: if that is a row") for question in questions)


def test_a_name_with_blanks_around_it_is_found(tmp_path: Path) -> None:
    """What is asked has none, so that such a name was answered by the advice to ask for itself."""
    written(tmp_path, "csv", [["account ", "amount "], ["a", 1], ["b", 2]])
    source = Source(name="f", kind="csv", path="f.csv", dimensions=(Dimension(name="account "),),
                    measures=(Measure(name="amount "),))  # fmt: skip
    asked = QueryRequest(source="f", measures=["amount "], dimensions=["account"], order=["amount desc"])
    found = query(Catalog([source], tmp_path), asked, bounds=QUICK)
    assert [row["amount "] for row in found.rows] == [D(2), D(1)]


def test_columns_of_json_are_proposed_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Which of two that make one name has the number was another in each process."""
    names = ["Net Sales", "k", "net-sales", *(f"c{at}" for at in range(9))]
    file = tmp_path / "f.json"
    file.write_text(json.dumps([dict.fromkeys(names[:2], "a"), dict.fromkeys(names, "b")]), encoding="utf-8")
    source, _, _ = proposed(file)
    assert {item.source_column: item.name for item in source.dimensions} == dict(
        zip(names, ["net_sales", "k", "net_sales_2", *names[3:]], strict=True)
    )
    assert [item.source_column for item in source.dimensions] == names
