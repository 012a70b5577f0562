"""Views: what there is to see of runs, for each user: what they may not see is not there for them."""

import asyncio
import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from treadle.agent import Agent
from treadle.drivers.configuration import Configuration
from treadle.journal import Journal, JournalError, export_runs
from treadle.journal.families import below, every, works_for
from treadle.journal.info import RunInfo, Wanted, told_by, unknown
from treadle.journal.ones_own import holders_of, page_of, read_of, seen_with, standing_of
from treadle.journal.standing import Standing, kept_as, standing
from treadle.kernel.events import Event
from treadle.kernel.state import RunState
from treadle.result import RunResult, result_of
from treadle.serve.feed import Numbered, Piece
from treadle.serve.health import Health
from treadle.serve.live import Live
from treadle.serve.refused import Refused, kept, of_journal
from treadle.serve.user import User
from treadle.serve.veil import veiled, veiled_agent, veiled_line, veiled_piece
from treadle.serve.verdicts import Waits, waits_of
from treadle.serve.whose import Owners
from treadle.timetravel.figures import Statistics
from treadle.timetravel.parting import Diff, diff_of
from treadle.timetravel.statistics import statistics
from treadle.timetravel.waterfall import Waterfall, waterfall

_PAGE: Final = 200
_LOOKED_THROUGH: Final = 10_000
"""Runs that are looked at together, and at most, for those that stand as they are wanted: the journal knows of an end
that it is one, and not which."""


class Described(NamedTuple):
    """A run, as far as it is.

    Attributes:
        line: the run in one line.
        state: what has happened, folded.
        events: its events.
        result: what has come of it.
        waits: the calls that wait for a person, or that a crash cut off.
        driven: whether some process drives it, as far as the journal can tell.
        below: lines of the runs that work for it, at any depth.
    """

    line: RunInfo
    state: RunState
    events: Sequence[Event]
    result: RunResult[Any]
    waits: tuple[Waits, ...]
    driven: bool
    below: Sequence[RunInfo]


