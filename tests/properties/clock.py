"""A clock that costs nothing: an event loop whose time jumps to the next timer as soon as nothing else is to be done.

Waits, deadlines and retries of generated runs take no time, and always come in the same order. A run that waits for
what can never come is found at once: `Hung`.
"""

import asyncio
import selectors
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from typing import Any

from treadle.tools import threads

MOST_TURNS = 200_000
"""More turns of the event loop than any generated run takes."""
THREADS_MAY_TAKE = 5.0
"""Seconds of real time after which a thread that has not come back is given up."""


HOUR = 3600.0


class Hung(Exception):
    """Nothing is ready, nothing is timed, and the run has not ended."""


def _patience() -> float:
    """Seconds of real time until a timer goes off: on a busy machine a function in a thread may take its time."""
    there = sum(one.name == "treadle-tool" for one in threading.enumerate())
    return 0.3 if there > threads._threads.idle else 0.02


class _Selector(selectors.BaseSelector):
    """Waits for nobody but threads, if there may be any."""

    def __init__(self, threads: bool) -> None:
        self._inner = selectors.DefaultSelector()
        self._threads = threads
        self.now, self._turns = 0.0, 0

    def select(self, timeout: float | None = None) -> Any:
        self._turns += 1
        if self._turns > MOST_TURNS:
            raise Hung(f"the run has taken {MOST_TURNS} turns of the event loop and goes on")
        ready = self._inner.select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self._threads:
            ready = self._inner.select(_patience() if timeout is not None else THREADS_MAY_TAKE)
        if ready:
            return ready
        if timeout is None:
            raise Hung("the run waits for what can never come")
        self.now += timeout
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def close(self) -> None:
        self._inner.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()


class Loop(asyncio.SelectorEventLoop):
    """An event loop with a time of its own; with `threads`, what runs in them is given time to come back."""

    def __init__(self, threads: bool = False) -> None:
        self._own, self.held = _Selector(threads), 0.0
        super().__init__(self._own)

    def time(self) -> float:
        return self._own.now

    def hold(self, seconds: float) -> None:
        """What a function does that takes its time and does not wait: nothing else happens meanwhile."""
        self._own.now += seconds
        self.held += seconds


def run_quickly(main: Callable[[], Coroutine[Any, Any, Any]], threads: bool = False) -> Any:
    """`asyncio.run` with such a clock."""
    real, loop = time.monotonic, Loop(threads)
    # What holds the loop takes time by every clock.
    time.monotonic = lambda: real() + loop.held
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main())
    finally:
        time.monotonic = real


@contextmanager
def wall_clock(steps: tuple[float, ...]) -> Iterator[None]:
    """The wall clock is set by the next of `steps` seconds, again and again, each time that anybody looks at it."""
    real, next_step, ahead = time.time, cycle(steps or (0.0,)), 0.0

    def told() -> float:
        nonlocal ahead
        ahead += next(next_step)
        return real() + ahead

    time.time = told
    try:
        yield
    finally:
        time.time = real
