"""Through the loop: a model without tool calling is the equal of one that has it."""

import asyncio
import json
from decimal import Decimal

import pytest

from treadle import Agent, AskUser, Limits, Misuse, ModelSettings, Price, external_tool, tool
from treadle.kernel.messages import (
    AssistantMessage,
    Image,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from treadle.models import ToolUseFailed
from treadle.models.port import Model, ModelReply, ModelRequest, TextDelta
from treadle.models.text_tools import TextTools
from treadle.testing import ScriptedModel

FORMATS = ("json", "react", "tags")


@tool(effect="read")
def weather(city: str, days: int = 1) -> str:
    """Tell the weather of a city.

    Args:
        city: its name.
        days: how many days ahead.
    """
    return f"{city}: sunny for {days}"


@tool(effect="read")
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def written(format, name, **arguments):
    body = json.dumps(arguments)
    return {
        "json": f'{{"name": "{name}", "arguments": {body}}}',
        "react": f"Action: {name}\nAction Input: {body}",
        "tags": f'<tool_call>\n{{"name": "{name}", "arguments": {body}}}\n</tool_call>',
    }[format]


def answered(format, text):
    return f"Final Answer: {text}" if format == "react" else text


def agent(script, format, **options):
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script, chunk=3)
    return model, Agent(TextTools(model, format), instructions="Be brief.", tools=[weather, add], **options)


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_loop_with_parallel_calls(format):
    script = [
        written(format, "weather", city="Köln") + "\n" + written(format, "add", a=1, b=2),
        answered(format, "sunny, and 3"),
    ]
    model, clerk = agent(script, format)
    result = clerk.run_sync("How is it?")
    assert (result.text, result.stop.reason) == ("sunny, and 3", "answered")
    assert [(call.name, call.arguments) for call in result.tool_calls_made] == [
        ("weather", {"city": "Köln"}),
        ("add", {"a": 1, "b": 2}),
    ]
    second = model.requests[1]
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    assert second.tools == ()
    shown = second.messages[-1].text
    assert "Köln: sunny for 1" in shown
    assert "3.0" in shown
    assert second.messages[2].text == script[0]


@pytest.mark.parametrize("format", FORMATS)
def test_the_model_is_told_of_its_tools(format):
    model, clerk = agent([answered(format, "hello")], format)
    clerk.run_sync("Hi")
    system = model.requests[0].messages[0].text
    assert system.startswith("Be brief.\n\n")
    assert written(format, "weather", city="...") in system
    assert "weather: Tell the weather of a city." in system
    assert "- city (string, required): its name." in system
    assert "- days (integer, default 1): how many days ahead." in system


@pytest.mark.parametrize("format", FORMATS)
def test_history_is_the_same_bytes_and_objects_in_every_step(format):
    model, clerk = agent(
        lambda request: written(format, "add", a=request.step, b=1) if request.step < 12 else answered(format, "done"),
        format,
    )
    assert clerk.run_sync("Count").text == "done"
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        before, after = list(earlier.messages), list(later.messages)
        assert after[: len(before)] == before
        assert len(after) == len(before) + 2
        # All but the newest message and the system message, which is made for each request, were not made again.
        assert all(a is b for a, b in zip(before[1:-1], after[1:], strict=False))


