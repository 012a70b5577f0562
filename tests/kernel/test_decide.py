"""decide: what is next, for every state; and the record of why."""

import pytest

from treadle import CallModel, Finish, Limits, Nudge, Pause, PrepareStep, RunTools, Usage, decide
from treadle.kernel.decide import EMPTY_REPLY
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ErrorInfo,
    ModelFailed,
    ModelReplied,
    Reserve,
    ResultAwaited,
    RunPaused,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, UserMessage
from treadle.kernel.stop import (
    ADVICE,
    FINISHED,
    LIMIT_REASONS,
    STOP_REASONS,
    Check,
    Decision,
    Judgement,
    Verdict,
    stopped,
)

A, B = ToolCall("a", "t", "{}"), ToolCall("b", "t", '{"n": 1}')


def started(limits=None, on_limit="answer", tools=("t",)):
    return [RunStarted("r", (UserMessage("q"),), 1, limits or Limits(), on_limit, tools=tools, at=1.0)]


def prepared(step=0, **fields):
    return StepPrepared(step, Decision("go"), at=2.0, **fields)


def said(*parts, step=0, **fields):
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return ModelReplied(step, AssistantMessage(content), at=3.0, **fields)


def acted(count, is_error=False):
    events = []
    for step in range(count):
        events += [prepared(step), said(A, step=step), ToolFinished(step, "a", "1", is_error, at=4.0)]
    return events


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], None),
        ([*started(), RunPaused(stopped("waiting"))], None),
        ([*started(), prepared()], CallModel(0)),
        ([*started(), prepared(), said("hello")], Finish(stopped("answered"))),
        ([*started(), prepared(), said("")], Nudge(EMPTY_REPLY)),
        ([*started(), prepared(), said(" \n")], Nudge(EMPTY_REPLY)),
        ([*started(), prepared(), said("h", finish="length", finish_detail="max")], Finish(stopped("length", "max"))),
        ([*started(), prepared(), said(A, finish="length")], Finish(stopped("length"))),
        ([*started(), prepared(), said(finish="refusal")], Finish(stopped("refusal"))),
        ([*started(), prepared(), said("h", finish="content_filter")], Finish(stopped("content_filter"))),
        ([*started(), prepared(), said("hello", finish="unknown")], Finish(stopped("answered"))),
    ],
)
def test_what_is_next(events, expected):
    assert decide(fold_all(events)) == expected


def acting(*events):
    return fold_all([*started(), prepared(), said(A, B), *events])


def test_the_calls_that_are_to_be_run():
    assert decide(acting()).calls == (A, B)
    assert decide(acting(ToolStarted(0, "a"))).calls == (B,)
    assert decide(acting(ToolStarted(0, "a"), ToolStarted(0, "b"))) is None
    assert decide(acting(ApprovalRequested(0, "a"))).calls == (B,)
    assert decide(acting(ApprovalRequested(0, "a"), ToolStarted(0, "b"))) is None


def test_it_pauses_when_nothing_is_left_but_waiting():
    asked = acting(ApprovalRequested(0, "a"), ToolFinished(0, "b", "1"))
    assert decide(asked) == Pause(stopped("waiting", "t (a)"))
    approved = acting(ApprovalRequested(0, "a"), ToolFinished(0, "b", "1"), ApprovalDecided(0, "a", True))
    assert isinstance(decide(approved), RunTools)
    both = acting(ResultAwaited(0, "a", True), ApprovalRequested(0, "b"))
    assert decide(both) == Pause(stopped("waiting", "t (a), t (b)"))
    mixed = acting(ResultAwaited(0, "a", False), ApprovalRequested(0, "b"))
    assert decide(mixed) == Pause(stopped("waiting", "t (b)"))


def test_an_external_call_ends_it_with_its_arguments():
    ended = acting(ToolFinished(0, "a", "1"), ResultAwaited(0, "b", False))
    assert decide(ended) == Finish(stopped("external_tool", "t"), output={"n": 1})


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("on_limit", ["answer", "stop", "raise"])
def test_the_last_step_is_kept_for_the_closing_reply(steps, on_limit):
    verdicts = []
    for made in range(steps + 1):
        command = decide(fold_all([*started(Limits(steps=steps), on_limit), *acted(made)]))
        verdicts.append(command.decision.verdict)
        if made == steps:
            assert command.stop.reason == "max_steps"
    closing = on_limit == "answer" and steps > 1
    assert verdicts == ["go"] * (steps - closing) + ["land"] * closing + ["stop"]


