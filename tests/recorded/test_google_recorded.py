"""Traffic of Google's generateContent that others recorded: read as a plain walk over its JSON reads it."""

import json
import random
from itertools import groupby, pairwise
from typing import Any

import pytest

from treadle.kernel.messages import AssistantMessage, Opaque, Text, Thinking, ToolMessage, Usage, UserMessage
from treadle.models.bodies import event_json
from treadle.models.errors import ModelError, ProtocolError
from treadle.models.google import GoogleCodec
from treadle.models.google_model import GoogleModel
from treadle.models.google_stream import CITED
from treadle.models.port import ModelReply, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStarted
from treadle.models.sse import EventParser

FINISHES = {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter"}
SIGNATURE = str.maketrans("-_", "+/")


def rows(recordings: Any, kind: str = "") -> list[dict[str, Any]]:
    found = [row for row in recordings("google_generate") if kind in ("", row["kind"])]
    assert found
    return found


def data_of(stream: str, read_stream: Any, seed: int | None = None) -> list[dict[str, Any]]:
    return [json.loads(data) for data in read_stream(stream, seed)]


def chunks_of(row: dict[str, Any], read_stream: Any) -> list[dict[str, Any]]:
    return [row["response"]] if row["kind"] == "json" else data_of(row["response"], read_stream)


def decode(row: dict[str, Any], read_stream: Any, seed: int | None = None) -> list[Any]:
    if row["kind"] == "json":
        return GoogleCodec().decode_body(row["response"])
    decoder = GoogleCodec().decoder()
    events: list[Any] = []
    for data in data_of(row["response"], read_stream, seed):
        events += decoder.feed(data)
    return [*events, decoder.close()]


def walked(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """What a reply says, by walking over its JSON with nothing of treadle's."""
    (candidates,) = zip(*[chunk["candidates"] for chunk in chunks], strict=True)
    parts = [part for one in candidates for part in one["content"].get("parts", ())]
    last, counts = chunks[-1], chunks[-1]["usageMetadata"]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    thoughts = [part["text"] for part in parts if part.get("thought") and "text" in part]
    queries = max(len(one.get("groundingMetadata", {}).get("webSearchQueries", ())) for one in candidates)
    finish = FINISHES[candidates[-1]["finishReason"]]
    return {
        "calls": [(call["name"], call["args"]) for call in calls],
        "text": "".join(part["text"] for part in parts if "text" in part and not part.get("thought")),
        "thinking": "".join(thoughts),
        "others": [part for part in parts if not {"text", "functionCall"} & part.keys()],
        "finish": "tool_calls" if calls and finish == "stop" else finish,
        "usage": Usage(
            counts["promptTokenCount"] + counts.get("toolUsePromptTokenCount", 0),
            counts.get("candidatesTokenCount", 0) + counts.get("thoughtsTokenCount", 0),
            counts.get("cachedContentTokenCount", 0),
            reasoning_tokens=counts.get("thoughtsTokenCount", 0),
            # All of them are of Gemini 2.5 and before.
            web_searches=min(queries, 1),
            audio_tokens=sum(
                one.get("tokenCount", 0) for one in counts.get("promptTokensDetails", ()) if one["modality"] == "AUDIO"
            ),
        ),
        "model": last["modelVersion"],
    }


def told(reply: ModelReply) -> dict[str, Any]:
    """The same of a decoded reply."""
    content = reply.message.content
    return {
        "calls": [(call.name, json.loads(call.arguments)) for call in reply.message.calls],
        "text": reply.message.text,
        "thinking": "".join(part.text for part in content if isinstance(part, Thinking)),
        "others": [p.value for p in content if isinstance(p, Opaque) and not p.value.keys() & set(CITED)],
        "finish": reply.finish,
        "usage": reply.usage,
        "model": reply.model,
    }


def same(one: list[Any], other: list[Any]) -> bool:
    """Whether two decoded replies are the same but for the ids that were made for their calls."""
    return told(one[-1]) == told(other[-1]) and len(one) == len(other) and summed(one) == summed(other)


def summed(events: list[Any]) -> dict[str, Any]:
    """What the deltas add up to."""
    calls: dict[str, str] = {event.id: "" for event in events if isinstance(event, ToolCallStarted)}
    for event in events:
        if isinstance(event, ToolCallDelta):
            calls[event.id] += event.json
    return {
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)),
        "thinking": "".join(event.text for event in events if isinstance(event, ThinkingDelta)),
        "calls": list(calls.values()),
    }


