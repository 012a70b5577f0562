"""What may be chosen for a step."""

import asyncio
import json

import pytest

from treadle import (
    Agent,
    Limits,
    MemoryJournal,
    Misuse,
    ModelSettings,
    Price,
    StepSettings,
    tool,
)
from treadle.kernel.events import (
    StepPrepared,
)
from treadle.kernel.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from treadle.testing import ScriptedModel


@tool(effect="read")
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


# prepare_step


def prepared(function, *, tools=(multiply,), turns=None, **options):
    model = ScriptedModel(turns or [[("multiply", {"a": 1, "b": 1})], "done"])
    result = Agent(model, tools=tools, instructions="Be good.", prepare_step=function, **options).run_sync("go")
    return result, model


def test_prepare_step_sees_the_run_and_may_leave_it_as_it_is():
    seen = []

    def look(context):
        seen.append((context.step_number, len(context.steps), len(context.messages), context.deps, context.state.phase))

    result, model = prepared(look)
    assert seen == [(0, 0, 2, None, "ready"), (1, 1, 4, None, "ready")]
    assert result.text == "done"
    assert model.requests[0].tool_choice == "auto"


@pytest.mark.parametrize("is_async", [False, True])
def test_prepare_step_changes_instructions_tools_choice_and_settings_for_that_step_only(is_async):
    @tool
    def other() -> None:
        """Other."""

    chosen = StepSettings(
        instructions="Be quick.", tools=["multiply"], tool_choice="multiply", settings=ModelSettings(temperature=0.5)
    )

    async def later(context):
        return chosen if context.step_number == 0 else None

    result, model = prepared(
        later if is_async else lambda context: chosen if context.step_number == 0 else None, tools=(multiply, other)
    )
    first, second = model.requests
    assert first.messages[0] == SystemMessage("Be quick.")
    assert [spec.name for spec in first.tools] == ["multiply"]
    assert (first.tool_choice, first.settings.temperature) == ("multiply", 0.5)
    assert second.messages[0] == SystemMessage("Be good.")
    assert [spec.name for spec in second.tools] == ["multiply", "other"]
    assert (second.tool_choice, second.settings.temperature) == ("auto", None)
    assert result.messages[0] == SystemMessage("Be good.")


def test_prepare_step_changes_the_model_for_a_step():
    other = ScriptedModel([[("multiply", {"a": 2, "b": 2})]], name="other")
    result, model = prepared(
        lambda context: StepSettings(model=other) if context.step_number == 0 else None, turns=["four"]
    )
    assert [step.model for step in result.steps] == ["other", "scripted"]
    assert len(other.requests) == len(model.requests) == 1


def test_prepare_step_changes_the_messages_of_a_request_but_not_the_history():
    result, model = prepared(
        lambda context: StepSettings(messages=context.messages[:2]) if context.step_number else None
    )
    assert len(model.requests[1].messages) == 2
    assert len(result.messages) == 5


@pytest.mark.parametrize(("instructions", "roles"), [(None, ["system", "user"]), ("", ["user"])])
def test_the_instructions_stay_where_prepare_step_chooses_messages_alone(instructions, roles):
    model = ScriptedModel(["done"])
    chosen = StepSettings(messages=[UserMessage("q")], instructions=instructions)
    Agent(model, instructions="Never pay.", prepare_step=lambda context: chosen).run_sync("go")
    assert [message.role for message in model.requests[0].messages] == roles


def test_messages_that_prepare_step_chose_are_completed():
    orphaned = [UserMessage("q"), AssistantMessage((ToolCall("x", "multiply", "{}"),)), UserMessage("and?")]
    _, model = prepared(lambda context: StepSettings(messages=orphaned), turns=["done"])
    assert [message.role for message in model.requests[0].messages] == ["system", "user", "assistant", "tool", "user"]


def test_examples_before_a_step_take_no_ids_of_the_history():
    """No provider takes two calls under one id, as examples that were copied from a run have."""
    first, call = "call_0_0", AssistantMessage((ToolCall("call_0_0", "multiply", '{"a": 3, "b": 3}'),))
    example = [UserMessage("e"), call, ToolMessage(first, "multiply", "9")]
    _, model = prepared(lambda context: StepSettings(messages=[*example, *example, *context.messages]))
    sent = model.requests[1].messages
    calls = [call.id for message in sent if isinstance(message, AssistantMessage) for call in message.calls]
    answers = [(message.call_id, message.text) for message in sent if isinstance(message, ToolMessage)]
    assert len(set(calls)) == 3
    assert answers == list(zip(calls, ["9", "9", "1"], strict=True))


