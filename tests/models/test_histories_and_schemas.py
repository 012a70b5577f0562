"""What a history begins with, what a schema may hold, what order calls have, and the tools that a run goes on with."""

import json
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model

from treadle import (
    Agent,
    ClearToolResults,
    Conversation,
    Limits,
    MemoryJournal,
    Retries,
    StepContext,
    StepSettings,
    Summarise,
    Text,
    Usage,
    tool,
)
from treadle.context.texts import estimate_text
from treadle.kernel.events import ModelFailed
from treadle.kernel.messages import ToolSpec, UserMessage
from treadle.models import (
    AnthropicModel,
    AssistantMessage,
    FallbackModel,
    ModelReply,
    OpenAIChatModel,
    OpenAIResponsesModel,
    TextDelta,
    ToolCall,
)
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bedrock import BedrockCodec
from treadle.models.bedrock_model import BedrockModel
from treadle.models.fixed import described
from treadle.models.google_model import GoogleModel
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


MESSAGES = {
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
CHAT = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2},
}
RESPONSES = {
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hello."}]}],
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
GOOGLE = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2},
}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Hello."}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11},
}


def answering(serve: Any, body: Any) -> Any:
    return serve(lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body).encode()))


def sent(server: Any) -> Any:
    return json.loads(server.requests[-1].body)


