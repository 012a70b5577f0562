"""Models for tests: one that says what a script says, one that replays a run, and a switch that forbids real ones."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec

from treadle.drivers.output import is_final
from treadle.journal import Journal
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, ModelReplied
from treadle.kernel.messages import AssistantMessage, AssistantPart, Json, Text, Thinking, ToolCall, Usage
from treadle.kernel.money import over, times, total
from treadle.models.errors import ModelError
from treadle.models.permission import forbid_real_models
from treadle.models.port import (
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.models.price import Price
from treadle.models.profile import ModelProfile, OutputMode

Calls: TypeAlias = Sequence[tuple[str, Json | str]]
Said: TypeAlias = str | Calls | tuple[str, Calls] | ModelReply | BaseException | AsyncIterator[ModelEvent]
# One string: pyright knows no alias that is made of several.
Turn: TypeAlias = "Said | Callable[[ModelRequest], Turn | Awaitable[Turn]]"


class ScriptExhausted(ModelError):
    """A scripted or replayed model was asked for more than it has to say."""

    kind = "script_exhausted"


class ScriptedModel:
    """A model that says what it is told to.

    Args:
        turns: what it replies, one after the other; or one function of the request, plain or asynchronous, that is
            called for every reply. A turn is a text; a list of `(tool, arguments)` pairs, the arguments a dict, or a
            text that is sent as it is; a `(text, calls)` pair; a whole `ModelReply`; an exception, which is raised; an
            asynchronous iterator of model events; or a function of the request that returns one of these.
        chunk: how many characters a piece of streamed text has; None streams it whole.
        name: what the model is called.
        keep_requests: whether `requests` is filled; a long benchmark may do without.
        usage: the tokens that every reply reports; None reports none, and they are estimated.
        price: what they cost.

    Attributes:
        requests: what it was sent, in order.

    Raises:
        Misuse: `turns` is no list of turns, or what else is given is something else. A turn that is none is a `Misuse`
            where it is asked for.
    """

    def __init__(
        self,
        turns: Iterable[Turn] | Callable[[ModelRequest], Any],
        chunk: int | None = None,
        *,
        name: str = "scripted",
        keep_requests: bool = True,
        usage: Usage | None = None,
        price: Price | None = None,
    ) -> None:
        if isinstance(turns, str) or not (callable(turns) or isinstance(turns, Iterable)):
            raise Misuse(
                f"ScriptedModel takes a list of turns, such as ['It is 42.'], or a function; given: {turns!r:.99}"
            )
        for what, given, wanted in (("chunk", chunk, int), ("usage", usage, Usage), ("price", price, Price)):
            if given is not None and (type(given) is bool or not isinstance(given, wanted)):
                raise Misuse(f"ScriptedModel takes {what}={wanted.__name__}(…); it was given {given!r:.99}")
        self.name = name
        self.requests: list[ModelRequest] = []
        self._keep, self._asked = keep_requests, 0
        self.chunk, self.usage, self.price = chunk, usage, price
        self._function = turns if callable(turns) else None
        self._turns: list[Turn] = [] if callable(turns) else list(turns)

    def cost(self, usage: Usage) -> Decimal | None:
        """What `usage` costs, if the model was given a price."""
        return None if self.price is None else self.price.of(usage)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next turn, as events."""
        number = self._asked
        self._asked += 1
        if self._keep:
            self.requests.append(request)
        turn: Any = self._function or self._turn(number)
        while callable(turn) and not hasattr(turn, "__aiter__"):
            turn = turn(request)
            if inspect.isawaitable(turn):
                turn = await turn
        if isinstance(turn, BaseException):
            raise turn
        if hasattr(turn, "__aiter__"):
            async for event in turn:
                yield event
            return
        reply = turn if type(turn) is ModelReply else self._reply(turn, number)
        for part in reply.message.content:
            for event in self._deltas(part):
                yield event
        yield reply

    def _turn(self, number: int) -> Turn:
        if number >= (turns := len(self._turns)):
            raise ScriptExhausted(
                f"the script has {'1 turn' if turns == 1 else f'{turns} turns'} and was asked for turn {number + 1}: "
                "add a turn, or limit the steps"
            )
        return self._turns[number]

    def _reply(self, turn: Any, number: int) -> ModelReply:
        text, calls = (
            ("", turn) if isinstance(turn, list) else (turn, ()) if isinstance(turn, str) else _both(turn, number)
        )
        parts: list[AssistantPart] = [Text(text)] if text else []
        for i, call in enumerate(calls):
            if not (isinstance(call, tuple) and len(call) == 2 and isinstance(call[0], str)):
                raise _no_turn(number, f"{call!r:.99} is no (tool, arguments) pair")
            name, arguments = call
            parts.append(ToolCall(f"call_{number}_{i}", name, _json(number, name, arguments)))
        return ModelReply(AssistantMessage(tuple(parts)), self.usage, "tool_calls" if calls else "stop")

    def _deltas(self, part: AssistantPart) -> Iterable[ModelEvent]:
        if type(part) is Text:
            size = self.chunk or len(part.text) or 1
            return [TextDelta(part.text[i : i + size]) for i in range(0, len(part.text), size)]
        if type(part) is ToolCall:
            return (
                ToolCallStarted(part.id, part.name),
                ToolCallDelta(part.id, part.arguments),
                ToolCallCompleted(part.id),
            )
        return (ThinkingDelta(part.text),) if type(part) is Thinking else ()


