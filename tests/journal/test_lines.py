"""Runs as lines of JSON: whole from one kind of journal to another, or refused with a word that says why."""

import asyncio
import io
import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, tool
from treadle.journal import (
    Journal,
    JournalConflict,
    JournalDamaged,
    JournalUnavailable,
    MemoryJournal,
    NotImported,
    SqliteJournal,
    UnknownRun,
    export_runs,
    import_runs,
)
from treadle.journal.chain import beginning, link
from treadle.journal.lines import TOGETHER
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, NudgeGiven, Parent, RunForked, RunStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]


async def exported(journal: Journal, run_ids: Iterable[str] | None = None) -> bytes:
    return b"".join([line async for line in export_runs(journal, run_ids)])


async def filled(journal: Journal, started: Started, finished: Event) -> None:
    """A run, one that works for it, one that works for that, and another one."""
    await journal.append("top", 0, [started("top", at=1.0), NudgeGiven(text="ä\u2028" * 9000)])
    await journal.append("top.0.c", 0, [started("top.0.c", at=2.0, parent=Parent("top", 0, "c")), finished])
    await journal.append("top.0.c.1.d", 0, [started("top.0.c.1.d", at=3.0, parent=Parent("top.0.c", 1, "d"))])
    await journal.append("top.other", 0, [started("top.other", at=4.0)])


async def content(journal: Journal) -> dict[str, list[Event]]:
    return {line.run_id: await journal.read(line.run_id) for line in await journal.list(999)}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_every_run_goes_over_whole_into_each_kind_of_journal(
    journal: Journal, started: Started, finished: Event, kind: str, tmp_path: Path
) -> None:
    await filled(journal, started, finished)
    other: Journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "other.db")
    file = io.BytesIO(await exported(journal))
    assert await import_runs(other, file) == ["top", "top.0.c", "top.0.c.1.d", "top.other"]
    assert await content(other) == await content(journal)
    assert await other.list() == await journal.list()
    assert await exported(other) == file.getvalue()
    await other.close()


async def test_a_run_is_exported_with_those_that_work_for_it_and_no_other(
    journal: Journal, started: Started, finished: Event
) -> None:
    await filled(journal, started, finished)

    async def runs(*run_ids: str) -> list[str]:
        rows = [json.loads(row) for row in (await exported(journal, run_ids)).decode().split("\n")[:-1]]
        assert rows[0] == {"treadle_runs": 1}
        assert rows[-1] == {"runs": len(rows) - 2 - sum("event" in row for row in rows)}
        return [row["run_id"] for row in rows if "hash" in row]

    assert await runs("top") == ["top", "top.0.c", "top.0.c.1.d"]
    assert await runs("top.0.c", "top.other", "top.0.c") == ["top.0.c", "top.0.c.1.d", "top.other"]
    with pytest.raises(UnknownRun):
        await runs("top.0")


