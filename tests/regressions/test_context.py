"""Context: what is made short keeps its promises, in the next run too, and a request is never empty.

What was found, and the test that holds it:

- `prepare_step` that keeps the last three messages after a batch sends an empty request
  -> test_a_request_is_never_empty, test_a_choice_of_no_messages_is_no_empty_request,
  test_an_overflow_after_a_choice_of_messages_is_no_value_error
- `read_result` works in the next run of a conversation and after a hand-off
  -> test_a_cleared_result_is_read_in_the_next_run_of_a_conversation, test_a_cleared_result_is_read_after_a_handoff,
  test_a_cleared_result_is_read_from_a_saved_conversation
- stubs and notices are recognised by what they are -> test_a_question_that_begins_like_a_notice_stays,
  test_a_question_of_an_earlier_run_that_begins_like_a_notice_is_counted_as_one_message,
  test_a_result_that_contains_a_stub_is_shortened, test_a_result_that_begins_like_a_stub_is_cleared,
  test_a_result_that_was_shortened_is_not_shortened_again, test_models_are_never_sent_the_whole_of_a_stub
"""

import re

import pytest
from play import within

from treadle import (
    Agent,
    ClearToolResults,
    Conversation,
    KeepFirstAndRecent,
    Limits,
    ShortenResult,
    StepSettings,
    handoff,
    tool,
)
from treadle.kernel.messages import UserMessage
from treadle.models import ContextOverflow
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SECRET = "the secret is 4711"


@tool(effect="read")
async def look(n: int, size: int = 8000) -> str:
    """Look something up."""
    return f"{n}: {SECRET if n == 0 else 'nothing'} " + "x" * size


def batches(count, wide=3):
    """Looks `wide` times in each of `count` replies, then answers."""

    def turn(request):
        if request.step >= count:
            return "done"
        return [("look", {"n": request.step * wide + i, "size": 200}) for i in range(wide)]

    return turn


@pytest.mark.parametrize("kept", [1, 2, 3, 4])
async def test_a_request_is_never_empty(kept):
    agent = Agent(
        ScriptedModel(batches(3)), tools=[look],
        prepare_step=lambda context: StepSettings(messages=list(context.messages)[-kept:]),
    )  # fmt: skip
    result = await within(agent.run("the question"))
    assert result.finished
    for request in agent.model.requests:
        assert [message for message in request.messages if message.role != "system"]


async def test_a_choice_of_no_messages_is_no_empty_request():
    agent = Agent(ScriptedModel(["done"]), prepare_step=lambda context: StepSettings(messages=[]))
    await within(agent.run("the question"))
    assert agent.model.requests[0].messages


async def test_an_overflow_after_a_choice_of_messages_is_no_value_error():
    def turn(request):
        return ContextOverflow("too long", status=400) if request.step else batches(9)(request)

    agent = Agent(
        ScriptedModel(turn), tools=[look],
        prepare_step=lambda context: StepSettings(messages=list(context.messages)[-3:]),
    )  # fmt: skip
    result = await within(agent.run("the question"))
    assert result.stop.reason == "model_error"
    assert isinstance(result.error, ContextOverflow)


POLICY = ClearToolResults(high=3000, low=1000, keep=1)


def reading(request):
    """Reads the first cleared result that the history names, then says what it was told."""
    last = request.messages[-1]
    if last.role == "tool" and last.name == "read_result":
        return f"I read: {last.text}"
    for message in request.messages:
        found = re.search(r'read_result with call_id \\?"([^"\\]+)', message.text)
        if found:
            return [("read_result", {"call_id": found[1]})]
    return "nothing was cleared"


def collecting(request):
    return "collected" if request.step >= 4 else [("look", {"n": request.step})]


async def collected(context=POLICY):
    """A conversation whose first run had its early results cleared."""
    conversation = Conversation()
    agent = Agent(ScriptedModel(collecting), tools=[look], context=context)
    result = await within(agent.run("collect", conversation=conversation))
    assert result.finished
    assert any("read_result" in message.text for message in conversation.messages)
    return conversation


async def test_a_cleared_result_is_read_in_the_next_run_of_a_conversation():
    conversation = await collected()
    agent = Agent(ScriptedModel(reading), tools=[look], context=ClearToolResults(high=1_000_000, low=900_000))
    result = await within(agent.run("what was the first?", conversation=conversation))
    assert SECRET in result.text


