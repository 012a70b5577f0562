"""Lists that are drawn with lines, currency signs of several currencies, and periods that no year has."""

from decimal import Decimal
from pathlib import Path

import pytest

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    CompareRequest,
    Dimension,
    Filter,
    Measure,
    QueryRequest,
    Source,
    TextFormat,
    check,
    compare,
    declaration,
    parse_format,
    propose,
    query,
)
from treadle.analyst.declared.formats import period_of

pytestmark = pytest.mark.usefixtures("one_engine")

QUICK = Bounds(threads=1)
LIST = """\
Company code 1001                                    Page 1

----------------------------------------------
|BUKRS|JAHRPER|HKONT     |         HSL|WAERS|
|--------------------------------------------|
|1001 |2024001|0000415000|   64.285,72-|EUR  |
|1001 |2024001|0000710300|    1.392,85 |EUR  |
----------------------------------------------

----------------------------------------------
|BUKRS|JAHRPER|HKONT     |         HSL|WAERS|
|--------------------------------------------|
|1001 |2024002|0000415000|       10,00 |EUR  |
----------------------------------------------
"""


def proposed(file: Path) -> Catalog:
    """The catalogue of what is proposed of a file."""
    target = file.parent / "sources.yaml"
    target.write_text(declaration([(file, one) for one in propose(file)], file.parent), encoding="utf-8")
    return Catalog.load(target)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_list_as_sap_draws_it_is_read(tmp_path: Path, encoding: str, end: str) -> None:
    (tmp_path / "list.txt").write_bytes(LIST.replace("Company", "Gesellschaft ü").replace("\n", end).encode(encoding))
    catalog = proposed(tmp_path / "list.txt")
    source = catalog.sources["list"]
    assert (source.text.ruled, source.text.decimal, source.measures[0].currency) == (True, ",", "waers")
    found = query(catalog, QueryRequest(source="list", dimensions=["hkont"]), bounds=QUICK)
    assert [(row["hkont"], row["hsl"]) for row in found.rows] == [
        ("415000", Decimal("-64275.72")), ("710300", Decimal("1392.85")),
    ]  # fmt: skip
    assert check(catalog, source, bounds=QUICK).problems == ()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("|1001 |2024002|0000415000|       10,00 |EU", "line 14: this is no row"),
        ("Total 17", "line 14: this is no row"),
        ("|1001 |2024002|0000|415000|       10,00 |EUR  |", "line 14: this has 6 fields"),
        ("|1001 |2024002|", "line 14: this has 2 fields"),
    ],
)
def test_what_is_no_row_of_a_list_is_told_with_its_line(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "list.txt").write_text(LIST)
    catalog = proposed(tmp_path / "list.txt")
    lines = LIST.splitlines()
    (tmp_path / "list.txt").write_text("\n".join([*lines[:13], line, *lines[14:]]))
    with pytest.raises(AnalystError, match=says):
        query(catalog, QueryRequest(source="list"), bounds=QUICK)


def test_a_field_of_a_list_may_hold_quotes_and_nothing(tmp_path: Path) -> None:
    drawn = '-------\n|k  |v|\n-------\n|"a |1|\n|   |2|\n|a""|4|\n-------\n'
    (tmp_path / "list.csv").write_text(drawn)
    source = Source(name="list", kind="csv", path="list.csv", dimensions=(Dimension(name="k"),),
                    measures=(Measure(name="v"),), text=TextFormat(ruled=True))  # fmt: skip
    found = query(Catalog([source], tmp_path), QueryRequest(source="list", dimensions=["k"]), bounds=QUICK)
    assert {row["k"]: row["v"] for row in found.rows} == {'"a': 1, None: 2, 'a""': 4}
    with pytest.raises(ValueError, match=r"takes no text\.ruled"):
        Source(name="x", kind="parquet", path="x", measures=(Measure(name="v"),), text=TextFormat(ruled=True))


def test_a_table_between_bars_without_lines_is_csv(tmp_path: Path) -> None:
    (tmp_path / "bars.csv").write_text("k|v\na|1.50\nb|2.50\n")
    assert propose(tmp_path / "bars.csv")[0].source.text == TextFormat(delimiter="|")


