"""A run under the name of one that was deleted.

- a run below that was left of the deleted one was taken for its own: the answer to the earlier task was its answer, and
  what waited there was asked about as if the new run wanted it
  -> test_a_run_below_of_a_deleted_run_is_not_taken_up, test_what_waits_below_a_deleted_run_is_not_asked_about_again,
  test_a_run_in_the_way_does_not_keep_one_from_being_cancelled
- figures and costs of the new run counted what one that was left of the deleted run had taken, and its waterfall showed
  that one -> test_what_is_left_of_a_deleted_run_is_no_part_of_the_new_one
- its calls had the idempotency keys of the deleted one, so that a service answered them with what came of those, and
  nothing was paid -> test_calls_of_a_run_under_a_used_name_have_keys_of_their_own; runs that earlier code recorded keep
  theirs, and forks and runs below have their own -> test_keys_stay_what_they_are_and_differ_from_all_others
- a worker that had read a run which was then deleted, and its name used again, did what the deleted one was asked, and
  wrote it into the journal of the new one -> test_who_has_read_a_deleted_run_goes_on_with_the_one_that_is_there
- a decision that was made about it and came late was one on the same call of the new run, which nobody had looked at
  -> test_a_decision_about_a_deleted_run_decides_nothing_of_the_new_one; over HTTP, where the name follows from the
  request's own key, in tests/serve/test_serve_named_runs.py; decisions on runs of earlier code stay what they
  are -> test_decisions_on_runs_without_a_nonce_have_the_keys_that_they_had
- whose it is does not go by the clocks of two machines, nor by journals that do not say it
  -> test_a_run_below_is_its_own_by_whatever_clock
"""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle import Agent, MemoryJournal, Misuse, Price, SqliteJournal, ToolContext, Usage, statistics, tool, waterfall
from treadle.journal import family
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

BELOW = "order-17.0.call_0_0"


