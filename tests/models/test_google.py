"""Google's generateContent: what is asked, what is read, over a real socket and of the codec itself."""

import json
import re
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Agent, Limits, SqliteJournal, StepSettings, tool
from treadle.kernel import messages as ours
from treadle.kernel.errors import Misuse
from treadle.models import GoogleModel, Price, model_from_name
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bounds import LONGEST_REPLY
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ContextOverflow,
    ModelError,
    Overloaded,
    ProtocolError,
    RateLimited,
    ToolUseFailed,
    UnfinishedReply,
)
from treadle.models.google import GoogleCodec
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelReply, ModelRequest, TextDelta, ThinkingDelta, ToolCallCompleted, Usual
from treadle.models.prices import cost
from treadle.models.terms import asked_terms

pytestmark = pytest.mark.anyio

NEW, OLD = "gemini-3-pro-preview", "gemini-2.5-flash"
PRICE = Price(1, 1)
JSON = {"content-type": "application/json"}
LOOK = ours.ToolSpec("look", "Looks.", {"type": "object", "properties": {"place": {"type": "string"}}})
FIND = ours.ToolSpec("find", "Finds.", {"type": "object", "properties": {}})
TOLD = {"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9}
GO = ours.UserMessage("go")


def response(*parts: dict[str, Any], finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    candidate |= {} if finish is None else {"finishReason": finish}
    return {"candidates": [candidate], "usageMetadata": TOLD, "modelVersion": OLD, "responseId": "r"} | more


def call(name: str = "look", /, **args: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}}


def body_of(request: ModelRequest, model: str = OLD) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(GoogleCodec().encode(request, model, True))
    return body


def contents(*messages: Any, model: str = OLD) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body_of(ModelRequest(messages), model)["contents"]
    return found


def said(*parts: Any) -> ours.AssistantMessage:
    return ours.AssistantMessage(parts)


def read(*chunks: dict[str, Any]) -> list[Any]:
    decoder = GoogleCodec().decoder()
    return [*[event for chunk in chunks for event in decoder.feed(chunk)], decoder.close()]


def answering(*bodies: Any, streamed: bool = False, status: str = "200 OK") -> Any:
    """Answers with each of the bodies in turn, the last for ever."""

    def answer(peer: Any) -> None:
        body = bodies[min(peer.number, len(bodies) - 1)]
        if not streamed:
            peer.answer(status, JSON, json.dumps(body).encode())
            return
        peer.begin()
        for event in body:
            peer.chunk(event if isinstance(event, bytes) else f"data: {json.dumps(event)}\r\n\r\n".encode())
        peer.end()

    return answer


def gemini(server: Any, name: str = OLD, **options: Any) -> GoogleModel:
    return GoogleModel(name, **{"base_url": server.url, "api_key": "a-made-up-key", "price": PRICE} | options)


def paying(paid: list[str]) -> Any:
    @tool
    def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    return pay


# What is asked


def test_a_request_has_each_thing_in_its_place() -> None:
    settings = ours.ModelSettings(max_tokens=50, temperature=0.5, top_p=0.9, stop=("END",), seed=7)
    request = ModelRequest((ours.SystemMessage("rules"), GO), (LOOK,), settings=settings)
    assert body_of(request) == {
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "stopSequences": ["END"],
            "seed": 7,
            "maxOutputTokens": 50,
        },
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "look", "description": "Looks.", "parametersJsonSchema": LOOK.input_schema},
                ]
            }
        ],
        "systemInstruction": {"parts": [{"text": "rules"}]},
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
    }


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", None),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("look", {"mode": "ANY", "allowedFunctionNames": ["look"]}),
    ],
)
def test_the_choice_among_tools(choice: str, config: Any) -> None:
    body = body_of(ModelRequest([GO], (LOOK,), choice))
    assert body.get("toolConfig") == (None if config is None else {"functionCallingConfig": config})


def test_tools_that_a_step_takes_away_stay_described() -> None:
    usual = Usual((LOOK, FIND))
    body = body_of(ModelRequest([GO], (LOOK,), "required", usual=usual))
    assert [one["name"] for one in body["tools"][0]["functionDeclarations"]] == ["look", "find"]
    assert body["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["look"]}


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_whose_name_begins_as_no_function_of_geminis_may(serve: Any, streamed: bool) -> None:
    """Regression: Gemini refuses the request for it, as https://github.com/dust-tt/dust/pull/28212 says."""
    names, made = ["3d", "_3d", "-x", "__look"], []

    def named(name: str) -> Any:
        @tool(name=name)
        def it() -> str:
            """Draws."""
            made.append(name)
            return "drawn"

        return it

    sent = ["_3d", "__3d", "_-x", "__look"]
    calls = response(*[call(name) for name in sent])
    answers = [calls, response({"text": "Done."})]
    server = serve(answering(*[[one] for one in answers] if streamed else answers, streamed=streamed))
    result = await Agent(gemini(server, streaming=streamed), tools=[named(name) for name in names]).run("go")
    assert result.text == "Done."
    assert sorted(made) == sorted(names)
    body = json.loads(server.requests[0].body)
    assert [one["name"] for one in body["tools"][0]["functionDeclarations"]] == sent
    history = json.loads(server.requests[-1].body)["contents"]
    assert [part["functionCall"]["name"] for part in history[1]["parts"]] == sent
    assert [part["functionResponse"]["name"] for part in history[2]["parts"]] == sent
    choice = body_of(ModelRequest([GO], (LOOK,), "3d"))["toolConfig"]["functionCallingConfig"]
    assert choice["allowedFunctionNames"] == ["_3d"]


def test_results_come_first_in_their_turn_and_media_after_all_of_them() -> None:
    picture = ours.Image(data=b"png")
    turns = contents(
        GO,
        said(ours.Text("I look."), ours.ToolCall("a", "look", '{"place": "x"}'), ours.ToolCall("b", "find", "")),
        ours.UserMessage("hurry"),
        ours.ToolMessage("a", "look", (ours.Text("seen"), picture)),
        ours.ToolMessage("b", "find", "no such thing", is_error=True),
    )
    assert [turn["role"] for turn in turns] == ["user", "model", "user"]
    assert turns[1]["parts"] == [
        {"text": "I look."},
        {"functionCall": {"name": "look", "args": {"place": "x"}, "id": "a"}},
        {"functionCall": {"name": "find", "args": {}, "id": "b"}},
    ]
    assert turns[2]["parts"] == [
        {"functionResponse": {"name": "look", "response": {"output": "seen"}, "id": "a"}},
        {"functionResponse": {"name": "find", "response": {"error": "no such thing"}, "id": "b"}},
        {"text": "From the result of look:"},
        {"inlineData": {"mimeType": "image/png", "data": b64encode(b"png").decode()}},
        {"text": "hurry"},
    ]


def test_texts_that_say_nothing_are_left_out() -> None:
    assert contents(
        ours.UserMessage(" "), GO, said(ours.Text("")), ours.UserMessage((ours.Text(""), ours.Text("on")))
    ) == [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "user", "parts": [{"text": "on"}]},
    ]


