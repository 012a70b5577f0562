"""Context policies in runs: what the model is sent, what is recorded, what a summary costs."""

import asyncio
from decimal import Decimal

import pytest
from histories import history, notices, tokens_of
from rules import valid
from scripted_runs import LIMITS, checked, edits, look, looks, refolded, run

from treadle import Agent, Conversation, Limits, MemoryJournal, Misuse, Price, Retries
from treadle.context.policies import ClearToolResults, Edit, KeepFirstAndRecent, ShortenResult, Summarise
from treadle.kernel.events import (
    ModelReplied,
)
from treadle.kernel.messages import ToolMessage, Usage, UserMessage
from treadle.models import FallbackModel, Overloaded, ThinkingDelta, UsageReported
from treadle.testing import ScriptedModel


@pytest.mark.parametrize(
    "policies",
    [
        KeepFirstAndRecent(6000, 3000),
        ClearToolResults(9000, 5000),
        [ShortenResult(100), ClearToolResults(5000, 2500), KeepFirstAndRecent(5000, 2500)],
        Summarise(ScriptedModel(lambda request: "what was seen"), 6000, 3000, max_tokens=200),
    ],
)
def test_a_long_run_stays_below_its_mark_and_is_answered(policies):
    model = ScriptedModel(looks(40, size=3000))
    agent = Agent(model, tools=[look], limits=LIMITS, context=policies, instructions="be brief")
    result = checked(model, run(agent))
    assert result.stop.reason == "answered"
    assert len(result.steps) == 41
    assert edits(result)
    assert max(tokens_of(list(request.messages)) for request in model.requests) < 10_000
    for request in model.requests:
        assert request.messages[0].text.startswith("be brief")
        assert request.messages[1].text == "the question"
    assert all(len(step.calls[0].result.text) > 1000 for step in result.steps[:-1])


def test_between_edits_each_request_begins_with_the_one_before():
    model = ScriptedModel(looks(50, size=3000))
    result = run(Agent(model, tools=[look], limits=LIMITS, context=ClearToolResults(20_000, 8000)))
    broken = sum(
        list(after.messages[: len(before.messages)]) != list(before.messages)
        for before, after in zip(model.requests, model.requests[1:], strict=False)
    )
    assert broken == len(edits(result))
    assert 1 <= broken <= 6


def test_shortening_breaks_no_prefix():
    model = ScriptedModel(looks(10, size=9000))
    result = run(Agent(model, tools=[look], limits=LIMITS, context=ShortenResult(500)))
    assert len(edits(result)) == 10
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert list(after.messages[: len(before.messages)]) == list(before.messages)
    assert all(len(event.messages) == 1 for event in edits(result))


@pytest.mark.parametrize("policy", [ShortenResult(200), ClearToolResults(2000, 200, keep=0)])
def test_the_whole_result_is_read_again_piece_by_piece(policy):
    async def big() -> str:
        """Get a lot."""
        return "".join(f"line {i}\n" for i in range(2000))

    read = []

    def turn(request):
        if request.step == 0:
            return [("big", {})]
        if request.step == 1:
            return [("look", {"n": 1})]
        if request.step > 2:
            read.append(request.messages[-1].text)
            offset = sum(len(page.split("\n[Characters")[0]) for page in read)
            if "This is its end" in read[-1]:
                return "read it all"
        else:
            offset = 0
        shown = next(one for one in request.messages if isinstance(one, ToolMessage)).text
        name = shown.replace('\\"', '"').split('call_id "')[1].split('"')[0]
        return [("read_result", {"call_id": name, "offset": offset})]

    model = ScriptedModel(turn)
    result = checked(model, run(Agent(model, tools=[big, look], limits=LIMITS, context=policy)))
    assert result.text == "read it all"
    assert "".join(page.split("\n[Characters")[0] for page in read) == asyncio.run(big())
    assert "read_result" in [spec.name for spec in model.requests[0].tools]


def test_read_result_of_what_is_not_there_says_what_is():
    model = ScriptedModel([[("look", {"n": 1})], [("read_result", {"call_id": "zz"})], "done"])
    result = run(Agent(model, tools=[look], context=ShortenResult(100)))
    error = result.steps[1].calls[0].result.text
    assert '"given":"zz"' in error
    assert "~" in error.split('"available":[')[1]


