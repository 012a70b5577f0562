"""undisturbed: work that must be done whole, though whoever waits for it is cancelled once more."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from treadle.event_loop import running_loop

GRACE = 10.0
"""Seconds that it still has from the moment when whoever waits for it is cancelled."""


async def undisturbed(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Carries `work` to its end, in a task of its own; a cancellation is raised after it, and only if it is no error.

    It is for work that only waits for a journal. Where that does not answer, `work` is cancelled `GRACE` seconds after
    the first cancellation; where the event loop is closed, which cancels every task, at once.

    Raises:
        asyncio.CancelledError: this task was cancelled meanwhile, and `work` is done, or was given up.
        BaseException: what `work` raises.
    """
    loop = running_loop()
    cancelled: asyncio.CancelledError | None = None
    left: float | None = None
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_failure(work))
        with anyio.CancelScope() as heard:
            while not task.done():
                try:
                    done, _ = await asyncio.wait([task], timeout=left and max(0.0, left - loop.time()))
                    if not done:
                        task.cancel()
                        break
                except asyncio.CancelledError as error:
                    # anyio cancels again at every turn of the loop, unless it is told that it was heard.
                    cancelled, heard.shield = error, True
                    left = left or loop.time() + GRACE
    failure = task.result() or cancelled
    if failure is not None:
        raise failure


async def _failure(work: Callable[[], Coroutine[Any, Any, None]]) -> BaseException | None:
    try:
        await work()
    except BaseException as error:
        # Raised in the task that waits: a group would wrap it.
        return error
    return None
