"""Chat Completions: requests as hosts want them, and replies as a dozen servers write them."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.kernel.log import Log
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
from treadle.models.codec import DONE, json_history
from treadle.models.errors import BadRequest, ModelError, Overloaded, ProtocolError, RateLimited
from treadle.models.hosts import host_of
from treadle.models.openai_chat import ChatCodec
from treadle.models.order import Order
from treadle.models.port import ModelEvent, ModelReply, ModelRequest, TextDelta, ToolCallCompleted, ToolCallStarted

LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
HELLO = (UserMessage("hello"),)


def encoded(*messages: Message, host: str = "", **fields: Any) -> dict[str, Any]:
    codec = ChatCodec("here", host_of(host))
    body: dict[str, Any] = json.loads(codec.encode(ModelRequest(messages or HELLO, **fields), "m", True))
    return body


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int | None = None, call_id: str | None = None, **function: Any) -> dict[str, Any]:
    given = {"index": index, "id": call_id, "function": function}
    return {name: value for name, value in given.items() if value is not None}


def decoded(*chunks: dict[str, Any]) -> tuple[list[ModelEvent], ModelReply]:
    decoder = ChatCodec("here").decoder()
    events = [event for one in chunks for event in decoder.feed(one)]
    return events, decoder.close()


def calls_of(*entries: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    reply = decoded(*[chunk(tool_calls=deltas) for deltas in entries], chunk("tool_calls"))[1]
    return [(made.id, made.name, made.arguments) for made in reply.message.calls]


# Replies


@pytest.mark.parametrize(
    ("entries", "calls"),
    [
        (
            [[call(0, "a", name="f", arguments="")], [call(0, arguments='{"x":')], [call(0, arguments="1}")]],
            ['{"x":1}'],
        ),
        ([[call(0, "a", name="f")]], [""]),
        ([[call(0, "a", name="f", arguments=None)]], [""]),
        ([[call(0, "a", name="f", arguments={"x": 1})]], ['{"x":1}']),
        ([[call(None, "a", name="f", arguments='{"x"')], [call(None, "a", arguments=":1}")]], ['{"x":1}']),
        ([[call(None, "a", name="f", arguments='{"x"')], [call(None, arguments=":1}")]], ['{"x":1}']),
        ([[call(0, "a", name="f", arguments="{")], [call(0, "", name="", arguments="}")]], ["{}"]),
        ([[call(0, "a", name="f", arguments="{")], [call(0, "other", arguments="}")]], ["{}"]),
        ([[call(0, "a", name="f", arguments="1"), call(1, "b", name="g", arguments="2")]], ["1", "2"]),
        (
            [
                [call(0, "a", name="f"), call(1, "b", name="g")],
                [call(1, arguments="2")],
                [call(0, arguments="1")],
                [call(1, arguments="2")],
            ],
            ["1", "22"],
        ),
        ([[call(0, "a", name="f", arguments="1")], [call(0, "b", name="g", arguments="2")]], ["1", "2"]),
        ([[call(None, "a", name="f", arguments="1"), call(None, "b", name="g", arguments="2")]], ["1", "2"]),
        ([[call(None, None, name="f", arguments="1"), call(None, None, name="g", arguments="2")]], ["1", "2"]),
    ],
)
def test_tool_calls_are_put_together_however_they_are_numbered(entries: list[Any], calls: list[str]) -> None:
    assert [arguments for _, _, arguments in calls_of(*entries)] == calls
    assert [name for _, name, _ in calls_of(*entries)] == ["f", "g"][: len(calls)]


def test_a_call_without_an_id_of_its_own_is_given_one() -> None:
    made = calls_of([call(0, name="f"), call(1, "", name="f"), call(2, "x", name="f"), call(3, "x", name="g")])
    ids = [call_id for call_id, _, _ in made]
    assert len(set(ids)) == 4
    assert all(ids)
    assert ids[2] == "x"


def test_a_call_is_complete_when_the_next_begins_if_its_arguments_are_whole() -> None:
    first, second = call(0, "a", name="f", arguments='{"x": 1}'), call(1, "b", name="g", arguments="{")
    decoder = ChatCodec("here").decoder()
    assert ToolCallCompleted("a") not in decoder.feed(chunk(tool_calls=[first]))
    assert decoder.feed(chunk(tool_calls=[second]))[:2] == [ToolCallCompleted("a"), ToolCallStarted("b", "g")]
    assert decoder.feed(chunk("tool_calls")) == []


def test_a_call_that_the_length_cut_off_is_never_complete() -> None:
    events, reply = decoded(chunk(tool_calls=[call(0, "a", name="f", arguments='{"x')]), chunk("length"))
    assert reply.finish == "length"
    assert not [event for event in events if isinstance(event, ToolCallCompleted)]


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("sensitive", "content_filter"),
        ("something else", "unknown"),
    ],
)
def test_every_servers_finish_reason_is_known_and_kept(word: str, finish: str) -> None:
    reply = decoded(chunk(content="x"), chunk(word))[1]
    assert (reply.finish, reply.finish_detail) == (finish, word)


def test_a_reply_with_calls_finished_to_have_them_made_whatever_the_server_calls_it() -> None:
    entry = chunk(tool_calls=[call(0, "a", name="f", arguments="{}")])
    assert decoded(entry, chunk("stop"))[1].finish == "tool_calls"
    assert decoded(entry, DONE)[1].finish == "tool_calls"


def test_a_refusal_is_text_and_a_finish_of_its_own() -> None:
    events, reply = decoded(chunk(refusal="I will "), chunk(refusal="not."), chunk("stop"))
    assert (reply.message.text, reply.finish) == ("I will not.", "refusal")
    assert events[:2] == [TextDelta("I will "), TextDelta("not.")]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_thinking_and_goes_back_in_its_field(field: str) -> None:
    message = decoded(chunk(**{field: "hm"}), chunk(**{field: "m"}), chunk("stop", content="yes"))[1].message
    assert message.content == (Thinking("hmm", id=field), Text("yes"))
    assert encoded(*HELLO, message)["messages"][1] == {"role": "assistant", "content": "yes", field: "hmm"}
    openai = encoded(*HELLO, message, host="api.openai.com")["messages"][1]
    assert openai == {"role": "assistant", "content": "yes"}


@pytest.mark.parametrize(
    ("host", "fields"),
    [
        ("127.0.0.1", {"reasoning", "reasoning_content", "thinking"}),
        ("openrouter.ai", {"reasoning", "reasoning_content"}),
        ("api.deepseek.com", {"reasoning_content"}),
        ("api.moonshot.ai", {"reasoning_content"}),
        ("api.groq.com", {"reasoning"}),
        ("api.cerebras.ai", {"reasoning"}),
        ("api.mistral.ai", {"thinking"}),
        ("generativelanguage.googleapis.com", set()),
        ("api.openai.com", set()),
    ],
)
@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_of_another_host_is_left_out_where_its_field_is_not_known(
    host: str, fields: set[str], field: str
) -> None:
    """Mistral, Groq, Cerebras, Google and DeepSeek each refuse the whole request for a field that they do not know."""
    message = AssistantMessage((Thinking("hmm", id=field), Text("yes")))
    sent = encoded(*HELLO, message, host=host)["messages"][1]
    plain = encoded(*HELLO, AssistantMessage((Text("yes"),)), host=host)["messages"][1]
    assert (sent != plain) == (field in fields)


@pytest.mark.parametrize("host", ["api.deepseek.com", "api.moonshot.ai", "api.moonshot.cn"])
@pytest.mark.parametrize("thought", [None, Thinking("hmm", id="reasoning"), Thinking("hmm", signature="s")])
def test_a_host_that_needs_reasoning_is_given_some_where_another_model_has_called(
    host: str, thought: Thinking | None
) -> None:
    """It refuses a history with none; and Kimi's takes an empty one for none."""
    called = AssistantMessage((*([thought] if thought else []), ToolCall("1", "f", "{}")))
    own = AssistantMessage((Thinking("so", id="reasoning_content"), Text("yes")))
    _, first, _, last = encoded(*HELLO, called, ToolMessage("1", "f", "x"), own, host=host)["messages"]
    assert (first["reasoning_content"], last["reasoning_content"]) == (" ", "so")
    elsewhere = encoded(*HELLO, called, ToolMessage("1", "f", "x"), host="api.z.ai")["messages"]
    assert "reasoning_content" not in elsewhere[1]


