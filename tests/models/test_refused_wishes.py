"""Models that cannot be made to call a tool, or not to think: servers that refuse it as theirs do, and whole runs."""

import json
import logging
from typing import Any

import anyio
import pytest

from treadle import Agent, Limits, ModelSettings, Price, tool, tool_call_count
from treadle.models import (
    AnthropicModel,
    BadRequest,
    BedrockModel,
    GoogleModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}
UNFORCED = 'tool_choice: type "tool" and "any" are not supported for this model.'
ALWAYS = (
    '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and '
    '"output_config.effort" to control thinking behavior.'
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@tool(effect="read")
def look(page: int) -> str:
    """Reads a page."""
    return f"page {page}"


class Server:
    """Claude's newest, or another that refuses; it says one thing after another: a call, or a text."""

    def __init__(self, said: list[Any], dialect: str = "anthropic", refused: str = "") -> None:
        self.said, self.dialect, self.words = said, dialect, refused
        self.bodies: list[Any] = []
        self.refused: list[str] = []

    def __call__(self, peer: Any) -> None:
        body = json.loads(peer.body)
        self.bodies.append(body)
        if error := self._refusal(body):
            self.refused.append(error)
            peer.answer("400 Bad Request", JSON, json.dumps({"error": {"message": error}, "message": error}).encode())
            return
        peer.answer("200 OK", JSON, json.dumps(getattr(self, self.dialect)(self.said.pop(0))).encode())

    def _refusal(self, body: Any) -> str:
        own = body.get("additionalModelRequestFields", body)
        if (own.get("thinking") or {}).get("type") == "disabled":
            return ALWAYS
        choice = body.get("toolConfig", {}).get("toolChoice") or body.get("tool_choice") or "auto"
        free = {"auto", "none"} if self.words != "Tool choice must be auto" else {"auto"}
        if not free & ({choice} if isinstance(choice, str) else {choice.get("type"), *choice}):
            return self.words or UNFORCED
        return ""

    def anthropic(self, said: Any) -> Any:
        block = {"type": "text", "text": said} if isinstance(said, str) else {
            "type": "tool_use", "id": f"c{len(self.bodies)}", "name": said[0], "input": said[1]
        }  # fmt: skip
        stop = "end_turn" if isinstance(said, str) else "tool_use"
        usage = {"input_tokens": 9, "output_tokens": 2}
        return {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [block],
                "stop_reason": stop, "usage": usage}  # fmt: skip

    def converse(self, said: Any) -> Any:
        block = {"text": said} if isinstance(said, str) else {
            "toolUse": {"toolUseId": f"c{len(self.bodies)}", "name": said[0], "input": said[1]}
        }  # fmt: skip
        return {"output": {"message": {"role": "assistant", "content": [block]}},
                "stopReason": "end_turn" if isinstance(said, str) else "tool_use",
                "usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11}}  # fmt: skip

    def chat(self, said: Any) -> Any:
        message: Any = {"role": "assistant", "content": said if isinstance(said, str) else None}
        if not isinstance(said, str):
            function = {"name": said[0], "arguments": json.dumps(said[1])}
            message["tool_calls"] = [{"id": f"c{len(self.bodies)}", "type": "function", "function": function}]
        stop = "stop" if isinstance(said, str) else "tool_calls"
        return {"choices": [{"index": 0, "message": message, "finish_reason": stop}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}  # fmt: skip

    def responses(self, said: Any) -> Any:
        content = [{"type": "output_text", "text": said}]
        return {"id": "r", "status": "completed", "output": [{"type": "message", "content": content}],
                "usage": {"input_tokens": 9, "output_tokens": 2}}  # fmt: skip


def model_at(server: Any, dialect: str) -> Any:
    if dialect == "anthropic":
        address = server.url.removesuffix("/v1")
        return AnthropicModel("claude-sonnet-5-5", base_url=address, api_key="k", streaming=False)
    if dialect == "converse":
        return BedrockModel("us.anthropic.claude-opus-5-5", base_url=server.url, api_key="k", streaming=False)
    return OpenAIChatModel("kimi-k3", base_url=server.url, api_key="k", streaming=False)


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        ("anthropic", ""),
        ("anthropic", "tool_choice forces tool use is not compatible with this model"),
        ("anthropic", "Thinking may not be enabled when tool_choice forces tool use."),
        ("converse", "The model returned the following errors: " + UNFORCED),
        ("chat", "tool_choice 'required' is incompatible with thinking enabled"),
        ("chat", "Thinking mode does not support this tool_choice"),
        ("chat", "The tool_choice parameter does not support being set to required or object in thinking mode"),
        ("chat", "Tool choice must be auto"),
        ("chat", "No endpoints found that support the provided 'tool_choice' value."),
        ("converse", "This model doesn't support the toolConfig.toolChoice.any field. Remove it and try again."),
    ],
)
@pytest.mark.parametrize("choice", ["required", "look"])
async def test_a_model_that_cannot_be_made_to_call_is_held_to_the_choice_by_the_loop(
    serve, caplog, dialect, words, choice
):
    said = Server(["A text.", ("look", {"page": 1}), ("look", {"page": 2})], dialect, words)
    agent = Agent(model_at(serve(said), dialect), tools=[look], tool_choice=choice, stop_when=tool_call_count(2))
    with caplog.at_level(logging.WARNING, "treadle"):
        result = await agent.run("Look.")

    assert [call.name for call in result.tool_calls_made] == ["look", "look"]
    assert len(said.refused) == 1, "what is refused once is not asked for again"
    assert f"cannot be held to the tool choice {choice!r}" in caplog.text
    assert not [event for event in result.events if type(event).__name__ == "ModelFailed"]


async def test_a_run_lands_where_even_no_call_cannot_be_asked_for(serve):
    said = Server([("look", {"page": 1}), "So far."], "chat", "Tool choice must be auto")
    model = OpenAIChatModel("glm-5", base_url=serve(said).url, api_key="k", streaming=False, price=Price(1, 1))
    result = await Agent(model, tools=[look], limits=Limits(steps=2)).run("Look.")
    assert (result.stop.reason, result.text) == ("max_steps", "So far.")
    assert [body.get("tool_choice") for body in said.bodies] == [None, "none", None]


async def test_requests_at_the_same_time_are_each_sent_again(serve):
    said = Server([("look", {"page": 1})] * 4)
    agent = Agent(
        model_at(serve(said), "anthropic"), tools=[look], tool_choice="required", stop_when=tool_call_count(1)
    )
    results: list[Any] = []

    async def run() -> None:
        results.append(await agent.run("Go."))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(run)
    assert [len(result.tool_calls_made) for result in results] == [1] * 4


@pytest.mark.parametrize("dialect", ["anthropic", "converse"])
@pytest.mark.parametrize("wish", ["none", 0])
async def test_a_model_that_always_thinks_is_asked_to_think_little(serve, caplog, dialect, wish):
    said = Server(["One.", "Two."], dialect)
    model = model_at(serve(said), dialect)
    agent = Agent(model, settings=ModelSettings(thinking=wish))
    with caplog.at_level(logging.WARNING, "treadle"):
        texts = [(await agent.run("Go.")).text for _ in range(2)]

    assert (texts, len(said.refused)) == (["One.", "Two."], 1)
    own = said.bodies[-1].get("additionalModelRequestFields", said.bodies[-1])
    assert (own["thinking"]["type"], own["output_config"]["effort"]) == ("adaptive", "low")
    assert "is asked to think little" in caplog.text


@pytest.mark.parametrize(
    ("make", "words", "field", "little"),
    [
        (OpenAIResponsesModel, "Unsupported value: 'none' is not supported with the 'gpt-6-astra' model.",
         "reasoning", {"effort": "low"}),
        (OpenAIChatModel, "Unsupported value: 'reasoning_effort' does not support 'none' with this model.",
         "reasoning_effort", "low"),
        (OpenAIChatModel, "`reasoning_effort` must be one of `low`, `medium`, or `high`", "reasoning_effort", "low"),
        (OpenAIChatModel, "Reasoning is mandatory for this endpoint and cannot be disabled.",
         "reasoning_effort", "low"),
        (GoogleModel, "Thinking level MINIMAL is not supported for this model.", "generationConfig",
         {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}}),
        (GoogleModel, "Budget 0 is invalid. This model only works in thinking mode.", "generationConfig",
         {"thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": True}}),
    ],
)  # fmt: skip
async def test_whatever_always_thinks_is_asked_to_think_little(serve, make, words, field, little):
    bodies: list[Any] = []

    def answer(peer: Any) -> None:
        bodies.append(json.loads(peer.body))
        if bodies[-1][field] == little:
            peer.answer("200 OK", JSON, json.dumps(replies[make]).encode())
        else:
            peer.answer("400 Bad Request", JSON, json.dumps({"error": {"message": words}}).encode())

    said = Server([])
    replies = {
        OpenAIResponsesModel: said.responses("One."),
        OpenAIChatModel: said.chat("One."),
        GoogleModel: {"candidates": [{"content": {"parts": [{"text": "One."}]}, "finishReason": "STOP"}]},
    }
    name = "gemini-2.5-pro" if "Budget" in words else "gemini-3.8-flash"
    model = make(name, base_url=serve(answer).url, api_key="k", streaming=False)
    assert (await Agent(model, settings=ModelSettings(thinking="none")).run("Go.")).text == "One."
    assert len(bodies) == 2


