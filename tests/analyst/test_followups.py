"""Follow-ups in a conversation with the analyst and `offline`: they keep what the question before them fixed."""

import pytest

from treadle import Agent, Conversation
from treadle.analyst import Catalog, analyst_skill, check_figures
from treadle.models.offline import OfflineModel

pytestmark = pytest.mark.anyio
MAIN = "Compare the amount totals between fi_reporting and consolidation_mart for company 1001 in period 202401"
QUERY = "What is the amount of fi_reporting by company in period 202401?"

Filters = dict[str, str]


async def asked(catalog: Catalog, *questions: str) -> tuple[str, str, Filters, list[str], str]:
    """The last question's tool, other source, filters, dimensions and answer, after those before it."""
    agent, conversation = Agent(OfflineModel(), skills=[analyst_skill(catalog)]), Conversation()
    for question in questions:
        result = await agent.run(question, conversation=conversation)
        assert result.finished
        assert check_figures(result) == []
    call = result.tool_calls_made[-1]
    filters = {item["dimension"]: item["value"] for item in call.arguments.get("filters", [])}
    return call.name, call.arguments.get("source_b", ""), filters, call.arguments.get("dimensions", []), result.text


@pytest.mark.parametrize(
    ("questions", "tool", "filters", "dimensions", "said"),
    [
        ([MAIN], "compare_sources", {"company": "1001", "period": "202401"}, [], "1,492,000.00"),
        (
            [MAIN, "and for period 202402?"],
            "compare_sources",
            {"company": "1001", "period": "202402"},
            [],
            "1,025,712.82",
        ),
        ([MAIN, "which accounts?"], "compare_sources", {"company": "1001", "period": "202401"}, ["account"], "800200"),
        (
            [MAIN, "and for period 202402?", "which accounts?", "and company 2001?"],
            "compare_sources",
            {"company": "2001", "period": "202402"},
            ["account"],
            "all 20 keys match",
        ),
        ([QUERY, "and for period 202402?"], "query_source", {"period": "202402"}, ["company"], "1,549,837.04"),
        (
            [QUERY, "only for company 1001"],
            "query_source",
            {"period": "202401", "company": "1001"},
            ["company"],
            "1,500,000.00",
        ),
    ],
)
async def test_a_follow_up_keeps_what_it_does_not_change(
    sample: Catalog, questions: list[str], tool: str, filters: Filters, dimensions: list[str], said: str
) -> None:
    found = await asked(sample, *questions)
    assert (found[0], found[2], found[3]) == (tool, filters, dimensions)
    assert said in found[4]


async def test_a_follow_up_may_name_another_source(sample: Catalog) -> None:
    first = "Compare fi_reporting and bpc_reporting for company 1001 in 202401"
    _, other, filters, _, said = await asked(sample, first, "and the same with consolidation_mart?")
    assert other == "consolidation_mart"
    assert filters == {"company": "1001", "period": "202401"}
    assert "1,492,000.00" in said
