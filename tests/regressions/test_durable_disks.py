"""Durable runs: what happens to the disk under a run. It stops with an error that says what to do, what was recorded is
intact, nothing more is done, and it goes on when the disk is well again.

- a disk that is full, for the journal, a budget, notes -> test_a_full_disk, test_a_full_disk_of_a_budget,
  test_a_full_disk_of_notes
- a file that is locked, removed, replaced, cut short or made unwritable under way -> test_what_happens_to_the_file
- a file that was put beside the -wal file of the open one was written over by that, and all runs of both were lost,
  while the run ended as answered -> test_what_happens_to_the_file[put_in_place],
  test_a_file_that_is_put_in_the_place_of_an_open_one_is_not_written_over,
  test_a_budget_whose_file_is_put_in_place_is_not_written_over
- a journal that was moved away from its -wal file was begun anew, and that file thrown away with what was written last
  -> test_what_stands_in_the_log_of_a_journal_that_is_moved_away_is_there_when_it_is_put_back
- a journal that was cut short to nothing became a fresh one without a word -> test_a_file_that_is_cut_short_is_told
- a network disk -> test_a_network_disk_is_warned_of
- of a disk that may only be read it was told to look at rights and open files
  -> test_a_disk_that_may_only_be_read_is_thought_of
- who only looked at runs, or deleted one, on a full disk was advised to resume a run
  -> test_who_goes_on_with_no_run_is_not_told_to_resume_one
"""

import asyncio
import logging
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest
from click.testing import CliRunner
from play import kinds, told

