"""Who acts: the processes of a simulated world, the jobs that they carry out, and the trace of all that happens.

A job is one delivery of a run to a process: "begin this", "go on with that", "here is what was decided". Journal, tools
and models ask `job()` for whom they work, so that one agent serves all processes, as one program would.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sim_clock import Loop, Timeline


@dataclass(frozen=True)
class Weather:
    """What goes wrong in a world, and how often; each share is of the occasions that there are.

    Attributes:
        crashes: how many processes die; `pauses`, how many stand still for a while; `steps`, how often a clock is set.
        refuses: share of the journal's answers that are errors, with nothing stored; `unheard`, with everything stored.
        slow: share of what takes long that does not usually; `instant`, whether the journal is there at once.
        in_order: whether what a process sends to the journal arrives in the order in which it was sent.
        twice: share of the deliveries that are made again, to any process; `late`, of those that are made late.
        cancels: how many jobs are cancelled by who runs the process.
        careless: share of the decisions to make a call again that nobody has looked into.
        lease: how many seconds a lease lasts; None where the journal keeps none. `near` is whether it is known at once
            that the process that has it is gone.
        promises: whether the journal can be handed events without a wait; only if it keeps leases, since the number of
            events alone does not tell what follows something that was not stored.
        edits: share of the calls that a person allows with other arguments; `two`, of the decisions that somebody else
            decides otherwise at the same time.
        ends: how many runs another process ends; `forks`, how many are forked while they go on, or later; `watches`,
            how often another process watches one; `prunes`, how often somebody deletes a run below that another waits
            for, which nothing can go on with then.
    """

    crashes: int = 0
    pauses: int = 0
    steps: int = 0
    refuses: float = 0.0
    unheard: float = 0.0
    slow: float = 0.0
    instant: bool = False
    in_order: bool = True
    twice: float = 0.0
    late: float = 0.0
    cancels: int = 0
    careless: float = 0.0
    lease: float | None = None
    near: bool = True
    promises: bool = False
    edits: float = 0.0
    two: float = 0.0
    ends: int = 0
    forks: int = 0
    watches: int = 0
    prunes: int = 0

    @classmethod
    def of(cls, rng: Random, others: Random) -> "Weather":
        """A weather: each kind of fault is met in some worlds and not in others; `others` is for what people do."""
        return cls(
            crashes=rng.choice([0, 1, 1, 2, 4]),
            pauses=rng.choice([0, 0, 1, 2]),
            steps=rng.choice([0, 0, 0, 1, 2]),
            refuses=rng.choice([0, 0, 0, 0.02, 0.1]),
            unheard=rng.choice([0, 0, 0, 0.02, 0.1]),
            slow=rng.choice([0, 0.02, 0.2]),
            instant=rng.random() < 0.1,
            in_order=rng.random() < 0.6,
            twice=rng.choice([0, 0, 0.2, 0.6]),
            late=rng.choice([0, 0, 0.2]),
            cancels=rng.choice([0, 0, 0, 0, 1]),
            careless=rng.choice([0, 0, 0.5]),
            lease=rng.choice([None, None, 1.0, 4.0]),
            near=rng.random() < 0.5,
            promises=rng.random() < 0.5,
            edits=others.choice([0, 0.5, 0.8]),
            two=others.choice([0, 0, 0.4]),
            ends=others.choice([0, 0, 0, 1, 2]),
            forks=others.choice([0, 0, 0, 1, 2]),
            watches=others.choice([0, 0, 1, 2]),
            prunes=others.choice([0, 0, 1]),
        )


class Process:
    """One process: an event loop, what of it is on its way to the journal, and the replies that it listens to."""

    def __init__(self, stage: "Stage", name: str) -> None:
        self.stage, self.name = stage, name
        self.loop = Loop(stage.timeline, name, self._had_turn)
        self.sent: list[Any] = []
        self.listening: list[Any] = []
        self.arrives_after = self.answered_after = 0.0
        self.dies_at: int | None = None
        self.pauses_at: int | None = None
        self.doomed = False
        self.heartbeat: Any = None

    @property
    def dead(self) -> bool:
        """Whether it has died."""
        return self.loop.dead

    def _had_turn(self) -> None:
        if self.doomed or self.loop.turns == self.dies_at:
            self.die()
        elif self.loop.turns == self.pauses_at:
            self.pause()

    def die(self) -> None:
        """Ends it here, between two turns: what it had sent may arrive, and it learns of nothing."""
        if self.dead:
            return
        self.loop.kill()
        self.stage.note(self.name, "dies", f"with {len(self.sent)} of its requests on their way to the journal")
        for request in self.sent:
            request.lost = self.stage.rng.random() < 0.5
        for bill in self.listening:
            # Its provider has not heard of it, and goes on.
            bill.sent = self.stage.rng.choice([bill.sent, bill.whole])
        self.stage.died(self)

    def pause(self) -> None:
        """Lets it stand still for a while, and wake as if nothing had been."""
        seconds = self.stage.rng.choice([0.2, 1.0, 5.0, 20.0])
        self.loop.paused = True
        self.stage.note(self.name, "stands still", f"for {seconds:g} s")
        self.stage.timeline.after(seconds, self._wake)
        self.stage.stands_still(self)

    def _wake(self) -> None:
        self.loop.paused = False
        self.stage.note(self.name, "goes on", "as if nothing had been")


@dataclass(eq=False)
class Job:
    """One delivery of a run to a process.

    Attributes:
        name: such as "p2.3": the third job of the second process.
        run_id: the run; empty until a new one has begun.
        given: what `resume` is given; None if the run is to begin.
        upset: whether a function of the application's has raised in it.
        faults: how often the journal failed it.
        cancelled: whether who runs the process has cancelled it.
        what: "" to carry the run on; "end", "fork" or "watch" for what else is done to it.
        seen: what it was shown of the run, if it watches it.
    """

    name: str
    process: Process
    run_id: str = ""
    question: str = ""
    given: dict[str, Any] | None = None
    upset: bool = False
    faults: int = 0
    cancelled: bool = False
    task: Any = None
    began: float = 0.0
    what: str = ""
    seen: list[Any] = field(default_factory=list)

    @property
    def live(self) -> bool:
        """Whether it is being carried out, or will be when its process wakes."""
        return not (self.process.dead or self.task.done())


JOB: ContextVar[Job] = ContextVar("job")


def job() -> Job:
    """The job that is being carried out here."""
    return JOB.get()


@dataclass(eq=False)
class Stage:
    """All that a world has, beside its agents.

    Attributes:
        trace: all that happened: the time, who, what, and more of it.
        wrong: what may not happen, and did.
        calm: whether nothing goes wrong any more.
    """

    seed: int
    rng: Random
    weather: Weather
    timeline: Timeline
    trace: list[tuple[float, str, str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    calm: bool = False
    outside: Any = None
    died: Any = None
    stands_still: Any = None

    def note(self, who: str, what: str, more: Any = "") -> None:
        """Keeps in the trace what happened."""
        self.trace.append((self.timeline.now, who, what, more))

    def blame(self, what: str) -> None:
        """Keeps what may not happen, as the trace shows it; nothing more happens after it."""
        if what not in self.wrong:
            self.wrong.append(what)
            self.note("AUDIT", what)
        self.timeline.over = True

    def chance(self, share: float) -> bool:
        """Whether something happens that happens in such a share of the cases, until it is calm."""
        return share > 0 and not self.calm and self.rng.random() < share

    def delay(self, usual: float) -> float:
        """How long something takes: around `usual` seconds, and now and then much longer."""
        took = usual * self.rng.random()
        return took + 3 * self.rng.random() if self.chance(self.weather.slow) else took
