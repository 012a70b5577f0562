"""Gate: lets in who may come in before any route is asked, and says to browsers what they may do with what they get."""

import asyncio
import logging
from typing import Final

from starlette._utils import get_route_path
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treadle.serve.access import SAFE, Access
from treadle.serve.answer import Answer
from treadle.serve.health import Health
from treadle.serve.live import Live
from treadle.serve.refusals import refusal
from treadle.serve.refused import Refused
from treadle.tools.raised import Redact, log_raised

log = logging.getLogger("treadle.serve")

PROTECTED: Final = ("/api/", "/ai-sdk/", "/ag-ui/", "/v1/", "/openapi.json")
"""Beginnings of the paths that are for users who are known. Whatever else is served is the page: files, the same for
everybody, and nothing of a run."""

OPEN: Final = frozenset({"/health", "/api/session"})
"""Paths that are for anybody whose place is right; of a session that is where one comes to be known."""

_REST: Final = 4
"""How many times the body that is taken may still come of one that is refused."""

_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    # The page has a policy of its own; what is data is never shown as one.
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}


class BrokenOff(Exception):
    """An answer that had begun cannot be ended; its connection is."""


class Gate:
    """Stands before an app. Host, origin, who calls and how often are looked at here, and nowhere else; so is whether
    what would be told of runs could be true. What the application's own code raises is logged here, as the journal
    redacts it, and answered with a 500.
    """

    def __init__(self, app: ASGIApp, access: Access, health: Health, live: Live, redact: Redact | None) -> None:
        self._app, self._access, self._health, self._live, self._redact = app, access, health, live, redact

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what may come in."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        answer = Answer(request, self._with_headers(request, send), _REST * self._access.bounds.body)
        try:
            await self._pass(Request(scope, answer.receive), answer.send)
            return
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0):
                if not self._live.stopping:
                    raise
                await self._given_up(request, answer)
                return
            # A cancellation that nobody asked for is one of the application's own.
            log_raised("a request failed", error, self._redact, level=logging.ERROR, log=log)
        # A server logs what it is told of as it is: what was raised goes no further, and is no context of this.
        if answer.begun:
            raise BrokenOff("a request failed when its answer had begun; the line before says why")
        words = "something went wrong here", "Whoever runs the server finds it in its log."
        await refusal(request, Refused("internal", *words))(scope, receive, answer.send)

    async def _given_up(self, request: Request, answer: Answer) -> None:
        """Says that the server stops, where it cannot wait for a request any more: it would log that as a failure."""
        words = "the server is stopping, and did not wait for this", "Look whether it was done when the server is back."
        if not answer.begun:
            await refusal(request, Refused("unavailable", *words))(request.scope, request.receive, answer.send)

    async def _pass(self, request: Request, given: Send) -> None:
        scope, receive = request.scope, request.receive
        try:
            self._access.check_place(request, page=_is_public(request))
            if _is_preflight(request):
                await Response(status_code=204)(scope, receive, given)
                return
            if not _is_public(request):
                scope["treadle.user"] = await self._access.user(request)
                self._health.check()
        except Refused as error:
            await refusal(request, error)(scope, receive, given)
            return
        await self._app(scope, receive, given)

    def _with_headers(self, request: Request, send: Send) -> Send:
        origin = request.headers.get("origin")
        shared = origin if origin in self._access.origins else None

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if shared is not None:
                    _share(headers, shared, request.headers.get("access-control-request-headers", ""))
            await send(message)

        return sent


def _share(headers: MutableHeaders, origin: str, asked: str) -> None:
    """Lets the pages of `origin` read the answer, and send what their clients send: `asked`, in a preflight."""
    headers["access-control-allow-origin"] = origin
    headers["access-control-allow-credentials"] = "true"
    headers["access-control-expose-headers"] = "x-treadle-run, x-vercel-ai-ui-message-stream, retry-after"
    headers["access-control-allow-methods"] = "GET, POST, PATCH, DELETE"
    if asked:
        headers["access-control-allow-headers"] = asked
    headers["access-control-max-age"] = "600"
    headers["cross-origin-resource-policy"] = "cross-origin"
    headers.add_vary_header("origin")


def _is_preflight(request: Request) -> bool:
    return request.method == "OPTIONS" and "access-control-request-method" in request.headers


def _is_public(request: Request) -> bool:
    """Whether it is for anybody whose place is right: nothing of a run is in it."""
    path = get_route_path(request.scope)
    if path in OPEN:
        return True
    return request.method in SAFE and not any(path == one.rstrip("/") or path.startswith(one) for one in PROTECTED)
