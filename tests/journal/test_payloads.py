"""Large texts in events: each is stored once, belongs to every run that has it, and goes with the last of these."""

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Agent, Conversation
from treadle.journal import JournalConflict, JournalDamaged, SqliteJournal
from treadle.journal.payloads import LARGE, split
from treadle.kernel.events import Event, NudgeGiven, RunForked, RunStarted, ToolFinished, encode_event
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]

LONG = 'the history of it, "quoted", \\ and with ümlauts\n' * 200
OTHER = "what another says " * 400
TRICKY = [
    f'{LONG} "@payload:{"0" * 32}"',
    f' "@payload:{"0" * 32}" {LONG}',
    f'"@payload:{"0" * 32}"',
    f' "@payload:{"0" * 32}"',
    "\\" * 9000,
    '"' * 9000,
    "\x00" * 9000,
    "ä" * LARGE,
    "x" * (LARGE - 2),
    "x" * (LARGE - 1),
]


def rows(path: Path, asked: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as other:
        return other.execute(asked).fetchall()


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as other:
        assert other.execute(statement).rowcount != 0
        other.commit()


async def write(path: Path, **runs: Sequence[Event]) -> None:
    async with SqliteJournal(path) as journal:
        for run_id, events in runs.items():
            await journal.append(run_id, 0, events)


async def test_a_text_that_many_runs_have_is_stored_once(path: Path, started: Started) -> None:
    runs = {f"r{number}": [started(f"r{number}", question=LONG), NudgeGiven(text=LONG)] for number in range(20)}
    await write(path, **runs)
    assert rows(path, "SELECT count(*) FROM payloads") == [(1,)]
    async with SqliteJournal(path) as journal:
        for run_id, events in runs.items():
            assert await journal.read(run_id) == events
            assert await journal.read(run_id, 1) == events[1:]
        await journal.check()


async def test_the_runs_of_a_conversation_share_its_large_texts(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        conversation = Conversation()
        agent = Agent(ScriptedModel([f"Answer {number}: {OTHER}" for number in range(5)]), journal=journal)
        for number in range(5):
            await agent.run(f"Question {number}: {LONG}", conversation=conversation)
        held = b"".join([encode_event(one) for line in await journal.list() for one in await journal.read(line.run_id)])
    stored = rows(path, "SELECT sum(length(data)) FROM payloads")[0][0]
    # Each question and each answer once, and not in each run that came after it.
    assert rows(path, "SELECT count(*) FROM payloads") == [(10,)]
    assert isinstance(stored, int)
    assert stored < len(held) / 2


async def test_small_texts_stay_in_their_event(path: Path, started: Started) -> None:
    await write(path, r=[started(), *[NudgeGiven(text="x" * 90)] * 99])
    assert rows(path, "SELECT count(*) FROM payloads") == [(0,)]


async def test_whatever_a_text_says_it_is_read_as_it_was_written(path: Path, started: Started) -> None:
    events = [started(), *[NudgeGiven(text=text) for text in TRICKY]]
    app = ToolFinished(step=0, call_id="c", content="", app={text: [text, {text: 1}] for text in TRICKY})
    await write(path, r=[*events, app])
    async with SqliteJournal(path) as journal:
        assert await journal.read("r") == [*events, app]
        await journal.check()


@given(st.binary(max_size=200), st.integers(0, 3))
def test_splitting_never_loses_a_byte(data: bytes, times: int) -> None:
    body, payloads = split(data * 50 * 10**times)
    for one in payloads:
        assert one.data.startswith(b'"')
        body = body.replace(b' "@payload:' + one.hash.hex().encode() + b'"', one.data)
    assert body == data * 50 * 10**times


async def test_rows_stay_json_for_any_program(path: Path, started: Started) -> None:
    await write(path, r=[started(), NudgeGiven(text=LONG)])
    asked = """SELECT json_extract(body, '$.event'), length(json_extract(body, '$.text')) FROM events WHERE seq = 1"""
    assert rows(path, asked) == [("nudge_given", len("@payload:") + 32)]
    assert rows(path, "SELECT json_extract(CAST(data AS TEXT), '$') FROM payloads") == [(LONG,)]


HARMS = {
    "altered": (
        "UPDATE payloads SET data = CAST(replace(CAST(data AS TEXT), 'history', 'mystery') AS BLOB)",
        "was altered",
    ),
    "missing": ("DELETE FROM payloads", "is missing"),
    "of another hash": ("UPDATE payloads SET hash = zeroblob(16)", "is missing"),
    "no bytes": ("UPDATE payloads SET data = 5", "was altered"),
}


@pytest.mark.parametrize("harm", HARMS)
async def test_a_harmed_payload_is_damage_of_every_run_that_has_it_and_of_no_other(
    path: Path, started: Started, harm: str
) -> None:
    both = {name: [started(name), NudgeGiven(text=LONG), NudgeGiven(text="on")] for name in ("one", "two")}
    await write(path, **both)
    statement, why = HARMS[harm]
    change(path, statement)
    spared = [started("spared"), NudgeGiven(text=OTHER)]
    await write(path, spared=spared)
    async with SqliteJournal(path) as journal:
        for name in both:
            with pytest.raises(JournalDamaged, match=f"event 1 of run '{name}' .* its payload [0-9a-f]{{32}} {why}"):
                await journal.read(name)
            assert await journal.read(name, 2) == both[name][2:]
        assert await journal.read("spared") == spared
        with pytest.raises(JournalDamaged) as found:
            await journal.check()
        assert {(one.run_id, one.event) for one in found.value.damage} == {("one", 1), ("two", 1)}
        assert len(await journal.list()) == 3


async def test_a_harmed_payload_is_put_right_by_the_next_run_that_has_it(path: Path, started: Started) -> None:
    """What was appended must be there, whatever stood in the file before."""
    events = [started("one"), NudgeGiven(text=LONG)]
    await write(path, one=events)
    change(path, HARMS["altered"][0])
    await write(path, two=[started("two"), NudgeGiven(text=LONG)])
    async with SqliteJournal(path) as journal:
        assert await journal.read("one") == events
        await journal.check()


async def test_a_reference_that_is_altered_is_seen(path: Path, started: Started) -> None:
    await write(path, r=[started(), NudgeGiven(text=LONG), NudgeGiven(text=OTHER)])
    change(path, "UPDATE events SET body = (SELECT body FROM events WHERE seq = 2) WHERE seq = 1")
    async with SqliteJournal(path) as journal:
        with pytest.raises(JournalDamaged, match="event 1 of run 'r'"):
            await journal.read("r")


async def test_a_payload_goes_with_the_last_run_that_has_it(path: Path, started: Started) -> None:
    await write(
        path,
        one=[started("one", question=LONG), NudgeGiven(text=OTHER)],
        two=[started("two", question=LONG), NudgeGiven(text=LONG)],
    )
    async with SqliteJournal(path) as journal:
        assert rows(path, "SELECT count(*) FROM payloads") == [(2,)]
        await journal.delete("one")
        assert rows(path, "SELECT count(*) FROM payloads") == [(1,)]
        assert await journal.read("two") == [started("two", question=LONG), NudgeGiven(text=LONG)]
        await journal.delete("two")
    assert rows(path, "SELECT hash FROM payloads UNION ALL SELECT hash FROM payload_uses") == []


async def test_a_payload_that_a_fork_shares_stays_until_the_fork_goes(path: Path, started: Started) -> None:
    shared = [started("one"), NudgeGiven(text=LONG)]
    async with SqliteJournal(path) as journal:
        await journal.append("one", 0, [*shared, NudgeGiven(text=OTHER)])
        await journal.fork("one", 2, "two", [RunForked("two", at=5.0)])
        await journal.delete("one")
        assert rows(path, "SELECT count(*) FROM payloads") == [(1,)]
        assert await journal.read("two") == [*shared, RunForked("two", at=5.0)]
        await journal.check()
        assert rows(path, "SELECT run_id, seq FROM payload_uses") == [("two", 1)]
        await journal.delete("two")
    assert rows(path, "SELECT hash FROM payloads UNION ALL SELECT hash FROM payload_uses") == []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM payload_uses WHERE run_id = 'one'",
        "UPDATE payload_uses SET hash = zeroblob(16) WHERE run_id = 'one'",
        "UPDATE payload_uses SET seq = 77 WHERE run_id = 'one'",
    ],
)
async def test_check_tells_anew_which_payloads_are_needed(path: Path, started: Started, statement: str) -> None:
    for name in ("one", "two"):
        await write(path, **{name: [started(name), NudgeGiven(text=LONG)]})
    before = rows(path, "SELECT * FROM payload_uses")
    change(path, statement)
    change(path, "INSERT INTO payloads VALUES (zeroblob(16), 'what nobody needs')")
    async with SqliteJournal(path) as journal:
        await journal.check()
        assert rows(path, "SELECT * FROM payload_uses") == before
        assert rows(path, "SELECT count(*) FROM payloads") == [(1,)]
        await journal.delete("two")
        assert len(await journal.read("one")) == 2


