"""Stop conditions: what each finds, how they combine, and what they leave in the record."""

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from treadle import (
    Agent,
    Condition,
    Decision,
    Misuse,
    Price,
    RunState,
    SqliteJournal,
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
from treadle.kernel.accounts import Accounts
from treadle.kernel.calls import CallRecord, Calls
from treadle.kernel.log import Log
from treadle.kernel.messages import AssistantMessage, Text, ToolCall
from treadle.kernel.stop import Verdict
from treadle.testing import ScriptedModel


def step(number=0, text="", names=(), is_error=False):
    calls = tuple(ToolCall(f"c{i}", name, "{}") for i, name in enumerate(names))
    records = tuple(CallRecord(call).answered("same", is_error=is_error, at=1.0) for call in calls)
    return Step(number, Decision("go"), 1.0, message=AssistantMessage((Text(text), *calls)), calls=Calls(records))


def state(*steps, **fields):
    kept = {name: fields.pop(name) for name in Accounts.__struct_fields__ if name in fields}
    return RunState(steps=Log(steps or [step()]), accounts=Accounts(**kept), **fields)


def found(what, state):
    """What a condition finds, waited for where it has to be."""
    look = what.look(state)
    if isinstance(look, Verdict):
        return look

    async def wait():
        return await look

    return asyncio.run(wait())


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
        (cost_over(Decimal("0.003")), state(cost=Decimal("0.0030000001")), state(cost=Decimal("0.0030"))),
        (cost_over(0.3), state(cost=Decimal("0.30000000000000001")), state(cost=Decimal("0.3"))),
        (tokens_over(10), state(usage=Usage(6, 5)), state(usage=Usage(5, 5))),
        (elapsed_over(5), state(resumed_at=10.0, now=15.5), state(resumed_at=10.0, now=15.0)),
        (elapsed_over(5), state(earlier=3.0, resumed_at=10.0, now=12.5), state(earlier=3.0, resumed_at=10.0, now=9.0)),
        (consecutive_errors(2), state(errors=2), state(errors=1)),
        (
            consecutive_errors(3, by="call"),
            state(step(names=["a"], is_error=True), step(1, names=["a", "b"], is_error=True)),
            state(step(names=["a", "b"], is_error=True), step(1, names=["a"]), step(2, names=["a"], is_error=True)),
        ),
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


@pytest.mark.parametrize(
    "keeps",
    [
        lambda stuck: stuck,
        lambda stuck: stuck | FALSE,
        lambda stuck: FALSE | stuck,
        lambda stuck: stuck & TRUE,
        lambda stuck: TRUE & stuck,
        lambda stuck: ~~stuck,
        lambda stuck: ~(~stuck | ~TRUE),
        lambda stuck: ~(~stuck & ~FALSE),
        lambda stuck: ~(FALSE | ~(stuck & TRUE)),
        lambda stuck: condition([FALSE, stuck]),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_no_combination_loses_a_reason(keeps, asynchronous):
    stuck = state(*(step(i, names=["a"]) for i in range(5)))
    what = Delayed(no_progress()) if asynchronous else no_progress()
    verdict = found(keeps(what), stuck)
    assert verdict.met
    assert verdict.reason == "no_progress"
    assert found(~what, state(step(names=["a"]))).reason == "condition"


async def yes(state):
    return "waited"


async def no(state):
    return False


class Delayed(Condition):
    """What another condition finds, when it has been waited for."""

    def __init__(self, part):
        self.part = part

    async def look(self, state):
        return self.part.look(state)

    def __repr__(self):
        return repr(self.part)


@pytest.mark.parametrize("a", [True, False])
@pytest.mark.parametrize("b", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_asynchronous_conditions_combine_as_others_do(a, b, first, second):
    one, other = condition(lambda state: a), condition(lambda state: b)
    slow, late = (Delayed(one) if first else one), (Delayed(other) if second else other)
    for combine in (
        lambda x, y: x | y,
        lambda x, y: x & y,
        lambda x, y: ~(x | y),
        lambda x, y: ~x & y,
        lambda x, y: condition([x, y]),
        lambda x, y: (x & y) | ~y,
    ):
        assert found(combine(slow, late), state()) == found(combine(one, other), state())


def test_an_asynchronous_function_is_never_judged_by_its_truth():
    """A coroutine is true, so that such a condition ended the run at once, as finished."""
    assert not found(condition(no), state()).met
    assert not found(FALSE | condition(no), state()).met
    assert found(~condition(no), state()).met
    verdict = found(FALSE | condition(yes), state())
    assert verdict.detail == "yes: waited"
    assert [check.name for check in verdict.checks] == ["<lambda>", "yes"]


def test_asynchronous_conditions_look_no_further_than_they_have_to():
    looked = []

    def noting(name, answer):
        async def look(state):
            looked.append(name)
            return answer

        return look

    both = condition(noting("a", True)) | noting("b", True) | noting("c", True)
    assert found(both, state()).met
    assert looked == ["a"]
    found(condition(noting("d", False)) & noting("e", True), state())
    assert looked == ["a", "d"]


@pytest.mark.parametrize("wrong", [step_count(3), lambda state: True, yes])
def test_what_a_function_may_not_return(wrong):
    with pytest.raises(TypeError, match="returns a bool, or a text"):
        found(condition(lambda state: wrong), state())


@pytest.mark.parametrize("wrong", [lambda: True, lambda state, step: True, lambda *, state: True, str.join])
def test_a_function_of_something_else_is_refused_where_the_agent_is_made(wrong):
    """It raised after the first step, when the model had been paid and its calls had been made."""
    for given in (wrong, [step_count(3), wrong]):
        with pytest.raises(TypeError, match="which cannot be called with that alone"):
            condition(given)
    with pytest.raises(TypeError, match="which cannot be called with that alone"):
        step_count(3) | wrong


async def generates(state):
    yield True


def test_what_generates_is_no_condition():
    with pytest.raises(TypeError, match="the stop condition generates"):
        found(condition(generates), state())


@pytest.mark.parametrize("wrong", [True, None, "met"])
def test_a_look_that_gives_no_verdict_says_so(wrong):
    class Mine(Condition):
        def look(self, state):
            return wrong

    for what in (Mine() | FALSE, TRUE & Mine(), ~Mine(), FALSE | Delayed(Mine())):
        with pytest.raises(TypeError, match="returns a Verdict"):
            found(what, state())


def test_errors_are_counted_by_step_or_by_call():
    with pytest.raises(ValueError, match='by="step" or by="call"'):
        consecutive_errors(2, by="reply")
    assert repr(consecutive_errors(2)) == "consecutive_errors(2)"
    assert repr(consecutive_errors(2, by="call")) == "consecutive_errors(2, by='call')"


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


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("met", [cost_over(Decimal("0.001")), elapsed_over(Decimal("0"))])
async def test_a_bound_that_is_a_decimal_is_read_back_and_replayed_as_it_was_recorded(
    anyio_backend: str, met: Condition, tmp_path: Path
) -> None:
    model = ScriptedModel(["hm"], price=Price(3, 15), usage=Usage(1000, 100))
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        # An answer that is sent back, so that the condition is looked at.
        agent = Agent(model, stop_when=met, on_answer=lambda answer, context: "No.", journal=journal)
        result = await agent.run("Well?")
        again = await agent.resume(result.run_id)
        assert result.stop.reason == "condition"
        assert again.decision == result.decision
        assert (await agent.replay(result.run_id)).same


@pytest.mark.parametrize(
    "joined",
    [
        lambda: step_count(3) and has_tool_call("done"),
        lambda: step_count(3) or has_tool_call("done"),
        lambda: not step_count(3),
        lambda: condition(lambda state: True) and step_count(3),
    ],
)
def test_conditions_joined_by_words_of_python_are_refused_as_one_would_be_lost(joined) -> None:
    with pytest.raises(Misuse, match=r"combine conditions by &, \| and ~"):
        joined()
