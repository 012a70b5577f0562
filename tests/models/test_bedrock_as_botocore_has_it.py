"""Bedrock by AWS's own description of it: requests that it allows, streams and errors read as botocore reads them."""

import json
import struct
import zlib
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.kernel.messages import (
    AssistantMessage,
    File,
    Image,
    Message,
    ModelSettings,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from treadle.models.aws_stream import AwsEventParser
from treadle.models.bedrock import BedrockCodec
from treadle.models.errors import ModelError
from treadle.models.port import ModelRequest, Usual

pytest.importorskip("botocore", reason="botocore describes the service: pip install 'treadle[bedrock]'")

from botocore.eventstream import EventStream
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel
from botocore.parsers import EventStreamJSONParser, create_parser
from botocore.validate import ParamValidator

SERVICE: Any = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
CONVERSE: OperationModel = SERVICE.operation_model("Converse")
STREAM: OperationModel = SERVICE.operation_model("ConverseStream")
MODELS = ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-pro-v1:0", "mistral.x", "meta.y", "arn:aws:z"]
PDF = File(b"x", name="r\u00e9port  (2).pdf")
SAID: list[Message] = [
    SystemMessage("rules"),
    SystemMessage(" "),
    UserMessage("go"),
    UserMessage(" "),
    UserMessage((Text("see"), Image(b"x"), PDF, File(b"{}", media_type="application/json"))),
    UserMessage((PDF,)),
    AssistantMessage(
        (Thinking("hm", signature="s"), Thinking(data="d"), Text("yes"), ToolCall("c 1", "lo ok", '{"a":1}'))
    ),
    AssistantMessage((Thinking("hm"),)),
    AssistantMessage((Text("x"), ToolCall("c 1", "look"), ToolCall("c" * 90, "l" * 90, "[1"))),
    ToolMessage("c 1", "lo ok", "seen"),
    ToolMessage("c" * 90, "l" * 90, "", is_error=True),
    ToolMessage("c 1", "look", (Image(b"x"), PDF, File(b"x", media_type="audio/wav")), is_error=True),
]
TOOLS = (ToolSpec("look", "Looks.", {"properties": {}}), ToolSpec("see", " ", {"type": "object"}))
settings = st.builds(
    ModelSettings,
    max_tokens=st.sampled_from([None, 5000]),
    temperature=st.sampled_from([None, 0.5]),
    stop=st.sampled_from([None, ("END",)]),
    thinking=st.sampled_from([None, "none"]),
    parallel_tool_calls=st.sampled_from([None, False]),
)
requests = st.builds(
    ModelRequest,
    messages=st.lists(st.sampled_from(SAID), min_size=1, max_size=7).map(tuple),
    tools=st.sampled_from([(), TOOLS]),
    tool_choice=st.sampled_from(["auto", "none", "required", "look"]),
    settings=settings,
    output_schema=st.sampled_from([None, {"type": "object", "properties": {}}]),
    passing=st.sampled_from([0, 1]),
    usual=st.sampled_from([None, Usual(TOOLS), Usual(TOOLS, "required")]),
)


@given(requests, st.sampled_from(MODELS), st.sampled_from([None, "5m", "1h"]))
def test_requests_are_what_the_service_allows(request, model, cache):
    body = json.loads(BedrockCodec(cache=cache).encode(request, model, True))
    report = ParamValidator().validate({"modelId": model, **body}, STREAM.input_shape)
    assert not report.has_errors(), report.generate_report()
    roles = [turn["role"] for turn in body["messages"]]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    assert all(turn["content"] for turn in body["messages"])
    names = [block["document"]["name"] for turn in body["messages"] for block in _all(turn) if "document" in block]
    assert len(names) == len(set(names))
    assert "toolConfig" in body or '"toolUse"' not in json.dumps(body["messages"])


def _all(turn: dict[str, Any]) -> list[dict[str, Any]]:
    inner = [block["toolResult"]["content"] for block in turn["content"] if "toolResult" in block]
    return [*turn["content"], *[one for content in inner for one in content]]


def frame(payload: Any, **headers: str) -> bytes:
    named = [(f":{name.replace('_', '-')}".encode(), value.encode()) for name, value in headers.items()]
    head = b"".join(bytes([len(n)]) + n + b"\x07" + struct.pack(">H", len(v)) + v for n, v in named)
    data = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(data), len(head))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + data
    return checked + struct.pack(">I", zlib.crc32(checked))


