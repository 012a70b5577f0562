"""`treadle mcp`: an agent, or tools, as an MCP server."""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Final

import click

from treadle.cli import completion
from treadle.cli.agents import keeping, load_agent
from treadle.cli.exits import ExitCode
from treadle.cli.listening import listening_on
from treadle.cli.storage import journal_at, journal_option
from treadle.cli.toolset import gather
from treadle.journal import Journal
from treadle.visible import visible

_LONGEST: Final = 200
"""Characters of an error in a line."""

_LOOKS: Final = 0.05


@click.command(short_help="Serve an agent, or tools, to MCP clients.")
@click.option("--agent", "-a", metavar="MODULE[:NAME]", shell_complete=completion.agents, help="The agent to serve.")
@click.option(
    "--tools", "-t", multiple=True, metavar="MODULE[:NAME]", shell_complete=completion.tools,
    help="The tools to serve, as for treadle ask; repeatable.",
)  # fmt: skip
@click.option(
    "--http", "port", type=click.IntRange(0, 65535), metavar="PORT",
    help="Serve streamable HTTP at 127.0.0.1:PORT/mcp. Default: standard input and output.",
)  # fmt: skip
@journal_option
def mcp(agent: str | None, tools: tuple[str, ...], port: int | None, journal: str | None) -> int:
    """Serve an agent as a tool that takes a task, or tools as themselves, to programs that speak MCP.

    Each call is a run in the journal. What it waits for is asked of the person at the client's end, if that can ask;
    else the run stays paused, and treadle approve goes on with it. Over HTTP only programs on this machine are
    answered; to serve others, put treadle.mcp.app_of(...) behind a server that knows who they are.
    """
    if (agent is None) == (not tools):
        raise click.UsageError("name what to serve: --agent module:name, or --tools module:name")
    if find_spec("mcp") is None:
        raise click.UsageError("serving needs the official package: pip install 'treadle[mcp]'")
    if asyncio.run(_served(agent, tools, port, journal_at(journal))):
        signal.raise_signal(signal.SIGTERM)
    return ExitCode.FINISHED


async def _served(agent: str | None, tools: tuple[str, ...], port: int | None, journal: Journal) -> bool:
    """Serves to the end, and says whether that was SIGTERM, which is still to be obeyed."""
    from treadle.mcp.serve import app_of, serve_stdio

    try:
        what: Any = keeping(load_agent(agent), journal) if agent is not None else _tools(tools)
        kept = None if agent is not None else journal
        if port is None:
            return await _until_told(serve_stdio(what, journal=kept))
        await _over_http(app_of(what, journal=kept), port)
        return False
    finally:
        await journal.close()


async def _until_told(serving: Coroutine[Any, Any, None]) -> bool:
    """Serves until that ends or SIGTERM comes, by which clients end a server that goes on after its input, and says
    whether it did: calls under way are cancelled, and their runs ended. A second one ends the process, and so does the
    end of the time that they have: nothing ends a thread that writes to a client which reads no more.
    """
    from treadle.mcp.outstanding import GRACE

    loop, task, told = asyncio.get_running_loop(), asyncio.current_task(), False

    def end() -> None:
        nonlocal told
        told = loop.remove_signal_handler(signal.SIGTERM)
        loop.call_later(GRACE, signal.raise_signal, signal.SIGTERM)
        if task is not None:
            task.cancel()

    # Windows has none, and ends the process at once.
    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, end)
    try:
        await serving
    except asyncio.CancelledError:
        if not told:
            raise
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGTERM)
    return told


def _tools(named: tuple[str, ...]) -> list[Any]:
    return list(gather((), named, None).tools)


async def _over_http(app: Any, port: int) -> None:
    import anyio
    import uvicorn
    from sse_starlette.sse import AppStatus

    from treadle.mcp.outstanding import GRACE, LAST_WORDS

    calls = app.state.calls
    # It would cut the answers off that are under way, as soon as the server is told to stop.
    AppStatus.enable_automatic_graceful_drain = AppStatus.should_exit = False

    class Told(uvicorn.Server):
        """Says where it listens once it does, as a port of 0 is any that is free, and has calls end as it stops."""

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            for socket in sockets if self.started else ():
                click.echo(f"serving at http://127.0.0.1:{socket.getsockname()[1]}/mcp", err=True)

        async def shutdown(self, sockets: Any = None) -> None:
            if calls:
                click.echo(f"waiting up to {GRACE:g} s for the calls under way, then they are cancelled", err=True)
            lines.are_last = True
            async with anyio.create_task_group() as beside:
                beside.start_soon(self._ends_streams)
                # What a call does to clean up may take for ever.
                with anyio.move_on_after(GRACE + LAST_WORDS):
                    await super().shutdown(sockets)
                beside.cancel_scope.cancel()
            if self.force_exit:
                with anyio.move_on_after(LAST_WORDS):
                    await self.lifespan.shutdown()
            # They have their runs to end; once more, as what they do to clean up may take for ever.
            for left in ([*self.server_state.tasks], asyncio.all_tasks() - {asyncio.current_task()}):
                for task in left:
                    task.cancel()
                if left:
                    await asyncio.wait(left, timeout=LAST_WORDS)

        async def _ends_streams(self) -> None:
            """Ends what is open for news once nothing else is under way: it would be waited for."""
            while calls and not self.force_exit:  # noqa: ASYNC110 - nothing tells of the last one
                await asyncio.sleep(_LOOKS)
            AppStatus.should_exit = True

    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_config=None, log_level="warning", lifespan="on",
        timeout_graceful_shutdown=int(GRACE),
    )  # fmt: skip
    with _in_one_line() as lines, listening_on("127.0.0.1", port, "--http") as listening:
        try:
            await Told(config).serve(sockets=[listening])
        finally:
            # They are those of all servers in this process.
            AppStatus.enable_automatic_graceful_drain, AppStatus.should_exit = True, False


class _Lines:
    """Has what the packages that serve log of a request be a line: that a client left is no matter for a traceback.

    Attributes:
        are_last: whether the server stops: then they log that what they cut off has not ended well.
    """

    are_last = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in ("mcp", "uvicorn"):
            return True
        raised = record.exc_info and record.exc_info[1]
        if raised:
            words = visible(" ".join(f"{type(raised).__name__}: {raised}".split()))[:_LONGEST].removesuffix(":")
            record.msg, record.args = f"{record.getMessage().strip()} ({words})", ()
            record.exc_info = record.exc_text = None
        return not self.are_last


@contextmanager
def _in_one_line() -> Iterator[_Lines]:
    """Shortens those lines where nobody has set logging up."""
    to, lines = logging.lastResort, _Lines()
    if to is None or os.environ.get("TREADLE_DEBUG", "") not in ("", "0"):
        yield lines
        return
    to.addFilter(lines)
    try:
        yield lines
    finally:
        to.removeFilter(lines)
