"""A call or a count that is told twice counts once, and what is not known to be whole runs nothing in words either."""

import json
from decimal import Decimal

import pytest
from stream_writers import writers

from treadle import Agent, Retries, Usage, tool
from treadle.kernel.events import ModelFailed
from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall
from treadle.models import (
    AnthropicModel,
    BedrockModel,
    FallbackModel,
    GoogleModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Price,
    TextTools,
)
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelReply, ToolCallCompleted
from treadle.models.profile import ModelProfile, profile_of
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}
TOLD = {"prompt_tokens": 7, "completion_tokens": 2}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def paid():
    return []


@pytest.fixture
def pay(paid):
    @tool
    def pay(to: str = "nobody") -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    return pay


def model_of(dialect, server, **options):
    options = {"api_key": "k", "price": Price(1, 1)} | options
    base = server.url.removesuffix("/v1")
    match dialect:
        case "messages":
            return AnthropicModel("m", base_url=base, **options)
        case "chat":
            return OpenAIChatModel("m", base_url=server.url, **options)
        case "responses":
            return OpenAIResponsesModel("m", base_url=server.url, **options)
        case "google":
            return GoogleModel("gemini-2.5-flash", base_url=base, **options)
        case _:
            return BedrockModel("us.amazon.nova-pro-v1:0", region="us-east-1", base_url=base, **options)


