"""Posting: the requests to a server at an address, each of which fails by itself. The transport of the official package
would end the connection where one is cut off, and with it each other call, and does not tell a refusal from a failure.

What wants no answer, such as what the person said or that a call is given up, is posted beside all else: the transport
would send nothing more until the server has taken it, and end the connection where it is cut off.

It also follows redirects within a server, and posts again for it: where whoever connects is redirected, all that comes
after is sent to where that led, and what is redirected later is not followed. What a server did before it redirected a
call is not known, and it would be made as often as there are redirects.
"""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from http.client import responses
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2

from treadle.mcp.unanswered import JUNK, Forgotten, Gone, Refused, marked
from treadle.mcp.wanted import GivenUp, Heard, Requests, Wanted

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

SESSION: Final = "mcp-session-id"
_RESUMES: Final = "last-event-id"

REFUSALS: Final = frozenset({400, 401, 403, 404, 405, 406, 407, 410, 413, 415, 421, 429, 431})
"""What HTTP says of a request that was not carried out. Of others, such as 500, nobody knows."""

_OF_SESSIONS: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)
"""With what servers answer for a session that they do not know any more, in whatever words; 400 older ones."""

_HANDSHAKE: Final = ("initialize", "server/discover")
"""What fails there is for whoever connects."""

_CANCELLED: Final = "notifications/cancelled"
_BEFORE_ALL_ELSE: Final = "notifications/initialized"

TAKING: Final = 30.0
"""Seconds that a server has to take what wants no answer."""

PAUSE: Final = 0.1
"""Seconds before a stream is asked for: one that ends each at once may want to be asked again at once."""

LAST_WORDS: Final = 2.0
"""Seconds that it has for what is under way to it as the connection ends, such as that a call is given up."""

_log = logging.getLogger("treadle")


class Unbounded(httpx2.RequestError):
    """An answer is longer than is listened to, or may be: what is compressed has no bound."""


class Poster(httpx2.AsyncClient):
    """A client in whose answers a request that had none has an error in its place.

    Args:
        url: the address of the server.
        told: the same, for errors.
        options: those of `httpx2.AsyncClient`.
    """

    def __init__(self, url: str, told: str, **options: Any) -> None:
        super().__init__(**options)
        self._told = told
        self._url = self._at = httpx2.URL(url)
        self._requests = Requests()
        self._beside: TaskGroup | None = None

    @asynccontextmanager
    async def posting(self) -> AsyncIterator[None]:
        """While there is somebody to post."""
        async with anyio.create_task_group() as self._beside:
            yield
            self._beside.cancel_scope.deadline = anyio.current_time() + LAST_WORDS

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The answer to `request`, or an error of JSON-RPC in its place."""
        said = _object(await request.aread()) if request.method == "POST" else {}
        method = said.get("method")
        if method in _HANDSHAKE:
            response = await super().send(request, **options)
            if not response.has_redirect_location:
                self._at = request.url
            return response
        if request.url == self._url:
            request.url = self._at
        if request.method == "GET":
            return await self._listened(request, options)
        if not said or method == _BEFORE_ALL_ELSE:
            return await super().send(request, **options)
        if "id" in said and method is not None:
            return await self._asked(request, said, options)
        if method == _CANCELLED:
            self._requests.give_up(said.get("params", {}).get("requestId"))
        if self._beside is not None:
            self._beside.start_soon(self._told_it, request, options)
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)

    async def _listened(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        """What a server tells beside its answers, or an answer that was cut off and is gone on with."""
        resumed = self._requests.resumed() if _RESUMES in request.headers else Wanted()
        await anyio.sleep(PAUSE)
        return await self._heard(request, resumed, options)

    async def _told_it(self, request: httpx2.Request, options: dict[str, Any]) -> None:
        """Posts what wants no answer. Nobody waits for it, so that what fails is for the log."""
        try:
            with anyio.fail_after(TAKING):
                response = await super().send(request, **options)
                await response.aclose()
        except Exception as error:  # `auth=` may raise anything
            _log.warning("%s did not take what it was told, because of a %s", self._told, type(error).__name__)

    async def _heard(self, request: httpx2.Request, wanted: Wanted, options: dict[str, Any]) -> httpx2.Response:
        send = super().send
        response = await wanted.waited(lambda: send(request, **options))
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = Heard(response.stream, wanted)
        return response

    async def _asked(self, request: httpx2.Request, said: dict[str, Any], options: dict[str, Any]) -> httpx2.Response:
        try:
            response = await self._heard(request, self._requests.begin(said["id"]), options)
            try:
                lacks = await _lacks(response, said)
            except BaseException:
                await response.aclose()
                raise
        except GivenUp:
            # An error would be for a reader that may be closed by now; what was accepted is only let go.
            return httpx2.Response(HTTPStatus.ACCEPTED, request=request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            lacks = marked(Forgotten, f"cannot be reached: nobody answers at {self._told}")
        except Unbounded as error:
            lacks = marked(Gone, f"gave no answer that can be used: {error}")
        except httpx2.TransportError:
            lacks = marked(Gone, "ended its answer before it was whole, or gave none")
        except Exception as error:  # what is given as `auth=` may raise anything, and its words may have a key in them
            lacks = marked(Gone, f"was not asked, or its answer not read, because of a {type(error).__name__} here")
        if lacks is None:
            return response
        body = {"jsonrpc": "2.0", "id": said["id"], "error": lacks}
        return httpx2.Response(HTTPStatus.BAD_GATEWAY, json=body, request=request)


async def _lacks(response: httpx2.Response, said: dict[str, Any]) -> dict[str, Any] | None:
    """The error in the place of an answer to the message `said`; None where it is one."""
    status, kind = response.status_code, response.headers.get("content-type", "").lower()
    if 300 <= status < 400:
        await response.aclose()
        return marked(Gone, "answered with a redirect, which is not followed")
    if status < 300 and status != HTTPStatus.ACCEPTED:
        if kind.startswith("application/json"):
            await response.aread()
        elif not kind.startswith("text/event-stream"):
            await response.aclose()
            return marked(Gone, JUNK)
        return None
    found = _object(await response.aread()) if kind.startswith("application/json") else {}
    await response.aclose()
    words = f"answered with HTTP {status} {responses.get(status, '')}".rstrip()
    if status in _OF_SESSIONS and SESSION in response.request.headers and found.get("id") != said["id"]:
        words = "has ended its session" if status == HTTPStatus.NOT_FOUND else words
        return marked(Forgotten, words, ends=True)
    if status >= 400 and isinstance(found.get("error"), dict):
        return None
    return marked(Refused if status in REFUSALS else Gone, words)


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
