"""A list is narrowed by how runs stand, in the words of a server's list, and each run stands in one way."""

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import Any, get_args

import httpx2
import pytest

from treadle import Agent, Limits, external_tool
from treadle.journal import SqliteJournal
from treadle.journal.standing import Standing
from treadle.kernel.events import FORMAT, RunStarted
from treadle.models.errors import BadRequest
from treadle.serve import app
from treadle.testing import ScriptedModel

BOSS = external_tool("boss", "Asks the boss.", wait=True)
CALLS = [("boss", {})]


async def hangs(request: Any) -> str:
    await asyncio.sleep(60)
    return "never"


async def made(journal: SqliteJournal) -> dict[str, str]:
    """A run that stands in each way, by the word for it; two that were stopped, with others between them."""

    async def run(*turns: Any, **options: Any) -> str:
        agent = Agent(ScriptedModel(list(turns)), name="a", journal=journal, tools=[BOSS], **options)
        return (await agent.run("go")).run_id

    stopped = await run(CALLS, on_limit="stop", limits=Limits(tool_calls=0))
    async with Agent(ScriptedModel(hangs), name="a", journal=journal).stream("go") as under_way:
        cancelled = (await under_way.cancel()).run_id
    found = {
        "stopped": stopped,
        "cancelled": cancelled,
        "failed": await run(BadRequest("no")),
        "waiting": await run(CALLS),
        "finished": await run("done"),
        "damaged": await run("done"),
        "running": "left",
    }
    await journal.append("left", 0, [RunStarted(at=1.0, run_id="left", messages=(), format=FORMAT)])
    return found


async def served(journal: SqliteJournal, word: str) -> list[str]:
    """What a server's list has."""
    transport = httpx2.ASGITransport(app([Agent(ScriptedModel([]), name="a")], journal=journal))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return [one["id"] for one in (await client.get("/api/runs", params={"status": word})).json()["runs"]]


@pytest.fixture
def runs(treadle: Any) -> dict[str, str]:
    async def write() -> dict[str, str]:
        async with SqliteJournal(treadle.journal) as journal:
            return await made(journal)

    treadle.journal.parent.mkdir(parents=True)
    found = asyncio.run(write())
    with closing(sqlite3.connect(treadle.journal)) as connection:
        connection.execute("UPDATE events SET body = '{' WHERE run_id = ? AND seq = 0", (found["damaged"],))
        connection.commit()
    return found


def test_each_word_of_the_servers_list_narrows_that_of_the_command_line(treadle: Any, runs: dict[str, str]) -> None:
    assert set(runs) == {*get_args(Standing)}
    for word, run_id in runs.items():
        listed = json.loads(treadle("runs", "--json", "--status", word).out)
        assert [(one["run_id"], one["status"]) for one in listed] == [(run_id, word)]

    async def ask() -> dict[str, list[str]]:
        async with SqliteJournal(treadle.journal) as journal:
            return {word: await served(journal, word) for word in runs}

    assert asyncio.run(ask()) == {word: [run_id] for word, run_id in runs.items()}


def test_a_list_of_few_is_filled_from_behind_those_that_stand_otherwise(treadle: Any, runs: dict[str, str]) -> None:
    one = treadle("runs", "--status", "stopped", "--limit", "1")
    assert (one.code, runs["stopped"] in one.out, len(one.out.splitlines())) == (0, True, 2)
    # This one is damaged, and took a place in the list of those that had finished.
    first = treadle("runs", "--status", "finished", "--limit", "1")
    assert runs["finished"] in first.out
    assert "no such runs" in treadle("runs", "--status", "failed", "--search", "other").err
    assert "--stuck looks at all runs" in treadle("runs", "--stuck", "--status", "failed").err


def test_prune_takes_all_that_have_ended_or_those_that_ended_so(treadle: Any, runs: dict[str, str]) -> None:
    def would_go(*options: str) -> set[str]:
        return {*treadle("runs", "prune", "--older-than", "0s", "--dry-run", *options).out.split()}

    ended = {runs[word] for word in ("finished", "stopped", "failed", "cancelled")}
    assert would_go() == ended
    assert would_go("--status", "failed", "--status", "cancelled") == {runs["failed"], runs["cancelled"]}
    assert would_go("--status", "running") == {"left"}
    assert would_go("--status", "damaged") == {runs["damaged"]}
