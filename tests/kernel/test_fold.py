"""fold: what a run's state says after its events."""

import json

import pytest

from treadle import Decision, Limits, Usage
from treadle.context.tokens import next_tokens
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ErrorInfo,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    ResultAwaited,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    Spent,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from treadle.kernel.stop import stopped

A, B = ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}")
START = RunStarted("r", (UserMessage("q"),), 1, Limits(tool_calls=3), at=100.0)


def said(*parts, step=0, at=102.0, **fields):
    return ModelReplied(step, AssistantMessage(tuple(parts)), at=at, **fields)


def prepared(step=0, at=101.0, **fields):
    return StepPrepared(step, Decision("go"), at=at, **fields)


ACTING = [START, prepared(), said(Text("on it"), A, B)]


def roles(state):
    return [message.role for message in state.messages]


def test_results_are_in_call_order_whatever_came_first():
    state = fold_all([*ACTING, ToolFinished(0, "b", "2"), ToolFinished(0, "a", "1")])
    assert state.phase == "ready"
    assert [message.text for message in state.messages] == ["q", "on it", "1", "2"]
    assert state.call_counts == {"t": 2}


def test_what_is_said_meanwhile_waits_until_the_results_are_in():
    aside = MessageAdded(UserMessage("aside"))
    state = fold_all([*ACTING, aside, ToolFinished(0, "a", "1")])
    assert state.inbox == (UserMessage("aside"),)
    assert roles(state) == ["user", "assistant"]
    state = fold(state, ToolFinished(0, "b", "2"))
    assert roles(state) == ["user", "assistant", "tool", "tool", "user"]
    assert state.inbox == ()


def test_a_message_during_the_last_reply_makes_another_step():
    state = fold_all([START, prepared(), MessageAdded(UserMessage("aside")), said(Text("hello"))])
    assert state.phase == "ready"
    assert roles(state) == ["user", "assistant", "user"]


def test_calls_over_the_limit_are_answered_as_they_are_recorded():
    calls = [ToolCall(id, "t") for id in "abcde"]
    state = fold_all([START, prepared(), said(*calls)])
    assert [record.status for record in state.step.calls] == ["asked"] * 3 + ["refused"] * 2
    assert state.open_calls == state.tool_calls == 3
    assert state.refused
    for id in "abc":
        state = fold(state, ToolFinished(0, id, "1"))
    assert [message.is_error for message in list(state.messages)[2:]] == [False] * 3 + [True] * 2


@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal"])
def test_calls_of_a_reply_that_was_cut_off_are_never_open(finish):
    state = fold_all([START, prepared(), said(A, finish=finish)])
    assert state.phase == "replied"
    assert state.tool_calls == 0
    assert json.loads(state.messages[-1].text)["executed"] is False


def test_calls_in_the_closing_reply_are_never_open():
    state = fold_all([START, prepared(landing=stopped("max_steps"), note="stop"), said(A)])
    assert state.phase == "replied"
    assert "Tools are off" in state.messages[-1].text


def test_time_counts_only_while_it_is_under_way():
    state = fold_all([*ACTING, ToolStarted(0, "a", at=105.0)])
    assert state.elapsed == 5
    state = fold_all([RunPaused(stopped("waiting"), at=106.0), RunResumed(at=9000.0)], state)
    assert state.elapsed == 6
    state = fold(state, ToolFinished(0, "b", "1", at=9002.0))
    assert state.elapsed == 8
    state = fold(state, ToolFinished(0, "a", "1", at=50.0))
    assert state.elapsed == 6


def test_a_crash_interrupts_what_was_started_and_nothing_else():
    state = fold_all([*ACTING, ToolStarted(0, "a"), RunResumed(at=200.0)])
    assert [record.status for record in state.step.calls] == ["interrupted", "asked"]
    state = fold_all([ToolStarted(0, "a"), ToolFinished(0, "a", "1")], state)
    assert state.step.calls[0].status == "done"


def test_resuming_may_replace_the_limits():
    assert fold_all([START, RunResumed(Limits(steps=1))]).limits == Limits(steps=1)
    assert fold_all([START, RunResumed()]).limits == START.limits


@pytest.mark.parametrize("finish", [stopped("cancelled"), stopped("deadline")])
def test_whatever_is_open_when_it_ends_is_answered(finish):
    calls = [ToolCall(id, "t") for id in "abc"]
    events = [START, prepared(), said(*calls), ToolStarted(0, "a"), ResultAwaited(0, "b"), RunFinished(finish)]
    state = fold_all(events)
    assert [message.call_id for message in list(state.messages)[2:]] == ["a", "b", "c"]
    shown = [message.text for message in list(state.messages)[2:]]
    assert json.loads(shown[0])["executed"] == "unknown"
    assert "waiting for one from outside when the run stopped" in json.loads(shown[1])["message"]
    assert json.loads(shown[2])["executed"] is False
    assert finish.reason in shown[0]
    assert state.step is None
    assert len(state.steps) == 1


