"""Simulated time, and event loops in it: one for each process, all in one thread, and nothing that really waits.

Within a process callbacks run in the order in which asyncio promises it; which process has the next turn, and how long
everything takes, follows from the seed. A process that is paused has no turns while time goes on; of one that is dead
nothing runs any more, not even what its tasks would do at their end.
"""

import asyncio
import heapq
import random
import secrets
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from random import Random
from typing import Any

EPOCH = 1_790_000_000.0
"""The wall clock's time at the beginning, in Unix seconds."""

TURN = 0.00002
"""Seconds that a turn of an event loop takes."""

MOST_TURNS = 15_000
"""More turns than any simulated world takes."""


class Hung(Exception):
    """The world goes on for ever."""


class Timeline:
    """The time of a world, all that is due in it, and the processes that have turns.

    Attributes:
        now: seconds since the beginning.
        turn_of: the process that has its turn; None between turns.
        over: whether enough was seen.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now = 0.0
        self.loops: list[Loop] = []
        self.turn_of: Loop | None = None
        self.over = False
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = self._turns = 0

    def after(self, delay: float, action: Callable[..., None], *given: Any) -> None:
        """Has `action` done so many seconds from now."""
        self.at(self.now + delay, action, *given)

    def at(self, when: float, action: Callable[..., None], *given: Any) -> None:
        """Has `action` done at that time."""
        self._count += 1
        heapq.heappush(self._due, (when, self._count, action, given))

    def number(self) -> int:
        """A number that nobody else has."""
        self._count += 1
        return self._count

    def run(self) -> None:
        """Lets time go by until nothing more can happen, or enough was seen.

        Raises:
            Hung: that never comes.
        """
        due, rng = self._due, self.rng
        while not self.over:
            while due and due[0][0] <= self.now:
                _, _, action, given = heapq.heappop(due)
                action(*given)
            ready = [loop for loop in self.loops if loop.ready and not loop.paused]
            if ready:
                self._turns += 1
                if self._turns > MOST_TURNS:
                    raise Hung(f"the world has not come to rest after {MOST_TURNS} turns")
                self.now += TURN
                self._turn(ready[0] if len(ready) == 1 else ready[int(rng.random() * len(ready))])
            elif due:
                self.now = max(self.now, due[0][0])
            else:
                return

    def _turn(self, loop: "Loop") -> None:
        handle = loop.ready.popleft()
        if handle.cancelled():
            return
        self.turn_of = loop
        asyncio._set_running_loop(loop)
        try:
            handle._run()
        finally:
            asyncio._set_running_loop(None)
            self.turn_of = None
        loop.turns += 1
        loop.had_turn()


class Future(asyncio.Future):  # type: ignore[type-arg]
    """One whose place in a set does not follow from its address."""

    def __hash__(self) -> int:
        try:
            return self._number
        except AttributeError:
            self._number: int = self.get_loop().timeline.number()  # type: ignore[attr-defined]
            return self._number


class Task(asyncio.Task):  # type: ignore[type-arg]
    """Likewise."""

    __hash__ = Future.__hash__


class Loop(asyncio.AbstractEventLoop):
    """The event loop of one process.

    Attributes:
        ready: what is to be called.
        tasks: all tasks that were ever begun in it, so that none is collected before the end.
        complaints: what asyncio had to say, such as of an exception that nobody took.
        clock: by how many seconds its wall clock is wrong.
    """

    def __init__(self, timeline: Timeline, name: str, had_turn: Callable[[], None]) -> None:
        self.timeline, self.name, self.had_turn = timeline, name, had_turn
        self.ready: deque[asyncio.Handle] = deque()
        self.tasks: list[Task] = []
        self.complaints: list[str] = []
        self.paused = self.dead = False
        self.turns, self.clock = 0, 0.0
        timeline.loops.append(self)

    def kill(self) -> None:
        """Nothing runs in it any more. What its tasks hold stays as it is until `bury`."""
        self.dead = True
        self.ready.clear()
        self.timeline.loops.remove(self)

    @property
    def left(self) -> list[Task]:
        """The tasks that are not done."""
        return [task for task in self.tasks if not task.done()]

    def bury(self) -> None:
        """Lets go of what it holds, when nobody looks any more."""
        self.dead = True
        with warnings.catch_warnings():
            # What never had its first turn was never awaited.
            warnings.simplefilter("ignore", RuntimeWarning)
            for task in self.left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with suppress(BaseException):
                    task.get_coro().close()  # type: ignore[union-attr]
            self.tasks.clear()
            self.ready.clear()

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self.dead:
            self.ready.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.timeline.now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.timeline.at(when, self._ring, handle)
        return handle

    def _ring(self, handle: asyncio.TimerHandle) -> None:
        if not self.dead and not handle.cancelled():
            self.ready.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def time(self) -> float:
        return self.timeline.now

    def create_future(self) -> Future:
        return Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> Task:
        task = Task(coro, loop=self, name=name, context=context)
        self.tasks.append(task)
        return task

    def begin(self, coro: Coroutine[Any, Any, None], context: Context) -> Task:
        """Begins a task from outside of it."""
        return self.create_task(coro, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.dead

    def is_closed(self) -> bool:
        return self.dead

    def get_task_factory(self) -> None:
        return None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead:
            self.complaints.append(f"{context.get('message')}: {context.get('exception')!r}")


class _Here(threading.local):
    """What is simulated in a thread: all others go on in real time, such as a server that other tests have started."""

    def __init__(self) -> None:
        self.worlds: list[Timeline] = []


_here = _Here()
_REAL = {one: getattr(time, one) for one in ("time", "monotonic", "perf_counter", "gmtime", "sleep")}
_REAL_UNIFORM, _REAL_TOKEN = random.uniform, secrets.token_hex


def _wall() -> float:
    if not _here.worlds:
        return _REAL["time"]()
    timeline = _here.worlds[-1]
    return EPOCH + timeline.now + (0.0 if timeline.turn_of is None else timeline.turn_of.clock)


def _monotonic() -> float:
    return _here.worlds[-1].now if _here.worlds else _REAL["monotonic"]()


def _perf_counter() -> float:
    return _here.worlds[-1].now if _here.worlds else _REAL["perf_counter"]()


def _gmtime(seconds: float | None = None) -> time.struct_time:
    return _REAL["gmtime"](_wall() if seconds is None else seconds)


def _no_sleep(seconds: float) -> None:
    assert not _here.worlds, "nothing may really wait in a simulated world"
    _REAL["sleep"](seconds)


_CLOCKS: dict[Any, Any] = {
    time.time: _wall,
    time.monotonic: _monotonic,
    time.perf_counter: _perf_counter,
    time.gmtime: _gmtime,
    time.sleep: _no_sleep,
}


def _uniform(a: float, b: float) -> float:
    return _here.worlds[-1].rng.uniform(a, b) if _here.worlds else _REAL_UNIFORM(a, b)


def _token(size: int = 32) -> str:
    if not _here.worlds:
        return _REAL_TOKEN(size)
    return f"{_here.worlds[-1].rng.getrandbits(8 * size):0{2 * size}x}"


@contextmanager
def simulated_time() -> Iterator[None]:
    """Has treadle read the time and draw its chances from the world that is simulated, and nowhere else."""
    changed: list[tuple[Any, str, Any]] = []

    def put(where: Any, name: str, value: Any) -> None:
        changed.append((where, name, getattr(where, name)))
        setattr(where, name, value)

    for real, simulated in _CLOCKS.items():
        put(time, real.__name__, simulated)
    put(secrets, "token_hex", _token)
    put(random, "uniform", _uniform)
    for name, module in sorted(sys.modules.items()):
        if name == "treadle" or name.startswith("treadle."):
            for own, value in list(vars(module).items()):
                if callable(value) and getattr(value, "__module__", None) == "time" and value in _CLOCKS:
                    put(module, own, _CLOCKS[value])
    try:
        yield
    finally:
        for where, name, value in reversed(changed):
            setattr(where, name, value)


@contextmanager
def in_time_of(timeline: Timeline) -> Iterator[None]:
    """What is asked for the time is told that of `timeline`."""
    _here.worlds.append(timeline)
    try:
        yield
    finally:
        _here.worlds.pop()
