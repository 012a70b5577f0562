"""Amounts as people and their programs spell them: read where they can mean one thing, refused where they cannot."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.analyst import AnalystError, TextFormat

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
TEXTUAL = ("csv", "json", "sqlite", "parquet", "duckdb", "frame")
US = TextFormat(decimal=".", thousands=",")
GERMAN = TextFormat(decimal=",", thousands=".")
SWISS = TextFormat(decimal=".", thousands="'")
FRENCH = TextFormat(decimal=",", thousands=" ")
NOT_SAID = TextFormat(decimal="?")

CASES = [
    # text, its signs, the measure's unit, the amount
    ("(1,234.50)", US, "", "-1234.50"),
    ("12,34,567.50", US, "", "1234567.50"),
    ("1,00,000-", US, "", "-100000"),
    ("(\u20b91,23,45,678.9)", US, "INR", "-12345678.9"),
    ("( 7 )", US, "", "-7"),
    ("\u22125", US, "", "-5"),
    ("\u20131,234.5", US, "", "-1234.5"),
    ("- 5", US, "", "-5"),
    ("5-", US, "", "-5"),
    ("5.00 -", US, "", "-5.00"),
    ("1.234,50-", GERMAN, "", "-1234.50"),
    ("(1.234,50)", GERMAN, "", "-1234.50"),
    ("1\u2019234.50", SWISS, "", "1234.50"),
    ("1'234", SWISS, "", "1234"),
    ("(1\u2019234\u2019567.5)", SWISS, "", "-1234567.5"),
    ("1\u202f234,50", FRENCH, "", "1234.50"),
    ("1\u00a0234\u00a0567", FRENCH, "", "1234567"),
    ("$5", US, "USD", "5"),
    ("$1,234.50", US, "$", "1234.50"),
    ("-$5", US, "USD", "-5"),
    ("$-5", US, "USD", "-5"),
    ("($1,234.50)", US, "USD", "-1234.50"),
    ("$(5)", US, "USD", "-5"),
    ("5 \u20ac", GERMAN, "EUR", "5"),
    ("1.234,50 EUR", GERMAN, "EUR", "1234.50"),
    ("EUR 5,00-", GERMAN, "EUR", "-5.00"),
    ("1234", NOT_SAID, "", "1234"),
]


def lay(world: Any, engine: str, texts: list[str], form: TextFormat, unit: str) -> None:
    rows = [(str(at), text) for at, text in enumerate(texts)]
    world.lay(engine, "a", rows, types=("text", "text"), decimals=None, unit=unit)
    world.change("a", text=form)


@pytest.mark.parametrize("engine", TEXTUAL)
def test_spellings(world: Any, engine: str) -> None:
    for form, unit in dict.fromkeys((form, unit) for _, form, unit, _ in CASES):
        cases = [(text, D(amount)) for text, own, given, amount in CASES if (own, given) == (form, unit)]
        lay(world, engine, [text for text, _ in cases], form, unit)
        found = world.ask(dimensions=["key"])
        assert [row["amount"] for row in found.rows] == [amount for _, amount in cases]
        assert found.totals == {"amount": sum(amount for _, amount in cases)}


@pytest.mark.parametrize("engine", ["csv", "sqlite"])
@pytest.mark.parametrize(
    ("text", "form", "unit"),
    [
        ("$5", US, ""), ("$5", US, "EUR"), ("5 USD", US, "EUR"), ("(5", US, ""), ("5)", US, ""), ("-(5)", US, ""),
        ("(-5)", US, ""), ("()", US, ""), ("5--", US, ""), ("--5", US, ""), ("1'23", SWISS, ""), ("1,23.5", US, ""),
        ("5 %", US, ""), ("$", US, "$"), ("1.234", NOT_SAID, ""), ("1,5", NOT_SAID, ""), ("1 2", US, ""),
        ("5 5", FRENCH, ""),
    ],
)  # fmt: skip
def test_what_could_mean_something_else_is_refused(
    world: Any, engine: str, text: str, form: TextFormat, unit: str
) -> None:
    lay(world, engine, ["1", text, "(2)"], form, unit)
    with pytest.raises(AnalystError, match="declare under 'text'"):
        world.total()


def test_an_expression_over_spelled_amounts(world: Any) -> None:
    world.lay("csv", "a", [("x", "(1,000.50)", "2")], columns=("key", "price", "amount"), types=("text",) * 3)
    (measure,) = world.sources["a"].measures
    world.change("a", text=US, measures=(replace(measure, column="", decimals=None, expression="price * amount"),))
    assert world.total() == D("-2001.00")


LINES = """\
Balance list January;;
printed 31.01.2024;;

KONTO;TEXT;BETRAG
1000;Kasse;10,50
2000;Bank;3,50
;;
Summe:;;14,00
3000;Total Energies;1,00
 ;;15,00
*;;15,00
Summe 2024;;15,00
"""


def declared(world: Any, text: str) -> None:
    (world.folder / "list.csv").write_text(LINES, encoding="utf-8")
    (world.folder / "sources.yaml").write_text(f"""\
sources:
  a:
    kind: csv
    path: list.csv
    text: {text}
    dimensions: {{key: {{column: KONTO}}, text: {{column: TEXT}}}}
    measures: {{amount: {{column: BETRAG}}}}
""")


def test_lines_before_the_header_and_lines_of_totals(world: Any) -> None:
    from treadle.analyst import Catalog, QueryRequest, query

    declared(world, "{delimiter: ';', decimal: ',', skip: 3, totals: [SUMME, '*', 'Summe %', '']}")
    found = query(Catalog.load(world.folder / "sources.yaml"), QueryRequest(source="a", dimensions=["key"]))
    assert {row["key"]: row["amount"] for row in found.rows} == {"1000": D("10.50"), "2000": D("3.50"), "3000": D("1")}
    assert found.source_rows == 3
    declared(world, "{delimiter: ';', decimal: ',', skip: 3, totals: ['summe']}")
    found = query(Catalog.load(world.folder / "sources.yaml"), QueryRequest(source="a"))
    assert (found.totals["amount"], found.source_rows) == (D("60.00"), 7)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_lines_are_skipped_in_every_encoding(world: Any, encoding: str) -> None:
    from treadle.analyst import Catalog, Dimension, Measure, QueryRequest, Source, query

    (world.folder / "x.csv").write_bytes("Überschrift\n\nkey,amount\nä,1\nSumme,1\n".encode(encoding))
    source = Source(
        name="a", kind="csv", path="x.csv", dimensions=(Dimension(name="key"),), measures=(Measure(name="amount"),),
        text=TextFormat(encoding=encoding.removesuffix("-sig"), skip=2, totals=("Summe",)),
    )  # fmt: skip
    assert query(Catalog([source], world.folder), QueryRequest(source="a")).totals == {"amount": 1}


@pytest.mark.parametrize("text", ["skip: x", "skip: -1", "totals: {a: b}", "decimal: '!'"])
def test_what_is_declared_wrongly_is_told(world: Any, text: str) -> None:
    from treadle.analyst import Catalog

    declared(world, f"{{{text}}}")
    with pytest.raises(AnalystError, match=r"line 5: sources\.a\.text"):
        Catalog.load(world.folder / "sources.yaml")


def test_only_csv_has_lines_to_leave_out(world: Any) -> None:
    with pytest.raises(ValueError, match=r"neither text\.skip nor"):
        replace(world.lay("json", "a", [("x", "1")]), text=TextFormat(skip=1))
