"""The thread that hears of other processes' appends, and rings for those who watch those runs."""

import os
import select
from collections.abc import Callable
from threading import Lock, Thread

import psycopg

from treadle.journal.errors import JournalUnavailable
from treadle.journal.os_fork import renewed_in_a_child
from treadle.journal.postgres.connection import Connection, Session
from treadle.journal.postgres.statements import Statements
from treadle.journal.postgres.transaction import note
from treadle.journal.watch import Bell

_AGAIN = 5.0
"""Seconds after which to connect again where that failed: watchers look by themselves meanwhile."""


class Listener:
    """Listens from the first watcher on, until it is stopped.

    Args:
        makes_session: makes what it connects with.
        bell: what to ring.
    """

    def __init__(self, makes_session: Callable[[], Session[Statements]], bell: Bell) -> None:
        self._makes_session = makes_session
        self._bell = bell
        self._lock = Lock()
        self._thread: Thread | None = None
        self._process = 0
        self._wake: tuple[int, int] = (-1, -1)
        self._stopped = False
        renewed_in_a_child(self)

    def renew(self) -> None:
        """See `Locking.renew`."""
        self._lock = Lock()

    def begin(self) -> None:
        """Listen, if it does not yet."""
        with self._lock:
            # A forked child has the object, but not the thread.
            if self._stopped or (self._thread is not None and self._process == os.getpid()):
                return
            wake = os.pipe()
            # A daemon, so that a journal nobody closed does not keep the program from ending.
            thread = Thread(target=self._listen, args=wake, name="treadle-journal-listener", daemon=True)
            try:
                thread.start()
            except BaseException:  # the system has no more threads to give
                for end in wake:
                    os.close(end)
                raise
            self._process, self._wake, self._thread = os.getpid(), wake, thread

    def stop(self) -> None:
        """Listen no more, and wait until the thread has ended."""
        thread = self.leave()
        if thread is not None:
            thread.join()

    def leave(self) -> Thread | None:
        """Listen no more; the thread that is about to end."""
        with self._lock:
            self._stopped = True
            thread, self._thread = self._thread, None
            if thread is None or self._process != os.getpid():
                return None
            os.close(self._wake[1])
            return thread

    def _listen(self, stop: int, _: int) -> None:
        session = self._makes_session()
        stopping = False
        while not stopping:
            try:
                connection = session.open()
                connection.execute(session.statements.listen)
                # What came before it listened, it did not hear.
                self._bell.ring_all()
                while not stopping:
                    stopping = self._hear(connection, stop)
            except (JournalUnavailable, psycopg.Error, OSError):
                session.close()
                stopping = bool(select.select([stop], [], [], _AGAIN)[0])
        session.close()
        os.close(stop)

    def _hear(self, connection: Connection, stop: int) -> bool:
        """Ring for the notifications there are, and wait for more; whether to stop."""
        watched: dict[str, str] | None = None
        for told in connection.notifies(timeout=0):
            if told.payload == "*":
                self._bell.ring_all()
                continue
            watched = watched or {note(run_id): run_id for run_id in self._bell.heard_for()}
            for name in told.payload.split(","):
                if name in watched:
                    self._bell.ring(watched[name])
        return stop in select.select([connection.fileno(), stop], [], [])[0]
