"""Telling: a run's events as moves, from a point that a client names by what it posts, to where it ends or waits."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from treadle.drivers.watching import RunEvent
from treadle.kernel.events import Event, MessageAdded, RunFinished, RunPaused
from treadle.result import Pending
from treadle.serve.feed import Piece
from treadle.serve.protocols.moves import Asked, Move, Said
from treadle.serve.protocols.narrator import Narrator
from treadle.serve.protocols.wire import Decisions
from treadle.serve.refused import Refused
from treadle.serve.runs import Runs, Verb, Verdict
from treadle.serve.user import User

_ALL: Final = 10_000_000
_ANSWERS: Final = 10_000
"""Answers that are remembered, so that a request that comes twice is answered by one run."""


class Point(NamedTuple):
    """From where a run is told: after event `number`, when it waited for `pending`.

    `said` is what was said to it then: whoever said it is not told.
    """

    run_id: str
    number: int = 0
    pending: tuple[Pending, ...] = ()
    said: str | None = None


class Telling:
    """A run as moves, from a point on."""

    def __init__(self, runs: Runs, user: User, point: Point) -> None:
        self._runs, self._user, self.point = runs, user, point
        self._narrator = Narrator()
        self._stored: Sequence[Event] = ()
        self._said = point.said

    async def begin(self) -> Narrator:
        """Takes in what is before the point: the run as it was there. Raises `Refused` if it cannot be read."""
        run_id, number = self.point.run_id, self.point.number
        self._stored = [one.event for one in await self._runs.events(self._user, run_id, limit=_ALL)]
        for event in self._stored[:number]:
            self._narrator.skip(event)
        return self._narrator

    async def moves(self, *, wait: bool = True) -> AsyncGenerator[Move]:
        """What there is to tell; without `wait`, only what is stored by now."""
        known, hear = len(self._stored), self._heard
        for event in self._stored[self.point.number :]:
            for move in hear(event):
                yield move
        if not wait or (self._stored and _ends(self._stored[-1])):
            return
        following = self._runs.follow(self._user, self.point.run_id, known, until_pause=True)
        async with aclosing(following):
            async for one in following:
                if isinstance(one, Piece) and one.after < known:
                    # It belongs to an event that was told already.
                    continue
                for move in hear(one.event):
                    yield move
                if _ends(one.event):
                    return

    def _heard(self, event: RunEvent) -> Iterator[Move]:
        for move in self._narrator.hear(event):
            if isinstance(move, Said) and move.text == self._said:
                self._said = None
            else:
                yield move


def _ends(event: object) -> bool:
    return isinstance(event, (RunPaused, RunFinished))


async def asked_at(runs: Runs, user: User, run_id: str, fits: Callable[[Pending], bool]) -> Point | None:
    """The last pause of a run at which it waited for a call that `fits`; None if it never did."""
    narrator, found = Narrator(), None
    for number, event in await runs.events(user, run_id, limit=_ALL):
        for move in narrator.hear(event):
            if isinstance(move, Asked) and any(map(fits, move.pending)):
                found = Point(run_id, number, move.pending)
    return found


async def last_said(runs: Runs, user: User, run_id: str) -> Point:
    """From where the last message to a run that had paused is answered; its beginning, if there is none."""
    found, paused = Point(run_id), 0
    for number, event in await runs.events(user, run_id, limit=_ALL):
        if isinstance(event, MessageAdded) and paused:
            found, paused = Point(run_id, paused, (), event.message.text), 0
        paused = number if isinstance(event, RunPaused) else paused
    return found


def verdicts(decisions: Decisions, pending: Iterable[Pending]) -> list[Verdict]:
    """What was decided of each call, as `Runs.decide` takes it."""
    found: list[Verdict] = []
    for one in pending:
        call, _, mark = one.key.rpartition("#")
        if one.key in decisions.results:
            found.append(Verdict(call, mark, "result", result=decisions.results[one.key]))
        elif one.key in decisions.deny:
            found.append(Verdict(call, mark, "deny", reason=decisions.deny[one.key]))
        elif one.key in decisions.approve:
            edited = decisions.approve[one.key]
            again: Verb = "again" if one.kind == "interrupted" else "approve"
            found.append(Verdict(call, mark, again if edited is None else "edit", edited))
    return found


async def say(runs: Runs, user: User, run_id: str, text: str) -> Point:
    """Says something to a run that is under way, or that waits and goes on with it: from where that is answered.

    Raises:
        Refused: neither is so any more.
    """
    point = Point(run_id, len(await runs.events(user, run_id, limit=_ALL)), (), text)
    try:
        await runs.say(user, run_id, text)
    except Refused as error:
        if error.kind != "conflict":
            raise
        await runs.resume(user, run_id, message=text)
    return point


class Answers:
    """Which run answers which request, for as long as this process lives and not too many come after."""

    def __init__(self) -> None:
        self._points: OrderedDict[Hashable, Point] = OrderedDict()

    def find(self, key: Hashable) -> Point | None:
        """What answered a request before; None if nothing did."""
        return self._points.get(key)

    def keep(self, key: Hashable, point: Point) -> Point:
        """Remembers what answers it."""
        self._points[key] = point
        while len(self._points) > _ANSWERS:
            self._points.popitem(last=False)
        return point
