"""Audience: who watches a run, and reads its log: shown each event as it happens, and no end before it is recorded."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from treadle.drivers.purse.so_far import Spender, spent_so_far
from treadle.drivers.recorder import Recorder
from treadle.drivers.watching import RunEvent, SpentSoFar, StepCompleted, log, log_event, log_failure
from treadle.journal.info import STOPS
from treadle.kernel.events import Event, RunFinished
from treadle.kernel.state import RunState
from treadle.tools.raised import log_raised


class Watched(Spender, Protocol):
    """A run, as far as watching it needs to know it; see `treadle.drivers.run.Run`."""

    audience: "Audience"
    recorder: Recorder

    @property
    def run_id(self) -> str:
        """Its name."""

    @property
    def redact(self) -> Callable[[str], str] | None:
        """What its journal has put in the place of each text, if it does."""

    @property
    def keeps(self) -> bool:
        """Whether it has a journal by now."""

    @property
    def events(self) -> Sequence[Event]:
        """All events that this process has added to it."""

    @property
    def parent(self) -> "Watched | None":
        """The run that it works for."""

    @property
    def below(self) -> Mapping[str, Spender]:
        """By call, the runs that work on calls of its step under way."""


class Audience:
    """Who watches one run."""

    __slots__ = (
        "_logged", "_observe", "_on_event", "_over", "_run", "_spent", "_unheard", "_unobserved", "_unshown",
        "_unwatched",
    )  # fmt: skip

    def __init__(self, run: Watched, on_event: Callable[[RunEvent], object] | None) -> None:
        self._run = run
        self._on_event = on_event
        self._unshown: list[RunEvent] = []
        self._spent: SpentSoFar | None = None
        self._observe: Callable[[int, Event], None] | None = None
        self._unobserved: list[tuple[int, Event]] = []
        self._over = False
        # What a run takes is told to who watches those above it.
        self._unwatched = on_event is None and run.parent is None
        self.look_again()

    def observe(self, observe: Callable[[int, Event], None]) -> None:
        """Has each event told to `observe` too, with its number; an end once it is in the journal."""
        self._observe = observe
        self._unwatched = self._unheard = False

    def leave(self) -> None:
        """Has nothing told from here on: it happened before, as in a replay, or is not to, as in an estimate."""
        self._over = True

    def look_again(self) -> None:
        """Asks whether anybody reads the log: once a step, and not for each event."""
        self._logged = log.isEnabledFor(logging.INFO)
        self._unheard = self._unwatched and not self._logged

    @property
    def watches(self) -> bool:
        """Whether anybody is shown the events."""
        return self._on_event is not None

    def told(self, event: Event, before: RunState) -> None:
        """Tells of `event`, which has just been folded, and of what it changed of the state `before`."""
        run = self._run
        if self._over:
            return
        if type(event) is RunFinished:
            log_failure(run.state, event, run.redact)
        if self._unheard:
            return
        if self._logged:
            log_event(run.state, event)
        after = run.state
        # Nobody is shown an end before it is in the journal.
        unrecorded = type(event) in STOPS and run.keeps
        if self._observe is not None:
            if unrecorded:
                self._unobserved.append((after.events - 1, event))
            else:
                self._observe(after.events - 1, event)
        if self._on_event is not None:
            if unrecorded:
                self._unshown.append(event)
            else:
                self.show(event)
        if self._on_event is None and run.parent is None:
            return
        now, then = after.accounts, before.accounts
        if now is not then and (now.usage is not then.usage or now.cost is not then.cost):
            self._tell_spent()
        if self._on_event is not None and len(after.steps) > len(before.steps):
            step = StepCompleted(after.steps[-1])
            if self._unshown:
                self._unshown.append(step)
            else:
                self.show(step)

    def show(self, event: RunEvent) -> None:
        """Shows `event` to whoever watches. A watcher that raises is logged, and the run goes on."""
        if self._on_event is not None:
            try:
                self._on_event(event)
            except (Exception, asyncio.CancelledError, SystemExit) as error:
                # It is a plain function: a cancellation can only be its own.
                about = {"run_id": self._run.run_id, "event": type(event).__name__}
                what = f"on_event raised on {about['event']}; run {about['run_id']} goes on"
                log_raised(what, error, self._run.redact, about, level=logging.ERROR)

    def written(self) -> None:
        """Shows what was kept back until it was in the journal."""
        run = self._run
        if self._observe is not None and self._unobserved and run.recorder.saved >= len(run.events):
            for seq, event in self._unobserved:
                self._observe(seq, event)
            self._unobserved.clear()
        while self._unshown and run.recorder.saved >= len(run.events):
            self.show(self._unshown.pop(0))

    def _tell_spent(self) -> None:
        """Shows whoever watches the run at the top what that one has spent, if it has changed."""
        top = self._run
        while top.parent is not None:
            top = top.parent
        audience = top.audience
        spent = spent_so_far(top) if audience.watches else None
        if spent is not None and spent != audience._spent:
            audience._spent = spent
            audience.show(spent)
