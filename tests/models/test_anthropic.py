"""The Anthropic Messages dialect: what it sends for a request, and what it makes of an answer."""

import base64
import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import Agent, Price, Retries
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
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from treadle.models.port import (
    ModelReply,
    ModelRequest,
    TextDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)

ADD = ToolSpec("add", "adds", {"type": "object", "properties": {"a": {"type": "integer"}}})
SUB = ToolSpec("sub", "subtracts", {"type": "object", "properties": {}})
MODEL = "claude-sonnet-4-5"


BEGUN = Opaque("anthropic", {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "nuts"}})
ENDED = Opaque("anthropic", {"type": "web_search_tool_result", "tool_use_id": "s", "content": []})


def encode(*messages: Message, model: str = MODEL, cache: Any = None, **request: Any) -> dict[str, Any]:
    """The body as the server would read it."""
    codec = AnthropicCodec(cache=cache)
    body: dict[str, Any] = json.loads(codec.encode(ModelRequest(messages, **request), model, True))
    return body


def said(*parts: Any) -> AssistantMessage:
    return AssistantMessage(parts)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_plain_question():
    assert encode(SystemMessage("be brief"), UserMessage("hi")) == {
        "model": MODEL,
        "max_tokens": 16_000,
        "stream": True,
        "system": [text("be brief")],
        "messages": [{"role": "user", "content": [text("hi")]}],
    }


CALLS = said(ToolCall("c1", "add", '{"a":1}'), ToolCall("c2", "sub"))


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        pytest.param(
            [UserMessage("a"), UserMessage("b")],
            [("user", [text("a"), text("b")])],
            id="consecutive user messages are one turn",
        ),
        pytest.param(
            [
                UserMessage("go"),
                CALLS,
                ToolMessage("c1", "add", "1"),
                UserMessage("wait"),
                ToolMessage("c2", "sub", "2"),
            ],
            [
                ("user", [text("go")]),
                (
                    "assistant",
                    [
                        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
                        {"type": "tool_use", "id": "c2", "name": "sub", "input": {}},
                    ],
                ),
                (
                    "user",
                    [
                        {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
                        {"type": "tool_result", "tool_use_id": "c2", "content": "2"},
                        text("wait"),
                    ],
                ),
            ],
            id="tool results come first in their turn",
        ),
        pytest.param(
            [UserMessage("go"), said(ToolCall("c", "add")), ToolMessage("c", "add", '{"error":true}', is_error=True)],
            [
                ("user", [text("go")]),
                ("assistant", [{"type": "tool_use", "id": "c", "name": "add", "input": {}}]),
                (
                    "user",
                    [{"type": "tool_result", "tool_use_id": "c", "content": '{"error":true}', "is_error": True}],
                ),
            ],
            id="an error is marked as one",
        ),
        pytest.param(
            [UserMessage("go"), said(ToolCall("c", "add")), ToolMessage("c", "add", "")],
            [
                ("user", [text("go")]),
                ("assistant", [{"type": "tool_use", "id": "c", "name": "add", "input": {}}]),
                ("user", [{"type": "tool_result", "tool_use_id": "c"}]),
            ],
            id="an empty result has no content",
        ),
        pytest.param(
            [UserMessage("a"), said(Text(""), Text("\n ")), UserMessage("b")],
            [("user", [text("a")]), ("user", [text("b")])],
            id="empty assistant text is not sent",
        ),
        pytest.param(
            [UserMessage("a"), said(Text("x")), said(Text("y")), UserMessage(" ")],
            [("user", [text("a")]), ("assistant", [text("x"), text("y")])],
            id="consecutive assistant messages are one turn, a blank user message none",
        ),
        pytest.param(
            [UserMessage("a"), said(Thinking("hm", signature="s"), Text("x"), Thinking("cut", signature="t"))],
            [
                ("user", [text("a")]),
                ("assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}, text("x")]),
            ],
            id="thinking never ends a turn",
        ),
        pytest.param(
            [UserMessage("a"), said(Thinking(data="enc"), Thinking("", signature="s"), Text("x"))],
            [
                ("user", [text("a")]),
                (
                    "assistant",
                    [
                        {"type": "redacted_thinking", "data": "enc"},
                        {"type": "thinking", "thinking": "", "signature": "s"},
                        text("x"),
                    ],
                ),
            ],
            id="redacted and omitted thinking go back",
        ),
        pytest.param(
            [
                UserMessage("a"),
                said(Thinking("hm"), Thinking("", data="enc", id="rs_1"), Text("x"), Opaque("openai", {})),
            ],
            [("user", [text("a")]), ("assistant", [text("x")])],
            id="what is another provider's own is left out",
        ),
        pytest.param(
            [UserMessage("a"), said(Opaque("anthropic", {"type": "server_tool_use", "id": "s", "input": {}}))],
            [("user", [text("a")]), ("assistant", [{"type": "server_tool_use", "id": "s", "input": {}}])],
            id="a paused turn ends with the provider's own block",
        ),
        pytest.param(
            [UserMessage("a"), said(Text("x"), BEGUN), UserMessage("b")],
            [("user", [text("a")]), ("assistant", [text("x")]), ("user", [text("b")])],
            id="what was begun in a paused turn is not said of one that was left",
        ),
        pytest.param(
            [UserMessage("a"), said(Thinking("hm", signature="sig"), BEGUN), UserMessage("b")],
            [("user", [text("a")]), ("user", [text("b")])],
            id="a paused turn that was left and said nothing else is none",
        ),
        pytest.param(
            [UserMessage("a"), said(BEGUN), said(ENDED, Text("x")), UserMessage("b")],
            [("user", [text("a")]), ("assistant", [BEGUN.value, ENDED.value, text("x")]), ("user", [text("b")])],
            id="a paused turn that was gone on with is whole",
        ),
        pytest.param(
            [UserMessage("a"), said(BEGUN, ToolCall("c", "look")), ToolMessage("c", "look", "?")],
            [
                ("user", [text("a")]),
                ("assistant", [BEGUN.value, {"type": "tool_use", "id": "c", "name": "look", "input": {}}]),
                ("user", [{"type": "tool_result", "tool_use_id": "c", "content": "?"}]),
            ],
            id="what is carried out after the run's own tools stays",
        ),
        pytest.param(
            [
                UserMessage("a"),
                said(ToolCall("call:1|x", "no such.tool")),
                ToolMessage("call:1|x", "no such.tool", "?"),
            ],
            [
                ("user", [text("a")]),
                (
                    "assistant",
                    [{"type": "tool_use", "id": "call_1_x_5218329b", "name": "no_such_tool_3ae6d354", "input": {}}],
                ),
                ("user", [{"type": "tool_result", "tool_use_id": "call_1_x_5218329b", "content": "?"}]),
            ],
            id="foreign ids and invented names become valid, alike in call and result",
        ),
    ],
)
def test_turns(messages, turns):
    found = [(turn["role"], turn["content"]) for turn in encode(*messages)["messages"]]
    assert found == turns


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a":', {"INVALID_JSON": '{"a":'}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ('"x"', {"INVALID_JSON": '"x"'}),
        ("null", {"INVALID_JSON": "null"}),
        ("[" * 100_000, {"INVALID_JSON": "[" * 100_000}),
    ],
)
def test_arguments_are_always_an_object(arguments, expected):
    body = encode(UserMessage("go"), said(ToolCall("c", "add", arguments)), ToolMessage("c", "add", "x"))
    assert body["messages"][1]["content"][0]["input"] == expected