def test_an_edit_is_not_made_again_when_a_run_is_taken_up():
    journal = MemoryJournal()
    summaries = ScriptedModel(lambda request: "so far so good", name="small")
    policy = Summarise(summaries, 3500, 1500, max_tokens=100)
    model = ScriptedModel(looks(12))

    deaths = [10]

    def dies(context):
        if context.step_number in deaths:
            deaths.clear()
            raise RuntimeError("the process dies")

    agent = Agent(model, tools=[look], context=policy, journal=journal, prepare_step=dies, limits=LIMITS)
    with pytest.raises(RuntimeError):
        run(agent)
    made = len(summaries.requests)
    assert made == 1
    [info] = asyncio.run(journal.list())
    result = asyncio.run(agent.resume(info.run_id))
    assert result.stop.reason == "answered"
    assert len(edits(result)) == len(summaries.requests)
    first = next(one for one in model.requests if one.step == 10)
    assert any("so far so good" in one.text for one in first.messages if isinstance(one, UserMessage))
    refolded(result)


@pytest.mark.parametrize(
    "reply", [Overloaded("busy"), RuntimeError("a bug"), "", "long " * 4000], ids=["busy", "bug", "empty", "longer"]
)
def test_a_summary_model_that_fails_does_not_end_the_run(reply):
    small = ScriptedModel(lambda request: reply)
    model = ScriptedModel(looks(20))
    policy = Summarise(small, 3000, 1500, max_tokens=200)
    result = checked(model, run(Agent(model, tools=[look], limits=LIMITS, context=policy, retries=0)))
    assert result.stop.reason == "answered"
    assert small.requests
    assert all(event.detail.startswith("no summary: ") for event in edits(result))
    assert [found.summary for found in notices(model.requests[-1].messages)] == [False]


def test_a_summary_is_counted_in_usage_cost_and_limits():
    price = Price(input=Decimal(1), output=Decimal(1))
    small = ScriptedModel(lambda request: "seen", name="small", usage=Usage(700, 30), price=price)
    model = ScriptedModel(looks(12), usage=Usage(10, 5), price=price)
    policy = Summarise(small, 1, 0, max_tokens=16)
    result = run(Agent(model, tools=[look], limits=LIMITS, context=policy))
    made = edits(result)
    assert len(made) == len(small.requests) > 0
    assert {event.usage for event in made} == {Usage(700, 30)}
    assert result.usage.input_tokens == 13 * 10 + 700 * len(made)
    assert result.cost == 13 * price.of(Usage(10, 5)) + len(made) * price.of(Usage(700, 30))
    assert len(result.steps) == 13


@pytest.mark.parametrize("limits", [{"tokens": 30_000}, {"usd": Decimal("0.03")}])
def test_a_summary_that_the_limits_do_not_allow_is_not_asked_for(limits):
    price = Price(input=Decimal(1), output=Decimal(1))
    small = ScriptedModel(lambda request: "seen", price=price)
    model = ScriptedModel(looks(40), price=price)
    policy = Summarise(small, 3000, 1500, max_tokens=29_500)
    result = run(Agent(model, tools=[look], limits=Limits(steps=60, **limits), context=policy))
    assert not small.requests
    assert all("left of the run's limit" in event.detail for event in edits(result))
    assert result.usage.total_tokens <= 30_000


class Breaking:
    """A model of summaries whose replies break off after 300 tokens, or never come to an end."""

    name = "breaking"

    def __init__(self, hangs=False, reported=None):
        self.calls, self.hangs, self.reported = 0, hangs, reported

    def cost(self, usage):
        return Price(1, 1).of(usage)

    async def stream(self, request):
        self.calls += 1
        yield ThinkingDelta("let me see " * 100) if self.reported is None else UsageReported(self.reported)
        if self.hangs:
            await asyncio.sleep(60)
        raise Overloaded("busy")


