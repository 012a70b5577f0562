"""Journals of generated runs: they keep the order of all appends, wait, fail, and can be cut off at any event."""

import asyncio
import re
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from treadle import Event, MemoryJournal
from treadle.journal.errors import JournalUnavailable
from treadle.journal.info import RunInfo, told_by
from treadle.journal.worker import settled
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
    """What a journal is like: whether it waits, and at which append it fails, once or from then on, of which runs.

    What it raises is `how`: its own error, that of its "driver", or a "cancelled" of its own. It fails where it is
    written to; if it `leases`, where it is asked for a lease; or where it is asked for anything, if it says when by
    `asked`: "before" it does what it is asked for, or "after" it has done so.

    One that is `late` need not be waited for: so many turns of the loop after it was handed something it is stored, or
    it is only then that it fails. One that `redacts` keeps other words than were said, and writes all figures alike.
    """

    slow: bool = False
    late: int | None = None
    fails_at: int | None = None
    for_ever: bool = False
    whose: str = "any"
    redacts: bool = False
    how: str = ""
    leases: bool = False
    asked: str = ""

    @property
    def writes(self) -> bool:
        """Whether it fails where it is written to, and nowhere else."""
        return not (self.leases or self.asked)


class OfTheDriver(Exception):
    """What a journal of somebody's own lets through of its database."""


HIDDEN = {
    "hm": "##",
    "let me see": "#### ## ###",
    "recovered": "what it said after all is nobody's business, and so it was left out",
    ",4000": ",(the number of an account, which is shown to nobody)",
}
"""What a model or a tool may say, and what a journal that redacts has in its place, which may be longer."""


MASK = "8"
"""What a journal that redacts has in the place of a figure that stands alone; nobody says it in these worlds."""

_FIGURE = re.compile(r"\d")
_QUOTED = re.compile(r'("n":\s*)"\d"')


def masked(arguments: str) -> str:
    """The JSON of arguments, or a text that has it in it, with the figures hidden that a journal that redacts hides."""
    return _QUOTED.sub(rf'\1"{MASK}"', arguments)


def hide(text: str) -> str:
    """A redact function: `HIDDEN`, where that is all that is said, or stands in a longer text, or is a figure."""
    if _FIGURE.fullmatch(text):
        return MASK
    for said, kept in HIDDEN.items():
        text = text.replace(said, kept)
    # What a skill allows is said in a line of its own, which is no word of anybody's.
    return text.replace("<skill_content", "[skill]").replace("allowed-tools", "[allowed]")


