"""`treadle serve`: agents over HTTP, and in a browser."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import click

from treadle.agent import Agent
from treadle.cli import completion
from treadle.cli.agents import agent_to_ask, keeping, load_agent
from treadle.cli.configure import MODEL_AND_TOOLS, Options
from treadle.cli.exits import ExitCode
from treadle.cli.listening import listening_on
from treadle.cli.loading import load
from treadle.cli.servers import mcp_option
from treadle.cli.signals import told_to_end
from treadle.cli.storage import journal_at, journal_named, journal_option
from treadle.cli.terminal import clean, set_off
from treadle.journal.addresses import without_password

if TYPE_CHECKING:
    from treadle.serve import Served

log = logging.getLogger("treadle.serve")

PORT = 8700

_MOMENT: Final = 5.0
"""Seconds that may pass after steps are not waited for any more: nothing is carried out in them."""


def _agent_of_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(MODEL_AND_TOOLS):
        command = option(command)
    return command


@click.command(short_help="Serve agents over HTTP, with a page to watch and steer them.")
@click.option(
    "--agent",
    "-a",
    "agents",
    multiple=True,
    metavar="MODULE[:NAME]",
    shell_complete=completion.agents,
    help="An agent to serve: module:name or path.py:name; repeatable. Default: one made of the options below.",
)
@_agent_of_options
@mcp_option
@journal_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen. Anywhere but here needs a token."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="On which port; 0 for a free one."
)
@click.option("--token", envvar="TREADLE_TOKEN", metavar="TEXT", help="What callers have to know (TREADLE_TOKEN).")
@click.option(
    "--auth", metavar="MODULE:NAME", help="A function of a request that says who calls: a treadle.serve.User."
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="A name under which it is reached; repeatable.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", help="A site whose pages may use it; repeatable.")
@click.option("--deps", metavar="MODULE:NAME", help="A function of a user's name that gives what tools depend on.")
@click.option(
    "--root-path", default="", metavar="PATH", help="The path below which a proxy has it, and which it takes off."
)
@click.option(
    "--grace", type=click.FloatRange(min=0), default=20.0, show_default=True, metavar="SECONDS",
    help="For steps under way to end when it is told to stop.",
)  # fmt: skip
@click.option("--leave", is_flag=True, help="Leave runs that were under way when it ended, until they are resumed.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option("--quiet", "-q", is_flag=True, help="Log warnings only.")
def serve(
    agents: tuple[str, ...],
    model: str | None,
    skill: tuple[str, ...],
    tools: tuple[str, ...],
    sources: str | None,
    mcp: tuple[str, ...],
    journal: str | None,
    host: str,
    port: int,
    token: str | None,
    auth: str | None,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    deps: str | None,
    root_path: str,
    grace: float,
    leave: bool,
    opens: bool,
    quiet: bool,
) -> int:
    """Serve your agents over HTTP, and as a page in a browser, until SIGTERM or Ctrl-C.

    Runs under way then pause after their step, and go on when it is started again.
    """
    if missing := next((name for name in ("starlette", "uvicorn") if find_spec(name) is None), None):
        raise click.UsageError(f"serving needs {missing}: pip install 'treadle[serve]'")
    root_path = f"/{root_path.strip('/')}".rstrip("/")
    if opens and root_path:
        raise click.UsageError("below --root-path the page is only found through the proxy: leave out --open")
    if not is_own(host) and not token and auth is None:
        raise click.UsageError(
            f"whoever reaches {host} could use your agents: give --token (or TREADLE_TOKEN) or --auth, or listen on "
            "127.0.0.1"
        )
    of_options = Options(None, model, skill, tools, sources, mcp, None, None, None, None, None, None, journal)
    if agents:
        replace(of_options, agent=agents[0]).require_agent_alone()
    loaded = [load_agent(target) for target in agents]
    if not loaded:
        agent, choice = agent_to_ask(of_options, None)
        loaded = [agent]
        click.echo(clean(str(choice)), err=True)
    level = logging.WARNING if quiet else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(message)s")
    hosts = [*_OWN, *allow_host, *([] if host in ("0.0.0.0", "::", "") else [_bracketed(host)])]  # noqa: S104 - as names
    options: dict[str, Any] = {
        "token": token or None, "auth": None if auth is None else load(auth, "--auth")[2],
        "deps": None if deps is None else load(deps, "--deps")[2],
        "hosts": hosts, "origins": allow_origin, "grace": grace, "take_up": not leave,
    }  # fmt: skip
    listening = listening_on(host, port, "--port")
    try:
        return asyncio.run(_serve(loaded, journal, listening, root_path, opens, options))
    finally:
        listening.close()


_OWN = ("localhost", "127.0.0.1", "[::1]")


def is_own(host: str) -> bool:
    """Whether a host is reached from this machine alone: each of its addresses is a loopback address."""
    from ipaddress import ip_address

    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise click.BadParameter(f"{host!r} is no host that is known ({error})", param_hint="'--host'") from error
    return bool(host) and all(ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()


async def _serve(
    agents: list[Agent], journal: str | None, listening: socket.socket, root_path: str, opens: bool, options: Any
) -> int:
    from treadle.serve import app

    async with _bounded() as bound, journal_at(journal) as kept:
        served = app([keeping(agent, kept) for agent in agents], journal=kept, **options)
        # One that cannot be used is said before anybody is told that they are served.
        await kept.list(1)
        address, names = _address(listening), ", ".join(served.runs.agents)
        below = f" (below {root_path} for its proxy)" if root_path else ""
        where = without_password(journal_named(journal))
        click.echo(clean(f"serving {names} at {address}{below} with {where}; Ctrl-C stops it"))
        return await _run(served, bound, listening, root_path, address if opens else "", options["grace"])


class _Bound:
    """Until when the process waits for its end, once it was told to.

    A journal that is locked by another process takes its time for each thing that is still to be written, and whatever
    is on its way there cannot be cancelled.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    @property
    def is_set(self) -> bool:
        """Whether it was told to."""
        return self._timer is not None

    def set_to(self, seconds: float) -> None:
        """It ends in so many seconds at the latest, and a moment."""
        self.lift()
        self._timer = threading.Timer(seconds + _MOMENT, self._end)
        self._timer.daemon = True
        self._timer.start()

    def lift(self) -> None:
        """It has come to its end by itself."""
        if self._timer is not None:
            self._timer.cancel()

    @staticmethod
    def _end() -> None:
        log.warning("what was on its way to the journal is not waited for; runs go on from what stands there")
        logging.shutdown()
        os._exit(ExitCode.FINISHED)