def streamed(serve: Any, *chunks: Any) -> Any:
    def script(peer: Any) -> None:
        peer.begin()
        for chunk in chunks:
            peer.chunk(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        peer.end()

    return serve(script)


GREETERS = {
    "anthropic": (lambda url: AnthropicModel("claude-sonnet-4-5", base_url=url, api_key="k"), MESSAGES, "messages"),
    "google": (lambda url: GoogleModel("gemini-2.5-flash", base_url=url, api_key="k"), GOOGLE, "contents"),
    "google-3": (lambda url: GoogleModel("gemini-3-pro", base_url=url, api_key="k"), GOOGLE, "contents"),
    "bedrock": (lambda url: BedrockModel("m", base_url=url, api_key="k", streaming=False), CONVERSE, "messages"),
}


@pytest.mark.parametrize("dialect", GREETERS)
async def test_a_conversation_that_the_model_began_is_sent_with_a_user_before_it(serve, dialect):
    """These three refuse with HTTP 400 what does not begin with the user."""
    make, body, field = GREETERS[dialect]
    server = answering(serve, body)
    agent = Agent(make(server.url), instructions="Be brief.")
    talk = Conversation()
    talk.add_assistant("Good day! How can I help?")

    for question in ("What is the time?", "And now?"):
        result = await agent.run(question, conversation=talk)
        assert result.text == "Hello.", result.error
        turns = sent(server)[field]
        assert [turn["role"] for turn in turns[:3]] == ["user", "model" if field == "contents" else "assistant", "user"]
        assert all(turn.get("parts") or turn.get("content") for turn in turns)
        assert [one["role"] == turns[0]["role"] for one in turns] == [place % 2 == 0 for place in range(len(turns))]
    assert talk.messages[0].role == "assistant"


async def test_a_user_who_begins_has_nobody_before_them(serve):
    server = answering(serve, MESSAGES)
    await Agent(AnthropicModel("claude-sonnet-4-5", base_url=server.url, api_key="k")).run("Hello?")
    (turn,) = sent(server)["messages"]
    assert turn["content"][0]["text"] == "Hello?"


class Node(BaseModel):
    name: str
    kids: list["Node"] = []


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Plain(BaseModel):
    inner: Inner
    words: list[str]
    which: Literal["a", "b"] | None


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Whatever(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: Any


class Described(BaseModel):
    model_config = ConfigDict(extra="forbid")
    inner: Annotated[Inner, Field(description="what is in it")]


def of_fields(optional: int = 0, unions: int = 0) -> type[BaseModel]:
    """A type with so many fields that may be left out, half of them further in, and so many that may be null."""
    left_out: dict[str, Any] = {f"o{i}": (int, i) for i in range(optional)}
    null: dict[str, Any] = {f"u{i}": (int | None, ...) for i in range(unions)}
    inner = create_model("Inside", **dict([*left_out.items()][::2]), **dict([*null.items()][::2]))
    return create_model(
        f"With{optional}And{unions}",
        inside=(list[inner], ...),
        **dict([*left_out.items()][1::2]),
        **dict([*null.items()][1::2]),
    )


@pytest.mark.parametrize(
    ("kind", "held"),
    [(Plain, True), (int, True), (list[Plain], True), (Described, True), (of_fields(24, 16), True)]
    + [(of_fields(optional=25), False), (of_fields(unions=17), False)]
    + [(kind, False) for kind in (Node, Free, Whatever, dict[str, int], dict[str, Any], list[dict[str, Plain]], Any)],
)
@pytest.mark.parametrize("mode", ["native", "prompted"])
async def test_anthropic_is_held_to_a_schema_that_it_takes_and_told_of_any_other(serve, kind, held, mode):
    """It refuses free keys, recursion, parts that may be anything, and more choices than it takes, with the request."""
    server = answering(serve, MESSAGES)
    model = AnthropicModel("claude-sonnet-4-5", base_url=server.url, api_key="k")
    await Agent(model, output=kind, output_mode=mode, limits=Limits(steps=1)).run("Go.")
    body = sent(server)
    assert ("format" in body.get("output_config", {})) == (held and mode == "native")
    assert "JSON Schema" in body["system"][0]["text"]


A_OR_B = [
    {"properties": {"a": {"type": "string"}, "kind": {"const": "a"}}, "required": ["a"]},
    {"properties": {"b": {"type": "integer"}, "kind": {"const": "b"}}, "required": ["b"]},
]


def sent_tool(dialect, body):
    match dialect:
        case "chat":
            (one,) = body["tools"]
            return one["function"]["description"], one["function"]["parameters"]
        case "responses":
            (one,) = body["tools"]
            return one["description"], one["parameters"]
        case "anthropic":
            (one,) = body["tools"]
            return one["description"], one["input_schema"]
        case _:
            (one,) = body["toolConfig"]["tools"]
            return one["toolSpec"]["description"], one["toolSpec"]["inputSchema"]["json"]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf", "not", "enum"])
@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "bedrock"])
def test_one_tool_with_a_choice_at_the_top_of_its_schema_spoils_no_request(dialect, keyword):
    """OpenAI and Anthropic refuse each request that describes one; servers of MCP list them."""
    rule = {"not": {"required": ["x"]}, "enum": [{"x": "1"}]}.get(keyword, A_OR_B)
    schema = {"properties": {"x": {"type": "string"}}, keyword: rule}
    spec = ToolSpec("t", "Does it.", schema)
    codec = {"chat": ChatCodec("p"), "responses": ResponsesCodec(), "anthropic": AnthropicCodec(),
             "bedrock": BedrockCodec()}[dialect]  # fmt: skip
    words, sent_schema = sent_tool(
        dialect, json.loads(codec.encode(ModelRequest((UserMessage("go"),), (spec,)), "m", False))
    )
    assert sent_schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "not", "enum"} & sent_schema.keys()
    assert (
        words == f"Does it. The arguments have to fit this, too: {json.dumps({keyword: rule}, separators=(',', ':'))}"
    )
    named = {"a": {"type": "string"}, "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "b": {"type": "integer"}}
    assert sent_schema["properties"] == (named if rule is A_OR_B else {}) | {"x": {"type": "string"}}
    plain = ToolSpec("t", "Does it.", {"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}]}}})
    body = json.loads(codec.encode(ModelRequest((UserMessage("go"),), (plain,)), "m", False))
    assert sent_tool(dialect, body) == ("Does it.", plain.input_schema)


def test_the_arguments_are_described_of_a_choice_by_reference_and_of_one_in_another():
    """So Pydantic writes a union: a provider that shows a model the properties alone would have shown it none."""
    node = {"properties": {"kind": {"const": "n"}, "next": {"$ref": "#/$defs/N"}}, "oneOf": [{"$ref": "#/$defs/N"}]}
    inner = {"allOf": [{"properties": {"x": {"type": "string"}}}, {"anyOf": [{"properties": {"y": {}}}, True]}]}
    schema = {"oneOf": [{"$ref": "#/$defs/N"}, inner, {"$ref": "#/gone"}], "$defs": {"N": node}}
    request = ModelRequest((UserMessage("go"),), (ToolSpec("t", "", schema),))
    body = json.loads(ResponsesCodec().encode(request, "m", False))
    _, sent_schema = sent_tool("responses", body)
    assert sent_schema["properties"] == node["properties"] | {"x": {"type": "string"}, "y": {}}


@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "bedrock"])
@pytest.mark.parametrize("closing", ["additionalProperties", "unevaluatedProperties"])
@pytest.mark.parametrize("name", ["filter[id]", "größe", "$.xgafv", "x" * 65, ""])
def test_one_argument_with_a_name_that_claude_does_not_take_spoils_no_request(dialect, closing, name):
    """Anthropic refuses each request that describes it; the model is told of it in words, and can give it."""
    schema = {
        "type": "object",
        "properties": {"a.b-c": {"type": "string"}, name: {"type": "integer"}},
        "required": [name, "a.b-c"],
        closing: False,
    }
    spec = ToolSpec("t", "Does it.", schema)
    codec = {"chat": ChatCodec("p"), "responses": ResponsesCodec(), "anthropic": AnthropicCodec(),
             "bedrock": BedrockCodec()}[dialect]  # fmt: skip
    body = json.loads(codec.encode(ModelRequest((UserMessage("go"),), (spec,)), "m", False))
    words, sent_schema = sent_tool(dialect, body)
    if dialect in ("chat", "responses"):
        assert (words, sent_schema) == ("Does it.", schema)
        return
    assert sent_schema == {"type": "object", "properties": {"a.b-c": {"type": "string"}}, "required": ["a.b-c"]}
    _, _, rules = words.partition("The arguments have to fit this, too: ")
    assert json.loads(rules) == {"properties": {name: {"type": "integer"}}, "required": [name]}
    assert described((spec,), None) >= estimate_text(f"t{words}{json.dumps(sent_schema)}")


async def test_a_dict_comes_back_from_anthropic(serve):
    server = answering(serve, MESSAGES | {"content": [{"type": "text", "text": '{"result": 1, "b": 2}'}]})
    model = AnthropicModel("claude-sonnet-4-5", base_url=server.url, api_key="k")
    assert (await Agent(model, output=dict[str, int], output_mode="native").run("Go.")).output == {"result": 1, "b": 2}


@pytest.mark.parametrize(("kind", "strict"), [(Inner, True), (Whatever, False), (Described, False), (Any, False)])
async def test_openai_is_strict_only_where_each_part_has_a_type_or_a_bare_reference(serve, kind, strict):
    server = answering(serve, CHAT)
    await Agent(OpenAIChatModel("m", base_url=server.url, api_key="k"), output=kind, limits=Limits(steps=1)).run("Go.")
    assert sent(server)["response_format"]["json_schema"].get("strict", False) == strict

    server = answering(serve, RESPONSES)
    model = OpenAIResponsesModel("m", base_url=server.url, api_key="k")
    await Agent(model, output=kind, limits=Limits(steps=1)).run("Go.")
    assert sent(server)["text"]["format"]["strict"] == strict


def called(*entries: Any, finish: str | None = None) -> Any:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(entries)}, "finish_reason": finish}]}


