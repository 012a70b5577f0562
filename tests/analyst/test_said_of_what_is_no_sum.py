"""What is no sum is not called one, and what would be a false sum is asked about."""

from pathlib import Path

import pytest

from treadle.analyst import Catalog, CompareRequest, Dimension, Measure, QueryRequest, Source, compare, propose, query
from treadle.analyst.checks import read_checks, run_checks

pytestmark = pytest.mark.usefixtures("one_engine")


def said(folder: Path, aggregation: str, b: str) -> str:
    for name, rows in (("a", "x,10\nx,20\ny,5\n"), ("b", b)):
        (folder / f"{name}.csv").write_text(f"k,v\n{rows}", encoding="utf-8")
    measure = Measure(name="v", unit="EUR", aggregation=aggregation)  # type: ignore[arg-type]
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=(Dimension(name="k"),), measures=(measure,))
        for name in "ab"
    ]
    return compare(Catalog(sources, folder), CompareRequest(source_a="a", source_b="b")).interpretation


@pytest.mark.parametrize(
    ("aggregation", "b", "expected"),
    [
        ("min", "x,10\nx,25\ny,5\n", "the least amounts are equal"),
        ("max", "x,11\nx,20\ny,5\n", "the greatest amounts are equal"),
        ("avg", "x,12\nx,18\ny,5\n", "the averages are equal"),
        ("sum", "x,12\nx,18\ny,5\n", "the totals are equal"),
        ("min", "x,10\nx,25\ny,5.01\n", "the least amounts match"),
    ],
)
def test_totals_are_said_of_sums_alone(tmp_path: Path, aggregation: str, b: str, expected: str) -> None:
    told = said(tmp_path, aggregation, b)
    assert expected in told
    assert aggregation == "sum" or "the totals" not in told


def questions(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "f.csv").write_text(text, encoding="utf-8")
    return propose(folder / "f.csv")[0].questions


@pytest.mark.parametrize("name", ["price", "Preis", "unit price", "fx_rate", "share pct"])
def test_the_sum_of_prices_is_asked_about(tmp_path: Path, name: str) -> None:
    (asked,) = questions(tmp_path, f"k,{name}\nx,1.25\ny,2.5\n")
    assert "looks like a price or a rate" in asked


@pytest.mark.parametrize("name", ["total price", "corporate", "amount", "price_amount"])
def test_a_sum_of_amounts_is_not_asked_about(tmp_path: Path, name: str) -> None:
    assert questions(tmp_path, f"k,{name}\nx,1.25\ny,2.5\n") == ()


@pytest.mark.parametrize("sides", ["SH", "HS", "DC", "dc"])
def test_debit_and_credit_without_signs_are_asked_about(tmp_path: Path, sides: str) -> None:
    (asked,) = questions(tmp_path, f"k,side,amount\nx,{sides[0]},1.25\ny,{sides[1]},2.50\n")
    assert "as if they were one" in asked
    assert questions(tmp_path, f"k,side,amount\nx,{sides[0]},1.25\ny,{sides[1]},-2.50\n") == ()
    assert questions(tmp_path, "k,side,amount\nx,S,1.25\ny,X,2.50\n") == ()


def test_a_line_that_is_a_balance_of_all_others_is_left_out(tmp_path: Path) -> None:
    text = "account;debit;credit\n1000;10,00;1,00\n2000;0,50;4,00\nSaldo;10,50;5,00\n"
    (tmp_path / "f.csv").write_text(text, encoding="utf-8")
    assert propose(tmp_path / "f.csv")[0].source.text.totals == ("saldo",)


def test_a_check_of_averages_speaks_of_averages(tmp_path: Path) -> None:
    said(tmp_path, "avg", "x,12\nx,18\ny,8\n")
    measures = "dimensions: {k: {}}, measures: {v: {aggregation: avg}}"
    sources = "".join(f"  {name}: {{kind: csv, path: {name}.csv, {measures}}}\n" for name in "ab")
    (tmp_path / "sources.yaml").write_text(f"sources:\n{sources}", encoding="utf-8")
    (tmp_path / "checks.yaml").write_text("checks:\n  one: {compare: [a, b]}\n", encoding="utf-8")
    report = run_checks(read_checks(tmp_path / "checks.yaml"))
    assert "the averages are 1.00 apart" in report.verdicts[0].sentence


@pytest.mark.parametrize(("unit", "expected"), [("EUR", "a has 3 and b has 3"), ("postings", "a has 3 postings")])
def test_a_number_of_rows_is_in_no_currency(tmp_path: Path, unit: str, expected: str) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("k,v\nx,10\nx,20\ny,5\n", encoding="utf-8")
    measure = Measure(name="v", unit=unit, aggregation="count")
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=(Dimension(name="k"),), measures=(measure,))
        for name in "ab"
    ]
    catalog = Catalog(sources, tmp_path)
    assert expected in compare(catalog, CompareRequest(source_a="a", source_b="b")).interpretation
    assert query(catalog, QueryRequest(source="a")).units == ({} if unit == "EUR" else {"v": unit})


def test_a_query_says_what_its_figures_are_in(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,c,v,w\nx,EUR,1,1\ny,USD,2,2\n", encoding="utf-8")
    measures = (Measure(name="v", currency="c"), Measure(name="w", unit="TEUR"), Measure(name="n", column="v"))
    dimensions = tuple(Dimension(name=name) for name in "kc")
    source = Source(name="a", kind="csv", path="a.csv", dimensions=dimensions, measures=measures)
    catalog = Catalog([source], tmp_path)
    assert query(catalog, QueryRequest(source="a", dimensions=["k"])).units == {"w": "TEUR"}
    one = query(catalog, QueryRequest(source="a", dimensions=["k"], filters={"c": "USD"}))
    assert one.units == {"v": "USD", "w": "TEUR"}
    assert one.to_dict()["units"] == one.units