@asynccontextmanager
async def _bounded() -> AsyncIterator[_Bound]:
    bound = _Bound()
    try:
        yield bound
    finally:
        bound.lift()


async def _run(
    served: "Served", bound: _Bound, listening: socket.socket, root_path: str, page: str, grace: float
) -> int:
    import uvicorn

    config = uvicorn.Config(
        served, log_config=None, lifespan="on", ws="none", server_header=False, root_path=root_path,
        timeout_graceful_shutdown=max(1, round(grace)), h11_max_incomplete_event_size=64_000,
    )  # fmt: skip

    logging.getLogger("uvicorn.access").addFilter(_without_query)

    class Server(uvicorn.Server):
        """A server that ends streams and has runs pause when it is told to stop, and leaves the signal at that."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            with told_to_end(self._told):
                yield

        def _told(self, name: int) -> None:
            hurried = self.should_exit and name == signal.SIGINT
            self.should_exit = True
            served.stop()
            if hurried or not bound.is_set:
                bound.set_to(0 if hurried else grace)
            # Process groups and supervisors may say it twice; a person who does is in a hurry.
            if hurried:
                served.hurry()
                for request in self.server_state.tasks:
                    request.cancel()

    if page:
        import webbrowser

        webbrowser.open(page)
    server = Server(config)
    await server.serve(sockets=[listening])
    if not server.started:
        click.echo(set_off("Error: it could not start; its log says why"), err=True)
        return ExitCode.INTERNAL_ERROR
    return ExitCode.FINISHED


def _without_query(record: logging.LogRecord) -> bool:
    """Takes the query out of a line about a request: a token that somebody put there by mistake is in no log."""
    if isinstance(record.args, tuple) and len(record.args) > 2:
        path, mark, _ = str(record.args[2]).partition("?")
        record.args = (*record.args[:2], f"{path}{mark and '?…'}", *record.args[3:])
    return True


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, _bracketed(host))  # noqa: S104 - as names
    return f"http://{shown}:{port}/"
