"""Runs: everything that can be done with runs over a network, for a user, and whatever the protocol.

Each method takes the user first, and gives or does nothing that they may not have: what they may not see is not there
for them. What is refused is a `Refused`, which knows its HTTP status.
"""

import asyncio
import builtins
import dataclasses
import logging
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from math import inf
from typing import Any, Literal, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from treadle.agent import Agent
from treadle.conversation import Conversation
from treadle.drivers.answers import Answers
from treadle.drivers.beginning import Asked, begun_anew
from treadle.drivers.checks import Input, asked_of
from treadle.drivers.configuration import Configuration
from treadle.drivers.dispatch import cancelled
from treadle.drivers.taking_up import GoingOn, taken_up
from treadle.drivers.unsettled import unsettled
from treadle.journal import Journal, JournalError, Leases, RunHeld, UnknownRun, export_runs
from treadle.journal.families import below, every, family
from treadle.journal.info import RunInfo, RunStatus, Wanted, told_by, unknown
from treadle.kernel.errors import IllegalEvent, Misuse
from treadle.kernel.events import Event, MessageAdded, RunFinished, RunPaused
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import Message
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits, Stop, stopped
from treadle.models.fixed import fixed_tokens
from treadle.result import Pending, RunResult, result_of
from treadle.serve.conversations import Conversations
from treadle.serve.feed import Numbered, Piece
from treadle.serve.live import STOPPED, Live
from treadle.serve.posting import AGAIN, ORIGIN, Posting, is_served
from treadle.serve.refused import Refused, of_journal
from treadle.serve.user import User
from treadle.serve.veil import veiled, veiled_piece, veiled_stop
from treadle.timetravel.forking import Forked, begin_fork, with_model
from treadle.timetravel.parting import Diff, diff_of
from treadle.timetravel.replay import Replay
from treadle.timetravel.statistics import Statistics, statistics
from treadle.timetravel.waterfall import Waterfall, waterfall
from treadle.tools import Tool

T = TypeVar("T")

log = logging.getLogger("treadle.serve")

_MADE_HERE = re.compile(r"\d{8}-\d{6}-[0-9a-f]{10}(\.|$)")
"""Ids of runs that no second run ever has."""

_LOOKS, _LOOK = 20, 0.1
"""How often, and after how many seconds each, it is looked whether somebody has a run go on."""

_KNOWN = 10_000
"""Runs of which is remembered whose they are; that never changes."""

Verb = Literal["approve", "deny", "edit", "result", "again"]


class Verdict(NamedTuple):
    """What is decided of a call that waits.

    Attributes:
        call: its `call_id` as it stands in `pending`.
        fingerprint: the fingerprint of its arguments that stands there too: it is refused for any others.
        verb: "approve" it as it is, "edit" it (approve it with `arguments`), "deny" it with a `reason` for the model,
            give its "result", or have it run "again" that was cut off.
        arguments: in place of the model's; of "edit" alone.
        result: of "result" alone; anything that JSON can hold.
        reason: of "deny" alone; may be empty.
    """

    call: str
    fingerprint: str
    verb: Verb
    arguments: Mapping[str, Any] | None = None
    result: Any = None
    reason: str = ""


class Waits(NamedTuple):
    """A call that waits for a person, with what may be said of it."""

    pending: Pending
    fingerprint: str
    why: str
    effect: str
    allowed: tuple[Verb, ...]


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


class _Whose(NamedTuple):
    """To whom a run belongs: that of the run at the top."""

    top: str
    owner: str
    agent: str


