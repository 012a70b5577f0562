"""What the tests of the server need: a real one on loopback, and agents that wait when they are told to."""

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

for name in ("starlette", "uvicorn", "httpx2"):
    pytest.importorskip(name)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def gate():
    """What a tool of the test waits for."""
    return asyncio.Event()
