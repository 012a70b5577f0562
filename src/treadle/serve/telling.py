"""Telling: a run's events as moves, from a point that a client names by what it posts, to where it ends or waits."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from treadle.drivers.watching import RunEvent, SubRunEvent
from treadle.journal.info import RunInfo, told_by
from treadle.journal.redaction import as_kept
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    Event,
    Happened,
    MessageAdded,
    ResultAwaited,
    RunFinished,
    RunPaused,
    RunStarted,
    ToolFinished,
    encode_event,
)
from treadle.kernel.messages import Message, Text, UserMessage
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState
from treadle.result import Pending
from treadle.serve.feed import Piece
from treadle.serve.posting import AGAIN, ORIGIN, Posting
from treadle.serve.protocols.moves import Asked, Began, Below, Ended, Move, Said
from treadle.serve.protocols.narrator import Narrator
from treadle.serve.protocols.wire import Decisions
from treadle.serve.refused import Refused
from treadle.serve.runs import Runs
from treadle.serve.user import User
from treadle.serve.verdicts import Verb, Verdict

_LOOKS: Final = 10
_LOOK: Final = 0.1
"""How often, and after how many seconds each, it is looked whether a run can be spoken to that could not."""
_ANSWERS: Final = 10_000
"""Answers that are remembered, so that a request that comes twice is answered by one run."""


Decide = Callable[[str, tuple[Pending, ...]], Decisions]
"""What a request decides of the calls that a run waits for."""

Names = Callable[[Pending], Iterable[str]]
"""By what names a request answers what a run waits for, or waited for once; none if it does not."""


class Point(NamedTuple):
    """From where a run is told: after event `number`, when it waited for `pending`.

    `said` is what was said to it then: whoever said it is not told.
    """

    run_id: str
    number: int = 0
    pending: tuple[Pending, ...] = ()
    said: str | None = None


class Telling:
    """A run as moves, from a point on, with the runs below it.

    Attributes:
        stored: the run's events, as they stood when the telling began.
    """

    def __init__(self, runs: Runs, user: User, point: Point) -> None:
        self._runs, self._user, self.point = runs, user, point
        self._branch = Branch(runs, user, point.run_id)
        self.stored: Sequence[Event] = ()
        self._said = point.said

    async def begin(self) -> RunState:
        """Takes in what is before the point: the run as it was there. Raises `Refused` if it cannot be read."""
        run_id, number = self.point.run_id, self.point.number
        self.stored = [one.event for one in await self._runs.views.events(self._user, run_id)]
        await self._branch.skip(self.stored[:number])
        return self._branch.narrator.state

    async def moves(self, *, wait: bool = True) -> AsyncGenerator[Move]:
        """What there is to tell; without `wait`, only what is stored by now."""
        async for move in self._all(wait):
            if isinstance(move, Said) and move.text == self._said:
                self._said = None
            else:
                yield move

    async def _all(self, wait: bool) -> AsyncGenerator[Move]:
        known = len(self.stored)
        if self.point.number:
            yield Began(self.point.run_id, self._branch.narrator.state.agent, again=True)
        for number, event in enumerate(self.stored[self.point.number :], self.point.number + 1):
            # A pause that the run has gone on from is over: it neither waits nor ends there.
            over = number < known and isinstance(event, RunPaused)
            async for move in self._branch.hear(event):
                if not (over and isinstance(move, Asked | Ended)):
                    yield move
        if not wait or (self.stored and _ends(self.stored[-1])):
            return
        following = self._runs.views.follow(self._user, self.point.run_id, known, until_pause=True)
        async with aclosing(following):
            async for one in following:
                if isinstance(one, Piece):
                    if one.after >= known:
                        async for move in self._branch.piece(one.event):
                            yield move
                    continue
                async for move in self._branch.hear(one.event):
                    yield move
                if _ends(one.event):
                    return
        raise Refused("unavailable", "the server is stopping", "The run is kept, and goes on when it is back.", 5)


class Branch:
    """A run, with those that work for it. Of these the journal tells what happened before anybody listened."""

    def __init__(self, runs: Runs, user: User, run_id: str) -> None:
        self._runs, self._user, self._run_id = runs, user, run_id
        self.narrator = Narrator()
        self._below: dict[str, tuple[str, Branch]] = {}
        self._number = 0
        # Whether the journal was asked since anybody listens; the events that it told then, which pieces may bring
        # once more, and until then pieces are old; and whether pieces do not follow on what is known.
        self._joined = False
        self._ahead: set[bytes] = set()
        self._lost = False

    async def skip(self, events: Iterable[Event]) -> None:
        """Takes note of what was told before, here and in the runs below that this one waits for."""
        at = 0.0
        for event in events:
            self.narrator.skip(event)
            self._number, at = self._number + 1, event.at
        step = self.narrator.state.step
        for record in () if step is None else step.calls:
            if record.run_id:
                stored = await self._stored(record.run_id, 0)
                paused = [i for i, one in enumerate(stored, 1) if isinstance(one, RunPaused) and one.at <= at]
                await self._branch(record.id, record.run_id).skip(stored[: paused[-1] if paused else 0])

    async def hear(self, event: Event) -> AsyncGenerator[Move]:
        """What there is to tell of the journal's next event."""
        self._number += 1
        below = _below(self._run_id, event)
        if below is not None:
            call_id, run_id = below
            async for move in self._caught_up(call_id, run_id):
                yield move
        for move in self.narrator.hear(event):
            yield move

    async def piece(self, event: RunEvent) -> AsyncGenerator[Move]:
        """What there is to tell of something that is shown live."""
        if not isinstance(event, SubRunEvent):
            for move in self.narrator.hear(event):
                yield move
            return
        branch = self._branch(event.call_id, event.run_id)
        if not branch._joined:
            async for move in self._caught_up(event.call_id, event.run_id):
                yield move
        async for move in branch._live(event.event):
            yield self._wrapped(event.call_id, event.run_id, move)

    async def _live(self, event: RunEvent) -> AsyncGenerator[Move]:
        if self._lost:
            return
        if isinstance(event, Happened):
            key = encode_event(event)
            if key in self._ahead:
                self._ahead.discard(key)
                return
            self._ahead.clear()
            try:
                async for move in self.hear(event):
                    yield move
            except IllegalEvent:
                # What came before it was shown before anybody listened. The journal tells it with the call's result.
                self._lost, self._number = True, self._number - 1
        elif not self._ahead:
            async for move in self.piece(event):
                yield move

    async def _caught_up(self, call_id: str, run_id: str) -> AsyncGenerator[Move]:
        """What the journal has of a run below that was not told yet."""
        branch = self._branch(call_id, run_id)
        branch._joined, branch._lost = True, False
        for event in await self._stored(run_id, branch._number):
            branch._ahead.add(encode_event(event))
            async for move in branch.hear(event):
                yield self._wrapped(call_id, run_id, move)

    def _branch(self, call_id: str, run_id: str) -> "Branch":
        if run_id not in self._below:
            self._below[run_id] = (call_id, Branch(self._runs, self._user, run_id))
        return self._below[run_id][1]

    async def _stored(self, run_id: str, after: int) -> list[Event]:
        try:
            return [one.event for one in await self._runs.views.events(self._user, run_id, after)]
        except Refused as error:
            if error.kind != "not_found":
                raise
            # It was never begun, or is gone.
            return []

    def _wrapped(self, call_id: str, run_id: str, move: Move) -> Move:
        path = f"{escaped(call_id)}/"
        if isinstance(move, Below):
            inner = path + move.call_id
            return Below(path + move.path, move.run_id, move.parent or run_id, inner, move.agent, move.move)
        return Below(path, run_id, "", call_id, self._below[run_id][1].narrator.state.agent, move)


