"""Official: the client of the official package as a server is met with it: what the server may ask for, and no more."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from treadle.kernel.errors import Misuse
from treadle.mcp.asking import Person
from treadle.mcp.logs import hidden_in_logs
from treadle.mcp.options import Options
from treadle.mcp.program import Said
from treadle.mcp.secrets import Secrets
from treadle.mcp.whole import whole
from treadle.visible import visible

if TYPE_CHECKING:
    from mcp import Client

_log = logging.getLogger("treadle")

LONGEST_WORDS: Final = 1_000
"""Characters of what is told of the tools of a page that are left out."""

Connect = Callable[[Said], AbstractAsyncContextManager[Any]]
"""Makes a transport of the official package to the server; what a program says on its standard error goes to `Said`."""


class Official:
    """Makes clients of one server.

    Args:
        name: the server's.
        transport: makes the transport.
        secrets: what is in no log of what speaks with the server.
        options: what the server may ask for.
        person: whom it asks.
    """

    def __init__(self, name: str, transport: Connect, secrets: Secrets, options: Options, person: Person) -> None:
        self._name = name
        self._transport, self._secrets, self._options, self._person = transport, secrets, options, person
        self._roots: Any = [Path(one).resolve().as_uri() for one in options.get("roots", ())]

    @asynccontextmanager
    async def client(self, said: Said, changed: Callable[[], None]) -> "AsyncIterator[Client]":
        """A client, connected. Entered in the link's loop.

        Args:
            said: where a program's errors are said to.
            changed: called when the server says that it has other tools.

        Raises:
            Misuse: the official package is not installed.
        """
        try:
            from mcp import Client
        except ImportError as error:
            raise Misuse("MCPServer needs the official package: pip install 'treadle[mcp]'") from error
        import mcp_types

        async def heard(message: Any) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                changed()

        def left_out(told: str) -> None:
            words = visible(self._secrets.hidden(told))[:LONGEST_WORDS]
            _log.warning("what are no tools of the server %s is left out: %s", self._name, words)

        may = self._options
        transport = whole(self._transport(said), lambda: client.protocol_version, left_out)
        elicited: Any = self._elicited if may.get("ask") is not None else None
        rooted: Any = self._rooted if may.get("roots") else None
        sampled: Any = self._sampled if may.get("sampling") is not None else None
        client = Client(
            transport,
            cache=None,
            client_info=mcp_types.Implementation(name="treadle", version=version("treadle")),
            message_handler=heard,
            elicitation_callback=elicited,
            list_roots_callback=rooted,
            sampling_callback=sampled,
        )
        # The filter stays until the transport has ended, which logs as it ends.
        with hidden_in_logs(self._secrets):
            async with client:
                session: Any = client.session
                session.validate_tool_result = _unchecked
                yield client

    async def _elicited(self, context: Any, params: Any) -> Any:
        ask = self._options["ask"]
        if ask is None or ask == "pause":
            return self._person.held(params, context.session)
        return await self._person.answered(ask, params)

    async def _sampled(self, context: Any, params: Any) -> Any:
        sampling = self._options["sampling"]
        return None if sampling is None else await self._person.sampled(sampling, context, params)

    async def _rooted(self, _: Any) -> Any:
        import mcp_types

        return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri=uri) for uri in self._roots])


async def _unchecked(name: str, result: Any) -> None:
    """For the check of the official client, in whose place stands that of `results.py`."""
