"""Conversations: runs that go on with each other, apart by user. They are what the journal has of them, and a title.

A conversation is the runs that were begun under its name; what was said in it is what the last of them ended with. So
a conversation that nobody speaks in costs nothing but its rows.
"""

import asyncio
import builtins
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, NamedTuple

from treadle.drivers.conversing import BESIDE, in_the_way, last_of, lines_of
from treadle.drivers.lease import undriven
from treadle.journal import Journal, JournalDamaged, JournalError, JournalUnavailable, RunHeld, Titles, UnknownRun
from treadle.journal.families import delete_family, every, family, is_there
from treadle.journal.info import RunInfo, Wanted, told_by, unknown
from treadle.journal.ones_own import page_of, read_of, standing_of, told_as_its_own
from treadle.kernel.messages import Message
from treadle.serve.posting import AGAIN
from treadle.serve.refused import Refused, kept, of_journal
from treadle.serve.turns import Place, Turn, answer_of, turn_at, turns
from treadle.serve.user import User
from treadle.serve.veil import veiled_line

MOST_NAME: Final = 200
"""Characters of a conversation's name."""

_PAGE: Final = 100

_LOOK: Final = 0.05
"""Seconds until it is looked again whether a run that is to be deleted goes on."""

_LATELY: Final = 20
"""Runs of a conversation, of those that the user may see, that are looked through for a message that was said before,
at most.
"""


class Told(NamedTuple):
    """A conversation.

    Attributes:
        name: by which it is continued.
        title: what its user calls it; else how the run that is shown of it was asked.
        user: whose it is.
        last: its newest run.
    """

    name: str
    title: str
    user: str
    last: RunInfo


class Lent(NamedTuple):
    """What was said in a conversation, and its last run as it was then; None in a new one."""

    said: Sequence[Message]
    newest: RunInfo | None


