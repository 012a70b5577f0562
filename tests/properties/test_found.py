"""What combinations broke, one named setup each (`found.py`): carried out, and killed after each of its events.

After every other one where properties are tried on half as many examples, as in CI.
"""

import pytest
from depth import DEPTH
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
    stride = 2 if DEPTH < 1 else 1
    for at in range(1 + len(name) % stride, len(trial.journal.order) + 1, stride):
        hold(trial.killed(at).carry_out())