def test_ending_before_the_reply_leaves_the_question():
    state = fold_all([START, prepared(), MessageAdded(UserMessage("aside")), RunFinished(stopped("cancelled"))])
    assert [message.text for message in state.messages] == ["q", "aside"]
    assert len(state.steps) == 0


def test_a_withdrawn_reply_is_kept_as_the_last_words():
    failed = ModelFailed(0, ErrorInfo("overloaded", "busy"), text="half an", retry_in=1.0)
    state = fold_all([START, prepared(), failed])
    assert (state.text, state.failure, state.phase) == ("half an", None, "prepared")
    assert roles(state) == ["user"]
    state = fold(state, said(Text("whole")))
    assert state.text == "whole"
    assert state.steps[-1].failures == 1


def test_errors_in_a_row_are_counted_and_a_success_starts_again():
    def step(number, *results):
        calls = [ToolCall(f"{number}{i}", "t") for i in range(len(results))]
        yield prepared(number)
        yield said(*calls, step=number)
        for i, is_error in enumerate(results):
            yield ToolFinished(number, f"{number}{i}", "x", is_error)

    state = fold_all([START])
    counts = []
    for number, results in enumerate([(True,), (True,), (True, False)]):
        state = fold_all(step(number, *results), unlimited(state))
        counts.append(state.errors)
    assert counts == [1, 2, 0]


def unlimited(state):
    return fold(state, RunResumed(Limits(tool_calls=None)))


def test_usage_and_money_add_up_and_an_unknown_price_stays_unknown():
    from decimal import Decimal

    state = fold_all([START, prepared(), said(Text(""), usage=Usage(10, 1)), NudgeGiven("x")])
    assert state.cost is None
    state = fold_all([prepared(1), said(Text("x"), step=1, usage=Usage(20, 2), cost=Decimal("0.1"))], state)
    assert state.usage == Usage(30, 3)
    assert state.cost == Decimal("0.1")


def test_a_denial_is_the_result():
    state = fold_all([*ACTING, ApprovalRequested(0, "a"), ApprovalDecided(0, "a", False, "too dear")])
    record = state.step.calls[0]
    assert record.is_error
    assert "too dear" in record.result.text
    assert not record.executed


def test_edited_arguments_count():
    state = fold_all([*ACTING, ApprovalRequested(0, "a"), ApprovalDecided(0, "a", True, arguments='{"n":2}')])
    record = state.step.calls[0]
    assert record.arguments == {"n": 2}
    assert record.call.arguments == "{}"


@pytest.mark.parametrize("ids", [("a", "a"), ("", "a"), ("",)])
def test_calls_without_an_id_of_their_own_are_illegal(ids):
    state = fold_all([START, prepared()])
    with pytest.raises(IllegalEvent, match="ids that differ"):
        fold(state, said(*(ToolCall(id, "t") for id in ids)))


PROVISIONAL = ToolFinished(0, "a", "low", app=1, provisional=True, at=104.0)


def test_a_provisional_result_is_found_and_not_yet_the_result():
    state = fold_all([*ACTING, ToolStarted(0, "a"), PROVISIONAL])
    record = state.step.calls[0]
    assert (record.status, record.result, record.found) == ("returned", None, ToolMessage("a", "t", "low"))
    assert (record.app, record.executed, state.open_calls) == (1, True, 2)
    assert roles(state) == ["user", "assistant"]


def reacted(action, **more):
    return fold_all([*ACTING, ToolStarted(0, "a"), PROVISIONAL, ToolReacted(0, "a", action, at=105.0, **more)])


def test_a_result_that_is_kept_is_the_calls_one_result():
    record = reacted("keep").step.calls[0]
    assert (record.status, record.result, record.app, record.ended_at) == ("done", ToolMessage("a", "t", "low"), 1, 105)


def test_a_result_that_is_replaced_is_not_shown():
    state = fold(reacted("replace", content="high", is_error=True, app=2), ToolFinished(0, "b", "2"))
    record = state.steps[0].calls[0]
    assert (record.result, record.app) == (ToolMessage("a", "t", "high", True), 2)
    assert [message.text for message in state.messages] == ["q", "on it", "high", "2"]


def test_a_call_in_place_of_another_counts_and_is_carried_out_as_any():
    other = ToolCall("a", "other", '{"n":2}')
    state = reacted("call", call=other)
    record = state.step.calls[0]
    assert (record.status, record.doing, record.made, record.name) == ("asked", other, 2, "t")
    assert record.found == ToolMessage("a", "t", "low")
    assert (state.tool_calls, state.open_calls) == (3, 2)
    state = fold_all([ToolStarted(0, "a"), ToolFinished(0, "a", "better"), ToolFinished(0, "b", "2")], state)
    assert state.steps[0].calls[0].result == ToolMessage("a", "t", "better")
    assert state.call_counts == {"t": 2, "other": 1}


