"""Batches: each call of a reply has its own start and its own end in the journal, whatever its siblings do.

What was found, and the test that holds it:

- results are written only when the slowest call ends -> test_a_result_is_in_the_journal_while_its_siblings_still_run,
  test_a_payment_that_was_done_before_a_crash_is_not_asked_about
- an `alone` call that never began is "interrupted" -> test_a_call_that_never_began_is_not_interrupted,
  test_each_call_is_started_in_the_journal_right_before_its_own_effect
- a process killed in a batch -> test_a_killed_process_asks_only_about_the_call_that_was_under_way
- `write` calls run one after the other, in call order, unless `parallel=True`; `read` and `idempotent` together
  -> test_writes_of_one_reply_run_in_call_order, test_a_write_that_says_so_runs_beside_others,
  test_reads_and_idempotent_calls_run_together, test_a_read_runs_beside_a_write
- results in the order in which they come -> test_results_are_recorded_in_the_order_in_which_they_come
- SystemExit in a tool -> test_what_a_tool_raises_is_a_tool_error, test_what_a_tool_raises_cancels_nobody_else
- a task that once caught a cancel -> test_a_task_that_once_caught_a_cancel_takes_a_tools_own_for_an_error
- a sync tool that never returns keeps a program from exiting
  -> test_a_sync_tool_that_never_returns_lets_the_program_exit
- a tool's function has one caller -> test_a_tools_function_has_one_caller
- batches are quadratic -> test_a_call_of_a_long_batch_takes_no_more_work_than_one_of_a_short_batch
- and what must stay -> test_a_cancelled_run_is_cancelled_all_the_same,
  test_a_batch_of_a_sqlite_journal_reads_back_as_it_was
- JournalError passes through everything -> test_a_journal_that_fails_at_any_append_reaches_the_caller
"""

import asyncio
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress

import pytest
from play import Bank, apart, copied, cut, pieces, reply, told, within

from treadle import (
    Agent,
    Alternative,
    Limits,
    MemoryJournal,
    Retry,
    SqliteJournal,
    ask_before,
    tool,
)
from treadle.journal import JournalError, JournalUnavailable
from treadle.kernel.events import ToolFinished, ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Slow:
    """A bank beside a read that takes as long as the test wants."""

    def __init__(self):
        self.bank = Bank()
        self.under_way, self.go_on = asyncio.Event(), asyncio.Event()

        @tool(effect="read")
        async def slow() -> str:
            """Take long."""
            self.under_way.set()
            await self.go_on.wait()
            return "at last"

        @tool(alone=True)
        async def close() -> str:
            """Close the books, with nothing beside it."""
            self.bank.ran.append("close")
            return "closed"

        self.tools = [slow, close, *self.bank.tools]

    async def left_behind(self, calls):
        """The journal of a process that dies while `slow` runs, and the run's id."""
        journal = MemoryJournal()
        agent = Agent(ScriptedModel([calls, "done"]), tools=self.tools, journal=journal)
        async with agent.stream("go") as run:
            await self.under_way.wait()
            await asyncio.sleep(0.02)
            left = await copied(journal)
            self.go_on.set()
            async for _ in run:
                pass
        return left, run.run_id


async def test_a_result_is_in_the_journal_while_its_siblings_still_run():
    slow = Slow()
    left, run_id = await within(slow.left_behind([("pay", {"amount": 5}), ("slow", {})]))
    finished = [event for event in await left.read(run_id) if isinstance(event, ToolFinished)]
    assert [event.content for event in finished] == ["paid 5"]


async def test_a_payment_that_was_done_before_a_crash_is_not_asked_about():
    slow = Slow()
    left, run_id = await within(slow.left_behind([("pay", {"amount": 5}), ("slow", {})]))
    slow.bank.ran.clear()
    result = await within(Agent(ScriptedModel(["done"]), tools=slow.tools, journal=left).resume(run_id))
    assert result.finished
    assert told(result) == ["paid 5", "at last"]
    assert not slow.bank.ran


