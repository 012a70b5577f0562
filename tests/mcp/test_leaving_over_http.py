"""Clients that leave a POST in its middle: what they asked for under a key is done once, and told to who asks again."""

import asyncio
import json
import socket
import struct

import pytest

pytest.importorskip("mcp")
pytest.importorskip("uvicorn")

import uvicorn

from treadle import SqliteJournal, tool
from treadle.mcp import app_of

pytestmark = pytest.mark.anyio

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
RESETS = struct.pack("ii", 1, 0)


class Client:
    """A client without any package, which may leave before it is answered."""

    def __init__(self, port):
        self.port, self.session, self.number = port, "", 0

    async def post(self, method, params, leaves=""):
        """The answer to a request; None where it leaves: with "half" of it sent, when all is, or by a "reset"."""
        self.number += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode()
        lines = [
            "POST /mcp HTTP/1.1", f"host: 127.0.0.1:{self.port}", "content-type: application/json",
            "accept: application/json, text/event-stream", f"content-length: {len(body)}", "connection: close",
            *([f"mcp-session-id: {self.session}"] if self.session else []), "", "",
        ]  # fmt: skip
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write("\r\n".join(lines).encode() + (body[:60] if leaves == "half" else body))
        await writer.drain()
        if leaves:
            await asyncio.sleep(0.02)
            if leaves == "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
            writer.close()
            return None
        head, _, told = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
        headers = dict(line.split(": ", 1) for line in head.lower().split("\r\n")[1:])
        self.session = headers.get("mcp-session-id", self.session)
        return next(json.loads(line[line.index("{") :]) for line in told.splitlines() if '"jsonrpc"' in line)

    async def pays(self, amount, leaves=""):
        """What it is told of a payment, for which it begins a session if it has none."""
        if not self.session:
            await self.post("initialize", HELLO)
        meta = {"io.treadle/idempotency-key": f"order {amount}"}
        params = {"name": "pay", "arguments": {"amount": amount}, "_meta": meta}
        answer = await self.post("tools/call", params, leaves)
        return answer and answer["result"]["content"][0]["text"]


class Till:
    """Pays, and tells when all that can be paid at once is."""

    def __init__(self, most):
        self.paid, self.most, self.begun, self.may_end = [], most, asyncio.Event(), asyncio.Event()

        @tool
        async def pay(amount: int) -> str:
            """Pays an amount."""
            self.paid.append(amount)
            if len(self.paid) == self.most:
                self.begun.set()
            await self.may_end.wait()
            return f"paid {amount}"

        self.pay = pay


class Serving(uvicorn.Server):
    """A server that tells when it hears."""

    def __init__(self, app):
        super().__init__(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        self.hears = asyncio.Event()

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self.hears.set()


async def test_a_call_whose_client_left_is_made_once_and_told_to_who_asks_again(tmp_path):
    till = Till(2)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        async with (
            SqliteJournal(tmp_path / "journal.db") as journal,
            asyncio.timeout(20),
            asyncio.TaskGroup() as group,
        ):
            server = Serving(app_of([till.pay], journal=journal))
            group.create_task(server.serve([listening]))
            await server.hears.wait()
            for amount, leaves in enumerate(("half", "whole", "reset")):
                assert await Client(port).pays(amount, leaves) is None
            await till.begun.wait()
            assert sorted(till.paid) == [1, 2]
            assert "under way" in await Client(port).pays(1)
            till.may_end.set()
            for amount in (0, 1, 2):
                while (told := await Client(port).pays(amount)) != f"paid {amount}":
                    assert "under way" in told
            server.should_exit = True
            assert sorted(till.paid) == [0, 1, 2]
            assert {line.status for line in await journal.list()} == {"finished"}