def entry(index: int | None, call: str, arguments: str = "{}") -> Any:
    one = {"id": call, "function": {"name": "write_down", "arguments": json.dumps({"word": call})}}
    return one if index is None else one | {"index": index}


@pytest.mark.parametrize(
    ("chunks", "order"),
    [
        ([called(entry(1, "b")), called(entry(0, "a"))], ["a", "b"]),
        ([called(entry(2, "c"), entry(0, "a")), called(entry(1, "b"))], ["a", "b", "c"]),
        # Some servers number all calls alike, begin anew in each chunk, or do not number them.
        ([called(entry(0, "b")), called(entry(0, "a"))], ["b", "a"]),
        ([called(entry(0, "b"), entry(1, "c")), called(entry(0, "a"))], ["b", "c", "a"]),
        ([called(entry(None, "b")), called(entry(None, "a"))], ["b", "a"]),
    ],
)
async def test_calls_of_chat_are_made_in_the_order_of_their_numbers(serve, chunks, order):
    """Writes are made one after the other, as they were asked for; a reply that is not streamed has them so."""
    written: list[str] = []

    @tool
    def write_down(word: str) -> str:
        """Writes a word down."""
        written.append(word)
        return "done"

    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    server = streamed(serve, *chunks, end)
    model = OpenAIChatModel("m", base_url=server.url, api_key="k")
    result = await Agent(model, tools=[write_down], limits=Limits(steps=1), on_limit="stop").run("Go.")
    assert written == order
    assert [call.arguments["word"] for call in result.steps[0].calls] == order