def test_every_response_decodes_to_what_its_json_says(recordings, read_stream):
    for row in rows(recordings):
        events = decode(row, read_stream)
        reply, expected = events[-1], walked(chunks_of(row, read_stream))
        assert told(reply) == expected, row["file"]
        sums = summed(events)
        assert (sums["text"], sums["thinking"]) == (expected["text"], expected["thinking"]), row["file"]
        assert sums["calls"] == [call.arguments for call in reply.message.calls], row["file"]


@pytest.mark.parametrize("seed", range(20))
def test_streams_cut_at_random_bytes_read_as_whole_ones(recordings, read_stream, seed):
    for row in rows(recordings, "sse"):
        assert same(decode(row, read_stream, seed), decode(row, read_stream)), row["file"]


def test_no_beginning_of_a_stream_is_taken_for_a_reply(recordings, read_stream):
    """Also not where Google said STOP before it went on, as it does when its model has written code."""
    for row in rows(recordings, "sse"):
        data = data_of(row["response"], read_stream)
        for cut in range(len(data)):
            decoder = GoogleCodec().decoder()
            for chunk in data[:cut]:
                decoder.feed(chunk)
            with pytest.raises(ProtocolError):
                decoder.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_that_was_cut_at_any_byte_is_whole_or_none(recordings, seed):
    chance = random.Random(seed)
    for row in rows(recordings, "sse"):
        body, whole = row["response"].encode(), None
        for cut in [len(body), *chance.sample(range(len(body)), 100), *range(len(body) - 40, len(body))]:
            parser, decoder = EventParser(), GoogleCodec().decoder()
            try:
                for data in [*parser.feed(body[:cut]), *parser.close()]:
                    decoder.feed(event_json(data))
                reply = decoder.close()
            except ProtocolError:
                assert cut < len(body)
                continue
            whole = whole or told(reply)
            assert told(reply) == whole, (row["file"], cut)


@pytest.mark.parametrize("seed", range(3))
def test_no_part_of_a_body_is_taken_for_a_reply(recordings, seed):
    """A body that lost its end is no JSON; one that lost a field, as a proxy may leave it out, is no whole reply."""
    chance = random.Random(seed)
    for row in rows(recordings, "json"):
        text = json.dumps(row["response"])
        with pytest.raises(ValueError, match=r".+"):
            json.loads(text[: chance.randrange(len(text))])
        candidate = {k: v for k, v in row["response"]["candidates"][0].items() if k != "finishReason"}
        for body in ({**row["response"], "candidates": [candidate]}, {**row["response"], "candidates": []}):
            with pytest.raises(ModelError):
                GoogleCodec().decode_body(body)


def test_the_next_requests_echo_equals_ours(recordings, read_stream):
    """A reply with calls that was recorded, and then as part of the next request of the same file."""
    compared = 0
    for _, group in groupby(rows(recordings), key=lambda row: row["file"]):
        same_file = list(group)
        for row, following in pairwise(same_file):
            message = decode(row, read_stream)[-1].message
            if not message.calls:
                continue
            sent = [part for turn in following["request"]["contents"] for part in turn["parts"]]
            echoed = [part for part in sent if "functionCall" in part][-len(message.calls) :]
            ours = [part for part in _encoded(message) if "functionCall" in part]
            assert [_call(part) for part in ours] == [_call(part) for part in echoed], row["file"]
            # The ids in the recording are its client's: the responses have none.
            assert all("id" not in part["functionCall"] for part in ours)
            compared += 1
    assert compared >= 10


