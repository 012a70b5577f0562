"""`os.fork`: what is at rest while this process forks, and what its child begins anew. Forks of runs are `lineage.py`.

A child of `os.fork`, or of `multiprocessing` with the method "fork", has the memory of its parent, but none of its
threads and none of its locks on files. SQLite has both in its memory: a connection that is open at that moment hangs
in the child or damages the file (https://www.sqlite.org/howtocorrupt.html, section 2.6), one that is opened there for
the same file too, and a thread that is inside SQLite leaves its locks closed for ever. So a fork waits until nobody is
inside, and closes what is open; parent and child open it again when they need it. Locks of Python that another thread
may hold are made anew in the child.
"""

import os
from contextlib import suppress
from threading import Condition, RLock
from typing import Final, Protocol
from weakref import WeakSet

LONGEST_WAIT: Final = 12.0
"""Seconds that a fork waits for those who work with SQLite: a little more than one who waits for another process."""


class Opened(Protocol):
    """Something that is kept open between uses."""

    def let_go(self) -> None:
        """Close it, while nobody uses it; the next use opens it again."""


class Locking(Protocol):
    """Something with a lock that is held for a moment."""

    def renew(self) -> None:
        """In a child: begin with a lock that nobody holds."""


class Gate:
    """Who works with SQLite in this process, and whether anybody may begin to.

    Whoever is inside is waited for by a fork; whoever comes while one is made waits for it.
    """

    def __init__(self) -> None:
        # One that the thread which has it may take again: a finalizer may come here in the middle of anything.
        self.lock = RLock()
        self.turn = Condition(self.lock)
        self.users = 0
        self.is_shut = False
        self.is_torn = False

    def __enter__(self) -> None:
        with self.lock:
            while self.is_shut:
                self.turn.wait()
            self.users += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.users -= 1
            if self.is_shut:
                self.turn.notify_all()


_gate = Gate()
_opened: "WeakSet[Opened]" = WeakSet()
_locking: "WeakSet[Locking]" = WeakSet()


def at_work() -> Gate:
    """The gate of this process, which is entered by whoever works with SQLite."""
    return _gate


def closed_before_a_fork(opened: Opened) -> None:
    """Have `opened` closed before each fork from now on."""
    with _gate.lock:
        _opened.add(opened)


def renewed_in_a_child(locking: Locking) -> None:
    """Have `locking` renewed in each child from now on."""
    with _gate.lock:
        _locking.add(locking)


def is_torn() -> bool:
    """Whether this process was forked while somebody was inside SQLite, which cannot be used in it any more."""
    return _gate.is_torn


def _before() -> None:
    gate = _gate
    with gate.lock:
        gate.is_shut = True
        if gate.turn.wait_for(lambda: gate.users == 0, LONGEST_WAIT):
            for opened in list(_opened):
                # What cannot be closed well is opened anew all the same.
                with suppress(Exception):
                    opened.let_go()


def _in_the_parent() -> None:
    with _gate.lock:
        _gate.is_shut = False
        _gate.turn.notify_all()


def _in_the_child() -> None:
    global _gate
    torn = _gate.users > 0 or _gate.is_torn
    _gate = Gate()
    _gate.is_torn = torn
    for locking in list(_locking):
        locking.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_the_parent, after_in_child=_in_the_child)
