"""What a program is shown without folding events itself: the text alone, each step as a whole, a printed trace."""

from collections.abc import AsyncIterator

import pytest

from treadle import (
    Agent,
    Alternative,
    Limits,
    MemoryJournal,
    Retry,
    StepCompleted,
    SubRunEvent,
    handoff,
    print_trace,
    tool,
    trace_lines,
)
from treadle.kernel.messages import AssistantMessage, Text, ToolCall
from treadle.models import ModelEvent, ModelReply, ModelRequest, Overloaded, TextDelta
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(item: str) -> str:
    """Looks at an item."""
    if item == "\x1b[2J":
        raise ValueError("nothing\u202eto see")
    return f"{item} is here"


async def pieces(agent: Agent, **given: str) -> list[str]:
    async with agent.stream("Where is it?") as run:
        return [piece async for piece in run.text_stream(**given)]


@pytest.mark.parametrize("chunk", [None, 3])
async def test_the_text_alone_is_the_replies_with_a_blank_line_between(chunk: int | None) -> None:
    script = [("Let me see.", [("look", {"item": "a"})]), [("look", {"item": "b"})], "It is here."]
    model = ScriptedModel(script) if chunk is None else ScriptedModel(script, chunk=chunk)
    found = await pieces(Agent(model, tools=[look]))
    assert "".join(found) == "Let me see.\n\nIt is here."
    assert len(found) == (3 if chunk is None else 9)


async def test_the_text_alone_has_what_agents_say_that_the_conversation_is_handed_on_to() -> None:
    """It was empty, though the run had an answer."""
    helper = Agent(ScriptedModel(["This is between us."], chunk=5), name="helper")
    last = Agent(
        ScriptedModel([("I ask.", [("helper", {"task": "x"})]), "It is here."], chunk=3),
        name="last",
        tools=[helper.as_tool()],
    )
    middle = Agent(
        ScriptedModel([("One moment.", [("transfer_to_last", {})])], chunk=4), name="middle", tools=[handoff(last)]
    )
    front = Agent(ScriptedModel([[("transfer_to_middle", {})]]), tools=[handoff(middle)])
    assert "".join(await pieces(front)) == "One moment.\n\nI ask.\n\nIt is here."


async def test_the_text_alone_has_the_typed_answer_of_an_agent_that_was_handed_on_to() -> None:
    answers = ScriptedModel([[("final_answer", {"result": 4})]])
    last = Agent(answers, name="last", output=int, output_mode="tool")
    first = ScriptedModel([[("transfer_to_last", {})]])
    found = await pieces(Agent(first, tools=[handoff(last)], output=int, output_mode="tool"))
    assert found == ['{"result":4}']


async def test_the_text_alone_has_what_a_hook_puts_in_place_of_the_answer_of_one_that_was_handed_on_to() -> None:
    def shorter(call, result):
        return "Bonn." if call.name == "transfer_to_last" else None

    last = Agent(ScriptedModel([[("look", {"item": "a"})], "It is in Bonn."]), name="last", tools=[look])
    first = Agent(ScriptedModel([[("transfer_to_last", {})]]), tools=[handoff(last)], on_tool_result=shorter)
    assert "".join(await pieces(first)) == "It is in Bonn.\n\nBonn."


async def test_the_text_alone_has_no_result_of_a_hand_off_that_failed() -> None:
    """What a hook told the model of it was passed off as something that was said."""
    script = [("Let me look.", [("look", {"item": "a"})]), "It is in Bonn."]
    last = Agent(ScriptedModel(script), name="last", tools=[look], limits=Limits(steps=1))
    first = Agent(
        ScriptedModel([[("transfer_to_last", {})], "I do not know."]),
        tools=[handoff(last)],
        on_tool_result=lambda call, result: "Only for the model.",
    )
    assert "".join(await pieces(first)) == "Let me look.\n\nI do not know."


async def breaks_off(request):
    yield TextDelta("It is in the")
    raise Overloaded("busy", retry_after=0.0)


async def whole(request):
    yield TextDelta("It is in the box.")
    yield ModelReply(AssistantMessage((Text("It is in the box."),)))


async def test_a_reply_that_breaks_off_is_not_passed_off_as_a_part_of_the_answer() -> None:
    def model() -> ScriptedModel:
        turns = iter([breaks_off, whole])
        return ScriptedModel(lambda request: next(turns)(request))

    assert "".join(await pieces(Agent(model()))) == "It is in the\n[The reply broke off.]\nIt is in the box."
    assert "".join(await pieces(Agent(model()), withdrawn="")) == "It is in theIt is in the box."


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("words", ["", "Let me see."])
async def test_the_text_alone_has_the_answer_by_the_final_tool_whatever_is_said_beside_it(
    chunk: int | None, words: str
) -> None:
    """It was left out where anything was said."""
    script = [(words, [("final_answer", {"result": "x"})]), (words, [("final_answer", {"result": 4})])]
    found = await pieces(Agent(ScriptedModel(script, chunk=chunk), output=int, output_mode="tool"))
    texts = [words, '{"result":"x"}', words, '{"result":4}'] if words else ['{"result":"x"}', '{"result":4}']
    assert "".join(found) == "\n\n".join(texts)


