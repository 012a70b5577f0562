"""What each feature of a run costs at a provider that caches prefixes, against the bill that could not be less.

    python bench/cache.py               # all features at all providers, as a table
    python bench/cache.py anthropic     # the providers whose name begins so

The agents are real and so are the bodies: each request is written by the dialect of its provider, and a simulation of
that provider's published rules (`bench/cache_rules.py`) charges for it. Nothing is sent. In the table: the requests,
how many of them did not find what the one before had left, and the bill in ideal ones, where each token is written once
and read in each request after. A feature with an asterisk was asked to change the beginning of its requests.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NamedTuple

from cache_rules import AnthropicCache, Bill, BreakpointCache, Cache, ConverseCache, PrefixCache
from pydantic import BaseModel

from treadle import Agent, Conversation, Limits, StepSettings, handoff, tool
from treadle.context.policies import Summarise
from treadle.models.anthropic import AnthropicCodec
from treadle.models.bedrock import BedrockCodec
from treadle.models.codec import Codec
from treadle.models.hosts import DEEPSEEK, OPENAI, host_of
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelEvent, ModelRequest
from treadle.models.profile import OutputMode
from treadle.testing import ScriptedModel

STEPS = 40
APART = 15
LIMITS = Limits(steps=10_000, tool_calls=100_000)
INSTRUCTIONS = "You look things up, and say what you found. " * 40
ANSWER = '{"value": 42}'


class Provider(NamedTuple):
    """A provider: the model that is asked, what writes its requests, and its cache."""

    model: str
    codec: Callable[[], Codec]
    cache: Callable[[], Cache]


PROVIDERS = {
    "anthropic": Provider("claude-sonnet-4-5", AnthropicCodec, AnthropicCache),
    "anthropic 1h": Provider(
        "claude-sonnet-4-5", lambda: AnthropicCodec(cache="1h"), lambda: AnthropicCache(write=2.0)
    ),
    "bedrock": Provider("us.anthropic.claude-sonnet-4-5-20250929-v1:0", BedrockCodec, ConverseCache),
    "openai": Provider("gpt-5", lambda: ResponsesCodec(host=OPENAI), PrefixCache),
    "openai chat": Provider("gpt-5", lambda: ChatCodec(host=OPENAI), PrefixCache),
    "openai 5.6": Provider("gpt-5.6", lambda: ResponsesCodec(host=OPENAI), BreakpointCache),
    "deepseek": Provider("deepseek-chat", lambda: ChatCodec("deepseek", DEEPSEEK), lambda: PrefixCache(64, 64)),
    "gemini": Provider(
        "gemini-2.5-pro",
        lambda: ChatCodec("gemini", host_of("generativelanguage.googleapis.com")),
        lambda: PrefixCache(4096, 1),
    ),
}


class Billed:
    """A model that says what it is told to, and is charged for what its dialect would send."""

    def __init__(self, provider: Provider, bill: Bill, turns: Any, mode: OutputMode = "native") -> None:
        self.name = f"billed:{provider.model}"
        self.context_window = 1_000_000
        self._provider, self._bill, self._mode = provider, bill, mode
        self._codec, self._script = provider.codec(), ScriptedModel(turns, keep_requests=False)

    def output_mode(self, tools: bool) -> OutputMode:
        """As the feature wants it."""
        return self._mode

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next turn, once the request is charged."""
        self._bill.ask(request, self._codec.encode(request, self._provider.model, True))
        async for event in self._script.stream(request):
            yield event


class Answer(BaseModel):
    """What an agent with a type for its answer is asked for."""

    value: int


@tool(effect="read")
async def look(key: str) -> str:
    """Looks something up."""
    return f"{key}: " + "some text about it " * 40


@tool(effect="read")
async def again(key: str) -> str:
    """Looks something up that is always the same."""
    return "the same text as before " * 30


@tool(effect="read")
async def count(text: str) -> int:
    """Counts the words of a text."""
    return len(text.split())


TOOLS = [look, again, count]
Make = Callable[..., Billed]
Calls = list[tuple[str, dict[str, Any]]]


def looking(calls: int = 1, steps: int | None = None) -> Callable[[ModelRequest], Any]:
    """A model that looks things up, some in each of its steps, and then is done."""

    def turn(request: ModelRequest) -> Any:
        if request.step >= (steps or STEPS) or request.tool_choice == "none":
            return "done"
        return [("look", {"key": f"{request.step}.{i}"}) for i in range(calls)]

    return turn


def stubborn() -> Callable[[ModelRequest], Any]:
    """A model that falls into a loop now and then, and stays in it until a tool is taken away."""
    free = 0

    def turn(request: ModelRequest) -> Any:
        nonlocal free
        if request.step >= 2 * STEPS or request.tool_choice == "none":
            return "done"
        if all(spec.name != "again" for spec in request.tools):
            free = request.step + APART
        if request.step < free:
            return [("look", {"key": str(request.step)})]
        return [("again", {"key": str(free)})]

    return turn


async def run(model: Billed, **options: Any) -> None:
    """One run of an agent with this model."""
    await agent(model, **options).run("go")


