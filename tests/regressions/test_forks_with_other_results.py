"""Runs that are forked with other results, and replays of runs that nobody has changed."""

from decimal import Decimal

import pytest
from msgspec.structs import replace as with_fields

from treadle import (
    Agent,
    Budget,
    ClearToolResults,
    KeepFirstAndRecent,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    ShortenResult,
    SqliteJournal,
    Usage,
    replay,
    tool,
)
from treadle.kernel.accounts import Spent
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    ContextEdited,
    ModelReplied,
    ResultAwaited,
    RunForked,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import AssistantMessage, ToolCall, UserMessage
from treadle.kernel.stop import Decision
from treadle.testing import ScriptedModel
from treadle.timetravel.cut import cut_at
from treadle.tools import ToolOutput

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(n: int) -> str:
    """Look."""
    return "nothing"


@pytest.fixture(params=["memory", "sqlite"])
def journal(request, tmp_path):
    return MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "runs.db")


def three_looks(request):
    made = sum(message.role == "assistant" for message in request.messages)
    return [("look", {"n": made})] if made < 3 else "done"


async def test_a_fork_is_forked_at_its_own_beginning_with_another_result(journal):
    agent = Agent(ScriptedModel(three_looks), tools=[look], journal=journal)
    run = await agent.run("Look.")
    fork = await agent.fork(run.run_id, at=2, message="Go on.", model=ScriptedModel(three_looks, name="other"))
    again = await agent.fork(fork.run_id, at=2, tool_results={"call_1_0": "something"})
    assert again.stop.reason == "answered"
    assert again.steps[1].calls[0].result.text == "something"
    assert [message.text for message in again.messages if message.role == "user"] == ["Look.", "Go on."]
    assert again.run_id not in (run.run_id, fork.run_id)
    events = await journal.read(again.run_id)
    assert [(event.run_id, event.model) for event in events if isinstance(event, RunForked)] == [
        (again.run_id, "other")
    ]
    assert (await agent.replay(again.run_id)).same
    assert (await replay(journal, again.run_id)).same
    assert (await journal.read(fork.run_id))[-1] == fork.events[-1]


PRICE = Price(1000, 0)


def below(name):
    """An agent that takes a dollar a step, two steps, and a call."""

    def says(request):
        return [("look", {"n": 0})] if request.step == 0 else f"{name} says"

    return Agent(ScriptedModel(says, usage=Usage(1000, 0), price=PRICE), name=name, tools=[look])


@pytest.mark.parametrize("names", [("one",), ("one", "two")])
async def test_a_fork_that_replaces_what_an_agent_said_knows_what_it_took(journal, names):
    def says(request):
        asked = any(message.role == "assistant" for message in request.messages)
        return "done" if asked else [(name, {"task": "x"}) for name in names]

    model, budget = ScriptedModel(says, usage=Usage(100, 0), price=PRICE), Budget(usd=100)
    tools = [below(name).as_tool() for name in names]
    agent = Agent(model, tools=tools, journal=journal, budget=budget)
    run = await agent.run("Go.")
    before = Decimal("0.1") + 2 * len(names)
    assert (run.cost, run.sub_steps) == (before + Decimal("0.1"), 2 * len(names))
    of, paid = run, run.cost
    for told in ("other", "third"):
        fork = await agent.fork(of.run_id, at=1, tool_results={f"call_0_{n}": told for n in range(len(names))})
        assert [record.result.text for record in fork.steps[0].calls] == [told] * len(names)
        assert (fork.cost, fork.usage, fork.sub_steps) == (run.cost, run.usage, run.sub_steps)
        assert fold_all(fork.events).tool_calls == fold_all(run.events).tool_calls
        spending, paid = await agent.spending(fork.run_id), paid + Decimal("0.1")
        assert (spending.total.cost, spending.shared_total.cost) == (Decimal("0.1"), before)
        assert budget.spent().usd == paid
        assert (await agent.replay(fork.run_id)).same
        of = fork
    short = await agent.fork(
        run.run_id, at=1, tool_results={"call_0_0": "x"} if len(names) == 1 else None, limits=Limits(usd=float(before))
    )
    assert (short.stop.reason, short.cost) == ("max_cost", before)


