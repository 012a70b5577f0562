"""What budgets tell of a run whose process died, where another has other budgets, or another day."""

import asyncio
import sqlite3
import time
from decimal import Decimal

import pytest
from hanging import Hangs

from treadle import Agent, Budget, Limits, MemoryJournal, ModelSettings, Price, SqliteJournal, Usage, tool
from treadle.drivers import turn
from treadle.kernel.events import RunResumed, StepPrepared
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SETTINGS = ModelSettings(max_tokens=1000)
MIDNIGHT = 1_800_057_600.0


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def left_asking(agent, model, run):
    """The journal as a process leaves it that dies while its model is asked."""
    task = asyncio.get_running_loop().create_task(run)
    asked = asyncio.get_running_loop().create_task(model.asked.wait())
    await asyncio.wait([asked, task], return_when=asyncio.FIRST_COMPLETED)
    assert asked.done(), await task
    left = MemoryJournal()
    for line in await agent.journal.list():
        await left.append(line.run_id, 0, await agent.journal.read(line.run_id))
    return left, task


async def ended(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def said(*texts):
    return ScriptedModel(list(texts), usage=Usage(20, 10))


async def test_a_budget_that_the_dead_process_did_not_have_does_not_say_that_nothing_was_asked():
    """It had the run once, and tells of that time: so a call that was billed was told by nobody, and a limit broken."""
    budget, journal = Budget(tokens=100_000, name="for a while"), MemoryJournal()
    first = await Agent(said("one"), journal=journal, settings=SETTINGS).run("go")
    await Agent(said("one", "two"), journal=journal, settings=SETTINGS).resume(
        first.run_id, message="more", budget=budget
    )
    model = Hangs()
    agent = Agent(model, journal=journal, settings=SETTINGS)
    going_on = agent.resume(first.run_id, message="and more", limits=Limits(tokens=1500))
    left, task = await left_asking(agent, model, going_on)

    last = Agent(said("one", "two", "three"), journal=left, settings=SETTINGS)
    result = await last.resume(first.run_id, budget=budget)
    await ended(task)
    lost = [event.lost for event in result.events if isinstance(event, RunResumed) and event.lost is not None]
    assert len(lost) == 1
    assert result.usage.total_tokens >= 60 + lost[0].usage.total_tokens
    assert budget.spent().tokens == result.usage.total_tokens


async def test_what_a_dead_process_had_set_aside_on_the_day_before_is_given_back_when_the_run_has_ended(monkeypatch):
    """It stayed set aside on that day, until somebody asked for the run once more."""
    now = [MIDNIGHT - 10]
    monkeypatch.setattr(time, "time", lambda: now[0])
    daily, model = Budget(tokens=100_000, per="day"), Hangs()
    agent = Agent(model, journal=MemoryJournal(), settings=SETTINGS, budget=daily)
    left, task = await left_asking(agent, model, agent.run("go"))
    (before,) = daily.purses()
    assert daily.spent(before).held_tokens > 0

    now[0] = MIDNIGHT + 10
    (line,) = await left.list()
    result = await Agent(said("fine"), journal=left, settings=SETTINGS, budget=daily).resume(line.run_id)
    told = [daily.spent(key) for key in daily.purses()]
    await ended(task)
    assert [one.held_tokens for one in told] == [0, 0]
    assert sum(one.tokens for one in told) == result.usage.total_tokens


async def test_a_run_counts_once_where_the_clock_is_set_back_to_the_day_before_right_after_it_began(monkeypatch):
    """Its first call counted on the day before, and on the day on which it had begun once more."""
    now = [MIDNIGHT + 10]
    monkeypatch.setattr(time, "time", lambda: now[0])

    def chosen(context):
        now[0] = MIDNIGHT - 10 if context.step_number == 0 else MIDNIGHT + 20

    daily = Budget(tokens=100_000, per="day")
    agent = Agent(said("one", "two"), journal=MemoryJournal(), settings=SETTINGS, budget=daily, prepare_step=chosen)
    first = await agent.run("go")
    result = await agent.resume(first.run_id, message="more")
    assert sum(daily.spent(key).tokens for key in daily.purses()) == result.usage.total_tokens == 60


@pytest.mark.parametrize(
    ("how", "agent_of", "rests"),
    [
        ("run", "same", "ended"),
        ("run", "same", "waits"),
        ("run", "same", "waits below"),
        ("worker", "another", "waits"),
        ("below", "another", "ended"),
    ],
)
async def test_what_a_run_that_came_to_rest_as_its_process_died_holds_is_no_reason_to_refuse_another(
    tmp_path, monkeypatch, how, agent_of, rests
):
    """Nobody asked for it again, as it had ended: so it stayed set aside, and the next was told that all is used."""
    monkeypatch.setattr(turn, "LAST_WORD", 0.0)
    held = sqlite3.connect(tmp_path / "spent.db", isolation_level=None, check_same_thread=False)

    @tool(needs_approval=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    def replies(request):
        if request.messages[-1].text != "go":
            return "done"
        # As a process that dies then: the budget cannot be told any more what the reply took.
        held.execute("BEGIN IMMEDIATE")
        return "done" if rests == "ended" else [("pay", {})]

    def called(name, journal, **more):
        model = ScriptedModel(replies, usage=Usage(20, 10))
        return Agent(model, name=name, journal=journal, settings=SETTINGS, tools=[pay], **more)

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        worst = (await called("clerk", None, budget=Budget(tokens=10_000)).estimate("go")).tokens
        budget = Budget(tokens=worst + 400, path=tmp_path / "spent.db")
        clerk = called("clerk", journal, budget=budget)
        before = clerk
        if rests == "waits below":
            tasks = ["go", "and now"]
            script = ScriptedModel(lambda request: [("clerk", {"task": tasks.pop(0)})] if request.step == 0 else "done")
            before = Agent(script, name="top", tools=[clerk.as_tool()], journal=journal)
        first = await before.run("go")
        held.execute("ROLLBACK")
        assert first.stop.reason == ("answered" if rests == "ended" else "waiting")
        assert budget.spent().held_tokens > 0

        agent = before if agent_of == "same" else called("other", journal, budget=budget)
        if how == "worker":
            run_id = await agent.submit("and now", to=Anywhere())
            result = await asyncio.wait_for(agent.drive(run_id), 10)
        elif how == "below":
            script = ScriptedModel([[(agent.name, {"task": "and now"})], "it is done"])
            result = await Agent(script, name="boss", tools=[agent.as_tool()], journal=journal).run("do it")
            assert result.messages[-2].text == "done"
        else:
            result = await agent.run("and now")
        assert result.stop.reason == "answered"
        assert (budget.spent().tokens, budget.spent().held_tokens) == (60, 0)
        if first.pending:
            await before.resume(first.run_id, approve=first.pending)
            assert (budget.spent().tokens, budget.spent().held_tokens) == (90, 0)
        budget.close()
    held.close()


async def test_for_many_budgets_in_one_place_it_is_looked_once_who_holds_something(tmp_path, monkeypatch):
    """An application may make a budget for each run; each was as if nobody had looked before."""
    monkeypatch.setattr(turn, "LAST_WORD", 0.0)
    looked = []

    class Looked(SqliteJournal):
        async def holders(self, run_ids):
            looked.append(sorted(run_ids))
            return await super().holders(run_ids)

    def clerk(journal, **more):
        return Agent(said("one", "two"), journal=journal, settings=SETTINGS, **more)

    async with Looked(tmp_path / "runs.db") as journal:
        worst = (await clerk(None, budget=Budget(tokens=10_000)).estimate("go")).tokens
        model = Hangs()
        under_way = Agent(model, settings=SETTINGS, journal=journal)
        first = Budget(tokens=worst, path=tmp_path / "spent.db")
        task = asyncio.get_running_loop().create_task(under_way.run("go", budget=first))
        await asyncio.wait_for(model.asked.wait(), 10)
        for _ in range(3):
            budget = Budget(tokens=worst, path=tmp_path / "spent.db")
            assert (await clerk(journal).run("go", budget=budget)).stop.reason == "max_tokens"
            budget.close()
        await ended(task)
        first.close()
    assert len(looked) == 1


async def test_a_run_below_that_is_refused_is_no_fault_of_one_above_whose_price_is_not_known(tmp_path):
    """It was looked who holds what it lacks as if the one above had the budget: the run ended on a `Misuse`."""
    budget, model = Budget(usd=Decimal("0.0012"), path=tmp_path / "spent.db"), Hangs()
    model.price = Price(1, 1)
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        under_way = Agent(model, settings=SETTINGS, journal=journal, budget=budget)
        task = asyncio.get_running_loop().create_task(under_way.run("go"))
        await asyncio.wait_for(model.asked.wait(), 10)
        priced = ScriptedModel(["fine"], usage=Usage(20, 10), price=Price(1, 1))
        clerk = Agent(priced, name="clerk", settings=SETTINGS, budget=budget)
        script = ScriptedModel([[("clerk", {"task": "go"})], "done"])
        result = await Agent(script, name="top", tools=[clerk.as_tool()], journal=journal).run("go")
        assert result.text == "done"
        await ended(task)
    budget.close()


@pytest.mark.parametrize("fault", ["raises", "does not follow"])
async def test_a_run_that_cannot_be_read_is_no_fault_of_one_that_lacks_what_it_holds(tmp_path, fault):
    """What a journal of one's own raised for that run, the one that was to be refused raised."""

    class OnesOwn(SqliteJournal):
        other = ""

        async def holders(self, run_ids):
            return {}

        async def read(self, run_id, start=0):
            found = await super().read(run_id, start)
            if run_id == self.other and fault == "raises":
                raise ConnectionResetError
            return [*found, found[0]] if run_id == self.other else found

    def clerk(journal, **more):
        return Agent(said("one"), journal=journal, settings=SETTINGS, **more)

    async with OnesOwn(tmp_path / "runs.db") as journal:
        worst = (await clerk(None, budget=Budget(tokens=10_000)).estimate("go")).tokens
        model, budget = Hangs(), Budget(tokens=worst, path=tmp_path / "spent.db")
        under_way = Agent(model, settings=SETTINGS, journal=journal, budget=budget)
        task = asyncio.get_running_loop().create_task(under_way.run("go"))
        await asyncio.wait_for(model.asked.wait(), 10)
        (line,) = await journal.list()
        journal.other = line.run_id
        assert (await clerk(journal, budget=budget).run("go")).stop.reason == "max_tokens"
        await ended(task)
    budget.close()


async def test_what_is_given_back_makes_a_reply_longer_and_never_shorter(tmp_path, monkeypatch):
    """What had been set aside for a shorter reply counted as taken: of 900 tokens that were free 113 were left."""
    monkeypatch.setattr(turn, "LAST_WORD", 0.0)
    held = sqlite3.connect(tmp_path / "spent.db", isolation_level=None, check_same_thread=False)

    def replies(request):
        if request.messages[-1].text == "go":
            held.execute("BEGIN IMMEDIATE")
        return "done"

    def clerk(journal, longest, **more):
        model = ScriptedModel(replies, usage=Usage(20, 10))
        return Agent(model, journal=journal, settings=ModelSettings(max_tokens=longest), **more)

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        worst = (await clerk(None, 100, budget=Budget(tokens=10_000)).estimate("go")).tokens
        budget = Budget(tokens=worst + 900, path=tmp_path / "spent.db")
        await clerk(journal, 100, budget=budget).run("go")
        held.execute("ROLLBACK")
        assert budget.spent().held_tokens == worst
        result = await clerk(journal, 2000, budget=budget).run("and now")
        (reserve,) = [event.reserve for event in result.events if isinstance(event, StepPrepared)]
        assert reserve.tokens == worst + 900 - 30
        assert (budget.spent().tokens, budget.spent().held_tokens) == (60, 0)
        budget.close()
    held.close()


async def test_what_a_run_holds_that_is_gone_on_with_in_that_moment_is_not_given_back(tmp_path, monkeypatch):
    """Its row was set to what it had used when it waited, though its next call was under way by then."""
    monkeypatch.setattr(turn, "LAST_WORD", 0.0)
    held = sqlite3.connect(tmp_path / "spent.db", isolation_level=None, check_same_thread=False)
    asked, answers, going_on = asyncio.Event(), asyncio.Event(), []

    @tool(needs_approval=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    class Meanwhile(SqliteJournal):
        meanwhile = None

        async def read(self, run_id, start=0):
            found = await super().read(run_id, start)
            if "." in run_id and self.meanwhile is not None:
                resumes, self.meanwhile = self.meanwhile, None
                going_on.append(asyncio.get_running_loop().create_task(resumes))
                await asyncio.wait_for(asked.wait(), 10)
            return found

    class Clerk(ScriptedModel):
        async def stream(self, request):
            if request.step == 1:
                asked.set()
                await answers.wait()
            async for event in super().stream(request):
                yield event

    def replies(request):
        if request.messages[-1].text != "go":
            return "done"
        held.execute("BEGIN IMMEDIATE")
        return [("pay", {})]

    def clerk(**more):
        return Agent(Clerk(replies, usage=Usage(20, 10)), name="clerk", settings=SETTINGS, tools=[pay], **more)

    async with Meanwhile(tmp_path / "runs.db") as journal:
        worst = (await clerk(budget=Budget(tokens=10_000)).estimate("go")).tokens
        budget, tasks = Budget(tokens=worst + 400, path=tmp_path / "spent.db"), ["go", "and now"]
        script = ScriptedModel(lambda request: "done" if request.step else [("clerk", {"task": tasks.pop(0)})])
        top = Agent(script, name="top", tools=[clerk(budget=budget).as_tool()], journal=journal)
        first = await top.run("go")
        held.execute("ROLLBACK")
        journal.meanwhile = top.resume(first.run_id, approve=first.pending)
        await top.run("and now")
        assert len(going_on) == 1
        assert budget.spent().held_tokens >= SETTINGS.max_tokens
        answers.set()
        assert (await going_on[0]).stop.reason == "answered"
        assert (budget.spent().tokens, budget.spent().held_tokens) == (90, 0)
        budget.close()
    held.close()


class Anywhere:
    """A queue that takes all."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass
