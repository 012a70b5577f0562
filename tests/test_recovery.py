"""What becomes of a call that was under way when its process died.

- `read` and `idempotent` calls run again with the same key, in sub-runs and after two crashes too
  -> test_a_call_that_may_be_repeated_has_one_key, test_a_call_of_a_sub_run_has_one_key
- a `write` in flight is settled by a person, at once and without a pause in between
  -> test_a_person_says_what_came_of_it
- or by its tool, and what it says goes through the one door -> test_the_tool_finds_out, test_a_hook_sees_what_was_found
- what nobody knows stays unknown, and why is said -> test_what_a_tool_cannot_find_out_is_asked
- what its tool said when it began counts, whatever that says by now
  -> test_a_call_that_wrote_is_in_doubt_whatever_its_tool_says_by_now
"""

import asyncio
import gc
import threading
import time

import pytest

from treadle import (
    Agent,
    BadTool,
    Done,
    MemoryJournal,
    Misuse,
    NotDone,
    ToolContext,
    ToolError,
    ToolResult,
    ask_before,
    tool,
)
from treadle.kernel.events import ApprovalRequested, RunFinished, RunResumed, ToolFinished, ToolStarted
from treadle.result import fingerprint
from treadle.testing import ScriptedModel
from treadle.tools.threads import ThreadCall

pytestmark = pytest.mark.anyio


class Order(MemoryJournal):
    """A journal that knows in which order the events of all runs were stored."""

    def __init__(self):
        super().__init__()
        self.order = []

    async def append(self, run_id, seq, events, held=None):
        await super().append(run_id, seq, events, held)
        self.order += [(run_id, event) for event in events]

    async def cut(self, wanted):
        """The journal as a process left it that died right after the last event of which `wanted` holds."""
        last = max(at for at, (_, event) in enumerate(self.order) if wanted(event))
        left = Order()
        for run_id, event in self.order[: last + 1]:
            there = left._runs.get(run_id, [])
            await left.append(run_id, len(there), [event])
        return left

    @property
    def root(self):
        return self.order[0][0]


def started(event):
    return isinstance(event, ToolStarted)


def says(*script):
    """A model that says the same in a step however often it is asked, as after a crash."""
    return ScriptedModel(lambda request: script[request.step])


def paying(journal, reconcile=None, said=None, **options):
    """An agent whose tool pays, and what was paid."""
    paid = []

    @tool(effect="write", reconcile=reconcile)
    async def pay(amount: int, context: ToolContext) -> str:
        """Pays."""
        paid.append((amount, context.idempotency_key))
        return f"paid {amount}"

    return Agent(says(*(said or ([("pay", {"amount": 5})], "done"))), tools=[pay], journal=journal, **options), paid


async def crashed(**options):
    """The journal of a run whose process died while it paid."""
    agent, _ = paying(journal := Order(), **options)
    await agent.run("pay")
    return await journal.cut(started)


async def test_a_call_that_may_be_repeated_has_one_key():
    keys = []

    @tool(effect="idempotent")
    def put(context: ToolContext) -> str:
        """Puts."""
        keys.append(context.idempotency_key)
        return "put"

    agent = Agent(says([("put", {})], "done"), tools=[put], journal=(journal := Order()))
    await agent.run("go")
    for _ in range(2):
        journal = await journal.cut(started)
        result = await agent.with_journal(journal).resume(journal.root)
        assert result.text == "done"
    assert keys == [f"{journal.root}-0-call_0_0"] * 3


async def test_a_call_of_a_sub_run_has_one_key():
    keys = []

    @tool(effect="idempotent")
    def put(context: ToolContext) -> str:
        """Puts."""
        keys.append(context.idempotency_key)
        return "put"

    below = Agent(says([("put", {})], "below done"), tools=[put], name="below")
    agent = Agent(says([("below", {"task": "go"})], "done"), tools=[below.as_tool()], journal=(journal := Order()))
    await agent.run("go")
    for _ in range(2):
        journal = await journal.cut(started)
        result = await agent.with_journal(journal).resume(journal.root)
        assert result.text == "done"
    assert keys == [f"{journal.root}.0.call_0_0-0-call_0_0"] * 3


