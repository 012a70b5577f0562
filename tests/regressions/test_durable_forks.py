"""Durable runs: a process that forks while it writes to SQLite files.

Each is a program of its own: a test that forks would take the others with it.

- 10 of 12 children that were forked in the middle of appends hung -> test_children_of_a_process_that_writes
- the same with `multiprocessing`, in the middle of a run -> test_a_tool_that_starts_processes
- a child inherits locks that another thread held -> test_locks_that_are_held_when_a_process_forks
- budgets and notes -> test_budgets_and_notes_of_a_process_that_forks
- SQLite cannot be left in time -> test_a_fork_in_the_middle_of_sqlite_is_told
"""

import subprocess
import sys

import pytest

PRELUDE = """
import asyncio, os, sys, threading, time
from treadle import Agent, Budget, MemoryJournal, PostgresJournal, SqliteJournal, tool
from treadle.journal import JournalError
from treadle.kernel.events import FORMAT, NudgeGiven, RunStarted
from treadle.testing import ScriptedModel

def started(run_id):
    return RunStarted(at=1.0, run_id=run_id, messages=(), format=FORMAT)

def forked(child, seconds=20):
    "Runs child() in a fork; True if it came to a good end, False if to a bad one; a hang ends the program."
    pid = os.fork()
    if not pid:
        try:
            child()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status == 0
        time.sleep(0.01)
    os.kill(pid, 9)
    raise SystemExit("a child hangs")
"""


@pytest.fixture
def run_program(tmp_path):
    def run(text, *flags):
        command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", PRELUDE + text]
        ran = subprocess.run([*command, str(tmp_path / "a.db"), *flags], capture_output=True, text=True, timeout=120)
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout.split()

    return run


@pytest.fixture(params=["sqlite", "postgres"])
def database(request):
    """The address of a database of the test's own; empty for a file."""
    if request.param == "sqlite":
        yield ""
        return
    server = request.getfixturevalue("server")
    yield server.dsn()
    server.execute("DROP SCHEMA IF EXISTS forks CASCADE")


def test_children_of_a_process_that_writes(run_program, database):
    counts = run_program(
        """
dsn = sys.argv[2]
journal = PostgresJournal(dsn, schema="forks") if dsn else SqliteJournal(sys.argv[1])

async def writes(run_id, done):
    await journal.append(run_id, 0, [started(run_id)])
    n = 1
    while not done.is_set():
        await journal.append(run_id, n, [NudgeGiven(text="x" * 300)])
        n += 1
    return n

def all_of_ours():
    async def main():
        return await asyncio.gather(*(writes(f"parent-{i}", done) for i in range(4)))
    counts.extend(asyncio.run(main()))

def child():
    async def main():
        run_id = f"child-{os.getpid()}"
        await journal.append(run_id, 0, [started(run_id)])
        assert len(await journal.read(run_id)) == 1
        assert [line async for line in first(journal.watch("parent-0"))]
        await journal.close()
    asyncio.run(main())

async def first(events):
    async for event in events:
        yield event
        return

done, counts = threading.Event(), []
writer = threading.Thread(target=all_of_ours)
writer.start()
time.sleep(0.1)
for _ in range(12):
    assert forked(child)
done.set()
writer.join()

async def after():
    if not dsn:
        await journal.check()
    lines = {line.run_id: line.events for line in await journal.list(100)}
    assert [lines.pop(f"parent-{i}") for i in range(4)] == counts
    assert len(lines) == 12
    await journal.close()
asyncio.run(after())
print(*os.listdir(os.path.dirname(sys.argv[1])))
""",
        database,
    )
    assert counts == ([] if database else ["a.db"])