@tool(effect="read")
def look(page: int) -> str:
    """Looks at a page."""
    return f"page {page}: " + "words " * 400


async def test_a_run_taken_up_offers_read_result_though_what_was_shortened_is_left_out_by_now():
    """Its requests begin with its tools, and what it can read it could read all along."""
    talk, journal = Conversation(), MemoryJournal()
    first = ScriptedModel([[("look", {"page": one})] for one in range(4)] + ["Read."])
    clearing = ClearToolResults(high=800, low=500, keep=1)
    await Agent(first, tools=[look], context=clearing).run("Read the book.", conversation=talk)
    assert any(getattr(message, "whole", None) is not None for message in talk.messages)

    summing = Summarise(ScriptedModel(lambda request: "They are words."), high=600, low=300, max_tokens=100)
    second = ScriptedModel([[("look", {"page": 9})], "Read again."])
    agent = Agent(second, tools=[look], context=summing, journal=journal)
    result = await agent.run("Go on.", conversation=talk)
    assert "read_result" in [spec.name for spec in second.requests[0].tools]
    assert not any(getattr(message, "whole", None) is not None for message in result.messages)

    third = ScriptedModel(["Forked."])
    fork = await Agent(third, tools=[look], context=summing, journal=journal).fork(result.run_id, at=1)
    assert fork.text == "Forked."
    assert third.requests[0].tools == second.requests[1].tools


class Counting:
    """Says something long, counts little, and ends with a word that nobody knows; then it answers."""

    name = "counting"
    asked = 0

    def cost(self, usage: Usage) -> Decimal:
        return Decimal(usage.input_tokens + 2 * usage.output_tokens)

    async def stream(self, request: Any) -> Any:
        self.asked += 1
        yield TextDelta("words " * 40)
        message = AssistantMessage((Text("words " * 40),))
        yield ModelReply(message, usage=Usage(100, 10), finish="unknown" if self.asked == 1 else "stop")


@pytest.mark.parametrize("several", [False, True])
async def test_what_was_counted_of_a_reply_that_cannot_be_used_stands_as_it_was_told(several):
    model = Counting()
    agent = Agent(FallbackModel([model, ScriptedModel(["Well."])]) if several else model, retries=Retries(base=0.001))
    result = await agent.run("Go.")
    (failed,) = [event for event in result.events if isinstance(event, ModelFailed)]
    assert (failed.usage.input_tokens, failed.usage.output_tokens, failed.usage.estimated) == (100, 10, False)


