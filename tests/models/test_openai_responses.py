"""The OpenAI Responses dialect: what it sends for a request, and what it makes of an answer."""

import base64
import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.kernel.messages import (
    AssistantMessage,
    File,
    Image,
    Message,
    ModelSettings,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from treadle.models.anthropic import AnthropicCodec
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_model import OpenAIResponsesModel
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import (
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)

ADD = ToolSpec("add", "adds", {"type": "object", "properties": {"a": {"type": "integer"}}})
MODEL = "gpt-5"


def encode(*messages: Message, model: str = MODEL, **request: Any) -> dict[str, Any]:
    """The body as the server would read it."""
    body: dict[str, Any] = json.loads(ResponsesCodec().encode(ModelRequest(messages, **request), model, True))
    return body


def said(*parts: Any) -> AssistantMessage:
    return AssistantMessage(parts)


def test_a_plain_question_stores_nothing_and_asks_for_the_reasoning():
    assert encode(SystemMessage("be brief"), UserMessage("hi")) == {
        "model": MODEL,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "be brief",
        "input": [{"role": "user", "content": "hi"}],
    }


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-4.1-mini", "openai/gpt-4o-2024-08-06", "chatgpt-4o-latest", "gpt-3.5-turbo"]
)
def test_a_model_that_does_not_reason_is_not_asked_for_reasoning(model):
    assert "include" not in encode(UserMessage("hi"), model=model)


CALL = ToolCall("call_1", "add", '{"a": 1}', item_id="fc_1")


@pytest.mark.parametrize(
    ("messages", "items"),
    [
        pytest.param(
            [
                said(CALL, ToolCall("call_2", "sub")),
                ToolMessage("call_1", "add", "1"),
                ToolMessage("call_2", "sub", ""),
            ],
            [
                {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}'},
                {"type": "function_call", "call_id": "call_2", "name": "sub", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "1"},
                {"type": "function_call_output", "call_id": "call_2", "output": ""},
            ],
            id="calls carry the call's id, and the item's only beside the reasoning that led to it",
        ),
        pytest.param(
            [said(Thinking("hm", data="enc", id="rs_1"), Text("x"), Thinking("", data="enc2", id="rs_2"), CALL)],
            [
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "hm"}],
                    "encrypted_content": "enc",
                },
                {"type": "message", "role": "assistant", "content": "x"},
                {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "enc2"},
                {"type": "function_call", "call_id": "call_1", "id": "fc_1", "name": "add", "arguments": '{"a": 1}'},
            ],
            id="encrypted reasoning goes back before what it led to",
        ),
        pytest.param(
            [said(Text("x"), Thinking("hm", data="enc", id="rs_1"))],
            [{"type": "message", "role": "assistant", "content": "x"}],
            id="reasoning that led to nothing is left out",
        ),
        pytest.param(
            [said(Thinking("hm", data="enc", id="rs_1"), Text(""))],
            [],
            id="nor does an empty text count as what it led to",
        ),
        pytest.param(
            [said(Thinking("hm", id="rs_1"), Thinking("hm", signature="s"), Thinking(data="d"), Text("x"))],
            [{"type": "message", "role": "assistant", "content": "x"}],
            id="reasoning that only the provider's store could know, or another provider, is left out",
        ),
        pytest.param(
            [said(Opaque("openai", {"type": "web_search_call", "id": "ws"}), Opaque("anthropic", {}), Text("x"))],
            [{"type": "web_search_call", "id": "ws"}, {"type": "message", "role": "assistant", "content": "x"}],
            id="the provider's own items go back whole",
        ),
        pytest.param(
            [said(Opaque("openai", {"type": "message", "phase": "commentary"}), Text("x"), CALL, Text("y"))],
            [
                {"type": "message", "role": "assistant", "content": "x", "phase": "commentary"},
                {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}'},
                {"type": "message", "role": "assistant", "content": "y"},
            ],
            id="a message keeps its label",
        ),
        pytest.param(
            [said(ToolCall("a:b", "no such.tool", "{bad")), ToolMessage("a:b", "no such.tool", "?")],
            [
                {
                    "type": "function_call",
                    "call_id": "a_b_3041a608",
                    "name": "no_such_tool_3ae6d354",
                    "arguments": '{"malformed_arguments":"{bad"}',
                },
                {"type": "function_call_output", "call_id": "a_b_3041a608", "output": "?"},
            ],
            id="foreign ids and invented names become valid, alike in call and result",
        ),
    ],
)
def test_items(messages, items):
    assert encode(*messages)["input"] == items


