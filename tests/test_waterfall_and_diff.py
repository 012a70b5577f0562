"""Where the time of a run went, and where two runs part."""

import asyncio
from decimal import Decimal

from treadle import (
    Agent,
    Decision,
    MemoryJournal,
    Price,
    Retries,
    Usage,
    diff,
    tool,
    waterfall,
)
from treadle.kernel.events import (
    ErrorInfo,
    ModelFailed,
    ModelReplied,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, UserMessage
from treadle.kernel.stop import stopped
from treadle.models import Overloaded
from treadle.testing import ScriptedModel
from treadle.timetravel.waterfall import under_way, waterfall_of


@tool(effect="read")
def look(what: str) -> str:
    """Looks."""
    return f"saw {what}"


CALL = AssistantMessage((ToolCall("a", "pay", "{}"),))
EVENTS = [
    RunStarted("r", (UserMessage("q"),), 1, model="m", at=100.0),
    StepPrepared(0, Decision("go"), at=101.0),
    ModelFailed(0, ErrorInfo("overloaded", "busy"), retry_in=2.0, at=102.0),
    ModelReplied(0, CALL, Usage(10, 1), cost=Decimal("0.5"), model="m", at=106.0),
    RunPaused(stopped("waiting", "pay (a)"), at=107.0),
    RunResumed(at=1107.0),
    ToolStarted(0, "a", at=1107.0),
    ToolFinished(0, "a", "paid", at=1109.0),
    StepPrepared(1, Decision("go"), at=1109.0),
    RunResumed(at=1159.0),
    StepPrepared(1, Decision("go"), at=1159.0),
    ModelReplied(1, AssistantMessage((Text("done"),)), Usage(20, 2), model="m", at=1160.0),
    RunFinished(stopped("answered"), at=1160.0),
]


def test_every_bar_is_as_long_as_what_it_stands_for():
    found = asyncio.run(waterfall_of(EVENTS, None))
    bars = [(bar.kind, bar.depth, bar.start, bar.seconds) for bar in found.bars]
    assert bars == [
        ("step", 0, 1.0, 8.0),
        ("attempt", 1, 1.0, 1.0),
        ("model", 1, 4.0, 2.0),
        ("wait", 0, 7.0, 1000.0),
        ("tool", 1, 1007.0, 2.0),
        ("step", 0, 1009.0, 0.0),
        ("interrupted", 0, 1009.0, 50.0),
        ("step", 0, 1059.0, 1.0),
        ("model", 1, 1059.0, 1.0),
    ]
    assert (found.seconds, found.waited) == (1060.0, 1050.0)
    starts = under_way(found.bars)
    assert [starts[at] for at in (4, 7)] == [7.0, 9.0]
    model = found.bars[2]
    assert (model.usage, model.cost, found.bars[-1].cost) == (Usage(10, 1), Decimal("0.5"), None)


def test_what_has_not_come_back_is_under_way():
    found = asyncio.run(waterfall_of(EVENTS[:5], None))
    assert [(bar.kind, bar.seconds) for bar in found.bars if bar.seconds is None] == [("step", None), ("wait", None)]


def test_what_a_fork_shares_is_marked():
    events = [*EVENTS[:8], RunForked("f", at=2000.0), RunResumed(at=2001.0), StepPrepared(1, Decision("go"), at=2001.0)]
    found = asyncio.run(waterfall_of(events, None))
    assert [bar.shared for bar in found.bars] == [True] * 5 + [False] * 2
    assert found.bars[5].name == "forked here"
    assert found.bars[5].seconds == 892.0


def test_a_fork_that_waits_or_ends_at_once_has_begun():
    """It has nothing to take up: what it tells again of the step before brings it to a question, or to its end."""
    waits = [*EVENTS[:8], RunForked("f", at=2000.0), RunPaused(stopped("waiting"), at=2001.0), RunResumed(at=2005.0)]
    ends = [*EVENTS[:8], RunForked("f", at=2000.0), RunFinished(stopped("answered"), at=2001.0)]
    for events in (waits, ends):
        bars = asyncio.run(waterfall_of(events, None)).bars
        assert [bar.seconds for bar in bars if bar.name == "forked here"] == [892.0]
        assert None not in [bar.seconds for bar in bars if bar.kind != "step"]


def test_a_fork_of_a_fork_that_nobody_has_gone_on_with():
    """What is told of where the first was forked is over as the second is."""
    events = [*EVENTS[:8], RunForked("f", at=2000.0), RunForked("g", at=2010.0), RunResumed(at=2012.0)]
    bars = asyncio.run(waterfall_of([*events, RunFinished(stopped("answered"), at=2013.0)], None)).bars
    assert [(bar.shared, bar.start) for bar in bars if bar.name == "forked here"] == [(True, 1009.0), (False, 1900.0)]
    assert None not in [bar.seconds for bar in bars if bar.kind != "step"]


def test_calls_that_a_fork_tells_again_took_as_long_as_where_they_were_made():
    """They are told again at the moment at which it is forked, and took no time there."""
    made = AssistantMessage((ToolCall("a", "look", '{"what": "x"}'), ToolCall("b", "look", '{"what": "y"}')))
    events = [
        RunStarted("r", (UserMessage("q"),), 1, model="m", tools=("look",), at=100.0),
        StepPrepared(0, Decision("go"), at=101.0),
        ModelReplied(0, made, Usage(10, 1), model="m", at=106.0),
        ToolStarted(0, "a", at=107.0),
        ToolStarted(0, "b", at=107.0),
        ToolFinished(0, "a", "saw x", at=109.0),
        ToolFinished(0, "b", "saw y", at=112.0),
        StepPrepared(1, Decision("go"), at=112.0),
        ModelReplied(1, AssistantMessage((Text("done"),)), Usage(20, 2), model="m", at=113.0),
        RunFinished(stopped("answered"), at=113.0),
    ]

    async def forked(other, *, gone=False):
        journal = MemoryJournal()
        await journal.append("r", 0, events)
        fork = await agent(journal, "Otherwise.").fork("r", at=1, tool_results={other: "saw nothing"})
        if gone:
            await journal.delete("r")
        return [
            (bar.kind, bar.name, bar.start, bar.seconds, bar.shared)
            for bar in (await waterfall(journal, fork.run_id)).bars
        ][:5]

    shared = [("step", "step 0", 1.0, 11.0, True), ("model", "m", 1.0, 5.0, True)]
    calls = [("tool", "look (a)", 7.0, 2.0, True), ("tool", "look (b)", 7.0, 5.0, True)]
    for other in ("a", "b"):
        *before, parted = asyncio.run(forked(other))
        assert before == shared + calls
        assert parted[:3] == ("interrupted", "forked here", 12.0)
    # Where the run that made them is gone, nobody knows more than that they were under way.
    gone = asyncio.run(forked("a", gone=True))
    assert [seconds for _, _, _, seconds, _ in gone[:4]] == [6.0, 5.0, 0.0, 0.0]
    assert gone[4][:3] == ("interrupted", "forked here", 7.0)


def test_runs_below_are_nested_where_they_began():
    async def main():
        journal = MemoryJournal()
        low = Agent(ScriptedModel([[("look", {"what": "x"})], "low"], name="tiny"), name="low", tools=[look])
        turns = [Overloaded("busy"), [("low", {"task": "a"}), ("look", {"what": "b"})], "done"]
        boss = Agent(
            ScriptedModel(turns, price=Price(3, 15)),
            tools=[low.as_tool(), look],
            journal=journal,
            retries=Retries(attempts=2, base=0.0),
        )
        result = await boss.run("go")
        found = await waterfall(journal, result.run_id)
        kinds = [(bar.kind, bar.depth) for bar in found.bars]
        assert ("attempt", 1) in kinds
        at = kinds.index(("run", 1))
        assert kinds[at : at + 6] == [("run", 1), ("step", 2), ("model", 3), ("tool", 3), ("step", 2), ("model", 3)]
        assert {bar.name for bar in found.bars if bar.depth == 3 and bar.kind == "model"} == {"tiny"}

    asyncio.run(main())


def agent(journal, *turns, **more):
    return Agent(ScriptedModel(list(turns)), tools=[look], journal=journal, **more)


def test_what_an_agent_took_whose_result_a_fork_replaces_is_told_where_its_run_is_gone():
    async def main():
        journal = MemoryJournal()
        low = Agent(ScriptedModel(["low"], usage=Usage(40, 2)), name="low").as_tool()
        calls = [[("low", {"task": "go"}), ("look", {"what": "it"})], "done"]
        top = Agent(ScriptedModel(calls, usage=Usage(100, 5)), tools=[low, look], journal=journal)
        run = await top.run("go")
        anew = Agent(ScriptedModel(["then"], usage=Usage(100, 5)), tools=[low, look], journal=journal)
        fork = await anew.fork(run.run_id, at=1, tool_results={"call_0_0": "other", "call_0_1": "other"})
        found = []
        for gone in (None, f"{run.run_id}.0.call_0_0", run.run_id):
            assert gone is None or await journal.delete(gone)
            bars = (await waterfall(journal, fork.run_id)).bars
            spending = await anew.spending(fork.run_id)
            for shared, total in ((True, spending.shared_total), (False, spending.total)):
                told = sum(bar.usage.total_tokens for bar in bars if bar.usage and bar.shared == shared)
                assert told == total.usage.total_tokens
            found.append(spending.shared_total.usage.total_tokens)
        assert found == [147, 147, 147]

    asyncio.run(main())


def test_where_two_runs_part():
    async def main():
        journal = MemoryJournal()
        first = await agent(journal, [("look", {"what": "tea"})], "Tea it is.").run("Find tea.")
        same = await agent(journal, [("look", {"what": "tea"})], "Tea it is.").run("Find tea.")
        found = await diff(journal, first.run_id, same.run_id)
        assert (found.same, found.at, found.a, found.b) == (True, None, first.run_id, same.run_id)
        other = await agent(journal, [("look", {"what": "cups"})], "Tea it is.").run("Find tea.")
        found = await diff(journal, first.run_id, other.run_id)
        row = found.rows[found.at]
        assert (row.step, row.what) == (0, "called")
        assert (row.a, row.b) == ('look({"what":"tea"})', 'look({"what":"cups"})')
        assert [(row.step, row.what) for row in found.rows if not row.same] == [(0, "called"), (0, "given")]

    asyncio.run(main())


def test_a_fork_parts_from_its_source_where_it_was_forked():
    async def main():
        journal = MemoryJournal()
        first = await agent(journal, [("look", {"what": "tea"})], "Tea it is.").run("Find tea.")
        fork = await agent(journal, "None left.").fork(first.run_id, at=1, tool_results={"call_0_0": "nothing"})
        found = await diff(journal, first.run_id, fork.run_id)
        row = found.rows[found.at]
        assert (row.step, row.what, row.a, row.b) == (0, "given", "saw tea", "nothing")
        longer = await agent(journal, [("look", {"what": "x"})], "So.").fork(first.run_id, at=1, message="Look again.")
        found = await diff(journal, first.run_id, longer.run_id)
        assert (found.rows[found.at].what, found.rows[found.at].b) == ("asked", "Look again.")
        assert [row.step for row in found.rows if row.what == "ended"] == [2, 3]

    asyncio.run(main())


def test_instructions_and_ends_are_compared():
    async def main():
        one, other = MemoryJournal(), MemoryJournal()
        first = await agent(one, "Hello.", instructions="Be kind.").run("Hi")
        second = await agent(other, "Hello.", instructions="Be brief.").run("Hi")
        found = await diff(one, first.run_id, second.run_id, other)
        assert found.rows[found.at].what == "instructions"
        assert sum(not row.same for row in found.rows) == 1

    asyncio.run(main())
