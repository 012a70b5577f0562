"""Breakages: what somebody might break in the driver or in a journal, by name, to see that the simulation notices.

Each is a context in which treadle, or the simulated store, is broken in one place.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from msgspec.structs import replace
from sim_store import SimulatedJournal, Store

from treadle.drivers import answers, taking_up
from treadle.drivers.calls import admission, door, subrun
from treadle.drivers.purse.claims import paid_before
from treadle.drivers.purse.reckoning import lost_call
from treadle.drivers.run import Run
from treadle.journal.errors import JournalConflict, JournalDamaged
from treadle.journal.ones_own import standing_of
from treadle.kernel import step_changes
from treadle.kernel.calls import CallRecord
from treadle.kernel.events import Event, ModelReplied, RunResumed, ToolFinished
from treadle.kernel.messages import ToolCall
from treadle.kernel.state import RunState
from treadle.tools import ToolContext


@contextmanager
def appends_without_comparing() -> Iterator[None]:
    """The journal stores whatever it is sent, whoever owns the run."""
    real = Store.append

    def append(self: Store, author: Any, run_id: str, seq: int, batch: Any) -> None:
        real(self, author, run_id, len(self.runs.get(run_id, ())), batch)

    with mock.patch.object(Store, "append", append):
        yield


@contextmanager
def stores_half_a_batch() -> Iterator[None]:
    """An append that nobody hears the answer of may be stored in part."""
    real = Store.append

    def append(self: Store, author: Any, run_id: str, seq: int, batch: Any) -> None:
        torn = len(batch) > 1 and self.stage.chance(0.05)
        real(self, author, run_id, seq, batch[:-1] if torn else batch)

    with mock.patch.object(Store, "append", append):
        yield


@contextmanager
def forgets_what_it_acknowledged() -> Iterator[None]:
    """What was appended is only sure some time later: a process that dies takes its last events with it."""
    real = Store.append

    def append(self: Store, author: Any, run_id: str, seq: int, batch: Any) -> None:
        real(self, author, run_id, seq, batch)
        if author.process.doomed and len(self.runs[run_id]) > 1:
            self.runs[run_id] = self.runs[run_id][:-1]

    with mock.patch.object(Store, "append", append):
        yield


@contextmanager
def acts_before_the_start_is_recorded() -> Iterator[None]:
    """Nothing waits for what was fed before a tool runs or a model is called; it is written at the next pause."""
    with mock.patch.object(Run, "writes", False):
        yield


@contextmanager
def forgets_results() -> Iterator[None]:
    """Who takes a run up does not see the results of the step under way."""

    def fold_without(events: Sequence[Event]) -> RunState:
        last = max((i for i, event in enumerate(events) if isinstance(event, ModelReplied)), default=len(events))
        try:
            state = standing_of([one for i, one in enumerate(events) if i < last or not isinstance(one, ToolFinished)])
        except JournalDamaged:
            return standing_of(events)
        return replace(state, events=len(events))

    with mock.patch.object(taking_up, "standing_of", fold_without):
        yield


@contextmanager
def runs_interrupted_writes_again() -> Iterator[None]:
    """A write that was under way when a process died is made again, as if it could be."""
    real = admission.check

    def check(run: Run, record: Any) -> Any:
        tool = run.config.tools.get(record.doing.name)
        if record.status == "interrupted" and tool is not None and tool.agent is None:
            return admission.Admitted(record, tool, tool.validate(record.doing.arguments))
        return real(run, record)

    with mock.patch.object(door, "check", check):
        yield


@contextmanager
def has_another_key_each_time() -> Iterator[None]:
    """The idempotency key is another whenever the call is made again."""
    counts: dict[str, int] = {}
    real: Any = ToolContext.idempotency_key.fget  # type: ignore[attr-defined]

    def key(self: ToolContext) -> str:
        counts[real(self)] = counts.get(real(self), 0) + 1
        return f"{real(self)}~{counts[real(self)]}"

    with mock.patch.object(ToolContext, "idempotency_key", property(key)):
        yield


@contextmanager
def goes_on_after_a_conflict() -> Iterator[None]:
    """Whoever lost a run does not mind, and goes on."""
    real = SimulatedJournal.append

    async def append(self: SimulatedJournal, run_id: str, seq: int, events: Sequence[Any]) -> None:
        try:
            await real(self, run_id, seq, events)
        except JournalConflict:
            if seq == 0:
                raise

    with mock.patch.object(SimulatedJournal, "append", append):
        yield


@contextmanager
def takes_up_without_saying_so() -> Iterator[None]:
    """A run below is taken up without a word of it in its journal before something else is done."""

    async def taken_up_again(parent: Run, below: Any, record: Any) -> Run | None:
        events = await subrun.recorded_below(parent, record)
        if events is None:
            return None
        child = subrun.taken_up(parent, below, record, events)
        paid_before(child, record.spent)
        if not child.finished:
            child.feed(RunResumed(None, lost_call(child.state, child.model)))
        child.begun = await subrun.begun_below(child, () if child.state.step is None else child.state.step.calls)
        return child

    with mock.patch.object(subrun, "_taken_up_again", taken_up_again):
        yield


@contextmanager
def leaves_runs_below_open() -> Iterator[None]:
    """A run that ends from outside leaves those below it as they were."""

    async def left_below(run: Run, record: Any) -> None:
        return None

    with mock.patch("treadle.drivers.drive.left_below", left_below):
        yield


@contextmanager
def says_nothing_of_edits() -> Iterator[None]:
    """A model is not told of the arguments that a person put in place of its own."""
    with mock.patch.object(step_changes, "with_correction", lambda result, record: result):
        yield


@contextmanager
def makes_calls_as_the_model_wrote_them() -> Iterator[None]:
    """What a person put in place of a model's arguments is recorded, and not used."""
    real: Any = CallRecord.doing.fget  # type: ignore[attr-defined]

    def doing(self: CallRecord) -> ToolCall:
        return self.call if self.corrected and self.stand_in is None else real(self)

    with mock.patch.object(CallRecord, "doing", property(doing)):
        yield


@contextmanager
def takes_other_arguments_in_doubt() -> Iterator[None]:
    """A call that may have been done is made again with what a person puts in place of its arguments."""

    def edited(run: Run, record: CallRecord, arguments: Mapping[str, Any] | None) -> str | None:
        return None if arguments is None else json.dumps(arguments)

    with mock.patch.object(answers, "_edited", edited):
        yield


BREAKAGES = {
    "an append does not compare the number of events": appends_without_comparing,
    "a batch is stored in part": stores_half_a_batch,
    "what was acknowledged is forgotten at a crash": forgets_what_it_acknowledged,
    "a tool acts before its start is recorded": acts_before_the_start_is_recorded,
    "recorded results are not seen": forgets_results,
    "interrupted writes are made again": runs_interrupted_writes_again,
    "the idempotency key changes": has_another_key_each_time,
    "a conflict is ignored": goes_on_after_a_conflict,
    "runs below are taken up without a word": takes_up_without_saying_so,
    "runs below are left open": leaves_runs_below_open,
    "nothing is said of edits": says_nothing_of_edits,
    "other arguments are taken in doubt": takes_other_arguments_in_doubt,
    "edits are not used": makes_calls_as_the_model_wrote_them,
}
"""By what is broken."""
