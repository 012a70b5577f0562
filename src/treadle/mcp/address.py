"""Address: a server that is spoken to over streamable HTTP. What it answers has a bound, as a program's lines have."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from treadle.mcp.program import LONGEST_LINE

if TYPE_CHECKING:
    from httpx2 import Response


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str], auth: Any, told: str) -> AsyncIterator[Any]:
    """The streams of messages from and to the server at an address, which errors show as `told`."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from treadle.mcp.posting import Poster

    # Nothing compressed: a few bytes may be made to be very many.
    sent = {"accept-encoding": "identity", **headers}
    options: Any = {"timeout": httpx2.Timeout(30.0, read=None), "event_hooks": {"response": [_bounded]}}
    # How many calls there are at once is for the runs to say: what waited here for a connection would pass for sent.
    options["limits"] = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
    async with (
        Poster(url, told, headers=sent, auth=auth, **options) as client,
        client.posting(),
        streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST_LINE) as streams,
    ):
        yield streams


async def _bounded(response: "Response") -> None:
    """Has the body of `response` end with an error where it is too long. A stream of events has a bound for each."""
    import httpx2

    from treadle.mcp.posting import Unbounded

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise Unbounded("the answer is compressed, which was not asked for", request=response.request)
    if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return
    body: Any = response.stream

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = LONGEST_LINE
            async for piece in body:
                left -= len(piece)
                if left < 0:
                    raise Unbounded(f"the answer has more than {LONGEST_LINE:,} bytes", request=response.request)
                yield piece

        async def aclose(self) -> None:
            await body.aclose()

    response.stream = Bounded()
