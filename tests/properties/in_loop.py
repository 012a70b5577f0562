"""Links to servers that live in the event loop of the run: no thread of their own, so that the clock costs nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

from treadle.mcp import link


class Portal:
    """Stands for the thread of a link: what it is asked to do, it does in the loop that is running."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()

    def __enter__(self) -> "Portal":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to wait for."""

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def start_task_soon(self, function: Callable[..., Awaitable[Any]], *args: Any) -> "Future[Any]":
        future: Future[Any] = Future()

        async def done() -> None:
            try:
                result = await function(*args)
            except asyncio.CancelledError:
                future.cancel()
                raise
            except BaseException as error:
                if not future.cancelled():
                    future.set_exception(error)
            else:
                if not future.cancelled():
                    future.set_result(result)

        task = asyncio.get_running_loop().create_task(done())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        future.add_done_callback(lambda it: task.cancel() if it.cancelled() else None)
        return future


async def closed(self: Any) -> None:
    """As `Link.close` does it: in peace, then by force; whoever is cancelled meanwhile waits all the same."""
    self._end()
    cancelled: asyncio.CancelledError | None = None
    for force in (False, True):
        for task in self._portal.tasks if force else ():
            task.cancel()
        loop = asyncio.get_running_loop()
        until = loop.time() + link.ENDING
        while self._portal.tasks and (force or loop.time() < until):
            try:
                await asyncio.wait([*self._portal.tasks], timeout=link.ENDING)
            except asyncio.CancelledError as error:
                cancelled = error
        if not force and not self._served.done():
            self._served.cancel()
    with suppress(BaseException):
        self._served.result(0)
    if cancelled is not None:
        raise cancelled


@contextmanager
def links_in_the_loop() -> Iterator[None]:
    """While it is entered, links to servers are such."""
    with (
        patch.object(link, "start_blocking_portal", lambda name: Portal()),
        patch.object(link.Link, "close", closed),
    ):
        yield
