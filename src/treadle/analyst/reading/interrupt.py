"""Interrupt: how a question under way is stopped from outside."""

import threading
from collections.abc import Callable, Iterable

from treadle.analyst.declared.errors import AnalystError

AGAIN = 0.2
"""Seconds after which what is to stop is told so again: between two statements there is nothing to be stopped."""


class Cancelled(AnalystError):
    """The question was interrupted from outside."""


class Interrupt:
    """A switch that stops a question under way, from any thread. Once set, it stays set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._stops: list[Callable[[], None]] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_set(self) -> bool:
        """Whether it has been set."""
        return self._set

    def set(self) -> None:
        """Stops what is under way; does nothing if it is over."""
        with self._lock:
            self._set = True
            self._call(self._stops)

    def on_set(self, stop: Callable[[], None]) -> None:
        """Has `stop` called when the switch is set, at once if it is, and again and again until it is forgotten."""
        with self._lock:
            self._stops.append(stop)
            if self._set:
                self._call((stop,))

    def forget(self, stop: Callable[[], None]) -> None:
        """Undoes `on_set`."""
        with self._lock:
            self._stops.remove(stop)
            thread = None if self._stops else self._thread
            if thread is not None:
                self._thread = None
                self._over.set()
        if thread is not None:
            thread.join()

    def _call(self, stops: Iterable[Callable[[], None]]) -> None:
        for stop in stops:
            stop()
        if self._stops and self._thread is None:
            self._over = threading.Event()
            self._thread = threading.Thread(
                target=self._call_again, args=(self._over,), name="treadle-interrupt", daemon=True
            )
            self._thread.start()

    def _call_again(self, over: threading.Event) -> None:
        while not over.wait(AGAIN):
            with self._lock:
                for stop in self._stops:
                    stop()
