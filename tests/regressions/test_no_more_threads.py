"""A system that has no more threads to give for a moment: what began half then is begun whole later."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, SqliteJournal
from treadle.drivers.heartbeat import HEARTBEAT
from treadle.testing import ScriptedModel


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that cannot be started, each once."""
    names, start = list[str](), threading.Thread.start

    def started(thread: threading.Thread) -> None:
        if thread.name in names:
            names.remove(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", started)
    return names


def named(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


@pytest.mark.parametrize("name", ["treadle-journal-writer", "treadle-journal-reader"])
def test_a_journal_has_both_its_threads_or_none(tmp_path: Path, lacking: list[str], name: str) -> None:
    """One was left over, or the program ended with a traceback."""
    journal: Any = SqliteJournal(tmp_path / "journal.db")
    lacking.append(name)
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        asyncio.run(journal.list(1))
    until = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == before
    assert asyncio.run(journal.list(1)) == []
    asyncio.run(journal.close())
    assert threading.active_count() == before


def test_a_run_after_one_for_which_there_was_no_thread_is_renewed(
    tmp_path: Path, lacking: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody renewed the leases of later runs, so that others could take them over while they were under way."""
    HEARTBEAT.forget()
    journal = SqliteJournal(tmp_path / "journal.db")
    agent = Agent(ScriptedModel(["one", "two"]), journal=journal)
    before = named("treadle-heartbeat")
    lacking.append("treadle-heartbeat")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        agent.run_sync("go")
    assert agent.run_sync("go").text == "one"
    assert named("treadle-heartbeat") == before + 1
    asyncio.run(journal.close())
