"""within: a time limit on a coroutine that costs nothing until the coroutine waits for something."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

from treadle.tools.errors import passing


async def within(seconds: float, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The coroutine's value, if it comes within `seconds`.

    A timer can only fire while the event loop has its turn, so none is set before the coroutine first waits: a tool
    that only computes is spared its cost, which is several times that of the call itself.

    Raises:
        TimedOut: it took longer; it was cancelled and has ended.
    """
    try:
        waits_for = coroutine.send(None)
    except StopIteration as done:
        return done.value
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _Rest(coroutine, waits_for)
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        if limit.expired() and passing(error) is None:
            raise TimedOut from error
        raise


class TimedOut(Exception):
    """The time limit was reached."""


class _Rest:
    """What is left of a coroutine that has begun and waits for `waits_for`."""

    __slots__ = ("coroutine", "waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self.coroutine, self.waits_for = coroutine, waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        coroutine, waits_for = self.coroutine, self.waits_for
        try:
            while True:
                try:
                    given = yield waits_for
                except GeneratorExit:
                    coroutine.close()
                    raise
                except BaseException as error:
                    waits_for = coroutine.throw(error)
                else:
                    waits_for = coroutine.send(given)
        except StopIteration as done:
            return done.value


def is_cancelled() -> bool:
    """Whether the current task was told to stop."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
