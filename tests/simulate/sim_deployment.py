"""A deployment in a simulated world: processes, whoever tells them what to do, people who decide, and what goes wrong.

Whoever dispatches knows nothing of what processes do but what they say when they are done, and what stands in the
journal. It delivers a run at least once, now and then twice at the same time, to whichever process, and late. When the
faults of the weather have been, everything is calm, and everything must come to its end.
"""

import asyncio
import math
from contextvars import copy_context
from random import Random
from typing import Any

from sim_clock import Hung, Loop, Timeline, in_time_of
from sim_leases import LeasedJournal, LeasedStore, PromisingLeasedJournal
from sim_others import EDITABLE, begin, decided_otherwise, done_by_others, is_given_up, other_arguments
from sim_outside import Outside
from sim_stage import JOB, Job, Process, Stage, Weather
from sim_store import Row, SimulatedJournal, Store
from sim_worlds import Aborted, Upset, World, label_in

from treadle import Budget, Misuse, RunResult, RunStopped
from treadle.drivers.dispatch import Order
from treadle.journal import JournalConflict, JournalError, UnknownRun
from treadle.kernel.events import RunFinished, RunForked, RunStarted
from treadle.kernel.stop import LIMIT_REASONS
from treadle.result import Pending

CALM_AFTER = 25.0
"""Seconds after which nothing goes wrong any more."""

LOOK = 6.0
"""Seconds between two looks of the dispatcher for runs that nobody carries on."""

MOST_LOOKS = 60
"""Looks after which every run must have ended."""


class Queue:
    """Takes every order. Who dispatches looks in the journal anyway, and brings the run to somebody."""

    async def accept(self, agent: str) -> None:
        """There is always room."""

    async def dispatch(self, order: Order) -> None:
        """It is on its way."""


