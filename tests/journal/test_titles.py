"""Every journal here lists runs by whose they are and by conversation, and keeps titles, apart by user."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from treadle import Agent, Conversation, MemoryJournal, PostgresJournal, SqliteJournal
from treadle.journal import Titles, Wanted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def journal(request: pytest.FixtureRequest, tmp_path: Any) -> AsyncIterator[Any]:
    if request.param == "memory":
        kept: Any = MemoryJournal()
    elif request.param == "sqlite":
        kept = SqliteJournal(tmp_path / "runs.db")
    else:
        server = request.getfixturevalue("server")
        kept = PostgresJournal(server.dsn(), schema="titles")
    async with kept:
        yield kept


async def test_titles_are_kept_apart_by_user(journal: Any) -> None:
    assert isinstance(journal, Titles)
    assert await journal.titles("ada", ["c", "d"]) == {}
    await journal.entitle("ada", "c", None)
    await journal.entitle("ada", "c", "Plans")
    await journal.entitle("bob", "c", "x" * 500)
    await journal.entitle("ada", "c", "New “plans”")
    assert await journal.titles("ada", ["c", "d"]) == {"c": "New “plans”"}
    assert await journal.titles("bob", ["c"]) == {"c": "x" * 200}
    await journal.entitle("ada", "c", None)
    assert await journal.titles("ada", ["c"]) == {}
    assert await journal.titles("bob", ["c"]) == {"c": "x" * 200}


async def test_runs_are_found_by_whose_they_are_and_by_conversation(journal: Any) -> None:
    below = Agent(ScriptedModel(lambda _: "below"), name="below")
    agent = Agent(
        ScriptedModel(lambda r: "done" if r.messages[-1].role == "tool" else [("below", {"task": "x"})]),
        tools=[below.as_tool()], journal=journal,
    )  # fmt: skip
    runs = {}
    for user, name in (("ada", "c"), ("ada", 'd"'), ('bo"b', "c"), ("ada\\", "c"), (None, "c")):
        talk = Conversation(name=name)
        runs[user, name] = (await agent.run("go", conversation=talk, user=user)).run_id
    for wanted, expected in (
        (Wanted(user="ada", top=True), [runs["ada", "c"], runs["ada", 'd"']]),
        (Wanted(user='bo"b', top=True), [runs['bo"b', "c"]]),
        (Wanted(user="ad", top=True), []),
        (Wanted(user="ada", conversation="c", top=True), [runs["ada", "c"]]),
        (Wanted(user="", top=True), [runs[None, "c"]]),
        (Wanted(conversation="c"), [run for (_, name), run in runs.items() if name == "c"]),
        (Wanted(user="ada", conversation='d"'), [runs["ada", 'd"']]),
    ):
        found = [line.run_id for line in await journal.list(50, None, wanted)]
        assert sorted(found) == sorted(expected), wanted
    (line, *_) = await journal.list(50, None, Wanted(user="ada", conversation="c", top=True))
    assert (line.user, line.conversation, line.origin) == ("ada", "c", "")
    under = [one for one in await journal.list(50, None, Wanted(user="ada")) if one.parent is not None]
    assert {(one.user, one.conversation) for one in under} == {("ada", "")}
    fork = await agent.fork(runs["ada", "c"], at=0, message="again")
    (line,) = [one for one in await journal.list(50) if one.run_id == fork.run_id]
    assert (line.user, line.conversation) == ("ada", "")