def test_attempts_at_a_summary_that_fail_are_counted():
    small, model = Breaking(), ScriptedModel(looks(12), usage=Usage(10, 5), price=Price(1, 1))
    policy = Summarise(small, 1, 0, max_tokens=400)
    retries = Retries(attempts=3, base=0.001)
    result = run(Agent(model, tools=[look], limits=LIMITS, context=policy, retries=retries))
    assert result.stop.reason == "answered"
    assert small.calls > 0
    assert small.calls % 3 == 0
    assert result.usage.output_tokens >= 13 * 5 + small.calls * 300
    assert sum(event.usage.output_tokens for event in edits(result)) >= small.calls * 300
    assert result.cost == Price(1, 1).of(result.usage)
    refolded(result)


def test_a_bill_for_a_summary_with_an_unknown_part_is_unknown():
    class Unpriced(Breaking):
        cost = None

    small = ScriptedModel(lambda request: "seen", usage=Usage(700, 30), price=Price(1, 1))
    policy = Summarise(FallbackModel([Unpriced(reported=Usage(90, 9)), small]), 1, 0, max_tokens=400)
    model = ScriptedModel(looks(12), usage=Usage(10, 5), price=Price(1, 1))
    result = run(Agent(model, tools=[look], limits=LIMITS, context=policy))
    first = edits(result)[0]
    assert (first.usage, first.cost) == (Usage(790, 39), None)
    assert result.cost is None


@pytest.mark.parametrize("limits", [{"tokens": 12_000}, {"usd": Decimal("0.012")}])
def test_attempts_at_a_summary_keep_the_limits(limits):
    small, model = Breaking(), ScriptedModel(looks(40), usage=Usage(10, 5), price=Price(1, 1))
    model.max_output_tokens = 100
    policy = Summarise(small, 1, 0, max_tokens=400)
    retries = Retries(attempts=50, base=0.0001)
    result = run(Agent(model, tools=[look], limits=Limits(steps=60, **limits), context=policy, retries=retries))
    assert small.calls
    assert result.usage.total_tokens <= 12_000


def test_what_a_summary_took_before_the_deadline_is_counted():
    small, model = Breaking(hangs=True), ScriptedModel(looks(40), usage=Usage(10, 5))
    policy = Summarise(small, 1, 0, max_tokens=400)
    result = run(Agent(model, tools=[look], limits=Limits(steps=60, seconds=0.5), context=policy))
    assert result.stop.reason == "deadline"
    assert edits(result)[-1].usage.output_tokens >= 300
    refolded(result)


def test_the_summary_is_asked_for_what_goes_and_stands_in_its_place():
    small = ScriptedModel(lambda request: f"summary {len(small.requests)}")
    model = ScriptedModel(looks(30))
    run(Agent(model, tools=[look], limits=LIMITS, context=Summarise(small, 4000, 2000, max_tokens=200)))
    first, second = small.requests[:2]
    assert "ASSISTANT calls look with" in first.messages[1].text
    assert "TOOL look: saw 0" in first.messages[1].text
    assert "the question" not in first.messages[1].text
    assert not first.tools
    assert "summary 1" in second.messages[1].text
    summaries = [one.text for one in notices(model.requests[-1].messages)]
    assert len(summaries) == 1
    assert summaries[0].endswith(f"summary {len(small.requests)}")


def test_what_was_said_to_the_run_stays():
    said_it = asyncio.Event()

    async def turn(request):
        if request.step == 3:
            await said_it.wait()
        return looks(25)(request)

    model = ScriptedModel(turn)

    async def steered():
        agent = Agent(model, tools=[look], limits=LIMITS, context=KeepFirstAndRecent(2500, 800))
        said = Conversation(history(3)[1:])
        async with agent.stream("the real question", conversation=said) as live:
            async for event in live:
                if isinstance(event, ModelReplied) and event.step == 2:
                    await live.send("only in euros")
                    said_it.set()
            return live.result

    result = checked(model, asyncio.run(steered()))
    assert edits(result)
    texts = [one.text for one in model.requests[-1].messages]
    assert {"the question", "the real question", "only in euros"} <= set(texts)


