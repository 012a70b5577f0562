"""Messages, pauses, cancels, decisions and resumptions in any order: the run stays valid and comes to one end."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rules import hold
from trial import Trial
from worlds import decisions, examples, moves, setups


@examples(60, shrink=False)
@given(setups(max_size=4), st.lists(moves, min_size=1, max_size=8), decisions)
def test_any_order_of_steering(setup, steers, decides):
    hold(Trial.of(replace(setup, steers=tuple(steers), decides=decides)).carry_out())
