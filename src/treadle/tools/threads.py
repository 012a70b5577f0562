"""Runs a sync function beside the event loop. The only place in `tools` that knows of threads."""

from collections.abc import Callable
from typing import Any

_MOST_THREADS = 256
_limiters: Any = None


async def in_thread(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Calls `function(**arguments)` in a worker thread with the caller's context variables.

    Up to 256 run at a time in one event loop. When the caller is cancelled it does not wait: the thread runs on until
    the function returns, and what it returns is dropped.
    """
    from anyio import to_thread

    def run() -> Any:
        try:
            return function(**arguments)
        except StopIteration as error:  # no coroutine may let it pass
            raise RuntimeError(f"StopIteration: {error}") from error

    return await to_thread.run_sync(run, abandon_on_cancel=True, limiter=_limiter())


def _limiter() -> Any:
    """This event loop's own limiter: anyio's common one has 40 places, which other code may hold."""
    global _limiters
    from anyio import CapacityLimiter
    from anyio.lowlevel import RunVar

    if _limiters is None:
        _limiters = RunVar("treadle tool threads", default=None)
    limiter = _limiters.get()
    if limiter is None:
        limiter = CapacityLimiter(_MOST_THREADS)
        _limiters.set(limiter)
    return limiter
