"""Outcome: the future of something that a journal's thread was given to do, and surely does.

Most of these nobody ever blocks on: an event loop is told by a callback, or somebody looks whether it is done. A
`Future` of the standard library makes a lock for each, and takes it at each look, which costs more than to write an
event. This one makes it when somebody blocks.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition
from typing import Any, TypeVar

T = TypeVar("T")

# The words of concurrent.futures, whose `wait` and `as_completed` look at them, as at `_condition` and `_waiters`.
_RUNNING, _FINISHED = "RUNNING", "FINISHED"

log = logging.getLogger("concurrent.futures")


class Outcome(Future[T]):
    """A future that cannot be cancelled: what was handed over is done, and done in order.

    It is settled once, by one thread; every attribute is written before the state that says so is, and a callback is
    taken out of its list by whoever calls it. So nothing of it has to be locked but the sleep of those who block: these
    have made their lock before they look at the state, and whoever settles it looks for a lock after he has changed it.
    """

    def __init__(self) -> None:
        # Not that of the class above, which makes the lock.
        self._state = _RUNNING
        self._result: T | None = None
        self._exception: BaseException | None = None
        self._waiters = []
        self._done_callbacks: list[Callable[[Any], object]] = []

    @property
    def _condition(self) -> Condition:  # type: ignore[override]
        made: Condition = self.__dict__.setdefault("_made", Condition())
        return made

    def cancel(self) -> bool:
        """False: it cannot be."""
        return False

    def cancelled(self) -> bool:
        """False: it never is."""
        return False

    def running(self) -> bool:
        """Whether it is not done."""
        return self._state is _RUNNING

    def done(self) -> bool:
        """Whether it has a result or an exception."""
        return self._state is _FINISHED

    def set_running_or_notify_cancel(self) -> bool:
        """True: it is running from the beginning."""
        return True

    def result(self, timeout: float | None = None) -> T:
        """See `Future.result`."""
        if self._state is not _FINISHED or self._exception is not None:
            return super().result(timeout)
        return self._result  # type: ignore[return-value]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """See `Future.exception`."""
        return self._exception if self._state is _FINISHED else super().exception(timeout)

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """See `Future.add_done_callback`."""
        self._done_callbacks.append(fn)
        if self._state is _FINISHED:
            self._call()

    def set_result(self, result: T) -> None:
        """See `Future.set_result`."""
        self._result = result
        self._settled()

    def set_exception(self, exception: BaseException | None) -> None:
        """See `Future.set_exception`."""
        self._exception = exception
        self._settled()

    def _settled(self) -> None:
        self._state = _FINISHED
        if "_made" in self.__dict__:
            with self._condition:
                for waiter in self._waiters:
                    if self._exception is None:
                        waiter.add_result(self)
                    else:
                        waiter.add_exception(self)
                self._condition.notify_all()
        self._call()

    def _call(self) -> None:
        callbacks = self._done_callbacks
        while callbacks:
            try:
                callback = callbacks.pop(0)
            except IndexError:
                # Another thread was quicker.
                return
            try:
                callback(self)
            except Exception:
                log.exception("exception calling callback for %r", self)
