"""A call of a batch had begun, by the journal, while it was still asked whether those after it may.

Cancelled then, the run told of a call of which nobody knows what it did, which had never been made
  -> test_a_run_that_is_cancelled_while_a_call_is_let_in_says_of_those_before_it_that_they_were_not_made
A process that died then had a person asked whether to make it again
  -> test_nobody_is_asked_about_a_call_that_was_to_begin_with_one_that_was_being_let_in
A call in place of another that was refused counted as made
  -> test_a_call_in_place_of_another_that_is_refused_was_not_made
Rules count the calls of the batch before it all the same
  -> test_a_rule_counts_the_calls_that_were_let_in_before
Replayed, it had a call begin that had been refused for those before it
  -> test_a_rule_counts_the_calls_that_were_let_in_before
  -> test_a_replay_has_as_many_calls_begin_as_a_limit_left_room_for
Calls were begun after a function of the application's had raised, which ends the run
  -> test_nothing_of_a_batch_begins_once_a_function_has_raised_that_lets_it_in
  -> test_what_waits_does_not_begin_once_a_function_has_raised
"""

import asyncio
import time

import pytest
from play import copied

from treadle import Agent, Alternative, Limits, MemoryJournal, ask_before, deny, tool
from treadle.journal import JournalUnavailable
from treadle.kernel.events import ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class World:
    """What was paid, and a rule that takes its time from the second call on."""

    def __init__(self):
        self.paid, self.asked, self.go_on = [], asyncio.Event(), asyncio.Event()

    async def late(self, arguments):
        if arguments["to"] != "a":
            self.asked.set()
            await self.go_on.wait()
        return False

    def agent(self, journal, **more):
        @tool(effect="write", parallel=True)
        async def pay(to: str) -> str:
            """Pays."""
            self.paid.append(to)
            return f"paid {to}"

        calls = [("pay", {"to": "a"}), ("pay", {"to": "b"})]
        model = ScriptedModel(lambda request: "done" if request.step else calls)
        rules = more.pop("approvals", [ask_before("pay", when=self.late)])
        return Agent(model, tools=[pay], approvals=rules, journal=journal, **more)


async def test_a_run_that_is_cancelled_while_a_call_is_let_in_says_of_those_before_it_that_they_were_not_made():
    world, journal = World(), MemoryJournal()
    agent = world.agent(journal)
    async with agent.stream("pay") as live:
        await world.asked.wait()
        result = await live.cancel()
    assert [(call.executed, call.in_doubt) for call in result.tool_calls_made] == [(False, False)] * 2
    assert not any(isinstance(event, ToolStarted) for event in await journal.read(live.run_id))
    assert [message.text for message in result.messages if "unknown" in message.text] == []
    assert world.paid == []


@pytest.mark.parametrize("how", ["a rule", "on_tool_call"])
async def test_nobody_is_asked_about_a_call_that_was_to_begin_with_one_that_was_being_let_in(how):
    class Dies(MemoryJournal):
        dead = False

        async def append(self, *given, **more):
            if self.dead:
                raise JournalUnavailable("the process is gone")
            await super().append(*given, **more)

    world, journal = World(), Dies()

    async def same(call):
        await world.late(call.arguments)

    agent = world.agent(journal, **({} if how == "a rule" else {"on_tool_call": same, "approvals": []}))

    async def until_it_dies():
        async with agent.stream("pay") as live:
            await world.asked.wait()
            # What is said has written what was fed before it.
            await live.send("soon")
            journal.dead = True
            world.go_on.set()
            async for _ in live:
                pass

    with pytest.raises(JournalUnavailable):
        await until_it_dies()
    journal.dead = False
    assert world.paid == []
    (line,) = await journal.list()
    result = await agent.resume(line.run_id)
    assert (result.stop.reason, result.pending) == ("answered", ())
    assert sorted(world.paid) == ["a", "b"]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("parallel", [True, False])
async def test_a_rule_counts_the_calls_that_were_let_in_before(most, parallel):
    paid = []

    @tool(effect="write", parallel=parallel)
    async def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    calls = [("pay", {"to": to}) for to in "aabaab"]
    model = ScriptedModel(lambda request: "done" if request.step == 2 else calls)
    agent = Agent(model, tools=[pay], approvals=[deny("pay", repeats=most)], journal=MemoryJournal())
    result = await agent.run("pay")
    assert result.stop.reason == "answered"
    assert sorted(paid) == sorted("a" * most + "b" * most)
    assert (await agent.replay(result.run_id)).differences == ()


@pytest.mark.parametrize("most", [0, 1, 2, 3])
@pytest.mark.parametrize("parallel", [True, False])
async def test_a_replay_has_as_many_calls_begin_as_a_limit_left_room_for(most, parallel):
    paid = []

    @tool(effect="write", parallel=parallel, needs_approval=True)
    async def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    calls = [("pay", {"to": to}) for to in "abcd"]
    model = ScriptedModel(lambda request: "done" if request.step else calls)
    agent = Agent(model, tools=[pay], journal=MemoryJournal())
    waits = await agent.run("pay")
    *now, later = waits.pending
    waits = await agent.resume(waits, approve=now, limits=Limits(tool_calls=most))
    result = await agent.resume(waits, approve=[later], limits=Limits(tool_calls=most + 1))
    assert len(paid) in (most, most + 1)
    assert (await agent.replay(result.run_id)).differences == ()


