"""A request that the provider finds too long: room is made, and it is sent once more."""

import pytest
from histories import tokens_of
from rules import valid
from scripted_runs import LIMITS, checked, edits, look, looks, refolded, run

from treadle import Agent, Limits, StepSettings
from treadle.context.policies import ClearToolResults, KeepFirstAndRecent
from treadle.kernel.events import (
    ModelFailed,
)
from treadle.models import ContextOverflow
from treadle.testing import ScriptedModel


def overflowing(room, inner):
    """A model whose context ends at `room` estimated tokens."""

    def turn(request):
        if tokens_of(list(request.messages)) > room:
            return ContextOverflow("prompt is too long", status=400)
        return inner(request)

    return turn


@pytest.mark.parametrize("policies", [None, ClearToolResults(50_000, 40_000), KeepFirstAndRecent(50_000, 40_000)])
def test_an_overflow_compacts_and_retries_and_the_run_goes_on(policies):
    model = ScriptedModel(overflowing(4000, looks(30)))
    result = checked(model, run(Agent(model, tools=[look], limits=LIMITS, context=policies)))
    assert result.stop.reason == "answered"
    failures = [event for event in result.events if isinstance(event, ModelFailed)]
    assert failures
    assert all(event.error.kind == "context_overflow" for event in failures)
    asked = [request.step for request in model.requests]
    assert all(asked.count(step) <= 2 for step in asked)
    assert result.error is None


def test_overflow_compacts_and_retries_once_and_only_once():
    def turn(request):
        return [("look", {"n": request.step})] if request.step < 5 else ContextOverflow("too long", status=400)

    model = ScriptedModel(turn)
    result = checked(model, run(Agent(model, tools=[look])))
    assert [request.step for request in model.requests] == [0, 1, 2, 3, 4, 5, 5]
    assert tokens_of(list(model.requests[-1].messages)) < tokens_of(list(model.requests[-2].messages)) * 0.6
    assert result.stop.reason == "model_error"
    assert isinstance(result.error, ContextOverflow)


def test_an_overflow_with_nothing_to_take_away_is_the_models_error():
    model = ScriptedModel(lambda request: ContextOverflow("too long", status=400))
    result = run(Agent(model, tools=[look]))
    assert (result.stop.reason, len(model.requests)) == ("model_error", 1)


def test_no_policy_at_all_leaves_the_history_alone():
    model = ScriptedModel(overflowing(2000, looks(30)))
    result = run(Agent(model, tools=[look], limits=LIMITS, context=[]))
    assert result.stop.reason == "model_error"
    assert not edits(result)


def test_one_huge_result_in_the_last_exchange_is_cut_after_an_overflow():
    model = ScriptedModel(overflowing(4000, looks(1, size=40_000)))
    result = checked(model, run(Agent(model, tools=[look])))
    assert result.stop.reason == "answered"
    assert model.requests[-1].messages[-1].whole is not None
    assert "read_result" not in model.requests[-1].messages[-1].text


def test_an_overflow_of_messages_that_prepare_step_chose():
    def prepare(context):
        return StepSettings(messages=list(context.messages))

    model = ScriptedModel(overflowing(4000, looks(12)))
    result = run(Agent(model, tools=[look], prepare_step=prepare, limits=LIMITS))
    assert edits(result)
    assert result.stop.reason == "answered"
    refolded(result)
    for request in model.requests:
        valid(list(request.messages))


@pytest.mark.parametrize("policy", [KeepFirstAndRecent(2500, 1000), ClearToolResults(2500, 1000, keep=0), None])
def test_landing_still_works_after_compaction(policy):
    def turn(request):
        if request.tool_choice == "none":
            return "what I have"
        return [("look", {"n": request.step})]

    model = ScriptedModel(overflowing(4000, turn))
    result = checked(model, run(Agent(model, tools=[look], limits=Limits(steps=14), context=policy)))
    assert result.stop.reason == "max_steps"
    assert result.text == "what I have"
    assert edits(result)
    assert "Tools are off now" in model.requests[-1].messages[-1].text
    assert sum("Tools are off now" in one.text for one in result.messages) == 1


def test_an_overflow_of_the_landing_call_keeps_its_note_last():
    def turn(request):
        if request.tool_choice == "none":
            return "landed" if tokens_of(list(request.messages)) < 1800 else ContextOverflow("too long", status=400)
        return [("look", {"n": request.step})]

    model = ScriptedModel(turn)
    result = checked(model, run(Agent(model, tools=[look], limits=Limits(steps=8))))
    assert result.text == "landed"
    assert "Tools are off now" in model.requests[-1].messages[-1].text