async def test_a_fork_of_a_fork_knows_what_an_agent_took_whose_call_got_another_result_before(journal):
    """No defect: that the second fork had forgotten what stands in the first one's beginning went unnoticed."""

    def says(request):
        asked = any(message.role == "assistant" for message in request.messages)
        return "done" if asked else [("look", {"n": 1}), ("one", {"task": "x"})]

    model, budget = ScriptedModel(says, usage=Usage(100, 0), price=PRICE), Budget(usd=100)
    agent = Agent(model, tools=[look, below("one").as_tool()], journal=journal, budget=budget)
    run = await agent.run("Go.")
    first = await agent.fork(run.run_id, at=1, tool_results={"call_0_1": "other"})
    second = await agent.fork(first.run_id, at=1, tool_results={"call_0_0": "another"})
    third = await agent.fork(second.run_id, at=1, tool_results={"call_0_1": "third"})
    assert [record.result.text for record in third.steps[0].calls] == ["another", "third"]
    for fork in (first, second, third):
        assert (fork.cost, fork.usage, fork.sub_steps) == (run.cost, run.usage, run.sub_steps)
        spending = await agent.spending(fork.run_id)
        assert (spending.total.cost, spending.shared_total.cost) == (Decimal("0.1"), Decimal("2.1"))
        assert (await agent.replay(fork.run_id)).same
    assert budget.spent().usd == run.cost + 3 * Decimal("0.1")


TWO = AssistantMessage((ToolCall("a", "look", "{}"), ToolCall("b", "low", "{}")))
BEGUN = [
    RunStarted("r", (UserMessage("q"),), 1, at=1.0),
    StepPrepared(0, Decision("go"), at=2.0),
    ModelReplied(0, TWO, at=3.0),
    ToolStarted(0, "a", at=4.0),
    ToolFinished(0, "a", "1", at=5.0),
    ToolStarted(0, "b", at=6.0),
]
OTHERS = {"a": ToolOutput("2"), "b": ToolOutput("3")}
SOME = Spent(1, Usage(3, 4), Decimal(1), 1)
ALL = Spent(2, Usage(6, 8), Decimal(2), 2)


def forked(events, cut, run_id="f"):
    return [*events[: cut.seq], RunForked(run_id, taken=dict(cut.taken), at=20.0), *cut.again]


def test_what_is_told_again_is_not_taken_again():
    waits = ResultAwaited(0, "b", run_id="r/0/b", spent=SOME, at=7.0)
    events = [*BEGUN, waits, ToolFinished(0, "b", "2", spent=ALL, at=8.0)]
    cut = cut_at(events, 1, OTHERS)
    assert (cut.seq, dict(cut.taken)) == (4, {"b": ALL})
    whole, fork = fold_all(events), forked(events, cut)
    state = fold_all(fork)
    assert (state.cost, state.sub_steps, state.tool_calls) == (whole.cost, whole.sub_steps, whole.tool_calls)
    assert state.accounts.shared.cost == whole.cost
    # What that fork began with, another of it says too, or has it as its own beginning.
    second = cut_at(fork, 1, OTHERS)
    assert fold_all(forked(fork, second, "g")).cost == whole.cost
    provisional = [*BEGUN, ToolFinished(0, "b", "2", spent=ALL, provisional=True, at=7.0)]
    kept = [*provisional, ToolReacted(0, "b", "keep", at=8.0)]
    assert fold_all(forked(kept, cut_at(kept, 1, OTHERS))).cost == fold_all(kept).cost