def test_arguments_that_are_no_object_are_told_as_they_are() -> None:
    (part,) = contents(GO, said(ours.ToolCall("a", "look", '{"place": ')))[1]["parts"]
    assert part["functionCall"]["args"] == {"INVALID_JSON": '{"place": '}


def test_names_that_no_function_may_have_are_changed() -> None:
    """Alike in a call and its result; Gemini itself writes such as the first."""
    given = ["default_api.look", "1 look", "", "ä" * 200, "-x"]
    calls = [ours.ToolCall(f"c{place}", name) for place, name in enumerate(given)]
    turns = contents(GO, said(*calls), *[ours.ToolMessage(one.id, one.name, "x") for one in calls])
    names = [part["functionCall"]["name"] for part in turns[1]["parts"]]
    assert names[0] == given[0]
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", name) for name in names)
    assert len(set(names)) == len(names)
    assert names == [part["functionResponse"]["name"] for part in turns[2]["parts"]]


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (ours.Image(data=b"x"), {"inlineData": {"mimeType": "image/png", "data": "eA=="}}),
        (ours.Image(url="data:image/gif;base64,eA=="), {"inlineData": {"mimeType": "image/gif", "data": "eA=="}}),
        (ours.Image(url="https://a.b/c.jpg"), {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://a.b/c.jpg"}}),
        (
            ours.Image(url="gs://a/c", media_type="image/webp"),
            {"fileData": {"mimeType": "image/webp", "fileUri": "gs://a/c"}},
        ),
        (
            ours.File(data=b"x", media_type="audio/mpeg"),
            {"inlineData": {"mimeType": "audio/mpeg", "data": "eA=="}},
        ),
        (ours.File(data=b"x"), {"inlineData": {"mimeType": "application/pdf", "data": "eA=="}}),
        (
            ours.File(url="https://a.b/c.mp4?x=1"),
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.b/c.mp4?x=1"}},
        ),
        (
            ours.File(url="https://youtu.be/x"),
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}},
        ),
        (ours.File(data="ä,b".encode(), media_type="text/csv", name="t.csv"), {"text": "t.csv:\nä,b"}),
        (ours.File(data=b'{"a": 1}', media_type="application/json", name="t"), {"text": 't:\n{"a": 1}'}),
    ],
    ids=range(10),
)
def test_images_sounds_films_and_files(part: Any, sent: dict[str, Any]) -> None:
    assert contents(ours.UserMessage((part,)))[0]["parts"] == [sent]


@pytest.mark.parametrize(
    ("model", "thinking", "max_tokens", "config"),
    [
        (OLD, "none", None, {"thinkingBudget": 0, "includeThoughts": False}),
        (OLD, 0, None, {"thinkingBudget": 0, "includeThoughts": False}),
        (OLD, "low", None, {"thinkingBudget": 2048, "includeThoughts": True}),
        (OLD, 5000, None, {"thinkingBudget": 5000, "includeThoughts": True}),
        (OLD, "high", 4000, {"thinkingBudget": 2976, "includeThoughts": True}),
        (OLD, "high", 500, {"thinkingBudget": 0, "includeThoughts": False}),
        ("gemini-2.5-pro", "high", 500, {"thinkingBudget": 128, "includeThoughts": True}),
        (NEW, "low", None, {"thinkingLevel": "LOW", "includeThoughts": True}),
        (NEW, 9000, 100, {"thinkingLevel": "HIGH", "includeThoughts": True}),
        (NEW, "none", None, {"thinkingLevel": "MINIMAL", "includeThoughts": False}),
        ("gemini-flash-latest", 2000, None, {"thinkingLevel": "LOW", "includeThoughts": True}),
        (OLD, None, 100, None),
    ],
)
def test_how_hard_to_think(model: str, thinking: Any, max_tokens: int | None, config: Any) -> None:
    settings = ours.ModelSettings(thinking=thinking, max_tokens=max_tokens)
    body = body_of(ModelRequest([GO], settings=settings), model)
    assert body["generationConfig"].get("thinkingConfig") == config


@pytest.mark.parametrize(
    ("model", "thinking", "tokens", "held"),
    [
        (OLD, None, 500, 0),
        (OLD, None, 4000, 2976),
        (OLD, None, 60_000, None),
        (OLD, "low", 500, "low"),
        ("gemini-2.5-pro", None, 500, 128),
        ("gemini-2.0-flash", None, 500, None),
        ("gemini-2.5-flash-image", None, 500, None),
        (NEW, None, 500, "low"),
        (NEW, "high", 500, "low"),
        (NEW, "none", 500, "none"),
        (NEW, None, 60_000, None),
    ],
)
def test_a_reply_that_is_held_short_still_has_room_for_an_answer(
    model: str, thinking: Any, tokens: int, held: Any
) -> None:
    found = GoogleCodec().held(ours.ModelSettings(thinking=thinking), model, tokens)
    assert (found.thinking, found.max_tokens) == (held, tokens)


def test_the_length_of_a_reply_is_bounded_by_every_field_that_bounds_it() -> None:
    codec, model = GoogleCodec(), "gemini-2.0-flash"
    for extra in ({"generationConfig": {"maxOutputTokens": 9}}, {"generation_config": {"max_output_tokens": 9}}):
        settings = ours.ModelSettings(max_tokens=20, extra=extra)
        assert codec.longest(settings, model) == 9
        assert body_of(ModelRequest([GO], settings=settings), model)["generationConfig"] == {"maxOutputTokens": 9}
        held = codec.held(settings, model, 5)
        assert codec.longest(held, model) == 5
        assert body_of(ModelRequest([GO], settings=held), model)["generationConfig"] == {"maxOutputTokens": 5}
    assert codec.longest(ours.ModelSettings(), model) is None


def test_fields_of_ones_own_in_either_spelling() -> None:
    extra = {
        "safety_settings": [{"category": "X"}],
        "generation_config": {"top_k": 5},
        "tools": [{"googleSearch": {}}],
        "labels": {"my_team": "x"},
    }
    body = body_of(ModelRequest([GO], (LOOK,), settings=ours.ModelSettings(temperature=0.0, extra=extra)))
    assert body["safetySettings"] == [{"category": "X"}]
    assert body["generationConfig"] == {"temperature": 0.0, "topK": 5}
    assert [*body["tools"][0], *body["tools"][1]] == ["functionDeclarations", "googleSearch"]
    assert body["labels"] == {"my_team": "x"}