@pytest.mark.parametrize("limits", [Limits(usd=1), Limits(usd=0.008)])
async def test_a_reply_with_thinking_stays_within_what_was_reckoned_for_it(serve, limits):
    """Regression: under a name that does not tell, a budget came on top, or was refused where there was no room."""
    said = Server(["One."])
    address = serve(said).url.removesuffix("/v1")
    model = AnthropicModel("my-deployment", base_url=address, api_key="k", streaming=False, price=Price(1, 10))
    result = await Agent(model, settings=ModelSettings(thinking="none"), limits=limits).run("Go.")
    assert result.text == "One."
    assert len({body["max_tokens"] for body in said.bodies}) == 1
    assert ["thinking" in body for body in said.bodies] == [True, False]


async def test_both_wishes_of_one_request_are_given_up_one_after_the_other(serve):
    said = Server([("look", {"page": 1})] * 2)
    settings = ModelSettings(thinking="none")
    agent = Agent(
        model_at(serve(said), "anthropic"),
        tools=[look],
        tool_choice="look",
        settings=settings,
        stop_when=tool_call_count(1),
    )
    assert [len((await agent.run("Go.")).tool_calls_made) for _ in range(2)] == [1, 1]
    assert said.refused == [ALWAYS, UNFORCED]


async def test_what_the_caller_says_in_claudes_own_words_stays_said(serve):
    said = Server([], "anthropic")
    settings = ModelSettings(extra={"thinking": {"type": "disabled"}})
    result = await Agent(model_at(serve(said), "anthropic"), settings=settings).run("Go.")
    assert (result.stop.reason, len(said.refused)) == ("model_error", 1)
    assert ALWAYS in result.stop.detail


