"""Reactions: what `on_tool_result` has called goes through the same door as what the model asks for.

What was found, and the test that holds it:

- an alternative runs a write three times -> test_an_alternative_that_writes_runs_once
- a deny rule on it is ignored -> test_an_alternative_that_a_rule_denies_is_not_run
- Limits(tool_calls=1) allows four executions -> test_an_alternative_counts_against_the_limit_on_tool_calls,
  test_a_retry_counts_against_the_limit_on_tool_calls,
  test_the_calls_of_reactions_are_counted_where_a_condition_and_the_result_look,
  test_a_retry_of_a_read_runs_again_and_is_journaled
- nothing of it is in the journal; a crash inside pays again
  -> test_an_alternative_stands_in_the_journal_before_it_runs,
  test_an_alternative_that_was_under_way_at_a_crash_is_asked_about, test_a_crash_at_any_event_of_a_reaction_pays_once
- an alternative is admitted, approved, fenced, recorded under the call it stands for
  -> test_an_alternative_that_a_rule_asks_about_waits_for_the_person,
  test_an_alternative_with_wrong_arguments_is_not_run,
  test_an_alternative_that_does_not_exist_is_misuse_and_keeps_the_known_result,
  test_an_alternative_is_recorded_under_its_call,
  test_an_approved_alternative_runs_once
- a denied one leaves a run that ends -> test_a_denied_alternative_leaves_the_run_able_to_end
- a sub-agent reached that way is lost to its parent -> test_the_tokens_of_a_sub_agent_as_alternative_count,
  test_the_pending_approval_of_a_sub_agent_as_alternative_is_the_parents
- the hook never sees sub-agents and hand-offs -> test_a_hook_sees_the_result_of_a_sub_agent,
  test_a_hook_sees_the_result_of_a_handoff, test_a_hook_may_replace_the_result_of_a_sub_agent
- one that raises loses known results and cancels siblings -> test_a_hook_that_raises_keeps_the_result_it_was_shown,
  test_a_hook_that_raises_lets_its_siblings_come_to_their_end, test_a_run_whose_hook_raised_goes_on,
  test_a_result_that_a_hook_has_not_released_is_not_shown_when_its_run_is_cancelled
- a decision or a result from outside goes the same way -> test_a_hook_sees_a_result_from_outside,
  test_a_hook_sees_the_result_of_an_approved_call_once,
  test_an_answer_to_a_question_is_the_result_whatever_the_hook_asks
- the page's own check() with a failing write makes agent.run raise -> test_a_retry_of_a_write_lets_its_result_stand,
  test_every_tool_started_has_its_end_when_a_retry_is_refused
- the hook sees neither unknown tools nor refused arguments -> test_a_hook_sees_unknown_tools,
  test_a_hook_may_answer_an_unknown_tool_with_another,
  test_a_hook_sees_refused_arguments
- a known result is journaled before the hook; what the hook does is one more event
  -> test_a_result_is_in_the_journal_before_the_hook_sees_it, test_what_a_hook_does_is_one_more_event
- wanted by readers -> test_a_hook_sees_the_value_that_the_tool_returned,
  test_a_question_keeps_the_uncertain_result_in_view
"""

import asyncio
import json

import pytest
from play import Bank, copied, cut, kinds, told, within

from treadle import (
    Agent,
    Alternative,
    AskUser,
    Limits,
    MemoryJournal,
    Misuse,
    Retry,
    ask_before,
    deny,
    external_tool,
    handoff,
    tool,
)
from treadle.kernel.events import ToolFinished, ToolStarted
from treadle.models import Usage
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

DOWN = [("down", {"key": "a"})]


def pay_instead(call, output):
    """Pays whatever comes: a hook that looks at nothing."""
    return Alternative("pay", {"amount": 5})


def pay_on_error(call, output):
    return Alternative("pay", {"amount": 5}) if call.name == "down" and output.is_error else None


