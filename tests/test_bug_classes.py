"""The classic bugs of agent loops, each with a test of its name."""

import asyncio
import json

import pytest

from treadle import (
    Agent,
    Limits,
    Retries,
    tool,
)
from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall
from treadle.models import ModelReply, Overloaded, TextDelta, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.testing import ScriptedModel

FINISHES = ["stop", "tool_calls", "length", "content_filter", "refusal", "pause", "unknown"]


@pytest.fixture
def done():
    return []


@pytest.fixture
def count(done):
    @tool(effect="read")
    async def count(n: int = 0) -> int:
        """Count."""
        done.append(n)
        return n

    return count


def reply(*parts, finish="tool_calls"):
    return ModelReply(
        AssistantMessage(tuple(Text(part) if isinstance(part, str) else part for part in parts)), finish=finish
    )


# The assistant message is missing from the history


@pytest.mark.parametrize("text", ["", "Let me see."])
def test_the_assistant_message_with_the_calls_is_in_history_before_their_results(count, text):
    model = ScriptedModel([(text, [("count", {"n": 1}), ("count", {"n": 2})]), "done"])
    Agent(model, tools=[count]).run_sync("go")
    sent = model.requests[1].messages
    assert [message.role for message in sent] == ["user", "assistant", "tool", "tool"]
    assert [call.id for call in sent[1].calls] == [message.call_id for message in sent[2:]]


def test_the_answer_is_in_history(count):
    result = Agent(ScriptedModel(["hello"])).run_sync("hi")
    assert result.messages[-1] == AssistantMessage((Text("hello"),))


def test_thinking_and_its_signature_stay_in_history(count):
    thinking = Thinking("let me see", signature="sig")
    model = ScriptedModel([reply(thinking, ToolCall("a", "count", "{}")), "done"])
    Agent(model, tools=[count]).run_sync("go")
    assert model.requests[1].messages[1].content[0] == thinking


# An empty reply


@pytest.mark.parametrize("empty", ["", " ", "\n\t"])
def test_an_empty_reply_is_asked_about_and_not_sent_back(empty):
    model = ScriptedModel([empty, "hello"])
    result = Agent(model).run_sync("hi")
    assert result.text == "hello"
    assert [message.role for message in model.requests[1].messages] == ["user", "user"]
    assert "empty" in model.requests[1].messages[-1].text


@pytest.mark.parametrize("empty", ["", " ", "\n\t"])
def test_empty_replies_for_ever_end_the_run(empty):
    model = ScriptedModel(lambda request: empty)
    result = Agent(model, limits=Limits(steps=None, seconds=None)).run_sync("hi")
    assert result.stop.reason == "consecutive_errors"
    assert len(model.requests) == 4


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("parts", [(), ("",), (" ",), (Thinking("hm"),)])
def test_a_reply_without_anything_to_say_never_crashes(finish, parts):
    model = ScriptedModel([reply(*parts, finish=finish), "hello"])
    result = Agent(model).run_sync("hi")
    assert result.stop.reason in ("answered", "length", "content_filter", "refusal")
    assert result.error is None
    blank = [
        m for m in result.messages if m.role == "assistant" and not (m.text.strip() or Thinking("hm") in m.content)
    ]
    assert blank == []


def test_what_was_found_before_an_empty_reply_is_kept(count):
    model = ScriptedModel([("Found 3 so far.", [("count", {})]), " "])
    result = Agent(model, tools=[count], limits=Limits(steps=2), on_limit="stop").run_sync("go")
    assert result.stop.reason == "max_steps"
    assert result.text == "Found 3 so far."


# An unknown finish reason


@pytest.mark.parametrize("finish", FINISHES)
def test_every_finish_reason_is_handled_with_a_text(finish):
    result = Agent(ScriptedModel([reply("hello", finish=finish), " world"])).run_sync("hi")
    expected = {"length": "length", "content_filter": "content_filter", "refusal": "refusal"}
    assert result.stop.reason == expected.get(finish, "answered")
    assert result.text == (" world" if finish in ("pause", "unknown") else "hello")
    assert bool(result.stop.advice) != result.finished


@pytest.mark.parametrize("finish", FINISHES)
def test_every_finish_reason_is_handled_with_a_call(count, done, finish):
    """Some servers report "stop" with tool calls; a word that nobody knows lets none of them run."""
    model = ScriptedModel([reply(ToolCall("a", "count", '{"n": 1}'), finish=finish), "done"])
    result = Agent(model, tools=[count], eager=False).run_sync("go")
    if finish in ("length", "content_filter", "refusal"):
        assert result.stop.reason == finish
        assert done == []
        assert result.messages[-1].is_error
    else:
        assert result.text == "done"
        assert done == ([] if finish == "unknown" else [1])