def test_a_conversation_goes_on_from_what_was_left_of_it():
    model = ScriptedModel(lambda request: "again" if isinstance(request.messages[-1], UserMessage) else "done")
    said = Conversation(history(30)[1:])
    agent = Agent(model, tools=[look], context=KeepFirstAndRecent(2000, 1000))
    first = run(agent, "one", conversation=said)
    assert edits(first)
    valid(said.messages)
    second = run(agent, "two", conversation=said)
    assert not edits(second)
    assert notices(said.messages) == [said.messages[1]]


def test_the_default_acts_at_a_share_of_a_window_that_is_known():
    class Windowed(ScriptedModel):
        context_window = 5000

    model = Windowed(looks(30))
    result = checked(model, run(Agent(model, tools=[look], limits=LIMITS)))
    assert {event.policy for event in edits(result)} <= {"ClearToolResults", "KeepFirstAndRecent"}
    assert edits(result)
    assert all(event.before >= 4000 and event.after <= 2500 for event in edits(result)[:1])
    assert [spec.name for spec in model.requests[0].tools] == ["look"]


class Halves:
    """A policy of somebody's own, which does not take care of what belongs together."""

    def edit(self, messages, tokens, facts):
        return Edit([*messages[:2], *messages[len(messages) // 2 :]], tokens, tokens // 2) if tokens > 2000 else None


def test_a_policy_of_ones_own_is_completed_to_what_every_provider_takes():
    model = ScriptedModel(looks(20))
    result = checked(model, run(Agent(model, tools=[look], limits=LIMITS, context=Halves(), instructions="brief")))
    assert result.stop.reason == "answered"
    assert {event.policy for event in edits(result)} == {"Halves"}


class Loses:
    """A policy that takes the instructions away."""

    def edit(self, messages, tokens, facts):
        return Edit(messages[1:], tokens, 1)


def test_a_policy_that_takes_the_instructions_away_is_refused():
    agent = Agent(ScriptedModel(["hi"]), context=Loses(), instructions="be brief")
    with pytest.raises(Misuse, match=r"Loses made of the messages cannot be sent: .*system message"):
        run(agent)


@pytest.mark.parametrize("context", ["trim", KeepFirstAndRecent, [3], KeepFirstAndRecent(), 7])
def test_what_is_no_policy_or_cannot_be_measured_is_refused_at_once(context):
    with pytest.raises(Misuse, match=r"context takes a policy|shares of the context window"):
        Agent(ScriptedModel([]), context=context)


def test_the_name_of_a_summary_model_is_looked_up_at_once():
    with pytest.raises(Misuse):
        Agent(ScriptedModel([]), context=Summarise("no-such-provider:x", 100, 50))
    agent = Agent(ScriptedModel([]), context=Summarise("offline", 100, 50))
    assert agent._config.context[0].model.name == "offline"


def test_a_shortened_result_is_found_whole_after_a_refold():
    async def parts() -> str:
        """Get parts."""
        return "p" * 5000

    model = ScriptedModel([[("parts", {})], "done"])
    result = run(Agent(model, tools=[parts], context=ShortenResult(100)))
    state = refolded(result)
    [shortened] = [one for one in state.messages if isinstance(one, ToolMessage)]
    assert shortened.call_id == "call_0_0"
    assert len(shortened.text) < 1000
    assert shortened.whole == "p" * 5000


class Same:
    """A policy that changes nothing, and says that it did."""

    def edit(self, messages, tokens, facts):
        return Edit(list(messages), tokens, tokens)


def test_an_edit_that_changes_nothing_is_not_recorded():
    result = run(Agent(ScriptedModel(looks(3)), tools=[look], context=Same()))
    assert not edits(result)


def test_a_summary_is_not_paid_for_in_each_step_where_the_low_mark_cannot_be_reached():
    """The question alone is above the high mark: a summary is asked for when there is enough to save, not always."""
    small = ScriptedModel(lambda request: "seen")
    policy = Summarise(small, 3000, 1000, max_tokens=50)
    result = run(Agent(ScriptedModel(looks(40, size=50)), tools=[look], limits=LIMITS, context=policy), "why? " * 3000)
    assert result.stop.reason == "answered"
    assert 1 <= len(small.requests) <= 4
