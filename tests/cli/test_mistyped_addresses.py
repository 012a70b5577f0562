"""Mistyped addresses leak nothing and leave nothing behind."""

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    "address",
    ["postgresql:/me:secret@db/runs", "postgres:me:secret@db", "postgresql//me:secret@db", "PostgreSQL:\\\\x"],
)
@pytest.mark.parametrize("command", [("runs",), ("doctor",), ("ask", "1+1", "--model", "offline")])
def test_a_mistyped_address_is_no_file_with_the_password_in_its_name(
    treadle: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = treadle(*command, "--journal", address)
    assert done.code == 2
    assert "begins with postgresql://" in done.err + done.out
    assert "secret" not in done.err + done.out
    assert sorted(tmp_path.rglob("*")) == before
