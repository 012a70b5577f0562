"""MCPServer: a server whose tools an agent uses: what it is, and how far it is believed. Runs start and stop it."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Never, TypeVar, Unpack

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ListedTool, ToolSpec
from treadle.mcp.address import over_http
from treadle.mcp.asking import Person
from treadle.mcp.calling import Caller
from treadle.mcp.connection import Connection
from treadle.mcp.failing import failed
from treadle.mcp.listed import MOST_TOOLS, Reader
from treadle.mcp.listing import Listing
from treadle.mcp.naming import check_server_name
from treadle.mcp.official import Connect, Official
from treadle.mcp.options import Options, check_server_options
from treadle.mcp.program import Command, spoken_to
from treadle.mcp.secrets import Secrets, of_header, of_url
from treadle.mcp.unanswered import Forgotten, Gone
from treadle.tools import Tool, ToolContext, ToolResult
from treadle.tools.arguments import from_json_schema
from treadle.tools.options import ToolOptions
from treadle.tools.server import ServerFailed

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client

T = TypeVar("T")

_CONTEXT = "\0context"
_log = logging.getLogger("treadle")


class About(NamedTuple):
    """What a server says of itself: its name and version, and the version of the protocol that is spoken with it."""

    name: str
    version: str
    protocol: str


class MCPServer:
    """A server of tools that speaks MCP: a program on this machine (`stdio`) or an address (`http`).

    Give it to an agent in its list of tools. It is started when a run first needs it and stopped when no run does any
    more; within `async with server:` it stays. If it dies it is started again, four times a minute at most. Nothing
    that it was given in its environment, headers or address is shown in what comes back of it.

    The tools are called `name__tool`. Their descriptions and results are the server's words: a model may believe them,
    so what a tool may do is for the agent's rules to say (`ask_before(effect="write")`).
    """

    def __init__(
        self,
        name: str = "",
        transport: Connect | None = None,
        secrets: Secrets | None = None,
        told: str = "",
        options: Options | None = None,
        **unknown: Never,
    ) -> None:
        if unknown or transport is None or secrets is None or options is None:
            made = "MCPServer.stdio(program, …, name=…) or MCPServer.http(url, name=…)"
            raise Misuse(f"an MCPServer is made by {made}")
        self._name = check_server_name(name)
        self._secrets, self._told = secrets, told
        check_server_options(options)
        self._options, only = options, options.get("only")
        trusted, effects = options.get("trusted", False), options.get("effects", {})
        self._person = Person(name, secrets)
        official = Official(name, transport, secrets, options, self._person)
        self._connection = Connection(name, told, secrets, official.client)
        self._listing = Listing(name, secrets, self._connection, MOST_TOOLS * (1 if only is None else 20))
        self._reader = Reader(name, secrets, trusted, effects, only)
        self._caller = Caller(name, secrets, options, self._connection, self._listing, self._person)
        self._made: dict[tuple[Any, ...], Tool] = {}

    @classmethod
    def stdio(
        cls,
        command: str,
        *arguments: str,
        name: str,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Unpack[Options],
    ) -> "MCPServer":
        """A program that is started here and spoken to over its standard input and output.

        Args:
            command: the program; `arguments` are what it is started with.
            name: what the server is called here.
            env: its environment beside PATH, HOME and the like; it has nothing else of this process's.
            cwd: the folder that it is started in.
            options: see `Options`.

        Raises:
            Misuse: the name, or an option, cannot be.
        """
        given = Command(command, arguments, env or {}, cwd)
        for place, one in enumerate((command, *arguments)):
            if not isinstance(one, str):
                which = f"argument {place}" if place else "the program"
                lacks = f"{which} is a {type(one).__name__}"
                raise Misuse(f"MCPServer.stdio takes a program and its arguments as texts, each apart; {lacks}")
        return cls(name, lambda said: spoken_to(given, said), Secrets(env or {}), command, options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        name: str,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        **options: Unpack[Options],
    ) -> "MCPServer":
        """A server at an address, over streamable HTTP.

        Args:
            url: the address.
            name: what the server is called here.
            headers: sent with each request, such as {"Authorization": "Bearer …"}.
            auth: an `httpx2.Auth`, such as the `OAuthClientProvider` of the official package.
            options: see `Options`.

        Raises:
            Misuse: the name, or an option, cannot be.
        """
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise Misuse(f"MCPServer.http takes an address that begins with http:// or https://; not {url!r:.30}")
        named = {key: one for name, value in (headers or {}).items() for key, one in of_header(name, value).items()}
        secrets = Secrets({**named, **of_url(url)})
        told = secrets.hidden(url)
        return cls(name, lambda _: over_http(url, headers or {}, auth, told), secrets, told, options)

    @property
    def name(self) -> str:
        """What it is called here."""
        return self._name

    @property
    def rules(self) -> tuple[str, ...]:
        """That a person is asked before each call which may do more than read, where it was given so."""
        return ("ask what may do more than read (its own)",) if self._options.get("needs_approval") else ()

    def __repr__(self) -> str:
        return f"MCPServer({self._name!r}, {self._told!r})"

    async def __aenter__(self) -> "MCPServer":
        await self._connection.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.__aexit__()

    def held(self) -> AbstractAsyncContextManager[object]:
        """Keeps it running from its first use on, until the last that holds it lets go."""
        return self

    async def listed(self, known: Sequence[ListedTool] = (), first: Sequence[ListedTool] = ()) -> Sequence[ListedTool]:
        """The tools that it has now, as runs record them.

        Args:
            known: those that it had when the run last asked.
            first: all that it had in the run, as it listed them at first: what differs is shown to a person.

        Raises:
            ServerFailed: it cannot be used, and nothing is known.
        """
        async with self:
            try:
                return self._reader.read(await self._tools_now(), known, first or known)
            except (ServerFailed, Gone, Forgotten) as error:
                if known:
                    _log.warning("%s; its tools are taken to be what they were", failed(self._name, error))
                    return known
                raise failed(self._name, error) from error

    async def _tools_now(self) -> "Sequence[mcp_types.Tool]":
        """What it lists; asked again where the connection ended meanwhile, perhaps of another run's call."""
        try:
            return await self._listing.now(await self._connection.up())
        except (Gone, Forgotten):
            return await self._listing.now(await self._connection.up())

    def tool(self, listed: ListedTool) -> Tool | None:
        """The tool that was listed so, whether the server runs or not; None for one that is none of `only`.

        What is said here of its effect holds, and not what another version of the program said when it was listed.
        """
        if not self._reader.is_one_of(listed.remote):
            return None
        listed = self._reader.as_said_here(listed)
        key = (listed.name, listed.digest, listed.description, listed.effect, listed.says_effect, listed.changed)
        if key not in self._made:
            if len(self._made) >= 4 * MOST_TOOLS:
                self._made.clear()
            self._made[key] = self._tool(listed)
        return self._made[key]

    async def about(self) -> About:
        """What it says of itself, to see whether it works.

        Raises:
            ServerFailed: it does not.
        """

        async def ask(client: "Client") -> About:
            info = client.server_info
            name, version = ("", "") if info is None else (info.name, info.version)
            return About(self._secrets.hidden(name), self._secrets.hidden(version), client.protocol_version)

        return await self.within(ask)

    async def within(self, work: "Callable[[Client], Awaitable[T]]") -> T:
        """What `work` gives, which is done with the official client, in the event loop of the connection.

        Raises:
            ServerFailed: the server cannot be used.
            mcp.MCPError: it answers with an error.
        """
        async with self:
            try:
                with self._person.during_call():
                    return await (await self._connection.up()).call(work)
            except (Gone, Forgotten) as error:
                raise failed(self._name, error) from error

    def _tool(self, listed: ListedTool) -> Tool:
        # Its time is looked at by the caller, which knows what came of the call when it was up.
        options: ToolOptions = {"effect": listed.effect, "timeout": None}
        options["max_output"] = self._options.get("max_output", 50_000)
        options["needs_approval"] = listed.effect != "read" and self._options.get("needs_approval", False)

        async def call(**given: Any) -> ToolResult:
            context: ToolContext = given.pop(_CONTEXT)
            return await self._caller.call(listed, given, context)

        return Tool(
            spec=ToolSpec(listed.name, listed.description, listed.input_schema, listed.output_schema),
            arguments=from_json_schema(listed.name, listed.input_schema, None, ""),
            function=call,
            where=f"MCP server {self._name}",
            is_async=True,
            injected=((_CONTEXT, "context"),),
            says_effect=listed.says_effect,
            suspect=listed.changed,
            **options,
        )