async def test_an_alternative_that_writes_runs_once():
    bank = Bank()
    agent = Agent(ScriptedModel([DOWN, "done"]), tools=bank.tools, on_tool_result=pay_instead)
    result = await within(agent.run("go"))
    assert result.finished
    assert bank.times("pay") == 1
    assert told(result) == ["paid 5"]


async def test_an_alternative_that_a_rule_denies_is_not_run():
    bank = Bank()
    agent = Agent(ScriptedModel([DOWN, "done"]), tools=bank.tools, on_tool_result=pay_on_error, approvals=[deny("pay")])
    result = await within(agent.run("go"))
    assert result.finished
    assert bank.times("pay") == 0
    assert "the server is down" in told(result)[0]


async def test_an_alternative_counts_against_the_limit_on_tool_calls():
    bank = Bank()
    agent = Agent(
        ScriptedModel(lambda request: "enough" if request.tool_choice == "none" or request.step else DOWN),
        tools=bank.tools, on_tool_result=pay_on_error, limits=Limits(tool_calls=1),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert bank.ran == ["down a"]
    assert "the server is down" in told(result)[0]


async def test_a_retry_counts_against_the_limit_on_tool_calls():
    bank = Bank()
    agent = Agent(
        ScriptedModel(lambda request: "enough" if request.tool_choice == "none" or request.step else DOWN),
        tools=bank.tools, on_tool_result=lambda call, output: Retry(), limits=Limits(tool_calls=2),
    )  # fmt: skip
    await within(agent.run("go"))
    assert bank.times("down") == 2


async def test_the_calls_of_reactions_are_counted_where_a_condition_and_the_result_look():
    bank = Bank()
    agent = Agent(ScriptedModel([DOWN, "done"]), tools=bank.tools, on_tool_result=pay_on_error)
    result = await within(agent.run("go"))
    assert result.steps[1].decision.tool_calls == 2


def spying_bank(journal):
    """A bank, and the copies of the journal that were taken while each payment ran."""
    bank, seen = Bank(), []

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        bank.ran.append(f"pay {amount}")
        seen.append(await copied(journal))
        return f"paid {amount}"

    return bank, [pay, bank.down, bank.look], seen


async def test_an_alternative_stands_in_the_journal_before_it_runs():
    journal = MemoryJournal()
    _, tools, seen = spying_bank(journal)
    agent = Agent(ScriptedModel([DOWN, "done"]), tools=tools, on_tool_result=pay_on_error, journal=journal)
    result = await within(agent.run("go"))
    assert len(seen) == 1
    events = await seen[0].read(result.run_id)
    assert "ToolReacted" in kinds(events)
    assert isinstance(events[-1], ToolStarted)


async def test_an_alternative_that_was_under_way_at_a_crash_is_asked_about():
    journal = MemoryJournal()
    bank, tools, seen = spying_bank(journal)
    options = {"tools": tools, "on_tool_result": pay_on_error}
    result = await within(Agent(ScriptedModel([DOWN, "done"]), journal=journal, **options).run("go"))
    left = seen[0]
    bank.ran.clear()
    again = Agent(ScriptedModel(["done"]), journal=left, **options)
    taken_up = await within(again.resume(result.run_id))
    assert taken_up.stop.reason == "waiting"
    (pending,) = taken_up.pending
    assert (pending.kind, pending.tool, pending.arguments) == ("interrupted", "pay", {"amount": 5})
    assert not bank.ran
    done = await within(again.resume(result.run_id, results={pending.call_id: "paid 5 before the crash"}))
    assert done.finished
    assert told(done) == ["paid 5 before the crash"]
    assert not bank.ran


async def test_a_crash_at_any_event_of_a_reaction_pays_once():
    first = Bank()
    whole = await within(Agent(ScriptedModel([DOWN, "done"]), tools=first.tools, on_tool_result=pay_on_error).run("go"))
    events = list(whole.events)
    assert "ToolReacted" in kinds(events), "the alternative must stand in the journal"
    for length in range(1, len(events) + 1):
        bank = Bank()
        left = await cut(whole.run_id, events[:length])
        model = ScriptedModel(lambda request: "done" if request.step else DOWN)
        again = Agent(model, tools=bank.tools, on_tool_result=pay_on_error, journal=left)
        result = await within(again.resume(whole.run_id))
        before = sum("paid 5" in repr(event) for event in events[:length] if isinstance(event, ToolFinished))
        if result.pending:
            assert [(one.tool, one.kind) for one in result.pending] == [("pay", "interrupted")]
            assert bank.times("pay") == 0
        else:
            assert result.finished
            assert bank.times("pay") + min(before, 1) == 1, f"after {length} events"


async def test_an_alternative_that_a_rule_asks_about_waits_for_the_person():
    bank = Bank()
    agent = Agent(
        ScriptedModel([DOWN, "done"]), tools=bank.tools, on_tool_result=pay_on_error, approvals=[ask_before("pay")]
    )
    waiting = await within(agent.run("go"))
    assert waiting.stop.reason == "waiting"
    (pending,) = waiting.pending
    assert (pending.kind, pending.tool, pending.arguments) == ("approval", "pay", {"amount": 5})
    assert bank.times("pay") == 0


async def test_an_approved_alternative_runs_once():
    bank = Bank()
    agent = Agent(
        ScriptedModel([DOWN, "done"]), tools=bank.tools, on_tool_result=pay_on_error, approvals=[ask_before("pay")]
    )
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, approve=[waiting.pending[0].key]))
    assert result.finished
    assert bank.ran == ["down a", "pay 5"]
    assert told(result) == ["paid 5"]


