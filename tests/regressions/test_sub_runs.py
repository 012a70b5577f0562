"""Sub-runs and hand-offs: what works below a run is under its rules, its limits and its journal.

What was found, and the test that holds it:

- a journal that fails inside a sub-run becomes a tool error
  -> test_a_journal_that_fails_inside_a_sub_run_reaches_the_caller,
  test_a_write_below_that_happened_before_the_journal_failed_is_asked_about
- parent rules do not reach sub-agents' tools -> test_a_parents_rule_denies_a_tool_of_its_sub_agent,
  test_a_parents_rule_may_name_a_tool_of_its_sub_agent,
  test_a_parents_rule_asks_about_a_tool_of_its_sub_agent, test_a_parents_rule_holds_two_levels_down,
  test_a_parents_rule_holds_after_a_handoff, test_a_parents_deny_wins_over_a_childs_allow
- calls in sub-runs do not count -> test_calls_in_sub_runs_count_against_the_limit_on_tool_calls,
  test_calls_two_levels_down_count, test_calls_after_a_handoff_count
- several at once -> test_calls_of_sub_runs_that_work_at_once_count
- typed output is lost, or not checked, over a hand-off -> test_typed_output_is_read_over_a_handoff,
  test_typed_output_that_does_not_fit_is_not_taken_over_a_handoff, test_typed_output_over_a_handoff_survives_resume,
  test_typed_output_of_the_other_agent_is_kept_over_a_handoff
- two hand-offs in one reply -> test_the_second_of_two_handoffs_is_refused_before_it_is_paid
- ids with `/` can be decided -> test_a_call_below_whose_id_has_a_slash_can_be_decided,
  test_a_call_below_can_be_decided_by_its_key
- a hook below that raises; a cancel -> test_a_hook_below_that_raises_leaves_a_run_that_goes_on,
  test_cancelling_a_parent_leaves_a_sub_run_that_can_be_read
- a sub-run's error in a tool -> test_system_exit_two_levels_down_is_a_tool_error
- what a condition ends below tells nothing of what it has made
  -> test_what_a_condition_ends_below_without_a_word_tells_what_it_has_made
- a kill two levels deep -> test_a_killed_process_asks_about_a_write_two_levels_down
"""

import asyncio
import json
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from play import Bank, apart, copied, reply, told, within
from pydantic import BaseModel

from treadle import Agent, Limits, MemoryJournal, allow, ask_before, deny, handoff, has_tool_call, tool
from treadle.journal import JournalError, JournalUnavailable
from treadle.kernel.events import RunFinished, ToolFinished
from treadle.models import Usage
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

ASK = [("expert", {"task": "pay it"})]
PAY = [("pay", {"amount": 5})]


def expert(turns, **options):
    return Agent(ScriptedModel(turns), name="expert", instructions="You know things.", **options)


class FailsBelow(MemoryJournal):
    """A journal that fails at every append to a sub-run from number `at` on."""

    def __init__(self, at):
        super().__init__()
        self.at, self.appends, self.top = at, 0, None

    async def append(self, run_id, seq, events):
        self.top = self.top or run_id
        if run_id != self.top:
            self.appends += 1
            if self.appends >= self.at:
                raise JournalUnavailable("the disk is full", where="test")
        await super().append(run_id, seq, events)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("kind", ["tool", "handoff"])
async def test_a_journal_that_fails_inside_a_sub_run_reaches_the_caller(at, kind):
    bank = Bank()
    child = expert([PAY, "paid"], tools=[bank.pay])
    as_tool = child.as_tool() if kind == "tool" else handoff(child, name="expert")
    arguments = {"task": "pay it"} if kind == "tool" else {"reason": "pay it"}
    agent = Agent(ScriptedModel([[("expert", arguments)], "done"]), tools=[as_tool], journal=FailsBelow(at))
    with pytest.raises(JournalError, match="the disk is full"):
        await within(agent.run("go"))


