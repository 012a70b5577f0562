"""Session: how a browser comes to be known without keeping the token, where no script could keep it safely."""

from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from treadle.serve.access import COOKIE
from treadle.serve.endpoint import Endpoint
from treadle.serve.refused import Refused
from treadle.serve.serving import Serving, json_response
from treadle.serve.shapes import Caller, Known


class Login(Struct, forbid_unknown_fields=True):
    """What is known by who may come in."""

    token: str


async def login(serving: Serving, request: Request, given: Login) -> Response:
    """Gives a browser that sends the token a cookie in its place, which no script can read and no other site sends."""
    access = serving.access
    if not access.has_token:
        raise Refused("conflict", "this server has no token to log in with")
    access.tries(request)
    if not access.is_token(given.token):
        raise Refused("unauthorised", "the token is wrong")
    answer = Response(status_code=204)
    answer.set_cookie(
        COOKIE, access.session(), max_age=30 * 24 * 3600, path=_path(request), httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return answer


async def logout(serving: Serving, request: Request) -> Response:
    """Has the browser forget its cookie."""
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE, path=_path(request), httponly=True, samesite="strict")
    return answer


async def session(serving: Serving, request: Request) -> Response:
    """Who calls: their name and what they may do; `user` is null for nobody that is known."""
    try:
        user = await serving.access.user(request)
    except Refused as error:
        if error.kind != "unauthorised":
            raise
        return json_response(Known(user=None, login=serving.access.has_token))
    caller = Caller(
        name=user.name,
        sees=user.sees,
        decides=user.decides,
        begins=user.begins,
        inside=user.inside,
        raises_limits=user.raises_limits,
    )
    return json_response(Known(user=caller, login=serving.access.has_token))


def _path(request: Request) -> str:
    # As a browser writes it in what it asks for, to which it is held.
    return quote(request.scope.get("root_path", "")) or "/"


ENDPOINTS = (
    Endpoint("GET", "/api/session", session, Known),
    Endpoint("POST", "/api/session", login, None, body=Login, status=204),
    Endpoint("DELETE", "/api/session", logout, None, status=204),
)
"""Every route of a session."""
