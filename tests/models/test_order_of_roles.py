"""A server that holds messages to an order, as Mistral's does: whatever a run puts in, none of them is refused."""

import json
import re
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from treadle import Agent, Conversation, Image, Limits, MemoryJournal, tool
from treadle.kernel.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from treadle.models import BedrockModel, FallbackModel, OpenAIChatModel, TextTools
from treadle.models.hosts import host_of, takes_turns
from treadle.models.openai_chat import ChatCodec
from treadle.models.order import Order
from treadle.models.port import ModelRequest

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}
AFTER = {
    "system": {"user", "assistant"},
    "user": {"user", "assistant"},
    "assistant": {"user", "tool"},
    "tool": {"tool", "assistant"},
}
"""What may follow on what, by https://github.com/mistralai/mistral-common."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@tool(effect="read")
def look(page: int) -> str:
    """Reads a page."""
    return f"page {page}"


@tool(effect="read")
def draw(page: int) -> Image:
    """Draws a page."""
    return Image(b"\x89PNG", media_type="image/png")


def answering(*said: Any) -> Any:
    """Says one thing after another, a call or a text, to whoever keeps to the order."""
    left = list(said)

    def answer(peer: Any) -> None:
        roles = [message["role"] for message in json.loads(peer.body)["messages"]]
        for one, next_one in zip(["system", *roles], roles, strict=False):
            if next_one not in AFTER[one] and not one == next_one == "system":
                message = f"Unexpected role '{next_one}' after role '{one}'"
                error = {"object": "error", "message": message, "type": "invalid_request_message_order", "code": "3230"}
                return peer.answer("400 Bad Request", JSON, json.dumps(error).encode())
        what = left.pop(0)
        message = {"role": "assistant", "content": what if isinstance(what, str) else ""}
        if not isinstance(what, str):
            function = {"name": what[0], "arguments": json.dumps(what[1])}
            message["tool_calls"] = [{"id": f"call{len(left):05}", "type": "function", "function": function}]
        stop = "stop" if isinstance(what, str) else "tool_calls"
        usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
        whole = {"choices": [{"index": 0, "message": message, "finish_reason": stop}], "usage": usage}
        return peer.answer("200 OK", JSON, json.dumps(whole).encode())

    return answer


def mistral(server: Any) -> OpenAIChatModel:
    return OpenAIChatModel("mistral-large-latest", base_url=server.url, api_key="k", streaming=False)


async def test_a_run_at_its_limit_is_closed(serve):
    """Regression: what a run is told at its limit stands after the results of its last step, and was refused."""
    server = serve(answering(("look", {"page": 1}), "So far: page 1."))
    result = await Agent(mistral(server), tools=[look], limits=Limits(steps=2)).run("Look.")
    assert (result.stop.reason, result.text) == ("max_steps", "So far: page 1.")
    assert [one["role"] for one in json.loads(server.requests[-1].body)["messages"]][-3:] == [
        "tool", "assistant", "user"
    ]  # fmt: skip


async def test_the_ids_that_a_server_gives_calls_are_sent_as_the_models_template_takes_them(serve):
    """Regression: what gave longer ids refused its own (https://github.com/ml-explore/mlx-lm/issues/1375)."""
    calls = [{"id": str(UUID(int=n)), "function": {"name": "look", "arguments": f'{{"page": {n}}}'}} for n in (1, 2)]

    def answer(peer: Any) -> None:
        messages = json.loads(peer.body)["messages"]
        asked = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        if not all(re.fullmatch("[a-zA-Z0-9]{9}", one) for one in asked) or asked != answered:
            error = {"error": "Tool call IDs should be alphanumeric strings with length 9!"}
            return peer.answer("404 Not Found", JSON, json.dumps(error).encode())
        message = {"role": "assistant", "content": "Seen."} if asked else {"role": "assistant", "tool_calls": calls}
        return peer.answer("200 OK", JSON, json.dumps({"choices": [{"index": 0, "message": message}]}).encode())

    model = OpenAIChatModel("Ministral-8B-Instruct-2410", base_url=serve(answer).url, api_key="k", streaming=False)
    result = await Agent(model, tools=[look]).run("Look.")
    assert (result.text, [one.id for one in result.messages[1].calls]) == ("Seen.", [one["id"] for one in calls])


async def test_what_the_system_says_stays_said_by_it(serve):
    """Regression: instructions were joined to the question and sent as the user's, or the run crashed."""
    server = serve(answering(("look", {"page": 1}), "So far.", "Hm."))
    agent = Agent(mistral(server), instructions="Be terse.", tools=[look], limits=Limits(steps=2))
    assert (await agent.run("Look.")).text == "So far."
    begun = Conversation([AssistantMessage((Text("Hello."),)), UserMessage("One.")])
    assert (await agent.run("Two.", conversation=begun)).text == "Hm."
    sent = [json.loads(request.body)["messages"] for request in server.requests]
    assert all(messages[0]["role"] == "system" and "Be terse." in messages[0]["content"] for messages in sent)
    assert [one["role"] for one in sent[1]] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [one["role"] for one in sent[2]] == ["system", "assistant", "user"]
    assert sent[2][-1]["content"] == "One.\n\nTwo."


async def test_under_a_name_of_ones_own_it_is_learned(serve):
    server = serve(answering(("look", {"page": 1}), "So far: page 1."))
    model = OpenAIChatModel("my-deployment", base_url=server.url, api_key="k", streaming=False)
    result = await Agent(model, tools=[look], limits=Limits(steps=2)).run("Look.")
    assert (result.stop.reason, result.text) == ("max_steps", "So far: page 1.")


async def test_a_template_that_counts_no_calls_and_no_results(serve):
    """That of Ministral 3 and Devstral 2, under whatever name a local server has it."""

    def answer(peer: Any) -> None:
        messages = json.loads(peer.body)["messages"]
        said = [one["role"] for one in messages if one["role"] != "tool" and not one.get("tool_calls")]
        if any(one == next_one for one, next_one in pairwise(said)):
            told = "conversation roles must alternate user and assistant roles except for tool calls and results."
            error = {"code": 500, "message": f"Jinja Exception: {told}", "type": "server_error"}
            return peer.answer("500 Internal Server Error", JSON, json.dumps({"error": error}).encode())
        message: Any = {"role": "assistant", "content": "So far."}
        if len(messages) == 1:
            function = {"name": "look", "arguments": '{"page": 1}'}
            message |= {"content": "", "tool_calls": [{"id": "aaaaaaaaa", "type": "function", "function": function}]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return peer.answer("200 OK", JSON, json.dumps({"choices": [choice]}).encode())

    model = OpenAIChatModel("mine", base_url=serve(answer).url, api_key="k", streaming=False)
    result = await Agent(model, tools=[look], limits=Limits(steps=2)).run("Look.")
    assert (result.stop.reason, result.text) == ("max_steps", "So far.")


async def test_a_run_at_its_limit_is_closed_at_bedrock_too(serve):
    def answer(peer: Any) -> None:
        messages = json.loads(peer.body)["messages"]
        for message in messages:
            if len({"toolResult" in block for block in message["content"]}) > 1:
                told = {"message": "Conversation blocks and tool result blocks cannot be provided in the same turn."}
                return peer.answer("400 Bad Request", JSON | {"x-amzn-errortype": "ValidationException"},
                                   json.dumps(told).encode())  # fmt: skip
        content: Any = [{"text": "So far."}]
        if len(messages) == 1:
            content = [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {"page": 1}}}]
        whole = {"output": {"message": {"role": "assistant", "content": content}},
                 "stopReason": "end_turn" if len(messages) > 1 else "tool_use",
                 "usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}}  # fmt: skip
        return peer.answer("200 OK", JSON, json.dumps(whole).encode())

    model = BedrockModel("us.meta.llama4-maverick", base_url=serve(answer).url, api_key="k", streaming=False)
    result = await Agent(model, tools=[look], limits=Limits(steps=2)).run("Look.")
    assert (result.stop.reason, result.text) == ("max_steps", "So far.")


async def test_what_a_result_holds_besides_text_and_what_is_said_then(serve):
    server = serve(answering(("draw", {"page": 1}), ("look", {"page": 2}), "Done.", "Yes."))
    agent = Agent(mistral(server), tools=[draw, look], journal=MemoryJournal())
    talk = Conversation()
    result = await agent.run("Draw.", conversation=talk)
    assert result.text == "Done."
    assert (await agent.run("Sure?", conversation=talk)).text == "Yes."


async def test_a_run_that_is_told_what_is_left_of_its_limits(serve):
    server = serve(answering(("look", {"page": 1}), ("look", {"page": 2}), "Done."))
    agent = Agent(mistral(server), tools=[look], tell_remaining=True, limits=Limits(steps=9))
    assert (await agent.run("Look.")).text == "Done."


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("400 Bad Request", "Conversation roles must alternate user/assistant/user/assistant/..."),
        ("500 Internal Server Error", "Error: Jinja Exception: Conversation roles must alternate user/assistant/..."),
    ],
)
@pytest.mark.parametrize("more", ["And then?", [Image(b"\x89PNG", media_type="image/png")]])
@pytest.mark.parametrize("in_text", [True, False])
async def test_a_conversation_goes_on_after_a_run_that_failed(serve, in_text, more, status, words):
    """Regression: where a model's template takes turns, the two questions were refused for ever."""

    def answer(peer: Any) -> None:
        turns = [one for one in json.loads(peer.body)["messages"] if one["role"] in ("user", "assistant")]
        if peer.number == 0:
            return peer.answer("503 Service Unavailable", JSON, b"{}")
        if any(one["role"] == next_one["role"] for one, next_one in pairwise(turns)):
            return peer.answer(status, JSON, json.dumps({"error": {"message": words}}).encode())
        assert "First?" in str(turns[0]["content"])
        choice = {"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}
        return peer.answer("200 OK", JSON, json.dumps({"choices": [choice]}).encode())

    server = serve(answer)
    model: Any = OpenAIChatModel("gemma3", base_url=server.url, api_key="k", streaming=False)
    agent = Agent(TextTools(model) if in_text else model, tools=[look], retries=0)
    talk = Conversation()
    assert (await agent.run("First?", conversation=talk)).stop.reason == "model_error"
    assert (await agent.run(more, conversation=talk)).text == "Yes."
    assert (await agent.run("And now?", conversation=talk)).text == "Yes."
    assert len(server.requests) == 4, "what is refused once is not sent again"


RESULTS = (
    UserMessage("go"),
    AssistantMessage((ToolCall("aaaaaaaaa", "look", "{}"),)),
    ToolMessage("aaaaaaaaa", "look", (Text("x"), Image(b"\x89PNG", media_type="image/png"))),
)


@pytest.mark.parametrize(
    ("host", "model", "known"),
    [
        ("api.mistral.ai", "any", True),
        ("openrouter.ai", "mistralai/devstral-2", True),
        ("localhost", "Ministral-3-8B", True),
        ("api.openai.com", "gpt-5", False),
        ("localhost", "qwen3", False),
    ],
)
def test_who_is_known_to_take_turns_by_name(host, model, known):
    assert takes_turns(host_of(host), model) is known


def test_a_word_of_the_model_stands_between_and_what_the_user_says_in_a_row_is_one_message():
    codec, order = ChatCodec("here"), Order()
    whole = (*RESULTS, UserMessage("more"))
    for last in range(len(whole) + 1):
        ordered = order.of("r", whole[:last]) or whole[:last]
        sent = json.loads(codec.encode(ModelRequest(ordered, run_id="r"), "m", False))["messages"]
        roles = ["user", "assistant", "tool", "assistant", "user"]
        assert [one["role"] for one in sent] == roles[: len(roles) if last > 2 else last]
    # What is said then stands after what the results hold besides text, and nothing stands twice.
    assert [one["type"] for one in sent[-1]["content"]] == ["text", "image_url", "text"]
    assert (sent[-1]["content"][-1]["text"], sent[2]["content"]) == ("more", "x")
    two = order.of("two", (UserMessage("one"), UserMessage("two")))
    assert two is not None
    assert [message.text for message in two] == ["one\n\ntwo"]
    assert order.of("two", (UserMessage("one"), AssistantMessage((Text("two"),)))) is None
    longer = (*whole, AssistantMessage((Text("Yes."),)), UserMessage("And?"))
    grown, again = order.of("r", longer), order.of("r", (*longer, UserMessage("Or?")))
    assert grown is not None
    assert again is not None
    assert all(one is other for one, other in zip(grown[:5], again[:5], strict=True)), "what is kept is the same"


async def test_a_result_with_an_image_under_a_name_of_ones_own(serve):
    """Regression: what a result holds besides text was sent as the user's right after it, and refused for ever."""
    server = serve(answering(("draw", {"page": 1}), "Drawn.", "Yes."))
    model = OpenAIChatModel("my-deployment", base_url=server.url, api_key="k", streaming=False)
    agent, talk = Agent(model, tools=[draw]), Conversation()
    assert (await agent.run("Draw.", conversation=talk)).text == "Drawn."
    assert (await agent.run("Sure?", conversation=talk)).text == "Yes."
    assert len(server.requests) == 4, "what is refused once is not sent again"


async def test_a_history_that_a_template_refuses_in_any_order_goes_to_the_next_model(serve):
    """Regression: HTTP 500, which another model need not answer, was taken for a request that is bad everywhere."""
    error = json.dumps({"error": {"message": "Jinja Exception: Conversation roles must alternate user/assistant/..."}})
    broken = serve(lambda peer: peer.answer("500 Internal Server Error", JSON, error.encode()))
    models = [
        OpenAIChatModel("mine", base_url=broken.url, api_key="k", streaming=False),
        mistral(serve(answering("Yes."))),
    ]
    result = await Agent(FallbackModel(models)).run("Well?")
    assert (result.text, len(broken.requests)) == ("Yes.", 1)


async def test_a_chat_model_of_mistrals_is_asked_in_that_order_too():
    core = pytest.importorskip("langchain_core.language_models.chat_models")
    messages = pytest.importorskip("langchain_core.messages")
    outputs = pytest.importorskip("langchain_core.outputs")
    from treadle.models.langchain import LangChainModel

    asked: list[list[str]] = []

    class ChatMistral(core.BaseChatModel):  # type: ignore[name-defined,misc]
        model: str = "mistral-large-latest"

        @property
        def _llm_type(self) -> str:
            return "mistralai-chat"

        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def _generate(self, given: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
            asked.append([one.type for one in given])
            calls = [{"id": "aaaaaaaaa", "name": "look", "args": {"page": 1}}] if len(asked) == 1 else []
            said = messages.AIMessage(
                "" if calls else "So far.", tool_calls=calls, response_metadata={"finish_reason": "stop"}
            )
            return outputs.ChatResult(generations=[outputs.ChatGeneration(message=said)])

    result = await Agent(LangChainModel(ChatMistral()), tools=[look], limits=Limits(steps=2)).run("Look.")
    assert (result.stop.reason, result.text) == ("max_steps", "So far.")
    assert asked[-1][-4:] == ["ai", "tool", "ai", "human"]
