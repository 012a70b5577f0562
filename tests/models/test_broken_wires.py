"""What breaks on the wire, and what of it is paid for, run and sent back; real sockets.

What was found, and the test that holds it:

- a stream that ended within its first event cost nothing -> test_a_stream_that_ends_within_its_first_event_is_paid_for
"""

import json

import pytest

from treadle import Agent, Price
from treadle.models import AnthropicModel, BedrockModel, GoogleModel, OpenAIChatModel, OpenAIResponsesModel

pytestmark = pytest.mark.anyio

PRICE = Price(1, 1)


def chat(server, **options):
    return OpenAIChatModel("m", base_url=server.url, api_key="k", price=PRICE, **options)


def responses(server, **options):
    return OpenAIResponsesModel("m", base_url=server.url, api_key="k", price=PRICE, **options)


def claude(server, **options):
    return AnthropicModel("claude-sonnet-4-5", base_url=server.url.removesuffix("/v1"), api_key="k", price=PRICE)


def gemini(server, **options):
    return GoogleModel("gemini-2.5-pro", base_url=server.url, api_key="k", price=PRICE, **options)


def bedrock(server, **options):
    return BedrockModel("m", base_url=server.url, api_key="k", region="eu-central-1", price=PRICE, **options)


FRAMES = {"content_type": "application/vnd.amazon.eventstream"}
FIRST = f"event: message_start\ndata: {json.dumps({'type': 'message_start', 'message': {'id': 'm'}})}".encode()


@pytest.mark.parametrize("make", [chat, responses, claude, gemini, bedrock])
@pytest.mark.parametrize("sent", [8, 40, len(FIRST) - 3])
async def test_a_stream_that_ends_within_its_first_event_is_paid_for(serve, make, sent):
    """Whatever the byte at which it ended: a connection that was dropped there was counted, and an end was not."""
    binary = (200).to_bytes(4) + (100).to_bytes(4) + b"?" * 100

    def answer(peer):
        peer.begin(**(FRAMES if make is bedrock else {}))
        peer.chunk(binary[:sent] if make is bedrock else FIRST[:sent])
        peer.end()

    result = await Agent(make(serve(answer)), retries=0).run("go")
    assert result.stop.reason == "model_error"
    assert result.usage.estimated
    assert result.usage.input_tokens > 0
    assert result.cost


@pytest.mark.parametrize(
    "body", [b"", b": keep-alive\n\n", b"no healthy upstream\n"], ids=["empty", "comment", "words"]
)
async def test_a_stream_in_which_nothing_begins_costs_nothing(serve, body):
    def answer(peer):
        peer.begin()
        if body:
            peer.chunk(body)
        peer.end()

    result = await Agent(chat(serve(answer)), retries=0).run("go")
    assert (result.stop.reason, result.usage.total_tokens) == ("model_error", 0)
