"""What cuts a reply of Claude's off, or hands it over: refusals, other models within a reply, ends of blocks."""

import json
import time

import pytest

from treadle import Agent, tool
from treadle.kernel.messages import AssistantMessage, Opaque, Text, ToolCall, UserMessage
from treadle.models import AnthropicModel, ProtocolError
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bedrock import BedrockCodec
from treadle.models.port import ModelRequest, TextDelta, ToolCallCompleted, ToolCallStarted

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}
USED = {"input_tokens": 7, "output_tokens": 1}
FALLBACK = {"type": "fallback", "from": {"model": "claude-a"}, "to": {"model": "claude-b"}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def claude(server, **options):
    return AnthropicModel("claude-a", base_url=server.url.removesuffix("/v1"), api_key="k", **options)


def message(*blocks, stop="end_turn", **more):
    """The events of a message; a block is its fields and its pieces."""
    events = [{"type": "message_start", "message": {"id": "m", "model": "claude-a", "content": [], "usage": USED}}]
    for index, (fields, *pieces) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": fields})
        events += [{"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, **more}, "usage": USED})
    return [*events, {"type": "message_stop"}]


def call(call_id, *pieces):
    fields = {"type": "tool_use", "id": call_id, "name": "look", "input": {}}
    return (fields, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def said(text):
    return ({"type": "text", "text": ""}, {"type": "text_delta", "text": text})


def thought(text):
    fields = {"type": "thinking", "thinking": "", "signature": ""}
    return (fields, {"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": "s"})


def streaming(*replies, pause=None):
    """Streams the events of one reply after another; before the event at `pause`, nothing comes for a while."""

    def answer(peer):
        peer.begin()
        for place, event in enumerate(replies[min(peer.number, len(replies) - 1)]):
            if place == pause:
                time.sleep(0.3)
            peer.chunk(f"data: {json.dumps(event)}\n\n".encode())
        peer.end()

    return answer


def read(events, codec=AnthropicCodec):
    decoder = codec().decoder()
    found = [event for data in events for event in decoder.feed(data)]
    return found, decoder.close()


def completed(events):
    return [event.id for event in events if isinstance(event, ToolCallCompleted)]


@pytest.fixture
def seen():
    return []


@pytest.fixture
def look(seen):
    @tool(effect="read")
    def look(place: str = "everywhere") -> str:
        """Looks."""
        seen.append(place)
        return f"seen {place}"

    return look


# ---- refusals

WHY = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_refusal_is_told_with_its_reason(serve, streamed):
    body = {"id": "m", "content": [], "usage": USED, "stop_reason": "refusal", "stop_details": WHY}
    whole = lambda peer: peer.answer("200 OK", JSON, json.dumps(body).encode())  # noqa: E731
    server = serve(streaming(message(stop="refusal", stop_details=WHY)) if streamed else whole)
    result = await Agent(claude(server, streaming=streamed)).run("hi")
    assert result.stop.reason == "refusal"
    assert result.stop.detail == "refusal: cyber: It could do harm."


@pytest.mark.parametrize("details", [None, {}, {"category": None, "explanation": None}, "none"])
def test_a_refusal_without_a_reason_is_its_word(details):
    assert read(message(stop="refusal", stop_details=details))[1].finish_detail == "refusal"


# ---- a reply that another model takes over


async def test_calls_of_a_model_that_declined_are_not_made_and_not_sent_back(serve, look, seen):
    first = message(
        thought("I look."), said("Let me "), call("a", '{"place": "A"}'), (FALLBACK,),
        thought("So."), said("look."), call("b", '{"place": "B"}'), stop="tool_use",
    )  # fmt: skip
    server = serve(streaming(first, message(said("Done."))))
    result = await Agent(claude(server), tools=[look], eager=False).run("look")

    assert (seen, result.text) == (["B"], "Done.")
    sent = json.loads(server.requests[1].body)["messages"]
    kinds = [block["type"] for block in sent[1]["content"]]
    assert kinds == ["text", "fallback", "thinking", "text", "tool_use"]
    assert sent[1]["content"][1] == FALLBACK
    assert [block["tool_use_id"] for block in sent[2]["content"]] == ["b"]
    assert result.steps[0].model == "claude-b"


@pytest.mark.parametrize("cut", [call("a"), call("a", '{"pla')], ids=["bare", "in the middle"])
async def test_a_call_that_a_refusal_cut_off_before_another_model_goes_on_runs_nothing(serve, look, seen, cut):
    events = message(cut, (FALLBACK,), said("Here it is."))
    server = serve(streaming(events, pause=len(events) - 5))
    result = await Agent(claude(server), tools=[look]).run("look")
    assert (seen, result.text, len(server.requests)) == ([], "Here it is.", 1)


def test_what_the_provider_had_begun_goes_back_with_its_result_only():
    begun = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "a"}}
    ended = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    left = {"type": "server_tool_use", "id": "s2", "name": "web_search", "input": {"query": "b"}}
    reply = read(message((begun,), (ended,), (left,), (FALLBACK,), said("So."), call("b"), stop="tool_use"))[1]
    assert [part.value for part in reply.message.content if isinstance(part, Opaque)] == [begun, ended, FALLBACK]


def test_a_block_of_a_declined_model_that_never_ended_is_left_out_too():
    events = message(call("a", '{"place": '), (FALLBACK,), said("So."))
    del events[3]
    found, reply = read(events)
    assert completed(found) == []
    assert reply.message == AssistantMessage((Opaque("anthropic", FALLBACK), Text("So.")))


# ---- calls without arguments


async def test_a_call_that_a_reply_was_cut_off_in_does_not_start_early(serve, look, seen):
    """The provider ends the block of a call that its length limit cut off, as it ends any other."""
    events = message(call("a"), stop="max_tokens")
    server = serve(streaming(events, pause=len(events) - 2))
    result = await Agent(claude(server), tools=[look]).run("look")
    assert (seen, result.stop.reason) == ([], "length")


@pytest.mark.parametrize("arguments", [(), ("",)])
async def test_a_call_without_arguments_starts_as_soon_as_more_comes(serve, look, seen, arguments):
    events = message(call("a", *arguments), said("And so on."), stop="tool_use")[:-2]
    server = serve(streaming(events, pause=len(events) - 1))
    result = await Agent(claude(server), tools=[look], retries=0).run("look")
    assert (seen, result.stop.reason) == (["everywhere"], "model_error")


def converse(*blocks, stop="tool_use"):
    events = [{"type": "messageStart", "messageStart": {"role": "assistant"}}]
    for index, call_id in enumerate(blocks):
        start = {"toolUse": {"toolUseId": call_id, "name": "look"}}
        begin = {"contentBlockIndex": index, "start": start}
        events.append({"type": "contentBlockStart", "contentBlockStart": begin})
        events.append({"type": "contentBlockStop", "contentBlockStop": {"contentBlockIndex": index}})
    return [*events, {"type": "messageStop", "messageStop": {"stopReason": stop}}]


@pytest.mark.parametrize(("stop", "whole"), [("tool_use", ["a", "b"]), ("max_tokens", ["a"])])
def test_calls_without_arguments_are_complete_when_more_comes_or_the_reply_is_whole(stop, whole):
    found, _ = read(message(call("a"), call("b"), stop=stop))
    assert completed(found) == whole
    found, _ = read(converse("a", "b", stop=stop), lambda: BedrockCodec("us.amazon.nova-pro-v1:0"))
    assert completed(found) == whole


def test_a_call_that_is_begun_anew_is_not_complete_by_it():
    found, reply = read(message(call("a"), call("a", '{"place": "A"}'), stop="tool_use"))
    assert completed(found) == ["a"]
    assert ToolCallStarted("a", "look") in found
    assert isinstance(found[-1], ToolCallCompleted)
    assert ToolCall("a", "look", '{"place": "A"}') in reply.message.content


# ---- blocks that nobody here knows, and pieces that stand in another block


def test_what_is_streamed_of_an_unknown_block_goes_back_with_it():
    block = {"type": "connector_text", "text": "It ", "source": {"id": 1}}
    pieces = [{"type": "text_delta", "text": "is "}, {"type": "text_delta", "text": "so."}]
    found, reply = read(message((block, *pieces, {"type": "signature_delta", "signature": "s"})))
    kept = block | {"text": "It is so.", "signature": "s"}
    assert reply.message == AssistantMessage((Opaque("anthropic", kept),))
    assert [event for event in found if isinstance(event, TextDelta)] == []
    again = ModelRequest((UserMessage("hi"), reply.message, UserMessage("and?")))
    assert kept in json.loads(AnthropicCodec().encode(again, "claude-a", True))["messages"][1]["content"]


def test_text_that_comes_in_the_place_of_thinking_is_the_text_that_was_told():
    found, reply = read(message((*thought("Hm.")[:2], {"type": "text_delta", "text": "Yes."})))
    assert "".join(event.text for event in found if isinstance(event, TextDelta)) == reply.message.text == "Yes."


def test_a_piece_of_a_call_in_a_text_is_no_protocol():
    with pytest.raises(ProtocolError, match="a piece of a call in a block of text"):
        read(message((*said("Yes."), {"type": "input_json_delta", "partial_json": '{"a"'})))


async def test_a_call_that_began_early_before_another_model_took_over_counts_and_is_sent_back_to_nobody(
    serve, look, seen
):
    first = message(call("a", '{"place": "A"}'), (FALLBACK,), call("b", '{"place": "B"}'), stop="tool_use")
    server = serve(streaming(first, message(said("Done.")), pause=4))
    result = await Agent(claude(server), tools=[look]).run("look")
    assert (seen, result.text) == (["A", "B"], "Done.")
    sent = json.loads(server.requests[1].body)["messages"]
    assert [block.get("id") or block["type"] for block in sent[1]["content"]] == ["fallback", "b"]
    assert [block["tool_use_id"] for block in sent[2]["content"]] == ["b"]
    assert [made.id for made in result.tool_calls_made] == ["b"]
