"""Agents as tools of agents, hand-offs, and the limits that they share."""

import asyncio
from decimal import Decimal

import pytest
from pydantic import BaseModel, ConfigDict, field_serializer

from treadle import Agent, Limits, MemoryJournal, Price, SqliteJournal, SubRunEvent, external_tool, handoff, tool
from treadle.kernel.events import RunStarted
from treadle.models import AssistantMessage, ModelReply, ModelSettings, Text, Usage
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def expert(turns, **options):
    return Agent(ScriptedModel(turns), name="expert", instructions="You know things.", **options)


async def test_an_agent_is_asked_as_a_tool():
    child = expert(lambda request: f"the answer to {request.messages[-1].text}")
    model = ScriptedModel([[("expert", {"task": "what is it?"})], "done"])
    seen = []
    result = await Agent(model, tools=[child.as_tool()]).run("go", on_event=seen.append)
    assert result.finished
    assert [m.text for m in result.messages if m.role == "tool"] == ["the answer to what is it?"]
    inner = [event for event in seen if isinstance(event, SubRunEvent)]
    assert isinstance(inner[0].event, RunStarted)
    assert inner[0].event.parent.run_id == result.run_id
    assert model.requests[0].tools[0].description == "You know things."


class Picture(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    pixels: bytes


class Sealed(BaseModel):
    pixels: str

    @field_serializer("pixels")
    def never(self, value: str) -> str:
        raise KeyError(value)


@pytest.mark.parametrize("kind", [Picture, Sealed])
async def test_an_answer_without_a_form_in_json_is_told_as_it_was_given(kind):
    """Regression: the exception came out of the parent's `run` and of each `resume`: it stood as under way for ever."""
    journal = MemoryJournal()
    child = Agent(ScriptedModel(['{"pixels": "//8="}']), name="expert", output=kind)
    parent = Agent(ScriptedModel([[("expert", {"task": "draw"})], "done"]), tools=[child.as_tool()], journal=journal)
    result = await parent.run("go")
    (call,) = result.tool_calls_made
    assert (result.text, call.is_error, call.result.text) == ("done", False, '{"pixels":"//8="}')
    assert call.app == {"pixels": "//8="}
    assert [run.status for run in await journal.list(5)] == ["finished", "finished"]


async def test_an_answer_that_is_no_number_is_the_same_once_the_run_is_read_again():
    """Regression: the application was given a NaN, and None in its place by the same run read from its journal."""
    journal = MemoryJournal()
    child = Agent(ScriptedModel(['{"result": "NaN"}']), name="expert", output=dict[str, float])
    parent = Agent(ScriptedModel([[("expert", {"task": "measure"})], "done"]), tools=[child.as_tool()], journal=journal)
    result = await parent.run("go")
    read = await parent.resume(result.run_id)
    assert [call.app for call in (*result.tool_calls_made, *read.tool_calls_made)] == [{"result": "NaN"}] * 2


async def test_what_a_sub_run_takes_counts_for_its_parent():
    child = Agent(ScriptedModel(lambda request: "yes", usage=Usage(10, 5), price=Price(1, 1)), name="expert")
    model = ScriptedModel(
        [[("expert", {"task": "a"}), ("expert", {"task": "b"})], "done"], usage=Usage(7, 3), price=Price(0, 0)
    )
    result = await Agent(model, tools=[child.as_tool()]).run("go")
    assert result.usage.total_tokens == 2 * 10 + 2 * 15
    assert result.sub_steps == 2
    assert result.cost == Decimal("0.00003")


@pytest.mark.parametrize("steps", [3, 4, 6, 9])
async def test_ten_children_at_once_take_no_more_steps_than_one_may(steps):
    asked = []

    async def look(request):
        asked.append(request.run_id)
        await asyncio.sleep(0)
        return [("note", {"n": request.step})]

    @tool
    async def note(n: int) -> int:
        """Note."""
        return n

    child = Agent(ScriptedModel(look), name="expert", tools=[note], on_limit="stop")
    model = ScriptedModel(lambda request: [("expert", {"task": str(i)}) for i in range(10)])
    agent = Agent(model, tools=[child.as_tool()], limits=Limits(steps=steps), on_limit="stop")
    result = await agent.run("go")
    assert len(asked) + len(model.requests) <= steps
    assert result.stop.reason == "max_steps"
    assert result.sub_steps == len(asked)


@pytest.mark.parametrize("limit", [Limits(tokens=5000), Limits(usd=Decimal("0.005"))])
async def test_children_share_tokens_and_money(limit):
    price = Price(1, 1)

    async def spends(request):
        await asyncio.sleep(0)
        return ModelReply(AssistantMessage((Text("yes"),)), Usage(3, request.settings.max_tokens))

    leaf = ScriptedModel(spends, price=price)
    child = Agent(leaf, name="expert", settings=ModelSettings(max_tokens=300))
    model = ScriptedModel(
        lambda request: [("expert", {"task": "go"}) for _ in range(10)], usage=Usage(100, 20), price=price
    )
    agent = Agent(model, tools=[child.as_tool()], limits=limit, on_limit="stop", watch_progress=False)
    result = await agent.run("go")
    if limit.tokens is not None:
        assert result.usage.total_tokens <= limit.tokens
    if limit.budget is not None:
        assert result.cost <= limit.budget
    assert result.stop.reason in ("max_tokens", "max_cost")
    assert result.sub_steps > 10


@pytest.mark.parametrize(("resource", "most_at_once"), [(None, 3), ("till", 1)])
async def test_agents_called_in_one_reply_work_side_by_side_but_for_what_a_resource_keeps_apart(resource, most_at_once):
    at_once, most = 0, 0

    @tool(resource=resource)
    async def pay(to: str) -> str:
        """Pays."""
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.02)
        at_once -= 1
        return "paid"

    clerks = [
        Agent(ScriptedModel([[("pay", {"to": name})], "done"]), name=name, tools=[pay])
        for name in ("ann", "bob", "eve")
    ]
    calls = [(clerk.name, {"task": "Pay."}) for clerk in clerks]
    head = Agent(ScriptedModel([calls, "done"]), tools=[clerk.as_tool() for clerk in clerks])
    assert (await head.run("go")).finished
    assert most == most_at_once


