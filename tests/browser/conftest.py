"""What the walks share: a Chromium, and a server of `treadle serve` that can be killed and started again.

Without Playwright or Chromium they are skipped; `make test-browser` sets TREADLE_REQUIRE_BROWSER=1, and then they fail.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from needs import missing

HERE = Path(__file__).resolve().parent
SWITCH = "TREADLE_REQUIRE_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0
TOKEN = "a token that nobody guesses"


def _chromium() -> str:
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if find_spec("playwright") is None:
        missing("playwright is not installed; make test-browser installs it", SWITCH)
    if named is None:
        missing("there is no Chromium here: apt-get install chromium, or say where it is in CHROMIUM", SWITCH)
    assert named is not None
    return named


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser with nothing in it."""
    path = _chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's own sandbox needs a user that a container has not.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Server:
    """`treadle serve` with the agents of `world.py`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        agents = [part for name in ("desk", "shop", "manager") for part in ("--agent", f"{HERE / 'world.py'}:{name}")]
        command = [sys.executable, "-m", "treadle", "serve", *agents, "--port", str(self.port), *self.options]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--journal", str(self.folder / "runs.db")], stdout=log, stderr=log,
                env={**os.environ, "TREADLE_WALK": str(self.folder)}, cwd=self.folder,
            )  # fmt: skip
        until = time.monotonic() + PATIENCE
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "server.log").read_text(encoding="utf-8")
            assert time.monotonic() < until, "the server did not begin to answer"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/health", timeout=1):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """Ends it at once, as a loss of power would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def open(self, name: str) -> None:
        """Lets what waits in the world go on."""
        (self.folder / f"open.{name}").touch()


@pytest.fixture
def server(chromium: Any, tmp_path: Path) -> Iterator[Server]:
    """A server of its own for a walk."""
    started = Server(tmp_path)
    started.start()
    yield started
    started.kill()


class Walk:
    """A page of the browser, what it said on its console, and where it asked for anything."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.said: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(15_000)
        page.on("console", lambda message: self.said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    def ask(self, agent: str, question: str) -> str:
        """Asks from the page of runs, as a person would; returns the run's id."""
        self.page.goto(f"{self.address}/")
        self.page.locator(".ask select").select_option(agent)
        self.page.get_by_label(f"Ask {agent}").fill(question)
        self.page.get_by_role("button", name="Ask", exact=True).click()
        self.page.wait_for_url("**/runs/*")
        run: str = self.page.url.rpartition("/")[2]
        return run

    def sees(self, text: str) -> None:
        """Waits until a text is shown."""
        self.page.get_by_text(text).first.wait_for()

    def status(self, status: str) -> None:
        """Waits until the run that is shown stands so."""
        self.page.locator(f".run-head .status.{status}").wait_for()


@pytest.fixture
def walk(chromium: Any, server: Server) -> Iterator[Walk]:
    """A page to walk with; at its end nothing may have gone wrong in it, and nothing been asked for elsewhere."""
    with walking(chromium, server) as walked:
        yield walked


@contextmanager
def walking(chromium: Any, server: Server) -> Iterator[Walk]:
    """Likewise, of any server."""
    context = chromium.new_context(viewport={"width": 1280, "height": 820}, accept_downloads=True)
    walked = Walk(context.new_page(), server.address)
    try:
        yield walked
    finally:
        context.close()
    expected = ("net::ERR_", "Failed to load resource")
    assert [one for one in walked.said if not any(part in one for part in expected)] == []
    assert [one for one in walked.asked if not one.startswith((server.address, "data:", "about:"))] == []


@pytest.fixture
def guarded(chromium: Any, tmp_path: Path) -> Iterator[tuple[Server, Walk]]:
    """A server that wants a token, and a page of it."""
    started = Server(tmp_path, "--token", TOKEN)
    started.start()
    with walking(chromium, started) as walked:
        yield started, walked
    started.kill()
