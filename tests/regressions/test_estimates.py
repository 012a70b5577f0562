"""What the next request is reckoned at is not too low, whoever counts it, by vocabularies that are not ours.

- CSV, JSON, UUIDs, URLs, base64 and tables: reckoned at 0.3 to 0.8 of what they are
  -> test_no_figures_take_a_run_above_its_limit
- files of text likewise -> test_a_file_of_figures_is_reckoned_as_figures
- what a provider adds for tools and schemas was not reckoned -> test_what_a_provider_adds_for_tools_is_reckoned,
  test_a_schema_that_is_sent_twice_is_reckoned_twice
- nor what TextTools writes into a request -> test_what_text_tools_write_is_reckoned
- nor the words about what remains -> test_the_words_about_what_remains_are_reckoned
- a learnt mean made half of the later reckonings low -> test_what_was_learnt_is_the_most_and_no_mean
- what one model counted is more for another -> test_another_model_may_count_more,
  test_a_model_chosen_for_a_step_may_count_more
- an estimate of a reply was longer than the reply may be -> test_a_reply_is_estimated_at_no_more_than_was_asked_for,
  test_thinking_is_no_part_of_the_length_that_was_asked_for_where_it_comes_on_top
"""

import json
from random import Random

import pytest
from play import within
from vocabulary import VOCABULARIES, count, most

from treadle import Agent, Limits, ModelSettings, StepSettings, Usage, tool
from treadle.kernel.events import StepPrepared
from treadle.kernel.messages import File, Text
from treadle.models import AnthropicModel, FallbackModel, ModelReply, OpenAIChatModel, Overloaded, TextTools
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def rows(kind):
    """A result of some hundred rows."""
    rnd = Random(7)
    match kind:
        case "CSV":
            return "\n".join(
                f"{rnd.randrange(10**6)},{rnd.random() * 1e6:.2f},2024-01-{n % 28 + 1:02}" for n in range(200)
            )
        case "JSON":
            return json.dumps([{"id": rnd.randrange(10**9), "amount": rnd.random() * 1e6} for _ in range(100)])
        case "UUIDs":
            return "\n".join(rnd.randbytes(16).hex("-", 4) for _ in range(150))
        case "URLs":
            return "\n".join(f"https://a.io/{rnd.randrange(10**9)}?q={rnd.randbytes(8).hex()}" for _ in range(100))
        case _:
            return "\n".join(f"| {n} | {rnd.random():.6f} | {rnd.random() * 1e9:,.2f} |" for n in range(150))


def described(tools, vocabulary):
    return count(json.dumps([[one.name, one.description, one.input_schema] for one in tools]), vocabulary)


def text_of(message):
    calls = "".join(call.name + call.arguments for call in getattr(message, "calls", ()))
    return message.text + calls


class Billing(ScriptedModel):
    """Replies that report what they took in a vocabulary, each message with some tokens around it."""

    max_output_tokens = 200

    def __init__(self, turns, vocabulary="voyage3", around=6, **more):
        super().__init__(turns, **more)
        self.vocabulary, self.around = vocabulary, around

    def asked(self, request):
        messages = sum(count(text_of(one), self.vocabulary) + self.around for one in request.messages)
        return messages + described(request.tools, self.vocabulary)

    async def stream(self, request):
        async for event in super().stream(request):
            if isinstance(event, ModelReply):
                usage = Usage(self.asked(request), 6 + count(text_of(event.message), self.vocabulary))
                event = ModelReply(event.message, usage, event.finish)
            yield event


@tool(effect="read")
async def fetch(kind: str, n: int) -> str:
    """Fetches some rows."""
    return rows(kind)


def reckoned(result):
    """What each request was reckoned at."""
    steps = [event for event in result.events if isinstance(event, StepPrepared)]
    return [step.reserve.tokens - step.reserve.reply for step in steps]


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("kind", ["CSV", "JSON", "UUIDs", "URLs", "tables"])
async def test_no_figures_take_a_run_above_its_limit(kind, vocabulary):
    turns = [[("fetch", {"kind": kind, "n": n})] for n in range(6)]
    for limit in (5_000, 15_000, 40_000):
        model = Billing([*turns, "done"], vocabulary)
        result = await within(Agent(model, tools=[fetch], limits=Limits(tokens=limit), on_limit="stop").run("go"))
        billed = [model.asked(request) for request in model.requests]
        assert result.usage.total_tokens <= limit
        assert all(most >= asked for most, asked in zip(reckoned(result), billed, strict=False))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
async def test_a_file_of_figures_is_reckoned_as_figures(encoding):
    text = "\n".join(["é", *[rows("CSV")] * 10])
    given = [Text("Sum it up."), File(text.encode(encoding), media_type="text/csv")]
    result = await within(Agent(Billing(["done"]), limits=Limits(tokens=10**6)).run(given))
    assert reckoned(result)[0] >= most(text)


@pytest.mark.parametrize(
    ("model", "added"),
    [
        (AnthropicModel("claude-sonnet-4-5", api_key="k", base_url="https://api.anthropic.com"), 530),
        (OpenAIChatModel("llama-4", api_key="k", base_url="https://api.groq.com/openai/v1"), 600),
    ],
)
async def test_what_a_provider_adds_for_tools_is_reckoned(model, added):
    assert model.fixed_tokens((fetch.spec,), None) >= described([fetch.spec], "voyage3") + added
    assert model.fixed_tokens((), None) < 100
    result = await within(Agent(model, tools=[fetch], limits=Limits(tokens=500)).run("go"))
    assert result.stop.reason == "max_tokens"
    assert result.usage.total_tokens == 0


