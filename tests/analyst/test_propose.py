"""Proposals: what each column is taken for, and that what is proposed can be read and asked at once."""

import gzip
import zipfile
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import AnalystError, Bounds, Catalog, QueryRequest, check, declaration, propose, query
from treadle.analyst.asking.columns import guess

QUICK = Bounds(threads=1, seconds=60)


def zipped(name: str) -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr(name, "x")
    return written.getvalue()


GUESSES = [
    # name, type, values, role, format, type, decimals
    ("BUKRS", "VARCHAR", ["0000001001", "0000001002"], "dimension", "alpha(10)", None, None),
    ("HKONT", "VARCHAR", ["0000710300", "REVENUE"], "dimension", "alpha(10)", None, None),
    ("period", "VARCHAR", ["2024001", "2024002"], "dimension", "fiscal_period", None, None),
    ("period", "BIGINT", ["202401", "202416"], "dimension", "fiscal_period", None, None),
    ("period", "VARCHAR", ["001.2024"], "dimension", "fiscal_period", None, None),
    ("total", "VARCHAR", ["202401", "202402"], "measure", "", None, 0),
    ("day", "VARCHAR", ["2024-01-31"], "dimension", "", "date", None),
    ("year", "BIGINT", ["2023", "2024"], "dimension", "", None, None),
    ("WAERS", "VARCHAR", ["EUR", "USD"], "dimension", "", None, None),
    ("DMBTR", "VARCHAR", ["1.50", "-2"], "measure", "", None, 2),
    ("x", "VARCHAR", ["1.505", "2", None, ""], "measure", "", None, 3),
    ("x", "VARCHAR", ["1.5", "n/a"], "dimension", "", None, None),
    ("x", "VARCHAR", ["-5", "7"], "measure", "", None, 0),
    ("x", "DECIMAL(18,4)", ["1.0000"], "measure", "", None, 4),
    ("x", "DOUBLE", ["1.5"], "measure", "", None, None),
    ("account", "BIGINT", ["710300", "800100"], "dimension", "", None, None),
    ("flag", "BIGINT", ["1", "2"] * 50, "dimension", "", None, None),
    ("pieces", "BIGINT", [str(at) for at in range(1, 200)], "measure", "", None, 0),
    ("name", "VARCHAR", ["a ", "b"], "dimension", "trim", None, None),
    *(
        (name, "VARCHAR", [str(at) for at in range(98, 200)], "dimension", "", None, None)
        for name in (
            "BELNR",
            "Kunde",
            "Endkunde",
            "Debitor",
            "Sachkonto",
            "Kostenstelle",
            "Periode",
            "Gesellschaft",
            "Segment",
            "Cost Center",
            "cost_element",
            "Sales Order",
            "Balance Sheet Account",
            "Wertart",
            "Umsatzschlüssel",
        )
    ),
    *(
        (name, "VARCHAR", [str(at) for at in range(98, 200)], "measure", "", None, 0)
        for name in (
            "Betrag in Hauswährung",
            "Amount in Company Code Currency",
            "Umsatz Periode 1",
            "Sales Week 12",
            "Order Value",
            "Kontosaldo",
            "orders",
            "Gesamtsumme",
            "x",
        )
    ),
    ("x", "VARCHAR", [str(at) for at in range(4711, 4999)], "dimension", "", None, None),
    ("empty", "VARCHAR", [None, " "], "dimension", "", None, None),
    ("open", "BOOLEAN", ["true"], "dimension", "", None, None),
]


@pytest.mark.parametrize("case", GUESSES, ids=lambda case: f"{case[0]}-{case[2][0]}")
def test_what_a_column_is_taken_for(case: tuple[Any, ...]) -> None:
    name, kind, values, role, form, type_, decimals = case
    found = guess(name, kind, values)
    assert (found.role, found.format, found.type, found.decimals) == (role, form, type_, decimals)
    assert found.reason


