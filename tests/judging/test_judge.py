"""What is done about a run that gets nowhere: the ladder, its bounds, and the sentence that names a loop."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Decision, Limits, condition, step_count
from treadle.judging.judge import NOTHING, NUDGES, judge
from treadle.judging.progress import WINDOW
from treadle.kernel.events import (
    ModelReplied,
    NudgeGiven,
    RunFinished,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, Image, ToolCall, UserMessage
from treadle.kernel.state import RunState
from treadle.kernel.stop import Judgement, Stuck, stopped

NO_LIMITS = Limits(None, None, None, consecutive_errors=None)
TOOLS = ("look", "other", "status", "save")


def begun(**fields) -> RunState:
    started = RunStarted(
        "r", (UserMessage("go"),), 1, NO_LIMITS, tools=TOOLS, polling=("status",), writes=("save",), **fields
    )
    return fold_all([started])


def act(state, *calls, withheld=(), at=0.0):
    """The state after a step of these calls: each a tool, its arguments, its result, and whether it failed."""
    number = len(state.steps)
    rung = 2 if withheld else state.progress.stuck
    made = tuple(ToolCall(f"c{i}", name, arguments) for i, (name, arguments, *_) in enumerate(calls))
    events = [StepPrepared(number, Decision("go"), stuck=rung, withheld=withheld, at=at)]
    events.append(ModelReplied(number, AssistantMessage(made), at=at))
    events += [ToolStarted(number, call.id, at=at) for call in made]
    events += [
        ToolFinished(number, f"c{i}", result, is_error=bool(failed), at=at)
        for i, (_, _, result, *failed) in enumerate(calls)
    ]
    return fold_all(events, state)


def climb(behave: Callable[[int, str], tuple], steps: int = 400) -> tuple[list[tuple[int, Stuck]], RunState]:
    """A run through the ladder, `behave` being told the step and what was last done; and what was done, by step."""
    state, done, last = begun(), [], ""
    for number in range(steps):
        stuck = judge(state).stuck
        if stuck is not None:
            done.append((number, stuck))
            last = stuck.act
        if stuck is not None and stuck.act == "stop":
            break
        if stuck is not None and stuck.act == "nudge":
            state = fold(state, NudgeGiven(stuck.message, stuck=True))
            assert judge(state).stuck is None
        withheld = () if stuck is None else stuck.tools
        state = act(state, behave(number, last), withheld=withheld)
    return done, state


def waited(found: Awaitable[Judgement]) -> Judgement:
    async def wait():
        return await found

    return asyncio.run(wait())


LOOK = ("look", '{"key": "a"}', "nothing")


def test_the_ladder_tells_withholds_and_stops():
    done, _ = climb(lambda number, last: LOOK)
    assert [(number, stuck.act) for number, stuck in done] == [(3, "nudge"), (4, "withhold"), (5, "stop")]
    assert done[0][1].message.startswith("You called look 3 times with the same arguments")
    assert done[1][1].tools == ("look",)
    assert done[1][1].message.endswith("In your next step, and only in that one, you do not have look.")


def test_where_no_tool_would_be_left_nothing_is_withheld():
    state = fold_all([RunStarted("r", (UserMessage("go"),), 1, NO_LIMITS, tools=("look",))])
    for _ in range(3):
        state = act(state, LOOK)
    state = act(fold(state, NudgeGiven("told", stuck=True)), LOOK)
    assert judge(state).stuck.act == "stop"


def test_one_good_step_does_not_lead_down_the_ladder():
    """A run that was told, made one good step and fell back was told for ever."""

    def behave(number, last):
        return ("look", f'{{"key": {number}}}', f"page {number}") if number % 5 == 4 else LOOK

    done, _ = climb(behave)
    assert [stuck.act for _, stuck in done] == ["nudge", "withhold", "stop"]


def test_a_run_that_finds_another_way_is_left_alone():
    done, _ = climb(lambda number, last: ("look", f'{{"key": {number}}}', "nothing") if last else LOOK)
    assert [stuck.act for _, stuck in done] == ["nudge"]


def test_a_rung_is_left_behind_after_a_whole_window():
    def behave(number, last):
        return LOOK if number % (3 * WINDOW) < 3 else ("look", f'{{"key": {number}}}', "nothing")

    done, _ = climb(behave)
    assert {stuck.act for _, stuck in done} == {"nudge"}
    assert len(done) == NUDGES


def test_told_often_enough_a_run_that_is_stuck_once_more_ends():
    def behave(number, last):
        stuck_again = number % (3 * WINDOW) < (3 if number < NUDGES * 3 * WINDOW else 4)
        return LOOK if stuck_again else ("look", f'{{"key": {number}}}', "nothing")

    done, _ = climb(behave)
    assert [stuck.act for _, stuck in done] == ["nudge"] * NUDGES + ["stop"]


@given(st.lists(st.tuples(st.sampled_from(["look", "other"]), st.integers(0, 2), st.booleans()), max_size=80))
def test_what_is_done_is_bounded_and_in_order(script):
    done, state = climb(
        lambda number, last: (script[number][0], str(script[number][1]), "same", script[number][2]), len(script)
    )
    acts = [stuck.act for _, stuck in done]
    assert acts.count("nudge") == state.progress.nudges <= NUDGES
    assert acts.count("withhold") <= NUDGES
    assert "stop" not in acts[:-1]
    for before, after in zip(["", *acts], acts, strict=False):
        assert after != "withhold" or before == "nudge"


@given(st.lists(st.tuples(st.sampled_from(["look", "other"]), st.integers()), unique=True, max_size=40), st.text())
def test_a_run_whose_calls_are_new_and_succeed_is_never_touched(calls, result):
    state = begun()
    for name, number in calls:
        state = act(state, (name, str(number), result))
        assert judge(state) == NOTHING


def test_arguments_written_otherwise_are_the_same_call():
    """What was looked at first, before the finder, compared the texts as they stood."""
    state = begun()
    for text in ('{"a": 1, "b": 2}', '{"b":2,"a":1}', '{ "a":1 , "b":2 }'):
        state = act(state, ("look", text, "nothing"))
    assert judge(state).stuck.act == "nudge"


def test_a_batch_that_is_repeated_is_told_so():
    state = begun()
    for _ in range(3):
        state = act(state, *(("look", str(i), "nothing") for i in range(10)))
    assert judge(state).stuck.message.startswith("You made the same 10 calls (look) 3 times")


def test_successes_of_a_tool_that_writes_are_left_alone_and_its_failures_are_not():
    done, _ = climb(lambda number, last: ("save", "{}", "saved"), 60)
    assert done == []
    done, _ = climb(lambda number, last: ("save", "{}", "disk full", True))
    assert [stuck.act for _, stuck in done] == ["nudge", "withhold", "stop"]


def test_looking_again_after_each_change_is_left_alone():
    checks = [("look", "1", "1 failed"), ("other", "2", "2 warnings")]
    done, _ = climb(lambda number, last: [("save", str(number), "saved"), *checks][number % 3], 90)
    assert done == []


def test_a_reader_of_what_begins_with_error_is_left_alone():
    """A reader of logs or tickets was stopped after nine calls, though all of them had succeeded."""
    done, _ = climb(lambda number, last: ("look", f'{{"line": {number}}}', f"Error {number}: disk full"), 60)
    assert done == []


def test_different_pictures_are_different_results():
    """A picture has no text, so that two of them were taken for the same result."""
    state = begun()
    for i in range(12):
        state = act(state, ("look", "{}", (Image(bytes([i])),)))
        assert judge(state).stuck is None
    for _ in range(3):
        state = act(state, ("look", "{}", (Image(b"same"),)))
    assert judge(state).stuck.act == "nudge"


def test_polling_is_watched_by_time():
    def polled(seconds, answer):
        state = act(begun(at=1.0), ("status", "{}", answer(0)), at=1.0)
        return judge(act(state, ("status", "{}", answer(1)), at=1.0 + seconds)).stuck

    assert polled(100, lambda i: "pending") is None
    assert polled(130, lambda i: f"{i} %") is None
    told = polled(130, lambda i: "pending")
    assert (told.act, told.kind) == ("nudge", "polling")
    assert told.message == "You have asked status for 130 seconds, and its answer has not changed."


def test_polling_is_what_the_steps_end_with_since_the_answer_was_first_given():
    def polled(*steps):
        state = begun(at=1.0)
        for i, calls in enumerate(steps):
            state = act(state, *calls, at=1.0 + 70 * i)
        stuck = judge(state).stuck
        return stuck is not None and stuck.kind == "polling"

    pending, done = ("status", "{}", "pending"), ("status", "{}", "done")
    assert polled([pending], [pending], [pending])
    assert polled([("look", "1", "a"), pending], [("look", "2", "b"), pending], [pending])
    assert not polled([pending], [pending, ("look", "1", "a")], [pending])
    assert not polled([pending], [("look", "1", "a")], [pending])
    assert not polled([pending], [done], [pending])
    assert not polled([("look", "1", "a")], [("look", "1", "a")], [("look", "1", "a")])
    assert not polled([pending], [("status", '{"n": 1}', "pending")], [pending])
    assert polled([done], [pending], [pending], [pending])


def test_what_polled_before_a_run_was_taken_up_again_after_its_end_is_not_counted():
    state = act(begun(at=1.0), ("status", "{}", "pending"), at=1.0)
    state = fold_all([RunFinished(stopped("cancelled"), at=2.0), RunResumed(at=200.0)], state)
    state = act(state, ("status", "{}", "pending"), at=210.0)
    assert judge(state).stuck is None
    state = act(state, ("status", "{}", "pending"), at=340.0)
    assert judge(state).stuck.message.startswith("You have asked status for 130 seconds")


def test_polling_that_is_gone_on_with_climbs_the_ladder():
    state, acts, withheld = act(begun(at=1.0), ("status", "{}", "pending"), at=1.0), [], ()
    for i in range(1, 4):
        state = act(state, ("status", "{}", "pending"), at=1.0 + 130 * i, withheld=withheld)
        stuck = judge(state).stuck
        acts.append(stuck.act)
        withheld = stuck.tools
        if stuck.act == "nudge":
            state = fold(state, NudgeGiven(stuck.message, stuck=True, at=state.now))
    assert acts == ["nudge", "withhold", "stop"]


def test_nothing_is_judged_before_the_first_step():
    def never(state):
        raise AssertionError("looked at")

    assert judge(begun(), condition(never)) is NOTHING


def test_a_condition_that_holds_comes_first():
    state = begun()
    for _ in range(5):
        state = act(state, LOOK)
    judgement = judge(state, step_count(5))
    assert judgement.verdict.met
    assert judgement.stuck is None
    assert judge(state, step_count(9)).stuck is not None


def test_the_watch_can_be_turned_off():
    state = begun(watch=False)
    for _ in range(9):
        state = act(state, LOOK)
    assert judge(state) is NOTHING


def test_an_asynchronous_condition_is_waited_for():
    async def enough(state):
        return len(state.steps) > 1 and "seen"

    state = act(begun(), LOOK)
    found = judge(state, condition(enough))
    assert isawaitable(found)
    assert not waited(found).verdict.met
    judgement = waited(judge(act(state, LOOK), condition(enough)))
    assert isinstance(judgement, Judgement)
    assert judgement.verdict.detail == "enough: seen"


def test_a_loop_is_named_from_the_second_call_on():
    state = act(begun(), ("other", "{}", "else"), LOOK)
    assert judge(state).loop == ""
    state = act(state, LOOK)
    loop = 'The last %d steps made the same call with the same result: look({"key": "a"}).'
    assert judge(state).loop == loop % 2
    state = act(state, LOOK, ("other", "{}", "else"))
    assert judge(fold(state, NudgeGiven("told", stuck=True))).loop == loop % 3
    assert judge(act(state, ("look", '{"key": "a"}', "something"))).loop == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (f'{{"account":"{"A" * 60}","amount":1234567,"note":"x"}}', f'{{"account":"{"A" * 60}",…'),
        (f'{{"account": "{"A" * 40}", "amount": 1234567, "note": "{"x" * 50}"}}',
         f'{{"account": "{"A" * 40}", "amount": 1234567, …'),
        (f'{{"amounts":[{"1234567," * 20}1]}}', "…"),
        (f'{{"said":"{"1,234,567 " * 20}"}}', "…"),
    ],
)  # fmt: skip
def test_a_loop_is_named_without_a_part_of_a_figure(arguments, told):
    """It ended after 80 characters, wherever that was: of 1234567 the model, and who reads the stop, saw 1234."""
    call = ("look", arguments, "the same")
    assert judge(act(act(begun(), call), call)).loop.endswith(f": look({told}).")


@pytest.mark.parametrize(
    "between", [[("other", "{}", "else")], [("status", "{}", "pending")], [("save", "{}", "saved")]]
)
def test_a_loop_is_named_only_for_steps_that_follow_on_each_other(between):
    state = act(act(act(begun(), LOOK), *between), LOOK)
    assert judge(state).loop == ""
    assert "last 2 steps" in judge(act(state, LOOK)).loop


@pytest.mark.parametrize("name", ["save", "status"])
def test_what_is_meant_to_be_repeated_is_not_named_as_a_loop(name):
    state = act(act(begun(), (name, "{}", "ok")), (name, "{}", "ok"))
    assert judge(state).loop == ""


def test_long_arguments_are_cut_in_the_sentence():
    call = ("look", '"' + "x" * 500 + '"', "nothing")
    loop = judge(act(act(begun(), call), call)).loop
    assert len(loop) < 200
    assert loop.endswith("look(…).")
