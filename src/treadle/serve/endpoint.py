"""Endpoint: one route of treadle's own, as data, from which it is served and described."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from treadle.serve.refusals import refusing
from treadle.serve.serving import Serving

EVENTS: Final = "text/event-stream"


class Endpoint(NamedTuple):
    """One route.

    Attributes:
        method: the HTTP method.
        path: its path; what is in braces is given by the caller.
        call: answers it: given the serving, the request and, if there is one, the body or query.
        answer: the type of a good answer that is JSON; None where none is.
        body: the type of the JSON that it takes, if it takes any; `query`, of its query.
        status: of a good answer.
        media: what a good answer may be.
        headers: headers of its own that it reads, each with what it means.
    """

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    call: Callable[..., Awaitable[Response]]
    answer: Any
    body: type[Any] | None = None
    query: type[Any] | None = None
    status: int = 200
    media: tuple[str, ...] = ("application/json",)
    headers: tuple[tuple[str, str], ...] = ()

    def route(self, serving: Serving) -> Route:
        """The route that is served."""

        async def answer(request: Request) -> Response:
            if self.body is not None:
                return await self.call(serving, request, await serving.body(request, self.body))
            if self.query is not None:
                return await self.call(serving, request, serving.query(request, self.query))
            return await self.call(serving, request)

        return Route(self.path, refusing(answer), methods=[self.method], name=f"{self.method} {self.path}")
