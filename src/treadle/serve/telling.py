"""Telling: a run's events as moves, from a point that a client names by what it posts, to where it ends or waits."""

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing

from treadle.drivers.below import run_id_below
from treadle.drivers.watching import RunEvent, SubRunEvent
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    Event,
    Happened,
    MessageAdded,
    ResultAwaited,
    RunFinished,
    RunPaused,
    RunResumed,
    StepPrepared,
    ToolFinished,
    encode_event,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.state import RunState
from treadle.result import pending_in
from treadle.serve.feed import Piece
from treadle.serve.points import Point
from treadle.serve.protocols.moves import (
    Asked,
    Began,
    Below,
    CallBegan,
    CallReturned,
    Ended,
    Move,
    PartBegan,
    Said,
    Withdrawn,
)
from treadle.serve.protocols.narrator import Narrator, Told
from treadle.serve.protocols.openai_caller import callers
from treadle.serve.protocols.wire import name_below
from treadle.serve.refused import Refused
from treadle.serve.runs import Runs
from treadle.serve.user import User


class Telling:
    """A run as moves, from a point on, with the runs below it.

    With `one_turn` no further than to where it waited and something was said to it, or its caller gave a result: that
    is answered by another turn.

    Attributes:
        stored: the run's events, as they stood when the telling began.
    """

    def __init__(self, runs: Runs, user: User, point: Point, *, one_turn: bool = False) -> None:
        self._runs, self._user, self.point, self._one_turn = runs, user, point, one_turn
        self._branch = Branch(runs, user, point.run_id)
        self.stored: Sequence[Event] = ()
        self._said = point.said

    async def begin(self) -> RunState:
        """Takes in what is before the point: the run as it was there. Raises `Refused` if it cannot be read."""
        run_id, number = self.point.run_id, self.point.number
        stored = [one.event for one in await self._runs.views.events(self._user, run_id)]
        self.stored = stored[: _end_of_turn(stored, number)] if self._one_turn else stored
        await self._branch.skip(self.stored[:number])
        return self._branch.narrator.state

    def told(self) -> Iterator[tuple[str, str, Told]]:
        """How much is told by now, of the run and of those below: of each the path to it, its id, and how much."""
        return self._branch.told("")

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


