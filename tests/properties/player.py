"""The model of a generated run: it plays a script, in pieces, with waits and failures where the script says."""

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from biller import Biller, Charge, Ledger
from msgspec.structs import replace
from texts import hostile

from treadle.kernel.messages import AssistantMessage, AssistantPart, Message, Opaque, Text, Thinking, ToolCall, Usage
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
    UsageReported,
)

FAILURES = {
    "overloaded": lambda: Overloaded("busy"),
    "rate_limited": lambda: RateLimited("slow down", retry_after=0.0),
    "much_later": lambda: RateLimited("come back tomorrow", retry_after=86_400.0),
    "authentication": lambda: AuthenticationFailed("who are you", status=401),
    "overflow": lambda: ContextOverflow("too long", status=400),
    "exception": lambda: RuntimeError("a bug in the model"),
    "odd_words": lambda: Overloaded(hostile("busy")),
    "stop_iteration": lambda: LookupError(""),
}

Calls = tuple[tuple[str, str, str], ...]

Reports = bool | Literal["request"]
"""Whether a model says what was counted: of its whole replies, or of its requests alone."""


@dataclass(frozen=True)
class Says:
    """A whole reply; `shown` is what people see or hear of it beside the text."""

    text: str = ""
    calls: Calls = ()
    finish: str = "stop"
    thinking: str = ""
    shown: str = ""


@dataclass(frozen=True)
class Breaks:
    """A call that fails `times` times, when `after` pieces of `text` and `calls` had arrived, then replies with `then`.

    `failure` None ends the stream without a reply; `after` None is after all pieces.
    """

    failure: str | None
    text: str = ""
    times: int = 1
    calls: Calls = ()
    then: Says = Says("recovered")
    after: int | None = None


Turn = Says | Breaks


_NUMBER = re.compile(r'("n":\s*)(\d)')


def quoted(turn: Turn) -> Turn:
    """The same turn, in which calls are made with texts for numbers."""
    calls = tuple((key, name, _NUMBER.sub(r'\1"\2"', arguments)) for key, name, arguments in turn.calls)
    if isinstance(turn, Says):
        return dataclasses.replace(turn, calls=calls)
    then = quoted(turn.then)
    assert isinstance(then, Says)
    return dataclasses.replace(turn, calls=calls, then=then)


@dataclass(frozen=True)
class Stream:
    """How a reply arrives: in pieces or not, and how long it waits before each (turns of the loop; 9 is a while).

    The waits are gone through again and again; `last` is waited once the whole reply is there.
    """

    pieces: bool = False
    waits: tuple[int, ...] = (0,)
    last: int = 0


async def wait(how_long: int) -> None:
    """Some turns of the event loop; 9 is longer than anything else takes but a deadline."""
    if how_long == 9:
        await asyncio.sleep(10.0)
    for _ in range(how_long % 9):
        await asyncio.sleep(0)


@dataclass
class Player:
    """A model that plays a script, the turn of each step by the step's number, and keeps to `settings.max_tokens`.

    It is charged for by `biller`, in `ledger`; with `reports` it says what was counted. `held` is how many events the
    journal holds. `wires` has the texts of each request as it went over the wire, where it is heard in a dialect.
    """

    script: tuple[Turn, ...]
    reports: Reports = True
    stream_: Stream = Stream()
    biller: Biller = field(default_factory=Biller)
    name: str = "player"
    ledger: Ledger = field(default_factory=Ledger)
    held: Callable[[], int] = lambda: 0
    requests: list[ModelRequest] = field(default_factory=list)
    sent: list[list[Message]] = field(default_factory=list)
    failed: dict[tuple[str, int], int] = field(default_factory=dict)
    wires: list[tuple[ModelRequest, list[str]]] = field(default_factory=list)

    def cost(self, usage: Usage) -> Decimal | None:
        return self.biller.price.of(usage)

    def _charge(self, run_id: str, usage: Usage) -> None:
        self.ledger.charges.append(Charge(run_id, self.held(), usage, self.biller.charge(usage)))

    async def stream(self, request: ModelRequest, sent: ModelRequest | None = None) -> AsyncIterator[ModelEvent]:
        """Plays the turn of `request`; `sent` is what came of it, where that is something else, and is what counts."""
        before = [one for one, asked in zip(self.sent, self.requests, strict=True) if asked.run_id == request.run_id]
        asked = self.biller.asked(sent or request, before)
        self.requests.append(request)
        self.sent.append(list(request.messages))
        turn = self.script[request.step] if request.step < len(self.script) else Says('{"n": 4}')
        await asyncio.sleep(0)
        if isinstance(turn, Breaks):
            key = request.run_id, request.step
            failures = self.failed[key] = self.failed.get(key, 0) + 1
            if failures <= turn.times:
                if self.reports:
                    self._charge(request.run_id, asked)
                    yield UsageReported(asked)
                written, held, most = 0, 0, request.settings.max_tokens
                for i, event in enumerate(self._pieces(turn.text, turn.calls)[: turn.after]):
                    await self._wait(i)
                    begun = i == 0 and not self.reports
                    piece = self.biller.tokens(getattr(event, "text", getattr(event, "json", "")))
                    if self.biller.whole_calls and not isinstance(event, TextDelta):
                        ends = isinstance(event, ToolCallCompleted)
                        piece, held = (held, 0) if ends else (0, held + piece)
                    written += piece
                    if most is not None and written > most:
                        break
                    self._charge(request.run_id, replace(asked, output_tokens=piece) if begun else Usage(0, piece))
                    yield event
                await self._wait(0)
                if turn.failure is not None:
                    raise FAILURES[turn.failure]()
                return
            turn = turn.then
        pieces = self._pieces(turn.text, turn.calls)
        for i, event in enumerate(pieces):
            await self._wait(i)
            yield event
        await self._wait(len(pieces))
        message, written, finish = self._reply(turn, request)
        usage = replace(asked, output_tokens=written)
        self._charge(request.run_id, usage)
        told = replace(asked, estimated=True) if self.reports == "request" else usage
        yield ModelReply(message, told if self.reports else None, finish)
        await wait(self.stream_.last)
        # Whoever has the whole reply has no more to hear, and loses none of it by what comes then.
        raise RuntimeError("the stream failed after its whole reply")

    async def _wait(self, i: int) -> None:
        await wait(self.stream_.waits[i % len(self.stream_.waits)])

    def _pieces(self, text: str, calls: Calls) -> list[ModelEvent]:
        events: list[ModelEvent] = [TextDelta(text)] if text else []
        for call_id, name, arguments in calls if self.stream_.pieces else ():
            half = len(arguments) // 2
            events.append(ToolCallStarted(call_id, name))
            events += [ToolCallDelta(call_id, piece) for piece in (arguments[:half], arguments[half:]) if piece]
            events.append(ToolCallCompleted(call_id))
        return events

    def _reply(self, turn: Says, request: ModelRequest) -> tuple[AssistantMessage, int, Any]:
        parts: list[AssistantPart] = [Thinking(turn.thinking)] if turn.thinking else []
        parts += [Text(turn.text)] if turn.text else []
        parts += [Opaque("player", {"drawn": True}, turn.shown)] if turn.shown else []
        parts += [ToolCall(*call) for call in turn.calls]
        message, finish = AssistantMessage(tuple(parts)), turn.finish
        written, most = self.biller.written(message), request.settings.max_tokens
        if most is not None and written > most:
            message, written, finish = AssistantMessage((Text(turn.text[:most] or "cut"),)), most, "length"
        return message, written, finish