async def test_a_write_below_that_happened_before_the_journal_failed_is_asked_about():
    bank = Bank()

    def agent(journal):
        def asks(request):
            return "done" if any(one.role == "tool" for one in request.messages) else ASK

        def pays(request):
            return "paid" if any(one.role == "tool" for one in request.messages) else PAY

        return Agent(ScriptedModel(asks), tools=[expert(pays, tools=[bank.pay]).as_tool()], journal=journal)

    asked = 0
    for at in range(1, 8):
        journal = FailsBelow(at)
        bank.ran.clear()
        try:
            await within(agent(journal).run("go"))
        except JournalError:
            pass
        else:
            break
        left = await copied(journal)
        if journal.top not in {info.run_id for info in await left.list(500)}:
            continue
        events = [event for info in await left.list(500) for event in await left.read(info.run_id)]
        known = any(isinstance(event, ToolFinished) and event.content == "paid 5" for event in events)
        before = bank.times("pay")
        result = await within(agent(left).resume(journal.top))
        if before and not known:
            asked += 1
            assert [(one.tool, one.kind) for one in result.pending] == [("pay", "interrupted")]
        assert bank.times("pay") == 1, f"append {at}"
    assert asked


async def test_a_parents_rule_denies_a_tool_of_its_sub_agent():
    bank = Bank()
    child = expert([PAY, "not paid"], tools=[bank.pay])
    agent = Agent(
        ScriptedModel([ASK, "done"]), tools=[bank.look, child.as_tool()], approvals=[deny(effect="write", reason="no")]
    )
    result = await within(agent.run("go"))
    assert not bank.ran
    assert result.finished


async def test_a_parents_rule_may_name_a_tool_of_its_sub_agent():
    bank = Bank()
    child = expert([PAY, "not paid"], tools=[bank.pay])
    agent = Agent(ScriptedModel([ASK, "done"]), tools=[child.as_tool()], approvals=[deny("pay")])
    await within(agent.run("go"))
    assert not bank.ran


async def test_a_parents_rule_asks_about_a_tool_of_its_sub_agent():
    bank = Bank()
    child = expert([PAY, "paid"], tools=[bank.pay])
    agent = Agent(
        ScriptedModel([ASK, "done"]), tools=[child.as_tool()],
        approvals=[ask_before(effect="write")],
    )  # fmt: skip
    waiting = await within(agent.run("go"))
    assert [(one.tool, one.kind) for one in waiting.pending] == [("pay", "approval")]
    assert not bank.ran
    result = await within(agent.resume(waiting, approve=[waiting.pending[0].key]))
    assert result.finished
    assert bank.ran == ["pay 5"]


async def test_a_parents_rule_holds_two_levels_down():
    bank = Bank()
    leaf = Agent(ScriptedModel([PAY, "not paid"]), name="leaf", tools=[bank.pay])
    child = expert([[("leaf", {"task": "pay"})], "not paid"], tools=[leaf.as_tool()])
    agent = Agent(ScriptedModel([ASK, "done"]), tools=[bank.pay, child.as_tool()], approvals=[deny("pay")])
    await within(agent.run("go"))
    assert not bank.ran


async def test_a_parents_rule_holds_after_a_handoff():
    bank = Bank()
    child = expert([PAY, "not paid"], tools=[bank.pay])
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {"reason": "bills"})]]), tools=[bank.pay, handoff(child)],
        approvals=[deny("pay")],
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert not bank.ran
    assert result.text == "not paid"


async def test_a_parents_deny_wins_over_a_childs_allow():
    bank = Bank()
    child = expert([PAY, "not paid"], tools=[bank.pay], approvals=[allow("pay")])
    agent = Agent(ScriptedModel([ASK, "done"]), tools=[bank.pay, child.as_tool()], approvals=[deny("pay")])
    await within(agent.run("go"))
    assert not bank.ran


def busy(bank, count=9):
    """An agent below that makes `count` calls and then answers."""

    def turn(request):
        if request.tool_choice == "none" or request.step >= count:
            return "enough"
        return [("look", {"key": f"{request.step}"})]

    return expert(turn, tools=[bank.look])


def insists(request):
    return "enough" if request.tool_choice == "none" or request.step >= 5 else ASK


async def test_calls_in_sub_runs_count_against_the_limit_on_tool_calls():
    bank = Bank()
    agent = Agent(
        ScriptedModel(insists), tools=[busy(bank).as_tool()], limits=Limits(tool_calls=5, steps=100),
        watch_progress=False,
    )  # fmt: skip
    result = await within(agent.run("go"))
    made = len([record for record in result.tool_calls_made if record.executed])
    assert bank.times("look") + made <= 5
    assert bank.times("look") > 0
    assert result.stop.reason == "max_tool_calls"


