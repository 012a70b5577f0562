"""A reply of an image or a sound alone is an answer, and followed up; one of what nobody is shown is empty."""

import json

import pytest

from treadle import Agent, Limits, MemoryJournal, Text, Usage, tool
from treadle.kernel.messages import AssistantMessage, Opaque, ToolCall, UserMessage
from treadle.models import AnthropicModel, GoogleModel, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.bedrock import BedrockCodec
from treadle.models.port import ModelReply, ModelRequest
from treadle.testing import ScriptedModel

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


class Drawing:
    name = "m"

    def __init__(self, shown="image"):
        self.shown = shown

    async def stream(self, request):
        said = Text("A moon.") if request.messages[-1].text == "What is it?" else Opaque("p", {"a": 1}, self.shown)
        yield ModelReply(AssistantMessage((said,)), Usage(5, 5), "stop")


@pytest.mark.parametrize("shown", ["image", ""])
async def test_a_model_of_ones_own_says_what_is_shown_of_a_part(shown):
    result = await Agent(Drawing(shown)).run("draw")
    assert (result.stop.reason == "answered") is bool(shown)
    assert ("image or a sound (result.steps[-1].message)" in result.message) is bool(shown)
    assert result.steps[-1].message == AssistantMessage((Opaque("p", {"a": 1}, shown=shown),))
    assert (result.steps[-1].message in result.messages) is bool(shown)


@pytest.mark.parametrize("shown", [7, True])
async def test_what_is_no_word_for_what_is_shown_is_refused(shown):
    result = await Agent(Drawing(shown)).run("draw")
    assert "Opaque.shown takes a word for what people see or hear of it" in str(result.error)


SOUND = {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "aGk="}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
GEMINI, CHAT, RESPONSES = gemini(INLINE), chat(images=[PICTURE]), responses({**DRAWN, "size": "1024x1024"})
CLAUDE = AnthropicModel, {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}


@pytest.mark.parametrize(
    ("drew", "asked", "sent"),
    [
        (GEMINI, GEMINI, {"role": "model", "parts": [INLINE]}),
        (gemini(SOUND), GEMINI, {"role": "model", "parts": [{"text": "[sound]"}]}),
        (RESPONSES, RESPONSES, DRAWN),
        (CHAT, CHAT, {"role": "assistant", "content": "[image]"}),
        (chat(audio={"id": "a", "data": "aGk="}), CHAT, {"role": "assistant", "content": "[sound]"}),
        (RESPONSES, GEMINI, {"role": "model", "parts": [{"text": "[image]"}]}),
        (GEMINI, RESPONSES, {"type": "message", "role": "assistant", "content": "[image]"}),
        (RESPONSES, CHAT, {"role": "assistant", "content": "[image]"}),
        (GEMINI, CLAUDE, {"role": "assistant", "content": [{"type": "text", "text": "[image]"}]}),
    ],
    ids=range(9),
)
async def test_a_follow_up_is_asked_with_what_was_drawn(serve, drew, asked, sent):
    """Regression: it was asked as though nothing had been answered, so that nobody knew what to make brighter."""

    def answering(told):
        def answer(peer):
            if "error" in told:
                peer.answer("400 Bad Request", {"content-type": "application/json"}, json.dumps(told).encode())
                return
            peer.begin()
            peer.chunk(f"data: {json.dumps(told)}\n\n".encode())
            peer.end()

        return serve(answer)

    journal, first, second = MemoryJournal(), answering(drew[1]), answering(asked[1])
    run = await Agent(drew[0]("m", base_url=first.url, api_key="k"), journal=journal).run("draw")
    assert run.stop.reason == "answered"
    await Agent(asked[0]("m", base_url=second.url, api_key="k"), journal=journal).resume(
        run, message="make it brighter"
    )
    body = json.loads(second.requests[0].body)
    before, between, after = next(body[name] for name in ("messages", "contents", "input") if name in body)
    assert between == sent
    assert (before["role"], after["role"]) == ("user", "user")


async def test_an_image_of_bedrocks_is_told_for_it_takes_none_of_the_models():
    """Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html"""
    block = {"image": {"format": "png", "source": {"bytes": "aGk="}}}
    message = AssistantMessage((Opaque("bedrock", block, "image"),))
    request = ModelRequest((UserMessage("draw"), message, UserMessage("make it brighter")))
    sent = json.loads(BedrockCodec().encode(request, "amazon.nova-pro-v1:0", True))["messages"]
    assert sent[1]["content"][0] == {"text": "[image]"}


async def test_who_gave_a_task_on_is_told_that_an_image_came_of_it():
    """Regression: the result of the call was empty."""
    below = Agent(Drawing(), name="painter").as_tool()
    result = await Agent(ScriptedModel([[("painter", {"task": "draw"})], "There."]), tools=[below]).run("go")
    assert result.tool_calls_made[0].result.content == "[image]"


async def test_an_image_is_the_answer_and_not_what_was_said_before_it():
    class Painter(Drawing):
        async def stream(self, request):
            if request.step:
                async for event in super().stream(request):
                    yield event
                return
            call = ToolCall("c", "look", "{}")
            yield ModelReply(AssistantMessage((Text("Let me look."), call)), Usage(5, 5), "tool_calls")

    @tool(effect="read")
    def look() -> str:
        """Looks."""
        return "a moon"

    result = await Agent(Painter(), tools=[look]).run("draw")
    assert (result.stop.reason, result.text) == ("answered", "")
    assert "image or a sound" in result.message


async def test_an_image_that_is_objected_to_is_one_error_and_not_two():
    """Regression: it counted as a step in which nothing was said, beside the objection, and the run ended."""
    objections = ["brighter"]
    limits = Limits(consecutive_errors=2)
    agent = Agent(Drawing(), limits=limits, on_answer=lambda *given: objections.pop() if objections else None)
    result = await agent.run("draw")
    assert (result.stop.reason, len(result.steps)) == ("answered", 2)


async def test_a_damaged_image_is_sent_back_to_nobody(serve):
    """A journal with `redact=` may have replaced something in its bytes."""
    journal = MemoryJournal(redact=lambda text: text.replace("aGk=", "***"))

    def answer(peer):
        peer.begin()
        peer.chunk(f"data: {json.dumps(GEMINI[1])}\n\n".encode())
        peer.end()

    server = serve(answer)
    agent = Agent(GoogleModel("m", base_url=server.url, api_key="k"), journal=journal)
    run = await agent.run("draw")
    await agent.resume(run.run_id, message="make it brighter")
    assert json.loads(server.requests[1].body)["contents"][1] == {"role": "model", "parts": [{"text": "[image]"}]}
