"""What a hostile user found: a named test for each."""

import asyncio

import pytest

from treadle import Agent
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_a_model_that_exits_is_a_model_error():
    def leaves(request):
        raise SystemExit(0)

    result = await asyncio.wait_for(Agent(ScriptedModel(leaves)).run("go"), 5)
    assert result.stop.reason == "model_error"
    assert "SystemExit" in result.stop.detail
