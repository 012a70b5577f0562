"""Processes that die, stand still and wake again around runs below: what the simulation found (`make simulate`).

What was found, and the test that holds it:

- a run that ended from outside (a deadline, a cancel) left the runs below it, which a process that died had begun,
  without an end for ever; what they took was lost where their call had just been started again
  -> test_runs_below_end_with_the_run_that_ends, test_what_a_run_below_took_is_told_though_its_call_had_begun_again
- so did one whose journal failed as the runs below were ended: it ended itself, and they never did
  -> test_a_run_whose_journal_fails_as_it_ends_can_be_taken_up_again
- a run below was taken up, but nothing of it stood in its journal before others acted: whoever had lost the run above
  went on with it -> test_runs_below_are_taken_over_before_anything_else_is_done
- whoever had lost a run took over the run below it that its new owner had begun
  -> test_who_lost_a_run_takes_nothing_of_its_new_owner
- an approval that was delivered twice, before a crash and after it, had a write made again, of which nobody had been
  asked whether it may be -> test_an_approval_that_comes_twice_makes_no_write_twice
- a beat of the lease between the end of a run and the journal's word of it: the run was said to be taken over
  -> test_no_beat_takes_the_end_of_a_run_for_its_loss
- what was fed while a journal that is handed events was waited for was stored twice, and the run conflicted with
  itself; and one that told of later events first was waited for without end
  -> test_what_is_fed_meanwhile_is_handed_over_once, test_a_journal_may_tell_of_later_events_first
- a call that had begun early, and was under way when the process died, was not counted
  -> test_an_early_call_that_was_lost_counts
- a process whose budget did not answer for a while told it of a run over what its new owner had there by then:
  the last reply was not counted, and the rest stayed set aside for ever
  -> test_who_lost_a_run_while_its_budget_did_not_answer_changes_nothing_there
"""

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass

import pytest
from msgspec.structs import replace
from play import copied, within

from treadle import (
    Agent,
    Budget,
    Journal,
    MemoryJournal,
    Misuse,
    ModelSettings,
    RunResult,
    SqliteJournal,
    Usage,
    tool,
)
from treadle.drivers.heartbeat import Lease
from treadle.drivers.purse import telling
from treadle.drivers.purse.rows import BudgetLost
from treadle.drivers.recorder import Recorder
from treadle.journal import JournalConflict, JournalUnavailable
from treadle.kernel.events import RunFinished, RunResumed, RunStarted, StepPrepared, ToolStarted
from treadle.kernel.fold import fold_all
from treadle.kernel.stop import Decision, Stop
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"seen {what}"


@tool(effect="read")
def watch(what: str) -> str:
    """Looks at something else."""
    return f"watched {what}"


def agents(inner, journal, *, calls=(("low", {"task": "a"}),)):
    """An agent, and one that works for it, whose model is `inner`."""
    low = Agent(ScriptedModel(inner, usage=Usage(9, 1)), name="low", tools=[look])
    turns = ScriptedModel(lambda r: list(calls) if r.step == 0 else "done", usage=Usage(99, 1))
    return Agent(turns, name="top", tools=[low.as_tool(), watch], journal=journal)


async def left_behind(**options):
    """The journal of a process that died when the agent below had replied once; the run's id, and that of the other."""
    journal, left = MemoryJournal(), []

    async def inner(request):
        if request.step == 0:
            return [("look", {"what": "a"})]
        left.append(await copied(journal))
        return "low"

    result = await within(agents(inner, journal, **options).run("go"))
    return left[0], result.run_id, f"{result.run_id}.0.call_0_0"


class Late(MemoryJournal):
    """A journal from which runs below are read so slowly that a deadline may come first."""

    async def read(self, run_id, start=0):
        await asyncio.sleep(0.02 if "." in run_id else 0)
        return await super().read(run_id, start)