def as_now(effect, journal, done):
    """The agent of a later version of the program, whose tool says of itself that it may be made again."""

    @tool(effect=effect)
    async def pay(amount: int) -> str:
        """Pays."""
        done.append(amount)
        return f"paid {amount}"

    return Agent(says([("pay", {"amount": 5})], "done"), tools=[pay], journal=journal)


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_a_call_that_wrote_is_in_doubt_whatever_its_tool_says_by_now(effect):
    journal, done = await crashed(), []
    agent = as_now(effect, journal, done)
    waiting = await agent.resume(journal.root)
    (one,) = waiting.pending
    assert (one.kind, done) == ("interrupted", [])
    result = await agent.resume(journal.root, approve=[one.key])
    assert (result.text, done) == ("done", [5])


# That it is run again is another question than whether it may run, and has a key of its own.
KEY = "call_0_0#" + fingerprint('["again",{"amount": 5}]')


@pytest.mark.parametrize(
    ("answers", "shown", "again"),
    [
        ({"results": {"call_0_0": "receipt 7"}}, "receipt 7", 0),
        ({"results": {"call_0_0": ToolResult("no money", is_error=True)}}, "no money", 0),
        ({"approve": [KEY]}, "paid 5", 1),
        ({"approve": {KEY: {"amount": 5}}}, "paid 5", 1),
        ({"deny": {"call_0_0": "leave it"}}, "outcome is unknown", 0),
    ],
)
async def test_a_person_says_what_came_of_it(answers, shown, again):
    journal = await crashed()
    agent, paid = paying(journal)
    result = await agent.resume(journal.root, **answers)
    assert result.text == "done"
    (record,) = result.tool_calls_made
    assert shown in record.result.text
    assert record.is_error is (shown in ("no money", "outcome is unknown"))
    assert len(paid) == again
    # Nobody had to be asked first: there is no pause in between.
    assert sum(isinstance(event, RunResumed) for event in result.events) == 1


async def test_a_person_says_what_came_of_a_call_of_a_sub_run():
    def above(journal):
        below, paid = paying(None, name="below")
        script = says([("below", {"task": "pay"})], "all done")
        return Agent(script, tools=[below.as_tool()], journal=journal), paid

    agent, _ = above(journal := Order())
    await agent.run("go")
    left = await journal.cut(started)
    agent, paid = above(left)
    result = await agent.resume(left.root, results={"call_0_0/call_0_0": "receipt 7"})
    assert result.text == "all done"
    assert paid == []
    (inner,) = [run for run in left._runs if run != left.root]
    assert [one.content for one in await left.read(inner) if isinstance(one, ToolFinished)] == ["receipt 7"]


async def test_a_call_that_nobody_knows_is_refused_and_nothing_is_recorded():
    journal = await crashed()
    agent, _ = paying(journal)
    before = await journal.read(journal.root)
    with pytest.raises(Misuse, match=r"waiting: call_0_0 \(pay\)"):
        await agent.resume(journal.root, results={"another": 1})
    assert await journal.read(journal.root) == before
    assert await journal.holders([journal.root]) == {}


async def found(context):
    """Knows that it was done."""
    assert context.arguments == {"amount": 5}
    return Done({"receipt": context.idempotency_key})


def found_slowly(context):
    """Likewise, in a thread."""
    time.sleep(0.01)
    return Done({"receipt": context.idempotency_key})


async def not_done(context):
    """Knows that it was not done."""
    return NotDone()


async def unknown(context):
    """Does not know."""


async def raises(context):
    """Fails."""
    raise ConnectionError("the bank is closed")


async def says_so(context):
    """Fails in words of its own."""
    raise ToolError("ask again tomorrow")


async def says_more_than_is_kept(context):
    """Likewise, in more words than a result may have, that take room in JSON."""
    raise ToolError("\x01" * 100_000)


async def cancels_itself(context):
    """Is cancelled by what it asked."""
    raise asyncio.CancelledError("lost")


async def odd(context):
    """Says what cannot be."""
    return "paid"


async def failed(context):
    """Knows that it failed."""
    return Done(ToolResult("no money", is_error=True))