async def test_a_denied_alternative_leaves_the_run_able_to_end():
    bank = Bank()
    agent = Agent(
        ScriptedModel([DOWN, "done"]), tools=bank.tools, on_tool_result=pay_on_error, approvals=[ask_before("pay")]
    )
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, deny={waiting.pending[0].call_id: "too dear"}))
    assert result.finished
    assert bank.ran == ["down a"]


async def test_an_alternative_with_wrong_arguments_is_not_run():
    bank = Bank()
    agent = Agent(
        ScriptedModel([DOWN, "done"]), tools=bank.tools,
        on_tool_result=lambda call, output: Alternative("pay", {"amount": "a lot"}) if output.is_error else None,
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.finished
    assert bank.ran == ["down a"]


async def test_an_alternative_that_does_not_exist_is_misuse_and_keeps_the_known_result():
    """The hook is wrong, not the world: its author hears of it, and the mended run goes on from the result."""
    bank, journal = Bank(), MemoryJournal()
    model = ScriptedModel([DOWN, "done"])
    wrong = Agent(model, tools=bank.tools, on_tool_result=lambda call, output: Alternative("pya", {}), journal=journal)
    with pytest.raises(Misuse, match="pya"):
        await within(wrong.run("go"))
    (info,) = await journal.list()
    mended = Agent(model, tools=bank.tools, on_tool_result=lambda call, output: None, journal=journal)
    result = await within(mended.resume(info.run_id))
    assert result.finished
    assert "the server is down" in told(result)[0]
    assert bank.ran == ["down a"]


async def test_an_alternative_is_recorded_under_its_call():
    bank = Bank()
    agent = Agent(ScriptedModel([DOWN, "done"]), tools=bank.tools, on_tool_result=pay_on_error)
    result = await within(agent.run("go"))
    (record,) = result.tool_calls_made
    assert (record.call.name, record.id) == ("down", "call_0_0")
    assert record.stand_in is not None
    assert (record.stand_in.name, json.loads(record.stand_in.arguments)) == ("pay", {"amount": 5})
    (message,) = [message for message in result.messages if message.role == "tool"]
    assert message.call_id == "call_0_0"


def expert(turns, **options):
    return Agent(ScriptedModel(turns, usage=Usage(1000, 100)), name="expert", instructions="You know.", **options)


def ask_the_expert(call, output):
    return Alternative("expert", {"task": "what is it?"}) if call.name == "down" and output.is_error else None


async def test_the_tokens_of_a_sub_agent_as_alternative_count():
    bank, child = Bank(), expert(["it is a teapot"])
    agent = Agent(
        ScriptedModel([DOWN, "done"], usage=Usage(100, 10)),
        tools=[*bank.tools, child.as_tool()], on_tool_result=ask_the_expert,
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.finished
    assert told(result) == ["it is a teapot"]
    assert result.usage.total_tokens == 2 * 110 + 1100
    assert result.sub_steps == 1


async def test_the_pending_approval_of_a_sub_agent_as_alternative_is_the_parents():
    bank = Bank()
    child = expert([[("pay", {"amount": 5})], "paid it"], tools=[bank.pay], approvals=[ask_before("pay")])
    agent = Agent(ScriptedModel([DOWN, "done"]), tools=[bank.down, child.as_tool()], on_tool_result=ask_the_expert)
    waiting = await within(agent.run("go"))
    assert waiting.stop.reason == "waiting"
    (pending,) = waiting.pending
    assert (pending.tool, pending.kind) == ("pay", "approval")
    result = await within(agent.resume(waiting, approve=[pending.call_id]))
    assert result.finished
    assert bank.times("pay") == 1


async def test_a_hook_sees_the_result_of_a_sub_agent():
    seen = []
    agent = Agent(
        ScriptedModel([[("expert", {"task": "what?"})], "done"]), tools=[expert(["a teapot"]).as_tool()],
        on_tool_result=lambda call, output: seen.append((call.name, output.content)),
    )  # fmt: skip
    assert (await within(agent.run("go"))).finished
    assert seen == [("expert", "a teapot")]


async def test_a_hook_may_replace_the_result_of_a_sub_agent():
    agent = Agent(
        ScriptedModel([[("expert", {"task": "what?"})], "done"], usage=Usage(100, 10)),
        tools=[expert(["a teapot"]).as_tool()], on_tool_result=lambda call, output: "a kettle",
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert told(result) == ["a kettle"]
    assert result.usage.total_tokens == 2 * 110 + 1100


async def test_a_hook_sees_the_result_of_a_handoff():
    seen = []
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {"reason": "hard"})]]), tools=[handoff(expert(["a teapot"]))],
        on_tool_result=lambda call, output: seen.append((call.name, output.content)),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.text == "a teapot"
    assert seen == [("transfer_to_expert", "a teapot")]