NAMELESS = {
    "json": '{"arguments": {"city": "Rome"}}',
    "react": 'Action Input: {"city": "Rome"}',
    "tags": "<tool_call>weather in Rome</tool_call>",
}
BROKEN = {
    "json": '{"name": "weather", "arguments": {"city": "Rome"',
    "react": 'Action: weather\nAction Input: {"city": "Rome"',
    "tags": '<tool_call>{"name": "weather", "arguments": {"city": "Rome"',
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("attempts", [NAMELESS, BROKEN], ids=["nameless", "broken"])
def test_failed_attempts_are_explained_and_bounded_and_never_the_answer(format, attempts):
    def reply(request):
        if "Do not call a tool now" in request.messages[-1].text:
            return answered(format, "gave up")
        return attempts[format]

    model, clerk = agent(reply, format, limits=Limits(consecutive_errors=3))
    result = clerk.run_sync("Rome?")
    assert (result.stop.reason, result.text) == ("consecutive_errors", "gave up")
    assert len(model.requests) == 4
    assert all(call.is_error for step in result.steps[:3] for call in step.calls)
    shown = model.requests[1].messages[-1].text
    assert ("not understood as a tool call" in shown) if attempts is NAMELESS else ("not valid JSON" in shown)
    assert "city" in shown  # the example of what is right
    assert "invalid_call" not in shown


@pytest.mark.parametrize("format", FORMATS)
def test_a_failed_attempt_beside_a_good_call(format):
    model, clerk = agent([written(format, "add", a=1, b=2) + "\n" + NAMELESS[format], answered(format, "3")], format)
    result = clerk.run_sync("?")
    assert (result.text, result.stop.reason) == ("3", "answered")
    assert [call.is_error for call in result.steps[0].calls] == [False, True]
    shown = model.requests[1].messages[-1].text
    assert shown.index("3.0") < shown.index("not understood as a tool call")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("silent", ["", " \n"])
def test_a_reply_without_a_word_where_a_tool_must_be_called_is_no_empty_message(format, silent):
    script = [silent, written(format, "add", a=1, b=2), *[answered(format, "3")] * 3]
    model, clerk = agent(script, format, tool_choice="required", limits=Limits(steps=3))
    assert [call.name for call in clerk.run_sync("?").tool_calls_made][:2] == ["invalid_call", "add"]
    told = model.requests[1].messages
    assert [message.role for message in told] == ["system", "user", "assistant", "user"]
    assert told[2].text == "(no content)"


@pytest.mark.parametrize("format", FORMATS)
def test_an_unknown_tool_is_answered_with_the_names_there_are(format):
    model, clerk = agent([written(format, "wether", city="Rome"), answered(format, "ok")], format)
    assert clerk.run_sync("?").text == "ok"
    assert '"nearest":"weather"' in model.requests[1].messages[-1].text


@pytest.mark.parametrize("format", FORMATS)
def test_limits_hold_and_the_last_reply_writes_up(format):
    def reply(request):
        off = "Do not call a tool now" in request.messages[-1].text
        return answered(format, "so far") if off else written(format, "add", a=1, b=request.step)

    model, clerk = agent(reply, format, limits=Limits(steps=3))
    result = clerk.run_sync("?")
    assert (result.stop.reason, result.text, len(model.requests)) == ("max_steps", "so far", 3)


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_in_the_closing_reply_is_not_made_and_not_the_answer(format):
    _, clerk = agent(lambda request: written(format, "add", a=1, b=request.step), format, limits=Limits(steps=3))
    result = clerk.run_sync("?")
    assert result.stop.reason == "max_steps"
    assert result.text == ""
    assert len(result.tool_calls_made) == 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_reply_cut_off_at_its_length_calls_nothing(format):
    text = written(format, "add", a=1, b=2)
    _, clerk = agent([ModelReply(AssistantMessage((Text(text),)), finish="length")], format)
    result = clerk.run_sync("?")
    assert result.stop.reason == "length"
    assert [call.executed for step in result.steps for call in step.calls] == [False]


def test_a_tool_without_a_function_ends_the_run():
    done = external_tool("done", "Finish.", {"type": "object", "properties": {"answer": {"type": "string"}}})
    model = ScriptedModel([written("tags", "done", answer="42")])
    result = Agent(TextTools(model, "tags"), tools=[done], tool_choice="required").run_sync("?")
    assert (result.stop.reason, result.output) == ("external_tool", {"answer": "42"})
    assert "You must call a tool in every reply." in model.requests[0].messages[0].text


def test_react_stops_before_the_observation_and_leaves_the_callers_stops():
    model, clerk = agent(["Final Answer: x"], "react", settings=ModelSettings(stop=("END",), parallel_tool_calls=False))
    clerk.run_sync("?")
    settings = model.requests[0].settings
    assert (settings.stop, settings.parallel_tool_calls) == (("END", "\nObservation:"), None)
    assert "Call one tool at a time." in model.requests[0].messages[0].text


def test_thoughts_are_thinking_and_go_back_in_their_place():
    first = 'Thought: I must add.\nAction: add\nAction Input: {"a": 1, "b": 2}'
    model, clerk = agent([first, "Thought: Done.\nFinal Answer: 3"], "react")
    result = clerk.run_sync("?")
    assert result.text == "3"
    assert result.steps[0].message.content[0] == Thinking("I must add.", id="thought")
    assert model.requests[1].messages[2].text == first


def test_a_model_without_tools_and_calls_is_left_alone():
    model = ScriptedModel(['{"name": "add", "arguments": {}}'])
    assert Agent(TextTools(model), instructions="Be brief.").run_sync("?").text == '{"name": "add", "arguments": {}}'
    assert model.requests[0].messages[0] == SystemMessage("Be brief.")


def collected(model, request):
    async def events():
        return [event async for event in model.stream(request)]

    return asyncio.run(events())


SPEC = ToolSpec("look", "Look.", {"type": "object", "properties": {}})


def test_results_of_one_reply_and_what_is_said_after_become_one_message():
    calls = (ToolCall("a", "look", "{}"), ToolCall("b", "look", ""))
    history = [
        UserMessage("?"),
        AssistantMessage((Thinking("mine", signature="s"), Text("Looking."), *calls)),
        ToolMessage("a", "look", (Text("seen"), Image(data=b"1"))),
        ToolMessage("b", "look", '{"error":true}', is_error=True),
        UserMessage("Go on."),
    ]
    model = ScriptedModel(["ok"])
    collected(TextTools(model), ModelRequest(history, (SPEC,)))
    _, question, said, results = model.requests[0].messages
    assert question is history[0]
    assert said.content[0] == Thinking("mine", signature="s")
    assert said.text == 'Looking.\n{"name": "look", "arguments": {}}\n{"name": "look", "arguments": {}}'
    assert results.content == (
        Text("Result of look (call 1 of 2):\nseen"),
        Image(data=b"1"),
        Text('Result of look (call 2 of 2):\n{"error":true}'),
        Text("Go on."),
    )


def test_history_with_calls_is_readable_when_no_tools_are_offered_any_more():
    history = [UserMessage("?"), AssistantMessage((ToolCall("a", "look"),)), ToolMessage("a", "look", "seen")]
    model = ScriptedModel(["I saw it."])
    reply = collected(TextTools(model), ModelRequest(history))[-1]
    assert reply.message.text == "I saw it."
    assert [message.role for message in model.requests[0].messages] == ["user", "assistant", "user"]


def test_ids_differ_between_steps_and_runs_and_repeat_for_the_same():
    def ids(run_id, step):
        model = TextTools(ScriptedModel(['{"name":"look"}{"name":"look"}']))
        reply = collected(model, ModelRequest([UserMessage("?")], (SPEC,), run_id=run_id, step=step))[-1]
        return tuple(call.id for call in reply.message.calls)

    found = [ids(run, step) for run in ("", "r1", "r2") for step in (0, 1)]
    assert len({one for pair in found for one in pair}) == 12
    assert ids("r1", 1) == ids("r1", 1)


def test_the_schema_of_the_answer_is_asked_for_when_no_tool_can_be_called():
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    for choice, expected in (("auto", None), ("none", schema)):
        model = ScriptedModel(['{"x": 1}'])
        request = ModelRequest([UserMessage("?")], (SPEC,), choice, output_schema=schema)
        assert collected(TextTools(model), request)[-1].message.text == '{"x": 1}'
        assert model.requests[0].output_schema == expected


def test_an_answer_of_a_type_is_asked_for_in_words_unless_somebody_says_so():
    for options, in_words in (({}, True), ({"output_mode": "native"}, False)):
        model = ScriptedModel(["1"])
        assert Agent(TextTools(model), output=int, **options).run_sync("?").output == 1
        assert model.requests[0].in_words is in_words


def test_a_call_that_a_server_refused_to_pass_on_is_read():
    failure = ToolUseFailed("no tools", failed_text='{"name": "look", "arguments": {}}')
    reply = collected(TextTools(ScriptedModel([failure])), ModelRequest([UserMessage("?")], (SPEC,)))[-1]
    assert [call.name for call in reply.message.calls] == ["look"]
    with pytest.raises(ToolUseFailed):
        collected(TextTools(ScriptedModel([ToolUseFailed("no")])), ModelRequest([UserMessage("?")], (SPEC,)))


def test_the_inner_models_properties_are_its_own():
    inner = ScriptedModel([], name="local:tiny", price=Price(input=1, output=2))
    inner.max_output_tokens = 512
    model = TextTools(inner)
    assert isinstance(model, Model)
    assert (model.name, model.max_output_tokens) == ("local:tiny", 512)
    assert model.cost(Usage(1_000_000, 0)) == Decimal(1)
    assert TextTools(ScriptedModel([])).cost(Usage(1, 1)) is None


def test_misuse_is_told_at_once():
    with pytest.raises(Misuse, match="'json', 'react' and 'tags'"):
        TextTools(ScriptedModel([]), "xml")
    with pytest.raises(Misuse, match="takes a model"):
        TextTools(42)
    taken = ToolSpec("invalid_call", "", {"type": "object"})
    with pytest.raises(Misuse, match="rename it"):
        collected(TextTools(ScriptedModel(["x"])), ModelRequest([UserMessage("?")], (taken,)))


@pytest.mark.parametrize("format", FORMATS)
def test_a_model_is_shown_what_a_hook_made_of_a_failed_attempt(format):
    def kinder(call, output):
        return "Try it in English, please." if call.name == "invalid_call" else None

    model, clerk = agent([NAMELESS[format], answered(format, "3")], format, on_tool_result=kinder)
    assert clerk.run_sync("?").text == "3"
    shown = model.requests[1].messages[-1].text
    assert "Try it in English, please." in shown
    assert "not understood as a tool call" not in shown
    assert "invalid_call" not in shown


@pytest.mark.parametrize("format", FORMATS)
def test_a_model_is_shown_what_a_person_said_of_a_failed_attempt(format):
    def waits(call, output):
        return AskUser("What is this?") if call.name == "invalid_call" else None

    model, clerk = agent([NAMELESS[format], answered(format, "3")], format, on_tool_result=waits)
    waiting = clerk.run_sync("?")
    (asked,) = waiting.pending
    result = asyncio.run(clerk.resume(waiting, results={asked.call_id: "The weather is sunny."}))
    assert result.text == "3"
    shown = model.requests[1].messages[-1].text
    assert "The weather is sunny." in shown
    assert "not understood as a tool call" not in shown


def test_the_inner_stream_is_closed_with_ours():
    closed = []

    class Slow:
        name = "slow"

        async def stream(self, request):
            try:
                yield TextDelta("Hello, this is a long text, ")
                await asyncio.sleep(3600)
            finally:
                closed.append(True)

    async def look():
        events = TextTools(Slow()).stream(ModelRequest([UserMessage("?")], (SPEC,)))
        assert isinstance(await anext(events), TextDelta)
        await events.aclose()

    asyncio.run(look())
    assert closed == [True]
