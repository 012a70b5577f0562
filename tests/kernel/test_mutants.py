"""What mutation testing found untested in the kernel; each test kills a change that no other test noticed."""

import json
from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle import Decision, Limits, Usage
from treadle.context.chosen import rejoined
from treadle.kernel.accounts import FADING, Accounts, Ratio, RequestSize
from treadle.kernel.calls import told
from treadle.kernel.decide import Finish, decide
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ContextEdited,
    ErrorInfo,
    ModelFailed,
    ModelReplied,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall, ToolMessage, UserMessage

CALL = ToolCall("a", "t", "{}")


def acting(*calls, **fields):
    """The events of a run whose model has asked for `calls`."""
    started = RunStarted("r", (UserMessage("q"),), 1, Limits(), at=100.0, **fields)
    return [
        started,
        StepPrepared(0, Decision("go"), at=101.0),
        ModelReplied(0, AssistantMessage(calls or (CALL,)), at=102.0),
    ]


def found(**fields):
    """A run whose call has come back, with the application yet to say what becomes of it."""
    return [*acting(), ToolStarted(0, "a"), ToolFinished(0, "a", "1", provisional=True, **fields)]


def test_a_result_that_is_replaced_is_an_error_if_it_says_so_and_keeps_what_the_application_gets():
    state = fold_all([*found(), ToolReacted(0, "a", "replace", "2", True, {"n": 2})])
    record = state.steps[-1].calls[0]
    assert (record.result.is_error, record.app) == (True, {"n": 2})
    state = fold_all([*found(), ToolReacted(0, "a", "replace", "2")])
    assert state.steps[-1].calls[0].result.is_error is False


def test_a_call_in_place_of_a_hand_off_is_no_longer_the_answer():
    again = ToolReacted(0, "a", "call", call=ToolCall("a", "u", "{}"))
    state = fold_all([*found(final=True), again, ToolStarted(0, "a"), ToolFinished(0, "a", "2")])
    assert (state.handed_on, state.phase) == (False, "ready")


def test_a_call_in_doubt_that_is_denied_is_an_error_of_unknown_outcome():
    cut = [*acting(), ToolStarted(0, "a"), RunResumed(), ApprovalRequested(0, "a", "interrupted")]
    state = fold_all([*cut, ApprovalDecided(0, "a", False, "too late")])
    result = state.steps[-1].calls[0].result
    assert result.is_error
    assert '"executed":"unknown"' in result.text
    assert "too late" in result.text


def test_what_was_learnt_of_a_ratio_fades():
    ratio = Ratio().learnt(100, 50).learnt(10, 20)
    assert (ratio.reported, ratio.estimated) == (100 * FADING + 10, 50 * FADING + 20)


def test_an_edit_that_does_not_fit_says_what_would():
    events = [*acting(), ToolStarted(0, "a"), ToolFinished(0, "a", "1")]
    with pytest.raises(IllegalEvent, match="it replaces messages 1 to 9, but only those up to 3 may be replaced"):
        fold_all([*events, ContextEdited("p", 1, 9, ())])


@pytest.mark.parametrize("finish", ["tool_calls", "pause"])
def test_a_step_whose_calls_fail_is_a_fault_whatever_was_said_beside_them(finish):
    started, prepared, _ = acting()
    reply = ModelReplied(0, AssistantMessage((Text("let me see"), CALL)), finish=finish, at=102.0)
    assert fold_all([started, prepared, reply, ToolFinished(0, "a", "no", True)]).errors == 1


@pytest.mark.parametrize(("finish", "errors"), [("pause", 0), ("stop", 1)])
def test_a_reply_of_thoughts_alone_is_a_fault_unless_the_model_only_paused(finish, errors):
    started, prepared, _ = acting()
    reply = ModelReplied(0, AssistantMessage((Thinking("hm"),)), finish=finish)
    assert fold_all([started, prepared, reply]).errors == errors


def test_an_early_call_comes_back_once_and_under_its_own_id():
    started, prepared, _ = acting()
    begun = [started, prepared, ToolStarted(0, "a", "t", "{}"), ToolFinished(0, "a", "1")]
    with pytest.raises(IllegalEvent, match="no such call is under way"):
        fold_all([*begun, ToolFinished(0, "a", "2")])
    with pytest.raises(IllegalEvent, match="no such call is under way"):
        fold_all([*begun[:3], ToolFinished(0, "b", "2")])


def test_an_edit_of_a_chosen_history_leaves_the_run_s_own():
    """After `prepare_step` chose other messages for the step, those are what a policy makes shorter."""
    question, asked = UserMessage("q"), (UserMessage("one"), UserMessage("two"))
    started, prepared, _ = acting()
    chosen = [started, replace(prepared, messages=asked)]
    state = fold_all([*chosen, ContextEdited("p", 0, 1, ())])
    assert (list(state.messages), state.prepared.messages) == ([question], asked[1:])
    state = fold_all([started, prepared, ContextEdited("p", 0, 1, (UserMessage("short"),))])
    assert (list(state.messages), state.prepared.messages) == ([UserMessage("short")], None)


