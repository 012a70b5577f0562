"""Feed: what happens to one run, for any number of clients, none of whom can slow it or lose an event.

The numbered events come from the journal alone: what a client was sent under a number is what a restart finds there.
Between them come pieces (text as it arrives, progress of tools), which only the process that drives the run has, and
which are shown and not kept. A feed holds the latest of both; a client holds a number. One that falls behind reads the
journal.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from itertools import accumulate
from threading import get_ident
from typing import Final, NamedTuple

from treadle.drivers.watching import RunEvent, StepCompleted
from treadle.journal import Journal, JournalError, Leases
from treadle.journal.ones_own import holders_of, read_of
from treadle.kernel.events import Event, Happened, RunFinished, RunPaused
from treadle.serve.refused import Refused, stopping

LATEST: Final = 200
"""Events that are held for clients that keep up."""

PIECES: Final = 2000
"""Pieces that are held; what is older is left out, and comes as a whole in the event that it belongs to."""

TOGETHER: Final = 50
"""Events that are handed out at once, at most."""

_SILENCE: Final = 15.0
_LOOKS: Final = 2
"""After how many seconds in which nothing came, and how often, it is looked whether anybody drives a run yet."""


class Numbered(NamedTuple):
    """An event of a run's journal. `number` counts from 1, and `event` is what is stored there."""

    number: int
    event: Event


class Piece(NamedTuple):
    """Something shown live that is not in the journal; it came after event number `after`."""

    after: int
    event: RunEvent


class Hearing:
    """Takes what a run that is driven here tells, and knows after which of its events each piece came."""

    def __init__(self) -> None:
        self.base = 0
        self.pieces: deque[tuple[int, int, RunEvent]] = deque(maxlen=PIECES)
        self.feed: Feed | None = None
        self._heard = self._count = 0
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()

    def hear(self, event: RunEvent) -> None:
        """Something happened in the run; tools report from threads of their own too."""
        if get_ident() != self._thread:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.hear, event)
        elif isinstance(event, Happened):
            self._heard += 1
        elif not isinstance(event, StepCompleted):
            self._count += 1
            self.pieces.append((self._count, self._heard, event))
            if self.feed is not None:
                self.feed.ring()


