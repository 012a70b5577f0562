"""Arguments that a server sends in other pieces than the protocol has: each call is made once, with all of them."""

import json

import pytest
from stream_writers import writers

from treadle import Agent, tool
from treadle.kernel.events import ModelFailed
from treadle.models import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel

pytestmark = pytest.mark.anyio
A, B = '{"to": "A"}', '{"to": "B"}'
END = "[DONE]"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def paid():
    return []


@pytest.fixture
def pay(paid):
    @tool(effect="read")
    def pay(to: str = "nobody") -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    return pay


def streaming(*replies):
    """Each reply as the data of a stream; the last one goes on."""

    def answer(peer):
        peer.begin()
        for data in replies[min(peer.number, len(replies) - 1)]:
            text = data if isinstance(data, str) else json.dumps(data)
            peer.chunk(f"data: {text}\n\n".encode())
        peer.end()

    return answer


def entry(arguments, call_id=None, name=None, index=0):
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function} | ({} if call_id is None else {"id": call_id})


def chat(*entries, text="", finish=""):
    deltas = [{"tool_calls": one if isinstance(one, list) else [one]} for one in entries]
    deltas += [{"content": text}] if text else []
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    last = {"index": 0, "delta": {}, "finish_reason": finish or ("tool_calls" if entries else "stop")}
    return [*({"id": "c", "choices": [choice]} for choice in [*choices, last]), END]


@pytest.mark.parametrize(
    ("entries", "made"),
    [
        # Nothing, where the arguments are to come: vLLM, gateways before Claude.
        ([entry("{}", "a", "pay"), entry(A)], ["A"]),
        ([entry("{}", "a", "pay"), entry(A[:5]), entry(A[5:])], ["A"]),
        ([entry("null", "a", "pay"), entry(A)], ["A"]),
        ([[entry("{}", "a", "pay"), entry("{}", "b", "pay", 1)], [entry(A), entry(B, index=1)]], ["A", "B"]),
        ([entry("{}", "a", "pay"), entry("{}", "b", "pay", 1)], ["nobody", "nobody"]),
        # All of it again at the end, as it was, in other spaces, or as the text of the text: LiteLLM, vLLM.
        ([entry("", "a", "pay"), entry(A[:5]), entry(A[5:]), entry(A, "a", "pay")], ["A"]),
        ([entry("", "a", "pay"), entry(A[:5]), entry(A[5:]), entry(A)], ["A"]),
        ([entry(A, "a", "pay"), entry('{"to":"A"}', "a", "pay")], ["A"]),
        ([entry(A, "a", "pay"), entry(json.dumps(A), "a", "pay")], ["A"]),
        # Several calls under one number and without ids: Gemini, as Chat Completions.
        ([entry(A, None, "pay"), entry(B, None, "pay")], ["A", "B"]),
        ([entry(A, "", "pay"), entry(B, "", "pay")], ["A", "B"]),
        ([[entry(A, "", "pay"), entry(B, "", "pay")]], ["A", "B"]),
        ([entry(A, "", "pay"), entry(A, "", "pay")], ["A", "A"]),
        ([entry(A, "", "pay"), entry(B[:5], "", "pay"), entry(B[5:], "")], ["A", "B"]),
        # A name with every piece, which begins no call.
        ([entry("", "a", "pay"), entry(A[:5], None, "pay"), entry(A[5:], None, "pay")], ["A"]),
        ([entry(A[:5], "a", "pay"), entry(A[5:], "b", "pay")], ["A"]),
        ([entry("", "a", "pay", None), entry(A[:5], None, "pay", None), entry(A[5:], None, "pay", None)], ["A"]),
        ([entry(A[:5], None, "pay", None), entry(A[5:], None, "pay", None), entry(B, None, "pay", None)], ["A", "B"]),
        (
            [entry("{}", None, "pay", None), entry({}, None, "pay", None), entry(A, None, "pay", None)],
            ["A", "nobody", "nobody"],
        ),
        ([[entry("", None, "pay", None), entry(A, None, "pay", None)]], ["A", "nobody"]),
        # An id of its own for every piece, and no number.
        ([entry(A[:5], "a", "pay", None), entry(A[5:], "b", None, None), entry(B, "c", "pay", None)], ["A", "B"]),
        # One number for calls that come by turns, told apart by their ids alone.
        ([entry(A[:5], "a", "pay"), entry(B[:5], "b", "pay"), entry(A[5:], "a"), entry(B[5:], "b")], ["A", "B"]),
        # Ids that are numbers, and one that all calls have.
        ([entry(A, 1, "pay"), entry(B[:5], 2, "pay", 1), entry(B[5:], 2, "pay", 1)], ["A", "B"]),
        ([entry(A, "a", "pay"), entry(B[:5], "a", "pay", 1), entry(B[5:], "a", "pay", 1)], ["A", "B"]),
    ],
)
async def test_arguments_of_chat_are_put_together_once(serve, paid, pay, entries, made):
    server = serve(streaming(chat(*entries), chat(text="Done.")))
    result = await Agent(OpenAIChatModel("m", base_url=server.url, api_key="k"), tools=[pay], retries=0).run("go")
    assert (result.text, sorted(paid)) == ("Done.", made)
    assert sorted(call.arguments.get("to", "nobody") for call in result.tool_calls_made) == made


