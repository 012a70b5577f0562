"""Bedrock's Converse without a network: what requests hold, what replies say, what errors mean."""

import json
import re
from base64 import b64encode
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.kernel import messages as kernel
from treadle.kernel.errors import Misuse
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bedrock import BedrockCodec
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ContentFiltered,
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
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    Usual,
)

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-pro-v1:0"
LLAMA = "us.meta.llama3-3-70b-instruct-v1:0"
MISTRAL = "mistral.mistral-large-2402-v1:0"
LOOK = kernel.ToolSpec("look", "Looks.", {"type": "object", "properties": {"place": {"type": "string"}}})
POINT = {"cachePoint": {"type": "default"}}
GO = kernel.UserMessage("go")
CALLED = kernel.AssistantMessage((kernel.ToolCall("c1", "look", '{"place":"here"}'),))
SEEN = kernel.ToolMessage("c1", "look", "seen")


def body_of(
    *messages: kernel.Message,
    model: str = CLAUDE,
    tools: Any = (),
    cache: Any = None,
    settings: Any = None,
    **more: Any,
) -> dict[str, Any]:
    request = ModelRequest(messages or (GO,), tuple(tools), settings=settings or kernel.ModelSettings(), **more)
    body: dict[str, Any] = json.loads(BedrockCodec(model, cache=cache).encode(request, model, False))
    return body


def turns(*messages: kernel.Message, model: str = CLAUDE) -> list[tuple[str, list[Any]]]:
    return [(turn["role"], turn["content"]) for turn in body_of(*messages, model=model)["messages"]]


# Requests


def test_a_plain_request():
    settings = kernel.ModelSettings(max_tokens=9, temperature=0.5, top_p=0.9, stop=("END",))
    assert body_of(kernel.SystemMessage("rules"), GO, settings=settings, tools=[LOOK]) == {
        "system": [{"text": "rules"}],
        "messages": [{"role": "user", "content": [{"text": "go"}]}],
        "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": LOOK.input_schema}}}
            ]
        },
    }


def test_a_step_and_its_results_are_two_turns():
    pair = kernel.AssistantMessage(
        (kernel.Text("I look"), kernel.ToolCall("c1", "look", '{"place":"here"}'), kernel.ToolCall("c2", "look"))
    )
    said = turns(GO, pair, SEEN, kernel.ToolMessage("c2", "look", "gone", is_error=True), kernel.UserMessage("and?"))
    assert said == [
        ("user", [{"text": "go"}]),
        (
            "assistant",
            [
                {"text": "I look"},
                {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"place": "here"}}},
                {"toolUse": {"toolUseId": "c2", "name": "look", "input": {}}},
            ],
        ),
        (
            "user",
            [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": "seen"}]}},
                {"toolResult": {"toolUseId": "c2", "content": [{"text": "gone"}], "status": "error"}},
                {"text": "and?"},
            ],
        ),
    ]


@pytest.mark.parametrize(
    "silent",
    [
        kernel.UserMessage(" "),
        kernel.AssistantMessage(),
        kernel.AssistantMessage((kernel.Text(""), kernel.Thinking("hm"))),
        kernel.ToolMessage("c", "look", ""),
    ],
)
def test_turns_alternate_also_where_nothing_was_said(silent):
    said = turns(GO, CALLED, SEEN, silent, kernel.UserMessage("on"))
    assert [role for role, _ in said] == [("user", "assistant")[i % 2] for i in range(len(said))]
    assert all(content for _, content in said)
    assert all(block.get("text", "x").strip() for _, content in said for block in content)


def test_the_first_turn_is_the_users():
    assert [role for role, _ in turns(kernel.AssistantMessage((kernel.Text("hello"),)), GO)] == [
        "user",
        "assistant",
        "user",
    ]


def test_ids_names_and_arguments_that_are_refused_are_replaced_alike():
    own, strange = "tooluse_a.b:c-d", "x" * 70
    calls = kernel.AssistantMessage(
        (kernel.ToolCall(own, "look", "{}"), kernel.ToolCall(strange, "lo ok!" * 20, '{"half'))
    )
    said = turns(GO, calls, kernel.ToolMessage(own, "look", "a"), kernel.ToolMessage(strange, "lo ok!" * 20, "b"))
    first, second = [block["toolUse"] for block in said[1][1]]
    assert [block["toolResult"]["toolUseId"] for block in said[2][1]] == [first["toolUseId"], second["toolUseId"]]
    assert first["toolUseId"] == own
    assert len(second["toolUseId"]) <= 64
    assert len(second["name"]) <= 64
    assert second["input"] == {"INVALID_JSON": '{"half'}


@pytest.mark.parametrize(
    ("model", "result", "content"),
    [
        (CLAUDE, '{"n": 1}', [{"text": '{"n": 1}'}]),
        (CLAUDE, "", [{"text": "(no content)"}]),
        (MISTRAL, '{"n": 1}', [{"json": {"n": 1}}]),
        (MISTRAL, "[1]", [{"json": {"result": "[1]"}}]),
    ],
)
def test_results_are_as_the_models_maker_takes_them(model, result, content):
    said = turns(GO, CALLED, kernel.ToolMessage("c1", "look", result), model=model)
    assert said[-1][1] == [{"toolResult": {"toolUseId": "c1", "content": content}}]


