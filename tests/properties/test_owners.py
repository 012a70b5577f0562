"""A run is taken over while it is under way: it has one owner. Who is refused it takes nothing from who has it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rules import hold
from trial import Trial
from worlds import decisions, examples, moves, setups


@examples(60, shrink=False)
@given(
    setups(max_size=4), st.lists(moves, max_size=3), decisions, st.sampled_from(["takeover", "end", "would take over"])
)
def test_a_run_that_is_taken_over_has_one_owner(setup, before, decides, how):
    steers = (*before, (how, 0))
    paper = replace(setup.paper, slow=False, fails_at=None)
    hold(Trial.of(replace(setup, steers=steers, decides=decides, paper=paper, one_step=False)).carry_out())
