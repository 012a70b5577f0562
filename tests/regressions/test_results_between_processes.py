"""What came of a run, and what it raises, on its way from one process to another and into a copy."""

import asyncio
import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from treadle import Agent, Budget, MemoryJournal, Misuse, RunResult, RunStopped, external_tool, tool
from treadle.drivers.conversing import GoneOn
from treadle.journal import JournalConflict, PostgresJournal, RunHeld, SqliteJournal, TakenOver, UnknownRun
from treadle.journal.holder import Holder
from treadle.models import AuthenticationFailed, File, Image, Text
from treadle.testing import ScriptedModel
from treadle.timetravel.replayed import Replay, ReplayDiffers
from treadle.tools import Tool

HOLDER = Holder("clerk", "host", 7)


@tool(effect="read")
def double(n: int) -> int:
    """Doubles a number."""
    return 2 * n


def halved(n: int) -> int:
    """Halves a number."""
    return n // 2


half = tool(halved, effect="read")


def run_here(question: str) -> RunResult:
    below = Agent(ScriptedModel([[("double", {"n": 4})], "eight"]), name="below", tools=[double])
    model = ScriptedModel([[("below", {"task": question})], "It is eight."])
    return Agent(model, tools=[below.as_tool()]).run_sync(question)


def fail_here(question: str) -> RunResult:
    if question == "held":
        raise RunHeld("run-1", HOLDER)
    return Agent(ScriptedModel([AuthenticationFailed("revoked", status=401)])).run_sync(question).require()


def test_the_result_of_a_run_without_a_journal_comes_back_from_another_process():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(run_here, "What is twice 4?").result()

    assert found.text == "It is eight."
    assert found.sub_steps == 2


def test_a_result_can_be_copied():
    found = run_here("What is twice 4?")

    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert other.to_dict() == found.to_dict()
        assert other.events == found.events


def test_a_copy_of_a_result_with_pictures_is_told_alike():
    @tool(effect="read")
    def look() -> list[Image | File]:
        """Looks."""
        return [Image(b"a"), File(b"b"), File(b"c", media_type="text/csv", name="c.csv")]

    asked = [Text("What is it?"), Image(b"a")]
    found = Agent(ScriptedModel([[("look", {})], "Done."]), tools=[look]).run_sync(asked)

    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()
    assert "media_type" not in found.to_dict()["messages"][0]["content"][1]


def test_a_run_that_stopped_in_another_process_breaks_no_pool():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        stopped = pool.submit(fail_here, "What is twice 4?")
        held = pool.submit(fail_here, "held")
        after = pool.submit(run_here, "What is twice 4?")

        with pytest.raises(RunStopped, match="revoked") as raised:
            stopped.result()
        with pytest.raises(RunHeld) as held_by:
            held.result()
        assert after.result().text == "It is eight."

    assert raised.value.result.error.status == 401
    assert held_by.value.holder == HOLDER


@pytest.mark.parametrize(
    "error",
    [
        JournalConflict("run-1", 2, 3, where="memory"),
        TakenOver("run-1", where="memory"),
        RunHeld("run-1", None, where="memory"),
        UnknownRun("run-1", ["run-2"], where="memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_journal_is_the_same_in_another_process(error):
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert (str(other), vars(other)) == (str(error), vars(error))


@pytest.mark.parametrize(
    ("one", "instead"),
    [
        (MemoryJournal(), "processes share a SqliteJournal"),
        (SqliteJournal("runs.db"), "SqliteJournal(path)"),
        (PostgresJournal("postgresql://127.0.0.1/none"), "PostgresJournal(address)"),
        (Budget(usd=1), "made in each"),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("carry", [pickle.dumps, copy.deepcopy, copy.copy])
def test_what_stays_in_its_process_says_what_to_do_instead(one, instead, carry):
    """It was said that Python cannot pickle a lock, of which nobody knew."""
    with pytest.raises(TypeError, match="can be neither pickled nor copied: ") as raised:
        carry(one)
    assert instead in str(raised.value)


def test_a_copy_of_a_result_is_not_gone_on_with_beside_the_run():
    paid = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "Paid."]), tools=[pay])
    waiting = agent.run_sync("Pay 5.")
    (call,) = waiting.pending

    for other in (pickle.loads(pickle.dumps(waiting)), copy.deepcopy(waiting)):
        with pytest.raises(Misuse, match="do everything twice"):
            asyncio.run(agent.resume(other, approve=[call.call_id]))
    assert asyncio.run(agent.resume(waiting, approve=[call.call_id])).text == "Paid."
    assert paid == [5]


def test_a_replay_that_differs_is_the_same_in_another_process():
    error = ReplayDiffers(Replay("run-1", None, 3, 1))

    other = pickle.loads(pickle.dumps(error))
    assert (str(other), other.replay) == (str(error), error.replay)


def test_what_says_that_a_conversation_has_gone_on_is_the_same_in_another_process():
    journal = MemoryJournal()
    for question in ("Hello?", "Hello again?"):
        Agent(ScriptedModel(["Good morning."]), journal=journal).run_sync(question)
    newer, line = asyncio.run(journal.list())
    error = GoneOn(line, newer)

    other = pickle.loads(pickle.dumps(error))
    assert (type(other), str(other), other.newer) == (GoneOn, str(error), newer.run_id)


def test_a_tool_goes_to_another_process_by_its_name_as_a_function_does():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(double, [1, 4])) == [2, 8]
    assert [pickle.loads(pickle.dumps(one)) for one in (double, half)] == [double, half]
    assert copy.deepcopy({"tools": [double, half]}) == {"tools": [double, half]}


def test_a_tool_that_no_module_has_says_why_it_cannot_be_pickled():
    def inner(n: int) -> int:
        """Gives a number back."""
        return n

    local = tool(inner, effect="read")
    other = tool(halved, name="other", effect="read")
    below = Agent(ScriptedModel([]), name="below").as_tool()
    for one in (
        local,
        other,
        below,
        double.named("twice"),
        external_tool("far", "Is done far away.", {"type": "object"}),
    ):
        with pytest.raises(Misuse, match=f"the tool {one.name!r} cannot be pickled.*at the top of the module"):
            pickle.dumps(one)
        assert copy.deepcopy(one) is one


def test_in_a_copy_of_an_object_with_its_tools_they_work_on_the_copy():
    class Shop:
        def __init__(self):
            self.sold = []
            self.tools = [
                tool(self.sell, needs_approval=self.is_dear, reconcile=self.find),
                Tool.from_schema("count", "Counts.", {"type": "object"}, self.count),
            ]

        def sell(self, what: str) -> str:
            """Sells something."""
            self.sold.append(what)
            return what

        def is_dear(self, what: str) -> bool:
            return False

        def find(self, context):
            return None

        def count(self):
            return len(self.sold)

    shop = Shop()
    other = copy.deepcopy(shop)
    model = ScriptedModel([[("sell", {"what": "tea"})], [("count", {})], "One."])
    result = Agent(model, tools=other.tools).run_sync("Sell tea.")
    assert (shop.sold, other.sold, result.messages[-2].text) == ([], ["tea"], "1")
    sell = other.tools[0]
    assert {sell.function.__self__, sell.needs_approval.__self__, sell.reconcile.__self__} == {other}