@pytest.mark.parametrize("reconcile", [found, found_slowly])
async def test_the_tool_finds_out(reconcile):
    journal = await crashed()
    agent, paid = paying(journal, reconcile)
    result = await agent.resume(journal.root)
    assert result.text == "done"
    assert paid == []
    (record,) = result.tool_calls_made
    assert record.result.text == f'{{"receipt":"{journal.root}-0-call_0_0"}}'
    assert record.executed
    assert not record.is_error
    assert len(result.tool_calls_made) == 1


async def test_a_result_that_failed_is_an_error():
    journal = await crashed()
    result = await paying(journal, failed)[0].resume(journal.root)
    assert result.tool_calls_made[0].is_error
    assert "no money" in result.tool_calls_made[0].result.text


async def test_a_call_that_was_not_done_is_made_with_its_key():
    journal = await crashed()
    agent, paid = paying(journal, not_done)
    result = await agent.resume(journal.root)
    assert result.text == "done"
    assert paid == [(5, f"{journal.root}-0-call_0_0")]


WHY = {
    unknown: "pay could not find out what came of it.",
    raises: "the bank is closed",
    says_so: "ask again tomorrow",
    says_more_than_is_kept: "pay could not find out what came of it: ",
    cancels_itself: "cancelled itself",
    odd: "it was given str, and not Done(…), NotDone() or None",
}


@pytest.mark.parametrize("reconcile", WHY)
async def test_what_a_tool_cannot_find_out_is_asked(reconcile):
    journal = await crashed()
    agent, paid = paying(journal, reconcile)
    waiting = await agent.resume(journal.root)
    (one,) = waiting.pending
    assert one.kind == "interrupted"
    assert WHY[reconcile] in one.question
    assert paid == []
    assert (await agent.resume(journal.root, results={one.key: "receipt"})).text == "done"


@pytest.mark.parametrize("reconcile", WHY)
async def test_or_the_model_is_told(reconcile):
    journal = await crashed()
    agent, paid = paying(journal, reconcile, on_interrupted="tell")
    result = await agent.resume(journal.root)
    assert result.text == "done"
    assert "outcome is unknown" in result.tool_calls_made[0].result.text
    assert paid == []


async def test_a_tool_that_takes_too_long_to_find_out():
    @tool(effect="write", timeout=0.02, reconcile=lambda context: asyncio.sleep(60))
    async def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    journal = await crashed()
    agent = Agent(says([("pay", {"amount": 5})], "done"), tools=[pay], journal=journal)
    (one,) = (await agent.resume(journal.root)).pending
    assert "time limit" in one.question


async def test_a_tool_that_is_asked_in_a_thread_and_answers_too_late(recwarn):
    """What it made to be awaited is nobody's by then."""
    done = threading.Event()

    def find_out(context):
        time.sleep(0.1)
        done.set()
        return asyncio.sleep(60)

    @tool(effect="write", timeout=0.02, reconcile=find_out)
    async def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    journal = await crashed()
    agent = Agent(says([("pay", {"amount": 5})], "done"), tools=[pay], journal=journal)
    (one,) = (await agent.resume(journal.root)).pending
    assert "time limit" in one.question
    assert await asyncio.to_thread(done.wait, 10)
    for _ in range(10):
        await asyncio.sleep(0.01)
    gc.collect()
    assert [str(one.message) for one in recwarn] == []


def test_a_tool_that_is_asked_in_a_thread_and_answers_after_the_program_went_on(recwarn):
    """By then the event loop is closed, and nobody can be told of what there is to be awaited."""
    done = threading.Event()
    goes_on = threading.Event()

    def find_out(context):
        goes_on.wait(10)
        threading.Timer(0.1, done.set).start()
        return asyncio.sleep(60)

    @tool(effect="write", timeout=0.5, reconcile=find_out)
    async def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    async def main():
        journal = await crashed()
        agent = Agent(says([("pay", {"amount": 5})], "done"), tools=[pay], journal=journal)
        return (await agent.resume(journal.root)).pending

    (one,) = asyncio.run(main())
    assert "time limit" in one.question
    goes_on.set()
    assert done.wait(10)
    gc.collect()
    assert [str(one.message) for one in recwarn] == []