@pytest.mark.parametrize(
    "extra",
    [
        {"contents": []},
        {"generationConfig": {"candidateCount": 2}},
        {"generation_config": {"candidate_count": 2}},
        {"generationConfig": {"maxOutputTokens": "5"}},
    ],
)
def test_fields_that_make_another_request_are_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match=r"settings\.extra"):
        body_of(ModelRequest([GO], settings=ours.ModelSettings(extra=extra)))


def test_what_the_api_cannot_do_is_said() -> None:
    with pytest.raises(BadRequest, match="parallel_tool_calls"):
        body_of(ModelRequest([GO], (LOOK,), settings=ours.ModelSettings(parallel_tool_calls=False)))


def test_what_google_does_itself_has_no_bound() -> None:
    for extra, endless in (
        ({"tools": [{"googleSearch": {}}]}, "googleSearch"),
        ({"tools": [{"code_execution": {}}]}, "code_execution"),
        ({"tools": [{"functionDeclarations": []}]}, ""),
        ({"tools": [{"name": "mine", "input_schema": {}, "strict": True}]}, ""),
        ({"cachedContent": "cachedContents/x"}, "what `cachedContent` adds to the request"),
    ):
        assert asked_terms(ours.ModelSettings(extra=extra), hour=False).endless == endless
    assert asked_terms(ours.ModelSettings(extra={"serviceTier": "flex"}), hour=False).services == ("", "flex")


SCHEMA = {
    "title": "Bill",
    "type": "object",
    "$defs": {"Item": {"type": "object", "title": "Item", "properties": {"name": {"type": "string", "minLength": 1}}}},
    "properties": {
        "title": {"type": "string", "title": "Title"},
        "kind": {"const": "bill"},
        "paid": {"const": True},
        "more": {"type": "object", "properties": {"any": True}, "additionalProperties": True},
        "first": {"$ref": "#/$defs/Item", "description": "the first"},
        "rest": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "uniqueItems": True},
        "when": {"type": "string", "format": "date"},
        "who": {"type": "string", "format": "uuid", "description": "who"},
        "rate": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}], "default": None},
    },
    "required": ["title"],
    "additionalProperties": False,
}


def test_a_schema_is_sent_as_far_as_gemini_takes_it_and_the_rest_in_words() -> None:
    body = body_of(ModelRequest([GO], (ours.ToolSpec("t", "", SCHEMA),), output_schema=SCHEMA))
    config = body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
    assert config["responseJsonSchema"] == {
        "type": "object",
        "$defs": {
            "Item": {"type": "object", "properties": {"name": {"type": "string", "description": '{"minLength":1}'}}}
        },
        "properties": {
            "title": {"type": "string"},
            "kind": {"enum": ["bill"], "type": "string"},
            "paid": {"description": '{"const":true}'},
            "more": {"type": "object", "properties": {"any": {}}, "additionalProperties": True},
            "first": {"description": "the first", "anyOf": [{"$ref": "#/$defs/Item"}]},
            "rest": {
                "type": "array",
                "items": {"$ref": "#/$defs/Item"},
                "description": '{"uniqueItems":true}',
            },
            "when": {"type": "string", "format": "date"},
            "who": {"type": "string", "description": 'who {"format":"uuid"}'},
            "rate": {
                "anyOf": [{"type": "number", "description": '{"exclusiveMinimum":0}'}, {"type": "null"}],
                "description": '{"default":null}',
            },
        },
        "required": ["title"],
        "additionalProperties": False,
    }


# What is read


def test_a_stream_is_one_reply() -> None:
    events = read(
        response({"text": "hm", "thought": True}, finish=None),
        response({"text": "Hello "}, finish=None),
        response({"text": "you."}, finish=None),
        response(call(place="here"), call("find"), finish="STOP"),
        {"usageMetadata": TOLD | {"thoughtsTokenCount": 3, "totalTokenCount": 12}},
    )
    reply = events[-1]
    thought, text, first, second = reply.message.content
    assert thought == ours.Thinking("hm", id="google-thought")
    assert (text, first.name, first.arguments, second.name, second.arguments) == (
        ours.Text("Hello you."),
        "look",
        '{"place":"here"}',
        "find",
        "{}",
    )
    assert first.id != second.id
    assert (reply.finish, reply.finish_detail, reply.model, reply.request_id) == ("tool_calls", "STOP", OLD, "r")
    assert reply.usage == ours.Usage(7, 5, reasoning_tokens=3)
    assert [event for event in events if isinstance(event, (TextDelta, ThinkingDelta))] == [
        ThinkingDelta("hm"),
        TextDelta("Hello "),
        TextDelta("you."),
    ]
    assert [event.id for event in events if isinstance(event, ToolCallCompleted)] == [first.id, second.id]


def test_an_id_of_googles_goes_back_and_one_that_was_made_does_not() -> None:
    with_id = {"functionCall": {"id": "g1", "name": "look", "args": {"x": 0}}}
    again = {"functionCall": {"id": "g1", "name": "look", "args": {"x": 1}}}
    message = read(response(with_id, call("find"), again))[-1].message
    assert message.calls[0].id == "g1"
    assert len({one.id for one in message.calls}) == 3
    turns = contents(GO, message, *[ours.ToolMessage(one.id, one.name, "x") for one in message.calls])
    assert [part["functionCall"].get("id") for part in turns[1]["parts"]] == ["g1", None, None]
    assert [part["functionResponse"].get("id") for part in turns[2]["parts"]] == ["g1", None, None]


SIGNED = [
    {"text": "hm", "thought": True, "thoughtSignature": "s0s0"},
    {"text": "One."},
    {"text": "Two.", "thoughtSignature": "s1s1"},
    {"text": "Three."},
    {"functionCall": {"name": "look", "args": {"place": "x"}}, "thoughtSignature": "s2s2"},
    {"functionCall": {"name": "find", "args": {}}},
    {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s3s3"},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    {"inlineData": {"mimeType": "image/png", "data": "eA=="}, "thought": True},
    {"fileData": {"mimeType": "image/png", "fileUri": "gs://a/b"}},
    {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"q": 1}, "id": "t"}, "thoughtSignature": "s4s4"},
    {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "t"}},
    {"text": "", "thoughtSignature": "s5s5"},
]


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("model", [OLD, NEW])
def test_each_part_goes_back_as_it_came_with_its_own_signature(streamed: bool, model: str) -> None:
    if streamed:
        chunks = [response(part, finish=None) for part in SIGNED[:-1]]
        message = read(*chunks, response(SIGNED[-1]))[-1].message
    else:
        message = GoogleCodec().decode_body(response(*SIGNED))[-1].message
    assert contents(GO, message, model=model)[1]["parts"] == SIGNED
    assert message.text == "One.Two.Three."


