"""Follow-ups put their words in the place of what stood there, and never in that of something else."""

from typing import Any

import pytest

from treadle import Agent, Conversation, RunResult, tool
from treadle.analyst import analyst_skill, sample_catalog

MINUTES = {frozenset({"Harbour", "Hill Road"}): 17, frozenset({"Market Square", "Hill Road"}): 31}


@tool(effect="read")
def convert_length(value: float, from_unit: str, to_unit: str) -> str:
    """Converts a length from one unit into another."""
    return f"{value:g} {from_unit} in {to_unit}"


@tool(effect="read")
def travel_time(from_stop: str, to_stop: str) -> int:
    """How many minutes the bus takes from one stop to another."""
    return MINUTES[frozenset({from_stop, to_stop})]


def asked(*questions: str, tools: list[Any]) -> RunResult:
    agent, conversation = Agent("offline", tools=tools), Conversation()
    return [agent.run_sync(question, conversation=conversation) for question in questions][-1]


def calls(result: RunResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in result.tool_calls_made]


def test_a_followup_with_to_asks_for_another_end() -> None:
    result = asked("Convert 6 feet to metres", "and to inches?", tools=[convert_length])
    assert calls(result) == [("convert_length", {"from_unit": "feet", "to_unit": "inches", "value": 6})]


def test_a_followup_with_from_replaces_what_is_not_led_by_to() -> None:
    result = asked("Convert 6 feet to metres", "and from inches?", tools=[convert_length])
    assert calls(result) == [("convert_length", {"from_unit": "inches", "to_unit": "metres", "value": 6})]


def test_a_followup_with_from_asks_for_another_start() -> None:
    questions = "How many minutes does the bus take from Harbour to Hill Road?", "and from Market Square?"
    result = asked(*questions, tools=[travel_time])
    assert calls(result) == [("travel_time", {"from_stop": "Market Square", "to_stop": "Hill Road"})]


@pytest.mark.parametrize("more", ["only for Smart", "and for Smart?"])
def test_a_name_of_something_else_does_not_take_the_place_of_a_source(more: str) -> None:
    agent, conversation = Agent("offline", skills=[analyst_skill(sample_catalog())]), Conversation()
    agent.run_sync("amount in consolidation_mart by company", conversation=conversation)
    result = agent.run_sync(more, conversation=conversation)
    assert "query_source" not in [name for name, _ in calls(result)]


def test_a_word_that_is_only_like_a_part_of_a_name_is_not_that_name() -> None:
    agent = Agent("offline", skills=[analyst_skill(sample_catalog())])
    result = agent.run_sync("amount in Smart by company")
    assert "to mean" not in result.text


@pytest.mark.parametrize("more", ["and back", "and 20 from Holiday", "and vice versa"])
def test_a_followup_that_turns_a_change_round_makes_none(more: str) -> None:
    @tool(effect="write")
    def transfer(from_account: str, to_account: str, amount: float) -> str:
        """Transfers money between two accounts."""
        return f"{amount} from {from_account} to {to_account}"

    assert calls(asked("Transfer 50 from Rent to Holiday", tools=[transfer]))
    assert not calls(asked("Transfer 50 from Rent to Holiday", more, tools=[transfer]))
