"""A conversation moves from one provider to another and back: what one gave, the next one takes."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stream_writers import writers

from treadle import Agent, Image, StepSettings, Text, tool
from treadle.kernel.messages import AssistantMessage, Thinking, ToolCall, ToolMessage, UserMessage
from treadle.models.anthropic import AnthropicCodec
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.google import GoogleCodec
from treadle.models.hosts import HOSTS, MISTRAL, OPENAI, Host
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_model import OpenAIResponsesModel
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelReply, ModelRequest
from treadle.testing import ScriptedModel

LONG = "chatcmpl-tool-" + "f" * 32
IDS = [
    "toolu_01A",
    "call_" + "a" * 24,
    LONG,
    "functions.search:0",
    "d" * 64,
    "tooluse_-_x",
    "é" * 50,
    "a b",
    "ab12CD34e",
]
SHAPES = {"anthropic": (1, 128, r"[a-zA-Z0-9_-]+"), "chat": (1, 40, r"(?s).+"), "mistral": (9, 9, r"[a-zA-Z0-9]+"),
          "responses": (1, 64, r"[a-zA-Z0-9_-]+"), "google": (1, 200, r"(?s).+")}  # fmt: skip


def history(*ids):
    calls = tuple(ToolCall(one, "look", "{}") for one in ids)
    return (UserMessage("go"), AssistantMessage(calls), *(ToolMessage(one, "look", f"found {one}") for one in ids))


def pairs(dialect, messages):
    """The ids of the calls in the request, and those of the results, in order."""
    request = ModelRequest(messages)
    if dialect == "anthropic":
        body = json.loads(AnthropicCodec().encode(request, "m", False))
        blocks = [block for turn in body["messages"] for block in turn["content"]]
        return ([block["id"] for block in blocks if block["type"] == "tool_use"],
                [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"])  # fmt: skip
    if dialect == "responses":
        items = json.loads(ResponsesCodec(host=OPENAI).encode(request, "m", False))["input"]
        return tuple([item["call_id"] for item in items if item.get("type") == kind]
                     for kind in ("function_call", "function_call_output"))  # fmt: skip
    if dialect == "google":
        turns = json.loads(GoogleCodec().encode(request, "m", False))["contents"]
        parts = [part for turn in turns for part in turn["parts"]]
        return tuple([part[kind]["id"] for part in parts if kind in part]
                     for kind in ("functionCall", "functionResponse"))  # fmt: skip
    host = MISTRAL if dialect == "mistral" else OPENAI
    messages = json.loads(ChatCodec("p", host).encode(request, "m", False))["messages"]
    return ([call["id"] for one in messages for call in one.get("tool_calls", ())],
            [one["tool_call_id"] for one in messages if one["role"] == "tool"])  # fmt: skip


@pytest.mark.parametrize("dialect", SHAPES)
def test_the_ids_of_every_provider_are_taken_by_every_other(dialect):
    least, most, shape = SHAPES[dialect]
    calls, results = pairs(dialect, history(*IDS))
    assert calls == results
    assert len(set(calls)) == len(IDS)
    assert all(least <= len(one) <= most and re.fullmatch(shape, one) for one in calls)


@pytest.mark.parametrize("dialect", SHAPES)
@given(ids=st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=5, unique=True))
def test_whatever_an_id_is_call_and_result_keep_the_same_one(dialect, ids):
    least, most, shape = SHAPES[dialect]
    calls, results = pairs(dialect, history(*ids))
    assert calls == results
    assert len(set(calls)) == len(ids)
    assert all(least <= len(one) <= most and re.fullmatch(shape, one) for one in calls)


@pytest.mark.parametrize(
    ("dialect", "own"),
    [("anthropic", "toolu_01A"), ("chat", "call_" + "a" * 24), ("chat", "functions.search:0"), ("mistral", "ab12CD34e"),
     ("responses", "call_" + "b" * 24), ("google", "8f2b1a3e")],
)  # fmt: skip
def test_a_provider_gets_its_own_ids_back(dialect, own):
    """Also where the conversation was elsewhere in between: the history keeps them as they were given."""
    other = next(name for name in SHAPES if name != dialect)
    messages = history(own, LONG)
    pairs(other, messages)
    calls, results = pairs(dialect, messages)
    assert calls[0] == results[0] == own


def test_what_a_provider_keeps_with_a_call_goes_back_with_it_under_another_id():
    from treadle.kernel.messages import Opaque

    kept = Opaque("p", {"message": {}, "calls": {LONG: {"extra_content": {"sign": "x"}}}})
    messages = (
        UserMessage("go"),
        AssistantMessage((ToolCall(LONG, "look", "{}"), kept)),
        ToolMessage(LONG, "look", "x"),
    )
    body = json.loads(ChatCodec("p").encode(ModelRequest(messages), "m", False))
    [call] = body["messages"][1]["tool_calls"]
    assert call["extra_content"] == {"sign": "x"}
    assert len(call["id"]) <= 40


THOUGHTS = {
    "reasoning": {"reasoning": "hm"},
    "reasoning_content": {"reasoning_content": "hm"},
    "thinking": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    "reasoning_details": {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}]},
    "extra_content": {"extra_content": {"google": {"thought_signature": "s"}}},
    "thought_signature": {"thought_signature": "s"},
}
SIGNED_CALL = {"extra_content": {"google": {"thought_signature": "s"}}, "thought_signature": "s"}


@pytest.mark.parametrize("end", ["", *(end for end, _ in HOSTS)])
@pytest.mark.parametrize("field", THOUGHTS)
def test_a_host_is_sent_what_was_thought_in_the_fields_that_it_knows(field, end):
    """What one host of the dialect gave goes on with the conversation to another, under the same provider's name."""
    host = dict(HOSTS).get(end, Host())
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}} | SIGNED_CALL
    message = {"role": "assistant", "tool_calls": [call]} | THOUGHTS[field]
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    said = ChatCodec("p").decode_body(body)[-1].message
    messages = (UserMessage("go"), said, ToolMessage("1", "look", "seen"))
    sent = json.loads(ChatCodec("p", host).encode(ModelRequest(messages), "m", False))["messages"][1]
    parts = sent["content"] if isinstance(sent["content"], list) else []
    fields = {*(sent.keys() & THOUGHTS.keys()), *(part["type"] for part in parts)}
    assert fields == {one for one in [field, *(["reasoning_content"] if host.needs_echo else [])] if one in host.echo}
    assert sent["tool_calls"][0].keys() & THOUGHTS.keys() == SIGNED_CALL.keys() & {*host.echo}


