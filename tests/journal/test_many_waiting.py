"""However many runs wait: a decision on one reads that one, and none of them holds anything meanwhile."""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from treadle import Agent, tool
from treadle.journal import MemoryJournal, PostgresJournal, SqliteJournal
from treadle.kernel.events import Event, RunStarted
from treadle.testing import ScriptedModel

from .conftest import Opens

pytestmark = pytest.mark.anyio


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def payer(journal: Any) -> Agent[Any, Any]:
    def turn(request: Any) -> Any:
        return "done" if request.messages[-1].role == "tool" else [("pay", {"amount": 40})]

    return Agent(ScriptedModel(turn), tools=[pay], journal=journal)


async def fill(journal: PostgresJournal | SqliteJournal, runs: range) -> str:
    """Runs that wait, made of a real one; the call that each waits for."""
    memory = MemoryJournal()
    result = await payer(memory).run("pay the bill")
    events = await memory.read(result.run_id)

    def named(name: str) -> Sequence[Event]:
        return [replace(event, run_id=name) if isinstance(event, RunStarted) else event for event in events]

    await asyncio.gather(*[journal.append(f"run-{n}", 0, named(f"run-{n}")) for n in runs])
    return result.pending[0].key


async def asked(opens: Opens, place: str, run_id: str, call: str) -> Counter[str]:
    """How often the journal is asked for what, and how many events it gives, when `run_id` is decided."""
    told: Counter[str] = Counter()
    async with opens(place) as journal:
        perform = type(journal._workers).read, type(journal._workers).write
        read = journal.read

        async def counted(run: str, start: int = 0) -> list[Event]:
            events = await read(run, start)
            told["events"] += len(events)
            assert run.startswith(run_id)
            return events

        journal.read = counted  # type: ignore[method-assign]
        for name, action in zip(("read", "write"), perform, strict=True):

            def count(given: Any, name: str = name, action: Any = action) -> Any:
                told[name] += 1
                return action(journal._workers, given)

            setattr(journal._workers, name, count)
        result = await payer(journal).resume(run_id, approve=[call])
        assert result.finished
    return told


async def test_a_decision_on_one_costs_the_same_however_many_wait(opens: Opens, place: str) -> None:
    async with opens(place) as journal:
        call = await fill(journal, range(3))
    few = await asked(opens, place, "run-1", call)
    async with opens(place) as journal:
        await fill(journal, range(3, 1500))
    many = await asked(opens, place, "run-700", call)
    assert many["events"] == few["events"]
    # How much is read and written together is a matter of time; of 1,500 runs it is no more than of three.
    assert max(many["read"], few["read"]) < 10
    assert many["write"] < 20


async def test_runs_that_wait_hold_no_thread_task_or_connection(opens: Opens, place: str, server: Any) -> None:
    before = asyncio.all_tasks()
    async with opens(place) as journal:
        agent = payer(journal)
        results = await asyncio.gather(*[agent.run("pay the bill") for _ in range(30)])
        assert {result.stop.reason for result in results} == {"waiting"}
        assert asyncio.all_tasks() == before
        threads = [one.name for one in threading.enumerate() if one.name.startswith("treadle-journal")]
        assert len(threads) == 2
        ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'treadle'"
        assert server.execute(ours)[0][0] <= 2