def test_what_cannot_be_told_again_is_refused():
    call = ToolReacted(0, "b", "call", call=ToolCall("b", "low", "{}"), at=8.0)
    twice = [*BEGUN, ToolFinished(0, "b", "2", spent=SOME, provisional=True, at=7.0), call]
    twice += [ToolStarted(0, "b", at=9.0), ToolFinished(0, "b", "2", spent=SOME, at=10.0)]
    with pytest.raises(Misuse, match="made again"):
        cut_at(twice, 1, OTHERS)
    awaited = [*BEGUN, ResultAwaited(0, "b", run_id="r/0/b", spent=SOME, at=7.0)]
    with pytest.raises(Misuse, match="give that call's result too"):
        cut_at([*awaited, ToolFinished(0, "b", "2", at=8.0)], 1, {"a": ToolOutput("2")})
    with pytest.raises(IllegalEvent, match="no such call is under way"):
        fold(fold_all(BEGUN[:1]), RunForked("f", taken={"b": SOME}))


@tool(effect="read")
def read_page(n: int) -> str:
    """Read a page."""
    return f"page {n}: " + "x y z " * 1200


@pytest.mark.parametrize(
    "policies",
    [
        [ClearToolResults(high=1500, low=700, keep=1)],
        [KeepFirstAndRecent(high=1500, low=700)],
        [ShortenResult(max_tokens=100), KeepFirstAndRecent(high=900, low=300)],
    ],
)
async def test_a_run_whose_history_was_edited_is_the_same_whenever_it_is_replayed(policies):
    def says(request):
        return "done" if request.tool_choice == "none" else [("read_page", {"n": request.step})]

    journal, older = MemoryJournal(), MemoryJournal()
    more = {"tools": [read_page], "context": policies, "limits": Limits(tool_calls=4)}
    run = await Agent(ScriptedModel(says), journal=journal, **more).run("Read.")
    assert any(isinstance(event, ContextEdited) for event in run.events)
    hours_ago = [with_fields(event, at=event.at - 10_000) for event in run.events]
    await older.append(run.run_id, 0, hours_ago)
    for kept in (journal, older):
        found = await Agent(ScriptedModel(says), journal=kept, **more).replay(run.run_id)
        assert found.same, str(found)
    later = [with_fields(event, at=event.at + 60 * number) for number, event in enumerate(hours_ago)]
    slow = MemoryJournal()
    await slow.append(run.run_id, 0, later)
    found = await Agent(ScriptedModel(says), journal=slow, **more).replay(run.run_id)
    assert not found.same


@pytest.mark.parametrize("usd", [1, 1.0, 0.5, Decimal(1), Decimal("1.50")])
async def test_a_limit_in_whole_dollars_is_told_as_it_was(journal, usd):
    def says(request):
        return [("look", {"n": request.step})]

    model = ScriptedModel(says, usage=Usage(1000, 1000), price=Price(100, 100))
    agent = Agent(model, tools=[look], journal=journal, limits=Limits(usd=usd), on_limit="stop")
    run = await agent.run("Look.")
    assert run.stop.reason == "max_cost"
    assert f"of at most {usd}." in run.stop.detail
    (kept,) = [event.limits for event in await journal.read(run.run_id) if isinstance(event, RunStarted)]
    assert repr(kept.usd) == repr(usd)
    for found in (await replay(journal, run.run_id), await agent.replay(run.run_id)):
        assert found.same, str(found)


CARD = "4111 1111 1111 1111"


@pytest.mark.parametrize("limits", [Limits(usd=10), Limits(tokens=100_000), Limits(tokens=9000)])
@pytest.mark.parametrize("policies", [[], [ClearToolResults(high=200, low=100, keep=1)]])
async def test_a_run_whose_texts_are_kept_otherwise_is_the_same(limits, policies):
    @tool(effect="read")
    def charged(n: int) -> str:
        """Say which card was charged."""
        return f"card {CARD}, " * 40

    def says(request):
        return "done" if request.step > 2 else [("charged", {"n": request.step})]

    journal = MemoryJournal(redact=lambda text: text.replace(CARD, "[card]"))
    model = ScriptedModel(says, usage=Usage(1000, 1000), price=Price(100, 100))
    agent = Agent(model, tools=[charged], journal=journal, limits=limits, context=policies, on_limit="stop")
    run = await agent.run(f"Charge {CARD}.")
    found = await agent.replay(run.run_id)
    assert found.same, str(found)
    assert (await replay(journal, run.run_id)).same