class Views:
    """What there is to see of the runs of some agents.

    Args:
        agents: by the names that callers use.
        journal: where all their runs are.
        live: drives those that are driven here.
        owners: whose they are.
        health: whether the journal is the one that it was.
    """

    def __init__(
        self, agents: Mapping[str, Agent[Any, Any]], journal: Journal, live: Live, owners: Owners, health: Health
    ) -> None:
        self._agents, self._journal, self._live = agents, journal, live
        self._owners, self._health = owners, health
        self._adding_up = asyncio.Lock()

    async def list(
        self, user: User, wanted: Wanted, limit: int, before: tuple[float, str] | None, status: Standing | None = None
    ) -> tuple[Sequence[RunInfo], RunInfo | None]:
        """Runs that the user may see, those that started last first, and from where to go on; None at the end.

        Args:
            user: who asks.
            wanted: which of them.
            limit: how many at most. There may be fewer, and still more to come, where many are looked through.
            before: start and id of the run from where to go on.
            status: how they stand; None for any.
        """
        if user.sees == "own":
            if wanted.user not in (None, user.name):
                return [], None
            wanted = replace(wanted, user=user.name)
        if status is not None:
            wanted = replace(wanted, status=kept_as(status))
        last = None if before is None else unknown(before[1], before[0])
        found: builtins.list[RunInfo] = []
        size = limit if status is None else max(limit, _PAGE)
        for _ in range(_LOOKED_THROUGH // _PAGE):
            page = await page_of(self._journal, size, last, wanted)
            for line in page:
                last = line
                if user.may_see(line.user, line.agent) and (status is None or standing(line) == status):
                    found.append(line if user.inside else veiled_line(line))
                    if len(found) == limit:
                        return found, line
            if len(page) < size:
                return found, None
        return found, last

    async def describe(self, user: User, run_id: str) -> Described:
        """A run and all that is known of it."""
        await self._owners.seen(user, run_id)
        read, driven = await self.stands(run_id)
        events = _shown(user, read)
        state, line = standing_of(events), told_by(events)
        waits: tuple[Waits, ...] = ()
        # Whoever paused it may have it still, for a moment in which it waits already.
        if state.phase == "paused" or (not driven and state.phase != "finished"):
            waits = await waits_of(self._agents, state, self._journal)
        lines = {one.run_id: one async for one in every(self._journal, Wanted(text=f"{run_id}.")) if _is_of(one, state)}
        under = [lines[one] for one in below(lines.values(), {run_id}).get(run_id, ())]
        if not user.inside:
            under = [*map(veiled_line, under)]
        # Of one that has ended its lease is given back a moment later.
        is_driven = driven and state.phase != "finished"
        return Described(line, state, events, result_of(state, None, events), waits, is_driven, under)

    async def look(self, user: User, run_id: str, *, decides: bool = False) -> None:
        """Looks whether there is such a run for the user, and whether they may decide on it, if they want to.

        Raises:
            Refused: there is none, or they may not.
        """
        await (self._owners.decided_on if decides else self._owners.seen)(user, run_id)

    async def events(
        self, user: User, run_id: str, after: int = 0, limit: int | None = None
    ) -> builtins.list[Numbered]:
        """The events of a run after number `after`; at most `limit`, if there is one."""
        await self._owners.seen(user, run_id)
        stored = _shown(user, await self._read(run_id, after))
        return [Numbered(number, event) for number, event in enumerate(stored[:limit], after + 1)]

    async def follow(
        self, user: User, run_id: str, after: int = 0, *, pieces: bool = True, until_pause: bool = False
    ) -> AsyncGenerator[Numbered | Piece]:
        """The events of a run from number `after` + 1 on, those stored and then each new one, whoever drives it.

        With `pieces` what is shown live comes between them, where the run is driven here. It ends when the run has
        finished; with `until_pause` also where it waits.
        """
        batches = self.batches(user, run_id, after, pieces=pieces, until_pause=until_pause)
        async with aclosing(batches):
            async for batch in batches:
                for one in batch:
                    yield one

    async def batches(
        self, user: User, run_id: str, after: int = 0, *, pieces: bool = True, until_pause: bool = False
    ) -> AsyncGenerator[Sequence[Numbered | Piece]]:
        """The same, what is there at once together."""
        await self._owners.seen(user, run_id)
        try:
            async for batch in self._live.follow(run_id, after, pieces=pieces, until_pause=until_pause):
                yield batch if user.inside else [one for one in map(_veiled, batch) if one is not None]
        except JournalError as error:
            self._health.check()
            raise of_journal(error) from error

    async def opened(self, user: User, run_id: str) -> tuple[Sequence[Event], Configuration | None]:
        """The events of a run, and its agent, if that is here."""
        whose = await self._owners.seen(user, run_id)
        agent = self._agents.get(whose.agent) if whose.top == run_id else None
        events = _shown(user, await self._read(run_id))
        if agent is None or user.inside:
            return events, None if agent is None else agent._config
        return events, veiled_agent(agent._config)

    async def lines(self, user: User, run_id: str) -> bytes:
        """The run and those that work for it, as lines of JSON that `treadle runs import` takes.

        All of them, before any is sent: of a run that is deleted meanwhile half is told to nobody.
        """
        await self._owners.seen(user, run_id)
        if not user.inside:
            raise Refused("forbidden", "a whole run is for who may see its inside", "Take it as Markdown or HTML.")
        return await kept(_whole(export_runs(self._journal, [run_id])))

    async def diff(self, user: User, a: str, b: str) -> Diff:
        """Where two runs part."""
        for run_id in (a, b):
            await self._owners.seen(user, run_id)
        return diff_of(*[_shown(user, await self._read(run_id)) for run_id in (a, b)])

    async def waterfall(self, user: User, run_id: str) -> Waterfall:
        """Where the time of a run went."""
        await self._owners.seen(user, run_id)
        return await kept(waterfall(self._journal, run_id))

    async def statistics(
        self, user: User, *, since: float | None, until: float | None, agent: str | None, model: str | None
    ) -> Statistics:
        """Figures over the runs that the user may see; one such question is answered at a time."""
        if agent is not None and not user.may_use(agent):
            raise Refused("not_found", f"there is no agent {agent!r:.100}")
        if agent is None and user.agents is not None:
            raise Refused("unfit", "say of which agent", f"You may use: {', '.join(user.agents) or 'none'}.")
        whose = None if user.sees == "all" else user.name
        async with self._adding_up:
            told = statistics(self._journal, since=since, until=until, agent=agent, model=model, user=whose)
            return await kept(told)

    async def stands(self, run_id: str) -> tuple[builtins.list[Event], bool]:
        """The events of a run, and whether somebody drives it; whoever asks."""

        async def driven() -> bool:
            return run_id in await holders_of(self._journal, [run_id]) or run_id in self._live.driven

        return await kept(seen_with(self._journal, run_id, driven))

    async def _read(self, run_id: str, start: int = 0) -> builtins.list[Event]:
        return await kept(read_of(self._journal, run_id, start))


async def _whole(lines: AsyncIterator[bytes]) -> bytes:
    return b"".join([line async for line in lines])


def _is_of(line: RunInfo, state: RunState) -> bool:
    """Whether a run whose id begins with that of the run in `state` is not one that a deleted run of its name left."""
    link = line.parent
    return link is None or link.run_id != state.run_id or works_for(link, state.started_at)


def _shown(user: User, events: builtins.list[Event]) -> builtins.list[Event]:
    """The events as the user may see them."""
    return events if user.inside else [veiled(event) for event in events]


def _veiled(one: Numbered | Piece) -> Numbered | Piece | None:
    if isinstance(one, Numbered):
        return Numbered(one.number, veiled(one.event))
    shown = veiled_piece(one.event)
    return None if shown is None else Piece(one.after, shown)