def body_of(dialect, text="", calls=(), finish=None):
    """A whole reply with a text and calls, each (id, name, arguments)."""
    match dialect:
        case "messages":
            content = [{"type": "text", "text": text}] if text else []
            content += [{"type": "tool_use", "id": i, "name": name, "input": given} for i, name, given in calls]
            stop = finish or ("tool_use" if calls else "end_turn")
            told = {"input_tokens": 7, "output_tokens": 2}
            return {"type": "message", "role": "assistant", "content": content, "stop_reason": stop, "usage": told}
        case "chat":
            made = [
                {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                for i, name, given in calls
            ]
            message = {"role": "assistant", "content": text or None} | ({"tool_calls": made} if made else {})
            stop = finish or ("tool_calls" if calls else "stop")
            return {"choices": [{"index": 0, "message": message, "finish_reason": stop}], "usage": TOLD}
        case "responses":
            said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            output = [said] if text else []
            output += [
                {"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps(given)}
                for i, name, given in calls
            ]
            told = {"input_tokens": 7, "output_tokens": 2}
            return {"id": "r", "status": finish or "completed", "output": output, "usage": told}
        case "google":
            parts = [{"text": text}] if text else []
            parts += [{"functionCall": {"id": i, "name": name, "args": given}} for i, name, given in calls]
            told = {"promptTokenCount": 7, "candidatesTokenCount": 2}
            content = {"role": "model", "parts": parts}
            return {"candidates": [{"content": content, "finishReason": finish or "STOP"}], "usageMetadata": told}
        case _:
            content = [{"text": text}] if text else []
            content += [{"toolUse": {"toolUseId": i, "name": name, "input": given}} for i, name, given in calls]
            stop = finish or ("tool_use" if calls else "end_turn")
            told = {"inputTokens": 7, "outputTokens": 2}
            message = {"role": "assistant", "content": content}
            return {"output": {"message": message}, "stopReason": stop, "usage": told}


DIALECTS = ("messages", "chat", "responses", "google", "bedrock")


def saying(*replies):
    """Each reply in the pieces of a stream; the last one goes on."""

    def answer(peer):
        peer.begin()
        for piece in replies[min(peer.number, len(replies) - 1)]:
            peer.chunk(piece)
        peer.end()

    return answer


def answering(*bodies):
    def answer(peer):
        body = bodies[min(peer.number, len(bodies) - 1)]
        peer.answer("200 OK", JSON, body if isinstance(body, bytes) else json.dumps(body).encode())

    return answer


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("calls", "made"),
    [
        ([("a", "A"), ("a", "A")], ["A"]),
        ([("a", "A"), ("b", "A")], ["A", "A"]),
        ([("a", "A"), ("a", "B")], ["A", "B"]),
        ([("a", None), ("a", "A")], ["A"]),
        ([("a", "A"), ("a", None)], ["A"]),
        ([("a", None), ("a", None)], ["nobody"]),
        ([("a", None), ("b", "A")], ["A", "nobody"]),
        ([(1, "A"), (2, "B")], ["A", "B"]),
        ([(1, "A"), (1, "A")], ["A"]),
        ([(None, "A"), (None, "A")], ["A", "A"]),
    ],
)
async def test_a_call_that_is_sent_twice_under_its_id_is_made_once(serve, paid, pay, dialect, calls, made):
    said = [(call_id, "pay", {"to": to} if to else {}) for call_id, to in calls]
    server = serve(answering(body_of(dialect, calls=said), body_of(dialect, "Done.")))
    result = await Agent(model_of(dialect, server, streaming=False), tools=[pay], retries=0).run("go")
    assert (result.text, sorted(paid)) == ("Done.", made)
    assert len({call.id for call in result.tool_calls_made}) == len(made)


@pytest.mark.parametrize("ids", [(1, 2), ("", ""), (None, None)])
@pytest.mark.parametrize("dialect", ["Messages", "Chat", "Responses", "Google", "Converse"])
async def test_calls_in_a_stream_are_made_whatever_their_ids_are(serve, paid, pay, dialect, ids):
    """An id that is a number, or left out, made the reply unreadable: it was paid, and asked for again."""
    writer = getattr(writers(), dialect)
    first = writer.calls(*((call_id, "pay", json.dumps({"to": to})) for call_id, to in zip(ids, "AB", strict=True)))
    server = serve(saying(first, writer.text("Done.")))
    model = writer.model("m", base_url=server.url, api_key="a-made-up-key")
    result = await Agent(model, tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A", "B"])
    assert len({call.id for call in result.tool_calls_made}) == 2


@pytest.mark.parametrize("dialect", ["Messages", "Chat", "Responses", "Google", "Converse"])
async def test_a_call_that_is_begun_anew_after_its_end_is_the_one_with_arguments(serve, paid, pay, dialect):
    """It was made twice, once with nobody's arguments: those that are taken where none are given."""
    writer = getattr(writers(), dialect)
    first = writer.calls(("a", "pay", "{}"), ("a", "pay", '{"to": "A"}'))
    server = serve(saying(first, writer.text("Done.")))
    model = writer.model("m", base_url=server.url, api_key="a-made-up-key")
    result = await Agent(model, tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A"])


@pytest.mark.parametrize("what", ["block", "message"])
@pytest.mark.parametrize("dialect", ["Messages", "Chat", "Responses", "Converse"])
async def test_a_call_in_whose_place_another_begins_runs_nothing(serve, paid, pay, dialect, what):
    """It has neither arguments nor an end, and was made with those that are taken where none are given."""
    writer = getattr(writers(), dialect)
    lost, pieces = writer.calls(("b", "pay", ""))[:2], writer.calls(("a", "pay", '{"to": "A"}'))
    anew = pieces[1:] if what == "block" else pieces
    if dialect == "Chat":
        lost, anew = lost[:1], [piece.replace(b'"c1"', b'"c2"') for piece in pieces]
    server = serve(saying([*lost, *anew], pieces, writer.text("Done.")))
    model = writer.model("m", base_url=server.url, api_key="a-made-up-key")
    result = await Agent(model, tools=[pay], retries=Retries(attempts=2, base=0.001)).run("go")
    assert (result.text, paid) == ("Done.", ["A"])
    assert "in the place of a call" in next(str(e.error) for e in result.events if isinstance(e, ModelFailed))


@pytest.mark.parametrize(
    ("dialect", "then"),
    [(dialect, "text") for dialect in ("Messages", "Chat", "Responses", "Converse")]
    + [("Chat", "call"), ("Chat", "call without a number")],
)
async def test_a_call_that_a_first_completion_left_behind_runs_nothing(serve, paid, pay, dialect, then):
    """Nor where the next one says something, or numbers its calls anew: the first had begun, and no more."""
    writer = getattr(writers(), dialect)
    lost, anew = writer.calls(("b", "pay", ""))[:2], writer.text("Hello.")
    if dialect == "Chat":
        lost = lost[:1]
        if then != "text":
            anew = writer.calls(("a", "pay", '{"to": "A"}'))
        anew = [piece.replace(b'"c1"', b'"c2"') for piece in anew]
        if then == "call":
            anew = [piece.replace(b'"index": 0, "id"', b'"index": 1, "id"') for piece in anew]
        elif then == "call without a number":
            lost, anew = ([piece.replace(b'"index": 0, "id"', b'"id"') for piece in part] for part in (lost, anew))
    server = serve(saying([*lost, *anew], writer.text("Done.")))
    model = writer.model("m", base_url=server.url, api_key="a-made-up-key")
    result = await Agent(model, tools=[pay], retries=Retries(attempts=2, base=0.001)).run("go")
    assert (result.text, paid) == ("Done.", [])


async def test_calls_without_arguments_are_made_where_each_chunk_has_an_id_of_its_own(serve, paid, pay):
    """Some servers do that, and number all calls 0: that reply is whole, and was asked for again, and refused again."""

    def chunk(number, delta, finish=None):
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return b"data: " + json.dumps({"id": f"c{number}", "choices": choices}).encode() + b"\n\n"

    def begun(call_id):
        return {"tool_calls": [{"index": 0, "id": call_id, "function": {"name": "pay", "arguments": ""}}]}

    pieces = [chunk(1, begun("a")), chunk(2, begun("b")), chunk(3, {}, "tool_calls")]
    server = serve(saying(pieces, writers().Chat.text("Done.")))
    model = writers().Chat.model("m", base_url=server.url, api_key="a-made-up-key")
    result = await Agent(model, tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["nobody", "nobody"])


async def test_an_item_of_responses_that_is_declared_done_twice_is_one_call(serve, paid, pay):
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "pay", "arguments": '{"to": "A"}'}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    response = {"status": "completed", "output": [item], "usage": {"input_tokens": 1, "output_tokens": 1}}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"arguments": ""}},
        done,
        done,
        {"type": "response.completed", "response": response},
    ]

    def answer(peer):
        if peer.number:
            peer.answer("200 OK", JSON, json.dumps(body_of("responses", "Done.")).encode())
            return
        peer.begin()
        for event in events:
            peer.chunk(f"data: {json.dumps(event)}\n\n".encode())
        peer.end()

    result = await Agent(model_of("responses", serve(answer)), tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A"])


async def test_a_model_of_ones_own_that_says_a_call_twice_makes_it_once(paid, pay):
    call = ToolCall("a", "pay", '{"to": "A"}')
    model = ScriptedModel([ModelReply(AssistantMessage((call, Text("and"), call)), finish="tool_calls"), "Done."])
    result = await Agent(model, tools=[pay]).run("go")
    assert (result.text, paid) == ("Done.", ["A"])


@pytest.mark.parametrize("format", ["json", "react", "tags"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_call_in_words_is_not_made_where_nobody_knows_how_the_reply_ended(serve, paid, pay, dialect, format):
    told = {
        "json": '{"name": "pay", "arguments": {"to": "A"}}',
        "react": "Action: pay\nAction Input: A",
        "tags": '<tool_call>{"name": "pay", "arguments": {"to": "A"}}</tool_call>',
    }[format]
    server = serve(answering(body_of(dialect, told, finish="cosmic_ray")))
    model = TextTools(model_of(dialect, server, streaming=False), format)
    result = await Agent(model, tools=[pay], retries=0).run("go")
    assert (result.stop.reason, paid) == ("model_error", [])
    assert "cosmic_ray" in str(result.error).lower()


@pytest.mark.parametrize("wrapped", [False, True])
async def test_react_works_over_a_dialect_that_has_no_stop_sequences(serve, paid, pay, wrapped):
    first, last = "Action: pay\nAction Input: A\nObservation: paid\nFinal Answer: wrong", "Final Answer: Done."
    server = serve(answering(body_of("responses", first), body_of("responses", last)))
    inner = model_of("responses", server, streaming=False)
    assert profile_of(inner).stop is False
    model = TextTools(FallbackModel([inner, inner]) if wrapped else inner, "react")
    result = await Agent(model, tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A"])


async def test_stop_sequences_are_still_asked_for_where_they_may_be():
    local = ScriptedModel(["Final Answer: Done."])
    await Agent(TextTools(local, "react"), tools=[tool(lambda: "x", name="x", description="Gives an x.")]).run("go")
    assert profile_of(local) == ModelProfile()
    assert local.requests[0].settings.stop


@pytest.mark.parametrize("name", [None, 5, ["pay"]])
@pytest.mark.parametrize("dialect", ["messages", "responses", "google", "bedrock"])
async def test_a_call_whose_name_is_no_text_is_the_servers_fault_and_tried_again(serve, paid, pay, dialect, name):
    wrong, right = body_of(dialect, calls=[("a", name, {"to": "A"})]), body_of(dialect, "Done.")
    server = serve(answering(wrong, right))
    result = await Agent(model_of(dialect, server, streaming=False), tools=[pay], retries=1).run("go")
    assert (result.text, paid) == ("Done.", [])
    failure = next(event for event in result.events if type(event).__name__ == "ModelFailed")
    assert failure.error.kind == "protocol_error"


async def test_a_stream_of_chat_that_says_nothing_but_done_is_no_reply(serve):
    def answer(peer):
        peer.begin()
        peer.chunk(b"data: [DONE]\n\n")
        peer.end()

    server = serve(answer)
    result = await Agent(model_of("chat", server), retries=0).run("go")
    assert (result.stop.reason, len(server.requests)) == ("model_error", 1)
    assert "before anything of it came" in str(result.error)


def streaming(*events):
    def answer(peer):
        peer.begin()
        for event in events:
            peer.chunk(f"data: {json.dumps(event)}\n\n".encode())
        peer.end()

    return answer


FULL, NOTHING = (1000, 5000), (0, 0)


def usages_of(dialect, *counts):
    """The events of a reply whose usage is told several times, each as (asked, received)."""
    match dialect:
        case "messages":
            message = {
                "id": "m",
                "content": [],
                "stop_reason": None,
                "usage": {"input_tokens": 900, "output_tokens": 1},
            }
            yield {"type": "message_start", "message": message}
            yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ok"}}
            for asked, received in counts:
                told = {"input_tokens": asked, "output_tokens": received}
                yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": told}
        case "chat":
            yield {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}
            for asked, received in counts:
                yield {"choices": [], "usage": {"prompt_tokens": asked, "completion_tokens": received}}
        case "responses":
            for asked, received in counts:
                told = {"input_tokens": asked, "output_tokens": received}
                yield {"type": "response.completed", "response": body_of("responses", "ok") | {"usage": told}}
        case _:
            candidates = body_of("google", "ok")["candidates"]
            for asked, received in counts:
                told = {"promptTokenCount": asked, "candidatesTokenCount": received}
                yield {"candidates": candidates, "usageMetadata": told}


@pytest.mark.parametrize("dialect", ["messages", "chat", "responses", "google"])
@pytest.mark.parametrize("last", [NOTHING, (1000, 0), (0, 5000), (None, None), FULL])
async def test_usage_that_is_told_again_as_nothing_takes_nothing_back(serve, dialect, last):
    server = serve(streaming(*usages_of(dialect, FULL, last)))
    result = await Agent(model_of(dialect, server), retries=0).run("go")
    assert (result.stop.reason, result.usage) == ("answered", Usage(*FULL))
    assert result.cost == Decimal("0.006")


@pytest.mark.parametrize("dialect", ["messages", "chat", "responses"])
@pytest.mark.parametrize("last", [(1000, 100), (900, 5000), ("?", 5000)])
async def test_usage_that_is_told_again_as_less_takes_nothing_back(serve, dialect, last):
    server = serve(streaming(*usages_of(dialect, FULL, last)))
    assert (await Agent(model_of(dialect, server), retries=0).run("go")).usage == Usage(*FULL)


@pytest.mark.parametrize("dialect", ["messages", "chat", "responses", "google"])
async def test_usage_that_grows_with_the_reply_is_its_last(serve, dialect):
    server = serve(streaming(*usages_of(dialect, NOTHING, (1000, 2), FULL)))
    assert (await Agent(model_of(dialect, server), retries=0).run("go")).usage == Usage(*FULL)


async def test_a_message_that_begins_again_takes_no_count_back(serve):
    events = list(usages_of("messages", FULL))
    result = await Agent(model_of("messages", serve(streaming(*events, *events[:2]))), retries=0).run("go")
    assert (result.stop.reason, result.usage.input_tokens) == ("model_error", 1000)
    assert result.usage.output_tokens >= 5000


async def test_what_a_reply_cost_is_not_taken_back_by_usage_without(serve):
    (piece,) = usages_of("chat")
    tails = ({}, {"cost": 0}, {"prompt_tokens": 0, "completion_tokens": 0, "cost": None})
    for tail in tails:
        server = serve(streaming(piece, {"choices": [], "usage": TOLD | {"cost": 0.5}}, {"choices": [], "usage": tail}))
        model = OpenAIChatModel("m", provider="openrouter", base_url=server.url, api_key="k")
        assert (await Agent(model, retries=0).run("go")).cost == Decimal("0.5")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "body"])
async def test_an_item_of_responses_that_is_said_twice_goes_back_once(serve, paid, pay, stream):
    thought = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "sealed"}
    said = {"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": "I pay."}]}
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "pay", "arguments": '{"to": "A"}'}
    output = [thought, said, call]
    body = body_of("responses") | {"output": output * 2}
    declared = [
        {"type": f"response.output_item.{word}", "output_index": index, "item": item}
        for index, item in enumerate(output)
        for word in ("added", "done")
    ]
    first = streaming(*declared, *declared, {"type": "response.completed", "response": body | {"output": []}})
    first, done = first if stream else answering(body), answering(body_of("responses", "Done."))
    server = serve(lambda peer: (done if peer.number else first)(peer))
    result = await Agent(model_of("responses", server, streaming=stream), tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A"])
    sent = [item["id"] for item in json.loads(server.requests[1].body)["input"] if "id" in item]
    assert "rs" in sent
    assert len(sent) == len(set(sent))


@pytest.mark.parametrize("named", ["id", "call_id"])
def test_a_response_that_says_a_call_twice_begins_it_once(named):
    """Whoever watched saw two calls begin, of which the reply had one."""
    call = {"type": "function_call", named: "a1", "name": "pay", "arguments": '{"to": "A"}', "status": "completed"}
    *events, reply = ResponsesCodec().decode_body({"status": "completed", "output": [call, {**call}]})
    assert [type(event).__name__ for event in events] == ["ToolCallStarted", "ToolCallDelta", "ToolCallCompleted"]
    assert [call.name for call in reply.message.calls] == ["pay"]


async def test_usage_beside_what_cannot_be_read_is_heard(serve):
    *events, last = usages_of("messages", FULL)
    for delta in (None, "stop"):
        server = serve(streaming(*events, last | {"delta": delta}))
        result = await Agent(model_of("messages", server), retries=0).run("go")
        assert (result.stop.reason, result.usage.input_tokens) == ("model_error", 1000)
        assert result.usage.output_tokens >= 5000


CALL = {"type": "function_call", "id": "fc", "call_id": "c", "name": "pay", "arguments": '{"to": "A"}'}
SAID = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "I pay."}]}
BEGUN = {"type": "response.output_item.added", "output_index": 0, "item": CALL | {"arguments": ""}}
PIECES = [
    {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc", "delta": piece}
    for piece in ('{"to": ', '"A"}')
]
WHOLE = {
    "type": "response.function_call_arguments.done",
    "output_index": 0,
    "item_id": "fc",
    "arguments": '{"to": "A"}',
}
ENDED = {"type": "response.output_item.done", "output_index": 0, "item": CALL}


@pytest.mark.parametrize(
    ("events", "output"),
    [
        ([BEGUN, *PIECES, WHOLE], [SAID]),
        ([BEGUN, WHOLE], [SAID | {"content": []}]),
        ([BEGUN, *PIECES], []),
        ([BEGUN, BEGUN, *PIECES, WHOLE, ENDED], [CALL]),
        ([BEGUN, ENDED | {"item": CALL | {"arguments": ""}}], [CALL]),
    ],
    ids=["said instead", "nothing instead", "no output", "begun twice", "arguments at the end"],
)
async def test_a_call_that_the_end_of_a_response_leaves_out_or_tells_alone_is_made_as_it_was_told(
    serve, paid, pay, events, output
):
    """Servers that convert leave calls out there (sglang's router): the call was lost, and told to be complete."""
    last = {"type": "response.completed", "response": body_of("responses") | {"output": output}}
    first, done = streaming(*events, last), answering(body_of("responses", "Done."))
    server, told = serve(lambda peer: (done if peer.number else first)(peer)), []
    result = await Agent(model_of("responses", server), tools=[pay], retries=0).run("go", on_event=told.append)
    assert (result.text, paid) == ("Done.", ["A"])
    assert sum(isinstance(one, ToolCallCompleted) for one in told) == 1


async def test_a_call_of_a_response_that_ends_without_it_and_its_arguments_is_not_made(serve, paid, pay):
    last = {"type": "response.completed", "response": body_of("responses") | {"output": [SAID]}}
    server = serve(streaming(BEGUN, last))
    result = await Agent(model_of("responses", server), tools=[pay], retries=0).run("go")
    assert (result.stop.reason, paid) == ("model_error", [])
    assert "neither arguments nor an end" in str(result.error)


async def test_thinking_of_claudes_that_is_begun_twice_goes_back_once(serve, paid, pay):
    """The first went back without a signature, which the provider refuses."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    begun = {"type": "content_block_start", "index": 0, "content_block": thinking}
    deltas = [{"type": "thinking_delta", "thinking": "I pay."}, {"type": "signature_delta", "signature": "c2lnbmVk"}]
    call = {"type": "tool_use", "id": "a", "name": "pay", "input": {"to": "A"}}
    events = [
        {"type": "message_start", "message": message},
        begun,
        begun,
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    done = answering(body_of("messages", "Done."))
    server = serve(lambda peer: (done if peer.number else streaming(*events))(peer))
    result = await Agent(model_of("messages", server), tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A"])
    (sent,) = [one for one in json.loads(server.requests[1].body)["messages"] if one["role"] == "assistant"]
    thoughts = [part for part in sent["content"] if part["type"] == "thinking"]
    assert thoughts == [{"type": "thinking", "thinking": "I pay.", "signature": "c2lnbmVk"}]


@pytest.mark.parametrize("pieces", [[], PIECES[:1]])
@pytest.mark.parametrize("output", [[], [SAID]])
async def test_a_response_that_is_cut_off_as_a_call_begins_is_one_that_was_cut_off(serve, paid, pay, output, pieces):
    """It was an event that is not as the protocol has it: nobody heard of the limit, nor of what was said before."""
    ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": output}
    server = serve(streaming(BEGUN, *pieces, {"type": "response.incomplete", "response": body_of("responses") | ended}))
    result = await Agent(model_of("responses", server), tools=[pay], retries=0).run("go")
    assert (result.stop.reason, result.stop.detail, paid) == ("length", "max_output_tokens", [])


THOUGHT = {
    "type": "reasoning",
    "id": "rs",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "E",
}
THOUGHTS = [
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs", "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "rs", "delta": "Hm."},
    {"type": "response.output_item.done", "output_index": 0, "item": THOUGHT},
]
BARE = CALL | {"arguments": ""}


@pytest.mark.parametrize(
    ("thoughts", "events", "output"),
    [
        (THOUGHTS, [BEGUN, *PIECES], [CALL]),
        (THOUGHTS, [BEGUN, *PIECES], [BARE]),
        (THOUGHTS[:2], [BEGUN, ENDED], [THOUGHT, BARE]),
        (THOUGHTS[:2], [BEGUN, *PIECES], [THOUGHT]),
    ],
    ids=["no thought", "no thought, no arguments", "arguments before alone", "a thought alone"],
)
async def test_what_the_end_of_a_response_leaves_out_stands_as_it_was_told(serve, paid, pay, thoughts, events, output):
    """Its thoughts were lost, and a call was made without its arguments, which stood in another place there."""
    events = [*thoughts, *[one | {"output_index": 1} for one in events]]
    last = {"type": "response.completed", "response": body_of("responses") | {"output": output}}
    first, done = streaming(*events, last), answering(body_of("responses", "Done."))
    server = serve(lambda peer: (done if peer.number else first)(peer))
    result = await Agent(model_of("responses", server), tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A"])
    (thinking,) = [part for part in result.messages[1].content if isinstance(part, Thinking)]
    assert (thinking.text, thinking.data) == ("Hm.", "E")


@pytest.mark.parametrize("output", [[CALL], [THOUGHT, CALL]])
async def test_a_text_that_the_end_of_a_response_leaves_out_stands_as_it_was_told(serve, paid, pay, output):
    said = {"type": "message", "id": "m", "role": "assistant", "content": []}
    message = [
        {"type": "response.output_item.added", "output_index": 1, "item": said},
        {"type": "response.output_text.delta", "output_index": 1, "item_id": "m", "delta": "I shall pay A."},
    ]
    events = [*THOUGHTS, *message, *[one | {"output_index": 2} for one in (BEGUN, *PIECES)]]
    last = {"type": "response.completed", "response": body_of("responses") | {"output": output}}
    first, done = streaming(*events, last), answering(body_of("responses", "Done."))
    server = serve(lambda peer: (done if peer.number else first)(peer))
    result = await Agent(model_of("responses", server), tools=[pay], retries=0).run("go")
    assert (result.text, paid, result.messages[1].text) == ("Done.", ["A"], "I shall pay A.")


def said_in(response, *parts, finish=None):
    """A chunk of Google's, of a response."""
    candidate = {"content": {"role": "model", "parts": list(parts)}} | ({"finishReason": finish} if finish else {})
    told = {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2}} if finish else {}
    return f"data: {json.dumps({'candidates': [candidate], 'responseId': response, **told})}\n\n".encode()


