"""What each event changes of a run's state, field by field, and that it changes nothing else."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle import Decision, Limits, Usage
from treadle.kernel.accounts import Accounts, Progress, Ratio, RequestSize, Spent
from treadle.kernel.calls import Awaited, CallRecord, cut_off, told
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ContextEdited,
    ErrorInfo,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    Reserve,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolsListed,
    ToolStarted,
)
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, ListedTool, Text, Thinking, ToolCall, ToolMessage, UserMessage
from treadle.kernel.state import RunState, Stock
from treadle.kernel.step import Step
from treadle.kernel.stop import stopped

A, B = ToolCall("a", "t", "{}"), ToolCall("b", "u", '{"n":1}')
QUESTION = UserMessage("q")
GO = Decision("go", steps=3)
STARTED = RunStarted("r", (QUESTION,), 1, Limits(tool_calls=9), tool_tokens=7, polling=("u",), at=100.0)
PREPARED = StepPrepared(0, GO, at=101.0)
REPLIED = ModelReplied(0, AssistantMessage((A, B)), Usage(10, 4), cost=Decimal("0.5"), at=103.0)
TOOK = Spent(2, Usage(5, 1), Decimal("0.25"), 3, unpriced=True, presumed=Decimal("0.1"))


def differences(before, after):
    """The fields in which two structs of a kind differ, with the later values."""
    fields = before.__struct_fields__
    return {name: getattr(after, name) for name in fields if getattr(before, name) != getattr(after, name)}


def changed(events, event):
    """What `event` changes of the state after `events`, but for the time and the count, which it always does."""
    before = fold_all(events)
    after = fold(before, event)
    assert (after.now, after.events) == (event.at, len(events) + 1)
    found = differences(before, after)
    return {name: value for name, value in found.items() if name not in ("now", "events")}


def call_changed(events, event, call_id="a"):
    """What `event` changes of the record of a call, which must be all that it changes of its step."""
    before, after = fold_all(events).step, fold_all([*events, event]).step
    assert set(differences(before, after)) == {"calls"}
    others = [(one, other) for one, other in zip(before.calls, after.calls, strict=True) if one.id != call_id]
    assert all(one == other for one, other in others)
    return differences(before.calls.find(call_id), after.calls.find(call_id))


def acting(*events, started=STARTED):
    return [started, PREPARED, REPLIED, *events]


RUNNING = acting(ToolStarted(0, "a", at=104.0))
BACK = [*RUNNING, ToolFinished(0, "a", "1", app={"n": 1}, provisional=True, at=106.0)]


def test_a_run_begins():
    assert changed([], STARTED) == {
        "phase": "ready",
        "started": STARTED,
        "limits": Limits(tool_calls=9),
        "size": RequestSize(7),
        "tool_tokens": 7,
        "messages": [QUESTION],
        "pinned": [QUESTION],
        "resumed_at": 100.0,
    }


def test_the_last_question_is_pinned_and_what_was_asked_before_a_conversation_was_handed_on():
    said, notice = AssistantMessage((Text("hi"),)), UserMessage("left out", 3)
    assert fold_all([replace(STARTED, messages=(said,))]).pinned == []
    assert fold_all([replace(STARTED, messages=(QUESTION, said, notice))]).pinned == [QUESTION]
    assert fold_all([replace(STARTED, messages=(said, UserMessage("x"), QUESTION))]).pinned == [QUESTION]
    handed = replace(STARTED, messages=(UserMessage("x"), QUESTION, said, notice, UserMessage("y")), asked=(1, 4))
    assert fold_all([handed]).pinned == [QUESTION, UserMessage("y")]
    assert fold_all([replace(handed, asked=(2, 3, 9))]).pinned == []


def test_a_step_is_prepared():
    assert changed([STARTED], PREPARED) == {"phase": "prepared", "step": Step(0, GO, 101.0), "prepared": PREPARED}
    why = stopped("max_steps")
    reserve = Reserve(500, Decimal(1), 50, "max_tokens")
    event = StepPrepared(0, GO, why, "last", tool_choice="none", reserve=reserve, withheld=("t",), stuck=2, at=101.0)
    step = Step(0, GO, 101.0, why, tool_choice="none", withheld=("t",), held_by="max_tokens")
    found = changed([replace(STARTED, tool_choice="t")], event)
    assert found.pop("progress") == Progress(stuck=2)
    assert found.pop("messages") == [QUESTION, UserMessage("last")]
    assert found == {"phase": "prepared", "step": step, "prepared": event}
    assert fold_all([replace(STARTED, tool_choice="t"), PREPARED]).step.tool_choice == "t"


def test_where_the_ladder_stands_is_the_step_that_withheld_tools_and_else_where_it_stood():
    told_so = [*acting(ToolFinished(0, "a", "1"), ToolFinished(0, "b", "1")), NudgeGiven("stuck", stuck=True, at=107.0)]
    assert fold_all(told_so).progress == Progress(1, 1, 1)
    withheld = fold_all([*told_so, StepPrepared(1, GO, stuck=2, withheld=("t",))]).progress
    assert (withheld.stuck, withheld.stuck_at, withheld.nudges) == (2, 1, 1)
    free = fold_all([*told_so, StepPrepared(1, GO)]).progress
    assert (free.stuck, free.stuck_at) == (0, 1)


def test_a_step_out_of_turn_is_illegal_and_says_which_is_next():
    with pytest.raises(IllegalEvent, match=r"step 1 was prepared, but step 0 is next \(run r\)"):
        fold_all([STARTED, StepPrepared(1, GO)])


def test_a_reply_with_calls():
    reply = replace(REPLIED, finish="tool_calls", finish_detail="tool_use", model="m", handed_in=True)
    reserve = Reserve(500, Decimal("0.75"))
    found = changed([STARTED, replace(PREPARED, reserve=reserve)], replace(reply, cost=None))
    step = found.pop("step")
    assert step == replace(
        Step(0, GO, 101.0),
        model="m",
        message=REPLIED.message,
        usage=Usage(10, 4),
        finish="tool_calls",
        finish_detail="tool_use",
        calls=[CallRecord(A), CallRecord(B)],
        handed_in=True,
        replied_at=103.0,
    )
    assert found == {
        "phase": "acting",
        "messages": [QUESTION, REPLIED.message],
        "open_calls": 2,
        "accounts": Accounts(Usage(10, 4), tool_calls=2, unpriced=True, presumed=Decimal("0.75")),
        "size": RequestSize(14, 2, reported=True),
    }


def test_a_reply_in_words_closes_its_step():
    said = AssistantMessage((Text("hello"),))
    found = changed([STARTED, PREPARED], ModelReplied(0, said, Usage(10, 4), at=103.0))
    assert found.pop("steps") == [
        Step(0, GO, 101.0, message=said, usage=Usage(10, 4), replied_at=103.0, ended_at=103.0)
    ]
    assert found == {
        "phase": "replied",
        "messages": [QUESTION, said],
        "step": None,
        "prepared": None,
        "accounts": Accounts(Usage(10, 4), unpriced=True),
        "size": RequestSize(14, 2, reported=True),
        "text": "hello",
    }


@pytest.mark.parametrize(
    ("text", "finish", "kept", "goes_on", "errors"),
    [
        ("hello", "stop", True, False, 0),
        (" \n", "stop", False, False, 1),
        (" \n", "pause", False, True, 1),
        ("hello", "pause", True, True, 0),
        ("hello", "length", True, False, 0),
    ],
)
def test_what_a_reply_says_is_kept_unless_it_is_blank(text, finish, kept, goes_on, errors):
    state = fold_all([STARTED, PREPARED, ModelReplied(0, AssistantMessage((Text(text),)), finish=finish)])
    assert (len(state.messages), state.phase) == (1 + kept, "ready" if goes_on else "replied")
    assert (state.text, state.errors) == (text if kept else "", errors)


def test_a_step_has_what_its_reply_cost_and_a_thought_alone_is_kept_where_the_model_only_paused():
    assert fold_all(acting()).step.cost == Decimal("0.5")
    thought = AssistantMessage((Thinking("hm"),))
    for finish, kept in (("pause", True), ("stop", False), ("length", False)):
        state = fold_all([STARTED, PREPARED, ModelReplied(0, thought, finish=finish)])
        assert (len(state.messages) == 2) is kept


def test_a_request_that_was_chosen_is_not_the_size_of_the_next_one():
    for chosen in ({"tools": ("t",)}, {"tool_choice": "t"}, {"messages": (QUESTION,)}, {"instructions": "Be kind."}):
        state = fold_all([STARTED, replace(PREPARED, **chosen), replace(REPLIED, estimate=3)])
        assert state.size == RequestSize(7 + 3 + 4, 2), chosen


def test_a_failed_attempt():
    error, reserve = ErrorInfo("overloaded", "busy"), Reserve(500, Decimal("0.75"))
    before = [STARTED, replace(PREPARED, reserve=reserve)]
    found = changed(before, ModelFailed(0, error, text="so far", usage=Usage(5, 1), at=102.0))
    assert found.pop("step") == Step(0, GO, 101.0, failures=1, waited=1.0)
    assert found == {
        "failure": error,
        "accounts": Accounts(Usage(5, 1), unpriced=True, presumed=Decimal("0.75")),
        "text": "so far",
    }
    again = changed(before, ModelFailed(0, error, text=" ", retry_in=0.5, cost=Decimal(2), at=102.0))
    step = again.pop("step")
    assert (step.failures, step.waited) == (1, 1.5)
    assert again == {"accounts": Accounts(cost=Decimal(2))}
    twice = fold_all([*before, ModelFailed(0, error, text="first", retry_in=1.0), ModelFailed(0, error)])
    assert (twice.step.failures, twice.text, twice.failure) == (2, "first", error)


def test_an_early_call_begins_comes_back_and_is_the_replys():
    begun = [STARTED, PREPARED, ToolStarted(0, "x", "t", "{}", at=102.0)]
    found = changed(begun[:2], begun[2])
    assert list(found) == ["early"]
    assert (found["early"][0].call, found["early"][0].started_at) == (ToolCall("x", "t", "{}"), 102.0)
    back = ToolFinished(0, "x", "1", True, {"n": 1}, provisional=True, at=102.5)
    (early,) = changed(begun, back)["early"]
    assert early == replace(
        found["early"][0],
        status="returned",
        found=ToolMessage("x", "t", "1", is_error=True),
        app={"n": 1},
        seconds=0.5,
    )
    state = fold_all([*begun, back, REPLIED])
    assert state.early == ()
    assert state.step.calls[0] == CallRecord(
        A,
        "returned",
        app={"n": 1},
        found=ToolMessage("a", "t", "1", is_error=True),
        began_as="x",
        executed=True,
        started_at=102.0,
        seconds=0.5,
    )
    assert (state.open_calls, state.tool_calls) == (2, 2)


def test_an_early_call_becomes_the_call_of_the_whole_reply():
    begun = [STARTED, PREPARED, ToolStarted(0, "early", "t", "{}", at=102.0)]
    whole = ModelReplied(0, AssistantMessage((ToolCall("whole", "t", "{}"), B)), at=104.0)
    record = CallRecord(ToolCall("whole", "t", "{}"), "started", began_as="early", executed=True, started_at=102.0)
    assert fold_all([*begun, whole]).step.calls[0] == record
    back = ToolFinished(0, "early", "1", True, {"n": 1}, at=103.5)
    shown = ToolMessage("whole", "t", "1", is_error=True)
    done = replace(record, status="done", result=shown, app={"n": 1}, ended_at=103.5, seconds=1.5)
    assert fold_all([*begun, back, whole]).step.calls[0] == done
    found = replace(done, status="returned", result=None, found=shown, ended_at=0.0)
    assert fold_all([*begun, replace(back, provisional=True), whole]).step.calls[0] == found


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (ToolStarted(0, "x", "t", "{}"), r"call 'x' cannot be started before the reply that asks for it is in"),
        (ToolStarted(0, "y"), r"call 'y' cannot be started before the reply that asks for it is in"),
        (ToolFinished(0, "y", "1"), r"ToolFinished names call 'y', but no such call is under way yet"),
        (ToolFinished(1, "x", "1"), r"ToolFinished names step 1, but step 0 is under way \(run r\)"),
        (ToolStarted(1, "y", "t"), r"ToolStarted names step 1, but step 0 is under way \(run r\)"),
        (ModelReplied(1, AssistantMessage()), r"ModelReplied names step 1, but step 0 is under way \(run r\)"),
        (ModelFailed(1, ErrorInfo("x", "y")), r"ModelFailed names step 1, but step 0 is under way \(run r\)"),
        (ModelReplied(0, AssistantMessage((A, A))), r"the calls of step 0 need ids that differ \(run r\)"),
    ],
)
def test_what_cannot_follow_while_a_reply_arrives(event, why):
    with pytest.raises(IllegalEvent, match=why):
        fold_all([STARTED, PREPARED, ToolStarted(0, "x", "t", "{}"), event])


def test_only_the_early_call_that_is_named_comes_back():
    begun = [STARTED, PREPARED, ToolStarted(0, "x", "t", "{}"), ToolStarted(0, "y", "t", "[]")]
    state = fold_all([*begun, ToolFinished(0, "y", "1")])
    assert [one.result is None for one in state.early] == [True, False]
    with pytest.raises(IllegalEvent):
        fold(state, ToolFinished(0, "y", "1"))


def test_a_call_starts():
    assert call_changed(acting(), ToolStarted(0, "a", at=104.0)) == {
        "status": "started",
        "executed": True,
        "started_at": 104.0,
    }
    again = [*RUNNING, RunResumed(at=110.0)]
    assert call_changed(again, ToolStarted(0, "a", at=111.0)) == {
        "status": "started",
        "in_doubt": False,
        "started_at": 111.0,
    }


def test_a_call_comes_back():
    assert call_changed(RUNNING, ToolFinished(0, "a", "1", app={"n": 1}, at=106.5)) == {
        "status": "done",
        "result": ToolMessage("a", "t", "1"),
        "app": {"n": 1},
        "seconds": 2.5,
        "ended_at": 106.5,
    }
    assert call_changed(RUNNING, ToolFinished(0, "a", "1", True, final=True, at=106.5)) == {
        "status": "done",
        "result": ToolMessage("a", "t", "1", is_error=True),
        "final": True,
        "seconds": 2.5,
        "ended_at": 106.5,
    }
    told = call_changed(RUNNING, ToolFinished(0, "a", "1", True, spent=Spent(), at=106.5))
    assert told["result"] == ToolMessage("a", "t", "1", is_error=True, below=True)
    assert changed(RUNNING, ToolFinished(0, "a", "1"))["open_calls"] == 1
    assert set(changed(RUNNING, ToolFinished(0, "a", "1"))) == {"step", "open_calls"}


def test_a_provisional_result_is_found():
    awaited = [*RUNNING, ResultAwaited(0, "a", True, "below", (Awaited("x", "t", "{}", "result"),), at=105.0)]
    assert call_changed(awaited, ToolFinished(0, "a", "1", True, {"n": 1}, final=True, provisional=True, at=106.0)) == {
        "status": "returned",
        "found": ToolMessage("a", "t", "1", is_error=True),
        "app": {"n": 1},
        "final": True,
        "run_id": "",
        "waits": (),
    }
    assert call_changed(RUNNING, ToolFinished(0, "a", "1", provisional=True, at=106.0)) == {
        "status": "returned",
        "found": ToolMessage("a", "t", "1"),
        "seconds": 2.0,
    }


def test_a_result_that_somebody_brings_takes_the_doubt_away():
    asked = [*RUNNING, ApprovalRequested(0, "a", "interrupted")]
    assert call_changed(asked, ToolFinished(0, "a", "1", provisional=True))["in_doubt"] is False
    assert call_changed(asked, ToolFinished(0, "a", "1"))["in_doubt"] is False


def test_what_a_run_below_took_counts_once():
    first = ResultAwaited(0, "a", True, "below", spent=TOOK, at=105.0)
    accounts = Accounts(Usage(15, 5), Decimal("0.75"), 5, {}, 2, unpriced=True, presumed=Decimal("0.1"))
    assert changed(RUNNING, first)["accounts"] == accounts
    more = Spent(5, Usage(9, 2), Decimal("0.35"), 4, unpriced=True, presumed=Decimal("0.3"))
    state = fold_all([*RUNNING, first, ToolFinished(0, "a", "1", spent=more, at=106.0)])
    assert state.accounts == Accounts(Usage(19, 6), Decimal("0.85"), 6, {}, 5, unpriced=True, presumed=Decimal("0.3"))
    assert state.step.calls[0].spent == more


def test_what_is_left_of_what_a_run_below_took():
    all_of_it = Spent(5, Usage(10, 4), Decimal("1.5"), 7, unpriced=True, presumed=Decimal("0.7"))
    paid = Spent(2, Usage(3, 1), Decimal("0.5"), 3, presumed=Decimal("0.2"))
    assert all_of_it.less(paid) == Spent(3, Usage(7, 3), Decimal("1.0"), 4, True, Decimal("0.5"))
    assert replace(all_of_it, cost=None).less(paid).cost is None
    assert all_of_it.less(replace(paid, cost=None)).cost == Decimal("1.5")


def test_a_last_result_closes_the_step():
    events = acting(ToolFinished(0, "b", "2", at=105.0))
    found = changed(events, ToolFinished(0, "a", "1", True, at=106.0))
    (step,) = found.pop("steps")
    assert (step.ended_at, [call.id for call in step.calls]) == (106.0, ["a", "b"])
    assert found == {
        "phase": "ready",
        "messages": [QUESTION, REPLIED.message, ToolMessage("a", "t", "1", is_error=True), ToolMessage("b", "u", "2")],
        "step": None,
        "prepared": None,
        "open_calls": 0,
        "accounts": Accounts(Usage(10, 4), Decimal("0.5"), 2, {"t": 1, "u": 1}),
    }


def test_a_hand_off_is_the_runs_answer():
    found = changed(RUNNING, ToolFinished(0, "a", "Ada", app={"n": 1}, final=True, at=106.0))
    assert {name: found[name] for name in ("handed_on", "text", "output")} == {
        "handed_on": True,
        "text": "Ada",
        "output": {"n": 1},
    }
    said = AssistantMessage((Text("before"), A))
    state = fold_all([STARTED, PREPARED, ModelReplied(0, said), ToolFinished(0, "a", "", final=True)])
    assert (state.text, state.handed_on) == ("before", True)


def test_what_is_said_while_another_answers_is_for_the_run_to_answer():
    before = [STARTED, PREPARED, ModelReplied(0, AssistantMessage((A,))), MessageAdded(UserMessage("wait"), at=104.0)]
    assert changed(before[:3], before[3]) == {
        "pinned": [QUESTION, UserMessage("wait")],
        "inbox": (UserMessage("wait"),),
    }
    state = fold_all([*before, ToolFinished(0, "a", "Ada", app=1, final=True)])
    assert (state.handed_on, state.output, state.inbox, state.phase) == (False, None, (), "ready")
    assert state.messages[-2:] == [ToolMessage("a", "t", "Ada"), UserMessage("wait")]


def test_a_reaction_keeps_a_result():
    assert call_changed(BACK, ToolReacted(0, "a", "keep", at=107.0)) == {
        "status": "done",
        "result": ToolMessage("a", "t", "1"),
        "ended_at": 107.0,
    }


def test_a_reaction_calls_again():
    event = ToolReacted(0, "a", "call", call=ToolCall("a", "u", "{}"), at=107.0)
    assert call_changed(BACK, event) == {
        "status": "asked",
        "stand_in": ToolCall("a", "u", "{}"),
        "made": 2,
        "other": 1,
        "ran": (A,),
        "executed": False,
    }
    accounts = changed(BACK, event)["accounts"]
    assert (accounts.tool_calls, accounts.call_counts) == (3, {"u": 1})
    same = ToolReacted(0, "a", "call", call=replace(A, arguments=" { } "), at=107.0)
    assert "other" not in call_changed(BACK, same)
    assert call_changed(BACK, replace(same, call=replace(A, arguments="[1]")))["other"] == 1
    written = [replace(event, call=ToolCall("a", "u", text)) for text in ('{"n":1}', ' { "n" : 1 } ')]
    assert fold_all([*BACK, *written]).step.calls[0].other == 1
    twice = fold_all([*BACK, event, ToolReacted(0, "a", "call", call=replace(A, name="u", arguments="[]"))])
    record = twice.step.calls[0]
    assert (record.made, record.other, record.ran, twice.call_counts) == (3, 2, (A,), {"u": 2})


def test_a_call_again_has_nothing_of_the_run_below_and_no_answer_of_the_one_before():
    asked = [*RUNNING, ToolFinished(0, "a", "1", final=True, provisional=True, spent=TOOK, at=106.0)]
    record = fold_all([*asked, ToolReacted(0, "a", "call", call=B)]).step.calls[0]
    assert (record.spent, record.final, record.again, record.answer) == (Spent(), False, "", None)
    asks = [*RUNNING, ResultAwaited(0, "a", True, question="which?", again="token", at=105.0)]
    answered = [*asks, ApprovalDecided(0, "a", True, answer='"blue"'), ToolStarted(0, "a")]
    back = [*answered, ToolFinished(0, "a", "1", provisional=True)]
    assert (fold_all(back).step.calls[0].again, fold_all(back).step.calls[0].answer) == ("token", '"blue"')
    record = fold_all([*back, ToolReacted(0, "a", "call", call=B)]).step.calls[0]
    assert (record.again, record.answer) == ("", None)


def test_the_application_changes_the_arguments_of_a_call_before_it_is_made_and_once():
    event = ToolReacted(0, "a", "change", arguments="[]", at=104.0)
    assert call_changed(acting(), event) == {"edited": "[]"}
    assert set(changed(acting(), event)) == {"step"}
    in_place = [*BACK, ToolReacted(0, "a", "call", call=B)]
    for events in (acting(event), RUNNING, in_place):
        with pytest.raises(IllegalEvent, match=r"call 'a' (cannot take this change of its arguments|is 'started' and)"):
            fold_all([*events, event])
    with pytest.raises(IllegalEvent, match=r"call 'a' cannot take this change of its arguments \(run r\)"):
        fold_all(acting(replace(event, arguments=None)))


def test_a_person_is_asked():
    assert call_changed(acting(), ApprovalRequested(0, "a", reason="dear")) == {
        "status": "needs_approval",
        "question": "dear",
        "asked": 1,
    }
    assert call_changed(RUNNING, ApprovalRequested(0, "a", "interrupted")) == {
        "status": "needs_approval",
        "asked": 1,
        "in_doubt": True,
    }
    again = [*RUNNING, ApprovalRequested(0, "a", "interrupted"), ApprovalDecided(0, "a", True), ToolStarted(0, "a")]
    assert call_changed(again, ApprovalRequested(0, "a", "interrupted"))["asked"] == 2
    with pytest.raises(IllegalEvent, match="call 'a' is 'started' and cannot take ApprovalRequested; it would have"):
        fold_all([*RUNNING, ApprovalRequested(0, "a")])


def test_a_person_decides():
    asked = acting(ApprovalRequested(0, "a"))
    assert call_changed(asked, ApprovalDecided(0, "a", True)) == {"status": "approved", "leave": 1}
    answered = [*RUNNING, ResultAwaited(0, "a", True, question="which?", again="token", at=105.0)]
    assert call_changed(answered, ApprovalDecided(0, "a", True, answer="1")) == {"status": "approved", "answer": "1"}
    edited = {"status": "approved", "edited": "[]", "leave": 1}
    assert call_changed(asked, ApprovalDecided(0, "a", True, arguments="[]")) == edited
    corrected = {**edited, "corrected": True}
    assert call_changed(asked, ApprovalDecided(0, "a", True, arguments="[]", corrects=True)) == corrected
    assert call_changed(asked, ApprovalDecided(0, "a", True, answer='"x"')) == {
        "status": "approved",
        "answer": '"x"',
        "leave": 1,
    }
    assert call_changed(asked, ApprovalDecided(0, "a", False, "too dear", at=107.0)) == {
        "status": "done",
        "result": ToolMessage("a", "t", told("This call was not approved: too dear."), is_error=True),
        "ended_at": 107.0,
    }
    in_place = [*BACK, ToolReacted(0, "a", "call", call=B), ApprovalRequested(0, "a")]
    assert call_changed(in_place, ApprovalDecided(0, "a", True, arguments="[]")) == {
        "status": "approved",
        "stand_in": replace(B, arguments="[]"),
        "leave": 2,
    }


def test_only_what_waits_for_a_person_is_decided():
    decided = ApprovalDecided(0, "a", True, at=120.0)
    for events in (acting(), RUNNING, BACK, acting(ResultAwaited(0, "a", True))):
        with pytest.raises(IllegalEvent, match=r"cannot take ApprovalDecided; it would have to be 'needs_approval'$"):
            fold_all([*events, decided])
    below = [*RUNNING, ResultAwaited(0, "a", True, "below"), decided]
    assert fold_all(below).step.calls[0].status == "approved"
    with pytest.raises(IllegalEvent, match="it would have to be 'needs_approval' or 'awaited'"):
        fold_all([*below, decided])
    cut_off_again = [*below, ToolStarted(0, "a"), RunResumed(), ApprovalRequested(0, "a", "interrupted")]
    assert fold_all([*cut_off_again, decided]).step.calls[0].status == "approved"
    last = acting(ToolFinished(0, "b", "1"), ApprovalRequested(0, "a"), ApprovalDecided(0, "a", False, at=120.0))
    assert fold_all(last).steps[-1].ended_at == 120.0


def test_a_result_from_outside_is_waited_for():
    waits = (Awaited("x", "t", "{}", "result"),)
    assert call_changed(RUNNING, ResultAwaited(0, "a", True, "below", waits, at=105.0)) == {
        "status": "awaited",
        "wait": True,
        "run_id": "below",
        "waits": waits,
        "seconds": 1.0,
    }
    assert call_changed(RUNNING, ResultAwaited(0, "a", True, question="which?", again="token", at=105.0)) == {
        "status": "awaited",
        "wait": True,
        "question": "which?",
        "again": "token",
        "asked": 1,
        "seconds": 1.0,
    }
    assert call_changed(acting(), ResultAwaited(0, "a")) == {"status": "awaited", "executed": True, "asked": 1}
    approved = acting(ApprovalRequested(0, "a"), ApprovalDecided(0, "a", True))
    assert call_changed(approved, ResultAwaited(0, "a"))["status"] == "awaited"
    with pytest.raises(IllegalEvent):
        fold_all([*RUNNING, ResultAwaited(0, "a", True)])
    with pytest.raises(IllegalEvent):
        fold_all(acting(ResultAwaited(0, "a", True, "below")))


def test_an_edit_of_the_history():
    said = AssistantMessage((Text("hello"),))
    before = [replace(STARTED, messages=(QUESTION, said, UserMessage("x")))]
    notice = UserMessage("left out", left_out=2)
    reserve = Reserve(9)
    event = ContextEdited("p", 0, 2, (notice,), usage=Usage(3, 1), cost=Decimal(1), at=101.0)
    found = changed(before, event)
    assert found == {
        "accounts": Accounts(Usage(3, 1), Decimal(1)),
        "messages": [notice, UserMessage("x")],
    }
    asked = changed(before, ContextEdited("p", 0, 0, (), reserve=reserve, at=101.0))
    assert asked == {"asked": reserve}
    nothing = changed([*before, ContextEdited("p", 0, 0, (), reserve=reserve)], replace(event, stop=0, messages=()))
    assert nothing == {"asked": None, "accounts": Accounts(Usage(3, 1), Decimal(1))}
    added = fold_all([*before, replace(event, start=1, stop=1)])
    assert added.messages == [QUESTION, notice, said, UserMessage("x")]
    with pytest.raises(IllegalEvent, match=r"ContextEdited by p cannot follow: .* \(run r\)"):
        fold_all([*before, replace(event, stop=9)])


def test_an_edit_forgets_the_size_of_the_request_and_not_what_was_learnt_of_models():
    said = AssistantMessage((Text("hello"),))
    counted = [STARTED, PREPARED, ModelReplied(0, said, Usage(500, 10), model="m")]
    more = [*counted, MessageAdded(UserMessage("x")), StepPrepared(1, GO)]
    learnt = fold_all([*more, ModelReplied(1, said, Usage(900, 10), model="m", estimate=300)])
    assert learnt.size == RequestSize(910, 4, True, {"m": Ratio().learnt(390, 300)})
    chosen = [MessageAdded(UserMessage("y")), StepPrepared(2, GO, messages=(QUESTION, UserMessage("y")))]
    short = fold_all([*chosen, ContextEdited("p", 0, 1, (UserMessage("short"),))], learnt)
    assert short.size == replace(learnt.size, reported=False)
    edited = fold(fold(learnt, MessageAdded(UserMessage("y"))), ContextEdited("p", 1, 3, (UserMessage("short"),)))
    assert edited.size == RequestSize(7, ratios=learnt.size.ratios)


def test_an_edit_of_a_step_that_is_prepared_lets_it_be_asked_again():
    error = ErrorInfo("context_overflow", "too long")
    before = [replace(STARTED, messages=(UserMessage("old"), QUESTION)), PREPARED, ModelFailed(0, error)]
    found = changed(before, ContextEdited("p", 0, 1, (UserMessage("short"),)))
    assert found == {"failure": None, "messages": [UserMessage("short"), QUESTION]}
    noted = [before[0], replace(PREPARED, note="last"), ModelFailed(0, error)]
    assert fold_all([*noted, ContextEdited("p", 0, 1, (UserMessage("short"),))]).messages[-1] == UserMessage("last")
    with pytest.raises(IllegalEvent):
        fold_all([*noted, ContextEdited("p", 2, 3, ())])
    assert fold_all([*noted, ContextEdited("p", 1, 2, (UserMessage("x"),))]).messages[1] == UserMessage("x")
    chosen = [before[0], replace(PREPARED, note="last", messages=(UserMessage("old"), QUESTION)), ModelFailed(0, error)]
    state = fold_all([*chosen, ContextEdited("p", 0, 1, (UserMessage("short"),))])
    assert (state.prepared.messages, state.failure) == ((UserMessage("short"), QUESTION), None)
    assert state.messages == [UserMessage("old"), QUESTION, UserMessage("last")]


def test_servers_say_what_tools_they_have():
    tools = (ListedTool("s__t", "s", "t", "Does it.", {"type": "object"}),)
    assert changed([STARTED], ToolsListed(tools, 30, at=101.0)) == {
        "stock": Stock(tools, tools),
        "tool_tokens": 30,
        "size": RequestSize(30),
    }
    assert fold_all([replace(STARTED, tools=("t",)), ToolsListed(tools)]).tools == ("t", "s__t")
    others = (replace(tools[0], description="Does more."), replace(tools[0], name="s__u", remote="u"))
    assert fold_all([STARTED, ToolsListed(tools), ToolsListed(others)]).stock == Stock(others, (tools[0], others[1]))
    learnt = RequestSize(5, ratios={"m": Ratio(1.0, 2.0)})
    assert fold(replace(fold_all([STARTED]), size=learnt), ToolsListed(tools, 30)).size.ratios == learnt.ratios


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("stuck", [False, True])
def test_the_model_is_told_something(fault, stuck):
    found = changed(
        [STARTED, PREPARED, ModelReplied(0, AssistantMessage((Text("x"),)))], NudgeGiven("no", fault, stuck)
    )
    assert found.pop("messages")[-1] == UserMessage("no")
    assert found.pop("phase") == "ready"
    assert found.pop("accounts", None) == (Accounts(errors=1) if fault else None)
    assert found.pop("progress", None) == (Progress(1, 1, 1) if stuck else None)
    assert found == {}


def test_somebody_says_something_to_a_run_that_has_replied():
    before = [STARTED, PREPARED, ModelReplied(0, AssistantMessage((Text("x"),)))]
    found = changed(before, MessageAdded(UserMessage("more")))
    assert found.pop("messages")[-1] == UserMessage("more")
    assert found == {"phase": "ready", "pinned": [QUESTION, UserMessage("more")]}


def test_a_pause_and_its_end():
    stop = stopped("waiting", "t (a)")
    before = acting(ApprovalRequested(0, "a"))
    assert changed(before, RunPaused(stop, at=110.0)) == {"phase": "paused", "paused_from": "acting", "stop": stop}
    resumed = changed([*before, RunPaused(stop, at=110.0)], RunResumed(at=500.0))
    assert resumed == {"phase": "acting", "stop": None, "earlier": 10.0, "resumed_at": 500.0}
    assert fold_all([*before, RunPaused(stop, at=110.0), RunResumed(at=500.0)]).elapsed == 10.0


def test_budgets_are_those_that_it_was_last_given():
    given = RunResumed(budgets=("budget all",), at=200.0)
    found = changed(RUNNING, given)
    assert found.pop("step")
    accounts = replace(fold_all(RUNNING).accounts, budgets=("budget all",))
    assert found == {"accounts": accounts, "earlier": fold_all(RUNNING).elapsed, "resumed_at": 200.0}
    assert fold_all([*RUNNING, given, RunResumed()]).accounts.budgets == ()
    # Of the run that it is a fork of, and not of the fork.
    assert fold_all([*RUNNING, given, RunForked("f")]).accounts.budgets == ()


def test_a_crash_in_the_middle_of_a_batch():
    record = fold_all([*RUNNING, RunResumed(at=200.0)]).step.calls
    assert (record[0].status, record[0].in_doubt) == ("interrupted", True)
    assert record[1] == CallRecord(B)
    lost = RunResumed(Limits(tool_calls=2), Spent(usage=Usage(50, 5), cost=Decimal(3)), at=200.0)
    found = changed([STARTED, PREPARED], lost)
    assert found == {
        "phase": "ready",
        "step": None,
        "prepared": None,
        "limits": Limits(tool_calls=2),
        "earlier": 1.0,
        "resumed_at": 200.0,
        "accounts": Accounts(Usage(50, 5), Decimal(3)),
    }


def test_a_crash_while_a_reply_arrives_keeps_what_came_back_early():
    begun = [STARTED, PREPARED, ToolStarted(0, "x", "t"), ToolStarted(0, "y", "t", "[]"), ToolFinished(0, "x", "1")]
    begun.insert(2, ToolStarted(0, "z", "t", "[0]"))
    state = fold_all([*begun, MessageAdded(UserMessage("more")), RunResumed(at=200.0)])
    assert ([one.call.id for one in state.early], state.tool_calls) == (["x"], 2)
    assert (state.messages, state.inbox) == ([QUESTION, UserMessage("more")], ())


def test_a_refusal_stands_as_long_as_the_limit_is_used_up():
    two = replace(STARTED, limits=Limits(tool_calls=1))
    before = [two, PREPARED, REPLIED, ToolFinished(0, "a", "1")]
    assert fold_all(before).refused
    assert fold_all([*before, RunResumed()]).refused
    assert fold_all([*before, RunResumed(Limits(tool_calls=1))]).refused
    assert not fold_all([*before, RunResumed(Limits(tool_calls=2))]).refused
    assert not fold_all([*before, RunResumed(Limits(tool_calls=None))]).refused


def test_a_run_that_has_ended_is_taken_up_anew():
    answered = [STARTED, PREPARED, ModelReplied(0, AssistantMessage((Text("x"),)), at=103.0)]
    why = Decision("stop", "enough")
    ended = [
        *answered,
        NudgeGiven("no", fault=True, stuck=True),
        RunFinished(stopped("no_progress"), why, {"n": 1}, at=110.0),
    ]
    found = changed(ended, RunResumed(Limits(steps=99), at=500.0))
    assert found == {
        "phase": "ready",
        "limits": Limits(steps=99),
        "stop": None,
        "decision": None,
        "output": None,
        "earlier": 10.0,
        "resumed_at": 500.0,
        "taken_up": 1,
        "accounts": Accounts(),
        "progress": Progress(stuck_at=1),
    }


def test_a_fork_is_another_run_that_has_paid_for_nothing_yet():
    below = [*RUNNING, ResultAwaited(0, "a", True, "below", spent=TOOK, at=105.0)]
    more = Spent(4, Usage(6, 2), Decimal("0.5"), 5, presumed=Decimal("0.2"))
    event = RunForked("f", "m2", Limits(steps=9), {"a": more}, instructions="Be kind.", at=500.0)
    state = fold_all([*below, event])
    taken = Accounts(Usage(16, 6), Decimal("1.0"), 7, {}, 4, unpriced=True, presumed=Decimal("0.2"))
    paid = Spent(4, Usage(16, 6), Decimal("1.0"), 7, unpriced=True, presumed=Decimal("0.2"))
    assert state.accounts == replace(taken, shared=paid)
    assert (state.run_id, state.model, state.limits, state.parent) == ("f", "m2", Limits(steps=9), None)
    assert state.messages[0].content == "Be kind."
    assert state.size == RequestSize(7)
    assert state.step.calls[0].spent == more
    assert fold_all([*below, replace(event, model="")]).model == ""
    assert (state.phase, state.progress, state.taken_up) == ("acting", Progress(), 0)
    with pytest.raises(IllegalEvent, match=r"RunForked names call 'x', but no such call is under way \(run r\)"):
        fold_all([*below, replace(event, taken={"x": more})])
    with pytest.raises(IllegalEvent, match="no such call is under way"):
        fold_all([STARTED, replace(event, taken={"a": more})])


def test_a_fork_of_a_step_that_is_prepared_takes_it_back_under_other_instructions():
    learnt = {"m": Ratio(1.0, 2.0)}
    noted = fold_all([STARTED, replace(PREPARED, note="last"), ToolStarted(0, "x", "t", "{}")])
    noted = replace(noted, size=RequestSize(99, ratios=learnt))
    state = fold(noted, RunForked("f", instructions="Be kind.", at=500.0))
    assert [one.text for one in state.messages] == ["Be kind.", "q"]
    assert (state.phase, state.size, state.tool_calls) == ("ready", RequestSize(7, ratios=learnt), 1)
    assert fold(noted, RunForked("f")).size == noted.size


def test_a_fork_of_a_run_that_had_ended_begins_to_count_errors_anew():
    ended = [STARTED, PREPARED, ModelReplied(0, AssistantMessage((Text(" "),))), RunFinished(stopped("cancelled"))]
    assert fold_all(ended).errors == 1
    state = fold_all([*ended, RunForked("f")])
    assert (state.errors, state.phase, state.taken_up, state.stop) == (0, "ready", 1, None)


def test_an_end_answers_whatever_is_open():
    stop, why = stopped("cancelled"), Decision("stop")
    found = changed(RUNNING, RunFinished(stop, why, {"n": 1}, at=110.0))
    started, asked = found["steps"][-1].calls
    assert started.result == ToolMessage("a", "t", cut_off(" (cancelled)"), is_error=True)
    never = told("This call was not executed: the run stopped (cancelled).")
    assert asked.result == ToolMessage("b", "u", never, is_error=True)
    assert [call.ended_at for call in (started, asked)] == [110.0, 110.0]
    assert found.pop("messages")[-2:] == [started.result, asked.result]
    assert found["steps"][-1].ended_at == 110.0
    for name in ("steps", "accounts"):
        del found[name]
    done = fold_all([*RUNNING, ToolFinished(0, "a", "1", at=105.0), RunFinished(stop, at=110.0)])
    assert done.steps[-1].calls[0].result == ToolMessage("a", "t", "1")
    assert found == {
        "phase": "finished",
        "step": None,
        "prepared": None,
        "open_calls": 0,
        "stop": stop,
        "decision": why,
        "output": {"n": 1},
    }
    said = [STARTED, PREPARED, MessageAdded(UserMessage("more"))]
    assert changed(said, RunFinished(stop)) == {
        "phase": "finished",
        "step": None,
        "prepared": None,
        "stop": stop,
        "messages": [QUESTION, UserMessage("more")],
        "inbox": (),
    }


def left(*events, reason="cancelled"):
    """What is shown of call "a" when the run ends after `events`."""
    return fold_all([*events, RunFinished(stopped(reason), at=110.0)]).steps[-1].calls[0]


def test_what_a_call_that_was_left_open_is_shown_as():
    back = left(*BACK).result
    why = "This call was made, but its result had not been released when the run stopped (cancelled)."
    assert (back.content, back.is_error) == (told(why, executed=True), True)
    asked = left(*BACK, ResultAwaited(0, "a", True, question="right?")).result
    why = "A person was asked about its result, and had not answered yet when the run stopped (cancelled)."
    why = f"This call was made. {why}"
    assert (asked.content, asked.is_error) == (told(why, executed=True), True)
    below = left(*RUNNING, ResultAwaited(0, "a", True, "below")).result
    why = (
        "The agent that works on this call was waiting for somebody when the run stopped (cancelled); it is not done, "
        "and may have done a part of it."
    )
    assert (below.content, below.is_error) == (told(why, executed="unknown"), True)
    outside = left(*acting(ResultAwaited(0, "a", True))).result
    why = "This call has no result yet: it was waiting for one from outside when the run stopped (cancelled)."
    assert (outside.content, outside.is_error) == (told(why, executed="unknown"), True)
    ended = left(*acting(ResultAwaited(0, "a")), reason="external_tool").result
    assert (ended.content, ended.is_error) == ("The run ended with this call.", False)
    in_place = left(*BACK, ToolReacted(0, "a", "call", call=B))
    assert (in_place.result.content, in_place.result.is_error, in_place.executed) == ("1", False, True)
    doubt = left(*RUNNING, ApprovalRequested(0, "a", "interrupted")).result
    assert (doubt.content, doubt.is_error) == (cut_off(" (cancelled)"), True)


def test_a_call_in_place_of_another_that_nobody_knows_the_end_of_leaves_what_was_found_and_says_so():
    again = [*BACK, ToolReacted(0, "a", "call", call=B), ToolStarted(0, "a"), RunResumed()]
    denied = fold_all([*again, ApprovalRequested(0, "a", "interrupted"), ApprovalDecided(0, "a", False, "no")])
    assert denied.step.calls[0].result.content == (
        Text("1"),
        Text(
            "u was called in its place and was under way when the run stopped: no; its outcome is unknown: it may or "
            "may not have taken effect."
        ),
    )
    refusing = [*BACK, ToolReacted(0, "a", "call", call=B), ApprovalRequested(0, "a")]
    refusing.append(ApprovalDecided(0, "a", False, "no"))
    shown = fold_all(refusing).step.calls[0]
    assert shown.result.content == (Text("1"), Text("u was to be called in its place; this was not approved: no."))
    assert (shown.status, shown.in_doubt, shown.executed) == ("done", False, True)
    parts = (Text("1"), Text("2"))
    several = [replace(one, content=parts) if isinstance(one, ToolFinished) else one for one in refusing]
    assert fold_all(several).step.calls[0].result.content[:2] == parts
    kept = fold_all([*again, ToolReacted(0, "a", "keep", at=120.0)]).step.calls[0]
    assert kept.result.content[1].text.startswith("u was called in its place and was under way when the run stopped;")
    assert (kept.in_doubt, kept.ended_at) == (False, 120.0)


def test_a_call_in_doubt_that_is_denied_is_answered_then():
    asked = [*RUNNING, ApprovalRequested(0, "a", "interrupted"), ApprovalDecided(0, "a", False, "late", at=107.0)]
    assert call_changed(asked[:-1], asked[-1]) == {
        "status": "done",
        "result": ToolMessage("a", "t", cut_off(": late"), is_error=True),
        "in_doubt": False,
        "ended_at": 107.0,
    }


def test_a_run_that_an_error_broke_off_says_no_reason():
    assert left(*RUNNING, reason="running").result.content == cut_off("")


@pytest.mark.parametrize(
    ("limit", "allowed", "early", "made", "refused", "counted"),
    [
        (None, None, 0, 2, False, 2),
        (9, None, 0, 2, False, 2),
        (2, None, 0, 2, False, 2),
        (1, None, 0, 1, True, 1),
        (0, None, 0, 0, True, 0),
        (9, 1, 0, 1, True, 1),
        (1, 2, 0, 1, True, 1),
        (None, 0, 0, 0, True, 0),
        (None, None, 1, 2, False, 2),
        (2, None, 1, 2, False, 2),
        (1, None, 1, 1, True, 1),
        (9, 0, 1, 1, True, 1),
    ],
)
def test_which_calls_of_a_reply_may_be_made(limit, allowed, early, made, refused, counted):
    began = [ToolStarted(0, "x", "t", "{}")][:early]
    state = fold_all(
        [replace(STARTED, limits=Limits(tool_calls=limit)), PREPARED, *began, replace(REPLIED, allowed=allowed)]
    )
    step = state.step or state.steps[-1]
    assert [record.status != "refused" for record in step.calls] == [True] * made + [False] * (2 - made)
    assert (state.refused, state.tool_calls, state.open_calls) == (refused, counted, made)
    for record in step.calls[made:]:
        why = told(f"This call was not executed. The run's limit of {limit} tool call{'s' * (limit != 1)} is reached.")
        assert (record.result, record.ended_at) == (ToolMessage(record.id, record.name, why, is_error=True), 103.0)


def test_the_calls_of_earlier_steps_are_taken_off_the_limit():
    before = [replace(STARTED, limits=Limits(tool_calls=3)), PREPARED, REPLIED]
    before += [ToolFinished(0, "a", "1"), ToolFinished(0, "b", "1"), StepPrepared(1, GO)]
    state = fold_all([*before, ModelReplied(1, AssistantMessage((replace(A, id="c"), replace(A, id="d"))))])
    assert [record.status for record in state.step.calls] == ["asked", "refused"]
    assert (state.tool_calls, state.refused, state.open_calls) == (3, True, 1)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (ToolFinished(0, "x", "1"), r"ToolFinished names call 'x', but it is not open in step 0 \(run r\)"),
        (ToolStarted(1, "a"), r"ToolStarted names step 1, but step 0 is under way \(run r\)"),
        (ApprovalDecided(0, "b", True), r"ApprovalDecided names call 'b', but it is not open in step 0 \(run r\)"),
    ],
)
def test_an_event_of_a_call_that_is_not_open_says_so(event, why):
    with pytest.raises(IllegalEvent, match=f"^{why}$"):
        fold_all(acting(ToolFinished(0, "b", "1"), event))


def test_the_calls_that_were_refused_are_not_counted_by_tool():
    state = fold_all([replace(STARTED, limits=Limits(tool_calls=1)), PREPARED, REPLIED, ToolFinished(0, "a", "1")])
    assert (state.call_counts, state.errors) == ({"t": 1}, 0)


@pytest.mark.parametrize(
    ("finish", "why"),
    [
        ("length", "The reply was cut off at its length limit, so this call may be incomplete."),
        ("content_filter", "The provider's content filter ended the reply."),
        ("refusal", "The reply was ended by a refusal."),
    ],
)
def test_calls_of_a_reply_that_is_not_whole_say_why_they_were_not_made(finish, why):
    state = fold_all([STARTED, PREPARED, replace(REPLIED, finish=finish)])
    assert [record.result.content for record in state.steps[-1].calls] == [
        told(f"This call was not executed. {why}")
    ] * 2
    assert (state.refused, state.tool_calls, state.phase, state.errors) == (False, 0, "replied", 1)


def test_calls_of_a_closing_reply_say_why_they_were_not_made():
    state = fold_all([STARTED, replace(PREPARED, landing=stopped("max_steps")), REPLIED])
    why = "Tools are off: the run is at its limit and this was its closing reply."
    assert state.steps[-1].calls[0].result.content == told(f"This call was not executed. {why}")
    assert (state.refused, state.phase) == (False, "replied")


def test_an_early_call_is_the_one_with_its_id_and_else_the_first_that_is_alike():
    begun = [STARTED, PREPARED, ToolStarted(0, "b", "t", "{}", at=1.0), ToolStarted(0, "y", "t", '{"n": 2}', at=2.0)]
    calls = tuple(
        ToolCall(id, "t", text) for id, text in (("a", "{}"), ("b", "{}"), ("c", '{"n":2}'), ("d", '{"n":2}'))
    )
    found = fold_all([*begun, ModelReplied(0, AssistantMessage(calls))]).step.calls
    assert [record.began_as for record in found] == ["", "b", "y", ""]
    other = fold_all([*begun, ModelReplied(0, AssistantMessage((ToolCall("a", "u", "{}"),)))])
    assert ([record.began_as for record in other.step.calls], other.tool_calls) == ([""], 3)


def test_an_early_call_that_the_whole_reply_does_not_have_counts():
    state = fold_all([STARTED, PREPARED, ToolStarted(0, "x", "t"), ModelReplied(0, AssistantMessage((Text("hi"),)))])
    assert (state.tool_calls, state.phase, state.early) == (1, "replied", ())


def test_an_event_that_cannot_follow_says_what_can():
    with pytest.raises(IllegalEvent) as refused:
        fold_all([MessageAdded(QUESTION)])
    assert str(refused.value) == "a run that is 'new' cannot take MessageAdded; RunStarted can follow (run ?, event 0)"
    with pytest.raises(IllegalEvent) as refused:
        fold_all([STARTED, RunPaused(stopped("waiting")), NudgeGiven("x")])
    can = "RunFinished, RunResumed can follow (run r, event 2)"
    assert str(refused.value) == f"a run that is 'paused' cannot take NudgeGiven; {can}"


def test_whatever_answers_a_call_says_when():
    open_calls = (
        [*BACK, ResultAwaited(0, "a", True, question="right?")],
        acting(ResultAwaited(0, "a", True)),
        [*BACK, ToolReacted(0, "a", "call", call=B)],
        BACK,
        RUNNING,
        acting(),
    )
    for events in open_calls:
        assert left(*events).ended_at == 110.0
    again = [*BACK, ToolReacted(0, "a", "call", call=B), ToolStarted(0, "a"), RunResumed()]
    asked = [*again, ApprovalRequested(0, "a", "interrupted")]
    for events in (asked, [*BACK, ToolReacted(0, "a", "call", call=B), ApprovalRequested(0, "a")]):
        assert fold_all([*events, ApprovalDecided(0, "a", False, at=120.0)]).step.calls[0].ended_at == 120.0


def test_a_call_in_place_may_be_refused_after_it_was_approved():
    approved = [*BACK, ToolReacted(0, "a", "call", call=B), ApprovalRequested(0, "a"), ApprovalDecided(0, "a", True)]
    kept = fold_all([*approved, ToolReacted(0, "a", "keep", at=120.0)]).step.calls[0]
    assert (kept.result.content, kept.ended_at) == ("1", 120.0)
    replaced = ToolReacted(0, "a", "replace", "2", at=120.0)
    assert fold_all([*BACK, replaced]).step.calls[0].ended_at == 120.0
    assert fold_all([*BACK, ToolFinished(0, "b", "1", at=119.0), replaced]).steps[-1].ended_at == 120.0


def test_a_call_that_asks_again_waits_for_another_answer():
    asks = ResultAwaited(0, "a", True, question="which?", again="token")
    answered = [*RUNNING, asks, ApprovalDecided(0, "a", True, answer='"blue"'), ToolStarted(0, "a")]
    assert fold_all(answered).step.calls[0].answer == '"blue"'
    record = fold_all([*answered, replace(asks, again="more")]).step.calls[0]
    assert (record.again, record.answer, record.asked) == ("more", None, 2)


def test_a_new_state_is_nothing():
    assert fold_all([]) == RunState()