from treadle import Agent, Budget, BudgetUnavailable, SqliteJournal, tool
from treadle.cli.app import application
from treadle.journal import JournalError, JournalUnavailable, disks, sqlite_file
from treadle.kernel.events import FORMAT, Happened, NudgeGiven, RunStarted
from treadle.testing import ScriptedModel
from treadle.tools import ToolError
from treadle.tools.builtin.memory_store import MemoryStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def disk(tmp_path):
    """A disk of its own, of 600 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("nothing may be mounted here")
    yield place
    # A test that fails may leave a file open there: the disk would stay, and with it the folder, at every later run.
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place):
    with (place / "junk").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError:
            pass


def pays(harm):
    """Tools that do harm in the second of three payments; and what they did."""
    ran = []

    @tool
    async def pay(n: int) -> str:
        """Pay."""
        ran.append(n)
        if n == 2:
            harm()
        return f"paid {n} " + "x" * 3000

    return pay, ran


def agent(pay, journal, **more):
    def turn(request):
        return [("pay", {"n": request.step + 1})] if request.step < 3 else "done"

    return Agent(ScriptedModel(turn), tools=[pay], journal=journal, on_interrupted="tell", **more)


async def broken_off(pay, journal, words):
    """The id of a run that a journal broke off, and its events as far as it came."""
    seen = []
    with pytest.raises(JournalError, match=words):
        await agent(pay, journal).run("go", on_event=seen.append)
    await journal.close()
    return seen[0].run_id, [event for event in seen if isinstance(event, Happened)]


async def goes_on(path, run_id, pay, ran, before):
    """The run goes on from what was recorded; the payment that was under way is not made again."""
    async with SqliteJournal(path) as journal:
        events = await journal.read(run_id)
        assert events == before[: len(events)]
        assert kinds(events)[-1] == "ToolStarted"
        await journal.check()
        assert ran == [1, 2]
        # The lease of the journal that failed could not be given back.
        result = await agent(pay, journal).resume(run_id, takeover=True)
        assert (result.stop.reason, ran) == ("answered", [1, 2, 3])
        assert [words[:6] for words in told(result)][::2] == ["paid 1", "paid 3"]
        assert "unknown" in told(result)[1]
        await journal.check()


async def test_a_full_disk(disk):
    pay, ran = pays(lambda: fill(disk))
    run_id, before = await broken_off(pay, SqliteJournal(disk / "j.db"), r"full disk.*Make room, and resume the run")
    (disk / "junk").unlink()
    await goes_on(disk / "j.db", run_id, pay, ran, before)


async def test_who_goes_on_with_no_run_is_not_told_to_resume_one(disk):
    async with SqliteJournal(disk / "j.db") as journal:
        result = await Agent(ScriptedModel(["done"]), journal=journal).run("go")
    fill(disk)
    async with SqliteJournal(disk / "j.db") as journal:
        for ask in (journal.list(), journal.read(result.run_id), journal.delete(result.run_id)):
            with pytest.raises(JournalUnavailable, match=r"full.*, and try again\.$"):
                await ask
    shown = await asyncio.to_thread(CliRunner().invoke, application, ["runs", "--journal", str(disk / "j.db")])
    assert shown.exit_code != 0
    assert "resume the run" not in f"{shown.output}{shown.exception}"


async def test_a_disk_that_may_only_be_read_is_thought_of(disk):
    async with SqliteJournal(disk / "j.db") as journal:
        await Agent(ScriptedModel(["done"]), journal=journal).run("go")
    await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,ro", str(disk)], check=True)
    async with SqliteJournal(disk / "j.db") as journal:
        with pytest.raises(JournalUnavailable, match="whether its disk may be written"):
            await journal.list()


async def test_a_full_disk_of_a_budget(disk, tmp_path):
    budget = Budget(tokens=1_000_000, path=disk / "budget.db")
    pay, ran = pays(lambda: fill(disk))
    async with SqliteJournal(tmp_path / "j.db") as journal:
        seen = []
        with pytest.raises(BudgetUnavailable, match="full"):
            await agent(pay, journal, budget=budget).run("go", on_event=seen.append)
        assert ran == [1, 2]
        (disk / "junk").unlink()
        result = await agent(pay, journal, budget=budget).resume(seen[0].run_id)
        assert (result.stop.reason, ran) == ("answered", [1, 2, 3])
        assert budget.spent().tokens == result.usage.total_tokens
    budget.close()


def add_many(store):
    for n in range(200):
        store.add("us", f"{n} " + "x" * 1900)


def test_a_full_disk_of_notes(disk):
    store = MemoryStore(disk / "notes.db")
    store.add("us", "first")
    fill(disk)
    with pytest.raises(ToolError, match=r"full disk.*Make room, and try again"):
        add_many(store)
    (disk / "junk").unlink()
    kept = len(store.newest("us"))
    store.add("us", "last")
    assert len(store.newest("us")) == kept + 1


class Harm:
    """What somebody does to the file of a journal, and how it is mended."""

    def __init__(self, path):
        self.path, self.copy = path, path.with_name("copy.db")
        self.lock = None

    def _keep(self):
        with closing(sqlite3.connect(self.path)) as file, closing(sqlite3.connect(self.copy)) as copy:
            file.backup(copy)

    def mend(self):
        if self.lock is not None:
            self.lock.close()
            return
        for name in (self.path.name, f"{self.path.name}-wal", f"{self.path.name}-shm"):
            self.path.with_name(name).unlink(missing_ok=True)
        shutil.copy(self.copy, self.path)

    def locked(self):
        self.lock = sqlite3.connect(self.path, isolation_level=None)
        self.lock.execute("BEGIN IMMEDIATE")

    def removed(self):
        self._keep()
        self.path.unlink()

    def replaced(self):
        self._keep()
        self.path.unlink()
        with closing(sqlite3.connect(self.path)) as other:
            other.execute("CREATE TABLE mine (x)")
            other.commit()

    def put_in_place(self):
        self._keep()
        os.replace(shutil.copy(self.copy, self.path.with_name("new.db")), self.path)

    def cut_short(self):
        self._keep()
        os.truncate(self.path, 0)

    def folder_moved(self):
        self._keep()
        shutil.copy(self.copy, self.path.parent.parent / "copy.db")
        os.rename(self.path.parent, self.path.parent.with_name("moved"))
        self.path.parent.mkdir()
        self.copy = self.path.parent.parent / "copy.db"


HARMS = {
    "locked": "locked by another process",
    "removed": "removed",
    "replaced": "another application",
    "put_in_place": "replaced by another file while it was open",
    "cut_short": "cut short",
    "folder_moved": "removed",
}


@pytest.mark.parametrize("what", HARMS)
async def test_what_happens_to_the_file(what, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "PATIENCE", 0.3)
    path = tmp_path / "runs" / "j.db"
    harm = Harm(path)
    pay, ran = pays(getattr(harm, what))
    run_id, before = await broken_off(pay, SqliteJournal(path), HARMS[what])
    harm.mend()
    await goes_on(path, run_id, pay, ran, before)


async def filled(path, names, text):
    """Runs of these names, in a file without a -wal file."""
    async with SqliteJournal(path) as journal:
        for name in names:
            first = RunStarted(at=1.0, run_id=name, messages=(), format=FORMAT)
            await journal.append(name, 0, [first, *[NudgeGiven(text=text * 900) for _ in range(20)]])


def without_log(path):
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).rename(path.with_name("away" + end))


@pytest.mark.parametrize("by", ["j.db", "link.db"])
async def test_a_file_that_is_put_in_the_place_of_an_open_one_is_not_written_over(tmp_path, by):
    path, other, old = tmp_path / "j.db", tmp_path / "other.db", tmp_path / "old.db"
    os.symlink("j.db", tmp_path / "link.db")
    await filled(path, "abcd", "mine")
    await filled(other, "xyz", "other")
    async with SqliteJournal(tmp_path / by) as journal:
        await journal.append("a", 21, [NudgeGiven(text="late")])
        os.link(path, old)
        os.replace(other, path)
        for _ in range(2):
            with pytest.raises(
                JournalUnavailable, match=r"replaced.*Move the -wal and -shm files away.*resume the run"
            ):
                await journal.append("a", 22, [NudgeGiven(text="lost")])
            with pytest.raises(JournalUnavailable, match="replaced"):
                await journal.read("a")
        os.rename(path, other)
        os.rename(old, path)
        await journal.append("a", 22, [NudgeGiven(text="back")])
        assert len(await journal.read("a")) == 23
        os.replace(other, path)
        with pytest.raises(JournalUnavailable, match="replaced"):
            await journal.list()
        without_log(path)
        assert [line.run_id for line in await journal.list()] == ["z", "y", "x"]
        await journal.append("x", 21, [NudgeGiven(text="new")])
    async with SqliteJournal(path) as journal:
        await journal.check()
        assert {name: len(await journal.read(name)) for name in "xyz"} == {"x": 22, "y": 21, "z": 21}


async def test_a_budget_whose_file_is_put_in_place_is_not_written_over(tmp_path):
    path = tmp_path / "b.db"
    pay, _ = pays(lambda: None)
    old, new = Budget(tokens=1_000_000, path=path), Budget(tokens=1_000_000, path=tmp_path / "new.db")
    other = await agent(pay, None, budget=new).run("go")
    new.close()
    await agent(pay, None, budget=old).run("go")
    os.replace(tmp_path / "new.db", path)
    for _ in range(2):
        with pytest.raises(BudgetUnavailable, match="replaced"):
            await agent(pay, None, budget=old).run("go")
    without_log(path)
    assert old.spent().tokens == other.usage.total_tokens
    old.close()


async def test_what_stands_in_the_log_of_a_journal_that_is_moved_away_is_there_when_it_is_put_back(tmp_path):
    """SQLite removes the log that lies beside a new file; what was written last stood there alone."""
    path, away = tmp_path / "j.db", tmp_path / "away.db"
    one = Agent(ScriptedModel(lambda _: "done"), journal=SqliteJournal(path))
    journal = one.journal
    await one.run("first")
    path.rename(away)
    for _ in range(2):
        with pytest.raises(JournalUnavailable, match=r"its -wal file.*is still there.*Put the file back.*resume"):
            await one.run("lost")
        with pytest.raises(JournalUnavailable, match="is still there"):
            await journal.list()
    away.rename(path)
    await one.run("second")
    assert [line.question for line in await journal.list()] == ["second", "first"]
    path.rename(away)
    await journal.close()
    async with SqliteJournal(path) as later:
        with pytest.raises(JournalUnavailable, match="is still there"):
            await later.list()
        away.rename(path)
        assert [line.question for line in await later.list()] == ["second", "first"]
        await later.check()


async def test_a_journal_is_begun_anew_where_it_is_gone_with_its_log(tmp_path):
    path = tmp_path / "j.db"
    async with SqliteJournal(path) as journal:
        one = Agent(ScriptedModel(lambda _: "done"), journal=journal)
        await one.run("first")
        path.unlink()
        without_log(path)
        await one.run("second")
        assert [line.question for line in await journal.list()] == ["second"]


@pytest.mark.parametrize("left", [0, 4096, -100])
async def test_a_file_that_is_cut_short_is_told(tmp_path, left):
    path = tmp_path / "j.db"
    first = RunStarted(at=1.0, run_id="r", messages=(), format=FORMAT)
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [first, *[NudgeGiven(text="x" * 1000) for _ in range(100)]])
    async with SqliteJournal(path) as journal:
        await journal.append("r", 101, [NudgeGiven(text="x")])
        os.truncate(path, left if left >= 0 else path.stat().st_size + left)
        with pytest.raises(JournalUnavailable, match=r"cut short while it was open, from .* bytes.*backup"):
            await journal.append("r", 102, [NudgeGiven(text="x")])


async def test_a_file_that_was_made_smaller_well_is_no_matter(tmp_path):
    path = tmp_path / "j.db"
    async with SqliteJournal(path) as journal:
        for run_id in "rs":
            first = RunStarted(at=1.0, run_id=run_id, messages=(), format=FORMAT)
            await journal.append(run_id, 0, [first, *[NudgeGiven(text="x" * 1000) for _ in range(100)]])
    async with SqliteJournal(path) as journal:
        await journal.delete("s")
        await journal.append("r", 101, [NudgeGiven(text="x")])
        before = path.stat().st_size
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("VACUUM")
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert path.stat().st_size < before
        await journal.append("r", 102, [NudgeGiven(text="x")])
        assert len(await journal.read("r")) == 103


MOUNTS = """22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
36 22 0:31 / /mnt/our\\040share rw - nfs4 server:/export rw
37 22 0:32 / /mnt/host rw - 9p host rw
38 22 0:33 / /home/a rw - fuse.sshfs a@b: rw
39 22 0:34 / /home/b rw - fuse.fuse-overlayfs fuse-overlayfs rw
40 37 0:35 / /mnt/host/local rw - tmpfs tmpfs rw
41 22 0:36 / /mnt/disk rw - ext4 /dev/vdb rw
42 41 0:37 / /mnt/disk rw - cifs //server/share rw
"""


def test_a_network_disk_is_warned_of(tmp_path, monkeypatch, caplog):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS, encoding="utf-8")
    monkeypatch.setattr(disks, "MOUNTS", table)
    places = {
        "/var/j.db": None, "/mnt/our share/runs/j.db": "nfs4", "/mnt/host/j.db": "9p", "/mnt/host/local/j.db": None,
        "/home/a/j.db": "fuse.sshfs", "/home/b/j.db": None, "/mnt/disk/j.db": "cifs", "/mnt/hosts/j.db": None,
    }  # fmt: skip
    assert {place: disks.shared_kind(type(tmp_path)(place)) for place in places} == places
    table.write_text(f"{MOUNTS}43 22 0:38 / {tmp_path} rw - nfs4 server:/export rw\n", encoding="utf-8")

    async def used():
        async with SqliteJournal(tmp_path / "j.db") as journal:
            assert await journal.list() == []
            assert await journal.list() == []

    with caplog.at_level(logging.WARNING, "treadle"):
        asyncio.run(used())
    (record,) = [one for one in caplog.records if "network" in one.getMessage()]
    assert "network file system (nfs4)" in record.getMessage()
    assert str(tmp_path / "j.db") in record.getMessage()


def test_the_doctor_tells_of_a_network_disk(tmp_path, monkeypatch):
    table, path = tmp_path / "mountinfo", tmp_path / "j.db"
    table.write_text(f"43 22 0:38 / {tmp_path} rw - nfs4 server:/export rw\n", encoding="utf-8")
    monkeypatch.setattr(disks, "MOUNTS", table)
    asyncio.run(made(path))
    told = CliRunner().invoke(application, ["doctor", "--journal", str(path)]).output
    assert "network file system (nfs4)" in " ".join(told.split())


async def made(path):
    async with SqliteJournal(path) as journal:
        await journal.list()
