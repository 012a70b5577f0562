"""Further claims of the pages that no other test shows by itself; `claims.toml` says which."""

import asyncio
import io
import json
import logging
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, Conversation, Limits, MemoryJournal, Misuse, SqliteJournal, ToolContext, tool
from treadle.cli import app
from treadle.kernel.decide import PrepareStep
from treadle.kernel.events import Event, RunFinished
from treadle.models import AssistantMessage, ModelReply, Text, TextDelta, Usage
from treadle.testing import ScriptedModel
from treadle.tools.builtin import memory_skill


@tool(effect="read")
def look(page: int, context: ToolContext) -> str:
    """Looks at a page of a book."""
    context.report("half of it")
    return f"page {page} is empty"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for commands, which is their home too."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("TREADLE_FORBID_MODELS", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_named_skill_brings_its_own_tools_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["tools", "--skill", "inventory", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == [
        "check_stock",
        "get_price",
        "calculate_total",
    ]


def test_a_chat_is_saved_after_every_answer(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []

    def save(self: Conversation, path: Any) -> None:
        saved.append(len(self.messages))

    monkeypatch.setattr(Conversation, "save", save)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 + 1\n2 + 2\n")))
    app.run(["chat", "--model", "offline", "--save", "talk.json"])
    assert len(saved) >= 2
    assert saved == sorted(set(saved))


def test_by_nothing_compares_the_totals_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["fi_reporting", "consolidation_mart", "--where", "company=1001", "--where", "period=202401"]
    assert app.run(["compare", *where, "--by", "", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dimensions"] == []
    assert len(found["top_differences"]) <= 1


def test_rows_are_compared_in_the_columns_that_are_named_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rows in (("a", "1,x,5\n2,y,6\n"), ("b", "1,x,7\n2,z,6\n")):
        (here / f"{name}.csv").write_text(f"id,word,amount\n{rows}", "utf-8")
    declared = "".join(
        f"  {name}:\n    kind: csv\n    path: {name}.csv\n    dimensions: {{id: {{}}, word: {{}}}}\n"
        "    measures: {amount: {aggregation: sum}}\n"
        for name in ("a", "b")
    )
    (here / "s.yaml").write_text(f"sources:\n{declared}", "utf-8")
    app.run(["rows", "a", "b", "--key", "id", "--columns", "word", "--sources", "s.yaml", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert ([one["column"] for one in said["columns"]], said["not_compared"]) == (["word"], ["amount"])


def test_the_doctor_looks_at_every_event_of_the_journal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> str:
        async with SqliteJournal(here / "runs.db") as journal:
            agent = Agent(ScriptedModel([[("look", {"page": 1})], "Empty."]), tools=[look], journal=journal)
            return (await agent.run("What is there?")).run_id

    asyncio.run(run())
    assert app.run(["doctor", "--journal", "runs.db"]) == 0
    with closing(sqlite3.connect(here / "runs.db", isolation_level=None)) as file:
        (last,) = file.execute("SELECT max(seq) FROM events").fetchone()
        (body,) = file.execute("SELECT body FROM events WHERE seq = ?", (last // 2,)).fetchone()
        changed = body.replace("1", "2") if isinstance(body, str) else body.replace(b"1", b"2")
        file.execute("UPDATE events SET body = ? WHERE seq = ?", (changed, last // 2))
    capsys.readouterr()
    assert app.run(["doctor", "--journal", "runs.db"]) == 2
    assert "bad" in capsys.readouterr().out


def test_every_run_has_limits() -> None:
    limits = Agent(ScriptedModel(["Yes."])).limits
    assert (limits.steps, limits.tool_calls, limits.seconds) == (20, 100, 300)
    result = Agent(ScriptedModel(["Yes."])).run_sync("Well?")
    assert result.limits == limits == Limits()


def test_by_hand_the_deadline_is_looked_at_before_each_step() -> None:
    async def run() -> None:
        clock = [0.0]

        @tool(effect="read")
        def slow(page: int) -> str:
            """Looks at a page for a long time."""
            clock[0] += 400.0
            return "nothing"

        agent = Agent(ScriptedModel([[("slow", {"page": 1})], "never"]), tools=[slow], on_limit="stop")
        by_hand = agent.start("What is there?")
        by_hand.clock = type("Later", (type(by_hand.clock),), {"now": lambda self: 1_800_000_000.0 + clock[0]})()
        made: list[str] = []
        while command := await by_hand.judged():
            made.append(type(command).__name__)
            if isinstance(command, PrepareStep):
                by_hand.feed(by_hand.prepare(command))
            elif made[-1] == "CallModel":
                async for event in agent.model.stream(by_hand.request()):
                    reply = event
                assert isinstance(reply, ModelReply)
                by_hand.feed(reply)
            elif made[-1] == "RunTools":
                for record in command.records:
                    await by_hand.call_tool(record)
            else:
                by_hand.feed(command.event())
        assert made == ["PrepareStep", "CallModel", "RunTools", "Finish"]
        result = by_hand.result
        assert (result.stop.reason, result.tool_calls_made[0].result.text) == ("deadline", "nothing")

    asyncio.run(run())


def test_what_is_recalled_is_a_result_and_not_in_the_system_prompt(tmp_path: Path) -> None:
    skill = memory_skill(tmp_path / "notes.db", owner="ada")
    Agent(ScriptedModel([[("remember", {"text": "Ada likes tea"})], "Noted."]), skills=[skill]).run_sync("I like tea.")
    model = ScriptedModel([[("recall", {"query": "tea"})], "Tea."])
    Agent(model, skills=[skill], instructions="Be kind.").run_sync("What do I like?")
    first, second = model.requests
    assert "Ada likes tea" not in str(first)
    assert [message.role for message in second.messages if "Ada likes tea" in str(message)] == ["tool"]
    assert "not instructions" in second.messages[-1].text


def test_what_is_shown_only_is_in_no_journal() -> None:
    async def run() -> None:
        journal = MemoryJournal()
        agent = Agent(ScriptedModel([[("look", {"page": 1})], "Empty."], chunk=2), tools=[look], journal=journal)
        async with agent.stream("What is there?") as live:
            seen = [event async for event in live]
        kept = await journal.read(live.result.run_id)
        assert {"TextDelta", "ToolProgress", "StepCompleted"} <= {type(event).__name__ for event in seen}
        assert [event for event in seen if isinstance(event, Event)] == list(kept)
        assert isinstance(kept[-1], RunFinished)

    asyncio.run(run())


def test_what_a_run_says_stands_in_no_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="treadle"):
        Agent(ScriptedModel([("secret words", [("look", {"page": 17})]), "a secret answer"]), tools=[look]).run_sync(
            "a secret question"
        )
    assert len(caplog.records) > 5
    assert "secret" not in caplog.text
    assert "is empty" not in caplog.text


class Odd:
    """A model that gives pieces, its reply, and more after it."""

    name = "odd"

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        yield TextDelta("something else")
        if self._error is not None:
            raise self._error
        yield ModelReply(AssistantMessage((Text("what counts"),)), Usage(1, 1), "stop")
        yield TextDelta("too late")


def test_of_a_model_of_ones_own_the_reply_alone_counts() -> None:
    assert Agent(Odd()).run_sync("Well?").text == "what counts"


def test_a_misuse_in_a_model_is_raised_as_it_is() -> None:
    with pytest.raises(Misuse, match="not like this"):
        Agent(Odd(Misuse("not like this"))).run_sync("Well?")
    result = Agent(Odd(RuntimeError("the server is gone")), retries=0).run_sync("Well?")
    assert result.stop.reason == "model_error"
