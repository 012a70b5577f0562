"""The purse: what was paid for is counted, and no bill is above its limit.

What was found, and the test that holds it:

- a reply that breaks off in thinking or in a call's arguments counts as nothing
  -> test_a_reply_that_breaks_off_is_counted_whatever_came_of_it, test_a_limit_holds_over_replies_that_break_off,
  and over a socket in tests/models/test_anthropic.py
- the same at a deadline, or when the run is cancelled -> test_what_came_before_a_deadline_is_counted,
  test_what_came_before_a_cancel_is_counted
- what the provider reported of it is known -> test_what_was_reported_of_a_reply_that_breaks_off_is_known
- a model that others stand in for -> test_what_a_model_that_was_passed_over_reported_is_counted
- cache writes are reserved at the plain price -> test_what_may_be_written_to_a_cache_is_reserved_at_its_price
- files count 1,600 tokens whatever their size -> test_a_file_is_reckoned_by_its_size,
  test_a_pdf_is_reckoned_by_its_pages, test_a_large_file_is_not_sent_under_a_small_limit
- a sum with one unknown price is told as if it were whole -> test_a_sum_with_an_unknown_part_is_unknown
- attempts at a summary are never counted -> in tests/context/test_compaction.py
- found by hostile users: -> test_each_model_that_is_asked_in_place_of_another_must_fit_the_limit,
  test_a_call_that_text_holds_back_is_counted, test_a_whole_reply_is_not_taken_back,
  test_what_an_unsound_reply_reports_is_counted, test_what_was_reported_before_a_reply_without_usage_is_known,
  test_a_call_whose_result_a_person_is_asked_about_was_made,
  test_a_reply_that_broke_off_is_charged_at_the_price_of_the_model_that_gave_it,
  test_of_a_reply_that_breaks_off_as_it_begins_the_request_is_counted
- what providers say and are sent over the wire -> tests/models/test_bills.py
"""

import asyncio
import zlib
from decimal import Decimal

import pytest
from play import Bank, within

