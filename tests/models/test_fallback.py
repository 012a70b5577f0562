"""FallbackModel: who is asked, who is passed over and for how long, what is raised, and what the journal says."""

import asyncio
from contextlib import aclosing
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Agent, Budget, Limits, Misuse, Price, Retries, Summarise, Usage, tool
from treadle.kernel.events import ContextEdited, ModelFailed, ModelReplied
from treadle.kernel.messages import AssistantMessage, Text, UserMessage
from treadle.models import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelReply,
    ModelRequest,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    RateLimited,
    TextDelta,
    UsageReported,
)
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.fallback import FallbackModel
from treadle.models.openai_model import OpenAIChatModel
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest([UserMessage("hello")])
SOON = Retries(attempts=4, base=0.001)


def says(text: str, name: str = "b", **options: Any) -> ScriptedModel:
    return ScriptedModel(lambda request: text, name=name, **options)


def fails(error: Exception, name: str = "a", **options: Any) -> ScriptedModel:
    return ScriptedModel(lambda request: error, name=name, **options)


def breaks(error: Exception, name: str = "a") -> ScriptedModel:
    """A model that says something and then fails, every time."""

    async def half():
        yield TextDelta("from a ")
        raise error

    return ScriptedModel(lambda request: half(), name=name)


async def ask(model: FallbackModel) -> ModelReply:
    events = [event async for event in model.stream(REQUEST)]
    assert isinstance(events[-1], ModelReply)
    return events[-1]


async def error_of(model: FallbackModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model)
    return caught.value


@pytest.mark.parametrize(
    "error",
    [RateLimited, Overloaded, ConnectionFailed, ModelTimeout, ProtocolError, AuthenticationFailed],
)
async def test_it_moves_on_from_the_models_own_trouble(error: type[ModelError]) -> None:
    reply = await ask(FallbackModel([fails(error("no")), says("hi")]))
    assert (reply.message.text, reply.model) == ("hi", "b")


@pytest.mark.parametrize("error", [BadRequest, ContentFiltered, ModelError])
async def test_it_does_not_move_on_from_what_would_fail_everywhere(error: type[ModelError]) -> None:
    last = says("hi")
    assert type(await error_of(FallbackModel([fails(error("no")), last]))) is error
    assert last.requests == []


async def test_on_says_which_errors_to_move_on_from() -> None:
    assert (await ask(FallbackModel([fails(BadRequest("no")), says("hi")], on=[BadRequest]))).model == "b"
    assert isinstance(
        await error_of(FallbackModel([fails(RateLimited("no")), says("hi")], on=[BadRequest])), RateLimited
    )


async def test_what_is_no_error_of_models_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        await ask(FallbackModel([fails(ZeroDivisionError()), says("hi")]))


async def test_a_model_that_failed_is_passed_over_until_it_has_cooled_down() -> None:
    bad, good = fails(Overloaded("no")), says("hi")
    model = FallbackModel([bad, good], cool_down=3600)
    for _ in range(3):
        await ask(model)
    assert (len(bad.requests), len(good.requests)) == (1, 3)
    model = FallbackModel([bad, good], cool_down=0.01)
    await ask(model)
    await asyncio.sleep(0.05)
    await ask(model)
    assert len(bad.requests) == 3


async def test_the_providers_word_on_how_long_to_wait_goes_before_the_cool_down() -> None:
    bad, good = fails(RateLimited("no", retry_after=0.01)), says("hi")
    model = FallbackModel([bad, good], cool_down=3600)
    await ask(model)
    await asyncio.sleep(0.05)
    await ask(model)
    assert len(bad.requests) == 2
    bad = fails(RateLimited("no", retry_after=3600))
    model = FallbackModel([bad, good], cool_down=0)
    await ask(model)
    await ask(model)
    assert len(bad.requests) == 1


async def test_when_the_others_fail_too_one_that_cools_down_is_asked_again() -> None:
    bad, good = ScriptedModel([Overloaded("no"), "back"], name="a"), ScriptedModel(["hi", Overloaded("no")], name="b")
    model = FallbackModel([bad, good], cool_down=3600)
    assert [(await ask(model)).model for _ in range(2)] == ["b", "a"]


