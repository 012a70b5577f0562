"""Whatever a policy or `prepare_step` leaves of a history, the model has something to answer, and is asked once."""

from collections.abc import Callable, Sequence

import pytest

from treadle import Agent, Limits, StepSettings
from treadle.context.policies import Edit, Facts
from treadle.kernel.stop import OnLimit
from treadle.models import AssistantMessage, Message, ModelReply, Text
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
Choice = Callable[[Sequence[Message]], list[Message]]


class Chosen:
    """A policy of one's own."""

    def __init__(self, choose: Choice) -> None:
        self.choose = choose

    def edit(self, messages: Sequence[Message], tokens: int, facts: Facts) -> Edit:
        return Edit(self.choose(messages), tokens, tokens)


def made_with(choose: Choice, how: str, instructions: str | None, model: ScriptedModel) -> Agent:
    if how == "policy":
        return Agent(model, instructions=instructions, context=[Chosen(choose)])
    return Agent(
        model, instructions=instructions, prepare_step=lambda step: StepSettings(messages=choose(step.messages))
    )


CHOICES: dict[str, Choice] = {
    "nothing but the instructions": lambda messages: [messages[0]],
    "a reply last": lambda messages: [messages[0], AssistantMessage((Text("Well."),))],
    "a reply after the question": lambda messages: [*messages, AssistantMessage((Text("Well."),))],
}


@pytest.mark.parametrize("how", ["policy", "prepare_step"])
@pytest.mark.parametrize("choose", CHOICES.values(), ids=CHOICES.keys())
async def test_what_was_asked_is_asked_though_it_was_left_out(choose: Choice, how: str) -> None:
    """After a policy the request held the instructions alone, or ended with a reply."""
    model = ScriptedModel(["Noon."])
    await made_with(choose, how, "Be brief.", model).run("What time is it?")
    (request,) = model.requests
    assert (request.messages[0].text, request.messages[-1].text) == ("Be brief.", "What time is it?")


async def test_a_policy_that_leaves_nothing_leaves_the_question() -> None:
    model = ScriptedModel(["Noon."])
    result = await made_with(lambda messages: [], "policy", None, model).run("What time is it?")
    assert [message.text for message in model.requests[0].messages] == ["What time is it?"]
    assert result.text == "Noon."


@pytest.mark.parametrize("how", ["policy", "prepare_step"])
@pytest.mark.parametrize("last", [1, 2, 9])
async def test_a_reply_that_was_paused_is_gone_on_with_and_nothing_is_asked_again(how: str, last: int) -> None:
    """The question stood behind the paused reply once more, so that its provider began anew."""
    half = ModelReply(AssistantMessage((Text("It is"),)), finish="pause")
    model = ScriptedModel([half, "noon."])
    await made_with(lambda messages: list(messages)[-last:], how, None, model).run("What time is it?")
    assert [message.text for message in model.requests[1].messages] == ["What time is it?", "It is"][-last:]


async def test_what_is_left_of_the_limits_is_not_said_after_a_reply_that_was_paused() -> None:
    half = ModelReply(AssistantMessage((Text("It is"),)), finish="pause")
    model = ScriptedModel([half, "noon."])
    await Agent(model, tell_remaining=True).run("What time is it?")
    first, second = ([message.role for message in request.messages] for request in model.requests)
    assert (first, second) == (["user", "user"], ["user", "assistant"])


@pytest.mark.parametrize("on_limit", ["answer", "stop"])
async def test_a_reply_that_was_paused_at_a_limit_is_gone_on_with_as_it_is(on_limit: OnLimit) -> None:
    """It was told that there is room now, which made a new turn of what its provider was to go on with."""
    half = ModelReply(AssistantMessage((Text("It is"),)), finish="pause")
    model = ScriptedModel([half, "noon."])
    agent = Agent(model, limits=Limits(steps=1), on_limit=on_limit)
    paused = await agent.run("What time is it?")
    result = await agent.resume(paused, limits=Limits(steps=5))
    assert [message.text for message in model.requests[1].messages] == ["What time is it?", "It is"]
    assert (result.stop.reason, result.text) == ("answered", "noon.")