@pytest.mark.parametrize(
    ("item_id", "sent"), [("fc_1", "fc_1"), ("ctx-7", None), ("fc" + "x" * 80, None), (None, None)]
)
def test_the_name_of_an_item_goes_back_only_where_it_can_be_one(item_id, sent):
    call, thought = ToolCall("c", "look", "{}", item_id), Thinking(data="sealed", id="rs_1")
    for said, name in (((thought, call), sent), ((call,), None)):
        messages = (UserMessage("go"), AssistantMessage(said), ToolMessage("c", "look", "x"))
        body = json.loads(ResponsesCodec(host=OPENAI).encode(ModelRequest(messages), "m", False))
        assert body["input"][-2].get("id") == name


def test_what_one_server_has_sealed_goes_to_no_other(serve):
    """OpenAI and Azure refuse the whole request for it: a run that fell back from one to the other was lost."""
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look", "arguments": '{"where": "there"}'}
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}

    def answer(peer):
        looked = b"seen there" in peer.body
        output = [done] if looked else [sealed, call]
        body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": output}
        peer.answer("200 OK", {}, json.dumps(body).encode())

    server = serve(answer)
    key = "a-made-up-key"
    one = OpenAIResponsesModel("m", base_url=server.url, api_key=key)
    same = OpenAIResponsesModel("m", base_url=server.url, api_key=key)
    other = OpenAIResponsesModel("m", base_url=server.url.replace("127.0.0.1", "localhost"), api_key=key)
    own = OpenAIResponsesModel("m", api_key=key)
    for then, kinds in ((same, ["reasoning", "function_call"]), (other, ["function_call"])):
        agent = Agent(
            one, tools=[look], prepare_step=lambda step, to=then: StepSettings(model=to) if step.step_number else None
        )
        result = agent.run_sync("go")
        assert result.text == "Done."
        items = json.loads(server.requests[-1].body)["input"]
        assert [item["type"] for item in items if item.get("type") in ("reasoning", "function_call")] == kinds
        sent = own.codec.encode(ModelRequest(result.messages), "m", False)
        assert b"sealed" not in sent
    # OpenAI's own is as it always was in journals.
    at_home = own.codec.decode_body({"id": "r", "status": "completed", "output": [sealed, call]})[-1].message
    assert at_home.content[0] == Thinking(data="sealed", id="rs_1")
    messages = (UserMessage("go"), at_home, ToolMessage("c", "look", "seen"))
    assert b'"encrypted_content":"sealed"' in own.codec.encode(ModelRequest(messages), "m", False)
    assert b'"sealed"' not in one.codec.encode(ModelRequest(messages), "m", False)


