"""Watching a run: the state that its events add up to, and the views that show them as they happen."""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol

from treadle.cli.busy import Busy
from treadle.cli.exits import ExitCode
from treadle.cli.terminal import note
from treadle.drivers.watching import RunEvent
from treadle.kernel.events import Event, Happened
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.state import RunState
from treadle.result import RunResult, RunStopped, result_of

Start = Callable[[Callable[[RunEvent], None]], Awaitable[RunResult]]
"""Begins a run, or goes on with one, given the function to call with its events."""


class View(Protocol):
    """Shows events."""

    def see(self, event: RunEvent, before: RunState, after: RunState) -> None:
        """Shows one event, with the run's state before and after it."""


class Watch:
    """What a run has come to, event by event, for those who show it and for the result of one that is interrupted.

    Args:
        views: told of every event, in this order.
        earlier: the events that happened before, for a run that is taken up again.
        quiet: whether a terminal is not told what is under way.
    """

    def __init__(self, views: Iterable[View], earlier: Sequence[Event] = (), *, quiet: bool = False) -> None:
        self._views = tuple(views)
        self._busy = None if quiet else Busy()
        self._events: list[Event] = list(earlier)
        self._state = fold_all(earlier)
        self._failure: Exception | None = None
        self._stop: Callable[[], object] = lambda: None

    @property
    def left(self) -> str:
        """The id of the run where it has begun and not ended; else empty."""
        return self._state.run_id if self._events and self._state.phase != "finished" else ""

    async def carry(self, start: Start) -> RunResult:
        """Carries a run to its end and returns its result, also when Ctrl-C cancels it.

        Args:
            start: begins the run.

        Raises:
            KeyboardInterrupt: it was interrupted before anything happened.
        """
        task = asyncio.current_task()
        if task is not None:
            self._stop = task.cancel
        try:
            with self._interruptible():
                result = await self._carried(start)
            if self._failure is None:
                return result
            # It came with the last event: the cancellation is still to come, and must not hit anybody else.
            await asyncio.sleep(0)
            raise self._failure
        except asyncio.CancelledError:
            if self._failure is not None:
                raise self._failure from None
            if not self._events:
                raise KeyboardInterrupt from None
            return result_of(self._state, None, self._events)
        finally:
            if self._busy is not None:
                self._busy.end()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C cancels the run. A person who presses it again while that comes to its end loses nothing of it: they
        are told, and the third time the run is left as it is, as by a process that dies.
        """
        loop, before, pressed = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT), 0

        def press(number: int, frame: FrameType | None) -> None:
            nonlocal pressed
            pressed += 1
            if pressed == 1:
                loop.call_soon_threadsafe(self._stop)
            elif pressed == 2:
                loop.call_soon_threadsafe(self._say_that_it_ends)
            else:
                with suppress(OSError):
                    os.write(2, b"\ninterrupted\n")
                os._exit(ExitCode.INTERRUPTED)

        # Where whoever started it has it ignored, as in the background of a shell, it stays so.
        if not callable(before) or threading.current_thread() is not threading.main_thread():
            yield
            return
        signal.signal(signal.SIGINT, press)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _say_that_it_ends(self) -> None:
        if self._busy is not None:
            self._busy.hide()
        with suppress(OSError):
            note("stopped; what was under way is still coming to its end, and Ctrl-C once more leaves it in the middle")

    async def _carried(self, start: Start) -> RunResult:
        """What came of the run, also where its agent raises at a limit, as one does in a program."""
        try:
            return await start(self._see)
        except RunStopped as stopped:
            if stopped.result.run_id != self._state.run_id:
                # Another run's, which a hook of the agent began.
                raise
            return stopped.result

    def _see(self, event: RunEvent) -> None:
        before = self._state
        if isinstance(event, Happened):
            self._state = fold(before, event)
            self._events.append(event)
        if self._failure is not None:
            return
        try:
            if self._busy is not None:
                self._busy.hide()
            for view in self._views:
                view.see(event, before, self._state)
            if self._busy is not None:
                self._busy.see(event, self._state)
        except Exception as error:
            # A run that can no longer be shown (its reader has gone, most often) is not to go on unseen.
            self._failure = error
            self._stop()
