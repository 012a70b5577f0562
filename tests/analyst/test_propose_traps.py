"""What people's files look like: proposed as they are meant, or asked about, never a wrong figure called good."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    Checked,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    check,
    compare,
    declaration,
    propose,
    query,
)
from treadle.analyst.declared.source import TextFormat

from .conftest import write_table

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
QUICK = Bounds(threads=1, seconds=60)


class Proposed:
    """What is proposed for a file, written down, loaded again and asked."""

    def __init__(self, folder: Path, text: str, **more: Any) -> None:
        (folder / "f.csv").write_text(text, encoding="utf-8")
        (found,) = propose(folder / "f.csv", QUICK, **more)
        self.questions = found.questions
        self.text = declaration([(folder / "f.csv", found)], folder)
        (folder / "sources.yaml").write_text(self.text, encoding="utf-8")
        self.catalog = Catalog.load(folder / "sources.yaml")

    @property
    def source(self) -> Source:
        return self.catalog.sources["f"]

    def totals(self, **request: Any) -> dict[str, Decimal | None]:
        return query(self.catalog, QueryRequest(source="f", **request), bounds=QUICK).totals

    def by(self, name: str) -> dict[Any, Any]:
        found = query(self.catalog, QueryRequest(source="f", dimensions=[name]), bounds=QUICK)
        return {str(row[name]): next(iter(list(row.values())[1:])) for row in found.rows}

    def checked(self) -> Checked:
        return check(self.catalog, self.source, bounds=QUICK)


AMBIGUOUS = "KONTO;BETRAG\n1000;1.234\n2000;12.500\n3000;300\n"


def test_a_sign_that_may_be_either_is_asked_about(tmp_path: Path) -> None:
    found = Proposed(tmp_path, AMBIGUOUS)
    (question,) = found.questions
    assert "BETRAG has 1.234: if that is 1234, declare 'decimal: \",\"' and 'thousands: \".\"'" in question
    assert question in found.text
    assert "nobody has said yet which sign is the decimal one" in found.checked().problems[0]
    with pytest.raises(AnalystError, match="nobody has said yet"):
        found.totals()


@pytest.mark.parametrize(("decimal", "total"), [(",", D("14034")), (".", D("313.734"))])
def test_and_the_answer_is_taken(tmp_path: Path, decimal: str, total: Decimal) -> None:
    found = Proposed(tmp_path, AMBIGUOUS, decimal=decimal)
    assert found.questions == ()
    assert found.totals()["betrag"] == total


@pytest.mark.parametrize(
    ("amounts", "total"),
    [
        (["1.234", "1,5"], "1235.5"), (["1,234", "1.5"], "1235.5"), (["1.234", "0.123"], "1.357"),
        (["1.234", "1.234.567"], "1235801"), (["1234.567"], "1234.567"), (["1.234,50"], "1234.50"),
        (["1,234.50-", "2"], "-1232.50"), (["1.234", "12,34"], "1246.34"), (["1 234", "5,5"], "1239.5"),
        (["1'234", "1.5"], "1235.5"), (["12,34,567.50", "1,234"], "1235801.50"), (["-1,00,000", "5"], "-99995"),
    ],
)  # fmt: skip
def test_one_number_that_proves_the_sign_is_enough(tmp_path: Path, amounts: list[str], total: str) -> None:
    found = Proposed(tmp_path, "k|amount\n" + "".join(f"x{at}|{text}\n" for at, text in enumerate(amounts)))
    assert (found.questions, found.totals()["amount"]) == ((), D(total))


def test_another_column_proves_the_sign(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "k;menge;preis\na;1.234;2,50\nb;2.000;1,25\n")
    assert found.totals() == {"menge": D(3234), "preis": D("3.75")}


def test_amounts_of_a_text_file_whose_signs_are_not_known_are_asked_about(tmp_path: Path) -> None:
    """They were proposed as text without a word."""
    found = Proposed(tmp_path, "konto;montant\na;1,2345,678.5\nb;2,0000,000.5\n")
    (question,) = found.questions
    assert question.startswith("montant has text such as 1,2345,678.5, which is not added up")


def test_columns_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "k;amount;value;price\na;1,50;2,5;2.5\n")
    assert found.questions == (
        "price has numbers with another decimal sign than the other columns; it is taken for text",
    )
    assert "price" in [item.name for item in found.source.dimensions]


def test_whole_amounts_keep_their_currency(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "k,amount,balance,pieces,hours,waers\na,100,-7,3,8,EUR\nb,205,9,99,7,EUR\n")
    told = {item.name: item.currency for item in found.source.measures}
    assert told == {"amount": "waers", "balance": "waers", "pieces": "", "hours": ""}


@pytest.mark.parametrize("other", ["20.55", "21.4", "21.0000"])
def test_a_guess_never_loosens_a_comparison(tmp_path: Path, other: str) -> None:
    """Whole numbers do not mean that half a unit is nothing."""
    sources = []
    for name, amount in (("a", "21"), ("b", other)):
        (tmp_path / f"{name}.csv").write_text(f"k,amount\nx,{amount}\n")
        sources.append(propose(tmp_path / f"{name}.csv", QUICK)[0].source)
    for first, second in (sources, sources[::-1]):
        found = compare(
            Catalog([first, second], tmp_path), CompareRequest(source_a=first.name, source_b=second.name), bounds=QUICK
        )
        assert found.tolerance.absolute <= D("0.01")
        assert found.summary.matches == (other == "21.0000")


def test_a_guess_for_a_frame_does_not_either() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    frames = {"a": pyarrow.table({"k": ["x"], "v": [21]}), "b": pyarrow.table({"k": ["x"], "v": [D("20.55")]})}
    found = compare(Catalog.of(frames), CompareRequest(source_a="a", source_b="b"), bounds=QUICK)
    assert (found.summary.matches, found.tolerance.absolute) == (0, D("0.01"))


@pytest.mark.parametrize(
    "word", ["Summe", "Total", "GESAMT", "Summe:", "Gesamtergebnis", "Grand Total", " total ", "*"]
)
def test_a_line_of_totals_that_adds_up_is_left_out(tmp_path: Path, word: str) -> None:
    found = Proposed(tmp_path, f"konto;menge;betrag\n1000;1;10,50\n2000;2;3,50\n{word};3;14,00\n")
    assert found.totals() == {"menge": D(3), "betrag": D("14.00")}
    assert found.by("konto") == {"1000": D(1), "2000": D(2)}
    assert found.checked().rows == 2


def test_subtotals_and_a_total(tmp_path: Path) -> None:
    lines = [
        "k;l;betrag",
        "a;x;1,50",
        "a;y;2,50",
        "Zwischensumme;;4,00",
        "b;x;1,00",
        "Zwischensumme;;1,00",
        "Summe;;5,00",
    ]
    assert Proposed(tmp_path, "\n".join(lines) + "\n").totals() == {"betrag": D("5.00")}


def test_totals_without_a_word(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "k;l;betrag\na;x;1,50\nb;;2,25\n;;3,75\n")
    assert (found.totals(), found.checked().rows) == ({"betrag": D("3.75")}, 2)


@pytest.mark.parametrize("lines", [
    ["1000;x;EUR;1,50", "2000;y;EUR;2,25", ";;EUR;3,75"],
    ["1000;x;EUR;1,50", ";;EUR;1,50", "2000;y;EUR;2,25", ";;EUR;2,25", ";;EUR;3,75"],
    ["1000;x;EUR;1,50", "2000;y;USD;2,25", ";;EUR;1,50", ";;USD;2,25"],
])  # fmt: skip
def test_totals_that_have_a_currency_and_no_word(tmp_path: Path, lines: list[str]) -> None:
    """As SAP's lists export them: the amounts counted two or three times, and nothing was said of it."""
    found = Proposed(tmp_path, "\n".join(["konto;text;waers;betrag", *lines]) + "\n")
    assert (sum(found.by("waers").values()), found.checked().rows) == (D("3.75"), 2)