def test_arguments_keep_the_bytes_that_the_model_wrote():
    arguments = '{"b": 1.0,  "a": 12345678901234567890123, "ü": "\\u00e9"}'
    request = ModelRequest((UserMessage("go"), said(ToolCall("c", "add", arguments)), ToolMessage("c", "add", "x")))
    assert arguments.encode() in AnthropicCodec().encode(request, MODEL, True)


def test_a_paused_turn_is_sent_as_it_is_until_something_is_said_after_it() -> None:
    """A limit, or a message, may come before the turn is gone on with: it was refused in each later request."""
    codec, said_so_far = AnthropicCodec(), [UserMessage("a"), said(Text("x"), BEGUN)]
    sent = [
        json.loads(codec.encode(ModelRequest(messages, run_id="r"), MODEL, True))["messages"]
        for messages in (said_so_far, [*said_so_far, UserMessage("b")], [*said_so_far, said(ENDED), UserMessage("b")])
    ]
    kinds = [[[block["type"] for block in message["content"]] for message in messages] for messages in sent]
    assert kinds == [
        [["text"], ["text", "server_tool_use"]],
        [["text"], ["text"], ["text"]],
        [["text"], ["text", "server_tool_use", "web_search_tool_result"], ["text"]],
    ]


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("reason", ["tool_use", "pause_turn", "end_turn"])
def test_what_runs_in_a_container_is_gone_on_with_there(streamed, reason):
    """Searches that code filters run in one: Claude refuses the results of other calls without its name."""
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    call = {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}}
    blocks = [search, call] if reason == "tool_use" else [search]
    container = {"id": "container_1", "expires_at": "2026-12-01T00:00:00Z"}
    if streamed:
        told = end(reason)
        told["delta"]["container"] = container
        begun = [one for index, fields in enumerate(blocks) for one in (block(index, **fields), stop(index))]
        reply = read(start(), *begun, told, END)[-1]
    else:
        body = {"type": "message", "content": blocks, "stop_reason": reason, "container": container}
        reply = AnthropicCodec().decode_body(body)[-1]
    said_so_far = [UserMessage("a"), reply.message]
    said_so_far += [ToolMessage("t", "add", "2")] if reason == "tool_use" else []

    def sent(*messages, **extra):
        request = ModelRequest(messages, settings=ModelSettings(extra=extra or None))
        return json.loads(AnthropicCodec().encode(request, MODEL, True))

    body = sent(*said_so_far)
    under_way = reason != "end_turn"
    assert body.get("container") == ("container_1" if under_way else None)
    assert [one["type"] for one in body["messages"][1]["content"]] == [one["type"] for one in blocks]
    # What the caller says of it goes before, or beside.
    assert sent(*said_so_far, container="mine")["container"] == "mine"
    skilled = sent(*said_so_far, container={"skills": []})["container"]
    assert skilled == {"skills": []} | ({"id": "container_1"} if under_way else {})
    # It may have expired by then, and is wanted no more.
    ended = said(Opaque("anthropic", {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}), Text("so"))
    assert "container" not in sent(*said_so_far, ended, UserMessage("b"))
    if reason == "pause_turn":
        assert "container" not in sent(*said_so_far, UserMessage("b"))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            Image(b"png", media_type="image/webp"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": encoded(b"png")}},
        ),
        (
            Image(url="https://x.test/a.png"),
            {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
        ),
        (
            Image(url="data:image/gif;base64,R0lG"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}},
        ),
        (
            File(b"%PDF", name="a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": encoded(b"%PDF")},
                "title": "a.pdf",
            },
        ),
        (
            File(url="https://x.test/a.pdf", name="a.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}, "title": "a.pdf"},
        ),
        (
            File("a;ü\n".encode(), media_type="text/csv", name="t.csv"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a;ü\n"},
                "title": "t.csv",
            },
        ),
        (
            File(b"{}", media_type="application/json", name="t.json"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "{}"},
                "title": "t.json",
            },
        ),
        (
            File(b"jpg", media_type="image/jpeg", name="t.jpg"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": encoded(b"jpg")}},
        ),
    ],
)
def test_images_and_files(part, block):
    assert encode(UserMessage((Text("see"), part)))["messages"][0]["content"] == [text("see"), block]
    result = encode(UserMessage("go"), said(ToolCall("c", "add")), ToolMessage("c", "add", (Text("see"), part)))
    assert result["messages"][2]["content"][0]["content"] == [text("see"), block]