async def test_a_schema_that_is_sent_twice_is_reckoned_twice():
    from pydantic import create_model

    answer = create_model("Answer", **{f"figure_{n}": (int, ...) for n in range(40)})
    model = Billing(['{"figure_0": 1}'])
    model.output_mode = lambda tools: "native"
    agent = Agent(model, output=answer, limits=Limits(tokens=50_000), retries=0)
    result = await within(agent.run("go"))
    [request, *_] = model.requests
    schema = most(json.dumps(request.output_schema, separators=(",", ":")))
    assert reckoned(result)[0] >= schema + sum(most(one.text) for one in request.messages)


@pytest.mark.parametrize("format", ["json", "react", "tags"])
async def test_what_text_tools_write_is_reckoned(format):
    def turn(request):
        if len(request.messages) > 8:
            return "That is all." if format != "react" else "Final Answer: That is all."
        call = {"name": "fetch", "arguments": {"kind": "ok", "n": len(request.messages)}}
        match format:
            case "json":
                return json.dumps(call)
            case "tags":
                return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
            case _:
                return f"Thought: I look.\nAction: fetch\nAction Input: {json.dumps(call['arguments'])}"

    inner = ScriptedModel(turn)
    result = await within(Agent(TextTools(inner, format), tools=[fetch], limits=Limits(tokens=200_000)).run("go"))
    sent = [sum(most(one.text) + 4 for one in request.messages) for request in inner.requests]
    assert len(sent) > 3
    assert all(asked >= real for asked, real in zip(reckoned(result), sent, strict=True))


async def test_the_words_about_what_remains_are_reckoned():
    model = Billing(["done"])
    limits = Limits(steps=10, tool_calls=10, seconds=1000, tokens=2000)
    plain = await within(Agent(Billing(["done"]), limits=limits).run("go"))
    result = await within(Agent(model, tell_remaining=True, limits=limits).run("go"))
    words = model.requests[0].messages[-1].text
    assert "What is left" in words
    assert reckoned(result)[0] >= reckoned(plain)[0] + most(words)


async def test_what_was_learnt_is_the_most_and_no_mean():
    """One result is three times what such a text is; the many after it are as always."""
    report, sizes = "plain words of a report " * 200, []

    class Counting(ScriptedModel):
        max_output_tokens = 100

        async def stream(self, request):
            results = [one.text for one in request.messages if one.text == report]
            weights = [3 if number == 1 else 1 for number in range(len(results))]
            sizes.append(100 + sum(weights) * len(report) // 4)
            async for event in super().stream(request):
                yield ModelReply(event.message, Usage(sizes[-1], 10)) if isinstance(event, ModelReply) else event

    @tool(effect="read")
    async def read(n: int) -> str:
        return report

    model = Counting([*[[("read", {"n": n})] for n in range(10)], "done"])
    result = await within(Agent(model, tools=[read], limits=Limits(tokens=10**7)).run("go"))
    asked = reckoned(result)
    assert min(after - before for before, after in zip(sizes[3:], asked[4:], strict=False)) > 2.5 * len(report) / 4
    assert asked[1] - sizes[0] < 2 * len(report) / 4


@pytest.mark.parametrize("fails", [2, 3])
async def test_another_model_may_count_more(fails):
    turns = [[("fetch", {"kind": "CSV", "n": n})] for n in range(4)]
    sparse = Billing(lambda request: Overloaded("busy") if request.step >= fails else turns[request.step], "o200k")
    dense = Billing(lambda request: "done" if request.step > fails else turns[request.step], "voyage3", around=12)
    agent = Agent(FallbackModel([sparse, dense]), tools=[fetch], limits=Limits(tokens=10**6), retries=0)
    result = await within(agent.run("go"))
    assert result.text == "done"
    first = dense.requests[0]
    assert dense.asked(first) > 1.3 * sparse.asked(first)
    assert reckoned(result)[fails] >= dense.asked(first)


async def test_a_model_chosen_for_a_step_may_count_more():
    turns = [[("fetch", {"kind": "CSV", "n": n})] for n in range(4)]
    sparse = Billing(lambda request: "done" if request.step == 4 else turns[request.step], "o200k")
    dense = Billing(lambda request: turns[request.step], "voyage3", around=12)

    def prepare(context):
        return StepSettings(model=dense) if context.step_number == 2 else None

    agent = Agent(sparse, tools=[fetch], prepare_step=prepare, limits=Limits(tokens=10**6))
    result = await within(agent.run("go"))
    asked = reckoned(result)
    assert asked[2] >= dense.asked(dense.requests[0])
    assert asked[3] >= sparse.asked(sparse.requests[2])
    # What the one model counted itself is exact.
    assert asked[1] < sparse.asked(sparse.requests[0]) + 1.6 * most(rows("CSV")) + 200


async def test_a_reply_is_estimated_at_no_more_than_was_asked_for():
    model = ScriptedModel(["1" * 1000])
    agent = Agent(model, limits=Limits(tokens=3000), settings=ModelSettings(max_tokens=400))
    result = await within(agent.run("go"))
    assert result.usage.output_tokens == 400
    assert result.usage.estimated


async def test_thinking_is_no_part_of_the_length_that_was_asked_for_where_it_comes_on_top():
    class Thinking(ScriptedModel):
        def longest_reply(self, settings):
            return settings.max_tokens + settings.thinking

    settings = ModelSettings(max_tokens=400, thinking=2000)
    result = await within(Agent(Thinking(["1" * 1000]), settings=settings).run("go"))
    assert result.usage.output_tokens >= 1000
