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
"""

import asyncio

import pytest

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