async def test_a_hook_sees_unknown_tools():
    seen, bank = [], Bank()
    agent = Agent(
        ScriptedModel([[("lok", {"key": "a"})], "done"]), tools=bank.tools,
        on_tool_result=lambda call, output: seen.append((call.name, output.is_error)),
    )  # fmt: skip
    assert (await within(agent.run("go"))).finished
    assert seen == [("lok", True)]


async def test_a_hook_sees_refused_arguments():
    seen, bank = [], Bank()
    agent = Agent(
        ScriptedModel([[("pay", {"amount": "much"})], "done"]), tools=bank.tools,
        on_tool_result=lambda call, output: seen.append((call.name, output.is_error)),
    )  # fmt: skip
    assert (await within(agent.run("go"))).finished
    assert seen == [("pay", True)]
    assert not bank.ran


async def test_a_hook_sees_a_result_from_outside():
    seen = []
    ask = external_tool("ask", "Ask someone.", wait=True)
    agent = Agent(
        ScriptedModel([[("ask", {})], "done"]), tools=[ask],
        on_tool_result=lambda call, output: seen.append((call.name, output.content)),
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, results={waiting.pending[0].call_id: "forty-two"}))
    assert result.finished
    assert seen == [("ask", "forty-two")]


async def test_a_hook_sees_the_result_of_an_approved_call_once():
    seen, bank = [], Bank()
    agent = Agent(
        ScriptedModel([[("pay", {"amount": 5})], "done"]), tools=bank.tools, approvals=[ask_before("pay")],
        on_tool_result=lambda call, output: seen.append((call.name, output.content)),
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    assert not seen
    assert (await within(agent.resume(waiting, approve=[waiting.pending[0].key]))).finished
    assert seen == [("pay", "paid 5")]


async def test_an_answer_to_a_question_is_the_result_whatever_the_hook_asks():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})], "done"]), tools=bank.tools,
        on_tool_result=lambda call, output: AskUser("Sure?"),
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    result = await within(agent.resume(waiting, results={waiting.pending[0].call_id: "sure"}))
    assert result.finished
    assert told(result) == ["sure"]


