"""Serve: an agent, or tools, as an MCP server for others, in both eras of the protocol.

An agent is one tool that takes a task; tools are themselves. Each call is a run: the rules of the agent hold, it stands
in the journal, and what it waits for is asked of the person at the other end, if the client can ask (`waiting.py`).
"""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from treadle.agent import Agent
from treadle.drivers.checks import require_dependencies
from treadle.event_loop import running_loop
from treadle.journal import Journal
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json, ToolSpec
from treadle.mcp.inlet import ending_input
from treadle.mcp.link import first_of
from treadle.mcp.naming import LONGEST
from treadle.mcp.numbered import Numbered
from treadle.mcp.outstanding import Heard, Outstanding, Told, reader_of_output
from treadle.mcp.relay import Relay
from treadle.mcp.running import Calls
from treadle.tools import Effect, Tool

if TYPE_CHECKING:
    import mcp_types
    from mcp.server.lowlevel import Server


_TASK: Final = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "The whole task; the agent sees nothing else."}},
    "required": ["task"],
    "additionalProperties": False,
}

_NO_DEPS: Final = "a call over MCP has none; serve a tool that has its own, such as a method, tool(shop.order)"


def server_of(what: Agent[Any, Any] | Iterable[Tool], *, journal: Journal | None = None) -> "Server[Any]":
    """The official server of an agent or of tools, to be run over any transport of the official package.

    Args:
        what: the agent, or the tools.
        journal: where the calls of tools are kept, each a run; an agent has its own.

    Raises:
        Misuse: it is neither, a tool needs dependencies, or the official package is not installed.
    """
    return _served(what, journal)[0]


def _served(what: Agent[Any, Any] | Iterable[Tool], journal: Journal | None) -> "tuple[Server[Any], Calls]":
    try:
        from mcp.server.lowlevel import Server
    except ImportError as error:
        raise Misuse("a server of tools needs the official package: pip install 'treadle[mcp]'") from error
    calls, listed, name = _offered(what, journal)

    async def list_tools(_: Any, params: Any) -> "mcp_types.ListToolsResult":
        import mcp_types

        return mcp_types.ListToolsResult(tools=list(listed))

    return Server(name, version=version("treadle"), on_list_tools=list_tools, on_call_tool=calls.call), calls


def app_of(
    what: Agent[Any, Any] | Iterable[Tool],
    *,
    journal: Journal | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    path: str = "/mcp",
) -> Any:
    """The same as an ASGI application, for streamable HTTP.

    A request is answered only if its Host, and its Origin if it has one, are those of this machine or are named here: a
    page that somebody opens in a browser must not be able to call tools. Who may call them is for what stands before it
    to say; whoever reaches it may.

    Args:
        what: the agent, or the tools.
        journal: as for `server_of`.
        hosts: further hosts, such as "tools.example" or "10.0.0.5:*".
        origins: further origins, such as "https://page.example".
        path: where it answers.

    Raises:
        Misuse: as `server_of`.
    """
    server = server_of(what, journal=journal)
    from mcp.server.transport_security import TransportSecuritySettings

    local = ["127.0.0.1", "localhost", "[::1]"]
    here = [*[f"{host}:*" for host in local], *local]
    security = TransportSecuritySettings(
        allowed_hosts=[*here, *hosts],
        allowed_origins=[*[f"{scheme}://{host}" for scheme in ("http", "https") for host in here], *origins],
    )
    app = server.streamable_http_app(streamable_http_path=path, transport_security=security)
    app.state.calls = set[object]()
    app.add_middleware(Numbered, calls=app.state.calls)
    return app


async def serve_stdio(what: Agent[Any, Any] | Iterable[Tool], *, journal: Journal | None = None) -> None:
    """Serves over this process's standard input and output, until the input ends. What else is printed goes to stderr.

    What was asked by then is answered, if that takes no more than 20 seconds and somebody reads the output; what is
    still under way then is cancelled, and has two seconds to clean up.

    Raises:
        Misuse: as `server_of`.
        OSError: nothing can be said to the client any more.
    """
    running_loop()
    server, calls = _served(what, journal)
    from mcp.server.stdio import stdio_server

    try:
        with ending_input() as end, reader_of_output() as is_read:
            outstanding = Outstanding(is_read)
            async with stdio_server() as (read, write):
                told = Told(write, outstanding)
                streams: tuple[Any, Any] = Heard(read, told, outstanding, calls.end), told
                try:
                    # What tools print must not come between the messages, nor after them.
                    with redirect_stdout(sys.stderr):
                        await server.run(*streams, server.create_initialization_options())
                finally:
                    end()
    except BaseExceptionGroup as error:
        # A stream that was closed as a message came is what is left of a cancellation then.
        task = asyncio.current_task()
        raise (asyncio.CancelledError() if task is not None and task.cancelling() else first_of(error)) from error


def _offered(
    what: Agent[Any, Any] | Iterable[Tool], journal: Journal | None
) -> "tuple[Calls, Sequence[mcp_types.Tool], str]":
    """What carries calls out, the tools that are listed, and what the server calls itself."""
    if isinstance(what, Agent):
        require_dependencies(what.tools, None, _NO_DEPS)
        name = what.name if _is_name(what.name) else "agent"
        calls = Calls(_telling(what), {name}, is_agent=True)
        spec = ToolSpec(name, what.as_tool(name).description, _TASK)
        return calls, [_listed(spec, "write", calls.typed.schema)], what.name
    given = list(what) if isinstance(what, Iterable) and not isinstance(what, str) else [what]
    if not given or not all(isinstance(one, Tool) for one in given):
        raise Misuse(f"what is served is an Agent, or a list of tools; it was given {what!r:.100}")
    tools: list[Tool] = [one for one in given if isinstance(one, Tool)]
    ends = next((one for one in tools if one.external and not one.wait), None)
    if ends is not None:
        raise Misuse(f"{ends.name} has no function, and nobody waits for its result: it cannot be served")
    agent = Agent(Relay(), tools=tools, journal=journal, name="mcp", on_limit="stop", watch_progress=False)
    require_dependencies(agent.tools, None, _NO_DEPS)
    calls = Calls(agent, set(agent.tools), is_agent=False)
    schemas = {name: form.schema for name, form in calls.forms.items()}
    return calls, [_listed(one.spec, one.effect, schemas.get(one.name)) for one in tools], "treadle"


def _telling(agent: Agent[Any, Any]) -> Agent[Any, Any]:
    """The agent, whose runs say what they have made when a limit stops them, where it would raise."""
    return agent._with(lambda config: replace(config, on_limit="stop") if config.on_limit == "raise" else config)


def _is_name(name: str) -> bool:
    from treadle.tools.options import check_name

    try:
        check_name(name, "served")
    except TypeError:
        return False
    return len(name) <= LONGEST


def _listed(spec: ToolSpec, effect: Effect, output: Json | None = None) -> "mcp_types.Tool":
    import mcp_types

    hints = mcp_types.ToolAnnotations(
        read_only_hint=effect == "read",
        destructive_hint=effect == "write",
        idempotent_hint=effect != "write",
    )
    schema = {"type": "object", **spec.input_schema}
    return mcp_types.Tool(
        name=spec.name, description=spec.description, input_schema=schema, output_schema=output, annotations=hints
    )