def data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    ("part", "item"),
    [
        (Image(b"x"), {"type": "input_image", "detail": "auto", "image_url": data_url("image/png", b"x")}),
        (
            Image(url="https://x.test/a.png"),
            {"type": "input_image", "detail": "auto", "image_url": "https://x.test/a.png"},
        ),
        (
            File(b"%PDF", name="a.pdf"),
            {"type": "input_file", "filename": "a.pdf", "file_data": data_url("application/pdf", b"%PDF")},
        ),
        (
            File(b"a", media_type="text/plain"),
            {"type": "input_file", "filename": "file.txt", "file_data": data_url("text/plain", b"a")},
        ),
        (File(url="https://x.test/a.pdf"), {"type": "input_file", "file_url": "https://x.test/a.pdf"}),
        (
            File(b"j", media_type="image/jpeg", name="a.jpg"),
            {"type": "input_image", "detail": "auto", "image_url": data_url("image/jpeg", b"j")},
        ),
    ],
)
def test_images_and_files(part, item):
    words = {"type": "input_text", "text": "see"}
    body = encode(UserMessage((Text("see"), part)), said(CALL), ToolMessage("call_1", "add", (Text("see"), part)))
    assert body["input"][0] == {"role": "user", "content": [words, item]}
    assert body["input"][2]["output"] == [words, item]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("auto", "auto"), ("none", "none"), ("required", "required"), ("add", {"type": "function", "name": "add"})],
)
def test_tools_and_choices(choice, expected):
    body = encode(
        UserMessage("go"), tools=(ADD,), tool_choice=choice, settings=ModelSettings(parallel_tool_calls=False)
    )
    assert body["tool_choice"] == expected
    assert body["parallel_tool_calls"] is False
    tool = {"type": "function", "name": "add", "description": "adds", "parameters": ADD.input_schema, "strict": False}
    assert body["tools"] == [tool]


def test_no_tools_no_choice():
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(encode(UserMessage("go"), tool_choice="none"))


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (None, None),
        ("none", {"effort": "none"}),
        ("high", {"effort": "high"}),
        (1_000, {"effort": "low"}),
        (8_000, {"effort": "medium"}),
        (50_000, {"effort": "high"}),
    ],
)
def test_thinking(wish, expected):
    assert encode(UserMessage("go"), settings=ModelSettings(thinking=wish)).get("reasoning") == expected


def test_settings_and_the_callers_own_fields():
    wishes = ModelSettings(
        max_tokens=9,
        temperature=0.0,
        top_p=0.5,
        thinking="low",
        extra={"reasoning": {"summary": "auto"}, "include": ["x"], "tools": [{"type": "web_search"}], "user": "me"},
    )
    body = encode(UserMessage("go"), tools=(ADD,), settings=wishes)
    assert (body["max_output_tokens"], body["temperature"], body["top_p"], body["user"]) == (9, 0.0, 0.5, "me")
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content", "x"]
    assert [tool["type"] for tool in body["tools"]] == ["function", "web_search"]


