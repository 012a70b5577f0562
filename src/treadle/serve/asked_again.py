"""Asked again: the run that a request began, found when the request comes again, and had to go on for its answer."""

import asyncio
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from treadle.drivers.conversing import BESIDE
from treadle.drivers.taking_up import GoingOn
from treadle.journal import Journal, JournalError, UnknownRun
from treadle.journal.families import every
from treadle.journal.info import RunInfo, Wanted, told_by
from treadle.journal.ones_own import read_of
from treadle.kernel.events import MessageAdded, RunFinished, RunPaused, StepPrepared
from treadle.serve.carrying import Carrying
from treadle.serve.live import STOPPED
from treadle.serve.posting import AGAIN, Posting
from treadle.serve.refused import Refused, kept, of_journal
from treadle.serve.user import User
from treadle.serve.views import Views
from treadle.serve.whose import Whose

_LOOKS: Final = 20
_LOOK: Final = 0.1
"""How often, and after how many seconds each, it is looked whether somebody has a run go on."""


class SaidBefore(NamedTuple):
    """Something that was said to a run: `text`, which is answered by what comes after its event number `after`."""

    run_id: str
    after: int
    text: str


class AskedAgain:
    """The runs that requests began which come again.

    Args:
        journal: where they are.
        views: how they stand.
        carrying: has them go on.
    """

    def __init__(self, journal: Journal, views: Views, carrying: Carrying) -> None:
        self._journal, self._views, self._carrying = journal, views, carrying

    async def answering(self, user: User, posting: Posting) -> str | None:
        """The id of the run that such a request began; None if none did. It goes on, if nobody has it go on.

        Raises:
            Refused: the name began a run with another request ("unfit"), or the run cannot go on.
        """
        line = await (self._latest_of(user, posting) if posting.run_id is None else self._named(posting.run_id))
        if line is None or not user.may_see(line.user, line.agent):
            return None
        if posting.digest and line.origin != posting.origin:
            raise _unfit(line.run_id)
        whose = Whose(line.run_id, line.user, line.agent)
        if line.stop == BESIDE or await kept(self._carrying.ended_beside(whose, line.run_id)):
            # It is said again now, and what was not done for it is done for this.
            await kept(self._journal.delete(line.run_id))
            return None
        await self._gone_on(whose, line.run_id, user)
        return line.run_id

    async def said(self, user: User, lines: Iterable[RunInfo], posting: Posting) -> SaidBefore | None:
        """What such a request said to one of these runs; None if it said nothing. The run goes on, as above.

        Raises:
            Refused: the name said something else ("unfit"), or the run cannot go on.
        """
        for line in lines if posting.kept else ():
            after = 0
            try:
                events = await self._views.events(user, line.run_id)
            except Refused as error:
                if error.kind != "not_found":
                    raise
                # It was deleted since it was listed: nothing was said to it.
                continue
            for number, event in events:
                if isinstance(event, RunPaused):
                    after = number
                elif isinstance(event, StepPrepared):
                    after = 0
                elif isinstance(event, MessageAdded) and posting.is_named(event.origin):
                    if posting.digest and not f"{event.origin} ".startswith(f"{posting.origin} "):
                        raise _unfit(line.run_id)
                    await self._gone_on(Whose(line.run_id, line.user, line.agent), line.run_id, user)
                    return SaidBefore(line.run_id, after or number - 1, event.message.text)
        return None

    async def _gone_on(self, whose: Whose, run_id: str, user: User) -> None:
        """Has a run go on whose server died or was stopped: whoever asks again wants its answer."""
        for look in range(_LOOKS):
            events, driven = await self._views.stands(run_id)
            waits = isinstance(events[-1], RunPaused) and events[-1].stop != STOPPED
            if driven or waits or isinstance(events[-1], RunFinished):
                return
            try:
                return await self._carrying.go_on(whose, run_id, GoingOn(by=user.name))
            except Refused as error:
                # It may be about to be taken up by another.
                if error.kind != "conflict" or look == _LOOKS - 1:
                    raise
            await asyncio.sleep(_LOOK)

    async def _named(self, run_id: str) -> RunInfo | None:
        try:
            return told_by(await read_of(self._journal, run_id))
        except UnknownRun:
            return None
        except JournalError as error:
            raise of_journal(error) from error

    async def _latest_of(self, user: User, posting: Posting) -> RunInfo | None:
        """The newest run that such a request without a name began of late."""
        if not posting.kept:
            return None
        lately = Wanted(user=user.name, since=time.time() - AGAIN, top=True)
        try:
            async for line in every(self._journal, lately):
                if line.origin == posting.origin:
                    return line
        except JournalError as error:
            raise of_journal(error) from error
        return None


def _unfit(run_id: str) -> Refused:
    return Refused(
        "unfit", f"this key was given to another request, of run {run_id}", "Give each request a key of its own."
    )