def _json(number: int, name: str, arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _no_turn(number, f"the arguments of {name} are not JSON, nor a text ({error})") from error


def _both(turn: Any, number: int) -> tuple[str, Sequence[Any]]:
    if isinstance(turn, tuple) and len(turn) == 2 and isinstance(turn[0], str) and isinstance(turn[1], list | tuple):
        return turn
    raise _no_turn(number, f"it is {turn!r:.99}")


def _no_turn(number: int, why: str) -> Misuse:
    return Misuse(
        f"turn {number + 1} of the script is none: {why}. A turn is a text, a list of (tool, arguments) pairs, or "
        "both: ('text', [('tool', {…})])"
    )


class ReplayModel:
    """A model that says again what was said in a run, step by step, from the run's events; nothing is called.

    Each reply is the recorded one: its parts, tokens, cost, finish, model and request id. An answer that was given by
    the final tool of a typed answer is given by that of the run that asks; where that has none it is the reply's text,
    as it was the recorded run's.

    Args:
        events: the events of the run, as `journal.read(run_id)` returns them.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._replies = {event.step: event for event in events if isinstance(event, ModelReplied)}
        self._rate = _rate(self._replies.values())
        self.name = "replay"

    @classmethod
    async def of(cls, journal: Journal, run_id: str) -> "ReplayModel":
        """The model that replays run `run_id` of `journal`.

        Raises:
            UnknownRun: the journal has no such run.
        """
        return cls(await journal.read(run_id))

    def cost(self, usage: Usage) -> Decimal | None:
        """What `usage` would have cost, so that a run with a limit in dollars can be replayed.

        It is reckoned with what a token of the recorded replies cost on average; None if not all of their costs are
        known. The replies themselves cost what is recorded.
        """
        return None if self._rate is None else times(self._rate, usage.total_tokens)

    @property
    def profile(self) -> ModelProfile:
        """An answer of a type is asked for as in the run, as far as its events tell."""
        # An answer that was asked for in words reads the same as one that the provider held to the schema.
        by_tool = any(getattr(event, "handed_in", False) for event in self._replies.values())
        mode: OutputMode = "tool" if by_tool else "native"
        return ModelProfile(output=mode, output_beside_tools=mode)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The reply that was recorded for the request's step."""
        event = self._replies.get(request.step)
        if event is None:
            raise ScriptExhausted(f"the replayed run has no reply for step {request.step}; it has {len(self._replies)}")
        message = _handing_in(event.message, request) if event.handed_in else event.message
        for part in message.content:
            if isinstance(part, Text) and part.text:
                yield TextDelta(part.text)
            elif isinstance(part, Thinking) and part.text:
                yield ThinkingDelta(part.text)
        yield ModelReply(
            message,
            event.usage,
            # A reply that ended so was taken, in journals of earlier versions.
            "stop" if event.finish == "unknown" else event.finish,
            event.finish_detail,
            event.model,
            event.request_id,
            event.cost,
        )


def _handing_in(message: AssistantMessage, request: ModelRequest) -> AssistantMessage:
    """A reply that gave its answer by the final tool, as it can be said to `request`: by that tool, else as its text.

    The answer is the last text, as the reply was recorded; the others are words beside it, which are no part of it.
    """
    final = next((tool.name for tool in request.tools if is_final(tool)), None)
    *others, last = [i for i, part in enumerate(message.content) if isinstance(part, Text)]
    answer = message.content[last]
    if final is None:
        return AssistantMessage(tuple([part for i, part in enumerate(message.content) if i not in others]))
    call = ToolCall(f"final_{request.step}", final, answer.text if isinstance(answer, Text) else "")
    return AssistantMessage((*message.content[:last], call, *message.content[last + 1 :]))


def _rate(replies: Collection[ModelReplied]) -> Decimal | None:
    """Dollars a token, on average; None if there is no reply, or one whose cost is not known."""
    costs, tokens = [reply.cost for reply in replies], sum([reply.usage.total_tokens for reply in replies])
    spent = total(*costs)
    if spent is None or None in costs:
        return None
    return over(spent, max(1, tokens))


__all__ = ["ReplayModel", "ScriptExhausted", "ScriptedModel", "Turn", "forbid_real_models"]