def test_a_signature_without_a_text_belongs_to_nothing_after_it() -> None:
    message = read(response({"thoughtSignature": "s"}, {"text": "Hello."}))[-1].message
    assert contents(GO, message)[1]["parts"] == [{"text": "", "thoughtSignature": "s"}, {"text": "Hello."}]


def test_what_gemini_thought_and_signed_is_nothing_to_other_dialects() -> None:
    parts = [{"text": "I must.", "thought": True, "thoughtSignature": "s0"}, call() | {"thoughtSignature": "s1"}]
    message = read(response(*parts))[-1].message
    (made,) = message.calls
    request = ModelRequest([GO, message, ours.ToolMessage(made.id, "look", "seen")])
    for codec in (AnthropicCodec(), ChatCodec(), ResponsesCodec()):
        encoded = codec.encode(request, "m", True)
        assert b"I must." not in encoded
        assert b'"s0"' not in encoded
        assert b'"s1"' not in encoded
        assert made.id.encode() in encoded


def test_a_conversation_of_another_model_is_taken_up_by_gemini() -> None:
    """Gemini 3 refuses to be told of a call that nobody signed, but for the first of each turn."""
    other = said(
        ours.Thinking("hm", signature="s"),
        ours.Thinking("hm", id="rs_1", data="d"),
        ours.Opaque("anthropic", {"type": "x"}),
        ours.ToolCall("toolu_1", "look", "{}"),
        ours.ToolCall("toolu_2", "look", "{}"),
    )
    messages = [GO, other, ours.ToolMessage("toolu_1", "look", "x"), ours.ToolMessage("toolu_2", "look", "x")]
    assert [part.get("thoughtSignature") for part in contents(*messages, model=NEW)[1]["parts"]] == [
        "skip_thought_signature_validator",
        None,
    ]
    assert [part.get("thoughtSignature") for part in contents(*messages, model=OLD)[1]["parts"]] == [None, None]


def test_names_with_lines_are_read_as_those_with_capitals() -> None:
    def snake(value: Any) -> Any:
        if isinstance(value, list):
            return [snake(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {"".join(f"_{x.lower()}" if x.isupper() else x for x in name): snake(one) for name, one in value.items()}

    grounding = {"webSearchQueries": ["a", "b"]}
    whole = response({"text": "a", "thoughtSignature": "s"}, call(), modelVersion=NEW)
    whole["candidates"][0] |= {"groundingMetadata": grounding}
    whole["usageMetadata"] = TOLD | {"cachedContentTokenCount": 5, "toolUsePromptTokenCount": 4, "totalTokenCount": 13}
    for body in (whole, snake(whole)):
        reply = GoogleCodec().decode_body(body)[-1]
        assert (reply.finish, reply.model, reply.request_id) == ("tool_calls", NEW, "r")
        assert reply.usage == ours.Usage(11, 2, 5, web_searches=2)
        *said, cited = reply.message.content
        assert [type(part) for part in said] == [ours.Thinking, ours.Text, ours.ToolCall]
        assert list(cited.value) == ["groundingMetadata"]


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (TOLD, ours.Usage(7, 2)),
        ({"promptTokenCount": 7, "totalTokenCount": 7}, ours.Usage(7, 0)),
        ({"promptTokenCount": 7, "totalTokenCount": 10, "thoughtsTokenCount": 3}, ours.Usage(7, 3, reasoning_tokens=3)),
        ({"promptTokenCount": 7}, ours.Usage(7, 0, estimated=True)),
        ({"candidatesTokenCount": 2}, ours.Usage(0, 2, estimated=True)),
        ({"candidatesTokenCount": 2, "totalTokenCount": 9}, ours.Usage(7, 2)),
        (TOLD | {"promptTokenCount": "7", "candidatesTokenCount": 2.0}, ours.Usage(7, 2)),
        (TOLD | {"cachedContentTokenCount": 900}, ours.Usage(900, 2, 900)),
        (TOLD | {"trafficType": "ON_DEMAND"}, ours.Usage(7, 2)),
        (TOLD | {"trafficType": "ON_DEMAND_FLEX"}, ours.Usage(7, 2, service="flex")),
        (TOLD | {"serviceTier": "priority"}, ours.Usage(7, 2, service="priority")),
        (TOLD | {"serviceTier": "standard"}, ours.Usage(7, 2)),
        (TOLD | {"serviceTier": "unspecified"}, ours.Usage(7, 2)),
        (TOLD | {"trafficType": "PROVISIONED_THROUGHPUT"}, ours.Usage(7, 2, service="provisioned_throughput")),
        (
            TOLD
            | {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 2}, {"modality": "AUDIO", "tokenCount": 5}]}
            | {"cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 1}], "cachedContentTokenCount": 1}
            | {"candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 2}]},
            ours.Usage(7, 2, 1, audio_tokens=4, image_tokens=2),
        ),
        (TOLD | {"promptTokensDetails": [{"modality": "AUDIO"}, 5, {}]}, ours.Usage(7, 2)),
        ({}, None),
        (None, None),
    ],
    ids=str,
)
def test_what_a_reply_has_taken(counts: Any, usage: ours.Usage | None) -> None:
    assert GoogleCodec().decode_body(response({"text": "x"}, usageMetadata=counts))[-1].usage == usage