def test_stop_sequences_are_refused_not_dropped():
    with pytest.raises(BadRequest, match="no stop sequences"):
        encode(UserMessage("go"), settings=ModelSettings(stop=("x",)))


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (CLOSED | {"$defs": {"X": CLOSED}, "title": "An answer!"}, True),
        (CLOSED | {"properties": {"a": {"anyOf": [{"type": "null"}, CLOSED]}}}, True),
        (CLOSED | {"required": []}, False),
        (CLOSED | {"additionalProperties": {"type": "string"}}, False),
        (CLOSED | {"properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}}, False),
        (CLOSED | {"properties": {"a": {"oneOf": [{"type": "null"}]}}}, False),
        (CLOSED | {"properties": {"a": {"type": "string", "format": "date"}}}, True),
        (CLOSED | {"properties": {"a": {"type": "string", "format": "uri"}}}, False),
        (CLOSED | {"properties": {"a": {"type": "string", "default": "x"}}}, False),
        ({"anyOf": [CLOSED, CLOSED]}, False),
    ],
)
def test_structured_output_is_strict_where_the_schema_can_be(schema, strict):
    form = encode(UserMessage("go"), output_schema=schema)["text"]["format"]
    assert (form["type"], form["strict"], form["schema"]) == ("json_schema", strict, schema)
    assert form["name"].replace("_", "").isalnum()


PARTS = st.one_of(
    st.builds(Text, st.sampled_from(["", "word"])),
    st.builds(Thinking, st.just("hm"), data=st.sampled_from([None, "enc"]), id=st.sampled_from([None, "rs_1"])),
    st.just(Opaque("openai", {"type": "web_search_call", "id": "ws"})),
    st.just(Opaque("openai", {"type": "message", "phase": "commentary"})),
    st.builds(ToolCall, st.just("call_1"), st.just("add")),
)


@settings(max_examples=deep(200), deadline=None)
@given(turns=st.lists(st.lists(PARTS, max_size=4), max_size=4))
def test_reasoning_is_never_the_last_that_a_turn_says(turns):
    codec = ResponsesCodec()
    history: list[Message] = []
    for number, parts in enumerate(turns):
        history += [AssistantMessage(tuple(parts)), UserMessage(str(number))]
        sent = codec.encode(ModelRequest(history, run_id="r"), MODEL, True)
        assert sent == ResponsesCodec().encode(ModelRequest(history, run_id="r"), MODEL, True)
        items = json.loads(sent)["input"]
        for item, following in pairwise(items):
            if item.get("type") == "reasoning":
                assert following.get("role") != "user"
                assert item["encrypted_content"]


# Answers


def read(*events: dict[str, Any]) -> list[Any]:
    decoder = ResponsesCodec().decoder()
    found = [event for data in events for event in decoder.feed(data)]
    return [*found, decoder.close()]


def message(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": list(parts)} | fields


def output_text(words: str) -> dict[str, Any]:
    return {"type": "output_text", "text": words, "annotations": []}


def call(number: int = 1, arguments: str = '{"a":1}', **fields: Any) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "add"}
    return item | {"arguments": arguments} | fields


def closing(kind: str = "completed", *output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "model": "gpt-x", "status": kind, "output": list(output)} | fields
    return {"type": f"response.{kind}", "response": response}


def test_a_streamed_call():
    events = read(
        {"type": "response.output_item.added", "output_index": 0, "item": call(arguments="")},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": '{"a"'},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": ":1}"},
        {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1", "arguments": '{"a":1}'},
        {"type": "response.output_item.done", "output_index": 0, "item": call()},
        closing("completed", call()),
    )
    assert events == [
        ToolCallStarted("call_1", "add"),
        ToolCallDelta("call_1", '{"a"'),
        ToolCallDelta("call_1", ":1}"),
        ToolCallCompleted("call_1"),
        ModelReply(
            said(ToolCall("call_1", "add", '{"a":1}', item_id="fc_1")),
            None,
            "tool_calls",
            "completed",
            "gpt-x",
            "resp_1",
        ),
    ]


