"""No state of the kernel has more fields than a reader keeps in mind: what belongs together is a value of its own."""

import pytest

from treadle.kernel.accounts import Accounts, Progress, RequestSize
from treadle.kernel.calls import CallRecord
from treadle.kernel.state import RunState
from treadle.kernel.step import Step

MOST = 30


@pytest.mark.parametrize("state", [RunState, Accounts, Progress, RequestSize, Step, CallRecord])
def test_a_state_has_thirty_fields_at_most(state):
    assert len(state.__struct_fields__) <= MOST
