"""agent.fork: a run goes on from any step as a run of its own, and stays as it is itself."""

import asyncio
from dataclasses import dataclass
from decimal import Decimal

import pytest

from treadle import (
    Agent,
    Budget,
    Decision,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    SqliteJournal,
    Usage,
    ask_before,
    deny,
    handoff,
    step_count,
    tool,
)
from treadle.journal import Fork, UnknownRun
from treadle.kernel.accounts import Spent
from treadle.kernel.events import (
    ModelReplied,
    RunForked,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.messages import AssistantMessage, ToolCall, UserMessage
from treadle.models.profile import ModelProfile
from treadle.testing import ScriptedModel
from treadle.timetravel.cut import cut_at
from treadle.tools import ToolOutput

PRICE = Price(3, 15)
USAGE = Usage(1000, 100)
ONE = Decimal("0.0045")
"""Dollars of one reply."""


class Shop:
    """An agent's tools, and what they did."""

    def __init__(self):
        self.done = []

        @tool(effect="read")
        def look(what: str) -> str:
            """Looks."""
            self.done.append(f"look {what}")
            return f"saw {what}"

        @tool
        def buy(what: str) -> str:
            """Buys."""
            self.done.append(f"buy {what}")
            return f"bought {what}"

        self.tools = [look, buy]

    def agent(self, *turns, journal=None, **more):
        model = ScriptedModel(list(turns), name="small", price=PRICE, usage=USAGE)
        return Agent(model, tools=self.tools, journal=journal, **more)


LOOK_AND_BUY = [("look", {"what": "tea"}), ("buy", {"what": "tea"})]
THREE = (LOOK_AND_BUY, [("look", {"what": "cups"})], "All done.")


@pytest.fixture(params=["memory", "sqlite"])
def journal(request, tmp_path):
    return MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "runs.db")


def carry(main):
    return asyncio.run(main())


def test_what_was_done_is_done_and_the_source_stays_as_it_is(journal):
    async def main():
        shop = Shop()
        first = await shop.agent(*THREE, journal=journal).run("Buy tea.")
        before = await journal.read(first.run_id)
        fork = await shop.agent("No cups, then.", journal=journal).fork(first.run_id, at=1, message="No cups.")
        # The first two are called together, each in a thread of its own.
        assert sorted(shop.done[:2]) == ["buy tea", "look tea"]
        assert shop.done[2:] == ["look cups"]
        assert fork.text == "No cups, then."
        assert [m.text for m in fork.messages if m.role == "user"] == ["Buy tea.", "No cups."]
        assert [step.number for step in fork.steps] == [0, 1]
        assert await journal.read(first.run_id) == before
        line = next(line for line in await journal.list() if line.run_id == fork.run_id)
        assert line.fork == Fork(first.run_id, len(before) - len(before[-7:]))
        await journal.close()

    carry(main)


def test_money_is_told_once_and_counts_against_the_limits(journal):
    async def main():
        shop = Shop()
        budget = Budget(usd=1)
        agent = shop.agent(*THREE, journal=journal, budget=budget)
        first = await agent.run("Buy tea.")
        other = shop.agent("Done.", journal=journal, budget=budget)
        fork = await other.fork(first.run_id, at=2)
        assert (first.cost, fork.cost) == (3 * ONE, 3 * ONE)
        spending = await other.spending(fork.run_id)
        assert (spending.total.cost, spending.shared_total.cost) == (ONE, 2 * ONE)
        assert {charge.run_id for charge in spending.shared} == {first.run_id}
        assert spending.to_dict()["shared"]["cost"] == f"{2 * ONE:f}"
        assert budget.spent().usd == 4 * ONE
        poor = Limits(usd=2 * ONE)
        stopped = await shop.agent("Never.", journal=journal, budget=budget).fork(first.run_id, at=2, limits=poor)
        assert stopped.stop.reason == "max_cost"
        short = await shop.agent("Never.", journal=journal, budget=budget, on_limit="stop").fork(
            first.run_id, at=2, limits=Limits(steps=2)
        )
        assert (short.stop.reason, len(short.steps)) == ("max_steps", 2)
        await journal.close()

    carry(main)


