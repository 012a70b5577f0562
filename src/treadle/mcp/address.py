"""Address: a server that is spoken to over streamable HTTP."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from treadle.mcp.program import LONGEST_LINE


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str], auth: Any) -> AsyncIterator[Any]:
    """The streams of messages from and to the server at an address."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(30.0, read=None)
    async with (
        httpx2.AsyncClient(headers=dict(headers), auth=auth, timeout=timeout) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST_LINE) as streams,
    ):
        yield streams
