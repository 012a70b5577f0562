"""A run is taken up under the rules and hooks of the agents below it too, also of those that have not begun yet.

- a rule, or a hook, of an agent below that was gone when a run was taken up was missed only where that agent had begun:
  what it had denied was done -> test_a_run_is_not_taken_up_without_a_rule_of_an_agent_that_has_not_begun,
  test_nor_without_a_hook_of_one, test_nor_without_a_budget_of_one,
  test_nor_where_one_allows_more, test_nor_forked
- of an agent that is gone nothing is missed -> test_a_run_goes_on_without_an_agent_below
- and of journals that do not tell of agents below -> test_a_run_of_before_goes_on_and_is_no_other_agents
"""

import pytest
from msgspec.structs import replace

from treadle import Agent, Budget, MemoryJournal, Misuse, allow, ask_before, deny, handoff, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool
def mail(to: str) -> str:
    """Sends a mail."""
    return f"sent to {to}"


def bank():
    """A tool that pays, and what it has paid."""
    paid = []

    @tool
    def pay(amount: int) -> str:
        """Pays an amount."""
        paid.append(amount)
        return f"paid {amount}"

    return pay, paid


def saying(*calls):
    """A model that makes a call a step, and says the last result in the end."""
    return ScriptedModel(lambda request: [calls[request.step]] if request.step < len(calls) else "done")


def handed(pay, **options):
    return handoff(Agent(saying(("pay", {"amount": 500})), name="low", tools=[pay], **options))


def called(pay, **options):
    return Agent(saying(("pay", {"amount": 500})), name="low", tools=[pay], **options).as_tool()


def two_down(pay, **options):
    return Agent(saying(("low", {"task": "pay"})), name="mid", tools=[called(pay, **options)]).as_tool()


WAYS = {
    "transfer_to_low": (handed, {"reason": "a bill"}),
    "low": (called, {"task": "pay"}),
    "mid": (two_down, {"task": "have it paid"}),
}


def head(way, journal, pay, **options):
    make, arguments = WAYS[way]
    tools = [mail, *([] if pay is None else [make(pay, **options)])]
    model = saying(("mail", {"to": "Ann"}), (way, arguments))
    return Agent(model, name="head", tools=tools, approvals=[ask_before("mail")], journal=journal)


@pytest.mark.parametrize(
    ("way", "path"), [("transfer_to_low", "transfer_to_low"), ("low", "low"), ("mid", "mid: of low")]
)
async def test_a_run_is_not_taken_up_without_a_rule_of_an_agent_that_has_not_begun(way, path):
    journal, (pay, paid) = MemoryJournal(), bank()
    waiting = await head(way, journal, pay, approvals=[deny("pay")]).run("go")
    with pytest.raises(Misuse, match=f"this agent lacks: of {path}: deny pay"):
        await head(way, journal, pay).resume(waiting.run_id, approve=waiting.pending)
    assert paid == []

    more = head(way, journal, pay, approvals=[deny("pay"), ask_before(effect="write")])
    result = await more.resume(waiting.run_id, approve=waiting.pending)
    assert (result.finished, paid) == (True, [])


async def test_nor_without_a_hook_of_one():
    def one_at_most(call):
        return {"amount": 1}

    journal, (pay, paid) = MemoryJournal(), bank()
    waiting = await head("low", journal, pay, on_tool_call=one_at_most).run("go")
    with pytest.raises(Misuse, match="this agent lacks: of low: on_tool_call"):
        await head("low", journal, pay, on_answer=lambda answer, context: None).resume(
            waiting.run_id, approve=waiting.pending
        )
    another = head("low", journal, pay, on_tool_call=lambda call: {"amount": 2})
    assert (await another.resume(waiting.run_id, approve=waiting.pending)).finished
    assert paid == [2]


async def test_nor_without_a_budget_of_one():
    journal, (pay, paid) = MemoryJournal(), bank()
    waiting = await head("low", journal, pay, budget=Budget(tokens=100_000)).run("go")
    with pytest.raises(Misuse, match="this agent lacks: of low: budget"):
        await head("low", journal, pay).resume(waiting.run_id, approve=waiting.pending)
    assert paid == []

    budget = Budget(tokens=100_000)
    assert (await head("low", journal, pay, budget=budget).resume(waiting.run_id, approve=waiting.pending)).finished
    assert budget.spent().tokens > 0


async def test_nor_where_one_allows_more():
    journal, (pay, paid) = MemoryJournal(), bank()
    waiting = await head("low", journal, pay, approvals=[ask_before(effect="write")]).run("go")
    loose = head("low", journal, pay, approvals=[ask_before(effect="write"), allow("pay")])
    with pytest.raises(Misuse, match="it allows more: of low: allow pay"):
        await loose.resume(waiting.run_id, approve=waiting.pending)
    assert paid == []


async def test_nor_forked():
    journal, (pay, paid) = MemoryJournal(), bank()
    waiting = await head("low", journal, pay, approvals=[deny("pay")]).run("go")
    with pytest.raises(Misuse, match="this agent lacks: of low: deny pay"):
        await head("low", journal, pay).fork(waiting.run_id, at=0)
    assert paid == []


async def test_a_run_goes_on_without_an_agent_below():
    journal, (pay, paid) = MemoryJournal(), bank()
    waiting = await head("mid", journal, pay, approvals=[deny("pay")]).run("go")
    result = await head("mid", journal, None).resume(waiting.run_id, approve=waiting.pending)
    assert (result.text, paid) == ("done", [])
    assert "There is no tool 'mid'" in result.tool_calls_made[1].result.text


async def test_a_run_of_before_goes_on_and_is_no_other_agents():
    journal, (pay, _) = MemoryJournal(), bank()
    agent = head("low", journal, pay, approvals=[deny("pay"), allow("pay")], on_answer=lambda answer, context: None)
    waiting = await agent.run("go")
    begun, *further = await journal.read(waiting.run_id)
    assert (begun.rules, begun.hooks[0][:7]) == (("ask mail", "of low: deny pay", "of low: allow pay"), "of low:")
    older = MemoryJournal()
    await older.append(waiting.run_id, 0, [replace(begun, rules=("ask mail",), hooks=()), *further])

    agent = agent.with_journal(older)
    assert (await agent.resume(waiting.run_id, approve=waiting.pending)).finished
    found = await agent.replay(waiting.run_id)
    assert (found.same, found.changed) == (True, ())
