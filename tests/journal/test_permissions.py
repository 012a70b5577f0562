"""A journal's files are its owner's, and where they are not this is said, once."""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.journal import SqliteJournal
from treadle.journal.permissions import exposed
from treadle.kernel.events import NudgeGiven, RunStarted

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")]

Started = Callable[..., RunStarted]


async def write(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_new_files_are_the_owner_s_whatever_the_mask(
    path: Path, started: Started, caplog: pytest.LogCaptureFixture
) -> None:
    before = os.umask(0)
    try:
        async with SqliteJournal(path) as journal:
            await journal.append("r", 0, [started()])
            files = sorted(path.parent.iterdir())
            assert [mode(file) for file in files] == [0o600] * 3
            assert mode(path.parent) == 0o700
            assert exposed(path) == []
    finally:
        os.umask(before)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (0o644, "can be read by its group and everybody (mode 0644)"),
        (0o640, "can be read by its group (mode 0640)"),
        (0o604, "can be read by everybody (mode 0604)"),
        (0o620, "can be written by its group (mode 0620)"),
        (0o666, "can be read by its group and everybody, and written by its group and everybody (mode 0666)"),
    ],
)
async def test_a_file_that_others_can_read_is_told_of_once_and_used(
    path: Path, started: Started, caplog: pytest.LogCaptureFixture, given: int, words: str
) -> None:
    await write(path, started)
    path = path.rename(path.with_name(f"{given}.db"))  # noqa: ASYNC240
    path.chmod(given)
    for seq in (1, 2):
        async with SqliteJournal(path) as journal:
            await journal.append("r", seq, [NudgeGiven(text="x")])
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    # Its neighbours take over its rights.
    assert [line for line in warned if f"{path} " in line] == [line for line in warned if f"file {path} can" in line]
    assert sum(f"the journal's file {path} {words}" in line for line in warned) == 1
    assert len(warned) == 1
    assert warned[0].endswith(f": chmod 600 {path} {path}-wal {path}-shm")
    assert all("chmod 600" in line for line in warned)


async def test_neighbours_and_the_folder_are_looked_at_too(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
        log = path.with_name(f"{path.name}-wal")
        log.chmod(0o644)
        assert [line.split(" (mode")[0] for line in exposed(path)] == [
            f"the journal's file {log} can be read by its group and everybody"
        ]
        log.chmod(0o600)
        path.parent.chmod(0o770)
        (line,) = exposed(path)
        assert f"the journal's folder {path.parent} can be written by others (mode 0770)" in line
        path.parent.chmod(0o1777)
        assert exposed(path) == []


def test_a_file_that_is_not_there_has_nothing_to_be_said_of(path: Path) -> None:
    assert exposed(path) == []
