"""Stop conditions: what each finds, how they combine, and what they leave in the record."""

from decimal import Decimal

import pytest

from treadle import (
    Condition,
    Decision,
    RunState,
    Step,
    Usage,
    condition,
    consecutive_errors,
    cost_over,
    elapsed_over,
    has_tool_call,
    no_progress,
    step_count,
    text_contains,
    tokens_over,
    tool_call_count,
)
from treadle.kernel.log import Log
from treadle.kernel.messages import AssistantMessage, Text, ToolCall
from treadle.kernel.calls import CallRecord


def step(number=0, text="", names=(), is_error=False):
    calls = tuple(ToolCall(f"c{i}", name, "{}") for i, name in enumerate(names))
    records = tuple(CallRecord(call).answered("same", is_error=is_error, at=1.0) for call in calls)
    return Step(number, Decision("go"), 1.0, message=AssistantMessage((Text(text), *calls)), calls=records)


def state(*steps, **fields):
    return RunState(steps=Log(steps or [step()]), **fields)


TRUE, FALSE = condition(lambda state: True), condition(lambda state: False)


@pytest.mark.parametrize(
    ("what", "holds", "does_not"),
    [
        (step_count(2), state(step(), step(1)), state()),
        (has_tool_call("a"), state(step(names=["b", "a"])), state(step(names=["a"]), step(1, names=["b"]))),
        (tool_call_count(3), state(tool_calls=3), state(tool_calls=2)),
        (tool_call_count(2, "a"), state(tool_calls=2, call_counts={"a": 2}), state(tool_calls=9, call_counts={"a": 1})),
        (text_contains("ANSWER"), state(step(text="The ANSWER: 4")), state(step(text="ANSWER"), step(1, text="hm"))),
        (text_contains("answer", ignore_case=True), state(step(text="ANSWER")), state(step(text="answe r"))),
        (cost_over(1), state(cost=Decimal("1.01")), state(cost=Decimal(1))),
        (cost_over(0), state(cost=Decimal("0.01")), state()),
        (tokens_over(10), state(usage=Usage(6, 5)), state(usage=Usage(5, 5))),
        (elapsed_over(5), state(resumed_at=10.0, now=15.5), state(resumed_at=10.0, now=15.0)),
        (elapsed_over(5), state(earlier=3.0, resumed_at=10.0, now=12.5), state(earlier=3.0, resumed_at=10.0, now=9.0)),
        (consecutive_errors(2), state(errors=2), state(errors=1)),
        (no_progress(), state(*(step(i, names=["a"]) for i in range(5))), state(step(names=["a"]))),
        (condition(lambda state: "found it"), state(), state()),
    ],
    ids=repr,
)
def test_each_condition(what, holds, does_not):
    verdict = what.look(holds)
    assert verdict.met
    assert verdict.detail
    assert [check.met for check in verdict.checks] == [True]
    if not repr(what).startswith("<lambda>"):
        verdict = what.look(does_not)
        assert not verdict.met
        assert not verdict.detail
        assert [check.met for check in verdict.checks] == [False]


@pytest.mark.parametrize("a", [True, False])
@pytest.mark.parametrize("b", [True, False])
def test_combinations_are_those_of_logic(a, b):
    one, other = condition(lambda state: a), condition(lambda state: b)
    assert (one | other).look(state()).met is (a or b)
    assert (one & other).look(state()).met is (a and b)
    assert (~one).look(state()).met is (not a)
    assert condition([one, other]).look(state()).met is (a or b)
    assert (~(one | other)).look(state()).met is (not (a or b))
    assert (~(one & other)).look(state()).met is (not (a and b))
    assert (one | (lambda state: b)).look(state()).met is (a or b)
    assert ((lambda state: b) & one).look(state()).met is (a and b)
    assert ((lambda state: b) | one).look(state()).met is (a or b)
    assert (one & (lambda state: b)).look(state()).met is (a and b)


def test_it_looks_no_further_than_it_has_to():
    def never(state):
        raise AssertionError("looked at")

    assert (TRUE | never).look(state()).met
    assert not (FALSE & never).look(state()).met
    assert len((FALSE | TRUE).look(state()).checks) == 2


def test_the_detail_names_what_held():
    def said_enough(state):
        return "three times"

    assert (FALSE | condition(said_enough)).look(state()).detail == "said_enough: three times"
    both = (step_count(1) & said_enough).look(state())
    assert both.detail == "step_count(1) and said_enough: three times"
    assert (~step_count(5)).look(state()).detail == "~step_count(5)"


def test_no_progress_gives_its_own_reason_alone_or_among_others():
    stuck = state(*(step(i, names=["a"]) for i in range(5)))
    assert no_progress().look(stuck).reason == "no_progress"
    assert (FALSE | no_progress()).look(stuck).reason == "no_progress"
    assert (TRUE | no_progress()).look(stuck).reason == "condition"


def test_they_say_what_they_are():
    assert repr(step_count(3) | has_tool_call("done") & ~text_contains("x")) == (
        "(step_count(3) | (has_tool_call('done') & ~text_contains('x')))"
    )
    assert repr(~~step_count(3)) == "step_count(3)"


@pytest.mark.parametrize("wrong", [3, None, "step_count(3)", [], [3], {}])
def test_what_is_no_condition(wrong):
    with pytest.raises(TypeError, match="step_count"):
        condition(wrong)


def test_a_condition_without_a_look_says_so():
    class Mine(Condition):
        pass

    with pytest.raises(TypeError, match="Mine has no look"):
        Mine().look(state())


def test_the_record_keeps_value_and_bound():
    (check,) = tokens_over(10).look(state(usage=Usage(6, 5))).checks
    assert (check.name, check.value, check.bound, check.met) == ("tokens_over(10)", 11, 10, True)
