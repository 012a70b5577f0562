"""The whole loop against llama.cpp's server, in the three dialects that it speaks, with a model of random weights.

The server holds the model to a grammar, so that its calls and its JSON are valid and otherwise as odd as chance makes
them: special tokens as text, blanks where JSON allows them, several calls at once, thinking, replies cut off anywhere.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import pytest
from pydantic import TypeAdapter

from treadle import Agent, Conversation, Limits, RunResult, tool
from treadle.drivers.configuration import Retries
from treadle.kernel.events import ModelFailed, RunFinished
from treadle.kernel.messages import (
    AssistantMessage,
    Message,
    ModelSettings,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from treadle.kernel.stop import STOP_REASONS
from treadle.models.errors import AuthenticationFailed, ConnectionFailed, ContextOverflow, Overloaded
from treadle.models.http_model import HttpModel
from treadle.models.port import (
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStarted,
)

pytestmark = pytest.mark.anyio

DIALECTS = ("chat", "responses", "messages")
WAYS = [(dialect, streaming) for dialect in DIALECTS for streaming in (True, False)]
ways = pytest.mark.parametrize(
    ("dialect", "streaming"),
    WAYS,
    ids=[f"{dialect}-{'stream' if streaming else 'whole'}" for dialect, streaming in WAYS],
)
RUNS = 16
# The server closes connections that it said would be kept, and gives up on a reply that is no proper call.
PATIENT = Retries(attempts=8, base=0.001)
NOT_PROPER = "does not match the expected"


@tool(effect="read")
def weather(city: Literal["Oslo", "Rome", "Nairobi"], days: int = 1) -> str:
    """Says what the weather will be.

    Args:
        city: where.
        days: from how many days' time.
    """
    if not 0 <= days < 1000:
        raise ValueError(f"no forecast reaches {days} days")
    return f"{city}: rain"


@tool
def note(text: str, kind: Literal["plan", "fact"] = "fact") -> dict[str, str]:
    """Keeps a note."""
    return {"kept": text, "as": kind}


@tool(effect="read")
async def total(amounts: list[float]) -> float:
    """Adds amounts up."""
    return sum(amounts)


def valid(messages: Sequence[Message]) -> None:
    """Each call has its one result at once, in order; no two calls of a message have the same id."""
    waiting: list[tuple[str, str]] = []
    for number, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            assert waiting, f"a result that answers nothing at {number}: {messages}"
            assert (message.call_id, message.name) == waiting.pop(0), f"a result out of order at {number}: {messages}"
            continue
        assert not waiting, f"calls without results before {number}: {messages}"
        assert not isinstance(message, SystemMessage) or number == 0
        if isinstance(message, AssistantMessage):
            waiting = [(call.id, call.name) for call in message.calls]
            assert all(call_id for call_id, _ in waiting)
            assert len({call_id for call_id, _ in waiting}) == len(waiting)
            assert message.says_something
    assert not waiting, f"calls without results at the end: {messages}"


def sound(result: RunResult) -> None:
    """The run has one stop reason, kept its limits, and is not stopped by anything that treadle sent."""
    assert result.stop.reason in STOP_REASONS
    assert sum(isinstance(event, RunFinished) for event in result.events) == 1
    assert isinstance(result.events[-1], RunFinished)
    assert result.error is None or NOT_PROPER in str(result.error), result.events
    for event in result.events:
        if isinstance(event, ModelFailed):
            assert event.error.kind == "connection_failed" or NOT_PROPER in event.error.message, event
    limits = result.limits
    assert limits.steps is None or len(result.steps) <= limits.steps
    assert limits.tool_calls is None or len(result.tool_calls_made) <= limits.tool_calls
    errors = 0
    for step in result.steps:
        assert errors < (limits.consecutive_errors or 1000) or step.landing is not None
        errors = errors + 1 if step.calls and all(call.is_error for call in step.calls) else 0
    for call in result.tool_calls_made:
        if call.status == "done" and not call.is_error:
            assert isinstance(json.loads(call.arguments if isinstance(call.arguments, str) else "{}"), dict)
    valid(result.messages)


@ways
async def test_the_whole_loop(
    dialect: str, streaming: bool, llama_server: Callable[..., str], speaking: Callable[..., HttpModel]
) -> None:
    model = speaking(dialect, llama_server(), streaming=streaming)
    stops: Counter[str] = Counter()
    steps = calls = 0
    for number in range(RUNS):
        agent = Agent(
            model,
            instructions="Say what you like.",
            tools=[weather, note, total],
            tool_choice="auto" if number % 3 == 0 else "required",
            on_limit=("answer", "stop")[number % 2],
            limits=(Limits(steps=6), Limits(steps=9, tool_calls=4), Limits(steps=8, consecutive_errors=1))[number % 3],
            retries=PATIENT,
            # Now and then too few, so that replies are cut off, in the middle of a call's arguments too.
            settings=ModelSettings(max_tokens=50 if number % 5 == 4 else 300),
        )
        talk = Conversation()
        for question in (f"Question {number}: will it rain?", "And after that?"):
            # The second run sends the first one's history to a server that reads every part of it.
            result = await agent.run(question, conversation=talk)
            sound(result)
            valid(talk.messages)
            stops[result.stop.reason] += 1
            steps += len(result.steps)
            calls += sum(call.executed for call in result.tool_calls_made)
    print(f"{dialect}, streaming {streaming}: {2 * RUNS} runs, {steps} steps, {calls} calls, {dict(stops)}")
    assert steps >= 2 * RUNS
    assert calls >= RUNS
    assert len(stops) >= 3, stops


@dataclass
class Trip:
    """What a structured answer must be here."""

    city: Literal["Oslo", "Rome", "Nairobi"]
    days: int
    open: bool
    legs: list[Literal["train", "ship"]]
    budget: float | None = None


def answered(result: RunResult) -> None:
    """The first answer was taken, or one that only a schema takes: `1e400` is a number there, and no float."""
    assert result.stop.reason == "answered", result
    refused = sum("should be a finite number" in str(message) for message in result.messages)
    assert len(result.steps) == 1 + refused, result.messages


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("dialect", ["chat", "responses"])
async def test_structured_output_validates(
    dialect: str, streaming: bool, llama_server: Callable[..., str], speaking: Callable[..., HttpModel]
) -> None:
    settings = ModelSettings(max_tokens=4000)
    if dialect == "responses":
        # Of this dialect's own field for it the server knows nothing; in Messages it has no field at all.
        settings = ModelSettings(max_tokens=4000, extra={"json_schema": TypeAdapter(Trip).json_schema()})
    model = speaking(dialect, llama_server(), streaming=streaming)
    agent = Agent(model, output=Trip, output_mode="native", settings=settings, retries=PATIENT)
    found = []
    for number in range(RUNS):
        result = await agent.run(f"Question {number}: where shall I go?")
        sound(result)
        answered(result)
        found.append(result.output)
    assert all(isinstance(trip, Trip) for trip in found)
    assert len({(trip.city, trip.open, tuple(trip.legs)) for trip in found}) > 1, "the model is not random"


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
async def test_a_final_tool_gives_a_typed_answer(
    dialect: str, llama_server: Callable[..., str], speaking: Callable[..., HttpModel]
) -> None:
    model = speaking(dialect, llama_server(), settings=ModelSettings(max_tokens=4000))
    agent = Agent(model, output=Trip, output_mode="tool", tool_choice="required", retries=PATIENT)
    found = []
    for number in range(RUNS):
        result = await agent.run(f"Question {number}: where shall I go?")
        sound(result)
        answered(result)
        found.append(result.output)
    assert all(isinstance(trip, Trip) for trip in found)


@pytest.mark.parametrize("dialect", ["responses", "messages"])
async def test_what_is_no_structured_output_is_not_believed(
    dialect: str, llama_server: Callable[..., str], speaking: Callable[..., HttpModel]
) -> None:
    # Here the server does not hold the model to the schema.
    model = speaking(dialect, llama_server(), settings=ModelSettings(max_tokens=300))
    agent = Agent(model, output=Trip, output_mode="prompted", limits=Limits(steps=8), retries=PATIENT)
    result = await agent.run("Where shall I go?")
    sound(result)
    assert result.stop.reason in ("consecutive_errors", "length", "max_steps")
    assert result.output is None


def said(message: AssistantMessage) -> list[tuple[str, ...]]:
    """What a message says, without the names that a server makes up anew for each reply."""
    found: list[tuple[str, ...]] = []
    for part in message.content:
        match part:
            case Text(text):
                found.append(("text", text))
            case Thinking(text):
                found.append(("thinking", text))
            case ToolCall():
                found.append(("call", part.name, value(part.arguments)))
            case _:
                pytest.fail(f"a part that this server does not send: {part}")
    return found


def value(arguments: str) -> str:
    """Arguments without blanks between them, which Messages does not keep; as they are if they were cut off."""
    try:
        return json.dumps(json.loads(arguments))
    except ValueError:
        return arguments


def pieces(events: Sequence[ModelEvent]) -> list[tuple[str, ...]]:
    """What the pieces before the reply say, put together."""
    found: list[list[str]] = []
    calls: dict[str, list[str]] = {}
    for event in events:
        match event:
            case TextDelta(text) | ThinkingDelta(text):
                kind = "text" if isinstance(event, TextDelta) else "thinking"
                if not found or found[-1][0] != kind:
                    found.append([kind, ""])
                found[-1][1] += text
            case ToolCallStarted():
                calls[event.id] = ["call", event.name, ""]
                found.append(calls[event.id])
            case ToolCallDelta():
                calls[event.id][2] += event.json
            case _:
                pass
    return [("call", one[1], value(one[2])) if one[0] == "call" else tuple(one) for one in found]


async def replied(model: HttpModel, request: ModelRequest) -> tuple[list[ModelEvent], ModelReply] | None:
    """The pieces and the reply; None if the server gave up on it."""
    for _ in range(PATIENT.attempts):
        try:
            *events, reply = [event async for event in model.stream(request)]
        except ConnectionFailed:
            continue
        except Overloaded as error:
            if NOT_PROPER not in str(error):
                raise
            return None
        assert isinstance(reply, ModelReply)
        return events, reply
    pytest.fail("the server does not keep a connection until it has answered")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_every_dialect_streaming_or_not_says_the_same(
    choice: str, seed: int, llama_server: Callable[..., str], speaking: Callable[..., HttpModel]
) -> None:
    # The seed is the server's, as Messages has no place for one.
    address = llama_server("--seed", str(seed), "--no-cache-prompt")
    request = ModelRequest((SystemMessage("Be odd."), UserMessage("Well?")), (weather.spec, note.spec), choice)
    for length in (9, 60, 400):
        replies: dict[bool, list[Any]] = {True: [], False: []}
        for dialect, streaming in WAYS:
            model = speaking(dialect, address, streaming=streaming, settings=ModelSettings(max_tokens=length))
            found = await replied(model, request)
            if found is not None and streaming:
                assert pieces(found[0]) == said(found[1].message)
            replies[streaming].append(found and (said(found[1].message), found[1].usage))
        assert replies[True][0] == replies[True][1] == replies[True][2], replies
        assert replies[False][0] == replies[False][1], replies
        # Of a reply that breaks off, streams leave out what might become a call or a thought, and Messages has no place
        # for half a call's arguments.
        whole = replies[False][0]
        if whole is not None and whole[1].output_tokens < length and ("text", "<think>") not in whole[0]:
            assert replies[True] == replies[False]


@ways
async def test_a_wrong_key_and_too_long_a_history_have_their_errors(
    dialect: str, streaming: bool, llama_server: Callable[..., str], speaking: Callable[..., HttpModel]
) -> None:
    address = llama_server()
    result = await Agent(speaking(dialect, address, streaming=streaming, api_key="wrong")).run("Hello?")
    assert (result.stop.reason, type(result.error)) == ("model_error", AuthenticationFailed)
    assert "wrong" not in str(result.error)
    result = await Agent(speaking(dialect, address, streaming=streaming)).run("so long a tale " * 5000)
    assert (result.stop.reason, type(result.error)) == ("model_error", ContextOverflow)


@ways
async def test_a_deadline_is_kept_however_long_the_model_talks(
    dialect: str, streaming: bool, llama_server: Callable[..., str], speaking: Callable[..., HttpModel]
) -> None:
    # Token 258 ends a reply. The server goes on until `max_tokens`, though its client has hung up.
    address = llama_server("--logit-bias", "258-1000")
    settings = ModelSettings(max_tokens=3000)
    agent = Agent(speaking(dialect, address, streaming=streaming), settings=settings, limits=Limits(seconds=0.2))
    result = await agent.run("Talk!")
    assert result.stop.reason == "deadline"
    valid(result.messages)


@ways
async def test_runs_at_the_same_time(
    dialect: str, streaming: bool, llama_server: Callable[..., str], speaking: Callable[..., HttpModel]
) -> None:
    model = speaking(dialect, llama_server(), streaming=streaming, settings=ModelSettings(max_tokens=200))
    agent = Agent(model, tools=[weather, note, total], limits=Limits(steps=4), retries=PATIENT)
    results: list[RunResult] = []

    async def run(number: int) -> None:
        results.append(await agent.run(f"Question {number}: will it rain?"))

    async with anyio.create_task_group() as tasks:
        for number in range(RUNS):
            tasks.start_soon(run, number)
    assert len({result.run_id for result in results}) == RUNS
    for result in results:
        sound(result)
