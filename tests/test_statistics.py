"""Figures over many runs: each thing once, and what is not known is not nothing."""

import asyncio
import sqlite3
from contextlib import closing
from decimal import Decimal

import pytest

from treadle import (
    Agent,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    Retries,
    SqliteJournal,
    Text,
    Usage,
    statistics,
    tool,
    waterfall,
)
from treadle.kernel.events import ToolStarted
from treadle.kernel.messages import ToolCall
from treadle.models import (
    AssistantMessage,
    BadRequest,
    ModelReply,
    Overloaded,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.testing import ScriptedModel
from treadle.timetravel.figures import Money, Spread

ONE = Decimal("0.0045")
"""Dollars of one reply."""


@tool(effect="read")
def look(what: str) -> str:
    """Looks."""
    if what == "nothing":
        raise ValueError("there is nothing")
    return f"saw {what}"


PRICE = Price(3, 15)


def model(turns, name="small", price=PRICE):
    return ScriptedModel(list(turns), name=name, price=price, usage=Usage(1000, 100))


def looking(journal, times, **more):
    return Agent(
        model([*[[("look", {"what": str(i)})] for i in range(times)], "done"]), tools=[look], journal=journal, **more
    )


def test_how_they_ended_and_what_they_took():
    async def main():
        journal = MemoryJournal()
        for times in range(1, 21):
            await looking(journal, times, limits=Limits(steps=19), watch_progress=False).run("go")
        found = await statistics(journal)
        assert (found.runs, found.ended) == (20, {"answered": 17, "max_steps": 3})
        assert found.steps == Spread(sum(range(2, 20)) + 2 * 19, 11, 19, 19)
        assert found.tokens.p50 == 11 * 1100
        assert found.cost == Money(found.steps.total * ONE, 11 * ONE, 19 * ONE, 19 * ONE, 0)
        (small,) = found.by_model
        assert (small.name, small.count, small.failed, small.tokens.p95) == ("small", found.steps.total, 0, 1100)
        (tool,) = found.by_tool
        assert (tool.name, tool.tokens, tool.cost) == ("look", None, None)
        assert tool.count == found.tool_calls.total
        (day,) = found.by_day
        assert (day.count, day.failed, day.cost) == (20, 3, found.cost)

    asyncio.run(main())


def test_what_runs_below_took_is_counted_once():
    async def main():
        journal = MemoryJournal()
        low = Agent(model([[("look", {"what": "x"})], "low"], "tiny"), name="low", tools=[look])
        boss = Agent(model([[("low", {"task": "a"})], "done"]), name="boss", tools=[low.as_tool()], journal=journal)
        result = await boss.run("go")
        found = await statistics(journal)
        assert (found.runs, found.steps.total, found.tool_calls.total) == (1, 4, 2)
        assert (found.tokens.total, found.cost.total) == (result.usage.total_tokens, result.cost)
        assert {(group.name, group.count, group.cost.total) for group in found.by_model} == {
            ("small", 2, 2 * ONE),
            ("tiny", 2, 2 * ONE),
        }
        assert {(group.name, group.count, group.cost.total) for group in found.by_agent} == {
            ("boss", 1, 2 * ONE),
            ("low", 1, 2 * ONE),
        }
        assert {group.name: group.count for group in found.by_tool} == {"low": 1, "look": 1}
        below = next(line.run_id for line in await journal.list() if line.parent)
        await journal.delete(below)
        again = await statistics(journal)
        assert (again.cost, again.tokens) == (found.cost, found.tokens)
        assert {(group.name, group.cost.total) for group in again.by_model} == {("small", 2 * ONE), ("", 2 * ONE)}

    asyncio.run(main())


def test_a_cost_that_is_not_known_is_not_nothing():
    async def main():
        journal = MemoryJournal()
        await Agent(model(["done"]), journal=journal).run("go")
        await Agent(model(["done"], "free", None), journal=journal).run("go")
        found = await statistics(journal)
        assert found.cost == Money(None, ONE, ONE, ONE, 1)
        costs = {group.name: group.cost for group in found.by_model}
        assert costs == {"small": Money(ONE, ONE, ONE, ONE, 0), "free": Money(None, None, None, None, 1)}

    asyncio.run(main())


def test_of_a_fork_only_its_own_part_counts():
    async def main():
        journal = MemoryJournal()
        first = await looking(journal, 3).run("go")
        await Agent(model(["otherwise"]), tools=[look], journal=journal).fork(first.run_id, at=2)
        found = await statistics(journal)
        assert (found.runs, found.steps.total, found.tool_calls.total) == (2, 5, 3)
        assert found.cost.total == 5 * ONE
        assert found.by_agent[0].count == 2
        other = Agent(model(["otherwise"]), tools=[look], journal=journal)
        await other.fork(first.run_id, at=1, tool_results={"call_0_0": "nothing"})
        found = await statistics(journal)
        assert (found.steps.total, found.tool_calls.total, found.cost.total) == (6, 3, 6 * ONE)
        assert found.by_tool[0].count == 3

    asyncio.run(main())


def test_those_that_are_wanted():
    async def main():
        journal = MemoryJournal()
        first = await Agent(model(["done"]), name="one", journal=journal).run("go")
        await Agent(model(["done"], "large"), name="two", journal=journal).run("go")
        began = next(line.started_at for line in await journal.list() if line.run_id != first.run_id)
        assert (await statistics(journal, agent="one")).runs == 1
        assert (await statistics(journal, model="large")).by_agent[0].name == "two"
        assert (await statistics(journal, until=began)).by_agent[0].name == "one"
        assert (await statistics(journal, since=began)).by_agent[0].name == "two"
        none = await statistics(journal, agent="nobody")
        assert (none.runs, none.ended, none.cost, none.steps) == (0, {}, None, None)
        with pytest.raises(Misuse, match="until"):
            await statistics(journal, since=2.0, until=1.0)

    asyncio.run(main())


def test_a_damaged_run_is_told_and_the_others_are_counted(tmp_path):
    async def main():
        path = tmp_path / "runs.db"
        async with SqliteJournal(path) as journal:
            first = await looking(journal, 1).run("go")
            await looking(journal, 1).run("go")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE events SET body = '{}' WHERE run_id = ? AND seq = 2", (first.run_id,))
            connection.commit()
        async with SqliteJournal(path) as journal:
            found = await statistics(journal)
        assert (found.runs, found.ended, found.cost.total) == (2, {"answered": 1, "damaged": 1}, 2 * ONE)

    asyncio.run(main())


@pytest.mark.parametrize("level", [0, 1])
def test_what_a_damaged_run_below_took_is_told_by_the_run_above(tmp_path, level):
    """At either level: it was left out, with nothing said, though the run above knows it."""

    async def main():
        path = tmp_path / "runs.db"
        async with SqliteJournal(path) as journal:
            lowest = Agent(model(["lowest"], "tiny"), name="lowest")
            low = Agent(model([[("lowest", {"task": "b"})], "low"]), name="low", tools=[lowest.as_tool()])
            turns = [[("low", {"task": "a"})], "done"]
            result = await Agent(model(turns), tools=[low.as_tool()], journal=journal).run("go")
            below = sorted((line.run_id for line in await journal.list()), key=len)[1:]
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE events SET body = '{}' WHERE run_id = ? AND seq = 2", (below[level],))
            connection.commit()
        async with SqliteJournal(path) as journal:
            found = await statistics(journal)
            bars = (await waterfall(journal, result.run_id)).bars
        assert (found.runs, found.ended) == (1, {"answered": 1})
        assert found.cost.total == result.cost == 5 * ONE
        assert found.tokens.total == result.usage.total_tokens
        assert sum(group.cost.total for group in found.by_model) == result.cost
        assert sum(bar.cost or 0 for bar in bars) == result.cost

    asyncio.run(main())


def test_what_nobody_tells_of_a_damaged_run_below_is_not_known(tmp_path):
    """The run above it has not heard what came of it."""

    async def main():
        path = tmp_path / "runs.db"
        async with SqliteJournal(path) as journal:
            low = Agent(model(["low"]), name="low")
            turns = [[("low", {"task": "a"})], "done"]
            result = await Agent(model(turns), tools=[low.as_tool()], journal=journal).run("go")
            (below,) = [line.run_id for line in await journal.list() if line.run_id != result.run_id]
            events = await journal.read(result.run_id)
            started = next(at for at, event in enumerate(events) if isinstance(event, ToolStarted))
            whole = await journal.read(below)
        async with SqliteJournal(tmp_path / "cut.db") as journal:
            await journal.append(result.run_id, 0, events[: started + 1])
            await journal.append(below, 0, whole)
        with closing(sqlite3.connect(tmp_path / "cut.db")) as connection:
            connection.execute("UPDATE events SET body = '{}' WHERE run_id = ? AND seq = 2", (below,))
            connection.commit()
        async with SqliteJournal(tmp_path / "cut.db") as journal:
            found = await statistics(journal)
        assert (found.runs, found.ended) == (1, {"running": 1})
        assert (found.cost.total, found.cost.unknown) == (None, 1)

    asyncio.run(main())


def test_calls_and_attempts_that_failed():
    async def main():
        journal = MemoryJournal()
        turns = [Overloaded("busy"), [("look", {"what": "nothing"})], "done"]
        agent = Agent(model(turns), tools=[look], journal=journal, retries=Retries(attempts=2, base=0.0))
        await agent.run("go")
        found = await statistics(journal)
        (tool,) = found.by_tool
        assert (tool.count, tool.failed) == (1, 1)
        assert [(group.count, group.failed) for group in found.by_model] == [(3, 1)]

    asyncio.run(main())


class BreaksOff:
    """Asks for a call, waits until it is done, and breaks off; asked again, it answers, or asks for the same call."""

    name = "breaks-off"

    def __init__(self, done, *then):
        self.done, self.then = done, list(then)

    async def stream(self, request):
        if self.done.is_set():
            reply = self.then.pop(0)
            if isinstance(reply, Exception):
                raise reply
            yield ModelReply(AssistantMessage((reply,)), Usage(1, 1), "stop" if type(reply) is Text else "tool_calls")
            return
        yield ToolCallStarted("early", "peek")
        yield ToolCallDelta("early", '{"what": "the door"}')
        yield ToolCallCompleted("early")
        await self.done.wait()
        await asyncio.sleep(0)
        raise Overloaded("busy")


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ([Text("done")], "answered"),
        ([ToolCall("b", "peek", '{"what": "the door"}'), Text("done")], "answered"),
        ([BadRequest("no")], "model_error"),
    ],
)
@pytest.mark.parametrize("forked", [False, True])
def test_a_call_of_a_reply_that_was_withdrawn_counts_as_the_limit_counts_it(then, reason, forked):
    """It was made. Where the reply that stands does not make it, or never came, neither sum had it."""

    async def main():
        done, journal = asyncio.Event(), MemoryJournal()

        @tool(effect="read")
        async def peek(what: str) -> str:
            """Looks."""
            done.set()
            return "open"

        model = BreaksOff(done, *then)
        agent = Agent(model, tools=[peek], journal=journal, retries=Retries(attempts=2, base=0.001))
        result = await agent.run("go")
        assert result.stop.reason == reason
        if forked and reason == "answered":
            # What it did before is the other run's.
            again = Agent(ScriptedModel(["done"]), tools=[peek], journal=journal)
            await again.fork(result.run_id, at=len(result.steps) - 1, limits=Limits())
        found = await statistics(journal)
        assert found.tool_calls is not None
        assert (found.tool_calls.total, [(one.name, one.count, one.failed) for one in found.by_tool]) == (
            1,
            [("peek", 1, 0)],
        )

    asyncio.run(main())


def test_a_fork_that_waits_in_the_step_that_it_shares_tells_it_no_second_time():
    """Until that step had come to its end, its reply and its calls were told as the fork's own as well."""

    async def main():
        journal = MemoryJournal()

        @tool(needs_approval=True)
        def send(what: str) -> str:
            """Sends."""
            return f"sent {what}"

        agent = Agent(
            model([[("look", {"what": "it"}), ("send", {"what": "it"})]]), tools=[look, send], journal=journal
        )
        waiting = await agent.run("go")
        assert len(waiting.pending) == 1
        await agent.cancel(waiting.run_id)
        fork = await agent.fork(waiting.run_id, at=1, tool_results={"call_0_0": "nothing"})
        assert len(fork.pending) == 1
        found = await statistics(journal)
        assert (found.runs, found.steps.total, found.tool_calls.total) == (2, 1, 2)
        assert {one.name: one.count for one in found.by_tool} == {"look": 1, "send": 1}

    asyncio.run(main())
