"""`compare_sources(source_a, source_b, measure=…, filters=…)`: one row a combination of what is filtered."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from treadle.analyst import AnalystError, Catalog, CompareRequest, analyst_skill, compare

pytestmark = pytest.mark.usefixtures("one_engine")

FILTERS = {"company": "1001", "period": "202401"}


async def asked(catalog: Catalog, **arguments: Any) -> Any:
    tool = next(tool for tool in analyst_skill(catalog).tools if tool.name == "compare_sources")
    given = {"source_a": "fi_reporting", "source_b": "consolidation_mart"} | arguments
    return (await tool.function(**tool.validate(json.dumps(given)))).for_app


@pytest.mark.anyio
async def test_one_row_by_company_and_period(sample: Catalog) -> None:
    found = await asked(sample, measure="amount", filters=FILTERS)
    assert list(found["dimensions"]) == ["company", "period"]
    assert [row["key"] for row in found["rows"]] == [FILTERS]
    assert (found["summary"]["total_rows"], found["summary"]["total_diff"]) == (1, "8000.00")


@pytest.mark.anyio
async def test_several_values_of_a_filter_are_several_rows(sample: Catalog) -> None:
    found = await asked(sample, measure="amount", filters=FILTERS | {"period": ["202401", "202402"]})
    assert {row["key"]["period"] for row in found["rows"]} == {"202401", "202402"}


@pytest.mark.anyio
async def test_dimensions_that_are_said_hold(sample: Catalog) -> None:
    found = await asked(sample, measure="amount", filters=FILTERS, dimensions=["account"])
    assert list(found["dimensions"]) == [
        "account",
    ]
    assert not (await asked(sample, measure="amount", filters=FILTERS, dimensions=[]))["dimensions"]
    whole = await asked(sample, measure="amount")
    assert list(whole["dimensions"]) == ["company", "period", "account", "currency"]


@pytest.mark.anyio
async def test_a_filter_by_a_synonym(sample: Catalog) -> None:
    found = await asked(sample, measure="Balance", filters={"bukrs": "1001", "Entity": ["1001"]})
    assert (found["measure"], *found["dimensions"]) == ("amount", "company")


def test_in_a_program(sample: Catalog) -> None:
    names = {"source_a": "fi_reporting", "source_b": "consolidation_mart"}
    found = compare(sample, CompareRequest(**names, measure="amount", filters=FILTERS))
    assert found.summary.total_rows == 1
    with pytest.raises(ValidationError, match="give it or 'measures', not both"):
        CompareRequest(**names, measure="amount", measures=["amount"])
    with pytest.raises(AnalystError, match="amount"):
        compare(sample, CompareRequest(**names, measure="amuont", filters=FILTERS))