def _below(run_id: str, event: Event) -> tuple[str, str] | None:
    """The call and the run below of which an event says that it has come back, or waits."""
    match event:
        case ToolFinished(step=step, call_id=call_id) if event.spent is not None:
            return call_id, f"{run_id}.{step}.{escaped(call_id)}"
        case ResultAwaited(call_id=call_id, run_id=below) if below:
            return call_id, below
    return None


def _ends(event: object) -> bool:
    return isinstance(event, (RunPaused, RunFinished))


async def asked_at(runs: Runs, user: User, run_id: str, names: Names) -> tuple[Point | None, set[str]]:
    """The last pause of a run at which it waited for something named, None if it never did; and all that ever was."""
    narrator, found, ever = Narrator(), None, set[str]()
    for number, event in await runs.views.events(user, run_id):
        for move in narrator.hear(event):
            if isinstance(move, Asked) and (here := named(names, move.pending)):
                found, ever = Point(run_id, number, move.pending), ever | here
    return found, ever


def named(names: Names, pending: Iterable[Pending]) -> set[str]:
    """What of a request names any of these calls."""
    return {name for one in pending for name in names(one)}


async def last_said(runs: Runs, user: User, run_id: str) -> Point:
    """From where the last message to a run that had paused is answered; its beginning, if there is none."""
    found, paused = Point(run_id), 0
    for number, event in await runs.views.events(user, run_id):
        if isinstance(event, MessageAdded) and paused:
            found, paused = Point(run_id, paused, (), event.message.text), 0
        paused = number if isinstance(event, RunPaused) else paused
    return found