class Deployment:
    """One world from its beginning to its end."""

    def __init__(self, seed: int) -> None:
        self.world = World.of(seed)
        rng = Random(f"simulation {seed}")
        self.stage = Stage(seed, rng, Weather.of(rng, Random(f"people {seed}")), Timeline(rng))
        self.outside = self.stage.outside = Outside(self.stage)
        self.store = self.outside.store = Store(self.stage, self._stored)
        self.budgets: dict[str, Budget] = {}
        self.leases = LeasedStore(self.stage, self.store, self.stage.weather.near)
        seconds, promises = self.stage.weather.lease, self.stage.weather.promises
        if seconds is not None:
            leased = PromisingLeasedJournal if promises else LeasedJournal
            journal: SimulatedJournal = leased(self.stage, self.store, self.leases, seconds)
        else:
            journal = SimulatedJournal(self.stage, self.store)
        self.journal = journal
        self.agent = self.world.agent(journal, self.budgets)
        self.stage.died, self.stage.stands_still = self._died, self._stands_still
        self.jobs: list[Job] = []
        self.roots: dict[str, list[str]] = {}
        self.stops: dict[str, Any] = {}
        self._queues = Random(f"queues {seed}")
        self._names = self._looks = 0
        self._looking = False
        self._crashes = self.stage.weather.crashes
        self._pauses = self.stage.weather.pauses
        self._copies = 8
        self._due: list[str] = []
        self.loops: list[Loop] = []

    def carry_out(self) -> "Deployment":
        """All of it. What may not happen is in `stage.wrong`."""
        stage, timeline = self.stage, self.stage.timeline
        with in_time_of(timeline):
            for _ in range(stage.rng.randint(1, 3)):
                self._process()
            for i in range(self.world.runs):
                self.roots[f"Do <{'tuv'[i]}>."] = []
                self._submit(f"Do <{'tuv'[i]}>.")
            for _ in range(stage.weather.steps):
                timeline.after(8 * stage.rng.random(), self._set_a_clock)
            for _ in range(stage.weather.cancels):
                timeline.after(4 * stage.rng.random(), self._cancel)
            begin(self)
            timeline.after(CALM_AFTER, self._calm)
            self._look_again()
            try:
                timeline.run()
                self._take_up_what_has_ended()
                timeline.run()
            except Hung as hung:
                stage.blame(str(hung))
        return self

    def bury(self) -> None:
        """Lets go of all processes."""
        with in_time_of(self.stage.timeline):
            for loop in self.loops:
                loop.bury()

    # Processes, and what becomes of them.

    def _process(self) -> Process:
        self._names += 1
        process = Process(self.stage, f"p{self._names}")
        self.loops.append(process.loop)
        rng = self.stage.rng
        if self._crashes > 0 and rng.random() < 0.6:
            process.dies_at = _at_some_turn(rng)
        if self._pauses > 0 and rng.random() < 0.6:
            process.pauses_at = _at_some_turn(rng)
        self.stage.processes.append(process)
        self.stage.note(process.name, "starts")
        return process

    def _died(self, process: Process) -> None:
        self._crashes -= 1
        self.stage.processes.remove(process)
        self.stage.timeline.after(self.stage.rng.choice([0.1, 1.0, 4.0]), self._process)

    def _stands_still(self, process: Process) -> None:
        """Whoever watches over it may take it for dead."""
        self._pauses -= 1
        for one in self.jobs:
            if (
                one.process is process
                and one.live
                and one.run_id
                and one.what != "watch"
                and self.stage.rng.random() < 0.7
            ):
                given = {"takeover": True} if self.stage.rng.random() < 0.5 else {}
                self.stage.timeline.after(1.5 * self.stage.rng.random(), self._deliver, one.run_id, given)

    def _may_die_at(self, process: Process, share: float) -> None:
        """A moment at which it would matter if a process died, or stood still."""
        throw = self.stage.rng.random()
        if self.stage.calm or process.dead:
            return
        if self._crashes > 0 and throw < share:
            process.doomed = True
        elif self._pauses > 0 and throw > 1 - share and not process.loop.paused:
            process.pauses_at = process.loop.turns + 1

    def _set_a_clock(self) -> None:
        process = self.stage.rng.choice(self.stage.processes or [None])
        if process is not None:
            step = self.stage.rng.choice([-86_400.0, -5.0, 5.0, 86_400.0])
            process.loop.clock += step
            self.stage.note(process.name, "has its clock set", f"by {step:g} s")

    def _cancel(self) -> None:
        going_on = [one for one in self.jobs if one.live]
        if going_on:
            one = self.stage.rng.choice(going_on)
            one.cancelled = True
            self.stage.note(one.name, "is cancelled", "by who runs the process")
            one.task.cancel()

    def _calm(self) -> None:
        self.stage.calm = True
        self._crashes = self._pauses = 0
        for process in self.stage.processes:
            process.dies_at = process.pauses_at = None
        self.stage.note("-", "is calm from here on")

    # Deliveries.

    def _submit(self, question: str) -> None:
        self._later("", question, None)

    def _deliver(self, run_id: str, given: dict[str, Any] | None = None) -> None:
        self._later(run_id, "", given or {})
        if self._copies > 0 and self.stage.chance(self.stage.weather.twice):
            self._copies -= 1
            self._later(run_id, "", given or {})

    def _later(self, run_id: str, question: str, given: dict[str, Any] | None) -> None:
        late = self.stage.chance(self.stage.weather.late)
        when = 8 * self.stage.rng.random() if late else self.stage.delay(0.05)
        self._due.append(run_id or question)
        self.stage.timeline.after(when, self._begin, run_id, question, given)

    def _begin(self, run_id: str, question: str, given: dict[str, Any] | None) -> None:
        if not self.stage.processes:
            self.stage.timeline.after(1.0, self._begin, run_id, question, given)
            return
        self._due.remove(run_id or question)
        process = self.stage.rng.choice(self.stage.processes)
        self.put_to_work(process, Job("", process, run_id, question, given))

    def put_to_work(self, process: Process, one: Job) -> None:
        """Has a process do a job from here on."""
        one.name = f"{process.name}.{sum(other.process is process for other in self.jobs) + 1}"
        one.began = self.stage.timeline.now
        self.jobs.append(one)
        if not one.what:
            begins = "is to begin" if one.given is None else f"is to go on with {one.run_id}"
            self.stage.note(one.name, begins, one.given or one.question)
        context = copy_context()
        context.run(JOB.set, one)
        one.task = process.loop.create_task(self._carried(one), context=context)

    async def _carried(self, one: Job) -> None:
        try:
            result = await self._driven(one)
        except RunStopped as stop:
            if stop.result.stop.reason not in LIMIT_REASONS:
                self.stage.blame(f"{one.name} raises RunStopped for {stop.result.stop.reason}")
            result = stop.result
        except (Exception, asyncio.CancelledError, Aborted) as error:
            self._failed(one, error)
            return
        if result is None:
            self.stage.note(one.name, "has seen all", f"of {one.run_id}")
            return
        one.run_id = result.run_id
        self.stage.note(one.name, f"comes back: {result.stop.reason} {result.stop.detail}".rstrip())
        self._looked_at(one, result)
        self._heard(one, result)

    async def _driven(self, one: Job) -> RunResult | None:
        rng = self.stage.rng
        if one.what:
            return await done_by_others(self, one)
        if one.given is not None:
            if one.given and "takeover" not in one.given and self._queues.random() < 0.4:
                # What is decided is recorded for a worker, and this process is the one that the queue brings it to.
                await self.agent.resubmit(one.run_id, to=Queue(), **one.given)
                return await self.agent.drive(one.run_id)
            return await self.agent.resume(one.run_id, **one.given)
        if rng.random() < 0.7:
            return await self.agent.run(one.question)
        async with self.agent.stream(one.question) as live:
            one.run_id = live.run_id
            try:
                await self._steer(one, live)
            finally:
                async for _ in live:
                    pass
        result: RunResult = live.result
        return result

    async def _steer(self, one: Job, live: Any) -> None:
        rng = self.stage.rng
        for i in range(rng.randint(0, 2)):
            await asyncio.sleep(rng.random())
            throw = rng.random()
            if throw < 0.5:
                text = f"by the way, {one.name} {i}"
                try:
                    await live.send(text)
                except Misuse:
                    return
                self.outside.acknowledged.append((live.run_id, text))
                self.stage.note(one.name, "is told", text)
            elif throw < 0.7:
                self.stage.note(one.name, "is to pause")
                await live.pause()
            elif throw < 0.75:
                self.stage.note(one.name, "is cancelled", "by who watches it")
                await live.cancel()

    def _failed(self, one: Job, error: BaseException) -> None:
        """What a job may raise is what was done to it."""
        known = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        self.stage.note(one.name, "raises", known)
        given_up = is_given_up(self, one, error)
        if isinstance(error, asyncio.CancelledError):
            right = one.cancelled
        elif isinstance(error, JournalError):
            right = one.faults > 0 or any(self._crossed(one, other) for other in self.jobs)
        elif isinstance(error, Misuse):
            right = bool(one.given) or given_up
        else:
            right = isinstance(error, (Upset, Aborted)) and one.upset
        if not right:
            self.stage.blame(f"{one.name} raises {known}, and nothing was done to it")
        if given_up:
            return
        if one.what != "watch" and not isinstance(error, (Misuse, JournalConflict, UnknownRun)):
            self._heard(one, None)

    def _crossed(self, one: Job, other: Job) -> bool:
        """Whether another job has had the same run while this one was under way, or left something on its way to it."""
        return other is not one and other.run_id == one.run_id and other.what != "watch"

    def _looked_at(self, one: Job, result: RunResult) -> None:
        """What a job gives back is what stands in the journal."""
        rows = self.store.runs.get(result.run_id, [])
        if list(result.events) != [row.event for row in rows[: len(result.events)]]:
            self.stage.blame(f"{one.name} gives back other events of {result.run_id} than are stored")
        if result.stop.reason == "running":
            self.stage.blame(f"{one.name} gives {result.run_id} back, which is still running")

    def _heard(self, one: Job, result: RunResult | None) -> None:
        """The dispatcher hears what became of a job, or does not."""
        if not self.stage.chance(self.stage.weather.late):
            self.stage.timeline.after(self.stage.delay(0.05), self._hear, one, result)

    def _hear(self, one: Job, result: RunResult | None) -> None:
        if result is None:
            if one.run_id and not self._held(one.run_id):
                self._deliver(one.run_id)
        elif result.stop.reason == "waiting":
            self.stage.timeline.after(0.3 + self.stage.delay(1.0), self._decide, result)
        elif self._copies > 0 and self.stage.chance(self.stage.weather.twice):
            self._copies -= 1
            self._deliver(one.run_id)

    def _held(self, what: str) -> bool:
        """Whether a run or question is being carried out, as far as anybody knows, or soon will be."""
        live = (one for one in self.jobs if one.live and one.what != "watch")
        return what in self._due or any(what in (one.run_id, one.question) for one in live)

    def _stored(self, author: Job, run_id: str, rows: list[Row]) -> None:
        self.outside.stored(author, run_id, rows)
        first = rows[0].event
        if isinstance(first, RunStarted) and first.parent is None and not rows[0].number:
            author.run_id = run_id
            self.roots[author.question].append(run_id)
        elif isinstance(first, RunForked):
            author.run_id = run_id
            self.roots[f"fork {run_id}"] = [run_id]
            self._look_again()
        self._may_die_at(author.process, 0.02)

    # People.

    def _decide(self, result: RunResult) -> None:
        """A person decides on what waits, or on some of it, as it was shown."""
        rng, approve, deny, results = self.stage.rng, dict[str, Any](), dict[str, str](), dict[str, Any]()
        waiting = list(result.pending)
        if waiting and self.stage.chance(0.3):
            waiting = rng.sample(waiting, rng.randint(1, len(waiting)))
        for one in waiting:
            # What is delivered twice answers one question only if it says which.
            name, label = one.key, label_in(one.arguments_json)
            throw = rng.randrange(6)
            if one.kind == "interrupted":
                self._edit_in_doubt(result.run_id, one, label)
                done = self.outside.done(result.run_id, one.tool, label)
                if done is None or self.stage.chance(self.stage.weather.careless):
                    self.outside.say_again(result.run_id, one.tool, label)
                    approve[name] = None
                else:
                    results[name] = done
            elif one.kind == "result":
                results[name] = f"answer to {label}"
            elif throw == 0:
                deny[name] = "too dear"
            elif "label" in one.arguments_json and self.stage.chance(self.stage.weather.edits):
                approve[name] = other_arguments(rng, one.tool, label)
                self.stage.note("a person", "decides on other arguments", approve[name])
            else:
                approve[name] = {"label": label} if throw == 1 and "label" in one.arguments_json else None
        given = {"approve": approve, "deny": deny, "results": results}
        self._deliver(result.run_id, {name: value for name, value in given.items() if value})
        if self.stage.chance(self.stage.weather.two) and (other := decided_otherwise(given, waiting)):
            self.stage.note("somebody else", "decides too", other)
            self._deliver(result.run_id, other)

    def _edit_in_doubt(self, run_id: str, one: Pending, label: str) -> None:
        """A person would have a call that may have been done made again with other arguments, which is refused."""
        if one.tool in EDITABLE and self.stage.chance(self.stage.weather.edits):
            other = other_arguments(self.stage.rng, one.tool, label)
            if other != one.arguments:
                self.stage.note("a person", "decides in doubt on other arguments", other)
                self._deliver(run_id, {"approve": {one.key: other}})

    # The end.

    def _look(self) -> None:
        """Looks for runs that nobody carries on; a person may say that a process is gone that only stands still."""
        self._looks, self._looking = self._looks + 1, False
        open_runs = 0
        for question, runs in self.roots.items():
            if not runs:
                open_runs += 1
                if not self._held(question):
                    self._submit(question)
            for run_id in runs:
                if not self.ended(run_id):
                    open_runs += 1
                    if not self._held(run_id) or self.stage.chance(self.stage.weather.twice / 3):
                        self._deliver(run_id)
        if self._looks > MOST_LOOKS:
            self.stage.blame(f"{open_runs} runs have not come to an end")
        elif open_runs:
            self._look_again()

    def _look_again(self) -> None:
        if not self._looking:
            self._looking = True
            self.stage.timeline.after(LOOK, self._look)

    def ended(self, run_id: str) -> bool:
        """Whether a run has ended."""
        rows = self.store.runs.get(run_id, [])
        return bool(rows) and isinstance(rows[-1].event, RunFinished)

    def _take_up_what_has_ended(self) -> None:
        """Whoever asks for a run that has ended is told how it did, and changes nothing."""
        self._calm()
        self.stops = {run_id: rows[-1] for run_id, rows in self.store.runs.items()}
        if self.stage.wrong:
            return
        for runs in self.roots.values():
            for run_id in runs:
                if self.ended(run_id):
                    self._due.append(run_id)
                    self._begin(run_id, "", {})


def _at_some_turn(rng: Random) -> int:
    return int(math.exp(rng.uniform(math.log(4), math.log(700))))
