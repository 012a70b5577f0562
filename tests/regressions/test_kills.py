"""Kills: wherever a process dies, results that are recorded stay, writes are not doubled, and runs are not lost.

A kill is played by a journal that ends after any event, and done for a few for real:

- recorded results repeated 0, writes doubled 0, runs lost 0, finished results asked about again 0
  -> test_a_crash_at_any_event_repeats_and_doubles_nothing (batches, reactions, approvals, sub-runs, hand-offs)
- histories stay valid -> test_a_journal_cut_in_the_middle_of_a_batch_keeps_the_order_of_its_results
- a crash inside an alternative pays again without asking -> test_a_kill_inside_a_write_is_asked_about[alternative]
- the same for approved calls, and below hand-offs -> test_a_kill_inside_a_write_is_asked_about[…]

Found by `make kills`:

- a process that died between writing a decision to a run below and to the run above left a run that waits for good for
  what has been decided -> test_a_crash_at_any_append_of_a_decision_below_loses_no_run
- what a person says of an alternative that was cut off was taken for the answer to a question
  -> test_the_answer_for_an_alternative_that_was_cut_off_may_be_reacted_to
"""

import signal
import subprocess
import time

import pytest
from play import Bank, cut, told, within
from stem import run_in, start_in, surroundings

from treadle import Agent, Alternative, MemoryJournal, Retry, ask_before, handoff
from treadle.kernel.events import ToolFinished, ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

BATCH = [("pay", {"amount": 1}), ("look", {"key": "a"}), ("down", {"key": "b"}), ("pay", {"amount": 2})]


def once(calls, then="done"):
    """A model that asks for `calls` until it is shown results."""
    return ScriptedModel(lambda request: then if any(one.role == "tool" for one in request.messages) else calls)


def react(call, output):
    if not output.is_error:
        return None
    return Alternative("pay", {"amount": 3}) if call.call.name == "down" else Retry()


def agents(kind, bank, journal):
    """The agent of a world, with fresh models."""
    if kind == "batch":
        return Agent(once(BATCH), tools=bank.tools, journal=journal)
    if kind == "reactions":
        return Agent(once(BATCH), tools=bank.tools, journal=journal, on_tool_result=react)
    if kind == "approvals":
        return Agent(once(BATCH), tools=bank.tools, journal=journal, approvals=[ask_before("pay")])
    if kind == "sub-run":
        leaf = Agent(once(BATCH, "below"), name="leaf", tools=bank.tools)
        middle = Agent(once([("leaf", {"task": "x"})], "middle"), name="middle", tools=[leaf.as_tool()])
        return Agent(once([("middle", {"task": "x"})]), tools=[middle.as_tool()], journal=journal)
    other = Agent(once(BATCH, "below"), name="other", tools=bank.tools)
    return Agent(once([("transfer_to_other", {"reason": "x"})]), tools=[handoff(other)], journal=journal)


async def settled(agent, result):
    """The end of the run: what waits for approval is approved, what was interrupted is answered."""
    asked = []
    for _ in range(8):
        if result.stop.reason != "waiting":
            return result, asked
        approve = [one.call_id for one in result.pending if one.kind == "approval"]
        interrupted = {one.call_id: "looked it up" for one in result.pending if one.kind == "interrupted"}
        asked += [one for one in result.pending if one.kind == "interrupted"]
        result = await within(agent.resume(result.run_id, approve=approve, results=interrupted))
    raise AssertionError(f"the run still waits: {result.pending}")


class Watched(MemoryJournal):
    """A journal that keeps each append, and how many tools had begun before it."""

    def __init__(self, bank):
        super().__init__()
        self.bank, self.appends, self.begun = bank, [], []

    async def append(self, run_id, seq, events):
        self.begun.append(len(self.bank.ran))
        await super().append(run_id, seq, events)
        self.appends.append((run_id, seq, list(events)))


@pytest.mark.parametrize("kind", ["batch", "reactions", "approvals", "sub-run", "handoff"])
async def test_a_crash_at_any_event_repeats_and_doubles_nothing(kind):
    """The process dies right before an append: what it did by then it did, and what it wrote by then is known."""
    first = Bank()
    journal = Watched(first)
    agent = agents(kind, first, journal)
    result, _ = await settled(agent, await within(agent.run("go")))
    assert result.finished
    begun = [*journal.begun, len(first.ran)]
    for count in range(1, len(journal.appends) + 1):
        left, bank = MemoryJournal(), Bank()
        for run_id, seq, events in journal.appends[:count]:
            await left.append(run_id, seq, events)
        written = [event for _, _, events in journal.appends[:count] for event in events]
        known = [event.content for event in written if isinstance(event, ToolFinished)]
        again = agents(kind, bank, left)
        ended, asked = await settled(again, await within(again.resume(result.run_id)))
        died = f"dead after {count} appends"
        assert ended.finished, f"{died}: {ended.stop}"
        assert len(asked) <= 1, f"{died}: writes run one by one, so that one at most is in doubt"
        for amount in (1, 2, 3):
            done = first.ran[: begun[count]].count(f"pay {amount}") + bank.times(f"pay {amount}")
            assert done <= 1, f"{died}: pay {amount} was done {done} times"
            if f"paid {amount}" in known:
                assert not [one for one in asked if one.arguments == {"amount": amount}], f"{died}: it is known"
        if "value of a" in known:
            assert bank.times("look") == 0, f"{died}: a known result was asked for again"


