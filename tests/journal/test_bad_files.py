"""Files that are no journal, or cannot be used: each a clear error, and the file as it was."""

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle import Budget, BudgetUnavailable
from treadle.journal import JournalUnavailable, SqliteJournal
from treadle.journal.database import APPLICATION_ID
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, RunStarted

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]
Note = Callable[[str], Event]


async def fill(path: Path, started: Started, note: Note, events: int = 200) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started(), *[note("x" * 500) for _ in range(events)]])


def content(path: Path) -> bytes:
    return path.read_bytes()


def overwrite_inside(path: Path) -> None:
    """All pages but the first few, which hold the schema and the roots of the table and its index."""
    with path.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xde" * (15 * 4096))


def overwrite_head(path: Path) -> None:
    path.write_bytes(b"\x00\xff" * 50 + path.read_bytes()[100:])


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def no_text_in_the_schema(path: Path) -> None:
    """SQLite's error has these words in it, and what Python raises then is none of SQLite's."""
    path.write_bytes(content(path).replace(b"TABLE events (", b"TABLE events \xf3"))


def later_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 99")


def other_application(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA application_id = 42")


def plain_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE mine (x)")


def text(path: Path) -> None:
    path.write_text("these are my notes, not a journal\n" * 100)


BAD = [
    (overwrite_head, "is no SQLite database", "Use another path"),
    (text, "is no SQLite database", "Use another path"),
    (cut, "is damaged", "Move it away"),
    (no_text_in_the_schema, "is damaged", "Move it away"),
    (later_version, "was written by a later treadle", "Update treadle"),
    (other_application, "another application", "Use another path"),
    (plain_database, "another application", "Use another path"),
]


@pytest.mark.parametrize(("spoil", "what", "remedy"), BAD, ids=[spoil.__name__ for spoil, _, _ in BAD])
@pytest.mark.parametrize("call", ["append", "read", "list", "delete", "check"])
async def test_a_bad_file_is_refused_and_left_alone(
    path: Path, started: Started, note: Note, spoil: Callable[[Path], None], what: str, remedy: str, call: str
) -> None:
    await fill(path, started, note)
    spoil(path)
    before = content(path)
    async with SqliteJournal(path) as journal:
        calls = {
            "append": lambda: journal.append("r", 0, [started()]),
            "read": lambda: journal.read("r"),
            "list": lambda: journal.list(),
            "delete": lambda: journal.delete("r"),
            "check": lambda: journal.check(),
        }
        with pytest.raises(JournalUnavailable, match=what) as caught:
            await calls[call]()
    assert str(path) in str(caught.value)
    assert remedy in str(caught.value)
    assert caught.value.where == str(path)
    assert content(path) == before


async def test_damage_inside_is_found_by_check_and_where_it_is_read(path: Path, started: Started, note: Note) -> None:
    await fill(path, started, note)
    overwrite_inside(path)
    before = content(path)
    async with SqliteJournal(path) as journal:
        with pytest.raises(JournalUnavailable, match="is damaged"):
            await journal.check()
        with pytest.raises(JournalUnavailable, match="is damaged"):
            await journal.read("r")
    assert content(path) == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ('UPDATE events SET body = \'{"event":"dreamt"}\' WHERE seq = 1', "event 1 of run 'r'"),
        ("UPDATE events SET body = '{' WHERE seq = 1", "event 1 of run 'r'"),
        ("DELETE FROM events WHERE seq = 1", "event 1 of run 'r' .* it is missing"),
        ("UPDATE events SET body = json_set(body, '$.format', 99) WHERE seq = 0", "event 0 of run 'r' .* altered"),
    ],
)
async def test_an_event_that_cannot_be_read_is_named_and_others_can(
    path: Path, started: Started, note: Note, change: str, why: str
) -> None:
    await fill(path, started, note, events=3)
    with closing(sqlite3.connect(path)) as other:
        other.execute(change)
        other.commit()
    async with SqliteJournal(path) as journal:
        await journal.append("s", 0, [started("s")])
        with pytest.raises(JournalUnavailable, match=why):
            await journal.read("r")
        assert await journal.read("s") == [started("s")]
        await journal.delete("r")
        assert [line.run_id for line in await journal.list()] == ["s"]


async def test_an_event_of_a_later_form_is_refused_and_not_called_altered(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [replace(started(), format=99)])
        with pytest.raises(JournalUnavailable, match="form 99, this treadle knows 1; update treadle"):
            await journal.read("r")


@pytest.mark.parametrize("call", ["append", "read"])
async def test_a_folder_is_no_journal(tmp_path: Path, started: Started, call: str) -> None:
    async with SqliteJournal(tmp_path) as journal:
        with pytest.raises(JournalUnavailable, match=r"is a folder\. Name a file in it"):
            await (journal.read("r") if call == "read" else journal.append("r", 0, [started()]))
    assert os.listdir(tmp_path) == []


async def test_a_pipe_is_no_journal(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with SqliteJournal(tmp_path / "pipe") as journal:
        with pytest.raises(JournalUnavailable, match=r"no regular file\. Use another path"):
            await journal.list()


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with SqliteJournal(tmp_path / "file" / "journal.db") as journal:
        with pytest.raises(JournalUnavailable, match="cannot be made"):
            await journal.list()


async def test_when_the_cause_is_gone_the_same_journal_works(path: Path, started: Started) -> None:
    os.makedirs(path)
    async with SqliteJournal(path) as journal:
        with pytest.raises(JournalUnavailable):
            await journal.append("r", 0, [started()])
        os.rmdir(path)
        await journal.append("r", 0, [started()])
        assert await journal.read("r") == [started()]


async def test_a_file_whose_maker_was_killed_becomes_a_journal(path: Path, started: Started) -> None:
    """What a kill leaves while the file is made: pages of a transaction, and the way back out of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_name("other.db")
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        for statement in ("PRAGMA cache_size = 1", "BEGIN", "CREATE TABLE t (x)"):
            connection.execute(statement)
        for _ in range(50):
            connection.execute("INSERT INTO t VALUES (?)", ("x" * 4000,))
        shutil.copyfile(other, path)
        shutil.copyfile(f"{other}-journal", f"{path}-journal")
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
        assert await journal.read("r") == [started()]


async def test_an_empty_file_becomes_a_journal(path: Path, started: Started) -> None:
    os.mkdir(path.parent)
    os.mknod(path)
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


UNPRIVILEGED = """
import logging, tempfile

# That others may read the file, and write to its folder, is told too.
logging.disable()

async def warm_up():
    # Loads what is loaded at the first use, which the other user may not be allowed to read.
    with tempfile.TemporaryDirectory() as folder:
        async with SqliteJournal(folder + "/j.db") as journal:
            await journal.list()

async def main():
    async with SqliteJournal(sys.argv[1]) as journal:
        try:
            print("done", await journal.read("r"))
        except JournalUnavailable as error:
            print(error)
        try:
            await journal.append("r", 1, [NudgeGiven(text="a")])
        except JournalUnavailable as error:
            print(error)

asyncio.run(warm_up())
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
asyncio.run(main())
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "read"), [(0o444, 0o777, True), (0o444, 0o555, False), (0o000, 0o777, False)]
)
def test_a_journal_one_may_not_write_says_so(
    open_folder: Path,
    started: Started,
    note: Note,
    run_program: Callable[..., str],
    file_mode: int,
    folder_mode: int,
    read: bool,
) -> None:
    path = open_folder / "journal.db"
    asyncio.run(fill(path, started, note, events=0))
    path.chmod(file_mode)
    open_folder.chmod(folder_mode)
    before = path.read_bytes()
    first, second = run_program(UNPRIVILEGED, path).splitlines()
    assert first.startswith("done" if read else f"the journal {path} cannot be ")
    assert second.startswith(f"the journal {path} cannot be ")
    assert "rights of" in second or "the right to" in second
    # A reader leaves these behind, with the rights that the file had then: to have it written they are needed too.
    assert not read or "to the -wal and -shm files beside it" in second
    assert path.read_bytes() == before


FULL = """
import resource
async def main():
    journal = SqliteJournal(sys.argv[1])
    await journal.append("r", 0, [started("r")])
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, most))
    seq = 1
    while True:
        try:
            await journal.append("r", seq, [NudgeGiven(text="x" * 5000)])
            seq += 1
        except JournalUnavailable as error:
            print(error)
            break
    assert len(await journal.read("r")) == seq
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    await journal.append("r", seq, [NudgeGiven(text="x" * 5000)])
    await journal.check()
    assert len(await journal.read("r")) == seq + 1
    await journal.close()
asyncio.run(main())
"""


def test_a_disk_that_takes_no_more_loses_nothing_and_goes_on_when_it_does(
    path: Path, run_program: Callable[..., str]
) -> None:
    assert "failing disk under it, or one that is full" in run_program(FULL, path)


async def test_a_link_to_nothing_is_told_as_one(tmp_path: Path) -> None:
    """It was said to be no regular file, in which another was to be named."""
    os.symlink("nowhere.db", tmp_path / "link.db")
    async with SqliteJournal(tmp_path / "link.db") as journal:
        with pytest.raises(JournalUnavailable, match=r"is a link to what is no file, or is not there\. Make the link"):
            await journal.list()


@pytest.mark.parametrize("path", [None, 5, b"j.db", ["j.db"], "", "j\0.db", "j\ud800.db"])
def test_what_no_file_can_be_called_is_refused_in_words(path: str) -> None:
    with pytest.raises(Misuse, match="SqliteJournal takes the path of a file; it was given"):
        SqliteJournal(path)
    if path is not None:
        with pytest.raises(Misuse, match="Budget takes path= as the path of a file"):
            Budget(tokens=1, path=path)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (0, "Too many open files.*allow it more"),
        (1, "unable to open database file.*how many files this process has open"),
    ],
)
@pytest.mark.parametrize("kind", ["journal", "budget"])
async def test_where_too_many_files_are_open_nobody_is_sent_to_look_at_rights_alone(
    kind: str, left: int, words: str, tmp_path: Path, started: Started, note: Note
) -> None:
    """It was to be put at another path, or its rights to be looked at."""
    resource = pytest.importorskip("resource")
    await fill(tmp_path / "journal", started, note)
    Budget(tokens=5, path=tmp_path / "budget").spent()
    journal, budget = SqliteJournal(tmp_path / "journal"), Budget(tokens=5, path=tmp_path / "budget")

    async def asked() -> None:
        if kind == "journal":
            await journal.list()
        else:
            budget.spent()

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_one = os.dup(0)
    os.close(next_one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one + left, before[1]))
    try:
        with pytest.raises((JournalUnavailable, BudgetUnavailable), match=words):
            await asked()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert await journal.list()
    assert budget.spent().tokens == 0
    await journal.close()
