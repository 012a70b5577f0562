"""Runs over real sockets, in each dialect and in chains of several: replies are cut and broken off at any byte.

Whatever breaks, it holds: each request has its event, what was broken off is never used and is paid for, no call of it
is made but what only reads, each other one is made once, also where one model of Claude's took a reply over from
another, the figures are those of the provider's books, and no limit is overspent by them.
"""

import json
from decimal import Decimal

import anyio
from hypothesis import given
from hypothesis import strategies as st
from wires import KEY, MODELS, PRICES, Asked, Saying, Wire, listening
from worlds import examples

from treadle import Agent, Limits, Retries, RunResult, tool
from treadle.kernel.events import ModelFailed, ModelReplied
from treadle.models import FallbackModel

HISTORY = {
    "chat": "messages",
    "responses": "input",
    "messages": "messages",
    "google": "contents",
    "converse": "messages",
}
MARKS = ("cache_control", "cachePoint")

sayings = st.builds(
    Saying,
    text=st.sampled_from(["", "Good.", 'naïve €\n\ndata: "x"', "日本語 \U0001f600"]),
    numbers=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    thought=st.sampled_from(["", "", "Let me think."]),
    breaks=st.sampled_from(["", "", "", "ends", "resets", "closes", "junk"]),
    at=st.floats(0, 1),
    pieces=st.integers(1, 40),
    tokens=st.integers(16, 200),
    gateway=st.sampled_from(["", "nothing", "again", "hasty", "careless"]),
    looks=st.lists(st.integers(0, 3), max_size=2, unique=True).map(tuple),
    declined=st.lists(st.sampled_from(["look", "pay"]), max_size=2).map(tuple),
).filter(lambda saying: saying.text or saying.numbers)
chains = st.lists(st.sampled_from(sorted(MODELS)), min_size=1, max_size=3)
limits = st.sampled_from([Limits(), Limits(tokens=6_000), Limits(usd=Decimal("0.02"))])


def without_marks(value):
    """`value` without what says where a cache ends."""
    if isinstance(value, dict):
        return {name: without_marks(one) for name, one in value.items() if name not in MARKS}
    if isinstance(value, list):
        return [without_marks(one) for one in value if not (isinstance(one, dict) and set(one) == {"cachePoint"})]
    return value


async def carried_out(wire: Wire, held: Limits, paid: list[int], seen: list[int]) -> RunResult:
    @tool
    def pay(number: int) -> str:
        """Pays the bill of that number."""
        paid.append(number)
        return f"paid {number}"

    @tool(effect="read")
    def look(number: int) -> str:
        """Looks at the bill of that number."""
        seen.append(number)
        return f"seen {number}"

    models = wire.models()
    model = models[0] if len(models) == 1 else FallbackModel(models, cool_down=0)
    soon, tools = Retries(attempts=3, base=0.001), [pay, look]
    return await Agent(model, tools=tools, limits=held, retries=soon, watch_progress=False, on_limit="stop").run("go")


@examples(60, shrink=False)
@given(chains, st.lists(sayings, min_size=1, max_size=6), limits)
def test_whatever_breaks_on_the_wire_the_books_agree(dialects, said, held):
    paid: list[int] = []
    seen: list[int] = []
    with listening(Wire(dialects, said)) as wire:
        result = anyio.run(carried_out, wire, held, paid, seen)
    events = [event for event in result.events if isinstance(event, (ModelReplied, ModelFailed))]
    assert len(events) == len(wire.asked)
    for event, asked in zip(events, wire.asked, strict=True):
        holds_of_one(event, asked, dialects[asked.place])

    whole = [asked for asked in wire.asked if not asked.saying.breaks]
    asked_for = [(name, number) for asked in whole for _, name, number in asked.calls]
    assert sorted(paid) == sorted(number for name, number in asked_for if name == "pay")
    looked_at_once(wire, seen, [number for name, number in asked_for if name == "look"])
    told = [event.usage for event in events if event.usage is not None]
    assert result.usage.total_tokens == sum(usage.total_tokens for usage in told)
    assert result.cost == sum((event.cost or Decimal(0) for event in events), Decimal(0))
    assert KEY not in repr(result.events) + str(result) + repr(result.error)
    keeps_within(held, wire, result)
    grows(wire)


def holds_of_one(event, asked: Asked, dialect: str) -> None:
    if asked.saying.breaks:
        assert isinstance(event, ModelFailed), asked.saying
        assert not asked.begun or (event.usage is not None and event.usage.input_tokens > 0)
        return
    assert isinstance(event, ModelReplied), event
    assert event.message.text == asked.saying.text
    told = [(call.name, json.loads(call.arguments)["number"]) for call in event.message.calls]
    assert told == [(name, number) for _, name, number in asked.calls]
    counted, usage = event.usage, asked.usage
    assert (counted.input_tokens, counted.output_tokens) == (usage.input_tokens, usage.output_tokens)
    assert (counted.cache_read_tokens, counted.estimated) == (usage.cache_read_tokens, False)
    assert event.cost == PRICES[asked.place].of(usage), dialect


def looked_at_once(wire: Wire, seen: list[int], asked_for: list[int]) -> None:
    """What only reads may have begun in a reply that does not stand, or before another model took it over: no more."""
    begun = [number for asked in wire.asked for _, _, number in [*asked.declined, *asked.calls]]
    assert len(set(seen)) == len(seen)
    assert set(asked_for) <= set(seen) <= set(begun)
    left = [call_id for asked in wire.asked for call_id, _, _ in asked.declined]
    assert not any(call_id in json.dumps(asked.body) for asked in wire.asked for call_id in left)


def keeps_within(held: Limits, wire: Wire, result: RunResult) -> None:
    """No limit is overspent, by the provider's books either: of what broke off, it charges at least for the request."""
    billed = sum(
        asked.usage.input_tokens + (0 if asked.saying.breaks else asked.usage.output_tokens)
        for asked in wire.asked
        if asked.begun
    )
    charged = sum((wire.cost(asked) for asked in wire.asked if not asked.saying.breaks), Decimal(0))
    assert result.usage.total_tokens >= billed
    assert held.tokens is None or result.usage.total_tokens <= held.tokens
    assert result.cost is not None
    assert result.cost >= charged
    assert held.usd is None or result.cost <= held.usd


def grows(wire: Wire) -> None:
    """Each request to a model begins with all of the one before it: of what broke off, nothing is in the history."""
    before: dict[int, list] = {}
    for asked in wire.asked:
        history = without_marks(asked.body[HISTORY[wire.dialects[asked.place]]])
        earlier = before.get(asked.place, [])
        assert history[: len(earlier)] == earlier
        before[asked.place] = history
