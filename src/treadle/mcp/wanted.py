"""Wanted: requests to a server at an address as long as somebody waits for their answers.

Where the official package gives a request up it tells the server so, and in the versions with a handshake goes on
listening for the answer. A server that never gives one would so keep a connection for each, and one that goes on
reporting be heard for ever.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio
import httpx2

T = TypeVar("T")


class GivenUp(httpx2.ReadError):
    """Nobody waits for the answer any more."""


class Wanted:
    """A request that somebody waits for, until it is given up."""

    def __init__(self) -> None:
        self._given_up = False
        self._scope: anyio.CancelScope | None = None

    def give_up(self) -> None:
        """Ends what is waited for, and whatever would be."""
        self._given_up = True
        if self._scope is not None:
            self._scope.cancel()

    async def waited(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` gives.

        Raises:
            GivenUp: nobody waits for it.
        """
        if not self._given_up:
            with anyio.CancelScope() as self._scope:
                try:
                    return await work()
                finally:
                    self._scope = None
        raise GivenUp("it was given up")


class Requests:
    """The requests of one connection that somebody waits for, each by its id."""

    def __init__(self) -> None:
        # One is kept by the task that waits for its answer, and so gone with it.
        self._by_id: WeakValueDictionary[object, Wanted] = WeakValueDictionary()
        self._ours: ContextVar[Wanted | None] = ContextVar("ours", default=None)

    def begin(self, number: object) -> Wanted:
        """The request of that id, which this task waits for from here on."""
        wanted = self._by_id[number] = Wanted()
        self._ours.set(wanted)
        return wanted

    def resumed(self) -> Wanted:
        """The request that this task waits for, whose answer was cut off and is asked for where it was."""
        return self._ours.get() or Wanted()

    def give_up(self, number: object) -> None:
        """Nobody waits for the request of that id any more."""
        if (wanted := self._by_id.get(number)) is not None:
            wanted.give_up()


class Heard(httpx2.AsyncByteStream):
    """The body of an answer, for as long as it is wanted."""

    def __init__(self, body: httpx2.AsyncByteStream, wanted: Wanted) -> None:
        self._body, self._wanted = body, wanted

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._body)
        while (piece := await self._wanted.waited(lambda: anext(pieces, None))) is not None:
            yield piece

    async def aclose(self) -> None:
        """Ends it."""
        await self._body.aclose()
