"""The server of `real_server.py` over streamable HTTP, in this process: a connection that breaks off is its death."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from real_server import VERSION, Served


def handler(served: Served, over: Event) -> type[BaseHTTPRequestHandler]:
    """Answers requests by the plan."""

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                # The client has gone away.
                self.close_connection = True

        def do_GET(self) -> None:
            self._say(405, b"")

        do_DELETE = do_GET

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not body:
                # It was given up before it was sent.
                self.close_connection = True
                return
            message = json.loads(body)
            method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
            if number is None:
                self._say(202, b"")
            elif method == "initialize":
                about = {"serverInfo": {"name": "real", "version": "1"}, "capabilities": {"tools": {}}}
                self._answer(number, {"protocolVersion": VERSION, **about})
            elif method == "tools/list":
                self._answer(number, {"tools": served.listed()})
            elif method == "tools/call":
                self._call(number, params, served.happens())
            else:
                self._json({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}})

        def _call(self, number: Any, params: Any, what: str) -> None:
            if what == "dies_before":
                self.close_connection = True
                return
            result = served.carries_out(params)
            served.changes(what)
            if what == "dies":
                self.close_connection = True
            elif what == "junk":
                self._say(200, b"\x1b[2J no message", "application/json")
            elif what == "twice":
                other = {"content": [{"type": "text", "text": "something else"}]}
                said = [json.dumps({"jsonrpc": "2.0", "id": number, "result": one}) for one in (result, other)]
                self._say(
                    200, "".join(f"event: message\ndata: {one}\n\n" for one in said).encode(), "text/event-stream"
                )
            else:
                if what in ("never", "late", "slow"):
                    over.wait({"never": 5, "late": 0.6, "slow": 0.05}[what])
                self._answer(number, result)

        def _answer(self, number: Any, result: Any) -> None:
            self._json({"jsonrpc": "2.0", "id": number, "result": result})

        def _json(self, message: Any) -> None:
            self._say(200, json.dumps(message).encode(), "application/json")

        def _say(self, status: int, body: bytes, kind: str = "text/plain") -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                # The client has given it up.
                self.close_connection = True

    return Handler


@contextmanager
def listening(served: Served) -> Iterator[str]:
    """Its address, while it listens."""
    over = Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(served, over)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            over.set()
            server.shutdown()
            thread.join()