def test_reasoning_details_are_joined_and_go_back_whole() -> None:
    pieces = [{"type": "reasoning.text", "index": 0, "text": "a"}, {"type": "reasoning.text", "index": 0, "text": "b"}]
    sealed = [{"type": "reasoning.encrypted", "index": 1, "data": "xyz"}]
    chunks = [chunk(reasoning_details=details) for details in ([pieces[0]], [pieces[1] | {"signature": "s"}], sealed)]
    message = decoded(*chunks, chunk("stop", content="yes"))[1].message
    whole = [{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}, *sealed]
    assert message.content[0] == Thinking("ab")
    assert encoded(*HELLO, message)["messages"][1]["reasoning_details"] == whole
    elsewhere = ChatCodec("there").encode(ModelRequest((*HELLO, message)), "m", True)
    assert b"reasoning_details" not in elsewhere


def test_a_signature_beside_a_call_goes_back_beside_it() -> None:
    entry = call(0, "a", name="f", arguments="{}") | {"extra_content": {"google": {"thought_signature": "s"}}}
    message = decoded(chunk(tool_calls=[entry]), chunk("tool_calls"))[1].message
    echo = encoded(*HELLO, message, ToolMessage("a", "f", "1"))["messages"][1]["tool_calls"][0]
    assert echo["extra_content"] == {"google": {"thought_signature": "s"}}