async def test_cancelling_the_parent_cancels_the_child():
    reached = asyncio.Event()
    journal = MemoryJournal()

    async def hangs(request):
        reached.set()
        await asyncio.sleep(60)

    child = Agent(ScriptedModel(hangs), name="expert")
    agent = Agent(ScriptedModel([[("expert", {"task": "x"})]]), tools=[child.as_tool()], journal=journal)
    async with agent.stream("go") as run:
        await reached.wait()
        result = await run.cancel()
    assert result.stop.reason == "cancelled"
    runs = {info.run_id: info for info in await journal.list()}
    assert len(runs) == 2
    assert {info.stop.reason for info in runs.values()} == {"cancelled"}


def approving():
    done = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        done.append(amount)
        return f"paid {amount}"

    return pay, done


async def test_an_approval_in_a_sub_run_reaches_the_top_and_its_decision_finds_its_way_down(tmp_path):
    pay, done = approving()

    def agent(journal):
        child = expert([[("pay", {"amount": 5})], "all paid"] if not done else [], tools=[pay])
        after = Agent(ScriptedModel(["all paid"]), name="expert", tools=[pay])
        inner = child if journal is first else after
        turns = [[("expert", {"task": "pay"})], "done"] if journal is first else ["done"]
        return Agent(ScriptedModel(turns), tools=[inner.as_tool()], journal=journal)

    first = SqliteJournal(tmp_path / "runs.db")
    async with first:
        waiting = await agent(first).run("go")
    assert waiting.stop.reason == "waiting"
    (pending,) = waiting.pending
    assert (pending.tool, pending.arguments, pending.kind) == ("pay", {"amount": 5}, "approval")
    assert pending.call_id == "call_0_0/call_0_0"
    async with SqliteJournal(tmp_path / "runs.db") as second:
        result = await agent(second).resume(waiting.run_id, approve=[pending.call_id])
    assert result.finished
    assert done == [5]
    assert [m.text for m in result.messages if m.role == "tool"] == ["all paid"]


