"""The event loop: treadle runs on asyncio, and whoever awaits it anywhere else is told so, and what to do."""

import asyncio
import sys
from typing import Any

from treadle.kernel.errors import Misuse


def running_loop() -> asyncio.AbstractEventLoop:
    """The event loop of asyncio that runs in this thread.

    Asked before anything is done, so that what is refused has not been done.

    Raises:
        Misuse: none does: whoever awaits is of another library, such as trio, or awaits by hand.
    """
    loop = None if _is_trios() else _running()
    if loop is not None:
        return loop
    raise Misuse(
        "treadle runs on asyncio, and no event loop of asyncio runs what awaits it here. In a program of its own write "
        "asyncio.run(main()), and await there. In trio, give it a loop in a thread: await "
        "trio.to_thread.run_sync(asyncio.run, main()), where main awaits treadle; a question alone may be "
        "await trio.to_thread.run_sync(agent.run_sync, question)"
    )


def is_any_running() -> bool:
    """Whether an event loop runs in this thread, be it trio's: one of asyncio within that would be taken for it."""
    return _is_trios() or _running() is not None


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _is_trios() -> bool:
    """Whether this is done by a task of trio, which may be the guest of a loop of asyncio."""
    asked: Any = getattr(sys.modules.get("trio.lowlevel"), "in_trio_task", None)
    return asked is not None and bool(asked())


def is_closed(task: asyncio.Task[Any] | None) -> bool:
    """Whether a `GeneratorExit` in a coroutine of `task` closes it, so that it may not wait again, and was not raised
    in it: a task that is closed has not its turn.
    """
    try:
        return asyncio.current_task() is not task
    except RuntimeError:
        return True
