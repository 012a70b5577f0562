"""Journals of generated runs: they keep the order of all appends, wait, fail, and can be cut off at any event."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle import Event, MemoryJournal
from treadle.journal.errors import JournalUnavailable
from treadle.kernel.events import RunStarted


class SlowJournal(MemoryJournal):
    """A journal whose appends wait before and after, and which keeps the port's word on cancellation."""

    async def append(self, run_id: str, seq: int, events: Any) -> None:
        cancelled = None
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError as error:
            cancelled = error
        await super().append(run_id, seq, events)
        if cancelled is not None:
            raise cancelled
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Paper:
    """What a journal is like: whether it waits, and at which append it fails, once or from then on, of which runs."""

    slow: bool = False
    fails_at: int | None = None
    for_ever: bool = False
    whose: str = "any"


class Recording(SlowJournal):
    """A journal that remembers in which order the events of all runs were stored."""

    def __init__(self, paper: Paper = Paper(), order: Sequence[tuple[str, Event]] = ()) -> None:
        super().__init__()
        self.paper = paper
        self.order: list[tuple[str, Event]] = []
        self.failed = 0
        self._appends = 0
        for run_id, event in order:
            self._runs.setdefault(run_id, []).append(event)
            self.order.append((run_id, event))

    def heal(self) -> None:
        """From here on it takes everything."""
        self.paper = Paper(self.paper.slow)

    def events(self, run_id: str) -> list[Event]:
        """What it holds of a run; nothing if the run is unknown to it."""
        return list(self._runs.get(run_id, []))

    @property
    def runs(self) -> list[str]:
        """The runs that it holds, in the order in which they began."""
        return list(self._runs)

    @property
    def root(self) -> str | None:
        """The run that works for no other; None before it has begun."""
        return next((run for run, events in self._runs.items() if _started(events).parent is None), None)

    async def append(self, run_id: str, seq: int, events: Any) -> None:
        self._fail(run_id, events)
        if self.paper.slow:
            await super().append(run_id, seq, events)
        else:
            await MemoryJournal.append(self, run_id, seq, events)
        self.order += [(run_id, event) for event in events]

    def _fail(self, run_id: str, events: Sequence[Event]) -> None:
        paper = self.paper
        if paper.fails_at is None or not events:
            return
        first = self._runs.get(run_id) or events
        below = isinstance(first[0], RunStarted) and first[0].parent is not None
        if paper.whose != "any" and (paper.whose == "below") != below:
            return
        self._appends += 1
        if self._appends - 1 == paper.fails_at or (paper.for_ever and self._appends - 1 > paper.fails_at):
            self.failed += 1
            raise JournalUnavailable("the disk is full", where="here")


def _started(events: Sequence[Event]) -> RunStarted:
    first = events[0]
    assert isinstance(first, RunStarted)
    return first
