"""Listing: an agent's configuration with the tools that its servers, and who began the run, listed for it.

They are made of what the run recorded of them, so that whoever takes it up has them.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from msgspec import structs

from treadle.drivers.configuration import Configuration
from treadle.kernel.messages import ListedTool, ToolSpec
from treadle.tools import Tool, external_tool
from treadle.tools.server import is_of


def with_listed(config: Configuration, listed: Sequence[ListedTool]) -> Configuration:
    """`config` with these tools of its servers and of who began the run, and none else of theirs.

    Those of a server that it has not are none.
    """
    servers = {server.name: server for server in config.servers}
    theirs_now = (servers[one.server].tool(one) for one in listed if one.server in servers)
    made = [one for one in theirs_now if one is not None]
    made += [_callers(one) for one in listed if not one.server]
    names = {one.name for one in made}

    def theirs(name: str) -> bool:
        return name in names or any([is_of(server, name) for server in servers])

    own = {name: tool for name, tool in config.tools.items() if not theirs(name)}
    specs = [spec for spec in config.specs if not theirs(spec.name)]
    specs += [said(one) for one in made]
    tools = {**own, **{one.name: one for one in made}}
    return dataclasses.replace(config, tools=tools, specs=tuple(specs)).counted()


def of_callers(config: Configuration, tools: Iterable[Tool]) -> tuple[ListedTool, ...]:
    """Tools that whoever begins a run carries out, as the run records them.

    One that is, or could be, called like one of the agent's own or its servers' is left out.
    """
    own = {one.name: one for one in tools if one.name not in config.tools}
    return tuple(
        [
            ListedTool(one.name, "", one.name, one.spec.description, one.spec.input_schema)
            for one in own.values()
            if not any([is_of(server.name, one.name) for server in config.servers])
        ]
    )


def _callers(one: ListedTool) -> Tool:
    return external_tool(one.name, one.description, one.input_schema, wait=True)


def said(one: Tool) -> ToolSpec:
    """What the model is told of a tool, with what it says of its effect."""
    return structs.replace(one.spec, changes=one.effect != "read") if one.says_effect else one.spec