@pytest.mark.parametrize("broken", ['{"to": A}', json.dumps(A)])
async def test_a_call_after_one_that_is_no_json_is_another(serve, paid, pay, broken):
    server = serve(streaming(chat(entry(broken, None, "pay", None), entry(B, None, "pay", None)), chat(text="Done.")))
    result = await Agent(OpenAIChatModel("m", base_url=server.url, api_key="k"), tools=[pay], retries=0).run("go")
    assert (result.text, paid, len(result.tool_calls_made)) == ("Done.", ["B"], 2)


def claude(*pieces, text=""):
    block = {"type": "tool_use", "id": "a", "name": "pay", "input": {}} if pieces else {"type": "text", "text": ""}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    deltas += [{"type": "text_delta", "text": piece} for piece in (None, text)] if text else []
    message = {"id": "m", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 5}}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": None, "usage": {"output_tokens": 5}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use" if pieces else "end_turn"}},
        {"type": "message_stop"},
    ]


@pytest.mark.parametrize(
    ("pieces", "made"),
    [(["{}", A], ["A"]), (["{}"], ["nobody"]), ([A[:5], A[5:], A], ["A"]), ([A, None], ["A"]), ([None], ["nobody"])],
)
async def test_arguments_of_messages_are_put_together_once(serve, paid, pay, pieces, made):
    server = serve(streaming(claude(*pieces), claude(text="Done.")))
    model = AnthropicModel("m", base_url=server.url.removesuffix("/v1"), api_key="k")
    result = await Agent(model, tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", made)


def response(*events, output=()):
    last = {"id": "r", "status": "completed", "output": list(output), "usage": {"input_tokens": 5, "output_tokens": 5}}
    return [{"type": f"response.{kind}", "output_index": 0, **fields} for kind, fields in events] + [
        {"type": "response.completed", "response": last}
    ]


CALL = {"type": "function_call", "id": "f", "call_id": "c", "name": "pay"}
SAID = {"type": "message", "id": "m", "role": "assistant", "content": []}
BEGUN = ("output_item.added", {"item": CALL | {"arguments": ""}})
WHOLE = ("function_call_arguments.done", {"item_id": "f", "arguments": A})


@pytest.mark.parametrize(
    "events",
    [
        [BEGUN, WHOLE],
        [BEGUN, WHOLE, ("output_item.done", {"item": CALL | {"arguments": ""}})],
        [BEGUN, WHOLE, ("output_item.done", {"item": CALL | {"arguments": A}})],
        [BEGUN, ("function_call_arguments.delta", {"item_id": "f", "delta": A}), WHOLE],
        [BEGUN, ("output_item.done", {"item": CALL | {"arguments": {"to": "A"}}})],
        [("output_item.done", {"item": CALL | {"arguments": {"to": "A"}}})],
    ],
)
async def test_arguments_of_responses_are_heard_wherever_they_are_told(serve, paid, pay, events):
    """They were taken for none: a call was made that nobody had asked for."""
    said = [("output_item.added", {"item": SAID}), ("output_text.done", {"item_id": "m", "text": "Done."})]
    server = serve(streaming(response(*events), response(*said)))
    model = OpenAIResponsesModel("m", base_url=server.url, api_key="k")
    result = await Agent(model, tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A"])


@pytest.mark.parametrize("words", [{"message": "Slow down.", "code": 429}, {"detail": "Slow down.", "status": 429}])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "google"])
async def test_an_error_that_does_not_say_so_is_heard(serve, dialect, words):
    """It was lost, and the stream said to have ended early."""
    begun = {"chat": chat(text="I")[:1], "messages": claude(text="I")[:4]}.get(dialect, [])
    server = serve(streaming([*begun, words]))
    writer = getattr(writers(), dialect.title())
    result = await Agent(writer.model("m", base_url=server.url, api_key="a-made-up-key"), retries=0).run("go")
    (failed,) = [event for event in result.events if isinstance(event, ModelFailed)]
    assert (failed.error.kind, "Slow down." in failed.error.message) == ("rate_limited", True)


