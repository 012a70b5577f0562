"""Carrying: how runs of the agents that are served are begun in this process, and how they go on in it."""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final, Literal

from treadle.agent import Agent
from treadle.conversation import Conversation
from treadle.drivers.beginning import Asked, Begun, begun_anew
from treadle.drivers.checks import all_budgets
from treadle.drivers.configuration import Configuration
from treadle.drivers.conversing import BESIDE, GoneOn, begun_beside
from treadle.drivers.dispatch import cancelled
from treadle.drivers.ended import settle_left
from treadle.drivers.listing import of_callers, with_listed
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.drivers.taking_up import GoingOn, Overtaken, taken_up
from treadle.drivers.watching import RunEvent
from treadle.journal import Journal, JournalDamaged, JournalError, JournalUnavailable, Leases, RunHeld
from treadle.journal.families import every
from treadle.journal.info import RunInfo, RunStatus, Wanted, is_served, told_by
from treadle.journal.ones_own import page_of, read_of
from treadle.kernel.errors import Misuse
from treadle.kernel.events import ToolsListed
from treadle.kernel.stop import Stop
from treadle.serve.conversations import Conversations
from treadle.serve.live import STOPPED, Live
from treadle.serve.refused import Refused, kept, of_journal
from treadle.serve.turns import Place
from treadle.serve.user import User
from treadle.serve.views import Views
from treadle.serve.whose import Whose
from treadle.timetravel.forking import as_forked
from treadle.tools import Tool
from treadle.tools.raised import redacted_text

log = logging.getLogger("treadle.serve")

_AGAIN: Final = 1.0
"""Seconds until a run is tried again for which the journal, or the server, has no room now."""

_ONCE: Final = {"unpaid": "its budget can be used", "unread": "the journal can be used for it"}
"""When a run is taken up that cannot be now, and is to hinder no other meanwhile."""


