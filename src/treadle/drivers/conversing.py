"""Conversing: which of the runs that a journal has of one conversation goes on. One at a time does, and it is the last.

Each was begun with all that was said in the one before it, so what comes of one that is not the last is no part of the
conversation. Nobody keeps it shut, for it may go on in several processes at the same moment. Whoever begins a run looks
once that is written; whoever takes one up looks once it has its lease, and before anything of it is written. So of two
that cross at least one sees the other; where both do, the one that was there before wins: a run that is taken up before
one that is begun, and of two that are begun the one that began first. Who gives way was told nothing yet, and did
nothing.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Final

from treadle.carried import Made, as_it_was
from treadle.journal import Journal, JournalDamaged, Leases, UnknownRun
from treadle.journal.families import every, is_there
from treadle.journal.info import RunInfo, Wanted, told_by
from treadle.journal.ones_own import holders_of, read_of
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, RunFinished, RunResumed, RunStarted, ToolsListed
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import Message, UserMessage
from treadle.kernel.stop import stopped
from treadle.result import conversation_part

BESIDE: Final = stopped(
    "cancelled",
    "it was begun while another run of its conversation was under way, and nothing was done for it",
    "Say it again in the conversation.",
)
"""Why a run has ended that would have gone on beside another; the conversation goes on without it."""

_PAGE: Final = 20
"""Runs of a conversation that the journal is asked for at once."""

_LOOKS: Final = 40
_LOOK: Final = 0.05
"""How often, and after how many seconds each, it is looked whether another run has given way."""


class GoneOn(Misuse):
    """The conversation of a run has gone on without it: with the run `newer`."""

    def __init__(self, line: RunInfo, newer: RunInfo) -> None:
        super().__init__(f"conversation {line.conversation!r:.200} has gone on from run {line.run_id}: {newer.run_id}")
        self.newer = newer.run_id

    def __reduce__(self) -> Made:
        return as_it_was(self)


def lines_of(journal: Journal, user: str, name: str) -> AsyncIterator[RunInfo]:
    """The runs of a conversation, newest first. Of those that are asked for the first few are nearly always enough."""
    return every(journal, Wanted(user=user, conversation=name, top=True), size=_PAGE)


async def last_of(lines: AsyncIterable[RunInfo]) -> RunInfo | None:
    """The run with which a conversation goes on, of its runs, newest first; None if there are none."""
    newest: RunInfo | None = None
    async for line in lines:
        if line.stop != BESIDE:
            return line
        newest = newest or line
    return newest


def said_before(first: Event) -> Sequence[Message]:
    """What had been said when a run began, of which that is the first event, without what it was asked."""
    said = conversation_part(first.messages) if isinstance(first, RunStarted) else []
    return said[:-1] if said and isinstance(said[-1], UserMessage) else said


async def in_the_way(journal: Journal, run_id: str, before: RunInfo | None) -> RunInfo | None:
    """The run for which one has to give way that was just begun in a conversation; None if it is the one that goes on.

    Args:
        journal: where they are.
        run_id: the run that was begun, and that nothing was done for.
        before: the last run, as it was when what was said was read; None if there was none.
    """
    line = told_by(await read_of(journal, run_id))
    async for other in _others(journal, line):
        if before is not None and other.run_id == before.run_id:
            # It may have gone on since, and have ended again: what was written by whoever lets it go as its lease is
            # looked at is there after that look, and not before.
            taken = await _is_held(journal, other.run_id) or await _has_gone_on(journal, before)
            return other if taken else None
        if _age(other) < _age(line) or not await _gives_way(journal, other.run_id):
            return other
    return None


async def require_last(journal: Journal, events: Sequence[Event]) -> None:
    """Looks whether the run that has these events, and is held by whoever asks, is the last of its conversation.

    Raises:
        GoneOn: it is not; one that belongs to no conversation is.
    """
    line = told_by(events)
    if not line.conversation or line.parent is not None:
        return
    async for other in _others(journal, line):
        if line.stop == BESIDE:
            raise GoneOn(line, other)
        if _age(other) < _age(line):
            return
        if not await _gives_way(journal, other.run_id):
            raise GoneOn(line, other)


async def begun_beside(journal: Journal, events: Sequence[Event]) -> bool:
    """Whether a run was begun while another of its conversation was under way, by a process that died before it looked.

    Nobody was told then that it had begun. One that goes on from what was said before it is not: the run that said that
    may have been taken up since. Where what was said before cannot be told, as with an answer that was asked for anew,
    it is taken for one, as it would have the conversation forget what was said in the other.

    Args:
        journal: where they are.
        events: those of a run that nobody drives.
    """
    line = told_by(events)
    if not line.conversation or line.parent is not None or not _only_begun(events):
        return False
    async for other in _others(journal, line):
        found = await read_of(journal, other.run_id)
        if _age(other) < _age(line):
            return _said_until(found, line.started_at) != said_before(events[0])
        if not _only_begun(found):
            return True
    return False


async def _others(journal: Journal, line: RunInfo) -> AsyncIterator[RunInfo]:
    """The other runs of its conversation, newest first, but for those that it goes on without."""
    async for other in lines_of(journal, line.user, line.conversation):
        if other.run_id != line.run_id and other.stop != BESIDE:
            yield other


async def _gives_way(journal: Journal, run_id: str) -> bool:
    """Whether a run that was begun meanwhile is taken back again, as who began it looks too; waits for that."""
    for _ in range(_LOOKS):
        try:
            events = await read_of(journal, run_id)
        except UnknownRun:
            return True
        except JournalDamaged:
            return False
        if not _only_begun(events):
            return False
        if not await _is_held(journal, run_id, unknown=True):
            # It was taken back just now, or is left by a process that died, which will not take it back.
            return not await is_there(journal, run_id)
        await asyncio.sleep(_LOOK)
    return False


async def _is_held(journal: Journal, run_id: str, *, unknown: bool = False) -> bool:
    """Whether some process has the run; `unknown` where the journal does not tell."""
    return run_id in await holders_of(journal, [run_id]) if isinstance(journal, Leases) else unknown


async def _has_gone_on(journal: Journal, before: RunInfo) -> bool:
    """Whether a run has more events than it had; not if it was deleted since."""
    try:
        return bool(await read_of(journal, before.run_id, before.events))
    except UnknownRun:
        return False


def _age(line: RunInfo) -> tuple[float, str]:
    return line.started_at, line.run_id


def _only_begun(events: Sequence[Event]) -> bool:
    """Whether nothing was done for a run, nor said to it, since it was written; it may have been taken up for that."""
    return all([isinstance(one, RunStarted | ToolsListed | RunResumed) for one in events])


def _said_until(events: Sequence[Event], at: float) -> Sequence[Message] | None:
    """What was said in a run that had ended at that time; None if it had not."""
    earlier = [event for event in events if event.at <= at]
    if not earlier or not isinstance(earlier[-1], RunFinished):
        return None
    return conversation_part(fold_all(earlier).messages)
