"""What the tests of models share: a server on loopback that says, byte for byte, what a test wants said."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

Script = Callable[["Peer"], None]


@dataclass
class Peer:
    """One request that the server received, and the socket to answer it on."""

    path: str
    headers: dict[str, str]
    body: bytes
    connection: socket.socket
    number: int

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.sendall(piece)

    def answer(self, status: str, headers: dict[str, str], body: bytes) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *[f"{k}: {v}" for k, v in headers.items()]]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def begin(self, **headers: str) -> None:
        """Begins a stream in chunks."""
        named = {"content-type": "text/event-stream", "transfer-encoding": "chunked"} | headers
        lines = ["HTTP/1.1 200 OK", *[f"{name.replace('_', '-')}: {value}" for name, value in named.items()]]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        self.send(b"0\r\n\r\n")

    def reset(self) -> None:
        """Drops the connection as a crashed server does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.connection.close()

    def gone(self, seconds: float = 5.0) -> bool:
        """Whether the client hangs up within `seconds`."""
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


@dataclass
class Server:
    """A server on loopback; `script` answers each request."""

    script: Script
    tls: ssl.SSLContext | None = None
    requests: list[Peer] = field(default_factory=list)
    connections: int = 0
    _open: set[socket.socket] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def still_open(self, seconds: float = 5.0) -> int:
        """The connections that clients hold after waiting `seconds` at most for none."""
        end = time.monotonic() + seconds
        while self._open and time.monotonic() < end:
            time.sleep(0.01)
        return len(self._open)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        self._open.add(connection)
        try:
            while (peer := self._request(connection)) is not None:
                self.requests.append(peer)
                self.script(peer)
        except OSError:
            pass
        finally:
            self._open.discard(connection)
            connection.close()

    def _request(self, connection: socket.socket) -> Peer | None:
        data = b""
        while b"\r\n\r\n" not in data:
            received = connection.recv(65536)
            if not received:
                return None
            data += received
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
        return Peer(first.split(" ")[1], headers, body, connection, len(self.requests))


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts a server that answers each request by a function of it."""
    servers: list[Server] = []

    def start(script: Script, **options: Any) -> Server:
        servers.append(Server(script, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