async def aged(left, journal, *runs):
    """Puts `runs` into another journal, begun so long ago that their time is up."""
    for run_id in runs:
        first, *others = await left.read(run_id)
        link = first.parent and replace(first.parent, began=first.parent.began - 400)
        await MemoryJournal.append(journal, run_id, 0, [replace(first, at=first.at - 400, parent=link), *others])


async def test_runs_below_end_with_the_run_that_ends():
    left, run_id, below = await left_behind()
    journal = Late()
    await aged(left, journal, run_id, below)
    result = await within(agents(["again"], journal).resume(run_id))
    assert result.stop.reason == "deadline"
    assert isinstance((await journal.read(below))[-1], RunFinished)


async def test_what_a_run_below_took_is_told_though_its_call_had_begun_again():
    journal, run_id, below = await left_behind()
    begun, never = asyncio.Event(), asyncio.Event()

    class Slow(MemoryJournal):
        async def append(self, run_id, seq, events):
            await super().append(run_id, seq, events)
            if run_id != below and any(isinstance(one, ToolStarted) for one in events):
                begun.set()
                await never.wait()

    slow = Slow()
    for one in (run_id, below):
        await MemoryJournal.append(slow, one, 0, await journal.read(one))
    task = asyncio.get_running_loop().create_task(agents(["again"], slow).resume(run_id))
    await within(begun.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert isinstance((await slow.read(below))[-1], RunFinished)
    assert fold_all(await slow.read(run_id)).usage.total_tokens == 100 + 10


async def test_a_run_whose_journal_fails_as_it_ends_can_be_taken_up_again():
    left, run_id, below = await left_behind()

    class Fails(Late):
        async def append(self, run_id, seq, events):
            if "." in run_id and any(isinstance(one, RunFinished) for one in events):
                raise JournalUnavailable("the disk is full", where="here")
            await super().append(run_id, seq, events)

    fails = Fails()
    await aged(left, fails, run_id, below)
    with pytest.raises(JournalUnavailable):
        await within(agents(["again"], fails).resume(run_id))
    left = await copied(fails)
    result = await within(agents(["again"], left).resume(run_id))
    assert result.stop.reason == "deadline"
    assert isinstance((await left.read(below))[-1], RunFinished)


async def test_runs_below_are_taken_over_before_anything_else_is_done():
    left, run_id, below = await left_behind(calls=[("watch", {"what": "b"}), ("low", {"task": "a"})])
    below = next(one.run_id for one in await left.list() if "." in one.run_id)
    order = []

    class Recording(MemoryJournal):
        async def append(self, run_id, seq, events):
            await super().append(run_id, seq, events)
            order.extend((run_id, type(one)) for one in events)

    journal = Recording()
    for one in (run_id, below):
        events = await left.read(one)
        # The call beside it was under way too.
        await journal.append(one, 0, events if one == below else [e for e in events if e.at and not _finished(e)])
    order.clear()
    await within(agents(["again"], journal).resume(run_id))
    assert order.index((below, RunResumed)) < order.index((run_id, ToolStarted))


def _finished(event):
    return type(event).__name__ == "ToolFinished"


class Plain:
    """A journal without leases: whoever takes a run up has it. The first who looks for a run below does so late."""

    def __init__(self):
        self.kept = MemoryJournal()
        self.asked, self.may_look = asyncio.Event(), asyncio.Event()
        self.delete, self.watch, self.list, self.close, self.fork = (
            getattr(self.kept, name) for name in ("delete", "watch", "list", "close", "fork")
        )

    async def append(self, run_id, seq, events):
        await self.kept.append(run_id, seq, events)

    async def read(self, run_id, start=0):
        if "." in run_id and not self.asked.is_set():
            self.asked.set()
            await self.may_look.wait()
        return await self.kept.read(run_id, start)


async def test_who_lost_a_run_takes_nothing_of_its_new_owner():
    journal, at_work, may_reply = Plain(), asyncio.Event(), asyncio.Event()

    async def inner(request):
        at_work.set()
        await may_reply.wait()
        return "low"

    async with asyncio.TaskGroup() as group:
        first = group.create_task(_outcome(agents(["stolen"], journal).run("go")))
        await within(journal.asked.wait())
        (run,) = await journal.list()
        second = group.create_task(_outcome(agents(inner, journal).resume(run.run_id)))
        await within(at_work.wait())
        journal.may_look.set()
        assert isinstance(await within(first), JournalConflict)
        may_reply.set()
        result = await within(second)
    assert result.stop.reason == "answered"
    assert not any(isinstance(one, RunResumed) for one in await journal.read(f"{run.run_id}.0.call_0_0"))


async def _outcome(run):
    try:
        return await run
    except JournalConflict as error:
        return error


def test_an_early_call_that_was_lost_counts():
    events = [
        RunStarted("r", (), 1, at=1.0),
        StepPrepared(0, Decision("go"), at=1.0),
        ToolStarted(0, "a", "look", "{}", at=1.0),
    ]
    assert fold_all(events).tool_calls == 0
    assert fold_all([*events, RunResumed(at=2.0)]).tool_calls == 1


@pytest.mark.parametrize("named", ["call_id", "key"])
async def test_an_approval_that_comes_twice_makes_no_write_twice(named):
    paid, left, journal = [], [], MemoryJournal()

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        if not left:
            left.append(await copied(journal))
        return "paid"

    def agent(where):
        return Agent(
            ScriptedModel(lambda r: [("pay", {"amount": 7})] if r.step == 0 else "done"), tools=[pay], journal=where
        )

    waiting = await within(agent(journal).run("go"))
    approval = [getattr(waiting.pending[0], named)]
    await within(agent(journal).resume(waiting.run_id, approve=approval))
    assert paid == [7]
    with pytest.raises(Misuse):
        await within(agent(left[0]).resume(waiting.run_id, approve=approval))
    asked = await within(agent(left[0]).resume(waiting.run_id))
    assert [one.kind for one in asked.pending] == ["interrupted"]
    assert asked.pending[0].key != waiting.pending[0].key
    assert paid == [7]
    done = await within(agent(left[0]).resume(waiting.run_id, approve=asked.pending))
    assert done.stop.reason == "answered"
    assert paid == [7, 7]


class Beaten(MemoryJournal):
    """A journal whose leases run out, and are not found by a beat once an append has come."""

    lease = 15.0

    def __init__(self):
        super().__init__()
        self.under = None

    async def append(self, run_id, seq, events, held=None):
        if events and isinstance(events[-1], RunFinished):
            self.under.lose()


@dataclass
class Written:
    """A run, as far as a recorder knows it."""

    journal: Journal
    events: list
    lease: Lease | None = None
    run_id: str = "r"


async def test_no_beat_takes_the_end_of_a_run_for_its_loss():
    journal = Beaten()
    lease = journal.under = Lease(journal, "r")
    begun, end = RunStarted("r", (), 1, at=1.0), RunFinished(Stop("answered"), at=2.0)
    run = Written(journal, [begun], lease)
    recorder = Recorder(run, 0)
    await recorder.write()
    await recorder.confirm()
    run.events.append(end)
    await recorder.write()
    assert lease.lost is None


class Handed(MemoryJournal):
    """A journal that is handed events, and tells that they are stored when it is told to."""

    def __init__(self):
        super().__init__()
        self.handed = []

    async def append(self, run_id, seq, events, held=None):
        raise AssertionError("it is handed events, and not asked to append")

    def put(self, run_id, seq, events, held=None):
        self.handed.append((seq, Future()))
        return self.handed[-1][1]


EVENTS = [
    RunStarted("r", (), 1, at=1.0),
    StepPrepared(0, Decision("go"), at=1.0),
    RunFinished(Stop("answered"), at=2.0),
]


async def test_what_is_fed_meanwhile_is_handed_over_once():
    journal = Handed()
    run = Written(journal, EVENTS[:1])
    recorder = Recorder(run, 0)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(recorder.write())
        await asyncio.sleep(0)
        run.events.append(EVENTS[1])
        second = group.create_task(recorder.write())
        await asyncio.sleep(0)
        journal.handed[0][1].set_result(None)
        await within(first)
        journal.handed[1][1].set_result(None)
        await within(second)
    assert [seq for seq, _ in journal.handed] == [0, 1]


async def test_a_journal_may_tell_of_later_events_first():
    journal = Handed()
    run = Written(journal, EVENTS[:1])
    recorder = Recorder(run, 0)
    recorder.hand_over(journal)
    run.events.append(EVENTS[1])
    async with asyncio.TaskGroup() as group:
        written = group.create_task(recorder.write())
        await asyncio.sleep(0)
        journal.handed[1][1].set_result(None)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not written.done()
        journal.handed[0][1].set_result(None)
        await within(written)
    assert recorder.saved == 2


class Silent:
    """The place of a budget that does not answer for a while."""

    def __init__(self, store):
        self._store, self.is_silent, self.was_asked = store, False, asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def change(self, *given):
        if self.is_silent:
            self.was_asked.set()
            raise BudgetLost("nobody answers", where="here")
        return self._store.change(*given)


@pytest.mark.parametrize("waits", ["no", "once", "again"])
async def test_who_lost_a_run_while_its_budget_did_not_answer_changes_nothing_there(tmp_path, monkeypatch, waits):
    """It was about to set its next call aside, or to tell what it had used before a person is waited for.

    Where it waits again it had been taken up, and had set nothing aside since.
    """
    monkeypatch.setattr(telling, "LAST_WORD", 60.0)
    at_work, may_reply = asyncio.Event(), asyncio.Event()

    async def other(request):
        if request.step < 2 - (waits != "no"):
            return [("look", {})]
        at_work.set()
        await may_reply.wait()
        return "done"

    async def own(request):
        silent.is_silent = waits == "once"
        return "late" if request.step else [("look", {})] * (1 + (waits == "again"))

    @tool(effect="read", needs_approval=waits != "no")
    async def look() -> str:
        """Looks."""
        silent.is_silent = True
        return "seen"

    def agent(turns, journal):
        budget = Budget(tokens=10_000, path=tmp_path / "spent.db")
        model = ScriptedModel(turns, usage=Usage(10, 5))
        return Agent(model, tools=[look], settings=ModelSettings(max_tokens=20), journal=journal, budget=budget), budget

    async with SqliteJournal(tmp_path / "runs.db") as one, SqliteJournal(tmp_path / "runs.db") as another:
        (mine, my_budget), (theirs, budget) = agent(own, one), agent(other, another)
        my_budget.ledger.store = silent = Silent(my_budget.ledger.store)
        async with asyncio.TaskGroup() as group:
            if waits == "again":
                begun = await mine.run("go")
                first = group.create_task(_outcome(mine.resume(begun.run_id, approve=["call_0_0"])))
            else:
                first = group.create_task(_outcome(mine.run("go")))
            await within(silent.was_asked.wait())
            (run,) = await another.list()
            allowed = {"no": (), "once": ["call_0_0"], "again": ["call_0_1"]}[waits]
            second = group.create_task(theirs.resume(run.run_id, approve=allowed, takeover=True))
            await within(at_work.wait())
            held, silent.is_silent = budget.spent().held_tokens, False
            assert (waits != "no") == isinstance(await within(first), RunResult)
            assert budget.spent().held_tokens == held > 0
            may_reply.set()
            result = await within(second)
        spent = budget.spent()
        assert (spent.tokens, spent.held_tokens) == (result.usage.total_tokens, 0)
        budget.close()
        my_budget.close()
