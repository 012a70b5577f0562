"""What is told of runs that paused or crashed."""

import asyncio
from decimal import Decimal

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from play import copied, within

from treadle import (
    Agent,
    Decision,
    Limits,
    MemoryJournal,
    Price,
    SqliteJournal,
    Usage,
    ask_before,
    deny,
    statistics,
    tool,
    waterfall,
)
from treadle.cli.commands.show import show
from treadle.drivers.purse.spending import spending_of
from treadle.kernel.accounts import Spent
from treadle.kernel.events import (
    ApprovalDecided,
    ModelReplied,
    Parent,
    ResultAwaited,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, UserMessage
from treadle.kernel.stop import stopped
from treadle.models import ModelReply, RateLimited, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.result import result_of
from treadle.testing import ScriptedModel
from treadle.timetravel.waterfall import waterfall_of

pytestmark = pytest.mark.anyio


@tool
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool(effect="read")
def look(what: str) -> str:
    """Looks."""
    return what


def below():
    turns = [[("pay", {"amount": 5})], "paid"]
    cheap = ScriptedModel(turns, name="cheap", usage=Usage(200, 20), price=Price(1, 2))
    return Agent(cheap, name="inner", tools=[pay], approvals=[ask_before("pay")])


async def check_sums(found, journal):
    """The bars of a waterfall come to what the run has spent."""
    spending = await spending_of(await journal.read(found.run_id), journal)
    told = [bar for bar in found.bars if bar.usage is not None and not bar.shared]
    assert sum(bar.usage.total_tokens for bar in told) == spending.total.usage.total_tokens
    assert sum((bar.cost for bar in told), Decimal()) == spending.total.cost
    assert len(told) == len(spending.charges)


async def test_a_waterfall_tells_the_work_below_once_though_its_call_has_two_pieces():
    journal = MemoryJournal()
    dear = ScriptedModel(
        [[("inner", {"task": "pay"})], "done"], name="dear", usage=Usage(1000, 100), price=Price(5, 25)
    )
    top = Agent(dear, tools=[below().as_tool()], journal=journal)
    waits = await within(top.run("go"))
    result = await within(top.resume(waits, approve=["call_0_0/call_0_0"]))
    found = await waterfall(journal, result.run_id)
    await check_sums(found, journal)
    assert [bar.name for bar in found.bars if bar.kind == "model"] == ["dear", "cheap", "cheap", "dear"]
    pieces = [at for at, bar in enumerate(found.bars) if bar.kind == "run"]
    assert len(pieces) == 2
    first, second = found.bars[pieces[0] : pieces[1]], found.bars[pieces[1] :]
    assert [bar.name for bar in first if bar.kind == "tool"] == []
    assert [bar.name for bar in second if bar.kind == "tool"] == ["pay (call_0_0)"]
    start = found.bars[pieces[1]].start
    assert all(bar.start < start for bar in first[1:])
    assert all(bar.start >= start for bar in second)


def scripted(turns, tokens):
    return ScriptedModel(turns, usage=Usage(tokens, 1), price=Price(1, 1))


def middle(says):
    low = Agent(scripted(says, 9), name="low", tools=[look])
    asks = scripted(lambda request: [("low", {"task": "t"})] if request.step == 0 else "middle", 99)
    return Agent(asks, name="middle", tools=[low.as_tool()])


async def left_behind():
    """The journal of a process that died when the agent two below had replied once; the run's id."""
    journal, left = MemoryJournal(), []

    async def says(request):
        if request.step == 0:
            return [("look", {"what": "a"})]
        left.append(await copied(journal))
        return "low"

    top = Agent(scripted([[("middle", {"task": "a"})], "done"], 999), tools=[middle(says).as_tool()], journal=journal)
    result = await within(top.run("go"))
    return left[0], result.run_id


CASES = {
    "a rule denies it": ({"approvals": [deny("middle")]}, None),
    "the tool is gone": ({"tools": []}, None),
    "the time is up": ({}, Limits(seconds=0)),
    "it goes on": ({}, None),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_waterfall_tells_the_work_below_once_after_a_crash(case):
    options, limits = CASES[case]
    journal, run_id = await left_behind()
    given = {"tools": [middle(lambda _: "low again").as_tool()], **options}
    top = Agent(scripted(lambda _: "done", 999), journal=journal, **given)
    result = await within(top.resume(run_id, limits=limits))
    found = await waterfall(journal, result.run_id)
    await check_sums(found, journal)
    assert [bar for bar in found.bars if bar.seconds is None] == []


async def test_a_waterfall_tells_a_model_call_that_was_lost():
    lost = Spent(0, Usage(7, 3), Decimal("0.25"))
    events = [
        RunStarted("r", (UserMessage("q"),), 1, model="m", at=100.0),
        StepPrepared(0, Decision("go"), at=101.0),
        RunResumed(lost=lost, at=200.0),
    ]
    journal = MemoryJournal()
    await journal.append("r", 0, events)
    found = await waterfall_of(events, journal)
    await check_sums(found, journal)
    assert [(bar.kind, bar.name) for bar in found.bars][:2] == [("step", "step 0"), ("attempt", "m")]


async def test_a_waterfall_tells_what_only_the_run_above_knows():
    journal = MemoryJournal()
    dear = ScriptedModel(
        [[("inner", {"task": "pay"})], "done"], name="dear", usage=Usage(1000, 100), price=Price(5, 25)
    )
    low = ScriptedModel(["low"], name="cheap", usage=Usage(200, 20), price=Price(1, 2))
    top = Agent(dear, tools=[Agent(low, name="inner").as_tool()], journal=journal)
    result = await within(top.run("go"))
    await journal.delete(f"{result.run_id}.0.call_0_0")
    await check_sums(await waterfall(journal, result.run_id), journal)


CALL = AssistantMessage((ToolCall("a", "pay", "{}"),))
STARTED = [
    RunStarted("r", (UserMessage("q"),), 1, model="m", at=100.0),
    StepPrepared(0, Decision("go"), at=100.0),
    ModelReplied(0, CALL, Usage(10, 1), model="m", at=101.0),
    ToolStarted(0, "a", at=101.0),
]
DONE = ToolFinished(0, "a", "paid", at=5000.0)
PAUSED = [RunPaused(stopped("waiting"), at=103.0), RunResumed(at=4998.0)]
PIECES = {
    "it came back": ([replace(DONE, at=103.0)], 2.0),
    "a crash, and a person says what came of it": ([RunResumed(at=4999.0), DONE], None),
    "a crash, and it is run again": ([RunResumed(at=4999.0), ToolStarted(0, "a", at=4999.0), DONE], 1.0),
    "a run below waited for an approval": (
        [
            ResultAwaited(0, "a", wait=True, run_id="b", at=103.0),
            *PAUSED,
            ApprovalDecided(0, "a", True, at=4998.0),
            ToolStarted(0, "a", at=4999.0),
            DONE,
        ],
        3.0,
    ),
    "a person was asked about its result": (
        [
            replace(DONE, provisional=True, at=103.0),
            ResultAwaited(0, "a", wait=True, question="?", at=103.0),
            *PAUSED,
            DONE,
        ],
        2.0,
    ),
}


@pytest.mark.parametrize("piece", PIECES)
async def test_a_tool_is_only_told_to_take_the_time_that_it_worked(piece):
    events, seconds = PIECES[piece]
    journal = MemoryJournal()
    await journal.append("r", 0, [*STARTED, *events])
    (group,) = (await statistics(journal)).by_tool
    assert (group.name, group.count) == ("pay", 1)
    assert (group.seconds and group.seconds.total) == seconds
    result = result_of(fold_all([*STARTED, *events]), None, [*STARTED, *events])
    assert result.to_dict()["steps"][0]["calls"][0]["seconds"] == seconds


@pytest.mark.parametrize("note", ["short", "n" * 500])
def test_show_names_the_call_below_that_is_settled_in_full(note, tmp_path):
    path = tmp_path / "runs.db"
    asked, paid = ToolCall("a", "inner", '{"task":"t"}'), ToolCall("b", "pay", f'{{"amount":5,"note":"{note}"}}')

    async def crashed():
        journal = SqliteJournal(path)
        for run_id, call, parent in (("r", asked, None), ("r.0.a", paid, Parent("r", 0, "a"))):
            events = [
                replace(STARTED[0], run_id=run_id, parent=parent),
                STARTED[1],
                replace(STARTED[2], message=AssistantMessage((call,))),
                replace(STARTED[3], call_id=call.id),
            ]
            await journal.append(run_id, 0, events)
        await journal.close()

    asyncio.run(crashed())
    shown = CliRunner().invoke(show, ["r", "--journal", str(path)], standalone_mode=False).output
    assert f'its outcome is unknown: pay(amount=5, note="{note}") (a/b)\n' in shown
    assert "unknown: inner(" not in shown


async def test_a_waterfall_ends_an_early_call_that_the_reply_which_stands_does_not_make():
    """A later call had the same id, and the bar of the first had no end."""

    @tool(effect="read")
    async def look(n: int) -> str:
        """Looks."""
        await asyncio.sleep(0.01 if n == 3 else 60)
        return "seen"

    class Early:
        name = "early"

        def __init__(self):
            self.asked = 0

        async def stream(self, request):
            self.asked += 1
            if self.asked == 1:
                for piece in (ToolCallStarted("a", "look"), ToolCallDelta("a", '{"n": 1}'), ToolCallCompleted("a")):
                    yield piece
                await asyncio.sleep(0.05)
                raise RateLimited("too many", retry_after=0.01)
            call = (ToolCall("a", "look", '{"n": 3}'),) if self.asked == 3 else ()
            said = (Text("Done."),) if self.asked == 4 else ()
            yield ModelReply(AssistantMessage((*call, *said)), Usage(1, 1), "tool_calls" if call else "stop")

    journal = MemoryJournal()
    result = await within(Agent(Early(), tools=[look], journal=journal).run("go"))
    assert result.finished
    (begun,) = [one for one in await journal.read(result.run_id) if isinstance(one, ToolStarted) and one.name]
    bars = [bar for bar in (await waterfall(journal, result.run_id)).bars if bar.kind == "tool"]
    assert begun.call_id == "a"
    assert [bar.name for bar in bars] == ["look (a)", "look (a)"]
    assert all(bar.seconds is not None for bar in bars)