async def test_nobody_who_was_told_to_wait_is_asked_before_that() -> None:
    one, two = fails(RateLimited("slow", retry_after=500), "a"), fails(Overloaded("full", retry_after=100), "b")
    model = FallbackModel([one, two])
    for _ in range(2):
        error = await error_of(model)
        assert type(error) is Overloaded
        assert 99 < (error.retry_after or 0) <= 100
        assert "a: slow" in str(error)
        assert "b: full" in str(error)
    assert (len(one.requests), len(two.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("errors", "kind", "retry_after"),
    [
        ([AuthenticationFailed("key"), RateLimited("wait", retry_after=9)], RateLimited, 9),
        ([RateLimited("wait", retry_after=9), AuthenticationFailed("key")], RateLimited, 9),
        ([RateLimited("wait", retry_after=9), ConnectionFailed("gone")], ConnectionFailed, None),
        ([AuthenticationFailed("one"), AuthenticationFailed("two")], AuthenticationFailed, None),
        ([RateLimited("wait", retry_after=9)], RateLimited, 9),
        ([ConnectionFailed("gone")], ConnectionFailed, None),
    ],
)
async def test_when_all_fail_the_most_useful_error_is_raised(errors: list, kind: type, retry_after: int | None) -> None:
    error = await error_of(FallbackModel([fails(error, f"m{i}") for i, error in enumerate(errors)]))
    assert type(error) is kind
    assert error.retryable == any(each.retryable for each in errors)
    assert (error.retry_after is None) == (retry_after is None)
    assert (retry_after or 0) - 1 <= (error.retry_after or 0) <= (retry_after or 0)
    assert all(f"m{i}: {each}" in str(error) for i, each in enumerate(errors))


async def test_an_error_with_a_shape_of_its_own_is_raised_as_the_kind_it_is_of() -> None:
    class Odd(Overloaded):
        def __init__(self, number: int, colour: str) -> None:
            super().__init__(f"{colour} {number}")

    error = await error_of(FallbackModel([fails(Odd(3, "red"), "a"), fails(AuthenticationFailed("key"), "b")]))
    assert type(error) is Overloaded
    assert "a: red 3" in str(error)


class Sized(ScriptedModel):
    """A scripted model with a context of a known size."""

    context_window: int | None

    def __init__(self, turn: Any, name: str, window: int | None) -> None:
        super().__init__(lambda request: turn, name=name)
        self.context_window = window


async def test_a_request_that_is_too_long_goes_to_a_model_with_a_larger_context_only() -> None:
    small, other, large = Sized(ContextOverflow("long"), "a", 8), Sized("hi", "b", 8), Sized("hi", "c", 9)
    unknown = Sized("hi", "d", None)
    model = FallbackModel([small, other, unknown, large])
    assert [(await ask(model)).model for _ in range(2)] == ["c", "c"]
    assert (len(small.requests), other.requests, unknown.requests) == (2, [], [])
    assert type(await error_of(FallbackModel([small, other]))) is ContextOverflow
    assert type(await error_of(FallbackModel([fails(ContextOverflow("long")), large]))) is ContextOverflow
    assert (await ask(FallbackModel([small, unknown], on=[ContextOverflow]))).model == "d"


async def test_a_stream_that_breaks_is_not_mixed_with_anothers_and_the_next_call_goes_to_the_next_model() -> None:
    bad, good = breaks(ConnectionFailed("gone")), says("from b")
    model = FallbackModel([bad, good])
    seen: list[Any] = []
    show = seen.append

    async def watch() -> None:
        async for event in model.stream(REQUEST):
            show(event)

    with pytest.raises(ConnectionFailed) as caught:
        await watch()
    assert seen == [TextDelta("from a ")]
    assert caught.value.retry_after == 0
    assert (await ask(model)).message.text == "from b"


async def test_a_run_withdraws_the_broken_reply_and_goes_on_at_once_with_the_next_model() -> None:
    bad = breaks(Overloaded("full", retry_after=3600))
    run = await Agent(FallbackModel([bad, says("from b")]), retries=SOON).run("go")
    assert run.text == "from b"
    failed = [event for event in run.events if isinstance(event, ModelFailed)]
    assert [(event.text, event.retry_in) for event in failed] == [("from a ", 0)]


async def test_a_stream_that_ends_without_a_reply_is_a_failure() -> None:
    async def nothing():
        for event in ():
            yield event

    empty = ScriptedModel(lambda request: nothing(), name="a")
    assert (await ask(FallbackModel([empty, says("hi")]))).model == "b"


async def test_the_stream_of_the_model_is_closed_with_its_own() -> None:
    closed = []

    class Endless:
        name = "endless"

        async def stream(self, request):
            try:
                while True:
                    yield TextDelta("and ")
            finally:
                closed.append(True)

    async with aclosing(FallbackModel([Endless()]).stream(REQUEST)) as events:
        async for _ in events:
            break
    assert closed == [True]


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def test_the_journal_says_which_model_answered_and_what_it_cost_there() -> None:
    usage = Usage(1_000_000, 1_000_000)
    first = ScriptedModel(
        [[("add", {"a": 1, "b": 2})], Overloaded("full")], name="dear", usage=usage, price=Price(10, 50)
    )
    second = ScriptedModel(["three"], name="cheap", usage=usage, price=Price(1, 2))
    run = await Agent(FallbackModel([first, second]), tools=[add]).run("1 + 2?")
    replies = [event for event in run.events if isinstance(event, ModelReplied)]
    assert [(event.model, event.cost) for event in replies] == [("dear", Decimal(60)), ("cheap", Decimal(3))]
    assert run.cost == 63


async def test_a_chain_in_a_chain_keeps_the_name_and_price_of_who_answered() -> None:
    usage = Usage(1_000_000, 0)
    inner = FallbackModel([fails(Overloaded("full"), price=Price(9, 9)), says("hi", usage=usage, price=Price(2, 2))])
    reply = await ask(FallbackModel([fails(Overloaded("full"), price=Price(7, 7)), inner]))
    assert (reply.model, reply.cost) == ("b", Decimal(2))


@given(
    st.lists(st.tuples(*[st.integers(0, 50)] * 2), min_size=1, max_size=4),
    st.integers(0, 10**6),
    st.integers(0, 10**5),
)
def test_the_worst_case_covers_each_model_and_grows_evenly_with_the_reply(prices: list, sent: int, out: int) -> None:
    models = [says("x", f"m{i}", price=Price(*price)) for i, price in enumerate(prices)]
    chain = FallbackModel(models)

    def worst(tokens: int) -> Decimal:
        found = chain.cost(Usage(sent, tokens))
        assert found is not None
        return found

    assert all(worst(out) >= (model.cost(Usage(sent, out)) or 0) for model in models)
    assert worst(2 * out) - worst(out) == worst(out) - worst(0)


async def test_a_budget_is_kept_whoever_answers() -> None:
    """The one is dear to ask and the other dear to answer: what is reserved must cover both."""

    def long_reply(request: ModelRequest) -> ModelReply:
        tokens = request.settings.max_tokens or 10**6
        return ModelReply(AssistantMessage((Text("x"),)), Usage(20, tokens), "length")

    ask_dear = fails(Overloaded("full"), price=Price(50, 1))
    answer_dear = ScriptedModel(long_reply, name="b", price=Price(1, 50))
    model = FallbackModel([ask_dear, answer_dear])
    run = await Agent(model, limits=Limits(usd=Decimal("0.01")), on_limit="stop").run("go")
    assert run.cost is not None
    assert 0 < run.cost <= Decimal("0.01")


def test_the_price_is_unknown_if_one_is_and_money_cannot_be_limited_then() -> None:
    model = FallbackModel([says("x", price=Price(1, 1)), says("y", name="free of price")])
    assert model.cost(Usage(1, 1)) is None
    with pytest.raises(Misuse, match="price of fallback"):
        Agent(model, limits=Limits(usd=1))


def test_what_is_known_of_the_chain_is_the_longest_reply_and_the_largest_request() -> None:
    a, b, c = says("x"), says("x"), says("x")
    vars(a).update(max_output_tokens=9, context_window=70)
    vars(b).update(max_output_tokens=5, context_window=50)
    chain = FallbackModel([a, b, c])
    assert (chain.max_output_tokens, chain.profile.context_window) == (None, 70)
    assert FallbackModel([a, b]).max_output_tokens == 9
    assert (FallbackModel([c]).max_output_tokens, FallbackModel([c]).profile.context_window) == (None, None)


async def test_each_failure_stands_in_the_journal() -> None:
    model = FallbackModel([fails(AuthenticationFailed("wrong key")), fails(Overloaded("busy"), "c"), says("hi")])
    run = await Agent(model).run("go")
    failed = [event for event in run.events if isinstance(event, ModelFailed)]
    assert [(event.model, event.error.kind, event.error.message, event.retry_in) for event in failed] == [
        ("a", "authentication_failed", "wrong key", 0.0),
        ("c", "overloaded", "busy", 0.0),
    ]
    assert (run.text, run.steps[0].model, run.steps[0].failures) == ("hi", "b", 2)


async def test_a_call_that_no_model_answers_is_recorded_as_the_chains_and_each_model_but_the_last_by_itself() -> None:
    model = FallbackModel([fails(BadRequest("no")), says("hi")], on=[BadRequest])
    inner = FallbackModel([fails(Overloaded("busy"), "x"), fails(Overloaded("full"), "y")])
    run = await Agent(FallbackModel([inner, model]), retries=0).run("go")
    failed = [event.model for event in run.events if isinstance(event, ModelFailed)]
    assert failed == ["x", "fallback(x, y)", "a"]
    run = await Agent(inner, retries=0).run("go")
    last = [event for event in run.events if isinstance(event, ModelFailed)][-1]
    assert (last.model, last.retry_in, run.stop.reason) == ("fallback(x, y)", None, "model_error")
    assert "x: busy; y: full" in last.error.message


@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        ([], {}, "takes a list of models"),
        ("anthropic:claude-sonnet-4-5", {}, "takes a list of models"),
        (["openai:gpt-5"], {}, "takes a list of models"),
        ([says("x")], {"on": [ValueError]}, "classes of treadle.models.ModelError"),
        ([says("x")], {"cool_down": -1}, "0 or more"),
        ([says("x")], {"cool_down": float("nan")}, "0 or more"),
    ],
)
def test_misuse_is_refused_at_once(models: Any, options: Any, words: str) -> None:
    with pytest.raises(Misuse, match=words):
        FallbackModel(models, **options)