@pytest.mark.parametrize(("model", "searches"), [(OLD, 1), (NEW, 3)])
def test_searches_are_counted_as_they_are_charged_for(model: str, searches: int) -> None:
    chunk = response({"text": "x"}, modelVersion=model)
    chunk["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["a", "b", "c"]}
    assert read(chunk, response({"text": "y"}))[-1].usage == ours.Usage(7, 2, web_searches=searches)


FINISHES = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"),
        "content_filter",
    ),
}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("word", FINISHES)
async def test_a_reply_that_was_withheld_or_cut_carries_nothing_out(serve: Any, word: str, streamed: bool) -> None:
    paid: list[str] = []
    body = response(call("pay", to="A"), finish=word)
    server = serve(answering([body] if streamed else body, streamed=streamed))
    result = await Agent(gemini(server, streaming=streamed), tools=[paying(paid)]).run("pay A")
    assert paid == []
    assert (result.stop.reason, result.finished) == (
        FINISHES[word],
        False,
    )
    assert result.usage.output_tokens >= 2


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "word", ["OTHER", "NO_IMAGE", "TOO_MANY_TOOL_CALLS", "FINISH_REASON_UNSPECIFIED", "COSMIC_RAY"]
)
async def test_a_finish_that_nobody_knows_carries_nothing_out(serve: Any, word: str, streamed: bool) -> None:
    paid: list[str] = []
    body = response(call("pay", to="A"), finish=word)
    server = serve(answering([body] if streamed else body, streamed=streamed))
    result = await Agent(gemini(server, streaming=streamed), tools=[paying(paid)], retries=0).run("pay A")
    assert paid == []
    assert (result.stop.reason, result.finished) == ("model_error", False)
    assert isinstance(result.error, UnfinishedReply)
    assert f"'{word}'" in result.stop.detail
    assert (result.usage, result.cost) == (ours.Usage(7, 2), Decimal("0.000009"))


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_reply_without_any_finish_carries_nothing_out(serve: Any, streamed: bool) -> None:
    paid: list[str] = []
    body = response(call("pay", to="A"), finish=None)
    server = serve(answering([body] if streamed else body, streamed=streamed))
    result = await Agent(gemini(server, streaming=streamed), tools=[paying(paid)], retries=0).run("pay A")
    assert (paid, type(result.error)) == ([], ProtocolError)
    assert result.usage.input_tokens == 7
    assert result.usage.output_tokens >= 2


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("word", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
async def test_a_call_that_google_could_not_read_is_paid_for_and_asked_for_again(
    serve: Any, word: str, streamed: bool
) -> None:
    bad = response(finish=word)
    bad["candidates"][0] |= {"finishMessage": "Malformed function call: print(default_api.pay("}
    del bad["candidates"][0]["content"]
    paid: list[str] = []
    bodies = [bad, response(call("pay", to="A")), response({"text": "Done."})]
    server = serve(answering(*[[body] if streamed else body for body in bodies], streamed=streamed))
    model = gemini(server, streaming=streamed)
    result = await Agent(model, tools=[paying(paid)]).run("pay A")
    assert (result.text, paid) == ("Done.", ["A"])
    assert result.usage == ours.Usage(21, 6)
    server = serve(answering([bad] if streamed else bad, streamed=streamed))
    result = await Agent(gemini(server, streaming=streamed), retries=0).run("pay A")
    assert isinstance(result.error, ToolUseFailed)
    assert f"{word}: Malformed function call: print(default_api.pay(" in str(result.error)
    assert (result.usage, result.cost) == (ours.Usage(7, 2), Decimal("0.000009"))


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_prompt_that_was_blocked_is_no_answer(serve: Any, streamed: bool) -> None:
    body = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7},
        "modelVersion": OLD,
    }
    server = serve(answering([body] if streamed else body, streamed=streamed))
    result = await Agent(gemini(server, streaming=streamed)).run("something bad")
    assert (result.stop.reason, result.finished) == ("content_filter", False)
    assert "PROHIBITED_CONTENT" in result.stop.detail
    assert (result.usage, len(server.requests)) == (ours.Usage(7, 0), 1)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"candidates": []},
        {"candidates": None, "usageMetadata": TOLD},
        {"candidates": [{}]},
        {"candidates": [{"finishReason": 1, "content": {"parts": [{"text": "x"}]}}]},
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": 5}]}}]},
        {"candidates": [{"finishReason": "STOP", "content": {"parts": ["x"]}}]},
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"functionCall": {"args": {}}}]}}]},
        {
            "candidates": [
                {"finishReason": "STOP", "content": {"parts": [{"functionCall": {"name": "a", "args": "{}"}}]}}
            ]
        },
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"functionCall": {"name": 5}}]}}]},
        {"candidates": [{"finishReason": "STOP", "content": "x"}]},
        {"candidates": "x"},
        {"promptFeedback": {}},
        {"usageMetadata": TOLD},
    ],
    ids=str,
)
def test_what_is_no_reply_is_never_an_answer(body: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        GoogleCodec().decode_body(body)
    with pytest.raises(ProtocolError):
        read(body)


def test_an_empty_reply_that_ended_well_is_empty() -> None:
    for content in ({}, {"role": "model"}, {"parts": []}, {"parts": [{"text": ""}]}, None):
        body = {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": TOLD}
        reply = GoogleCodec().decode_body(body)[-1]
        assert (reply.message, reply.finish) == (ours.AssistantMessage(()), "stop")


@pytest.mark.parametrize("odd", [5, "x", [], [5], {"webSearchQueries": 5}, {"a": 5}, True], ids=str)
def test_no_reply_is_lost_for_what_stands_beside_it(odd: Any) -> None:
    for name in ("groundingMetadata", "citationMetadata", "safetyRatings", "finishMessage", "urlContextMetadata"):
        body = response({"text": "Whole."})
        body["candidates"][0] |= {name: odd}
        assert GoogleCodec().decode_body(body)[-1].message.text == "Whole."


def test_of_several_candidates_the_first_is_read() -> None:
    one, other = response({"text": "one"}), response({"text": "other"}, finish="SAFETY")
    other["candidates"][0]["index"] = 1
    reply = read({**one, "candidates": one["candidates"] + other["candidates"]})[-1]
    assert (reply.message.text, reply.finish) == ("one", "stop")


def test_a_stop_that_is_followed_by_more_is_not_the_end() -> None:
    """As Google says STOP when its model has written code, and again when it has seen what came of it."""
    chunks = [
        response({"executableCode": {"language": "PYTHON", "code": "1"}}),
        response({"codeExecutionResult": {"outcome": "OUTCOME_OK"}}, finish=None),
        response({"text": "It is 1."}),
    ]
    assert read(*chunks)[-1].message.text == "It is 1."
    for cut in range(3):
        with pytest.raises(ProtocolError):
            read(*chunks[:cut])
    assert read(*chunks, response(finish=None), response({"text": ""}, finish=None))[-1].finish == "stop"


# Arguments in pieces


def pieces(*found: dict[str, Any], more: bool = True) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": list(found)} | ({"willContinue": True} if more else {})}


def test_arguments_in_pieces_are_put_together() -> None:
    events = read(
        response({"functionCall": {"name": "look", "willContinue": True}, "thoughtSignature": "s"}, finish=None),
        response(pieces({"jsonPath": "$.place", "stringValue": "New ", "willContinue": True}), finish=None),
        response(pieces({"jsonPath": "$.place", "stringValue": "York"}), finish=None),
        response(pieces({"jsonPath": "$.stops[0].name", "stringValue": "a"}), finish=None),
        response(pieces({"jsonPath": "$.stops[0]['at']", "numberValue": 1.5}), finish=None),
        response(pieces({"jsonPath": "$.stops[1]", "nullValue": "NULL_VALUE"}), finish=None),
        response(pieces({"jsonPath": "$.now", "boolValue": True}), {"functionCall": {}}, call("find"), finish="STOP"),
    )
    first, second = events[-1].message.calls
    assert json.loads(first.arguments) == {
        "place": "New York",
        "stops": [{"name": "a", "at": 1.5}, None],
        "now": True,
    }
    assert (second.name, second.arguments) == ("find", "{}")
    assert [event.id for event in events if isinstance(event, ToolCallCompleted)] == [first.id, second.id]


async def test_arguments_whose_pieces_broke_off_are_never_carried_out(serve: Any) -> None:
    paid: list[str] = []
    chunks = [
        response({"functionCall": {"name": "pay", "willContinue": True}}, finish=None),
        response(pieces({"jsonPath": "$.to", "stringValue": "A", "willContinue": True}), finish="STOP"),
    ]
    result = await Agent(gemini(serve(answering(chunks, streamed=True))), tools=[paying(paid)], retries=0).run("pay")
    assert (paid, type(result.error)) == ([], ProtocolError)


@pytest.mark.parametrize(
    "piece",
    [{}, {"jsonPath": "$"}, {"jsonPath": "place"}, {"jsonPath": "$.a[5]"}, {"jsonPath": "$.a.b"}, {"jsonPath": "$..a"}],
    ids=str,
)
def test_pieces_that_have_no_place_are_refused(piece: dict[str, Any]) -> None:
    begun = response({"functionCall": {"name": "look", "args": {"a": [1]}, "willContinue": True}}, finish=None)
    with pytest.raises(ProtocolError):
        read(begun, response(pieces(piece | {"stringValue": "x"}, more=False)))


KEYS = st.text("abc'\\ .[é", min_size=1, max_size=4)
VALUES = st.recursive(
    st.text(max_size=4) | st.booleans() | st.none() | st.floats(-9, 9),
    lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=3),
    max_leaves=8,
)


def leaves(value: Any, path: str) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        quoted = {key: key.replace("\\", "\\\\").replace("'", "\\'") for key in value}
        return [leaf for key, one in value.items() for leaf in leaves(one, f"{path}['{quoted[key]}']")]
    if isinstance(value, list):
        return [leaf for place, one in enumerate(value) for leaf in leaves(one, f"{path}[{place}]")]
    if isinstance(value, str):
        return [{"jsonPath": path, "stringValue": piece} for piece in (value[:1], value[1:])]
    if value is None:
        return [{"jsonPath": path, "nullValue": "NULL_VALUE"}]
    return [{"jsonPath": path, "boolValue" if isinstance(value, bool) else "numberValue": value}]


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_any_arguments_come_together_from_their_pieces(arguments: dict[str, Any]) -> None:
    begun = response({"functionCall": {"name": "look", "willContinue": True}}, finish=None)
    chunks = [response(pieces(piece), finish=None) for piece in leaves(arguments, "$")]
    (found,) = read(begun, *chunks, response({"functionCall": {}}))[-1].message.calls
    assert json.loads(found.arguments) == arguments


# Errors


def fault(code: Any, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


INFO = "type.googleapis.com/google.rpc."
BAD_KEY = fault(
    400,
    "INVALID_ARGUMENT",
    "API key not valid. Please pass a valid API key.",
    {"@type": f"{INFO}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
)
SLOW = fault(
    429,
    "RESOURCE_EXHAUSTED",
    "You exceeded your current quota.",
    {"@type": f"{INFO}QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerMinute"}]},
    {"@type": f"{INFO}RetryInfo", "retryDelay": "46.5s"},
)


@pytest.mark.parametrize(
    ("body", "kind", "wait"),
    [
        (BAD_KEY, AuthenticationFailed, None),
        (SLOW, RateLimited, 46.5),
        (fault(429, "RESOURCE_EXHAUSTED", "Quota exceeded.\nPlease retry in 10h17m5.7s."), RateLimited, 37025.7),
        (fault(403, "PERMISSION_DENIED", "no"), AuthenticationFailed, None),
        (fault(401, "UNAUTHENTICATED", "no"), AuthenticationFailed, None),
        (fault(404, "NOT_FOUND", "models/x is not found for API version v1beta"), BadRequest, None),
        (fault(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), BadRequest, None),
        (
            fault(400, "INVALID_ARGUMENT", "The input token count (2000001) exceeds the maximum number of tokens (9)."),
            ContextOverflow,
            None,
        ),
        (fault(500, "INTERNAL", "An internal error has occurred."), Overloaded, None),
        (fault(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), Overloaded, None),
        (fault(504, "DEADLINE_EXCEEDED", "Deadline expired."), Overloaded, None),
        (fault(499, "CANCELLED", "The operation was cancelled."), Overloaded, None),
    ],
    ids=range(12),
)
def test_errors_have_their_type_over_http_and_inside_a_stream(
    body: dict[str, Any], kind: type[ModelError], wait: float | None
) -> None:
    status = body["error"]["code"]
    found = [GoogleCodec().error(status, {}, body)]
    for code in (status, str(status)):
        with pytest.raises(ModelError) as caught:
            GoogleCodec().decoder().feed({"error": body["error"] | {"code": code}})
        found.append(caught.value)
    for error in found:
        assert type(error) is kind
        assert error.retry_after == wait
        assert body["error"]["message"].splitlines()[0] in str(error)


def test_an_error_without_a_number_is_typed_by_its_word() -> None:
    with pytest.raises(RateLimited):
        GoogleCodec().decoder().feed({"error": {"status": "RESOURCE_EXHAUSTED", "message": "slow"}})
    with pytest.raises(Overloaded, match="busy"):
        GoogleCodec().decoder().feed({"error": "busy"})


@pytest.mark.parametrize("bare", [True, False])
async def test_an_error_in_the_middle_of_a_stream_is_no_short_answer(serve: Any, bare: bool) -> None:
    """Google writes it as an event, or as lines of JSON that are none."""
    error = fault(503, "UNAVAILABLE", "This model is currently experiencing high demand.")
    last: Any = json.dumps(error, indent=2).encode() if bare else error
    begun = response({"text": "Half of"}, finish=None, usageMetadata={"promptTokenCount": 7, "totalTokenCount": 7})
    server = serve(answering([begun, last], [response({"text": "Whole."})], streamed=True))
    result = await Agent(gemini(server), retries=0).run("go")
    assert (type(result.error), result.error.status) == (Overloaded, 503)
    assert "experiencing high demand" in str(result.error)
    assert result.usage.input_tokens == 7
    assert result.usage.estimated
    assert (await Agent(gemini(server)).run("go")).text == "Whole."


async def test_a_wrong_key_is_said_without_being_shown(serve: Any) -> None:
    key = "AQ.Ab8RN6-a-new-form-of-key-0123"
    body = fault(400, "INVALID_ARGUMENT", f"API key not valid: {key}. Please pass a valid API key.")
    server = serve(answering(body, status="400 Bad Request"))
    result = await Agent(gemini(server, api_key=key)).run("go")
    assert isinstance(result.error, AuthenticationFailed)
    assert key not in str(result.error)
    assert key not in repr(result)
    assert "Check the key given as api_key=" in str(result.error)
    (request,) = server.requests
    assert (request.headers["x-goog-api-key"], "key=" in request.path) == (key, False)


# Where requests go


@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        (OLD, True, f"/models/{OLD}:streamGenerateContent?alt=sse"),
        (OLD, False, f"/models/{OLD}:generateContent"),
        ("tunedModels/mine", False, "/tunedModels/mine:generateContent"),
        ("a?key=b#c", False, "/models/a%3Fkey%3Db%23c:generateContent"),
    ],
)
def test_the_path_has_the_model_and_how_it_is_to_reply(model: str, stream: bool, path: str) -> None:
    assert GoogleCodec().path(model, stream) == path