def agent(model: Billed, **options: Any) -> Agent[Any, Any]:
    """An agent with this model, and what the features share."""
    return Agent(model, instructions=INSTRUCTIONS, **{"tools": TOOLS, "limits": LIMITS} | options)


async def plain(make: Make, calls: int = 1, **options: Any) -> None:
    """A run that looks things up."""
    await run(make(looking(calls)), **options)


async def landing(make: Make, **options: Any) -> None:
    """A run that is ended by its limit, with a closing reply."""
    await run(make(looking(steps=10_000)), limits=Limits(steps=STEPS), **options)


async def typed(make: Make, mode: OutputMode) -> None:
    """A run with a type for its answer that is ended by its limit."""
    closing = [("final_answer", {"value": 42})] if mode == "tool" else ANSWER

    def turn(request: ModelRequest) -> Any:
        return closing if request.step == STEPS - 1 else [("look", {"key": str(request.step)})]

    await run(make(turn, mode), limits=Limits(steps=STEPS), output=Answer)


async def chosen(make: Make) -> None:
    """A run in which `prepare_step` leaves a tool out in every fourth step."""

    async def choose(step: Any) -> StepSettings:
        return StepSettings(tools=["look"] if step.step_number % 4 == 3 else None)

    await run(make(looking()), prepare_step=choose)


async def forced(make: Make) -> None:
    """A run in which `prepare_step` forces a call in every fourth step."""

    async def choose(step: Any) -> StepSettings:
        return StepSettings(tool_choice="required" if step.step_number % 4 == 3 else None)

    await run(make(looking()), prepare_step=choose)


async def handed_on(make: Make) -> None:
    """A conversation that is handed on to another agent after some steps."""
    other = Agent(make(looking(steps=10)), name="other", instructions=INSTRUCTIONS[::-1], tools=TOOLS)

    def turn(request: ModelRequest) -> Any:
        return [("hand_off_to_other", {})] if request.step == 20 else [("look", {"key": str(request.step)})]

    await run(make(turn), tools=[*TOOLS, handoff(other, "hand_off_to_other", "Hands on.")])


async def helped(make: Make) -> None:
    """A run that has every fourth step done by an agent below it."""
    below = agent(make(looking(steps=6)), name="below").as_tool("below", "Does a part of it.")

    def turn(request: ModelRequest) -> Any:
        if request.step >= STEPS:
            return "done"
        if request.step % 4 == 3:
            return [("below", {"task": f"part {request.step}"})]
        return [("look", {"key": str(request.step)})]

    await run(make(turn), tools=[*TOOLS, below])


async def summarised(make: Make) -> None:
    """A run whose history is summarised when it becomes too long."""
    short = Summarise(ScriptedModel(lambda request: "so far, so good", keep_requests=False), high=6_000, low=3_000)
    await run(make(looking()), context=[short])


async def steered(make: Make) -> None:
    """A run that a person says something to in every fourth step."""

    async def turn(request: ModelRequest) -> Any:
        if request.step % 4 == 3:
            await live.send(f"Mind {request.step}.")
        return looking()(request)

    live = agent(make(turn)).stream("go")
    async with live:
        async for _ in live:
            pass


async def talked(make: Make) -> None:
    """A conversation of some runs."""
    conversation: Conversation = Conversation()
    talking = agent(make(looking(steps=6)))
    for question in range(6):
        await talking.run(f"question {question}", conversation=conversation)


FEATURES: dict[str, Callable[[Make], Any]] = {
    "plain": plain,
    "ten calls a step": lambda make: plain(make, 10),
    "forty calls a step": lambda make: plain(make, 40),
    "tell_remaining": lambda make: plain(make, tell_remaining=True),
    "tell_remaining, ten calls": lambda make: plain(make, 10, tell_remaining=True),
    "landing": landing,
    "landing, tool_choice=required *": lambda make: landing(make, tool_choice="required"),
    "tools withheld": lambda make: run(make(stubborn())),
    "answer natively, landing": lambda make: typed(make, "native"),
    "answer by tool, landing": lambda make: typed(make, "tool"),
    "answer prompted, landing": lambda make: typed(make, "prompted"),
    "steering": steered,
    "conversation": talked,
    "sub-agents": helped,
    "hand-off": handed_on,
    "prepare_step: tool_choice *": forced,
    "prepare_step: tools *": chosen,
    "summaries *": summarised,
}


def billed(feature: str, provider: str) -> Bill:
    """The bill of a feature at a provider."""
    given = PROVIDERS[provider]
    bill = Bill(given.cache())
    asyncio.run(FEATURES[feature](lambda turns, mode="native": Billed(given, bill, turns, mode)))
    return bill


def main(beginnings: Sequence[str]) -> None:
    """Prints a row for each feature at each provider."""
    for provider in PROVIDERS:
        if beginnings and not provider.startswith(tuple(beginnings)):
            continue
        print(f"\n{provider:34}{'requests':>10}{'breaks':>8}{'bill':>8}")
        for feature in FEATURES:
            bill = billed(feature, provider)
            print(f"{feature:34}{bill.requests:10d}{bill.breaks:8d}{bill.times:8.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