def test_an_error_that_is_more_than_text_is_sent_as_no_error():
    shown = kernel.ToolMessage("c1", "look", (kernel.Text("failed"), kernel.Image(b"x")), is_error=True)
    (block,) = turns(GO, CALLED, shown)[-1][1]
    assert "status" not in block["toolResult"]
    assert [list(one) for one in block["toolResult"]["content"]] == [["text"], ["image"]]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (kernel.Image(b"x"), {"image": {"format": "png", "source": {"bytes": "eA=="}}}),
        (kernel.Image(b"x", media_type="image/jpeg"), {"image": {"format": "jpeg", "source": {"bytes": "eA=="}}}),
        (kernel.Image(url="data:image/webp;base64,eA=="), {"image": {"format": "webp", "source": {"bytes": "eA=="}}}),
        (kernel.Image(url="s3://b/k"), {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}}),
        (kernel.File(b"x", media_type="image/gif"), {"image": {"format": "gif", "source": {"bytes": "eA=="}}}),
        (kernel.File(b"x", media_type="video/mp4"), {"video": {"format": "mp4", "source": {"bytes": "eA=="}}}),
        (kernel.File(b"x", media_type="video/3gpp"), {"video": {"format": "three_gp", "source": {"bytes": "eA=="}}}),
        (kernel.File(b"x", media_type="audio/mpeg"), {"audio": {"format": "mp3", "source": {"bytes": "eA=="}}}),
        (
            kernel.File(b"x", name="../a  b\u00e9.pdf"),
            {"document": {"name": "a b pdf (1)", "format": "pdf", "source": {"bytes": "eA=="}}},
        ),
        (
            kernel.File(b"x", media_type="text/csv", name="a"),
            {"document": {"name": "a (1)", "format": "csv", "source": {"bytes": "eA=="}}},
        ),
        (
            kernel.File(b"{}", media_type="application/json", name=""),
            {"document": {"name": "document (1)", "format": "txt", "source": {"bytes": "e30="}}},
        ),
        (
            kernel.File(url="s3://b/k", media_type="text/markdown", name="a"),
            {"document": {"name": "a (1)", "format": "md", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        ),
    ],
    ids=str,
)
def test_images_documents_videos_and_sound(part, block):
    (said,) = turns(kernel.UserMessage((kernel.Text("see"), part)))
    assert said[1] == [{"text": "see"}, block]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (kernel.Image(url="https://x.org/a.png"), "no image by its address, but in S3"),
        (kernel.Image(b"x", media_type="image/tiff"), "no image of type image/tiff; it takes image/gif"),
        (kernel.File(b"x", media_type="application/zip"), "no document of type application/zip"),
        (kernel.File(b"x", media_type="video/ogg"), "no video of type video/ogg"),
    ],
)
def test_what_the_api_has_no_place_for_is_told(part, words):
    with pytest.raises(BadRequest, match=words):
        body_of(kernel.UserMessage((part,)))


def test_documents_have_names_that_differ_and_a_text_beside_them():
    pdf = kernel.File(b"x", name="report")
    in_result = kernel.ToolMessage("c1", "look", (pdf, kernel.Text("two"), pdf))
    said = turns(kernel.UserMessage((pdf,)), CALLED, in_result, kernel.UserMessage((kernel.Text("and"), pdf)))
    assert json.dumps(said).count('"document"') == 4
    names = [f"report ({number})" for number in range(1, 5)]
    assert [name for name in names if f'"name": "{name}"' in json.dumps(said)] == names
    assert said[0][1][-1] == {"text": "(see the document)"}


def test_the_same_history_gives_the_same_bytes_and_grows_at_its_end():
    codec, pdf = BedrockCodec(), kernel.File(b"x", name="report")
    history: list[kernel.Message] = [kernel.SystemMessage("rules"), kernel.UserMessage((pdf,))]
    kept = b""
    for step in range(6):
        body = codec.encode(ModelRequest(tuple(history), (LOOK,), run_id="r"), CLAUDE, True)
        assert body == BedrockCodec().encode(ModelRequest(tuple(history), (LOOK,)), CLAUDE, True)
        plain = body[: body.rindex(b"]}")].replace(b',{"cachePoint":{"type":"default"}}', b"")
        assert plain.startswith(kept)
        kept = plain[: plain.rindex(b"]}") if step else None]
        call = kernel.AssistantMessage((kernel.ToolCall(f"c{step}", "look", "{}"),))
        history += [call, kernel.ToolMessage(f"c{step}", "look", (pdf, kernel.Text("seen")))]


def test_sound_out_of_a_tool_stands_beside_its_result():
    heard = kernel.ToolMessage("c1", "look", (kernel.Text("a song"), kernel.File(b"x", media_type="audio/wav")))
    result, words, sound = turns(GO, CALLED, heard)[-1][1]
    assert result["toolResult"]["content"] == [{"text": "a song"}]
    assert words == {"text": "From the result of look:"}
    assert sound["audio"]["format"] == "wav"


# Tools


def test_a_history_with_calls_never_goes_without_tools():
    """Converse refuses it: a run whose tools were taken away, or a conversation that another agent goes on with."""
    body = body_of(GO, CALLED, SEEN)
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["look"]
    assert "toolConfig" not in body_of(GO)
    assert "toolConfig" not in body_of(GO, tools=[LOOK], tool_choice="none")
    assert body_of(GO, CALLED, SEEN, tools=[LOOK], tool_choice="none")["toolConfig"].keys() == {"tools"}


@pytest.mark.parametrize(
    ("model", "choice", "sent"),
    [
        (CLAUDE, "auto", None),
        (CLAUDE, "required", {"any": {}}),
        (CLAUDE, "look", {"tool": {"name": "look"}}),
        (NOVA, "required", {"any": {}}),
        (MISTRAL, "look", {"any": {}}),
        (LLAMA, "required", None),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/x", "required", {"any": {}}),
    ],
)
def test_a_choice_is_forced_where_the_models_maker_has_it(model, choice, sent):
    body = body_of(tools=[LOOK], tool_choice=choice, model=model)
    assert body["toolConfig"].get("toolChoice") == sent


