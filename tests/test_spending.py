"""What a run has spent, taken apart: the parts come to what its result says, in every way a run can go and end."""

import asyncio
import csv
import io
import json
from decimal import Decimal, localcontext

import pytest

from treadle import (
    Agent,
    Alternative,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    Retries,
    Retry,
    SqliteJournal,
    Summarise,
    ToolError,
    Usage,
    handoff,
    tool,
)
from treadle.journal import JournalUnavailable, UnknownRun
from treadle.kernel.events import ModelReplied, ToolFinished
from treadle.models import AssistantMessage, FallbackModel, ModelReply, Text, TextDelta
from treadle.models.errors import ConnectionFailed, Overloaded
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SOON = Retries(attempts=3, base=0.001)


@pytest.fixture
def anyio_backend():
    return "asyncio"


USAGE, PRICE = Usage(100, 10), Price(3, 15)


def model(turns, name="top", *, usage=USAGE, price=PRICE):
    return ScriptedModel(turns, name=name, usage=usage, price=price)


@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"seen {what}"


def low(turns=None, **options):
    """An agent two below the top."""
    return Agent(model(turns or (lambda _: "low"), "small", usage=Usage(7, 3)), name="low", **options)


def middle(below=None, turns=None, **options):
    """An agent between."""
    said = turns or (lambda r: [("low", {"task": "t"})] if r.step == 0 else "middle")
    tools = [(below or low()).as_tool()]
    return Agent(model(said, "mid", usage=Usage(20, 5), price=Price(1, 2)), name="middle", tools=tools, **options)


def top(*turns, **options):
    return Agent(model(list(turns)), name="top", **options)


async def breaks_off(usage_error=Overloaded):
    yield TextDelta("half of a reply that breaks off")
    raise usage_error("busy")


async def plain():
    agent = top([("look", {"what": "a"})], "done", tools=[look])
    return agent, await agent.run("go")


async def retries():
    agent = top(lambda _: breaks_off(), Overloaded("busy"), "done", retries=SOON)
    return agent, await agent.run("go")


async def gives_up():
    agent = top(lambda _: breaks_off(), lambda _: breaks_off(), lambda _: breaks_off(), retries=SOON)
    return agent, await agent.run("go")


async def fallback():
    first = model([lambda _: breaks_off(), Overloaded("busy"), "never"], "first", price=Price(100, 100))
    agent = Agent(FallbackModel([first, model(lambda _: "done", "second")]), retries=SOON)
    return agent, await agent.run("go")


async def summaries():
    writer = model([ConnectionFailed("gone"), "in short", "in short"], "writer", usage=Usage(50, 5))
    policy = Summarise(high=300, low=100, model=writer)
    turns = [[("look", {"what": "x" * 1500})], [("look", {"what": "y" * 1500})], "done"]
    agent = top(*turns, tools=[look], context=policy, retries=SOON)
    result = await agent.run("go")
    assert any(event.usage for event in result.events if type(event).__name__ == "ContextEdited")
    return agent, result


async def closing_reply():
    agent = top([("look", {"what": "a"})], "so far", tools=[look], limits=Limits(steps=2))
    result = await agent.run("go")
    assert result.stop.reason == "max_steps"
    return agent, result


async def two_deep():
    agent = top([("middle", {"task": "a"}), ("middle", {"task": "b"})], "done", tools=[middle().as_tool()])
    return agent, await agent.run("go")


async def two_deep_in_a_journal():
    agent, _ = await two_deep()
    agent = top([("middle", {"task": "a"})], "done", tools=[middle().as_tool()], journal=MemoryJournal())
    return agent, await agent.run("go")


async def handed_on():
    agent = top([("transfer_to_middle", {"reason": "yours"})], tools=[handoff(middle())])
    return agent, await agent.run("go")


async def no_price_below():
    free = Agent(ScriptedModel(lambda _: "?", name="unpriced", usage=Usage(9, 1)), name="low")
    agent = top([("middle", {"task": "a"})], "done", tools=[middle(free).as_tool()])
    result = await agent.run("go")
    assert result.cost is None
    return agent, result


async def not_counted_below():
    uncounted = Agent(model(lambda _: "about that", "small", usage=None), name="low")
    agent = top([("middle", {"task": "a"})], "done", tools=[middle(uncounted).as_tool()])
    result = await agent.run("go")
    assert result.usage.estimated
    return agent, result


async def cancelled():
    reached = asyncio.Event()

    async def hangs(request):
        if request.step == 0:
            return [("low", {"task": "t"})]
        reached.set()
        await asyncio.sleep(60)

    agent = top([("middle", {"task": "a"}), ("middle", {"task": "b"})], tools=[middle(turns=hangs).as_tool()])
    async with agent.stream("go") as run:
        await reached.wait()
        return agent, await run.cancel()


