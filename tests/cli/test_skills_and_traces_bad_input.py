"""`treadle skills` and `treadle runs export --otlp` given wrong input."""

from pathlib import Path
from typing import Any

import pytest
from cli.test_runs_export_otlp import Receiver
from click.testing import CliRunner

from treadle.cli.commands.runs_export import export
from treadle.cli.commands.skills import skills

LONG = "x" * 5000


def said(*arguments: str) -> str:
    """What `treadle skills` says to wrong input, which is never that the fault is its own."""
    found = CliRunner().invoke(skills, arguments)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.output


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("name", ["", LONG, "A B", "..", "a/b", "\x1b[31m"])
def test_a_skill_of_a_wrong_name_leaves_nothing_behind(here: Path, name: str) -> None:
    assert "name" in said("new", name)
    assert not (here / ".agents").exists()
    assert "\x1b" not in said("new", name)


def test_a_skill_that_cannot_be_made_is_said(here: Path) -> None:
    (here / ".agents").write_text("a file")
    assert "cannot be made: Not a directory" in said("new", "pdf")
    (here / ".agents").unlink()
    (here / ".agents" / "skills" / "pdf").mkdir(parents=True)
    assert "is there already" in said("new", "pdf")


def test_what_is_no_path_is_no_skill() -> None:
    for name in (LONG, ""):
        assert "there is no skill" in said("show", name)
    for path in (LONG, f"{LONG}/SKILL.md"):
        assert "there is no folder" in said("validate", path)


@pytest.mark.parametrize(
    "address",
    ["http://[::1", "http://h:port", "http://h:99999", "ftp://me:secret@h", "http://me:secret@h:port", "http://"],
)
def test_what_is_no_address_is_said_without_its_password(address: str) -> None:
    found = CliRunner().invoke(export, ["last", "--otlp", address])
    assert (found.exit_code, "is no address" in found.output) == (2, True), found.output
    assert "secret" not in found.output


def test_what_is_redirected_was_not_sent(treadle: Any) -> None:
    treadle("ask", "look", "--model", "script:answers", "--tools", "script.py")
    receiver = Receiver()
    receiver.status = 307
    try:
        found = treadle("runs", "export", "last", "--otlp", receiver.url)
    finally:
        receiver.stop()
    assert (found.code, found.out) == (2, "")
    assert "it answers with a redirection (307), which is not followed" in found.err
    assert "nothing, or not all, was sent" in found.err
