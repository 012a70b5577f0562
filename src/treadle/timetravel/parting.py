"""Parting: where two runs part: the first thing that was asked, said, called or given otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from treadle.journal import Journal
from treadle.journal.ones_own import check_journal, read_of
from treadle.kernel.calls import CallRecord
from treadle.kernel.events import ContextEdited, Event, MessageAdded, NudgeGiven, RunForked, StepPrepared
from treadle.kernel.fold import fold
from treadle.kernel.messages import SystemMessage, UserMessage
from treadle.kernel.state import RunState
from treadle.kernel.step import Step

What = Literal["instructions", "asked", "told", "made room", "said", "called", "given", "ended"]
"""What a row is about: the instructions; what a person said; what treadle told the model; an edit of the history; what
the model said, which call it made, which result that was given; and how the run ended."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing in the two runs, side by side: in which step, what, and the words of each; None where one has none."""

    step: int
    what: What
    a: str | None
    b: str | None

    @property
    def same(self) -> bool:
        """Whether it is the same in both."""
        return self.a == self.b


@dataclass(frozen=True, slots=True)
class Diff:
    """Two runs side by side.

    Attributes:
        a, b: the runs.
        rows: all that was asked, said, called and given in them, in order.
        at: which row is the first that differs; None if none does.
    """

    a: str
    b: str
    rows: tuple[Row, ...]
    at: int | None

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.at is None


async def diff(journal: Journal, a: str, b: str, other: Journal | None = None) -> Diff:
    """Holds run `a` of a journal against run `b`, of `other` if that is another one.

    Names of calls, times, tokens and costs are not compared.

    Raises:
        UnknownRun: there is no such run.
        JournalDamaged: the events of one are not what was stored.
        JournalUnavailable: a journal cannot be read.
        Misuse: it was given no journal.
    """
    found: list[Sequence[Event]] = []
    for one, run_id in ((journal, a), (journal if other is None else other, b)):
        check_journal("diff", one)
        found.append(await read_of(one, run_id))
    return diff_of(*found)


def diff_of(a: Sequence[Event], b: Sequence[Event]) -> Diff:
    """Holds two runs against each other."""
    one, other = _Told(), _Told()
    for told, events in ((one, a), (other, b)):
        for event in events:
            told.take(event)
        told.end()
    rows = tuple(_aligned(one.rows, other.rows))
    at = next((number for number, row in enumerate(rows) if not row.same), None)
    return Diff(one.state.run_id, other.state.run_id, rows, at)


_Said = tuple[int, What, str]


def _aligned(a: Sequence[_Said], b: Sequence[_Said]) -> Iterator[Row]:
    """The rows of two runs, those of a step and a kind beside each other in their order."""
    places = dict.fromkeys((step, what) for step, what, _ in sorted([*a, *b], key=_order))
    for step, what in places:
        mine, others = ([text for at, kind, text in one if (at, kind) == (step, what)] for one in (a, b))
        for left, right in zip_longest(mine, others):
            yield Row(step, what, left, right)


_ORDER = ("instructions", "asked", "told", "made room", "said", "called", "given", "ended")


def _order(said: _Said) -> tuple[int, int]:
    return said[0], _ORDER.index(said[1])


class _Told:
    """What was asked, said, called and given in one run."""

    def __init__(self) -> None:
        self.state = RunState()
        self.rows: list[_Said] = []

    def take(self, event: Event) -> None:
        before, self.state = self.state, fold(self.state, event)
        step = len(self.state.steps)
        match event:
            case MessageAdded(message=message):
                self.rows.append((step, "asked", message.text))
            case NudgeGiven(text=text):
                self.rows.append((step, "told", text))
            case StepPrepared(note=note) if note:
                self.rows.append((step, "told", note))
            case RunForked(instructions=str() as text):
                self.rows.append((step, "instructions", text))
            case ContextEdited(policy=policy) if event.start != event.stop or event.messages:
                self.rows.append((step, "made room", policy))
            case _:
                pass
        if not before.events:
            self._begun()
        for number in range(len(before.steps), len(self.state.steps)):
            self._step(self.state.steps[number])

    def end(self) -> None:
        """Adds what is under way, and how the run ended."""
        state = self.state
        if state.step is not None:
            self._step(state.step)
        stop = state.stop
        how = "" if stop is None else f"{stop.reason}: {stop.detail}" if stop.detail else stop.reason
        self.rows.append((len(state.steps), "ended", how or "it has not ended"))

    def _begun(self) -> None:
        for message in self.state.messages:
            if isinstance(message, SystemMessage):
                self.rows.append((0, "instructions", message.text))
            elif isinstance(message, UserMessage):
                self.rows.append((0, "asked", message.text))

    def _step(self, step: Step) -> None:
        if step.message is None:
            return
        if step.text.strip():
            self.rows.append((step.number, "said", step.text))
        for record in step.calls:
            self.rows.append((step.number, "called", _called(record)))
        for record in step.calls:
            text = "(no result yet)" if record.result is None else record.result.text
            self.rows.append((step.number, "given", f"error: {text}" if record.is_error else text))


def _called(record: CallRecord) -> str:
    """A call as the model made it, then as it was, or is to be, made with other arguments or by another tool."""
    told = [f"{one.name}({one.arguments})" for one in (record.call, *record.ran, record.doing)]
    return " as ".join(dict.fromkeys(told))