from treadle import Agent, AskUser, Conversation, File, Limits, Price, Retries, Usage
from treadle.context.tokens import estimate_tokens
from treadle.kernel.messages import UserMessage
from treadle.models import (
    AssistantMessage,
    ConnectionFailed,
    FallbackModel,
    ModelReply,
    Text,
    TextDelta,
    TextTools,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.models.errors import Overloaded
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

LONG = "1" * 3000
PIECES = {
    "text": [TextDelta(LONG)],
    "thinking": [ThinkingDelta(LONG)],
    "arguments": [ToolCallStarted("a", "pay"), ToolCallDelta("a", '{"amount":' + LONG)],
    "a little of each": [TextDelta(LONG[:1000]), ThinkingDelta(LONG[:1000]), ToolCallDelta("a", LONG[:1000])],
}


class Breaking:
    """A model whose replies break off after some pieces, or never end."""

    name = "breaking"
    max_output_tokens = 1000

    def __init__(self, pieces, error=None):
        self.pieces, self.error, self.calls = pieces, error, 0

    def cost(self, usage):
        return Price(100, 100).of(usage)

    async def stream(self, request):
        self.calls += 1
        for piece in self.pieces:
            yield piece
        if self.error is None:
            await asyncio.sleep(60)
        raise self.error


@pytest.mark.parametrize("kind", PIECES)
async def test_a_reply_that_breaks_off_is_counted_whatever_came_of_it(kind):
    model = Breaking(PIECES[kind], ConnectionFailed("gone"))
    result = await within(Agent(model, tools=Bank().tools, retries=0).run("go"))
    assert result.stop.reason == "model_error"
    assert result.usage.output_tokens >= 1000
    assert result.usage.estimated
    assert result.cost == model.cost(result.usage)


@pytest.mark.parametrize("piece", [ToolCallStarted("c", ""), TextDelta(""), ThinkingDelta("")])
async def test_of_a_reply_that_breaks_off_as_it_begins_the_request_is_counted(piece):
    model = Breaking([piece], LookupError("gone"))
    result = await within(Agent(model, tools=Bank().tools).run("go"))
    assert result.stop.reason == "model_error"
    assert result.usage.input_tokens > 0
    assert result.usage.estimated
    assert result.cost == model.cost(result.usage)


@pytest.mark.parametrize("kind", PIECES)
@pytest.mark.parametrize("limits", [Limits(tokens=3000), Limits(usd=0.3)])
async def test_a_limit_holds_over_replies_that_break_off(kind, limits):
    model = Breaking(PIECES[kind], ConnectionFailed("gone"))
    agent = Agent(model, tools=Bank().tools, retries=Retries(attempts=10, base=0.001), limits=limits)
    result = await within(agent.run("go"))
    assert result.stop.reason in ("max_tokens", "max_cost")
    assert model.calls < 4
    assert limits.tokens is None or result.usage.total_tokens <= limits.tokens
    assert limits.usd is None or result.cost <= limits.budget


@pytest.mark.parametrize("kind", PIECES)
async def test_what_came_before_a_deadline_is_counted(kind):
    result = await within(Agent(Breaking(PIECES[kind]), limits=Limits(seconds=0.1)).run("go"))
    assert result.stop.reason == "deadline"
    assert result.usage.output_tokens >= 1000


@pytest.mark.parametrize("kind", PIECES)
async def test_what_came_before_a_cancel_is_counted(kind):
    async with Agent(Breaking(PIECES[kind])).stream("go") as run:
        async for _ in run:
            if run.result.steps or isinstance(_, (TextDelta, ThinkingDelta, ToolCallDelta)):
                break
        await asyncio.sleep(0.01)
        await run.cancel()
    assert run.result.stop.reason == "cancelled"
    assert run.result.usage.output_tokens > 300


async def test_what_was_reported_of_a_reply_that_breaks_off_is_known():
    model = Breaking([UsageReported(Usage(700, 1, cache_read_tokens=600))], Overloaded("busy"))
    result = await within(Agent(model, retries=0).run("go"))
    assert result.usage == Usage(700, 1, cache_read_tokens=600)
    model = Breaking([UsageReported(Usage(700, 1)), TextDelta("ab")], Overloaded("busy"))
    assert (await within(Agent(model, retries=0).run("go"))).usage.input_tokens == 700


async def test_what_a_model_that_was_passed_over_reported_is_counted():
    first = Breaking([UsageReported(Usage(700, 1))], Overloaded("busy"))
    second = ScriptedModel(lambda request: "done", usage=Usage(10, 5))
    result = await within(Agent(FallbackModel([first, second])).run("go"))
    assert result.text == "done"
    assert result.usage == Usage(710, 6)


@pytest.mark.parametrize("usage", [None, {"input_tokens": 5}, Usage(-1, 0), Usage("5", 0)])
async def test_a_report_that_is_none_is_a_fault_of_the_model(usage):
    result = await within(Agent(Breaking([UsageReported(usage)], Overloaded("busy")), retries=0).run("go"))
    assert result.stop.reason == "model_error"
    assert "UsageReported" in result.stop.detail


async def test_watchers_are_not_shown_what_is_only_for_the_account():
    seen = []

    async def stream():
        yield UsageReported(Usage(5, 0))
        yield ModelReply("done", usage=Usage(5, 2))

    result = await within(Agent(ScriptedModel([stream()])).run("go", on_event=seen.append))
    assert result.usage == Usage(5, 2)
    assert not any(isinstance(event, UsageReported) for event in seen)


class Caching(ScriptedModel):
    """Everything that it is sent is written to its cache, at twice the price."""

    max_output_tokens = 100

    def cost(self, usage):
        return Price(10, 10, cache_write=20).of(usage)


async def test_what_may_be_written_to_a_cache_is_reserved_at_its_price():
    def turn(request):
        asked = sum(len(message.text) for message in request.messages) // 3
        return ModelReply(AssistantMessage((Text("done"),)), usage=Usage(asked, 10, cache_write_tokens=asked))

    question = "word " * 2000
    for cents in range(1, 16):
        result = await within(Agent(Caching(turn), limits=Limits(usd=cents / 100)).run(question))
        assert result.cost is None or result.cost <= result.limits.budget
    assert result.text == "done"


def pdf(pages, packed):
    """A PDF as far as its pages show: plainly, or in a packed part as most programs write them."""
    objects = b"".join(b"<< /Type /Page /Parent 2 0 R >>\n" for _ in range(pages))
    tree = b"<< /Type /Pages /Count %d >>" % pages
    if packed:
        objects, tree = b"stream\r\n" + zlib.compress(objects + tree) + b"\nendstream", b""
    return b"%PDF-1.7\n" + objects + tree + b"\n%%EOF"


def reckoned(file):
    return estimate_tokens(UserMessage((file,)))


@pytest.mark.parametrize("media_type", ["text/csv", "application/json", "text/plain"])
def test_a_file_is_reckoned_by_its_size(media_type):
    data = b"4711,2026-11-22,1234.56,-99.01\n" * 1000
    assert reckoned(File(data, media_type=media_type)) >= len(data) // 2
    assert reckoned(File(b"short", media_type=media_type)) < 2000


@pytest.mark.parametrize("packed", [False, True])
def test_a_pdf_is_reckoned_by_its_pages(packed):
    assert reckoned(File(pdf(40, packed))) > 40 * 3000
    assert reckoned(File(pdf(1, packed))) < 6000


@pytest.mark.parametrize("data", [b"", b"%PDF-", b"%PDF-1.4 stream\n\x78\x9c\xff", b"%PDF-1.7 stream\n"])
def test_what_is_hardly_a_pdf_is_reckoned_all_the_same(data):
    assert reckoned(File(data)) >= 10_000


def test_a_small_file_that_holds_a_huge_one_is_not_unpacked():
    bomb = b"%PDF-1.7 stream\n" + zlib.compress(b"0" * (1 << 28)) + b"\nendstream"
    assert reckoned(File(bomb)) >= 10_000


async def test_a_large_file_is_not_sent_under_a_small_limit():
    seen = []
    agent = Agent(ScriptedModel(lambda request: seen.append(request) or "done"), limits=Limits(tokens=20_000))
    result = await within(agent.run([Text("Sum it up."), File(b"4711;1234.56\n" * 10_000, media_type="text/csv")]))
    assert result.stop.reason == "max_tokens"
    assert not seen


@pytest.mark.parametrize("unknown", ["the run", "the run below", "none"])
async def test_a_sum_with_an_unknown_part_is_unknown(unknown):
    def model(turns, whose):
        return ScriptedModel(turns, usage=Usage(10, 5), price=None if whose == unknown else Price(1, 1))

    child = Agent(model(["yes"], "the run below"), name="expert")
    agent = Agent(model([[("expert", {"task": "a"})], "done"], "the run"), tools=[child.as_tool()])
    result = await within(agent.run("go"))
    assert result.usage == Usage(30, 15)
    assert result.cost == (None if unknown != "none" else Decimal("0.000045"))


async def test_a_reply_that_took_nothing_makes_no_sum_unknown():
    class Free(ScriptedModel):
        def cost(self, usage):
            return Price(1, 1).of(usage) if usage.total_tokens else None

    result = await within(
        Agent(Free([[("look", {"key": "a"})], "done"], usage=Usage(10, 5)), tools=[Bank().look]).run("go")
    )
    assert result.cost == Decimal("0.00003")


@pytest.mark.parametrize("limits", [Limits(tokens=150), Limits(usd=0.015)])
async def test_each_model_that_is_asked_in_place_of_another_must_fit_the_limit(limits):
    class Small(Breaking):
        max_output_tokens = 50

    models = [Small([UsageReported(Usage(60, 50))], ConnectionFailed("gone")) for _ in range(4)]
    result = await within(Agent(FallbackModel(models), limits=limits, retries=0).run("go"))
    assert result.stop.reason in ("max_tokens", "max_cost")
    assert [model.calls for model in models] == [1, 0, 0, 0]
    assert result.usage == Usage(60, 50)


async def test_a_retry_below_must_fit_the_limit_of_the_run_above():
    model = Breaking([UsageReported(Usage(10, 50))], ConnectionFailed("gone"))
    model.max_output_tokens = 50
    below = Agent(model, name="below", retries=Retries(attempts=20, base=0.001))
    above = ScriptedModel([[("below", {"task": "x"})] * 3, "done"], usage=Usage(10, 5))
    above.max_output_tokens = 50
    result = await within(Agent(above, tools=[below.as_tool()], limits=Limits(tokens=900)).run("go"))
    assert result.usage.total_tokens <= 900


HALF = '{"name": "pay", "arguments": {"amount": ' + "1" * 3000


@pytest.mark.parametrize("format", ["json", "tags"])
async def test_a_call_that_text_holds_back_is_counted(format):
    half = HALF if format == "json" else f"<tool_call>{HALF}"
    model = Breaking([TextDelta(half[at : at + 40]) for at in range(0, len(half), 40)], ConnectionFailed("gone"))
    agent = Agent(
        TextTools(model, format=format), tools=Bank().tools, retries=Retries(attempts=9, base=0.001),
        limits=Limits(tokens=6000),
    )  # fmt: skip
    result = await within(agent.run("go"))
    assert result.stop.reason == "max_tokens"
    assert result.usage.output_tokens >= 1000 * model.calls
    assert result.usage.total_tokens <= 6000


WHOLE = ModelReply(AssistantMessage((Text("done"),)), usage=Usage(60, 10))


async def test_a_whole_reply_is_not_taken_back():
    model = Breaking([WHOLE], ConnectionFailed("gone"))
    result = await within(Agent(model, retries=5).run("go"))
    assert (result.text, result.usage, model.calls) == ("done", Usage(60, 10), 1)


async def test_what_an_unsound_reply_reports_is_counted():
    unsound = ModelReply(AssistantMessage((Text("done"),)), usage=Usage(60, 10), finish="end_turn")
    result = await within(Agent(Breaking([unsound]), retries=0).run("go"))
    assert (result.stop.reason, result.usage) == ("model_error", Usage(60, 10))
    several = FallbackModel([Breaking([unsound]), Breaking([WHOLE])])
    result = await within(Agent(several).run("go"))
    assert (result.text, result.usage) == ("done", Usage(120, 20))


async def test_what_was_reported_before_a_reply_without_usage_is_known():
    reply = ModelReply(AssistantMessage((Text("done"),)))
    result = await within(Agent(Breaking([UsageReported(Usage(5000, 70)), reply])).run("go"))
    assert result.usage == Usage(5000, 70)


async def test_a_call_whose_result_a_person_is_asked_about_was_made():
    bank, conversation = Bank(), Conversation()
    agent = Agent(
        ScriptedModel([[("pay", {"amount": 5})], "done"]), tools=bank.tools,
        on_tool_result=lambda call, output: AskUser("Is it right?"),
    )  # fmt: skip
    waiting = await within(agent.run("go", conversation=conversation))
    assert waiting.stop.reason == "waiting"
    assert '"executed":true' in conversation.messages[-1].text


@pytest.mark.parametrize("prices", [(100, 1), (1, 100)])
@pytest.mark.parametrize("begun", [True, False])
async def test_a_reply_that_broke_off_is_charged_at_the_price_of_the_model_that_gave_it(begun, prices):
    class Priced(Breaking):
        def __init__(self, price, *pieces):
            super().__init__(pieces, ConnectionFailed("gone"))
            self.price = price

        def cost(self, usage):
            return Price(self.price, self.price).of(usage)

    pieces = [UsageReported(Usage(60, 5)), *([TextDelta("x")] if begun else [])]
    first, second = prices
    models = [Priced(first, UsageReported(Usage(70, 5))), Priced(second, *pieces)]
    result = await within(Agent(FallbackModel(models[::-1] if begun else models), retries=0).run("go"))
    assert result.stop.reason == "model_error"
    assert result.cost == Decimal(65 * second + (0 if begun else 75 * first)) / 1_000_000


async def test_what_nobody_reported_is_charged_as_if_it_had_been_written_to_a_cache():
    """An estimate is high in dollars too: nobody knows what of the request was written to the cache."""
    price = Price(10, 30, cache_read=1, cache_write=12.5)
    result = await within(Agent(ScriptedModel(["done"], price=price)).run("go"))
    assert result.usage.estimated
    assert result.cost == price.of(Usage(0, result.usage.output_tokens)) + price.of(
        Usage(result.usage.input_tokens, 0, cache_write_tokens=result.usage.input_tokens)
    )
    reported = ScriptedModel(["done"], price=price, usage=Usage(100, 10))
    assert (await within(Agent(reported).run("go"))).cost == price.of(Usage(100, 10))
