"""What a run says that ended because its answers were sent back: of answers, and not of tools that it did not call."""

from typing import Any

from treadle import Agent, tool
from treadle.testing import ScriptedModel


@tool(effect="read")
def look(n: int) -> str:
    """Looks at a number of things."""
    raise RuntimeError("nothing there")


def test_objections_alone_are_told_as_what_they_are() -> None:
    model = ScriptedModel(lambda request: "No.")
    result = Agent(model, on_answer=lambda answer, context: "Say yes.").run_sync("Well?")
    assert result.stop.reason == "consecutive_errors"
    assert result.stop.detail == "3 replies in a row were no answer that could stand."
    assert "tool" not in result.stop.advice
    assert "check" in result.stop.advice
    assert "3 replies in a row" in model.requests[-1].messages[-1].text


def test_an_answer_of_no_type_is_told_likewise() -> None:
    result = Agent(ScriptedModel(lambda request: "many"), output=int, output_mode="prompted").run_sync("How many?")
    assert "replies in a row" in result.stop.detail
    assert "type" in result.stop.advice


def test_where_a_tool_had_a_part_in_it_that_is_told() -> None:
    def turn(request: Any) -> Any:
        return "No." if len(request.messages) > 3 else [("look", {"n": 1})]

    agent = Agent(ScriptedModel(turn), tools=[look], on_answer=lambda answer, context: "Say yes.")
    stop = agent.run_sync("Well?").stop
    assert (stop.reason, stop.detail) == ("consecutive_errors", "everything went wrong in 3 steps in a row.")
    assert "a tool or its description" in stop.advice
