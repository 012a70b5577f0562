"""People put other arguments in place of a model's: it is told so, whatever becomes of the run and of what is said."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from likely import mostly
from resting import rests
from rules import hold
from trial import Trial
from worlds import SHORTENING, decisions, dialects, examples, setups

ASKING = ("guarded", "guarded", "guarded", "guarded_sometimes", "guarded_later", "rows", "heaps", "look")


@examples(40, shrink=False)
@given(
    setups(ASKING, max_size=5, depth=1),
    decisions,
    st.sampled_from(SHORTENING),
    dialects,
    mostly(st.just(()), rests, times=1),
    st.integers(0, 10_000),
)
def test_the_model_is_told_what_a_person_put_in_place_of_its_arguments(setup, decides, context, dialect, rest, cut):
    decides = tuple(replace(one, ways=("edit", *one.ways)) for one in decides)
    given = {"decides": decides, "context": context, "dialect": dialect, "rests": rest, "cancels": None}
    trial = Trial.of(replace(setup, **given)).carry_out()
    hold(trial)
    if trial.journal.order:
        hold(trial.killed(1 + cut % len(trial.journal.order)).carry_out())
