"""Journals and the death, birth and rivalry of processes."""

import asyncio
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.journal import PostgresJournal, SqliteJournal
from treadle.kernel.events import Event, NudgeGiven, RunStarted

from .conftest import Opens

pytestmark = pytest.mark.anyio

WRITES_UNTIL_KILLED = """
journal = opened(sys.argv[1])

async def drive(run_id):
    await journal.append(run_id, 0, [started(run_id)])
    print(run_id, 1, flush=True)
    seq = 1
    while True:
        batch = [NudgeGiven(text=f"{n}" * (n % 300)) for n in range(seq, seq + 1 + seq % 3)]
        await journal.append(run_id, seq, batch)
        seq += len(batch)
        print(run_id, seq, flush=True)

async def main():
    async with asyncio.TaskGroup() as group:
        for n in range(4):
            group.create_task(drive(f"{sys.argv[2]}-{n}"))
asyncio.run(main())
"""


def test_kill_9_loses_nothing_that_was_acknowledged(
    place: str, opens: Opens, begin: "Callable[..., subprocess.Popen[Any]]"
) -> None:
    chance = random.Random(5)
    acknowledged: dict[str, int] = {}
    for life in range(8):
        with begin(WRITES_UNTIL_KILLED, place, life, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout
            for _ in range(chance.randrange(1, 400)):
                run_id, count = child.stdout.readline().split()
                acknowledged[run_id] = int(count)
            child.kill()
            for line in child.stdout:
                # The last line may be cut: it was being written.
                if line.endswith("\n"):
                    run_id, count = line.split()
                    acknowledged[run_id] = int(count)
        asyncio.run(holds_without_a_gap(opens(place), acknowledged))


async def holds_without_a_gap(journal: PostgresJournal | SqliteJournal, acknowledged: dict[str, int]) -> None:
    async with journal:
        await journal.check()
        for run_id, count in acknowledged.items():
            events = await journal.read(run_id)
            assert len(events) >= count
            notes = [event.text for event in events if isinstance(event, NudgeGiven)]
            assert notes == [f"{n}" * (n % 300) for n in range(1, len(events))]


PRUNES = """
import random

async def main():
    chance = random.Random(int(sys.argv[2]))
    async with opened(sys.argv[1]) as journal:
        names = [f"old-{sys.argv[2]}-{n}" for n in range(chance.randrange(1, 60))]
        for name in names:
            await journal.append(name, 0, [started(name), NudgeGiven(text="x" * chance.randrange(4000))])
        for name in chance.sample(names, chance.randrange(1, len(names) + 1)):
            await journal.delete(name)
            if hasattr(journal, "compact") and chance.random() < 0.2:
                await journal.compact()
        if hasattr(journal, "compact"):
            await journal.compact()
asyncio.run(main())
"""


def test_what_was_acknowledged_is_there_though_other_processes_delete_and_make_it_smaller(
    place: str, opens: Opens, begin: "Callable[..., subprocess.Popen[Any]]", tmp_path: Path
) -> None:
    told = tmp_path / "told"
    with told.open("w") as out, begin(WRITES_UNTIL_KILLED, place, "life", stdout=out) as child:
        try:
            for pruner in range(6):
                with begin(PRUNES, place, pruner) as pruning:
                    assert pruning.wait(timeout=60) == 0
        finally:
            child.kill()
    # The last line may be cut: it was being written.
    lines = [line.split() for line in told.read_text().split("\n")[:-1]]
    acknowledged = {run_id: int(count) for run_id, count in lines}
    assert len(acknowledged) == 4
    asyncio.run(holds_without_a_gap(opens(place), acknowledged))


RACES = """
async def main():
    async with opened(sys.argv[1]) as journal:
        await journal.list()
        print("ready", flush=True)
        sys.stdin.readline()
        won = 0
        for seq in range(1, 151):
            try:
                await journal.append("r", seq, [NudgeGiven(text=sys.argv[2])])
                won += 1
            except JournalConflict as error:
                assert error.expected == seq < error.found
        print(won)
asyncio.run(main())
"""


def test_of_two_processes_exactly_one_wins_each_number(
    place: str, opens: Opens, begin: "Callable[..., subprocess.Popen[Any]]", started: Callable[..., RunStarted]
) -> None:
    journal = opens(place)
    asyncio.run(journal.append("r", 0, [started()]))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    racers = {name: begin(RACES, place, name, text=True, **pipes) for name in "ab"}
    for racer in racers.values():
        assert racer.stdout.readline() == "ready\n"
    for racer in racers.values():
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = {name: int(racer.communicate(timeout=60)[0]) for name, racer in racers.items()}
    events = asyncio.run(journal.read("r"))[1:]
    asyncio.run(journal.close())
    assert len(events) == 150
    assert Counter(event.text for event in events) == {name: wins for name, wins in won.items() if wins}


async def test_a_watcher_sees_what_another_process_appends(
    place: str, opens: Opens, program: Callable[..., list[str]], started: Callable[..., RunStarted], finished: Event
) -> None:
    appends = """
async def main():
    async with opened(sys.argv[1]) as journal:
        await journal.append("r", 1, [NudgeGiven(text="from afar"), RunFinished(stop=stopped("answered"))])
asyncio.run(main())
"""
    async with opens(place) as journal:
        await journal.append("r", 0, [started()])
        watcher = journal.watch("r")
        assert await anext(watcher) == started()
        child = await asyncio.create_subprocess_exec(*program(appends, place))
        assert [type(event).__name__ async for event in watcher] == ["NudgeGiven", "RunFinished"]
        assert await child.wait() == 0


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "del journal", "import gc; journal.me = journal; del journal"])
async def test_a_program_that_forgets_to_close_ends_and_leaves_one_file(
    path: Path, run_program: Callable[..., str], ending: str
) -> None:
    forgets = """
journal = SqliteJournal(sys.argv[1])
asyncio.run(journal.append("r", 0, [started("r")]))
assert len(asyncio.run(journal.read("r"))) == 1
"""
    run_program(forgets + ending, path)
    assert [file.name for file in path.parent.iterdir()] == ["journal.db"]
    async with SqliteJournal(path) as journal:
        assert len(await journal.read("r")) == 1


async def test_a_journal_is_used_as_the_program_ends(place: str, run_program: Callable[..., str]) -> None:
    """Its threads had ended by then, and what was put to them was waited for for ever."""
    ends = """
import atexit
journal = opened(sys.argv[1])
@atexit.register
def say_goodbye():
    asyncio.run(journal.append("r", 1, [NudgeGiven(text="goodbye")]))
    print(len(asyncio.run(journal.read("r"))))
asyncio.run(journal.append("r", 0, [started("r")]))
"""
    assert run_program(ends, place) == "2\n"


async def test_a_forked_child_can_use_the_journal_too(place: str, run_program: Callable[..., str]) -> None:
    forks = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
journal = opened(sys.argv[1])
asyncio.run(journal.append("r", 0, [started("r")]))
if (child := os.fork()) == 0:
    asyncio.run(journal.append("r", 1, [NudgeGiven(text="child")]))
    asyncio.run(journal.close())
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
asyncio.run(journal.append("r", 2, [NudgeGiven(text="parent")]))
assert len(asyncio.run(journal.read("r"))) == 3
asyncio.run(journal.check())
"""
    run_program(forks, place)