class Kept:
    """A queue that takes all."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


def shop(journal, amount, *, needs_approval=False):
    """An agent that has a clerk pay `amount`, and what was paid."""
    paid = []

    @tool(needs_approval=needs_approval)
    def pay(amount: int, context: ToolContext) -> str:
        """Pays an amount."""
        paid.append(amount)
        return f"paid {amount}"

    def clerk(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else [("pay", {"amount": int(last.text)})]

    below = Agent(ScriptedModel(clerk, **PRICED), name="clerk", tools=[pay])

    def head(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else [("clerk", {"task": str(amount)})]

    return Agent(ScriptedModel(head, **PRICED), name="head", tools=[below.as_tool()], journal=journal), paid


PRICED = {"usage": Usage(1000, 100), "price": Price(3, 15)}
A_CALL = Decimal("0.0045")


async def submitted(agent, question):
    assert await agent.submit(question, to=Kept(), run_id="order-17") == "order-17"
    return await agent.drive("order-17")


async def test_a_run_below_of_a_deleted_run_is_not_taken_up():
    journal = MemoryJournal()
    agent, paid = shop(journal, 1)
    assert (await submitted(agent, "Pay 1.")).text == "paid 1"
    assert await journal.delete("order-17")

    agent, paid = shop(journal, 2)
    with pytest.raises(Misuse, match=f"delete {BELOW}.*resume order-17"):
        await submitted(agent, "Pay 2.")
    assert paid == []

    assert await journal.delete(BELOW)
    result = await agent.resume("order-17")
    assert (result.text, paid) == ("paid 2", [2])


async def test_what_waits_below_a_deleted_run_is_not_asked_about_again():
    journal = MemoryJournal()
    agent, paid = shop(journal, 1, needs_approval=True)
    (pending,) = (await submitted(agent, "Pay 1.")).pending
    assert pending.arguments == {"amount": 1}
    assert await journal.delete("order-17")

    agent, paid = shop(journal, 2, needs_approval=True)
    with pytest.raises(Misuse, match=f"delete {BELOW}"):
        await submitted(agent, "Pay 2.")

    assert await journal.delete(BELOW)
    waiting = await agent.resume("order-17")
    assert [one.arguments for one in waiting.pending] == [{"amount": 2}]
    result = await agent.resume("order-17", approve=waiting.pending)
    assert (result.text, paid) == ("paid 2", [2])


async def test_a_run_in_the_way_does_not_keep_one_from_being_cancelled():
    journal = MemoryJournal()
    agent, _ = shop(journal, 1)
    await submitted(agent, "Pay 1.")
    kept = await journal.read(BELOW)
    assert await journal.delete("order-17")

    agent, paid = shop(journal, 2)
    with pytest.raises(Misuse, match=f"delete {BELOW}"):
        await submitted(agent, "Pay 2.")
    await agent.cancel("order-17")
    (line,) = [line for line in await journal.list() if line.run_id == "order-17"]
    assert (line.stop.reason, paid) == ("cancelled", [])
    assert await journal.read(BELOW) == kept


async def test_what_is_left_of_a_deleted_run_is_no_part_of_the_new_one():
    journal = MemoryJournal()
    agent, _ = shop(journal, 1)
    await submitted(agent, "Pay 1.")
    assert await journal.delete("order-17")

    agent, _ = shop(journal, 2)
    with pytest.raises(Misuse, match=f"delete {BELOW}"):
        await submitted(agent, "Pay 2.")
    result = await agent.cancel("order-17")
    assert (await agent.spending("order-17")).total.cost == result.cost == A_CALL
    assert {bar.run_id for bar in (await waterfall(journal, "order-17")).bars} == {"order-17"}
    figures = await statistics(journal)
    assert (figures.runs, figures.ended) == (2, {"cancelled": 1, "answered": 1})
    assert (figures.cost.total, figures.cost.most) == (3 * A_CALL, 2 * A_CALL)
    assert (await agent.replay("order-17")).same


def bank(journal, receipts, amount, *, waits=False):
    """An agent that pays `amount` by a service that does nothing twice under one key, and has a clerk do so too."""

    @tool(effect="idempotent", needs_approval=waits)
    def pay(amount: int, context: ToolContext) -> str:
        """Pays an amount."""
        return receipts.setdefault(context.idempotency_key, f"paid {amount} as {len(receipts) + 1}")

    def clerk(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else [("pay", {"amount": int(last.text)})]

    def head(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else [("pay", {"amount": amount}), ("clerk", {"task": str(amount)})]

    below = Agent(ScriptedModel(clerk), name="clerk", tools=[pay])
    return Agent(ScriptedModel(head), name="head", tools=[pay, below.as_tool()], journal=journal)


async def test_calls_of_a_run_under_a_used_name_have_keys_of_their_own():
    journal, receipts = MemoryJournal(), {}
    await submitted(bank(journal, receipts, 1), "Pay 1.")
    for run_id in reversed(await family(journal, "order-17")):
        await journal.delete(run_id)
    again = bank(journal, receipts, 2)
    await submitted(again, "Pay 2.")

    assert sorted(receipts.values()) == ["paid 1 as 1", "paid 1 as 2", "paid 2 as 3", "paid 2 as 4"]
    assert (await again.replay("order-17")).same
    # Of a queue's second order, or of a submission that is made again, it is the same run.
    await submitted(again, "Pay 2.")
    assert len(receipts) == 4


async def test_keys_stay_what_they_are_and_differ_from_all_others():
    journal, receipts = MemoryJournal(), {}
    agent = bank(journal, receipts, 1, waits=True)
    waiting = await submitted(agent, "Pay 1.")
    earlier = MemoryJournal()
    for run_id in await family(journal, "order-17"):
        start, *rest = await journal.read(run_id)
        await earlier.append(run_id, 0, [replace(start, nonce=0), *rest])

    of_before = bank(earlier, receipts, 1, waits=True)
    await of_before.resume("order-17", approve=(await of_before.resume("order-17")).pending)
    kept = {"order-17-0-call_0_0", f"{BELOW.replace('0_0', '0_1')}-0-call_0_0"}
    assert set(receipts) == kept

    fork = await agent.begin_fork("order-17", at=0)
    await agent.resume("order-17", approve=waiting.pending)
    forked = await agent.resume(fork)
    await agent.resume(fork, approve=forked.pending)
    assert len(receipts) == 6


@pytest.mark.parametrize("told", [True, False])
async def test_a_run_below_is_its_own_by_whatever_clock(told):
    """The machine that began it may be behind the one on which the run above began."""
    first = MemoryJournal()
    agent, _ = shop(first, 1, needs_approval=True)
    await submitted(agent, "Pay 1.")

    journal = MemoryJournal()
    await journal.append("order-17", 0, await first.read("order-17"))
    start, *rest = await first.read(BELOW)
    link = start.parent if told else replace(start.parent, began=None)
    await journal.append(BELOW, 0, [replace(start, at=start.at - 60, parent=link), *rest])

    agent, paid = shop(journal, 1, needs_approval=True)
    waiting = await agent.resume("order-17")
    result = await agent.resume("order-17", approve=waiting.pending)
    assert (result.text, paid) == ("paid 1", [1])


def between(journal_class):
    """A journal in which something happens once, after it was read so often."""

    class Between(journal_class):
        happens, reads = None, 0

        async def read(self, run_id, start=0):
            events = await super().read(run_id, start)
            happens, self.reads = self.happens, self.reads - 1
            if happens is not None and self.reads == 0:
                self.happens = None
                await happens()
            return events

    return Between


@pytest.mark.parametrize("reads", [1, 2])
@pytest.mark.parametrize("journal_class", [MemoryJournal, SqliteJournal])
async def test_who_has_read_a_deleted_run_goes_on_with_the_one_that_is_there(journal_class, reads, tmp_path):
    path = (tmp_path / "runs.db",) if journal_class is SqliteJournal else ()
    journal, receipts = between(journal_class)(*path), {}
    first = bank(journal, receipts, 1)
    await first.submit("Pay 1.", to=Kept(), run_id="order-17")

    async def used_again():
        assert await journal.delete("order-17")
        await bank(journal, receipts, 2).submit("Pay 2.", to=Kept(), run_id="order-17")

    journal.happens, journal.reads = used_again, reads

    def asked(request):
        return [("pay", {"amount": int(request.messages[-1].text[4])})] if request.step == 0 else "done"

    result = await Agent(ScriptedModel(asked), name="head", tools=first.tools, journal=journal).drive("order-17")
    assert journal.happens is None
    assert (result.text, list(receipts.values())) == ("done", ["paid 2 as 1"])
    assert (await first.replay("order-17")).differences == ()


@pytest.mark.parametrize("journal_class", [MemoryJournal, SqliteJournal])
async def test_a_decision_about_a_deleted_run_decides_nothing_of_the_new_one(journal_class, tmp_path):
    journal = journal_class(*((tmp_path / "runs.db",) if journal_class is SqliteJournal else ()))
    receipts = {}
    agent = bank(journal, receipts, 1, waits=True)
    seen = (await submitted(agent, "Pay 1.")).pending
    assert [one.tool for one in seen] == ["pay", "pay"]
    for run_id in reversed(await family(journal, "order-17")):
        await journal.delete(run_id)
    agent = bank(journal, receipts, 1, waits=True)
    fresh = (await submitted(agent, "Pay 1.")).pending
    assert [(one.call_id, one.arguments) for one in fresh] == [(one.call_id, one.arguments) for one in seen]
    for late in ([seen[0]], [seen[1]], [one.key for one in seen]):
        for answers in ({"approve": late}, {"deny": late}, {"results": dict.fromkeys(late, "paid by hand")}):
            with pytest.raises(Misuse, match="look at it again"):
                await agent.resume("order-17", **answers)
    assert receipts == {}

    # What waits below is known by the same keys in another process.
    result = await bank(journal, receipts, 1, waits=True).resume("order-17", approve=[one.key for one in fresh])
    assert (result.finished, len(receipts)) == (True, 2)


async def test_decisions_on_runs_without_a_nonce_have_the_keys_that_they_had():
    journal, receipts = MemoryJournal(), {}
    waiting = await submitted(bank(journal, receipts, 1, waits=True), "Pay 1.")
    earlier = MemoryJournal()
    for run_id in await family(journal, "order-17"):
        start, *rest = await journal.read(run_id)
        await earlier.append(run_id, 0, [replace(start, nonce=0), *rest])
    # SHA-256 of {"amount":1}, as docs/approvals.md has it: of the arguments alone.
    keys = ["call_0_0#c2b11e65", "call_0_1/call_0_0#c2b11e65"]
    assert not {*keys} & {one.key for one in waiting.pending}
    result = await bank(earlier, receipts, 1, waits=True).resume("order-17", approve=keys)
    assert (result.finished, len(receipts)) == (True, 2)
