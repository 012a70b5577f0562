"""A process may die after any event: what is recorded is never asked for or done again, and the run comes to an end."""

import asyncio
from dataclasses import replace

import pytest
from checks import events_of
from hypothesis import given
from hypothesis import strategies as st
from journals import SlowJournal
from player import Says
from rules import broken, hold
from toolbox import QUICK, World
from trial import Trial
from worlds import Setup, examples, setups

from treadle import MemoryJournal
from treadle.journal import JournalConflict, UnknownRun
from treadle.kernel.events import ToolStarted

NAMES = tuple(one.name for one in QUICK)
MOST = 24
"""After how many events of a run its process dies, or about as many."""


@examples(20, shrink=False)
@given(setups(max_size=4), st.lists(st.integers(1, 10_000), min_size=3, max_size=3))
def test_killed_between_any_two_events_of_any_run_of_the_tree(setup, cuts):
    trial = Trial.of(setup).carry_out()
    hold(trial)
    events = len(trial.journal.order)
    for cut in cuts if events else ():
        hold(trial.killed(1 + cut % events).carry_out())


@examples(10, shrink=False)
@given(setups(NAMES, max_size=3, depth=1), st.integers(0, 10_000))
def test_a_process_may_die_after_any_event(setup, first):
    """After each of them, and of many after some in turn: a run of hundreds would take minutes to kill after each."""
    trial = Trial.of(setup).carry_out()
    hold(trial)
    events = len(trial.journal.order)
    between = 1 + events // MOST
    for at in sorted({*range(1 + first % between, events + 1, between), events} - {0}):
        again = trial.killed(at).carry_out()
        hold(again)
    if trial.undisturbed and trial.last.result is not None:
        one, other = trial.last.result, again.last.result
        assert (other.text, other.stop, other.messages) == (one.text, one.stop, one.messages)


@examples(26, shrink=False)
@given(setups(max_size=4), st.integers(1, 10_000), st.integers(1, 10_000))
def test_killed_twice(setup, first, second):
    trial = Trial.of(replace(setup, steers=())).carry_out()
    for cut in (first, second):
        if broken(trial) or not trial.journal.order:
            break
        trial = trial.killed(1 + cut % len(trial.journal.order)).carry_out()
    hold(trial)


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
        assert sorted(one.tool for one in world.executed) == ["look", "put"]
        if choice == "tell":
            assert "outcome is unknown" in next(m for m in again.messages if m.role == "tool").text
        else:
            assert [(one.call_id, one.kind) for one in again.pending] == [("a", "interrupted")]

    asyncio.run(run())


class LateJournal(SlowJournal):
    """A journal whose readers act on what was true a while ago, and that keeps no leases."""

    hold = None

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
