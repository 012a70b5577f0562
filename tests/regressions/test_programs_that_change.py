"""Runs of a program that are taken up by another version of it: what its tools, servers and choices were by then."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hanging import Hangs
from tools.skill_folders import skill_in

from treadle import (
    Agent,
    Alternative,
    Budget,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    Retry,
    StepSettings,
    ToolContext,
    ask_before,
    deny,
    tool,
)
from treadle.context.frames import ACTIVATE
from treadle.kernel.events import ModelReplied, StepPrepared, ToolFinished, ToolStarted
from treadle.mcp import MCPServer
from treadle.models import ModelEvent
from treadle.testing import ScriptedModel
from treadle.tools.errors import AsksPerson

pytestmark = pytest.mark.anyio

RAW = Path(__file__).parents[1] / "mcp" / "raw_server.py"


def by_step(*replies: Any) -> ScriptedModel:
    return ScriptedModel(lambda request: replies[request.step])


async def died_after(agent: Agent[Any, Any], kind: type) -> tuple[MemoryJournal, str]:
    """What a process left behind that died right after the first event of that kind."""
    whole = (await agent.run("go")).events
    last = next(i for i, event in enumerate(whole) if isinstance(event, kind))
    journal = MemoryJournal()
    await journal.append(whole[0].run_id, 0, whole[: last + 1])
    return journal, whole[0].run_id


def paying(effect: str, done: list[int]) -> Any:
    @tool(effect=effect)
    async def pay(amount: int) -> str:
        """Pays an amount."""
        done.append(amount)
        return "paid"

    return pay


@pytest.mark.parametrize("again", [Retry(), Alternative("pay", {"amount": 5})])
async def test_a_write_that_did_run_is_not_made_again_by_a_hook_of_a_program_that_calls_it_a_read(again):
    done: list[int] = []
    script = [("pay", {"amount": 5})], "done"

    def react(call, result):
        return again if call.made == 1 else None

    def version(effect: str, **options: Any) -> Agent[Any, Any]:
        return Agent(by_step(*script), tools=[paying(effect, done)], on_tool_result=react, **options)

    journal, run_id = await died_after(version("write"), ToolFinished)
    assert done == [5]
    result = await version("read", journal=journal).resume(run_id)
    assert (result.text, done) == ("done", [5])


@pytest.mark.parametrize("choice", ["pay", "required"])
@pytest.mark.parametrize("kind", [ModelReplied, StepPrepared])
async def test_a_model_is_not_to_call_a_tool_that_is_gone(kind, choice):
    """Providers refuse such a request; where one does not, its answer was taken for none three times."""
    script = [("pay", {"amount": 5})], [("pay", {"amount": 6})], "done", "done"
    before = Agent(by_step(*script), tools=[paying("read", [])], tool_choice=choice)
    journal, run_id = await died_after(before, kind)
    model = by_step("done", "done", "done", "done")
    await Agent(model, journal=journal).resume(run_id)
    assert {request.tool_choice for request in model.requests} == {"auto"}


async def test_a_run_keeps_its_own_choice_where_a_step_is_prepared_for_a_program_that_has_another():
    """A step was refused for offering no tool that only runs begun by this program are to call."""
    tools = [paying("read", []), tool(name="look")(lambda: "seen")]
    first = await Agent(by_step("done"), tools=tools, journal=(journal := MemoryJournal())).run("go")
    model = by_step("", "done")
    now = Agent(
        model, tools=tools, tool_choice="pay", prepare_step=lambda context: StepSettings(tools=["look"]),
        journal=journal,
    )  # fmt: skip
    assert (await now.resume(first.run_id, message="more")).text == "done"
    assert [request.tool_choice for request in model.requests] == ["auto"]
    with pytest.raises(Misuse, match="'pay' is none of"):
        await now.run("go")


async def test_a_run_that_is_to_call_a_tool_is_to_call_one_that_its_skill_allows_by_another_program(tmp_path):
    skill_in(tmp_path, "pdf", "allowed-tools: look\n")
    script = [(ACTIVATE, {"name": "pdf"})], [("look", {})], "done"
    options = {"tools": [paying("read", []), tool(name="look")(lambda: "seen")], "skills": [tmp_path]}
    journal, run_id = await died_after(Agent(by_step(*script), tool_choice="required", **options), ToolFinished)
    model = by_step(*script)
    await Agent(model, tool_choice="pay", journal=journal, **options).resume(run_id)
    assert (model.requests[0].step, model.requests[0].tool_choice) == (1, "required")


class Counting:
    """A server that is given to versions of a program, each of which says something else of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def version(self, **options: Any) -> MCPServer:
        return MCPServer.stdio(sys.executable, "-S", str(RAW), str(self.folder), name="raw", **options)

    @property
    def called(self) -> int:
        calls = self.folder / "calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0


TIGHTENED = [
    ({}, [ask_before(effect="write")], 1),
    ({}, [deny(effect="write")], 0),
    ({"needs_approval": True}, [], 1),
    ({"only": ["say"]}, [], 0),
]