def _call(part: dict[str, Any]) -> tuple[str, Any, str]:
    call = part["functionCall"]
    return call["name"], call["args"], part.get("thoughtSignature", "").translate(SIGNATURE)


def _encoded(message: AssistantMessage) -> list[dict[str, Any]]:
    results = [ToolMessage(call.id, call.name, "done") for call in message.calls]
    request = ModelRequest((UserMessage("go"), message, *results))
    body = json.loads(GoogleCodec().encode(request, "gemini-2.5-pro", False))
    return body["contents"][1]["parts"] if len(body["contents"]) > 1 else []


def test_what_was_decoded_is_sent_back_part_by_part(recordings):
    """Thoughts, code that Google ran and its result, and each signature in just the part that it came in."""
    kinds = set()
    for row in rows(recordings, "json"):
        parts = row["response"]["candidates"][0]["content"].get("parts", [])
        message = GoogleCodec().decode_body(row["response"])[-1].message
        joined: list[dict[str, Any]] = []
        for part in parts:
            if part == {"text": ""}:
                continue
            if joined and joined[-1].keys() == part.keys() == {"text"}:
                joined[-1] = {"text": joined[-1]["text"] + part["text"]}
            else:
                joined.append(part)
        assert _encoded(message) == joined, row["file"]
        kinds |= {name for part in parts for name in part}
    assert {"text", "thought", "thoughtSignature", "functionCall", "executableCode", "codeExecutionResult"} <= kinds


def test_texts_are_the_parts_that_the_model_spoke(recordings):
    for row in rows(recordings, "json"):
        message = GoogleCodec().decode_body(row["response"])[-1].message
        assert all(part.text for part in message.content if isinstance(part, Text))


def test_every_reply_has_the_tokens_and_the_cost_that_the_table_of_prices_reckons(recordings, read_stream):
    """The package reads the body and prices it by itself; searches it does not see."""
    from genai_prices.data_snapshot import get_snapshot

    provider = get_snapshot().find_provider(None, None, "https://generativelanguage.googleapis.com")
    priced = 0
    for row in rows(recordings):
        body = chunks_of(row, read_stream)[-1]
        usage = decode(row, read_stream)[-1].usage
        theirs = provider.extract_usage(body)[1]
        assert usage.input_tokens == theirs.input_tokens, row["file"]
        assert usage.output_tokens == theirs.output_tokens, row["file"]
        assert usage.cache_read_tokens == (theirs.cache_read_tokens or 0), row["file"]
        assert usage.reasoning_tokens == (theirs.output_reasoning_tokens or 0), row["file"]
        assert usage.audio_tokens == (theirs.input_audio_tokens or 0), row["file"]
        if usage.web_searches:
            continue
        model = GoogleModel(body["modelVersion"], api_key="k")
        info = provider.find_model(model.model)
        assert model.cost(usage) == info.calc_price(theirs, provider).total_price, row["file"]
        priced += 1
    assert priced > 65


def test_the_official_sdk_reads_the_same(recordings, read_stream):
    types = pytest.importorskip("google.genai.types")
    for row in rows(recordings):
        reply = decode(row, read_stream)[-1]
        bodies = chunks_of(row, read_stream)
        for body in bodies:
            # A gateway's own.
            body["usageMetadata"].pop("pydantic_ai_gateway", None)
        chunks = [types.GenerateContentResponse.model_validate(body) for body in bodies]
        parts = [part for one in chunks for part in one.candidates[0].content.parts or ()]
        assert reply.message.text == "".join(part.text for part in parts if part.text and not part.thought)
        assert [(call.name, json.loads(call.arguments)) for call in reply.message.calls] == [
            (part.function_call.name, part.function_call.args) for part in parts if part.function_call
        ]
        assert reply.finish_detail == chunks[-1].candidates[0].finish_reason.value
        assert reply.usage.output_tokens == sum(
            getattr(chunks[-1].usage_metadata, name) or 0 for name in ("candidates_token_count", "thoughts_token_count")
        )