def test_one_call_at_a_time_is_asked_of_claude_in_its_own_field():
    one = kernel.ModelSettings(parallel_tool_calls=False)
    body = body_of(tools=[LOOK], settings=one)
    assert body["additionalModelRequestFields"] == {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    body = body_of(tools=[LOOK], settings=one, tool_choice="look")
    assert "toolChoice" not in body["toolConfig"]
    assert body["additionalModelRequestFields"]["tool_choice"]["name"] == "look"
    assert "additionalModelRequestFields" not in body_of(tools=[LOOK], settings=one, model=NOVA)
    assert "additionalModelRequestFields" not in body_of(settings=one)


def test_the_providers_own_tools_stand_beside_the_runs():
    own = kernel.ModelSettings(extra={"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}})
    assert [list(tool) for tool in body_of(tools=[LOOK], settings=own, cache="5m")["toolConfig"]["tools"]] == [
        ["toolSpec"],
        ["systemTool"],
        ["cachePoint"],
    ]
    assert body_of(settings=own, model=NOVA)["toolConfig"] == own.extra["toolConfig"]


def test_a_choice_of_ones_own_stands_beside_the_runs_tools():
    own = kernel.ModelSettings(extra={"toolConfig": {"toolChoice": {"any": {}}}})
    body = body_of(tools=[LOOK], settings=own)
    assert body["toolConfig"]["toolChoice"] == {"any": {}}
    assert len(body["toolConfig"]["tools"]) == 1
    assert body_of(tools=[LOOK], settings=own, tool_choice="look")["toolConfig"]["toolChoice"] == {
        "tool": {"name": "look"}
    }
    assert "toolConfig" not in body_of(settings=own)
    with pytest.raises(Misuse, match="'tools' as a list"):
        body_of(settings=kernel.ModelSettings(extra={"toolConfig": {"tools": "x"}}))


# Caching


def test_cache_points_stand_where_anthropics_breakpoints_do():
    history = (
        kernel.SystemMessage("rules"),
        GO,
        CALLED,
        SEEN,
        kernel.AssistantMessage((kernel.Text("hm"),)),
        kernel.UserMessage("on"),
    )
    body = body_of(*history, tools=[LOOK], cache="5m")
    assert body["toolConfig"]["tools"][-1] == POINT
    assert body["system"] == [{"text": "rules"}, POINT]
    assert [turn["content"][-1] == POINT for turn in body["messages"]] == [False, False, True, False, True]
    assert json.dumps(body).count("cachePoint") == 4
    hour = body_of(*history, cache="1h")
    assert hour["system"][-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert "cachePoint" not in json.dumps(body_of(*history))


def test_a_cache_point_stands_before_what_passes():
    note = kernel.UserMessage("(3 steps are left)")
    body = body_of(GO, CALLED, SEEN, note, cache="5m", passing=1, tools=[LOOK])
    assert body["messages"][-1]["content"][1:] == [POINT, {"text": "(3 steps are left)"}]


@pytest.mark.parametrize("note", [" ", (), (kernel.File(b"x", name="a"),), (kernel.Text("x"), kernel.Image(b"x"))])
def test_what_passes_may_be_nothing_or_more_than_text(note):
    for history in ((GO, CALLED, SEEN), (GO,), ()):
        body = body_of(*history, kernel.UserMessage(note), cache="5m", passing=1, tools=[LOOK])
        for turn in body["messages"]:
            assert "cachePoint" not in turn["content"][0]


@pytest.mark.parametrize(
    ("model", "places"),
    [
        (CLAUDE, 3),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", 3),
        ("anthropic.claude-3-haiku-20240307-v1:0", 0),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", 0),
        (NOVA, 1),
        ("us.amazon.nova-2-lite-v1:0", 0),
        (LLAMA, 0),
        ("arn:aws:bedrock:us-east-1:1:x/y", 0),
    ],
)
def test_models_that_take_no_cache_point_get_none(model, places):
    body = body_of(kernel.SystemMessage("rules"), GO, tools=[LOOK], model=model, cache="5m")
    assert json.dumps(body).count("cachePoint") == places


def test_what_a_step_takes_away_is_left_in_a_long_history():
    long = kernel.ToolMessage("c1", "look", "seen " * 2000)
    body = body_of(GO, CALLED, long, tool_choice="none", usual=Usual((LOOK,)), cache="5m")
    assert [list(tool) for tool in body["toolConfig"]["tools"]] == [["toolSpec"], ["cachePoint"]]
    assert body["messages"][-1]["content"][-1] == POINT


def test_tools_are_left_in_a_long_history_that_calls_none():
    """Without them all that is cached of it is read anew, by the closing reply of a long conversation too."""
    asked = kernel.UserMessage("what is this? " * 1000)
    with_tools = body_of(asked, tools=[LOOK], cache="5m")
    closing = body_of(asked, tool_choice="none", usual=Usual((LOOK,)), cache="5m")
    assert closing["toolConfig"] == with_tools["toolConfig"]
    assert "toolConfig" not in body_of(GO, tool_choice="none", usual=Usual((LOOK,)), cache="5m")


# Thinking


@pytest.mark.parametrize(
    ("model", "thinking", "fields"),
    [
        (CLAUDE, "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        (CLAUDE, 5000, {"thinking": {"type": "enabled", "budget_tokens": 5000}}),
        (CLAUDE, "none", {"thinking": {"type": "disabled"}}),
        (
            "global.anthropic.claude-opus-4-8",
            "high",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
        ),
        ("us.amazon.nova-2-lite-v1:0", "low", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}),
        ("us.amazon.nova-2-lite-v1:0", 0, {"reasoningConfig": {"type": "disabled"}}),
        ("openai.gpt-oss-120b-1:0", 5000, {"reasoning_effort": "medium"}),
        (LLAMA, "none", None),
        (LLAMA, None, None),
    ],
)
def test_thinking_is_asked_for_as_the_models_maker_has_it(model, thinking, fields):
    body = body_of(model=model, settings=kernel.ModelSettings(thinking=thinking))
    assert body.get("additionalModelRequestFields") == fields


def test_thinking_of_a_model_that_has_no_known_field_for_it_is_told():
    with pytest.raises(BadRequest, match="additionalModelRequestFields"):
        body_of(model=LLAMA, settings=kernel.ModelSettings(thinking="high"))


def test_a_typed_answer_and_an_effort_are_said_in_one_place():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    body = body_of(model="anthropic.claude-opus-5", settings=kernel.ModelSettings(thinking="low"), output_schema=schema)
    assert body["outputConfig"]["effort"] == "low"
    form = body["outputConfig"]["textFormat"]
    assert form["type"] == "json_schema"
    assert json.loads(form["structure"]["jsonSchema"]["schema"]) == schema | {"additionalProperties": False}
    assert "output_config" not in body["additionalModelRequestFields"]


def test_a_reply_is_bounded_where_its_model_is_known_to_be():
    codec = BedrockCodec()
    assert codec.longest(kernel.ModelSettings(), CLAUDE) == 16_000
    assert codec.longest(kernel.ModelSettings(thinking="low"), CLAUDE) == 18_048
    assert codec.longest(kernel.ModelSettings(max_tokens=5), CLAUDE) == 5
    assert codec.longest(kernel.ModelSettings(), NOVA) is None
    assert body_of()["inferenceConfig"] == {"maxTokens": 16_000}
    assert body_of(model=NOVA)["inferenceConfig"] == {}
    own = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 9000}, "top_k": 3}}
    held = codec.held(kernel.ModelSettings(extra=own), CLAUDE, 4_000)
    assert held.extra is not None
    assert held.max_tokens == 4_000
    assert held.extra["additionalModelRequestFields"]["thinking"]["budget_tokens"] <= 4_000 - 1_024
    assert held.extra["additionalModelRequestFields"]["top_k"] == 3
    assert own["additionalModelRequestFields"]["thinking"]["budget_tokens"] == 9000


@pytest.mark.parametrize(
    "extra", [{"inferenceConfig": {"maxTokens": 9}}, {"additionalModelRequestFields": {"max_tokens": 9}}]
)
def test_no_field_goes_round_the_length_of_a_reply(extra):
    for ask in (lambda s: body_of(settings=s), lambda s: BedrockCodec().longest(s, CLAUDE)):
        with pytest.raises(Misuse, match=r"give ModelSettings\(max_tokens=…\)"):
            ask(kernel.ModelSettings(extra=extra))


@pytest.mark.parametrize("place", ["inferenceConfig", "additionalModelRequestFields", "toolConfig"])
def test_a_field_that_cannot_be_joined_is_told(place):
    with pytest.raises(Misuse, match=f"takes '{place}' as an object"):
        body_of(settings=kernel.ModelSettings(extra={place: ["x"]}), tools=[LOOK])


@given(st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=5, unique=True))
def test_whatever_an_id_is_call_and_result_keep_the_same_one(ids):
    calls = kernel.AssistantMessage(tuple(kernel.ToolCall(one, "look", "{}") for one in ids))
    said = turns(GO, calls, *[kernel.ToolMessage(one, "look", "seen") for one in ids])
    sent = [block["toolUse"]["toolUseId"] for block in said[1][1]]
    assert [block["toolResult"]["toolUseId"] for block in said[2][1]] == sent
    assert len(set(sent)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", one) for one in sent)


def test_fields_of_ones_own_are_sent_as_they_are():
    extra = {
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        "performanceConfig": {"latency": "optimized"},
        "inferenceConfig": {"temperature": 0.1},
        "additionalModelRequestFields": {"top_k": 5},
    }
    body = body_of(settings=kernel.ModelSettings(extra=extra, thinking="low", max_tokens=4000))
    assert body["guardrailConfig"] == extra["guardrailConfig"]
    assert body["inferenceConfig"] == {"maxTokens": 4000, "temperature": 0.1}
    assert body["additionalModelRequestFields"]["top_k"] == 5
    assert body["additionalModelRequestFields"]["thinking"]["budget_tokens"] == 2048
    with pytest.raises(Misuse, match="'messages'"):
        body_of(settings=kernel.ModelSettings(extra={"messages": []}))


# Addresses


@given(st.text(min_size=1, max_size=60))
def test_no_name_changes_the_address(model):
    codec = BedrockCodec()
    if not model.strip("."):
        with pytest.raises(Misuse, match="give its id or its ARN"):
            codec.path(model, True)
        return
    begin, name, last = codec.path(model, False).rsplit("/", 2)
    assert (begin, last) == ("/model", "converse")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~%")
    assert codec.path(model, True) == f"/model/{name}/converse-stream"


# Replies


def whole(*content: Any, stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    usage = {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}
    message = {"role": "assistant", "content": list(content)}
    return {"output": {"message": message}, "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 1}} | more


def streamed(*content: Any, stop: str | None = "end_turn", **more: Any) -> list[dict[str, Any]]:
    """The events that make up a whole reply, a piece a character."""
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    for index, block in enumerate(content):
        ((kind, said),) = block.items()
        deltas: list[Any] = []
        if kind == "toolUse":
            start = {name: value for name, value in said.items() if name != "input"}
            events.append({"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": start}}})
            deltas = [{"toolUse": {"input": piece}} for piece in json.dumps(said["input"])]
        elif kind == "text":
            deltas = [{"text": piece} for piece in said]
        elif "redactedContent" in said:
            deltas = [{"reasoningContent": said}]
        else:
            thought = said["reasoningText"]
            deltas = [{"reasoningContent": {"text": piece}} for piece in thought["text"]]
            deltas += [{"reasoningContent": {"signature": piece}} for piece in thought.get("signature", "")]
        events += [{"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}} for delta in deltas]
        events.append({"contentBlockStop": {"contentBlockIndex": index}})
    if stop is not None:
        events.append({"messageStop": {"stopReason": stop}})
        told = whole(*content, stop=stop, **more)
        events.append({"metadata": {name: told[name] for name in told if name not in ("output", "stopReason")}})
    return [{"type": name, name: fields} for event in events for name, fields in event.items()]


def read(events: list[dict[str, Any]], model: str = "") -> list[Any]:
    decoder = BedrockCodec(model).decoder()
    return [*[found for event in events for found in decoder.feed(event)], decoder.close()]


def reply_of(body: dict[str, Any], model: str = "") -> ModelReply:
    last = BedrockCodec(model).decode_body(body)[-1]
    assert isinstance(last, ModelReply)
    return last


SIGNED = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig=="}}}
REDACTED = {"reasoningContent": {"redactedContent": b64encode(b"Eu8E==").decode()}}
CALL = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"place": "here", "n": [1, None]}}}
KINDS = [{"text": "Hällo"}, SIGNED, REDACTED, CALL]