async def test_calls_of_sub_runs_that_work_at_once_count():
    bank = Bank()
    many = [("expert", {"task": str(n)}) for n in range(3)]
    agent = Agent(
        ScriptedModel(lambda request: "enough" if request.step or request.tool_choice == "none" else many),
        tools=[busy(bank).as_tool()], limits=Limits(tool_calls=8, steps=100), watch_progress=False,
    )  # fmt: skip
    await within(agent.run("go"))
    assert bank.times("look") + 3 <= 8


async def test_calls_two_levels_down_count():
    bank = Bank()
    middle = Agent(ScriptedModel(insists), name="middle", tools=[busy(bank).as_tool()], watch_progress=False)
    agent = Agent(
        ScriptedModel(
            lambda request: "enough" if request.step or request.tool_choice == "none" else [("middle", {"task": "x"})]
        ),
        tools=[middle.as_tool()], limits=Limits(tool_calls=6, steps=100),
    )  # fmt: skip
    await within(agent.run("go"))
    assert bank.times("look") <= 4


async def test_calls_after_a_handoff_count():
    bank = Bank()
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {"reason": "x"})], "enough"]), tools=[handoff(busy(bank))],
        limits=Limits(tool_calls=5, steps=100),
    )  # fmt: skip
    await within(agent.run("go"))
    assert bank.times("look") <= 4


class Bill(BaseModel):
    amount: int


async def test_typed_output_is_read_over_a_handoff():
    child = expert(['{"amount": 5}'])
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {"reason": "bills"})]]), tools=[handoff(child)],
        output=Bill, output_mode="prompted",
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.finished
    assert result.output == Bill(amount=5)


async def test_typed_output_of_the_other_agent_is_kept_over_a_handoff():
    child = expert(['{"amount": 5}'], output=Bill, output_mode="prompted")
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {"reason": "bills"})]]), tools=[handoff(child)],
        output=Bill, output_mode="prompted",
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.output == Bill(amount=5)


