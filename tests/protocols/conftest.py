"""What the tests of the protocols share: a real server on loopback, with agents that do what they are asked."""

from collections.abc import Iterator

import front_agents
import pytest


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """Where the agents are served."""
    with front_agents.served() as address:
        yield address


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing was paid yet, and the gate of `slow` is shut."""
    front_agents.PAID.clear()
    front_agents.GATE.shut()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
