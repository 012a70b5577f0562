"""Any run under any chain of policies keeps its promises; sub-runs make room within what their parents lend them."""

import asyncio
from dataclasses import replace

import pytest
from checks import events_of
from histories import exchange, marks
from hypothesis import given
from hypothesis import strategies as st
from rules import hold
from trial import Trial
from worlds import examples, setups

from treadle import Agent, ClearToolResults, KeepFirstAndRecent, Limits, MemoryJournal, ShortenResult, Summarise, tool
from treadle.kernel.events import ContextEdited
from treadle.models import ContextOverflow, Overloaded
from treadle.testing import ScriptedModel

low_marks = marks.map(lambda pair: (pair[0] // 8 + 1, min(pair[1] // 8, pair[0] // 8)))
summary_models = st.sampled_from(["short", "", "busy", "long"]).map(
    lambda what: ScriptedModel(
        lambda request: Overloaded("busy") if what == "busy" else "word " * 2000 if what == "long" else what
    )
)
chains = st.lists(
    st.one_of(
        low_marks.map(lambda pair: KeepFirstAndRecent(*pair)),
        low_marks.map(lambda pair: ClearToolResults(*pair, keep=1)),
        st.just(ShortenResult(100)),
        st.builds(lambda model, pair: Summarise(model, *pair, max_tokens=40), summary_models, low_marks),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@examples(40, shrink=False)
@given(setups(), chains)
def test_any_run_under_any_chain_keeps_every_promise(setup, chain):
    trial = Trial.of(setup)
    plain = trial.agent

    def agent():
        made = plain()
        made = made._with(lambda config: replace(config, context=chain))
        return made

    trial.agent = agent
    if trial.said is not None:
        trial.said.replace([*trial.said.messages, *exchange("before", "result " * 300, "other " * 100)])
    hold(trial.carry_out())


@tool(effect="read")
async def look(n: int) -> str:
    """Look."""
    return f"saw {n} " + "look " * 300


def child(window, **more):
    """An agent whose model looks eight times, and overflows beyond `window` characters of results."""

    def turn(request):
        if sum(len(one.text) for one in request.messages) > window:
            return ContextOverflow("too long", status=400)
        return "found" if request.step == 8 else [("look", {"n": request.step})]

    return Agent(ScriptedModel(turn), name="child", tools=[look], **more)


@pytest.mark.parametrize("tokens", [None, 200_000])
def test_a_sub_run_makes_room_after_an_overflow(tokens):
    journal = MemoryJournal()
    sub = child(6000, journal=journal)
    model = ScriptedModel([[("child", {"task": "look around"})], "all found"])
    agent = Agent(model, tools=[sub.as_tool()], journal=journal, limits=Limits(steps=40, tokens=tokens))
    result = asyncio.run(agent.run("go"))
    assert result.text == "all found"
    assert "found" in result.steps[0].calls[0].result.text
    edits = [e for run_id in journal._runs for e in events_of(journal, run_id) if isinstance(e, ContextEdited)]
    assert edits


def test_a_summary_in_a_sub_run_is_not_asked_for_when_its_parent_has_not_enough_left():
    small = ScriptedModel(lambda request: "so far")
    sub = child(10**9, context=Summarise(small, 2000, 1000, max_tokens=42_000))
    model = ScriptedModel([[("child", {"task": "look around"})], "all found"])
    agent = Agent(model, tools=[sub.as_tool()], limits=Limits(steps=40, tokens=45_000))
    result = asyncio.run(agent.run("go"))
    assert not small.requests
    assert result.usage.total_tokens <= 45_000


def test_a_run_does_not_pay_again_for_the_reason_that_it_sees_its_payment_no_more():
    """What was left out was named by nothing, also after an overflow."""
    paid = []

    @tool
    def pay(invoice: int) -> str:
        """Pays an invoice."""
        paid.append(invoice)
        return "paid"

    def turn(request):
        if sum(len(one.text) for one in request.messages) > 12_000:
            return ContextOverflow("too long", status=400)
        called = [call.name for one in request.messages for call in getattr(one, "calls", ())]
        if "pay" not in called and not any("- pay(" in one.text for one in request.messages):
            return [("pay", {"invoice": 7})]
        return "done" if request.step == 20 else ("thought " * 200, [("look", {"n": request.step})])

    for context in (None, KeepFirstAndRecent(3000, 1500)):
        paid.clear()
        agent = Agent(ScriptedModel(turn), tools=[pay, look], context=context, limits=Limits(steps=40))
        result = asyncio.run(agent.run("Pay invoice 7, and look around."))
        assert (result.text, paid) == ("done", [7])
        edits = [one for one in result.events if isinstance(one, ContextEdited) and one.policy == "KeepFirstAndRecent"]
        assert edits, context
