"""Runs sync functions beside the event loop. The only place in `tools` that knows of threads.

The threads are daemons: a program may end while a function that never returns still holds one. An idle thread takes the
next call, whichever event loop it comes from, and ends when none comes for a while.
"""

import asyncio
import contextvars
import inspect
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary

from treadle.event_loop import running_loop

_MOST_CALLS = 256
_IDLE_SECONDS = 10.0

Outcome = tuple[Any, BaseException | None]
Work = Callable[[], Callable[[], None]]
"""What a thread does; it gives what tells whoever waits for it."""


class ThreadCall:
    """One call of a sync function; `begun` says whether a thread has taken it."""

    __slots__ = ("begun", "function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.begun = False

    async def result(self, arguments: dict[str, Any]) -> Any:
        """Calls `function(**arguments)` in a thread with the caller's context variables.

        Up to 256 calls run at a time in one event loop; the others wait for a place. When the caller is cancelled it
        does not wait: a function that no thread has begun by then never runs; one that has runs on, keeps its place
        until it returns, and what it returns is dropped.
        """
        loop = running_loop()
        places = _places.get(loop) or _places.setdefault(loop, _Places())
        await places.take(loop)
        future: asyncio.Future[Outcome] = loop.create_future()

        def ended(outcome: Outcome) -> None:
            places.free()
            if not future.done():
                future.set_result(outcome)
            else:
                _drop(outcome)

        context, function = contextvars.copy_context(), self.function
        # Whoever takes it first, the thread that is to run the function or the caller who gives the call up, decides.
        taken = threading.Lock()

        def work() -> Callable[[], None]:
            if not taken.acquire(blocking=False):
                return lambda: _tell(loop, ended, (None, None))
            try:
                outcome: Outcome = context.run(function, **arguments), None
            except BaseException as error:
                outcome = None, error
            return lambda: _tell(loop, ended, outcome)

        self.begun = True
        try:
            _threads.do(work)
        except BaseException:  # the system has no more threads to give
            places.free()
            raise
        try:
            value, error = await future
        except BaseException:
            self.begun = not taken.acquire(blocking=False)
            if future.done() and not future.cancelled():  # it came back in the moment in which it was given up
                _drop(future.result())
            raise
        try:
            if isinstance(error, StopIteration):  # no coroutine may let it pass
                raise RuntimeError(f"StopIteration: {error}") from error
            if error is not None:
                raise error
            return value
        finally:
            del error  # its traceback holds this frame


def _tell(loop: asyncio.AbstractEventLoop, ended: Callable[[Outcome], None], outcome: Outcome) -> None:
    """Once the loop is closed there is nobody left to tell, and nobody who waits for the place."""
    try:
        loop.call_soon_threadsafe(ended, outcome)
    except RuntimeError:
        _drop(outcome)


def _drop(outcome: Outcome) -> None:
    """What nobody waits for any more is not awaited, of which Python would warn."""
    if inspect.iscoroutine(outcome[0]):
        outcome[0].close()


class _Places:
    """The calls that one event loop may have in threads at a time; used on that loop's thread only."""

    __slots__ = ("taken", "waiting")

    def __init__(self) -> None:
        self.taken = 0
        self.waiting: deque[asyncio.Future[None]] = deque()

    async def take(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.taken < _MOST_CALLS:
            self.taken += 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self.waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.free()
            raise

    def free(self) -> None:
        """Gives the place to the next that still waits."""
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.taken -= 1


class _Threads:
    """The threads of this process. `idle` counts those that wait for work and have none on its way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle = 0
        self.work: SimpleQueue[Work] = SimpleQueue()

    def do(self, work: Work) -> None:
        with self.lock:
            lacking = self.idle == 0
            if not lacking:
                self.idle -= 1
        if lacking:
            threading.Thread(target=self._run, name="treadle-tool", daemon=True).start()
        self.work.put(work)

    def _run(self) -> None:
        queue = self.work
        while True:
            try:
                work = queue.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self.lock:
                    if self.idle > 0:
                        self.idle -= 1
                        return
                continue
            tell = work()
            # Idle before anybody hears of it: whoever calls next then finds this thread, and starts no other.
            with self.lock:
                self.idle += 1
            tell()
            del work, tell  # an idle thread keeps nothing alive


_places: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Places]" = WeakKeyDictionary()
_threads = _Threads()


def _after_fork() -> None:
    """A child has none of its parent's threads, whatever the count says."""
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