def test_a_call_in_place_of_another_that_may_not_be_made_leaves_what_was_found():
    state = fold(reacted("call", call=ToolCall("a", "other", "{}")), ToolReacted(0, "a", "keep", reason="denied"))
    assert state.step.calls[0].result == ToolMessage("a", "t", "low")
    asked = fold_all(
        [ApprovalRequested(0, "a"), ApprovalDecided(0, "a", False)], reacted("call", call=ToolCall("a", "o"))
    )
    note = Text("o was to be called in its place; this was not approved.")
    assert asked.step.calls[0].result == ToolMessage("a", "t", (Text("low"), note))


def test_edited_arguments_are_those_of_the_call_that_stands_in():
    state = fold(reacted("call", call=ToolCall("a", "other", "{}")), ApprovalRequested(0, "a"))
    state = fold(state, ApprovalDecided(0, "a", True, arguments='{"n":3}'))
    assert state.step.calls[0].doing == ToolCall("a", "other", '{"n":3}')


@pytest.mark.parametrize(
    ("events", "reaction", "why"),
    [
        ([], ToolReacted(0, "a", "keep"), "no result yet"),
        ([ToolStarted(0, "a")], ToolReacted(0, "a", "keep"), "'started' and cannot take ToolReacted"),
        ([ToolFinished(0, "a", "1")], ToolReacted(0, "a", "keep"), "not open"),
        ([PROVISIONAL], ToolReacted(0, "a", "call"), "but not how"),
    ],
)
def test_a_reaction_to_nothing_is_illegal(events, reaction, why):
    state = fold_all([*ACTING, *events])
    with pytest.raises(IllegalEvent, match=why):
        fold(state, reaction)


def test_a_person_may_be_asked_about_a_result_and_the_answer_is_the_result():
    asked = fold_all([*ACTING, ToolStarted(0, "a"), PROVISIONAL, ResultAwaited(0, "a", True, question="Is it?")])
    assert (asked.step.calls[0].status, asked.step.calls[0].question) == ("awaited", "Is it?")
    assert asked.step.calls[0].found == ToolMessage("a", "t", "low")
    answered = fold(asked, ToolFinished(0, "a", "yes"))
    assert answered.step.calls[0].result == ToolMessage("a", "t", "yes")


def test_a_result_that_was_not_released_when_it_ends_is_not_shown():
    state = fold_all([*ACTING, ToolStarted(0, "a"), PROVISIONAL, RunFinished(stopped("cancelled"))])
    assert json.loads(state.messages[2].text)["executed"] is True
    assert "low" not in state.messages[2].text
    again = fold(reacted("call", call=ToolCall("a", "other", "{}")), ToolStarted(0, "a"))
    ended = fold(again, RunFinished(stopped("cancelled")))
    assert json.loads(ended.messages[2].text)["executed"] == "unknown"


def test_an_early_result_is_found_where_it_is_provisional():
    early = [ToolStarted(0, "x", "t", "{}", at=101.5), ToolFinished(0, "x", "low", provisional=True, at=101.7)]
    state = fold_all([START, prepared(), *early, said(A)])
    record = state.step.calls[0]
    assert (record.status, record.found, record.id) == ("returned", ToolMessage("a", "t", "low"), "a")


def test_calls_of_sub_runs_count():
    spent = Spent(steps=2, usage=Usage(10, 5), tool_calls=4)
    state = fold_all([*ACTING, ToolStarted(0, "a"), ToolFinished(0, "a", "1", spent=spent)])
    assert (state.tool_calls, state.sub_steps, state.usage) == (6, 2, Usage(10, 5))


def test_the_runs_above_may_leave_fewer_calls_than_the_limit():
    state = fold_all([START, prepared(), said(A, B, allowed=1)])
    assert [record.status for record in state.step.calls] == ["asked", "refused"]
    assert state.refused


def test_a_run_that_has_ended_is_taken_up_again_with_what_it_had():
    failed = ToolFinished(0, "a", "no", is_error=True), ToolFinished(0, "b", "no", is_error=True)
    ended = fold_all([*ACTING, *failed, RunFinished(stopped("max_steps"), Decision("stop"), {"n": 1}, at=110.0)])
    state = fold(ended, RunResumed(Limits(steps=9), at=9000.0))
    assert (state.phase, state.stop, state.decision, state.output) == ("ready", None, None, None)
    assert (ended.errors, state.errors, state.limits.steps) == (1, 0, 9)
    assert (state.messages, state.steps, state.tool_calls) == (ended.messages, ended.steps, 2)
    assert state.elapsed == ended.elapsed == 10
    assert (state.progress.stuck, state.progress.stuck_at) == (0, 1)
    with pytest.raises(IllegalEvent, match="'finished'"):
        fold(ended, MessageAdded(UserMessage("and?")))


def test_the_estimate_of_the_next_request_covers_what_nobody_counted():
    state = fold_all([START, prepared(), said(A, usage=Usage(1000, 50))])
    before = fold(state, ToolFinished(0, "a", ""))
    after = fold(state, ToolFinished(0, "a", "x" * 3000))
    assert next_tokens(before) >= 1050
    assert next_tokens(after) >= 2050
