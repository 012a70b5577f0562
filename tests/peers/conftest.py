"""What the tests against the work of others share: llama.cpp's server and models of it, and a server that replays.

`make test-peers` builds the server and runs `test_llama_server.py`, which `make test` leaves alone: it takes minutes.
So it does with `test_mcp_peers.py`, whose servers npm installs.
"""

import os
import runpy
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from treadle.models.anthropic_model import AnthropicModel
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel

LONG = ["test_llama_server.py", "test_mcp_peers.py", "test_phoenix.py"]
collect_ignore = [] if os.environ.get("TREADLE_PEERS") else LONG

KEY = "a key that the server was given"
PATIENCE = 60.0
"""Seconds that a server may take to begin to answer."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Replay:
    """A server that gives the same answer to every request; `seen` has the path and the key of each."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    @contextmanager
    def serving(self) -> Iterator[None]:
        replay = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                key = self.headers["x-api-key"] or self.headers["authorization"]
                replay.seen.append((self.path.partition("?")[0], key.removeprefix("Bearer ")))
                self.send_response(replay.status)
                kind = "text/event-stream" if replay.status == 200 else "application/json"
                sent = {"content-type": kind, "content-length": str(len(replay.body)), **replay.headers}
                for name, value in sent.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(replay.body)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def replay() -> Iterator[Callable[..., Replay]]:
    """Starts a server that gives one answer: its body, its status and its headers."""
    with ExitStack() as servers:

        def start(*answer: Any) -> Replay:
            made = Replay(*answer)
            servers.enter_context(made.serving())
            return made

        yield start


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Starts a server with further options, and says where it is; one with the same options is started once."""
    build = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "peers.py"))
    if not (build["SERVER"].exists() and build["MODEL"].exists()):
        pytest.skip("llama.cpp's server has not been built; `make test-peers` does it, and says so if it cannot")
    running: dict[tuple[str, ...], tuple[str, subprocess.Popen[bytes]]] = {}

    def start(*options: str) -> str:
        if options not in running:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            log = tmp_path_factory.mktemp("llama") / "server.log"
            command = [str(build["SERVER"]), "--model", str(build["MODEL"]), "--host", "127.0.0.1", "--port", str(port)]
            fixed = ["--ctx-size", "65536", "--parallel", "2", "--threads", "1", "--offline", "--api-key", KEY]
            with log.open("wb") as output:
                process = subprocess.Popen([*command, *fixed, *options], stdout=output, stderr=subprocess.STDOUT)
            running[options] = (f"http://127.0.0.1:{port}", process)
            answering(f"http://127.0.0.1:{port}/health", process, log)
        return running[options][0]

    yield start
    for _, process in running.values():
        process.terminate()
    for _, process in running.values():
        process.wait(PATIENCE)


def answering(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the server answers at `address`."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            time.sleep(0.02)
    pytest.fail(f"llama.cpp's server does not answer; its log:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture
def speaking() -> Callable[..., HttpModel]:
    """A model of the server at an address, in a dialect: "chat", "responses" or "messages"."""

    def model(dialect: str, address: str, **options: Any) -> HttpModel:
        options.setdefault("api_key", KEY)
        match dialect:
            case "chat":
                return OpenAIChatModel("made-up", provider="local", base_url=f"{address}/v1", **options)
            case "responses":
                return OpenAIResponsesModel("made-up", base_url=f"{address}/v1", **options)
            case _:
                return AnthropicModel("made-up", base_url=address, **options)

    return model
