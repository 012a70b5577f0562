"""What a reply of Chat Completions has beside its text and its function calls: images, sound, calls of custom tools."""

import json
from base64 import b64decode, b64encode

import pytest

from treadle import Agent, Conversation, MemoryJournal, Price
from treadle.kernel.fold import fold_all
from treadle.models import BadRequest, OpenAIChatModel
from treadle.models.bounds import LONGEST_REPLY

pytestmark = pytest.mark.anyio
USED = {"prompt_tokens": 7, "completion_tokens": 5}
JSON = {"content-type": "application/json"}


@pytest.fixture
def anyio_backend():
    return "asyncio"


def drawn(letter="p", length=30):
    address = f"data:image/png;base64,{b64encode(letter.encode() * length).decode()}"
    return {"type": "image_url", "image_url": {"url": address}}


def asked(serve, *replies, **options):
    """A model whose replies are these deltas, the last with the end; a reply of one delta comes as a whole body."""

    def answer(peer):
        deltas = replies[min(peer.number, len(replies) - 1)]
        if len(deltas) == 1:
            message = {"role": "assistant", "content": None} | deltas[0]
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            peer.answer("200 OK", JSON, json.dumps({"id": "c", "choices": [choice], "usage": USED}).encode())
            return
        peer.begin()
        for delta in deltas:
            choice = {"index": 0, "delta": delta, "finish_reason": "stop" if delta is deltas[-1] else None}
            peer.chunk(f"data: {json.dumps({'id': 'c', 'choices': [choice], 'usage': USED})}\n\n".encode())
        peer.end()

    server = serve(answer)
    return server, OpenAIChatModel("m", base_url=server.url, api_key="k", **options)


def beside(result):
    return {name: value for name, value in result.messages[-1].content[-1].value.items() if value}


@pytest.mark.parametrize(
    "deltas",
    [
        [{"content": "Here it is.", "images": [drawn()]}],
        [{"content": "Here "}, {"content": "it is."}, {"images": [drawn()]}, {"content": ""}],
        [{"images": [drawn()]}, {"images": [drawn()]}, {"content": "Here it is."}],
    ],
)
async def test_an_image_is_kept_and_breaks_no_conversation(serve, deltas):
    server, model = asked(serve, deltas, [{"content": "Yes."}])
    talk = Conversation()
    result = await Agent(model).run("draw", conversation=talk)
    assert (result.text, beside(result)) == ("Here it is.", {"images": [drawn()]})
    assert (await Agent(model).run("and?", conversation=talk)).text == "Yes."
    assert json.loads(server.requests[1].body)["messages"][1] == {"role": "assistant", "content": "Here it is."}


async def test_an_image_that_comes_with_the_whole_reply_told_again_is_kept(serve):
    end = {"message": {"content": "Here it is.", "images": [drawn()]}, "index": 0, "finish_reason": "stop"}

    def answer(peer):
        peer.begin()
        for choice in ({"index": 0, "delta": {"content": "Here it is."}}, end):
            peer.chunk(f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode())
        peer.end()

    result = await Agent(OpenAIChatModel("m", base_url=serve(answer).url, api_key="k")).run("draw")
    assert (result.text, beside(result)) == ("Here it is.", {"images": [drawn()]})


async def test_an_image_is_no_reply_that_is_too_long(serve):
    _, model = asked(serve, [{"content": "Here it is.", "images": [drawn(length=LONGEST_REPLY)]}])
    assert (await Agent(model).run("draw")).text == "Here it is."


@pytest.mark.parametrize(
    "deltas",
    [
        [{"audio": {"id": "a", "data": "aGk=", "transcript": "Hello there."}}],
        [
            {"audio": {"id": "a", "transcript": "Hello "}},
            {"audio": {"data": "aA=="}},
            {"audio": {"transcript": "there."}},
            {"audio": {"data": "aQ==", "expires_at": 5}},
        ],
        [{"content": "Hello there."}, {"audio": {"transcript": "Hello there.", "data": "aGk="}}],
        [{"content": "Hello there."}, {"audio": {"data": "aG"}}, {"audio": {"data": "k="}}],
    ],
)
async def test_what_is_said_in_a_sound_is_the_text_and_the_sound_is_kept(serve, deltas):
    server, model = asked(serve, deltas, [{"content": "Yes."}])
    talk = Conversation()
    result = await Agent(model).run("speak", conversation=talk)
    assert result.text == "Hello there."
    audio = beside(result)["audio"]
    assert (b64decode(audio["data"]), audio.get("transcript", "Hello there.")) == (b"hi", "Hello there.")
    await Agent(model).run("and?", conversation=talk)
    assert json.loads(server.requests[1].body)["messages"][1] == {"role": "assistant", "content": "Hello there."}


async def test_a_sound_in_odd_pieces_loses_no_reply(serve):
    _, model = asked(serve, [{"audio": {"transcript": "Hi.", "data": "a="}}, {"audio": {"data": "b"}}])
    result = await Agent(model).run("speak")
    assert (result.text, beside(result)["audio"]["data"]) == ("Hi.", "a=b")


CUSTOM = {"id": "u", "index": 0, "type": "custom", "custom": {"name": "shell", "input": "ls "}}


@pytest.mark.parametrize("usage", [True, False])
@pytest.mark.parametrize(
    "deltas",
    [
        [{"content": "Let me see.", "tool_calls": [CUSTOM]}],
        [
            {"content": "Let me see."},
            {"tool_calls": [CUSTOM]},
            {"tool_calls": [{"index": 0, "custom": {"input": "-l"}}]},
        ],
    ],
)
async def test_a_call_of_a_custom_tool_is_told_and_paid_for(serve, monkeypatch, deltas, usage):
    if not usage:
        monkeypatch.setitem(globals(), "USED", None)
    server, model = asked(serve, deltas, price=Price(1, 1))
    result = await Agent(model).run("go")
    assert isinstance(result.error, BadRequest)
    assert "custom tool" in result.stop.detail
    assert (len(server.requests), result.usage.input_tokens > 0, result.usage.output_tokens >= 5) == (1, True, True)


async def test_reasoning_goes_back_though_a_journal_has_spoilt_the_image_beside_it(serve):
    """Both stood in one part, and providers refuse a turn of theirs without its signed reasoning."""
    details = [{"type": "reasoning.text", "text": "A cat.", "signature": "sealed", "index": 0}]
    deltas = [{"reasoning_details": details}, {"images": [drawn()]}, {"content": "Here it is."}]
    server, model = asked(serve, deltas, [{"content": "Good."}])
    journal = MemoryJournal(redact=lambda text: text.replace(drawn()["image_url"]["url"][30:40], "[gone]"))
    agent = Agent(model, journal=journal)
    first = await agent.run("Draw.")
    conversation = Conversation(fold_all(await journal.read(first.run_id)).messages)
    assert (await agent.run("Once more.", conversation=conversation)).text == "Good."
    (said,) = [one for one in json.loads(server.requests[1].body)["messages"] if one["role"] == "assistant"]
    assert said["reasoning_details"] == details
    assert "images" not in said