async def test_typed_output_that_does_not_fit_is_not_taken_over_a_handoff():
    """What comes back is no Bill: the run must not be finished as if it had its answer."""
    child = expert(["no bill here", "still none", "none at all", "nothing"])
    agent = Agent(
        ScriptedModel([[("transfer_to_expert", {"reason": "bills"})], "none", "none", "none", "none"]),
        tools=[handoff(child)], output=Bill, output_mode="prompted", limits=Limits(steps=5),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert not (result.finished and not isinstance(result.output, Bill)), (result.stop, result.output)


async def test_typed_output_over_a_handoff_survives_resume():
    journal = MemoryJournal()

    def agent():
        return Agent(
            ScriptedModel([[("transfer_to_expert", {"reason": "bills"})]]), tools=[handoff(expert(['{"amount": 5}']))],
            output=Bill, output_mode="prompted", journal=journal,
        )  # fmt: skip

    first = await within(agent().run("go"))
    again = await within(agent().resume(first.run_id))
    assert again.output == Bill(amount=5)


async def test_the_second_of_two_handoffs_is_refused_before_it_is_paid():
    one, two = (
        Agent(ScriptedModel([f"from {name}", f"from {name}"], usage=Usage(100, 10)), name=name)
        for name in ("one", "two")
    )
    calls = [("transfer_to_one", {"reason": "x"}), ("transfer_to_two", {"reason": "y"})]
    agent = Agent(ScriptedModel([calls], usage=Usage(10, 1)), tools=[handoff(one), handoff(two)])
    result = await within(agent.run("go"))
    assert result.text == "from one"
    assert not two.model.requests
    assert result.usage.total_tokens == 121
    second = result.tool_calls_made[1] if len(result.tool_calls_made) > 1 else None
    assert second is None or (second.is_error and not second.executed)


@pytest.mark.parametrize("id", ["a/b", "a#b", "../a", "a/b#1f2e3d4c", "a.b~c+d%2F"])
async def test_a_call_below_whose_id_has_a_slash_can_be_decided(id):
    bank = Bank()
    child = expert([reply((id, "pay", '{"amount": 5}')), "paid"], tools=[bank.pay], approvals=[ask_before("pay")])
    agent = Agent(ScriptedModel([reply((id, "expert", '{"task": "pay"}')), "done"]), tools=[child.as_tool()])
    waiting = await within(agent.run("go"))
    (pending,) = waiting.pending
    by_id = await within(agent.resume(waiting, approve=[pending.call_id]))
    assert by_id.finished
    assert bank.ran == ["pay 5"]


@pytest.mark.parametrize("id", ["a/b", "a#b", "a/b#1f2e3d4c"])
async def test_a_call_below_can_be_decided_by_its_key(id):
    bank = Bank()
    child = expert([reply((id, "pay", '{"amount": 5}')), "paid"], tools=[bank.pay], approvals=[ask_before("pay")])
    agent = Agent(ScriptedModel([reply((id, "expert", '{"task": "pay"}')), "done"]), tools=[child.as_tool()])
    waiting = await within(agent.run("go"))
    assert (await within(agent.resume(waiting, approve=[waiting.pending[0].key]))).finished
    assert bank.ran == ["pay 5"]


def test_system_exit_two_levels_down_is_a_tool_error():
    @tool
    async def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    async def main():
        leaf = Agent(ScriptedModel([[("leave", {})], "stayed"]), name="leaf", tools=[leave])
        child = expert([[("leaf", {"task": "x"})], "stayed"], tools=[leaf.as_tool()])
        return await Agent(ScriptedModel([ASK, "done"]), tools=[child.as_tool()]).run("go")

    result = apart(main)
    assert result.finished
    assert told(result) == ["stayed"]


async def test_a_hook_below_that_raises_leaves_a_run_that_goes_on():
    bank, journal = Bank(), MemoryJournal()

    class Broken(Exception):
        pass

    def broken(call, output):
        raise Broken("mine")

    def agent(hook):
        def asks(request):
            return "done" if any(one.role == "tool" for one in request.messages) else ASK

        def pays(request):
            return "paid" if any(one.role == "tool" for one in request.messages) else PAY

        child = expert(pays, tools=[bank.pay], on_tool_result=hook)
        return Agent(ScriptedModel(asks), tools=[child.as_tool()], journal=journal)

    with pytest.raises(Broken):
        await within(agent(broken).run("go"))
    run_id = min((info.run_id for info in await journal.list(500)), key=len)
    result = await within(agent(lambda call, output: None).resume(run_id))
    assert result.finished
    assert told(result) == ["paid"]
    assert bank.ran == ["pay 5"]


KILLED = """
import asyncio, sys
from treadle import Agent, SqliteJournal, tool
from treadle.testing import ScriptedModel

@tool
async def pay(amount: int) -> str:
    "Pay."
    with open(sys.argv[2], "a") as file:
        file.write(f"pay {amount}\\n")
    print("ready", flush=True)
    await asyncio.sleep(600)

def once(call, end):
    return lambda request: end if any(one.role == "tool" for one in request.messages) else [call]

leaf = Agent(ScriptedModel(once(("pay", {"amount": 5}), "paid")), name="leaf", tools=[pay])
middle = Agent(ScriptedModel(once(("leaf", {"task": "x"}), "paid")), name="middle", tools=[leaf.as_tool()])

async def main(resume):
    async with SqliteJournal(sys.argv[1]) as journal:
        model = ScriptedModel(once(("middle", {"task": "x"}), "done"))
        agent = Agent(model, tools=[middle.as_tool()], journal=journal)
        if not resume:
            await agent.run("go")
        run_id = min((info.run_id for info in await journal.list()), key=len)
        waiting = await agent.resume(run_id)
        print(waiting.stop.reason, *[f"{one.tool}:{one.kind}" for one in waiting.pending])
        result = await agent.resume(run_id, results={one.call_id: "paid before" for one in waiting.pending})
        print(result.stop.reason, result.text)

asyncio.run(main(len(sys.argv) > 3))
"""


def test_a_killed_process_asks_about_a_write_two_levels_down(tmp_path):
    path, notes = tmp_path / "runs.db", tmp_path / "notes.txt"
    program = [sys.executable, "-c", KILLED, str(path), str(notes)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run([*program, "resume"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "waiting pay:interrupted\nanswered done\n"
    assert notes.read_text() == "pay 5\n"


async def test_cancelling_a_parent_leaves_a_sub_run_that_can_be_read():
    reached, journal = asyncio.Event(), MemoryJournal()

    async def hangs(request):
        reached.set()
        await asyncio.sleep(60)

    agent = Agent(ScriptedModel([ASK]), tools=[expert(hangs).as_tool()], journal=journal)
    async with agent.stream("go") as run:
        await reached.wait()
        result = await run.cancel()
    assert result.stop.reason == "cancelled"
    runs = [await journal.read(info.run_id) for info in await journal.list(500)]
    assert len(runs) == 2
    assert all(isinstance(events[-1], RunFinished) and events[-1].stop.reason == "cancelled" for events in runs)


async def test_what_a_condition_ends_below_without_a_word_tells_what_it_has_made():
    """It has not failed: an agent that is done when it has called its tool may be asked again and again."""

    @tool
    def pay(amount: int) -> str:
        """Pays an amount to somebody who is owed it."""
        return f"{amount} paid"

    def head(script, journal, times=1, **typed):
        clerk = Agent(ScriptedModel(script), name="clerk", tools=[pay], stop_when=has_tool_call("pay"), **typed)
        asks = ScriptedModel([*[[("clerk", {"task": f"Pay bill {i}."})] for i in range(times)], "It is paid."])
        return Agent(asks, tools=[clerk.as_tool()], journal=journal)

    silent, journal = [[("pay", {"amount": 5})]], MemoryJournal()
    result = await head(silent, journal).run("Pay 5.")
    (call,) = result.tool_calls_made
    told = "clerk ended without a word (condition: has_tool_call('pay')). Calls that it has made: pay({\"amount\":5})."
    assert (call.result.text.startswith(told), call.is_error) == (True, False)
    said = await head([("I pay it now.", [("pay", {"amount": 5})])], MemoryJournal()).run("Pay 5.")
    assert (said.tool_calls_made[0].result.text, said.tool_calls_made[0].is_error) == ("I pay it now.", False)
    often = await head(lambda request: [("pay", {"amount": 5})], MemoryJournal(), 4).run("Pay all.")
    assert (often.text, len(often.tool_calls_made)) == ("It is paid.", 4)
    (call,) = (await head([[("pay", {"amount": i}) for i in range(23)]], MemoryJournal()).run("Pay.")).tool_calls_made
    assert 'it has made: (at least 3 before these); pay({"amount":3});' in call.result.text
    # Of a type there is no answer.
    (call,) = (await head(silent, MemoryJournal(), output=Bill).run("Pay 5.")).tool_calls_made
    assert call.is_error
    assert json.loads(call.result.text)["made"] == ['pay({"amount":5})']

    # Other words than an answer of the type are none.
    talks = [("I pay it now.", [("pay", {"amount": 5})])]
    (call,) = (await head(talks, MemoryJournal(), output=Bill).run("Pay 5.")).tool_calls_made
    assert call.is_error
    assert json.loads(call.result.text)["found"] == "I pay it now."

    # An earlier version gave back nothing.
    earlier = MemoryJournal()
    for line in reversed(await journal.list()):
        events = await journal.read(line.run_id)
        if line.run_id == result.run_id:
            (place,) = [place for place, event in enumerate(events) if isinstance(event, ToolFinished)]
            events = [*events[:place], msgspec.structs.replace(events[place], content=""), *events[place + 1 :]]
        await earlier.append(line.run_id, 0, events)
    for kept in (journal, earlier):
        assert (await head(silent, kept).replay(result.run_id)).same


@pytest.mark.parametrize("words", ["", "I pass you on."])
@pytest.mark.parametrize("output", [None, Bill])
async def test_a_hand_off_that_a_condition_ends_without_a_word_tells_what_it_has_made(words, output):
    """Regression: the run above had the words that had handed on for its answer, or none, and named no payment."""

    @tool
    def pay(amount: int) -> str:
        """Pays an amount to somebody who is owed it."""
        return f"{amount} paid"

    def front():
        silent = ScriptedModel([[("pay", {"amount": 5})]])
        billing = Agent(silent, name="billing", tools=[pay], stop_when=has_tool_call("pay"))
        hands_on = ScriptedModel([(words, [("transfer_to_billing", {})])])
        return Agent(hands_on, name="front", tools=[handoff(billing)], output=output)

    result = await front().run("Pay 5.")
    assert (result.finished, result.output) == (True, None)
    assert 'Calls that it has made: pay({"amount":5}).' in result.text
    above = Agent(ScriptedModel([[("front", {"task": "Pay 5."})], "It is paid."]), tools=[front().as_tool()])
    (call,) = (await above.run("Pay 5.")).tool_calls_made
    assert 'pay({"amount":5})' in call.result.text.replace("\\", "")
    assert call.is_error == (output is not None)
