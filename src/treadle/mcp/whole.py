"""Whole: what servers send that the official package would refuse as a whole for a part of it.

Of results of calls these are those without a list of content, as there is none, or with null in its place, though all
that the call gave is in the structured content; of pages of tools those with one that is none among them.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from treadle.mcp.failing import told_of

WHERE: Final = re.compile(r"tools\.0(?:\.|: )")
"""Where a fault is, in a page that was made of one tool."""


@asynccontextmanager
async def whole(
    transport: AbstractAsyncContextManager[Any], version: Callable[[], str], left_out: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of messages from and to a server, of which each result has a list of content, and each page tools.

    Args:
        transport: gives the streams.
        version: the version of the protocol that is spoken; asked once it is known.
        left_out: is told, for each page, which tools are none, and why.
    """
    async with transport as (read, write):
        yield _Read(read, version, left_out), write


class _Read:
    """The stream of what a server says; all that is asked of it beside messages is the stream's own."""

    def __init__(self, read: Any, version: Callable[[], str], left_out: Callable[[str], None]) -> None:
        self._read, self._version, self._left_out = read, version, left_out

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
        elif isinstance(result, dict) and isinstance(result.get("tools"), list) and self._fault(result):
            self._mend(result)
        return item

    def _mend(self, page: dict[str, Any]) -> None:
        """Leaves out what are no tools; what else is wrong with a page is told as it is read."""
        if self._fault({**page, "tools": []}):
            return
        faults = [(one, self._fault({**page, "tools": [one]})) for one in page["tools"]]
        page["tools"] = [one for one, fault in faults if not fault]
        self._left_out("; ".join(f"{_name_of(one)}: {fault}" for one, fault in faults if fault))

    def _fault(self, page: dict[str, Any]) -> str:
        """What is wrong with a page of tools; empty if nothing is."""
        from mcp_types.methods import validate_server_result

        try:
            validate_server_result("tools/list", self._version(), page)
        except ValueError as error:
            return WHERE.sub("", told_of(error))
        except (KeyError, RuntimeError):
            # A version that is not known here, or not yet: it is told as it is read.
            pass
        return ""


def _name_of(tool: Any) -> str:
    return repr(tool.get("name") if isinstance(tool, dict) else tool)
