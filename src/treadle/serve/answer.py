"""Answer: what is sent in answer to a request, whose connection is kept until the request has come.

A server that ends a connection of which it has not read everything has the other side told that it broke off: a proxy
that is still passing a body on then says so, and not what was answered.
"""

from typing import Final

import anyio
from starlette.requests import Request
from starlette.types import Message, Send

REST: Final = 5.0
"""Seconds in which the rest of a request that is answered must have come."""


class Answer:
    """The answer to a request: what is asked of the server goes through `receive`, what it says through `send`.

    Args:
        request: the request.
        send: sends.
        most: bytes of a body that are read, and left alone, when it is answered already.
    """

    def __init__(self, request: Request, send: Send, most: int) -> None:
        self._receive, self._send, self._most = request.receive, send, most
        self._has_come = request.headers.get("content-length", "0") == "0" and (
            "transfer-encoding" not in request.headers
        )
        self.begun = False

    async def receive(self) -> Message:
        """What comes next of the request."""
        message = await self._receive()
        if not message.get("more_body", False):
            self._has_come = True
        return message

    async def send(self, message: Message) -> None:
        """Sends a part of the answer; its end, when the request has come."""
        self.begun = True
        if self._has_come or message["type"] != "http.response.body" or message.get("more_body", False):
            await self._send(message)
            return
        # Whoever reads the answer has all of it meanwhile.
        await self._send({**message, "more_body": True})
        await self._read_rest()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _read_rest(self) -> None:
        left = self._most
        with anyio.move_on_after(REST):
            while not self._has_come and left > 0:
                left -= len((await self.receive()).get("body", b""))
