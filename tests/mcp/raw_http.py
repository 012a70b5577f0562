"""An MCP server over HTTP without any package, so that it can break off, refuse and forget as that one would not."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

INFO = {"name": "raw", "version": "1"}
MODERN = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS = [{"name": "pay", "description": "Pays some amount of money.", "inputSchema": SCHEMA}]


class RawHTTP:
    """One tool, `pay`, of which each call is answered by `pays`; with it False the connection is cut.

    Args:
        pays: given this, the request's number, and the amount; answers with `said`, `wrote` or `paid`.
        modern: whether it speaks the newest version; else one with a handshake and a session.
        forgets: the status, the body and its kind with which it answers for a session that it does not know.
        moved: whether it is at another address of the same server, to which whoever comes is redirected.
    """

    def __init__(
        self,
        pays: "Callable[[RawHTTP, int, int], Awaitable[bytes]]",
        modern: bool,
        forgets: tuple[int, bytes, str] = (404, b"", "text/plain"),
        moved: bool = False,
    ):
        self.moved, self.redirected = moved, list[str]()
        self.pays, self.modern, self.forgets = pays, modern, forgets
        self.tools = TOOLS
        self.calls: list[int] = []
        self.done: list[int] = []
        self.sessions: set[str] = set()
        self.begun = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "RawHTTP":
        self._server = await asyncio.start_server(self._hear, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for one in self._writers:
            one.close()

    def said(self, status: int, body: bytes = b"", kind: str = "application/json", more: str = "") -> bytes:
        """An answer of HTTP."""
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        return head.encode() + body

    def answered(self, number: int, result: dict[str, Any], more: str = "") -> bytes:
        """An answer of JSON-RPC."""
        whole = MODERN | result if self.modern else result
        return self.said(200, json.dumps({"jsonrpc": "2.0", "id": number, "result": whole}).encode(), more=more)

    def paid(self, number: int, n: int) -> bytes:
        """What is answered where all is well."""
        return self.answered(number, {"content": [{"type": "text", "text": f"paid {n}"}]})

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                method, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
                headers = dict(line.split(": ", 1) for line in lines if ": " in line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                verb, path, _ = method.split()
                if self.moved and path == "/mcp":
                    self.redirected.append(json.loads(body or b"{}").get("method", verb))
                    answer = self.said(307, more="location: /mcp/\r\n")
                else:
                    answer = await self._answer(verb, headers.get("mcp-session-id", ""), body)
                writer.write(answer)
                await writer.drain()
                if not answer or b"event-stream" in answer or b"content-length: 999" in answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def _answer(self, verb: str, session: str, body: bytes) -> bytes:
        if verb != "post":
            return self.said(405)
        message = json.loads(body)
        number, method = message.get("id"), message.get("method")
        if number is None or method is None:
            return self.said(202)
        if method == "initialize":
            self.begun += 1
            self.sessions.add(f"s{self.begun}")
            about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": INFO}
            return self.answered(number, about, f"mcp-session-id: s{self.begun}\r\n")
        if not self.modern and session not in self.sessions:
            return self.said(*self.forgets)
        match method:
            case "server/discover":
                about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": INFO}
                return self.answered(number, about)
            case "tools/list":
                return self.answered(number, {"tools": self.tools})
            case "tools/call":
                n = message["params"]["arguments"]["n"]
                self.calls.append(n)
                return await self.pays(self, number, n)
        error = {"code": -32601, "message": f"no {method} here"}
        return self.said(200, json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode())