@pytest.mark.parametrize(
    "part",
    [File(b"PK", media_type="application/zip", name="a.zip"), File(url="https://x.test/a.csv", media_type="text/csv")],
)
def test_a_file_that_the_api_cannot_take_is_refused_by_name(part):
    with pytest.raises(BadRequest, match=part.media_type):
        encode(UserMessage((part,)))


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        ("auto", None, {"type": "auto"}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("auto", True, {"type": "auto", "disable_parallel_tool_use": False}),
        ("required", None, {"type": "any"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ("sub", None, {"type": "tool", "name": "sub"}),
        ("sub", False, {"type": "tool", "name": "sub", "disable_parallel_tool_use": True}),
    ],
)
def test_tool_choices(choice, parallel, expected):
    wishes = ModelSettings(parallel_tool_calls=parallel)
    body = encode(UserMessage("go"), tools=(ADD, SUB), tool_choice=choice, settings=wishes)
    assert body["tool_choice"] == expected
    assert body["tools"] == [
        {"name": "add", "description": "adds", "input_schema": ADD.input_schema},
        {"name": "sub", "description": "subtracts", "input_schema": SUB.input_schema},
    ]


def test_no_tools_no_choice():
    body = encode(UserMessage("go"), tool_choice="none")
    assert not {"tools", "tool_choice"} & set(body)


def within(most: int, budget: int) -> dict[str, Any]:
    return {"max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": budget}}


def by_effort(effort: str) -> dict[str, Any]:
    thinking = {"type": "adaptive", "display": "summarized"}
    return {"max_tokens": 16_000, "thinking": thinking, "output_config": {"effort": effort}}


@pytest.mark.parametrize(
    ("model", "wish", "most", "expected"),
    [
        (MODEL, None, None, {"max_tokens": 16_000}),
        (MODEL, "none", None, {"max_tokens": 16_000, "thinking": {"type": "disabled"}}),
        (MODEL, "low", None, within(18_048, 2_048)),
        (MODEL, 5_000, None, within(21_000, 5_000)),
        (MODEL, 10, None, within(17_024, 1_024)),
        (MODEL, "high", 4_000, within(4_000, 2_976)),
        ("claude-sonnet-4-20250514", "low", 9_000, within(9_000, 2_048)),
        ("claude-3-7-sonnet-latest", "low", 9_000, within(9_000, 2_048)),
        ("some-local-model", "low", 9_000, within(9_000, 2_048)),
        ("claude-opus-4-6", "high", None, by_effort("high")),
        ("claude-opus-5", "low", None, by_effort("low")),
        ("claude-fable-5", 8_000, None, by_effort("medium")),
        ("anthropic.claude-opus-4-8-v1:0", 90_000, None, by_effort("high")),
        ("claude-mythos-preview", "low", None, by_effort("low")),
    ],
)
def test_thinking(model, wish, most, expected):
    body = encode(UserMessage("go"), model=model, settings=ModelSettings(thinking=wish, max_tokens=most))
    assert {name: body[name] for name in ("max_tokens", "thinking", "output_config") if name in body} == expected