def test_a_fork_of_a_fork_tells_its_own_part_only():
    async def main():
        shop, journal = Shop(), MemoryJournal()
        first = await shop.agent(*THREE, journal=journal).run("Buy tea.")
        fork = await shop.agent([("look", {"what": "x"})], "Done.", journal=journal).fork(first.run_id, at=1)
        agent = shop.agent("Otherwise.", journal=journal)
        again = await agent.fork(fork.run_id, at=2)
        spending = await agent.spending(again.run_id)
        assert (spending.total.cost, spending.shared_total.cost, again.cost) == (ONE, 2 * ONE, 3 * ONE)
        assert [charge.run_id for charge in spending.shared] == [first.run_id, fork.run_id]

    carry(main)


def test_another_result_is_shown_and_the_others_of_the_reply_are_kept(journal):
    async def main():
        shop = Shop()
        first = await shop.agent(*THREE, journal=journal).run("Buy tea.")
        other = shop.agent("Sold out, I see.", journal=journal)
        fork = await other.fork(first.run_id, at=1, tool_results={"call_0_0": {"left": 0}})
        assert sorted(shop.done[:2]) == ["buy tea", "look tea"]
        assert shop.done[2:] == ["look cups"]
        assert [m.text for m in fork.messages if m.role == "tool"] == ['{"left":0}', "bought tea"]
        assert [record.executed for record in fork.steps[0].calls] == [True, True]
        assert other.model.requests[0].messages[-2].text == '{"left":0}'
        assert (await other.spending(fork.run_id)).total.cost == ONE
        await journal.close()

    carry(main)


def test_another_model_goes_on():
    async def main():
        shop, journal = Shop(), MemoryJournal()
        agent = shop.agent(*THREE, journal=journal)
        first = await agent.run("Buy tea.")
        large = ScriptedModel(["As large as I am."], name="large")
        fork = await agent.fork(first.run_id, at=1, model=large)
        assert (fork.text, [step.model for step in fork.steps]) == ("As large as I am.", ["small", "large"])
        assert next(line for line in await journal.list() if line.fork).model == "large"

    carry(main)


def test_an_agent_with_weaker_rules_is_refused_and_nothing_is_recorded():
    async def main():
        shop, journal = Shop(), MemoryJournal()
        strict = shop.agent(*THREE, journal=journal, approvals=[deny("look", repeats=2), ask_before("buy", repeats=1)])
        first = await strict.run("Buy tea.")
        with pytest.raises(Misuse, match="stricter rules"):
            await shop.agent("x", journal=journal).fork(first.run_id, at=1)
        assert len(await journal.list()) == 1

    carry(main)


def test_what_cannot_be_forked_is_told():
    async def main():
        shop, journal = Shop(), MemoryJournal()
        agent = shop.agent(*THREE, journal=journal)
        first = await agent.run("Buy tea.")
        with pytest.raises(Misuse, match="can be forked at steps 0 to 3"):
            await agent.fork(first.run_id, at=4)
        with pytest.raises(Misuse, match="the number of a step"):
            await agent.fork(first.run_id, at=-1)
        with pytest.raises(Misuse, match="nothing is left to do"):
            await agent.fork(first.run_id, at=3)
        with pytest.raises(Misuse, match="fork at step 1"):
            await agent.fork(first.run_id, at=2, tool_results={"call_0_0": "x"})
        with pytest.raises(Misuse, match="it made no such call"):
            await agent.fork(first.run_id, at=1, tool_results={"nobody": "x"})
        with pytest.raises(Misuse, match="step 0 has no calls before it"):
            await agent.fork(first.run_id, at=0, tool_results={"call_0_0": "x"})
        with pytest.raises(Misuse, match="a value that JSON can hold"):
            await agent.fork(first.run_id, at=1, tool_results={"call_0_0": object()})
        with pytest.raises(UnknownRun):
            await agent.fork("nobody", at=1)
        assert len(await journal.list()) == 1
        assert (await agent.fork(first.run_id, at=3, message="Thanks.", model=ScriptedModel(["Welcome."]))).text == (
            "Welcome."
        )

    carry(main)


