"""An import that is cut off leaves no run without those that work for it, whose work it would have done anew."""

import io

import pytest

from treadle import Agent, Limits, MemoryJournal, SqliteJournal, ask_before, tool
from treadle.journal import JournalUnavailable, NotImported, export_runs, import_runs
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

CLERKS = 60
"""More than are written at once."""


class Killed(MemoryJournal):
    """A journal whose process is killed after so many appends."""

    left = 0

    async def append(self, run_id, seq, events, *held):
        self._live()
        self.left -= 1
        await super().append(run_id, seq, events, *held)

    async def delete(self, run_id):
        self._live()
        return await super().delete(run_id)

    def _live(self):
        if self.left <= 0:
            raise JournalUnavailable("the process is dead", where="here")


@pytest.mark.parametrize("left", [1, 2, CLERKS - 1, CLERKS, CLERKS + 1])
async def test_a_run_is_there_only_with_those_that_work_for_it(left) -> None:
    paid = []

    @tool
    async def pay(n: int) -> str:
        """Pays."""
        paid.append(n)
        return "paid"

    @tool
    async def sign() -> str:
        """Signs."""
        return "signed"

    def clerk(request):
        return "paid" if request.step else [("pay", {"n": 1})]

    def head(request):
        calls = [("clerk", {"task": str(n)}) for n in range(CLERKS)]
        return "signed" if request.step else [*calls, ("sign", {})]

    def office(journal):
        below = Agent(ScriptedModel(clerk), name="clerk", tools=[pay])
        tools = [below.as_tool(), sign]
        rules, limits = [ask_before("sign")], Limits(steps=3 * CLERKS, tool_calls=3 * CLERKS)
        return Agent(ScriptedModel(head), tools=tools, approvals=rules, limits=limits, journal=journal)

    journal, other = MemoryJournal(), Killed()
    waiting = await office(journal).run("Pay them.")
    assert waiting.stop.reason == "waiting"
    assert len(paid) == CLERKS
    rows = b"".join([row async for row in export_runs(journal, [waiting.run_id])])

    other.left = left
    if left <= CLERKS:
        with pytest.raises(JournalUnavailable, match="dead"):
            await import_runs(other, io.BytesIO(rows))
    else:
        await import_runs(other, io.BytesIO(rows))

    there = {line.run_id for line in await other.list(999)}
    assert waiting.run_id not in there or len(there) == CLERKS + 1
    other.left = 10**6
    if left <= CLERKS:
        assert await import_runs(other, io.BytesIO(rows))
    result = await office(other).resume(waiting.run_id, approve=waiting.pending)
    assert result.text == "signed"
    assert len(paid) == CLERKS


@pytest.mark.parametrize("kept", [0, 1])
async def test_an_import_goes_on_in_a_journal_that_redacts(kept, tmp_path) -> None:
    """What was put in before was taken for another run: the rest could not be put in any more."""

    def hide(text: str) -> str:
        return text.replace("card4711", "[card]")

    source = MemoryJournal()
    for n in range(2):
        await Agent(ScriptedModel([f"It was card4711-{n}."]), journal=source).run(f"Charge card4711-{n}.")
    ids = [line.run_id for line in await source.list()]
    rows = b"".join([row async for row in export_runs(source, ids)])

    async with SqliteJournal(tmp_path / "j.db", redact=hide) as other:
        assert await import_runs(other, io.BytesIO(rows)) == ids
        before = [await other.read(run_id) for run_id in ids]
        await other.delete(ids[kept])
        assert await import_runs(other, io.BytesIO(rows)) == [ids[kept]]
        assert await import_runs(other, io.BytesIO(rows)) == []
        assert [await other.read(run_id) for run_id in ids] == before
        assert "card4711" not in str(before)

        await Agent(ScriptedModel(["Yes."]), journal=other).resume(ids[kept], message="Sure?")
        with pytest.raises(NotImported, match="another run"):
            await import_runs(other, io.BytesIO(rows))
