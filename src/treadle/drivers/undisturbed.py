"""undisturbed: work that must be done whole, though whoever waits for it is cancelled once more."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import anyio


async def undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """Carries `work` to its end, in a task of its own; a cancellation is raised after it, and only if it is no error.

    It has no bound of its own: it is for work that only waits for a journal. Where the event loop is closed, which
    cancels every task, it ends with that.

    Raises:
        asyncio.CancelledError: this task was cancelled meanwhile, and `work` is done.
        BaseException: what `work` raises.
    """
    cancelled: asyncio.CancelledError | None = None
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_failure(work))
        with anyio.CancelScope() as heard:
            while not task.done():
                try:
                    await asyncio.wait([task])
                except asyncio.CancelledError as error:
                    # anyio cancels again at every turn of the loop, unless it is told that it was heard.
                    cancelled, heard.shield = error, True
    failure = task.result() or cancelled
    if failure is not None:
        raise failure


async def _failure(work: Coroutine[Any, Any, None]) -> BaseException | None:
    try:
        await work
    except BaseException as error:
        # Raised in the task that waits: a group would wrap it.
        return error
    return None
