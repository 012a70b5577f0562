"""The public API: the loop, what a run is given and gives back, retries, and conversations over runs."""

import asyncio

import pytest

from treadle import (
    Agent,
    Conversation,
    Injected,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    Retries,
    RunStopped,
    Skill,
    Text,
    ToolContext,
    ToolResult,
    Usage,
    has_tool_call,
    step_count,
    tool,
)
from treadle.kernel.events import (
    MessageAdded,
    ModelFailed,
    RunFinished,
)
from treadle.kernel.messages import SystemMessage
from treadle.models import ContextOverflow, Overloaded, RateLimited
from treadle.testing import ScriptedModel


@tool(effect="read")
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


def multiplying(*more):
    return ScriptedModel([("Let me see. ", [("multiply", {"a": 6, "b": 7})]), *(more or ("It is 42.",))])


# The loop


def test_the_loop_calls_the_model_runs_its_tools_shows_the_results_and_answers():
    model = multiplying()
    result = Agent(model, instructions="Be exact.", tools=[multiply]).run_sync("What is 6 times 7?")
    assert result.text == "It is 42."
    assert result.finished
    assert result.stop.reason == "answered"
    assert result.stop.advice == ""
    assert [message.role for message in result.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [message.role for message in model.requests[1].messages] == ["system", "user", "assistant", "tool"]
    assert model.requests[1].messages[3].text == "42"
    assert [spec.name for spec in model.requests[0].tools] == ["multiply"]
    assert result.require() is result


def test_the_result_is_data():
    model = ScriptedModel(
        [[("multiply", {"a": 1, "b": 2})], "two"], usage=Usage(100, 10), price=Price(input=1, output=10)
    )
    result = Agent(model, tools=[multiply], name="sums").run_sync("go")
    assert [step.number for step in result.steps] == [0, 1]
    (record,) = result.tool_calls_made
    assert (record.name, record.arguments, record.result.text, record.is_error) == (
        "multiply",
        {"a": 1, "b": 2},
        "2",
        False,
    )
    assert record.executed
    assert record.ended_at >= record.started_at > 0
    assert result.usage == Usage(200, 20)
    assert float(result.cost) == pytest.approx(0.0004)
    assert result.pending == ()
    assert result.error is None
    assert result.elapsed >= 0
    assert result.limits == Limits()
    assert result.events[0].agent == "sums"
    assert result.events[0].run_id == result.run_id
    assert isinstance(result.events[-1], RunFinished)


def test_what_a_tool_gives_the_application_is_in_the_result_and_not_shown_to_the_model():
    @tool
    def report() -> ToolResult:
        """Report."""
        return ToolResult(for_model="3 rows", for_app={"rows": [1, 2, 3]})

    model = ScriptedModel([[("report", {})], "done"])
    result = Agent(model, tools=[report]).run_sync("go")
    assert result.tool_calls_made[0].app == {"rows": [1, 2, 3]}
    assert model.requests[1].messages[-1].text == "3 rows"


def test_images_and_text_in_the_question():
    model = ScriptedModel(["a cat"])
    Agent(model).run_sync([Text("what is this?"), Text("look closely")])
    assert model.requests[0].messages[0].content == (Text("what is this?"), Text("look closely"))


def test_skills_bring_their_instructions_and_tools():
    model = multiplying()
    skill = Skill("arithmetic", "Use multiply for products.", [multiply])
    Agent(model, instructions="Be exact.", skills=[skill]).run_sync("go")
    system = model.requests[0].messages[0].text
    assert system.startswith("Be exact.")
    assert "Use multiply for products." in system


@pytest.mark.parametrize("is_async", [False, True])
def test_instructions_may_be_a_function_of_the_run(is_async):
    def instructions(context):
        return f"You serve {context.deps['user']} as {context.agent}."

    async def later(context):
        await asyncio.sleep(0)
        return instructions(context)

    model = ScriptedModel(["hi"])
    agent = Agent(model, instructions=later if is_async else instructions, name="clerk")
    agent.run_sync("hello", deps={"user": "Ada"})
    assert model.requests[0].messages[0] == SystemMessage("You serve Ada as clerk.")


def test_dependencies_and_context_are_injected_and_hidden():
    seen = []

    @tool
    def greet(name: str, context: ToolContext, deps: Injected[dict]) -> str:
        """Greet."""
        seen.append((context.run_id, context.step, context.call_id, deps["greeting"], context.deps is deps))
        return f"{deps['greeting']} {name}"

    model = ScriptedModel([[("greet", {"name": "Ada"})], "done"])
    result = Agent(model, tools=[greet]).run_sync("go", deps={"greeting": "Hello"})
    assert list(model.requests[0].tools[0].input_schema["properties"]) == ["name"]
    assert seen == [(result.run_id, 0, "call_0_0", "Hello", True)]
    assert result.messages[2].text == "Hello Ada"


def test_run_sync_inside_an_event_loop_is_a_misuse_and_leaves_nothing_unawaited():
    async def inside():
        with pytest.raises(Misuse, match=r"await agent\.run"):
            Agent(ScriptedModel(["hi"])).run_sync("hello")

    asyncio.run(inside())


def test_limits_of_a_run_replace_those_of_the_agent():
    agent = Agent(multiplying(), tools=[multiply], limits=Limits(steps=1), on_limit="stop")
    assert agent.run_sync("go", limits=Limits(steps=2)).stop.reason == "answered"
    assert agent.limits.steps == 1


def test_stop_conditions_name_themselves():
    model = ScriptedModel(lambda request: ("on it", [("multiply", {"a": 1, "b": request.step})]))
    others = {"multiply": multiply, "times": multiply}
    result = Agent(model, tools=others, stop_when=step_count(3) | has_tool_call("times")).run_sync("go")
    assert result.finished
    assert (result.stop.reason, result.stop.detail) == ("condition", "step_count(3)")
    assert [check.name for check in result.decision.conditions] == ["step_count(3)"]
    assert result.text == "on it"


# Retries


def test_a_failed_call_is_tried_again_and_stands_in_the_record():
    model = ScriptedModel([Overloaded("busy"), RateLimited("slow", retry_after=0), "hello"])
    result = Agent(model, retries=Retries(attempts=3, base=0)).run_sync("go")
    assert result.text == "hello"
    failures = [event for event in result.events if isinstance(event, ModelFailed)]
    assert [(event.attempt, event.error.kind, event.retry_in) for event in failures] == [
        (1, "overloaded", 0.0),
        (2, "rate_limited", 0.0),
    ]
    assert result.steps[0].failures == 2
    assert result.error is None


def test_what_cannot_be_helped_is_not_tried_again():
    result = Agent(model := ScriptedModel([ContextOverflow("too long", status=400)])).run_sync("go")
    assert result.stop.reason == "model_error"
    assert isinstance(result.error, ContextOverflow)
    assert result.error.status == 400
    assert len(model.requests) == 1
    with pytest.raises(RunStopped, match="context_overflow") as caught:
        result.require()
    assert caught.value.__cause__ is result.error
    assert caught.value.result is result


def test_a_wait_beyond_the_deadline_is_not_begun():
    model = ScriptedModel([RateLimited("later", retry_after=50), "never"])
    result = Agent(model, limits=Limits(seconds=10)).run_sync("go")
    assert result.stop.reason == "model_error"
    assert isinstance(result.error, RateLimited)


# Conversations


def test_a_conversation_goes_on_over_runs():
    said = Conversation()
    model = ScriptedModel([[("multiply", {"a": 6, "b": 7})], "42", "84"])
    agent = Agent(model, instructions="Be exact.", tools=[multiply])
    agent.run_sync("6 times 7?", conversation=said)
    agent.run_sync("twice that?", conversation=said)
    assert [message.role for message in model.requests[2].messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert [message.role for message in said.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]


def test_a_conversation_that_ends_with_a_question_needs_no_other():
    said = Conversation()
    said.add_user("6 times 7?")
    assert Agent(ScriptedModel(["42"])).run_sync(conversation=said).text == "42"


def test_one_run_at_a_time_may_use_a_conversation():
    async def run():
        said = Conversation()
        agent = Agent(ScriptedModel(["one", "two"]))
        async with agent.stream("first", conversation=said):
            with pytest.raises(Misuse, match="in use"):
                await agent.run("second", conversation=said)
        assert (await agent.run("second", conversation=said)).finished

    asyncio.run(run())


@pytest.mark.parametrize("failure", [ContextOverflow("no"), RuntimeError("bug")])
def test_a_run_that_fails_leaves_its_conversation_valid(failure):
    said = Conversation()
    agent = Agent(ScriptedModel([[("multiply", {"a": 1, "b": 1})], failure, "fine"]), tools=[multiply])
    assert agent.run_sync("go", conversation=said).stop.reason == "model_error"
    assert [message.role for message in said.messages] == ["user", "assistant", "tool"]
    assert agent.run_sync("again", conversation=said).text == "fine"


def test_messages_sent_stand_in_the_journal():
    async def run():
        journal = MemoryJournal()
        async with Agent(ScriptedModel(["one", "two"]), journal=journal).stream("go") as live:
            await live.send("hurry")
            async for _ in live:
                pass
        return [e.message.text for e in await journal.read(live.run_id) if isinstance(e, MessageAdded)]

    assert asyncio.run(run()) == ["hurry"]
