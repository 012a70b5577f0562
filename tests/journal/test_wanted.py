"""Lists of the runs that are wanted: every journal gives the same, and the index knows what a list tells."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, Price, tool
from treadle.journal import Journal, RunInfo, SqliteJournal, Wanted
from treadle.journal.conformance.wanting import fill, ids
from treadle.kernel.events import (
    Event,
    RunPaused,
    RunStarted,
)
from treadle.kernel.messages import Usage
from treadle.kernel.stop import stopped
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]


async def test_whatever_is_wanted_sqlite_and_a_look_at_every_line_agree(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        for number in range(30):
            run_id, more = f"run-{number}", {"agent": f"a{number % 3}", "model": f"m{number % 2}"}
            end: list[Event] = [RunPaused(stop=stopped("waiting"))] if number % 5 == 0 else []
            first = started(run_id, at=float(number // 2), question=f"Question {number % 7}", **more)
            await journal.append(run_id, 0, [first, *end])
        lines = await journal.list(100)
        choices = product((None, "waiting", "running"), (None, "a1"), (None, "m0"), ("", "N 3"), (None, 5.0))
        for status, agent, model, text, since in choices:
            wanted = Wanted(status=status, agent=agent, model=model, text=text, since=since)  # type: ignore[arg-type]
            assert await journal.list(100, None, wanted) == [line for line in lines if wanted.fits(line)]


async def test_a_line_says_what_the_run_s_result_says(journal: Journal) -> None:
    @tool
    async def look(n: int) -> str:
        """Look."""
        return str(n)

    turns: list[Any] = [[("look", {"n": 1}), ("look", {"n": 2})], "It is 3."]
    model = ScriptedModel(turns, usage=Usage(100, 10), price=Price(1, 2))
    result = await Agent(model, tools=[look], journal=journal).run("What is it?")
    (line,) = await journal.list()
    assert (line.tool_calls, line.steps, line.usage, line.cost) == (2, 2, result.usage, result.cost)


@pytest.fixture
def alter(path: Path) -> Callable[[str], None]:
    def change(statement: str) -> None:
        with closing(sqlite3.connect(path)) as other:
            assert other.execute(statement).rowcount == 1
            other.commit()

    return change


async def test_damaged_runs_are_found_by_a_look_at_each(
    path: Path, started: Started, finished: Event, alter: Callable[[str], None]
) -> None:
    async with SqliteJournal(path) as journal:
        await fill(journal)
        alter("UPDATE events SET body = '{' WHERE run_id = 'a' AND seq = 1")
        assert await ids(journal, Wanted(status="damaged")) == "a"
        assert await ids(journal, Wanted(status="damaged", agent="boss")) == ""
        assert await ids(journal, Wanted(status="finished")) == "d"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET agent = 'boss' WHERE run_id = 'a'",
        "UPDATE runs SET searched = '' WHERE run_id = 'a'",
        "UPDATE runs SET status = 'waiting' WHERE run_id = 'a'",
    ],
)
async def test_what_is_looked_for_is_held_against_the_line_and_put_right_by_check(
    path: Path, started: Started, finished: Event, alter: Callable[[str], None], statement: str
) -> None:
    async def found(journal: SqliteJournal) -> list[list[RunInfo]]:
        asked = (Wanted(agent="boss"), Wanted(agent="clerk"), Wanted(text="gadget"), Wanted(status="waiting"))
        return [await journal.list(wanted=one) for one in asked]

    async with SqliteJournal(path) as journal:
        await fill(journal)
        before = await found(journal)
        alter(statement)
        for now, was in zip(await found(journal), before, strict=True):
            assert [line for line in now if line not in was] == []
        await journal.check()
        assert await found(journal) == before
