"""Serving: what a route works with: the runs, who calls, the body of a request within bounds, a stream of events."""

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import quote

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.serve import queries
from treadle.serve.access import Access
from treadle.serve.forms import encoded
from treadle.serve.posting import Posting, posting
from treadle.serve.refused import TROUBLE, Refused, refused_by
from treadle.serve.runs import Runs
from treadle.serve.user import User

T = TypeVar("T")
Q = TypeVar("Q", bound=msgspec.Struct)

log = logging.getLogger("treadle.serve")

BEAT = 15.0
"""Seconds of silence after which a stream sends a comment, so that proxies keep it and a lost client is noticed."""

STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""Of every stream: nothing between server and client may keep it back."""


class Serving(NamedTuple):
    """What every route works with."""

    runs: Runs
    access: Access

    def user(self, request: Request) -> User:
        """Who calls; found before any route is asked."""
        user: User = request.scope["treadle.user"]
        return user

    async def body(self, request: Request, kind: type[T]) -> T:
        """The body of a request, which is JSON of that type.

        Raises:
            Refused: it is too large, no JSON ("bad_request"), of another type of media, or does not fit ("unfit").
        """
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":
            # What a form of another site could send is not read.
            raise Refused("wrong_type", "the body must be JSON", "Send it as content-type: application/json.")
        data = await self.access.body(request)
        try:
            # What a person gives as arguments keeps all its digits.
            return msgspec.json.Decoder(kind, float_hook=Decimal).decode(data)
        except msgspec.ValidationError as error:
            told = "GET /openapi.json has what each body takes."
            raise Refused("unfit", f"the body does not fit: {error}", told) from error
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise _unread(data, error) from error

    def query(self, request: Request, kind: type[Q]) -> Q:
        """The query of a request as that type. Raises `Refused` if it does not fit."""
        given = dict(request.query_params)
        if len(given) < len(request.query_params.multi_items()):
            raise Refused("unfit", "the query gives something twice, of which one would not count", "Give each once.")
        return queries.read(given, kind)

    def leaves(self, user: User, on_disconnect: str) -> None:
        """Looks whether a run may end with its client, where that is asked for. Raises `Refused` if it may not."""
        if on_disconnect == "cancel" and user.decides == "nothing":
            raise Refused("forbidden", "you may not cancel runs, and on_disconnect=cancel would", "Leave it out.")

    def posting(self, user: User, names: tuple[str, ...] | None, asked: Any) -> Posting:
        """What names a request that begins a run; see `posting`."""
        return posting(user.name, names, asked, getattr(self.runs.journal, "redact", None))

    def stream(
        self,
        request: Request,
        chunks: AsyncGenerator[bytes],
        *,
        headers: dict[str, str] | None = None,
        left: Callable[[], Awaitable[object]] | None = None,
        slot: "Slot | None" = None,
    ) -> Response:
        """Server-sent events: `chunks` as they come, a comment where nothing comes for long.

        Args:
            request: whose answer it is.
            chunks: whole events, as `sse` makes them.
            headers: further headers.
            left: called if the client goes away before the end, unless the server does.
            slot: the stream's, if it was taken before what it tells was begun.

        Raises:
            Refused: there is no slot, and as many streams are open as may be.
        """

        async def gone() -> None:
            # Of a server that stops runs pause, to be gone on with, whoever was too slow to be told so.
            if left is not None and not self.runs.live.stopping:
                await left()

        close = slot.close if slot is not None and slot.close is not None else self.access.stream(self.user(request))
        return EventStream(chunks, headers or {}, close, gone)

    def slot(self, request: Request, *, taken: bool = True) -> "Slot":
        """A slot for the stream that answers a request which begins something; to be taken later, if not now."""
        slot = Slot(partial(self.access.stream, self.user(request)))
        if taken:
            slot.take()
        return slot


class Slot:
    """A slot for a stream, to be taken before what it tells is begun: who is refused for want of one, and told to try
    again later, has begun nothing. It is given back if no stream comes of it.

    Args:
        open_one: opens a stream, as `Access.stream`.
    """

    def __init__(self, open_one: Callable[[], Callable[[], None]]) -> None:
        self._open_one = open_one
        self.close: Callable[[], None] | None = None

    def take(self) -> None:
        """Takes it. Raises `Refused` if as many streams are open as may be."""
        self.close = self._open_one()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None and self.close is not None:
            self.close()


def _unread(data: bytes, error: Exception) -> Refused:
    """What is said of a body that could not be read."""
    try:
        json.dumps(json.loads(data), ensure_ascii=False).encode()
    except UnicodeEncodeError as found:
        return Refused(
            "bad_request",
            f"a text in the body has half of a character alone, \\u{ord(found.object[found.start]):04x}",
            "It may have been cut within an emoji: cut texts between characters.",
        )
    except (ValueError, RecursionError):
        pass  # the words of the first reader are better
    return Refused("bad_request", f"the body is no JSON: {error}")


def naming(run_id: str) -> dict[str, str]:
    """The header by which an answer names its run: as in an address, for a name may have what no header takes."""
    return {"x-treadle-run": quote(run_id)}


class EventStream(Response):
    """Server-sent events as they come. Nothing is held for a client that is slow: the next chunk is asked for when the
    one before is on its way.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes],
        headers: dict[str, str],
        close: Callable[[], object],
        left: Callable[[], Awaitable[object]],
    ) -> None:
        super().__init__(None, headers={**STREAM_HEADERS, **headers}, media_type="text/event-stream")
        del self.headers["content-length"]
        self._chunks, self._close, self._left = chunks, close, left
        self._sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events until there are no more, or the client has gone; whoever asks by HEAD is sent none."""
        whole = False
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                # An answer that stayed open would hold up what the client asks next on the connection.
                whole = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            async with anyio.create_task_group() as group:
                group.start_soon(self._listen, receive, send, group.cancel_scope)
                async with aclosing(self._chunks) as chunks:
                    async for chunk in chunks:
                        self._sent += 1
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                whole = True
                group.cancel_scope.cancel()
            if whole:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._close()
            if not whole:
                with anyio.CancelScope(shield=True):
                    await self._leave()

    async def _leave(self) -> None:
        try:
            await self._left()
        except TROUBLE as error:
            log.warning("what was to be done when a client had gone was refused: %s", refused_by(error).message)

    async def _listen(self, receive: Receive, send: Send, scope: anyio.CancelScope) -> None:
        """Waits until the client has gone, and sends a comment where there is nothing to send."""
        while True:
            before = self._sent
            with anyio.move_on_after(BEAT):
                if (await receive())["type"] == "http.disconnect":
                    scope.cancel()
                    return
                continue
            if self._sent == before:
                await send({"type": "http.response.body", "body": b": beat\n\n", "more_body": True})


def sse(name: str, data: bytes, number: int | None = None) -> bytes:
    """One server-sent event; `data` is JSON on one line."""
    head = b"" if number is None else b"id: %d\n" % number
    return b"%bevent: %b\ndata: %b\n\n" % (head, name.encode(), data)


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response with `value` as JSON."""
    return Response(encoded(value), status, headers, "application/json")
