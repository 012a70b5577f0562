"""What a text cites is kept beside it for people to read, and goes back only where the provider wants it."""

import json

import pytest

from treadle import Agent, Conversation
from treadle.context.edited import with_text
from treadle.context.tokens import estimate_tokens
from treadle.kernel.messages import AssistantMessage, Opaque, Text, UserMessage
from treadle.models import AnthropicModel, GoogleModel, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.bedrock import BedrockCodec
from treadle.models.port import ModelRequest

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}
PAGE = {"type": "url_citation", "url": "https://example.org", "title": "Rain"}
FOUND = {"type": "web_search_result_location", "url": "https://example.org", "encrypted_index": "E", "cited_text": "r"}
QUOTED = {"type": "char_location", "document_index": 0, "start_char_index": 0, "end_char_index": 2, "cited_text": "It"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def claude(*cited, stream):
    whole = {"type": "text", "text": "It rains.", "citations": list(cited)}
    last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "usage": {"input_tokens": 5}}
    if not stream:
        return message | {
            "content": [whole],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 5, "output_tokens": 5},
        }
    deltas = [{"type": "citations_delta", "citation": one} for one in cited] + [
        {"type": "text_delta", "text": "It rains."}
    ]
    return [
        {"type": "message_start", "message": message | {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": whole | {"text": "", "citations": []}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        last,
        {"type": "message_stop"},
    ]


def responses(*cited, stream):
    part = {"type": "output_text", "text": "It rains.", "annotations": list(cited)}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [part]}
    whole = {"id": "r", "status": "completed", "output": [item], "usage": {"input_tokens": 5, "output_tokens": 5}}
    done = [{"type": "response.output_item.done", "output_index": 0, "item": item}]
    return [*done, {"type": "response.completed", "response": whole}] if stream else whole


def chat(*cited, stream):
    """Told twice, as those do that tell all with each chunk."""
    said = {"content": "It rains.", "annotations": list(cited)}
    rest = {"id": "c", "citations": ["https://example.org"]}
    whole = rest | {"choices": [{"index": 0, ("delta" if stream else "message"): said, "finish_reason": "stop"}]}
    again = rest | {"choices": [{"index": 0, "delta": {"annotations": list(cited)}}]}
    return [whole, again] if stream else whole


def gemini(*cited, stream):
    content = {"role": "model", "parts": [{"text": "It rains."}]}
    told = {"content": content, "groundingMetadata": {"groundingChunks": list(cited)}, "finishReason": "STOP"}
    whole = {"candidates": [told], "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 5}}
    return [whole] if stream else whole


def asked(dialect, server, stream):
    base = server.url.removesuffix("/v1")
    match dialect:
        case "claude":
            return AnthropicModel("m", base_url=base, api_key="k", streaming=stream)
        case "responses":
            return OpenAIResponsesModel("m", base_url=server.url, api_key="k", streaming=stream)
        case "chat":
            return OpenAIChatModel("m", base_url=server.url, api_key="k", streaming=stream)
        case _:
            return GoogleModel("m", base_url=base, api_key="k", streaming=stream)


REPLIES = {"claude": claude, "responses": responses, "chat": chat, "gemini": gemini}
KEPT = {
    "claude": {"type": "text", "text": "It rains.", "citations": [PAGE]},
    "responses": {"type": "output_text", "text": "It rains.", "annotations": [PAGE]},
    "chat": {"annotations": [PAGE], "citations": ["https://example.org"]},
    "gemini": {"groundingMetadata": {"groundingChunks": [PAGE]}},
}


def giving(serve, body):
    """A server that answers with `body`, or streams it where it is a list."""

    def answer(peer):
        if isinstance(body, dict):
            return peer.answer("200 OK", JSON, json.dumps(body).encode())
        peer.begin()
        for data in body:
            peer.chunk(f"data: {json.dumps(data)}\n\n".encode())
        return peer.end()

    return serve(answer)


async def talked(serve, dialect, stream, *cited):
    """The first reply of two, and the second request."""
    server = giving(serve, REPLIES[dialect](*cited, stream=stream))
    agent = Agent(asked(dialect, server, stream), retries=0)
    talk = Conversation()
    first = await agent.run("How is the weather?", conversation=talk)
    await agent.run("And now?", conversation=talk)
    assert first.text == "It rains."
    return first.steps[-1].message.content, json.loads(server.requests[1].body)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", REPLIES)
async def test_what_a_text_cites_stands_after_it(serve, dialect, stream):
    said, sent = await talked(serve, dialect, stream, PAGE)
    text, cited = said
    assert (text, cited.value, cited.shown) == (Text("It rains."), KEPT[dialect], "")
    assert isinstance(cited, Opaque)
    assert "It rains." in json.dumps(sent)
    assert "example.org" not in json.dumps(sent)


@pytest.mark.parametrize("dialect", REPLIES)
async def test_what_a_text_cites_is_no_part_of_the_next_request(serve, dialect):
    said, _ = await talked(serve, dialect, True, PAGE)
    assert estimate_tokens(AssistantMessage(said)) == estimate_tokens(AssistantMessage(said[:1]))


@pytest.mark.parametrize("stream", [True, False])
async def test_what_claude_found_in_the_web_goes_back_with_its_text(serve, stream):
    """Of a document that may have left the history, nothing does."""
    said, sent = await talked(serve, "claude", stream, FOUND, QUOTED)
    assert said[1].value["citations"] == [FOUND, QUOTED]
    assert sent["messages"][1]["content"] == [{"type": "text", "text": "It rains.", "citations": [FOUND]}]


async def test_the_texts_of_one_message_keep_its_phase_around_what_they_cite(serve):
    """Regression: the second went back as an answer."""
    parts = [{"type": "output_text", "text": "It rains.", "annotations": [PAGE]}, {"type": "output_text", "text": "So"}]
    item = {"type": "message", "id": "m", "role": "assistant", "phase": "commentary", "content": parts}
    server = giving(serve, {"id": "r", "status": "completed", "output": [item], "usage": {}})
    agent, talk = Agent(asked("responses", server, False), retries=0), Conversation()
    for question in ("How is the weather?", "And now?"):
        await agent.run(question, conversation=talk)
    said = [one for one in json.loads(server.requests[1].body)["input"] if one["role"] == "assistant"]
    assert [(one["content"], one.get("phase")) for one in said] == [("It rains.", "commentary"), ("So", "commentary")]


DRAWN = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", ["chat", "gemini"])
async def test_what_an_image_alone_rests_on_is_kept(serve, dialect, stream):
    """Regression: it was lost where no text stood beside the image."""
    body = REPLIES[dialect](PAGE, stream=stream)
    for data in body if stream else [body]:
        if dialect == "gemini":
            data["candidates"][0]["content"]["parts"] = [DRAWN]
        else:
            said = data["choices"][0]["delta" if stream else "message"]
            said |= {"content": "", "images": [PICTURE]}
    result = await Agent(asked(dialect, giving(serve, body), stream), retries=0).run("Draw the weather.")
    image, cited = result.steps[-1].message.content
    assert (result.text, image.shown, cited.value) == ("", "image", KEPT[dialect])


def test_a_text_of_bedrocks_that_was_edited_is_sent_as_it_was_edited():
    """Regression: what it was before went out beside it, with what it cites."""
    cited = {"citationsContent": {"content": [{"text": "It rains on 4711."}], "citations": [PAGE]}}
    said = AssistantMessage((Text("It rains on 4711."), Opaque("bedrock", cited)))
    for one, sent in ((said, [cited]), (with_text(said, "It rains."), [{"text": "It rains."}])):
        request = ModelRequest((UserMessage("How is the weather?"), one, UserMessage("And now?")))
        body = json.loads(BedrockCodec().encode(request, "us.amazon.nova-pro-v1:0", True))
        assert body["messages"][1]["content"] == sent