@given(st.lists(st.sampled_from(KINDS), max_size=5), st.sampled_from(["end_turn", "tool_use", "max_tokens"]))
def test_a_stream_says_what_the_whole_reply_says(content, stop):
    events, reply = read(streamed(*content, stop=stop)), reply_of(whole(*content, stop=stop))
    ours = events[-1]
    assert [_plain(part) for part in ours.message.content] == [_plain(part) for part in reply.message.content]
    assert (ours.usage, ours.finish, ours.finish_detail) == (reply.usage, reply.finish, reply.finish_detail)
    assert "".join(one.text for one in events if isinstance(one, TextDelta)) == reply.message.text
    assert "".join(one.text for one in events if isinstance(one, ThinkingDelta)) == "hm" * content.count(SIGNED)
    calls = content.count(CALL)
    assert sum(isinstance(one, ToolCallStarted) for one in events) == calls
    assert sum(isinstance(one, ToolCallCompleted) for one in events) == calls
    assert "".join(one.json for one in events if isinstance(one, ToolCallDelta)) == calls * json.dumps(
        CALL["toolUse"]["input"]
    )


def _plain(part: Any) -> Any:
    return (part.id, part.name, json.loads(part.arguments)) if isinstance(part, kernel.ToolCall) else part


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5), st.data())
def test_a_stream_that_breaks_off_is_no_reply(content, data):
    events = streamed(*content)
    stop = next(i for i, event in enumerate(events) if event["type"] == "messageStop")
    with pytest.raises(ProtocolError, match="the stream ended"):
        read(events[: data.draw(st.integers(0, stop))])


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("malformed_model_output", "unknown"),
        ("malformed_tool_use", "unknown"),
        ("a_new_word", "unknown"),
        ("", "unknown"),
    ],
)
def test_every_stop_reason(word, finish):
    for reply in (reply_of(whole(CALL, stop=word)), read(streamed(CALL, stop=word))[-1]):
        assert (reply.finish, reply.finish_detail) == (finish, word)


