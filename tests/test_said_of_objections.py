"""What a run says that ended because its answers were sent back: of answers, and not of tools that it did not call."""

import asyncio
import re
from typing import Any

import pytest
from pydantic import BaseModel, Field

from treadle import Agent, Limits, MemoryJournal, handoff, replay, step_count, text_contains, tool
from treadle.kernel.events import ToolFinished
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


@pytest.mark.parametrize("mode", ["prompted", "tool"])
@pytest.mark.parametrize("crashed", [False, True])
def test_an_answer_that_was_sent_back_is_no_output_where_a_condition_ends_the_run(mode: Any, crashed: bool) -> None:
    said: Any = "7" if mode == "prompted" else [("final_answer", {"result": 7})]
    made = {"output": int, "output_mode": mode, "on_answer": lambda answer, context: "It is even."}
    journal = MemoryJournal()
    agent: Agent[Any, Any] = Agent(ScriptedModel([said]), stop_when=step_count(1), journal=journal, **made)
    result = agent.run_sync("How many?")
    if crashed:
        journal = MemoryJournal()
        asyncio.run(journal.append(result.run_id, 0, result.events[:-1]))
        agent = Agent(ScriptedModel([]), stop_when=step_count(1), journal=journal, **made)
        result = asyncio.run(agent.resume(result.run_id, takeover=True))
    assert (result.stop.reason, result.output) == ("condition", None)
    assert result.stop.detail == "step_count(1); there is no output: the last reply was sent back"
    assert asyncio.run(agent.replay(result.run_id)).same
    assert asyncio.run(replay(journal, result.run_id)).same


def test_an_answer_after_one_that_was_sent_back_is_the_output() -> None:
    script = [[("final_answer", {"result": 7})], [("final_answer", {"result": 8})]]
    agent = Agent(
        ScriptedModel(script),
        output=int,
        output_mode="tool",
        on_answer=lambda answer, context: "It is even." if answer % 2 else None,
        stop_when=step_count(3),
    )
    assert agent.run_sync("How many?").output == 8


@pytest.mark.parametrize("objects", ["front", "expert"])
@pytest.mark.parametrize("handed", [False, True])
def test_an_answer_that_was_sent_back_below_is_no_answer_above(objects: str, handed: bool) -> None:
    said = {"on_answer": lambda answer, context: "It is even." if answer == 7 else None}
    asks: dict[str, Any] = {"front": {}, "expert": {}, objects: said}
    expert = Agent(ScriptedModel(["7"]), name="expert", output=int, stop_when=step_count(1), **asks["expert"])
    called: Any = [("transfer_to_expert", {})] if handed else [("expert", {"task": "How many?"})]
    journal, model = MemoryJournal(), ScriptedModel([called, "8"])
    tools = [handoff(expert) if handed else expert.as_tool()]
    front: Agent[Any, Any] = Agent(model, tools=tools, output=int, journal=journal, **asks["front"])
    result = front.run_sync("How many?")
    if objects == "expert" or handed:
        assert "there is no output: the last reply was sent back" in model.requests[1].messages[-1].text
        assert model.requests[1].messages[-1].is_error  # type: ignore[union-attr]
    assert result.output == 8
    assert asyncio.run(front.replay(result.run_id)).same


def test_a_single_reply_that_is_sent_back_is_told_as_one() -> None:
    once = Limits(consecutive_errors=1)
    refused = Agent(ScriptedModel(["no"]), limits=once, on_answer=lambda _, __: "No.", on_limit="stop").run_sync(
        "Well?"
    )
    assert refused.stop.detail == "the reply was no answer that could stand."
    wrong = Agent(ScriptedModel([[("nothing", {})]]), limits=once, on_limit="stop").run_sync("Well?")
    assert wrong.stop.detail == "everything went wrong in the step."


def test_an_agent_that_checks_nothing_is_not_told_to_look_at_its_check():
    result = Agent(ScriptedModel(lambda request: "")).run_sync("Hello?")
    assert result.stop.reason == "consecutive_errors"
    assert "sent back: they say nothing, or" in result.stop.advice


class Counted(BaseModel):
    n: int


class Positive(Counted):
    n: int = Field(gt=0)


@pytest.mark.parametrize("output", [None, Counted, Positive])
def test_what_does_not_fit_and_was_sent_back_below_is_no_answer_of_a_hand_off(output: Any) -> None:
    """Regression: the run above ended as answered, a wider type of its own with the value that was refused."""
    below = ScriptedModel(['{"n": -1}', '{"n": 1}'])
    expert = Agent(below, name="expert", output=Positive, stop_when=text_contains("-1"))
    model = ScriptedModel([[("transfer_to_expert", {})], '{"n": 8}'])
    front: Agent[Any, Any] = Agent(model, tools=[handoff(expert)], output=output, journal=MemoryJournal())
    result = front.run_sync("How many?")
    assert "there is no output: the last reply holds no Positive" in model.requests[1].messages[-1].text
    assert (result.text, result.stop.detail) == ('{"n": 8}', "")
    assert asyncio.run(front.replay(result.run_id)).same


@pytest.mark.anyio
async def test_an_answer_below_that_no_longer_reads_as_one_is_one_all_the_same() -> None:
    """Regression: of a run below that had ended as its process died, and whose answer the journal redacts, the agent
    above was told that it had stopped before it was done."""

    class Card(BaseModel):
        number: str = Field(pattern=r"^\d{16}$")

    def front(journal: MemoryJournal, turns: list[Any]) -> Agent[Any, Any]:
        clerk = Agent(ScriptedModel(['{"number": "1234567890123456"}']), name="clerk", output=Card)
        return Agent(ScriptedModel(turns), tools=[clerk.as_tool()], journal=journal)

    journal = MemoryJournal(redact=lambda text: re.sub(r"\d{16}", "[card]", text))
    called: Any = [("clerk", {"task": "Which card?"})]
    whole = await front(journal, [called, "That one."]).run("Which card?")
    events = await journal.read(whole.run_id)
    assert await journal.delete(whole.run_id)
    last = next(at for at, event in enumerate(events) if isinstance(event, ToolFinished))
    await journal.append(whole.run_id, 0, events[:last])
    (call,) = (await front(journal, ["That one."]).resume(whole.run_id)).tool_calls_made
    assert call.result is not None
    assert (call.is_error, call.result.text) == (False, '{"number":"[card]"}')