@pytest.mark.parametrize("names", [("output_index",), ("item_id",), ("output_index", "item_id")])
def test_parallel_calls_that_interleave_whatever_names_them(names):
    def about(number: int) -> dict[str, Any]:
        every = {"output_index": number, "item_id": f"fc_{number}"}
        return {name: value for name, value in every.items() if name in names}

    def piece(number: int, words: str) -> dict[str, Any]:
        return {"type": "response.function_call_arguments.delta", "delta": words} | about(number)

    events = read(
        {"type": "response.output_item.added", "item": call(0, "")} | about(0),
        {"type": "response.output_item.added", "item": call(1, "")} | about(1),
        piece(1, '{"b":'),
        piece(0, '{"a":1}'),
        piece(1, "2}"),
        closing("completed"),
    )
    assert [(c.id, c.arguments) for c in events[-1].message.calls] == [("call_0", '{"a":1}'), ("call_1", '{"b":2}')]
    assert [event.id for event in events if isinstance(event, ToolCallCompleted)] == ["call_0", "call_1"]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([closing("completed", call(), message(output_text("x")))], id="the closing event alone"),
        pytest.param(
            [
                {"type": "response.output_item.done", "item": call()},
                {"type": "response.output_item.done", "item": message(output_text("x"))},
                closing(),
            ],
            id="items that are only declared done",
        ),
        pytest.param(
            [
                {"type": "response.output_item.added", "item": call(arguments="")},
                {"type": "response.function_call_arguments.delta", "delta": '{"a":1}'},
                {"type": "response.output_text.delta", "delta": "x", "item_id": "msg_1"},
                closing(),
            ],
            id="deltas that nothing declares done",
        ),
    ],
)
def test_servers_that_leave_things_out_are_read_alike(events):
    found = read(*events)
    assert found[-1].message == said(ToolCall("call_1", "add", '{"a":1}', item_id="fc_1"), Text("x"))
    assert set(found[:-1]) == {
        ToolCallStarted("call_1", "add"),
        ToolCallDelta("call_1", '{"a":1}'),
        ToolCallCompleted("call_1"),
        TextDelta("x"),
    }


def test_a_call_without_arguments_or_with_no_call_id():
    item = {"type": "function_call", "id": "fc_9", "name": "add"}
    assert read(closing("completed", item))[-1].message.calls == (ToolCall("fc_9", "add", "", item_id="fc_9"),)


def test_a_call_that_was_cut_off_is_never_completed():
    half = call(arguments='{"a":', status="incomplete")
    cut = closing("incomplete", half, incomplete_details={"reason": "max_output_tokens"})
    begun = {"type": "response.output_item.added", "output_index": 0, "item": call(arguments="")}
    piece = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a":'}
    done = {"type": "response.output_item.done", "output_index": 0, "item": half}
    silent = {"type": "response.output_item.done", "output_index": 0, "item": call(arguments='{"a":')}
    for events in ([begun, piece, done, cut], [begun, piece, cut], [cut], [begun, piece, silent, cut]):
        found = read(*events)
        assert not any(isinstance(event, ToolCallCompleted) for event in found)
        assert found[-1].finish == "length"
        assert found[-1].message.calls[0].arguments == '{"a":'


@pytest.mark.parametrize(
    ("response", "finish", "detail"),
    [
        (closing("completed", message(output_text("x"))), "stop", "completed"),
        (closing("completed", status="complete"), "stop", "complete"),
        (closing("completed", call()), "tool_calls", "completed"),
        (closing("completed", message({"type": "refusal", "refusal": "no"})), "refusal", "completed"),
        (closing("incomplete", incomplete_details={"reason": "max_output_tokens"}), "length", "max_output_tokens"),
        (closing("incomplete", incomplete_details={"reason": "content_filter"}), "content_filter", "content_filter"),
        (closing("incomplete", incomplete_details={"reason": "max_messages"}), "length", "max_messages"),
        (closing("incomplete"), "unknown", "incomplete"),
    ],
)
def test_finish_reasons(response, finish, detail):
    streamed = read(response)[-1]
    whole = ResponsesCodec().decode_body(response["response"])[-1]
    assert streamed == whole
    assert (streamed.finish, streamed.finish_detail) == (finish, detail)


