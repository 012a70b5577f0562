"""A run whose event loop is closed under it, or left as it is, as by a program that manages its loops itself."""

import asyncio
import gc
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from treadle import Agent, SqliteJournal, tool
from treadle.journal import worker
from treadle.testing import ScriptedModel


@tool
async def send(text: str) -> str:
    """Sends a text to the customer and waits until it has arrived."""
    await asyncio.sleep(3600)
    return text


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "run"])
def test_a_run_that_was_left_in_its_loop_is_gone_on_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, streamed: bool
) -> None:
    """It was said to be under way in another task for as long as the program ran, and its lease was renewed."""
    journal = SqliteJournal(tmp_path / "journal.db")
    agent = Agent(ScriptedModel([[("send", {"text": "a"})], "done"]), tools=[send], journal=journal)
    asyncio.run(journal.list(1))
    begun = list[str]()

    async def leave() -> None:
        arrived = asyncio.Event()

        def seen(event: object) -> None:
            if type(event).__name__ == "ToolStarted":
                arrived.set()

        if streamed:
            live = agent.stream("go")
            await live.__aenter__()
            async for event in live:
                seen(event)
                if arrived.is_set():
                    break
        else:
            running.append(asyncio.get_running_loop().create_task(agent.run("go", on_event=seen)))
            await arrived.wait()
        await asyncio.sleep(0.05)
        begun.extend(info.run_id for info in await journal.list(1))

    loop, running = asyncio.new_event_loop(), list["asyncio.Task[object]"]()
    loop.run_until_complete(leave())
    loop.close()
    with caplog.at_level(logging.CRITICAL, "asyncio"):
        del loop
        running.clear()
        gc.collect()
    resumed = asyncio.run(agent.resume(begun[0]))
    assert (resumed.stop.reason, [one.kind for one in resumed.pending]) == ("waiting", ["interrupted"])
    asyncio.run(journal.close())


def test_a_loop_that_was_interrupted_as_it_was_to_wake_whoever_waits_wakes_them_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C there took along what the loop was about to call, and everybody who waited for a journal in it hung."""
    ring, interrupts = worker._Alarm._ring, [KeyboardInterrupt()]

    def interrupted(alarm: worker._Alarm) -> None:
        if interrupts:
            raise interrupts.pop()
        ring(alarm)

    monkeypatch.setattr(worker._Alarm, "_ring", interrupted)
    journal, loop = SqliteJournal(tmp_path / "journal.db"), asyncio.new_event_loop()
    first = loop.create_task(journal.list(1))
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(first)
    assert loop.run_until_complete(asyncio.wait_for(journal.list(1), 20)) == []
    assert loop.run_until_complete(asyncio.wait_for(first, 20)) == []
    loop.run_until_complete(journal.close())
    loop.close()


LEAVES = """
import asyncio, sys
from treadle import Agent, SqliteJournal, tool
from treadle.testing import ScriptedModel

@tool
async def send(text: str) -> str:
    "Sends a text to the customer and waits until it has arrived."
    print("sends", flush=True)
    arrived.set()
    await asyncio.sleep(3600)

loop, arrived = asyncio.new_event_loop(), asyncio.Event()
agent = Agent(ScriptedModel([[("send", {"text": "a"})], "done"]), tools=[send], journal=SqliteJournal(sys.argv[1]))
task = loop.create_task(agent.run("go"))
loop.run_until_complete(arrived.wait())
"""


def test_a_program_that_leaves_a_run_in_its_loop_ends(tmp_path: Path) -> None:
    """Its lease was to be given back by a thread, and before Python 3.12 one that begins as the program ends hangs."""
    command = [sys.executable, "-c", LEAVES, str(tmp_path / "journal.db")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "sends\n")
    assert "Exception ignored" not in ended.stderr
