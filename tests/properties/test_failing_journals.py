"""A journal that fails at any append of any run: the application hears of it, and nothing is done twice."""

from dataclasses import replace

from funds import whole_family
from hypothesis import given
from hypothesis import strategies as st
from journals import Paper
from rules import hold
from trial import Trial
from worlds import examples, setups

papers = st.builds(
    Paper,
    slow=st.booleans(),
    late=st.sampled_from([None, None, 0, 1, 5, 40]),
    fails_at=st.integers(0, 12),
    for_ever=st.booleans(),
    whose=st.sampled_from(["any", "below", "above"]),
    how=st.sampled_from(["", "driver", "cancelled"]),
    leases=st.sampled_from([False, False, True]),
)


@examples(60, shrink=False)
@given(setups(max_size=4), papers)
def test_a_journal_that_fails_at_any_append(setup, paper):
    trial = Trial.of(replace(setup, paper=paper)).carry_out()
    hold(trial)
    told = any(one.told for one in whole_family(trial))
    assert told == bool(trial.journal.failed), "the journal failed, and nobody was told"


@examples(60, shrink=False)
@given(setups(max_size=4), papers, st.integers(0, 40), st.sampled_from(["before", "after"]))
def test_a_journal_that_fails_at_anything_that_it_is_asked(setup, paper, fails_at, asked):
    paper = replace(paper, fails_at=fails_at, asked=asked, leases=False)
    trial = Trial.of(replace(setup, paper=paper)).carry_out()
    hold(trial)
    told = any(one.told for one in whole_family(trial))
    assert not told or trial.journal.failed, "a journal that was well is said to have failed"
