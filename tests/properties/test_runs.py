"""Any run, whatever the model says and the tools do: the invariants hold."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest
from below import PASS_ON, Below
from checks import events_of, same, shape_of
from clock import run_quickly
from found import DONE, SLOWLY, WRITES, calling, calls
from hooks import Hooks, OfTheApplication, Temper
from hypothesis import given
from hypothesis import strategies as st
from journals import hide
from player import Breaks, Says
from rules import hold
from toolbox import NAMES, TOOLS, World, hangs
from trial import Trial
from worlds import Setup, examples, scripts, setups

from treadle import Agent, Limits, MemoryJournal, Misuse, RunStopped
from treadle.drivers.drive import drive
from treadle.kernel.events import Happened, MessageAdded, RunFinished, decode_event, encode_event
from treadle.kernel.fold import TRANSITIONS, fold, fold_all
from treadle.kernel.messages import UserMessage
from treadle.kernel.stop import stopped
from treadle.models import AuthenticationFailed
from treadle.testing import ScriptedModel


@examples(160, shrink=False)
@given(setups())
def test_every_run_keeps_every_promise(setup):
    hold(Trial.of(setup).carry_out())


@examples(80, shrink=False)
@given(setups(depth=1), st.booleans())
def test_the_journal_folds_to_the_state_in_memory_at_every_prefix(setup, redacts):

    def as_it_was(state, had):
        if redacts:
            assert shape_of(state) == shape_of(had)
        else:
            same(state, had)

    world, journal = World(quotes=redacts), MemoryJournal(redact=hide if redacts else None)
    states = []

    async def run():
        hooks = replace(setup.hooks, instructions=None)
        agent = replace(setup, hooks=hooks, server=None).agent(setup.player(world), journal, TOOLS, world)
        seen = lambda event: isinstance(event, Happened) and states and states.append(one.state)  # noqa: E731
        one = agent.start("go", deps=world, on_event=seen)
        states.append(one.state)
        with suppress(OfTheApplication, RuntimeError, Misuse):
            await drive(one)
        return one

    one = run_quickly(run, threads=True)
    events = events_of(journal, one.run_id)
    stored = [encode_event(event) for event in events]
    assert len(stored) <= len(states)
    state = fold_all([])
    for i, row in enumerate(stored):
        state = fold(state, decode_event(row))
        as_it_was(state, states[i])
        assert state.events == i + 1
    for old in states:
        for event in (MessageAdded(UserMessage("aside"), at=1.0), RunFinished(stopped("cancelled"), at=1.0)):
            if type(event) in TRANSITIONS[old.phase]:
                fold(old, event)
    for i in range(len(stored)):
        as_it_was(fold_all(map(decode_event, stored[: i + 1])), states[i])


@examples(60, shrink=False)
@given(scripts(("look", "write", "hangs", "too_slow", "done", "guarded")), st.sampled_from([0, 1, 3, 30]))
def test_the_deadline_ends_whatever_is_in_flight(script, seconds):
    trial = Trial.of(Setup(script, Limits(seconds=seconds)), (*TOOLS, hangs)).carry_out()
    hold(trial)
    hung = [one for one in trial.world.executed if one.tool == "hangs"]
    if hung or not seconds:
        assert trial.last.result.stop.reason == "deadline"
    for one in hung:
        record = next(r for r in trial.last.result.tool_calls_made if r.id == one.call_id)
        assert "unknown" in record.result.text


@pytest.mark.parametrize("name", [*NAMES, "no_such_tool", ""])
@pytest.mark.parametrize("arguments", ["{}", '{"n": "x"}', '{"n": 1', "null", "what?"])
def test_no_tool_call_ends_a_run_by_an_exception(name, arguments):
    trial = Trial.of(Setup((Says("", (("a", name, arguments), ("b", "look", "{}")), "tool_calls"),))).carry_out()
    hold(trial)
    assert trial.last.result.stop.reason in ("answered", "external_tool")


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("failure", [None, "overloaded", "rate_limited", "much_later", "authentication", "exception"])
def test_a_failing_model_is_a_result(failure, times):
    setup = Setup((Breaks(failure, "half an ", times),))
    result = setup.agent(setup.player()).run_sync("go", deps=World())
    retried = failure in (None, "overloaded", "rate_limited")
    assert result.stop.reason == ("answered" if retried and times == 1 else "model_error")
    assert result.text == ("recovered" if retried and times == 1 else "half an ")
    assert (result.error is None) == result.finished
    if not result.finished:
        with pytest.raises(RunStopped, match="model_error") as caught:
            result.require()
        assert caught.value.__cause__ is result.error


def test_many_runs_of_one_agent_do_not_mix():
    setup = Setup((Says("", (("a", "look", '{"n": 1}'), ("b", "put", '{"n": 2}'))), Says("done")))
    agent = setup.agent(setup.player())

    async def run():
        return await asyncio.gather(*(agent.run(f"question {i}", deps=World()) for i in range(50)))

    results = asyncio.run(run())
    assert len({result.run_id for result in results}) == 50
    for i, result in enumerate(results):
        assert result.messages[0].text == f"question {i}"
        assert [record.result.text for record in result.tool_calls_made] == ["saw 1", "2"]


def test_agent_keeps_nothing_of_a_run():
    agent = Agent(ScriptedModel([AuthenticationFailed("who are you", status=401), "hello"]))
    assert agent.run_sync("go").stop.reason == "model_error"
    again = agent.run_sync("go again")
    assert (again.stop.reason, again.error) == ("answered", None)


def test_a_sub_agents_instructions_may_be_asynchronous():
    setup = calling(Setup((DONE,), hooks=Hooks(instructions=Temper("waits", True))))
    trial = Trial.of(setup).carry_out()
    assert [trial.path(run) for run in trial.journal.runs] == ["agent", "agent/helper"]


def test_of_two_hand_offs_in_one_reply_the_second_is_refused_before_it_costs_anything():
    setup = Setup((calls(PASS_ON, PASS_ON), DONE), below=(Below(WRITES, PASS_ON),))
    trial = Trial.of(setup).carry_out()
    assert len(trial.journal.runs) == 2
    assert [one.tool for one in trial.world.executed] == ["write"]


def test_writes_of_one_reply_run_one_after_the_other_in_call_order():
    trial = Trial.of(Setup((calls("write_slowly", "look", "write", "put"), DONE))).carry_out()
    hold(trial)
    assert [one.tool for one in trial.world.executed if one.tool.startswith("write")] == ["write_slowly", "write"]


def test_an_early_call_is_begun_once_its_arguments_are_there_and_before_the_reply_is():
    setup = Setup((calls("look", "write"), DONE), stream=SLOWLY)
    trial = Trial.of(setup).carry_out()
    kinds = [type(event).__name__ for _, event in trial.journal.order]
    assert kinds.index("ToolStarted") < kinds.index("ModelReplied")