async def test_an_append_that_is_refused_leaves_no_payload(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
        with pytest.raises(JournalConflict):
            await journal.append("r", 7, [NudgeGiven(text=LONG)])
    assert rows(path, "SELECT count(*) FROM payloads") == [(0,)]


async def test_of_many_damaged_payloads_none_is_read_as_if_nothing_were_wrong(path: Path, started: Started) -> None:
    events = [started("r"), NudgeGiven(text=LONG), NudgeGiven(text=OTHER)]
    await write(path, r=events)
    whole = dict(rows(path, "SELECT hash, data FROM payloads"))
    for seed in range(100):
        rng = random.Random(seed)
        name = rng.choice([*whole])
        data = bytearray(whole[name])  # type: ignore[arg-type]
        data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        with closing(sqlite3.connect(path)) as other:
            other.execute("UPDATE payloads SET data = ? WHERE hash = ?", (bytes(data), name))
            other.commit()
        async with SqliteJournal(path) as journal:
            with pytest.raises(JournalDamaged):
                await journal.read("r")
        with closing(sqlite3.connect(path)) as other:
            other.execute("UPDATE payloads SET data = ? WHERE hash = ?", (whole[name], name))
            other.commit()
    async with SqliteJournal(path) as journal:
        assert await journal.read("r") == events
