"""Files: the servers that an `mcp.json` describes, as other hosts write it.

    {"mcpServers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]},
                    "shop": {"url": "https://shop.example/mcp", "headers": {"Authorization": "Bearer ${SHOP_KEY}"},
                             "treadle": {"trusted": true}}}}

`servers` in the place of `mcpServers` is read, too, `${NAME}`, `${NAME:-default}` and `${env:NAME}` are what the
environment has, and a server that is `disabled` is left out. What other hosts alone understand is passed over: nothing
of it makes a server do more. What only treadle understands stands under "treadle": the options of `MCPServer`.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from treadle.kernel.errors import Misuse
from treadle.mcp.client import MCPServer
from treadle.mcp.naming import plain_name
from treadle.mcp.options import Options
from treadle.small_files import small_text

OWN: Final = "treadle"
"""Under which name an entry has what only treadle understands."""

_OPTIONS = ("trusted", "effects", "only", "timeout", "max_output", "needs_approval")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def servers_in(path: str | Path, *, env: Mapping[str, str] | None = None, **options: Any) -> list[MCPServer]:
    """The servers that a file describes, none of them started.

    Args:
        path: the file.
        env: what `${NAME}` in it stands for; by default the environment of this process.
        options: those of `MCPServer`, for servers of which the file does not say them.

    Raises:
        Misuse: it cannot be read, or describes a server that cannot be; says which and why.
    """
    place = str(path)
    try:
        content = json.loads(small_text(Path(path)))
    except OSError as error:
        raise Misuse(f"{place} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise Misuse(f"{place} is no JSON file in UTF-8: {error}") from error
    entries = None
    if isinstance(content, dict):
        entries = content.get("mcpServers", content.get("servers"))
    if not isinstance(entries, dict):
        raise Misuse(f'{place} has no servers: it is to say {{"mcpServers": {{"name": {{"command": …}}}}}}')
    found = [
        _server(plain_name(name), entry, f"{place}, server {name!r}", os.environ if env is None else env, options)
        for name, entry in entries.items()
        if not (isinstance(entry, dict) and entry.get("disabled"))
    ]
    names = [server.name for server in found]
    for name in names:
        if names.count(name) > 1:
            raise Misuse(f"{place} has two servers that are both called {name!r} here: rename one of them")
    return found


def _server(name: str, entry: Any, place: str, env: Mapping[str, str], options: Mapping[str, Any]) -> MCPServer:
    if not isinstance(entry, dict):
        raise Misuse(f'{place}: expected an object with a "command" or a "url"')
    own = entry.get(OWN, {})
    unknown = [key for key in own if key not in _OPTIONS] if isinstance(own, dict) else [repr(own)]
    if unknown:
        raise Misuse(f'{place}: "{OWN}" takes {", ".join(_OPTIONS)}, and not {unknown[0]}')
    given: Options = {**options, **own}  # type: ignore[typeddict-item]  # MCPServer checks it
    told = _filled(entry, place, env)
    kind, url = told.get("type"), told.get("url", told.get("serverUrl"))
    try:
        if "command" in told and kind in (None, "stdio"):
            arguments = _texts(told.get("args", []), list, f'{place}: "args"')
            variables = _texts(told.get("env", {}), dict, f'{place}: "env"')
            return MCPServer.stdio(told["command"], *arguments, name=name, env=variables, cwd=told.get("cwd"), **given)
        if url is not None and kind in (None, "http", "streamable-http", "streamableHttp"):
            return MCPServer.http(url, name=name, headers=_texts(told.get("headers", {}), dict, place), **given)
    except (TypeError, Misuse) as error:
        raise error if str(error).startswith(place) else Misuse(f"{place}: {error}") from error
    if kind == "sse":
        raise Misuse(f'{place}: the transport "sse" of 2024 is not spoken here; most such servers have another address')
    given_is = f"a server of type {kind!r}" if kind is not None else f"{', '.join(map(repr, told)) or 'nothing'} alone"
    raise Misuse(f'{place}: expected a "command" to start or a "url" to call, and not {given_is}')


def _texts(value: Any, kind: type, what: str) -> Any:
    one: Any = value.values() if isinstance(value, dict) else value
    if not isinstance(value, kind) or not all(isinstance(each, str) for each in one):
        raise Misuse(f"{what} is {'a list' if kind is list else 'an object'} of texts")
    return value


def _filled(value: Any, place: str, env: Mapping[str, str]) -> Any:
    """`value` with what the environment has in the place of its variables."""

    def filled(match: "re.Match[str]") -> str:
        found = env.get(match[1], match[2])
        if found is None:
            raise Misuse(f"{place}: the environment has no {match[1]}, which it names as ${{{match[1]}}}")
        return found

    if isinstance(value, str):
        return _VARIABLE.sub(filled, value)
    if isinstance(value, dict):
        return {key: one if key == OWN else _filled(one, place, env) for key, one in value.items()}
    return [_filled(one, place, env) for one in value] if isinstance(value, list) else value
