"""Refusals: the response that says why something is refused, in the form that whoever asked shows to a person.

By the path alone, so that what is refused before any route is asked (who calls, from where, how often), or where there
is no route, is told as the routes there tell it.
"""

from collections.abc import Awaitable, Callable

from starlette._utils import get_route_path
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response

from treadle.serve.protocols.openai_caller import error_form
from treadle.serve.refused import TROUBLE, Refusal, Refused, refused_by
from treadle.serve.serving import json_response


def refusal(request: HTTPConnection, error: Refused) -> Response:
    """The response to a request of which something is refused."""
    path = get_route_path(request.scope)
    if path.startswith("/ai-sdk/"):
        # The body of an error, whatever it is, is what `useChat` shows as its message.
        response: Response = PlainTextResponse(error.words, error.status)
    else:
        response = json_response(error_form(error) if path.startswith("/v1/") else Refusal(error.why), error.status)
    if error.after is not None:
        response.headers["retry-after"] = f"{max(1, round(error.after))}"
    if error.kind == "unauthorised":
        response.headers["www-authenticate"] = "Bearer"
    return response


def refusing(call: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """`call`, with what it refuses told as above."""

    async def answer(request: Request) -> Response:
        try:
            return await call(request)
        except TROUBLE as error:
            return refusal(request, refused_by(error))

    return answer
