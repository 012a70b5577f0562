"""A process may die after any event: what is recorded is never asked for or done again, and the run comes to an end."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules import events_of, one_stop, requests_valid, valid
from toolbox import QUICK, World
from worlds import Says, Setup, SlowJournal, examples, setups

from treadle import MemoryJournal, RunStopped
from treadle.journal import JournalConflict, UnknownRun
from treadle.kernel.events import ModelReplied, RunFinished, ToolFinished, ToolStarted
from treadle.kernel.fold import fold_all

NAMES = tuple(one.name for one in QUICK)
EFFECTS = {one.name: one.effect for one in QUICK}


async def settle(agent, result, world, agree):
    """Decides whatever is pending until the run ends. Returns its result and what was approved, by step and call."""
    approved = set()
    for _ in range(12):
        if result.stop.reason != "waiting":
            return result, approved
        number = len(result.steps) - 1
        decide = [one.call_id for one in result.pending if one.kind != "result"]
        outside = {one.call_id: "from outside" for one in result.pending if one.kind == "result"}
        if agree:
            approved |= {(number, call_id) for call_id in decide}
        given = {"approve": decide} if agree else {"deny": dict.fromkeys(decide, "no")}
        result = await ended(agent.resume(result.run_id, **given, results=outside, deps=world))
    raise AssertionError(f"the run still waits: {result.stop}")


async def ended(run):
    try:
        return await run
    except RunStopped as stop:
        return stop.result


def finished_calls(events):
    return {(event.step, event.call_id) for event in events if isinstance(event, ToolFinished)}


def check_against(prefix, player, world, approved, setup):
    """Nothing that `prefix` records was asked for or done again."""
    replied = {event.step for event in prefix if isinstance(event, ModelReplied)}
    assert replied.isdisjoint(request.step for request in player.requests)
    answered = finished_calls(prefix)
    started = {(event.step, event.call_id) for event in prefix if isinstance(event, ToolStarted)}
    for name, step, call_id in world.executed:
        assert (step, call_id) not in answered, f"{name} was executed again"
        if EFFECTS[name] == "write" and (step, call_id) in started:
            assert (step, call_id) in approved, f"{name} was under way and was executed again unasked"
            assert setup.on_interrupted == "ask"
    once = [call for call in world.executed if EFFECTS[call[0]] == "write"]
    assert len(once) == len(set(once))


@examples(60)
@given(setups(NAMES, max_size=4), st.booleans())
def test_a_process_may_die_after_any_event(setup, agree):
    async def whole():
        world, journal = World(), MemoryJournal()
        agent = setup.agent(setup.player(), journal, QUICK)
        result = await ended(agent.run("go", deps=world))
        result, _ = await settle(agent, result, world, agree)
        return result, events_of(journal, result.run_id)

    async def died_after(events, run_id):
        world, journal, player = World(), MemoryJournal(), setup.player()
        await journal.append(run_id, 0, events)
        agent = setup.agent(player, journal, QUICK)
        result = await ended(agent.resume(run_id, deps=world))
        result, approved = await settle(agent, result, world, agree)
        stored = events_of(journal, run_id)
        assert stored[: len(events)] == events
        assert list(result.events) == stored
        one_stop(result, stored)
        valid(result.messages)
        requests_valid(player)
        check_against(events, player, world, approved, setup)
        limits = fold_all(events).limits
        assert limits.steps is None or len(result.steps) <= limits.steps
        executed = {(e.step, e.call_id) for e in stored if isinstance(e, ToolStarted)}
        assert limits.tool_calls is None or len(executed) <= limits.tool_calls
        if isinstance(events[-1], RunFinished):
            assert not player.requests
            assert not world.executed
            assert len(stored) == len(events)
        return result

    async def every():
        first, events = await whole()
        for k in range(1, len(events) + 1):
            again = await died_after(events[:k], first.run_id)
        assert (again.text, again.stop, again.messages) == (first.text, first.stop, first.messages)

    asyncio.run(every())


@pytest.mark.parametrize(("choice", "reason"), [("ask", "waiting"), ("tell", "answered")])
def test_a_write_under_way_is_asked_about_or_told(choice, reason):
    script = (Says("", (("a", "write", "{}"), ("b", "look", "{}"), ("c", "put", "{}")), "tool_calls"), Says("done"))
    setup = Setup(script, on_interrupted=choice)

    async def run():
        journal = MemoryJournal()
        result = await setup.agent(setup.player(), journal).run("go", deps=World())
        events = events_of(journal, result.run_id)
        last = max(i for i, event in enumerate(events) if isinstance(event, ToolStarted))
        world, after, player = World(), MemoryJournal(), setup.player()
        await after.append(result.run_id, 0, events[: last + 1])
        again = await setup.agent(player, after).resume(result.run_id, deps=world)
        assert again.stop.reason == reason
        assert sorted(name for name, _, _ in world.executed) == ["look", "put"]
        if choice == "tell":
            assert "outcome is unknown" in next(m for m in again.messages if m.role == "tool").text
        else:
            assert [(one.call_id, one.kind) for one in again.pending] == [("a", "interrupted")]

    asyncio.run(run())


class LateJournal(SlowJournal):
    """A journal whose readers act on what was true a while ago."""

    async def read(self, run_id, start=0):
        events = await super().read(run_id, start)
        await asyncio.sleep(0.01)
        return events


def test_two_processes_that_own_the_same_run_do_not_both_act():
    script = (Says("", (("a", "guarded", "{}"),), "tool_calls"), Says("done"))
    setup = Setup(script)

    async def run():
        journal, world = LateJournal(), World()
        agent = setup.agent(setup.player(), journal)
        waiting = await agent.run("go", deps=world)
        both = await asyncio.gather(
            agent.resume(waiting.run_id, approve=["a"], deps=world),
            agent.resume(waiting.run_id, approve=["a"], deps=world),
            return_exceptions=True,
        )
        assert sum(isinstance(one, JournalConflict) for one in both) == 1
        assert len(world.executed) == 1

    asyncio.run(run())


def test_a_run_that_the_journal_does_not_know():
    setup = Setup()
    with pytest.raises(UnknownRun):
        asyncio.run(setup.agent(setup.player(), MemoryJournal()).resume("nobody"))
