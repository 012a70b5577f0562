"""Outstanding: what was asked over standard input and is not answered yet as that ends.

A client that asks once, by a pipe, ends its side as soon as it has asked, and reads on. The official package takes the
end for that of the client, and cancels what is under way. So the end is passed on once all is answered, nobody is there
to read it, or the time is up that a server has, which the protocol wants to exit promptly.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from treadle.mcp.refusing import refusals, taken, unnumbered
from treadle.outlet import is_read

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

GRACE: Final = 20.0
"""Seconds that calls under way have to end when the client says no more, or the server is told to stop."""

LAST_WORDS: Final = 2.0
"""Seconds that what is cancelled then has to end."""

_LOOKS: Final = 0.02


class Outstanding:
    """The requests of a client that are not answered, and those of the server that the client has not.

    Args:
        is_read: whether anybody can still read what the client is answered.
    """

    def __init__(self, is_read: Callable[[], bool]) -> None:
        self._is_read = is_read
        self._asked = dict[tuple[type, Any], Any]()
        self._asking = Counter[str]()
        self.ended = False

    def heard(self, message: Any) -> None:
        """The client has said this."""
        from mcp_types import JSONRPCNotification, JSONRPCRequest

        if isinstance(message, JSONRPCRequest):
            self._asked[_key(message.id)] = message
        elif isinstance(message, JSONRPCNotification):
            if message.method == "notifications/cancelled":
                # One that is cancelled is never answered.
                self._cancelled((message.params or {}).get("requestId"))
        else:
            _less(self._asking, message.id)

    def asked(self, message: Any) -> None:
        """The server is about to say this."""
        from mcp_types import JSONRPCRequest

        if isinstance(message, JSONRPCRequest):
            self._asking[str(message.id)] += 1

    def told(self, message: Any) -> None:
        """The server has said this."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(message, JSONRPCError | JSONRPCResponse):
            self._asked.pop(_key(message.id), None)

    def _cancelled(self, number: Any) -> None:
        """To the official package "1" cancels 1 too, and of both the later one."""
        if isinstance(number, str | int) and not isinstance(number, bool):
            same = [key for key in self._asked if str(key[1]) == str(number)]
            for key in same[-1:]:
                del self._asked[key]

    def under_way(self, message: Any) -> Any:
        """The request that has the number of this one and is not answered yet; None if none has, or this is none."""
        from mcp_types import JSONRPCRequest

        return self._asked.get(_key(message.id)) if isinstance(message, JSONRPCRequest) else None

    def unanswerable(self) -> Any:
        """The answer to a request of the server that waits for one which cannot come any more; None if none does."""
        from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCError

        for number in +self._asking:
            del self._asking[number]
            return JSONRPCError(
                jsonrpc="2.0", id=number, error=ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
            )
        return None

    async def answered(self) -> None:
        """Waits until nothing is outstanding that anybody could read, for as long as there is time."""
        with anyio.move_on_after(GRACE):
            while self._asked and self._is_read():  # noqa: ASYNC110 - nothing tells of a reader that has gone
                await anyio.sleep(_LOOKS)


class Heard:
    """The stream of what the client says, which ends when nothing is outstanding.

    Args:
        read: that of the transport.
        told: of what the client is told: where a request cannot be read, that.
        outstanding: what is.
        end: ends the calls that are cancelled when it ends, whatever they do to clean up.
    """

    def __init__(self, read: Any, told: "Told", outstanding: Outstanding, end: Callable[[], object]) -> None:
        self._read, self._told, self._outstanding, self._end = read, told, outstanding, end

    def __aiter__(self) -> "Heard":
        return self

    async def __anext__(self) -> "SessionMessage | Exception":
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> "SessionMessage | Exception":
        """What it says next.

        Raises:
            anyio.EndOfStream: no more, and nothing is outstanding.
        """
        try:
            return await self._next()
        except (anyio.EndOfStream, asyncio.CancelledError):
            asyncio.get_running_loop().call_later(LAST_WORDS, self._end)
            raise

    async def _next(self) -> "SessionMessage | Exception":
        from mcp.shared.message import SessionMessage

        while True:
            try:
                item: SessionMessage | Exception = await self._read.receive()
            except anyio.EndOfStream:
                self._outstanding.ended = True
                if (answer := self._outstanding.unanswerable()) is not None:
                    return SessionMessage(answer)
                await self._outstanding.answered()
                raise
            if isinstance(item, Exception):
                refused = refusals(item)
            elif (before := self._outstanding.under_way(item.message)) is None:
                self._outstanding.heard(item.message)
                refused = unnumbered(item.message)
            else:
                # What came twice is answered once.
                if before != item.message:
                    await self._told.refuse(SessionMessage(taken(before.id)))
                continue
            for refusal in refused:
                await self._told.send(SessionMessage(refusal))
            return item

    async def aclose(self) -> None:
        """Ends it."""
        await self._read.aclose()

    async def __aenter__(self) -> "Heard":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Told:
    """The stream of what the client is told.

    Args:
        write: that of the transport.
        outstanding: what it may answer.
    """

    def __init__(self, write: Any, outstanding: Outstanding) -> None:
        self._write, self._outstanding = write, outstanding

    async def send(self, item: "SessionMessage") -> None:
        """Says it.

        Raises:
            anyio.ClosedResourceError: it asks something, and the client says no more.
        """
        from mcp_types import JSONRPCRequest

        if self._outstanding.ended and isinstance(item.message, JSONRPCRequest):
            raise anyio.ClosedResourceError
        self._outstanding.asked(item.message)
        await self._write.send(item)
        self._outstanding.told(item.message)

    async def refuse(self, item: "SessionMessage") -> None:
        """Says it of a request whose number has another, which goes on."""
        await self._write.send(item)

    async def aclose(self) -> None:
        """Ends it."""
        await self._write.aclose()

    async def __aenter__(self) -> "Told":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _key(number: Any) -> tuple[type, Any]:
    """By what a number is known: 1 is not "1"."""
    return type(number), number if isinstance(number, str | int) else None


def _less(counted: Counter[str], number: Any) -> None:
    if counted[str(number)] > 0:
        counted[str(number)] -= 1


@contextmanager
def reader_of_output() -> Iterator[Callable[[], bool]]:
    """While it is entered: whether anybody can read this process's standard output. Where nothing tells, it is read."""
    try:
        # Of our own: the official package puts another file in the place of it.
        output = os.dup(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        yield lambda: True
        return
    try:
        yield lambda: is_read(output)
    finally:
        os.close(output)
