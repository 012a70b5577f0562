"""A journal that another process makes smaller loses nothing of what is written to it afterwards.

Whoever opens and closes a file by itself lets go of all locks that its process has on it, SQLite's own among them.
Another process that closed the journal then took itself for the last, and removed the log that this one still wrote to.
"""

import asyncio
import os
import subprocess
import sys
import threading

from treadle.journal import SqliteJournal
from treadle.kernel.events import FORMAT, Event, NudgeGiven, RunStarted
from treadle.kernel.messages import UserMessage

PRUNING = """
import asyncio, sys
from treadle.journal import SqliteJournal

async def prune():
    async with SqliteJournal(sys.argv[1]) as journal:
        await journal.compact()
        print("written out", flush=True)
        sys.stdin.readline()
        for line in await journal.list(limit=100):
            if line.run_id != "kept":
                await journal.delete(line.run_id)
        await journal.compact()
        print("made smaller", flush=True)
        sys.stdin.readline()

asyncio.run(prune())
"""

READING = """
import asyncio, sys
from treadle.journal import SqliteJournal

async def read():
    async with SqliteJournal(sys.argv[1]) as journal:
        await journal.check()
        print(len(await journal.read("kept")))

asyncio.run(read())
"""


def begun(run_id: str, words: str) -> RunStarted:
    return RunStarted(at=100.0, run_id=run_id, messages=(UserMessage(words),), format=FORMAT)


def test_what_is_written_while_another_process_prunes_is_there(tmp_path) -> None:
    path = tmp_path / "runs.db"
    journal = SqliteJournal(path)
    with asyncio.Runner() as runner:

        def append(run_id: str, seq: int, event: Event) -> None:
            runner.run(journal.append(run_id, seq, [event]))

        append("kept", 0, begun("kept", "What is kept?"))
        for number in range(40):
            append(f"old-{number}", 0, begun(f"old-{number}", "x" * 4000))
        with subprocess.Popen(
            [sys.executable, "-c", PRUNING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as pruning:
            assert pruning.stdin is not None
            assert pruning.stdout is not None
            assert pruning.stdout.readline() == "written out\n"
            before = path.stat().st_size
            append("kept", 1, NudgeGiven(at=101.0, text="before it is smaller"))
            pruning.stdin.write("\n")
            pruning.stdin.flush()
            assert pruning.stdout.readline() == "made smaller\n"
            assert path.stat().st_size < before / 2
            append("kept", 2, NudgeGiven(at=102.0, text="after it"))
        append("kept", 3, NudgeGiven(at=103.0, text="when the other has closed it"))
        found = subprocess.run([sys.executable, "-c", READING, str(path)], capture_output=True, text=True, check=False)

        assert found.stdout == "4\n", found.stderr
        assert len(runner.run(journal.read("kept"))) == 4
        runner.run(journal.close())


def test_two_threads_that_make_the_file_at_the_same_moment_keep_their_locks(tmp_path, monkeypatch) -> None:
    path = tmp_path / "runs.db"
    close, made, opened = os.close, threading.Event(), threading.Event()

    def close_late(descriptor: int) -> None:
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            made.set()
            opened.wait(0.5)
        close(descriptor)

    monkeypatch.setattr(os, "close", close_late)
    maker, other = SqliteJournal(path), SqliteJournal(path)
    thread = threading.Thread(target=lambda: asyncio.run(maker.list()))
    thread.start()
    assert made.wait(5)
    asyncio.run(other.append("kept", 0, [begun("kept", "What is kept?")]))
    opened.set()
    thread.join()
    asyncio.run(maker.close())
    found = subprocess.run([sys.executable, "-c", READING, str(path)], capture_output=True, text=True, check=False)
    assert found.stdout == "1\n", found.stderr
    assert path.with_name("runs.db-wal").exists()
    asyncio.run(other.close())
