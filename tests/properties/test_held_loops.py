"""A function of the application's holds the event loop beyond the deadline: nothing more begins, wherever it stood."""

from dataclasses import replace

from hooks import Changes, Hooks, Reacts, Temper
from hypothesis import given
from hypothesis import strategies as st
from journals import Paper
from msgspec import structs
from trial import Trial
from worlds import examples, setups

from treadle.kernel.events import ToolStarted

PLACES = {
    "prepare": lambda temper: Hooks(prepare=temper),
    "instructions": lambda temper: Hooks(instructions=temper),
    "stop": lambda temper: Hooks(stop=temper),
    "reacts": lambda temper: Hooks(reacts=Reacts("nothing", temper=temper)),
    "calls again": lambda temper: Hooks(reacts=Reacts("other", "write", times=1, temper=temper)),
    "changes": lambda temper: Hooks(calls=Changes("more", temper=temper)),
}


def of_the_top(setup, hooks):
    return replace(setup, hooks=hooks)


def of_what_works_below(setup, hooks):
    if not setup.below:
        return setup
    first, *others = setup.below
    return replace(setup, below=(replace(first, setup=replace(first.setup, hooks=hooks)), *others))


@examples(150, shrink=False)
@given(
    setups(max_size=4),
    st.sampled_from(sorted(PLACES)),
    st.sampled_from([of_the_top, of_the_top, of_what_works_below]),
    st.booleans(),
    st.integers(0, 3),
)
def test_nothing_begins_after_a_function_held_the_loop_beyond_the_deadline(setup, place, whose, is_async, at):
    limits = structs.replace(setup.limits, seconds=300)
    setup = replace(setup, limits=limits, steers=(), one_step=False, server=None, paper=Paper())
    hooks = PLACES[place](Temper("holds", is_async, at))
    trial = Trial.of(whose(setup, hooks))
    trial.carry_out(trial.begin)
    assert not trial.wrong, trial.wrong
    if trial.world.done_by_then is None:
        return
    calls, requests, events = trial.world.done_by_then
    assert trial.world.requests == requests
    under_way = {(run, event.call_id) for run, event in trial.journal.order[:events] if isinstance(event, ToolStarted)}
    begun = [one for one in trial.world.executed[calls:] if (one.run_id, one.call_id) not in under_way]
    assert not begun