def test_a_row_with_nothing_but_a_currency_that_adds_nothing_up_stays(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "konto;text;waers;betrag\n1000;x;EUR;1,50\n2000;y;EUR;2,25\n;;EUR;3,74\n")
    assert (found.totals(), found.checked().rows) == ({"betrag": D("7.49")}, 3)


def test_a_currency_is_a_key_where_there_is_no_other(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("waers,betrag\nEUR,1.50\n,2.00\n")
    source = Source(
        name="f", kind="csv", path="f.csv", text=TextFormat(totals=("",)),
        dimensions=(Dimension(name="waers"),), measures=(Measure(name="betrag", currency="waers"),),
    )  # fmt: skip
    assert query(Catalog([source], tmp_path), QueryRequest(source="f"), bounds=QUICK).totals == {"betrag": D("1.50")}


def test_a_total_may_be_all_that_proves_the_signs(tmp_path: Path) -> None:
    """Without it nobody knew which sign the decimal one is, so that the line counted as a row."""
    found = Proposed(tmp_path, "KONTO;BETRAG\n1000;856,018-\n2000;856,018-\nSumme;1,712,036-\n")
    assert found.questions == ()
    assert found.totals() == {"betrag": D(-1712036)}


@pytest.mark.parametrize("mark", ["Gesamtergebnis", ""])
def test_only_the_total_is_large_enough_for_a_thousands_sign(tmp_path: Path, mark: str) -> None:
    found = Proposed(tmp_path, f"KONTO;TEXT;BETRAG\n1000;a;900,50\n2000;b;600,25\n{mark};;1 500,75\n")
    assert found.questions == ()
    assert found.totals() == {"betrag": D("1500.75")}


def test_a_total_without_a_word_is_left_out_where_texts_look_like_totals(tmp_path: Path) -> None:
    """What was tried and could not be read left a table behind, so that nothing tried after it added up."""
    lines = ["2000;Summe Projekt X;;0,000", "3000;Meier;974.247-;974,000-", ";;974.247-;"]
    found = Proposed(tmp_path, "\n".join(["KONTO;TEXT;BETRAG;MENGE", *lines, ""]))
    assert "summe %" in found.questions[0]
    assert found.totals() == {"betrag": D(-974247), "menge": D(-974)}


def test_a_row_without_keys_that_adds_nothing_up_stays(tmp_path: Path) -> None:
    assert Proposed(tmp_path, "k;l;betrag\na;x;1,50\nb;;2,25\n;;3,74\n").totals() == {"betrag": D("7.49")}


@pytest.mark.parametrize("lines", [["a;x;5,00", ";;5,00"], ["a;x;10,00", "b;;-10,00", ";;5,00", ";;-5,00"]])
def test_a_row_without_keys_that_may_add_up_by_chance_is_asked_about(tmp_path: Path, lines: list[str]) -> None:
    """A posting without an account, of the amount of the only other one, was left out without a question."""
    found = Proposed(tmp_path, "\n".join(["k;l;betrag", *lines, ""]))
    assert found.checked().rows == len(lines)
    assert any("there are lines without any key" in question for question in found.questions)


def test_a_delimiter_within_quotes_lets_no_decimal_sign_part_the_columns(tmp_path: Path) -> None:
    found = Proposed(tmp_path, 'konto|text|betrag\n"1000"|"a|b"|1,50\n"2000"|"c|d"|"2,75-"\n3000|e|"3,00"\n')
    assert (found.totals(), found.checked().rows) == ({"betrag": D("1.75")}, 3)


@pytest.mark.parametrize(
    "line",
    ["Number of entries: 3;;", "Number of entries;3;", ";Anzahl Datensätze;3,00", "*** 3 lines;;", "** 3 Zeilen;;"],
)
@pytest.mark.parametrize("total", ["Summe;;14,00\n", ""])
def test_a_line_that_counts_the_others_is_asked_about(tmp_path: Path, line: str, total: str) -> None:
    rows = "konto;text;betrag\n1000;a;10,50\n2000;b;2,50\n3000;c;1,00\n"
    found = Proposed(tmp_path, f"{rows}{total}{line}\n")
    assert any("if they say how many rows there are" in question for question in found.questions)


def test_what_only_has_the_name_of_a_total_stays(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "company,amount\nShell,10.25\nTotal,20.50\nBP,35.75\n")
    assert found.totals() == {"amount": D("66.50")}
    assert found.questions == (
        "there are lines with total, which count as rows: if they are totals, add 'totals: [total]' under 'text'",
    )


@pytest.mark.parametrize(
    "title",
    [
        "Saldenliste\n", "Saldenliste;Januar\n\n", "Saldenliste;;;\nvom;31.01.2024;;\n", "\n\n",
        '"a; b"\nBuchungskreis: 1001\n',
    ],
)  # fmt: skip
def test_lines_before_the_header(tmp_path: Path, title: str) -> None:
    found = Proposed(tmp_path, title + "konto;text;waers;betrag\n1;x;EUR;1,50\n2;y;EUR;2,50\n")
    assert [item.name for item in found.source.dimensions] == ["konto", "text", "waers"]
    assert found.totals() == {"betrag": D("4.00")}


DAYS = [
    ("31.01.2024", "28.02.2024", "date(DD.MM.YYYY)"), ("20240131", "20240228", "date(YYYYMMDD)"),
    ("01/31/2024", "02/28/2024", "date(MM/DD/YYYY)"), ("31/01/2024", "28/02/2024", "date(DD/MM/YYYY)"),
    ("1/31/2024", "2/28/2024", "date(MM/DD/YYYY)"), ("31.01.24", "28.02.24", "date(DD.MM.YY)"),
    ("31-01-2024", "28-02-2024", "date(DD-MM-YYYY)"), ("2024/01/31", "2024/02/28", "date(YYYY/MM/DD)"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "form"), DAYS)
def test_days(tmp_path: Path, first: str, second: str, form: str) -> None:
    found = Proposed(tmp_path, f"day;betrag\n{first};1,50\n{second};2,50\n00000000;4,00\n")
    assert str(found.source.dimension("day").format) == form
    assert found.by("day") == {"2024-01-31": D("1.50"), "2024-02-28": D("2.50"), "None": D("4.00")}


def test_days_that_may_be_either_are_asked_about(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "day,amount\n01/02/2024,1.5\n02/03/2024,2.5\n")
    assert found.questions == (
        "day has days such as 01/02/2024: declare format: date(DD/MM/YYYY) or format: date(MM/DD/YYYY)",
    )
    assert found.by("day") == {"01/02/2024": D("1.50"), "02/03/2024": D("2.50")}


@pytest.mark.parametrize("name", ["JAHRPER", "0FISCPER", "x"])
def test_what_is_carried_forward_stands_in_a_period_too(tmp_path: Path, name: str) -> None:
    """In a short file such periods were added up, and in a long one their format was not proposed."""
    text = f"BUKRS;{name};HSL\n1000;2024000;1,50\n1000;2024001;2,50\n2000;2024016;3,00\n"
    by = Proposed(tmp_path, text).by(name.strip("0").lower() if name == "x" else name.lower())
    assert by == {"202400": D("1.50"), "202401": D("2.50"), "202416": D("3.00")}


def test_digits_of_one_length_are_codes_unless_their_name_is_that_of_a_figure(tmp_path: Path) -> None:
    """They were added up, and nothing was asked."""
    rows = [f"{1900000017 + 37 * at};{1000 + at};{at}" for at in range(30)]
    found = Proposed(tmp_path, "\n".join(["Ref;Menge;betrag", *rows, ""]))
    assert found.questions == (
        "Ref has whole numbers, all of 10 digits, and is taken for codes: if they are figures, declare it under "
        "'measures'",
    )
    assert found.totals() == {"menge": D(30435), "betrag": D(435)}


@pytest.mark.parametrize(
    ("columns", "currencies", "asked"),
    [
        # The currency of the document and that of the company, by SAP's names.
        ("WRBTR;WAERS;DMBTR;HWAER", {"wrbtr": "waers", "dmbtr": "hwaer"}, ""),
        ("TSL;RTCUR;HSL;RHCUR", {"tsl": "rtcur", "hsl": "rhcur"}, ""),
        ("Betrag;Währung;Betrag HW;Hauswährung", {"betrag": "", "betrag_hw": ""}, "Betrag, Betrag HW may be in"),
        ("WRBTR;WAERS;DMBTR;Text", {"wrbtr": "waers", "dmbtr": ""}, "DMBTR may be in the currency that WAERS has"),
        ("HSL;WAERS;KSL;Text", {"hsl": "waers", "ksl": "waers"}, ""),
        ("Debit amount;Currency;Credit amount;Text", {"debit_amount": "currency", "credit_amount": "currency"}, ""),
    ],
)
def test_each_amount_has_its_own_currency_or_a_question(
    tmp_path: Path, columns: str, currencies: dict[str, str], asked: str
) -> None:
    """Where there were two columns of currencies no amount had one, and dollars and euros were added up; where there is
    one, amounts in the company's currency were told in that of the document."""
    last = "x" if columns.endswith("Text") else "EUR"
    rows = "".join(f"{row};{last}\n" for row in ("10,50;USD;9,70", "12,50;EUR;12,50", "-7,00;USD;-6,00"))
    found = Proposed(tmp_path, f"{columns}\n{rows}")
    assert {one.name: one.currency for one in found.source.measures} == currencies
    assert [asked in question for question in found.questions] == ([True] if asked else [])


def test_round_numbers_are_no_periods(tmp_path: Path) -> None:
    for values in (["2000.00", "1990.10"], ["200000", "190000", "7"], ["2024000", "1999000", "7"]):
        found = Proposed(tmp_path, "\n".join(["k;x", *(f"{at};{one}" for at, one in enumerate(values)), ""]))
        assert "x" in {one.name for one in found.source.measures}, found.text


def test_periods_and_rates(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "perio,rate,amount\n1/2024,1.2012,1.5\n12/2024,1.2011,2.5\n")
    assert str(found.source.dimension("perio").format) == "fiscal_period"
    assert found.totals() == {"rate": D("2.4023"), "amount": D("4.00")}


@pytest.mark.parametrize(
    ("amounts", "total", "unit"),
    [
        (['"(1,234.50)"', "5.25"], "-1229.25", ""), (['"1,234.50 USD"', "5 USD"], "1239.50", "USD"),
        (["\u22125.5", "7.25"], "1.75", ""), (["1\u2019234.5", "0.5"], "1235", ""), (["5.50-", "1"], "-4.50", ""),
        (["5.50 EUR", "\u20ac1.25"], "6.75", "EUR"), (['"(€1,234.50)"', "€0.50"], "-1234", "EUR"),
    ],
)  # fmt: skip
def test_amounts_as_people_spell_them(tmp_path: Path, amounts: list[str], total: str, unit: str) -> None:
    found = Proposed(tmp_path, "k,amount\n" + "".join(f"x{at},{text}\n" for at, text in enumerate(amounts)))
    (measure,) = found.source.measures
    assert (found.totals()["amount"], measure.unit) == (D(total), unit)


def test_amounts_in_several_currencies_are_no_figure(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "k,amount\nx,$5.00\ny,EUR 7.00\n")
    assert [item.name for item in found.source.dimensions] == ["k", "amount"]


@pytest.mark.parametrize("other", ["-", "n/a", "5 %", "NaN", "#DIV/0!"])
def test_amounts_among_which_is_something_else_are_asked_about(tmp_path: Path, other: str) -> None:
    found = Proposed(tmp_path, f"k;betrag\na;1,50\nb;{other}\nc;2,50\n")
    assert found.questions == (
        f"betrag has amounts, but also {other!r}: it is taken for text until these are numbers or left out of the data",
    )
    assert [item.name for item in found.source.dimensions] == ["k", "betrag"]


def test_amounts_with_blanks_around_them_are_asked_about_too(tmp_path: Path) -> None:
    """A list of fixed widths, its headings again on each page, was proposed without a figure, and nothing was said."""
    lines = ["konto |  betrag", "1000  |    1,50", "2000  |    2,50", "konto |  betrag", "3000  |    9,25"]
    found = Proposed(tmp_path, "\n".join(lines) + "\n")
    (asked,) = found.questions
    assert "has amounts, but also 'betrag': it is taken for text until" in asked


@pytest.mark.parametrize(
    ("amounts", "mark"), [(["1,00 DR", "32,54 CR"], "DR"), (["5,00", "-", "7,5 h"], "h"), (["1S"], "S")]
)
def test_amounts_with_a_mark_for_their_sign_are_asked_about(tmp_path: Path, amounts: list[str], mark: str) -> None:
    """Nothing was said of them, and the file was proposed without its figure."""
    made = Proposed(tmp_path, "konto;betrag;text\n" + "".join(f"{at};{text};x\n" for at, text in enumerate(amounts)))
    (question,) = [one for one in made.questions if one.startswith("betrag ")]
    assert f"which is not added up: if {mark} says its sign, have the file written with signs, or" in question
    assert [measure.name for measure in made.source.measures] == ["rows"]


@pytest.mark.parametrize("codes", [["1000", "A100"], ["1000.1", "10-5"], ["x", "y", "1.5"]])
def test_codes_are_not(tmp_path: Path, codes: list[str]) -> None:
    found = Proposed(tmp_path, "konto;l;m\n" + "".join(f"{code};{code};x\n" for code in codes))
    assert not [question for question in found.questions if question.startswith("konto")]


def test_a_day_that_never_comes(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "valid_to;v\n31.12.9999;1,5\n31.01.2024;2,5\n")
    assert found.by("valid_to") == {"9999-12-31": D("1.50"), "2024-01-31": D("2.50")}


@pytest.mark.parametrize("name", ["CALWEEK", "0CALWEEK", "KW", "Kalenderwoche", "week"])
@pytest.mark.parametrize("spelled", ["2024{:02}", "{:02}/2024"])
def test_weeks_are_no_fiscal_periods(tmp_path: Path, name: str, spelled: str) -> None:
    """In a file of the first months all of them could be periods: the quarter of week 8 had weeks 7 and 8 then."""
    rows = "".join(f"{spelled.format(week)};1.50\n" for week in range(1, 13))
    found = Proposed(tmp_path, f"{name};AMOUNT\n{rows}")
    (week,) = found.source.dimensions
    assert str(week.format) == ""
    assert found.totals()["amount"] == D("18.00")


def test_periods_and_days_before_their_years_are_no_filled_up_numbers(tmp_path: Path) -> None:
    """As numbers of an ALPHA field, from 012024 to 032024 there was February of 2023, too."""
    rows = "".join(f"{at:02}2024;{at:02}012024;1.50\n" for at in range(1, 13))
    found = Proposed(tmp_path, f"PERIOD;BUDAT;AMOUNT\n{rows}")
    period, day = found.source.dimensions
    assert str(period.format) == ""
    assert any("PERIOD has periods such as 012024" in question for question in found.questions)
    # 01/05 may be in January or in May, and is asked about.
    assert str(day.format) == ""
    rows = "".join(f"{at:02}012024;1.50\n" for at in range(1, 32))
    found = Proposed(tmp_path, f"BUDAT;AMOUNT\n{rows}")
    assert str(found.source.dimensions[0].format) == "date(DDMMYYYY)"
    held = found.totals(filters=[{"dimension": "budat", "op": "between", "value": ["2024-01-30", "2024-02-02"]}])
    assert held["amount"] == D("3.00")


@pytest.mark.parametrize("name", ["account", "Company Code", "CoCd"])
def test_whole_numbers_that_pandas_made_fractions_are_codes_where_their_name_says_so(tmp_path: Path, name: str) -> None:
    """One row without an account made 400000.0 of each, and they were added up."""
    path = tmp_path / "f.parquet"
    write_table(path, [name, "amount"], ["DOUBLE", "BIGINT"], [(400000, 1), (410000, 2), (None, 3)], parquet=True)
    (found,) = propose(path, QUICK)
    (dimension,) = found.source.dimensions
    assert (dimension.source_column, [one.name for one in found.source.measures]) == (name, ["amount"])
    assert f"{name} has whole numbers, and is taken for codes" in found.questions[0]
    asked = QueryRequest(source="f", dimensions=[dimension.name])
    rows = query(Catalog([found.source], tmp_path), asked, bounds=QUICK).rows
    assert [row[dimension.name] for row in rows] == [400000, 410000, None]


def test_periods_that_pandas_made_fractions_are_periods(tmp_path: Path) -> None:
    columns, kinds = ["period", "amount"], ["DOUBLE", "BIGINT"]
    write_table(tmp_path / "f.parquet", columns, kinds, [(202401, 1), (None, 3)], parquet=True)
    (found,) = propose(tmp_path / "f.parquet", QUICK)
    asked = QueryRequest(source="f", filters={"period": "001.2024"})  # type: ignore[arg-type]
    assert query(Catalog([found.source], tmp_path), asked, bounds=QUICK).totals == {"amount": 1}


def test_fractions_under_the_name_of_a_code_are_still_asked_about(tmp_path: Path) -> None:
    write_table(tmp_path / "f.parquet", ["account"], ["DOUBLE"], [(1.5,), (2,)], parquet=True)
    (found,) = propose(tmp_path / "f.parquet", QUICK)
    assert [one.name for one in found.source.measures] == ["account"]
    assert "if they are codes, declare it under 'dimensions'" in found.questions[0]


@pytest.mark.parametrize("name", ["Ctr", "Acct", "CoCd"])
def test_the_digits_of_one_row_are_asked_about_as_those_of_several_are(tmp_path: Path, name: str) -> None:
    """The only company of a file was added up."""
    found = Proposed(tmp_path, f"{name};Betrag\n4711;2,50\n")
    assert found.totals() == {"betrag": D("2.50")}
    assert bool(found.questions) == (name != "CoCd")


def test_a_file_of_balances_carried_forward_has_periods(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "JAHRPER;Betrag\n2024000;2,50\n2023000;1,50\n")
    assert found.totals(filters={"jahrper": "000.2024"}) == {"betrag": D("2.50")}
    # Round amounts of a name that only begins so are none.
    assert "if they are figures" in Proposed(tmp_path, "id;Monthly fee\na;2050000\nb;2000000\n").questions[0]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_in_which_nothing_stands_are_asked_about(tmp_path: Path, end: str) -> None:
    """Spreadsheets write them below a table; the other side lacked a key that nobody had."""
    found = Proposed(tmp_path, end.join(["Konto;Text;Betrag", "1;a;2,50", ";;", "2;b;3,50", " ; ;", ""]))
    (question,) = found.questions
    assert "lines in which nothing stands" in question
    assert 'totals: [""]' in question
    told = found.text.replace('decimal: ","', 'decimal: ",", totals: [""]')
    (tmp_path / "sources.yaml").write_text(told, encoding="utf-8")
    found.catalog = Catalog.load(tmp_path / "sources.yaml")
    assert found.by("konto") == {"1": D("2.50"), "2": D("3.50")}
    assert Proposed(tmp_path, "Konto;Text;Betrag\n1;a;2,50\n;;7\n").questions == ()


SIDES = "BUKRS;SHKZG;DMBTR\n1000;S;{}\n1000;H;{}\n1000;S;{}\n1000;H;{}\n1000;H;{}\n"


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        (("10,50", "4,25", "1,00", "2,00", "0,00"), "no amount has a sign"),
        (("10,50", "4,25", "1,00-", "2,00-", "7,00"), "most amounts of either have no minus"),
        (("10,50", "4,25-", "1,00-", "2,00-", "7,00"), ""),
        (("10,50-", "4,25", "1,00-", "2,00", "7,00"), ""),
    ],
)
def test_debit_and_credit_that_no_sign_tells_are_asked_about(
    tmp_path: Path, amounts: tuple[str, ...], said: str
) -> None:
    """A reversal has a minus on either side, so that one minus does not say that credit has one."""
    questions = Proposed(tmp_path, SIDES.format(*amounts)).questions
    assert [f"SHKZG has S and H, and {said}: if" in question for question in questions] == [True] * bool(said)