async def test_the_text_alone_has_what_a_model_says_that_does_not_stream_beside_the_final_tool() -> None:
    message = AssistantMessage((Text("Here:"), ToolCall("a", "final_answer", '{"result":4}')))

    class Whole:
        name = "whole"

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield ModelReply(message, finish="tool_calls")

    assert await pieces(Agent(Whole(), output=int, output_mode="tool")) == ["Here:", "\n\n", '{"result":4}']


@pytest.mark.parametrize("journal", [None, MemoryJournal()])
async def test_each_step_is_shown_as_a_whole_once(journal: MemoryJournal | None) -> None:
    below = Agent(ScriptedModel([[("look", {"item": "c"})], "found"]), tools=[look], name="below")
    script = [[("look", {"item": "a"})], [("below", {"task": "look"})], "done"]
    seen: list[object] = []
    agent = Agent(ScriptedModel(script), tools=[look, below.as_tool()], journal=journal)
    result = await agent.run("?", on_event=seen.append)
    assert [one.step for one in seen if isinstance(one, StepCompleted)] == list(result.steps)
    inner = [one.event.step for one in seen if isinstance(one, SubRunEvent) and isinstance(one.event, StepCompleted)]
    assert [[call.name for call in step.calls] for step in inner] == [["look"], []]
    if journal is not None:
        assert not any(isinstance(one, StepCompleted) for one in await journal.read(result.run_id))


async def test_a_step_that_a_limit_cuts_off_is_shown_too() -> None:
    seen: list[object] = []
    agent = Agent(ScriptedModel(lambda request: [("look", {"item": "a"})] * 3), tools=[look], on_limit="stop")
    result = await agent.run("?", limits=Limits(steps=2, tool_calls=2), on_event=seen.append)
    assert [one.step for one in seen if isinstance(one, StepCompleted)] == list(result.steps)


async def test_a_printed_trace_tells_the_run_and_nothing_that_steers_a_terminal(capsys) -> None:
    script = [("Let me see.", [("look", {"item": "a"}), ("look", {"item": "\x1b[2J"})]), "It is here.\nSure."]
    agent = Agent(ScriptedModel(script), tools=[look], name="finder")
    result = await agent.run("Where\nis it?", on_event=print_trace)
    told = capsys.readouterr().out
    one, two = (record.id for record in result.tool_calls_made)
    assert told.startswith(f"run {result.run_id} of finder (scripted)\n  user: Where\n    is it?\nstep 0\n")
    for line in (
        "  says: Let me see.",
        f'  calls {one}: look({{"item":"a"}})',
        f"  result of {one}: a is here",
        "  reply ended: tool_calls",
        "step 1",
        "  says: It is here.\n    Sure.",
        "stop: answered",
    ):
        assert f"\n{line}\n" in told
    assert f"error of {two}" in told
    assert not {"\x1b", "\u202e"} & set(told)


async def test_the_trace_of_a_run_that_has_ended_is_printed_from_its_result(capsys) -> None:
    """It printed nothing, and said nothing."""
    agent = Agent(ScriptedModel([[("look", {"item": "a"})], "It is here."]), tools=[look])
    result = await agent.run("Where is it?", on_event=print_trace)
    as_it_happened = capsys.readouterr().out
    print_trace(result)
    assert capsys.readouterr().out == as_it_happened
    assert "stop: answered" in as_it_happened


async def test_a_long_text_is_cut_and_says_so() -> None:
    agent, lines = Agent(ScriptedModel(["long " * 500])), []
    await agent.run("?", on_event=lambda event: lines.extend(trace_lines(event)))
    (said,) = [line for line in lines if line.startswith("  says:")]
    assert said.endswith("… (2,500 characters)")
    assert len(said) < 700


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("nothing here", "  call_0_0 is replaced by this: nothing here"),
        (Retry(), '  call_0_0 is made anew as look({"item":"a"})'),
        (Alternative("look", {"item": "b"}), '  call_0_0 is made anew as look({"item":"b"})'),
        (None, "  call_0_0 is kept as it is"),
    ],
    ids=["replaced", "again", "another", "kept"],
)
async def test_a_trace_tells_what_a_hook_made_of_a_result(made: object, told: str) -> None:
    """It said "replace" or "call", and not by what, so that what the model had seen stood nowhere."""
    answers, lines = [made], list[str]()
    script = ScriptedModel([[("look", {"item": "a"})], "Done."])
    agent = Agent(script, tools=[look], on_tool_result=lambda call, result: answers.pop() if answers else None)
    await agent.run("Where is it?", on_event=lambda event: lines.extend(trace_lines(event)))
    assert told in lines