def test_a_run_that_works_for_another_is_not_forked():
    async def main():
        journal = MemoryJournal()
        low = Agent(ScriptedModel(["low"]), name="low")
        agent = Agent(ScriptedModel([[("low", {"task": "x"})], "done"]), tools=[low.as_tool()], journal=journal)
        await agent.run("go")
        below = next(line for line in await journal.list() if line.parent)
        with pytest.raises(Misuse, match="fork that one"):
            await agent.fork(below.run_id, at=0)

    carry(main)


def test_a_run_that_is_kept_with_its_result_is_forked_too():
    async def main():
        shop = Shop()
        first = await shop.agent(*THREE).run("Buy tea.")
        fork = await shop.agent("Done.").fork(first, at=1)
        again = await shop.agent("Well.").fork(fork, at=2, message="And?")
        assert (fork.text, again.text) == ("Done.", "Well.")
        assert sum(isinstance(event, RunForked) for event in again.events) == 2

    carry(main)


def test_a_fork_that_is_begun_is_carried_out_by_whoever_resumes_it(tmp_path):
    async def main():
        shop, journal = Shop(), SqliteJournal(tmp_path / "runs.db")
        first = await shop.agent(*THREE, journal=journal).run("Buy tea.")
        begun = await shop.agent(journal=journal).begin_fork(
            first.run_id, at=1, message="Go on.", limits=Limits(steps=9)
        )
        assert await journal.delete(first.run_id)
        result = await shop.agent("Done.", journal=journal).resume(begun)
        assert (result.text, result.limits.steps) == ("Done.", 9)
        await journal.close()

    carry(main)


def test_a_fork_counts_for_the_user_of_the_run():
    async def main():
        shop, journal = Shop(), MemoryJournal()
        budget = Budget(usd=1, per="user")
        first = await shop.agent(*THREE, journal=journal, budget=budget).run("Buy tea.", user="ann")
        agent = shop.agent("Done.", journal=journal, budget=budget)
        begun = await agent.begin_fork(first.run_id, at=1)
        await agent.resume(begun)
        assert budget.spent("ann").usd == 4 * ONE
        assert 3 * budget.spent("ann").tokens == 4 * first.usage.total_tokens

    carry(main)


def test_a_fork_counts_for_the_user_that_it_was_begun_for_whoever_goes_on_with_it():
    async def main():
        shop, journal = Shop(), MemoryJournal()
        budget = Budget(usd=1, per="user")
        first = await shop.agent(*THREE, journal=journal).run("Buy tea.")
        agent = shop.agent("Done.", journal=journal, budget=budget)
        begun = await agent.begin_fork(first.run_id, at=1, user="ann")
        # That stands in the budget alone.
        assert (await agent.resume(begun)).finished
        assert (budget.purses(), budget.spent("ann").usd) == (["ann"], ONE)

    carry(main)


def test_a_fork_with_another_result_goes_on_under_the_limits_that_its_step_was_made_under():
    async def main():
        shop, journal = Shop(), MemoryJournal()
        both = [("look", {"what": "tea"}), ("buy", {"what": "tea"})]
        agent = shop.agent(both, "Done.", journal=journal, approvals=[ask_before("buy")], limits=Limits(steps=2))
        waiting = await agent.run("Buy tea.")
        done = await agent.resume(waiting.run_id, approve=waiting.pending, limits=Limits(steps=7))
        other = shop.agent("Done.", journal=journal, approvals=[ask_before("buy")], limits=Limits(steps=2))
        # The limits were changed after the call had come back that is given another result.
        fork = await other.fork(done.run_id, at=1, tool_results={done.steps[0].calls[0].id: "no tea"})
        assert (fork.limits.steps, fork.text) == (7, "Done.")
        given = await other.fork(
            done.run_id, at=1, tool_results={done.steps[0].calls[0].id: "x"}, limits=Limits(steps=4)
        )
        assert given.limits.steps == 4

    carry(main)