def test_the_providers_own_word_is_kept():
    message = AssistantMessage((Text("hm"),))
    strange = ModelReply(message, finish="unknown", finish_detail="cosmic_ray")
    result = Agent(ScriptedModel([strange]), retries=0).run_sync("go")
    assert (result.stop.reason, result.text) == ("model_error", "hm")
    assert "'cosmic_ray'" in result.stop.detail


# Errors that repeat for ever


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "pause"])
@pytest.mark.parametrize("call", [("broken", "{}"), ("missing", "{}"), ("broken", '{"x": 1'), ("", "")])
def test_errors_that_repeat_for_ever_end_the_run(call, finish):
    @tool
    def broken() -> None:
        """Break."""
        raise ValueError("always")

    def always(request):
        return "sorry" if request.tool_choice == "none" else reply(ToolCall("a", *call), finish=finish)

    model = ScriptedModel(always)
    result = Agent(model, tools=[broken], limits=Limits(steps=None, consecutive_errors=3)).run_sync("go")
    assert result.stop.reason == "consecutive_errors"
    assert result.text == "sorry"
    assert len(model.requests) == 4


def test_a_model_that_fails_for_ever_is_given_up():
    model = ScriptedModel(lambda request: Overloaded("busy"))
    result = Agent(model, retries=Retries(attempts=4, base=0)).run_sync("go")
    assert result.stop.reason == "model_error"
    assert len(model.requests) == 4


def test_a_model_that_never_stops_calling_is_stopped(count):
    model = ScriptedModel(lambda request: [("count", {"n": request.step})])
    result = Agent(model, tools=[count]).run_sync("go")
    assert result.stop.reason == "max_steps"
    assert len(model.requests) == Limits().steps
    last = result.messages[-1]
    assert last.role == "tool"
    assert json.loads(last.text)["executed"] is False


# A truncated tool call must not be executed


@pytest.mark.parametrize("arguments", ['{"n": 1', '{"n": 1}', ""])
def test_a_truncated_tool_call_is_not_executed(count, done, arguments):
    model = ScriptedModel([reply("and", ToolCall("a", "count", arguments), finish="length"), "never"])
    result = Agent(model, tools=[count]).run_sync("go")
    assert result.stop.reason == "length"
    assert done == []
    assert "cut off" in result.messages[-1].text
    assert len(model.requests) == 1


def test_malformed_arguments_are_not_repaired_and_run(count, done):
    model = ScriptedModel([[("count", '{"n": 1')], "sorry"])
    result = Agent(model, tools=[count]).run_sync("go")
    assert done == []
    assert result.tool_calls_made[0].is_error
    assert not result.tool_calls_made[0].executed
    assert model.requests[1].messages[1].calls[0].arguments == '{"n": 1'


def test_a_stream_that_breaks_off_executes_no_write(done):
    @tool
    async def write(n: int) -> str:
        """Write."""
        done.append(n)
        return "written"

    async def breaks():
        yield TextDelta("I write ")
        yield ToolCallStarted("a", "write")
        yield ToolCallDelta("a", '{"n": 1}')
        yield ToolCallCompleted("a")
        await asyncio.sleep(0.01)
        raise Overloaded("gone")

    model = ScriptedModel([breaks(), "done"])
    result = Agent(model, tools=[write], retries=Retries(base=0)).run_sync("go")
    assert result.text == "done"
    assert done == []


def test_a_stream_without_a_reply_is_not_an_answer():
    async def stops():
        yield TextDelta("half an answ")

    result = Agent(ScriptedModel([stops()]), retries=0).run_sync("go")
    assert result.stop.reason == "model_error"
    assert result.error.kind == "protocol_error"
    assert result.text == "half an answ"


# A limit inside a parallel batch


@pytest.mark.parametrize("on_limit", ["answer", "stop"])
@pytest.mark.parametrize("allowed", [0, 1, 2, 3])
def test_a_limit_inside_a_parallel_batch(count, done, allowed, on_limit):
    def batch(request):
        return "summary" if request.tool_choice == "none" else ("on it", [("count", {"n": i}) for i in range(4)])

    model = ScriptedModel(batch)
    result = Agent(model, tools=[count], limits=Limits(tool_calls=allowed), on_limit=on_limit).run_sync("go")
    assert result.stop.reason == "max_tool_calls"
    assert sorted(done) == list(range(allowed))
    results = [message for message in result.messages if message.role == "tool"]
    assert [message.is_error for message in results] == [False] * allowed + [True] * (4 - allowed)
    assert result.text == ("summary" if on_limit == "answer" else "on it")