async def test_a_denial_finds_its_way_down_without_a_journal():
    pay, done = approving()
    child = expert([[("pay", {"amount": 5})], "not paid"], tools=[pay])
    agent = Agent(ScriptedModel([[("expert", {"task": "pay"})], "done"]), tools=[child.as_tool()])
    waiting = await agent.run("go")
    result = await agent.resume(waiting, deny={waiting.pending[0].call_id: "too much"})
    assert result.finished
    assert not done
    assert [m.text for m in result.messages if m.role == "tool"] == ["not paid"]


async def test_a_sub_run_that_was_done_before_a_crash_is_not_asked_again():
    journal = MemoryJournal()
    calls = []
    child = expert(lambda request: calls.append(1) or "answer")
    agent = Agent(
        ScriptedModel(lambda r: [("expert", {"task": "x"})] if r.step == 0 else "done"),
        tools=[child.as_tool()], journal=journal,
    )  # fmt: skip
    result = await agent.run("go")
    events = await journal.read(result.run_id)
    crashed = MemoryJournal()
    started = next(i for i, event in enumerate(events) if type(event).__name__ == "ToolStarted")
    await crashed.append(result.run_id, 0, events[: started + 1])
    inner = f"{result.run_id}.0.call_0_0"
    await crashed.append(inner, 0, await journal.read(inner))
    again = Agent(
        ScriptedModel(["done"]), tools=[child.as_tool()], journal=crashed,
    )  # fmt: skip
    resumed = await again.resume(result.run_id)
    assert resumed.finished
    assert calls == [1]
    assert resumed.usage.total_tokens > 0


async def test_a_handoff_passes_the_conversation_on_and_its_answer_is_the_runs():
    model = ScriptedModel(lambda request: "from the expert: " + request.messages[1].text)
    other = Agent(model, name="billing", instructions="You do bills.")
    front = ScriptedModel([[("transfer_to_billing", {"reason": "about a bill"})]])
    result = await Agent(front, instructions="You greet.", tools=[handoff(other)]).run("my bill is wrong")
    assert result.stop.reason == "answered"
    assert result.text == "from the expert: my bill is wrong"
    roles = [message.role for message in model.requests[0].messages]
    assert roles == ["system", "user", "user"]
    assert model.requests[0].messages[0].text == "You do bills."


async def test_a_sub_run_that_stops_short_is_an_error_with_what_it_found():
    @tool
    def look(n: int) -> int:
        """Look."""
        return n

    child = Agent(
        ScriptedModel(lambda request: ("so far so good", [("look", {"n": request.step})])),
        name="expert", tools=[look], limits=Limits(steps=2), on_limit="stop",
    )  # fmt: skip
    result = await Agent(ScriptedModel([[("expert", {"task": "x"})], "done"]), tools=[child.as_tool()]).run("go")
    (answer,) = [m for m in result.messages if m.role == "tool"]
    assert answer.is_error
    assert "so far so good" in answer.text
    assert "max_steps" in answer.text


async def test_an_agent_as_a_tool_needs_a_run_around_it():
    output = await expert(["x"]).as_tool().call({"task": "x"})
    assert output.is_error
    assert "from a run of another agent" in output.content


async def test_a_result_from_outside_is_passed_down():
    ask = external_tool("ask", "Ask someone.", wait=True)
    child = expert([[("ask", {})], "thanks"], tools=[ask])
    agent = Agent(ScriptedModel([[("expert", {"task": "x"})], "done"]), tools=[child.as_tool()])
    waiting = await agent.run("go")
    result = await agent.resume(waiting, results={waiting.pending[0].call_id: "forty-two"})
    assert result.finished