def test_a_forced_tool_call_leaves_no_budget_to_think():
    wishes = ModelSettings(thinking="low")
    assert "thinking" not in encode(UserMessage("go"), tools=(ADD,), tool_choice="required", settings=wishes)
    assert "thinking" in encode(UserMessage("go"), tools=(ADD,), tool_choice="auto", settings=wishes)


def test_thinking_in_too_few_tokens_is_refused_with_the_way_out():
    with pytest.raises(BadRequest, match="max_tokens=1000"):
        encode(UserMessage("go"), settings=ModelSettings(thinking="low", max_tokens=1000))


def test_settings_and_the_callers_own_fields():
    wishes = ModelSettings(
        max_tokens=9,
        temperature=0.0,
        top_p=0.5,
        stop=("a", "b"),
        seed=7,
        extra={"top_k": 3, "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    )
    body = encode(UserMessage("go"), tools=(SUB,), settings=wishes)
    assert (body["max_tokens"], body["temperature"], body["top_p"], body["top_k"]) == (9, 0.0, 0.5, 3)
    assert body["stop_sequences"] == ["a", "b"]
    assert [tool["name"] for tool in body["tools"]] == ["sub", "web_search"]


def test_structured_output_is_native_and_what_it_cannot_hold_is_told():
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "how many"},
            "when": {"type": "string", "format": "date"},
            "kind": {"oneOf": [{"$ref": "#/$defs/K"}, {"type": "null"}]},
        },
        "$defs": {"K": {"type": "object", "properties": {"s": {"type": "string", "maxLength": 3}}}},
        "required": ["n"],
    }
    body = encode(
        UserMessage("go"), model="claude-opus-5", output_schema=schema, settings=ModelSettings(thinking="low")
    )
    assert body["output_config"] == {
        "effort": "low",
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "description": 'how many {"minimum":1}'},
                    "when": {"type": "string", "format": "date"},
                    "kind": {"anyOf": [{"$ref": "#/$defs/K"}, {"type": "null"}]},
                },
                "$defs": {
                    "K": {
                        "type": "object",
                        "properties": {"s": {"type": "string", "description": '{"maxLength":3}'}},
                        "additionalProperties": False,
                    }
                },
                "required": ["n"],
                "additionalProperties": False,
            },
        },
    }


def marks(body: Any) -> int:
    if isinstance(body, dict):
        return ("cache_control" in body) + sum(marks(value) for value in body.values())
    return sum(marks(value) for value in body) if isinstance(body, list) else 0


def test_breakpoints_stand_on_tools_system_and_the_last_two_user_turns():
    history = [
        SystemMessage("s"),
        UserMessage("1"),
        CALLS,
        ToolMessage("c1", "add", "x"),
        ToolMessage("c2", "sub", "y"),
    ]
    body = encode(*history, said(Text("z")), UserMessage("2"), tools=(ADD, SUB), cache="1h")
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, hour]
    assert body["system"][-1]["cache_control"] == hour
    turns = [[block.get("cache_control") for block in turn["content"]] for turn in body["messages"]]
    assert turns == [[None], [None, None], [None, hour], [None], [hour]]
    assert marks(body) == 4


def test_an_automatic_breakpoint_of_the_callers_takes_the_place_of_ours():
    wishes = ModelSettings(extra={"cache_control": {"type": "ephemeral"}})
    body = encode(SystemMessage("s"), UserMessage("1"), tools=(ADD,), settings=wishes, cache="5m")
    assert marks(body["messages"]) == 0
    assert marks(body) == 3


