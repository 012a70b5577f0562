"""What only looks on changes nothing: whoever watches a run, traces it or reads its log, it is the same run."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from journals import Paper
from msgspec.structs import replace as replaced
from traced import TRACED
from trial import Trial
from worlds import Setup, examples, setups

from treadle.kernel.events import encode_event


def seen(setup: Setup) -> tuple[list[str], int, int, list[str]]:
    """What was recorded, how much was done and charged, and what went wrong, without times and made-up names."""
    trial = Trial.of(setup).carry_out()
    rows = [f"{run} {encode_event(replaced(event, at=0.0)).decode()}" for run, event in trial.journal.order]
    for number, run_id in enumerate(dict.fromkeys(run.partition(".")[0] for run, _ in trial.journal.order)):
        rows = [row.replace(run_id, f"run{number}") for row in rows]
    rows = [re.sub(r'"seconds":[\d.e-]+|[0-9a-f]{8,64}', "#", row) for row in rows]
    return sorted(rows), len(trial.world.executed), len(trial.world.ledger.charges), trial.wrong


@examples(40, shrink=False)
@given(setups(), st.sampled_from(TRACED))
def test_a_run_that_is_watched_is_the_same(setup, traced):
    plain = replace(setup, traced="", watched=False, live=None, steers=(), clock=(), paper=Paper(setup.paper.slow))
    first, second = seen(plain), seen(replace(plain, traced=traced, watched=True))
    assert set(first[0]) ^ set(second[0]) == set()
    assert first == second