async def deadline():
    async def hangs(request):
        if request.step == 0:
            return [("low", {"task": "t"})]
        await asyncio.sleep(60)

    agent = top([("middle", {"task": "a"})], tools=[middle(turns=hangs).as_tool()], limits=Limits(seconds=0.3))
    result = await agent.run("go")
    assert result.stop.reason == "deadline"
    assert result.usage.total_tokens > 110
    return agent, result


def paying(**options):
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    def turns(request):
        return [("pay", {"amount": 5})] if request.step == 0 else "paid"

    inner = Agent(model(turns, "small", usage=Usage(7, 3)), name="low", tools=[pay])
    return top([("middle", {"task": "a"})], "done", tools=[middle(inner).as_tool()], **options)


async def paused():
    agent = paying()
    result = await agent.run("go")
    assert result.stop.reason == "waiting"
    return agent, result


async def resumed():
    agent, result = await paused()
    return agent, await agent.resume(result, approve=result.pending)


async def denied():
    agent, result = await paused()
    return agent, await agent.resume(result, deny=result.pending)


async def taken_up_after_a_crash():
    """The process dies when the agent two below has replied once, and its journal alone is left."""
    journal, left = MemoryJournal(), MemoryJournal()

    async def dies(request):
        if request.step == 0:
            return [("look", {"what": "a"})]
        for info in await journal.list(500):
            await left.append(info.run_id, 0, list(await journal.read(info.run_id)))
        return "low"

    def agent(kept, inner, *turns):
        return top(*turns, tools=[middle(inner).as_tool()], journal=kept)

    before = agent(journal, low(dies, tools=[look]), [("middle", {"task": "a"})], "done")
    first = await before.run("go")
    after = agent(left, low(lambda _: "low again", tools=[look]), "done again")
    result = await after.resume(first.run_id)
    assert result.text == "done again"
    return after, result


async def called_again():
    tried = []

    def reaction(call, output):
        tried.append(call.name)
        match len(tried):
            case 1:
                return Retry()
            case 2:
                return Alternative("look", {"what": "instead"})

    agent = top([("middle", {"task": "a"})], "done", tools=[middle().as_tool(), look], on_tool_result=reaction)
    result = await agent.run("go")
    assert len(tried) == 3
    return agent, result


async def goes_on():
    agent = top([("middle", {"task": "a"})], "so far", "more", tools=[middle().as_tool()], limits=Limits(steps=3))
    result = await agent.run("go")
    return agent, await agent.resume(result, limits=Limits(steps=9), message="go on")


async def begins_nothing():
    agent = top("never", limits=Limits(tokens=5))
    result = await agent.run("go")
    assert result.stop.reason == "max_tokens"
    return agent, result