@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
@pytest.mark.parametrize(
    "name", ["google:gemini-2.5-flash", "gemini:gemini-2.5-flash", "google:models/gemini-2.5-flash"]
)
async def test_a_name_and_either_key_of_the_environment(
    serve: Any, name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(other, raising=False)
    with pytest.raises(Misuse, match="GEMINI_API_KEY"):
        model_from_name(name)
    server = serve(answering([response({"text": "Hello."})], streamed=True))
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url.removesuffix("/v1"))
    monkeypatch.setenv("GEMINI_API_KEY", "the-first-key")
    monkeypatch.setenv(variable, "the-other-key")
    model = model_from_name(name)
    assert isinstance(model, GoogleModel)
    assert model.name == "google:gemini-2.5-flash"
    assert (await Agent(model).run("go")).text == "Hello."
    (request,) = server.requests
    assert request.path == "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == "the-other-key"


async def test_white_space_around_an_address_without_the_version_is_no_part_of_it(serve: Any) -> None:
    server = serve(answering([response({"text": "Hello."})], streamed=True))
    model = gemini(server, base_url=f" {server.url.removesuffix('/v1')} \n")
    assert (await Agent(model).run("go")).text == "Hello."
    assert server.requests[0].path.startswith("/v1beta/models/")


def test_prices_and_windows_are_those_of_the_table() -> None:
    assert (
        cost("gemini:gemini-2.5-pro", ours.Usage(1_000_000))
        == cost("google:gemini-2.5-pro", ours.Usage(1_000_000))
        is not None
    )
    for name, options in ((OLD, {"api_key": "k"}), (f"models/{OLD}", {"project": "p", "token": str})):
        model = GoogleModel(name, **options)
        assert model.profile.context_window == 1_048_576
        assert model.cost(ours.Usage(1_000_000, 1_000_000, 500_000)) == Decimal("2.665")
        assert model.cost(ours.Usage(1, 1, service="flex")) is None
        assert model.cost(ours.Usage(1_000_000, audio_tokens=400_000)) == Decimal("0.58")
    drawing = GoogleModel("gemini-2.5-flash-image", api_key="k")
    assert drawing.cost(ours.Usage(0, 1_000_000, image_tokens=900_000)) == Decimal("27.25")
    own = GoogleModel(OLD, api_key="k", price=Price(1, 2, audio=10, image=20))
    assert own.cost(ours.Usage(1_000_000, 1_000_000, audio_tokens=500_000, image_tokens=500_000)) == Decimal("16.5")


