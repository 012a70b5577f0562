"""What is proposed counts no total twice and loses no row without a word."""

from decimal import Decimal
from pathlib import Path

import pytest

from treadle.analyst import Catalog, QueryRequest, check, declaration, propose, query
from treadle.analyst.asking.columns import guess


def proposed(file: Path, text: str) -> tuple[str, tuple[str, ...]]:
    """The total of the amounts as proposed, and the questions."""
    file.write_text(text, encoding="utf-8")
    found = propose(file)
    (file.parent / "sources.yaml").write_text(declaration([(file, found[0])], file.parent), encoding="utf-8")
    total = query(Catalog.load(file.parent / "sources.yaml"), QueryRequest(source="ledger")).totals["amount"]
    return str(total), found[0].questions


@pytest.mark.parametrize(
    "mark", ["Ergebnis", "Overall Result", "Summe EUR", "Total 2024", "Gesamt Konto 1000:", "Somme"]
)
def test_lines_of_totals_with_other_words_count_once(tmp_path: Path, mark: str) -> None:
    rows = f"account;amount\n1000;10,00\n1100;20,00\n{mark};30,00\n"
    assert proposed(tmp_path / "ledger.csv", rows) == ("30.00", ())


def test_a_customer_called_total_is_asked_about(tmp_path: Path) -> None:
    total, questions = proposed(tmp_path / "ledger.csv", "customer;amount\nTotal Energies;10,00\nShell;20,00\n")
    assert total == "30.00"
    assert questions == (
        'there are lines with "total %", which count as rows: if they are totals, add \'totals: ["total %"]\' under '
        "'text'",
    )


def test_check_says_what_may_count_twice(tmp_path: Path) -> None:
    rows = "account;amount\n1000;10,00\nSubtotal;10,00\n2000;5,00\nTotal;15,00\n"
    proposed(tmp_path / "ledger.csv", rows)
    catalog = Catalog.load(tmp_path / "sources.yaml")
    found = check(catalog, catalog.source("ledger"))
    assert [warning for warning in found.warnings if "totals: [total, subtotal]" in warning]


@pytest.mark.parametrize("first", ["4711;10,00", "31.01.2024;EUR", "1000;2000"])
def test_a_file_without_names_of_columns_is_asked_about(tmp_path: Path, first: str) -> None:
    file = tmp_path / "ledger.csv"
    file.write_text(f"{first}\n{first}\n{first}\n", encoding="utf-8")
    (found,) = propose(file)
    assert f"would be called {first.replace(';', ', ')}" in found.questions[0]


def test_a_comma_in_every_line_is_that_of_decimals_where_something_else_parts_fields(tmp_path: Path) -> None:
    total, _ = proposed(tmp_path / "ledger.csv", "account;amount\n1000;10,00\n1100;20,50\n")
    assert total == "30.50"
    (tmp_path / "other.csv").write_text("Konto;Betrag, EUR\n1000;10,00\n1100;20,50\n", encoding="utf-8")
    assert [item.source_column for item in propose(tmp_path / "other.csv")[0].source.measures] == ["Betrag, EUR"]


def test_months_and_years_may_be_names_of_columns(tmp_path: Path) -> None:
    file = tmp_path / "ledger.csv"
    file.write_text("account;2023;01.2024\nA;1,50;2,50\nB;3,50;4,50\n", encoding="utf-8")
    assert propose(file)[0].questions == ()


def test_declaration_is_a_function_also_after_a_catalogue_was_loaded(tmp_path: Path) -> None:
    import treadle.analyst

    proposed(tmp_path / "ledger.csv", "account;amount\n1000;10,00\n")
    assert callable(treadle.analyst.declaration)


@pytest.mark.parametrize(
    "rows",
    [
        "account;text;amount\n100;Rent;50,00\n200;Power;50,00\n300;Summe Spesen;100,00\n",
        "text;amount\nRent;100,00\nSumme Reisekosten;100,00\n",
        "text;amount\nA;100,00\nTotal fees;-50,00\nTotal tax;50,00\nB;-100,00\n",
        "text;amount\nShell;50,00\nAral;50,00\nTotal;100,00\n",
    ],
)
def test_a_posting_whose_text_begins_as_totals_do_is_asked_about(tmp_path: Path, rows: str) -> None:
    amounts = [line.split(";")[-1].replace(",", ".") for line in rows.splitlines()[1:]]
    total, questions = proposed(tmp_path / "ledger.csv", rows)
    assert Decimal(total) == sum(map(Decimal, amounts))
    assert any("which count as rows: if they are totals" in question for question in questions)


@pytest.mark.parametrize(
    ("name", "values", "role", "asked"),
    [
        ("Number of units sold", ["12", "7", "130"], "measure", False),
        ("No. of pieces", ["1", "2", "1"], "measure", False),
        ("Anzahl", ["1", "2", "1"], "measure", False),
        ("Segment", ["1", "20", "300"], "dimension", True),
        ("Version", ["1", "2", "12"], "dimension", True),
        ("Version", ["1.1", "1.2", "2.0"], "measure", True),
        ("Number of order", ["17", "4", "4"], "dimension", True),
        ("Order number", ["17", "4", "4"], "dimension", False),
        ("Company", ["17", "4", "4"], "dimension", False),
        ("grade", ["1", "2", "2", "1", "1", "2"], "dimension", True),
    ],
)
def test_a_name_that_codes_and_figures_have_is_asked_about(
    name: str, values: list[str], role: str, asked: bool
) -> None:
    found = guess(name, "VARCHAR", values)
    assert (found.role, bool(found.question)) == (role, asked)
