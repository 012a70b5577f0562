"""Watching a run: the events there are, then each new one as it is appended. The same for every journal here.

Holds no threads and no tasks of its own: a watcher is an iterator that waits in whatever event loop it is used in.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock

from treadle.journal.os_fork import renewed_in_a_child
from treadle.kernel.events import Event, RunFinished

_Listener = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Bell:
    """Wakes those who wait for a run's next event, in whichever threads and event loops they wait."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: dict[str, set[_Listener]] = {}
        renewed_in_a_child(self)

    def renew(self) -> None:
        """See `Locking.renew`; those who listen are in the parent."""
        self._lock, self._listeners = Lock(), {}

    @contextmanager
    def heard(self, run_id: str) -> Iterator[asyncio.Event]:
        """An event of the running loop that is set at each `ring(run_id)`."""
        listener = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._listeners.setdefault(run_id, set()).add(listener)
        try:
            yield listener[1]
        finally:
            with self._lock:
                listeners = self._listeners[run_id]
                listeners.discard(listener)
                if not listeners:
                    del self._listeners[run_id]

    def ring(self, run_id: str) -> None:
        """Something happened to the run."""
        if run_id in self._listeners:
            with self._lock:
                listeners = tuple(self._listeners.get(run_id, ()))
            _wake(listeners)

    def heard_for(self) -> tuple[str, ...]:
        """The runs that somebody waits for."""
        with self._lock:
            return tuple(self._listeners)

    def ring_all(self) -> None:
        """Something happened to all runs."""
        with self._lock:
            listeners = tuple(listener for group in self._listeners.values() for listener in group)
        _wake(listeners)


def _wake(listeners: tuple[_Listener, ...]) -> None:
    for loop, event in listeners:
        # A loop that was closed under its watcher has nobody left to wake.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(event.set)


async def follow(
    read: Callable[[str, int], Awaitable[list[Event]]], bell: Bell, run_id: str, start: int, poll: float | None
) -> AsyncIterator[Event]:
    """The events of a run from number `start` on, until it has finished.

    Args:
        read: reads the run's events from a number on.
        bell: rings when this process appends.
        run_id: the run.
        start: the number of the first event wanted.
        poll: seconds after which to look again without the bell, for what other processes append; None for never.
    """
    seen = 0
    with bell.heard(run_id) as rung:
        while True:
            # Cleared before the look, so that what is appended during the look rings for the next one.
            rung.clear()
            found = await read(run_id, seen)
            for number, event in enumerate(found, seen):
                if number >= start:
                    yield event
            if found and isinstance(found[-1], RunFinished):
                return
            seen += len(found)
            if not found:
                with suppress(TimeoutError):
                    async with asyncio.timeout(poll):
                        await rung.wait()