def test_a_reply_is_counted_with_its_cache_and_its_service():
    usage = {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 145,
        "cacheReadInputTokens": 100,
        "cacheWriteInputTokens": 30,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 20}, {"ttl": "5m", "inputTokens": 10}],
    }
    more = {"usage": usage, "serviceTier": {"type": "flex"}, "performanceConfig": {"latency": "standard"}}
    expected = kernel.Usage(140, 5, 100, 30, cache_write_hour_tokens=20, service="flex")
    assert reply_of(whole({"text": "x"}, **more)).usage == expected
    assert read(streamed({"text": "x"}, **more))[-1].usage == expected
    fast = whole({"text": "x"}, performanceConfig={"latency": "optimized"}, serviceTier={"type": "default"})
    assert reply_of(fast).usage == kernel.Usage(7, 2, service="optimized")


@pytest.mark.parametrize("usage", [None, {}, {"inputTokens": None}, [], {"inputTokens": "x", "outputTokens": -1}])
def test_usage_that_is_not_told_is_unknown(usage):
    assert reply_of(whole({"text": "x"}, usage=usage)).usage is None


@pytest.mark.parametrize("details", [None, {}, {"ttl": "1h"}, 1, "1h", [None, "1h", {"ttl": "1h", "inputTokens": "x"}]])
def test_usage_in_other_numbers_is_read(details):
    usage = {"inputTokens": 7.0, "outputTokens": "2", "totalTokens": 9, "cacheDetails": details, "serverToolUsage": {}}
    assert reply_of(whole({"text": "x"}, usage=usage)).usage == kernel.Usage(7, 2)


def test_the_model_that_a_router_asked_is_told():
    trace = {"promptRouter": {"invokedModelId": "arn:aws:bedrock:us-east-1::foundation-model/a.b"}}
    assert reply_of(whole({"text": "x"}, trace=trace)).model.endswith("a.b")
    assert read(streamed({"text": "x"}, trace=trace))[-1].model.endswith("a.b")


