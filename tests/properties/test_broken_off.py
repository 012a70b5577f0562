"""Replies that break off as they have hardly begun, in each dialect, by each failure: what was billed is told."""

import pytest
from dialects import DIALECTS
from found import DONE, SLOWLY, calls
from player import FAILURES, Breaks
from rules import hold
from trial import Trial
from worlds import Setup


@pytest.mark.parametrize("dialect", ["", *DIALECTS])
@pytest.mark.parametrize("failure", [None, *FAILURES])
def test_a_reply_that_breaks_off_early_is_paid_for(dialect, failure):
    for after in (0, 1, 2):
        breaks = Breaks(failure, calls=calls("look", "put").calls, then=DONE, after=after)
        hold(Trial.of(Setup((breaks,), stream=SLOWLY, reports=False, dialect=dialect)).carry_out())
