"""Lists of the runs that are wanted: every journal gives the same, and the index knows what a list tells."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, Price, tool
from treadle.journal import Journal, RunInfo, SqliteJournal, Wanted
from treadle.kernel.accounts import Spent
from treadle.kernel.events import (
    ContextEdited,
    ErrorInfo,
    Event,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolReacted,
)
from treadle.kernel.messages import AssistantMessage, ToolCall, Usage
from treadle.kernel.stop import stopped
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]

QUESTIONS = {
    "a": "How many Gadgets?",
    "b": "WIE GROẞ IST ÄRGER?",
    "c": "100%_of 'it'",
    "d": "",
    "e": "how many gadgets?",
}


async def fill(journal: Journal, started: Started, finished: Event) -> None:
    ends: dict[str, list[Event]] = {"a": [finished], "b": [RunPaused(stop=stopped("waiting"))], "d": [finished]}
    for at, (run_id, question) in enumerate(QUESTIONS.items()):
        more = {"agent": "clerk" if run_id in "abe" else "boss", "model": "small" if run_id in "ac" else "large"}
        first = started(run_id, at=float(at), question=question, **more)
        await journal.append(run_id, 0, [first, *ends.get(run_id, [])])


async def ids(journal: Journal, wanted: Wanted) -> str:
    return "".join(line.run_id for line in await journal.list(wanted=wanted))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), "edcba"),
        (Wanted(status="finished"), "da"),
        (Wanted(status="waiting"), "b"),
        (Wanted(status="running"), "ec"),
        (Wanted(status="damaged"), ""),
        (Wanted(agent="clerk"), "eba"),
        (Wanted(agent="cler"), ""),
        (Wanted(agent=""), ""),
        (Wanted(model="large"), "edb"),
        (Wanted(agent="clerk", model="large"), "eb"),
        (Wanted(agent="clerk", model="large", status="running"), "e"),
        (Wanted(text="gadget"), "ea"),
        (Wanted(text="GADGET", status="finished"), "a"),
        (Wanted(text="groß"), "b"),
        (Wanted(text="ärger"), "b"),
        (Wanted(text="%"), "c"),
        (Wanted(text="_"), "c"),
        (Wanted(text="'it'"), "c"),
        (Wanted(text="B"), "b"),
        (Wanted(text="\udcff"), ""),
        (Wanted(agent="\udcff"), ""),
        (Wanted(since=1.0, until=3.0), "cb"),
        (Wanted(since=4.0), "e"),
        (Wanted(until=0.0), ""),
    ],
)
async def test_a_list_has_what_fits_all_that_was_given(
    journal: Journal, started: Started, finished: Event, wanted: Wanted, found: str
) -> None:
    await fill(journal, started, finished)
    assert await ids(journal, wanted) == found


async def test_pages_of_a_list_go_on_where_the_last_one_ended(
    journal: Journal, started: Started, finished: Event
) -> None:
    await fill(journal, started, finished)
    wanted, pages, before = Wanted(agent="clerk"), [], None
    while page := await journal.list(2, before, wanted):
        pages.append([line.run_id for line in page])
        before = page[-1]
    assert pages == [["e", "b"], ["a"]]


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


def replied(cost: Decimal | None, *calls: str, tokens: int = 10) -> ModelReplied:
    said = AssistantMessage(tuple(ToolCall(call, "t") for call in calls))
    return ModelReplied(at=2.0, step=0, message=said, usage=Usage(tokens, 0), cost=cost)


PRICED = Decimal("0.1")
COUNTED: dict[str, tuple[list[Event], int, int, Decimal | None]] = {
    "nothing": ([], 0, 0, Decimal(0)),
    "replies": ([replied(PRICED, "a", "b"), replied(PRICED)], 2, 20, Decimal("0.2")),
    "unknown": ([replied(PRICED), replied(None), replied(PRICED)], 0, 30, None),
    "no tokens": ([replied(None, tokens=0)], 0, 0, Decimal(0)),
    "a call again": ([ToolReacted(step=0, call_id="a", action="call", call=ToolCall("a", "t"))], 1, 0, Decimal(0)),
    "a kept result": ([ToolReacted(step=0, call_id="a", action="keep")], 0, 0, Decimal(0)),
    "failed": ([ModelFailed(step=0, error=ErrorInfo("k", "m"), usage=Usage(3, 4), cost=PRICED)], 0, 7, PRICED),
    "failed, unpaid": ([ModelFailed(step=0, error=ErrorInfo("k", "m"))], 0, 0, Decimal(0)),
    "a summary": (
        [ContextEdited(policy="p", start=0, stop=0, messages=(), usage=Usage(5, 5), cost=PRICED)],
        0,
        10,
        PRICED,
    ),
    "lost": ([RunResumed(lost=Spent(usage=Usage(1, 1), cost=PRICED)), RunResumed()], 0, 2, PRICED),
    "lost, unknown": ([RunResumed(lost=Spent(usage=Usage(1, 1)))], 0, 2, None),
}


@pytest.mark.parametrize("what", COUNTED)
async def test_a_line_says_what_a_run_has_taken(journal: Journal, started: Started, what: str) -> None:
    events, calls, tokens, cost = COUNTED[what]
    for seq, event in enumerate([started(), *events]):
        await journal.append("r", seq, [event])
    (line,) = await journal.list()
    assert (line.tool_calls, line.usage.total_tokens, line.cost) == (calls, tokens, cost)


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
        await fill(journal, started, finished)
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
        await fill(journal, started, finished)
        before = await found(journal)
        alter(statement)
        for now, was in zip(await found(journal), before, strict=True):
            assert [line for line in now if line not in was] == []
        await journal.check()
        assert await found(journal) == before


async def test_a_run_that_goes_on_is_found_by_its_new_status(journal: Journal, started: Started) -> None:
    await journal.append("r", 0, [started()])
    for seq, event in enumerate([RunPaused(stop=stopped("waiting")), RunResumed(), NudgeGiven(text="x")], 1):
        await journal.append("r", seq, [event])
        expected = "waiting" if seq == 1 else "running"
        for status in ("running", "waiting", "finished"):
            assert (await ids(journal, Wanted(status=status)) == "r") is (status == expected)