async def test_a_journal_cut_in_the_middle_of_a_batch_keeps_the_order_of_its_results():
    bank = Bank()
    whole = await within(Agent(once(BATCH), tools=bank.tools).run("go"))
    for length in range(1, len(whole.events) + 1):
        left = await cut(whole.run_id, whole.events[:length])
        again = Agent(once(BATCH), tools=Bank().tools, journal=left)
        ended, _ = await settled(again, await within(again.resume(whole.run_id)))
        ids = [message.call_id for message in ended.messages if message.role == "tool"]
        assert ids == [f"call_0_{n}" for n in range(4)]


@pytest.mark.parametrize("levels", [1, 2])
async def test_a_crash_at_any_append_of_a_decision_below_loses_no_run(levels):
    def agent(bank, journal):
        one = Agent(once([("pay", {"amount": 1})]), name="leaf", tools=bank.tools, approvals=[ask_before("pay")])
        for level in range(levels):
            one = Agent(once([(one.name, {"task": "x"})]), name=f"above{level}", tools=[one.as_tool()], journal=journal)
        return one

    first = Bank()
    journal = Watched(first)
    waiting = await within(agent(first, journal).run("go"))
    undecided = len(journal.appends)
    await within(agent(first, journal).resume(waiting.run_id, approve=[one.key for one in waiting.pending]))
    for count in range(undecided, len(journal.appends) + 1):
        left, bank = MemoryJournal(), Bank()
        for run_id, seq, events in journal.appends[:count]:
            await left.append(run_id, seq, events)
        again = agent(bank, left)
        ended, _ = await settled(again, await within(again.resume(waiting.run_id)))
        assert ended.finished, f"dead after {count} appends: {ended.stop}"
        begun = [*journal.begun, len(first.ran)][count]
        assert first.ran[:begun].count("pay 1") + bank.times("pay 1") <= 1


async def test_the_answer_for_an_alternative_that_was_cut_off_may_be_reacted_to():
    """Uncut, the hook sees the result of the alternative too."""

    def react(call, output):
        if call.doing.name == "down":
            return Alternative("pay", {"amount": 3})
        return f"seen: {output.content}"

    def agent(bank, journal):
        return Agent(once([("down", {"key": "b"})]), tools=bank.tools, journal=journal, on_tool_result=react)

    whole = await within(agent(Bank(), MemoryJournal()).run("go"))
    begun = [i for i, event in enumerate(whole.events) if isinstance(event, ToolStarted)]
    left = await cut(whole.run_id, whole.events[: begun[1] + 1])
    again = agent(Bank(), left)
    waiting = await within(again.resume(whole.run_id))
    (pending,) = waiting.pending
    ended = await within(again.resume(waiting, results={pending.call_id: "paid 3"}))
    assert told(ended) == told(whole) == ["seen: paid 3"]


KILLED = """
import asyncio, sys
from treadle import Agent, Alternative, SqliteJournal, ask_before, handoff, tool
from treadle.testing import ScriptedModel

kind = sys.argv[3]

@tool
async def pay(amount: int) -> str:
    "Pay."
    with open(sys.argv[2], "a") as file:
        file.write(f"pay {amount}\\n")
    print("ready", flush=True)
    await asyncio.sleep(0 if len(sys.argv) > 4 else 600)

@tool(effect="read")
async def down() -> str:
    "Fail."
    raise ValueError("down")

def once(call, end="done"):
    return ScriptedModel(lambda request: end if any(one.role == "tool" for one in request.messages) else [call])

def react(call, output):
    return Alternative("pay", {"amount": 5}) if call.call.name == "down" and output.is_error else None

def agent(journal):
    tools, paying = [pay, down], ("pay", {"amount": 5})
    if kind == "alternative":
        return Agent(once(("down", {})), tools=tools, on_tool_result=react, journal=journal)
    if kind == "approved":
        return Agent(once(paying), tools=tools, approvals=[ask_before("pay")], journal=journal)
    if kind == "handoff":
        other = Agent(once(paying), name="other", tools=tools)
        return Agent(once(("transfer_to_other", {"reason": "x"})), tools=[handoff(other)], journal=journal)
    child = Agent(once(paying), name="child", tools=tools)
    return Agent(once(("child", {"task": "x"})), tools=[child.as_tool()], on_tool_result=react, journal=journal)

async def main(resume):
    async with SqliteJournal(sys.argv[1]) as journal:
        one = agent(journal)
        if not resume:
            waiting = await one.run("go")
            await one.resume(waiting.run_id, approve=[pending.key for pending in waiting.pending])
        run_id = min((info.run_id for info in await journal.list()), key=len)
        waiting = await one.resume(run_id)
        print(waiting.stop.reason, *[f"{pending.tool}:{pending.kind}" for pending in waiting.pending])
        given = {pending.call_id: "paid before" for pending in waiting.pending}
        print((await one.resume(run_id, results=given)).stop.reason)

asyncio.run(main(len(sys.argv) > 4))
"""


@pytest.mark.parametrize("kind", ["alternative", "approved", "handoff", "sub-run"])
def test_a_kill_inside_a_write_is_asked_about(tmp_path, stem, kind):
    path, notes = tmp_path / "runs.db", tmp_path / "notes.txt"
    program = ["-c", KILLED, str(path), str(notes), kind]
    with start_in(stem, program, tmp_path, surroundings(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = run_in(stem, [*program, "resume"], tmp_path, surroundings(), seconds=20)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "waiting pay:interrupted\nanswered\n"
    assert notes.read_text() == "pay 5\n"
