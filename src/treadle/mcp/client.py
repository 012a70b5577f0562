"""MCPServer: a server whose tools an agent uses: what it is, and how far it is believed. Runs start and stop it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, Unpack

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ListedTool, ToolSpec
from treadle.mcp.address import over_http
from treadle.mcp.asking import Person
from treadle.mcp.connection import Connection
from treadle.mcp.failing import OF_STREAMS, OF_TRANSPORTS
from treadle.mcp.link import STARTING, Forgotten, Gone, Link
from treadle.mcp.listed import MOST_TOOLS, Reader, digest_of
from treadle.mcp.naming import KEY, check_server_name
from treadle.mcp.options import Options, check_server_options
from treadle.mcp.program import Command, Said, spoken_to
from treadle.mcp.results import require_fitting, result_of
from treadle.mcp.secrets import Secrets, of_header, of_url
from treadle.mcp.waiting import MOST_ROUNDS, answers_to, question_of
from treadle.tools import Tool, ToolContext, ToolError, ToolResult
from treadle.tools.arguments import from_json_schema
from treadle.tools.errors import OutcomeUnknown
from treadle.tools.options import ToolOptions
from treadle.tools.server import ServerFailed

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client

T = TypeVar("T")

MOST_NEWS: Final = 1000
"""Reports of how far it has come that one call may make."""

_CONTEXT = "\0context"
_log = logging.getLogger("treadle")


class _Attempts:
    """How often a call may yet be made, and whether the server was asked to carry it out."""

    def __init__(self) -> None:
        self.left, self.asked = 2, False


class About(NamedTuple):
    """What a server says of itself: its name and version, and the version of the protocol that is spoken with it."""

    name: str
    version: str
    protocol: str


Connect = Callable[[Said], AbstractAsyncContextManager[Any]]


class MCPServer:
    """A server of tools that speaks MCP: a program on this machine (`stdio`) or an address (`http`).

    Give it to an agent in its list of tools. It is started when a run first needs it and stopped when no run does any
    more; within `async with server:` it stays. If it dies it is started again, four times a minute at most. Nothing
    that it was given in its environment, headers or address is shown in what comes back of it.

    The tools are called `name__tool`. Their descriptions and results are the server's words: a model may believe them,
    so what a tool may do is for the agent's rules to say (`ask_before(effect="write")`).
    """

    def __init__(self, name: str, transport: Connect, secrets: Secrets, told: str, options: Options) -> None:
        self._name = check_server_name(name)
        self._transport, self._secrets, self._told = transport, secrets, told
        check_server_options(options)
        self._options = options
        self._roots: Any = [Path(one).resolve().as_uri() for one in options.get("roots", ())]
        trusted, effects = options.get("trusted", False), options.get("effects", {})
        self._reader = Reader(name, secrets, trusted, effects, options.get("only"))
        self._connection = Connection(name, told, secrets, self._client)
        self._tools: tuple[Link, int, Sequence[mcp_types.Tool]] | None = None
        self._made: dict[tuple[Any, ...], Tool] = {}
        self._person = Person(name, secrets)

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
        if not isinstance(command, str) or not all(isinstance(one, str) for one in arguments):
            raise Misuse(f"MCPServer.stdio takes a program and its arguments as texts; it was given {command!r:.100}")
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
        return cls(name, lambda _: over_http(url, headers or {}, auth, secrets), secrets, secrets.hidden(url), options)

    @property
    def name(self) -> str:
        """What it is called here."""
        return self._name

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

    async def listed(self, known: Sequence[ListedTool] = ()) -> Sequence[ListedTool]:
        """The tools that it has now, as runs record them; `known` are those that it had before.

        Raises:
            ServerFailed: it cannot be used, and nothing is known.
        """
        async with self:
            try:
                tools = await self._now(await self._connection.up())
                return self._reader.read(tools, known)
            except (ServerFailed, Gone, Forgotten) as error:
                if known:
                    _log.warning("%s; its tools are taken to be what they were", self._failed(error))
                    return known
                raise self._failed(error) from error

    def tool(self, listed: ListedTool) -> Tool:
        """The tool that was listed so, whether the server runs or not."""
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
                raise self._failed(error) from error

    def _tool(self, listed: ListedTool) -> Tool:
        # Its time is looked at in `_call`, which knows what came of the call when it was up.
        options: ToolOptions = {"effect": listed.effect, "timeout": None}
        options["max_output"] = self._options.get("max_output", 50_000)
        options["needs_approval"] = listed.effect != "read" and self._options.get("needs_approval", False)

        async def call(**given: Any) -> ToolResult:
            context: ToolContext = given.pop(_CONTEXT)
            return await self._call(listed, given, context)

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

    async def _call(self, listed: ListedTool, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Makes one call, within its time. What the server was asked to do and did not answer is in doubt."""
        seconds, attempts = self._options.get("timeout", 60.0), _Attempts()
        try:
            async with self, asyncio.timeout(seconds) as time:
                with self._person.during_call():
                    return await self._carried_out(listed, arguments, context, attempts)
        except TimeoutError:
            if not time.expired():
                raise
            words = f"{self._name} did not answer within the time limit of {seconds:g} s"
            if not attempts.asked:
                raise ToolError(f"{words} whether it can be called; nothing was called", executed=False) from None
            raise OutcomeUnknown(f"{words}; it may have done it, or do it still") from None

    async def _carried_out(
        self, listed: ListedTool, arguments: dict[str, Any], context: ToolContext, attempts: "_Attempts"
    ) -> ToolResult:
        """The call; that of a tool that only reads, or may be repeated, is made again if the server died of it."""
        progress = self._progress(context)
        while True:
            attempts.left -= 1
            asking = False
            try:
                link = await self._connection.up()
                schema = (await self._as_shown(link, listed)).output_schema
                before, attempts.asked, asking = attempts.asked, True, True
                work = partial(self._asked, listed, arguments, context, progress, schema)
                return await link.call(work)
            except Forgotten as error:
                attempts.asked = before if asking else attempts.asked
                if not attempts.left:
                    raise self._not_made(error, attempts.asked) from error
            except Gone as error:
                if asking and (listed.effect == "write" or not attempts.left):
                    raise OutcomeUnknown(f"{self._failed(error)}; it may have done it") from error
                if not attempts.left:
                    raise self._not_made(error, attempts.asked) from error
            except ServerFailed as error:
                raise self._not_made(error, attempts.asked) from error

    async def _asked(
        self,
        listed: ListedTool,
        arguments: dict[str, Any],
        context: ToolContext,
        progress: Any,
        schema: Any,
        client: "Client",
    ) -> ToolResult:
        """The call itself, in the link's loop."""
        from mcp import InputRequiredRoundsExceededError, MCPError

        meta: Any = {KEY: context.idempotency_key}
        try:
            if self._options.get("ask") == "pause":
                found = await self._asked_or_paused(client, listed, arguments, context, progress, meta)
            else:
                found = await client.call_tool(listed.remote, arguments, progress_callback=progress, meta=meta)
            require_fitting(found, schema)
        except MCPError as error:
            if _is_of_the_connection(error):
                raise
            raise ToolError(f"{self._name} answers: {self._secrets.hidden(error.message)[:2000]}") from error
        except (RuntimeError, ValueError) as error:
            # What it sent is no result, or none that fits what it says of the tool. The call was made.
            if isinstance(error, InputRequiredRoundsExceededError):
                raise ToolError(f"{self._name} went on asking and gave no result") from error
            words = self._secrets.hidden(str(error))[:500]
            raise ToolError(f"{self._name} did the call, and what it gave back cannot be used: {words}") from error
        return result_of(found, self._secrets)

    async def _asked_or_paused(
        self,
        client: "Client",
        listed: ListedTool,
        arguments: dict[str, Any],
        context: ToolContext,
        progress: Any,
        meta: Any,
    ) -> "mcp_types.CallToolResult":
        """The call, or its continuation with what the person answered.

        Raises:
            AsksPerson: the person has to answer first.
        """
        import anyio
        from mcp_types import InputRequiredResult

        answers, state = answers_to(context.again, context.answer) if context.again else (None, None)
        for _ in range(MOST_ROUNDS):
            found = await client.session.call_tool(
                listed.remote, arguments, progress_callback=progress, meta=meta,
                input_responses=answers, request_state=state, allow_input_required=True,
            )  # fmt: skip
            if not isinstance(found, InputRequiredResult):
                return found
            if found.input_requests:
                raise question_of(found, self._name, self._secrets)
            answers, state = None, found.request_state
            await anyio.sleep(0.1)
        raise ToolError(f"{self._name} went on asking to be called again and gave no result")

    def _progress(self, context: ToolContext) -> Any:
        """Passes on how far a call has come, to the loop of the run."""
        loop, left = asyncio.get_running_loop(), [MOST_NEWS]

        async def progress(done: float, total: float | None, message: str | None) -> None:
            left[0] -= 1
            if left[0] >= 0:
                words = None if message is None else self._secrets.hidden(message)[:1000]
                news = {"progress": done, "total": total, "message": words}
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(
                        context.report, {key: one for key, one in news.items() if one is not None}
                    )

        return progress

    async def _as_shown(self, link: Link, listed: ListedTool) -> "mcp_types.Tool":
        """What the server lists, unless it says something else than was shown to whoever decided on the call."""
        now = {one.name: one for one in await self._now(link)}.get(listed.remote)
        if now is None:
            raise ToolError(f"{self._name} has no tool {listed.remote!r} any more; nothing was called", executed=False)
        if digest_of(now) != listed.digest and not self._options.get("trusted", False):
            raise ToolError(
                f"{self._name} says something else of {listed.remote!r} than it did when the call was decided on; "
                "nothing was called. It can be called again as it is listed now",
                executed=False,
            )
        return now

    async def _now(self, link: Link) -> "Sequence[mcp_types.Tool]":
        """What it lists now, asked for if it may have changed."""
        kept, changes = self._tools, self._connection.changes
        if kept is not None and kept[0] is link and kept[1] == changes:
            return kept[2]
        tools = await link.call(self._all_tools)
        self._tools = (link, changes, tools)
        return tools

    async def _all_tools(self, client: "Client") -> "Sequence[mcp_types.Tool]":
        import anyio
        from mcp import MCPError

        found: list[mcp_types.Tool] = []
        if client.server_capabilities.tools is None:
            return found
        cursor, most = None, MOST_TOOLS * (1 if self._options.get("only") is None else 20)
        try:
            with anyio.fail_after(STARTING):
                while len(found) <= most:
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if cursor is None or not page.tools:
                        return found
        except TimeoutError:
            raise ServerFailed(f"the server {self._name} did not list its tools within {STARTING:g} s") from None
        except MCPError as error:
            if _is_of_the_connection(error):
                raise
            raise ServerFailed(f"{self._name} answers: {self._secrets.hidden(error.message)[:500]}") from error
        except ValueError as error:
            raise ServerFailed(f"the server {self._name} lists what are no tools") from error
        raise ServerFailed(
            f"the server {self._name} lists more than {most} tools: name those that are wanted (only=[…])"
        )

    @asynccontextmanager
    async def _client(self, said: Said) -> "AsyncIterator[Client]":
        """The official client, connected. Entered in the link's loop."""
        try:
            from mcp import Client
        except ImportError as error:
            raise Misuse("MCPServer needs the official package: pip install 'treadle[mcp]'") from error
        import mcp_types

        async def heard(message: Any) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                self._connection.changed()

        may, transport = self._options, self._transport(said)
        elicited: Any = self._elicited if may.get("ask") is not None else None
        rooted: Any = self._rooted if may.get("roots") else None
        sampled: Any = may.get("sampling")
        client = Client(
            transport,
            cache=None,
            client_info=mcp_types.Implementation(name="treadle", version=version("treadle")),
            message_handler=heard,
            elicitation_callback=elicited,
            list_roots_callback=rooted,
            sampling_callback=sampled,
        )
        async with client:
            session: Any = client.session
            session.validate_tool_result = _unchecked
            yield client

    async def _elicited(self, _: Any, params: Any) -> Any:
        import mcp_types

        ask = self._options["ask"]
        if ask is None or ask == "pause":
            # It holds the call open for the answer, which a run that waits cannot.
            return mcp_types.ElicitResult(action="cancel")
        return await self._person.answered(ask, params)

    async def _rooted(self, _: Any) -> Any:
        import mcp_types

        return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri=uri) for uri in self._roots])

    def _not_made(self, error: Exception, sent: bool) -> ToolError:
        """What the model is told of a call that could not be made; or not again, where it was `sent` before."""
        words = str(self._failed(error))
        return ToolError(words) if sent else ToolError(f"{words}; nothing was called", executed=False)

    def _failed(self, error: Exception) -> ServerFailed:
        if isinstance(error, ServerFailed):
            return error
        return ServerFailed(f"the server {self._name} went away before it answered")


async def _unchecked(name: str, result: Any) -> None:
    """For the check of the official client, in whose place stands that of `results.py`."""


def _is_of_the_connection(error: Any) -> bool:
    """Whether the link has to look at it: nothing that the server answered."""
    from mcp_types import CONNECTION_CLOSED

    ended = error.code == CONNECTION_CLOSED and error.message.startswith(OF_STREAMS)
    return ended or error.message in OF_TRANSPORTS
