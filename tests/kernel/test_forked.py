"""RunForked: the state of another run, as a run of its own, with what was taken counted and paid."""

from decimal import Decimal

import pytest

from treadle import Decision, Limits
from treadle.kernel.accounts import NOTHING_SPENT
from treadle.kernel.decide import PrepareStep, decide
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    ModelReplied,
    Parent,
    RunFinished,
    RunForked,
    RunPaused,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, Usage, UserMessage
from treadle.kernel.stop import stopped

STARTED = RunStarted("r", (UserMessage("q"),), 1, Limits(), model="small", parent=Parent("outer", 0, "x"), at=1.0)
REPLIED = ModelReplied(
    0, AssistantMessage((Text("on it"), ToolCall("a", "t", "{}"))), Usage(3, 4), cost=Decimal("0.5"), at=4.0
)
STEP = [STARTED, StepPrepared(0, Decision("go"), at=2.0), REPLIED]


def test_it_is_the_state_under_another_name():
    before = fold_all([*STEP, ToolStarted(0, "a", at=5.0), ToolFinished(0, "a", "1", at=6.0)])
    after = fold(before, RunForked("f", at=1000.0))
    assert (after.run_id, after.parent, after.model) == ("f", None, "small")
    assert (after.messages, after.steps, after.phase) == (before.messages, before.steps, "ready")
    assert (after.events, after.elapsed) == (before.events + 1, before.elapsed)
    assert isinstance(decide(after), PrepareStep)
    assert before.run_id == "r"


def test_what_was_taken_counts_and_is_paid():
    state = fold_all([*STEP, ToolFinished(0, "a", "1", at=6.0)])
    assert state.accounts.shared == NOTHING_SPENT
    state = fold(state, RunForked("f", at=9.0))
    assert (state.usage, state.cost, state.tool_calls) == (Usage(3, 4), Decimal("0.5"), 1)
    shared = state.accounts.shared
    assert (shared.usage, shared.cost, shared.tool_calls, shared.steps) == (Usage(3, 4), Decimal("0.5"), 1, 1)
    assert fold(state, RunForked("g", at=9.0)).accounts.shared == shared


def test_the_model_and_the_limits_may_be_others():
    state = fold_all([STARTED, RunForked("f", "large", Limits(steps=2), at=9.0)])
    assert (state.model, state.limits) == ("large", Limits(steps=2))
    assert fold_all([STARTED, RunForked("f")]).limits == STARTED.limits


def test_nothing_is_in_flight_after_it():
    state = fold_all([*STEP, ToolStarted(0, "a", at=5.0), RunForked("f", at=9.0)])
    assert [record.status for record in state.step.calls] == ["interrupted"]
    state = fold_all([*STEP[:2], RunForked("f", at=9.0)])
    assert (state.phase, state.step, state.prepared) == ("ready", None, None)


def test_one_that_had_ended_is_taken_up_again():
    state = fold_all([STARTED, RunFinished(stopped("max_steps"), at=2.0), RunForked("f", at=9.0)])
    assert (state.phase, state.stop) == ("ready", None)


def test_one_that_waits_is_not_forked():
    with pytest.raises(IllegalEvent):
        fold_all([STARTED, RunPaused(stopped("waiting"), at=2.0), RunForked("f", at=9.0)])
