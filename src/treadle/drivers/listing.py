"""Listing: an agent's configuration with the tools that its servers listed, made of what the run recorded of them."""

import dataclasses
from collections.abc import Sequence

from msgspec import structs

from treadle.drivers.configuration import Configuration
from treadle.kernel.messages import ListedTool, ToolSpec
from treadle.models.fixed import fixed_tokens
from treadle.tools import Tool
from treadle.tools.server import is_of


def with_listed(config: Configuration, listed: Sequence[ListedTool]) -> Configuration:
    """`config` with these tools of its servers, and none else of theirs. Those of a server that it has not are none."""
    servers = {server.name: server for server in config.servers}
    made = [servers[one.server].tool(one) for one in listed if one.server in servers]
    own = {name: tool for name, tool in config.tools.items() if not any(is_of(server, name) for server in servers)}
    specs = [spec for spec in config.specs if not any(is_of(server, spec.name) for server in servers)]
    specs += [said(one) for one in made]
    tools = {**own, **{one.name: one for one in made}}
    tokens = fixed_tokens(config.model, specs, None if config.output is None else config.output.schema)
    return dataclasses.replace(config, tools=tools, specs=tuple(specs), tool_tokens=tokens)


def said(one: Tool) -> ToolSpec:
    """What the model is told of a tool, with what it says of its effect."""
    return structs.replace(one.spec, changes=one.effect != "read") if one.says_effect else one.spec