async def test_another_refusal_of_a_forced_call_is_the_runs_end(serve):
    said = Server([], "chat", "tools: the name of one is too long")
    agent = Agent(model_at(serve(said), "chat"), tools=[look], tool_choice="look")
    result = await agent.run("Go.")
    assert (result.stop.reason, len(said.bodies)) == ("model_error", 1)
    (failed,) = [event for event in result.events if type(event).__name__ == "ModelFailed"]
    assert failed.error.kind == BadRequest("").kind


@pytest.mark.parametrize(
    "words",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
    ],
)
@pytest.mark.parametrize("field", ["reasoning", None])
async def test_behind_a_gateway_too_each_message_of_the_model_has_its_reasoning(serve, words, field):
    """Regression: a run was lost at its second step, where the reasoning had come in another field, or not at all."""
    said = Server([("look", {"page": 1}), ("look", {"page": 2}), "Done."], "chat")

    def answer(peer: Any) -> None:
        messages = [one for one in json.loads(peer.body)["messages"] if one["role"] == "assistant"]
        if any(not one.get("reasoning_content") for one in messages):
            said.refused.append(words)
            peer.answer("400 Bad Request", JSON, json.dumps({"error": {"message": words}}).encode())
            return
        told.append([one["reasoning_content"] for one in messages])
        whole = said.chat(said.said.pop(0))
        if field:
            whole["choices"][0]["message"][field] = "hm"
        peer.answer("200 OK", JSON, json.dumps(whole).encode())

    told: list[Any] = []
    model = OpenAIChatModel("deepseek/deepseek-v4-pro", base_url=serve(answer).url, api_key="k", streaming=False)
    assert (await Agent(model, tools=[look]).run("Look.")).text == "Done."
    thought = "hm" if field else " "
    assert (told, len(said.refused)) == ([[], [thought], [thought] * 2], 1)


