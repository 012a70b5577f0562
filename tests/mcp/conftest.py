"""What the tests of MCP share: a folder of a server of our own, which notes what it was asked to do."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.mcp import MCPServer

RAW = Path(__file__).parent / "raw_server.py"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def notes(tmp_path: Path) -> Callable[[str], list[str]]:
    """What the server noted under a name, a line each."""

    def read(name: str) -> list[str]:
        file = tmp_path / name
        return file.read_text().splitlines() if file.exists() else []

    return read


@pytest.fixture
def raw(tmp_path: Path) -> Callable[..., MCPServer]:
    """Describes a server that is `raw_server.py`, under a name, with further options."""

    def server(name: str = "raw", **options: Any) -> MCPServer:
        return MCPServer.stdio(sys.executable, "-S", str(RAW), str(tmp_path), name=name, **options)

    return server
