"""Spans: what is said of runs, by the conventions; the same live and sent afterwards, whatever a run goes through."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from treadle import (
    Agent,
    Conversation,
    KeepFirstAndRecent,
    Limits,
    MemoryJournal,
    ModelSettings,
    Retries,
    Retry,
    Summarise,
    ToolError,
    Usage,
    ask_before,
    external_tool,
    handoff,
    tool,
)
from treadle.journal import family
from treadle.kernel.events import ToolStarted
from treadle.models.errors import Overloaded
from treadle.telemetry import send
from treadle.telemetry.attributes import of_model
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
async def look(what: str) -> str:
    """Looks at something closely."""
    return f"seen {what}"


@tool(effect="read")
async def stumble(what: str) -> str:
    """Stumbles over something every time."""
    raise ValueError(f"the secret {what}")


@tool(effect="read")
async def refuse(what: str) -> str:
    """Refuses to do anything at all."""
    raise ToolError("no")


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays an amount of money."""
    return f"paid {amount}"


LOOK = ("look", {"what": "tea"})


def ids(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def above(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def said(span: ReadableSpan) -> tuple[Any, ...]:
    """All that is said of a span, for comparison."""
    links = [(link.context.trace_id, link.context.span_id) for link in span.links]
    status = (span.status.status_code, span.status.description)
    times = (span.start_time, span.end_time)
    return (span.name, span.kind, ids(span), above(span), times, dict(span.attributes or {}), links, status)


async def sent(journal: MemoryJournal, run_ids: Any = None, **options: Any) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    await send(journal, run_ids, exporter=exporter, **options)
    return list(exporter.get_finished_spans())


async def test_a_run_is_an_agent_with_models_and_tools_below_it(received: Any) -> None:
    one = received()
    usage = Usage(100, 20, cache_read_tokens=60, cache_write_tokens=10, reasoning_tokens=5)
    model = ScriptedModel([[LOOK], "Tea."], usage=usage, name="anthropic:claude-x")
    settings = ModelSettings(max_tokens=500, temperature=0.5, stop=("END",))
    agent = Agent(model, tools=[look], name="shop", telemetry=one.telemetry, settings=settings)
    result = await agent.run("Is there tea?", conversation=Conversation(name="talk-1"))
    chat, executed, last, leg = one.spans
    assert [chat.name, executed.name, last.name, leg.name] == [
        "chat claude-x", "execute_tool look", "chat claude-x", "invoke_agent shop",
    ]  # fmt: skip
    assert [above(span) for span in (chat, executed, last, leg)] == [ids(leg)[1]] * 3 + [None]
    assert len({ids(span)[0] for span in one.spans}) == 1
    assert (chat.kind, executed.kind, leg.kind) == (SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.INTERNAL)
    assert dict(chat.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-x",
        "gen_ai.request.max_tokens": 500,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.response.model": "claude-x",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 10,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "gen_ai.conversation.id": "talk-1",
        "treadle.run.id": result.run_id,
        "treadle.step": 0,
    }
    assert executed.attributes["gen_ai.tool.name"] == "look"
    assert executed.attributes["gen_ai.tool.call.id"] == "call_0_0"
    assert leg.attributes["gen_ai.agent.name"] == "shop"
    assert leg.attributes["gen_ai.usage.input_tokens"] == 200
    assert leg.attributes["treadle.stop.reason"] == "answered"
    assert chat.start_time < chat.end_time <= executed.end_time <= leg.end_time


async def test_tokens_that_nobody_counted_are_not_told_as_if_somebody_had(received: Any) -> None:
    one = received()
    await Agent(ScriptedModel(["Tea."]), telemetry=one.telemetry).run("Is there tea?")
    assert not [name for span in one.spans for name in span.attributes if name.startswith("gen_ai.usage")]
    assert "gen_ai.client.token.usage" not in one.counted


async def test_errors_have_their_types_and_no_words(received: Any) -> None:
    one = received()
    calls = [("stumble", {"what": "sk-1"}), ("refuse", {"what": "sk-2"}), ("look", {"wrong": 1}), ("nothing", {})]
    model = ScriptedModel([calls, Overloaded("the key sk-3 is busy", status=529), "Done."])
    agent = Agent(model, tools=[look, stumble, refuse], telemetry=one.telemetry, retries=Retries(base=0.001))
    await agent.run("Go.")
    failed = {span.name: span for span in one.spans if not span.status.is_ok}
    assert failed["execute_tool stumble"].attributes["error.type"] == "ValueError"
    assert failed["execute_tool refuse"].attributes["error.type"] == "tool_error"
    assert failed["chat scripted"].attributes["error.type"] == "overloaded"
    assert failed["chat scripted"].attributes["http.response.status_code"] == 529
    # What was refused was not executed.
    assert {span.name for span in one.spans} == {*failed, "chat scripted", "invoke_agent agent"}
    assert "sk-" not in repr([said(span) for span in one.spans])


async def test_a_run_that_failed_is_an_error(received: Any) -> None:
    one = received()
    model = ScriptedModel([Overloaded("busy")])
    await Agent(model, telemetry=one.telemetry, retries=0).run("Go.")
    assert one.named("invoke_agent agent").attributes["error.type"] == "model_error"


async def test_a_run_that_a_limit_stopped_is_none(received: Any) -> None:
    one = received()
    model = ScriptedModel(lambda request: "so far" if request.tool_choice == "none" else [LOOK])
    await Agent(model, tools=[look], limits=Limits(steps=2), telemetry=one.telemetry).run("Go.")
    leg = one.named("invoke_agent agent")
    assert (leg.status.is_ok, leg.attributes["treadle.stop.reason"]) == (True, "max_steps")


async def test_content_stays_here_unless_it_is_asked_for(received: Any) -> None:
    one = received()
    agent = Agent(
        ScriptedModel([("private thought", [LOOK]), "private answer"]),
        instructions="private instructions", tools=[look], telemetry=one.telemetry,
    )  # fmt: skip
    await agent.run("private question")
    text = repr([said(span) for span in one.spans])
    assert not [word for word in ("private", "tea") if word in text]


async def test_content_has_the_form_of_the_conventions(received: Any) -> None:
    one = received(content=True)
    agent = Agent(
        ScriptedModel([("I look.", [LOOK]), "There is."]),
        instructions="Be brief.",
        tools=[look],
        telemetry=one.telemetry,
    )
    await agent.run("Is there tea?")
    first, executed, last, leg = one.spans
    instructions = json.loads(first.attributes["gen_ai.system_instructions"])
    assert instructions == [{"type": "text", "content": "Be brief."}]
    call = {"type": "tool_call", "id": "call_0_0", "name": "look", "arguments": {"what": "tea"}}
    question = {"role": "user", "parts": [{"type": "text", "content": "Is there tea?"}]}
    reply = {"role": "assistant", "parts": [{"type": "text", "content": "I look."}, call]}
    assert json.loads(first.attributes["gen_ai.input.messages"]) == [question]
    assert json.loads(first.attributes["gen_ai.output.messages"]) == [{**reply, "finish_reason": "tool_calls"}]
    response = {"type": "tool_call_response", "id": "call_0_0", "response": "seen tea"}
    seen = json.loads(last.attributes["gen_ai.input.messages"])
    assert seen == [question, reply, {"role": "tool", "parts": [response]}]
    assert executed.attributes["gen_ai.tool.call.arguments"] == '{"what":"tea"}'
    assert executed.attributes["gen_ai.tool.call.result"] == "seen tea"
    assert json.loads(leg.attributes["gen_ai.input.messages"]) == [question]
    assert json.loads(leg.attributes["gen_ai.output.messages"])[0]["parts"][0]["content"] == "There is."


@pytest.mark.parametrize("of", ["journal", "telemetry"])
async def test_what_is_redacted_does_not_leave(received: Any, of: str) -> None:
    def without(text: str) -> str:
        return text.replace("tea", "***")

    one = received(content=True, redact=without if of == "telemetry" else None)
    journal = MemoryJournal(redact=without) if of == "journal" else MemoryJournal()
    model = ScriptedModel([("tea?", [LOOK]), Overloaded("no tea"), "tea!"])
    agent = Agent(
        model, instructions="tea", tools=[look], journal=journal, telemetry=one.telemetry, retries=Retries(base=0.001)
    )
    await agent.run("tea")
    text = repr([said(span) for span in one.spans])
    assert "***" in text
    assert "tea" not in text


async def test_a_redaction_that_raises_lets_nothing_out(received: Any, caplog: pytest.LogCaptureFixture) -> None:
    def broken(text: str) -> str:
        raise RuntimeError("cannot")

    one = received(content=True, redact=broken)
    result = await Agent(ScriptedModel(["tea"]), telemetry=one.telemetry).run("tea")
    assert result.text == "tea"
    assert one.spans == []
    assert "was not traced" in caplog.text


async def test_three_days_are_one_trace(received: Any) -> None:
    journal, spans = MemoryJournal(), list[ReadableSpan]()

    def pays(request: Any) -> Any:
        paid = sum(message.role == "tool" for message in request.messages)
        return [("pay", {"amount": paid})] if paid < 2 else "Paid."

    result: Any = None
    for _ in range(3):
        # Each day in a process of its own, which knows of the others by the journal alone.
        one = received()
        agent = Agent(ScriptedModel(pays), tools=[pay], journal=journal, telemetry=one.telemetry)
        again = None if result is None else agent.resume(result.run_id, approve=result.pending)
        result = await (agent.run("Pay twice.") if again is None else again)
        spans += one.spans
    legs = [span for span in spans if span.name == "invoke_agent agent"]
    assert [leg.attributes["treadle.stop.reason"] for leg in legs] == ["waiting", "waiting", "answered"]
    assert len({ids(span)[0] for span in spans}) == 1
    assert len({ids(span)[1] for span in spans}) == len(spans)
    assert [[link.context.span_id for link in leg.links] for leg in legs] == [[], [ids(legs[0])[1]], [ids(legs[0])[1]]]


async def test_agents_below_are_nested(received: Any) -> None:
    one = received()
    below = Agent(ScriptedModel([[LOOK], "Seen."]), name="below", tools=[look])
    model = ScriptedModel([[("below", {"task": "Look."})], "Done."])
    await Agent(model, name="top", tools=[below.as_tool()], telemetry=one.telemetry).run("Go.")
    call, leg = one.named("execute_tool below"), one.named("invoke_agent below")
    assert above(call) == ids(one.named("invoke_agent top"))[1]
    assert above(leg) == ids(call)[1]
    assert above(one.named("execute_tool look")) == ids(leg)[1]
    assert len({ids(span)[0] for span in one.spans}) == 1


async def test_the_applications_own_span_is_linked(received: Any) -> None:
    one = received()
    with one.tracers.get_tracer("app").start_as_current_span("request") as request:
        await Agent(ScriptedModel(["Tea."]), telemetry=one.telemetry).run("Is there tea?")
    (link,) = one.named("invoke_agent agent").links
    assert (link.context.span_id, dict(link.attributes)) == (
        request.get_span_context().span_id, {"treadle.link": "caller"},
    )  # fmt: skip


async def _plain(agent: Callable[..., Agent]) -> None:
    await agent([[LOOK], "Done."], tools=[look]).run("Go.")


async def _together(agent: Callable[..., Agent]) -> None:
    await agent([[LOOK, ("stumble", {"what": "x"}), ("nothing", {})], "Done."], tools=[look, stumble]).run("Go.")


async def _approved(agent: Callable[..., Agent]) -> None:
    waiting = await agent([[("pay", {"amount": 1}), LOOK]], tools=[pay, look]).run("Go.")
    await agent(["Done."], tools=[pay, look]).resume(waiting.run_id, approve=waiting.pending)


async def _denied(agent: Callable[..., Agent]) -> None:
    waiting = await agent([[("pay", {"amount": 1})]], tools=[pay]).run("Go.")
    await agent(["Done."], tools=[pay]).resume(waiting.run_id, deny=waiting.pending)


async def _outside(agent: Callable[..., Agent]) -> None:
    boss = external_tool("boss", "Asks the boss.", {"type": "object", "properties": {}}, wait=True)
    waiting = await agent([[("boss", {})]], tools=[boss]).run("Go.")
    await agent(["Done."], tools=[boss]).resume(waiting.run_id, results={waiting.pending[0].call_id: "yes"})


async def _below(agent: Callable[..., Agent]) -> None:
    below = Agent(ScriptedModel([[("pay", {"amount": 1})], "Paid."]), tools=[pay], name="below")
    waiting = await agent([[("below", {"task": "x"}), LOOK]], tools=[below.as_tool(), look]).run("Go.")
    await agent(["Done."], tools=[below.as_tool(), look]).resume(waiting.run_id, approve=waiting.pending)


async def _handed_on(agent: Callable[..., Agent]) -> None:
    second = Agent(ScriptedModel([[LOOK], "Done."]), tools=[look], name="second")
    await agent([[("transfer_to_second", {"reason": "x"})]], tools=[handoff(second)]).run("Go.")


async def _forked(agent: Callable[..., Agent]) -> None:
    one = agent([[LOOK], "Done.", "Done otherwise.", "And again."], tools=[look])
    result = await one.run("Go.")
    fork = await one.fork(result.run_id, at=1)
    await one.fork(fork.run_id, at=1, message="Again.")


async def _retried(agent: Callable[..., Agent]) -> None:
    script = [Overloaded("busy"), Overloaded("busy"), "Done."]
    await agent(script, retries=Retries(base=0.001, attempts=3)).run("Go.")


async def _summarised(agent: Callable[..., Agent]) -> None:
    summary = Summarise(ScriptedModel(lambda _: "short", usage=Usage(50, 5)), high=300, low=100, max_tokens=20)
    steps = [("words " * 100, [("look", {"what": str(n)})]) for n in range(6)]
    await agent([*steps, "Done."], tools=[look], context=[summary, KeepFirstAndRecent(high=2000, low=300)]).run("Go.")


async def _reacted(agent: Callable[..., Agent]) -> None:
    asked = []

    def again(call: Any, result: Any) -> Any:
        asked.append(call)
        return Retry() if len(asked) == 1 else None

    await agent([[LOOK], "Done."], tools=[look], on_tool_result=again).run("Go.")


async def _cancelled(agent: Callable[..., Agent]) -> None:
    begun = asyncio.Event()

    @tool(effect="read")
    async def wait() -> str:
        """Waits until it is told to stop."""
        begun.set()
        await asyncio.sleep(60)
        return ""

    async with agent([[("wait", {})]], tools=[wait]).stream("Go.") as run:
        await begun.wait()
        await run.cancel()


async def _ended_and_gone_on(agent: Callable[..., Agent]) -> None:
    result = await agent([[LOOK], "So far."], tools=[look], limits=Limits(steps=1), on_limit="stop").run("Go.")
    await agent(["Done."], tools=[look]).resume(result.run_id, limits=Limits(steps=5))


async def _paused(agent: Callable[..., Agent]) -> None:
    one = agent([[LOOK], [LOOK], "Done."], tools=[look])
    async with one.stream("Go.") as run:
        result = await run.pause()
    await one.resume(result.run_id, message="Go on.")


SCENARIOS = [
    _plain, _together, _approved, _denied, _outside, _below, _handed_on, _forked, _retried, _summarised, _reacted,
    _cancelled, _ended_and_gone_on, _paused,
]  # fmt: skip


@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_a_run_that_is_sent_afterwards_is_the_same(received: Any, scenario: Any, content: bool) -> None:
    journal, one = MemoryJournal(), received(content=content)

    def agent(script: Any, **options: Any) -> Agent:
        model = ScriptedModel(script, usage=Usage(10, 2), name="openai:gpt-x")
        return Agent(model, journal=journal, telemetry=one.telemetry, name="top", **options)

    await scenario(agent)
    live = {ids(span): said(span) for span in one.spans}
    assert len(live) == len(one.spans)
    again = await sent(journal, content=content)
    assert {ids(span): said(span) for span in again} == live
    assert len(again) == len(live)
    legs = {ids(span)[1] for span in one.spans if span.name.startswith("invoke_agent")}
    calls = {ids(span)[1] for span in one.spans if span.name.startswith("execute_tool")}
    for span in one.spans:
        below = span.name.startswith("invoke_agent")
        assert (above(span) in calls or above(span) is None) if below else above(span) in legs
        assert span.start_time <= span.end_time


async def test_sending_twice_makes_nothing_new(received: Any) -> None:
    journal = MemoryJournal()
    result = await Agent(ScriptedModel([[LOOK], "Done."]), tools=[look], journal=journal).run("Go.")
    once, twice = await sent(journal, [result.run_id]), await sent(journal, [result.run_id, result.run_id])
    assert [said(span) for span in once] == [said(span) for span in twice]


async def test_a_process_that_died_is_told_of_by_the_one_that_goes_on(received: Any) -> None:
    whole = (await Agent(ScriptedModel([[LOOK], "Done."]), tools=[look]).run("Go.")).events
    died_at = next(n for n, event in enumerate(whole) if isinstance(event, ToolStarted)) + 1
    journal, one = MemoryJournal(), received()
    await journal.append(whole[0].run_id, 0, whole[:died_at])
    agent = Agent(ScriptedModel(["Done."]), tools=[look], journal=journal, telemetry=one.telemetry)
    await agent.resume(whole[0].run_id)
    died, ended = [span for span in one.spans if span.name == "invoke_agent agent"]
    assert (died.attributes["error.type"], ended.status.is_ok) == ("interrupted", True)
    again = {ids(span): said(span) for span in await sent(journal)}
    assert all(again[ids(span)] == said(span) for span in one.spans)


async def test_a_run_that_is_under_way_is_sent_as_far_as_it_is(received: Any) -> None:
    whole = (await Agent(ScriptedModel([[LOOK], "Done."]), tools=[look]).run("Go.")).events
    journal, exporter = MemoryJournal(), InMemorySpanExporter()
    await journal.append(whole[0].run_id, 0, whole[:-1])
    told = await send(journal, exporter=exporter)
    assert told.under_way == (whole[0].run_id,)
    assert "invoke_agent agent" not in {span.name for span in exporter.get_finished_spans()}


async def test_a_fork_sends_its_own_spans_alone(received: Any) -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([[LOOK], "Done.", "Otherwise."]), tools=[look], journal=journal)
    result = await agent.run("Go.")
    fork = await agent.fork(result.run_id, at=1)
    spans = await sent(journal, [fork.run_id])
    assert [span.name for span in spans] == ["chat scripted", "invoke_agent agent"]
    (link,) = spans[1].links
    (first,) = [span for span in await sent(journal, [result.run_id]) if span.name.startswith("invoke")]
    assert (link.context.trace_id, link.context.span_id) == ids(first)


async def test_a_replay_is_no_run(received: Any) -> None:
    journal, one = MemoryJournal(), received()
    agent = Agent(ScriptedModel([[LOOK], "Done."]), tools=[look], journal=journal, telemetry=one.telemetry)
    result = await agent.run("Go.", conversation=Conversation(name="talk"))
    before = len(one.spans)
    assert (await agent.replay(result.run_id)).difference is None
    assert len(one.spans) == before


async def test_an_activation_of_a_skill_is_a_call_of_a_tool(received: Any, tmp_path: Any) -> None:
    from tools.skill_folders import skill_in

    one = received()
    skill_in(tmp_path, "pdf", body="private")
    model = ScriptedModel([[("activate_skill", {"name": "pdf"})], "Done."])
    await Agent(model, skills=[tmp_path], telemetry=one.telemetry).run("Go.")
    assert one.named("execute_tool activate_skill").status.is_ok
    assert "private" not in repr([said(span) for span in one.spans])


async def test_an_approval_rule_is_no_span(received: Any) -> None:
    one = received()
    agent = Agent(ScriptedModel([[LOOK]]), tools=[look], approvals=[ask_before("look")], telemetry=one.telemetry)
    await agent.run("Go.")
    assert [span.name for span in one.spans] == ["chat scripted", "invoke_agent agent"]


class Kept:
    """A queue that takes all."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


async def test_a_run_under_the_name_of_a_deleted_one_is_a_trace_of_its_own(received):
    got, journal = received(), MemoryJournal()
    clerk = Agent(ScriptedModel(lambda request: "done"), name="clerk")

    def head(request):
        return "done" if request.step else [("clerk", {"task": "Do it."})]

    for question in ("one", "two"):
        agent = Agent(
            ScriptedModel(head), name="head", tools=[clerk.as_tool()], journal=journal, telemetry=got.telemetry
        )
        await agent.submit(question, to=Kept(), run_id="order-17")
        await agent.drive("order-17")
        for run_id in reversed(await family(journal, "order-17")):
            await journal.delete(run_id)

    spans = got.spans
    first, second = [
        {span.context.span_id for span in spans if span.context.trace_id == trace}
        for trace in {span.context.trace_id for span in spans}
    ]
    assert len(first) == len(second) > 4
    assert not first & second
    assert {span.parent.span_id for span in spans if span.parent} <= first | second


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("anthropic:claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("text:json:openai:gpt-5", "openai", "gpt-5"),
        ("text:tags:ollama:qwen3:8b", "ollama", "qwen3:8b"),
        ("text:react:local:m@http://somebody:1/v1", "local", "m"),
        ("fallback(openai:gpt-5, groq:m)", "_OTHER", "fallback(openai:gpt-5, groq:m)"),
        ("text:", "text", ""),
    ],
)
def test_providers_and_models_are_named_whatever_stands_around_them(name: str, provider: str, model: str) -> None:
    """A model that is given its tools in text was one of the provider "json", and several were one of "fallback("."""
    assert of_model(name) == {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