@pytest.mark.parametrize(
    ("limits", "events", "reason"),
    [
        (Limits(seconds=3), acted(1), "deadline"),
        (Limits(tokens=10), [prepared(), said(A, usage=Usage(5, 5)), ToolFinished(0, "a", "1")], "max_tokens"),
        (Limits(consecutive_errors=2), acted(2, is_error=True), "consecutive_errors"),
        (Limits(tool_calls=0), [prepared(), said(A)], "max_tool_calls"),
    ],
)
@pytest.mark.parametrize("on_limit", ["answer", "stop"])
def test_each_limit_at_its_edge(limits, events, reason, on_limit):
    command = decide(fold_all([*started(limits, on_limit), *events]))
    closing = on_limit == "answer" and reason in ("consecutive_errors", "max_tool_calls")
    if closing:
        assert isinstance(command, PrepareStep)
        assert command.landing.reason == reason
        assert "Tools are off" in command.note
    else:
        assert isinstance(command, Finish)
        assert command.stop.reason == reason
    assert command.decision.verdict == ("land" if closing else "stop")
    within = decide(fold_all([*started(Limits(), on_limit), *events]))
    assert isinstance(within, (PrepareStep, RunTools))
    assert getattr(within, "landing", None) is None


def test_a_call_whose_worst_case_breaks_the_budget_is_not_made():
    from decimal import Decimal

    def after(limits, reserve):
        return decide(fold_all([*started(limits), prepared(reserve=reserve)]))

    assert after(Limits(tokens=100), Reserve(100)) == CallModel(0)
    assert after(Limits(tokens=100), Reserve(101)).stop.reason == "max_tokens"
    assert after(Limits(usd=1), Reserve(9, Decimal(1))) == CallModel(0)
    assert after(Limits(usd=1), Reserve(9, Decimal("1.000001"))).stop.reason == "max_cost"


def test_a_condition_comes_before_a_limit_and_is_recorded_either_way():
    check = Check("enough", 1, 1, True)
    met = Judgement(Verdict(True, "enough", (check,)))
    command = decide(fold_all([*started(Limits(steps=1), "stop"), *acted(1)]), met)
    assert (command.stop.reason, command.stop.detail) == ("condition", "enough")
    command = decide(fold_all([*started(), *acted(1)]), Judgement(Verdict(False, "", (check,))))
    assert command.decision.conditions == (check,)


def test_a_limit_that_ends_a_loop_names_it():
    state = fold_all([*started(Limits(steps=1), "stop"), *acted(1)])
    command = decide(state, Judgement(loop="The last 2 steps made the same call."))
    assert command.stop.detail == "the limit of 1 steps is reached. The last 2 steps made the same call."


def test_a_failure_for_good_ends_it_and_one_that_is_tried_again_does_not():
    error = ErrorInfo("overloaded", "busy")
    failed = [*started(), prepared(), ModelFailed(0, error)]
    assert decide(fold_all(failed)).stop == stopped("model_error", "overloaded: busy")
    assert decide(fold_all([*started(), prepared(), ModelFailed(0, error, retry_in=1.0)])) == CallModel(0)
    landing = [*started(), prepared(landing=stopped("max_steps", "x")), ModelFailed(0, error)]
    assert decide(fold_all(landing)).stop.reason == "max_steps"


def test_the_record_has_a_row_for_each_limit_that_is_on():
    command = decide(fold_all([*started(Limits(steps=5, tokens=50, seconds=None)), *acted(2)]))
    rows = {
        row.name: (row.value, row.bound, row.met)
        for row in command.decision.checks(Limits(steps=5, tokens=50, seconds=None))
    }
    assert rows == {
        "steps": (2, 5, False),
        "tool_calls": (2, 100, False),
        "tokens": (0, 50, False),
        "consecutive_errors": (0, 3, False),
    }


def test_every_reason_that_is_not_an_end_has_advice():
    assert set(ADVICE) == set(STOP_REASONS) - FINISHED
    assert set(STOP_REASONS) > LIMIT_REASONS