@pytest.mark.parametrize(
    ("location", "address"),
    [
        ("global", "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google"),
        (
            "europe-west1",
            "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers",
        ),
        ("eu", "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google"),
    ],
)
def test_vertex_is_where_the_location_says(location: str, address: str) -> None:
    assert address in repr(GoogleModel(OLD, project="p", location=location, token=str))
    own = GoogleModel("endpoints/7", project="p", location=location, token=str)
    assert "publishers" not in repr(own)


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_token_is_asked_for_before_each_request(serve: Any, asynchronous: bool) -> None:
    given = iter(["ya29.first-token", "ya29.second-token"])

    def token() -> str:
        return next(given)

    async def token_async() -> str:
        return next(given)

    server = serve(answering([response(call("look", key="x"))], [response({"text": "Done."})], streamed=True))

    @tool(effect="read")
    def look(key: str) -> str:
        """Looks."""
        return "seen"

    model = GoogleModel(OLD, base_url=server.url, token=token_async if asynchronous else token)
    assert (await Agent(model, tools=[look]).run("go")).text == "Done."
    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer ya29.first-token",
        "Bearer ya29.second-token",
    ]
    assert all("x-goog-api-key" not in request.headers for request in server.requests)


async def test_a_token_that_was_refused_or_is_none_is_said(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "of-the-environment")
    body = fault(401, "UNAUTHENTICATED", "Request had invalid authentication credentials: ya29.wrong-token.")
    server = serve(answering(body, status="401 Unauthorized"))

    def broken() -> str:
        raise OSError("no credentials here")

    for token, words in (
        (lambda: "ya29.wrong-token", "Check the access token"),
        (broken, "OSError: no credentials here"),
        (lambda: "", "gave nothing"),
        (lambda: None, "gave nothing"),
        (lambda: "a\nb", "gave nothing"),
    ):
        result = await Agent(GoogleModel(OLD, base_url=server.url, token=token)).run("go")
        assert isinstance(result.error, AuthenticationFailed)
        assert words in str(result.error)
        assert "wrong-token" not in str(result.error)
    assert all("x-goog-api-key" not in request.headers for request in server.requests)


async def test_a_token_that_another_has_taken_the_place_of_is_not_told_either(serve: Any) -> None:
    """A request that is under way has it still."""
    given = iter(["ya29.first-token", "ya29.second-token"])
    body = fault(403, "PERMISSION_DENIED", "not with ya29.FIRST-token, nor ya29.second-token")
    server = serve(answering(body, status="403 Forbidden"))
    model = GoogleModel(OLD, base_url=server.url, token=lambda: next(given))
    for _ in range(2):
        result = await Agent(model, retries=0).run("go")
    assert "token, nor" not in str(result.error)
    assert "first-token" not in str(result.error).lower()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"client": object()}, "takes no client="),
        ({"project": "p"}, "with token="),
        ({"project": "p", "token": str, "base_url": "http://x/v1"}, "without base_url="),
        ({"project": "a/b", "token": str}, "takes project as"),
        ({"project": "p", "location": "x.evil.com/", "token": str}, "takes location as"),
        ({"token": "ya29.secret"}, "token= as a function"),
        ({"token": str, "api_key": "k"}, "either token= or api_key="),
        ({"base_url": "nonsense", "api_key": "k"}, "base_url is an address"),
        ({"base_url": "http://u:p@x", "api_key": "k"}, "takes no user"),
    ],
    ids=range(9),
)
def test_options_that_exclude_one_another_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words) as caught:
        GoogleModel(OLD, **options)
    assert "secret" not in str(caught.value)


