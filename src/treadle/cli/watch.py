"""Watching a run: the state that its events add up to, and the views that show them as they happen."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from treadle.cli.busy import Busy
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