class Branch:
    """A run, with those that work for it. Of these the journal tells what happened before anybody listened."""

    def __init__(self, runs: Runs, user: User, run_id: str) -> None:
        self._runs, self._user, self._run_id = runs, user, run_id
        self.narrator = Narrator()
        self._below: dict[str, tuple[str, Branch]] = {}
        # How many events were told, how many of these the journal is known to have, and which the others were: shown
        # live, they may never be stored, where another process takes the run over. And what was shown since, each with
        # the number of the last event before it.
        self._number = self._seen = 0
        self._unsure: list[int] = []
        self._showed: list[tuple[int, PartBegan | CallBegan | CallReturned]] = []
        self._anew = 0
        # Whether the journal was asked since anybody listens; the events that it told then, which pieces may bring
        # once more, and until then pieces are old; and whether pieces do not follow on what is known.
        self._joined = False
        self._ahead: set[bytes] = set()
        self._lost = False

    def told(self, path: str) -> Iterator[tuple[str, str, Told]]:
        """How much is told of it, and of those below, by now."""
        yield path, self._run_id, self.narrator.told
        for _, branch in self._below.values():
            yield from branch.told(path + name_below(branch._run_id))

    async def skip(self, events: Iterable[Event]) -> None:
        """Takes note of what was told before, here and in the runs below that this one waits for."""
        at = 0.0
        for event in events:
            self.narrator.skip(event)
            self._number, at = self._number + 1, event.at
        self._seen = self._number
        step = self.narrator.state.step
        for record in () if step is None else step.calls:
            if record.run_id:
                stored = await self._stored(record.run_id, 0)
                paused = [i for i, one in enumerate(stored, 1) if isinstance(one, RunPaused) and one.at <= at]
                await self._branch(record.id, record.run_id).skip(stored[: paused[-1] if paused else 0])

    async def hear(self, event: Event) -> AsyncGenerator[Move]:
        """What there is to tell of the run's next event."""
        self._number += 1
        below = self._told_of(event)
        if below is not None:
            async for move in self._caught_up(*below):
                yield move
        elif isinstance(event, RunResumed):
            # Whoever takes it up goes on from what is stored of the runs below, too.
            for run_id, (call_id, branch) in [*self._below.items()]:
                if branch._unsure:
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
        before = self._number
        if isinstance(event, Happened):
            key = encode_event(event)
            if key in self._ahead:
                self._ahead.discard(key)
                return
            self._ahead.clear()
            self._unsure.append(hash(key))
            try:
                async for move in self.hear(event):
                    yield self._noted(before, move)
            except IllegalEvent:
                # What came before it was shown before anybody listened, or to nobody here. The journal tells it with
                # the call's result.
                self._unsure.pop()
                self._lost, self._number = True, before
        elif not self._ahead:
            async for move in self.piece(event):
                yield self._noted(before, move)

    def _noted(self, before: int, move: Move) -> Move:
        if isinstance(move, PartBegan | CallBegan | CallReturned):
            self._showed.append((before, move))
        return move

    async def _caught_up(self, call_id: str, run_id: str) -> AsyncGenerator[Move]:
        """What the journal has of a run below that was not told yet."""
        branch = self._branch(call_id, run_id)
        branch._joined, branch._lost = True, False
        async for move in branch._followed_up():
            yield self._wrapped(call_id, run_id, move)

    async def _followed_up(self) -> AsyncGenerator[Move]:
        """What the journal has and was not told; what was shown, and is not there, is taken back first."""
        stored = await self._stored(self._run_id, self._number - 1 if self._unsure else self._seen)
        if self._unsure and stored and _key(stored[0]) == self._unsure[-1]:
            # Whoever wrote this one wrote those before it.
            stored = stored[1:]
        elif self._unsure and (all_stored := await self._stored(self._run_id, 0)):
            kept = self._seen
            for shown, event in zip(self._unsure, all_stored[kept:], strict=False):
                if shown != _key(event):
                    break
                kept += 1
            for move in self._taken_back(all_stored[:kept]):
                yield move
            stored = all_stored[kept:]
        self._unsure.clear()
        self._showed = [one for one in self._showed if one[0] >= self._number]
        for event in stored:
            self._ahead.add(encode_event(event))
            async for move in self.hear(event):
                yield move
        self._seen = self._number

    def _taken_back(self, kept: Sequence[Event]) -> Iterator[Move]:
        """Takes back all that was shown after the events that the journal has kept; from there it is told anew."""
        since = [move for before, move in self._showed if before >= len(kept)]
        calls = {move.id: move.name for move in since if isinstance(move, CallBegan)}
        for run_id, (call_id, branch) in self._below.items():
            if call_id in calls:
                for move in branch._taken_back(()):
                    yield self._wrapped(call_id, run_id, move)
        yield from self.narrator.closed()
        parts = tuple([move.id for move in since if isinstance(move, PartBegan)])
        results = {move.id for move in since if isinstance(move, CallReturned)} - calls.keys()
        if since:
            yield Withdrawn(parts, tuple(calls.items()), True, tuple(sorted(results)), taken_over=True)
        self._anew += 1
        self.narrator = Narrator(f"again-{self._anew}-")
        for event in kept:
            self.narrator.skip(event)
        self._number = self._seen = len(kept)
        self._unsure.clear()
        self._showed.clear()
        self._ahead.clear()

    def _told_of(self, event: Event) -> tuple[str, str] | None:
        """The call and the run below of which an event says that it has come back, or waits."""
        match event:
            case ToolFinished(step=step, call_id=call_id) if event.spent is not None:
                under_way = self.narrator.state.step
                record = None if under_way is None else under_way.calls.find(call_id)
                made = 1 if record is None else record.made
                return call_id, run_id_below(self._run_id, step, call_id, made)
            case ResultAwaited(call_id=call_id, run_id=below) if below:
                return call_id, below
        return None

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
        path = name_below(run_id)
        if isinstance(move, Below):
            inner = path + move.call_id
            return Below(path + move.path, move.run_id, move.parent or run_id, inner, move.agent, move.move)
        return Below(path, run_id, "", call_id, self._below[run_id][1].narrator.state.agent, move)


def _key(event: Event) -> int:
    return hash(encode_event(event))


def _end_of_turn(events: Sequence[Event], number: int) -> int | None:
    """The number of the first pause after `number` in which something was said to the run, or its caller gave what a
    call of the caller's tools came to; None if there is none."""
    paused: int | None = None
    asked: set[str] = set()
    for place, event in enumerate(events[number:], number + 1):
        given = isinstance(event, ToolFinished) and event.call_id in asked
        if paused is not None and (given or isinstance(event, MessageAdded)):
            return paused
        if isinstance(event, RunPaused):
            paused, asked = place, {one.plain for one in pending_in(fold_all(events[:place])) if callers(one)}
        elif isinstance(event, StepPrepared):
            paused, asked = None, set()
    return None


def _ends(event: object) -> bool:
    return isinstance(event, (RunPaused, RunFinished))