@pytest.mark.parametrize(("model", "kept"), [("claude-sonnet-4-5", []), ("minimax-m2", ["hm"])])
@pytest.mark.parametrize("named", ["MiniMax-M2", "claude-sonnet-4-5-20250929", ""])
def test_what_another_model_has_signed_is_no_thinking_of_claudes(named, model, kept):
    """It refuses the whole request: a conversation that came from another model of its dialect could not go on."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "signed"}
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    body = {"type": "message", "model": named, "content": [thought, call], "stop_reason": "tool_use"}
    elsewhere, at_home = AnthropicCodec(host=Host()), AnthropicCodec()
    said = elsewhere.decode_body(body)[-1].message
    request = ModelRequest((UserMessage("go"), said, ToolMessage("c", "look", "seen")))
    for codec in (elsewhere, at_home):
        blocks = json.loads(codec.encode(request, model, False))["messages"][1]["content"]
        kept_here = kept if codec is elsewhere and named == "MiniMax-M2" else [] if named == "MiniMax-M2" else ["hm"]
        assert [block["thinking"] for block in blocks if block["type"] == "thinking"] == kept_here
    # At Anthropic's own address, and by its own name, it is Claude, whatever the reply says.
    assert AnthropicCodec(host=Host(), claude=True).decode_body(body)[-1].message.content[0] == Thinking("hm", "signed")
    assert at_home.decode_body(body)[-1].message.content[0] == Thinking("hm", "signed")


PIXEL = Image(b"\x89PNG", media_type="image/png")


def test_an_error_with_an_image_is_not_marked_as_one_to_anthropic():
    """It refuses the whole history for it: such a result may hold text alone."""
    failed = ToolMessage("c", "look", (Text("the page did not load"), PIXEL), is_error=True)
    messages = (UserMessage("go"), AssistantMessage((ToolCall("c", "look", "{}"),)), failed)
    [_, _, turn] = json.loads(AnthropicCodec().encode(ModelRequest(messages), "m", False))["messages"]
    [result] = turn["content"]
    assert "is_error" not in result
    assert [block["type"] for block in result["content"]] == ["text", "text", "image"]
    assert result["content"][0]["text"] == "This call failed."


@pytest.mark.parametrize("content", ["no", (Text("no"),), (Text("no"), Text("really"))])
def test_an_error_in_words_is_marked_as_one(content):
    failed = ToolMessage("c", "look", content, is_error=True)
    messages = (UserMessage("go"), AssistantMessage((ToolCall("c", "look", "{}"),)), failed)
    [_, _, turn] = json.loads(AnthropicCodec().encode(ModelRequest(messages), "m", False))["messages"]
    assert turn["content"][0]["is_error"] is True


@tool(effect="read")
def look(where: str) -> str:
    """Looks."""
    return f"seen {where}"


def test_a_run_with_ids_of_another_provider_is_continued():
    calls = AssistantMessage((ToolCall(LONG, "look", '{"where": "there"}'),))
    result = Agent(ScriptedModel([ModelReply(calls, finish="tool_calls"), "done"]), tools=[look]).run_sync("go")
    assert result.text == "done"
    for dialect, (least, most, shape) in SHAPES.items():
        calls, results = pairs(dialect, result.messages)
        assert calls == results
        assert all(least <= len(one) <= most and re.fullmatch(shape, one) for one in calls)


PAUSED = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "I search."}],
    "stop_reason": "pause_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.mark.parametrize("dialect", ["Messages", "Chat", "Responses", "Google", "Converse"])
def test_what_one_provider_paused_another_goes_on_with(serve, dialect):
    """Bedrock, Mistral and others refuse a request that ends with what a model said."""
    writer = getattr(writers(), dialect)
    body = json.dumps(PAUSED).encode()
    claude = AnthropicModel(
        "m", base_url=serve(lambda peer: peer.answer("200 OK", {}, body)).url, api_key="a-made-up-key"
    )

    def answer(peer):
        peer.begin()
        for piece in writer.text("Done."):
            peer.chunk(piece)
        peer.end()

    server = serve(answer)
    other = writer.model("m", base_url=server.url, api_key="a-made-up-key")
    agent = Agent(claude, prepare_step=lambda context: StepSettings(model=other) if context.step_number else None)
    assert agent.run_sync("go").text.endswith("Done.")
    sent = json.loads(server.requests[0].body)
    last = (sent.get("messages") or sent.get("input") or sent.get("contents"))[-1]
    assert last["role"] == ("assistant" if dialect == "Messages" else "user")