class Recording(SlowJournal):
    """A journal that remembers in which order the events of all runs were stored.

    `said` has them as they were handed over, before anything was redacted.
    """

    def __init__(self, paper: Paper = Paper(), order: Sequence[tuple[str, Event]] = ()) -> None:
        super().__init__(redact=hide if paper.redacts else None)
        self.paper = paper
        self.order: list[tuple[str, Event]] = []
        self.failed = 0
        self.whole: list[tuple[int, int]] = []
        self.gone: dict[str, list[Event]] = {}
        self.said: dict[str, list[Event]] = {}
        self._appends = 0
        for run_id, event in order:
            self._runs.setdefault(run_id, []).append(event)
            self.said.setdefault(run_id, []).append(event)
            self.order.append((run_id, event))
        self._lines = {run_id: told_by(events) for run_id, events in self._runs.items()}

    def heal(self) -> None:
        """From here on it takes everything."""
        self.paper = Paper(self.paper.slow, self.paper.late, redacts=self.paper.redacts)

    def becomes(self, other: "Recording") -> None:
        """Has the runs of another journal, and nothing else: no leases, and no lines."""
        self._runs, self._lines, self._leases = other._runs, other._lines, {}

    def events(self, run_id: str) -> list[Event]:
        """What it holds of a run, or held when it was deleted; nothing if the run is unknown to it."""
        return list(self._runs.get(run_id) or self.gone.get(run_id, ()))

    def given(self, run_id: str) -> list[Event]:
        """What it holds of a run, and what was handed over and is not stored yet."""
        return self.events(run_id)

    def refused(self, run_id: str) -> list[Event]:
        """What was handed over of a run and could not be stored, which is told at once here."""
        return []

    @property
    def runs(self) -> list[str]:
        """The runs that it holds, in the order in which they began."""
        return list(self._runs)

    @property
    def ever(self) -> list[str]:
        """The runs that it holds, and those that were deleted."""
        return [*self._runs, *self.gone]

    @property
    def root(self) -> str | None:
        """The run that works for no other, the first of them; None before it has begun."""
        return next(iter(self.roots), None)

    @property
    def roots(self) -> list[str]:
        """The runs that work for no other: the first, and its forks."""
        return [run for run, events in self._runs.items() if _started(events).parent is None]

    async def fork(self, source: str, seq: int, run_id: str, events: Sequence[Event]) -> None:
        if not self.paper.asked:
            self._fail(source, events)
        self._asked("before", source)
        await super().fork(source, seq, run_id, events)
        begun = len(self.order)
        self._kept(run_id, 0, [*self.said.get(source, ())][:seq] + list(events))
        self.whole.append((begun, len(self.order)))
        self._asked("after", source)

    async def delete(self, run_id: str) -> bool:
        events = self.events(run_id)
        found = await super().delete(run_id)
        if found:
            self.gone[run_id] = events
        return found

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        self._asked("before", run_id)
        found = await super().read(run_id, start)
        self._asked("after", run_id)
        return found

    async def list(self, *given: Any, **named: Any) -> list[RunInfo]:
        self._asked("before", "")
        found = await super().list(*given, **named)
        self._asked("after", "")
        return found

    async def holders(self, *given: Any) -> Any:
        self._asked("before", "")
        found = await super().holders(*given)
        self._asked("after", "")
        return found

    def let_go(self, run_id: str, *given: Any) -> "Future[None]":
        # It waits for nothing, and so for nothing that could be cancelled.
        how = self.paper.how.replace("cancelled", "driver")
        self._asked("before", run_id, how=how)
        done = super().let_go(run_id, *given)
        self._asked("after", run_id, how=how)
        return done

    @contextmanager
    def well(self) -> Iterator[None]:
        """While the world itself asks it, which no application does, it does not fail."""
        paper, self.paper = self.paper, replace(self.paper, fails_at=None)
        try:
            yield
        finally:
            self.paper = paper

    def cut(self, at: int) -> int:
        """After how many events a process may die, from `at` on: a fork is there as a whole, or not at all."""
        return next((end for begun, end in self.whole if begun < at < end), at)

    async def hold(self, run_id: str, *given: Any, **named: Any) -> Any:
        if self.paper.leases:
            self._fail(run_id, self.events(run_id))
        self._asked("before", run_id)
        found = await super().hold(run_id, *given, **named)
        self._asked("after", run_id)
        return found

    async def append(self, run_id: str, seq: int, events: Any) -> None:
        if self.paper.writes:
            self._fail(run_id, events)
        self._asked("before", run_id, events)
        try:
            await (super().append(run_id, seq, events) if self.paper.slow else self._at_once(run_id, seq, events))
        except asyncio.CancelledError:
            # It has stored them before it tells whoever was cancelled while it waited.
            self._kept(run_id, seq, events)
            raise
        self._kept(run_id, seq, events)
        self._asked("after", run_id)

    async def _at_once(self, run_id: str, seq: int, events: Any) -> None:
        await MemoryJournal.append(self, run_id, seq, events)

    def _asked(self, when: str, run_id: str, events: Sequence[Event] = (), how: str | None = None) -> None:
        if self.paper.asked == when:
            self._fail(run_id, self.events(run_id) or events, how)

    def _kept(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        self.order += [(run_id, event) for event in self._runs.get(run_id, [])[seq : seq + len(events)]]
        self.said.setdefault(run_id, []).extend(events)

    def _fail(self, run_id: str, events: Sequence[Event], how: str | None = None) -> None:
        paper = self.paper
        if paper.fails_at is None or not (events or paper.asked):
            return
        first = self._runs.get(run_id) or events
        below = bool(first) and isinstance(first[0], RunStarted) and first[0].parent is not None
        if paper.whose != "any" and (paper.whose == "below") != below:
            return
        self._appends += 1
        if self._appends - 1 == paper.fails_at or (paper.for_ever and self._appends - 1 > paper.fails_at):
            self.failed += 1
            match paper.how if how is None else how:
                case "driver":
                    raise OfTheDriver("the connection is closed")
                case "cancelled":
                    raise asyncio.CancelledError("the pool's own")
                case _:
                    raise JournalUnavailable("the disk is full", where="here")


class Promising(Recording):
    """One that is handed what it is to store: it does so some turns of the loop later, in order, or fails then."""

    def __init__(self, paper: Paper = Paper(), order: Sequence[tuple[str, Event]] = ()) -> None:
        super().__init__(paper, order)
        self._due: deque[tuple[str, int, list[Event], Future[None]]] = deque()
        # Tools in threads ask what was given, and would find nothing of what is just being stored.
        self._storing = Lock()
        self._refused: list[tuple[str, Event]] = []

    def put(self, run_id: str, seq: int, events: Sequence[Event]) -> "Future[None]":
        future: Future[None] = Future()
        self._due.append((run_id, seq, list(events), future))
        self._later(self.paper.late or 0)
        return future

    async def append(self, run_id: str, seq: int, events: Any) -> None:
        await settled(self.put(run_id, seq, events))

    async def hold(self, *given: Any, **named: Any) -> Any:
        # In order with what it was handed before, as every journal that keeps leases has it.
        for *_, future in list(self._due):
            with suppress(Exception):
                await settled(future)
        return await super().hold(*given, **named)

    def given(self, run_id: str) -> list[Event]:
        with self._storing:
            under_way = [event for run, _, events, _ in self._due if run == run_id for event in events]
            return [*self.events(run_id), *under_way]

    def refused(self, run_id: str) -> list[Event]:
        """What it could not store of the run: nobody may have heard of that yet."""
        return [event for run, event in self._refused if run == run_id]

    def _later(self, turns: int) -> None:
        loop = asyncio.get_running_loop()
        if turns:
            loop.call_soon(self._later, turns - 1)
        else:
            loop.call_soon(self._store)

    def _store(self) -> None:
        try:
            with self._storing:
                run_id, seq, events, future = self._due.popleft()
                if self.paper.writes:
                    self._fail(run_id, events)
                self._asked("before", run_id, events)
                at_once(MemoryJournal.append(self, run_id, seq, events))
        except asyncio.CancelledError:
            self._refused += [(run_id, event) for event in events]
            future.cancel()
        except Exception as error:
            self._refused += [(run_id, event) for event in events]
            future.set_exception(error)
        else:
            self._kept(run_id, seq, events)
            future.set_result(None)


def journal_of(paper: Paper, order: Sequence[tuple[str, Event]] = ()) -> Recording:
    """A journal of that kind, which has `order` in it."""
    return Recording(paper, order) if paper.late is None else Promising(paper, order)


def at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine gives that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def _started(events: Sequence[Event]) -> RunStarted:
    first = events[0]
    assert isinstance(first, RunStarted)
    return first
