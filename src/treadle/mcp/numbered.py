"""Numbered: requests over HTTP, each of which has a number; of those of a session no two under way have the same.

The official package knows by its number where the answer to a request goes: a second one took the place of the first,
both were carried out, and the first was never answered.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

from treadle.mcp.refusing import nothing_kept, taken, unnumbered

_LONGEST: Final = 4 * 1024 * 1024
"""Bytes of a message that is looked at; the official package takes no longer one."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]


class Numbered:
    """Refuses a request that has no number, or one that another under way has in the same session, and one that goes on
    with an answer that was cut off.

    All else is the application's.

    Args:
        app: the application.
        calls: where each call is that waits for its answer.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], calls: set[object]) -> None:
        self._app = app
        self._calls = calls
        self._under_way = set[tuple[bytes | None, str]]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and any(name == b"last-event-id" for name, _ in scope.get("headers", ())):
            # The official package gave no answer at all, where nothing is kept.
            await _refuse(nothing_kept(), send)
            return
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        # Where there are several the official package takes the first.
        session = next((value for name, value in scope.get("headers", ()) if name == b"mcp-session-id"), None)
        heard = await _heard(receive)
        body = b"".join(one.get("body", b"") for one in heard)
        said = _message(body)
        given = _number(said)
        number = None if session is None else given

        async def again() -> Scope:
            if heard:
                return heard.pop(0)
            told = await receive()
            if number is not None and told["type"] == "http.disconnect":
                # What was asked goes on for as long as it takes, and its answer would go to the next request of this
                # number: the application is not told before it has answered, which ends the wait.
                await asyncio.Event().wait()
            return told

        # The official package tells them apart by their text.
        key = (session, str(number))
        if refused := unnumbered(said, has_number=given is None and _has_number(body)):
            await _refuse(refused[0], send)
        elif number is None:
            with self._counted(said):
                await self._app(scope, again, send)
        elif key in self._under_way:
            await _refuse(taken(number), send)
        else:
            self._under_way.add(key)
            try:
                with self._counted(said):
                    await self._app(scope, again, send)
            finally:
                self._under_way.remove(key)

    @contextmanager
    def _counted(self, said: Any) -> Iterator[None]:
        call = object()
        if getattr(said, "method", "") == "tools/call":
            self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)


async def _heard(receive: Receive) -> list[Scope]:
    """The parts of a message, to its end or to as many as are looked at."""
    heard, size = list[Scope](), 0
    while not heard or (heard[-1].get("more_body") and size <= _LONGEST):
        heard.append(await receive())
        size += len(heard[-1].get("body", b""))
    return heard


def _message(body: bytes) -> Any:
    """The message of the protocol that it is; None of what is none."""
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        return None


def _has_number(body: bytes) -> bool:
    """Whether a message has an id, of whatever kind."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and "id" in told


def _number(message: Any) -> int | str | None:
    """That of a request; None of what is none."""
    from mcp_types import JSONRPCRequest

    return message.id if isinstance(message, JSONRPCRequest) else None


async def _refuse(error: Any, send: Send) -> None:
    headers, body = [(b"content-type", b"application/json")], error.model_dump_json(by_alias=True, exclude_unset=True)
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})
