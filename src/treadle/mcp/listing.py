"""Listing: what a server lists as its tools now, asked for page by page, and again only where it may have changed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.mcp.connection import Connection
from treadle.mcp.failing import told_of
from treadle.mcp.link import STARTING, Link
from treadle.mcp.secrets import Secrets
from treadle.mcp.unanswered import of_transport
from treadle.tools.server import ServerFailed

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client


class Listing:
    """What one server lists.

    Args:
        name: the server's.
        secrets: what is in no error.
        connection: tells how often the server has said that it has other tools.
        most: how many tools are listened to.
    """

    def __init__(self, name: str, secrets: Secrets, connection: Connection, most: int) -> None:
        self._name, self._secrets, self._connection, self._most = name, secrets, connection, most
        self._kept: tuple[Link, int, Sequence[mcp_types.Tool]] | None = None

    async def now(self, link: Link) -> "Sequence[mcp_types.Tool]":
        """What it lists now, asked for if it may have changed.

        Raises:
            ServerFailed: it lists too many, what are no tools, or not in time.
            Gone, Forgotten: the connection ended meanwhile.
        """
        kept, changes = self._kept, self._connection.changes
        if kept is not None and kept[0] is link and kept[1] == changes:
            return kept[2]
        tools = await link.call(self._all)
        self._kept = (link, changes, tools)
        return tools

    async def _all(self, client: "Client") -> "Sequence[mcp_types.Tool]":
        import anyio
        from mcp import MCPError

        found: list[mcp_types.Tool] = []
        if client.server_capabilities.tools is None:
            return found
        cursor = None
        try:
            with anyio.fail_after(STARTING):
                while len(found) <= self._most:
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        return found
        except TimeoutError:
            raise ServerFailed(f"the server {self._name} did not list its tools within {STARTING:g} s") from None
        except MCPError as error:
            if of_transport(error) is not None:
                raise
            raise ServerFailed(f"{self._name} answers: {self._secrets.hidden(error.message)[:500]}") from error
        except ValueError as error:
            words = self._secrets.hidden(told_of(error))[:500]
            raise ServerFailed(f"the server {self._name} lists what are no tools: {words}") from error
        if len({one.name for one in found}) <= self._most:
            raise ServerFailed(f"the server {self._name} lists the same tools again and again, page after page")
        raise ServerFailed(
            f"the server {self._name} lists more than {self._most} tools: name those that are wanted (only=[…])"
        )
