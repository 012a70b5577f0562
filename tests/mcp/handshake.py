"""A server as it speaks to a client of the versions with a handshake, or of the newest, without a process."""

from contextlib import asynccontextmanager

import anyio
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError


@asynccontextmanager
async def of_before(served, *, before=True):
    """The streams to a server as it speaks to a client of the versions with a handshake, or of the newest."""
    async with (
        create_client_server_memory_streams() as (client, (inner_read, inner_write)),
        create_client_server_memory_streams() as ((back, forth), (read, write)),
        anyio.create_task_group() as group,
    ):

        async def passes_on():
            async for one in inner_read:
                if before and getattr(one.message, "method", "") == "server/discover":
                    no = ErrorData(code=-32601, message="no")
                    await inner_write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=one.message.id, error=no)))
                else:
                    await forth.send(one)

        async def passes_back():
            async for one in back:
                await inner_write.send(one)

        group.start_soon(passes_on)
        group.start_soon(passes_back)
        group.start_soon(served.run, read, write, served.create_initialization_options())
        yield client
        group.cancel_scope.cancel()