async def test_a_hook_may_answer_an_unknown_tool_with_another():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("lok", {"key": "a"})], "done"]), tools=bank.tools,
        on_tool_result=lambda call, output: Alternative("look", {"key": "a"}) if output.is_error else None,
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert told(result) == ["value of a"]


async def test_a_result_is_in_the_journal_before_the_hook_sees_it():
    journal, bank, seen = MemoryJournal(), Bank(), []

    async def hook(call, output):
        (info,) = await journal.list()
        seen.extend(await journal.read(info.run_id))

    agent = Agent(
        ScriptedModel([[("pay", {"amount": 5})], "done"]), tools=bank.tools, on_tool_result=hook, journal=journal
    )
    await within(agent.run("go"))
    (finished,) = [event for event in seen if isinstance(event, ToolFinished)]
    assert finished.content == "paid 5"
    assert finished.provisional


async def test_what_a_hook_does_is_one_more_event():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("pay", {"amount": 5})], "done"]), tools=bank.tools, on_tool_result=lambda call, output: "ok"
    )
    result = await within(agent.run("go"))
    (finished,) = [event for event in result.events if isinstance(event, ToolFinished)]
    assert finished.content == "paid 5"
    (reacted,) = [event for event in result.events if type(event).__name__ == "ToolReacted"]
    assert (reacted.call_id, reacted.action) == (finished.call_id, "replace")
    assert told(result) == ["ok"]


class Broken(Exception):
    pass


def broken(call, output):
    raise Broken("my hook is wrong")


async def test_a_hook_that_raises_keeps_the_result_it_was_shown():
    journal, bank = MemoryJournal(), Bank()
    calls = [("pay", {"amount": 5})]
    agent = Agent(ScriptedModel([calls]), tools=bank.tools, on_tool_result=broken, journal=journal)
    with pytest.raises(Broken, match="my hook is wrong"):
        await within(agent.run("go"))
    (info,) = await journal.list()
    (finished,) = [event for event in await journal.read(info.run_id) if isinstance(event, ToolFinished)]
    assert finished.content == "paid 5"


async def test_a_run_whose_hook_raised_goes_on():
    journal, bank = MemoryJournal(), Bank()
    model = ScriptedModel([[("pay", {"amount": 5})], "done"])
    with pytest.raises(Broken):
        await within(Agent(model, tools=bank.tools, on_tool_result=broken, journal=journal).run("go"))
    (info,) = await journal.list()
    mended = Agent(model, tools=bank.tools, on_tool_result=lambda call, output: "seen", journal=journal)
    result = await within(mended.resume(info.run_id))
    assert result.finished
    assert told(result) == ["seen"]
    assert bank.ran == ["pay 5"]


async def test_a_result_that_a_hook_has_not_released_is_not_shown_when_its_run_is_cancelled():
    bank, reached = Bank(), asyncio.Event()

    async def thinks(call, output):
        reached.set()
        await asyncio.sleep(60)

    agent = Agent(ScriptedModel([[("pay", {"amount": 5})]]), tools=bank.tools, on_tool_result=thinks)
    async with agent.stream("go") as run:
        await within(reached.wait())
        result = await run.cancel()
    assert result.stop.reason == "cancelled"
    (shown,) = told(result)
    assert "paid 5" not in shown
    assert "was made" in shown
    assert result.tool_calls_made[0].found.text == "paid 5"


