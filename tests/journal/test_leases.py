"""Leases: those in the memory of a process, and those of processes that are gone; the rest `LeasesConformance` has."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import msgspec
import pytest
from msgspec.structs import replace

from treadle import MemoryJournal, Misuse, PostgresJournal, SqliteJournal
from treadle.journal import Held, Leases, TakenOver
from treadle.journal.holder import is_gone, this_process
from treadle.kernel.events import NudgeGiven, RunFinished, RunPaused
from treadle.kernel.stop import stopped

pytestmark = pytest.mark.anyio

ONE, OTHER = this_process("one"), this_process("other")
# One of whose host nothing is known here.
FAR = replace(OTHER, name="far", host="far away")
NUDGE = NudgeGiven(at=2.0, text="on")
# Altered to a number that no process of this host has.
NO_PROCESS = msgspec.json.encode(replace(ONE, name="none", pid=10**12)).decode()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def journal(request, path, anyio_backend):
    match request.param:
        case "memory":
            made = MemoryJournal()
        case "sqlite":
            made = SqliteJournal(path)
        case _:
            server, schema = request.getfixturevalue("server"), request.getfixturevalue("schema")
            made = PostgresJournal(server.dsn(), schema=schema)
    yield made
    await made.close()


in_memory = pytest.mark.parametrize("journal", ["memory"], indirect=True)


def pause():
    return RunPaused(at=3.0, stop=stopped("waiting"))


def finish():
    return RunFinished(at=4.0, stop=stopped("answered"))


def ended_process():
    """A process of this host that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = replace(this_process("dead"), pid=process.pid, started=0)
    process.communicate(b"\n")
    return holder


@in_memory
async def test_a_run_has_one_holder(journal):
    assert isinstance(journal, Leases)
    assert await journal.holders(["r"]) == {}
    assert await journal.hold("r", ONE, 60) is None
    assert await journal.hold("r", ONE, 60) is None
    assert (await journal.hold("r", OTHER, 60)).name == ONE.name
    holders = await journal.holders(["r", "another"])
    assert {run: replace(holder, beat_at=0.0) for run, holder in holders.items()} == {"r": ONE}
    assert await journal.hold("r", OTHER, 60, takeover=True) is None
    assert (await journal.holders(["r"]))["r"].name == OTHER.name


@in_memory
async def test_of_many_who_want_a_run_at_once_one_has_it(journal):
    many = [this_process(f"{number}") for number in range(20)]
    found = await asyncio.gather(*(journal.hold("r", one, 60) for one in many))
    assert found.count(None) == 1
    owner = many[found.index(None)]
    assert {one.name for one in found if one is not None} == {owner.name}


@in_memory
async def test_a_lease_is_given_back_by_its_holder_only(journal):
    await journal.hold("r", ONE, 60)
    await asyncio.wrap_future(journal.let_go("r", OTHER))
    assert set(await journal.holders(["r"])) == {"r"}
    await asyncio.wrap_future(journal.let_go("r", ONE))
    assert await journal.holders(["r"]) == {}


@in_memory
async def test_a_beat_says_what_is_lost(journal):
    for run in ("a", "b", "c"):
        await journal.hold(run, ONE, 60)
    await journal.hold("b", OTHER, 60, takeover=True)
    await asyncio.wrap_future(journal.let_go("c", ONE))
    lost = await asyncio.wrap_future(journal.beat(["a", "b", "c", "d"], ONE, 60))
    assert sorted(lost) == ["b", "c", "d"]
    assert (await journal.holders(["b"]))["b"].name == OTHER.name


@in_memory
async def test_a_lease_begins_with_its_run_and_ends_with_its_pause(journal, started):
    held = Held("r", ONE, 60.0)
    await journal.append("r", 0, [started("r")], held)
    await journal.append("r", 1, [NUDGE, pause()], held)
    assert await journal.holders(["r"]) == {}
    assert await journal.hold("r", OTHER, 60) is None
    await journal.append("r", 3, [finish()])
    assert await journal.holders(["r"]) == {}


@in_memory
async def test_a_lease_goes_with_its_run(journal, started):
    await journal.hold("r", ONE, 60)
    await journal.append("r", 0, [started("r")])
    assert await journal.delete("r")
    assert await journal.holders(["r"]) == {}


# Nobody else can have a run in the memory of a process.
of_many = pytest.mark.parametrize("journal", ["sqlite", "postgres"], indirect=True)


@of_many
async def test_one_that_lost_its_lease_does_not_spoil_what_others_append_at_once(journal, started):
    mine, lost = Held("a", ONE, 60.0), Held("b", ONE, 60.0)
    await journal.append("a", 0, [started("a")], mine)
    await journal.append("b", 0, [started("b")], lost)
    await journal.hold("b", OTHER, 60, takeover=True)
    outcomes = await asyncio.gather(
        *(journal.append(run, 1, [NUDGE], held) for run, held in (("a", mine), ("b", lost))),
        return_exceptions=True,
    )
    assert outcomes[0] is None
    assert isinstance(outcomes[1], TakenOver)
    assert len(await journal.read("a")) == 2


@of_many
async def test_who_is_gone_has_no_run(journal):
    gone = ended_process()
    assert is_gone(gone)
    await journal.hold("r", gone, 3600)
    assert await journal.holders(["r"]) == {}
    assert await journal.hold("r", ONE, 60) is None


@of_many
async def test_a_number_that_was_given_again_is_another_process(journal):
    again = replace(ONE, name="before", started=ONE.started + 1)
    # Not every system says when a process began.
    assert is_gone(again) is (ONE.started != 0)
    await journal.hold("r", again, 3600)
    assert (await journal.hold("r", ONE, 60) is None) is (ONE.started != 0)


async def set_back(journal, request, by):
    """The clock of the journal shows a time that is earlier by so many seconds."""
    if isinstance(journal, SqliteJournal):
        with closing(sqlite3.connect(journal.path, isolation_level=None)) as file:
            file.execute(f"UPDATE leases SET beat_at = beat_at + {by}, until = until + {by}")
    else:
        server, schema = request.getfixturevalue("server"), request.getfixturevalue("schema")
        server.execute(f'UPDATE "{schema}".leases SET beat_at = beat_at + {by}, until = until + {by}')


@of_many
@pytest.mark.parametrize("by", [3600, 86400, 400 * 86400])
async def test_who_was_there_before_a_start_with_the_clock_set_back_has_no_run(journal, request, by):
    """It had them until that time came again, and no list of runs that are stuck told of them."""
    before = replace(ended_process(), place="the start before")
    await journal.hold("r", before, 60)
    assert (await journal.hold("r", ONE, 60)).name == before.name
    await set_back(journal, request, by)
    assert await journal.holders(["r"]) == {}
    assert await journal.hold("r", ONE, 60) is None
    assert set(await journal.holders(["r"])) == {"r"}


@of_many
async def test_a_clock_that_is_set_back_takes_no_run_from_a_process_of_this_host(journal, request):
    await journal.hold("r", ONE, 60)
    await set_back(journal, request, 86400)
    assert (await journal.hold("r", OTHER, 60)).name == ONE.name
    await journal.hold("r", FAR, 60, takeover=True)
    await set_back(journal, request, 30)
    assert (await journal.hold("r", OTHER, 60)).name == FAR.name


@pytest.mark.parametrize("journal", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "damage", ["holder = '{'", "holder = '{}'", "holder = x'ff00'", "until = 'noon'", f"holder = '{NO_PROCESS}'"]
)
async def test_a_lease_that_cannot_be_read_binds_nobody(journal, path, started, damage):
    """No run of the file could be looked at for who has it, and this one not be taken up."""
    held = Held("r", FAR, 60.0)
    await journal.append("r", 0, [started()], held)
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"UPDATE leases SET {damage}")
        other.commit()
    assert await journal.holders(["r"]) == {}
    assert await journal.hold("r", ONE, 60) is None
    with pytest.raises(TakenOver):
        await journal.append("r", 1, [NUDGE], held)


async def test_nobody_knows_of_processes_elsewhere():
    gone = ended_process()
    assert not is_gone(replace(gone, host="far away"))
    assert not is_gone(replace(gone, place="another start of this host"))
    assert not is_gone(ONE)
    assert not is_gone(replace(ONE, started=0))
    assert not is_gone(replace(ONE, pid=os.getppid(), started=0))


@pytest.mark.parametrize("lease", [0, -1, float("inf"), float("nan"), "15", True, None])
def test_a_lease_is_a_number_of_seconds(lease, tmp_path):
    with pytest.raises(Misuse, match="seconds above 0"):
        SqliteJournal(tmp_path / "x.db", lease=lease)
    with pytest.raises(Misuse, match="seconds above 0"):
        PostgresJournal("dbname=x", lease=lease)


def test_a_holder_is_told_in_words():
    assert str(ONE) == f"process {os.getpid()} on {ONE.host}"
