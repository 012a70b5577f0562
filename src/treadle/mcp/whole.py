"""Whole: results of calls in which servers leave out the list of content, as there is none, or have null in its place.

The official package refuses these, and with them the structured content in which there is all that the call gave.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any


@asynccontextmanager
async def whole(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of messages from and to a server, of which each result has a list of content."""
    async with transport as (read, write):
        yield _Read(read), write


class _Read:
    """The stream of what a server says; all that is asked of it beside messages is the stream's own."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read, name)

    async def __aenter__(self) -> "_Read":
        await self._read.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._read.__aexit__(*error)

    def __aiter__(self) -> "_Read":
        return self

    async def __anext__(self) -> Any:
        item = await self._read.__anext__()
        result = getattr(getattr(item, "message", None), "result", None)
        if isinstance(result, dict) and {"structuredContent", "content"} & result.keys():
            result["content"] = [] if result.get("content") is None else result["content"]
        return item
