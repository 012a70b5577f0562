"""Worker: a thread that takes what is to be told away from those who run agents, and tells it.

Nothing that happens in it can hurt a run: what raises is logged, once a minute at most; what hangs keeps the thread,
and what waits has a bound, past which nothing is taken.
"""

import atexit
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any

from treadle.visible import visible

log = logging.getLogger("treadle")

MOST = 100_000
"""Events of a run, and runs, that wait at most: some 50 MB."""

TOGETHER = 0.05
"""Seconds for which it lets things come together, as to wake for each would cost more than to tell it."""

PATIENCE = 5.0
"""Seconds that a program which ends waits for what is still to be told."""

_QUIET = 60.0


class Worker:
    """Tells things in a thread of its own, which begins with the first."""

    def __init__(self, tell: Callable[[Any], None]) -> None:
        self._tell = tell
        self._queue: deque[Any] = deque()
        self._news = Event()
        self._starting = Lock()
        self._thread: Thread | None = None
        self._hurry = False
        self._pid = os.getpid()
        self._said = -_QUIET

    def put(self, thing: Any) -> bool:
        """Has `thing` told, and says whether there was a place for it; waits for nothing and raises nothing."""
        queue = self._queue
        if self._pid != os.getpid():
            self._begin_anew()
        if len(queue) >= MOST:
            return False
        queue.append(thing)
        if not self._news.is_set():
            self._wake()
        return True

    def _begin_anew(self) -> None:
        """In a process that was forked from the one that had the thread, which tells what was put until then."""
        self._pid = os.getpid()
        self._news, self._starting, self._thread = Event(), Lock(), None
        self._queue.clear()

    def flush(self, timeout: float = PATIENCE) -> bool:
        """Waits until all that was put is told, at most `timeout` seconds; whether it is."""
        if self._pid != os.getpid():
            # What was put before the fork is told by the process that it was put in.
            self._begin_anew()
        if self._thread is None and not self._queue:
            return True
        done = Event()
        self._queue.append(done)
        self._hurry = True
        self._wake()
        return done.wait(timeout)

    def _wake(self) -> None:
        self._news.set()
        thread = self._thread
        if thread is None or not thread.is_alive():
            with self._starting:
                if self._thread is None or not self._thread.is_alive():
                    self._thread = Thread(target=self._work, name="treadle-telemetry", daemon=True)
                    self._thread.start()
                    atexit.unregister(self.flush)
                    atexit.register(self.flush)

    def _work(self) -> None:
        while True:
            self._news.wait()
            if not self._hurry:
                time.sleep(TOGETHER)
            self._news.clear()
            self._hurry = False
            self.work_off()

    def work_off(self) -> None:
        """Tells what waits; what that raises is logged."""
        while self._queue:
            thing = self._queue.popleft()
            if isinstance(thing, Event):
                thing.set()
                continue
            try:
                self._tell(thing)
            except BaseException as error:
                # Also what would end the thread, and with it what everybody else is told: it is no way out of a run.
                self._complain(error)

    def _complain(self, error: BaseException) -> None:
        if time.monotonic() - self._said >= _QUIET:
            self._said = time.monotonic()
            words = visible(" ".join(str(error).split()))
            log.warning("something of a run was not traced: %s: %s", type(error).__name__, words)