def test_a_fork_with_another_result_tells_nothing_once_more_of_what_a_crash_took():
    async def main():
        shop, journal, left = Shop(), MemoryJournal(), MemoryJournal()
        first = await shop.agent(*THREE, journal=journal).run("Buy tea.")
        events, call = list(await journal.read(first.run_id)), first.steps[0].calls[0].id
        back = next(i for i, one in enumerate(events) if isinstance(one, ToolFinished) and one.call_id == call) + 1
        lost = RunResumed(lost=Spent(usage=Usage(5000, 500, estimated=True), cost=Decimal(1)), at=events[back - 1].at)
        await left.append(first.run_id, 0, [*events[:back], lost, *events[back:]])
        budget = Budget(usd=9)
        agent = shop.agent("Done.", "Done.", journal=left)
        fork = await agent.fork(first.run_id, at=1, tool_results={call: "no tea"}, budget=budget)
        # The run that it is a fork of has paid that, and another budget has not.
        assert (fork.text, fork.cost, budget.spent().usd) == ("Done.", 2 * ONE, ONE)
        plain = await agent.fork(first.run_id, at=1)
        assert plain.cost == 2 * ONE + 1

    carry(main)


def test_a_fork_of_a_run_that_waits_goes_on_from_before():
    async def main():
        shop, journal = Shop(), MemoryJournal()
        rules = [ask_before("buy")]
        waiting = await shop.agent(*THREE, journal=journal, approvals=rules).run("Buy tea.")
        assert waiting.stop.reason == "waiting"
        fork = await shop.agent("I only looked.", journal=journal, approvals=rules).fork(waiting.run_id, at=0)
        assert fork.text == "I only looked."
        with pytest.raises(Misuse, match="can only be forked at step 0"):
            await shop.agent(journal=journal, approvals=rules).fork(waiting.run_id, at=1)

    carry(main)


def test_a_call_that_was_back_before_its_reply_was_whole_has_no_other_result():
    said = AssistantMessage((ToolCall("a", "look", "{}"),))
    events = [
        RunStarted("r", (UserMessage("q"),), 1, at=1.0),
        StepPrepared(0, Decision("go"), at=2.0),
        ToolStarted(0, "a", "look", "{}", at=3.0),
        ToolFinished(0, "a", "1", at=4.0),
        ModelReplied(0, said, at=5.0),
    ]
    with pytest.raises(Misuse, match="fork at step 0 to have the step made anew"):
        cut_at(events, 1, {"a": ToolOutput("2")})
    assert cut_at(events, 1, {}).seq == 5


def test_a_result_that_a_run_below_came_after_is_told():
    said = AssistantMessage((ToolCall("a", "look", "{}"), ToolCall("b", "low", "{}")))
    spent = Spent(1, Usage(3, 4), Decimal(1))
    events = [
        RunStarted("r", (UserMessage("q"),), 1, at=1.0),
        StepPrepared(0, Decision("go"), at=2.0),
        ModelReplied(0, said, at=3.0),
        ToolStarted(0, "b", at=4.0),
        ToolStarted(0, "a", at=4.0),
        ToolFinished(0, "a", "1", at=5.0),
        ToolFinished(0, "b", "2", spent=spent, at=6.0),
    ]
    with pytest.raises(Misuse, match="give that call's result too"):
        cut_at(events, 1, {"a": ToolOutput("2")})
    both = cut_at(events, 1, {"a": ToolOutput("2"), "b": ToolOutput("3")})
    assert both.seq == 5
    assert [event.content for event in both.again if isinstance(event, ToolFinished)] == ["2", "3"]


ENDS = {
    "consecutive_errors": ([[("fails", {})]] * 3, {"consecutive_errors": 3}),
    "no_progress": ([[("reads", {})]] * 9, {}),
    "max_tool_calls": ([[("reads", {}), ("reads", {"n": 2})]], {"tool_calls": 1}),
    "condition": ([[("reads", {})]] * 3, {}),
    "answered": ([[("transfer_to_other", {})]], {}),
}


