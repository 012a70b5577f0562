"""A dry run: what the first request of a run may take is reckoned as the run itself reckons it, and nothing is done."""

from decimal import Decimal

import pytest

from treadle import (
    Agent,
    Conversation,
    File,
    KeepFirstAndRecent,
    Limits,
    MemoryJournal,
    Misuse,
    ModelSettings,
    Price,
    StepSettings,
    Summarise,
    Text,
    Usage,
    tool,
)
from treadle.kernel.events import StepPrepared
from treadle.models import FallbackModel
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PRICE = Price(3, 15, cache_write=Decimal("3.75"))


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool
def pay(amount: int) -> str:
    """Pays an amount."""
    raise AssertionError("a dry run runs no tool")


def model(said="done", name="scripted", price=PRICE):
    return ScriptedModel(lambda _: said, name=name, usage=Usage(10, 5), price=price)


def long_conversation():
    said = Conversation()
    for number in range(30):
        said.add_user(f"question {number}: " + "word " * 50)
        said.add_assistant(f"answer {number}")
    return said


def dearer(context):
    return StepSettings(model=model(name="other", price=Price(30, 150)), settings=ModelSettings(max_tokens=77))


async def instructions(context):
    return "You are careful. " * 20


AGENTS = {
    "plain": lambda: Agent(model()),
    "tools": lambda: Agent(model(), tools=[pay], instructions="You pay."),
    "settings": lambda: Agent(model(), settings=ModelSettings(max_tokens=300)),
    "extra": lambda: Agent(model(), settings=ModelSettings(extra={"max_tokens": 500})),
    "prepare_step": lambda: Agent(model(), tools=[pay], prepare_step=dearer),
    "instructions": lambda: Agent(model(), instructions=instructions),
    "policies": lambda: Agent(model(), context=KeepFirstAndRecent(high=900, low=500)),
    "fallback": lambda: Agent(FallbackModel([model(), model(name="b", price=Price(9, 9))])),
    "output": lambda: Agent(model("7"), output=int),
}
LIMITS = [Limits(usd=5), Limits(tokens=50_000), Limits(tokens=4_000), Limits(usd=Decimal("0.02")), Limits(usd=0.001)]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("talk", [False, True])
@pytest.mark.parametrize("kind", AGENTS)
async def test_an_estimate_is_what_the_run_that_follows_reserves(kind, talk, limits):
    agent, said = AGENTS[kind](), long_conversation() if talk else None
    estimate = await agent.estimate("What is it?", conversation=said, limits=limits)
    result = await agent.run("What is it?", conversation=said, limits=limits)
    reserve = next(event for event in result.events if isinstance(event, StepPrepared)).reserve
    assert estimate.tokens == reserve.tokens
    assert reserve.usd in (None, estimate.usd)
    assert estimate.allowed == bool(result.steps)
    if not estimate.allowed:
        assert estimate.stop == result.stop
        assert estimate.stop.reason in ("max_tokens", "max_cost")


async def test_without_limits_the_whole_reply_is_reckoned():
    estimate = await Agent(model(), settings=ModelSettings(max_tokens=300)).estimate("go")
    assert (estimate.model, estimate.reply_tokens, estimate.allowed) == ("scripted", 300, True)
    tokens = estimate.request_tokens
    assert tokens > 0
    assert estimate.usd == PRICE.of(Usage(tokens, 300, cache_write_tokens=tokens))
    estimate = await Agent(model()).estimate("go")
    assert (estimate.reply_tokens, estimate.held) == (8192, False)
    assert (await Agent(model()).estimate("go", limits=Limits(tokens=100_000))).held


async def test_an_unknown_price_is_unknown():
    estimate = await Agent(model(price=None)).estimate("go")
    assert estimate.usd is None
    assert estimate.allowed
    with pytest.raises(Misuse, match="price of scripted is not known"):
        await Agent(model(price=None)).estimate("go", limits=Limits(usd=1))


async def test_a_file_is_reckoned():
    small = await Agent(model()).estimate("go")
    large = await Agent(model()).estimate([Text("go"), File(data=b"x" * 100_000, media_type="text/plain")])
    assert large.request_tokens - small.request_tokens > 40_000


async def test_nobody_is_told_of_an_estimate(caplog):
    """The log said that a run had begun, of which nothing followed."""
    caplog.set_level("DEBUG", "treadle")
    await Agent(model()).estimate("go")
    assert [record.getMessage() for record in caplog.records if record.name.startswith("treadle")] == []


async def test_nothing_is_done():
    asked, journal, said = model(), MemoryJournal(), long_conversation()
    agent = Agent(asked, tools=[pay], journal=journal)
    before = said.messages
    await agent.estimate("go", conversation=said)
    assert asked.requests == []
    assert await journal.list() == []
    assert said.messages == before
    async with agent.stream("go", conversation=said):
        assert (await agent.estimate("again", conversation=said)).allowed  # though a run is using it


async def test_a_summary_is_not_written_for_an_estimate():
    writer = model("in short")
    agent = Agent(model(), context=Summarise(high=900, low=500, model=writer))
    estimate = await agent.estimate("go", conversation=long_conversation())
    assert writer.requests == []
    assert estimate.request_tokens > 900


async def test_why_a_run_would_not_ask_at_all():
    for limits, reason in ((Limits(tokens=0), "max_tokens"), (Limits(seconds=0), "deadline")):
        estimate = await Agent(model(), limits=limits).estimate("go")
        assert not estimate.allowed
        assert (estimate.stop.reason, estimate.tokens, estimate.usd) == (reason, 0, 0)


async def test_what_no_run_takes_no_estimate_takes():
    with pytest.raises(Misuse, match="nothing to answer"):
        await Agent(model()).estimate()
    with pytest.raises(Misuse, match="conversation"):
        await Agent(model()).estimate("go", conversation=["said"])
    with pytest.raises(Misuse):
        await Agent(model()).estimate("go", max_steps=3)
    with pytest.raises(ValueError, match="mine"):
        await Agent(model(), prepare_step=fails).estimate("go")


def fails(context):
    raise ValueError("mine")