@pytest.mark.parametrize(
    ("name", "mark", "says"),
    [
        ("SHKZG", "H", True),
        ("D/C", "C", True),
        ("Sens", "C", True),
        ("SHKZG", "S", False),
        ("Status", "C", False),
        ("Soll/Haben-Kennzeichen", "H", True),
        ("Debit or Credit", "C", True),
        ("Credit Ind.", "C", True),
        ("SollHabenKz", "H", True),
        ("Credit rating", "C", False),
        ("Debitor", "H", False),
        ("Credit control area", "C", False),
        ("Accreditation", "C", False),
    ],
)
def test_credit_alone_is_asked_about_under_a_name_that_says_so(
    tmp_path: Path, name: str, mark: str, says: bool
) -> None:
    """An account of revenue has no debit, and its amounts were added up as if they were."""
    questions = Proposed(tmp_path, f"BUKRS;{name};DMBTR\n1000;{mark};10,50\n1000;{mark};4,25\n").questions
    told = f"{name} has {mark}, and no amount has a sign: if that is credit, it is added up as if it were debit"
    assert [question.startswith(told) for question in questions] == [True] * says


def test_a_column_of_plus_and_minus_is_asked_about(tmp_path: Path) -> None:
    """The amounts beside it were added up as if all had a plus."""
    (question,) = Proposed(tmp_path, "konto;VZ;betrag\na;+;10,50\nb;-;20,50\n").questions
    assert question.startswith("VZ has + and -, and no amount has a sign")
    assert "the amounts of -" in question