async def test_words_after_a_reply_has_ended_are_no_error(serve):
    """Regression: a reply that was whole and paid for was thrown away, and asked for again."""
    *said, end = chat(text="Done.")
    server = serve(streaming([*said, {"message": "The stream is closed."}, end]))
    result = await Agent(OpenAIChatModel("m", base_url=server.url, api_key="k"), retries=1).run("go")
    assert (result.text, len(server.requests)) == ("Done.", 1)


@pytest.mark.parametrize("late", [{"type": "error", "error": {"type": "api_error", "message": "x"}}, {"message": "x"}])
@pytest.mark.parametrize("dialect", ["Messages", "Responses"])
async def test_an_error_after_the_last_event_of_a_reply_takes_nothing_back(serve, dialect, late):
    """A reply that was whole and paid for was thrown away, and asked for again."""
    writer = getattr(writers(), dialect)

    def answer(peer):
        peer.begin()
        for piece in [*writer.text("Done."), f"data: {json.dumps(late)}\n\n".encode()]:
            peer.chunk(piece)
        peer.end()

    server = serve(answer)
    result = await Agent(writer.model("m", base_url=server.url, api_key="a-made-up-key"), retries=1).run("go")
    assert (result.text, len(server.requests)) == ("Done.", 1)


@pytest.mark.parametrize("dialect", ["Messages", "Chat", "Responses", "Google"])
async def test_an_empty_object_in_a_stream_says_nothing(serve, paid, pay, dialect):
    writer = getattr(writers(), dialect)

    def answer(peer):
        peer.begin()
        for piece in writer.text("Done.") if peer.number else writer.calls(("a", "pay", A)):
            peer.chunk(b"data: {}\n\n")
            peer.chunk(piece)
        peer.end()

    model = writer.model("m", base_url=serve(answer).url, api_key="a-made-up-key")
    result = await Agent(model, tools=[pay], retries=0).run("go")
    assert (result.text, paid) == ("Done.", ["A"])


@pytest.mark.parametrize("number", ["0", 0.0, None])
async def test_the_only_choice_is_the_reply_however_its_number_is_written(serve, number):
    """Under a text it was passed over, and nothing was said to be the answer."""
    said = chat(text="Done.")
    for chunk in said[:-1]:
        chunk["choices"][0]["index"] = number
    result = await Agent(OpenAIChatModel("m", base_url=serve(streaming(said)).url, api_key="k"), retries=0).run("go")
    assert result.text == "Done."
