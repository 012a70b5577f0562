"""Which run is nearest to one that is not there was looked for among a thousand, each time that nobody wanted to know.

A run below began some 30 ms later for it, and where hundreds of runs had been left in the middle under a budget the
first run that this refused was told so after ten seconds
  -> test_whether_a_run_is_there_is_asked_without_looking_for_the_nearest
  -> test_the_nearest_is_told_where_the_error_is_told
"""

import copy
import pickle

import pytest
from hanging import Hangs

from treadle import Agent, Budget, MemoryJournal, ModelSettings, Price, SqliteJournal, Usage
from treadle.drivers import turn
from treadle.journal import UnknownRun, errors
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_whether_a_run_is_there_is_asked_without_looking_for_the_nearest(tmp_path, kind, monkeypatch):
    looked = []
    monkeypatch.setattr(errors, "get_close_matches", lambda *given, **more: looked.append(given) or [])
    monkeypatch.setattr(turn, "LAST_WORD", 0.0)
    journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "runs.db")
    budget = Budget(usd=1, path=tmp_path / "spent.db")
    paid, calls = {"usage": Usage(1, 1), "price": Price(1, 1)}, [("low", {"task": "go"})]
    low = Agent(ScriptedModel(lambda request: "x", **paid), name="low")
    script = ScriptedModel(lambda request: "ok" if request.step else calls, **paid)
    settings = ModelSettings(max_tokens=1000)
    top = Agent(script, tools=[low.as_tool()], journal=journal, budget=budget, settings=settings)
    assert (await top.run("go")).text == "ok"
    # What another has set aside is more than is left, so that it is looked for those that have ended.
    held = Budget(usd=1, path=tmp_path / "spent.db")
    busy = Hangs()
    busy.price = Price(0, 999)
    other = Agent(busy, journal=journal, budget=held, settings=settings)
    async with other.stream("go"):
        await busy.asked.wait()
        assert (await top.run("go")).stop.reason == "max_cost"
    assert looked == []
    budget.close()
    held.close()


async def test_the_nearest_is_told_where_the_error_is_told():
    journal = MemoryJournal()
    agent = Agent(ScriptedModel(["x"]), journal=journal)
    run_id = (await agent.run("go")).run_id
    for copied in (lambda error: error, copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))):
        with pytest.raises(UnknownRun) as caught:
            await journal.read(run_id[:-1])
        told = copied(caught.value)
        assert (told.run_id, told.nearest) == (run_id[:-1], run_id)
        assert f"did you mean {run_id!r}? `treadle runs`" in str(told)
    assert len(pickle.dumps(UnknownRun("x", [f"y{number}" for number in range(1000)]))) < 1000