def test_thinking_in_a_list_of_content_goes_back_in_a_list() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]}
    message = decoded(chunk(content=[thought]), chunk("stop", content=[{"type": "text", "text": "4"}]))[1].message
    assert message.content == (Thinking("hmm", id="thinking"), Text("4"))
    assert encoded(*HELLO, message)["messages"][1]["content"] == [thought, {"type": "text", "text": "4"}]


@pytest.mark.parametrize(
    ("inside", "kind"),
    [
        ({"error": {"message": "slow down", "code": 429}}, RateLimited),
        ({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, RateLimited),
        ({"error": {"message": "no", "type": "server_error"}}, Overloaded),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, BadRequest),
        ({"error": "no"}, Overloaded),
        ({"object": "error", "message": "no", "code": 400, "type": "BadRequestError"}, BadRequest),
        ({"choices": [{"index": 0, "delta": {}, "error": {"code": 502, "message": "upstream"}}]}, Overloaded),
        (chunk("error"), Overloaded),
        ({"choices": 1}, ProtocolError),
    ],
)
def test_an_error_inside_a_stream_becomes_its_typed_error(inside: dict[str, Any], kind: type[ModelError]) -> None:
    decoder = ChatCodec("here").decoder()
    decoder.feed(chunk(content="hel"))
    with pytest.raises(ModelError) as raised:
        decoder.feed(inside)
    assert type(raised.value) is kind


def test_a_stream_is_whole_by_its_finish_or_its_end_and_by_nothing_else() -> None:
    usage = {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    assert decoded(chunk(content="a"), chunk("stop"))[1].message.text == "a"
    assert decoded(chunk(content="a"), DONE)[1].finish == "stop"
    assert decoded(chunk(content="a"), {"choices": []} | usage, DONE)[1].usage is not None
    assert decoded(chunk(content="a"), chunk("stop"), {"choices": []} | usage)[1].usage == Usage(1, 2)
    assert decoded(chunk(content="a"), chunk("stop"), DONE)[1].usage is None
    told = {"choices": []} | usage
    for chunks in ([], [chunk(content="a")], [chunk(content="a") | usage], [told, chunk(content="a")], [told]):
        with pytest.raises(ProtocolError, match="before the reply was whole"):
            decoded(*chunks)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "index": JSON,
        "id": JSON,
        "function": st.fixed_dictionaries({}, optional={"name": JSON, "arguments": JSON}),
    },
)
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "content": JSON,
        "refusal": JSON,
        "reasoning": JSON,
        "reasoning_details": st.lists(st.fixed_dictionaries({}, optional={"index": JSON, "type": JSON, "text": JSON})),
        "tool_calls": st.lists(ENTRY, max_size=3) | JSON,
        "extra_content": JSON,
    },
)
CHOICE = st.fixed_dictionaries(
    {}, optional={"index": JSON, "delta": DELTA | JSON, "finish_reason": JSON, "error": JSON}
)
CHUNK = st.fixed_dictionaries(
    {},
    optional={"id": JSON, "model": JSON, "choices": st.lists(CHOICE, max_size=2) | JSON, "usage": JSON, "error": JSON},
)


@given(st.lists(CHUNK, max_size=4))
def test_nonsense_is_a_typed_error_or_a_reply_that_can_be_sent_back(chunks: list[dict[str, Any]]) -> None:
    try:
        reply = decoded(*chunks, chunk("stop"))[1]
    except ModelError:
        return
    msgspec.convert(msgspec.to_builtins(reply), ModelReply)
    assert encoded(*HELLO, reply.message)


# Requests


