"""What the analyst and the offline planner tell: currencies, faults of one side, rows, conditions."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from treadle import Agent, tool
from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    analyst_skill,
    compare,
    query,
)
from treadle.analyst.checks import Check, CheckFile, History, run_checks


def source(name: str, measure: Measure, **more: Any) -> Source:
    shape: dict[str, Any] = {"dimensions": (Dimension(name="k"),)} | more
    return Source(name=name, kind="csv", path=f"{name}.csv", measures=(measure,), **shape)


def test_a_check_quotes_a_currency_with_an_invisible_mark_once(tmp_path: Path) -> None:
    dimensions = (Dimension(name="k"), Dimension(name="cur"))
    for name, amount in (("a", 10), ("b", 11)):
        (tmp_path / f"{name}.csv").write_text(f"k,v,cur\nx,{amount}.00,EUR\ny,{amount}.00,US\u200bD\n")
    measure = Measure(name="v", decimals=2, currency="cur")
    catalog = Catalog([source(name, measure, dimensions=dimensions) for name in "ab"], tmp_path)
    check = Check(name="c", request=CompareRequest(source_a="a", source_b="b", dimensions=["k"]))
    declared = CheckFile(path=tmp_path / "checks.yaml", sources=tmp_path, history=tmp_path, checks=(check,))
    (verdict,) = run_checks(declared, catalog=catalog, history=History(tmp_path / "h.db")).verdicts
    assert verdict.sentence.endswith(r"the totals are 1.00 EUR and 1.00 'US\u200bD' apart")


def test_a_fault_of_one_side_is_told_though_the_other_is_spelled_by_people(tmp_path: Path) -> None:
    """It was "text is not spelled as programs spell numbers", of the side that had no fault."""
    (tmp_path / "good.csv").write_text("k,v\n2024-01-01,(1.5)\n")
    (tmp_path / "bad.csv").write_text("k,v\nx,1\n")
    day = (Dimension(name="k", type="date"),)
    catalog = Catalog([source(name, Measure(name="v"), dimensions=day) for name in ("good", "bad")], tmp_path)
    with pytest.raises(AnalystError, match="source 'bad': a value is not what its column is declared to be: 'x'"):
        compare(catalog, CompareRequest(source_a="good", source_b="bad", dimensions=["k"]))


@pytest.mark.parametrize(("decimals", "aggregation"), [(38, "avg"), (40, "sum")])
def test_more_decimals_than_there_can_be_are_no_missing_table(tmp_path: Path, decimals: int, aggregation: Any) -> None:
    (tmp_path / "s.csv").write_text("k,v\nx,1\n")
    measure = Measure(name="v", decimals=decimals, aggregation=aggregation)
    with pytest.raises(AnalystError, match="38 digits is the most") as caught:
        query(Catalog([source("s", measure)], tmp_path), QueryRequest(source="s"))
    assert "table" not in str(caught.value)


def test_a_measure_may_have_as_many_decimals_as_can_be_declared(tmp_path: Path) -> None:
    """Half of the twelfth has thirteen: whatever was compared by it ended in a ValueError, and so did what is proposed
    for a column of twelve decimals or more."""
    for name, last in (("a", "1"), ("b", "2")):
        (tmp_path / f"{name}.csv").write_text(f"k,v\nx,0.00000000000{last}\ny,5\n")
    catalog = Catalog([source(name, Measure(name="v", decimals=12)) for name in "ab"], tmp_path)
    found = compare(catalog, CompareRequest(source_a="a", source_b="b"))
    assert (found.summary.matches, found.summary.major_differences) == (1, 1)
    assert found.to_dict()["tolerance"]["absolute"] == "0.0000000000005"


@pytest.mark.parametrize("value", ["1" * 29, f"-{'9' * 30}.5", "0.12345678901"])
def test_a_decimal_key_that_is_too_long_is_told_as_that(tmp_path: Path, value: str) -> None:
    """It was told as a value of another type than was declared, or as an amount that is too large."""
    long = f"{value} has too many digits for a decimal that is compared by, which may have 28 before its point and 10"
    (tmp_path / "s.csv").write_text(f"k,v\n{value},1\n")
    text = source("s", Measure(name="v"), dimensions=(Dimension(name="k", type="decimal"),))
    with pytest.raises(AnalystError, match=long):
        query(Catalog([text], tmp_path), QueryRequest(source="s", dimensions=["k"]))
    if "." not in value:
        for at, kind in enumerate(("DECIMAL(38, 0)", "HUGEINT")):
            with duckdb.connect(tmp_path / f"{at}.duckdb") as made:
                made.execute(f"CREATE TABLE t AS SELECT '{value}'::{kind} AS k, 1 AS v")
            key = Dimension(name="k", type="decimal")
            there = Source(
                name="s",
                kind="duckdb",
                path=f"{at}.duckdb",
                table="t",
                dimensions=(key,),
                measures=(Measure(name="v"),),
            )
            with pytest.raises(AnalystError, match=long):
                query(Catalog([there], tmp_path), QueryRequest(source="s", dimensions=["k"]))
    exact = source("s", Measure(name="v"), dimensions=(Dimension(name="k", type="string"),))
    (row,) = query(Catalog([exact], tmp_path), QueryRequest(source="s", dimensions=["k"])).rows
    assert row["k"] == value


@tool(effect="read")
def find_rows(colour: str) -> dict[str, Any]:
    """Finds rows by colour.

    Args:
        colour: such as red.
    """
    return {"rows": [{"name": "seven"}, {"name": "nine"}], "total": 2}


@tool(effect="read")
def sales(company: int) -> dict[str, Any]:
    """Sales of a company.

    Args:
        company: the number of the company, such as 1001.
    """
    return {"sales": 5, "filters": [f"company = {company}", "year = 2024"]}


@tool(effect="read")
def query_table(table: str, filters: dict[str, str]) -> dict[str, Any]:
    """Queries a table with filters.

    Args:
        table: which table, such as ledger.
        filters: conditions by column: company, period.
    """
    return {"amount": 7, "filters": [f"{name} = {value}" for name, value in filters.items()]}


def test_rows_that_a_tool_lists_are_told_where_it_counts_none() -> None:
    text = Agent("offline", tools=[find_rows]).run_sync("How many rows have the colour red?").text
    assert "- seven" in text
    assert "- nine" in text
    assert "I cannot tell that" not in text


def test_a_condition_that_was_asked_for_is_none_of_the_sources_own() -> None:
    text = Agent("offline", tools=[sales]).run_sync("What are the sales of company 1001?").text
    assert "Under conditions of its own: year = 2024." in text
    text = Agent("offline", tools=[query_table]).run_sync("What is the amount in ledger where company = 1001?").text
    assert "amount 7" in text
    assert "of its own" not in text


def test_a_row_without_a_key_is_told_as_that_and_not_as_a_total(tmp_path: Path) -> None:
    """It was "- v 5.00", under the rows of the keys."""
    for name, amount in (("first", 5), ("second", 7)):
        (tmp_path / f"{name}.csv").write_text(f"colour,v\nred,1\n,{amount}\n")
    colour = (Dimension(name="colour"),)
    catalog = Catalog(
        [source(name, Measure(name="v", decimals=2), dimensions=colour) for name in ("first", "second")], tmp_path
    )
    agent = Agent("offline", skills=[analyst_skill(catalog)])
    assert "- colour (none), v 5.00" in agent.run_sync("Show v of first by colour").text
    text = agent.run_sync("Which colour has the largest difference between first and second?").text
    assert "- colour (none), source a value 5.00" in text
