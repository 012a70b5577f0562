"""Async tests of tools run on asyncio, the loop that the drivers use."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
