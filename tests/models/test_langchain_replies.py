"""What chat models of LangChain say as a whole that is easily lost: calls that have one id, and refusals."""

from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from treadle import Agent, Conversation, Text, tool
from treadle.kernel.messages import AssistantMessage
from treadle.models.langchain import LangChainModel, from_langchain
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Whole(BaseChatModel):
    """A chat model that streams nothing and gives each reply as a whole."""

    replies: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "whole"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, *given: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.replies.pop(0))])


TWO_OF_ONE_ID = [{"name": "pay", "args": {"amount": amount}, "id": "c"} for amount in (1, 2)]


async def test_two_calls_of_one_id_are_both_kept_with_their_results() -> None:
    """The first was lost, and its result stood after the other, as if that had given it."""
    blocks = [{"type": "tool_use", "id": "c", "name": "pay", "input": one["args"]} for one in TWO_OF_ONE_ID]
    for content in ("", blocks):
        theirs = [
            HumanMessage("Pay both."),
            AIMessage(content, tool_calls=TWO_OF_ONE_ID),
            ToolMessage("paid 1", tool_call_id="c"),
            ToolMessage("paid 2", tool_call_id="c"),
        ]
        assert [call.arguments for call in from_langchain(theirs)[1].calls] == ['{"amount":1}', '{"amount":2}']
        model = ScriptedModel(["Both are paid."])
        await Agent(model).run(conversation=Conversation.from_langchain(theirs))
        _, said, *results = model.requests[0].messages
        assert [call.arguments for call in said.calls] == ['{"amount":1}', '{"amount":2}']
        told = [(result.call_id, result.text) for result in results]
        assert told == [(call.id, f"paid {n}") for n, call in enumerate(said.calls, 1)]


async def test_two_calls_of_one_id_in_a_whole_reply_are_both_made() -> None:
    """Only the last was."""
    paid = []

    @tool
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    chat_model = Whole(replies=[AIMessage("", tool_calls=TWO_OF_ONE_ID), AIMessage("Done.")])
    result = await Agent(LangChainModel(chat_model), tools=[pay]).run("Pay both.")
    assert (result.text, paid) == ("Done.", [1, 2])


REFUSAL = {"type": "refusal", "refusal": "I cannot help with that."}


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("", additional_kwargs={"refusal": REFUSAL["refusal"]}, response_metadata={"finish_reason": "stop"}),
        AIMessage([REFUSAL], response_metadata={"object": "response", "status": "completed"}),
        AIMessage([{"type": "non_standard", "value": REFUSAL}]),
    ],
)
async def test_a_refusal_ends_the_run_as_one(reply: AIMessage) -> None:
    """It was taken for an empty reply, and asked for three times more."""
    chat_model = Whole(replies=[reply])
    result = await Agent(LangChainModel(chat_model)).run("Tell me.")
    assert (result.stop.reason, result.text) == ("refusal", "I cannot help with that.")
    assert from_langchain([reply]) == [AssistantMessage((Text("I cannot help with that."),))]


FALLBACK = {"type": "fallback", "from": {"model": "claude-a"}, "to": {"model": "claude-b"}}


def used(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {"place": call_id}}


@pytest.mark.parametrize("word", ["tool_use", "end_turn"])
async def test_calls_of_a_model_that_handed_its_reply_over_are_not_made(word: str) -> None:
    seen = []

    @tool
    def look(place: str) -> str:
        """Looks."""
        seen.append(place)
        return "seen"

    thought = {"type": "thinking", "thinking": "I look.", "signature": "s"}
    begun = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    text = {"type": "text", "text": "Let me look."}
    ids = ["a", "b"] if word == "tool_use" else ["a"]
    after = [used("b")] if word == "tool_use" else []
    reply = AIMessage(
        [thought, text, begun, used("a"), FALLBACK, *after],
        tool_calls=[{"name": "look", "args": {"place": one}, "id": one} for one in ids],
        response_metadata={"stop_reason": word},
    )
    chat_model = Whole(replies=[reply, AIMessage("Done.", response_metadata={"stop_reason": "end_turn"})])
    result = await Agent(LangChainModel(chat_model), tools=[look]).run("Look.")
    assert (seen, result.text) == ((["b"], "Done.") if after else ([], "Let me look."))
    replied = next(message for message in result.messages if isinstance(message, AssistantMessage))
    assert [getattr(part, "value", part) for part in replied.content[:2]] == [Text("Let me look."), FALLBACK]
