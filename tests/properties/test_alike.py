"""Calls that a journal writes alike, in runs of every kind: each is told apart, whoever reads the run or takes it up.

What they are is the smallest that goes wrong, all else is generated: replies that break off once their calls have begun
and come again with others, calls in the place of others, people who decide, forks, and processes that die.
"""

from dataclasses import replace

from hooks import Hooks, Reacts, Rule
from hypothesis import given
from hypothesis import strategies as st
from journals import Paper
from likely import mostly
from player import Breaks, Says, Stream
from rules import hold
from test_replays import hold_again
from trial import Trial
from worlds import RIGHT, again, examples, setups

calls = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["look", "look", "look", "put", "guarded", "write"]),
        st.sampled_from(RIGHT[1:]),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda call: call[0],
).map(tuple)
breaks = st.builds(
    Breaks,
    failure=st.sampled_from(["overloaded", None]),
    calls=calls,
    then=st.builds(Says, calls=calls, finish=st.just("tool_calls")),
).flatmap(lambda one: st.sampled_from([one, again(one), again(one, turned=True), again(one, turned=True)]))
says = st.builds(Says, calls=calls, finish=st.just("tool_calls"))
hooks = mostly(
    st.just(Hooks()),
    st.builds(
        Hooks,
        reacts=st.builds(
            Reacts,
            what=st.sampled_from(["retry", "retry_other", "retry_other", "other"]),
            other=st.just("put"),
            times=st.sampled_from([1, 1, 2]),
        ),
    ),
    times=1,
)
rules = st.sampled_from([(), (), (Rule("ask", ("put", "write"), repeats=1),), (Rule("ask", ("look", "put")),)])


def written_alike(setup, first, also, stream, hooks, rules, paper):
    script = (first, *(also or ()), *setup.script)
    # An agent that was changed since is another, and so is the replay of one that was.
    return replace(
        setup, script=script, stream=stream, hooks=hooks, rules=rules, paper=paper, eager=True, changes=(), server=None
    )


worlds = st.builds(
    written_alike,
    setups(max_size=2),
    mostly(breaks, says, times=2),
    st.one_of(st.none(), st.lists(st.one_of(breaks, says), max_size=1)),
    st.sampled_from([Stream(True, (5,)), Stream(True, (2,)), Stream(True, (1, 5), 2)]),
    hooks,
    rules,
    st.builds(Paper, redacts=st.just(True), late=st.sampled_from([None, None, 1, 4])),
)


@examples(25, shrink=False)
@given(worlds, st.integers(0, 10_000), st.integers(0, 10_000))
def test_calls_that_are_written_alike_are_told_apart(setup, first, second):
    trial = Trial.of(setup).carry_out()
    hold(trial)
    hold_again(trial)
    for cut in (first, second) if trial.journal.order else ():
        trial = trial.killed(1 + cut % len(trial.journal.order)).carry_out()
        hold(trial)
    hold_again(trial)