class Runs:
    """The runs of some agents, in one journal.

    Args:
        agents: by the names that callers use.
        journal: where all their runs are.
        live: drives them.
        deps: given a user's name, returns what that user's runs are given as dependencies; may be asynchronous.
        starting: called before a user begins a run or has one go on; raises `Refused` if that is too often.
    """

    def __init__(
        self,
        agents: Mapping[str, Agent[Any, Any]],
        journal: Journal,
        live: Live,
        deps: Callable[[str], Any] | None = None,
        starting: Callable[[User], None] = lambda _: None,
    ) -> None:
        self.agents = {name: _served(agent, name, journal) for name, agent in agents.items()}
        self.journal, self.live = journal, live
        self._deps, self._starting = deps, starting
        self._whose: OrderedDict[str, _Whose] = OrderedDict()
        self.conversations = Conversations(journal)
        self._adding_up = asyncio.Lock()
        self._naming: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # What there is.

    def agent(self, user: User, name: str) -> Agent[Any, Any]:
        """The agent of that name. Raises `Refused` if there is none that the user may use."""
        agent = self.agents.get(name)
        if agent is None or not user.may_use(name):
            usable = ", ".join(one for one in self.agents if user.may_use(one)) or "none"
            raise Refused("not_found", f"there is no agent {name!r:.100}", f"There is: {usable}.")
        return agent

    async def list(
        self, user: User, wanted: Wanted, limit: int, before: tuple[float, str] | None
    ) -> builtins.list[RunInfo]:
        """Runs that the user may see, those that started last first.

        Args:
            user: who asks.
            wanted: which of them.
            limit: how many at most.
            before: start and id of the last run of the page before.
        """
        if user.sees == "own":
            if wanted.user not in (None, user.name):
                return []
            wanted = replace(wanted, user=user.name)
        last = None if before is None else unknown(before[1], before[0])
        found: builtins.list[RunInfo] = []
        while len(found) < limit:
            page = await self.journal.list(limit, last, wanted)
            seen = [line for line in page if user.may_see(line.user, line.agent)]
            found += seen if user.inside else map(_veiled_line, seen)
            if len(page) < limit:
                break
            last = page[-1]
        return found[:limit]

    async def describe(self, user: User, run_id: str) -> Described:
        """A run and all that is known of it."""
        await self._seen(user, run_id)
        read, driven = await self._stands(run_id)
        events = _shown(user, read)
        state, line = fold_all(events), told_by(events)
        waits: tuple[Waits, ...] = ()
        if not driven and state.phase != "finished":
            waits = tuple([self._waits(state, one) for one in await unsettled(state, self.journal)])
        lines = {one.run_id: one async for one in every(self.journal, Wanted(text=f"{run_id}."))}
        under = [lines[one] for one in below(lines.values(), {run_id}).get(run_id, ())]
        if not user.inside:
            under = [*map(_veiled_line, under)]
        return Described(line, state, events, result_of(state, None, events), waits, driven, under)

    async def look(self, user: User, run_id: str, *, decides: bool = False) -> None:
        """Looks whether there is such a run for the user, and whether they may decide on it, if they want to.

        Raises:
            Refused: there is none, or they may not.
        """
        await (self._decided_on if decides else self._seen)(user, run_id)

    async def events(self, user: User, run_id: str, after: int = 0, limit: int = 1000) -> builtins.list[Numbered]:
        """The events of a run after number `after`, at most `limit`."""
        await self._seen(user, run_id)
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
        await self._seen(user, run_id)
        try:
            async for batch in self.live.follow(run_id, after, pieces=pieces, until_pause=until_pause):
                yield batch if user.inside else [one for one in map(_veiled, batch) if one is not None]
        except JournalError as error:
            raise of_journal(error) from error

    # What can be done.

    async def start(
        self,
        user: User,
        agent: str,
        input: Input,
        *,
        conversation: str | None = None,
        after: str | None = None,
        history: Sequence[Message] = (),
        limits: Limits | None = None,
        tools: Iterable[Tool] = (),
        posting: Posting | None = None,
    ) -> str:
        """Begins a run of `agent` and has it driven here: its id, once it stands in the journal.

        A named request that comes again begins nothing: the id is that of the run which it began.

        Args:
            user: whose it is.
            agent: the agent's name.
            input: the question; None if `history` ends with it.
            conversation: the name of the user's conversation that it goes on with; a new one, if there is none.
            after: the run of it after which it goes on, where that is not the last; empty for from its beginning.
            history: what was said before, where there is no conversation.
            limits: in place of the agent's; for most users each at most what the agent's is.
            tools: further tools for this run, each an `external_tool`: those that the caller carries out.
            posting: what names the request, if it is to be known again.
        """
        if not user.begins:
            raise Refused("forbidden", "you may look at runs, and not begin any")
        config = _with_tools(self.agent(user, agent)._config, tools)
        limits = _bounded(user, limits, config.limits)
        told = Asked(input, limits=limits, user=user.name, origin=ORIGIN)
        talk = Conversation(history) if history else None
        if posting is None or posting.run_id is None:
            self._starting(user)
            origin = ORIGIN if posting is None else posting.origin
            return await self._begun(user, config, told._replace(conversation=talk, origin=origin), conversation, after)
        told = told._replace(conversation=talk, origin=posting.origin, run_id=posting.run_id)
        async with self._naming.setdefault(posting.run_id, asyncio.Lock()):
            found = await self.answering(user, posting, tools)
            if found is not None:
                return found
            self._starting(user)
            try:
                return await self._begun(user, config, told, conversation, after)
            except Refused as error:
                # Another server was asked as well, and was faster.
                found = await self.answering(user, posting, tools) if error.kind == "conflict" else None
                if found is None:
                    raise
                return found

    async def answering(self, user: User, posting: Posting, tools: Iterable[Tool] = ()) -> str | None:
        """The id of the run that such a request began; None if none did. It goes on, if nobody has it go on.

        Raises:
            Refused: the name began a run with another request ("unfit"), or the run cannot go on.
        """
        line = await (self._latest_of(user, posting) if posting.run_id is None else self._named(posting.run_id))
        if line is None or not user.may_see(line.user, line.agent):
            return None
        if posting.digest and line.origin != posting.origin:
            raise Refused(
                "unfit", f"this key began run {line.run_id} with another request", "Give each request a key of its own."
            )
        await self._again(_Whose(line.run_id, line.user, line.agent), line.run_id, user, tools)
        return line.run_id

    async def _again(self, whose: _Whose, run_id: str, user: User, tools: Iterable[Tool]) -> None:
        """Has a run go on whose server died or was stopped: whoever asks again wants its answer."""
        for look in range(_LOOKS):
            events, driven = await self._stands(run_id)
            waits = isinstance(events[-1], RunPaused) and events[-1].stop != STOPPED
            if driven or waits or isinstance(events[-1], RunFinished):
                return
            try:
                return await self._go_on(whose, run_id, GoingOn(by=user.name), tools)
            except Refused as error:
                # It may be about to be taken up by another.
                if error.kind != "conflict" or look == _LOOKS - 1:
                    raise
            await asyncio.sleep(_LOOK)

    async def _named(self, run_id: str) -> RunInfo | None:
        try:
            return told_by(await self.journal.read(run_id))
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
            async for line in every(self.journal, lately):
                if line.origin == posting.origin:
                    return line
        except JournalError as error:
            raise of_journal(error) from error
        return None

    async def decide(self, user: User, run_id: str, verdicts: Sequence[Verdict], *, tools: Iterable[Tool] = ()) -> None:
        """Records what is decided of calls that wait, and has the run go on here, with `tools` as it was begun with.

        Raises:
            Refused: a call does not wait (any more) under this fingerprint, or somebody else decides ("conflict"); the
                edited arguments do not fit ("unfit"). Nothing was decided then.
        """
        whose = await self._decided_on(user, run_id)
        if not verdicts:
            raise Refused("unfit", "there is no decision", "Give at least one of the calls that wait.")
        state = fold_all(await self._read(run_id))
        waiting = {one.call_id: self._waits(state, one) for one in await unsettled(state, self.journal)}
        answers = Answers({}, {}, {})
        for verdict in verdicts:
            _answer(answers, verdict, waiting.get(verdict.call), run_id)
        try:
            await self._go_on(whose, run_id, GoingOn(answers, by=user.name), tools)
        except Misuse as error:
            # Somebody else may have decided between the look and the record.
            left = {one.key for one in await unsettled(fold_all(await self._read(run_id)), self.journal)}
            raise Refused("unfit" if left.issuperset(answers.calls) else "conflict", str(error)) from error

    async def say(self, user: User, run_id: str, text: str) -> None:
        """Says something to a run that is driven here; its model is shown it at its next call."""
        await self._decided_on(user, run_id)
        driven = self.live.driven.get(run_id)
        if driven is None:
            raise Refused(
                "conflict",
                f"run {run_id} is not under way in this server",
                "If it waits or has ended, resume it with a message.",
            )
        try:
            question = asked_of(text)
            if question is None:
                raise Misuse("there is nothing in the text")
            driven.run.feed(MessageAdded(question, by=user.name))
        except IllegalEvent as error:
            raise Refused("conflict", f"run {run_id} takes no message now: it ends or pauses") from error
        except Misuse as error:
            raise Refused("unfit", str(error)) from error
        await driven.run.commit()

    async def cancel(self, user: User, run_id: str) -> None:
        """Ends a run as cancelled, whoever drives it; one that has finished stays as it is."""
        whose = await self._decided_on(user, run_id)
        driven = self.live.driven.get(run_id)
        stop = stopped("cancelled", f"by {user.name}")
        if driven is not None:
            driven.cancel(stop)
            await driven.over.wait()
            return
        config = self._agent_of(whose)._config
        await self._kept(cancelled(config, run_id, stop))

    async def pause(self, user: User, run_id: str) -> None:
        """Has a run that is driven here pause after the step under way."""
        await self._decided_on(user, run_id)
        driven = self.live.driven.get(run_id)
        if driven is None:
            raise Refused("conflict", f"run {run_id} is not under way in this server")
        driven.run.pause_wanted = RunPaused(Stop("waiting", f"paused by {user.name}", "Resume the run."), by=user.name)

    async def resume(
        self,
        user: User,
        run_id: str,
        *,
        limits: Limits | None = None,
        message: str | None = None,
        tools: Iterable[Tool] = (),
    ) -> None:
        """Goes on with a run that is paused, that a limit stopped, or whose process died."""
        whose = await self._decided_on(user, run_id)
        limits = _bounded(user, limits, self._agent_of(whose).limits)
        self._starting(user)
        await self._go_on(whose, run_id, GoingOn(message=message, limits=limits, by=user.name), tools)

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
        whose = await self._decided_on(user, run_id)
        agent = self._agent_of(whose)
        if (model is not None or instructions is not None) and not user.raises_limits:
            raise Refused("forbidden", "you may choose neither the model nor the instructions")
        self._starting(user)
        asked = Forked(
            at, message, tool_results, model, _bounded(user, limits, agent.limits),
            await self._deps_of(whose.owner), by=user.name, origin=ORIGIN, instructions=instructions,
        )  # fmt: skip
        forked = await self._kept(begin_fork(agent._config, run_id, asked))
        assert isinstance(forked, str)  # noqa: S101 - there is a journal
        config = with_model(agent._config, model)
        deps = asked.deps
        going_on = GoingOn(deps=deps, by=user.name)
        return await self._kept(self.live.carry(lambda hear: taken_up(config, forked, going_on, hear)))

    async def delete(self, user: User, run_id: str) -> None:
        """Removes a run and those that work for it; one that is under way is cancelled first.

        One that works for another is part of that, which would have it done anew, and paid, if it went on.
        """
        whose = await self._decided_on(user, run_id)
        if whose.top != run_id and not isinstance((await self._read(whose.top))[-1], RunFinished):
            raise Refused(
                "conflict", f"run {run_id} works for run {whose.top}, which has not ended", "Delete that one."
            )
        if run_id in self.live.driven:
            await self.cancel(user, run_id)
        for one in reversed(await self._kept(family(self.journal, run_id))):
            await self.journal.delete(one)

    async def replay(self, user: User, run_id: str) -> Replay:
        """Carries a run out again with its agent, with no model and no tool, and says where it comes out otherwise."""
        whose = await self._seen(user, run_id)
        if not user.inside:
            raise Refused("forbidden", "a run is carried out again by who may see its inside")
        agent = self._agent_of(whose)
        deps = await self._deps_of(whose.owner)
        return await self._kept(agent.replay(run_id, deps=deps, recorded_limits=True))

    async def diff(self, user: User, a: str, b: str) -> Diff:
        """Where two runs part."""
        for run_id in (a, b):
            await self._seen(user, run_id)
        return diff_of(*[_shown(user, await self._read(run_id)) for run_id in (a, b)])

    async def waterfall(self, user: User, run_id: str) -> Waterfall:
        """Where the time of a run went."""
        await self._seen(user, run_id)
        return await self._kept(waterfall(self.journal, run_id))

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
            told = statistics(self.journal, since=since, until=until, agent=agent, model=model, user=whose)
            return await self._kept(told)

    async def _stands(self, run_id: str) -> tuple[builtins.list[Event], bool]:
        """The events of a run, and whether somebody drives it; both as they were at one time."""
        events = await self._read(run_id)
        while True:
            held = await self.journal.holders([run_id]) if isinstance(self.journal, Leases) else {}
            driven = run_id in held or run_id in self.live.driven
            if driven or isinstance(events[-1], RunFinished | RunPaused):
                return events, driven
            # It may have gone on, and ended, between the two looks.
            further = await self._read(run_id, len(events))
            if not further:
                return events, driven
            events += further

    async def opened(self, user: User, run_id: str) -> tuple[Sequence[Event], Configuration | None]:
        """The events of a run, and its agent, if that is here."""
        whose = await self._seen(user, run_id)
        agent = self.agents.get(whose.agent) if whose.top == run_id else None
        return _shown(user, await self._read(run_id)), None if agent is None else agent._config

    async def lines(self, user: User, run_id: str) -> AsyncIterator[bytes]:
        """The run and those that work for it, as lines of JSON that `treadle runs import` takes."""
        await self._seen(user, run_id)
        if not user.inside:
            raise Refused("forbidden", "a whole run is for who may see its inside", "Take it as Markdown or HTML.")
        return export_runs(self.journal, [run_id])

    async def take_up(self) -> None:
        """Goes on with the runs that a server began, and that were under way when its process ended.

        Those that wait for a person stay as they are; so do those that no server began. One that another process has is
        asked for again once its lease may have run out: that process may be the one that died, on another machine.
        """
        left: builtins.list[RunInfo] = []
        statuses: tuple[RunStatus, ...] = ("running", "waiting")
        for status in statuses:
            lines = every(self.journal, Wanted(status=status, top=True))
            left += [line async for line in lines if is_served(line.origin) and line.stop in (None, STOPPED)]
        held = [line for line in left if not await self._taken_up(line)]
        lease = self.journal.lease if isinstance(self.journal, Leases) else inf
        if held and lease < inf:
            await asyncio.sleep(lease)
            for line in held:
                await self._taken_up(line)

    async def _taken_up(self, line: RunInfo) -> bool:
        """Goes on with a run; False if another process has it."""
        agent = self.agents.get(line.agent)
        while agent is not None:
            try:
                going_on = GoingOn(deps=await self._deps_of(line.user))
                await self.live.carry(partial(taken_up, agent._config, line.run_id, going_on))
            except RunHeld:
                return False
            except Refused as error:
                if error.kind != "too_many":
                    return True
                await asyncio.sleep(1)
                continue
            except Exception as error:
                # It is there as it was; whoever resumes it is told the same.
                log.warning("run %s was left and could not be taken up: %s", line.run_id, error)
            return True
        return True

    # How it is done.

    async def _begun(
        self, user: User, config: Configuration, asked: Asked, conversation: str | None, after: str | None
    ) -> str:
        asked = asked._replace(deps=await self._deps_of(user.name))
        if conversation is None:
            return await self._kept(self.live.carry(partial(begun_anew, config, asked)))
        async with self.conversations.lent(user, conversation, after) as lent:
            asked = asked._replace(conversation=Conversation(lent.said, name=conversation))
            only = partial(self.conversations.only, user, conversation, lent.newest)
            return await self._kept(self.live.carry(partial(begun_anew, config, asked), only))

    async def _go_on(self, whose: _Whose, run_id: str, going_on: GoingOn, tools: Iterable[Tool] = ()) -> None:
        config = _with_tools(self._agent_of(whose)._config, tools)
        deps = await self._deps_of(whose.owner)
        going_on = going_on._replace(deps=deps)
        begin = self.live.carry(lambda hear: taken_up(config, run_id, going_on, hear))
        try:
            await begin
        except JournalError as error:
            raise of_journal(error) from error
        except Misuse as error:
            if going_on.answers:
                raise
            raise Refused("conflict", str(error)) from error

    async def _deps_of(self, owner: str) -> Any:
        found = None if self._deps is None else self._deps(owner)
        return await found if isinstance(found, Awaitable) else found

    def _agent_of(self, whose: _Whose) -> Agent[Any, Any]:
        agent = self.agents.get(whose.agent)
        if agent is None:
            raise Refused(
                "conflict",
                f"run {whose.top} is of the agent {whose.agent!r}, which this server does not have",
                "Start the server with that agent, or go on with the run where it is.",
            )
        return agent

    def _waits(self, state: RunState, one: Pending) -> Waits:
        allowed: dict[str, tuple[Verb, ...]] = {
            "approval": ("approve", "edit", "deny", "result"),
            "interrupted": ("again", "deny", "result"),
            "result": ("result",),
        }
        effect = "write" if one.tool in state.started.writes else ""
        agent = self.agents.get(state.agent)
        tool = None if agent is None or one.run_id else agent.tools.get(one.tool)
        if tool is not None:
            effect = tool.effect
        mark = one.key.rpartition("#")[2]
        return Waits(one, mark, one.question or one.kind, effect, allowed[one.kind])

    async def _seen(self, user: User, run_id: str) -> _Whose:
        """Whose the run is. Raises `Refused` if the user may not see it, as if it were not there."""
        whose = await self._whose_of(run_id, 0)
        if whose is None or not user.may_see(whose.owner, whose.agent):
            raise Refused("not_found", f"there is no run {run_id!r:.200}")
        return whose

    async def _decided_on(self, user: User, run_id: str) -> _Whose:
        """Whose the run is. Raises `Refused` if the user may not decide on it."""
        whose = await self._seen(user, run_id)
        if not user.may_decide(whose.owner, whose.agent):
            raise Refused("forbidden", f"you may look at run {run_id}, and not decide on it")
        return whose

    async def _whose_of(self, run_id: str, depth: int) -> _Whose | None:
        found = self._whose.get(run_id)
        if found is None:
            try:
                events = await self.journal.read(run_id)
            except UnknownRun:
                return None
            except JournalError as error:
                raise of_journal(error) from error
            line = told_by(events)
            found = _Whose(run_id, line.user, line.agent)
            if line.parent is not None:
                above = None if depth > 100 else await self._whose_of(line.parent.run_id, depth + 1)
                found = _Whose(run_id, "", "") if above is None else above
            if not _MADE_HERE.match(run_id):
                # A name that somebody chose may be another's run, once this one is deleted.
                return found
            self._whose[run_id] = found
            while len(self._whose) > _KNOWN:
                self._whose.popitem(last=False)
        return found

    async def _read(self, run_id: str, start: int = 0) -> builtins.list[Event]:
        return await self._kept(self.journal.read(run_id, start))

    async def _kept(self, done: Awaitable[T]) -> T:
        """What was asked of the library, with its errors as refusals."""
        try:
            return await done
        except JournalError as error:
            raise of_journal(error) from error
        except Misuse as error:
            raise Refused("unfit", str(error)) from error


def _served(agent: Agent[Any, Any], name: str, journal: Journal) -> Agent[Any, Any]:
    """The agent under the name by which it is served, which its runs have in the journal."""
    return agent._with(lambda config: dataclasses.replace(config, name=name, journal=journal))


def _shown(user: User, events: builtins.list[Event]) -> builtins.list[Event]:
    """The events as the user may see them."""
    return events if user.inside else [veiled(event) for event in events]


def _veiled(one: Numbered | Piece) -> Numbered | Piece | None:
    if isinstance(one, Numbered):
        return Numbered(one.number, veiled(one.event))
    shown = veiled_piece(one.event)
    return None if shown is None else Piece(one.after, shown)


def _veiled_line(line: RunInfo) -> RunInfo:
    return line if line.stop is None else replace(line, stop=veiled_stop(line.stop))


def _bounded(user: User, asked: Limits | None, most: Limits) -> Limits | None:
    """The limits that a run of the user's may have."""
    if asked is None or user.raises_limits:
        return asked
    return Limits(**{name: _lower(getattr(asked, name), getattr(most, name)) for name in Limits.__struct_fields__})


def _lower(asked: Any, most: Any) -> Any:
    return most if asked is None else asked if most is None else min(asked, most)


def _with_tools(config: Configuration, tools: Iterable[Tool]) -> Configuration:
    """`config` with tools that the caller carries out; one that has the name of the agent's own does not count."""
    further = {one.name: one for one in tools if one.name not in config.tools}
    if not further:
        return config
    if not all(one.external for one in further.values()):
        raise Misuse("further tools of a run are external tools, which the caller carries out")
    specs = (*config.specs, *(one.spec for one in further.values()))
    tokens = fixed_tokens(config.model, specs, None if config.output is None else config.output.schema)
    return dataclasses.replace(config, tools={**config.tools, **further}, specs=specs, tool_tokens=tokens)