@pytest.mark.parametrize(("sign", "first"), [("$", "USD"), ("¥", "JPY")])
def test_a_sign_of_several_currencies_is_asked_about(tmp_path: Path, sign: str, first: str) -> None:
    (tmp_path / "a.csv").write_text(f"k,amount\nx,{sign}5.00\ny,-{sign}1.00\n", encoding="utf-8")
    (found,) = propose(tmp_path / "a.csv")
    assert found.source.measures[0].unit == ""
    assert f"amount has amounts in {sign}: say which currency that is, such as 'unit: {first}'" in found.questions[0]
    with pytest.raises(AnalystError, match="as the measure's 'unit' a currency"):
        query(Catalog([found.source], tmp_path), QueryRequest(source="a"), bounds=QUICK)
    said = Measure(name="amount", unit="CAD" if sign == "$" else "CNY")
    source = Source(name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="k"),), measures=(said,))
    assert query(Catalog([source], tmp_path), QueryRequest(source="a"), bounds=QUICK).totals["amount"] == 4


def test_a_sign_is_the_currency_that_a_column_has(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,amount,currency\nx,$5.00,USD\ny,$1.00,USD\n")
    (found,) = propose(tmp_path / "a.csv")
    assert (found.source.measures[0].unit, found.questions) == ("USD", ())
    (tmp_path / "a.csv").write_text("k,amount,currency\nx,$5.00,EUR\ny,$1.00,EUR\n")
    (found,) = propose(tmp_path / "a.csv")
    assert (found.source.measures[0].unit, len(found.questions)) == ("", 1)


@pytest.mark.parametrize(
    ("text", "period"),
    [("17/2024", None), ("2024017", None), ("2024.99", None), ("099.2024", None), ("2024-13-01", None),
     ("2024-31-12", None), ("16/2024", "202416"), ("2024000", "202400"), ("001.2024", "202401"), ("9/2024", "202409"),
     ("2024-12-31", "202412"), ("10.2024", "202410")],
)  # fmt: skip
def test_only_what_a_year_has_is_a_period(text: str, period: str | None) -> None:
    assert period_of(text) == period


def test_what_is_no_period_stays_apart_and_can_be_asked_for(tmp_path: Path) -> None:
    key = Dimension(name="period", format=parse_format("fiscal_period"))
    for name, rows in (("a", "17/2024,1\n01/2024,2\n"), ("b", "2024017,1\n2024001,2\n")):
        (tmp_path / f"{name}.csv").write_text(f"period,amount\n{rows}")
    sources = [Source(name=name, kind="csv", path=f"{name}.csv", dimensions=(key,), measures=(Measure(name="amount"),))
               for name in "ab"]  # fmt: skip
    catalog = Catalog(sources, tmp_path)
    found = compare(catalog, CompareRequest(source_a="a", source_b="b"), bounds=QUICK)
    assert {row.key["period"]: row.status for row in found.rows} == {
        "17/2024": "missing_in_b", "2024017": "missing_in_a", "202401": "match",
    }  # fmt: skip
    odd = query(catalog, QueryRequest(source="a", filters=[Filter(dimension="period", value="17/2024")]), bounds=QUICK)
    assert odd.totals["amount"] == 1
    none = query(catalog, QueryRequest(source="a", filters=[Filter(dimension="period", value="2024-99")]), bounds=QUICK)
    assert "its values of period are 17/2024, 202401" in none.warnings[0]
    within = Filter(dimension="period", op="between", value=["202401", "202499"])
    with pytest.raises(AnalystError, match="'2024017' there, and not a fiscal period"):
        query(catalog, QueryRequest(source="b", filters=[within]), bounds=QUICK)


OPENED = ('"Cable" long', 'Cable 5"', '"Cable', 'Cable "5" "', '"')


@pytest.mark.parametrize("inches", [(0, 1), (2, 1), (2, 3), (1, 3), (2, 2), (4, 2)])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_quote_in_a_text_with_tabs_takes_no_row_away(tmp_path: Path, inches: tuple[int, int], end: str) -> None:
    """As SAP exports it, where an inch sign is text: what stood between two of them was one row."""
    texts = [f"Text {number}" for number in range(20)]
    texts[5], texts[9] = (OPENED[at] for at in inches)
    lines = ["List of items", "", "CoCd\tText\tAmount\tCurr"]
    lines += [f"1001\t{text}\t{number + 1}.000,50\tEUR" for number, text in enumerate(texts)]
    (tmp_path / "items.txt").write_text(end.join([*lines, ""]), encoding="utf-8", newline="")
    catalog = proposed(tmp_path / "items.txt")
    found = query(catalog, QueryRequest(source="items", dimensions=["text"]), bounds=QUICK)
    assert (found.source_rows, str(found.totals["amount"])) == (20, "210010.00")
    assert {row["text"] for row in found.rows} == set(texts)


def test_ditto_marks_beside_each_other_are_two_texts(tmp_path: Path) -> None:
    """Within quotes they were one text, of a row that had a field less than the others."""
    rows = ["1001\tbolts\tBerlin\t5", '1002\t"\t"\t6', "1003\tnuts\tBern\t7"]
    (tmp_path / "items.txt").write_text("\n".join(["CoCd\tText\tPlace\tPieces", *rows, ""]), encoding="utf-8")
    (found,) = propose(tmp_path / "items.txt")
    assert (found.source.text.quotes, found.source.text.delimiter) == (False, "\t")
    read = query(proposed(tmp_path / "items.txt"), QueryRequest(source="items", dimensions=["place"]), bounds=QUICK)
    assert {row["place"] for row in read.rows} == {"Berlin", '"', "Bern"}


def test_quotes_of_csv_are_none_of_its_text(tmp_path: Path) -> None:
    """A name and a text over several lines, and a delimiter in quotes."""
    (tmp_path / "items.csv").write_text(
        'CoCd;"Amount\nEUR";Text\n1001;5,50;"two\nlines"\n1001;6,50;"a ""b""; c"\n1002;7,25;plain\n', encoding="utf-8"
    )
    (found,) = propose(tmp_path / "items.csv")
    assert (found.source.text.has_quotes, found.source.text.delimiter) == (True, ";")
    assert list(found.guesses) == ["CoCd", "Amount\nEUR", "Text"]


@pytest.mark.parametrize("rows", [2, 25_000])
def test_quotes_that_hold_every_row_over_two_lines_are_none_of_its_text(tmp_path: Path, rows: int) -> None:
    """Each line had as many fields as the next, so that the columns were called by what the first row has."""
    lines = [f'"{1000 + number}";"Main Street {number}\n12345 Berlin";"5,50"\n' for number in range(rows)]
    (tmp_path / "items.csv").write_text('"CoCd";"Address";"Amount"\n' + "".join(lines), encoding="utf-8")
    (found,) = propose(tmp_path / "items.csv")
    assert (found.source.text.has_quotes, found.source.text.skip) == (True, 0)
    assert list(found.guesses) == ["CoCd", "Address", "Amount"]


def test_an_open_quote_far_below_is_told_with_what_to_declare(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text('a,v\nx,1\n"y,2\n', encoding="utf-8")
    source = Source(
        name="items", kind="csv", path="items.csv", dimensions=(Dimension(name="a"),), measures=(Measure(name="v"),)
    )
    with pytest.raises(AnalystError, match="quotes: false"):
        query(Catalog([source], tmp_path), QueryRequest(source="items"), bounds=QUICK)
    with pytest.raises(ValueError, match=r"takes no text\.quotes"):
        Source(name="x", kind="parquet", path="x", measures=(Measure(name="v"),), text=TextFormat(quotes=False))


def test_each_page_of_a_list_may_begin_with_titles(tmp_path: Path) -> None:
    page = LIST.replace("Page 1", "Page 2").partition("\n\n-----")[0]
    lines = LIST.replace("-\n\n-", f"-\n\n{page}\n17 items so far\n\n-")
    assert lines.count("Page") == 2
    (tmp_path / "list.txt").write_text(lines)
    found = query(proposed(tmp_path / "list.txt"), QueryRequest(source="list"), bounds=QUICK)
    assert (found.source_rows, found.totals["hsl"]) == (3, Decimal("-62882.87"))


@pytest.mark.parametrize(
    ("amounts", "question"),
    [
        (["5,50 EUR", "1.000,00 USD", "7,25 EUR"], "amount has EUR and USD beside its amounts"),
        (["5,50", "-", "-", "-", "-"], "amount has amounts, but also '-'"),
    ],
)
def test_amounts_that_are_taken_for_text_are_asked_about(tmp_path: Path, amounts: list[str], question: str) -> None:
    lines = [f"k{number};{amount}" for number, amount in enumerate(amounts)]
    (tmp_path / "a.csv").write_text("\n".join(["k;amount", *lines, ""]))
    (found,) = propose(tmp_path / "a.csv")
    assert any(question in one for one in found.questions), found.questions