async def test_over_the_wire_from_a_server_that_is_full_to_another_provider(serve) -> None:
    def full(peer) -> None:
        peer.answer("529 Overloaded", {"content-type": "application/json"}, b'{"error": {"message": "full"}}')

    def answer(peer) -> None:
        body = b'{"model": "m-2026", "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'
        peer.answer("200 OK", {"content-type": "application/json"}, body)

    first, second = serve(full), serve(answer)
    chain = FallbackModel(
        [
            AnthropicModel("claude-sonnet-4-5", base_url=first.url, api_key="test"),
            OpenAIChatModel("m", provider="local", base_url=second.url),
        ]
    )
    run = await Agent(chain).run("hello")
    assert run.text == "hi"
    assert [event.model for event in run.events if isinstance(event, ModelReplied)] == ["local:m"]
    assert (len(first.requests), len(second.requests)) == (1, 1)


@pytest.mark.parametrize("begun", [True, False], ids=["in the middle", "at once"])
async def test_an_error_that_is_raised_again_and_again_is_as_the_model_raised_it(begun: bool) -> None:
    """A constant of the model's own, say: what one run wrote on it, the next would read."""
    busy = Overloaded("busy")
    for _ in range(3):
        first = breaks(busy) if begun else fails(busy)
        result = await Agent(FallbackModel([first, says("hi")]), retries=SOON).run("hello")
        assert (result.text, len(first.requests)) == ("hi", 1)
        assert (busy.retry_after, busy.model, busy.usage) == (None, None, None)