LINES = "k;name;betrag;saldo\na;x;10,50;1,00\nb;y;(1,00);2,00\nc;z;2,00-;3,00\nd;x;1.000,00;4,00\n"


@pytest.mark.parametrize(
    ("last", "asked"),
    [
        (";Kontrollsumme;1.007,50;10,00", ["totals: [kontrollsumme]"]),
        (";Razem;1.007,50;", ["totals: [razem]"]),
        ("9999;;1.007,50;10,00", ["take it out of the file"]),
        (";Kontrollsumme;1.007,51;10,00", []),
        ("e;z;-1.007,50;-10,00", []),
        ("e;z;0,00;0,00", []),
        (";;1.007,50;10,00", []),  # it is left out, as it has no key
    ],
)
def test_a_last_line_that_adds_up_all_others_is_asked_about(tmp_path: Path, last: str, asked: list[str]) -> None:
    """With a word that is none of the usual ones it counted as a row, without a word."""
    found = Proposed(tmp_path, f"{LINES}{last}\n").questions
    questions = [question for question in found if "adds up all others" in question]
    assert [asked[0] in question for question in questions] == [True] * len(asked)


def test_a_first_line_that_adds_up_all_others_is_asked_about(tmp_path: Path) -> None:
    names, rows = LINES.split("\n", 1)
    (question,) = Proposed(tmp_path, f"{names}\n0;Konzern;1.007,50;10,00\n{rows}").questions
    assert question.startswith("the first line, 0, Konzern, adds up all others in each figure that it has")