@pytest.mark.parametrize(("options", "rules", "waits"), TIGHTENED)
async def test_what_a_program_says_of_a_server_holds_for_calls_that_were_open_when_it_was_changed(
    tmp_path, options, rules, waits
):
    """They were made by what the earlier version had said: as reads, that nobody is asked about."""
    pytest.importorskip("mcp")
    server, script = Counting(tmp_path), ([("raw__count", {})], "done")
    before = Agent(by_step(*script), tools=[server.version(effects={"count": "read"})])
    journal, run_id = await died_after(before, ModelReplied)
    called = server.called
    now = Agent(by_step(*script), tools=[server.version(**options)], approvals=rules, journal=journal)
    result = await now.resume(run_id)
    assert (len(result.pending), server.called) == (waits, called)


async def test_a_call_of_a_server_in_flight_is_in_doubt_where_the_program_says_by_now_that_it_writes(tmp_path):
    pytest.importorskip("mcp")
    server, script = Counting(tmp_path), ([("raw__count", {})], "done")
    before = Agent(by_step(*script), tools=[server.version(effects={"count": "read"})])
    journal, run_id = await died_after(before, ToolStarted)
    called = server.called
    result = await Agent(by_step(*script), tools=[server.version()], journal=journal).resume(run_id)
    assert [one.kind for one in result.pending] == ["interrupted"]
    assert server.called == called


async def answered_as(tmp_path: Path, *tools: Any, rules: Any = (), result: Any = "yes") -> tuple[Any, Any]:
    """A run that waits with a question of a server, in a call, and goes on with another version of the program."""
    pytest.importorskip("mcp")
    server, script, journal = Counting(tmp_path), ([("raw__ask", {})], "done"), MemoryJournal()
    before = Agent(by_step(*script), tools=[server.version(ask="pause")], journal=journal)
    waiting = await before.run("go")
    (one,) = waiting.pending
    assert "Are you sure?" in one.question
    now = [server.version(ask="pause")] if not tools else [tool for tool in tools if tool is not None]
    agent = Agent(by_step(*script), tools=now, approvals=rules, journal=journal)
    return agent, await agent.resume(waiting.run_id, results={one.call_id: result})


def asking(done: list[str]) -> Any:
    @tool(name="raw__ask", needs_approval=True)
    async def ask(more: int = 0) -> str:
        """Asks a thing."""
        done.append("asked")
        return "asked"

    return ask


async def test_an_answer_to_a_question_of_a_tool_is_no_leave_under_a_rule_that_is_new(tmp_path):
    """The call went on with the answer as if whoever gave it had allowed it."""
    agent, waiting = await answered_as(tmp_path, rules=[ask_before(effect="write")])
    assert [one.kind for one in waiting.pending] == ["approval"]
    result = await agent.resume(waiting, approve=waiting.pending)
    assert (result.text, '"accept"' in result.steps[0].calls[0].result.text) == ("done", True)


async def test_nor_are_answers_to_several_questions_of_a_tool():
    """Who was asked a second time counted as somebody who had allowed the call."""
    journal, heard = MemoryJournal(), list[Any]()

    @tool(effect="write")
    def pay(amount: int, context: ToolContext) -> str:
        """Pays an amount."""
        if context.again != "2":
            raise AsksPerson("Really?", "2" if context.again else "1")
        heard.append(context.answer)
        return "paid"

    def version(*rules: Any) -> Agent[Any, Any]:
        return Agent(by_step([("pay", {"amount": 5})], "done"), tools=[pay], approvals=rules, journal=journal)

    first = await version().run("go")
    second = await version().resume(first.run_id, results={first.pending[0].call_id: "yes"})
    assert [one.question for one in second.pending] == ["Really?"]
    strict = version(ask_before("pay"))
    third = await strict.resume(first.run_id, results={second.pending[0].call_id: "yes, yes"})
    assert ([one.kind for one in third.pending], heard) == (["approval"], [])
    result = await strict.resume(first.run_id, approve=third.pending)
    assert (result.text, heard) == ("done", ["yes, yes"])


async def test_nor_is_it_for_another_tool_that_has_the_name_by_now(tmp_path):
    done: list[str] = []
    agent, waiting = await answered_as(tmp_path, asking(done))
    assert ([one.kind for one in waiting.pending], done) == (["approval"], [])
    with pytest.raises(Misuse, match="takes no other arguments"):
        await agent.resume(waiting, approve={waiting.pending[0].key: {"more": 1}})
    result = await agent.resume(waiting, deny=waiting.pending)
    assert '"executed":"unknown"' in result.steps[0].calls[0].result.text
    assert done == []


@pytest.mark.parametrize(("tools", "rules"), [((), [deny("raw__ask")]), ((None,), [])])
async def test_of_a_call_that_asked_it_is_not_said_that_it_was_not_executed(tmp_path, tools, rules):
    """It was made as far as to its question; where it may not go on, the model was told that it was not executed."""
    _, result = await answered_as(tmp_path, *tools, rules=rules)
    shown = result.steps[0].calls[0].result.text
    assert '"executed":"unknown"' in shown
    assert "as far as to its question" in shown