@pytest.mark.parametrize("reason", ENDS)
def test_a_fork_at_the_end_of_a_run_counts_anew_what_went_wrong(reason):
    """As a run does that is taken up again. What had ended the run ended the fork too, before its model was shown what
    was said to it: errors in a row, repeats, a condition that held.
    """
    script, limits = ENDS[reason]

    @tool(effect="read")
    def reads(n: int = 1) -> str:
        """Reads."""
        return "read"

    @tool(effect="read")
    def fails() -> str:
        """Fails."""
        raise ValueError("it is down")

    other = Agent(ScriptedModel(["Other."]), name="other")
    journal = MemoryJournal()

    def agent(script):
        return Agent(
            ScriptedModel(script), tools=[reads, fails, handoff(other)], journal=journal, limits=Limits(**limits),
            on_limit="stop", stop_when=step_count(2) if reason == "condition" else None,
        )  # fmt: skip

    run = asyncio.run(agent(script).run("Go."))
    assert run.stop.reason == reason
    more = Limits(tool_calls=9) if reason == "max_tool_calls" else None
    # A condition on all steps holds again after the next.
    said = [*([] if reason == "condition" else [[("reads", {"n": 7})]]), "There it is."]
    fork = asyncio.run(agent(said).fork(run.run_id, at=len(run.steps), message="Go on.", limits=more))
    assert (fork.text, fork.stop.reason, len(fork.steps)) == ("There it is.", "answered", len(run.steps) + len(said))
    again = asyncio.run(agent(said).resume(run.run_id, message="Go on.", limits=more))
    assert [message.text for message in again.messages] == [message.text for message in fork.messages]


@dataclass
class Bill:
    number: int


class Profiled(ScriptedModel):
    """A model that says how it is asked for an answer of a type, and how large its window is."""

    def __init__(self, turns, **profile):
        super().__init__(turns)
        self.profile = ModelProfile(**profile)


@pytest.mark.parametrize("first", ["native", "tool", "prompted"])
@pytest.mark.parametrize("then", ["native", "tool", "prompted"])
def test_a_fork_asks_another_model_for_an_answer_in_the_way_of_that_model(first, then):
    def model(mode, number):
        said = f'{{"number": {number}}}'
        return Profiled([[("final_answer", said)] if mode == "tool" else said], output=mode, output_beside_tools=mode)

    agent = Agent(model(first, 1), output=Bill, journal=MemoryJournal())
    run = asyncio.run(agent.run("Go."))
    assert run.output == Bill(1)
    other = model(then, 2)
    fork = asyncio.run(agent.fork(run.run_id, at=0, model=other))
    assert fork.output == Bill(2)
    (request,) = other.requests
    assert [spec.name for spec in request.tools] == (["final_answer"] if then == "tool" else [])
    assert (request.output_schema is not None) == (then != "tool")


@pytest.mark.parametrize("whose", ["the agent's", "the run's", "the fork's"])
def test_a_fork_with_a_model_that_no_price_is_known_of_is_refused_before_it_is_recorded(whose):
    journal, priced = MemoryJournal(), ScriptedModel(["Yes.", "No."], usage=Usage(1, 1), price=Price(1, 1))
    dollar = Limits(usd=1)
    agent = Agent(priced, journal=journal, limits=dollar if whose == "the agent's" else None)
    run = asyncio.run(agent.run("Go.", limits=dollar if whose == "the run's" else None))
    limits = dollar if whose == "the fork's" else None
    for forked in (agent.fork, agent.begin_fork):
        with pytest.raises(Misuse, match="price"):
            asyncio.run(forked(run.run_id, at=0, model=ScriptedModel(["Yes."]), limits=limits))
    assert [line.run_id for line in asyncio.run(journal.list())] == [run.run_id]


def test_a_call_that_was_refused_has_no_result_for_which_there_could_be_another():
    journal, ran = MemoryJournal(), []

    @tool(effect="read")
    def look(n: int) -> str:
        """Looks."""
        ran.append(n)
        return "seen"

    model = ScriptedModel([[("look", {"n": 1}), ("look", {"n": 2})], "Done."])
    agent = Agent(model, tools=[look], journal=journal, limits=Limits(tool_calls=1))
    run = asyncio.run(agent.run("Go."))
    with pytest.raises(Misuse, match="was not executed: there is no result to put another for"):
        asyncio.run(agent.fork(run.run_id, at=1, tool_results={"call_0_1": "seen, too"}))
    assert len(asyncio.run(journal.list())) == 1
    assert ran == [1]
