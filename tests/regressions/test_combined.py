"""Combined: features of the door where they meet, which is where it broke.

What was found where features meet that no earlier runs combined ("everything goes
through it: a reply's call, an early one, a retry, an `Alternative`, a sub-agent, a hand-off, a decision or a result
from outside"):

- reactions and hand-offs -> test_a_handoff_as_alternative_is_the_answer_of_the_run,
  test_a_handoff_whose_result_is_replaced_is_answered_by_it
- reactions and sub-agents -> test_a_question_about_a_sub_agent_keeps_its_tokens,
  test_a_retry_of_a_sub_agent_asks_it_again, test_a_parents_rule_holds_for_an_alternative_below,
  test_a_question_below_waits_above
- reactions and limits -> test_a_deadline_ends_a_retry_that_waits, test_a_cancel_ends_a_retry_that_waits
- reactions and edits -> test_an_alternative_after_an_edit_is_judged_with_its_own_arguments
- reactions, batches and approvals -> test_each_call_of_a_batch_has_its_own_reaction,
  test_a_question_and_an_approval_of_one_reply_are_decided_one_by_one
- early calls and sub-runs -> test_an_early_call_below_counts_above
- eager or not -> test_eager_changes_nothing_but_the_time
- approvals and processes -> test_two_levels_of_approvals_are_decided_from_a_second_process
"""

import asyncio

import pytest
from play import Bank, pieces, reply, told, within

from treadle import (
    Agent,
    Alternative,
    AskUser,
    Limits,
    MemoryJournal,
    Retry,
    SqliteJournal,
    ask_before,
    deny,
    handoff,
)
from treadle.models import Usage
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

DOWN = [("down", {"key": "a"})]
PAY = [("pay", {"amount": 5})]
ASK = [("expert", {"task": "what?"})]


def once(calls, then="done", **options):
    """A model that asks for `calls` until it is shown results."""
    return ScriptedModel(
        lambda request: then if any(one.role == "tool" for one in request.messages) else calls, **options
    )


def expert(turns, **options):
    return Agent(ScriptedModel(turns, usage=Usage(100, 10)), name="expert", instructions="You know.", **options)


async def test_a_handoff_as_alternative_is_the_answer_of_the_run():
    bank = Bank()
    agent = Agent(
        ScriptedModel([DOWN, "not this"]),
        tools=[*bank.tools, handoff(expert(["from the expert"]))],
        on_tool_result=lambda call, output: (
            Alternative("transfer_to_expert", {"reason": "it is down"}) if output.is_error else None
        ),
    )
    result = await within(agent.run("go"))
    assert result.text == "from the expert"
    assert result.finished


async def test_a_handoff_whose_result_is_replaced_is_answered_by_it():
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {"reason": "x"})], "not this"]),
        tools=[handoff(expert(["the key is 4711"]))],
        on_tool_result=lambda call, output: "the key is ****",
    )
    result = await within(agent.run("go"))
    assert "4711" not in result.text
    assert result.finished


async def test_a_question_about_a_sub_agent_keeps_its_tokens():
    agent = Agent(
        ScriptedModel([ASK, "done"], usage=Usage(10, 1)),
        tools=[expert(["a teapot"]).as_tool()],
        on_tool_result=lambda call, output: AskUser("Is it a teapot?"),
    )
    waiting = await within(agent.run("go"))
    assert waiting.stop.reason == "waiting"
    assert waiting.usage.total_tokens == 11 + 110
    result = await within(agent.resume(waiting, results={waiting.pending[0].call_id: "a kettle"}))
    assert told(result) == ["a kettle"]
    assert result.usage.total_tokens == 22 + 110


async def test_a_retry_of_a_sub_agent_asks_it_again():
    child = expert(["I do not know", "a teapot"])
    agent = Agent(
        ScriptedModel([ASK, "done"], usage=Usage(10, 1)),
        tools=[child.as_tool()],
        on_tool_result=lambda call, output: Retry() if "not know" in output.content else None,
    )
    result = await within(agent.run("go"))
    assert told(result) == ["a teapot"]
    assert result.usage.total_tokens == 22 + 220


async def test_a_parents_rule_holds_for_an_alternative_below():
    bank = Bank()
    child = expert(
        [DOWN, "not paid"],
        tools=bank.tools,
        on_tool_result=lambda call, output: Alternative("pay", {"amount": 5}) if output.is_error else None,
    )
    agent = Agent(ScriptedModel([ASK, "done"]), tools=[child.as_tool(), bank.pay], approvals=[deny("pay")])
    assert (await within(agent.run("go"))).finished
    assert bank.times("pay") == 0


async def test_a_question_below_waits_above():
    bank, journal = Bank(), MemoryJournal()
    child = Agent(
        once([("look", {"key": "a"})], "below"),
        name="expert",
        tools=[bank.look],
        on_tool_result=lambda call, output: AskUser("Is it?"),
    )
    agent = Agent(once(ASK), tools=[child.as_tool()], journal=journal)
    waiting = await within(agent.run("go"))
    (pending,) = waiting.pending
    assert (pending.kind, pending.question) == ("result", "Is it?")
    assert "value of a" in str(pending.found)
    result = await within(agent.resume(waiting.run_id, results={pending.call_id: "it is"}))
    assert result.finished
    assert told(result) == ["below"]
    assert bank.ran == ["look a"]


