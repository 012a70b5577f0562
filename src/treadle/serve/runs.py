"""Runs: everything that can be done with runs over a network, for a user, and whatever the protocol.

Each method takes the user first, and does nothing that they may not have done: what they may not see is not there for
them. What is refused is a `Refused`, which knows its HTTP status. What there is to see is in `views`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from treadle.agent import Agent
from treadle.conversation import Conversation
from treadle.drivers.beginning import Asked, Begun
from treadle.drivers.checks import Input, asked_of, stopped_by
from treadle.drivers.lease import may_hold_money, undriven
from treadle.drivers.taking_up import GoingOn, taken_up
from treadle.drivers.unsettled import unsettled
from treadle.drivers.watching import RunEvent
from treadle.journal import Journal, JournalError, RunHeld
from treadle.journal.families import delete_family, family
from treadle.journal.info import SERVED, told_by
from treadle.journal.ones_own import read_of, standing_of
from treadle.journal.redaction import as_kept
from treadle.kernel.errors import IllegalEvent, Misuse
from treadle.kernel.events import MessageAdded, RunFinished, RunPaused
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import Message
from treadle.kernel.stop import Limits, Stop, stopped
from treadle.serve.asked_again import AskedAgain
from treadle.serve.carrying import Carrying, served
from treadle.serve.conversations import Conversations
from treadle.serve.health import Health
from treadle.serve.live import Live
from treadle.serve.posting import Posting
from treadle.serve.refused import Refused, kept, of_journal
from treadle.serve.turns import Place
from treadle.serve.user import User
from treadle.serve.verdicts import Verdict, answers_of, waits_of
from treadle.serve.views import Views
from treadle.serve.whose import Owners, Whose
from treadle.timetravel.forking import Forked, begin_fork
from treadle.timetravel.replay import Replay
from treadle.tools import Tool

_LOOKS: Final = 20
_LOOK: Final = 0.05
"""How often, and after how many seconds each, it is looked whether a run that is to be deleted is driven by nobody."""


class Runs:
    """The runs of some agents, in one journal.

    Args:
        agents: by the names that callers use.
        journal: where all their runs are.
        live: drives them.
        deps: given a user's name, returns what that user's runs are given as dependencies; may be asynchronous.
        starting: called before a user begins a run or has one go on; raises `Refused` if that is too often.

    Attributes:
        health: whether what is told of them can be true.
        views: what there is to see of them.
        conversations: the conversations that they make up.
        carrying: how they are begun and go on here.
        again: those of requests that come again.
    """

    def __init__(
        self,
        agents: Mapping[str, Agent[Any, Any]],
        journal: Journal,
        live: Live,
        deps: Callable[[str], Any] | None = None,
        starting: Callable[[User], None] = lambda _: None,
    ) -> None:
        self.agents = {name: served(agent, name, journal) for name, agent in agents.items()}
        self.journal, self.live = journal, live
        self.conversations = Conversations(journal)
        self._owners = Owners(journal)
        self.health = Health(journal)
        self.views = Views(self.agents, journal, live, self._owners, self.health)
        self.carrying = Carrying(self.agents, journal, live, self.views, self.conversations, deps)
        self.again = AskedAgain(journal, self.views, self.carrying)
        self._starting = starting
        self._naming: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def agent(self, user: User, name: str) -> Agent[Any, Any]:
        """The agent of that name. Raises `Refused` if there is none that the user may use."""
        agent = self.agents.get(name)
        if agent is None or not user.may_use(name):
            usable = ", ".join(one for one in self.agents if user.may_use(one)) or "none"
            raise Refused("not_found", f"there is no agent {name!r:.100}", f"There is: {usable}.")
        return agent

    def is_typed(self, name: str) -> bool:
        """Whether the answers of the agent of that name have a type, as far as it is still there."""
        agent = self.agents.get(name)
        return agent is not None and agent._config.output is not None

    async def start(
        self,
        user: User,
        agent: str,
        input: Input,
        *,
        conversation: str | None = None,
        after: Place | None = None,
        history: Sequence[Message] = (),
        limits: Limits | None = None,
        tools: Sequence[Tool] = (),
        posting: Posting | None = None,
    ) -> str:
        """Begins a run of `agent` and has it driven here: its id, once it stands in the journal.

        A named request that comes again begins nothing: the id is that of the run which it began.

        Args:
            user: whose it is.
            agent: the agent's name.
            input: the question; None if `history` ends with it.
            conversation: the name of the user's conversation that it goes on with; a new one, if there is none.
            after: where in it it goes on, if not at its end: see `Conversations.lent`.
            history: what was said before, where there is no conversation.
            limits: in place of the agent's; for most users each at most what the agent's is.
            tools: further tools for this run: those that the caller carries out, and that it waits for. One that is
                called like one of the agent's does not count.
            posting: what names the request, if it is to be known again.
        """
        if not user.begins:
            raise Refused("forbidden", "you may look at runs, and not begin any")
        config = self.agent(user, agent)._config
        if not all(one.external and one.wait for one in tools):
            raise Misuse("further tools of a run are external tools that are waited for: the caller carries them out")
        limits = _bounded(user, limits, config.limits)
        told = Asked(input, limits=limits, user=user.name, origin=SERVED)
        talk = Conversation(history) if history else None
        if posting is None or posting.run_id is None:
            self._starting(user)
            told = told._replace(conversation=talk, origin=SERVED if posting is None else posting.origin)
            return await self.carrying.begun(user, config, told, tools, conversation, after)
        told = told._replace(conversation=talk, origin=posting.origin, run_id=posting.run_id)
        async with self._naming.setdefault(posting.run_id, asyncio.Lock()):
            found = await self.again.answering(user, posting)
            if found is not None:
                return found
            self._starting(user)
            try:
                return await self.carrying.begun(user, config, told, tools, conversation, after)
            except Refused as error:
                # Another server was asked as well, and was faster.
                found = await self.again.answering(user, posting) if error.kind == "conflict" else None
                if found is None:
                    raise
                return found

    async def decide(
        self,
        user: User,
        run_id: str,
        verdicts: Sequence[Verdict],
        *,
        message: str | None = None,
        origin: str = SERVED,
        seen: int | None = None,
    ) -> None:
        """Records what is decided of calls that wait, and what is said beside it, and has the run go on here.

        `origin` is what says the message (`Posting.said`). With `seen`, only if the run has that many events still.

        Raises:
            Refused: a call does not wait (any more) under this fingerprint, or somebody else decides ("conflict"); the
                edited arguments do not fit ("unfit"). Nothing was decided then.
        """
        whose = await self._owners.decided_on(user, run_id)
        await self.live.settled(run_id)
        state = standing_of(await kept(read_of(self.journal, run_id)))
        waiting = {one.pending.call_id: one for one in await waits_of(self.agents, state, self.journal)}
        answers = answers_of(verdicts, waiting, run_id)
        self._starting(user)
        try:
            await self.carrying.go_on(whose, run_id, GoingOn(answers, message, by=user.name, origin=origin, seen=seen))
        except Misuse as error:
            # Somebody else may have decided between the look and the record.
            state = standing_of(await kept(read_of(self.journal, run_id)))
            left = {one.key for one in await unsettled(state, self.journal)}
            raise Refused("unfit" if left.issuperset(answers.calls) else "conflict", str(error)) from error

    async def say(self, user: User, run_id: str, text: str, origin: str = SERVED, seen: int | None = None) -> None:
        """Says something to a run that is driven here; its model is shown it at its next call.

        `origin` is what says it (`Posting.said`). With `seen`, only if no more than that had happened when it was taken
        up here.
        """
        await self._owners.decided_on(user, run_id)
        driven = self.live.driven.get(run_id)
        if driven is None or (seen is not None and driven.hearing.base > seen):
            raise Refused(
                "conflict",
                f"run {run_id} is not under way in this server",
                "If it waits or has ended, resume it with a message.",
            )
        try:
            question = asked_of(text)
            if question is None:
                raise Misuse("there is nothing in the text")
            # Where it cannot be kept it is refused, and does not end the run that is told it.
            as_kept(question, getattr(self.journal, "redact", None))
            driven.run.feed(MessageAdded(question, origin, by=user.name))
        except IllegalEvent as error:
            raise Refused("conflict", f"run {run_id} takes no message now: it ends or pauses") from error
        except Misuse as error:
            raise Refused("unfit", str(error)) from error
        except JournalError as error:
            raise of_journal(error) from error
        await kept(driven.run.commit())

    async def cancel(self, user: User, run_id: str) -> None:
        """Ends a run as cancelled, whoever drives it; one that has finished stays as it is."""
        whose = await self._owners.decided_on(user, run_id)
        if whose.top != run_id and not isinstance((await kept(self.journal.read(run_id)))[-1], RunFinished):
            raise _part_of(whose, run_id, "Cancel that one.")
        driven = self.live.driven.get(run_id)
        stop = stopped("cancelled", f"by {user.name}")
        if driven is not None:
            driven.cancel(stop)
            await driven.over.wait()
        elif await kept(self.carrying.ended_beside(whose, run_id)):
            return
        # One that is driven here may have paused in that very moment.
        await self.carrying.ended(whose, run_id, stop)

    async def pause(self, user: User, run_id: str) -> None:
        """Has a run that is driven here pause after the step under way."""
        await self._owners.decided_on(user, run_id)
        driven = self.live.driven.get(run_id)
        if driven is None:
            raise Refused(
                "conflict", f"run {run_id} is not under way in this server", "Look at how it stands: it may have ended."
            )
        driven.run.pause_wanted = RunPaused(Stop("waiting", f"paused by {user.name}", "Resume the run."), by=user.name)

    async def resume(
        self,
        user: User,
        run_id: str,
        *,
        limits: Limits | None = None,
        message: str | None = None,
        origin: str = SERVED,
        seen: int | None = None,
    ) -> None:
        """Goes on with a run that is paused, that a limit stopped, or whose process died; of a conversation, its last.

        `origin` is what says the message (`Posting.said`). With `seen`, only if it has that many events still.
        """
        whose = await self._owners.decided_on(user, run_id)
        await self.live.settled(run_id)
        limits = _bounded(user, limits, self.carrying.agent_of(whose).limits)
        self._starting(user)
        events = await kept(self.journal.read(run_id))
        budget = stopped_by(self.carrying.agent_of(whose)._config, fold_all(events).stop)
        going_on = GoingOn(message=message, limits=limits, budget=budget, by=user.name, origin=origin, seen=seen)
        line = told_by(events)
        if not line.conversation or line.parent is not None:
            return await self.carrying.go_on(whose, run_id, going_on)
        with self.conversations.alone(line.user, line.conversation):
            await self.carrying.go_on(whose, run_id, going_on)

    async def fork(
        self,
        user: User,
        run_id: str,
        at: int,
        *,
        message: str | None = None,
        instructions: str | None = None,
        tool_results: Mapping[str, Any] | None = None,
        model: str | None = None,
        limits: Limits | None = None,
    ) -> str:
        """Goes on from the beginning of step `at` as a run of its own, of the same owner: its id."""
        whose = await self._owners.decided_on(user, run_id)
        agent = self.carrying.agent_of(whose)
        if (model is not None or instructions is not None) and not user.raises_limits:
            raise Refused("forbidden", "you may choose neither the model nor the instructions")
        self._starting(user)
        asked = Forked(
            at, message, tool_results, model, _bounded(user, limits, agent.limits),
            await self.carrying.deps_of(whose.owner), by=user.name, origin=SERVED, instructions=instructions,
        )  # fmt: skip
        # With another it does without the one before, which may not be here any more.
        config = agent._config if model is not None else await kept(self.carrying.config_of(whose, run_id))

        async def forked(hear: Callable[[RunEvent], None]) -> Begun:
            # Not before: who is told that there is no room for it now, and to try again, would have two of them.
            fork = await begin_fork(config, run_id, asked)
            assert isinstance(fork, str)  # noqa: S101 - there is a journal
            return await taken_up(asked.applied_to(config), fork, going_on, hear)

        going_on = GoingOn(deps=asked.deps, by=user.name, left=True)
        return await kept(self.live.carry(forked))

    async def delete(self, user: User, run_id: str) -> None:
        """Removes a run and those that work for it; one that is under way, or was left in the middle, is ended first.

        Whoever drives it begins nothing below it any more then, and what was set aside for it is counted. One that
        works for another is part of that, which would have it done anew, and paid, if it went on.
        """
        whose = await self._owners.decided_on(user, run_id)
        for looks_left in reversed(range(_LOOKS)):
            last = (await kept(self.journal.read(whose.top)))[-1]
            if whose.top != run_id and not isinstance(last, RunFinished):
                raise _part_of(whose, run_id, "Delete that one.")
            await self.live.settled(whose.top)
            if not isinstance(last, RunFinished | RunPaused):
                await self._ended(user, whose)
            try:
                async with undriven(self.journal, whose.top):
                    if await kept(may_hold_money(self.journal, whose.top, await kept(family(self.journal, whose.top)))):
                        raise Refused(
                            "conflict",
                            f"run {whose.top} was left in the middle under a budget, and what that set aside for it, "
                            "if anything, would stay so for ever",
                            "Have it go on, or cancel it, where its agent is; then delete it.",
                        )
                    await kept(delete_family(self.journal, await kept(family(self.journal, run_id))))
                return
            except RunHeld as error:
                # Somebody has just had it go on, or deletes it as well.
                if not looks_left:
                    raise of_journal(error) from error
            await asyncio.sleep(_LOOK)

    async def _ended(self, user: User, whose: Whose) -> None:
        """Cancels a run that is to be deleted, if that can be done here."""
        try:
            await self.cancel(user, whose.top)
        except Refused as error:
            # One whose budget is not here any more is nobody's to end; whether it may hold money is looked at next.
            if error.kind != "unfit":
                raise

    async def replay(self, user: User, run_id: str) -> Replay:
        """Carries a run out again with its agent, with no model and no tool, and says where it comes out otherwise."""
        whose = await self._owners.seen(user, run_id)
        if not user.inside:
            raise Refused("forbidden", "a run is carried out again by who may see its inside")
        agent = self.carrying.agent_of(whose)
        deps = await self.carrying.deps_of(whose.owner)
        return await kept(agent.replay(run_id, deps=deps, recorded_limits=True))


def _part_of(whose: Whose, run_id: str, advice: str) -> Refused:
    return Refused("conflict", f"run {run_id} works for run {whose.top}, and goes on or ends with it", advice)


def _bounded(user: User, asked: Limits | None, most: Limits) -> Limits | None:
    """The limits that a run of the user's may have."""
    if asked is None or user.raises_limits:
        return asked
    return Limits(**{name: _lower(getattr(asked, name), getattr(most, name)) for name in Limits.__struct_fields__})


def _lower(asked: Any, most: Any) -> Any:
    return most if asked is None else asked if most is None else min(asked, most)