def test_the_closing_note_is_in_messages_that_prepare_step_chose():
    model = ScriptedModel(
        lambda request: "so far" if request.tool_choice == "none" else [("multiply", {"a": 1, "b": 1})]
    )
    Agent(
        model,
        tools=[multiply],
        limits=Limits(steps=2),
        prepare_step=lambda context: StepSettings(messages=[UserMessage("q")], tool_choice="required"),
    ).run_sync("go")
    assert [message.text for message in model.requests[0].messages] == ["q"]
    assert "Tools are off now" in model.requests[1].messages[-1].text


def test_a_tool_that_was_not_offered_is_not_executed():
    result, model = prepared(lambda context: StepSettings(tools=[]))
    assert result.tool_calls_made[0].is_error
    assert not result.tool_calls_made[0].executed
    assert json.loads(model.requests[1].messages[-1].text)["available_tools"] == []


def test_what_prepare_step_chose_is_recorded():
    result, _ = prepared(lambda context: StepSettings(tool_choice="auto", tools=["multiply"]))
    events = [event for event in result.events if isinstance(event, StepPrepared)]
    assert [(event.tool_choice, event.tools) for event in events] == [("auto", ("multiply",))] * 2


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (StepSettings(tools=["divide"]), "offers a tool 'divide'"),
        (StepSettings(tool_choice="divide"), "tool_choice 'divide' is none of auto, none, required, multiply"),
        (StepSettings(tools=[], tool_choice="multiply"), "tool_choice 'multiply'"),
        (StepSettings(tools="multiply"), "list of names"),
        (StepSettings(model="gtp"), "does not say who serves it"),
        ({"tools": []}, "returns StepSettings or None"),
    ],
)
def test_a_wrong_choice_of_prepare_step_is_a_misuse(chosen, says):
    with pytest.raises(Misuse, match=says):
        prepared(lambda context: chosen)


def test_a_step_with_another_model_does_not_escape_a_limit_on_money():
    model = ScriptedModel(["x"], price=Price(input=1, output=1))
    unpriced = ScriptedModel(["y"], name="unpriced")
    agent = Agent(model, limits=Limits(usd=0.01), prepare_step=lambda context: StepSettings(model=unpriced))
    with pytest.raises(Misuse, match="price of unpriced"):
        agent.run_sync("go")
    assert unpriced.requests == []


def test_a_single_step_that_is_gone_on_with_makes_one_more():
    model = ScriptedModel([[("multiply", {"a": 2, "b": 3})], [("multiply", {"a": 6, "b": 7})], "42"])
    agent = Agent(model, tools=[multiply], journal=MemoryJournal())

    async def steps():
        first = await agent.step("What is 2 times 3 times 7?")
        second = await agent.resume(first.run_id, message="Go on.")
        third = await agent.resume(first.run_id, limits=Limits(steps=9))
        return [(one.stop.reason, len(one.steps), one.text) for one in (first, second, third)]

    assert asyncio.run(steps()) == [("max_steps", 1, ""), ("max_steps", 2, ""), ("answered", 3, "42")]
    assert len(model.requests) == 3


@pytest.mark.parametrize("limits", [Limits(), Limits(tool_calls=1)])
def test_a_single_step_raises_at_no_limit(limits):
    """Who writes the loop looks at the reason, whatever the agent does at the limit of a run."""
    script = [[("multiply", {"a": 2, "b": 3}), ("multiply", {"a": 3, "b": 4})]]
    agent = Agent(ScriptedModel(script), tools=[multiply], on_limit="raise", limits=limits)
    result = asyncio.run(agent.step("What is 2 times 3, and 3 times 4?"))
    assert result.stop.reason == ("max_tool_calls" if limits.tool_calls == 1 else "max_steps")
    assert len(result.tool_calls_made) == (1 if limits.tool_calls == 1 else 2)