async def test_a_request_that_turns_out_too_long_in_the_middle_of_a_reply_is_made_shorter() -> None:
    """It was taken for a fault of the protocol, and asked again as it was."""

    @tool(effect="read")
    def read_page(number: int) -> str:
        """Reads a page."""
        return "lorem ipsum " * 200

    async def too_long():
        yield TextDelta("I have ")
        raise ContextOverflow("prompt is too long")

    def reads(request: ModelRequest) -> Any:
        if sum(len(message.text) for message in request.messages) > 20_000:
            return too_long()
        return [("read_page", {"number": request.step})] if request.step < 12 else "I have read them all."

    small = ScriptedModel(reads, name="a")
    result = await Agent(FallbackModel([small, says("never")]), tools=[read_page], retries=SOON).run("Read the book.")
    assert result.text == "I have read them all."
    assert any(isinstance(event, ContextEdited) for event in result.events)
    assert {step.model for step in result.steps} == {"a"}


async def test_an_error_that_two_models_share_is_charged_to_each() -> None:
    busy = Overloaded("busy")

    def counts(name: str, price: Price) -> ScriptedModel:
        async def says_what_it_took():
            yield UsageReported(Usage(input_tokens=1_000_000), whole=True)
            raise busy

        return ScriptedModel(lambda request: says_what_it_took(), name=name, price=price)

    chain = FallbackModel([counts("a", Price(1, 1)), counts("b", Price(10, 10)), says("hi", "c", price=Price(0, 0))])
    agent = Agent(chain)
    result = await agent.run("hello")
    spending = await agent.spending(result)
    assert {share.name: share.cost for share in spending.by("model")} == {"a": 1, "b": 10, "c": 0}
    assert result.cost == 11