async def test_a_forced_call_that_a_model_did_not_make_this_once_is_asked_for_again(serve):
    """Regression: what Groq says of a reply without a call was taken for a choice that its model does not take."""
    words = "Tool choice is required, but model did not call a tool"
    said = Server([("look", {"page": 1})], "chat")

    def answer(peer: Any) -> None:
        if peer.number:
            said(peer)
        else:
            error = {"message": words, "code": "tool_use_failed", "failed_generation": "Hm. Roles must alternate."}
            peer.answer("400 Bad Request", JSON, json.dumps({"error": error}).encode())

    said._refusal = lambda body: ""  # type: ignore[method-assign]
    server = serve(answer)
    agent = Agent(model_at(server, "chat"), tools=[look], tool_choice="required", stop_when=tool_call_count(1))
    result = await agent.run("Look.")
    assert [event.error.kind for event in result.events if type(event).__name__ == "ModelFailed"] == ["tool_use_failed"]
    assert [json.loads(request.body)["tool_choice"] for request in server.requests] == ["required", "required"]
    assert len(result.tool_calls_made) == 1


@pytest.mark.parametrize(
    ("words", "settings", "choice"),
    [
        ("messages.0: cannot be read: 'what does tool_choice do?'", ModelSettings(), "required"),
        ("'reasoning_content' is missing, roles must alternate", ModelSettings(), "auto"),
        ("`reasoning_effort` must be one of `none` or `default`", ModelSettings(thinking="high"), "auto"),
    ],
)
async def test_a_refusal_that_quotes_the_words_of_another_is_not_kept_in_mind(serve, words, settings, choice):
    """Regression: a model that was once refused something else was never again asked for what it does take."""
    said = Server([("look", {"page": 1}), ("look", {"page": 2})], "chat")
    said._refusal = lambda body: ""  # type: ignore[method-assign]

    def answer(peer: Any) -> None:
        if "what does" in peer.body.decode():
            peer.answer("400 Bad Request", JSON, json.dumps({"error": {"message": words}}).encode())
        else:
            said(peer)

    server = serve(answer)
    model = model_at(server, "chat")
    run = Agent(model, tools=[look], tool_choice=choice, settings=settings, stop_when=tool_call_count(1)).run
    assert (await run("what does tool_choice do?")).stop.reason == "model_error"
    known = len(server.requests)
    wish = ModelSettings(thinking=settings.thinking and "none")
    await Agent(model, tools=[look], tool_choice="required", settings=wish).run("Go.", limits=Limits(steps=1))
    sent = json.loads(server.requests[known].body)
    assert (sent["tool_choice"], sent.get("reasoning_effort")) == ("required", wish.thinking)