@pytest.mark.parametrize("flags", [[], ["in a thread"]])
def test_a_tool_that_starts_processes(run_program, flags):
    found = run_program(
        """
import multiprocessing

journal = SqliteJournal(sys.argv[1])
budget = Budget(tokens=1_000_000, path=sys.argv[1] + ".budget")

def below():
    print(Agent(ScriptedModel(["done"]), journal=journal, budget=budget).run_sync("below").stop.reason)

@tool(thread=bool(len(sys.argv) > 2))
def start() -> str:
    "Start a process."
    process = multiprocessing.get_context("fork").Process(target=below)
    process.start()
    process.join(20)
    return str(process.exitcode)

model = ScriptedModel([[("start", {})]] * 3 + ["done"])
result = Agent(model, tools=[start], journal=journal, budget=budget).run_sync("go")
print(result.stop.reason, *[one.result.text for one in result.tool_calls_made])
asyncio.run(journal.check())
print(len(asyncio.run(journal.list())), len({line.status for line in asyncio.run(journal.list())}))
""",
        *flags,
    )
    assert sorted(found) == sorted([*["answered"] * 4, "0", "0", "0", "4", "1"])


def test_locks_that_are_held_when_a_process_forks(run_program):
    found = run_program("""
journal, memory = SqliteJournal(sys.argv[1]), MemoryJournal()
budget, shared = Budget(tokens=100, path=sys.argv[1] + ".budget"), Budget(tokens=100)
kept = [journal._workers._lock, journal._bell._lock, memory._lock, memory._bell._lock]
kept += [budget.ledger.store._lock, shared.ledger.store._lock]

async def append(run_id):
    for one in (journal, memory):
        await one.append(run_id, 0, [started(run_id)])
        async for event in one.watch(run_id):
            break

def child():
    asyncio.run(append("child"))
    print(budget.spent().tokens, shared.spent().tokens)

asyncio.run(append("parent"))
held, over = threading.Event(), threading.Event()
def hold():
    for lock in kept:
        lock.acquire()
    held.set()
    over.wait()
    for lock in kept:
        lock.release()
holder = threading.Thread(target=hold)
holder.start()
held.wait()
assert forked(child)
over.set()
holder.join()
asyncio.run(append("parent again"))
print(len(asyncio.run(journal.list())), len(asyncio.run(memory.list())))
""")
    assert found == ["0", "0", "3", "2"]


def test_budgets_and_notes_of_a_process_that_forks(run_program):
    found = run_program("""
from treadle.drivers.purse.patience import outside
from treadle.tools.builtin.memory_store import MemoryStore

notes = MemoryStore(sys.argv[1], max_notes=1_000_000, max_total=100_000_000)
budget = Budget(tokens=1_000_000, path=sys.argv[1] + ".budget")
done = threading.Event()

def writes(name):
    n = 0
    while not done.is_set():
        notes.add("us", f"{name} {n}") if name == "notes" else outside(budget.spent)
        n += 1

def child():
    notes.add("children", f"of {os.getpid()}")
    agent = Agent(ScriptedModel(["done"]), budget=budget)
    assert agent.run_sync("go").finished

threads = [threading.Thread(target=writes, args=(name,)) for name in ("notes", "budget")]
for thread in threads:
    thread.start()
for _ in range(8):
    assert forked(child)
done.set()
for thread in threads:
    thread.join()
print(notes.owners()["children"], budget.spent().tokens > 0)
""")
    assert found == ["8", "True"]


def test_a_fork_in_the_middle_of_sqlite_is_told(run_program):
    found = run_program("""
from treadle.journal import os_fork

os_fork.LONGEST_WAIT = 0.1
journal = SqliteJournal(sys.argv[1])
asyncio.run(journal.append("r", 0, [started("r")]))

def child():
    try:
        asyncio.run(journal.read("r"))
    except JournalError as error:
        assert "fork" in str(error) and "spawn" in str(error), error
        print("told")
    asyncio.run(journal.close())

with os_fork.at_work():
    assert forked(child)
print(len(asyncio.run(journal.read("r"))))
asyncio.run(journal.close())
""")
    assert found == ["told", "1"]