async def test_a_call_that_never_began_is_not_interrupted():
    slow = Slow()
    left, run_id = await within(slow.left_behind([("slow", {}), ("close", {})]))
    slow.bank.ran.clear()
    result = await within(Agent(ScriptedModel(["done"]), tools=slow.tools, journal=left).resume(run_id))
    assert result.finished, [one.kind for one in result.pending]
    assert slow.bank.ran == ["close"]


async def test_each_call_is_started_in_the_journal_right_before_its_own_effect():
    slow = Slow()
    left, run_id = await within(slow.left_behind([("slow", {}), ("close", {}), ("pay", {"amount": 1})]))
    started = [event.call_id for event in await left.read(run_id) if isinstance(event, ToolStarted)]
    assert started == ["call_0_0"]


KILLED = """
import asyncio, sys
from treadle import Agent, SqliteJournal, tool
from treadle.testing import ScriptedModel

def note(text):
    with open(sys.argv[2], "a") as file:
        file.write(text + "\\n")

@tool
async def pay(amount: int) -> str:
    "Pay."
    note(f"pay {amount}")
    return f"paid {amount}"

@tool
async def hang() -> str:
    "Never come back."
    note("hang")
    print("ready", flush=True)
    await asyncio.sleep(600)

@tool(effect="read")
async def look() -> str:
    "Look."
    note("look")
    return "seen"

async def main(resume):
    model = ScriptedModel(lambda request: "done" if request.step else
        [("pay", {"amount": 5}), ("look", {}), ("hang", {}), ("pay", {"amount": 6})])
    async with SqliteJournal(sys.argv[1]) as journal:
        agent = Agent(model, tools=[pay, hang, look], journal=journal)
        if not resume:
            await agent.run("go")
        result = await agent.resume((await journal.list())[0].run_id)
        print(result.stop.reason, *[f"{one.tool}:{one.kind}" for one in result.pending])

asyncio.run(main(len(sys.argv) > 3))
"""


