"""What comes in from outside is checked once: whatever came, a run ends with a reason and its journal can be read."""

import decimal
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle import Agent, File, Limits, Misuse, ModelSettings, Price, Retries, SqliteJournal, Text, tool
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, ToolCall, Usage
from treadle.models import ModelReply, Overloaded, ProtocolError, TextDelta
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SAID = AssistantMessage((Text("hi"),))
BAD = "caf\udce9"


class Own:
    """A model of one's own: it yields what it is told, and may say what that costs."""

    name = "own"

    def __init__(self, *events: Any, cost: Any = None) -> None:
        self.events = events
        self.asked = 0
        if cost is not None:
            self.cost = cost

    async def stream(self, request):
        self.asked += 1
        for event in self.events:
            yield event


@tool(effect="read")
def look(place: str = "") -> File:
    """Look."""
    return File(url=f"file:///{BAD}", name=BAD)


async def ran(tmp_path, model, question: Any = "go", **options: Any):
    """What came of a run, once its journal was read again and found to say the same."""
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        result = await Agent(model, journal=journal, retries=Retries(attempts=2, base=0.001), **options).run(question)
        events = await journal.read(result.run_id)
        await journal.delete(result.run_id)
    state = fold_all(events)
    assert list(state.messages) == result.messages
    assert (state.accounts.whole_cost, state.usage, state.stop) == (result.cost, result.usage, result.stop)
    return result


@pytest.mark.parametrize(
    "events",
    [
        [ModelReply(SAID, finish="end_turn")],
        [ModelReply(AssistantMessage((ToolCall("c", "look", {"place": "x"}),)), finish="tool_calls")],
        [ModelReply(AssistantMessage((ToolCall(3, "look"),)))],
        [ModelReply(SAID, Usage(1.5, 2))],
        [ModelReply(SAID, Usage("1", 2))],
        [ModelReply(SAID, Usage(-1, 2))],
        [ModelReply(SAID, {})],
        [ModelReply(SAID, cost=Decimal("NaN"))],
        [ModelReply(SAID, cost="free")],
        [ModelReply(None)],
        [TextDelta(3), ModelReply(SAID)],
        [TextDelta("h"), "hi"],
    ],
    ids=range(12),
)
async def test_a_model_that_replies_nonsense_ends_as_model_error_and_is_not_asked_again(events, tmp_path):
    model = Own(*events)
    result = await ran(tmp_path, model, tools=[look])
    assert result.stop.reason == "model_error"
    assert isinstance(result.error, ProtocolError)
    assert "cannot be used" in str(result.error)
    assert model.asked == 1


@pytest.mark.parametrize(
    ("reply", "cost"),
    [
        (ModelReply(AssistantMessage("hi")), None),
        (ModelReply(AssistantMessage(["hi"]), Usage(1.0, 2)), None),
        (ModelReply(SAID, cost=0.1), Decimal("0.1")),
    ],
    ids=range(3),
)
async def test_what_a_model_means_beyond_doubt_is_understood(reply, cost, tmp_path):
    result = await ran(tmp_path, Own(reply))
    assert (result.stop.reason, result.text, result.cost) == ("answered", "hi", cost)


def broken(usage):
    raise KeyError("no such model")


@pytest.mark.parametrize("cost", [broken, lambda usage: "0.1", lambda usage: float("nan")], ids=range(3))
async def test_a_price_that_cannot_be_told_ends_as_model_error(cost, tmp_path):
    result = await ran(tmp_path, Own(ModelReply(SAID, Usage(1, 1)), cost=cost))
    assert result.stop.reason == "model_error"
    assert "the price of own cannot be told" in result.stop.detail
    with pytest.raises(Misuse, match="the price of own cannot be told"):
        Agent(Own(cost=cost), limits=Limits(usd=1))


async def test_text_with_lone_surrogates_ends_no_run_wherever_it_comes_in(tmp_path):
    script = [
        Overloaded(BAD),
        ModelReply(AssistantMessage((Text(BAD), ToolCall(BAD, "look", f'{{"place": "{BAD}"}}')))),
        BAD,
    ]
    result = await ran(
        tmp_path,
        ScriptedModel(script),
        [Text(BAD), File(url=BAD, name=BAD)],
        tools=[look],
        instructions=BAD,
        settings=ModelSettings(extra={BAD: BAD}),
        name=BAD,
    )
    assert result.stop.reason == "answered"
    assert result.text == "caf?"
    assert result.messages[0].text == "caf?"
    assert result.tool_calls_made[0].result.content[0].name == "caf?"


async def test_what_a_run_costs_does_not_depend_on_the_callers_decimals(tmp_path):
    def model():
        script = [[("look", {"place": str(number)})] for number in range(4)] + ["done"]
        return ScriptedModel(script, usage=Usage(123_457, 9_877), price=Price(1.2345, 15.678))

    usual = await ran(tmp_path, model(), tools=[look], limits=Limits(usd=100))
    with decimal.localcontext(decimal.Context(prec=3)):
        rounded = await ran(tmp_path, model(), tools=[look], limits=Limits(usd=100))
    assert [step.cost for step in rounded.steps] == [step.cost for step in usual.steps]
    assert rounded.cost == usual.cost


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(st.characters(), max_size=4),
    st.lists(st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
SOMETIMES = [st.just("hi"), st.just("stop"), st.just(1), st.none(), ANYTHING]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.one_of(SOMETIMES), min_size=9, max_size=9), st.one_of(ANYTHING, st.just("x")))
async def test_whatever_a_model_replies_the_run_ends_with_a_reason(tmp_path, values, delta):
    a, b, c, d, e, f, g, h, i = values
    message = AssistantMessage((Text(a), ToolCall(b, c, d)) if g != "hi" else a)
    reply = ModelReply(message, Usage(e, f) if g else g, h, i, cost=g)
    result = await ran(tmp_path, Own(TextDelta(delta), reply), tools=[look], limits=Limits(steps=2))
    assert result.stop.reason in {"model_error", "max_steps", "answered", "no_progress", "consecutive_errors"}
