"""Link: one live connection to a server, in a thread and an event loop of its own.

So it belongs to no run and to no event loop of the application's: runs of several loops may share it, a run that is
cancelled leaves it whole, and what it does at its end nobody has to wait for in the middle of something else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from math import inf
from threading import Thread
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

from treadle.journal.worker import settled
from treadle.mcp.turns import Turns
from treadle.mcp.unanswered import WENT, Forgotten, Gone, Refused, of_transport

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")

STARTING: Final = 30.0
"""Seconds that a server may take until it can be spoken to."""

ENDING: Final = 8.0
"""Seconds that it may take to end in peace, with what it started."""

_LISTENING_AGAIN: Final = 5.0

Connect = Callable[[], AbstractAsyncContextManager["Client"]]
"""Makes a client of the server; entered and left in the link's own loop."""


class Link:
    """A connection, which begins as it is made.

    Args:
        name: the server's, for the thread's.
        connect: makes the client.
        changed: called, in the link's thread, when the server says that it has other tools now.

    Attributes:
        turns: for calls of which there may be one at a time.
        forgotten: whether it has ended as the server, which is there, knows its session no more.
    """

    def __init__(self, name: str, connect: Connect, changed: Callable[[], None]) -> None:
        self._connect, self._changed = connect, changed
        self.turns = Turns()
        self._ready: Future[Client] = Future()
        # From here on nobody who only waits for it can cancel it.
        self._ready.set_running_or_notify_cancel()
        self._gone = self.forgotten = False
        self._scope: anyio.CancelScope | None = None
        self._manager = start_blocking_portal(name=f"treadle mcp {name}")
        self._portal = self._manager.__enter__()
        self._stop = self._portal.call(anyio.Event)
        # It belongs to none of the runs that use it: not even to the call that has it made.
        self._served = Context().run(self._portal.start_task_soon, self._serve)

    @property
    def gone(self) -> bool:
        """Whether it has ended, so that another is to be made."""
        return self._gone

    async def client(self) -> "Client":
        """The client, once it is connected.

        Raises:
            Exception: it could not be connected.
        """
        return await asyncio.wrap_future(self._ready)

    async def call(self, work: "Callable[[Client], Awaitable[T]]") -> T:
        """What `work` gives, which is done in the link's loop, and cancelled with the task that waits for it.

        Raises:
            Gone, Forgotten: the connection ended meanwhile.
            Exception: it could not be connected, or `work` raised it.
        """
        client = await self.client()
        try:
            future = self._portal.start_task_soon(self._worked, work, client)
        except RuntimeError as error:
            raise Forgotten(WENT) from error
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling() > 0:
                raise
            raise Gone(WENT) from None

    async def _worked(self, work: "Callable[[Client], Awaitable[T]]", client: "Client") -> T:
        from mcp import MCPError

        if self._gone:
            raise Forgotten(WENT)
        try:
            return await work(client)
        except MCPError as error:
            if (found := of_transport(error)) is None:
                raise
            lost, ended = found
            if ended:
                self._gone, self.forgotten = True, isinstance(lost, Forgotten)
            if not isinstance(lost, Refused):
                # Whoever answers next may be another.
                self._changed()
            raise lost from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._gone = True
            raise Gone(WENT) from error

    async def _serve(self) -> None:
        try:
            with anyio.CancelScope() as scope:
                self._scope = scope
                scope.deadline = anyio.current_time() + STARTING
                async with self._connect() as client:
                    scope.deadline = inf
                    self._ready.set_result(client)
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._listen, client)
                        await self._stop.wait()
                        group.cancel_scope.cancel()
            if not self._ready.done():
                self._ready.set_exception(TimeoutError(f"it did not answer within {STARTING:g} s"))
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(first_of(error))
        finally:
            self._gone = True
            if not self._ready.done():
                self._ready.set_exception(Gone(WENT))

    async def _listen(self, client: "Client") -> None:
        """Hears of other tools where the server is to be asked to tell; of older ones the client hears unasked."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = client.server_capabilities.tools
        while tools is not None and tools.list_changed:
            try:
                async with client.listen(tools_list_changed=True) as heard:
                    async for _ in heard:
                        self._changed()
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, TimeoutError):
                pass
            await anyio.sleep(_LISTENING_AGAIN)
            self._changed()

    async def close(self) -> None:
        """Ends it, and waits until it and what it started are gone, also where this task is cancelled meanwhile."""
        closing: Future[None] = Future()

        def close() -> None:
            try:
                self._close()
            finally:
                closing.set_result(None)

        # None of the event loop's executor: that may be busy, and begins none once the main thread has ended.
        thread = Thread(target=close, name="treadle mcp closing", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # There are no more threads to be had.
            return close()
        try:
            await settled(closing)
        finally:
            if closing.done():
                thread.join()

    def _close(self) -> None:
        with suppress(RuntimeError):
            self._portal.call(self._end)
        with suppress(Exception):
            self._served.result(ENDING)
        with suppress(RuntimeError):
            self._portal.call(self._portal.stop, True)
        self._manager.__exit__(None, None, None)

    def _end(self) -> None:
        if self._ready.done():
            self._stop.set()
        elif self._scope is not None:
            self._scope.cancel()


def first_of(error: BaseException) -> BaseException:
    """The error that is behind a group of them."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error