class Carrying:
    """Begins runs, and has them go on.

    Args:
        agents: by the names that callers use.
        journal: where all their runs are.
        live: drives them.
        views: how they stand.
        conversations: what was said before.
        deps: given a user's name, returns what that user's runs are given as dependencies; may be asynchronous.
    """

    def __init__(
        self,
        agents: Mapping[str, Agent[Any, Any]],
        journal: Journal,
        live: Live,
        views: Views,
        conversations: Conversations,
        deps: Callable[[str], Any] | None,
    ) -> None:
        self._agents, self._journal, self._live = agents, journal, live
        self._views, self._conversations, self._deps = views, conversations, deps

    def agent_of(self, whose: Whose) -> Agent[Any, Any]:
        """The agent of a run. Raises `Refused` if it is not here."""
        agent = self._agents.get(whose.agent)
        if agent is None:
            raise Refused(
                "conflict",
                f"run {whose.top} is of the agent {whose.agent!r}, which this server does not have",
                "Start the server with that agent, go on with the run where it is, or cancel it.",
            )
        return agent

    async def config_of(self, whose: Whose, run_id: str) -> Configuration:
        """The agent of a run as that has it: a fork goes on with the model that it was begun with.

        Raises:
            Refused: the agent is not here, or that model cannot be used here.
        """
        config = self.agent_of(whose)._config
        return as_forked(config, await read_of(self._journal, run_id))

    async def ended(self, whose: Whose, run_id: str, stop: Stop) -> None:
        """Ends a run as cancelled, whoever drives it: with its agent, or where that is gone any that has its budgets.

        Raises:
            Refused: none here has them.
        """
        own = self._agents.get(whose.agent)
        agents = [*self._agents.values()] if own is None else [own]
        for agent in agents:
            try:
                await kept(cancelled(agent._config, run_id, stop))
                return
            except Refused as error:
                if error.kind != "unfit" or agent is agents[-1]:
                    raise

    async def deps_of(self, owner: str) -> Any:
        """What the runs of a user are given as dependencies."""
        found = None if self._deps is None else self._deps(owner)
        return await found if isinstance(found, Awaitable) else found

    async def begun(
        self,
        user: User,
        config: Configuration,
        asked: Asked,
        tools: Sequence[Tool],
        conversation: str | None,
        after: Place | None,
    ) -> str:
        """The id of a run that is begun for the user.

        Args:
            user: whose it is.
            config: its agent.
            asked: what it is begun with, but for dependencies and what was said before in the conversation.
            tools: those that the caller carries out.
            conversation: the name of the user's conversation that it goes on with; None for none.
            after: see `Conversations.lent`.
        """
        asked = asked._replace(deps=await self.deps_of(user.name))
        if conversation is None:
            return await kept(self._live.carry(partial(_begun, config, asked, tools)))
        async with self._conversations.lent(user, conversation, after) as lent:
            asked = asked._replace(conversation=Conversation(lent.said, name=conversation))
            only = partial(self._conversations.only, conversation, lent.newest)
            return await kept(self._live.carry(partial(_begun, config, asked, tools), only))

    async def go_on(self, whose: Whose, run_id: str, going_on: GoingOn) -> None:
        """Has a run go on.

        Raises:
            Refused: it is driven elsewhere, does not stand so that it could go on, or its conversation has gone on
                without it.
            Misuse: an answer does not fit it.
        """
        if await kept(self.ended_beside(whose, run_id)):
            raise Refused("conflict", f"run {run_id} has ended: {BESIDE.detail}", BESIDE.advice)
        config = await kept(self.config_of(whose, run_id))
        deps = await self.deps_of(whose.owner)
        going_on = going_on._replace(deps=deps, last=True, left=True)
        begin = self._live.carry(lambda hear: taken_up(config, run_id, going_on, hear))
        try:
            await begin
        except JournalError as error:
            raise of_journal(error) from error
        except GoneOn as error:
            raise Refused("conflict", str(error), "Say it in the conversation, or fork the run.") from error
        except Overtaken as error:
            raise Refused("conflict", str(error)) from error
        except Misuse as error:
            if going_on.answers:
                raise
            raise Refused("conflict", str(error)) from error

    async def ended_beside(self, whose: Whose, run_id: str) -> bool:
        """Whether a run was begun beside another of its conversation by a server that died; it has ended as such then.

        It is kept, and says so: nobody was told that it had begun, and whoever said it finds what became of it.
        """
        events, driven = await self._views.stands(run_id)
        served_here = is_served(told_by(events).origin)
        if driven or not served_here or not await begun_beside(self._journal, events):
            return False
        log.warning("run %s has ended: %s", run_id, BESIDE.detail, extra={"run_id": run_id, "agent": whose.agent})
        await self.ended(whose, run_id, BESIDE)
        return True

    async def take_up(self) -> None:
        """Goes on with the runs that a server began, and that were under way when its process ended.

        So do those that another began and a server paused as it stopped, for it has said that they will. Those that
        wait for a person stay as they are; so do those that no server had. One that another process has is
        asked for again once its lease may have run out: that process may be the one that died, on another machine. A
        journal that cannot be used yet is waited for; one that cannot be for a run alone, or its budget, after the
        others. Of runs that had ended, or wait, what their process could not give back is given back.
        """
        lease = self._journal.lease if isinstance(self._journal, Leases) else inf
        found = [(line, await self._taken_up(line)) for line in await self._left()]
        configs = {name: agent._config for name, agent in self._agents.items()}
        budgets = {id(one): one for config in configs.values() for one in all_budgets(config)}
        await settle_left([*budgets.values()], configs, self._journal)
        held = [line for line, how in found if how == "held"] if lease < inf else []
        if held:
            await asyncio.sleep(lease)
            found += [(line, await self._taken_up(line)) for line in held]
        for line, how in found:
            if how in _ONCE:
                log.error("run %s is taken up once %s", line.run_id, _ONCE[how], extra=_about(line))
        later = [line for line, how in found if how in _ONCE]
        while later:
            await asyncio.sleep(_AGAIN)
            later = [line for line in later if await self._taken_up(line) in _ONCE]

    async def _left(self) -> list[RunInfo]:
        """The runs that are to be taken up, once the journal can tell."""
        statuses: tuple[RunStatus, ...] = ("running", "waiting")
        is_told = False
        while True:
            try:
                left: list[RunInfo] = []
                for status in statuses:
                    lines = every(self._journal, Wanted(status=status, top=True))
                    left += [line async for line in lines if _is_to_go_on(line)]
                return left
            except JournalUnavailable as error:
                if not is_told:
                    log.error("runs that were left are taken up once the journal can be used: %s", error)
                is_told = True
                await asyncio.sleep(_AGAIN)

    async def _is_away(self) -> bool:
        """Whether the journal cannot be used at all; a run of its own may be what cannot be read."""
        try:
            await page_of(self._journal, 1)
        except JournalUnavailable:
            return True
        return False

    async def _taken_up(self, line: RunInfo) -> Literal["done", "held", "unpaid", "unread"]:
        """Goes on with a run; "held" if another process has it, a word of `_ONCE` if it is to be tried again later."""
        agent = self._agents.get(line.agent)
        while agent is not None:
            try:
                if await self.ended_beside(Whose(line.run_id, line.user, line.agent), line.run_id):
                    return "done"
                events = await read_of(self._journal, line.run_id)
                if not _is_to_go_on(told_by(events)):
                    # Who had it has brought it to its end since, or to a pause that is for a person.
                    return "done"
                going_on = GoingOn(deps=await self.deps_of(line.user), last=True, seen=len(events), left=True)
                await self._live.carry(partial(taken_up, as_forked(agent._config, events), line.run_id, going_on))
            except RunHeld:
                return "held"
            except Overtaken:
                continue
            except BudgetUnavailable:
                return "unpaid"
            except JournalUnavailable as error:
                # What is damaged stays so, and the other runs are to go on.
                if not isinstance(error, JournalDamaged):
                    if not await self._is_away():
                        return "unread"
                    await asyncio.sleep(_AGAIN)
                    continue
                log.warning("run %s was left and could not be taken up: %s", line.run_id, error, extra=_about(line))
            except Refused as error:
                unread = error.kind == "unavailable" and isinstance(error.__cause__, JournalError)
                if unread and not await self._is_away():
                    return "unread"
                if unread or error.kind == "too_many":
                    await asyncio.sleep(_AGAIN)
                    continue
                # A server that stops leaves it to the next.
                if error.kind != "unavailable":
                    log.warning("run %s was left and could not be taken up: %s", line.run_id, error, extra=_about(line))
            except Exception as error:
                # It is there as it was; whoever resumes it is told the same.
                why = redacted_text(str(error), getattr(self._journal, "redact", None))
                log.warning("run %s was left and could not be taken up: %s", line.run_id, why, extra=_about(line))
            return "done"
        return "done"


def _about(line: RunInfo) -> dict[str, object]:
    """The fields of a line of the log about a run."""
    return {"run_id": line.run_id, "agent": line.agent}


def _is_to_go_on(line: RunInfo) -> bool:
    """Whether a server left a run in the middle, whoever began it, as far as that stands in the journal."""
    return line.stop == STOPPED or (line.stop is None and is_served(line.origin))


def served(agent: Agent[Any, Any], name: str, journal: Journal) -> Agent[Any, Any]:
    """The agent under the name by which it is served, which its runs have in the journal."""
    return agent._with(lambda config: dataclasses.replace(config, name=name, journal=journal))


async def _begun(config: Configuration, asked: Asked, tools: Sequence[Tool], hear: Callable[[RunEvent], None]) -> Begun:
    """A new run, whose journal has the tools of the caller from its beginning: whoever has it go on needs them."""
    begun = await begun_anew(config, asked, hear)
    listed = of_callers(config, tools)
    if listed:
        begun.run.feed(ToolsListed(listed, with_listed(begun.run.config, listed).tool_tokens))
    return begun
