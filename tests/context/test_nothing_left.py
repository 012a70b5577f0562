"""Where a choice of messages leaves nothing to answer, the model is asked again what a person asked, and not a note."""

import asyncio
from typing import Any

import pytest

from treadle import Agent, StepSettings, Text, tool
from treadle.context.policies import Edit
from treadle.models import SystemMessage, UserMessage
from treadle.testing import ScriptedModel


@tool(effect="read")
def look_up(word: str) -> str:
    """Looks a word up in a dictionary."""
    return "nothing found"


def is_noted(messages: Any) -> bool:
    """Whether the run has told the model that it repeats itself."""
    return any("the same arguments" in message.text for message in messages if isinstance(message, UserMessage))


class OnlyInstructions:
    """Leaves nothing but the instructions once there is a note."""

    def edit(self, messages: Any, tokens: int, facts: Any) -> Edit | None:
        return Edit(messages[:1], tokens, 10) if is_noted(messages) else None


def nothing(context: Any) -> StepSettings | None:
    return StepSettings(messages=[]) if is_noted(context.messages) else None


GIVEN: list[dict[str, Any]] = [{"context": OnlyInstructions()}, {"prepare_step": nothing}]


@pytest.mark.parametrize("given", GIVEN, ids=lambda one: next(iter(one)))
def test_the_question_is_asked_again_and_not_what_treadle_said_after_it(given: Any) -> None:
    model = ScriptedModel(lambda request: [("look_up", {"word": "kettle"})] if request.step < 3 else "Nothing.")
    result = Agent(model, tools=[look_up], instructions="Be brief.", **given).run_sync("What is a kettle?")
    assert result.text == "Nothing."
    said = [message.text for message in model.requests[3].messages if not isinstance(message, SystemMessage)]
    assert said == ["What is a kettle?"]


def test_a_question_in_a_list_of_parts_is_asked_again_too() -> None:
    model = ScriptedModel(["It boils water."])
    parts: Any = [Text("What is a kettle?")]
    result = Agent(model, prepare_step=lambda _: StepSettings(messages=[])).run_sync(UserMessage(parts))
    assert (result.text, model.requests[0].messages[-1].text) == ("It boils water.", "What is a kettle?")


def test_what_was_said_under_way_is_the_last_that_was_asked() -> None:
    async def talk() -> list[str]:
        model = ScriptedModel(lambda request: [("look_up", {"word": "kettle"})] if request.step < 3 else "Nothing.")
        agent = Agent(model, tools=[look_up], instructions="Be brief.", context=OnlyInstructions())
        async with agent.stream("What is a kettle?") as run:
            async for _ in run:
                if len(model.requests) == 1 and not said:
                    said.append("And a pan?")
                    await run.send("And a pan?")
        return [message.text for message in model.requests[3].messages if not isinstance(message, SystemMessage)]

    said: list[str] = []
    assert asyncio.run(talk()) == ["And a pan?"]