async def said_last(runs: Runs, user: User, run_id: str) -> Message | None:
    """What a person said to a run last: its question, or what came after."""
    found: Message | None = None
    for _, event in await runs.views.events(user, run_id):
        if isinstance(event, RunStarted):
            found = event.messages[-1] if event.messages else None
        elif isinstance(event, MessageAdded):
            found = event.message
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


async def answered(runs: Runs, user: User, posting: Posting, lines: Iterable[RunInfo]) -> Point | None:
    """From where is told what answers a request that came before, by a run that it began or by one of these; None if it
    did not come.
    """
    begun = await runs.again.answering(user, posting)
    return Point(begun) if begun is not None else await said_before(runs, user, posting, lines)


async def said_before(runs: Runs, user: User, posting: Posting, lines: Iterable[RunInfo]) -> Point | None:
    """From where is told what answers something that such a request said to one of these runs; None if it did not."""
    said = await runs.again.said(user, lines, posting)
    return None if said is None else Point(said.run_id, said.after, (), said.text)


async def say(
    runs: Runs, user: User, run_id: str, message: UserMessage, posting: Posting | None, decide: Decide
) -> Point:
    """Says something to a run that is under way, or that waits and goes on with it: from where that is answered.

    Args:
        runs: all runs.
        user: who says it.
        run_id: the run.
        message: what is said.
        posting: what names the request that says it, if anything does.
        decide: what the same request decides of the calls that the run waits for; it goes on with both.

    Raises:
        Refused: neither is so any more, or it is more than text.
    """
    parts = [Text(message.content)] if isinstance(message.content, str) else message.content
    if not all([isinstance(part, Text) for part in parts]):
        raise Refused("conflict", "a run that is under way takes text only", "Send the file when it has ended.")
    text, kept = message.text, as_kept(message, getattr(runs.journal, "redact", None))
    origin = ORIGIN if posting is None else posting.said
    for look in range(_LOOKS):
        await runs.live.settled(run_id)
        found = await runs.views.describe(user, run_id)
        if posting is not None and posting.run_id is not None:
            # Another server may have been sent the same, and have been faster.
            before = await answered(runs, user, posting, [told_by(found.events)])
            if before is not None:
                return before
        point = Point(run_id, len(found.events), (), kept.text)
        pending = tuple([one.pending for one in found.waits])
        decided = verdicts(decide(run_id, pending), pending)
        if not decided:
            try:
                await runs.say(user, run_id, text, origin, seen=point.number)
                return point
            except Refused as error:
                if error.kind != "conflict":
                    raise
        try:
            if decided:
                await runs.decide(user, run_id, decided, message=text, origin=origin, seen=point.number)
            else:
                await runs.resume(user, run_id, message=text, origin=origin, seen=point.number)
            return point
        except Refused as error:
            # Somebody else may be about to have it go on: then it is said to the run under way.
            if error.kind != "conflict" or look == _LOOKS - 1:
                raise
        await asyncio.sleep(_LOOK)
    raise AssertionError("the last look returns or raises")


class Answers:
    """Which point of a run answers which request, as long as that is about to be found.

    What began a run, and what was said to one, is known from the journal afterwards. Where a request leaves no trace
    there, it is remembered here for `AGAIN` seconds, while not too many come after.
    """

    def __init__(self) -> None:
        self._points: OrderedDict[Hashable, tuple[float, asyncio.Future[Point]]] = OrderedDict()

    async def once(self, key: Hashable, begin: Callable[[], Awaitable[Point]], *, keep: bool = False) -> Point:
        """From where the request is told; what is about to answer it, where it comes again, or, if that is to be kept
        here, has answered it.
        """
        at, there = self._points.get(key, (0.0, None))
        if there is not None and time.monotonic() - at < AGAIN:
            return await asyncio.shield(there)
        return await self.anew(key, begin, keep=keep)

    async def anew(self, key: Hashable, begin: Callable[[], Awaitable[Point]], *, keep: bool = False) -> Point:
        """From where the request is told, whether it came before or not."""
        told = asyncio.get_running_loop().create_future()
        self._points[key] = mine = (time.monotonic(), told)
        self._points.move_to_end(key)
        while len(self._points) > _ANSWERS:
            self._points.popitem(last=False)
        try:
            point = await begin()
        except BaseException as error:
            self._forget(key, mine)
            # A refusal holds for those who wait too; whoever waits for a request that was given up asks again.
            told.set_exception(error if isinstance(error, Refused) else _given_up())
            told.exception()
            raise
        told.set_result(point)
        if not keep:
            self._forget(key, mine)
        return point

    def _forget(self, key: Hashable, mine: "tuple[float, asyncio.Future[Point]]") -> None:
        if self._points.get(key) is mine:
            del self._points[key]


def _given_up() -> Refused:
    return Refused("unavailable", "the same request was begun and given up", "Send it again.", 1)
