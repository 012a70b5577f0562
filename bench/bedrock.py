"""What Bedrock costs: CPU to read a streamed reply of Converse, and to send a request, against botocore.

    python bench/bedrock.py            # both, as tables; needs botocore

boto3 is botocore with another face: its client makes the request and takes the same frames apart, from the same bytes
in the same chunks, in memory; it has no whole message, so the pieces of the text are joined. It signs nothing here, as
treadle does not: the key is a bearer's. Turn about in one process, as in `bench/wire.py`; what counts is the ratio.

To reach: at most a third of botocore's CPU.
"""

import asyncio
import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import httpx2
from wire import CHUNK, DELTAS, STEPS, URL, Memory, asking, client_of, history, least, table

from treadle.models import BedrockModel, ModelRequest, UserMessage

NAME = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def frame(event: str, fields: dict[str, Any]) -> bytes:
    """A frame as the service sends it, its padding included."""
    named = [(":event-type", event), (":content-type", "application/json"), (":message-type", "event")]
    pairs = [(name.encode(), value.encode()) for name, value in named]
    head = b"".join(bytes([len(n)]) + n + b"\x07" + struct.pack(">H", len(v)) + v for n, v in pairs)
    data = json.dumps(fields | {"p": "abcdefghijklmnopqrstuvwxyzABCDEFGHI"}).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(data), len(head))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + data
    return checked + struct.pack(">I", zlib.crc32(checked))


def stream(deltas: int) -> bytes:
    """A reply in `deltas` pieces of text."""
    usage = {"inputTokens": 10, "outputTokens": 9, "totalTokens": 19}
    delta = frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "some "}})
    return b"".join(
        [
            frame("messageStart", {"role": "assistant"}),
            *[delta] * deltas,
            frame("contentBlockStop", {"contentBlockIndex": 0}),
            frame("messageStop", {"stopReason": "end_turn"}),
            frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
        ]
    )


class Chunks:
    """The body of a response, as urllib3 gives it to botocore."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        for start in range(0, len(self._body), CHUNK):
            yield self._body[start : start + CHUNK]

    def close(self) -> None:
        """There is nothing to close."""


def botocore_client(body: bytes) -> Any:
    """A client of botocore that is answered with `body` in memory."""
    from botocore import UNSIGNED
    from botocore.awsrequest import AWSResponse
    from botocore.config import Config
    from botocore.session import Session

    config = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    client = Session().create_client("bedrock-runtime", region_name="us-east-1", config=config)
    headers = {"content-type": "application/vnd.amazon.eventstream"}
    client._endpoint.http_session.send = lambda request: AWSResponse(request.url, 200, headers, Chunks(body))
    return client


def model_over(body: bytes) -> BedrockModel:
    """treadle's model, answered with `body` in memory."""
    model = BedrockModel(NAME, base_url=URL, api_key="test")
    model._transport = Memory(client_of(body))
    return model


def peer(client: Any, asked: dict[str, Any], *, joined: bool) -> Any:
    async def work() -> None:
        found = client.converse_stream(modelId=NAME, **asked)["stream"]
        if joined:
            "".join(one["contentBlockDelta"]["delta"]["text"] for one in found if "contentBlockDelta" in one)
        else:
            for _ in found:
                pass

    return work


async def decode(rounds: int = 7) -> None:
    """A reply of 5,000 deltas, from the bytes to the whole message."""
    body = stream(DELTAS)
    client, ask = botocore_client(body), {"messages": [{"role": "user", "content": [{"text": "hello"}]}]}
    works = {
        "ours": asking(model_over(body), ModelRequest([UserMessage("hello")])),
        "botocore": peer(client, ask, joined=False),
        "and joined": peer(client, ask, joined=True),
    }
    rows = {"bedrock": await least(works, rounds)}
    table(f"CPU to read a stream of {DELTAS} deltas (ms)", rows, [("ours", "botocore"), ("ours", "and joined")])


async def request(rounds: int = 7) -> None:
    """The request of step 500 and the shortest reply: with the history kept from step 499, and with nothing kept."""
    messages, body = history(STEPS), stream(1)
    model = model_over(body)
    sent = json.loads(model.codec.encode(ModelRequest(messages), NAME, True))
    before, now = ModelRequest(messages[:-2], run_id="r"), ModelRequest(messages, run_id="r")
    client, best = botocore_client(body), dict[str, float]()
    for _ in range(rounds):
        await asking(model, before)()
        works = {"next step": asking(model, now), "afresh": asking(model_over(body), now)}
        found = await least(works | {"botocore": peer(client, sent, joined=False)}, 1)
        best = {name: min(best.get(name, value), value) for name, value in found.items()}
    title = f"CPU of a request with a history of {STEPS} steps and a reply of one delta (ms)"
    table(title, {"bedrock": best}, [("next step", "botocore"), ("afresh", "botocore")])


def main() -> None:
    """Runs both."""
    try:
        import botocore
    except ImportError:
        print("botocore is not installed, and there is nothing to compare with")
        return
    print(f"botocore {botocore.__version__}, httpx2 {httpx2.__version__}")
    asyncio.run(decode())
    asyncio.run(request())


if __name__ == "__main__":
    main()