def test_a_refusal_is_what_the_model_said():
    events = read(
        {"type": "response.output_item.added", "output_index": 0, "item": message()},
        {"type": "response.refusal.delta", "output_index": 0, "delta": "I "},
        {"type": "response.refusal.delta", "output_index": 0, "delta": "won't"},
        closing("completed", message({"type": "refusal", "refusal": "I won't"})),
    )
    assert events[:2] == [TextDelta("I "), TextDelta("won't")]
    assert (events[-1].message.text, events[-1].finish) == ("I won't", "refusal")


def test_reasoning_is_told_by_its_summary_and_keeps_its_encrypted_form():
    parts = [{"type": "summary_text", "text": "first"}, {"type": "summary_text", "text": "second"}]
    item = {"type": "reasoning", "id": "rs_1", "summary": parts, "encrypted_content": "enc"}
    events = read(
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"summary": []}},
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0, "part": {}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "first"},
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1, "part": {}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "second"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        closing("completed", item | {"encrypted_content": "enc of another day"}),
    )
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "first\n\nsecond"
    assert events[-1].message == said(Thinking("first\n\nsecond", data="enc", id="rs_1"))


def test_usage_and_its_absence():
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 20},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 40},
        "total_tokens": 150,
    }
    assert read(closing(usage=usage))[-1].usage == Usage(100, 50, 60, 20, 40)
    assert read(closing(usage={"input_tokens": 1, "output_tokens": 2}))[-1].usage == Usage(1, 2)
    assert read(closing(usage=None))[-1].usage is None


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("server_error", Overloaded),
        ("rate_limit_exceeded", RateLimited),
        ("context_length_exceeded", ContextOverflow),
        ("invalid_api_key", AuthenticationFailed),
        ("invalid_image_format", BadRequest),
        ("image_too_large", BadRequest),
        ("image_content_policy_violation", ContentFiltered),
        ("bio_policy", ContentFiltered),
    ],
)
def test_errors_inside_a_stream_are_typed(code, error):
    fault = {"code": code, "message": "because"}
    for event in (
        {"type": "error", "sequence_number": 2} | fault,
        {"type": "error", "error": fault},
        closing("failed", error=fault),
    ):
        with pytest.raises(error, match="because"):
            read(event)
    with pytest.raises(error, match="because"):
        ResponsesCodec().decode_body(closing("failed", error=fault)["response"])


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"type": "response.created", "response": {}}],
        [{"type": "response.output_item.done", "output_index": 0, "item": message(output_text("x"))}],
    ],
)
def test_a_stream_that_ends_too_early_is_not_trusted(events):
    with pytest.raises(ProtocolError, match="the stream ended"):
        read(*events)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "response.output_text.delta"},
        {"type": "response.function_call_arguments.delta", "delta": "x", "item_id": "fc_1"},
        {"type": "response.output_item.added", "item": {"type": "function_call"}},
        {"type": "response.completed", "response": None},
        {"type": "response.completed", "response": {"output": [{"type": "function_call", "id": "x"}]}},
    ],
)
def test_an_event_that_breaks_the_protocol_is_an_error_of_its_own(event):
    with pytest.raises(ProtocolError):
        read(event)


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"output": [{}]}, {"output": "text"}])
def test_a_body_that_is_no_response_is_an_error_of_its_own(body):
    with pytest.raises(ProtocolError):
        ResponsesCodec().decode_body(body)