PARTS = st.one_of(
    st.builds(Text, st.sampled_from(["", " ", "word"])),
    st.builds(Thinking, st.just("hm"), signature=st.sampled_from([None, "sig"]), id=st.sampled_from([None, "rs_1"])),
    st.builds(Thinking, data=st.just("enc")),
    st.just(Opaque("anthropic", {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
    st.just(Opaque("openai", {"type": "web_search_call"})),
)


@st.composite
def histories(draw) -> list[Message]:
    """Valid histories: every call is answered right after the message that made it."""
    messages: list[Message] = [SystemMessage(draw(st.sampled_from(["", "rules"])))]
    for number in range(draw(st.integers(1, 6))):
        messages += [UserMessage(draw(st.sampled_from(["", "hi"]))) for _ in range(draw(st.integers(0, 2)))]
        arguments = st.sampled_from(["", "{}", '{"a":1}', '{"a"', "3"])
        calls = [ToolCall(f"c{number}.{i}", "add", draw(arguments)) for i in range(draw(st.integers(0, 3)))]
        messages.append(AssistantMessage((*draw(st.lists(PARTS, max_size=3)), *calls)))
        messages += [ToolMessage(call.id, call.name, draw(st.sampled_from(["", "r"]))) for call in calls]
    return [*messages, UserMessage("end")]


@settings(max_examples=deep(200), deadline=None)
@given(history=histories(), tools=st.sampled_from([(), (ADD,), (ADD, SUB)]))
def test_every_body_keeps_the_rules_of_the_api(history, tools):
    codec = AnthropicCodec()
    for length in range(2, len(history) + 1):
        request = ModelRequest(history[:length], tools=tools, run_id="r")
        bytes_sent = codec.encode(request, MODEL, True)
        assert bytes_sent == AnthropicCodec().encode(request, MODEL, True), "what was kept is what is encoded"
        body = json.loads(bytes_sent)
        assert marks(body) <= 4
        asked: list[str] = []
        for turn in body["messages"]:
            kinds = [block["type"] for block in turn["content"]]
            assert kinds, "no turn is empty"
            for block in turn["content"]:
                assert block["type"] != "text" or block["text"].strip()
            if turn["role"] == "assistant":
                assert kinds[-1] not in ("thinking", "redacted_thinking")
                asked = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
            else:
                results = kinds.count("tool_result")
                assert kinds[:results] == ["tool_result"] * results
                assert [block["tool_use_id"] for block in turn["content"][:results]] == asked[:results]
                asked = []


# Answers


def read(*events: dict[str, Any]) -> list[Any]:
    decoder = AnthropicCodec().decoder()
    found = [event for data in events for event in decoder.feed(data)]
    return [*found, decoder.close()]


def start(message_id: str = "m", **usage: Any) -> dict[str, Any]:
    message = {"id": message_id, "model": "claude-x", "content": [], "stop_reason": None, "usage": usage}
    return {"type": "message_start", "message": message}


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None, **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


END = {"type": "message_stop"}


def test_a_call_whose_block_begins_without_input():
    events = read(
        start(),
        block(0, type="tool_use", id="t", name="add"),
        delta(0, "input_json_delta", partial_json=""),
        delta(0, "input_json_delta", partial_json='{"a":'),
        delta(0, "input_json_delta", partial_json="1}"),
        stop(0),
        end("tool_use"),
        END,
    )
    assert events[:-1] == [
        ToolCallStarted("t", "add"),
        ToolCallDelta("t", '{"a":'),
        ToolCallDelta("t", "1}"),
        ToolCallCompleted("t"),
    ]
    assert events[-1].message.calls == (ToolCall("t", "add", '{"a":1}'),)


@pytest.mark.parametrize(("given_input", "arguments"), [({"a": 1}, '{"a":1}'), ({}, "{}"), (None, "")])
def test_a_call_whose_input_stands_in_its_beginning(given_input, arguments):
    events = read(start(), block(0, type="tool_use", id="t", name="add", input=given_input), end("tool_use"), END)
    assert "".join(event.json for event in events if isinstance(event, ToolCallDelta)) == arguments
    assert ToolCallCompleted("t") in events
    assert events[-1].message.calls == (ToolCall("t", "add", arguments),)


@pytest.mark.parametrize("arguments", ['{"a": 12', "[1]", "{}{}"])
def test_a_call_that_was_cut_off_or_malformed_is_never_completed(arguments):
    events = read(
        start(),
        block(0, type="tool_use", id="t", name="add", input={}),
        delta(0, "input_json_delta", partial_json=arguments),
        stop(0),
        end("max_tokens"),
        END,
    )
    assert events[:-1] == [ToolCallStarted("t", "add"), ToolCallDelta("t", arguments)]
    assert (events[-1].finish, events[-1].message.calls) == ("length", (ToolCall("t", "add", arguments),))


def test_parallel_blocks_that_interleave():
    reply = read(
        start(),
        block(0, type="tool_use", id="t0", name="add", input={}),
        block(1, type="tool_use", id="t1", name="sub", input={}),
        delta(1, "input_json_delta", partial_json='{"b":'),
        delta(0, "input_json_delta", partial_json='{"a":1}'),
        delta(1, "input_json_delta", partial_json="2}"),
        stop(1),
        stop(0),
        end("tool_use"),
        END,
    )[-1]
    assert reply.message.calls == (ToolCall("t0", "add", '{"a":1}'), ToolCall("t1", "sub", '{"b":2}'))


def test_a_message_start_that_is_repeated_counts_once():
    reply = read(
        start(input_tokens=17, output_tokens=1),
        start(input_tokens=17, output_tokens=1),
        block(0, type="text", text=""),
        delta(0, "text_delta", text="hi"),
        end("end_turn", output_tokens=5),
        END,
    )[-1]
    assert reply.message == said(Text("hi"))
    assert reply.usage == Usage(17, 5)


def test_several_messages_in_one_stream_are_one_reply():
    reply = read(
        start("m1", input_tokens=10, output_tokens=1),
        block(0, type="text", text=""),
        delta(0, "text_delta", text="one "),
        stop(0),
        end("pause_turn", output_tokens=4),
        END,
        start("m2", input_tokens=20, cache_read_input_tokens=3, output_tokens=1),
        block(0, type="text", text=""),
        delta(0, "text_delta", text="two"),
        stop(0),
        end("end_turn", output_tokens=6),
        END,
    )[-1]
    assert (reply.message.text, reply.finish, reply.usage) == ("one two", "stop", Usage(33, 10, 3))


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("something_else", "unknown"),
    ],
)
def test_finish_reasons(reason, finish):
    streamed = read(start(), end(reason), END)[-1]
    whole = AnthropicCodec().decode_body({"type": "message", "id": "m", "content": [], "stop_reason": reason})[-1]
    assert (streamed.finish, streamed.finish_detail) == (whole.finish, whole.finish_detail) == (finish, reason)


def test_usage_counts_what_the_cache_read_and_wrote_and_later_nulls_take_nothing_away():
    first = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 1}
    last = {"output_tokens": 40, "cache_read_input_tokens": None, "output_tokens_details": {"thinking_tokens": 30}}
    assert read(start(**first), end("end_turn", **last), END)[-1].usage == Usage(115, 40, 100, 5, 30)
    assert read(start(), end("end_turn"), END)[-1].usage is None