KINDS = [
    plain, retries, gives_up, fallback, summaries, closing_reply, two_deep, two_deep_in_a_journal, handed_on,
    no_price_below, not_counted_below, cancelled, deadline, paused, resumed, denied, taken_up_after_a_crash,
    called_again, goes_on, begins_nothing,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_the_parts_come_to_what_the_result_says(kind):
    agent, result = await kind()
    with localcontext(prec=2):
        spending = await agent.spending(result)
        assert spending.total.usage == result.usage
        assert spending.total.cost == result.cost
        assert spending.total.estimated == result.usage.estimated
        for what in ("model", "agent", "step", "tool"):
            parts = spending.by(what)
            usage = Usage()
            for part in parts:
                usage += part.usage
            assert usage == result.usage
            costs = [part.cost for part in parts if part.usage.total_tokens]
            known = None not in costs
            assert known == (result.cost is not None or not costs)
    if known and costs:
        assert sum(costs) == result.cost


async def test_spending_by_model_agent_tool_and_step():
    agent, result = await two_deep()
    spending = await agent.spending(result)
    assert {share.name: share.usage for share in spending.by("model")} == {
        "top": Usage(200, 20), "mid": Usage(80, 20), "small": Usage(14, 6),
    }  # fmt: skip
    assert [share.name for share in spending.by("agent")] == ["top", "middle", "low"]
    own, below = spending.by("tool")
    assert (own.name, own.usage, own.calls) == ("", Usage(200, 20), 0)
    assert (below.name, below.usage, below.calls) == ("middle", Usage(94, 26), 2)
    first, second = spending.by("step")
    assert (first.name, first.usage) == ("0", Usage(194, 36))
    assert (second.name, second.usage, second.cost) == ("1", Usage(100, 10), Decimal("0.00045"))
    with pytest.raises(Misuse, match=r"model, agent, tool, step; it was given 'day'"):
        spending.by("day")


async def test_a_charge_says_who_made_it_and_what_for():
    agent, result = await two_deep()
    charges = (await agent.spending(result)).charges
    deepest = [charge for charge in charges if charge.agent == "low"]
    assert {charge.run_id.count(".") for charge in deepest} == {4}
    assert {(charge.tool, charge.top_step, charge.step) for charge in deepest} == {("middle", 0, 0)}
    agent, result = await closing_reply()
    assert [one.purpose for one in (await agent.spending(result)).charges] == ["reply", "closing reply"]
    agent, result = await retries()
    first, second = (await agent.spending(result)).charges
    assert (first.purpose, first.model, first.estimated) == ("failed attempt", "top", True)
    assert (second.purpose, second.estimated) == ("reply", False)
    agent, result = await summaries()
    written = [one for one in (await agent.spending(result)).charges if one.purpose == "summary"]
    assert written
    assert {one.model for one in written} == {"writer"}


async def test_a_reply_of_one_model_among_several_is_its_own_and_an_attempt_that_broke_off_that_of_all():
    agent, result = await fallback()
    broken, answered = (await agent.spending(result)).charges
    assert (broken.model, broken.purpose) == ("fallback(first, second)", "failed attempt")
    assert broken.cost == Price(100, 100).of(broken.usage)
    assert (answered.model, answered.purpose) == ("second", "reply")


async def test_a_part_with_an_unknown_price_is_unknown_and_no_other():
    agent, result = await no_price_below()
    spending = await agent.spending(result)
    costs = {share.name: share.cost for share in spending.by("model")}
    assert costs["unpriced"] is None
    assert None not in (costs["top"], costs["mid"])
    assert {share.name: share.cost is None for share in spending.by("tool")} == {"": False, "middle": True}


async def test_a_part_that_nobody_counted_is_marked_and_no_other():
    agent, result = await not_counted_below()
    spending = await agent.spending(result)
    assert {share.name: share.estimated for share in spending.by("model")} == {
        "top": False, "mid": False, "small": True,
    }  # fmt: skip
    assert {share.name: share.estimated for share in spending.by("step")} == {"0": True, "1": False}


async def test_a_tool_that_calls_no_model_takes_nothing_and_its_calls_are_counted():
    agent, result = await plain()
    own, looked = (await agent.spending(result)).by("tool")
    assert own.cost == result.cost
    assert (looked.name, looked.calls, looked.usage, looked.cost) == ("look", 1, Usage(), 0)
    agent, result = await called_again()
    assert dict((await agent.spending(result)).calls) == {"middle": 2, "look": 1}


async def test_of_a_run_below_that_is_gone_its_parent_still_tells():
    agent = top([("middle", {"task": "a"})], "done", tools=[middle().as_tool()], journal=MemoryJournal())
    result = await agent.run("go")
    (below,) = [e for e in result.events if isinstance(e, ToolFinished)]
    child = f"{result.run_id}.0.{below.call_id}"
    assert await agent.with_journal(agent._config.journal).spending(child)
    assert await agent._config.journal.delete(child)
    spending = await agent.spending(result.run_id)
    assert (spending.total.usage, spending.total.cost) == (result.usage, result.cost)
    (gone,) = [charge for charge in spending.charges if charge.purpose == "sub-run"]
    assert (gone.run_id, gone.agent, gone.model, gone.tool) == (child, "", "", "middle")
    assert gone.usage == Usage(47, 13)
    assert [share.name for share in spending.by("model")] == ["top", ""]


class Unreadable(MemoryJournal):
    async def read(self, run_id, start=0):
        if "." in run_id:
            raise JournalUnavailable("the disk is gone")
        return await super().read(run_id, start)


async def test_of_a_run_below_that_cannot_be_read_its_parent_still_tells():
    agent = top([("middle", {"task": "a"})], "done", tools=[middle().as_tool()])
    result = await agent.run("go")
    journal = Unreadable()
    await journal.append(result.run_id, 0, list(result.events))
    spending = await agent.with_journal(journal).spending(result.run_id)
    assert spending.total.cost == result.cost
    open_call = [event for event in result.events[:-1] if not isinstance(event, (ToolFinished))][:4]
    cut = Unreadable()
    await cut.append(result.run_id, 0, open_call)
    with pytest.raises(JournalUnavailable):
        await agent.with_journal(cut).spending(result.run_id)


async def test_a_run_that_was_left_tells_what_the_runs_below_it_have_taken(tmp_path):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = top([("middle", {"task": "a"})], "done", tools=[middle().as_tool()], journal=journal)
        result = await agent.run("go")
        left = MemoryJournal()
        for info in await journal.list():
            events = await journal.read(info.run_id)
            kept = next(i for i, e in enumerate(events) if isinstance(e, ModelReplied)) + 2
            await left.append(info.run_id, 0, events[: kept if info.parent is None else len(events)])
        spending = await agent.with_journal(left).spending(result.run_id)
        assert spending.total.usage == Usage(147, 23)
        with pytest.raises(UnknownRun):
            await agent.spending("no-such-run")
    with pytest.raises(Misuse, match="give spending the result"):
        await top().spending("some-run")
    with pytest.raises(Misuse, match="spending takes a run's id"):
        await top().spending(42)


def read(text):
    assert text.endswith("\r\n")
    return list(csv.DictReader(io.StringIO(text)))


async def test_csv_has_every_charge_with_all_digits():
    agent, result = await two_deep()
    spending = await agent.spending(result)
    lines = read(spending.to_csv())
    assert len(lines) == len(spending.charges) == 8
    assert sum(Decimal(line["cost"]) for line in lines) == result.cost
    assert {line["tool"] for line in lines} == {"", "middle"}
    assert lines[0]["purpose"] == "reply"
    assert lines[0]["input_tokens"] == "100"
    assert set(Usage.__struct_fields__) - {"estimated"} < set(lines[0])
    by_tool = read(spending.to_csv(by="tool"))
    assert [(line["tool"], line["calls"]) for line in by_tool] == [("", "0"), ("middle", "2")]
    tiny = Agent(model(["ok"], price=Price(Decimal("0.00001"), 0)))
    small = await tiny.spending(await tiny.run("go"))
    assert read(small.to_csv(by="model"))[0]["cost"] == "0.000000001"


async def test_csv_says_what_is_unknown_and_what_is_an_estimate():
    agent, result = await no_price_below()
    lines = {line["model"]: line for line in read((await agent.spending(result)).to_csv(by="model"))}
    assert lines["unpriced"]["cost"] == ""
    assert lines["top"]["estimated"] == "false"
    agent, result = await not_counted_below()
    lines = {line["model"]: line for line in read((await agent.spending(result)).to_csv(by="model"))}
    assert lines["small"]["estimated"] == "true"
    agent, result = await begins_nothing()
    spending = await agent.spending(result)
    assert spending.to_csv().startswith("run_id,agent,step,model,purpose,tool,top_step,input_tokens,")
    assert spending.to_csv(by="tool").startswith("tool,calls,input_tokens,")
    assert len(spending.to_csv().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"), ("+cmd", "'+cmd"), ("-x", "'-x"), ("@sum", "'@sum"), ("  =1", "'  =1"), ("\t=1", "'\t=1"),
        ("＝1", "'＝1"), ("-5", "-5"), ('a "b", c\n', 'a "b", c\n'), ("gpt-5", "gpt-5"),
    ],
)  # fmt: skip
async def test_no_name_in_csv_is_a_formula(name, cell):
    agent = Agent(model(["ok"], name), name=name)
    (line,) = read((await agent.spending(await agent.run("go"))).to_csv())
    assert (line["model"], line["agent"]) == (cell, cell)