async def test_the_run_above_is_told_of_what_was_changed_by_what_calls_itself_a_read_by_now():
    """It was told of no change, and might have had it made again."""
    journal, done = MemoryJournal(), list[int]()

    def version(effect: str) -> Agent[Any, Any]:
        script = [("pay", {"amount": 5})], [("leave", {})], "I had to stop."
        clerk = Agent(by_step(*script), name="clerk", tools=[paying(effect, done), leave], limits=Limits(steps=3))
        return Agent(by_step([("clerk", {"task": "Pay."})], "done"), tools=[clerk.as_tool()], journal=journal)

    @tool(effect="read", needs_approval=True)
    def leave() -> str:
        """Asks for leave."""
        return "granted"

    waiting = await version("write").run("go")
    assert [one.tool for one in waiting.pending] == ["leave"]
    result = await version("read").resume(waiting.run_id, approve=waiting.pending)
    told = result.steps[0].calls[0].result.text
    assert ('"made":["pay(' in told, done) == (True, [5]), told


class Unpriced:
    """A model of which nobody knows what it costs, and that is asked nothing."""

    name = "unpriced"

    async def stream(self, request: Any) -> AsyncIterator[ModelEvent]:
        raise AssertionError("it was asked")
        yield


@pytest.mark.parametrize("kind", [StepPrepared, ModelReplied, ToolStarted])
async def test_a_run_is_ended_by_a_program_that_may_not_go_on_with_it(kind):
    """It lacks a rule, a hook and a price for the run's limit: it was refused, and nobody could stop the run."""
    script = ([("pay", {"amount": 5})], "done")
    begun = Agent(
        ScriptedModel(lambda request: script[request.step], price=Price(1, 1)),
        tools=[paying("write", [])],
        approvals=[deny("pay", when=is_large)],
        on_tool_result=lambda call, result: None,
        limits=Limits(usd=1),
    )
    journal, run_id = await died_after(begun, kind)
    changed = Agent(Unpriced(), tools=[paying("write", [])], journal=journal)
    with pytest.raises(Misuse, match="is only taken up under them"):
        await changed.resume(run_id)
    result = await changed.cancel(run_id)
    assert (result.stop.reason, len(result.tool_calls_made)) == ("cancelled", 0 if kind is StepPrepared else 1)


def is_large(arguments: dict[str, Any]) -> bool:
    return arguments["amount"] > 100


@pytest.mark.parametrize("below", [False, True])
async def test_a_run_that_was_left_under_a_budget_is_ended_with_that_one_only(below):
    """Else what was set aside for it would stay so for ever. A rule that an agent below lacks is in no one's way."""
    budget = Budget(tokens=100_000)

    def version(budgets: Any, rules: Any, inner: Any, kept: MemoryJournal) -> Agent[Any, Any]:
        mine, theirs = (None, budgets) if below else (budgets, None)
        clerk = Agent(inner, name="clerk", tools=[paying("write", [])], approvals=rules, budget=theirs)
        script = [("clerk", {"task": "Pay."})], "done"
        return Agent(by_step(*script), tools=[clerk.as_tool()], budget=mine, journal=kept)

    model = Hangs()
    begun = version(budget, [deny("pay", when=is_large)], model, MemoryJournal())
    task = asyncio.get_running_loop().create_task(begun.run("go"))
    await model.asked.wait()
    journal = MemoryJournal()
    lines = await begun.journal.list()
    for line in lines:
        await journal.append(line.run_id, 0, await begun.journal.read(line.run_id))
    (run_id,) = [line.run_id for line in lines if line.parent is None]
    assert budget.spent().held_tokens > 0
    with pytest.raises(Misuse, match="budget that may hold money for it"):
        await version(None, (), model, journal).cancel(run_id)
    result = await version(budget, (), model, journal).cancel(run_id)
    assert (result.stop.reason, budget.spent().held_tokens) == ("cancelled", 0)
    assert [line.status for line in await journal.list()] == ["finished", "finished"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("below", [False, True])
async def test_a_run_is_ended_by_a_program_that_has_got_a_budget_since(below):
    """It was asked whose run it was, which nobody can say there."""
    budgets = [Budget(tokens=10_000, per="user"), Budget(tokens=10_000, name="all")]
    script, journal = [("clerk", {"task": "Pay."})], MemoryJournal()

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays an amount."""
        return "paid"

    def version(mine: Any, theirs: Any) -> Agent[Any, Any]:
        clerk = Agent(by_step([("pay", {"amount": 5})]), name="clerk", tools=[pay], budget=theirs)
        return Agent(by_step(script), tools=[clerk.as_tool()], budget=mine, journal=journal)

    waiting = await version(None, None).run("go")
    now = version(None, budgets) if below else version(budgets, None)
    assert (await now.cancel(waiting.run_id)).stop.reason == "cancelled"
    assert budgets[0].purses() == []