LEDGER = """\
BUKRS;PERIOD;DMBTR;WAERS;Sachkonto Nr.;on
0000001001;2024001;1.250,00;EUR;7103;x: y
0000001001;2024002;99,50-;EUR;8002;#
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_ledger_is_proposed_and_can_be_asked(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "FI Belege.csv"
    file.write_bytes(LEDGER.replace("x: y", "Zoë").encode(encoding))
    text = declaration([(file, found) for found in propose(file, QUICK)], tmp_path)
    (tmp_path / "sources.yaml").write_text(text, encoding="utf-8")
    catalog = Catalog.load(tmp_path / "sources.yaml")
    (source,) = catalog.sources.values()
    assert "# numbers filled up with zeros to 10 characters, such as 0000001001: SAP's ALPHA" in text
    assert [(item.name, str(item.format)) for item in source.dimensions] == [
        ("bukrs", "alpha(10)"), ("period", "fiscal_period"), ("waers", ""), ("sachkonto_nr", ""), ("on", ""),
    ]  # fmt: skip
    assert [(item.name, item.decimals, item.currency) for item in source.measures] == [("dmbtr", 2, "waers")]
    found = query(catalog, QueryRequest(source="fi_belege", filters={"bukrs": 1001}), bounds=QUICK)
    assert found.totals == {"dmbtr": Decimal("1150.50")}
    assert check(catalog, source, bounds=QUICK).problems == ()


@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "sqlite", "duckdb"])
def test_every_kind_of_file(make: Any, tmp_path: Path, kind: str) -> None:
    made = make("held", [("a", Decimal("1.25")), ("b", Decimal("2.50"))], kind=kind)
    (found,) = propose(tmp_path / made.path, QUICK)
    assert found.source.kind == kind
    assert [item.name for item in found.source.dimensions] == ["company"]
    assert [(item.name, item.decimals) for item in found.source.measures] == [("amount", 2)]
    assert query(Catalog([found.source], tmp_path), QueryRequest(source="held")).totals == {"amount": Decimal("3.75")}


def test_a_file_without_a_figure_is_counted(make: Any, tmp_path: Path) -> None:
    make("held", [("a", "x")])
    (found,) = propose(tmp_path / "held.csv", QUICK)
    assert [(item.name, item.aggregation) for item in found.source.measures] == [("rows", "count")]
    text = declaration([(tmp_path / "held.csv", found)], tmp_path / "elsewhere")
    (tmp_path / "s.yaml").write_text(text)
    assert query(Catalog.load(tmp_path / "s.yaml"), QueryRequest(source="held")).totals == {"rows": 1}


@pytest.mark.parametrize("name", ["x.docx", "nothing.csv", "README"])
def test_what_cannot_be_proposed_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "README").write_text("x")
    (tmp_path / "x.docx").write_text("x")
    with pytest.raises(AnalystError, match=r"ending is not that|does not exist"):
        propose(tmp_path / name)


def parquet_bytes() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table({"k": ["x"]}), sink)
    return sink.getvalue().to_pybytes()


NO_TEXTS = {
    "plain.csv.gz": (b"konto;betrag\n1;2,50\n", "Not a gzipped file .* whether it is packed at all"),
    "page.csv": (b"\xef\xbb\xbf <!DOCTYPE html><html><body>Sign in</body></html>", r"a web page.* export the table"),
    "list.txt": (gzip.compress(b"konto;betrag\n1;2,50\n"), r"packed by gzip: let its name end in \.gz"),
    "list.csv": (b"%PDF-1.4\n%\xe2\xe3", "a PDF: export the table"),
    "old.csv": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an older Excel file, or one with a password: save it"),
    "report.zip": (zipped("list.csv"), r"a packed file \(\.zip\): unpack it"),
    "sheet.csv": (zipped("xl/workbook.xml"), r"an Excel file: let its name end in \.xlsx"),
    "sheet.xls": (zipped("xl/workbook.xml"), r"an Excel file: let its name end in \.xlsx"),
    "cut.csv": (b"PK\x03\x04 cut", "a packed file that cannot be opened: look whether all of it is there"),
    "~$sheet.xlsx": (b"\x05Sarah" + bytes(159), r"no data: Excel keeps it while sheet\.xlsx is open"),
    "x.dat": (b"konto;betrag\n1;2,50\n", r"ending is not that.* let that of text.* be \.csv"),
}


@pytest.mark.parametrize("name", NO_TEXTS)
def test_what_is_no_table_of_text_is_told_with_what_to_do(tmp_path: Path, name: str) -> None:
    """A packed file under the name of text was proposed as a column of signs that nobody can read."""
    content, told = NO_TEXTS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AnalystError, match=told):
        propose(tmp_path / name, QUICK)


def test_a_data_file_is_known_by_more_than_a_word(tmp_path: Path) -> None:
    """A table of text whose first name is what Parquet files begin with was told as one."""
    file = tmp_path / "f.csv"
    file.write_bytes(parquet_bytes())
    with pytest.raises(AnalystError, match=r"a Parquet file: let its name end in \.parquet"):
        propose(file, QUICK)
    file.write_text("PAR1;betrag\nx;2,50\n")
    (proposal,) = propose(file, QUICK)
    assert [measure.name for measure in proposal.source.measures] == ["betrag"]


@pytest.mark.parametrize("name", ["\U0001f600", "\U00020bb7 \u00e4", 'a"b\\c', "Z\u00fcrich", "\u2028x", "0123"])
def test_a_file_and_a_column_of_any_name_can_be_read_as_proposed(tmp_path: Path, name: str) -> None:
    """JSON writes a sign of more than 16 bits as a pair, which YAML took for two signs that no file name can have."""
    file = tmp_path / f"{name}.csv"
    file.write_text(f"k\t{name.replace(chr(34), '')}\nx\t1.50\n", encoding="utf-8")
    (proposal,) = propose(file, QUICK)
    (tmp_path / "sources.yaml").write_text(declaration([(file, proposal)], tmp_path), encoding="utf-8")
    catalog = Catalog.load(tmp_path / "sources.yaml")
    (source,) = catalog.sources.values()
    assert query(catalog, QueryRequest(source=source.name), bounds=QUICK).source_rows == 1


def test_a_column_that_has_another_name_is_told_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("BUKRS;BELNR;TEXT;WAERS;WRBTR;HWAER;DMBTR\n")
    (tmp_path / "sources.yaml").write_text(
        "sources: {f: {kind: csv, path: f.csv, text: {delimiter: ';'}, dimensions: {}, measures: {HSL: {}}}}"
    )
    catalog = Catalog.load(tmp_path / "sources.yaml")
    (problem,) = check(catalog, catalog.source("f"), bounds=QUICK).problems
    assert "no column 'HSL' in its data; there are BUKRS, BELNR, TEXT, WAERS, WRBTR, HWAER, …" in problem


def test_sources_without_a_measure_in_common_are_told_with_what_each_has(make: Any, tmp_path: Path) -> None:
    from msgspec.structs import replace

    from treadle.analyst import CompareRequest, compare

    ledger, mart = make("ledger", [("x", "1.00")]), make("mart", [("x", "1.00")])
    ledger = replace(ledger, measures=tuple(replace(one, name="hsl", column="amount") for one in ledger.measures))
    for names, told in ((None, "measure"), (["hsl"], "measure 'hsl'"), (["amount"], "measure 'amount'")):
        request = CompareRequest(source_a="ledger", source_b="mart", measures=names)
        with pytest.raises(AnalystError, match=rf"no {told} in common: hsl in the one, amount in the other.*--map"):
            compare(Catalog([ledger, mart], tmp_path), request, bounds=QUICK)


def test_check_tells_all_that_is_wrong(make: Any, tmp_path: Path) -> None:
    from msgspec.structs import replace

    from treadle.analyst import Dimension, Filter, Measure

    source = make("s", [("x", "1.00"), ("y", "one")])
    odd = replace(
        source,
        dimensions=(Dimension(name="compny"), Dimension(name="day", column="company", type="date")),
        measures=(*source.measures, Measure(name="amont")),
    )
    found = check(Catalog([odd], tmp_path), odd, bounds=QUICK)
    told = "\n".join(found.problems)
    assert "compny: source 's' has no column 'compny' in its data; did you mean 'company'?" in told
    assert "amont: " in told
    assert "text that is no number" in told
    assert "day: source 's': a value is not what its column is declared to be" in told
    none = replace(make("t", [("x", "1.00")]), default_filters=(Filter(dimension="company", value="z"),))
    assert check(Catalog([none], tmp_path), none, bounds=QUICK).warnings == (
        "t has no row with company = z; its values of company are x",
        "t has no row that passes the filters",
    )
    gone = replace(source, path="gone.csv")
    assert "does not exist" in check(Catalog([gone], tmp_path), gone).problems[0]


def test_a_column_of_texts_is_looked_through_once() -> None:
    """Each text was held against all others, so that ten thousand took a second."""
    held = 0

    class Text(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal held
            held += 1
            return str.__eq__(self, other)

        def strip(self, signs: str | None = None, /) -> "Text":
            return self

    found = guess("remark", "VARCHAR", [Text(f"text {at}") for at in range(1_000)], ",", ".")
    assert (found.role, found.question, held < 1_000) == ("dimension", "", True)