class Conversations:
    """The conversations in a journal.

    Args:
        journal: where their runs are, and their titles, if it keeps any.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lent: set[tuple[str, str]] = set()

    async def list(
        self, user: User, limit: int, before: tuple[float, str] | None
    ) -> "tuple[builtins.list[Told], RunInfo | None]":
        """The user's conversations, those that were spoken in last first, and from where to go on; None at the end.

        Args:
            user: whose they are.
            limit: how many at most.
            before: start and id of the run from where to go on.
        """
        found: dict[str, RunInfo] = {}
        last = None if before is None else unknown(before[1], before[0])
        wanted = Wanted(user=user.name, top=True)
        earlier = set[str]() if before is None else await self._spoken_in_since(wanted, before)
        while True:
            page = await page_of(self._journal, _PAGE, last, wanted)
            for line in page:
                last = line
                name = line.conversation
                if not name or name in found or name in earlier or not user.may_use(line.agent) or line.stop == BESIDE:
                    continue
                found[name] = line
                if len(found) == limit:
                    return await self._told(user, found), line
            if len(page) < _PAGE:
                return await self._told(user, found), None

    async def _spoken_in_since(self, wanted: Wanted, place: tuple[float, str]) -> set[str]:
        """The conversations that stood on an earlier page than the one that begins at `place`."""
        names, last = set[str](), None
        while page := await page_of(self._journal, _PAGE, last, wanted):
            for line in page:
                if (line.started_at, line.run_id) < place:
                    return names
                names.add(line.conversation)
            last = page[-1]
        return names

    async def find(self, user: User, name: str) -> Told:
        """A conversation of the user's. Raises `Refused` if there is none of that name."""
        newest = await self.newest(user, name)
        if newest is None:
            raise Refused("not_found", f"there is no conversation {name!r:.200}")
        (told,) = await self._told(user, {name: newest})
        return told

    async def said(self, user: User, name: str) -> Sequence[Message]:
        """What was said in it so far, the run under way included as if it ended now."""
        while True:
            last = (await self.find(user, name)).last
            try:
                return await self.said_until(last)
            except Refused as error:
                if not await self.lost(error, [last]):
                    raise

    async def lost(self, error: Refused, lines: Iterable[RunInfo]) -> bool:
        """Whether that was refused as one of these runs was deleted since: then it is looked at what is left."""
        return error.kind == "not_found" and not all([await is_there(self._journal, one.run_id) for one in lines])

    async def runs(self, user: User, name: str, limit: int) -> Sequence[RunInfo]:
        """Its runs that the user may see, newest first, `limit` at most."""
        found: list[RunInfo] = []
        async for line in lines_of(self._journal, user.name, name):
            if len(found) == limit:
                break
            if user.may_use(line.agent):
                found.append(_shown(user, line))
        return found

    async def lately(self, user: User, name: str) -> Sequence[RunInfo]:
        """Its newest run, and those before it in which something happened of late."""
        since = time.time() - AGAIN
        lines = [line for line in await self.runs(user, name, _LATELY) if line.stop != BESIDE]
        return [line for place, line in enumerate(lines) if place == 0 or line.updated_at > since]

    async def entitle(self, user: User, name: str, title: str) -> None:
        """Calls it by a title; an empty one takes its title away."""
        if not isinstance(self._journal, Titles):
            raise Refused("conflict", "this journal keeps no titles")
        with told_as_its_own(self._journal):
            await self._journal.entitle(user.name, name, title.strip() or None)

    async def delete(self, user: User, name: str) -> None:
        """Removes it with all its runs that the user may see, but for those that are begun in it meanwhile.

        Raises:
            Refused: one of them is under way, or there is no such conversation.
        """
        await self.find(user, name)
        if user.decides == "nothing":
            raise Refused("forbidden", "you may look at conversations, and not delete any")
        its = Wanted(user=user.name, conversation=name, top=True)
        there = {line.run_id async for line in every(self._journal, its) if user.may_use(line.agent)}
        while runs := [line async for line in every(self._journal, its) if line.run_id in there]:
            for line in runs:
                if line.status == "running":
                    raise _busy(name, line, "is not deleted")
            for line in runs:
                try:
                    async with undriven(self._journal, line.run_id):
                        await delete_family(self._journal, await family(self._journal, line.run_id))
                except UnknownRun:
                    # Another has deleted it, and the others are still to be.
                    continue
                except RunHeld:
                    # It goes on just now, or is let go, or another deletes it: the next look tells.
                    await asyncio.sleep(_LOOK)
                    break
        if isinstance(self._journal, Titles) and not await page_of(self._journal, 1, None, its):
            with told_as_its_own(self._journal):
                await self._journal.entitle(user.name, name, None)

    @asynccontextmanager
    async def lent(self, user: User, name: str, after: Place | None = None) -> AsyncIterator[Lent]:
        """What was said in a conversation, for a run that is begun in it meanwhile; nothing in a new one.

        Args:
            user: whose it is.
            name: of the conversation.
            after: where it is gone on with, if not at its end. What was said since is left out.

        Raises:
            Refused: a run of it is under way or waits, the name cannot be used, or it has no such run.
        """
        _check_name(name)
        with self.alone(user.name, name):
            yield await self._lent_now(user, name, after)

    async def _lent_now(self, user: User, name: str, after: Place | None) -> Lent:
        while True:
            newest = await kept(last_of(lines_of(self._journal, user.name, name)))
            if newest is not None and not user.may_use(newest.agent):
                raise Refused(
                    "conflict",
                    f"conversation {name!r:.200} takes no message: it has gone on with an agent that you may not use",
                    "Begin another conversation.",
                )
            if newest is not None and newest.status != "finished":
                raise _busy(name, newest)
            if newest is not None and newest.started_at > time.time():
                # It would stand before that one, and the conversation would go on without it.
                raise Refused(
                    "unavailable",
                    f"run {newest.run_id} of conversation {name!r:.200} began at a time that is yet to come here",
                    "The clocks of the servers differ: set them, or try again later.",
                    newest.started_at - time.time(),
                )
            run_id, number = answer_of("" if after is None else after.answer)
            until = newest if after is None else await self._of(user, name, run_id) if after.answer else None
            before = None if after is None else await kept(self._before(user, name, after.message, run_id))
            if until is None or before is not None:
                return Lent(before or [], newest)
            try:
                said = self.said_until(until) if after is None else self.said_until(until, number, after.message)
                return Lent(await said, newest)
            except Refused as error:
                if not await self.lost(error, [until]):
                    raise

    @contextmanager
    def alone(self, user: str, name: str) -> Iterator[None]:
        """Keeps others of this process from beginning, or going on with, a run of the conversation meanwhile."""
        key = (user, name)
        if key in self._lent:
            raise _busy(name, None)
        self._lent.add(key)
        try:
            yield
        finally:
            self._lent.discard(key)

    async def only(self, name: str, newest: RunInfo | None, run_id: str) -> None:
        """Looks whether run `run_id`, which stands in the journal now, is the one that goes on after `newest`.

        Several servers may have begun one at the same moment; nothing was done yet for any of them.

        Raises:
            Refused: another one is. It is removed then, and whoever posted it is told.
        """
        try:
            other = await in_the_way(self._journal, run_id, newest)
        except JournalError:
            # Whoever posted it is told that it was not taken; left there, it would have the conversation wait for it.
            with suppress(JournalError):
                await self._take_back(run_id)
            raise
        if other is not None:
            await self._take_back(run_id)
            raise _busy(name, other)

    async def _take_back(self, run_id: str) -> None:
        try:
            with told_as_its_own(self._journal):
                await self._journal.delete(run_id)
        except JournalUnavailable:
            # It may be gone all the same, and only the file not be cleaned up while another process reads it.
            if await is_there(self._journal, run_id):
                raise

    async def _of(self, user: User, name: str, run_id: str) -> RunInfo:
        """The line of a run that belongs to the conversation. Raises `Refused` if it does not, or has not ended."""
        try:
            line = told_by(await read_of(self._journal, run_id))
        except (UnknownRun, JournalDamaged):
            line = unknown(run_id, 0.0)
        if (line.user, line.conversation, line.status) != (user.name, name, "finished"):
            raise Refused("conflict", f"conversation {name!r:.200} has no run {run_id!r:.100} that has ended")
        return line

    async def newest(self, user: User, name: str) -> RunInfo | None:
        """The newest of its runs that the user may see; None if there is no such conversation for the user."""
        lines = lines_of(self._journal, user.name, name)
        found = await kept(last_of(line async for line in lines if user.may_use(line.agent)))
        return None if found is None else _shown(user, found)

    async def said_until(self, line: RunInfo, number: int | None = None, message: str = "") -> Sequence[Message]:
        """What had been said when a run of it ended, or if it ended now.

        With a `number`, when the answer of it ended that was under way when it had so many events, or when a `message`
        of that name was said to it.
        """
        said = await self.turns(line)
        return said[-1].said if number is None else turn_at(said, number, message).said

    async def _before(self, user: User, name: str, message: str, after: str) -> Sequence[Message] | None:
        """What had been said when a message of that name was said to a run under way that began after the run `after`.

        Whoever says it before the run has said anything has nothing of the run to go by. None if nobody did.
        """
        async for line in lines_of(self._journal, user.name, name):
            if line.run_id == after or not message:
                break
            if not user.may_use(line.agent):
                continue
            try:
                told = [one for one in await self.turns(line) if message in one.origin.split()]
            except Refused as error:
                if error.kind == "unavailable":
                    raise
                continue
            if told:
                return told[-1].said
        return None

    async def turns(self, line: RunInfo) -> Sequence[Turn]:
        """The answers of a run of it, of which the last ends as if it ended now."""
        try:
            events = await read_of(self._journal, line.run_id)
            standing_of(events)
        except JournalError as error:
            raise of_journal(error) from error
        return turns(events)

    async def _told(self, user: User, found: dict[str, RunInfo]) -> "builtins.list[Told]":
        with told_as_its_own(self._journal):
            titles = await self._journal.titles(user.name, found) if isinstance(self._journal, Titles) else {}
        return [
            Told(name, titles.get(name) or line.question, user.name, _shown(user, line)) for name, line in found.items()
        ]