CITED = {
    "citationsContent": {
        "content": [{"text": "It rains"}, {"text": " today."}],
        "citations": [{"title": "news", "location": {"documentChar": {"documentIndex": 0, "start": 1, "end": 9}}}],
    }
}
OWN_CALL = {"toolUse": {"toolUseId": "s1", "name": "nova_grounding", "input": {"q": 1}, "type": "server_tool_use"}}
OWN_RESULT = {"toolResult": {"toolUseId": "s1", "content": [{"json": {"a": 1}}], "status": "success", "type": "x"}}


@pytest.mark.parametrize(
    "block",
    [
        SIGNED,
        REDACTED,
        {"reasoningContent": {"redactedContent": b64encode(b"\xff\x00").decode()}},
        {"reasoningContent": {"newThought": {"x": 1}}},
        CALL,
        CITED,
        OWN_CALL,
        OWN_RESULT,
        {"document": {"name": "d", "format": "txt", "source": {"text": "x"}}},
        {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        {"audio": {"format": "mp3", "source": {"bytes": "eA=="}}},
        {"guardContent": {"text": {"text": "x", "qualifiers": ["query"]}}},
        {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}},
        {"cachePoint": {"type": "default"}},
        {"somethingNew": {"deep": [1, {"er": None}]}},
        {"somethingNew": "text"},
    ],
    ids=lambda block: next(iter(block)),
)
def test_every_block_goes_back_as_it_came(block):
    message = reply_of(whole({"text": "see"}, deepcopy(block), {"text": "end"})).message
    said = turns(GO, message, GO)
    assert said[1][1] == [{"text": "see"}, block, {"text": "end"}]


MAKERS = [CLAUDE, NOVA, "us.amazon.nova-2-lite-v1:0", "us.deepseek.r1-v1:0"]


@pytest.mark.parametrize("giver", MAKERS[1:])
@pytest.mark.parametrize("taker", MAKERS)
@pytest.mark.parametrize("block", [OWN_CALL, OWN_RESULT, CITED, REDACTED, {"somethingNew": "text"}])
def test_blocks_of_a_maker_of_its_own_go_to_no_other_makers_model(block, giver, taker):
    message = reply_of(whole({"text": "see"}, deepcopy(block), {"text": "end"}), giver).message
    maker = [one.split(".")[1] for one in (giver, taker)]
    cited = [{"text": "It rains today."}] if block is CITED else []
    between = [block] if maker[0] == maker[1] else cited
    assert turns(GO, message, GO, model=taker)[1][1] == [{"text": "see"}, *between, {"text": "end"}]


def test_blocks_that_were_kept_without_their_maker_go_back():
    kept = kernel.AssistantMessage((kernel.Opaque("bedrock", OWN_CALL), kernel.Opaque("bedrock", OWN_RESULT)))
    assert turns(GO, kept, GO, model=NOVA)[1][1] == [OWN_CALL, OWN_RESULT]


def test_an_image_is_the_one_block_that_does_not_go_back():
    """Converse takes images in turns of the user's alone; beside a text nothing stands for it."""
    image = {"image": {"format": "png", "source": {"bytes": "eA=="}}}
    message = reply_of(whole({"text": "see"}, image, {"text": "end"})).message
    assert turns(GO, message, GO)[1][1] == [{"text": "see"}, {"text": "end"}]


def test_cited_text_is_text():
    reply = reply_of(whole(CITED))
    assert reply.message.text == "It rains today."
    one = {"location": {"web": {"url": "u"}}}
    events = streamed({"text": "It rains."})
    cited = {"contentBlockIndex": 0, "delta": {"citation": one}}
    events.insert(3, {"type": "contentBlockDelta", "contentBlockDelta": cited})
    message = read(events)[-1].message
    assert message.text == "It rains."
    expected = {"citationsContent": {"content": [{"text": "It rains."}], "citations": [one]}}
    assert turns(GO, message, GO)[1][1] == [expected]


@pytest.mark.parametrize(("pieces", "read_as"), [([], {}), ([""], {}), (["", '{"q"', ": 1}"], {"q": 1})])
def test_a_call_that_the_provider_ran_goes_back_with_the_input_that_it_had(pieces, read_as):
    start = {"toolUseId": "s1", "name": "nova_grounding", "type": "server_tool_use"}
    events = streamed({"text": "done"})
    events[1:1] = [
        {"type": "contentBlockStart", "contentBlockStart": {"contentBlockIndex": 7, "start": {"toolUse": start}}},
        *(
            {
                "type": "contentBlockDelta",
                "contentBlockDelta": {"contentBlockIndex": 7, "delta": {"toolUse": {"input": one}}},
            }
            for one in pieces
        ),
        {"type": "contentBlockStop", "contentBlockStop": {"contentBlockIndex": 7}},
    ]
    assert turns(GO, read(events)[-1].message, GO)[1][1][0] == {"toolUse": start | {"input": read_as}}


def test_what_the_provider_ran_itself_is_no_call():
    events: list[dict[str, Any]] = streamed(OWN_CALL, {"text": "done"})
    start = {"toolResult": {"toolUseId": "s1", "type": "x", "status": "success"}}
    pieces = [{"toolResult": [{"text": "a"}]}, {"toolResult": [{"json": {"b": 1}}, {"text": "c"}]}]
    events[-4:-4] = [
        {"type": "contentBlockStart", "contentBlockStart": {"contentBlockIndex": 7, "start": start}},
        *(
            {"type": "contentBlockDelta", "contentBlockDelta": {"contentBlockIndex": 7, "delta": piece}}
            for piece in pieces
        ),
        {"type": "contentBlockStop", "contentBlockStop": {"contentBlockIndex": 7}},
    ]
    found = read(events)
    message = found[-1].message
    assert message.calls == ()
    assert not any(isinstance(event, (ToolCallStarted, ToolCallDelta, ToolCallCompleted)) for event in found)
    values = [part.value for part in message.content if isinstance(part, kernel.Opaque)]
    assert OWN_CALL in values
    content = [{"text": "a"}, {"json": {"b": 1}}, {"text": "c"}]
    assert {"toolResult": start["toolResult"] | {"content": content}} in values