def test_blocks_of_the_providers_own_are_kept_whole():
    reply = read(
        start(),
        block(0, type="server_tool_use", id="s", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query": "x"}'),
        stop(0),
        block(1, type="web_search_tool_result", tool_use_id="s", content=[{"type": "web_search_result"}]),
        stop(1),
        block(2, type="compaction", content=None),
        delta(2, "compaction_delta", content="in short"),
        stop(2),
        block(3, type="text", text="", citations=[]),
        delta(3, "citations_delta", citation={"type": "x"}),
        delta(3, "text_delta", text="found"),
        stop(3),
        end("end_turn"),
        END,
    )[-1]
    assert reply.message.content == (
        Opaque("anthropic", {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}),
        Opaque(
            "anthropic",
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result"}]},
        ),
        Opaque("anthropic", {"type": "compaction", "content": "in short"}),
        Text("found"),
        Opaque("anthropic", {"type": "text", "text": "found", "citations": [{"type": "x"}]}),
    )


@pytest.mark.parametrize(
    ("pieces", "read_as"),
    [
        ([], {}),
        ([""], {}),
        (["", "{}"], {}),
        (["", '{"a": ', "1}"], {"a": 1}),
        (["", "[1]"], {"INVALID_JSON": "[1]"}),
        (["", '{"a'], {"INVALID_JSON": '{"a'}),
    ],
)
@pytest.mark.parametrize("begun", [{"input": {}}, {}])
@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_a_call_that_the_provider_runs_goes_back_with_the_input_that_it_had(kind, begun, pieces, read_as):
    """Claude begins each input with an empty piece, also where there is nothing to come."""
    reply = read(
        start(),
        block(0, type=kind, id="s", name="f", **begun),
        *[delta(0, "input_json_delta", partial_json=piece) for piece in pieces],
        stop(0),
        end("pause_turn"),
        END,
    )[-1]
    assert reply.message.content == (Opaque("anthropic", {"type": kind, "id": "s", "name": "f", "input": read_as}),)


def test_thinking_keeps_its_signature_and_text_without_a_beginning_is_read():
    reply = read(
        start(),
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="h"),
        delta(0, "thinking_delta", thinking="m"),
        delta(0, "signature_delta", signature="sig"),
        stop(0),
        block(1, type="redacted_thinking", data="enc"),
        stop(1),
        delta(2, "text_delta", text="so"),
        end("end_turn"),
        END,
    )[-1]
    assert reply.message == said(Thinking("hm", signature="sig"), Thinking(data="enc"), Text("so"))


def test_events_of_a_kind_that_is_not_known_are_passed_over():
    events = read(start(), {"type": "ping"}, {"type": "novelty", "x": 1}, {"type": "[DONE]"}, end("end_turn"), END)
    assert events == [ModelReply(said(), finish="stop", finish_detail="end_turn", model="claude-x", request_id="m")]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", Overloaded),
        ("api_error", Overloaded),
        ("rate_limit_error", RateLimited),
        ("authentication_error", AuthenticationFailed),
        ("permission_error", AuthenticationFailed),
        ("invalid_request_error", BadRequest),
        ("timeout_error", ModelTimeout),
    ],
)
def test_an_error_inside_a_stream_is_typed(kind, error):
    decoder = AnthropicCodec().decoder()
    decoder.feed(start())
    with pytest.raises(error, match="because"):
        decoder.feed({"type": "error", "error": {"type": kind, "message": "because"}})
    with pytest.raises(error, match="because"):
        AnthropicCodec().decode_body({"type": "error", "error": {"type": kind, "message": "because"}})