def test_everything_that_can_be_said_is_sent() -> None:
    messages = (
        SystemMessage("Be brief."),
        UserMessage((Text("see"), Image(url="http://x/a.png"), Image(data=b"ab"), File(data=b"pdf", name="a.pdf"))),
        AssistantMessage((Text("I "), Text("look"), ToolCall("c1", "look", '{"a": 1}'), ToolCall("c2", "look"))),
        ToolMessage("c1", "look", (Text("one"), Image(data=b"ab"))),
        ToolMessage("c2", "look", "two", is_error=True),
        UserMessage((File(data=b"1,2", media_type="text/csv", name="t.csv"), File(data=b"w", media_type="audio/wav"))),
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWI="}}
    assert encoded(*messages)["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "http://x/a.png"}},
                image,
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}},
                {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "user", "content": [{"type": "text", "text": "From the result of look:"}, image]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "t.csv:\n1,2"},
                {"type": "input_audio", "input_audio": {"data": "dw==", "format": "wav"}},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        ("look", {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_every_tool_choice_is_sent(choice: str, field: Any) -> None:
    body = encoded(tools=(LOOK,), tool_choice=choice, settings=ModelSettings(parallel_tool_calls=False))
    assert body.get("tool_choice") == field
    assert body["parallel_tool_calls"] is False
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
    assert body["tools"] == [{"type": "function", "function": function}]
    without = encoded(tool_choice=choice, settings=ModelSettings(parallel_tool_calls=False))
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(without)


@pytest.mark.parametrize(
    ("host", "fields"),
    [
        ("api.openai.com", {"max_completion_tokens": 9, "seed": 3, "reasoning_effort": "low"}),
        ("x.openai.azure.com", {"max_completion_tokens": 9, "seed": 3, "reasoning_effort": "low"}),
        ("127.0.0.1", {"max_tokens": 9, "seed": 3, "reasoning_effort": "low"}),
        ("api.mistral.ai", {"max_tokens": 9, "random_seed": 3, "reasoning_effort": "low"}),
        ("openrouter.ai", {"max_tokens": 9, "seed": 3, "reasoning": {"effort": "low"}}),
        ("api.deepseek.com", {"max_tokens": 9, "seed": 3, "thinking": {"type": "enabled"}}),
    ],
)
def test_settings_are_sent_as_each_host_names_them(host: str, fields: dict[str, Any]) -> None:
    settings = ModelSettings(
        max_tokens=9, temperature=0, top_p=0.5, stop=("a",), seed=3, thinking="low", extra={"user": "u", "stop": ["b"]}
    )
    body = encoded(host=host, settings=settings)
    common = {"model": "m", "stream": True, "temperature": 0, "top_p": 0.5, "stop": ["a", "b"], "user": "u"}
    if host != "api.mistral.ai":
        common["stream_options"] = {"include_usage": True}
    del body["messages"]
    assert ("prompt_cache_key" in body) == (host == "api.openai.com")
    body.pop("prompt_cache_key", None)
    assert body == common | fields


@pytest.mark.parametrize(
    ("thinking", "host", "field"),
    [
        (1000, "", {"reasoning_effort": "low"}),
        (50_000, "", {"reasoning_effort": "high"}),
        ("none", "", {"reasoning_effort": "none"}),
        (1000, "openrouter.ai", {"reasoning": {"max_tokens": 1000}}),
        ("none", "openrouter.ai", {"reasoning": {"enabled": False}}),
        ("none", "api.deepseek.com", {"thinking": {"type": "disabled"}}),
    ],
)
def test_thinking_is_asked_for_as_each_host_takes_it(thinking: Any, host: str, field: dict[str, Any]) -> None:
    assert field.items() <= encoded(host=host, settings=ModelSettings(thinking=thinking)).items()


def test_an_output_schema_is_strict_only_where_it_can_be() -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    open_ended = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for schema, strict in ((closed, {"strict": True}), (open_ended, {})):
        named = {"name": "output", "schema": schema} | strict
        form = encoded(output_schema=schema)["response_format"]
        assert form == {"type": "json_schema", "json_schema": named}
    assert encoded(output_schema=closed, host="api.deepseek.com")["response_format"] == {"type": "json_object"}


def test_a_file_by_its_address_goes_where_it_is_taken_and_is_refused_elsewhere() -> None:
    message = UserMessage((File(url="http://x/a.pdf", name="a.pdf"),))
    with pytest.raises(BadRequest, match="takes no file by its address"):
        encoded(message, host="api.openai.com")
    sent = encoded(message, host="api.mistral.ai")["messages"][0]["content"]
    assert sent == [{"type": "document_url", "document_url": "http://x/a.pdf"}]
    sent = encoded(message, host="openrouter.ai")["messages"][0]["content"]
    assert sent == [{"type": "file", "file": {"filename": "a.pdf", "file_data": "http://x/a.pdf"}}]


def test_ids_of_another_provider_are_made_to_fit_and_still_pair() -> None:
    calls = (ToolCall("toolu_01AbCdEfGh", "look"), ToolCall("abcDEF123", "look"))
    results = [ToolMessage(made.id, "look", "x") for made in calls]
    sent = encoded(*HELLO, AssistantMessage(calls), *results, host="api.mistral.ai")["messages"]
    ids = [made["id"] for made in sent[1]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in sent[2:]]
    assert (len(ids[0]), ids[1]) == (9, "abcDEF123")


def test_what_only_another_provider_understands_is_left_out() -> None:
    parts = (Thinking("hm", signature="s"), Opaque("anthropic", {"type": "x"}), Text("yes"))
    sent = encoded(*HELLO, AssistantMessage(parts))["messages"][1]
    assert sent == {"role": "assistant", "content": "yes"}


@pytest.mark.parametrize("host", ["api.mistral.ai", "api.moonshot.ai", "api.openai.com"])
def test_what_another_model_only_thought_is_no_message_without_content(host: str) -> None:
    """Regression: Mistral and Kimi refused each request from then on, though the model was asked for an answer."""
    (sent,) = encoded(AssistantMessage((Thinking("Hm.", signature="s"),)), host=host)["messages"]
    assert sent["content"] == "(no content)"


def test_half_a_character_does_not_break_the_request() -> None:
    assert encoded(UserMessage("a\ud83d"))["messages"] == [{"role": "user", "content": "a?"}]


# The history


def test_the_bytes_of_the_history_stay_the_same_and_only_new_messages_are_encoded() -> None:
    worked: list[int] = []

    class Counting(ChatCodec):
        def _group(self, messages: Any) -> Any:
            worked.append(len(messages))
            return super()._group(messages)

    codec, before = Counting("here"), b""
    log: Log[Message] = Log([SystemMessage("Be brief."), UserMessage("go")])
    for step in range(50):
        body = codec.encode(ModelRequest(log, (LOOK,), run_id="r"), "m", True)
        assert body.startswith(before)
        before = body.removesuffix(b"]}")
        calls = tuple(ToolCall(f"{step}-{i}", "look", "{}") for i in range(2))
        log = log.append(AssistantMessage(calls), *[ToolMessage(made.id, "look", "x" * step) for made in calls])
    assert sum(worked) < 300
    assert max(worked[3:]) <= 2


@pytest.mark.parametrize("in_order", [False, True])
@given(st.data())
def test_a_kept_history_is_what_encoding_all_of_it_gives(in_order: bool, data: st.DataObject) -> None:
    codec, order, messages = ChatCodec("here"), Order(), list[Message]()
    for _ in range(6):
        del messages[data.draw(st.integers(0, len(messages))) :]
        for _ in range(data.draw(st.integers(0, 4))):
            kind = data.draw(st.sampled_from(["user", "image", "tool"]))
            image = (Image(data=b"x"),)
            said = UserMessage("u") if kind == "user" else ToolMessage("c", "look", image if kind == "image" else "t")
            messages.append(said)
        if messages and data.draw(st.booleans()):
            messages[data.draw(st.integers(0, len(messages) - 1))] = UserMessage("changed")
        whole = messages
        if in_order:
            whole, anew = ((one.of("r", messages) or messages) for one in (order, Order()))
            assert whole == anew
        request = ModelRequest(tuple(whole), run_id="r")
        assert codec.encode(request, "m", True) == ChatCodec("here").encode(request, "m", True)


def test_what_is_kept_is_bounded() -> None:
    history = json_history(lambda group: [{"text": message.text} for message in group], limit=10_000)
    for run in range(100):
        with history.follow(run, [UserMessage("x" * 1000), UserMessage("y")]):
            pass
    assert sum(len(trail.made) for trail in history._trails.values()) <= 10_000
    assert history._trails


def test_a_model_that_takes_tools_by_responses_alone_says_how_that_is_spoken() -> None:
    words = (
        "Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat/completions. To use "
        "function tools, use /v1/responses or set reasoning_effort to 'none'."
    )
    error = ChatCodec("azure").error(400, {}, {"error": {"message": words, "type": "invalid_request_error"}})
    assert isinstance(error, BadRequest)
    assert words in str(error)
    assert "OpenAIResponsesModel" in str(error)
