"""What is next, whole: each command that `decide` gives, with all that stands in it and the look that led to it."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle import Decision, Limits, Usage
from treadle.kernel.accounts import Spent
from treadle.kernel.decide import CallModel, Finish, Nudge, Pause, PrepareStep, RunTools, decide, landing
from treadle.kernel.events import (
    ErrorInfo,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    Reserve,
    ResultAwaited,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, UserMessage
from treadle.kernel.stop import NO_ANSWER, Check, Judgement, Stop, Stuck, Verdict, stopped

A, B = ToolCall("a", "t", "{}"), ToolCall("b", "u", '{"n":1}')
STARTED = RunStarted("r", (UserMessage("q"),), 1, tools=("t", "u"), at=100.0)
GO = Decision("go")
NO_LIMITS = Limits(steps=None, tool_calls=None, seconds=None, consecutive_errors=None)
LOOKED = (Check("enough", 1, 2),)


def prepared(step=0, **fields):
    return StepPrepared(step, GO, at=101.0, **fields)


def replied(*parts, step=0, **fields):
    return ModelReplied(step, AssistantMessage(parts), Usage(10, 4), cost=Decimal("0.5"), at=103.0, **fields)


def after(*steps, limits=NO_LIMITS, on_limit="answer", **fields):
    """The state after these steps of one call each, which came back as an error where they say so."""
    events = [replace(STARTED, limits=limits, on_limit=on_limit, **fields)]
    for number, is_error in enumerate(steps):
        events += [prepared(number), replied(replace(A, id=f"a{number}"), step=number)]
        events += [ToolFinished(number, f"a{number}", "1", is_error, at=105.0)]
    return fold_all(events)


ONE = {"steps": 1, "tool_calls": 1, "seconds": 5.0, "usd": Decimal("0.5"), "tokens": 14}
TWO = {"steps": 2, "tool_calls": 2, "seconds": 5.0, "usd": Decimal("1.0"), "tokens": 28}


def test_a_step_follows_with_the_look_that_was_taken():
    assert decide(after()) == PrepareStep(0, Decision("go"))
    assert decide(after(False, True)) == PrepareStep(2, Decision("go", errors=1, **TWO))
    judged = Judgement(Verdict(False, "not yet", LOOKED))
    assert decide(after(False), judged) == PrepareStep(1, Decision("go", conditions=LOOKED, **ONE))


def test_a_condition_that_is_met_ends_it():
    judged = Judgement(Verdict(True, "enough", LOOKED))
    stop = stopped("condition", "enough")
    assert decide(after(False), judged) == Finish(stop, Decision("stop", "enough", conditions=LOOKED, **ONE))
    other = Judgement(Verdict(True, "dear", LOOKED, "max_cost"))
    assert decide(after(False), other).stop == stopped("max_cost", "dear")


@pytest.mark.parametrize(
    ("limits", "reason", "detail", "lands"),
    [
        ({"seconds": 5.0}, "deadline", "the time limit of 5 s is reached.", False),
        ({"usd": 1}, "max_cost", "1.0 of at most 1 dollar are spent.", False),
        ({"tokens": 28}, "max_tokens", "28 of at most 28 tokens are used.", False),
        ({"consecutive_errors": 2}, "consecutive_errors", "everything went wrong in 2 steps in a row.", True),
        ({"steps": 3}, "max_steps", "the limit of 3 steps is reached.", True),
        ({"steps": 2}, "max_steps", "the limit of 2 steps is reached.", False),
    ],
)
def test_each_limit_in_words(limits, reason, detail, lands):
    bounds = replace(NO_LIMITS, **limits)
    state = after(True, True, limits=bounds)
    judged = Judgement(Verdict(False, "", LOOKED), loop="It goes round.")
    told = f"{detail} It goes round."
    stop, look = stopped(reason, told), {"errors": 2, "conditions": LOOKED, **TWO}
    ended = Finish(stop, Decision("stop", told, **look))
    if lands:
        note = f"Stop here: {told} Tools are off now. Answer with what you have found so far, and say what is missing."
        assert decide(state, judged) == PrepareStep(2, Decision("land", told, **look), stop, note)
    else:
        assert decide(state, judged) == ended
    assert decide(state).decision.why == detail
    if reason != "max_steps":
        assert decide(after(True, True, limits=bounds, on_limit="stop"), judged) == ended
    below = {name: value + 1 for name, value in limits.items()}
    assert decide(after(True, True, limits=replace(NO_LIMITS, **below), on_limit="stop")).decision.verdict == "go"


def test_the_steps_of_runs_below_count():
    events = [replace(STARTED, limits=replace(NO_LIMITS, steps=5), on_limit="stop"), prepared(), replied(A)]
    for below, verdict in ((3, "go"), (4, "stop")):
        state = fold_all([*events, ToolFinished(0, "a", "1", spent=Spent(below), at=105.0)])
        assert decide(state).decision.verdict == verdict
    events[0] = replace(events[0], on_limit="answer")
    for below, verdict in ((3, "land"), (4, "stop")):
        state = fold_all([*events, ToolFinished(0, "a", "1", spent=Spent(below), at=105.0)])
        assert decide(state).decision.verdict == verdict


def test_a_closing_reply_is_never_the_first_and_needs_a_step_and_a_tool_to_take_away():
    assert decide(after(limits=replace(NO_LIMITS, steps=1))) == PrepareStep(0, Decision("go"))
    assert decide(after(False, limits=replace(NO_LIMITS, steps=2))).landing == stopped(
        "max_steps", "the limit of 2 steps is reached."
    )
    assert decide(after(False, limits=replace(NO_LIMITS, steps=2), tools=())).decision.verdict == "go"
    assert decide(after(False, limits=replace(NO_LIMITS, steps=1))).decision.verdict == "stop"
    errors = replace(NO_LIMITS, consecutive_errors=1)
    assert decide(after(True, limits=replace(errors, steps=1))).decision.verdict == "stop"


def test_a_limit_that_only_a_driver_sees_coming():
    stop = stopped("max_tokens", "few are left")
    found = landing(after(False), stop)
    assert (found.step, found.landing, found.decision) == (1, stop, Decision("land", "few are left", **ONE))
    assert found.note.startswith("Stop here: few are left Tools are off now.")
    assert landing(after(), stop) is None
    assert landing(after(False, on_limit="stop"), stop) is None


def test_replies_that_were_sent_back_are_told_of_as_what_they_are():
    events = [replace(STARTED, limits=replace(NO_LIMITS, consecutive_errors=2), on_limit="stop")]
    for step in range(2):
        events += [prepared(step), replied(Text("hi"), step=step), NudgeGiven("no", fault=True, at=105.0)]
    stop = decide(fold_all(events)).stop
    assert stop == Stop("consecutive_errors", "2 replies in a row were no answer that could stand.", NO_ANSWER)
    mixed = [*events[:4], prepared(1), replied(A, step=1), ToolFinished(1, "a", "1", True, at=105.0)]
    assert decide(fold_all(mixed)).stop == stopped("consecutive_errors", "everything went wrong in 2 steps in a row.")
    before = [events[0], prepared(0), replied(A), ToolFinished(0, "a", "1", at=105.0)]
    later = [*before, *[replace(one, step=1) if hasattr(one, "step") else one for one in events[1:4]]]
    later += [replace(one, step=2) if hasattr(one, "step") else one for one in events[4:]]
    assert decide(fold_all(later)).stop == stop


def test_a_cost_that_is_not_known_ends_a_run_with_a_limit_in_dollars():
    events = [replace(STARTED, limits=replace(NO_LIMITS, usd=5)), prepared(), replace(replied(A), cost=None)]
    found = decide(fold_all([*events, ToolFinished(0, "a", "1", at=105.0)]))
    detail = "what a reply cost is not known, so that 5 dollars cannot be kept to."
    assert found.stop == stopped("max_cost", detail)
    free = [replace(STARTED, limits=replace(NO_LIMITS, usd=0)), prepared()]
    assert decide(fold_all(free[:1])).decision.verdict == "go"


def test_calls_that_were_refused_end_it_with_a_closing_reply():
    events = [replace(STARTED, limits=replace(NO_LIMITS, tool_calls=1)), prepared(), replied(A, B)]
    found = decide(fold_all([*events, ToolFinished(0, "a", "1", at=105.0)]))
    assert found.landing == stopped("max_tool_calls", "the limit of 1 tool call is reached.")


@pytest.mark.parametrize("act", ["nudge", "withhold", "stop"])
def test_a_run_that_gets_nowhere(act):
    judged = Judgement(Verdict(False, "", LOOKED), Stuck(act, "repeats", "You repeat yourself.", ("t",)))
    looked = (*LOOKED, Check("progress", "repeats", None, True))
    look = {"conditions": looked, **ONE}
    words = "You repeat yourself."
    note = f"Stop here: {words} Tools are off now. Answer with what you have found so far, and say what is missing."
    expected = {
        "nudge": Nudge(words, stuck=True),
        "withhold": PrepareStep(1, Decision("go", words, **look), note=words, stuck=2, withheld=("t",)),
        "stop": PrepareStep(1, Decision("land", words, **look), stopped("no_progress", words), note),
    }
    assert decide(after(False), judged) == expected[act]
    if act == "stop":
        ended = decide(after(False, on_limit="stop"), judged)
        assert ended == Finish(stopped("no_progress", words), Decision("stop", words, **look))


def test_a_step_stands_where_the_run_stands_on_the_ladder():
    state = fold_all([STARTED, prepared(), replied(Text(" ")), NudgeGiven("x", stuck=True, at=105.0)])
    assert decide(state).stuck == 1


def test_a_model_is_called_as_long_as_its_worst_case_fits():
    spent = [replace(STARTED, limits=replace(NO_LIMITS, tokens=100, usd=2)), prepared(), replied(A)]
    spent += [ToolFinished(0, "a", "1", at=105.0)]

    def again(**fields):
        return replace(prepared(1, **fields), at=105.0)

    for tokens, usd, fits in ((86, Decimal("1.5"), True), (87, None, False), (1, Decimal("1.51"), False)):
        state = fold_all([*spent, again(reserve=Reserve(tokens, usd))])
        found = decide(state)
        if fits:
            assert found == CallModel(1)
            continue
        detail = "14 tokens are used and the next call may take 87, of at most 100."
        if usd is not None:
            detail = "0.5 dollars are spent and the next call may cost 1.51, of at most 2."
        stop = stopped("max_tokens" if usd is None else "max_cost", detail)
        assert found == Finish(stop, Decision("stop", detail, **ONE))
        why = stopped("max_steps", "the limit")
        closing = fold_all([*spent, again(reserve=Reserve(tokens, usd), landing=why)])
        assert decide(closing) == Finish(why, Decision("stop", detail, **ONE))
    assert decide(fold_all([*spent, again()])) == CallModel(1)
    unbounded = [replace(STARTED, limits=NO_LIMITS), prepared(reserve=Reserve(10**9, Decimal(10**9)))]
    assert decide(fold_all(unbounded)) == CallModel(0)
    first = [replace(STARTED, limits=replace(NO_LIMITS, usd=1)), prepared(reserve=Reserve(9, Decimal("1.5")))]
    assert decide(fold_all(first)).stop.detail == "0 dollars are spent and the next call may cost 1.5, of at most 1."


def test_a_model_that_failed_for_good_ends_it():
    failed = ModelFailed(0, ErrorInfo("overloaded", "busy"), at=102.0)
    detail = "overloaded: busy"
    look = Decision("stop", detail, seconds=2.0)
    assert decide(fold_all([STARTED, prepared(), failed])) == Finish(stopped("model_error", detail), look)
    why = stopped("max_steps", "the limit")
    closing = fold_all([STARTED, prepared(landing=why), failed])
    assert decide(closing) == Finish(why, Decision("stop", "the limit", seconds=2.0))


def test_calls_that_wait_pause_it_only_when_nothing_else_is_left():
    acting = [STARTED, prepared(), replied(replace(A, id="a/b"), B)]
    waits = ResultAwaited(0, "a/b", True)
    found = decide(fold_all([*acting, waits]))
    assert isinstance(found, RunTools)
    assert (found.step, found.calls) == (0, (B,))
    assert decide(fold_all([*acting, waits, ToolStarted(0, "b")])) is None
    paused = decide(fold_all([*acting, waits, ToolFinished(0, "b", "1")]))
    assert paused == Pause(stopped("waiting", "t (a%2Fb)"))
    assert paused.event(9.0) == RunPaused(paused.stop, at=9.0)
    ends = ResultAwaited(0, "b", False)
    assert decide(fold_all([*acting, waits, ends])) == Pause(stopped("waiting", "t (a%2Fb)"))
    assert decide(fold_all([*acting, ToolStarted(0, "a/b"), ends])) is None
    both = [*acting, ResultAwaited(0, "a/b", False), ends]
    assert decide(fold_all(both)) == Finish(stopped("external_tool", "t"), output={})


def test_a_call_that_was_cut_off_is_carried_on_with_in_its_step():
    acting = [STARTED, prepared(), replied(A, B), ToolStarted(0, "a"), RunResumed()]
    assert decide(fold_all(acting)).calls == (A, B)
    later = [*acting, ToolFinished(0, "a", "1"), ToolFinished(0, "b", "1"), prepared(1), replied(A, step=1)]
    assert decide(fold_all(later)).step == 1


def said(*events, **fields):
    return decide(fold_all([replace(STARTED, **fields), *events]))


def test_what_follows_a_reply_in_words():
    assert said(prepared(), replied(Text("hi"))) == Finish(stopped("answered"))
    assert said(prepared(), replied(Text("hi")), tool_choice="none") == Finish(stopped("answered"))
    assert said(prepared(), replied(Text("hi"), finish="tool_calls")) == Finish(stopped("answered"))
    for finish in ("length", "content_filter", "refusal"):
        found = said(prepared(), replied(Text("hi"), finish=finish, finish_detail="word"))
        assert found == Finish(stopped(finish, "word"))
    held = said(prepared(reserve=Reserve(9, limit="max_tokens")), replied(Text("hi"), finish="length"))
    why = "a limit or a budget left the reply no more tokens, and it was cut off."
    assert held == Finish(Stop("max_tokens", why, "Raise what left so little, or ask for a shorter answer."))
    stop, look = stopped("max_steps", "why"), Decision("land", "why")
    closing = replace(prepared(landing=stop), decision=look)
    assert said(closing, replied(Text("hi"))) == Finish(stop, look)
    withheld = replace(prepared(withheld=("t",)), decision=Decision("go", "You repeat yourself."))
    found = said(withheld, replied(Text("hi")))
    assert found == Finish(stopped("no_progress", "You repeat yourself."), Decision("go", "You repeat yourself."))


@pytest.mark.parametrize(("choice", "what"), [("required", "one of the tools"), ("t", "t")])
def test_a_text_where_a_tool_must_be_called(choice, what):
    events = [prepared(), replied(Text("hi"))]
    asked = Nudge(f"A text is no answer in this step: call {what}.", fault=True)
    assert said(*events, tool_choice=choice) == asked
    assert said(*events[:1], replied(Text("hi"), handed_in=True), tool_choice=choice) == Finish(stopped("answered"))
    for step in (1, 2):
        assert said(*events, tool_choice=choice) == asked
        events += [asked.event(9.0), prepared(step), replied(Text("hi"), step=step)]
    found = said(*events, tool_choice=choice)
    detail = f"the model was to call {what}, and replied with a text 3 times."
    look = Decision("stop", detail, 3, 0, 3.0, Decimal("1.5"), 42, 2)
    assert found == Finish(stopped("no_progress", detail), look)
    called = [prepared(), replied(A), ToolFinished(0, "a", "1"), *[replace(one, step=1) for one in events[:2]]]
    called += [asked.event(), prepared(2), replied(Text("hi"), step=2)]
    assert said(*called, tool_choice=choice) == asked


def test_commands_are_the_events_that_carry_them_out():
    nudge = Nudge("no", stuck=True, fault=True)
    assert nudge.event(9.0) == NudgeGiven("no", fault=True, stuck=True, at=9.0)
    finish = Finish(stopped("answered"), GO, {"n": 1})
    assert finish.event(9.0) == RunFinished(stopped("answered"), GO, {"n": 1}, at=9.0)
    assert (Nudge("no").event().at, finish.event().at, Pause(finish.stop).event().at) == (0.0, 0.0, 0.0)
    assert (Nudge("no").event().stuck, Nudge("no").event().fault) == (False, False)


def test_what_was_handed_on_is_answered():
    state = fold_all([STARTED, prepared(), replied(A), ToolFinished(0, "a", "Ada", app={"n": 1}, final=True)])
    assert decide(state) == Finish(stopped("answered", "handed on"), output={"n": 1})