texts = st.text(max_size=5)
DELTAS = [
    [texts.map(lambda text: {"text": text}), st.just({"citation": {"title": "t"}})],
    [texts.map(lambda text, name=name: {"reasoningContent": {name: text}}) for name in ("text", "signature")],
    [st.just({"reasoningContent": {"redactedContent": "eA=="}})],
    [],
]


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """Events of a stream, each block of one kind."""
    events: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
    for place in range(draw(st.integers(0, 4))):
        kinds = draw(st.sampled_from(DELTAS))
        pieces = draw(st.lists(st.one_of(kinds), max_size=3)) if kinds else []
        if not kinds:
            start = {"toolUse": {"toolUseId": f"t{place}", "name": "look"}}
            events.append(("contentBlockStart", {"contentBlockIndex": place, "start": start}))
            pieces = [{"toolUse": {"input": piece}} for piece in ('{"a', '":1', "}")]
        events += [("contentBlockDelta", {"contentBlockIndex": place, "delta": piece}) for piece in pieces]
        events.append(("contentBlockStop", {"contentBlockIndex": place}))
    stop = draw(st.sampled_from(["end_turn", "tool_use", "max_tokens", "guardrail_intervened"]))
    usage = {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9, "cacheReadInputTokens": 3}
    return [*events, ("messageStop", {"stopReason": stop}), ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})]


class Raw:
    """A response of urllib3, as botocore's event stream has it."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self) -> Any:
        yield self.body

    def close(self) -> None:
        pass


def read_by_botocore(body: bytes) -> list[dict[str, Any]]:
    shape = STREAM.output_shape.members["stream"]
    return list(EventStream(Raw(body), shape, EventStreamJSONParser(), "ConverseStream"))


@given(streams())
def test_streams_are_read_as_botocore_reads_them(events):
    body = b"".join(frame(fields, event_type=name, message_type="event") for name, fields in events)
    decoder, found = BedrockCodec().decoder(), []
    for data in AwsEventParser().feed(body):
        found.append(json.loads(data))
        decoder.feed(found[-1])
    reply = decoder.close()
    theirs = read_by_botocore(body)
    assert [next(iter(one)) for one in theirs] == [one["type"] for one in found]
    text = "".join(one["contentBlockDelta"]["delta"].get("text", "") for one in theirs if "contentBlockDelta" in one)
    assert reply.message.text == text
    calls = [one["contentBlockStart"]["start"]["toolUse"] for one in theirs if "contentBlockStart" in one]
    assert [(call.id, call.name) for call in reply.message.calls] == [
        (call["toolUseId"], call["name"]) for call in calls
    ]
    (stop,) = [one["messageStop"]["stopReason"] for one in theirs if "messageStop" in one]
    assert reply.finish_detail == stop
    (usage,) = [one["metadata"]["usage"] for one in theirs if "metadata" in one]
    assert reply.usage is not None
    assert reply.usage.input_tokens == usage["inputTokens"] + usage["cacheReadInputTokens"]
    thoughts = [
        one["contentBlockDelta"]["delta"].get("reasoningContent", {}) for one in theirs if "contentBlockDelta" in one
    ]
    sent = json.loads(
        BedrockCodec(cache=None).encode(ModelRequest((UserMessage("go"), reply.message)), MODELS[0], True)
    )
    said = sent["messages"][1]["content"]
    redacted = b"".join(one.get("redactedContent", b"") for one in thoughts)
    back = [block["reasoningContent"].get("redactedContent", "") for block in said if "reasoningContent" in block]
    if said and "reasoningContent" not in said[-1]:
        assert redacted.startswith(b"".join(map(b64decode, back)))


@pytest.mark.parametrize("name", [shape.name for shape in CONVERSE.error_shapes])
def test_every_error_of_the_service_is_typed(name):
    """What botocore raises as a class of its own, is one of treadle's."""
    shape = next(one for one in CONVERSE.error_shapes if one.name == name)
    status = shape.metadata["error"]["httpStatusCode"]
    headers = {"x-amzn-errortype": name, "x-amzn-requestid": "r1"}
    body = json.dumps({"message": "the words"}).encode()
    theirs = create_parser("rest-json").parse(
        {"status_code": status, "headers": headers, "body": body}, CONVERSE.output_shape
    )
    assert theirs["Error"]["Code"] == name
    error = BedrockCodec().error(status, headers, json.loads(body))
    assert type(error) is not ModelError
    assert (error.status, error.request_id) == (status, "r1")
    assert error.retryable == (status in (408, 424, 429) or status >= 500)


@pytest.mark.parametrize("name", ["internalServerException", "modelStreamErrorException", "throttlingException"])
def test_every_exception_inside_a_stream_is_an_error_that_passes(name):
    body = frame({"message": "the words"}, exception_type=name, message_type="exception")
    with pytest.raises(Exception, match="the words"):
        read_by_botocore(body)
    (data,) = AwsEventParser().feed(body)
    with pytest.raises(ModelError, match="the words") as told:
        BedrockCodec().decoder().feed(json.loads(data))
    assert told.value.retryable