async def test_a_call_in_place_of_another_that_is_refused_was_not_made():
    paid, asked = [], []

    @tool(effect="read")
    async def look() -> str:
        """Looks."""
        return "seen"

    @tool(effect="idempotent")
    async def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    def at_first(arguments):
        asked.append(arguments)
        return len(asked) == 1

    async def pays(call, result):
        return Alternative("pay", {"to": "a"}) if call.doing.name == "look" else None

    model = ScriptedModel(lambda request: [[("look", {})], [("pay", {"to": "a"})], "done"][request.step])
    rules = [deny("pay", when=at_first), deny("pay", repeats=1)]
    result = await Agent(model, tools=[look, pay], approvals=rules, on_tool_result=pays).run("pay")
    assert paid == ["a"]
    (looked, _) = result.tool_calls_made
    assert (looked.name, looked.doing.name, looked.ran, looked.executed) == ("look", "look", (), True)


async def test_nothing_of_a_batch_begins_once_a_function_has_raised_that_lets_it_in():
    world = World()

    def raises(call):
        if call.arguments["to"] == "b":
            raise ValueError("no such person")

    with pytest.raises(ValueError, match="no such person"):
        await world.agent(MemoryJournal(), approvals=[], on_tool_call=raises).run("pay")
    assert world.paid == []


@pytest.mark.parametrize("waits_for", ["a resource", "a rule"])
async def test_what_waits_does_not_begin_once_a_function_has_raised(waits_for):
    """A payment that waited for what another run used was begun after the run's own hook had raised."""
    paid, used, go_on = [], asyncio.Event(), asyncio.Event()

    @tool(effect="write", resource="till")
    async def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        if to == "first":
            used.set()
            await go_on.wait()
        return "paid"

    @tool(effect="read")
    async def look() -> str:
        """Looks."""
        await asyncio.sleep(0.01)
        return "seen"

    def hook(call, result):
        if call.name == "look":
            go_on_soon()
            raise ValueError("not that")

    def go_on_soon():
        asyncio.get_running_loop().call_later(0.05, go_on.set)

    async def late(arguments):
        if waits_for == "a rule" and arguments["to"] == "second":
            await go_on.wait()
        return False

    first = ScriptedModel([[("pay", {"to": "first"})], "ok"])
    second = ScriptedModel([[("look", {}), ("pay", {"to": "second"})], "ok"])
    other = asyncio.get_running_loop().create_task(Agent(first, tools=[pay]).run("pay"))
    if waits_for == "a resource":
        await used.wait()
    else:
        other.cancel()
    agent = Agent(second, tools=[pay, look], on_tool_result=hook, approvals=[ask_before("pay", when=late)])
    with pytest.raises(ValueError, match="not that"):
        await agent.run("pay")
    await asyncio.wait([other])
    assert "second" not in paid


async def test_nothing_begins_where_a_rule_that_denies_the_last_call_holds_the_loop_beyond_the_deadline():
    world = World()

    def holds(arguments):
        if arguments["to"] == "b":
            time.sleep(0.5)
        return arguments["to"] == "b"

    journal = MemoryJournal()
    result = await world.agent(journal, approvals=[deny("pay", when=holds)], limits=Limits(seconds=0.4)).run("pay")
    assert result.stop.reason == "deadline"
    assert not any(isinstance(event, ToolStarted) for event in await journal.read(result.run_id))
    assert [(call.executed, call.in_doubt) for call in result.tool_calls_made] == [(False, False)] * 2
    assert world.paid == []


async def test_a_call_that_a_crash_cut_off_is_counted_once_as_it_is_let_in_again():
    """Counted twice, the second of two that a rule allows would be denied."""
    journal, under_way, seen = MemoryJournal(), asyncio.Event(), []

    @tool(effect="read")
    async def look(at: str) -> str:
        """Looks."""
        seen.append(at)
        if len(seen) == 2:
            under_way.set()
        if len(seen) < 3:
            await asyncio.sleep(3600)
        return "seen"

    def agent(journal):
        model = ScriptedModel(lambda request: "done" if request.step else [("look", {"at": "x"})] * 2)
        return Agent(model, tools=[look], approvals=[deny("look", repeats=2)], journal=journal)

    running = asyncio.get_running_loop().create_task(agent(journal).run("look"))
    await under_way.wait()
    left = await copied(journal)
    running.cancel()
    await asyncio.wait([running])
    (line,) = await left.list()
    result = await agent(left).resume(line.run_id)
    assert [call.executed for call in result.tool_calls_made] == [True, True]
    assert [message.text for message in result.messages if message.role == "tool"] == ["seen", "seen"]
