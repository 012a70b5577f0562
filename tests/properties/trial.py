"""A trial: one generated setup carried out to its end, in as many processes as that takes.

It runs the agent (steered, if the setup says so), lets people decide on what waits, takes up what broke off, goes on
after a limit, and keeps what happened; `rules.py` says what must hold of it. What goes wrong while it is carried out
(a hang, an exception that nobody gave, a decision that should have been refused) is kept in `wrong`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from bounded import bounded
from clock import Hung, run_quickly, wall_clock
from deciding import as_decided, decide, refused, settled_at_once, would_take_over
from folding import fold_all
from funds import USER, Period, Purses, next_funds, refused_with_less, whole_family, with_funds
from hooks import OfTheApplication
from in_loop import links_in_the_loop
from journals import Recording, journal_of
from player import Says
from resting import Branch, after, at_rest, beside
from server import OWN
from showing import Shown
from skilled import skills_of
from texts import ASIDE, GO_ON, QUESTION, hostile, shows
from toolbox import EASED, EFFECTS, IN_THREADS, OF_A_CALL, TOOLS, Execution, World, asks
from traced import Traces
from worlds import QUESTIONS, SHORTENING, Setup, conversation

from treadle import Agent, Limits, LiveRun, Misuse, RunResult, RunStopped
from treadle.drivers.checks import asked_of
from treadle.drivers.dispatch import Order
from treadle.journal.errors import JournalError, TakenOver, UnknownRun
from treadle.kernel.events import RunFinished, RunPaused, RunResumed, ToolStarted
from treadle.kernel.stop import LIMIT_REASONS
from treadle.tools.server import ServerFailed

MOST_ROUNDS = 200


class Unheard:
    """A queue of which no worker hears: the world itself drives what is put there."""

    async def accept(self, agent: str) -> None:
        """There is room."""

    async def dispatch(self, order: Order) -> None:
        """It is driven in any case."""


@dataclass
class Outcome:
    """What came of driving the run once: a result, or what was raised."""

    result: RunResult | None = None
    error: BaseException | None = None


@dataclass
class Trial:
    """See the module.

    Attributes:
        before: how many events the journal was given to begin with, if the run began in a process that died.
        sent: what was said to the run and accepted; `decided`, how many rounds of decisions were made.
        asked_to_stop: whether the application itself cancelled the run.
        told: how often the application was told that the journal failed.
        taken: what came of the run where another process took it over.
        left: how many processes left the run unfinished.
        steered_on: whether a run that was taken up has been steered.
        gone_on: how often a process would have decided on the run or taken it up.
        talked: whether its conversation has gone on while it waited.
        limited: by run at the top, how many events the journal had when it was given another limit on tool calls.
        wrong: what went wrong.
        shown: what each process was shown that watched the run; `arriving`, each that streamed it, with arguments.
        purses: what the run was given budgets of.
        own: the run of a trial that is not about the first of its journal; `forks`, the trials of its forks.
        source: the trial of the run that it is a fork of.
        rested: how often it has rested; `goes_on` how often it is still gone on with after its end.
        earlier: by run at the top, what forks of a process that died were given budgets of, and whose they are.
        user: for whom the run works.
    """

    setup: Setup
    tools: Any = TOOLS
    world: World = field(default_factory=World)
    journal: Recording = field(default_factory=Recording)
    before: int = 0
    sent: list[str] = field(default_factory=list)
    decided: int = 0
    asked_to_stop: bool = False
    told: int = 0
    taken: Outcome | None = None
    left: int = 0
    steered_on: bool = False
    gone_on: int = 0
    talked: bool = False
    limited: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    arriving: list[list[Any]] = field(default_factory=list)
    purses: Purses = field(default_factory=Purses)
    last: Outcome = field(default_factory=Outcome)
    own: str | None = None
    source: "Trial | None" = None
    forks: list[Branch] = field(default_factory=list)
    rested: int = 0
    over: bool = False
    earlier: dict[str, tuple[Purses, str]] = field(default_factory=dict)
    user: str = USER

    def __post_init__(self) -> None:
        self.goes_on, self.seen = self.setup.goes_on, -1
        if self.source is not None:
            self.said = None
            return
        self.world.journal = self.journal
        self.world.forgetful = self.setup.forgets
        self.world.quotes = self.setup.paper.redacts
        self.world.traces = Traces(self.setup.traced) if self.setup.traced else None
        lent = self.setup.conversation and not self.before and not self.setup.one_step
        self.said = conversation() if lent else None

    @classmethod
    def of(cls, setup: Setup, tools: Any = TOOLS) -> "Trial":
        """A trial that begins at the beginning."""
        return cls(setup, tools, journal=journal_of(setup.paper))

    def killed(self, at: int) -> "Trial":
        """The trial in which the process died when the journal held `at` events: what it had done is done."""
        at = self.journal.cut(at)
        executed = [
            replace(one, ended=one.ended and at == len(self.journal.order), said=None)
            for one in self.world.executed
            if one.at <= at
        ]
        asked = [one for one in self.world.asked if one.at <= at]
        world = World(executed=executed, alive=self.world.alive + 1, asked=asked)
        world.servers = deepcopy(self.world.servers)
        world.ledger.charges += [one for one in self.world.ledger.charges if one.at <= at]
        world.ledger.before = len(world.ledger.charges)
        setup = replace(self.setup, steers=(), paper=replace(self.setup.paper, fails_at=None))
        journal = journal_of(setup.paper, self.journal.order[:at])
        world.journal = journal
        world.left_by(self.world, at, budgets=setup.lasting)
        journal.said = {run: self.journal.said[run][: len(events)] for run, events in journal.said.items()}
        journal.whole = [one for one in self.journal.whole if one[1] <= at]
        charged = len(world.ledger.charges)
        family = [one for one in whole_family(self) if one.root is not None]
        earlier = {one.root: (one.purses.until(at, charged), one.user) for one in family}
        limited = {run: min(at, one) for run, one in self.limited.items()}
        purses = self.purses.until(at, charged)
        return Trial(
            setup, self.tools, world, journal, before=at, limited=limited, purses=purses, earlier=earlier, own=self.own
        )

    def branch(self, rests: tuple[Any, ...], own: str | None = None) -> "Trial":
        """The trial of a fork of this one's run, which is decided on otherwise."""
        setup = replace(self.setup, steers=(), rests=rests, paper=replace(self.setup.paper, fails_at=None))
        purses, user = self.earlier.get(own or "", (Purses(), self.user))
        return Trial(
            setup,
            self.tools,
            self.world,
            self.journal,
            before=self.before,
            decided=self.decided + 1 + len(self.forks),
            limited=self.limited,
            own=own,
            source=self,
            purses=purses,
            user=user,
        )

    async def made(self, source: str, given: dict[str, Any], budgets: dict[str, Any], *, begun: bool) -> Any:
        """Makes the run of this trial, as a fork of `source`; what was raised instead."""
        agent, had = self.agent(), set(self.journal.roots)
        if begun:
            try:
                self.own = await agent.begin_fork(source, deps=self.world, **given, **budgets)
            except Exception as error:
                return error
            given = {key: value for key, value in given.items() if key == "model"}
            taken = self.agent().resume(self.own, deps=self.world, **budgets)
        else:
            taken = agent.fork(source, deps=self.world, on_event=self.watcher_of_fork(), **given, **budgets)
        wrong = len(self.wrong)
        self.last = await self.caught(taken)
        new = [run for run in self.journal.roots if run not in had]
        if not begun:
            self.own = new[0] if new else None
        if self.own is None:
            del self.wrong[wrong:]
        return self.last.error

    def watcher_of_fork(self) -> Callable[[Any], object] | None:
        """What is given to a fork as `on_event`."""
        temper = self.setup.hooks.on_event
        return None if temper is None else temper.function(self.world, "on_event", lambda event: None)

    def agent(self) -> Agent:
        """The agent, as a process of its own makes it."""
        setup, lacks = self.setup.as_of(self.world), self.setup.lacking(self.world)
        self.world.eased = eased = setup.easing(self.world)
        tools = [EASED[one.name] if one.name in eased else one for one in self.tools if one.name not in lacks]
        return setup.agent(setup.player(self.world), self.journal, tools, self.world)

    def carry_out(self, whole: Callable[[], Coroutine[Any, Any, None]] | None = None) -> "Trial":
        """The whole of it, or another way to go through it, with a clock that costs nothing."""
        script = repr(self.setup)
        try:
            with wall_clock(self.setup.clock), bounded(self.setup.bound), links_in_the_loop():
                run_quickly(whole or self._whole, any(f"'{name}'" in script for name in IN_THREADS))
        except Hung as hung:
            self.wrong.append(f"hangs: {hung}; under way: {[one.tool for one in self.world.under_way]}")
        except BaseException as error:
            self.wrong.append(f"escapes: {error!r} ends the event loop")
        return self

    async def _whole(self) -> None:
        if not self.before:
            await self.begin()
        else:
            for run in self.journal.roots:
                if run != self.root:
                    self.forks.append(Branch(self.branch((), run), "adopted"))
            if self.root is not None:
                self.last = await self.taken_up(self.root)
            for one in self.forks:
                one.trial.last = await one.trial.taken_up(one.trial.root)
        await self.to_its_end()
        await self.nothing_left()

    @property
    def root(self) -> str | None:
        """The run at the top; None before it has begun."""
        if self.own is None and self.source is None:
            self.own = self.journal.root
        return self.own

    async def to_its_end(self) -> None:
        """It comes to its end, and so do its forks."""
        await self.settle()
        await after(self)
        await self.afterwards()

    async def nothing_left(self) -> None:
        """No task is left behind."""
        for _ in range(3):  # the event loop closes the iterators that a "watch" left
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            self.wrong.append(f"leaves tasks: {left}")

    async def begin(self) -> None:
        """The first process."""
        question, on_event = self._question(), self.watcher()
        if self.setup.one_step:
            said = [asked_of(question)]
            self.last = await self.caught(self.agent().step(said, deps=self.world, on_event=on_event))
            return
        given = self.brought()
        if not self.setup.steers:
            run = self.agent().run(question, conversation=self.said, deps=self.world, on_event=on_event, **given)
            self.last = await self.caught(run)
            return
        live = self.agent().stream(question, conversation=self.said, deps=self.world, partial_arguments=True, **given)
        self.last = await self.caught(self._steered(live, self.setup.steers))
        self.last = self.taken or self.last

    def _question(self) -> Any:
        skills = skills_of(self.setup.skills)
        typed = None if skills is None else skills.said(f"/{self.setup.typed} {QUESTION}")
        return QUESTIONS[self.setup.question] if typed is None else typed

    def brought(self) -> dict[str, Any]:
        """The budgets that the process has which is about to have the run."""
        self.purses.drop_after(len(self.journal.order))
        under = next_funds(self)
        given = with_funds(self, under)
        self.purses.periods.append(Period(len(self.journal.order), len(self.world.ledger.charges), under))
        return given

    def watcher(self) -> Callable[[Any], object] | None:
        """What is given as `on_event`, in a process that is to begin or take up the run."""
        temper, root = self.setup.hooks.on_event, self.root
        own = None if temper is None else temper.function(self.world, "on_event", lambda event: None)
        if not self.setup.watched:
            return own
        shown = Shown(0 if root is None else len(self.journal.events(root)))
        self.shown.append(shown)

        def on_event(event: Any) -> object:
            shown.add(event)
            return None if own is None else own(event)

        return on_event

    async def taken_up(self, root: str) -> Outcome:
        """Takes up the run whose process died, and says at once what is known of calls that were in flight."""
        await refused_with_less(self, root)
        if fold_all(self.journal.events(root)).phase != "finished" and self._is_to_end():
            return await self.end_it(root)
        given, decided = await settled_at_once(self, root)
        ended = fold_all(self.journal.events(root)).phase == "finished"
        given["message"] = self.word(self.setup.speaks and not ended)
        before = {run: len(self.journal.events(run)) for run in self.journal.runs}
        outcome = await self.caught(self.resume(root, **given))
        if outcome.error is None:
            as_decided(self, before, decided)
        return outcome

    def lends(self) -> dict[str, Any]:
        """The conversation, for who goes on with the run, if that is to have it."""
        # Where the journal failed, more was said in it than stands in the run.
        lent = self.setup.talks == "given" and self.said is not None and not self.journal.failed
        return {"conversation": self.said} if lent else {}

    async def talk(self, result: RunResult) -> None:
        """Says something in the conversation of a run that waits, which is then no place for the whole of that run."""
        if self.setup.talks != "meanwhile" or self.said is None or self.talked:
            return
        self.talked = True
        player = Setup((Says("so far, so good"),)).player(self.world)
        other = await Agent(player, tools=TOOLS[:1]).run("how is it going", conversation=self.said, deps=self.world)
        if other.stop.reason != "answered":
            self.wrong.append(f"a conversation whose run waits cannot be gone on with: {other.stop}")
        waiting = {one.call_id for one in result.pending}
        for message in self.said.messages:
            if message.role == "tool" and message.call_id in waiting and '"executed":false' in message.text:
                self.wrong.append(f"a call that waits is told as never executed: {message.text}")
        said, funds = list(self.said.messages), with_funds(self, next_funds(self))
        async with refused(self, "a run that takes the place of what was said after it in its conversation"):
            await self.agent().resume(result.run_id, conversation=self.said, deps=self.world, **funds)
        if list(self.said.messages) != said:
            self.wrong.append("a run that was refused its conversation has changed something")

    def _is_to_end(self) -> bool:
        """Whether the next process ends the run, in place of what it would do with it."""
        if self.setup.cancels is None:
            return False
        self.gone_on += 1
        return self.gone_on > self.setup.cancels

    async def end_it(self, root: str) -> Outcome:
        """A process of its own ends the run: it asks nobody, does nothing, and leaves nothing to be done."""
        self.asked_to_stop = True
        self.world.alive += 1
        done, asked = len(self.world.executed), self.world.requests
        budget = self.brought().get("budget")
        outcome = await self.caught(self.agent().cancel(root, budget=budget))
        if outcome.result is not None and outcome.result.stop.reason != "cancelled":
            self.wrong.append(f"a run that was cancelled ends by {outcome.result.stop}")
        if (len(self.world.executed), self.world.requests) != (done, asked):
            self.wrong.append("who cancels a run calls a tool or asks a model")
        before = len(self.journal.order)
        if outcome.error is None:
            again = await self.agent().cancel(root, budget=budget)
            if len(self.journal.order) != before or again.stop != self.last_stop(root):
                self.wrong.append("a run that is cancelled twice has another end")
        return outcome

    def last_stop(self, root: str) -> Any:
        """How the run ended, as its journal has it."""
        last = self.ended(root)
        return None if last is None else last.stop

    def word(self, says: bool) -> str | None:
        """What is said to the run that is to go on; None for nothing."""
        return hostile(f"{ASIDE}, beside, {len(self.sent)}") if says else None

    async def resume(self, run_id: str, queued: bool = False, **given: Any) -> RunResult:
        """Takes the run up in a process of its own; streamed, or by a worker, if the setup says so."""
        before = len(self.journal.order)
        try:
            return await (self._by_a_worker(run_id, **given) if queued else self._resumed(run_id, **given))
        finally:
            message = given.get("message")
            if message is not None and any(isinstance(event, RunResumed) for _, event in self.journal.order[before:]):
                self.sent.append(message)

    async def _resumed(self, run_id: str, **given: Any) -> RunResult:
        given |= self.lends()
        given |= {} if fold_all(self.journal.events(run_id)).phase == "finished" else self.brought()
        if self.setup.live is None:
            return await self.agent().resume(run_id, deps=self.world, on_event=self.watcher(), **given)
        moves = () if self.steered_on else self.setup.live
        self.steered_on = True
        live = self.agent().stream(resume=run_id, deps=self.world, partial_arguments=True, **given)
        return await self._steered(live, moves)

    async def _by_a_worker(self, run_id: str, **given: Any) -> RunResult:
        """Has what was decided recorded, and a worker drive the run; what is delivered again in between is refused."""
        await self.agent().resubmit(run_id, to=Unheard(), **given)
        decided = {what: given[what] for what in ("approve", "deny", "results")}
        async with refused(self, f"what was decided, delivered again before a worker has it, {decided},"):
            await self.agent().resubmit(run_id, to=Unheard(), **decided)
        return await self.agent().drive(run_id, deps=self.world, on_event=self.watcher())

    async def _steered(self, run: LiveRun, moves: Sequence[tuple[str, int]]) -> RunResult:
        self.arriving.append([])
        async with run as live:
            try:
                await self._steer(live, moves)
            except JournalError:
                # What the run itself raises goes before it, but whoever spoke to it was told.
                self.told += 1
                raise
            finally:
                try:
                    async for event in live:
                        self.arriving[-1].append(event)
                except TakenOver:
                    if self.taken is None:
                        raise
        return live.result

    async def _take_over(self, live: LiveRun, *, ends: bool) -> None:
        """Another process takes the run over, or ends it; the one that had it does nothing more."""
        root = self.root
        if root is None or self.taken is not None:
            return
        self.world.alive += 1
        self.world.overtaken = self._under_way()
        zombies = [(player, len(player.requests)) for _, _, player in self.world.players]
        if ends:
            self.asked_to_stop = True
            over = isinstance(self.ended(root), RunFinished)
            self.taken = await self.caught(self.agent().cancel(root, budget=self.brought().get("budget")))
            if over:
                # It had ended, and no budget that came then is told of it.
                self.purses.periods.pop()
            zombies = [(player, len(player.requests)) for _, _, player in self.world.players]
            done = len([one for one in self.world.executed if one.tool not in IN_THREADS])
            for _ in range(50):
                await asyncio.sleep(0)
            if len([one for one in self.world.executed if one.tool not in IN_THREADS]) != done:
                self.wrong.append(f"a tool runs in a run that was ended: {self.world.executed[done:]}")
        else:
            given = {} if fold_all(self.journal.events(root)).phase == "finished" else self.brought()
            self.taken = await self.caught(self.agent().resume(root, deps=self.world, takeover=True, **given))
        if any(len(player.requests) != made for player, made in zombies):
            self.wrong.append("a process whose run was taken over asks its model again")

    def _under_way(self) -> set[tuple[str, int, str]]:
        """The calls whose last event says that they have begun."""
        last = {
            (run, event.step, event.call_id): event
            for run in self.journal.runs
            for event in self.journal.given(run)
            if isinstance(event, OF_A_CALL)
        }
        return {call for call, event in last.items() if isinstance(event, ToolStarted)}

    async def _steer(self, live: LiveRun, moves: Sequence[tuple[str, int]]) -> None:
        for kind, count in moves:
            match kind:
                case "takeover" | "end":
                    await self._take_over(live, ends=kind == "end")
                case "would take over":
                    if self.root is not None and self.taken is None:
                        await would_take_over(self, self.root)
                case "tick":
                    for _ in range(count):
                        await asyncio.sleep(0)
                case "send":
                    text = hostile(f"{ASIDE}, {len(self.sent)}")
                    try:
                        await live.send(text)
                    except Misuse as error:
                        broken_off = "it has broken off" in str(error)
                        if live.result.stop.reason == "running" and not broken_off:
                            self.wrong.append("a message was refused by a run under way")
                    else:
                        self.sent.append(text)
                case "pause":
                    await live.pause()
                case "cancel":
                    self.asked_to_stop = True
                    await live.cancel()
                case "watch":
                    async for event in live:
                        self.arriving[-1].append(event)
                        break

    async def caught(self, run: Awaitable[RunResult]) -> Outcome:
        """What comes of `run`; what may be raised is what the application raised, or that a journal failed."""
        raised = len(self.world.raised)
        try:
            return Outcome(await run)
        except RunStopped as stop:
            if self.setup.on_limit != "raise" or self.setup.one_step or stop.result.stop.reason not in LIMIT_REASONS:
                self.wrong.append(f"raises RunStopped for {stop.result.stop.reason}")
            return Outcome(stop.result)
        except Hung:
            raise
        except JournalError as error:
            self.told += 1
            if not self.journal.failed:
                self.wrong.append(f"raises {error!r}, though the journal was well")
            return Outcome(error=error)
        except OfTheApplication as error:
            return Outcome(error=error)
        except ServerFailed as error:
            if not any(one.refused for one in self.world.servers.values()):
                self.wrong.append(f"raises {error!r}, though no server was away")
            return Outcome(error=error)
        except RuntimeError as error:
            if "cancelled itself" not in str(error) or not self.world.raised[raised:]:
                self.wrong.append(f"raises {error!r}")
            return Outcome(error=error)
        except Misuse as error:
            if "on_tool_result" not in str(error) and "on_tool_call" not in str(error):
                self.wrong.append(f"raises {error!r}")
            return Outcome(error=error)
        except asyncio.CancelledError as error:
            self.wrong.append("raises CancelledError, though nobody cancelled it")
            return Outcome(error=error)
        except BaseException as error:
            self.wrong.append(f"raises {type(error).__name__}: {str(error)[:200]}")
            return Outcome(error=error)

    def heard(self, error: Exception | None) -> bool:
        """Whether it says that the journal failed, which is no fault of the run: the application was told."""
        heard = isinstance(error, JournalError) and bool(self.journal.failed)
        self.told += heard
        return heard

    async def settle(self) -> None:
        """Takes the run up again, decides and goes on until it has ended."""
        for _ in range(MOST_ROUNDS):
            await self.round()
            if self.over:
                return
            await beside(self)
        self.wrong.append(f"does not come to an end: {self.last}")

    async def round(self) -> None:
        """One round of that."""
        if self.over:
            return
        await at_rest(self)
        result, root = self.last.result, self.root
        if self.last.error is not None or result is None:
            if root is None:
                self._nothing_began()
                self.over = True
                return
            self._left_off(root)
            if len(self.journal.order) == self.seen and self.world.quiet:
                # One whose end was stored, though its append seemed to fail, is pruned like any that has ended.
                pruned = isinstance(self.last.error, UnknownRun) and isinstance(self.ended(root), RunFinished)
                if not pruned:
                    self.wrong.append(f"cannot be taken up again: {self.last.error!r}")
                self.over = True
                return
            self.seen = len(self.journal.order)
            self.world.quiet = True
            self.journal.heal()
            self.world.alive += 1
            self.last = await self.taken_up(root)
        elif result.stop.reason == "waiting" and self._is_to_end():
            self.last = await self.end_it(result.run_id)
        elif result.stop.reason == "waiting":
            await self.talk(result)
            self.last = await decide(self, result)
        elif result.stop.reason in (*LIMIT_REASONS, "answered") and self.goes_on and self.root in self.journal.runs:
            self.goes_on -= 1
            await self._go_on(result)
        else:
            self.over = True

    def _nothing_began(self) -> None:
        if self.world.executed:
            self.wrong.append(f"tools ran in a run that the journal has not: {self.world.executed}")

    def _left_off(self, root: str) -> None:
        """A hook that raised, or a journal that failed, leaves the run unfinished."""
        self.left += 1
        last = self.journal.events(root)[-1]
        by_hook = isinstance(self.last.error, (OfTheApplication, RuntimeError, Misuse))
        if by_hook and isinstance(last, RunFinished) and not self.asked_to_stop:
            self.wrong.append(f"a hook that raised ended the run: {self.world.raised[-1:]}, {last.stop.reason}")

    async def _go_on(self, result: RunResult) -> None:
        """Goes on with a run that was answered, or that a limit stopped, with more of everything."""
        old = result.limits
        more = msgspec.structs.replace(
            old,
            steps=None if old.steps is None else old.steps + 6,
            tool_calls=None if old.tool_calls is None else old.tool_calls + 6,
            tokens=None if old.tokens is None else old.tokens + 8000,
            seconds=None if old.seconds is None else old.seconds + 300,
            usd=None if old.usd is None else old.usd + 5,
            # They are counted anew.
            consecutive_errors=old.consecutive_errors,
        )
        self.world.alive += 1
        before = len(self.journal.order)
        again = self.agent().resume(
            result.run_id,
            limits=more,
            message=hostile(GO_ON),
            deps=self.world,
            on_event=self.watcher(),
            **self.lends(),
            **self.brought(),
        )
        self.last = await self.caught(again)
        if self.last.error is not None:
            return
        if len(self.journal.order) == before:
            self.wrong.append(f"does not go on after {result.stop.reason}: the message is dropped")
            return
        kept = self.setup.context <= SHORTENING[-1]
        if kept and self.last.result is not None and not any(shows(GO_ON, m.text) for m in self.last.result.messages):
            self.wrong.append("the message with which it goes on is not in the history")

    async def afterwards(self) -> None:
        """A run that has ended stays as it is, and its conversation can be used again."""
        result = self.last.result
        if result is None or result.stop.reason == "waiting" or self.wrong or result.run_id not in self.journal.runs:
            return
        self.journal.heal()
        before, agent = len(self.journal.order), self.agent()
        for given in ({}, {"approve": ["nobody"]}, {"results": {"a": 1}}):
            outcome = await self._quietly(agent.resume(result.run_id, deps=self.world, **given))
            if bool(given) != isinstance(outcome.error, Misuse):
                self.wrong.append(f"resume({given}) of a run that has ended gives {outcome}")
            elif outcome.result is not None and outcome.result.stop != result.stop:
                self.wrong.append(
                    f"a run that ended by {result.stop} is later said to have ended by {outcome.result.stop}"
                )
        if len(self.journal.order) != before:
            self.wrong.append("a run that had ended was added to")
        if self.said is not None:
            player = Setup((Says("done"),)).player(self.world)
            again = await Agent(player, tools=TOOLS[:1]).run("and again", conversation=self.said, deps=self.world)
            if again.stop.reason != "answered":
                self.wrong.append(f"the conversation cannot be gone on with: {again.stop}")

    async def _quietly(self, run: Awaitable[RunResult]) -> Outcome:
        try:
            return Outcome(await run)
        except RunStopped as stop:
            return Outcome(stop.result)
        except Exception as error:
            return Outcome(error=error)

    # What the rules ask.

    def path(self, run_id: str) -> str:
        """The path of the agent that a run is one of."""
        first: Any = self.journal.events(run_id)[0]
        path: str = first.agent
        return path

    def above(self, run_id: str) -> list[str]:
        """The run and those that it works for."""
        found: list[str] = []
        while run_id in self.journal.ever:
            found.append(run_id)
            first: Any = self.journal.events(run_id)[0]
            if first.parent is None:
                break
            run_id = first.parent.run_id
        return found

    def tree(self, run_id: str) -> list[str]:
        """The run and those that work for it."""
        return [run for run in self.journal.ever if run_id in self.above(run)]

    def executed(self, runs: Sequence[str]) -> list[Execution]:
        """What the tools did for these runs."""
        return [one for one in self.world.executed if one.run_id in runs]

    @property
    def undisturbed(self) -> bool:
        """Whether nothing was taken from it: no process died, no journal failed, nobody cancelled it."""
        return not (self.before or self.journal.failed or self.ended_by_hand or self.world.raised or self.taken)

    @property
    def ended_by_hand(self) -> bool:
        """Whether the application itself cancelled the run, or a fork of it."""
        return any(one.asked_to_stop for one in whole_family(self))

    def ended(self, run_id: str) -> RunFinished | RunPaused | None:
        """The event with which a run ended or paused last; None if neither."""
        last = self.journal.events(run_id)[-1]
        return last if isinstance(last, (RunFinished, RunPaused)) else None

    def verdict(self, run_id: str, name: str, n: int) -> str:
        """What the rules of a run, of those above it, and the tool itself say of a call: "deny", "ask" or "allow"."""
        always = [rule for rule in self.rules(run_id) if not rule.repeats or rule.action == "allow"]
        found = {rule.action for rule in always if rule.matches(name, n)}
        if "deny" in found:
            return "deny"
        if "ask" in found:
            return "ask"
        if "allow" in found:
            return "allow"
        return "ask" if asks(name, n) or self._server_asks(run_id, name) else "allow"

    def _server_asks(self, run_id: str, name: str) -> bool:
        """Whether the application says of a server that a person must agree to what does more than read."""
        served = self.setup.at(self.path(run_id)).server
        return name in OWN and OWN[name] != "read" and served is not None and served.needs_approval

    def limits_of(self, run_id: str) -> Limits:
        """The limits that a run began with."""
        first: Any = self.journal.events(run_id)[0]
        limits: Limits = first.limits
        return limits

    def rules(self, run_id: str) -> list[Any]:
        """The rules of a run and of those above it, each as far as it names tools that its agent has."""
        found = []
        for setup in [self.setup.at(self.path(run)) for run in self.above(run_id)]:
            known = {*EFFECTS, *(one.name for one in setup.below)} - (set() if setup.server else set(OWN))
            for rule in setup.rules:
                tools = tuple(name for name in rule.tools if name in known)
                if tools or not rule.tools:
                    found.append(replace(rule, tools=tools))
        return found
