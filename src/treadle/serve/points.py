"""Points: from where a run is told to who asked for it, and which point answers which request.

A request that comes again is answered by what answers it already. Neighbours: `treadle.serve.telling`, which tells a
run from a point on; `treadle.serve.asked_again`, which finds in the journal what a request began or said.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Final, NamedTuple

from treadle.journal.info import RunInfo
from treadle.kernel.events import MessageAdded, RunStarted
from treadle.kernel.messages import Message
from treadle.result import Pending
from treadle.serve.posting import AGAIN, Posting
from treadle.serve.refused import Refused
from treadle.serve.runs import Runs
from treadle.serve.turns import asked_in_pauses
from treadle.serve.user import User

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


async def last_said(runs: Runs, user: User, run_id: str) -> Point:
    """From where the last message to a run that had paused is answered; its beginning, if there is none."""
    found, events = Point(run_id), await runs.views.events(user, run_id)
    for paused, _, message in asked_in_pauses(one.event for one in events):
        found = Point(run_id, paused, (), message.text)
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