# Ids


@pytest.mark.parametrize("ids", [("a", "a"), ("", ""), ("", "a"), ("call_0", "")])
def test_calls_with_the_same_id_or_none_get_a_result_each(count, done, ids):
    calls = [ToolCall(id, "count", json.dumps({"n": i})) for i, id in enumerate(ids)]
    model = ScriptedModel([reply(*calls), "done"])
    Agent(model, tools=[count]).run_sync("go")
    assert sorted(done) == [0, 1]
    assistant, *results = model.requests[1].messages[1:]
    assert [message.text for message in results] == ["0", "1"]
    assert [call.id for call in assistant.calls] == [message.call_id for message in results]
    assert len({message.call_id for message in results} - {""}) == 2


def test_an_id_that_comes_back_in_a_later_step_is_another_call(count, done):
    model = ScriptedModel(
        [reply(ToolCall("a", "count", '{"n": 1}')), reply(ToolCall("a", "count", '{"n": 2}')), "done"]
    )
    result = Agent(model, tools=[count]).run_sync("go")
    assert done == [1, 2]
    assert [message.text for message in result.messages if message.role == "tool"] == ["1", "2"]


# What a tool gives back


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, float("nan"), "\ud800", b"\xff", {"deep": {"er": object()}}, None, ""]
)
def test_whatever_a_tool_returns_the_run_goes_on_and_is_journaled(value, tmp_path):
    from treadle import SqliteJournal

    @tool
    def odd():
        """Return something odd."""
        return value

    async def run():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            result = await Agent(ScriptedModel([[("odd", {})], "done"]), tools=[odd], journal=journal).run("go")
            assert len(await journal.read(result.run_id)) == len(result.events)
            return result

    result = asyncio.run(run())
    assert result.stop.reason == "answered"


RAISED = [
    ValueError("no"),
    asyncio.CancelledError("mine"),
    StopIteration(),
    StopAsyncIteration(),
    TimeoutError("own"),
    ExceptionGroup("two", [ValueError("a"), KeyError("b")]),
]


@pytest.mark.parametrize("raised", RAISED)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("beside", [(), (("count", {}),)])
def test_whatever_a_tool_raises_the_model_is_shown_and_its_siblings_unharmed(count, done, raised, is_async, beside):
    async def fails_later():
        """Fail."""
        raise raised

    def fails():
        """Fail."""
        raise raised

    failing = tool(fails_later if is_async else fails, name="fails")
    model = ScriptedModel([[("fails", {}), *beside], "done"])
    result = Agent(model, tools=[failing, count]).run_sync("go")
    assert result.text == "done"
    shown = json.loads(model.requests[1].messages[2].text)
    assert shown["error"] is True
    assert shown["message"]
    assert len(done) == len(beside)


def test_text_that_no_file_can_hold_does_not_lose_the_run(tmp_path):
    """A lone surrogate, which JSON can spell and UTF-8 cannot."""
    from treadle import SqliteJournal

    @tool
    def echo(text: str) -> str:
        """Echo."""
        return text

    async def run():
        model = ScriptedModel([("\ud83d", [("echo", '{"text": "\\ud83d"}')]), "half a pair: \ud83d"])
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            return await Agent(model, tools=[echo], journal=journal).run("go")

    result = asyncio.run(run())
    assert result.stop.reason == "answered"
    assert result.text.startswith("half a pair")


# What runs alone runs alone


@pytest.mark.parametrize("order", [("write", "look"), ("look", "write")])
def test_an_early_call_is_not_beside_a_tool_that_runs_alone(order):
    under_way, seen = set(), []

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        under_way.add("look")
        await asyncio.sleep(0.02)
        under_way.discard("look")
        return "seen"

    @tool(alone=True)
    async def write() -> str:
        """Write."""
        seen.extend(under_way)
        await asyncio.sleep(0)
        return "written"

    async def arrives():
        for name in order:
            yield ToolCallStarted(name, name)
            yield ToolCallDelta(name, "{}")
            yield ToolCallCompleted(name)
            await asyncio.sleep(0.001)
        yield reply(*(ToolCall(name, name, "{}") for name in order))

    result = Agent(ScriptedModel([arrives(), "done"]), tools=[look, write]).run_sync("go")
    assert [record.result.text for record in result.tool_calls_made if record.name == "look"] == ["seen"]
    assert seen == []
