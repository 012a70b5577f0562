"""What one of somebody's own raises is told as an error of a journal by all that asks it, and what is none as such."""

import io
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from treadle import Agent, Limits, MemoryJournal, Misuse, Spending, diff, replay, statistics, waterfall
from treadle.journal import JournalUnavailable, RunInfo, Wanted, export_runs, import_runs
from treadle.journal.info import ALL
from treadle.kernel.events import Event
from treadle.telemetry import send
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Away(MemoryJournal):
    """A journal whose database can be away."""

    away = False

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Any = None) -> None:
        self._ask()
        await super().append(run_id, seq, events, held)

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        self._ask()
        return await super().read(run_id, start)

    async def list(self, limit: int = 50, before: RunInfo | None = None, wanted: Wanted = ALL) -> Any:
        self._ask()
        return await super().list(limit, before, wanted)

    def _ask(self) -> None:
        if self.away:
            raise OSError("the database is away")


async def exported(journal: Any, runs: Any = None) -> bytes:
    return b"".join([row async for row in export_runs(journal, runs)])


ASKING: dict[str, Callable[[Any, str], Awaitable[Any]]] = {
    "diff": lambda journal, run: diff(journal, run, run),
    "waterfall": waterfall,
    "statistics": lambda journal, run: statistics(journal),
    "replay": replay,
    "export_runs": lambda journal, run: exported(journal, [run]),
    "send": lambda journal, run: send(journal, [run], exporter=None),
}


@pytest.mark.parametrize("asking", [*ASKING])
async def test_what_a_database_raises_is_told_as_the_journal_s(asking: str) -> None:
    journal = Away()
    run = await Agent(ScriptedModel(["done"]), journal=journal).run("Go.")
    journal.away = True
    with pytest.raises(JournalUnavailable, match="the journal, Away, raised OSError: the database is away") as told:
        await ASKING[asking](journal, run.run_id)
    assert isinstance(told.value.__cause__, OSError)


@pytest.mark.parametrize("asking", [*ASKING])
@pytest.mark.parametrize("given", [None, "runs.db", MemoryJournal])
async def test_what_is_no_journal_is_told_as_such(asking: str, given: Any) -> None:
    with pytest.raises(Misuse, match=rf"{asking} takes a journal such as SqliteJournal\(path\); it was given"):
        await ASKING[asking](given, "run")


async def test_an_export_of_all_and_an_import_tell_it_too() -> None:
    journal = Away()
    await Agent(ScriptedModel(["done"]), journal=journal).run("Go.")
    file = io.BytesIO(await exported(journal))
    journal.away = True
    for asking in (exported(journal), import_runs(journal, file)):
        with pytest.raises(JournalUnavailable, match="the database is away"):
            await asking
    with pytest.raises(Misuse, match="import_runs takes a journal such as"):
        await import_runs(None, file)  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="journal takes a journal such as"):
        Agent(ScriptedModel(["done"]), journal=MemoryJournal)  # type: ignore[arg-type]


async def test_what_is_asked_of_runs_below_is_told_too() -> None:
    class Below(Away):
        async def read(self, run_id: str, start: int = 0) -> list[Event]:
            if self.away and "." in run_id:
                raise OSError("the database is away")
            return await MemoryJournal.read(self, run_id, start)

    journal = Below()
    clerk = Agent(ScriptedModel(["done"]), name="clerk").as_tool()
    agent = Agent(ScriptedModel([[("clerk", {"task": "Go."})], "done"]), tools=[clerk], journal=journal)
    run = await agent.run("Go.")
    journal.away = True
    for asking in (waterfall(journal, run.run_id), replay(journal, run.run_id), agent.replay(run.run_id)):
        with pytest.raises(JournalUnavailable, match="the database is away"):
            await asking
    # What the run above recorded of it is told then, as of a run that is damaged.
    assert isinstance(await agent.spending(run.run_id), Spending)


async def test_seconds_are_read_as_they_were_given() -> None:
    journal, elsewhere = MemoryJournal(), MemoryJournal()
    agent = Agent(ScriptedModel(["done", "done"]), journal=journal, limits=Limits(seconds=300))
    run = await agent.run("Go.")
    await import_runs(elsewhere, io.BytesIO(await exported(journal)))
    assert repr(await elsewhere.read(run.run_id)) == repr(await journal.read(run.run_id))