def test_pieces_of_what_nobody_knows_are_kept():
    events = [
        {"type": "messageStart", "messageStart": {"role": "assistant"}},
        {
            "type": "contentBlockStart",
            "contentBlockStart": {"contentBlockIndex": 0, "start": {"image": {"format": "png"}}},
        },
        {
            "type": "contentBlockDelta",
            "contentBlockDelta": {"contentBlockIndex": 0, "delta": {"image": {"source": {"bytes": "eA=="}}}},
        },
        {"type": "contentBlockStop", "contentBlockStop": {"contentBlockIndex": 0}},
        {"type": "somethingNew", "somethingNew": {"x": 1}},
        {"type": "messageStop", "messageStop": {"stopReason": "end_turn", "additionalModelResponseFields": {"x": 1}}},
    ]
    reply = read(events)[-1]
    assert reply.message.content == (
        kernel.Opaque("bedrock", {"image": {"format": "png", "source": {"bytes": "eA=="}}}, shown="image"),
    )
    assert reply.usage is None


@pytest.mark.parametrize("content", [{"text": "yes"}, SIGNED, CALL])
def test_pieces_that_nobody_knows_spoil_no_block(content):
    events = streamed(content)
    strange: list[dict[str, Any]] = [
        {"newPiece": {"x": 1}},
        {},
        {"reasoningContent": {"newThought": 1}},
        {"text": None},
    ]
    begun = {"contentBlockIndex": 0, "start": {next(iter(content)): {}}}
    if "toolUse" in content:
        strange.pop(2)
    else:
        events.insert(1, {"type": "contentBlockStart", "contentBlockStart": begun})
    events[4:4] = [
        {"type": "contentBlockDelta", "contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}}
        for delta in strange
    ]
    assert read(events)[-1].message == read(streamed(content))[-1].message


def test_an_image_in_pieces_is_joined():
    events = streamed({"text": "see"})
    start = {"contentBlockIndex": 5, "start": {"image": {"format": "png"}}}
    pieces = [{"image": {"source": {"bytes": b64encode(piece).decode()}}} for piece in (b"abcd", b"ef")]
    events[1:1] = [
        {"type": "contentBlockStart", "contentBlockStart": start},
        *(
            {"type": "contentBlockDelta", "contentBlockDelta": {"contentBlockIndex": 5, "delta": piece}}
            for piece in pieces
        ),
    ]
    image = {"image": {"format": "png", "source": {"bytes": b64encode(b"abcdef").decode()}}}
    assert read(events)[-1].message.content[0] == kernel.Opaque("bedrock", image, shown="image")


def test_redacted_reasoning_in_pieces_is_joined():
    pieces = [b64encode(part).decode() for part in (b"abcd", b"efg")]
    events = streamed(REDACTED)
    events[1:2] = [
        {
            "type": "contentBlockDelta",
            "contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": piece}}},
        }
        for piece in pieces
    ]
    message = read(events)[-1].message
    assert message.content == (kernel.Thinking(data="abcdefg"),)


def test_claudes_reasoning_moves_between_its_hosts_and_anybody_elses_does_not():
    claude = reply_of(whole(SIGNED, REDACTED, {"text": "x"}), CLAUDE).message
    request = ModelRequest((GO, claude, GO))
    at_anthropic = json.loads(AnthropicCodec(cache=None).encode(request, "claude-sonnet-4-5", False))
    assert at_anthropic["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "Eu8E=="},
        {"type": "text", "text": "x"},
    ]
    assert turns(GO, claude, GO, model=LLAMA)[1][1] == [{"text": "x"}]
    nova = reply_of(whole(SIGNED, {"text": "x"}), "us.amazon.nova-2-lite-v1:0").message
    assert turns(GO, nova, GO, model="us.amazon.nova-2-lite-v1:0")[1][1] == [SIGNED, {"text": "x"}]
    assert turns(GO, nova, GO)[1][1] == [{"text": "x"}]
    request = ModelRequest((GO, nova, GO))
    at_anthropic = json.loads(AnthropicCodec(cache=None).encode(request, "claude-sonnet-4-5", False))
    assert at_anthropic["messages"][1]["content"] == [{"type": "text", "text": "x"}]


def test_reasoning_never_ends_a_turn_and_is_sent_back_only_signed():
    unsigned = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    message = reply_of(whole(unsigned, {"text": "x"}, SIGNED)).message
    assert turns(GO, message, GO)[1][1] == [{"text": "x"}]
    assert turns(GO, kernel.AssistantMessage((kernel.Thinking("hm", signature="s"),)), GO)[1] == (
        "assistant",
        [{"text": "(no content)"}],
    )


STRANGE: list[dict[str, Any]] = [
    {"type": "contentBlockDelta", "contentBlockDelta": {"contentBlockIndex": 0}},
    {"type": "contentBlockDelta", "contentBlockDelta": {"contentBlockIndex": 0, "delta": "x"}},
    {"type": "contentBlockDelta", "contentBlockDelta": {"contentBlockIndex": 9, "delta": {"toolUse": {"input": "x"}}}},
    {"type": "contentBlockStart", "contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {}}}},
    {"type": "contentBlockStart"},
    {"type": "messageStop", "messageStop": None},
    {"type": "metadata"},
    {"type": "messageStop", "messageStop": {}},
]


def _fed(decoder: Any, event: dict[str, Any]) -> None:
    decoder.feed(event)
    decoder.close()


@pytest.mark.parametrize("event", STRANGE, ids=str)
def test_events_of_another_shape_are_errors(event):
    decoder = BedrockCodec().decoder()
    with pytest.raises(ProtocolError):
        _fed(decoder, event)


def test_a_piece_of_text_never_becomes_a_part_of_a_call():
    events = streamed(CALL)
    events.insert(
        3, {"type": "contentBlockDelta", "contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "x"}}}
    )
    with pytest.raises(ProtocolError, match="a piece of text in a block of toolUse"):
        read(events)


FIELDS = ["text", "toolUse", "input", "name", "toolUseId", "reasoningContent", "reasoningText", "signature"]
values = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda one: st.lists(one, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), one, max_size=3),
    max_leaves=8,
)