@pytest.mark.parametrize("status", ["a_word_of_tomorrow", "failed"])
async def test_what_responses_counted_of_a_response_that_is_not_whole_stands_as_it_was_told(serve, status):
    said = {"type": "message", "content": [{"type": "output_text", "text": "words " * 40}]}
    response = RESPONSES | {"status": status, "output": [said], "usage": {"input_tokens": 100, "output_tokens": 10}}
    piece = {"type": "response.output_text.delta", "output_index": 0, "delta": "words " * 40}
    server = streamed(serve, piece, {"type": "response.done", "response": response})
    model = OpenAIResponsesModel("m", base_url=server.url, api_key="k")
    result = await Agent(model, retries=0).run("Go.")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.estimated) == (100, 10, False)


@pytest.mark.parametrize("calls", [False, True])
async def test_a_stream_of_google_that_comes_as_one_list_is_read_to_its_end(serve, calls):
    """So it comes where a proxy takes `alt=sse` off; the first of the list is not the reply."""
    written: list[str] = []

    @tool
    def write_down(word: str) -> str:
        """Writes a word down."""
        written.append(word)
        return "done"

    call = {"functionCall": {"name": "write_down", "args": {"word": "a"}}}
    pieces = [{"text": "Hel"}, {"text": "lo"}, *([call] if calls else [])]
    chunks: list[Any] = [{"candidates": [{"content": {"role": "model", "parts": [piece]}}]} for piece in pieces]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    chunks[-1]["usageMetadata"] = {"promptTokenCount": 9, "candidatesTokenCount": 2}
    server = answering(serve, chunks)
    model = GoogleModel("gemini-2.5-flash", base_url=server.url, api_key="k")
    result = await Agent(model, tools=[write_down], limits=Limits(steps=1), on_limit="stop", retries=0).run("Go.")
    assert result.text == "Hello", result.error
    assert written == (["a"] if calls else [])
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.estimated) == (9, 2, False)


async def test_a_list_of_google_that_ends_in_an_error_is_that_error(serve):
    begun = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}}]}
    failed = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    server = answering(serve, [begun, failed])
    model = GoogleModel("gemini-2.5-flash", base_url=server.url, api_key="k")
    result = await Agent(model, retries=0).run("Go.")
    assert type(result.error).__name__ == "Overloaded"
    assert result.usage.output_tokens > 0


@pytest.mark.parametrize("dialect", GREETERS)
@pytest.mark.parametrize("cut", range(9))
async def test_a_history_that_is_cut_anywhere_begins_with_the_user_and_has_each_call_answered(serve, dialect, cut):
    make, body, field = GREETERS[dialect]
    server = answering(serve, body)
    talk = Conversation()
    for number in range(2):
        talk.add_user(f"Question {number}?")
        talk.add_assistant("Let me look.", [ToolCall(f"c{number}", "look", '{"page": 1}')])
        talk.add_tool_result(f"c{number}", "a page")
        talk.add_assistant("Looked.")

    def shorter(context: StepContext) -> StepSettings:
        return StepSettings(messages=context.messages[cut:])

    agent = Agent(make(server.url), tools=[look], prepare_step=shorter)
    result = await agent.run("And now?", conversation=talk)
    assert result.text == "Hello.", result.error
    turns = sent(server)[field]
    other = "model" if field == "contents" else "assistant"
    assert [turn["role"] for turn in turns] == [("user", other)[place % 2] for place in range(len(turns))]
    assert turns[-1]["role"] == "user"
    told = json.dumps(turns)
    calls = [told.count(word) for word in ('"functionCall"', '"tool_use"', '"toolUse"')]
    assert calls == [told.count(word) for word in ('"functionResponse"', '"tool_result"', '"toolResult"')]
