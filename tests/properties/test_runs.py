"""Any run, whatever the model says and the tools do: the invariants hold."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules import (
    decided_well,
    errors_shown,
    events_of,
    found_is_returned,
    limits_kept,
    one_stop,
    only_what_was_offered,
    requests_valid,
    same,
    valid,
)
from toolbox import NAMES, TOOLS, World, hangs
from worlds import Breaks, Says, Setup, conversation, examples, scripts, setups

from treadle import Agent, Limits, MemoryJournal, RunStopped
from treadle.drivers.drive import drive
from treadle.kernel.events import Happened, MessageAdded, RunFinished, decode_event, encode_event
from treadle.kernel.fold import TRANSITIONS, fold, fold_all
from treadle.kernel.messages import UserMessage
from treadle.kernel.stop import LIMIT_REASONS, stopped


@examples(1000)
@given(setups())
def test_every_run_keeps_every_promise(setup):
    player, world, journal = setup.player(), World(), MemoryJournal()
    agent = setup.agent(player, journal)
    said = conversation()

    async def run():
        raised = False
        try:
            result = await agent.run("go", conversation=said, deps=world)
        except RunStopped as stop:
            result, raised = stop.result, True
        assert raised == (setup.on_limit == "raise" and result.stop.reason in LIMIT_REASONS)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    result = asyncio.run(run())
    events = events_of(journal, result.run_id)
    assert list(result.events) == events
    requests_valid(player)
    valid(result.messages)
    valid(said.messages)
    one_stop(result, events)
    found_is_returned(result)
    limits_kept(result, agent.limits, player, world, setup.reports)
    errors_shown(events)
    only_what_was_offered(player, world)
    decided_well(world)


@examples(400)
@given(setups())
def test_the_journal_folds_to_the_state_in_memory_at_every_prefix(setup):
    player, world, journal = setup.player(), World(), MemoryJournal()
    states = []
    run = setup.agent(player, journal).start(
        "go", deps=world, on_event=lambda event: isinstance(event, Happened) and states and states.append(run.state)
    )
    states.append(run.state)
    asyncio.run(drive(run))
    stored = [encode_event(event) for event in events_of(journal, run.run_id)]
    assert len(stored) == len(states)
    state = fold_all([])
    for i, (row, in_memory) in enumerate(zip(stored, states, strict=True)):
        state = fold(state, decode_event(row))
        same(state, in_memory)
        assert state.events == i + 1
    whole = fold_all(map(decode_event, stored))
    for old in states:
        for event in (MessageAdded(UserMessage("aside"), at=1.0), RunFinished(stopped("cancelled"), at=1.0)):
            if type(event) in TRANSITIONS[old.phase]:
                fold(old, event)
    same(states[-1], whole)
    for i in range(len(stored)):
        same(fold_all(map(decode_event, stored[: i + 1])), states[i])


@examples(30)
@given(scripts(("look", "write", "hangs", "too_slow", "done", "guarded")), st.sampled_from([0, 0.001, 0.01, 0.02]))
def test_the_deadline_ends_whatever_is_in_flight(script, seconds):
    world, journal = World(), MemoryJournal()
    setup = Setup(script, Limits(seconds=seconds))
    player = setup.player()
    agent = setup.agent(player, journal, (*TOOLS, hangs))

    async def run():
        async with asyncio.timeout(5):
            result = await agent.run("go", deps=world)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    result = asyncio.run(run())
    requests_valid(player)
    valid(result.messages)
    one_stop(result, events_of(journal, result.run_id))
    hung = [record for record in result.tool_calls_made if record.name == "hangs" and record.executed]
    if hung or not seconds:
        assert result.stop.reason == "deadline"
    assert all("unknown" in record.result.text for record in hung)


@pytest.mark.parametrize("name", [*NAMES, "no_such_tool", ""])
@pytest.mark.parametrize("arguments", ["{}", '{"n": "x"}', '{"n": 1', "null", "what?"])
def test_no_tool_call_ends_a_run_by_an_exception(name, arguments):
    setup = Setup((Says("", (("a", name, arguments), ("b", "look", "{}")), "tool_calls"),))
    player = setup.player()
    result = setup.agent(player).run_sync("go", deps=World())
    assert result.stop.reason in ("answered", "external_tool", "waiting")
    valid(result.messages)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("failure", [None, "overloaded", "rate_limited", "much_later", "authentication", "exception"])
def test_a_failing_model_is_a_result(failure, times):
    setup = Setup((Breaks(failure, "half an ", times),))
    result = setup.agent(setup.player()).run_sync("go")
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
    setup = Setup((Breaks("authentication"),))
    agent: Agent = setup.agent(setup.player())
    with suppress(RunStopped):
        agent.run_sync("go")
    assert agent.run_sync("go again").stop.reason == "answered"