@pytest.mark.parametrize(
    "events",
    [
        [],
        [start()],
        [start(), block(0, type="text", text=""), delta(0, "text_delta", text="half")],
        [start(), block(0, type="text", text="all"), stop(0)],
    ],
)
def test_a_stream_that_ends_too_early_is_not_trusted(events):
    with pytest.raises(ProtocolError, match="the stream ended"):
        read(*events)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "x"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}},
        {"type": "message_start", "message": None},
        {"type": "message_delta"},
    ],
)
def test_an_event_that_breaks_the_protocol_is_an_error_of_its_own(event):
    with pytest.raises(ProtocolError):
        read(start(), event)


@pytest.mark.parametrize("body", [{}, {"content": "text"}, {"type": "message", "content": [{"type": "tool_use"}]}])
def test_a_body_that_is_no_message_is_an_error_of_its_own(body):
    with pytest.raises(ProtocolError):
        AnthropicCodec().decode_body(body)


@pytest.mark.parametrize(
    ("status", "kind", "words", "headers", "error", "retry_after"),
    [
        (400, "invalid_request_error", "max_tokens: field required", {}, BadRequest, None),
        (400, "invalid_request_error", "prompt is too long: 209353 tokens > 199999 maximum", {}, ContextOverflow, None),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length",
            {},
            ContextOverflow,
            None,
        ),
        (401, "authentication_error", "invalid x-api-key", {}, AuthenticationFailed, None),
        (403, "permission_error", "no access", {}, AuthenticationFailed, None),
        (404, "not_found_error", "model: claude-nope", {}, BadRequest, None),
        (413, "request_too_large", "Request exceeds the maximum size", {}, ContextOverflow, None),
        (429, "rate_limit_error", "slow down", {"retry-after": "7"}, RateLimited, 7.0),
        (429, "rate_limit_error", "slow down", {}, RateLimited, None),
        (500, "api_error", "internal", {}, Overloaded, None),
        (529, "overloaded_error", "Overloaded", {"retry-after": "1.5"}, Overloaded, 1.5),
    ],
)
def test_http_errors_are_typed(status, kind, words, headers, error, retry_after):
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_body"}
    found = AnthropicCodec().error(status, headers | {"request-id": "req_head"}, body)
    assert type(found) is error
    assert words in str(found)
    assert (found.status, found.retry_after, found.request_id) == (status, retry_after, "req_head")
    assert AnthropicCodec().error(status, headers, body).request_id == "req_body"


def test_a_page_instead_of_json_is_told_by_its_title():
    found = AnthropicCodec().error(502, {}, "<html><title>Bad gateway</title></html>")
    assert type(found) is Overloaded
    assert "Bad gateway" in str(found)


def test_a_whole_body_gives_the_events_of_a_stream():
    body = {
        "type": "message",
        "id": "m",
        "model": "claude-x",
        "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    assert AnthropicCodec().decode_body(body) == [
        TextDelta("hi"),
        ToolCallStarted("t", "add"),
        ToolCallDelta("t", '{"a":1}'),
        ToolCallCompleted("t"),
        ModelReply(
            said(Text("hi"), ToolCall("t", "add", '{"a":1}')), Usage(1, 2), "tool_calls", "tool_use", "claude-x", "m"
        ),
    ]


def test_a_proxys_error_in_a_stream_is_typed_though_it_has_no_type():
    decoder = AnthropicCodec().decoder()
    with pytest.raises(RateLimited, match="slow down"):
        decoder.feed({"error": {"type": "rate_limit_error", "message": "slow down"}})


# Over a real socket


def sse(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e, ensure_ascii=False)}\n\n" for e in events).encode()


@pytest.mark.anyio
async def test_a_stream_over_a_socket_in_chunks_that_cut_characters(serve):
    stream = sse(
        start(input_tokens=3, output_tokens=1),
        {"type": "ping"},
        block(0, type="text", text=""),
        delta(0, "text_delta", text="grüße 🧵"),
        stop(0),
        end("end_turn", output_tokens=7),
        END,
    )

    def answer(peer: Any) -> None:
        peer.begin(request_id="req_7")
        for at in range(0, len(stream), 7):
            peer.chunk(stream[at : at + 7])
        peer.end()

    server = serve(answer)
    model = AnthropicModel("claude-sonnet-4-5", base_url=server.url.removesuffix("/v1"), api_key="sk-test")
    events = [event async for event in model.stream(ModelRequest((UserMessage("hi"),), tools=(ADD,)))]
    assert events == [
        UsageReported(Usage(3, 1)),
        TextDelta("grüße 🧵"),
        UsageReported(Usage(3, 7)),
        ModelReply(said(Text("grüße 🧵")), Usage(3, 7), "stop", "end_turn", "claude-x", "req_7"),
    ]
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "sk-test"
    assert request.headers["anthropic-version"] == "2023-06-01"
    body = json.loads(request.body)
    assert (body["stream"], body["tools"][0]["cache_control"]) == (True, {"type": "ephemeral"})


