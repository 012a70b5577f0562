"""Generated runs: a script of what a model says, tools of every temper, limits near their edges, and what is chosen."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import msgspec
from hypothesis import Phase, settings
from hypothesis import strategies as st
from toolbox import NAMES, TOOLS

from treadle import (
    Agent,
    Condition,
    Conversation,
    Limits,
    MemoryJournal,
    Price,
    Retries,
    StepSettings,
    has_tool_call,
    step_count,
    text_contains,
    tool_call_count,
)
from treadle.journal import Journal
from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    ModelSettings,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from treadle.models import (
    AuthenticationFailed,
    ContextOverflow,
    ModelEvent,
    ModelReply,
    ModelRequest,
    Overloaded,
    RateLimited,
    TextDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.models.port import OutputMode


def examples(count: int, *, shrink: bool = True) -> settings:
    """How many examples a property is tried on; PROPERTY_DEPTH=20 tries twenty times as many.

    Without `shrink` a failure is shown as it was found: where one example is a hundred runs, making it smaller would
    take longer than the whole suite may.
    """
    phases = [phase for phase in Phase if shrink or phase not in (Phase.shrink, Phase.explain)]
    return settings(max_examples=count * int(os.environ.get("PROPERTY_DEPTH", "1")), phases=phases)


FAILURES = {
    "overloaded": lambda: Overloaded("busy"),
    "rate_limited": lambda: RateLimited("slow down", retry_after=0.0),
    "much_later": lambda: RateLimited("come back tomorrow", retry_after=86_400.0),
    "authentication": lambda: AuthenticationFailed("who are you", status=401),
    "overflow": lambda: ContextOverflow("too long", status=400),
    "exception": lambda: RuntimeError("a bug in the model"),
    "stop_iteration": lambda: LookupError(""),
}


@dataclass(frozen=True)
class Says:
    """A whole reply."""

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    finish: str = "stop"
    thinking: str = ""


@dataclass(frozen=True)
class Breaks:
    """A call that fails `times` times, after `text` and `calls` had arrived, and then replies with `then`.

    `failure` None ends the stream without a reply.
    """

    failure: str | None
    text: str = ""
    times: int = 1
    calls: tuple[tuple[str, str, str], ...] = ()
    then: Says = Says("recovered")


Turn = Says | Breaks


def tokens_of(message: Message) -> int:
    """An honest count: a token for four characters, and a few for each message and call."""
    content = message.content
    if isinstance(content, str):
        return len(content) // 4 + 4
    total = 4
    for part in content:
        if isinstance(part, ToolCall):
            total += (len(part.name) + len(part.arguments)) // 4 + 4
        else:
            total += len(getattr(part, "text", "")) // 4
    return total


@dataclass
class Player:
    """A model that plays a script, the turn of each step by the step's number, and keeps to `settings.max_tokens`.

    `pieces` says how tool calls are streamed: not at all, at once, or with waits between.
    """

    script: tuple[Turn, ...]
    reports: bool = True
    pieces: str = "none"
    price: Price | None = None
    name: str = "player"
    requests: list[ModelRequest] = field(default_factory=list)
    sent: list[list[Message]] = field(default_factory=list)
    failed: dict[int, int] = field(default_factory=dict)

    def cost(self, usage: Usage) -> Decimal | None:
        return None if self.price is None else self.price.of(usage)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        self.sent.append(list(request.messages))
        turn = self.script[request.step] if request.step < len(self.script) else Says('{"n": 4}')
        await asyncio.sleep(0)
        if isinstance(turn, Breaks):
            failures = self.failed[request.step] = self.failed.get(request.step, 0) + 1
            if failures <= turn.times:
                async for event in self._streamed(turn.text, turn.calls):
                    yield event
                if turn.failure is not None:
                    raise FAILURES[turn.failure]()
                return
            turn = turn.then
        async for event in self._streamed(turn.text, turn.calls):
            yield event
        yield self._reply(turn, request)

    async def _streamed(self, text: str, calls: tuple[tuple[str, str, str], ...]) -> AsyncIterator[ModelEvent]:
        if text:
            yield TextDelta(text)
            await asyncio.sleep(0)
        for call_id, name, arguments in calls if self.pieces != "none" else ():
            yield ToolCallStarted(call_id, name)
            yield ToolCallDelta(call_id, arguments)
            yield ToolCallCompleted(call_id)
            if self.pieces == "slow":
                await asyncio.sleep(0)
                await asyncio.sleep(0)

    def _reply(self, turn: Says, request: ModelRequest) -> ModelReply:
        parts: list[AssistantPart] = [Thinking(turn.thinking)] if turn.thinking else []
        parts += [Text(turn.text)] if turn.text else []
        parts += [ToolCall(*call) for call in turn.calls]
        message, finish = AssistantMessage(tuple(parts)), turn.finish
        asked = sum(map(tokens_of, request.messages)) + len(msgspec.json.encode(request.tools)) // 4
        written = tokens_of(message)
        most = request.settings.max_tokens
        if most is not None and written > most:
            message, written, finish = AssistantMessage((Text(turn.text[:most] or "cut"),)), most, "length"
        return ModelReply(message, Usage(asked, written) if self.reports else None, finish)


ARGUMENTS = ("{}", '{"n": 1}', '{"n": 2}', "", '{"n": "x"}', '{"n": 1', "null", "[1]", '{"m": 3}', "what?", "{" * 40)


def call_lists(names: tuple[str, ...]) -> st.SearchStrategy[tuple[tuple[str, str, str], ...]]:
    call = st.tuples(
        st.sampled_from(["", "a", "b", "c", "c_1"]),
        st.sampled_from((*names, "no_such_tool", "", "final_answer")),
        st.sampled_from(ARGUMENTS),
    )
    return st.lists(call, max_size=4).map(tuple)


def says(names: tuple[str, ...]) -> st.SearchStrategy[Says]:
    finishes = ["stop"] * 4 + ["tool_calls"] * 6 + ["length", "content_filter", "refusal", "pause", "unknown"]
    return st.builds(
        Says,
        text=st.sampled_from(["", "", " ", "\n", "hm", "ANSWER: 4", "long " * 60]),
        calls=call_lists(names),
        finish=st.sampled_from(finishes),
        thinking=st.sampled_from(["", "", "let me see"]),
    )


def breaks(names: tuple[str, ...]) -> st.SearchStrategy[Breaks]:
    calls = call_lists(names)
    then = st.one_of(st.builds(Says, calls=calls), st.just(Says("recovered")))
    return st.builds(
        Breaks,
        failure=st.sampled_from([None, *FAILURES]),
        text=st.sampled_from(["", "half an "]),
        times=st.sampled_from([1, 1, 2]),
        calls=calls,
        then=then,
    ).flatmap(lambda one: st.sampled_from([one, replace(one, then=replace(one.then, calls=one.calls))]))


def scripts(names: tuple[str, ...] = NAMES, max_size: int = 6) -> st.SearchStrategy[tuple[Turn, ...]]:
    turn = st.one_of(says(names), says(names), says(names), says(names), breaks(names))
    again = st.tuples(says(names), st.integers(3, 7)).map(lambda one: [one[0]] * one[1])
    some = st.lists(turn, max_size=max_size)
    return st.one_of(some, some, some, st.tuples(again, some).map(lambda both: both[0] + both[1])).map(tuple)


limits = st.builds(
    Limits,
    steps=st.sampled_from([None, 1, 2, 3, 4, 5, 20]),
    tool_calls=st.sampled_from([None, 0, 1, 2, 3, 4, 6]),
    seconds=st.sampled_from([None, 300]),
    usd=st.none(),
    tokens=st.one_of(st.none(), st.none(), st.integers(0, 6000)),
    consecutive_errors=st.sampled_from([None, 1, 2, 3]),
)
money = st.sampled_from([None, None, 0, 0.001, 0.01, 0.05, 0.2, 1, Decimal("3.21")])


def _custom(state: Any) -> str | bool:
    return "enough said" if state.text.startswith("long") else False


CONDITIONS: tuple[Any, ...] = (
    None,
    None,
    step_count(2),
    has_tool_call("write") | text_contains("ANSWER:"),
    ~step_count(1) & tool_call_count(3),
    [tool_call_count(1, "look"), _custom],
)


def _other_messages(context: Any) -> StepSettings | None:
    if context.step_number % 2:
        return StepSettings(messages=[message for message in context.messages if message.role != "tool"])
    return StepSettings(messages=[*context.messages[-3:], ToolMessage("zz", "look", "an orphan"), UserMessage("go on")])


async def _other_request(context: Any) -> StepSettings | None:
    if context.step_number == 1:
        return StepSettings(instructions="be brief", tools=["look", "write"], tool_choice="look")
    return StepSettings(instructions="", tool_choice="required", settings=ModelSettings(temperature=0.5))


@dataclass
class Answer:
    """The type that a run may be asked for."""

    n: int


PREPARES: tuple[Any, ...] = (None, None, None, _other_messages, _other_request)


@dataclass(frozen=True)
class Setup:
    """One generated run, as data."""

    script: tuple[Turn, ...] = ()
    limits: Limits = field(default_factory=Limits)
    on_limit: str = "answer"
    stop_when: int = 0
    prepare: int = 0
    reports: bool = True
    usd: Any = None
    instructions: str | None = None
    on_interrupted: str = "ask"
    pieces: str = "none"
    output_mode: OutputMode | None = None

    def agent(self, player: Player, journal: Journal | None = None, tools: Any = TOOLS) -> Agent:
        stop_when: Condition | None = CONDITIONS[self.stop_when]
        return Agent(
            player,
            instructions=self.instructions,
            tools=tools,
            limits=msgspec.structs.replace(self.limits, usd=self.usd),
            stop_when=stop_when,
            prepare_step=PREPARES[self.prepare],
            on_limit=self.on_limit,  # type: ignore[arg-type]
            journal=journal,
            retries=Retries(attempts=2, base=0.0),
            on_interrupted=self.on_interrupted,  # type: ignore[arg-type]
            output=None if self.output_mode is None else Answer,
            output_mode=self.output_mode,
        )

    def player(self) -> Player:
        return Player(self.script, self.reports, self.pieces, Price(input=100, output=300))


def setups(names: tuple[str, ...] = NAMES, max_size: int = 6) -> st.SearchStrategy[Setup]:
    return st.builds(
        Setup,
        script=scripts(names, max_size),
        limits=limits,
        on_limit=st.sampled_from(["answer", "answer", "stop", "raise"]),
        stop_when=st.integers(0, len(CONDITIONS) - 1),
        prepare=st.integers(0, len(PREPARES) - 1),
        reports=st.booleans(),
        usd=money,
        instructions=st.sampled_from([None, "Be good."]),
        on_interrupted=st.sampled_from(["ask", "tell"]),
        pieces=st.sampled_from(["none", "at once", "slow", "slow"]),
        output_mode=st.sampled_from([None, None, None, "tool", "prompted"]),
    )


class SlowJournal(MemoryJournal):
    """A journal whose appends wait before and after, and which keeps the port's word on cancellation."""

    async def append(self, run_id: str, seq: int, events: Any) -> None:
        cancelled = None
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError as error:
            cancelled = error
        await super().append(run_id, seq, events)
        if cancelled is not None:
            raise cancelled
        await asyncio.sleep(0)


def conversation() -> Conversation:
    """One that has been going on for a while."""
    said = Conversation()
    said.add_user("hello")
    said.add_assistant("let me look", [ToolCall("old", "look", "{}")])
    said.add_tool_result("old", "seen")
    said.add_assistant("hello to you")
    return said
