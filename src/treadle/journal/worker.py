"""The threads of a SQLite journal: each owns one connection and does the jobs that are put to it, in order.

A job's outcome goes into a `concurrent.futures.Future`, which belongs to no event loop, so that one journal serves any
number of loops and threads. The writer does everything that has queued up in one transaction: while one commit waits
for the disk, the next group gathers.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any, TypeVar

import anyio

from treadle.journal.database import JOURNAL_FILE
from treadle.journal.errors import JournalUnavailable
from treadle.journal.sqlite_file import identity, snapshot, transaction

T = TypeVar("T")

Action = Callable[[sqlite3.Connection], Any]


class Job:
    """Something to do with the connection, what to do when it is committed, and the future of its outcome."""

    __slots__ = ("action", "error", "future", "then", "value")

    def __init__(self, action: Action, then: Action | None = None) -> None:
        self.action, self.then = action, then
        self.future: Future[Any] = Future()
        self.value: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Hand the outcome over."""
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


Perform = Callable[[sqlite3.Connection, list[Job], Path], None]


class Worker:
    """A thread with a connection to the database at `path`, which it opens at its first job."""

    def __init__(self, path: Path, perform: Perform, name: str) -> None:
        # A SimpleQueue, because a finalizer may put `stop` into it in the middle of another put or get.
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()
        # A daemon, so that a journal nobody closed does not keep the program from ending.
        self._thread = Thread(target=_work, args=(path, perform, self._jobs, self._ended), name=name, daemon=True)
        self._thread.start()

    def submit(
        self, action: Callable[[sqlite3.Connection], T], then: Callable[[sqlite3.Connection], None] | None = None
    ) -> "Future[T]":
        """Have `action` done, and `then` what is to be done outside of its transaction; not after `end`."""
        job = Job(action, then)
        self._jobs.put(job)
        return job.future

    def end(self) -> "Future[None]":
        """Do what is queued, close the connection and end the thread; the future says when that is done."""
        self._jobs.put(None)
        return self._ended

    def stop(self) -> None:
        """`end`, and wait for it."""
        self.end()
        # The garbage collector may call this in the thread itself.
        if current_thread() is not self._thread:
            self._thread.join()


def _work(path: Path, perform: Perform, queue: "SimpleQueue[Job | None]", ended: "Future[None]") -> None:
    connection: sqlite3.Connection | None = None
    opened: tuple[int, int] | None = None
    stopping = False
    while not stopping:
        jobs, stopping = _gather(queue)
        try:
            with JOURNAL_FILE.explained(path):
                if connection is not None and identity(path) != opened:
                    # Removed or replaced: what was written to the old file now would be lost without a word.
                    connection.close()
                    connection = None
                if connection is None:
                    connection = JOURNAL_FILE.open(path)
                    # A text that was altered may be none; it is seen by its hash, and must not stop what reads others.
                    connection.text_factory = lambda data: data.decode(errors="replace")
                    opened = identity(path)
                perform(connection, jobs, path)
        except Exception as error:
            # Whatever it is, somebody waits for each of these; an exception can be raised in one task only.
            for job in jobs:
                job.error = JournalUnavailable(str(error), where=str(path))
                job.error.__cause__ = error
        for job in jobs:
            job.settle()
        del jobs
    try:
        if connection is not None:
            connection.close()
    finally:
        ended.set_result(None)


def _gather(queue: "SimpleQueue[Job | None]") -> tuple[list[Job], bool]:
    """The jobs that are queued, at least one of them, and whether the last was the order to stop."""
    jobs: list[Job] = []
    job = queue.get()
    while job is not None:
        if job.future.set_running_or_notify_cancel():
            jobs.append(job)
        try:
            job = queue.get_nowait()
        except Empty:
            return jobs, False
    return jobs, True


def commit_together(connection: sqlite3.Connection, jobs: list[Job], path: Path) -> None:
    """Do all jobs in one transaction; one that fails is undone alone."""
    with transaction(connection):
        for job in jobs:
            connection.execute("SAVEPOINT job")
            try:
                with JOURNAL_FILE.explained(path):
                    job.value = job.action(connection)
            except Exception as error:
                # After some errors SQLite has given up the whole transaction, and there is nothing to go back to.
                if not connection.in_transaction:
                    raise
                connection.execute("ROLLBACK TO job")
                job.error = error
            connection.execute("RELEASE job")
    for job in jobs:
        if job.then is not None and job.error is None:
            try:
                with JOURNAL_FILE.explained(path):
                    job.then(connection)
            except Exception as error:
                job.error = error


def answer_each(connection: sqlite3.Connection, jobs: list[Job], path: Path) -> None:
    """Do the jobs one by one, each as the file was at one moment."""
    for job in jobs:
        try:
            with JOURNAL_FILE.explained(path), snapshot(connection):
                job.value = job.action(connection)
        except Exception as error:
            job.error = error


async def settled(future: "Future[T]") -> T:
    """The future's outcome, whatever happens meanwhile: a cancellation is raised after it, and only if it is no error.

    Raises:
        asyncio.CancelledError: the task was cancelled, and the future has a result.
    """
    outcome = asyncio.wrap_future(future)
    cancelled: asyncio.CancelledError | None = None
    while not outcome.done():
        try:
            # anyio cancels again at every turn of the loop, unless it is told that it was heard.
            with anyio.CancelScope(shield=cancelled is not None):
                await asyncio.wait((outcome,))
        except asyncio.CancelledError as error:
            cancelled = error
    result = outcome.result()
    if cancelled is not None:
        raise cancelled
    return result