@pytest.mark.parametrize("usage", [None, Usage(60, estimated=True)], ids=["none", "estimated"])
async def test_a_reply_that_nobody_counted_costs_what_it_costs_at_the_model_that_gave_it(usage: Usage | None) -> None:
    """A server of one's own that tells no tokens was charged like the provider behind it."""
    free = says("hi", "free", usage=usage, price=Price(0, 0))
    dear = says("hello", "dear", price=Price(1000, 1000))
    dearer = says("hello", "dearer", price=Price(2000, 2000))
    for chain in (FallbackModel([free, dear]), FallbackModel([FallbackModel([free, dear]), dearer])):
        budget = Budget(usd=500)
        result = await Agent(chain, budget=budget).run("hello")
        assert (result.text, result.steps[0].model, result.cost) == ("hi", "free", 0)
        assert budget.spent().usd == 0


async def test_where_two_models_have_one_name_the_dearest_is_charged() -> None:
    free, dear = says("hi", "m", price=Price(0, 0)), says("hello", "m", price=Price(1000, 1000))
    result = await Agent(FallbackModel([free, dear])).run("hello")
    assert result.text == "hi"
    assert result.cost is not None
    assert result.cost > 0


async def test_a_summary_that_nobody_counted_costs_what_it_costs_at_the_model_that_gave_it() -> None:
    free, dear = says("All is well.", "free", price=Price(0, 0)), says("Well.", "dear", price=Price(1000, 1000))

    @tool(effect="read")
    def read_page(number: int) -> str:
        """Reads a page."""
        return "lorem ipsum " * 200

    def reads(request: ModelRequest) -> Any:
        return [("read_page", {"number": request.step})] if request.step < 8 else "I have read it."

    own = ScriptedModel(reads, price=Price(0, 0))
    policy = Summarise(FallbackModel([free, dear]), high=2000, low=800, max_tokens=50)
    result = await Agent(own, tools=[read_page], context=policy).run("Read the book.")
    assert free.requests
    assert (result.text, result.cost) == ("I have read it.", 0)


async def test_an_error_of_ones_own_class_stays_one() -> None:
    class Full(BadRequest):
        def __init__(self) -> None:
            super().__init__("no seat is left", status=409)
            self.seats = 0

    result = await Agent(FallbackModel([fails(Full()), says("hi")]), retries=0).run("hello")
    assert isinstance(result.error, Full)
    assert (result.error.seats, result.error.status, str(result.error)) == (0, 409, "no seat is left")