@pytest.mark.anyio
async def test_what_was_counted_of_a_stream_that_breaks_off_is_paid_for(serve):
    begun = sse(
        start(input_tokens=3000, output_tokens=1, cache_read_input_tokens=100),
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="let me see " * 300),
    )

    def answer(peer: Any) -> None:
        peer.begin()
        peer.chunk(begun)
        peer.reset()

    server = serve(answer)
    model = AnthropicModel(
        "claude-sonnet-4-5", base_url=server.url.removesuffix("/v1"), api_key="sk-test", price=Price(1, 1)
    )
    result = await Agent(model, retries=Retries(attempts=2, base=0.001)).run("hi")
    assert result.stop.reason == "model_error"
    assert (result.usage.input_tokens, result.usage.cache_read_tokens) == (2 * 3100, 200)
    assert result.usage.output_tokens > 2 * 900
    assert result.usage.estimated
    assert result.cost == Decimal(result.usage.total_tokens) / 1_000_000


@pytest.mark.anyio
@pytest.mark.parametrize("streaming", [True, False])
async def test_one_json_body_is_read_whether_it_was_asked_for_or_not(serve, streaming):
    body = {"type": "message", "id": "m", "content": [text("hi")], "stop_reason": "end_turn"}
    server = serve(lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body).encode()))
    url = server.url.removesuffix("/v1")
    model = AnthropicModel("claude-sonnet-4-5", base_url=url, api_key="k", streaming=streaming)
    events = [event async for event in model.stream(ModelRequest((UserMessage("hi"),)))]
    assert events[0] == TextDelta("hi")
    assert events[-1].message == said(Text("hi"))


@pytest.mark.anyio
async def test_an_overloaded_server_and_an_error_inside_its_stream_are_told_alike(serve):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    def answer(peer: Any) -> None:
        if peer.number == 0:
            peer.answer("529 Overloaded", {"content-type": "application/json"}, json.dumps(error).encode())
        else:
            peer.begin()
            peer.chunk(sse(start(), error))
            peer.end()

    server = serve(answer)
    model = AnthropicModel("claude-sonnet-4-5", base_url=server.url.removesuffix("/v1"), api_key="k")
    for _ in range(2):
        with pytest.raises(Overloaded, match="Overloaded"):
            [event async for event in model.stream(ModelRequest((UserMessage("hi"),)))]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "text", "tool_use", "end_turn"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "id", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
GOOD = [
    start(input_tokens=1, output_tokens=1),
    block(0, type="text", text=""),
    delta(0, "text_delta", text="a"),
    block(1, type="tool_use", id="t", name="add", input={}),
    delta(1, "input_json_delta", partial_json="{}"),
    block(2, type="thinking", thinking="", signature=""),
    delta(2, "signature_delta", signature="s"),
    block(3, type="redacted_thinking", data="d"),
    block(4, type="server_tool_use", id="s", name="w", input={}),
    delta(4, "input_json_delta", partial_json="{"),
    stop(1),
    end("end_turn", output_tokens=3, output_tokens_details={"thinking_tokens": 1}),
    {"type": "error", "error": {"type": "api_error", "message": "m"}},
    END,
]


@st.composite
def broken(draw, good: list[dict[str, Any]]) -> list[Any]:
    """A stream with events left out and repeated, and values in them replaced."""
    events = json.loads(json.dumps(draw(st.lists(st.sampled_from(good), max_size=10))))
    for event in events:
        for _ in range(draw(st.integers(0, 2))):
            at, name = event, draw(st.sampled_from(sorted(event)))
            while isinstance(at[name], dict) and at[name] and draw(st.booleans()):
                at, name = at[name], draw(st.sampled_from(sorted(at[name])))
            if draw(st.booleans()):
                at[name] = draw(JSON)
            elif at is not event:
                del at[name]
    return events


@settings(max_examples=deep(300), deadline=None)
@given(events=broken(GOOD))
def test_whatever_a_stream_holds_it_is_read_or_refused_by_a_typed_error(events):
    try:
        reply = read(*events)[-1]
    except ModelError:
        return
    assert isinstance(reply, ModelReply)
    assert all(type(part.text) is str for part in reply.message.content if isinstance(part, (Text, Thinking)))
    assert all(type(text) is str for call in reply.message.calls for text in (call.id, call.name, call.arguments))
    assert msgspec.json.encode(reply)
