"""A reply of an image or a sound alone is an answer; one of what nobody is shown is empty."""

import json

import pytest

from treadle import Agent, Usage
from treadle.kernel.messages import AssistantMessage, Opaque
from treadle.models import GoogleModel, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.port import ModelReply

pytestmark = pytest.mark.anyio
DRAWN = {"type": "image_generation_call", "id": "i", "status": "completed", "result": "aGk="}
INLINE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


@pytest.fixture
def anyio_backend():
    return "asyncio"


def gemini(part):
    said = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return GoogleModel, {"candidates": [said], "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 5}}


def chat(**message):
    said = {"index": 0, "delta": {"role": "assistant", "content": None, **message}, "finish_reason": "stop"}
    return OpenAIChatModel, {"id": "c", "choices": [said], "usage": {"prompt_tokens": 5, "completion_tokens": 5}}


def responses(*items):
    usage = {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10}
    whole = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": items, "usage": usage}
    return OpenAIResponsesModel, {"type": "response.completed", "response": whole}


@pytest.mark.parametrize(
    ("wire", "answers"),
    [
        (gemini(INLINE), True),
        (gemini({**INLINE, "thought": True}), False),
        (chat(images=[{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]), True),
        (chat(audio={"id": "a", "data": "aGk="}), True),
        (chat(), False),
        (chat(images=[], audio={"data": "", "expires_at": 0, "id": "", "transcript": ""}), False),
        (responses(DRAWN), True),
        (responses({**DRAWN, "result": None}), False),
        (responses({"type": "web_search_call", "id": "w", "status": "completed"}), False),
    ],
    ids=range(9),
)
async def test_what_is_drawn_or_spoken_alone_is_asked_and_paid_for_once(serve, wire, answers):
    """Regression: it was told to be empty, asked for three times more, and the run failed."""
    kind, told = wire

    def answer(peer):
        peer.begin()
        peer.chunk(f"data: {json.dumps(told)}\n\n".encode())
        peer.end()

    server = serve(answer)
    result = await Agent(kind("m", base_url=server.url, api_key="k")).run("draw")
    assert result.stop.reason == ("answered" if answers else "consecutive_errors")
    assert len(server.requests) == len(result.steps) == (1 if answers else 4)


@pytest.mark.parametrize("shown", [True, False])
async def test_a_model_of_ones_own_says_whether_a_part_is_shown(shown):
    class Drawing:
        name = "m"

        async def stream(self, request):
            yield ModelReply(AssistantMessage((Opaque("p", {"a": 1}, shown=shown),)), Usage(5, 5), "stop")

    result = await Agent(Drawing()).run("draw")
    assert (result.stop.reason == "answered") is shown
    assert ("image or a sound (result.steps[-1].message)" in result.message) is shown
    assert result.steps[-1].message == AssistantMessage((Opaque("p", {"a": 1}, shown=shown),))
