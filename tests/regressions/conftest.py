"""How the named regressions run: on asyncio, each bounded so that one that hangs fails, with `play.py` importable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def anyio_backend():
    return "asyncio"
