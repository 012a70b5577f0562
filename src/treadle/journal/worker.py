"""The threads of a journal, or of a budget: each owns one connection and does the jobs that are put to it, in order.

A job is the future of its own outcome, which belongs to no event loop, so that one journal serves any number of loops
and threads. The writer is given everything that has queued up at once: while one commit waits for the disk, the next
group gathers.
"""

import asyncio
import atexit
import sys
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from os import getpid
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import anyio
from msgspec import Struct

from treadle.event_loop import running_loop
from treadle.journal.errors import JournalUnavailable
from treadle.journal.os_fork import renewed_in_a_child
from treadle.journal.outcome import Outcome

A = TypeVar("A")
T = TypeVar("T")


class Job(Outcome[Any], Generic[A]):
    """Something to do over the connection, and the future of its outcome."""

    value: Any = None
    error: BaseException | None = None

    def __init__(self, action: A) -> None:
        super().__init__()
        self.action = action

    def settle(self) -> None:
        """Hand the outcome over."""
        if self.error is not None:
            self.set_exception(self.error)
        else:
            self.set_result(self.value)


class Hands(Protocol[A]):
    """What a worker works with: a connection, opened at its first jobs and again when it was lost."""

    @property
    def where(self) -> str:
        """The journal, as a person would name it."""

    def perform(self, jobs: list[Job[A]]) -> None:
        """Do the jobs, and set the value or the error of each; what is raised is the error of all."""

    def close(self) -> None:
        """Let go of the connection."""


class Worker(Generic[A]):
    """A thread with a connection of its own.

    Args:
        hands: what it works with.
        name: what the thread is called.
        writes: whether it writes: the last to close has to, to leave one file.
        patience: seconds that its end is waited for at most; None for as long as it takes.
        done: called in the thread with each job before its future is done; must not raise.

    Attributes:
        is_ending: whether it was told to end: what is submitted from then on is not done.

    Raises:
        RuntimeError: the system has no more threads to give, or the interpreter ends.
    """

    def __init__(
        self,
        hands: Hands[A],
        name: str,
        *,
        writes: bool = False,
        patience: float | None = None,
        done: Callable[[Job[A]], object] | None = None,
    ) -> None:
        if sys.is_finalizing():
            # Coroutines that were left are closed then, and before Python 3.12 a thread is waited for that never runs.
            raise RuntimeError("the interpreter ends, and begins no more threads")
        self.writes = writes
        self.is_ending = False
        self._patience = patience
        # A SimpleQueue, because a finalizer may put `stop` into it in the middle of another put or get.
        self._jobs: SimpleQueue[Job[A] | None] = SimpleQueue()
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()
        # A daemon, so that a journal nobody closed does not keep the program from ending.
        self._thread = Thread(target=_work, args=(hands, self._jobs, done, self._ended), name=name, daemon=True)
        self._thread.start()
        _ended_with_the_program()
        _at_work.add(self)
        self._ended.add_done_callback(lambda _: _at_work.discard(self))

    def submit(self, action: A) -> "Future[Any]":
        """Have `action` done; not after `end`."""
        job = Job(action)
        self._jobs.put(job)
        return job

    def end(self) -> "Future[None]":
        """Do what is queued, close the connection and end the thread; the future says when that is done."""
        self.is_ending = True
        self._jobs.put(None)
        return self._ended

    def stop(self) -> None:
        """`end`, and wait for it."""
        self.end()
        self._thread.join(self._patience)


_at_work: set[Worker[Any]] = set()
"""Those whose threads have not ended."""


@cache
def _ended_with_the_program() -> None:
    """Registered after the finalizers of what the threads work with, so that it is called before these."""
    atexit.register(_end_all)


def _end_all() -> None:
    """As the program ends, what journals were given that nobody closed is done first."""
    for worker in sorted(_at_work, key=lambda worker: worker.writes):
        worker.stop()


def _work(
    hands: Hands[A],
    queue: "SimpleQueue[Job[A] | None]",
    done: Callable[[Job[A]], object] | None,
    ended: "Future[None]",
) -> None:
    stopping = False
    while not stopping:
        jobs, stopping = _gather(queue)
        try:
            hands.perform(jobs)
        except Exception as error:
            # Whatever it is, somebody waits for each of these; an exception can be raised in one task only.
            for job in jobs:
                job.error = JournalUnavailable(str(error), where=hands.where)
                job.error.__cause__ = error
        for job in jobs:
            if done is not None:
                done(job)
            job.settle()
        del jobs
    try:
        hands.close()
    finally:
        ended.set_result(None)


def _gather(queue: "SimpleQueue[Job[A] | None]") -> tuple[list[Job[A]], bool]:
    """The jobs that are queued, at least one of them, and whether the last was the order to stop."""
    jobs: list[Job[A]] = []
    while (job := queue.get()) is not None:
        jobs.append(job)
        # Nobody else takes anything out.
        if queue.empty():
            return jobs, False
    return jobs, True