def test_one_amount_that_comes_twice_adds_up_nothing(tmp_path: Path) -> None:
    assert Proposed(tmp_path, "k;betrag\na;2,50\nb;0,00\nc;0,00\nd;2,50\n").questions == ()


STATEMENT = """\
tag;betrag;eingang;ausgang;saldo
01.02.2024;10,50;10,50;;110,50
02.02.2024;-1,50;;1,50;109,00
03.02.2024;-9,00;;9,00;100,00
04.02.2024;20,00;20,00;;120,00
"""


@pytest.mark.parametrize(
    ("name", "columns", "by"),
    [
        ("Saldo CHF", "tag betrag saldo", "betrag"),
        ("Kontostand", "tag eingang ausgang saldo", "eingang and ausgang"),
        ("Stand", "tag betrag saldo", ""),  # what is measured, such as a price, and how it has changed, is no balance
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_balance_that_runs_on_is_asked_about(tmp_path: Path, name: str, columns: str, by: str, turned: bool) -> None:
    """The balances of a statement were added up as if they were amounts; some banks write the last line first."""
    lines = [line.split(";") for line in STATEMENT.splitlines()]
    places = [lines[0].index(column) for column in columns.split()]
    names, *rows = [";".join(line[at] for at in places) for line in lines]
    text = "\n".join([names.replace("saldo", name), *(reversed(rows) if turned else rows)]) + "\n"
    questions = Proposed(tmp_path, text).questions
    told = f"{name} runs on from line to line by {by}, so that its sum says nothing: leave it out"
    assert questions == ((told,) if by else ())


def test_balances_that_do_not_run_on_are_figures(tmp_path: Path) -> None:
    rows = "100;10,00;110,00\n200;-2,50;117,50\n300;7,25;127,25\n400;-1,00;99,00\n"
    assert Proposed(tmp_path, f"konto;bewegung;saldo\n{rows}").questions == ()


def test_what_is_no_number_in_a_balance_keeps_no_proposal_away(tmp_path: Path) -> None:
    """It was compared with what has moved, which raised."""
    import pyarrow as pa
    import pyarrow.parquet

    for name, balance, moved in (("a", [1.5, math.nan, 3.5, 4.5, 5.5], [1.0] * 5), ("b", [1.0] * 5, [math.nan] * 5)):
        table = pa.table({"k": list("abcde"), "saldo": balance, "amount": moved})
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
        (proposal,) = propose(tmp_path / f"{name}.parquet", QUICK)
        assert [item.name for item in proposal.source.measures] == ["saldo", "amount"]


@pytest.mark.parametrize(
    ("name", "marks", "asked"),
    [
        (
            "BSCHL",
            "40 50 31 01",
            "BSCHL has 01, 40, 31 and 50, and no amount has a sign: if these are debit and credit",
        ),
        ("Posting key", "50 50 50 50", "Posting key has 50, and no amount has a sign: if that is credit"),
        ("BSCHL", "40 40 01 70", ""),
        ("Sign", "1 -1 1 -1", "Sign has 1 and -1, and no amount has a sign: if these are debit and credit"),
        ("Region", "40 50 31 01", ""),
    ],
)
def test_posting_keys_and_signs_of_amounts_are_debit_and_credit(
    tmp_path: Path, name: str, marks: str, asked: str
) -> None:
    """Amounts beside them were added up as if all were debit, and the signs with them."""
    for minus in ("", "-"):
        rows = "".join(
            f"{1000 + at};{mark};{minus if mark in ('50', '31', '-1') else ''}{at + 1},50\n"
            for at, mark in enumerate(marks.split())
        )
        found = Proposed(tmp_path, f"konto;{name};betrag\n{rows}")
        assert [item.name for item in found.source.measures] == ["betrag"]
        assert [one for one in found.questions if "amount" in one and one.startswith(asked)] == [
            one for one in found.questions if "sign" in one
        ]
        assert any("sign" in one for one in found.questions) == bool(asked and not minus)


def test_figures_that_are_all_one_are_no_signs_unasked(tmp_path: Path) -> None:
    """How much a stock had changed was left out without a word, where it had changed by one each time."""
    found = Proposed(tmp_path, "artikel;delta\nx;1\ny;-1\nz;1\nw;1\n")
    told = "delta has 1 and -1, and is taken for codes: if they are figures, declare it under 'measures'"
    assert told in found.questions


@pytest.mark.parametrize(
    ("numbers", "counted"),
    [
        ("1 1 2 2 3 3 4 4 5", True),
        ("1 2 3 4 5 6", True),
        ("10 20 30 10 20", True),
        ("1 2 3 4 1 2", True),
        ("1 2 3 2 5", False),
        ("12 24 36 48 60", False),
        ("7 8 9 10 11", False),
        ("1 2 3 4", False),
    ],
)
def test_whole_numbers_that_count_lines_are_asked_about(tmp_path: Path, numbers: str, counted: bool) -> None:
    """The numbers of entries and their lines were added up, under names that say nothing of it."""
    rows = "".join(f"a{at};{number};{at}1,50\n" for at, number in enumerate(numbers.split()))
    found = Proposed(tmp_path, f"text;Buchung;betrag\n{rows}")
    told = "Buchung has whole numbers that count from line to line, and is taken for codes"
    assert [one.startswith(told) for one in found.questions] == [True] * counted
    assert [item.name for item in found.source.measures] == [*(["buchung"] * (not counted)), "betrag"]


@pytest.mark.parametrize("sign", [",", ".", "'"])
def test_numbers_of_lines_may_have_signs_between_thousands(tmp_path: Path, sign: str) -> None:
    decimal = "," if sign == "." else "."
    rows = "".join(f"a{at};{f'{at:,}'.replace(',', sign)};{at % 7}1{decimal}50\n" for at in range(1, 1003))
    found = Proposed(tmp_path, f"text;Buchung;betrag\n{rows}")
    (told,) = found.questions
    assert told.startswith("Buchung has whole numbers that count from line to line")


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        ("1,25E+03", "plain numbers"),
        ("12,5 %", "plain numbers"),
        ("1.2K", "plain numbers"),
        ("'12.50", "plain numbers"),
    ],
)
def test_amounts_that_are_dressed_up_are_asked_about(tmp_path: Path, amount: str, told: str) -> None:
    (question,) = Proposed(tmp_path, f"k;amount\na;{amount}\n").questions
    assert question.startswith(f"amount has text such as {amount}, which is not added up")
    assert told in question


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("konto^betrag\n1^2.50\n", "'delimiter: \"^\"'"), ('"konto;betrag"\n"1;2,50"\n', "in quotes as a whole"),
        ("CoCd  Account    Amount\n1001  4711    2.50\n", "tabs"), ("konto\n1001\n", ""), ("cost center\n4711\n", ""),
    ],
)  # fmt: skip
def test_a_column_with_the_names_of_several_is_asked_about(tmp_path: Path, text: str, told: str) -> None:
    """The rows of such a file were proposed to be counted, without a word."""
    asked = [question for question in Proposed(tmp_path, text).questions if "names of several columns" in question]
    assert [told in question for question in asked] == [True] * bool(told)


