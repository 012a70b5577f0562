"""What combinations broke, one named setup each (`found.py`): carried out, and killed after each of its events."""

import pytest
from found import FOUND
from rules import broken, hold
from trial import Trial


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    hold(Trial.of(FOUND[name]).carry_out())


@pytest.mark.parametrize("name", FOUND)
def test_found_and_killed_after_each_event(name):
    trial = Trial.of(FOUND[name]).carry_out()
    if broken(trial):
        pytest.skip("what is broken already is shown by test_found")
    for at in range(1, len(trial.journal.order) + 1):
        hold(trial.killed(at).carry_out())