class Pair(Generic[A]):
    """The two workers of an open journal, one that writes and one that reads; begun at its first call.

    Args:
        owner: the journal; when it is collected, or the program ends, they are ended.
        writes: makes what the writer works with.
        reads: makes what the reader works with.
        where: the journal, as a person would name it.
        done: see `Worker`, of the one that writes; must not refer to `owner`.
    """

    def __init__(
        self,
        owner: object,
        writes: Callable[[], Hands[A]],
        reads: Callable[[], Hands[A]],
        where: str,
        done: Callable[[Job[A]], object] | None = None,
    ) -> None:
        self._owner = weakref.ref(owner)
        self._makes = (writes, reads)
        self._done = done
        self._where = where
        self._lock = Lock()
        self._workers: tuple[Worker[A], Worker[A]] | None = None
        self._process = 0
        self._closed = False
        renewed_in_a_child(self)

    def write(self, action: A) -> "Future[Any]":
        """Have the writer do `action`."""
        with self._lock:
            return self._open()[0].submit(action)

    def read(self, action: A) -> "Future[Any]":
        """Have the reader do `action`."""
        with self._lock:
            return self._open()[1].submit(action)

    async def close(self) -> None:
        """Do what is queued and end both threads; nothing can be done after it."""
        running_loop()
        with self._lock:
            self._closed = True
            workers = self._workers
        if workers is not None and self._process == getpid():
            for worker in reversed(workers):
                await settled(worker.end())
                worker.stop()

    def renew(self) -> None:
        """See `Locking.renew`."""
        self._lock = Lock()

    def _open(self) -> "tuple[Worker[A], Worker[A]]":
        if self._closed:
            raise JournalUnavailable(f"the journal {self._where} is closed; open it again", where=self._where)
        workers = self._workers
        # A forked child has the object, but not the threads; nor has a program whose end has begun, in an `atexit`.
        if workers is None or self._process != getpid() or workers[0].is_ending:
            workers = self._begun()
            self._process, self._workers = getpid(), workers
            weakref.finalize(self._owner(), _end, *workers)
        return workers

    def _begun(self) -> "tuple[Worker[A], Worker[A]]":
        writes, reads = self._makes
        writer = Worker(writes(), "treadle-journal-writer", writes=True, done=self._done)
        try:
            return writer, Worker(reads(), "treadle-journal-reader")
        except BaseException:
            writer.end()
            raise


def _end(writer: Worker[Any], reader: Worker[Any]) -> None:
    # Called by the garbage collector, in whatever thread, which may have locked what these are waiting for.
    reader.end().add_done_callback(lambda _: writer.end())


async def outcome_of(begin: "Callable[[], Future[T]]") -> T:
    """What comes of the job that `begin` puts to a worker; see `settled`.

    Raises:
        Misuse: no event loop of asyncio runs here, and nothing was begun.
    """
    running_loop()
    return await settled(begin())


async def settled(future: "Future[T]") -> T:
    """The future's outcome, whatever happens meanwhile: a cancellation is raised after it, and only if it is no error.

    Raises:
        asyncio.CancelledError: the task was cancelled, and the future has a result.
    """
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        waiter = _waiter(future)
        try:
            if cancelled is None:
                await waiter
            else:
                # anyio cancels again at every turn of the loop, unless it is told that it was heard.
                with anyio.CancelScope(shield=True):
                    await waiter
        except asyncio.CancelledError as error:
            cancelled = error
    result = future.result()
    if cancelled is not None:
        raise cancelled
    return result


def _waiter(future: "Future[Any]") -> "asyncio.Future[None]":
    """A future of the running loop that is done soon after `future` is."""
    loop = running_loop()
    alarm = _alarms.get(loop)
    if alarm is None:
        alarm = _alarms[loop] = _Alarm(loop)
    alarm.look_again()
    waiter: asyncio.Future[None] = loop.create_future()
    future.add_done_callback(_Sleeper(alarm, waiter))
    return waiter


class _Alarm:
    """Wakes those who wait in an event loop, from any thread: all whose jobs are done by then at one go."""

    __slots__ = ("_is_due", "_loop", "_waiters")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # The loop is what this is kept by.
        self._loop = weakref.ref(loop)
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_due = False

    def wake(self, waiter: "asyncio.Future[None]") -> None:
        """Sees to it that `waiter` is done soon."""
        self._waiters.append(waiter)
        loop = self._loop()
        if not self._is_due and loop is not None:
            self._is_due = True
            # A loop that was closed meanwhile has nobody left to wake.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._ring)

    def look_again(self) -> None:
        """Rings once more if it is to ring: a `KeyboardInterrupt` in the loop takes along what it was about to call."""
        loop = self._loop()
        if self._is_due and loop is not None:
            loop.call_soon(self._ring)

    def _ring(self) -> None:
        # First, so that whoever comes from now on rings again.
        self._is_due = False
        while self._waiters:
            waiter = self._waiters[0]
            if not waiter.done():
                waiter.set_result(None)
            del self._waiters[0]


class _Sleeper(Struct, frozen=True, gc=False):
    """Wakes one who waits, when what is waited for is done; as that surely is, no cycle that it is in stays."""

    alarm: _Alarm
    waiter: "asyncio.Future[None]"

    def __call__(self, _: object) -> None:
        self.alarm.wake(self.waiter)


_alarms: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Alarm]" = WeakKeyDictionary()