async def test_what_a_thread_gives_in_the_moment_in_which_it_is_given_up(recwarn):
    """It is back, and whoever waited for it is cancelled before hearing of it."""
    begun = threading.Event()

    def find_out(**_):
        begun.set()
        return asyncio.sleep(60)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(ThreadCall(find_out).result({}))
        await asyncio.sleep(0)
        assert begun.wait(10)
        threading.Event().wait(0.1)  # the thread has told the event loop, which had no turn since
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
    del task
    gc.collect()
    assert [str(one.message) for one in recwarn] == []


async def test_a_hook_sees_what_was_found():
    seen = []

    def look(call, result):
        seen.append((call.name, result.content, result.value))
        return "as the hook has it"

    journal = await crashed(on_tool_result=lambda call, result: None)
    agent, _ = paying(journal, found, on_tool_result=look)
    result = await agent.resume(journal.root)
    ((name, content, value),) = seen
    assert name == "pay"
    assert content.startswith('{"receipt"')
    assert set(value) == {"receipt"}
    assert result.tool_calls_made[0].result.text == "as the hook has it"


async def test_rules_hold_for_a_call_that_was_not_done():
    rules = [ask_before("pay")]
    agent, _ = paying(journal := Order(), approvals=rules)
    paused = await agent.run("pay")
    await agent.resume(paused.run_id, approve=paused.pending)
    left = await journal.cut(started)
    agent, paid = paying(left, not_done, approvals=rules)
    # Somebody allowed this very call: it is the same one.
    assert (await agent.resume(left.root)).text == "done"
    assert len(paid) == 1


async def test_it_is_asked_in_sub_runs():
    def above(journal, reconcile):
        below, paid = paying(None, reconcile, name="below")
        script = says([("below", {"task": "pay"})], "all done")
        return Agent(script, tools=[below.as_tool()], journal=journal), paid

    agent, _ = above(journal := Order(), found)
    await agent.run("go")
    left = await journal.cut(started)
    agent, paid = above(left, found)
    assert (await agent.resume(left.root)).text == "all done"
    assert paid == []


async def test_a_run_that_is_cancelled_while_its_tool_finds_out():
    asked = asyncio.Event()

    async def never(context):
        asked.set()
        await asyncio.sleep(3600)

    journal = await crashed()
    agent, paid = paying(journal, never)
    async with agent.stream(resume=journal.root) as live:
        await asked.wait()
        result = await live.cancel()
    assert result.stop.reason == "cancelled"
    assert "outcome is unknown" in result.tool_calls_made[0].result.text
    assert isinstance(result.events[-1], RunFinished)
    assert paid == []


async def test_a_process_that_dies_while_it_finds_out_asks_again():
    asked = []

    async def count(context):
        asked.append(context.idempotency_key)
        return NotDone()

    journal = await crashed()
    agent, _ = paying(journal, count)
    await agent.resume(journal.root)
    left = await journal.cut(lambda event: isinstance(event, RunResumed))
    agent, paid = paying(left, count)
    await agent.resume(left.root)
    assert len(asked) == 2
    assert len(set(asked)) == 1
    assert len(paid) == 1


async def test_only_calls_in_doubt_are_asked_about():
    async def never(context):
        raise AssertionError("it was asked")

    agent, paid = paying(Order(), never, said=([("pay", {"amount": 5})], [("pay", {"amount": 6})], "done"))
    assert (await agent.run("pay")).text == "done"
    assert [amount for amount, _ in paid] == [5, 6]


async def test_why_it_is_not_known_stands_in_the_journal():
    journal = await crashed()
    await paying(journal, raises)[0].resume(journal.root)
    (asked,) = [event for event in await journal.read(journal.root) if isinstance(event, ApprovalRequested)]
    assert asked.why == "interrupted"
    assert "the bank is closed" in asked.reason


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"reconcile": 3}, "takes a ToolContext"),
        ({"reconcile": lambda: None}, "takes a ToolContext"),
        ({"reconcile": lambda one, two: None}, "takes a ToolContext"),
        ({"reconcile": found, "effect": "read"}, "run again"),
        ({"reconcile": found, "effect": "idempotent"}, "run again"),
    ],
)
def test_what_cannot_reconcile_is_refused(options, fault):
    with pytest.raises(BadTool, match=fault):

        @tool(**options)
        def pay(amount: int) -> str:
            """Pays."""
            return "paid"
