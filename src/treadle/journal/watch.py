"""Watching a run: the events there are, then each new one as it is appended. The same for every journal here.

Holds no threads and no tasks of its own: a watcher is an iterator that waits in whatever event loop it is used in.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Final

from treadle.event_loop import running_loop
from treadle.journal.errors import UnknownRun
from treadle.journal.os_fork import renewed_in_a_child
from treadle.kernel.events import Event, RunFinished, encode_event

_TOLD: Final = 64
"""Appends that are kept for a watcher who has not come to them; one that is behind by more looks."""


class Listener:
    """Somebody who waits for a run's next event.

    Attributes:
        rung: set at each ring, in the event loop of whoever waits.
    """

    def __init__(self) -> None:
        self.rung = asyncio.Event()
        self._loop = running_loop()
        self._told: deque[tuple[int, Sequence[Event]]] = deque(maxlen=_TOLD)
        self._look = True

    def wake(self) -> None:
        """Something happened that only a look can tell."""
        self._look = True
        self._ring()

    def tell(self, seq: int, events: Sequence[Event]) -> None:
        """These events were stored after the `seq` that the run had."""
        if len(self._told) == _TOLD:
            self._look = True
        self._told.append((seq, events))
        self._ring()

    def _ring(self) -> None:
        # A loop that was closed under its watcher has nobody left to wake.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.rung.set)

    def next(self, seen: int) -> list[Event] | None:
        """The events after the first `seen`, as far as they were told; None where only a look can tell."""
        if self._look:
            self._look = False
            # What is told from now on comes after that look, or is seen by it and passed over.
            return None
        found: list[Event] = []
        while self._told:
            seq, events = self._told.popleft()
            # What begins anew may be another run.
            if seq > seen + len(found) or (seen and not seq):
                return None
            found += events[seen + len(found) - seq :]
        return found


class Bell:
    """Wakes those who wait for a run's next event, in whichever threads and event loops they wait."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: dict[str, set[Listener]] = {}
        renewed_in_a_child(self)

    def renew(self) -> None:
        """See `Locking.renew`; those who listen are in the parent."""
        self._lock, self._listeners = Lock(), {}

    @contextmanager
    def heard(self, run_id: str) -> Iterator[Listener]:
        """Somebody who is told of each `ring(run_id)`."""
        listener = Listener()
        with self._lock:
            self._listeners.setdefault(run_id, set()).add(listener)
        try:
            yield listener
        finally:
            with self._lock:
                listeners = self._listeners[run_id]
                listeners.discard(listener)
                if not listeners:
                    del self._listeners[run_id]

    def is_heard(self, run_id: str) -> bool:
        """Whether anybody waits for the run."""
        return run_id in self._listeners

    def ring(self, run_id: str) -> None:
        """Something happened to the run."""
        for listener in self._of(run_id):
            listener.wake()

    def tell(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        """These events of the run were stored after the `seq` that it had."""
        for listener in self._of(run_id):
            listener.tell(seq, events)

    def _of(self, run_id: str) -> tuple[Listener, ...]:
        if run_id not in self._listeners:
            return ()
        with self._lock:
            return tuple(self._listeners.get(run_id, ()))

    def heard_for(self) -> tuple[str, ...]:
        """The runs that somebody waits for."""
        with self._lock:
            return tuple(self._listeners)

    def ring_all(self) -> None:
        """Something happened to all runs."""
        with self._lock:
            listeners = tuple(listener for group in self._listeners.values() for listener in group)
        for listener in listeners:
            listener.wake()


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

    Raises:
        UnknownRun: there is no such run, or it was deleted, though another may have its name by now.
    """
    seen, last = 0, None
    with bell.heard(run_id) as listener:
        while True:
            # Cleared before the look, so that what is appended during the look rings for the next one.
            listener.rung.clear()
            told = listener.next(seen)
            found = await _after(read, run_id, seen, last) if told is None else told
            for number, event in enumerate(found, seen):
                if number >= start:
                    yield event
            if found and isinstance(found[-1], RunFinished):
                return
            seen, last = seen + len(found), found[-1] if found else last
            if not found and not listener.rung.is_set():
                try:
                    async with asyncio.timeout(poll):
                        await listener.rung.wait()
                except TimeoutError:
                    listener.wake()


async def _after(
    read: Callable[[str, int], Awaitable[list[Event]]], run_id: str, seen: int, last: Event | None
) -> list[Event]:
    """The run's events after the first `seen`, the `last` of which is still there."""
    if last is None:
        return await read(run_id, seen)
    found = await read(run_id, seen - 1)
    if not found or (found[0] is not last and encode_event(found[0]) != encode_event(last)):
        raise UnknownRun(run_id, deleted=True)
    return found[1:]
