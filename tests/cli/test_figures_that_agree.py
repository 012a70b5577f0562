"""What `show`, `stats`, the log and JSON tell of one run is the same, and follows from its events."""

import asyncio
import json
import logging
import re
from decimal import Decimal

import msgspec
import pytest

from treadle import Agent, Price, Retries, SqliteJournal, Usage, ask_before, statistics, tool
from treadle.models import Overloaded
from treadle.testing import ScriptedModel

WEEK = 7 * 86_400


@tool(effect="read")
def look(what: str) -> str:
    """Looks at something, and says what was seen."""
    return f"saw {what}"


@tool
def put(what: str) -> str:
    """Puts something where it belongs."""
    return f"put {what}"


def scripted(turns, name):
    return ScriptedModel(turns, name=name, usage=Usage(100, 10), price=Price(1, 2))


@pytest.fixture
def busy(tmp_path, caplog):
    """A run whose first attempt failed, and was waited for; its journal, and what was logged of it."""

    async def main():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            model = scripted([Overloaded("busy", retry_after=0.3), "done"], "small")
            return await Agent(model, journal=journal, retries=Retries(attempts=2)).run("go")

    with caplog.at_level(logging.INFO, logger="treadle"):
        result = asyncio.run(main())
    return tmp_path / "runs.db", result, [one.getMessage() for one in caplog.records]


def of_the_reply(events):
    """The seconds that the reply took, by its events."""
    kinds = {type(event).__name__: event for event in events}
    failed = kinds["ModelFailed"]
    return max(0.0, kinds["ModelReplied"].at - failed.at - failed.retry_in)


def test_what_a_reply_took_has_no_failed_attempt_and_no_wait_in_it(busy, treadle):
    path, result, logged = busy
    took = of_the_reply(result.events)

    async def told():
        async with SqliteJournal(path) as journal:
            return await statistics(journal)

    (group,) = asyncio.run(told()).by_model
    (logged,) = [float(found[1]) for line in logged if (found := re.search(r"replied in (\S+) s", line))]
    shown = re.search(
        r"^  think .*; (\S+) s; finish", treadle("show", "last", "--journal", str(path)).out, re.MULTILINE
    )
    assert group.seconds.total == pytest.approx(took, abs=1e-6)
    assert (logged, float(shown[1])) == (pytest.approx(took, abs=0.001), pytest.approx(took, abs=0.01))


def test_an_attempt_that_failed_and_took_nothing_is_a_call_that_failed(busy, treadle):
    path, _, _ = busy
    (group,) = json.loads(treadle("stats", "--by", "model", "--json", "--journal", str(path)).out)
    assert (group["count"], group["failed"], group["tokens"]["total"]) == (2, 1, 110)
    assert Decimal(group["cost"]["total"]) == Decimal("0.00012")


def test_a_model_of_which_nothing_but_failures_is_known_has_no_unknown_cost(tmp_path, treadle):
    async def main():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            await Agent(scripted([Overloaded("busy")], "small"), journal=journal, retries=0).run("go")

    asyncio.run(main())
    told = treadle("stats", "--by", "model", "--journal", str(tmp_path / "runs.db")).out
    assert re.search(r"^small +1 +1 +\$0$", told, re.MULTILINE), told


def test_show_tells_the_steps_of_agents_below_where_it_tells_their_calls(tmp_path, treadle):
    async def main():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            below = Agent(scripted([[("look", {"what": "b"})], "seen"], "small"), name="below", tools=[look])
            model = scripted([[("below", {"task": "t"})], "done"], "large")
            await Agent(model, tools=[below.as_tool()], journal=journal).run("go")

    asyncio.run(main())
    told = treadle("show", "last", "--journal", str(tmp_path / "runs.db")).out
    assert told.strip().splitlines()[-1].startswith("2 steps and 2 below, 2 tool calls, 400 tokens in, 40 out")


AGENT = """
from treadle import Agent, Usage, ask_before, tool
from treadle.testing import ScriptedModel

@tool
def put(what: str) -> str:
    '''Puts something where it belongs.'''
    return f"put {what}"

agent = Agent(ScriptedModel(["done"]), tools=[put], approvals=[ask_before("put")])
"""


def test_the_seconds_of_a_step_are_without_the_week_for_which_it_waited(tmp_path, treadle):
    """A step's seconds are part of those of its run, which are without pauses."""
    (tmp_path / "desk.py").write_text(AGENT)

    async def main():
        async with SqliteJournal(tmp_path / "now.db") as journal:
            model = ScriptedModel([[("put", {"what": "a"})]])
            waiting = await Agent(model, tools=[put], approvals=[ask_before("put")], journal=journal).run("go")
            events = await journal.read(waiting.run_id)
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            earlier = [msgspec.structs.replace(event, at=event.at - WEEK) for event in events]
            await journal.append(waiting.run_id, 0, earlier)

    asyncio.run(main())
    done = treadle("approve", "last", "--agent", "desk.py", "--json", "--journal", str(tmp_path / "runs.db"))
    told = json.loads(done.out)
    assert told["finished"]
    assert sum(step["seconds"] for step in told["steps"]) <= told["seconds"] + 0.01