async def test_a_hook_that_raises_lets_its_siblings_come_to_their_end():
    journal, bank, log = MemoryJournal(), Bank(), []

    @tool(effect="idempotent")
    async def put(key: str) -> str:
        """Put something away, in two moves."""
        log.append("first move")
        await asyncio.sleep(0.05)
        log.append("second move")
        return "put"

    calls = [("put", {"key": "a"}), ("look", {"key": "b"})]
    agent = Agent(
        ScriptedModel([calls]), tools=[put, bank.look], journal=journal,
        on_tool_result=lambda call, output: broken(call, output) if call.name == "look" else None,
    )  # fmt: skip
    with pytest.raises(Broken):
        await within(agent.run("go"))
    assert log == ["first move", "second move"]
    (info,) = await journal.list()
    finished = [event for event in await journal.read(info.run_id) if isinstance(event, ToolFinished)]
    assert {event.content for event in finished} == {"put", "value of b"}


def check(call, result):
    """The one of the page on approvals."""
    return Retry(delay=0.0) if result.is_error else None


@pytest.fixture
def failing_write():
    ran = []

    @tool
    async def book(seat: str) -> str:
        """Book a seat."""
        ran.append(seat)
        raise ValueError("the office is closed")

    return book, ran


async def test_a_retry_of_a_write_lets_its_result_stand(failing_write):
    book, ran = failing_write
    agent = Agent(ScriptedModel([[("book", {"seat": "12A"})], "done"]), tools=[book], on_tool_result=check)
    result = await within(agent.run("go"))
    assert result.finished
    assert ran == ["12A"]
    assert "the office is closed" in told(result)[0]


async def test_every_tool_started_has_its_end_when_a_retry_is_refused(failing_write):
    book, _ = failing_write
    journal = MemoryJournal()
    agent = Agent(
        ScriptedModel([[("book", {"seat": "12A"})], "done"]), tools=[book], on_tool_result=check, journal=journal
    )
    result = await within(agent.run("go"))
    events = await journal.read(result.run_id)
    started = {event.call_id for event in events if isinstance(event, ToolStarted)}
    assert started == {event.call_id for event in events if isinstance(event, ToolFinished)}


async def test_a_retry_of_a_read_runs_again_and_is_journaled():
    bank, tries = Bank(), []

    @tool(effect="read")
    async def search(text: str) -> str:
        """Search."""
        tries.append(text)
        if len(tries) == 1:
            raise ValueError("busy")
        return "found"

    agent = Agent(ScriptedModel([[("search", {"text": "x"})], "done"]), tools=[search], on_tool_result=check)
    result = await within(agent.run("go"))
    assert tries == ["x", "x"]
    assert told(result) == ["found"]
    assert kinds(result.events).count("ToolStarted") == 2
    assert not bank.ran


async def test_a_hook_sees_the_value_that_the_tool_returned():
    seen = []

    @tool(effect="read")
    async def search(text: str) -> dict:
        """Search."""
        return {"found": "Bonn", "confidence": 0.4}

    agent = Agent(
        ScriptedModel([[("search", {"text": "x"})], "done"]), tools=[search],
        on_tool_result=lambda call, output: seen.append(output.value),
    )  # fmt: skip
    await within(agent.run("go"))
    assert seen == [{"found": "Bonn", "confidence": 0.4}]


async def test_a_question_keeps_the_uncertain_result_in_view():
    bank, journal = Bank(), MemoryJournal()
    agent = Agent(
        ScriptedModel([[("look", {"key": "a"})], "done"]), tools=bank.tools, journal=journal,
        on_tool_result=lambda call, output: AskUser("Is that right?"),
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    (pending,) = waiting.pending
    assert pending.question == "Is that right?"
    found = pending.found
    assert "value of a" in (found if isinstance(found, str) else found.text)
    result = await within(agent.resume(waiting.run_id, results={pending.call_id: "no, it is b"}))
    assert result.finished
    assert told(result) == ["no, it is b"]
