"""What a result says of itself: the SQL behind it, and amounts in the form that a reader expects."""

import json
import pickle
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from treadle.analyst import Catalog, CompareRequest, QueryRequest, analyst_skill, compare, page, query
from treadle.tools import ToolResult

MAIN = {
    "source_a": "fi_reporting",
    "source_b": "consolidation_mart",
    "filters": {"company": "1001", "period": "202401"},
}


def test_the_shipped_example_says_under_which_filters_an_account_is_missing(sample: Catalog) -> None:
    """The mart has 710300 in the other periods."""
    found = compare(sample, CompareRequest.model_validate(MAIN))
    (claim,) = found.warnings
    assert claim.message == (
        "where company = 1001 and period = 202401, consolidation_mart has no row for account 710300, fi_reporting has"
    )
    elsewhere = query(sample, QueryRequest(source="consolidation_mart", filters={"account": "710300"}))
    assert elsewhere.source_rows > 0


def test_the_sql_of_a_query_runs_on_its_own(sample: Catalog) -> None:
    found = query(sample, QueryRequest(source="fi_reporting", dimensions=["company"], filters={"period": "202401"}))
    with duckdb.connect() as engine:
        for statement in found.sql:
            engine.execute(statement)
        rows = engine.execute("SELECT k0, v0 FROM figures WHERE total = 0 ORDER BY k0").fetchall()
    assert rows == [(row["company"], row["amount"]) for row in found.rows]
    told = found.to_dict(explain=True)
    assert told["sql"] == list(found.sql)
    assert [claim["kind"] for claim in told["claims"]] == ["mixed_currencies"]
    assert "sql" not in found.to_dict()


def test_amounts_as_numbers_have_their_text_beside_them(sample: Catalog) -> None:
    found = compare(sample, CompareRequest.model_validate(MAIN)).to_dict(rows=True, numbers=True)
    summary = json.loads(json.dumps(found))["summary"]
    assert (summary["total_diff"], summary["total_diff_exact"]) == (8000.0, "8000.00")
    assert (found["rows"][0]["diff"], found["rows"][0]["diff_exact"]) == (4750.02, "4750.02")
    assert found["rows"][0]["key"] == {"account": "800200", "currency": "EUR"}
    assert found["by_dimension"]["account"][0]["value"] == "800200"
    asked = query(sample, QueryRequest(source="fi_reporting", filters=MAIN["filters"])).to_dict(numbers=True)
    assert asked["totals"] == {"amount": 1_500_000.0, "amount_exact": "1500000.00"}


@pytest.mark.anyio
@pytest.mark.parametrize("numbers", [False, True])
async def test_the_tool_explains_on_demand(sample: Catalog, numbers: bool) -> None:
    tool = next(tool for tool in analyst_skill(sample, numbers=numbers).tools if tool.name == "compare_sources")
    results: list[Any] = [await tool(**MAIN, explain=explain) for explain in (False, True)]
    assert all(isinstance(result, ToolResult) for result in results)
    brief, full = (result.for_model for result in results)
    assert "sql" not in brief
    assert {claim["kind"] for claim in full["claims"]} == {"totals", "keys", "offset", "largest"}
    assert full["claims"][0]["facts"]["difference"] == "8000.00"
    assert full["claims"][0]["filters"] == ["company = 1001", "period = 202401"]
    assert full["sql"][-1].startswith("CREATE TABLE aligned")
    assert isinstance(full["summary"]["total_diff"], float) is numbers
    assert results[0].for_app["sql"] == full["sql"]


def test_the_page_shows_claims_and_their_sql_closed(sample: Catalog) -> None:
    text = page(compare(sample, CompareRequest.model_validate(MAIN)))
    assert "<details><summary>What each sentence rests on</summary>" in text
    assert "CREATE TABLE aligned" in text
    assert "by the query of 1" in text


def test_a_hostile_name_stays_text_in_what_is_explained(make: Any, confront: Any) -> None:
    evil = "<script>'; DROP TABLE aligned --\x1b[2J"
    left = make("left", [(evil, "1.00"), ("x", "1.00")])
    right = make("right", [("x", "1.00"), ("y", "1.00")])
    found = confront(left, right, filters=[{"dimension": "company", "op": "!=", "value": "it's \x00 \u202e"}])
    text = page(found)
    assert "<script>" not in text
    assert "\x1b" not in text
    with duckdb.connect() as engine:
        for statement in found.sql:
            engine.execute(statement)
        for claim in (*found.claims, *found.warnings):
            assert engine.execute(claim.sql).fetchall()
            assert all(sign.isprintable() or sign == "\n" for sign in claim.sql)
    assert found.summary.total_source_a == Decimal("2.00")


def test_a_result_is_the_same_in_another_process(sample: Catalog) -> None:
    compared = compare(sample, CompareRequest.model_validate(MAIN | {"dimensions": ["account"]}))
    asked = query(sample, QueryRequest(source="fi_reporting", dimensions=["company"]))
    assert pickle.loads(pickle.dumps(compared)).to_dict(explain=True) == compared.to_dict(explain=True)
    assert pickle.loads(pickle.dumps(asked)).to_dict(explain=True) == asked.to_dict(explain=True)