@pytest.mark.parametrize(
    ("status", "code", "words", "error"),
    [
        (400, "invalid_value", "Invalid file data", BadRequest),
        (400, "context_length_exceeded", "Your input exceeds the context window of this model.", ContextOverflow),
        (400, "content_policy_violation", "flagged", ContentFiltered),
        (401, "invalid_api_key", "Incorrect API key provided: sk-abcdefghijklmnopqrstuvwx", AuthenticationFailed),
        (404, "model_not_found", "The model does not exist", BadRequest),
        (429, "rate_limit_exceeded", "slow down", RateLimited),
        (500, "server_error", "sorry", Overloaded),
        (503, None, "overloaded", Overloaded),
    ],
)
def test_http_errors_are_typed_and_show_no_key(status, code, words, error):
    body = {"error": {"message": words, "type": "some_type", "code": code, "param": None}}
    found = ResponsesCodec().error(status, {"x-request-id": "req_1"}, body)
    assert type(found) is error
    assert (found.status, found.request_id) == (status, "req_1")
    assert "sk-abcdefghijklmnopqrstuvwx" not in str(found)


@pytest.mark.parametrize("declared", [0, 1, 2])
@pytest.mark.parametrize("arguments", ["", "{}"])
def test_calls_of_two_tools_under_one_id_are_two(arguments, declared):
    """Some servers give all calls of a reply one id; the arguments of one are not the other's."""
    calls = [call(1, '{"a":1}', call_id="c"), call(2, arguments, call_id="c", name="other")]
    events = [
        {"type": "response.output_item.done", "output_index": place, "item": item}
        for place, item in enumerate(calls[:declared])
    ]
    told = [(one.name, one.arguments) for one in read(*events, closing("completed", *calls))[-1].message.calls]
    assert told == [(calls[0]["name"], '{"a":1}'), ("other", arguments)]


def test_a_call_that_the_response_alone_has_twice_is_begun_once():
    declared = {"type": "response.output_item.done", "output_index": 0, "item": call(1)}
    events = read(declared, closing("completed", call(1), call(2), call(2)))
    begun = [event.id for event in events if isinstance(event, ToolCallStarted)]
    assert begun == [one.id for one in events[-1].message.calls]


def test_what_a_response_without_events_has_twice_is_told_once():
    said = message(output_text("hi"))
    told = [TextDelta("hi"), ToolCallStarted("call_1", "add"), ToolCallDelta("call_1", '{"a":1}')]
    for events in (
        read(closing("completed", said, said, call(), call())),
        ResponsesCodec().decode_body(closing("completed", said, said, call(), call())["response"]),
    ):
        assert events[:-1] == [*told, ToolCallCompleted("call_1")]
        assert events[-1].message.text == "hi"
        assert [one.id for one in events[-1].message.calls] == ["call_1"]


def test_a_whole_body_gives_the_events_of_a_stream():
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    body = closing("completed", item, message(output_text("hi"), phase="commentary"), call())["response"]
    assert ResponsesCodec().decode_body(body) == [
        ThinkingDelta("hm"),
        TextDelta("hi"),
        ToolCallStarted("call_1", "add"),
        ToolCallDelta("call_1", '{"a":1}'),
        ToolCallCompleted("call_1"),
        ModelReply(
            said(
                Thinking("hm", id="rs_1"),
                Opaque("openai", {"type": "message", "phase": "commentary"}),
                Text("hi"),
                ToolCall("call_1", "add", '{"a":1}', item_id="fc_1"),
            ),
            None,
            "tool_calls",
            "completed",
            "gpt-x",
            "resp_1",
        ),
    ]


def test_a_proxys_error_in_a_stream_is_typed_though_it_has_no_type():
    decoder = ResponsesCodec().decoder()
    with pytest.raises(RateLimited, match="slow down"):
        decoder.feed({"error": {"type": "rate_limit_error", "message": "slow down"}})


# Over a real socket