def _shown(user: User, line: RunInfo) -> RunInfo:
    """A run as the user may see it."""
    return line if user.inside else veiled_line(line)


def _check_name(name: str) -> None:
    # It stands in addresses, where browsers take "." and ".." for steps, escaped too.
    if not name.strip() or len(name) > MOST_NAME or not name.isprintable() or "/" in name or name in (".", ".."):
        raise Refused(
            "unfit",
            f"a conversation's name is a text of at most {MOST_NAME} characters that can be seen, without '/'; it is "
            "neither '.' nor '..'",
            "A UUID will do, or let POST /api/conversations give you one.",
        )


def _busy(name: str, line: RunInfo | None, how: str = "takes no message") -> Refused:
    what, advice = "a run of it is under way", "Wait until it has ended, or cancel it; if nobody drives it, resume it."
    if line is not None and line.status == "damaged":
        what, advice = f"its run {line.run_id} is damaged and cannot be read", "Delete that run."
    elif line is not None and line.status == "finished":
        what, advice = f"it has just gone on with run {line.run_id}", "Look at that, and say it again."
    elif line is not None and line.status == "waiting":
        what = f"its run {line.run_id} waits"
        advice = "Decide on what it waits for, resume it if somebody paused it, or cancel it."
    elif line is not None:
        what = f"its run {line.run_id} is under way"
    return Refused("conflict", f"conversation {name!r:.200} {how} now: {what}", advice)