@given(values)
def test_nothing_that_a_server_may_send_breaks_the_decoder(value):
    bodies: list[Any] = [whole(value), whole(*[value] if isinstance(value, list) else [{"toolUse": value}])]
    bodies += [{"output": value}, {"output": {"message": value}}, {"message": value}, whole({"text": "x"}, usage=value)]
    for body in bodies:
        try:
            reply = BedrockCodec().decode_body(body)[-1]
            assert isinstance(reply, ModelReply)
        except ModelError:
            pass


def test_a_call_that_was_cut_off_is_not_complete():
    events = streamed(CALL, stop="max_tokens")
    del events[-4]
    found = read(events)
    assert not any(isinstance(event, ToolCallCompleted) for event in found)
    assert found[-1].finish == "length"


def test_arguments_that_are_text_are_taken_as_the_model_wrote_them():
    call = {"toolUse": {"toolUseId": "t", "name": "look", "input": '{"place": "here"}'}}
    assert reply_of(whole(call)).message.calls == (kernel.ToolCall("t", "look", '{"place": "here"}'),)
    assert reply_of(whole({"toolUse": {"toolUseId": "t", "name": "look"}})).message.calls[0].arguments == ""


# Errors


@pytest.mark.parametrize(
    ("status", "code", "body", "kind"),
    [
        (429, "ThrottlingException", {"message": "Too many requests, please wait before trying again."}, RateLimited),
        (429, "ThrottlingException", {"message": "Too many tokens, please wait before trying again."}, RateLimited),
        (429, "ModelNotReadyException", {"message": "Model is not ready for inference."}, RateLimited),
        (400, "ValidationException", {"message": "The provided model identifier is invalid."}, BadRequest),
        (400, "ValidationException", {"message": "Input is too long for requested model."}, ContextOverflow),
        (
            400,
            "ValidationException",
            {"message": "prompt is too long: 205000 tokens > 200000 maximum"},
            ContextOverflow,
        ),
        (403, "AccessDeniedException", {"Message": "You don't have access to the model."}, AuthenticationFailed),
        (403, "UnrecognizedClientException", {"message": "The security token is invalid."}, AuthenticationFailed),
        (404, "ResourceNotFoundException", {"message": "Model use case details have not been submitted"}, BadRequest),
        (408, "ModelTimeoutException", {"message": "Model has timed out"}, ModelTimeout),
        (424, "ModelErrorException", {"message": "it failed", "originalStatusCode": 500}, Overloaded),
        (424, "ModelErrorException", {"message": "prompt is too long", "originalStatusCode": 400}, ContextOverflow),
        (500, "InternalServerException", {"message": "it broke"}, Overloaded),
        (503, "ServiceUnavailableException", {"message": "not now"}, Overloaded),
        (400, "ValidationException", {"message": "Output blocked by content filtering policy"}, ContentFiltered),
        (403, "", {"__type": "com.amazon.coral.service#AccessDenied", "Message": "no"}, AuthenticationFailed),
    ],
)
def test_errors_of_the_service_are_typed(status, code, body, kind):
    headers = {"x-amzn-errortype": f"{code}:http://internal.amazon.com/coral/", "x-amzn-requestid": "r1"}
    error = BedrockCodec().error(status, headers, body)
    assert type(error) is kind
    assert (body.get("message") or body["Message"]) in str(error)
    assert (error.status, error.request_id) == (status, "r1")


def test_errors_inside_a_stream_are_typed():
    for name, words, kind in [
        ("throttlingException", "Too many tokens, please wait", RateLimited),
        ("modelStreamErrorException", "it broke", Overloaded),
        ("internalServerException", "it broke", Overloaded),
        ("serviceUnavailableException", "not now", Overloaded),
        ("validationException", "input is too long", ContextOverflow),
        ("validationException", "no such field", BadRequest),
        ("somethingNewException", "hm", Overloaded),
    ]:
        decoder = BedrockCodec().decoder()
        with pytest.raises(ModelError, match=words) as told:
            decoder.feed({"type": "error", "error": {"type": name, "message": words, "originalStatusCode": 500}})
        assert type(told.value) is kind, name
    own = {"type": "modelStreamErrorException", "message": "it failed", "originalMessage": "out of memory"}
    with pytest.raises(Overloaded, match="it failed: out of memory"):
        BedrockCodec().decoder().feed({"type": "error", "error": own})


def test_errors_that_are_no_json_and_errors_with_status_200():
    page = BedrockCodec().error(502, {}, "<html><title>Bad gateway</title></html>")
    assert type(page) is Overloaded
    assert "Bad gateway" in str(page)
    text = BedrockCodec().error(429, {"x-amzn-errortype": "ThrottlingException"}, "Too many tokens")
    assert type(text) is RateLimited
    with pytest.raises(RateLimited, match="slow down"):
        BedrockCodec().decode_body({"__type": "ThrottlingException", "message": "slow down"})
    with pytest.raises(ProtocolError, match="no reply"):
        BedrockCodec().decode_body({"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}})