@pytest.mark.parametrize("name", ["Belegdatum", "BSCHL", "Kst", "Zeile", "Posting day"])
def test_whole_numbers_under_the_name_of_a_day_or_a_code_are_not_added_up(tmp_path: Path, name: str) -> None:
    """DATEV writes the first of February as 102."""
    found = Proposed(tmp_path, f"k;{name};betrag\na;102;1,50\nb;3101;2,50\n")
    assert [item.name for item in found.source.measures] == ["betrag"]


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        ("a;1;5\n;2;7\nb;1;1", ["a"]),
        ("a;1;5\nb;1;7\n;2;1", ["b"]),
        ("a;1;5\n;2;7\nSumme;;12\nb;1;1\nSumme;;1", ["a"]),
        ("a;1;5\na;2;7\n;2;1", []),
        ("x;1;5\n;2;7\nx;1;1", []),  # a mark of some rows, as no report writes it
        (";1;5\na;2;7", []),
        ("a;1;5\nb;;7", []),
    ],
)
def test_a_key_that_stands_once_for_the_rows_below_it_is_asked_about(
    tmp_path: Path, rows: str, asked: list[str]
) -> None:
    """As reports show it: the rows below counted as those without a key, and nothing was said."""
    questions = Proposed(tmp_path, f"firma;konto;betrag\n{rows}\n").questions
    assert [f"firma has {value} in one row and nothing in that below it" in one
            for value, one in zip(asked, questions, strict=True)] == [True] * len(asked)  # fmt: skip


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "frame"])
def test_pieces_have_no_currency_and_prices_no_sum_in_data_with_types_either(tmp_path: Path, kind: str) -> None:
    columns = ["company", "price", "quantity", "amount", "waers"]
    rows = [("1001", D("1.50"), D("3.0"), D("4.50"), "EUR"), ("1001", D("2.00"), D("1.0"), D("2.00"), "EUR")]
    if kind == "frame":
        pyarrow = pytest.importorskip("pyarrow")
        source = Catalog.of({"f": pyarrow.table(dict(zip(columns, zip(*rows, strict=True), strict=True)))}).source("f")
    else:
        types = ["VARCHAR", "DECIMAL(9, 2)", "DECIMAL(9, 1)", "DECIMAL(9, 2)", "VARCHAR"]
        write_table(tmp_path / f"f.{kind}", columns, types, rows, parquet=kind == "parquet")
        source = propose(tmp_path / f"f.{kind}", QUICK)[0].source
    assert {item.name: item.currency for item in source.measures} == {
        "price": "waers",
        "quantity": "",
        "amount": "waers",
    }
    (question,) = source.questions
    assert "price looks like a price or a rate, whose sum says nothing" in question


