""" "Now without the period" takes the condition away that was there, and asks for no rows without a period."""

from treadle import Agent, Conversation
from treadle.analyst import analyst_skill, sample_catalog


def test_without_the_period_takes_its_condition_away() -> None:
    agent, conversation = Agent("offline", skills=[analyst_skill(sample_catalog())]), Conversation()
    agent.run_sync(
        "Compare the amount totals between fi_reporting and consolidation_mart for company 1001 in period 202401",
        conversation=conversation,
    )
    result = agent.run_sync("Now without the period", conversation=conversation)
    (call,) = result.tool_calls_made
    assert call.arguments["filters"] == [{"dimension": "company", "op": "=", "value": "1001"}]
    assert result.text.startswith("I read that as")