async def test_spending_as_plain_data():
    agent, result = await two_deep()
    spending = await agent.spending(result)
    data = spending.to_dict(by="agent")
    assert json.loads(json.dumps(data)) == data
    assert data["total"]["cost"] == str(result.cost)
    assert [part["agent"] for part in data["by_agent"]] == ["top", "middle", "low"]
    assert len(spending.to_dict()["charges"]) == 8


async def test_a_failed_sub_agent_has_spent_what_it_has():
    @tool
    def broken() -> str:
        """Breaks."""
        raise ToolError("it is broken")

    fails = Agent(model(lambda _: [("broken", {})], "small", usage=Usage(7, 3)), name="low", tools=[broken])
    agent = top([("low", {"task": "a"})], "done", tools=[fails.as_tool()])
    result = await agent.run("go")
    spending = await agent.spending(result)
    assert spending.total.usage == result.usage
    assert spending.by("tool")[1].usage.total_tokens >= 30


async def test_what_a_reply_says_it_cost_is_its_charge():
    reply = ModelReply(AssistantMessage((Text("ok"),)), Usage(1, 1), cost=Decimal("0.7"), model="by-another-name")
    agent = Agent(model([reply]))
    (charge,) = (await agent.spending(await agent.run("go"))).charges
    assert (charge.cost, charge.model) == (Decimal("0.7"), "by-another-name")
