"""Outcome: the future of something that a journal's thread was given to do, and surely does.

Most of these nobody ever blocks on: an event loop is told by a callback, or somebody looks whether it is done. A
`Future` of the standard library makes a lock for each, and takes it at each look, which costs more than to write an
event. This one becomes such a future when somebody blocks on it, or asks for whatever else only such a one has.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger("concurrent.futures")


class Outcome(Future[T]):
    """A future that cannot be cancelled: what was handed over is done, and done in order.

    It is settled once, by one thread; what it came to is written before that it is over, and a callback is taken out of
    its list by whoever calls it. So nothing of it has to be locked but the sleep of those who block: these make a
    future of the standard library of it before they look whether it is over, and whoever settles it looks whether it is
    one after he has said that it is over. So one of the two tells that future, or both.
    """

    # Names of this class alone, whatever the standard library calls what it keeps.
    __over = False
    __made = False
    __given: Any = None
    __fault: BaseException | None = None

    def __init__(self) -> None:
        # Not that of the class above, which makes the lock.
        self.__callbacks: list[Callable[[Any], object]] = []

    def __getattr__(self, name: str) -> Any:
        """What a future of the standard library has: it becomes one, if it is none yet."""
        if name.startswith("__"):
            raise AttributeError(name)
        # Of two threads that come at once, each thing is the first one's; and no lock that a fork could leave closed.
        # The lock of that future comes last: whoever holds it finds all else, and nothing is told in the middle of his
        # looking at it, so that he would wait for what is over.
        for part, value in sorted(vars(Future()).items(), key=_is_lock):
            vars(self).setdefault(part, value)
        self.__made = True
        if self.__over:
            self.__tell()
        return object.__getattribute__(self, name)

    def cancel(self) -> bool:
        """False: it cannot be."""
        return False

    def cancelled(self) -> bool:
        """False: it never is."""
        return False

    def running(self) -> bool:
        """Whether it is not done."""
        return not self.__over

    def done(self) -> bool:
        """Whether it has a result or an exception."""
        return self.__over

    def set_running_or_notify_cancel(self) -> bool:
        """True: it is running from the beginning."""
        return True

    def result(self, timeout: float | None = None) -> T:
        """See `Future.result`."""
        if not self.__over or self.__fault is not None:
            return super().result(timeout)
        given: T = self.__given
        return given

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """See `Future.exception`."""
        return self.__fault if self.__over else super().exception(timeout)

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """See `Future.add_done_callback`."""
        self.__callbacks.append(fn)
        if self.__over:
            self.__call()

    def set_result(self, result: T) -> None:
        """See `Future.set_result`."""
        self.__given = result
        self.__over = True
        self.__call()

    def set_exception(self, exception: BaseException | None) -> None:
        """See `Future.set_exception`."""
        self.__fault = exception
        self.__over = True
        self.__call()

    def __tell(self) -> None:
        """Has the future of the standard library say what it came to, which it does once."""
        with suppress(InvalidStateError):
            if self.__fault is None:
                super().set_result(self.__given)
            else:
                super().set_exception(self.__fault)

    def __call(self) -> None:
        if self.__made:
            # Whoever is called may look at that future.
            self.__tell()
        callbacks = self.__callbacks
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


def _is_lock(item: tuple[str, object]) -> bool:
    return hasattr(item[1], "acquire")