@pytest.mark.anyio
async def test_a_stream_over_a_socket_in_chunks_that_cut_characters(serve):
    events = [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": message()},
        {"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "delta": "grüße 🧵"},
        {"type": "response.output_item.done", "output_index": 0, "item": message(output_text("grüße 🧵"))},
        closing("completed", message(output_text("grüße 🧵")), usage={"input_tokens": 1, "output_tokens": 2}),
    ]
    stream = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events).encode()

    def answer(peer: Any) -> None:
        peer.begin(x_request_id="req_7")
        for at in range(0, len(stream), 7):
            peer.chunk(stream[at : at + 7])
        peer.end()

    server = serve(answer)
    model = OpenAIResponsesModel("gpt-5", base_url=server.url, api_key="sk-test")
    found = [event async for event in model.stream(ModelRequest((UserMessage("hi"),)))]
    assert found == [
        TextDelta("grüße 🧵"),
        UsageReported(Usage(1, 2)),
        ModelReply(said(Text("grüße 🧵")), Usage(1, 2), "stop", "completed", "gpt-x", "req_7"),
    ]
    (request,) = server.requests
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == "Bearer sk-test"
    assert json.loads(request.body)["store"] is False


@pytest.mark.anyio
async def test_a_response_that_fails_in_its_stream_is_an_error(serve):
    failed = closing("failed", error={"code": "rate_limit_exceeded", "message": "try again in 1.5s"})

    def answer(peer: Any) -> None:
        peer.begin()
        peer.chunk(f"data: {json.dumps(failed)}\n\n".encode())
        peer.end()

    model = OpenAIResponsesModel("gpt-5", base_url=serve(answer).url, api_key="k")
    with pytest.raises(RateLimited) as caught:
        [event async for event in model.stream(ModelRequest((UserMessage("hi"),)))]
    assert caught.value.retry_after == 1.5


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "x", "message", "function_call", "completed"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "id", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
REASONING = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "t"}]}
GOOD = [
    {"type": "response.created", "response": {"id": "r", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": message()},
    {"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "delta": "a"},
    {"type": "response.output_item.done", "output_index": 0, "item": message(output_text("a"))},
    {"type": "response.output_item.added", "output_index": 1, "item": call(arguments="")},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": "{}"},
    {"type": "response.output_item.done", "output_index": 1, "item": call()},
    {"type": "response.output_item.added", "output_index": 2, "item": REASONING},
    {"type": "response.reasoning_summary_part.added", "output_index": 2, "summary_index": 1, "part": {}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 2, "summary_index": 0, "delta": "t"},
    {"type": "response.refusal.delta", "output_index": 0, "delta": "no"},
    {"type": "error", "code": "server_error", "message": "m"},
    closing("completed", REASONING, message(output_text("a")), call(), usage={"input_tokens": 1, "output_tokens": 2}),
    closing("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    closing("failed", error={"code": "server_error", "message": "m"}),
]


@st.composite
def broken(draw) -> list[Any]:
    """A stream with events left out and repeated, and values in them replaced."""
    events = json.loads(json.dumps(draw(st.lists(st.sampled_from(GOOD), max_size=10))))
    for event in events:
        for _ in range(draw(st.integers(0, 2))):
            at, name = event, draw(st.sampled_from(sorted(event)))
            while isinstance(at[name], dict) and at[name] and draw(st.booleans()):
                at, name = at[name], draw(st.sampled_from(sorted(at[name])))
            if draw(st.booleans()):
                at[name] = draw(JSON)
            elif at is not event:
                del at[name]
    return [*events, closing()] if draw(st.booleans()) else events


@settings(max_examples=deep(300), deadline=None)
@given(events=broken())
def test_whatever_a_stream_holds_it_is_read_or_refused_by_a_typed_error(events):
    try:
        reply = read(*events)[-1]
    except ModelError:
        return
    assert isinstance(reply, ModelReply)
    assert all(type(part.text) is str for part in reply.message.content if isinstance(part, (Text, Thinking)))
    assert all(type(text) is str for c in reply.message.calls for text in (c.id, c.name, c.arguments))
    assert msgspec.json.encode(reply)


# The reasoning of open models, which is readable (vLLM, llama.cpp and others that serve gpt-oss and its like)

READABLE_ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "I must add."}],
}
CALL_ITEM = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}'}
OPEN_REPLIES = {
    "as vLLM has it": READABLE_ITEM | {"encrypted_content": None, "status": "completed"},
    "as llama.cpp has it": READABLE_ITEM | {"encrypted_content": ""},
    "in several parts": READABLE_ITEM
    | {"content": [{"type": "reasoning_text", "text": "I"}, {"type": "reasoning_text", "text": "add"}]},
    "with a summary": READABLE_ITEM | {"summary": [{"type": "summary_text", "text": "adding"}]},
}