def _answer(answers: Answers, verdict: Verdict, waits: Waits | None, run_id: str) -> None:
    """Puts a verdict among the answers. Raises `Refused` if the call does not wait for it."""
    if waits is None:
        raise Refused(
            "conflict",
            f"call {verdict.call!r:.200} of run {run_id} does not wait for a decision",
            "It was decided meanwhile, or the run has gone on. Look at the run again.",
        )
    if verdict.fingerprint != waits.fingerprint:
        raise Refused(
            "conflict",
            f"call {verdict.call!r:.200} of run {run_id} waits with other arguments than those that were decided on",
            "Look at the call again.",
        )
    if verdict.verb not in waits.allowed:
        raise Refused(
            "unfit",
            f"call {verdict.call!r:.200} cannot be decided by {verdict.verb!r:.50}",
            f"It can be decided by: {', '.join(waits.allowed)}.",
        )
    key = waits.pending.key
    if key in answers.calls:
        raise Refused("unfit", f"call {verdict.call!r:.200} is decided in two ways at once")
    match verdict.verb:
        case "deny":
            answers.deny[key] = verdict.reason
        case "result":
            answers.results[key] = verdict.result
        case "edit":
            if verdict.arguments is None:
                raise Refused("unfit", f"an edit of call {verdict.call!r:.200} brings its arguments")
            answers.approve[key] = verdict.arguments
        case "approve" | "again":
            answers.approve[key] = None
