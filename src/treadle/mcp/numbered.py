"""Numbered: requests over HTTP of the versions with sessions, of which no two under way may have one number.

The official package knows by its number where the answer to a request goes: a second one took the place of the first,
both were carried out, and the first was never answered.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

_LONGEST: Final = 4 * 1024 * 1024
"""Bytes of a message that is looked at; the official package takes no longer one."""

_GONE_FOR: Final = 30 * 60.0
"""Seconds for which a request that its client has left counts as under way still, if it is not answered before; as long
as the official package keeps a session that nobody uses."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]


class Numbered:
    """Refuses a request whose number another one under way has in the same session; all else is the application's.

    Args:
        app: the application.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self._under_way = set[tuple[bytes, str]]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        # Where there are several the official package takes the first.
        session = next((value for name, value in scope.get("headers", ()) if name == b"mcp-session-id"), None)
        if scope["type"] != "http" or scope["method"] != "POST" or session is None:
            await self._app(scope, receive, send)
            return
        heard = await _heard(receive)
        number = _number(b"".join(one.get("body", b"") for one in heard))

        async def again() -> Scope:
            if heard:
                return heard.pop(0)
            told = await receive()
            if number is not None and told["type"] == "http.disconnect":
                # What was asked goes on, and its answer would go to the next request of this number.
                await asyncio.sleep(_GONE_FOR)
            return told

        # The official package tells them apart by their text.
        key = (session, str(number))
        if number is None:
            await self._app(scope, again, send)
        elif key in self._under_way:
            await _refuse(number, send)
        else:
            self._under_way.add(key)
            try:
                await self._app(scope, again, send)
            finally:
                self._under_way.remove(key)


async def _heard(receive: Receive) -> list[Scope]:
    """The parts of a message, to its end or to as many as are looked at."""
    heard, size = list[Scope](), 0
    while not heard or (heard[-1].get("more_body") and size <= _LONGEST):
        heard.append(await receive())
        size += len(heard[-1].get("body", b""))
    return heard


def _number(body: bytes) -> int | str | None:
    """That of a request; None of what is none."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    number = said.get("id") if isinstance(said, dict) and "method" in said else None
    return number if isinstance(number, int | str) else None


async def _refuse(number: int | str, send: Send) -> None:
    from mcp_types import INVALID_REQUEST

    why = f"a request with the id {number!r:.60} is under way in this session: give each its own. Nothing was done"
    error = {"jsonrpc": "2.0", "id": number, "error": {"code": INVALID_REQUEST, "message": why}}
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(error).encode()})