PAYS = {"functionCall": {"name": "pay", "args": {"to": "A"}}}


@pytest.mark.parametrize(
    ("chunks", "made"),
    [
        # A proxy has asked again, in the place of the first answer or after it.
        ([said_in("r1", PAYS), said_in("r2", PAYS), said_in("r2", finish="STOP")], []),
        ([said_in("r1", PAYS), said_in("r1", finish="STOP"), said_in("r2", PAYS), said_in("r2", finish="STOP")], []),
        ([said_in("r1", {"text": "Hm."}), said_in("r1", PAYS), said_in("r2", PAYS, finish="STOP")], []),
        # One response, whose server names each chunk, or the last one, anew.
        ([said_in("r1", PAYS), said_in("r2", {"text": "So."}), said_in("r3", finish="STOP")], ["A"]),
        ([said_in("r1", {"text": "So."}), said_in("r1", PAYS), said_in("r2", finish="STOP")], ["A"]),
        ([said_in("r1"), said_in("r2", PAYS), said_in("r2", finish="STOP")], ["A"]),
    ],
)
async def test_a_call_of_a_response_that_a_proxy_began_anew_is_not_made_twice(serve, paid, pay, chunks, made):
    server = serve(saying(chunks, [said_in("r9", {"text": "Done."}, finish="STOP")]))
    result = await Agent(model_of("google", server), tools=[pay], retries=0).run("go")
    assert (result.finished, paid) == (bool(made), made)
    assert result.finished or result.error.kind == "protocol_error"


async def test_an_error_in_a_reply_is_not_told_as_the_status_of_http(serve):
    told = {"error": {"code": 429, "message": "Retry in 17s.", "status": "RESOURCE_EXHAUSTED"}}
    for answer in (answering([told]), saying([f"data: {json.dumps(told)}\n\n".encode()])):
        result = await Agent(model_of("google", serve(answer)), retries=0).run("go")
        assert result.error.kind == "rate_limited"
        assert "failed in its reply: Retry in 17s." in str(result.error)