def test_what_is_still_to_be_said_of_a_source_is_a_warning_of_its_results(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    frame = pyarrow.table({"segment": ["12", "13"], "amount": [D("1.50"), D("2.00")]})
    (tmp_path / "other.csv").write_text("segment,amount\n12,1.50\n13,2.00\n")
    other = propose(tmp_path / "other.csv", QUICK)[0].source
    catalog = Catalog.of({"ledger": frame}, [other], tmp_path)
    asked = "segment has whole numbers, and is taken for codes: if they are figures, declare it under 'measures'"
    told = [f"{name} was proposed from its data, which leave this open: {asked}" for name in ("ledger", "other")]
    for first, second, said in (("ledger", "other", told), ("ledger", "ledger", told[:1])):
        found = compare(catalog, CompareRequest(source_a=first, source_b=second), bounds=QUICK)
        assert [(one.kind, one.message) for one in found.warnings] == [("to_be_said", text) for text in said]
    assert list(query(catalog, QueryRequest(source="ledger"), bounds=QUICK).warnings) == told[:1]
    declared = Source(
        name="ledger", kind="frame", dimensions=(Dimension(name="segment"),), measures=(Measure(name="amount"),)
    )
    assert not query(Catalog.of({"ledger": frame}, [declared]), QueryRequest(source="ledger"), bounds=QUICK).warnings


@pytest.mark.parametrize(
    "rows",
    [
        '1;"Cable 5";10,00\n2;5" cable;20,50\n3;"Pipe 3;30,00\n',
        '1;5" cable;10,00\n2;";20,50\n3;" x;30,00\n',
        '1;a;10,00\n2;"pipe;20,50\n3;pipe 2";30,00\n',
    ],
)
@pytest.mark.parametrize("last", ["Summe;60,50", "*** 3 lines", "Summe;;60,50", "Anzahl Zeilen: 3"])
def test_inches_are_seen_beside_lines_that_say_that_they_are_no_rows(tmp_path: Path, rows: str, last: str) -> None:
    found = Proposed(tmp_path, f"Artikel;text;amount\n{rows}{last}\n")
    assert (found.source.text.quotes, found.totals()["amount"]) == (False, D("60.50"))


@pytest.mark.parametrize("last", ["Summe;60,50", "*** 3 lines", "Summe;;60,50"])
@pytest.mark.parametrize("text", ['"pipe; long"', '"pipe"', '"pipe\nSumme\nlong"', '"say ""so"""'])
def test_quotes_hold_texts_together_beside_lines_that_say_that_they_are_no_rows(
    tmp_path: Path, text: str, last: str
) -> None:
    found = Proposed(tmp_path, f"Artikel;text;amount\n1;{text};10,00\n2;{text};20,50\n3;a;30,00\n{last}\n")
    assert (found.source.text.quotes, found.totals()["amount"]) == (None, D("60.50"))
    assert not any('"' in key for key in found.by("text") if "say" not in key)


def test_numbers_with_either_decimal_sign_in_one_column_are_asked_about(tmp_path: Path) -> None:
    """The column was taken for text, and nothing said so."""
    found = Proposed(tmp_path, "Artikel;amount\n1;1,50\n2;2.50\n3;1.234,50\n")
    assert found.source.measures[0].name == "rows"
    assert "amount has numbers such as 1,50, and such as 2.50" in "\n".join(found.questions)


def test_a_sign_that_was_said_and_is_not_taken_is_told(tmp_path: Path) -> None:
    """A number such as 1.2 proved the sign of 1.234 beside it, whatever had been said, without a word."""
    rows = "k;rebate;amount\na;1.2;1.234\nb;1.10;2.750\n"
    asked = "amount is read with it, and not with the ',' that was said"
    assert asked in "\n".join(Proposed(tmp_path, rows, decimal=",").questions)
    for decimal in (None, "."):
        assert asked not in "\n".join(Proposed(tmp_path, rows, decimal=decimal).questions)


@pytest.mark.parametrize(("name", "codes"), [("version", ["1.2", "1.10"]), ("Period", ["2024.1", "01.24"])])
def test_codes_with_a_point_prove_no_sign(tmp_path: Path, name: str, codes: list[str]) -> None:
    """They made text of amounts with a comma, and decided of 1.234 beside them."""
    first, second = (Proposed(tmp_path, f"k;{name};amount\na;{codes[0]};{one}\nb;{codes[1]};{two}\n")
                     for one, two in (("1234,5", "2,75"), ("1.234", "2.750")))  # fmt: skip
    assert first.source.text.decimal == ","
    assert "amount has 1.234: if that is 1234" in "\n".join(second.questions)


@pytest.mark.parametrize("decimal", [",", "."])
def test_of_two_signs_that_are_proved_the_one_that_was_said_is_taken(tmp_path: Path, decimal: str) -> None:
    found = Proposed(tmp_path, "k;menge;preis;amount\na;1.50;1,50;1,75\nb;2.50;2,50;1,25\n", decimal=decimal)
    assert found.source.text.decimal == decimal


def test_a_total_of_noughts_makes_no_codes_of_amounts(tmp_path: Path) -> None:
    found = Proposed(tmp_path, "k;amount\na;1,5\nb;2,5\nTotal;000\n")
    assert (found.totals()["amount"], found.source.measures[0].name) == (D("4.0"), "amount")
    assert "there are lines with total" in "\n".join(found.questions)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("Betrag in TEUR", "TEUR"), ("amount_teur", "TEUR"), ("Amount (USD)", "USD"), ("Umsatz Mio. €", "Mio. EUR"),
        ("cost_per_pen", ""), ("Total PEN", "PEN"),
        ("Wert [k€]", "kEUR"), ("Amount", ""), ("Menge EUR", ""), ("Betrag in Hauswährung", ""), ("Summe Retry", ""),
    ],
)  # fmt: skip
def test_a_heading_that_says_what_amounts_are_in_declares_it(tmp_path: Path, name: str, unit: str) -> None:
    """Thousands were compared with euros as numbers."""
    found = Proposed(tmp_path, f"k;{name}\na;1,5\nb;2,5\n")
    assert (found.source.measures[0].unit, found.source.measures[0].source_column) == (unit, name)