async def test_runs_of_agents_below_go_along(journal: Journal) -> None:
    @tool(effect="write", needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    below = Agent(ScriptedModel([[("pay", {"amount": 5})], "I paid."]), name="below", tools=[pay])
    turns: list[Any] = [[("below", {"task": "pay"})], "It is paid."]
    above = Agent(ScriptedModel(turns), tools=[below.as_tool()], journal=journal)
    waiting = await above.run("Pay.")
    other = MemoryJournal()
    await import_runs(other, io.BytesIO(await exported(journal, [waiting.run_id])))
    assert len(await other.list()) == 2
    result = await above.with_journal(other).resume(waiting.run_id, approve=[waiting.pending[0].call_id])
    assert result.text == "It is paid."


async def test_a_fork_goes_over_whole_with_its_source_or_without(
    journal: Journal, started: Started, note: Callable[[str], Event]
) -> None:
    await journal.append("a", 0, [started("a"), note("x" * 9000), note("y")])
    await journal.fork("a", 2, "b", [RunForked("b", at=5.0), note("z")])
    await journal.fork("b", 3, "c", [RunForked("c", at=6.0)])
    for run_ids in (["a", "b", "c"], ["c", "b"], ["c"]):
        target = MemoryJournal()
        assert await import_runs(target, io.BytesIO(await exported(journal, run_ids))) == run_ids
        lines = {line.run_id: line for line in await journal.list()}
        assert await target.list() == [lines[run_id] for run_id in sorted(run_ids, reverse=True)]
        for run_id in run_ids:
            assert await target.read(run_id) == await journal.read(run_id)


def changed(data: bytes, number: int, row: bytes | None) -> bytes:
    rows = data.split(b"\n")
    rows[number : number + 1] = [] if row is None else row.split(b"\n")
    return b"\n".join(rows)


def sealed(data: bytes, old: bytes, new: bytes) -> bytes:
    """With other words in the events of its runs, and the hashes that a later treadle gives them."""
    rows: list[bytes] = []
    head = b""
    for row in data.replace(old, new).splitlines():
        line = json.loads(row)
        if line.get("seq") == 0:
            head = beginning(line["run_id"])
        if "event" in line:
            body = row[row.index(b'"event":') + len(b'"event":') : -1]
            head = link(head, line["event"]["at"], body)
        elif "hash" in line:
            row = row.replace(line["hash"].encode(), head.hex().encode())
        rows.append(row + b"\n")
    return b"".join(rows)


HARMS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "it is no export of runs"),
    "another file": (lambda data: b"\x89PNG\r\n" + data, "it is no export of runs"),
    "a list": (lambda data: b"[1]\n", "it is no export of runs"),
    "no version of the form": (
        lambda data: changed(data, 0, b'{"treadle_runs":0}'),
        "no export of runs: there is no version 0",
    ),
    "a form in words": (
        lambda data: changed(data, 0, b'{"treadle_runs":"1"}'),
        "no export of runs: there is no version '1'",
    ),
    "a later form": (lambda data: changed(data, 0, b'{"treadle_runs":2}'), "by a later treadle .version 2 .*update"),
    "a word": (lambda data: data.replace(b"why?", b"how?"), "line 4: run 'a' was altered"),
    "a time": (lambda data: data.replace(b'"at":2.0', b'"at":2.5'), "line 4: run 'a' was altered"),
    "an event is gone": (lambda data: changed(data, 1, None), "line 2: event 0 of run 'a' is missing"),
    "the last event is gone": (lambda data: changed(data, 2, None), "line 3: events of run 'a' are missing"),
    "an end is gone": (lambda data: changed(data, 3, None), "line 4: event 2 of run 'a' is missing"),
    "a run is gone": (lambda data: changed(changed(data, 4, None), 4, None), "line 5: runs are missing before it"),
    "the end is gone": (lambda data: changed(data, 6, None), "line 7: it is missing: the export was cut off"),
    "cut off in a line": (lambda data: data[: len(data) // 2], "line 4: it is no line of an export"),
    "twice": (
        lambda data: changed(data, 6, b"\n".join(data.split(b"\n")[4:6]) + b'\n{"runs":3}'),
        "'b' is there twice",
    ),
    "more behind it": (lambda data: data + data, "line 8: it comes after the end"),
    "an unknown field": (lambda data: changed(data, 3, b'{"run_id":"a","evens":2}'), "line 4: it is no line"),
    "no run": (lambda data: changed(data, 3, b"{}"), "line 4: it is no line"),
    "a later event": (
        lambda data: data.replace(b'"event":"nudge_given"', b'"event":"nudge_taken"'),
        "line 3: its event cannot be read: .*later treadle",
    ),
    "a later field": (
        lambda data: sealed(data, b'"event":"nudge_given"', b'"event":"nudge_given","louder":true'),
        "line 3: its event has the field 'louder', which would be lost: a later treadle",
    ),
    "a later field below": (
        lambda data: sealed(data, b'"role":"user"', b'"role":"user","tone":"kind"'),
        "line 2: its event has the field 'tone', which would be lost: a later treadle",
    ),
    "a later format": (
        lambda data: data.replace(b'"format":1', b'"format":9'),
        "line 2: its event cannot be read: it has form 9, this treadle knows 1",
    ),
}


@pytest.mark.parametrize("harm", HARMS)
async def test_what_is_not_as_it_was_exported_is_refused_and_nothing_is_written(
    journal: Journal, started: Started, note: Callable[[str], Event], harm: str
) -> None:
    source = MemoryJournal()
    await source.append("a", 0, [started("a"), note("x")])
    await source.append("b", 0, [started("b")])
    harmed, why = HARMS[harm]
    with pytest.raises(NotImported, match=f"^nothing was imported: .*{why}"):
        await import_runs(journal, io.BytesIO(harmed(await exported(source, ["a", "b"]))))
    assert await journal.list() == []


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device that never ends")
def test_what_never_ends_is_no_export() -> None:
    with Path("/dev/zero").open("rb") as file, pytest.raises(NotImported, match="its first line does not say so"):
        asyncio.run(import_runs(MemoryJournal(), file))


class Pipe(io.BytesIO):
    """What cannot go back."""

    def seekable(self) -> bool:
        return False


def closed(data: bytes) -> io.BytesIO:
    file = io.BytesIO(data)
    file.close()
    return file


@pytest.mark.parametrize("kind", [list, bytes, str, iter, Path, Pipe, closed, type(None)])
async def test_what_is_no_open_file_is_refused_in_words(
    journal: Journal, started: Started, finished: Event, kind: Callable[[Any], Any]
) -> None:
    await filled(journal, started, finished)
    data = await exported(journal)
    given: Any = {str: str(data), Path: Path("runs.jsonl"), list: [data], iter: iter([data]), type(None): None}
    file = given[kind] if kind in given else kind(data)
    other = MemoryJournal()
    with pytest.raises(Misuse, match=r"takes a file that is open for reading and can go back.* and not this ") as told:
        await import_runs(other, file)
    assert "run_started" not in str(told.value)
    assert await other.list() == []


async def test_one_id_in_the_place_of_a_list_of_them_is_refused_in_words(journal: Journal) -> None:
    with pytest.raises(Misuse, match=r"takes a list of ids, such as \['top'\]"):
        await exported(journal, "top")


async def test_an_event_under_the_name_of_another_run_is_refused(journal: Journal, started: Started) -> None:
    source = MemoryJournal()
    await source.append("a", 0, [started("a")])
    harmed = (await exported(source)).replace(b'"run_id":"a","seq"', b'"run_id":"b","seq"')
    with pytest.raises(NotImported, match="events of run 'a' are missing"):
        await import_runs(journal, io.BytesIO(harmed))


async def test_a_run_that_is_there_already_is_refused_and_left_as_it_is(
    journal: Journal, started: Started, finished: Event, note: Callable[[str], Event]
) -> None:
    source = MemoryJournal()
    await filled(source, started, finished)
    await journal.append("top.other", 0, [started("top.other"), note("mine")])
    before = await content(journal)
    with pytest.raises(NotImported, match=r"there is another run 'top\.other' in the journal already; delete"):
        await import_runs(journal, io.BytesIO(await exported(source)))
    assert await content(journal) == before


async def test_an_import_that_was_killed_is_made_again(journal: Journal, started: Started, finished: Event) -> None:
    source = MemoryJournal()
    await filled(source, started, finished)
    lines = await exported(source)
    first = next(line.run_id for line in await source.list() if line.parent is None)
    await journal.append(first, 0, await source.read(first))
    assert first not in await import_runs(journal, io.BytesIO(lines))
    assert await content(journal) == await content(source)
    assert await import_runs(journal, io.BytesIO(lines)) == []


class Failing(MemoryJournal):
    """A journal in which one run cannot be written: somebody else begins it first, or the disk is full."""

    def __init__(self, bad: str, first: Event | None) -> None:
        super().__init__()
        self.bad, self.first = bad, first

    async def append(self, run_id: str, seq: int, events: Any) -> None:
        if run_id == self.bad:
            if self.first is None:
                raise JournalUnavailable("the disk is full")
            await super().append(run_id, 0, [self.first])
        await super().append(run_id, seq, events)


@pytest.mark.parametrize("taken", [True, False])
async def test_if_one_cannot_be_written_none_is_left(started: Started, taken: bool) -> None:
    source, bad = MemoryJournal(), f"run-{TOGETHER + 3}"
    for number in range(2 * TOGETHER):
        await source.append(f"run-{number}", 0, [started(f"run-{number}", at=float(number))])
    target = Failing(bad, started(bad, question="mine") if taken else None)
    with pytest.raises(JournalConflict if taken else JournalUnavailable):
        await import_runs(target, io.BytesIO(await exported(source)))
    assert [line.question for line in await target.list()] == (["mine"] if taken else [])


async def test_a_damaged_run_is_named_and_left_out_if_one_says_so(
    path: Path, started: Started, finished: Event
) -> None:
    async with SqliteJournal(path) as journal:
        await filled(journal, started, finished)
        other = sqlite3.connect(path)
        other.execute("UPDATE events SET body = '{' WHERE run_id = 'top.0.c' AND seq = 0")
        other.commit()
        other.close()
        with pytest.raises(JournalDamaged):
            await exported(journal)
        seen: list[str] = []
        lines = export_runs(journal, on_damage=lambda error: seen.append(error.damage[0].run_id))
        target = MemoryJournal()
        await import_runs(target, io.BytesIO(b"".join([line async for line in lines])))
        assert seen == ["top.0.c"]
        assert sorted(await content(target)) == ["top", "top.0.c.1.d", "top.other"]


async def test_a_journal_that_cannot_be_read_gives_out_no_line(tmp_path: Path) -> None:
    (tmp_path / "j.db").write_text("this is no journal\n" * 1000, encoding="utf-8")
    async with SqliteJournal(tmp_path / "j.db") as journal:
        lines = export_runs(journal)
        with pytest.raises(JournalUnavailable, match="no SQLite database"):
            await anext(lines)
