"""People decide, by id, by key, with edits, wrongly and twice, in any order and from other processes."""

from dataclasses import replace

from hypothesis import given
from rules import hold
from trial import Trial
from worlds import decisions, examples, setups

ASKING = ("guarded", "guarded", "guarded_sometimes", "guarded_later", "ask", "ask", "look", "write", "put")


@examples(60, shrink=False)
@given(setups(ASKING, max_size=4), decisions)
def test_any_decisions_on_any_calls(setup, decides):
    hold(Trial.of(replace(setup, decides=decides, steers=())).carry_out())
