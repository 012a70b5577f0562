"""A stream in which an event comes again, as from a proxy that sends a piece anew: no call runs that was not made."""

import json
from collections import Counter

import pytest
from stream_writers import writers

from treadle import Agent, tool
from treadle.models.google import GoogleCodec

pytestmark = pytest.mark.anyio
CALLS = [("a1", "pay", '{"to": "A"}'), ("a2", "pay", '{"to": "B"}'), ("a3", "pay", "{}")]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.parametrize("effect", ["read", "write"])
@pytest.mark.parametrize("dialect", ["Messages", "Chat", "Responses", "Google", "Converse"])
async def test_whichever_event_comes_twice_no_call_runs_that_was_not_made(serve, dialect, effect):
    """The beginning of a call that came twice was a call of its own, without arguments: `pay` was run with none."""
    writer = getattr(writers(), dialect)
    pieces = writer.calls(*CALLS)
    made = Counter(json.loads(arguments).get("to", "nobody") for _, _, arguments in CALLS)
    for place in range(len(pieces)):
        paid = []

        @tool(effect=effect)
        def pay(to: str = "nobody") -> str:
            """Pays."""
            paid.append(to)  # noqa: B023 - read within its turn
            return "paid"

        told = [pieces[: place + 1] + pieces[place:], writer.text("Done.")]

        def script(peer):
            peer.begin()
            for piece in told[min(peer.number, 1)]:  # noqa: B023 - read within its turn
                peer.chunk(piece)
            peer.end()

        server = serve(script)
        await Agent(writer.model("m", base_url=server.url, api_key="a-made-up-key"), tools=[pay], retries=0).run("go")
        assert Counter(paid) <= made, (place, pieces[place])
        if place == 1:
            assert Counter(paid) == made


def chunk(*calls, tokens, **more):
    parts = [{"functionCall": {"name": "pay", "args": {"to": to}}} for to in calls]
    usage = {"promptTokenCount": 7, "candidatesTokenCount": tokens, "totalTokenCount": 7 + tokens}
    return {"candidates": [{"content": {"parts": parts, "role": "model"}} | more], "usageMetadata": usage}


LAST = chunk("A", tokens=5, finishReason="STOP")


@pytest.mark.parametrize(
    ("chunks", "made"),
    [
        ([LAST, LAST], ["A"]),
        ([chunk("B", tokens=3), LAST, LAST], ["B", "A"]),
        ([LAST, LAST, LAST], ["A"]),
        # Calls that are alike are several, where nothing says that they are one.
        ([chunk("A", "A", tokens=5, finishReason="STOP")], ["A", "A"]),
        ([chunk("A", tokens=3), LAST], ["A", "A"]),
        ([chunk("A", tokens=3), chunk("A", tokens=3), LAST], ["A", "A", "A"]),
        ([chunk("A", tokens=3, finishReason="STOP"), LAST], ["A", "A"]),
    ],
)
def test_an_end_of_gemini_that_comes_again_makes_no_call_without_an_id_twice(chunks, made):
    decoder = GoogleCodec().decoder()
    for data in chunks:
        decoder.feed(data)
    assert [json.loads(call.arguments)["to"] for call in decoder.close().message.calls] == made
