"""Servers: those whose tools the command line is to use, as files describe them (`--mcp`).

A person is asked before each call that may do more than read, unless the file says otherwise of a server.
"""

import asyncio
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from treadle.kernel.errors import Misuse
from treadle.tools import Tool

if TYPE_CHECKING:
    from treadle.mcp import MCPServer

mcp_option = click.option(
    "--mcp", multiple=True, metavar="FILE", type=click.Path(dir_okay=False),
    help="An mcp.json: the tools of its servers, each call asked for; repeatable.",
)  # fmt: skip


def servers_of(files: Sequence[str]) -> "list[MCPServer]":
    """The servers that these files describe, none of them started.

    Raises:
        click.BadParameter: a file, or a server in it, cannot be; or the package is missing.
    """
    if not files:
        return []
    if find_spec("mcp") is None:
        raise click.UsageError("servers of tools need the official package: pip install 'treadle[mcp]'")
    from treadle.mcp import servers_in

    try:
        found = [server for file in files for server in servers_in(file, needs_approval=True, ask="pause")]
    except Misuse as error:
        raise click.BadParameter(str(error), param_hint="'--mcp'") from error
    names = [server.name for server in found]
    if len(names) != len(set(names)):
        raise click.BadParameter("two servers have one name", param_hint="'--mcp'")
    return found


def tools_of(files: Sequence[str]) -> list[tuple[Tool, str]]:
    """The tools that these servers list, each with the name of its server; they are started for it.

    Raises:
        click.UsageError: one of them cannot be used.
    """
    from treadle.tools.server import ServerFailed

    async def listed(server: "MCPServer") -> list[tuple[Tool, str]]:
        made = [server.tool(one) for one in await server.listed()]
        return [(one, server.name) for one in made if one is not None]

    try:
        return [each for server in servers_of(files) for each in asyncio.run(listed(server))]
    except ServerFailed as error:
        raise click.UsageError(str(error)) from error


def looked_at(files: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """A row for each server: what it is called, whether it is well, and what it says of itself."""
    from treadle.tools.server import ServerFailed

    for server in servers_of(files):
        try:
            yield f"mcp {server.name}", "ok", asyncio.run(_about(server))
        except ServerFailed as error:
            yield f"mcp {server.name}", "bad", str(error)


async def _about(server: "MCPServer") -> str:
    async with server:
        about, tools = await server.about(), await server.listed()
    effects = [one.effect for one in tools]
    what = ", ".join(f"{effects.count(kind)} {kind}" for kind in dict.fromkeys(effects))
    named = f"{about.name} {about.version}".strip() or "without a name"
    number = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
    return f"{named}, protocol {about.protocol}; {number}{what and f' ({what})'}"