async def test_a_deadline_ends_a_retry_that_waits():
    bank = Bank()
    agent = Agent(
        ScriptedModel([DOWN]),
        tools=bank.tools,
        on_tool_result=lambda call, output: Retry(delay=60),
        limits=Limits(seconds=0.1),
        on_limit="stop",
    )
    result = await within(agent.run("go"))
    assert result.stop.reason == "deadline"
    assert "the server is down" in told(result)[0]


async def test_a_cancel_ends_a_retry_that_waits():
    bank, asked = Bank(), asyncio.Event()

    def later(call, output):
        asked.set()
        return Retry(delay=60)

    agent = Agent(ScriptedModel([DOWN]), tools=bank.tools, on_tool_result=later)
    async with agent.stream("go") as run:
        await within(asked.wait())
        result = await run.cancel()
    assert result.stop.reason == "cancelled"
    assert "the server is down" in told(result)[0]


async def test_an_alternative_after_an_edit_is_judged_with_its_own_arguments():
    bank = Bank()
    agent = Agent(
        ScriptedModel([DOWN, "done"]),
        tools=bank.tools,
        approvals=[ask_before("down"), deny("pay", when=lambda arguments: arguments["amount"] > 100)],
        on_tool_result=lambda call, output: Alternative("pay", {"amount": 5000}) if output.is_error else None,
    )
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, approve={waiting.pending[0].call_id: {"key": "b"}}))
    assert result.finished
    assert bank.ran == ["down b"]


async def test_each_call_of_a_batch_has_its_own_reaction():
    bank = Bank()
    batch = [("down", {"key": "a"}), ("down", {"key": "b"}), ("look", {"key": "c"})]
    agent = Agent(
        ScriptedModel([batch, "done"]),
        tools=bank.tools,
        on_tool_result=lambda call, output: (
            Alternative("pay", {"amount": 1 if call.arguments["key"] == "a" else 2}) if output.is_error else None
        ),
    )
    result = await within(agent.run("go"))
    assert told(result) == ["paid 1", "paid 2", "value of c"]
    assert sorted(bank.ran) == ["down a", "down b", "look c", "pay 1", "pay 2"]


async def test_a_question_and_an_approval_of_one_reply_are_decided_one_by_one():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[*PAY, ("look", {"key": "a"})], "done"]),
        tools=bank.tools,
        approvals=[ask_before("pay")],
        on_tool_result=lambda call, output: AskUser("Is it?") if call.name == "look" else None,
    )
    waiting = await within(agent.run("go"))
    kinds = {one.kind: one for one in waiting.pending}
    assert set(kinds) == {"approval", "result"}
    still = await within(agent.resume(waiting, results={kinds["result"].call_id: "it is"}))
    assert [one.kind for one in still.pending] == ["approval"]
    result = await within(agent.resume(still, approve=[still.pending[0].key]))
    assert told(result) == ["paid 5", "it is"]
    assert bank.ran == ["look a", "pay 5"]


async def test_an_early_call_below_counts_above():
    bank = Bank()

    async def paused():
        for key in "abc":
            for piece in pieces(f"{key}1", "look", f'{{"key": "{key}"}}'):
                yield piece
        await asyncio.sleep(0.02)
        yield reply(*((f"{key}1", "look", f'{{"key": "{key}"}}') for key in "abc"))

    child = Agent(ScriptedModel([paused(), "below"]), name="expert", tools=[bank.look])
    agent = Agent(
        ScriptedModel(lambda request: "enough" if request.step or request.tool_choice == "none" else ASK),
        tools=[child.as_tool()],
        limits=Limits(tool_calls=3, seconds=5),
    )
    await within(agent.run("go"))
    assert bank.times("look") <= 2


async def test_eager_changes_nothing_but_the_time():
    async def paused(bank):
        calls = [("a1", "look", '{"key": "a"}'), ("b1", "down", '{"key": "b"}'), ("c1", "pay", '{"amount": 1}')]
        for call in calls:
            for piece in pieces(*call):
                yield piece
        await asyncio.sleep(0.02)
        yield reply(*calls)

    def react(call, output):
        return Alternative("pay", {"amount": 2}) if call.call.name == "down" and output.is_error else None

    found = []
    for eager in (True, False):
        bank = Bank()
        agent = Agent(ScriptedModel([paused(bank), "done"]), tools=bank.tools, on_tool_result=react, eager=eager)
        result = await within(agent.run("go"))
        found.append((told(result), sorted(bank.ran), result.stop, result.steps[1].decision.tool_calls))
    assert found[0] == found[1]
    assert found[0][0] == ["value of a", "paid 2", "paid 1"]


async def test_two_levels_of_approvals_are_decided_from_a_second_process(tmp_path):
    bank = Bank()

    def agent(journal):
        leaf = Agent(once(PAY, "leaf"), name="leaf", tools=[bank.pay], approvals=[ask_before("pay")])
        middle = Agent(
            once([("leaf", {"task": "x"})], "middle"),
            name="expert",
            tools=[leaf.as_tool(needs_approval=True)],
        )
        return Agent(once(ASK), tools=[middle.as_tool()], journal=journal)

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        waiting = await within(agent(journal).run("go"))
    for tool in ("leaf", "pay"):
        (pending,) = waiting.pending
        assert (pending.tool, pending.kind) == (tool, "approval")
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            waiting = await within(agent(journal).resume(waiting.run_id, approve=[pending.key]))
    assert waiting.finished
    assert bank.ran == ["pay 5"]