def test_what_a_reply_that_broke_off_took_is_counted():
    started, prepared, _ = acting()
    failed = ModelFailed(0, ErrorInfo("overloaded", "busy"), usage=Usage(7, 2), cost=Decimal("0.5"))
    state = fold_all([started, prepared, failed])
    assert (state.usage, state.cost) == (Usage(7, 2), Decimal("0.5"))


def test_a_call_that_was_not_made_says_so_in_words_that_models_know():
    refused = json.loads(told("no"))
    assert refused == {"error": True, "message": "no", "executed": False}


def test_money_without_tokens_is_counted():
    accounts = Accounts(Usage(1, 1)).charged(None, Decimal(2))
    assert (accounts.usage, accounts.cost) == (Usage(1, 1), Decimal(2))


def test_a_step_that_is_prepared_anew_takes_its_note_back():
    started, prepared, _ = acting()
    before = (UserMessage("one"), UserMessage("two"), UserMessage("three"))
    events = [replace(started, messages=before), replace(prepared, note="hurry")]
    assert [message.text for message in fold_all(events).messages] == ["one", "two", "three", "hurry"]
    assert fold_all([*events, RunResumed()]).messages == list(before)
    assert fold_all([events[0], prepared, RunResumed()]).messages == list(before)


def test_a_result_that_is_kept_brings_its_own_message_along():
    earlier = AssistantMessage((ToolCall("a", "t", '{"n": 1}'),))
    later = AssistantMessage((ToolCall("b", "t", '{"n": 2}'),))
    results = [ToolMessage("a", "t", "1"), ToolMessage("b", "t", "2")]
    history = [UserMessage("q"), earlier, results[0], later, results[1], UserMessage("and?")]
    assert rejoined([results[0]], history) == [earlier, results[0]]
    assert rejoined([results[1]], history) == [later, results[1]]
    # One of another conversation has no message here, and is left out.
    assert rejoined([ToolMessage("c", "t", "3"), UserMessage("x")], history) == [UserMessage("x")]


def test_the_look_that_led_to_the_closing_reply_says_why():
    started, *step = acting()
    state = fold_all([replace(started, limits=Limits(steps=2), tools=("t",)), *step, ToolFinished(0, "a", "1")])
    command = decide(state)
    assert command.decision.verdict == "land"
    assert command.decision.why == command.landing.detail != ""
    assert command.decision.why in command.note


def test_a_model_that_will_not_call_a_tool_is_told_so_and_then_the_run_ends():
    started, *_ = acting()
    state, told = fold_all([replace(started, tool_choice="required", tools=("t",))]), 0
    for step in range(9):
        reply = ModelReplied(step, AssistantMessage((Text("no"),)))
        state = fold_all([StepPrepared(step, Decision("go")), reply], state)
        command = decide(state)
        if isinstance(command, Finish):
            break
        told += 1
        state = fold_all([command.event()], state)
    assert (told, command.stop.reason) == (2, "no_progress")


def test_a_request_of_one_token_is_a_size_that_was_reported():
    assert RequestSize().after("m", Usage(1, 1), 10, True, 2) == RequestSize(2, 2, True)


def test_all_kinds_of_tokens_add_up():
    assert Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50) == Usage(11, 22, 33, 44, 55)


def test_a_run_whose_model_failed_ends_with_the_look_that_ended_it():
    started, prepared, _ = acting()
    command = decide(fold_all([started, prepared, ModelFailed(0, ErrorInfo("authentication", "who are you"))]))
    assert (command.stop.reason, command.decision.verdict) == ("model_error", "stop")
    assert command.decision.why == command.stop.detail == "authentication: who are you"


def test_a_limit_in_dollars_of_a_kind_of_number_of_its_own_becomes_a_plain_one():
    class Dollars(Decimal):
        pass

    limits = Limits(usd=Dollars("1.50"))
    assert (type(limits.usd), limits.budget) == (Decimal, Decimal("1.5"))


def test_a_run_that_is_told_that_it_is_stuck_goes_up_the_ladder_and_comes_down():
    started, prepared, _ = acting()
    told = fold_all([started, replace(prepared, stuck=1)])
    assert (told.progress.stuck, told.progress.stuck_at) == (1, 0)
    step = [ModelReplied(0, AssistantMessage((CALL,))), ToolFinished(0, "a", "1")]
    withheld = fold_all([*step, StepPrepared(1, Decision("go"), stuck=2, withheld=("t",))], told)
    assert (withheld.progress.stuck, withheld.progress.stuck_at) == (2, 1)
    step = [ModelReplied(1, AssistantMessage((CALL,))), ToolFinished(1, "a", "1")]
    free = fold_all([*step, StepPrepared(2, Decision("go"))], withheld)
    assert (free.progress.stuck, free.progress.stuck_at) == (0, 1)