# Whole runs


async def test_a_run_with_parallel_calls_sends_back_what_came(serve: Any) -> None:
    parts = [call("look", key="a") | {"thoughtSignature": "s"}, call("look", key="b")]

    @tool(effect="read")
    def look(key: str) -> str:
        """Looks."""
        return f"value of {key}"

    server = serve(answering([response(*parts)], [response({"text": "Done."})], streamed=True))
    result = await Agent(gemini(server, NEW), tools=[look]).run("go")
    assert (result.text, result.usage) == ("Done.", ours.Usage(14, 4))
    turns = json.loads(server.requests[1].body)["contents"]
    assert turns[1] == {"role": "model", "parts": parts}
    assert [part["functionResponse"] for part in turns[2]["parts"]] == [
        {"name": "look", "response": {"output": "value of a"}},
        {"name": "look", "response": {"output": "value of b"}},
    ]


async def test_an_answer_of_a_type_is_asked_for_natively_where_that_leaves_tools_usable(serve: Any) -> None:
    @tool(effect="read")
    def look(key: str) -> str:
        """Looks."""
        return key

    for model, tools, native in ((OLD, [], True), (OLD, [look], False), (NEW, [look], True)):
        reply = {"text": "[1]"} if native else call("final_answer", result=[1], value=[1], response=[1])
        server = serve(answering([response(reply)], streamed=True))
        await Agent(gemini(server, model), tools=tools, output=list[int], limits=Limits(steps=1)).run("go")
        body = json.loads(server.requests[0].body)
        assert ("responseJsonSchema" in body["generationConfig"]) is native
        assert ("final_answer" in json.dumps(body.get("tools", []))) is (not native)


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_image_that_a_model_drew_is_kept_as_it_came(serve: Any, streamed: bool) -> None:
    """It is longer than any text may be."""
    drawn = {"inlineData": {"mimeType": "image/png", "data": b64encode(b"p" * LONGEST_REPLY).decode()}}
    body = response({"text": "Here it is."}, drawn)
    server = serve(answering([body] if streamed else body, [response({"text": "Yes."})], streamed=streamed))
    model = gemini(server, "gemini-2.5-flash-image", streaming=streamed)
    result = await Agent(model).run("draw")
    assert result.text == "Here it is."
    assert result.messages[-1].content[-1] == ours.Opaque("google", drawn, shown="image")


async def test_the_budget_of_a_run_bounds_its_replies(serve: Any) -> None:
    server = serve(answering([response({"text": "Hello."})], streamed=True))
    agent = Agent(gemini(server), limits=Limits(tokens=2_000))
    assert (await agent.run("go")).finished
    most = json.loads(server.requests[0].body)["generationConfig"]["maxOutputTokens"]
    assert 0 < most < 2_000


async def test_another_gemini_may_answer_a_step(serve: Any) -> None:
    server = serve(answering([response({"text": "Hello."})], streamed=True))
    other = gemini(server, "gemini-2.5-pro")
    agent = Agent(gemini(server), prepare_step=lambda context: StepSettings(model=other))
    assert (await agent.run("go")).text == "Hello."
    assert server.requests[0].path.startswith("/v1/models/gemini-2.5-pro:")


def test_a_reply_is_a_model_reply() -> None:
    assert isinstance(read(response({"text": "x"}))[-1], ModelReply)


# What Google's own SDK makes of it


def test_what_is_asked_is_what_the_official_sdk_knows() -> None:
    types = pytest.importorskip("google.genai.types")
    settings = ours.ModelSettings(20, 0.5, 0.9, ("END",), 7, "low")
    message = read(response(*SIGNED))[-1].message
    results = [ours.ToolMessage(one.id, one.name, (ours.Text("x"), ours.Image(data=b"x"))) for one in message.calls]
    media = ours.UserMessage((ours.Image(url="https://a.b/c.png"), ours.File(data=b"x")))
    for model in (OLD, NEW):
        request = ModelRequest([GO, message, *results, media], (LOOK,), "look", settings, SCHEMA)
        body = body_of(request, model)
        for turn in body.pop("contents"):
            types.Content.model_validate(turn)
        types.GenerationConfig.model_validate(body.pop("generationConfig"))
        types.ToolConfig.model_validate(body.pop("toolConfig"))
        for one in body.pop("tools"):
            types.Tool.model_validate(one)
        assert body == {}


def test_every_finish_of_the_official_sdk_has_a_meaning() -> None:
    """One that the SDK knows and treadle does not is an error, and is decided here."""
    types = pytest.importorskip("google.genai.types")
    known = FINISHES.keys() | {"STOP", "ESCALATION", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"}
    errors = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"}
    errors |= {"PUP_LIMITED_DISABLED"}
    refused = {"OTHER", "NO_IMAGE", "IMAGE_OTHER", "TOO_MANY_TOOL_CALLS", "FINISH_REASON_UNSPECIFIED"}
    assert {one.value for one in types.FinishReason} <= known | errors | refused
    for word in known:
        assert read(response({"text": "x"}, finish=word))[-1].finish != "unknown"
    for word in errors:
        with pytest.raises(ModelError, match=word):
            read(response({"text": "x"}, finish=word))
    for word in refused:
        assert read(response({"text": "x"}, finish=word))[-1].finish == "unknown"


async def test_a_run_that_was_paused_goes_on_with_what_gemini_signed(serve: Any, tmp_path: Any) -> None:
    """Out of a file, in another agent; a journal that redacts leaves signatures as they are."""
    part = {"functionCall": {"name": "pay", "args": {"to": "A"}}, "thoughtSignature": "c2VjcmV0c2VjcmV0"}
    thought = {"text": "I must pay.", "thought": True, "thoughtSignature": "dGhvdWdodA=="}
    paid: list[str] = []

    @tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    server = serve(answering([response(thought, part)], [response({"text": "Done."})], streamed=True))
    path = tmp_path / "runs.db"

    def agent() -> Agent[Any, Any]:
        journal = SqliteJournal(path, redact=lambda text: re.sub("c2VjcmV0|dGhvdWdodA", "***", text))
        return Agent(gemini(server, NEW), tools=[pay], journal=journal)

    paused = await agent().run("pay A")
    assert (paused.stop.reason, paid) == ("waiting", [])
    result = await agent().resume(paused.run_id, approve=paused.pending)
    assert (result.text, paid) == ("Done.", ["A"])
    assert json.loads(server.requests[1].body)["contents"][1]["parts"] == [thought, part]