def test_a_killed_process_asks_only_about_the_call_that_was_under_way(tmp_path):
    path, notes = tmp_path / "runs.db", tmp_path / "notes.txt"
    program = [sys.executable, "-c", KILLED, str(path), str(notes)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert "pay 6" not in notes.read_text()
    done = subprocess.run([*program, "resume"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "waiting hang:interrupted\n"
    lines = notes.read_text().splitlines()
    assert (lines.count("pay 5"), lines.count("pay 6"), lines.count("hang")) == (1, 1, 1)


async def order_of(count=3, **options):
    """The moments at which `count` calls of a tool of these options begin and end, in one reply."""
    log = []

    @tool(**options)
    async def work(n: int) -> str:
        """Work."""
        log.append(f"begin {n}")
        for _ in range(5 - n):
            await asyncio.sleep(0)
        log.append(f"end {n}")
        return str(n)

    calls = [("work", {"n": n}) for n in range(count)]
    result = await within(Agent(ScriptedModel([calls, "done"]), tools=[work]).run("go"))
    assert told(result) == [str(n) for n in range(count)]
    return log, result


async def test_writes_of_one_reply_run_in_call_order():
    log, _ = await order_of(effect="write")
    assert log == ["begin 0", "end 0", "begin 1", "end 1", "begin 2", "end 2"]


async def test_a_write_that_says_so_runs_beside_others():
    log, _ = await order_of(effect="write", parallel=True)
    assert log[:3] == ["begin 0", "begin 1", "begin 2"]


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_reads_and_idempotent_calls_run_together(effect):
    log, _ = await order_of(effect=effect)
    assert log[:3] == ["begin 0", "begin 1", "begin 2"]


async def test_a_read_runs_beside_a_write():
    slow = Slow()
    calls = [("slow", {}), ("pay", {"amount": 1}), ("pay", {"amount": 2})]
    left, run_id = await within(slow.left_behind(calls))
    finished = [event.content for event in await left.read(run_id) if isinstance(event, ToolFinished)]
    assert finished == ["paid 1", "paid 2"]


async def test_results_are_recorded_in_the_order_in_which_they_come():
    _, result = await order_of(effect="read")
    finished = [event.content for event in result.events if isinstance(event, ToolFinished)]
    assert finished == ["2", "1", "0"]


class Mine(BaseException):
    pass


RAISED = [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError("mine"), Mine("odd"), GeneratorExit()]


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("raised", RAISED, ids=lambda raised: type(raised).__name__)
def test_what_a_tool_raises_is_a_tool_error(raised, threaded):
    if threaded:

        @tool
        def leave() -> str:
            """Leave."""
            raise raised
    else:

        @tool
        async def leave() -> str:
            """Leave."""
            raise raised

    async def main():
        return await Agent(ScriptedModel([[("leave", {})], "done"]), tools=[leave]).run("go")

    result = apart(main)
    assert result.finished
    (record,) = result.tool_calls_made
    assert record.is_error
    assert type(raised).__name__ in record.result.text


@pytest.mark.parametrize("raised", RAISED[:2], ids=lambda raised: type(raised).__name__)
def test_what_a_tool_raises_cancels_nobody_else(raised):
    async def main():
        bank = Bank()

        @tool(effect="read")
        async def leave() -> str:
            """Leave."""
            raise raised

        calls = [("leave", {}), ("look", {"key": "a"})]
        agent = Agent(ScriptedModel([calls, "done"]), tools=[leave, bank.look])
        async with asyncio.TaskGroup() as group:
            bystander = group.create_task(asyncio.sleep(0.05, "unharmed"))
            result = await agent.run("go")
        assert result.finished
        assert told(result)[1] == "value of a"
        assert bystander.result() == "unharmed"

    apart(main)


async def test_a_task_that_once_caught_a_cancel_takes_a_tools_own_for_an_error():
    @tool
    async def leave() -> str:
        """Leave."""
        raise asyncio.CancelledError("mine")

    async def once_cancelled():
        asyncio.current_task().cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return await Agent(ScriptedModel([[("leave", {})], "done"]), tools=[leave]).run("go")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(once_cancelled())
    result = task.result()
    assert result.finished
    assert result.tool_calls_made[0].is_error


async def test_a_cancelled_run_is_cancelled_all_the_same():
    slow = Slow()
    agent = Agent(ScriptedModel([[("slow", {})], "done"]), tools=slow.tools)
    async with agent.stream("go") as run:
        await slow.under_way.wait()
        result = await run.cancel()
    assert result.stop.reason == "cancelled"


def test_a_sync_tool_that_never_returns_lets_the_program_exit():
    program = """
        import threading
        from treadle import Agent, tool
        from treadle.testing import ScriptedModel

        @tool(timeout=0.05)
        def hang() -> str:
            "Never come back."
            threading.Event().wait()

        result = Agent(ScriptedModel([[("hang", {})], "done"]), tools=[hang]).run_sync("go")
        print(result.text, flush=True)
    """
    program = textwrap.dedent(program)
    try:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=10)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"the program does not exit; it said {late.stdout!r}") from None
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


async def test_a_tools_function_has_one_caller():
    """Whoever asked for a call, the place in the drivers from which its function is called is the same."""
    callers, tries = set(), []

    def note():
        frame, chain = sys._getframe(2), []
        while frame is not None:
            code = frame.f_code
            if "/treadle/" in code.co_filename and "/treadle/tools/" not in code.co_filename:
                chain.append((code.co_filename.rpartition("/treadle/")[2], code.co_qualname))
            frame = frame.f_back
        callers.add(chain[0])

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look."""
        note()
        tries.append(key)
        if key == "again" and tries.count("again") == 1:
            raise ValueError("busy")
        return f"value of {key}"

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        note()
        tries.append(amount)
        return "paid"

    async def early():
        for piece in pieces("e1", "look", '{"key": "early"}'):
            yield piece
        await asyncio.sleep(0.02)
        yield reply(("e1", "look", '{"key": "early"}'))

    def react(call, output):
        if output.is_error:
            return Retry()
        return Alternative("pay", {"amount": 1}) if "instead" in output.content else None

    def agent(turns, **options):
        return Agent(ScriptedModel(turns), tools=[look, pay], limits=Limits(seconds=5), **options)

    await within(agent([[("look", {"key": "plain"})], "done"]).run("go"))
    await within(agent([[("look", {"key": "a"}), ("look", {"key": "b"})], "done"]).run("go"))
    await within(agent([early(), "done"]).run("go"))
    await within(agent([[("look", {"key": "again"})], "done"], on_tool_result=react).run("go"))
    await within(agent([[("look", {"key": "instead"})], "done"], on_tool_result=react).run("go"))
    asking = agent([[("pay", {"amount": 2})], "done"], approvals=[ask_before("pay")])
    waiting = await within(asking.run("go"))
    await within(asking.resume(waiting, approve={waiting.pending[0].call_id: {"amount": 3}}))
    child = agent([[("look", {"key": "below"})], "done"], name="child")
    await within(Agent(ScriptedModel([[("child", {"task": "x"})], "done"]), tools=[child.as_tool()]).run("go"))
    assert tries == ["plain", "a", "b", "early", "again", "again", "instead", 1, 3, "below"]
    assert len(callers) == 1, callers


def work_of(count):
    """How many lines of Python one run with `count` calls in one reply executes."""
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        if event == "opcode":
            lines += 1
        return trace

    @tool(effect="read")
    async def look(n: int) -> int:
        """Look."""
        return n

    calls = [("look", {"n": n}) for n in range(count)]
    agent = Agent(
        ScriptedModel([calls, "done"]),
        tools=[look],
        journal=MemoryJournal(),
        limits=Limits(tool_calls=None, seconds=600),
    )
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = agent.run_sync("go")
    finally:
        sys.settrace(before)
    assert len(result.tool_calls_made) == count
    return lines


def test_a_call_of_a_long_batch_takes_no_more_work_than_one_of_a_short_batch():
    """Counted in instructions, not in seconds, so that it says the same on any machine."""
    work_of(2)  # what is imported at the first use is no call's work
    short, middle, long = (work_of(count) for count in (20, 60, 260))
    a_call, a_call_more = (middle - short) / 40, (long - middle) / 200
    assert a_call_more < a_call * 1.2, (a_call, a_call_more)


class FailsAt(MemoryJournal):
    """A journal whose append number `at` fails, and all after it."""

    def __init__(self, at):
        super().__init__()
        self.at, self.appends = at, 0

    async def append(self, run_id, seq, events):
        self.appends += 1
        if self.appends >= self.at:
            raise JournalUnavailable("the disk is full", where="test")
        await super().append(run_id, seq, events)


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_journal_that_fails_at_any_append_reaches_the_caller(hooked):
    calls = [("pay", {"amount": 5}), ("look", {"key": "a"}), ("down", {"key": "b"})]
    options = {"on_tool_result": lambda call, output: Retry() if output.is_error else None} if hooked else {}
    counting = FailsAt(10_000)
    await within(Agent(ScriptedModel([calls, "done"]), tools=Bank().tools, journal=counting, **options).run("go"))
    assert counting.appends > 3
    for at in range(1, counting.appends + 1):
        bank, journal = Bank(), FailsAt(at)
        agent = Agent(ScriptedModel([calls, "done"]), tools=bank.tools, journal=journal, **options)
        with pytest.raises(JournalError, match="the disk is full"):
            await within(agent.run("go"))
        # What the tool did before is known, or asked about; it is never done again.
        runs = await journal.list()
        if runs:
            before = bank.times("pay")
            left = await cut(runs[0].run_id, await journal.read(runs[0].run_id))
            model = ScriptedModel(lambda request: "done" if request.step else calls)
            again = Agent(model, tools=bank.tools, journal=left, **options)
            result = await within(again.resume(runs[0].run_id))
            assert bank.times("pay") == 1 or result.pending, f"append {at}, paid {before} times before"


async def test_a_batch_of_a_sqlite_journal_reads_back_as_it_was(tmp_path):
    bank = Bank()
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        calls = [("look", {"key": str(n)}) for n in range(20)] + [("pay", {"amount": 5})]
        result = await within(Agent(ScriptedModel([calls, "done"]), tools=bank.tools, journal=journal).run("go"))
        assert list(await journal.read(result.run_id)) == list(result.events)