class Feed:
    """What happens to one run, for the clients that follow it.

    Args:
        journal: where the run is.
        run_id: the run.
    """

    def __init__(self, journal: Journal, run_id: str) -> None:
        self.run_id = run_id
        self.clients = 0
        self.hearing: Hearing | None = None
        self.number = 0
        self.failure: BaseException | None = None
        self._stopped: tuple[range, Exception] = (range(0), Exception())
        self.closed = False
        self._journal = journal
        self._latest: deque[Numbered] = deque(maxlen=LATEST)
        self._news = asyncio.Event()

    def ring(self) -> None:
        """Wakes those who wait."""
        self._news.set()
        self._news = asyncio.Event()

    async def watch(self) -> None:
        """Takes in what is stored of the run, until it has finished; raises nothing of the journal's."""
        try:
            async for event in self._journal.watch(self.run_id):
                self.number += 1
                self._latest.append(Numbered(self.number, event))
                self.ring()
        except Exception as error:
            # Each client is told what its request can be told of it.
            self.failure = error
        self.closed = True
        self.ring()

    def stop(self, after: range, why: Exception) -> None:
        """The run was stopped after an event with one of these numbers; whoever waits for its answer is told, unless it
        has gone on.
        """
        self._stopped = after, why
        self.ring()

    def close(self) -> None:
        """Ends what clients read, as where the server stops."""
        self.closed = True
        self.ring()

    async def read(self, after: int, *, pieces: bool, until_pause: bool) -> AsyncIterator[Sequence[Numbered | Piece]]:
        """The events after number `after`, and the pieces that come between them, until the run has finished.

        What is there already comes together, so that a client that has fallen behind is sent it at once.

        Args:
            after: the number of the last event that the client has; 0 for none.
            pieces: whether pieces are wanted.
            until_pause: whether it ends with a pause too, and where the run was stopped in the middle, here or
                elsewhere.

        Raises:
            JournalError: the run cannot be read.
            Refused: the server stops.
            Exception: why the run was stopped, with `until_pause`.
        """
        number, heard, ahead = after, 0, deque[Numbered]()
        hearing: Hearing | None = None
        ends = (RunFinished, RunPaused) if until_pause else RunFinished
        while True:
            news, batch = self._news, list[Numbered | Piece]()
            if self.hearing is not hearing:
                # Whoever took the run up anew counts from the beginning again.
                hearing, heard = self.hearing, self._passed(number)
            if not ahead:
                ahead.extend(await self._next(number))
            while ahead and len(batch) < TOGETHER:
                one = ahead.popleft()
                for count, piece in self._before(one.number, heard) if pieces else ():
                    heard = count
                    batch.append(piece)
                batch.append(one)
                number = one.number
                # A pause that is not the last event is over.
                if number >= self.number and isinstance(one.event, ends):
                    yield batch
                    return
            if number >= self.number:
                for count, piece in self._before(number + 1, heard) if pieces else ():
                    heard = count
                    batch.append(piece)
            if batch:
                yield batch
            elif number < self.number:
                continue
            elif self.failure is not None:
                raise self.failure
            elif self.closed:
                if self._latest and isinstance(self._latest[-1].event, RunFinished):
                    return
                raise stopping()
            elif until_pause and number in self._stopped[0]:
                raise self._stopped[1]
            elif not until_pause:
                await news.wait()
            elif await self._is_left(news):
                raise stopped_in_the_middle(self.run_id)

    async def _is_left(self, news: asyncio.Event) -> bool:
        """Waits for news, for a while; whether there is none and nobody drives the run any more."""
        # A run below another is driven under the lease of the one at the top, with whose id its own begins.
        driven_as = list(accumulate(self.run_id.split("."), "{}.{}".format))
        for _ in range(_LOOKS):
            with suppress(TimeoutError):
                async with asyncio.timeout(_SILENCE):
                    await news.wait()
                return False
            if self.hearing is not None or not isinstance(self._journal, Leases):
                return False
            try:
                if await holders_of(self._journal, driven_as):
                    return False
            except JournalError:
                # Who watches the run tells of a journal that is away, if that does not pass.
                return False
        return not news.is_set()

    async def _next(self, after: int) -> Sequence[Numbered]:
        """The next events that are stored after number `after`; none if there are none yet."""
        if after >= self.number:
            return []
        latest = self._latest
        if latest and latest[0].number <= after + 1:
            return [one for one in latest if one.number > after]
        return [
            Numbered(n, event) for n, event in enumerate(await read_of(self._journal, self.run_id, after), after + 1)
        ]

    def _passed(self, number: int) -> int:
        """The count of the last piece that stands in an event up to number `number`; 0 if there is none."""
        hearing = self.hearing
        if hearing is None:
            return 0
        return max((count for count, came, _ in hearing.pieces if hearing.base + came < number), default=0)

    def _before(self, number: int, heard: int) -> list[tuple[int, Piece]]:
        """The pieces that came before event `number`, but for those up to count `heard`."""
        hearing = self.hearing
        if hearing is None or not hearing.pieces or hearing.pieces[-1][0] <= heard:
            return []
        base, found = hearing.base, []
        for count, came, event in reversed(hearing.pieces):
            if count <= heard:
                break
            if base + came < number:
                found.append((count, Piece(base + came, event)))
        found.reverse()
        return found


def stopped_in_the_middle(run_id: str) -> Refused:
    """What whoever waits for the answer of such a run is told."""
    return Refused(
        "internal",
        f"run {run_id} was stopped in the middle",
        "It is kept and can be resumed; whoever runs the server finds in its log what stopped it.",
    )
