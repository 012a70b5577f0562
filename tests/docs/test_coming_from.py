"""The pages for those who come from another library: the same program in both says the same of the same server.

A page's first block is the other library's program, its second ours. Ours is always run; the other where the library
can be imported by this Python, or by the one that TREADLE_PEERS_PYTHON names; the AI SDK where TREADLE_PEERS_NODE is
a folder with its `node_modules`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pages import ROOT

PEERS = {
    "from-pydantic-ai": "pydantic_ai.models.openai",
    "from-langchain": "langchain_openai",
    "from-openai-agents": "agents",
    "from-smolagents": "smolagents",
}
BLOCK = re.compile(r"^```(python|javascript)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANSWER = "It is sunny in Paris."
PYTHON = os.environ.get("TREADLE_PEERS_PYTHON", sys.executable)


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """What a model would say: it asks for the weather, and answers in the way of its caller once it has seen it."""
    names = {tool["function"]["name"] for tool in body.get("tools") or ()}
    assert "Be brief." in json.dumps(body["messages"])
    calls = [("get_weather", {"city": "Paris"})]
    if "sunny in Paris" in json.dumps(body["messages"]):
        calls = [("final_answer", {"answer": ANSWER})] if "final_answer" in names else []
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else ANSWER}
    if calls:
        [(name, arguments)] = calls
        call = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call_{name}", "type": "function", "function": call}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 14, "completion_tokens": 8, "total_tokens": 22}
    return {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "my-model", "choices": [choice], "usage": usage,
    }  # fmt: skip


@pytest.fixture
def model() -> Iterator[tuple[str, list[int]]]:
    """The address of a server, and how many tools each request to it had."""
    asked: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(len(body.get("tools") or ()))
            data = json.dumps(reply(body)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def programs(page: str) -> tuple[str, str]:
    theirs, ours = BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text("utf-8"))
    return theirs[1], ours[1]


def printed(command: list[str], folder: Path) -> str:
    environment = {
        name: value for name, value in os.environ.items() if not re.search("API_KEY|PROXY|BASE_URL", name, re.I)
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment | {"HOME": str(folder), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", [*PEERS, "from-ai-sdk"])
def test_our_program_answers(page: str, model: tuple[str, list[int]], tmp_path: Path) -> None:
    address, asked = model
    program = tmp_path / "ours.py"
    program.write_text(programs(page)[1].replace("127.0.0.1:8080", address), "utf-8")
    assert printed([sys.executable, str(program)], tmp_path) == f"{ANSWER}\n"
    assert asked == [1, 1]


@pytest.mark.parametrize(("page", "package"), PEERS.items())
def test_their_program_answers_alike(page: str, package: str, model: tuple[str, list[int]], tmp_path: Path) -> None:
    if subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True, check=False).returncode:
        pytest.skip(f"{package} is not installed for {PYTHON}")
    program = tmp_path / "theirs.py"
    program.write_text(programs(page)[0].replace("127.0.0.1:8080", model[0]), "utf-8")
    assert ANSWER in printed([PYTHON, str(program)], tmp_path)


def test_the_program_of_the_ai_sdk_answers_alike(model: tuple[str, list[int]], tmp_path: Path) -> None:
    folder = os.environ.get("TREADLE_PEERS_NODE")
    if not folder or not shutil.which("node"):
        pytest.skip("the AI SDK is not installed: TREADLE_PEERS_NODE names no folder with its node_modules")
    program = tmp_path / "theirs.mjs"
    program.write_text(programs("from-ai-sdk")[0].replace("127.0.0.1:8080", model[0]), "utf-8")
    (tmp_path / "node_modules").symlink_to(Path(folder) / "node_modules")
    assert printed(["node", str(program)], tmp_path) == f"{ANSWER}\n"