@pytest.mark.parametrize(
    "name",
    [
        "Betrag in Mrd. EUR", "Amount bn USD", "Umsatz in 1.000 EUR", "amount in thousands of USD", "Wert (Tausend €)",
        "Umsatz '000 EUR", "amount in cents USD", "Amount excl. EUR", "Betrag nicht EUR", "cost per EUR",
        "amount usd to eur", "Amount EUR or USD", "Betrag EUR/USD", "Amount in 10^6 EUR",
    ],
)  # fmt: skip
def test_a_heading_that_says_more_than_a_currency_declares_none(tmp_path: Path, name: str) -> None:
    """Billions were told as euros, and what is in all other currencies too."""
    assert Proposed(tmp_path, f"k;{name}\na;1,5\nb;2,5\n").source.measures[0].unit == ""


@pytest.mark.parametrize("name", ["Umsatz 2024 in EUR", "Betrag P&L EUR", "Amount excl. VAT (EUR)", "Betrag in T EUR"])
def test_other_words_and_years_leave_it_its_currency(tmp_path: Path, name: str) -> None:
    assert Proposed(tmp_path, f"k;{name}\na;1,5\nb;2,5\n").source.measures[0].unit in ("EUR", "T EUR")


@pytest.mark.parametrize(
    ("name", "codes", "asks"),
    [("amount EUR", "EUR EUR", False), ("amount EUR", "EUR USD", True), ("amount TEUR", "EUR EUR", True)],
)
def test_a_heading_that_contradicts_the_column_of_currencies_is_asked_about(
    tmp_path: Path, name: str, codes: str, asks: bool
) -> None:
    one, other = codes.split()
    found = Proposed(tmp_path, f"k;{name};currency\na;1,5;{one}\nb;2,5;{other}\n")
    (measure,) = found.source.measures
    assert (measure.unit, measure.currency) == ("", "currency")
    assert [asked.startswith(f"{name} is in {name[7:]} by its name") for asked in found.questions] == [True] * asks