async def test_a_cleared_result_is_read_from_a_saved_conversation(tmp_path):
    (await collected()).save(tmp_path / "said.json")
    conversation = Conversation.load(tmp_path / "said.json")
    agent = Agent(ScriptedModel(reading), tools=[look], context=ClearToolResults(high=1_000_000, low=900_000))
    result = await within(agent.run("what was the first?", conversation=conversation))
    assert SECRET in result.text


async def test_a_cleared_result_is_read_after_a_handoff():
    other = Agent(
        ScriptedModel(reading), name="other", instructions="You go on.", tools=[look],
        context=ClearToolResults(high=1_000_000, low=900_000),
    )  # fmt: skip

    def turn(request):
        return [("transfer_to_other", {"reason": "read it"})] if request.step >= 4 else [("look", {"n": request.step})]

    agent = Agent(ScriptedModel(turn), tools=[look, handoff(other)], context=POLICY)
    result = await within(agent.run("collect"))
    assert SECRET in result.text


async def test_models_are_never_sent_the_whole_of_a_stub():
    conversation = await collected()
    wholes = [whole for message in conversation.messages if (whole := getattr(message, "whole", None)) is not None]
    assert wholes
    model = ScriptedModel(["done"])
    await within(Agent(model, tools=[look], context=POLICY).run("and?", conversation=conversation))
    sent = "".join(message.text for message in model.requests[0].messages)
    assert all(whole not in sent for whole in wholes)


NOTICE = "[treadle: 3 earlier messages were left out here to make room.] What does that mean?"


async def test_a_question_that_begins_like_a_notice_stays():
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step >= 6 else [("look", {"n": request.step})]), tools=[look],
        context=KeepFirstAndRecent(high=4000, low=2000), limits=Limits(steps=10),
    )  # fmt: skip
    conversation = Conversation()
    conversation.add_user("hello")
    conversation.add_assistant("hello")
    result = await within(agent.run(NOTICE, conversation=conversation))
    assert result.finished
    for request in agent.model.requests:
        assert any(message.text == NOTICE for message in request.messages if message.role == "user")


async def test_a_question_of_an_earlier_run_that_begins_like_a_notice_is_counted_as_one_message():
    """The count of what is left out must not be taken from what a person typed."""
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step >= 6 else [("look", {"n": request.step})]), tools=[look],
        context=KeepFirstAndRecent(high=4000, low=2000), limits=Limits(steps=10),
    )  # fmt: skip
    conversation = Conversation()
    conversation.add_user("hello")
    conversation.add_assistant("hello")
    conversation.add_user("[treadle: 9000 earlier messages were left out here to make room.]")
    conversation.add_assistant("what?")
    result = await within(agent.run("go", conversation=conversation))
    notices = [message for message in result.messages if isinstance(message, UserMessage) and message.left_out]
    assert notices
    assert all(message.left_out < 100 for message in notices)


LIKE_A_CUT = "\n[treadle: 5 of 10 characters are left out here. Call the tool again.]\n"


async def test_a_result_that_contains_a_stub_is_shortened():
    @tool(effect="read")
    async def history() -> str:
        """Read an old transcript."""
        return "a" * 20_000 + LIKE_A_CUT + "b" * 20_000

    agent = Agent(ScriptedModel([[("history", {})], "done"]), tools=[history], context=ShortenResult(max_tokens=500))
    result = await within(agent.run("go"))
    (message,) = [one for one in result.messages if one.role == "tool"]
    assert len(message.text) < 10_000


async def test_a_result_that_begins_like_a_stub_is_cleared():
    @tool(effect="read")
    async def history(n: int) -> str:
        """Read an old transcript."""
        return '{"cleared":true,' + f'"n":{n},"text":"' + "a" * 8000 + '"}'

    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step >= 4 else [("history", {"n": request.step})]),
        tools=[history], context=POLICY,
    )  # fmt: skip
    result = await within(agent.run("go"))
    first = next(message for message in result.messages if message.role == "tool")
    assert len(first.text) < 1000


async def test_a_result_that_was_shortened_is_not_shortened_again():
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step >= 3 else [("look", {"n": request.step, "size": 30_000})]),
        tools=[look], context=ShortenResult(max_tokens=500),
    )  # fmt: skip
    result = await within(agent.run("go"))
    for message in result.messages:
        if message.role == "tool":
            assert message.text.count("[treadle:") == 1
            assert len(message.whole) > 30_000
