"""Calling: one call of a server's tool, within its time: made as it was shown, and in doubt where no answer came."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from treadle.kernel.messages import ListedTool
from treadle.mcp.asking import Person
from treadle.mcp.connection import Connection
from treadle.mcp.failing import failed, told_of
from treadle.mcp.holding import Held, is_held
from treadle.mcp.link import Link
from treadle.mcp.listed import digest_of
from treadle.mcp.listing import Listing
from treadle.mcp.naming import KEY
from treadle.mcp.options import Options
from treadle.mcp.results import require_fitting, result_of
from treadle.mcp.secrets import Secrets
from treadle.mcp.unanswered import Forgotten, Gone, Refused, of_transport
from treadle.mcp.waiting import MOST_ROUNDS, answers_to, question_of
from treadle.tools import ToolContext, ToolError, ToolResult
from treadle.tools.errors import OutcomeUnknown
from treadle.tools.server import ServerFailed

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client

MOST_NEWS: Final = 1000
"""Reports of how far it has come that one call may make."""


class _NotMade(ToolError):
    """The server was not asked to carry the call out.

    Args:
        why: what is in the way.
        more: a sentence after it.
    """

    def __init__(self, why: str, more: str = "") -> None:
        super().__init__(f"{why}; nothing was called{more}", executed=False)
        self.why = why


class _Attempts:
    """How often a call may yet be made, and whether the server was asked to carry it out."""

    def __init__(self) -> None:
        self.left, self.asked = 2, False


class Caller:
    """Calls the tools of one server.

    Args:
        name: the server's.
        secrets: what is shown of nothing that it gives back.
        options: how long a call may take, how the person is asked, and whether it may change its tools meanwhile.
        connection: reaches it; held by whoever calls.
        listing: what it lists.
        person: whom it may ask while a call is under way.
    """

    def __init__(
        self, name: str, secrets: Secrets, options: Options, connection: Connection, listing: Listing, person: Person
    ) -> None:
        self._name, self._secrets, self._options = name, secrets, options
        self._connection, self._listing, self._person = connection, listing, person

    async def call(self, listed: ListedTool, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """What comes of one call, within its time. What the server was asked to do and did not answer is in doubt, and
        one that ended with a question stays at that end where it cannot be gone on with.

        Args:
            listed: the tool, as it was shown to whoever decided on the call.
            arguments: what it is given.
            context: the call's.

        Raises:
            ToolError: for the model; OutcomeUnknown or AsksPerson for whoever runs the call.
        """
        again = context.again
        held = Held(again, context.answer, self._secrets) if is_held(again) else None
        if held is not None and (end := held.declined()) is not None:
            return self._fitting(end, listed.output_schema)
        try:
            return await self._in_time(listed, arguments, context)
        except _NotMade as error:
            if held is not None:
                return self._fitting(held.stands(error.why), listed.output_schema)
            if not again:
                raise
            words = "the call was made before, as far as to its question, and was not gone on with"
            raise ToolError(f"{error.why}; {words}", executed="unknown") from error

    async def _in_time(self, listed: ListedTool, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        seconds, attempts = self._options.get("timeout", 60.0), _Attempts()
        try:
            async with self._connection, asyncio.timeout(seconds) as time:
                with self._person.during_call(context.redact):
                    return await self._carried_out(listed, arguments, context, attempts, time)
        except TimeoutError:
            if not time.expired():
                raise
            words = f"{self._name} did not answer within the time limit of {seconds:g} s"
            if not attempts.asked:
                raise _NotMade(f"{words} whether it can be called") from None
            raise OutcomeUnknown(f"{words}; it may have done it, or do it still") from None

    async def _carried_out(
        self,
        listed: ListedTool,
        arguments: dict[str, Any],
        context: ToolContext,
        attempts: "_Attempts",
        time: asyncio.Timeout,
    ) -> ToolResult:
        """The call; that of a tool that only reads, or may be repeated, is made again if the server died of it."""
        progress = self._progress(context)
        while True:
            attempts.left -= 1
            asking = False
            try:
                link = await self._connection.up()
                async with self._turn(link, time):
                    if link.gone:
                        # Another's call ended it meanwhile; how often it is started anew is for the connection to say.
                        attempts.left += 1
                        continue
                    schema = (await self._as_shown(link, listed, attempts.asked)).output_schema
                    before, attempts.asked, asking = attempts.asked, True, True
                    work = partial(self._asked, listed, arguments, context, progress, schema)
                    return await link.call(work)
            except Forgotten as error:
                attempts.asked = before if asking else attempts.asked
                if not attempts.left or isinstance(error, Refused):
                    raise self._not_made(error, attempts.asked) from error
            except Gone as error:
                if asking and (listed.effect == "write" or not attempts.left):
                    raise OutcomeUnknown(f"{failed(self._name, error)}; it may have done it") from error
                if not attempts.left:
                    raise self._not_made(error, attempts.asked) from error
            except ServerFailed as error:
                raise self._not_made(error, attempts.asked) from error

    @asynccontextmanager
    async def _turn(self, link: Link, time: asyncio.Timeout) -> AsyncIterator[None]:
        """The turn of a call, where the run waits for what a server asks that holds calls open: nobody could tell which
        of several it asks about. Waiting for its turn takes nothing of the call's time.
        """
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        if self._options.get("ask") != "pause" or (await link.client()).protocol_version in MODERN_PROTOCOL_VERSIONS:
            yield
            return
        loop, until = asyncio.get_running_loop(), time.when()
        left = None if until is None else until - loop.time()
        time.reschedule(None)
        async with link.turns.taken():
            time.reschedule(None if left is None else loop.time() + left)
            yield

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
        except MCPError as error:
            if of_transport(error) is not None:
                raise
            raise ToolError(f"{self._name} answers: {self._secrets.hidden(error.message)[:2000]}") from error
        except (RuntimeError, ValueError) as error:
            if isinstance(error, InputRequiredRoundsExceededError):
                raise ToolError(f"{self._name} went on asking and gave no result") from error
            raise self._unusable(error) from error
        return self._fitting(found, schema)

    def _fitting(self, found: "mcp_types.CallToolResult", schema: Any) -> ToolResult:
        """What a call gave back, which has to fit what the server says of the tool."""
        try:
            require_fitting(found, schema)
        except ValueError as error:
            raise self._unusable(error) from error
        return result_of(found, self._secrets)

    def _unusable(self, error: Exception) -> ToolError:
        """What it sent is no result, or none that fits. The call was made."""
        words = self._secrets.hidden(told_of(error))[:500]
        return ToolError(f"{self._name} did the call, and what it gave back cannot be used: {words}")

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

        again = is_held(context.again)
        held = Held(context.again if again else "", context.answer, self._secrets)
        answers, state = (None, None) if again or not context.again else answers_to(context.again, context.answer)
        with self._person.holding(held, client.session):
            for _ in range(MOST_ROUNDS):
                found = await client.session.call_tool(
                    listed.remote, arguments, progress_callback=progress, meta=meta,
                    input_responses=answers, request_state=state, allow_input_required=True,
                )  # fmt: skip
                if not isinstance(found, InputRequiredResult):
                    held.require_none_open(found, self._name)
                    return held.with_refusal(found, self._name)
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

    async def _as_shown(self, link: Link, listed: ListedTool, sent: bool) -> "mcp_types.Tool":
        """What the server lists, unless it says something else than was shown to whoever decided on the call, which is
        then not made; or not again, where it was `sent` before.
        """
        now = {one.name: one for one in await self._listing.now(link)}.get(listed.remote)
        if now is not None and (digest_of(now) == listed.digest or self._options.get("trusted", False)):
            return now
        if now is None:
            why, more = f"{self._name} has no tool {listed.remote!r} any more", ""
        else:
            why = f"{self._name} says something else of {listed.remote!r} than it did when the call was decided on"
            more = ". It can be called again as it is listed now"
        if sent:
            raise ToolError(f"{why}; the call was made before that, and nobody knows what came of it{more}")
        raise _NotMade(why, more)

    def _not_made(self, error: Exception, sent: bool) -> ToolError:
        """What the model is told of a call that could not be made; or not again, where it was `sent` before."""
        words = str(failed(self._name, error))
        return ToolError(f"{words}; it was asked before, and may have done it") if sent else _NotMade(words)