@pytest.mark.anyio
@pytest.mark.parametrize("item", OPEN_REPLIES.values(), ids=OPEN_REPLIES)
async def test_readable_reasoning_goes_back_to_the_server_that_gave_it(item, serve):
    def answer(peer):
        reply = {"id": "r", "model": "gpt-oss", "status": "completed", "output": [item, CALL_ITEM]}
        peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(reply).encode())

    server = serve(answer)
    model = OpenAIResponsesModel("gpt-oss", base_url=server.url, api_key="none", streaming=False)
    history = [UserMessage("go")]
    for _ in range(2):
        reply = [event async for event in model.stream(ModelRequest(history, run_id="r"))][-1]
        history += [reply.message, ToolMessage("call_1", "add", "1")]
    text = "\n\n".join(part["text"] for part in item["content"])
    sent = json.loads(server.requests[1].body)["input"]
    assert sent[1:3] == [READABLE_ITEM | {"content": [{"type": "reasoning_text", "text": text}]}, CALL_ITEM]


def test_openai_itself_is_not_sent_readable_reasoning_which_it_refuses():
    thought = said(Thinking("hm", signature="reasoning_text", id="rs_1"), Text("x"))
    for model, goes in (
        (OpenAIResponsesModel("gpt-5", api_key="none"), False),
        (OpenAIResponsesModel("gpt-5", base_url="https://eu.api.openai.com/v1", api_key="none"), False),
        (OpenAIResponsesModel("gpt-5", base_url="https://x.openai.azure.com/openai/v1", api_key="none"), False),
        (OpenAIResponsesModel("gpt-oss", base_url="http://localhost:8000/v1", api_key="none"), True),
        (OpenAIResponsesModel("gpt-oss", base_url="https://myopenai.com/v1", api_key="none"), True),
    ):
        body = json.loads(model.codec.encode(ModelRequest([UserMessage("go"), thought]), MODEL, True))
        assert [item.get("type") for item in body["input"]] == [None, *(["reasoning"] if goes else []), "message"]


def test_readable_reasoning_is_nothing_to_the_other_dialects():
    no_id = {key: value for key, value in READABLE_ITEM.items() if key != "id"}
    message = read(closing("completed", no_id, CALL_ITEM))[-1].message
    assert message.content[0] == Thinking("I must add.", signature="reasoning_text", id="")
    request = ModelRequest([UserMessage("go"), message, ToolMessage("call_1", "add", "1")])
    for codec in (AnthropicCodec(), ChatCodec()):
        assert b"I must add." not in codec.encode(request, "m", True)


def test_readable_reasoning_that_was_never_declared_done_is_kept():
    at = {"item_id": "rs_1", "output_index": 0, "content_index": 0}
    events = read(
        {"type": "response.output_item.added", "output_index": 0, "item": {**READABLE_ITEM, "content": []}},
        {"type": "response.reasoning_text.delta", **at, "delta": "I must"},
        {"type": "response.reasoning_text.delta", **at, "delta": " add."},
        {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
    )
    assert events[:2] == [ThinkingDelta("I must"), ThinkingDelta(" add.")]
    assert events[-1].message == said(Thinking("I must add.", signature="reasoning_text", id="rs_1"))
