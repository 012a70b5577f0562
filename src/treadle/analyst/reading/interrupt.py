"""Interrupt: how a question under way is stopped from outside."""

import threading
from collections.abc import Callable

from treadle.analyst.declared.errors import AnalystError


class Cancelled(AnalystError):
    """The question was interrupted from outside."""


class Interrupt:
    """A switch that stops a question under way, from any thread. Once set, it stays set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._stops: list[Callable[[], None]] = []

    @property
    def is_set(self) -> bool:
        """Whether it has been set."""
        return self._set

    def set(self) -> None:
        """Stops what is under way; does nothing if it is over."""
        with self._lock:
            self._set = True
            for stop in self._stops:
                stop()

    def on_set(self, stop: Callable[[], None]) -> None:
        """Has `stop` called when the switch is set; at once if it is."""
        with self._lock:
            self._stops.append(stop)
            if self._set:
                stop()

    def forget(self, stop: Callable[[], None]) -> None:
        """Undoes `on_set`."""
        with self._lock:
            self._stops.remove(stop)
