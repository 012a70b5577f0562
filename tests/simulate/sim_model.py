"""The model of a simulated world: it plays the turns of a node, in pieces, slowly, and fails now and then.

Its provider charges for what it was sent once the first piece is on its way, and for each piece that it sends; where
the process that listens dies, it may go on to the end and charge for all.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from sim_outside import Outside
from sim_stage import job

from treadle import Price
from treadle.kernel.messages import AssistantMessage, Message, Text, ToolCall, Usage
from treadle.models import (
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

PRICE = Price(10, 30)


def tokens_of(text: str) -> int:
    """How many tokens its provider counts."""
    return len(text) // 4


def size_of(message: Message) -> int:
    """Tokens of a message, and a few around it and around each call."""
    content: Any = message.content
    if isinstance(content, str):
        return tokens_of(content) + 4
    return 4 + sum(
        tokens_of(part.name) + tokens_of(part.arguments) + 4
        if isinstance(part, ToolCall)
        else tokens_of(getattr(part, "text", ""))
        for part in content
    )


class Actor:
    """A model that plays the turns of a node, with other call ids each time that it is asked, as real ones do."""

    def __init__(self, world: Any, node: Any) -> None:
        self.name = f"actor-{node.name}"
        self._world, self._node = world, node

    def cost(self, usage: Usage) -> Any:
        """What its price list says."""
        return PRICE.of(usage)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The turn of the request's step, or the answer."""
        process = job().process
        stage, here = process.stage, process.stage.outside
        here.asks(request)
        await asyncio.sleep(stage.delay(0.1))
        failure = self._failure(here, request)
        if failure == "at once":
            raise Overloaded("busy")
        message, finish = self._reply(request, stage.rng)
        asked, written = sum(map(size_of, request.messages)) + 4 * len(request.tools), size_of(message)
        bill = here.bill(request.run_id, asked, written)
        process.listening.append(bill)
        try:
            if self._node.reports or failure:
                yield UsageReported(Usage(asked, 0))
            for i, call in enumerate(message.calls):
                bill.sent += tokens_of(call.name) + tokens_of(call.arguments)
                yield ToolCallStarted(call.id, call.name)
                yield ToolCallDelta(call.id, call.arguments)
                yield ToolCallCompleted(call.id)
                await asyncio.sleep(stage.delay(0.2 if self._node.early else 0.02))
                if failure == "midway" and i == len(message.calls) // 2:
                    raise RateLimited("slow down", retry_after=0.01)
            if message.text:
                bill.sent += tokens_of(message.text)
                yield TextDelta(message.text)
            if failure == "no end":
                return
            bill.sent = written
            yield ModelReply(message, Usage(asked, written) if self._node.reports else None, finish)
        finally:
            process.listening.remove(bill)

    def _reply(self, request: ModelRequest, rng: Any) -> tuple[AssistantMessage, Any]:
        """What it says, no longer than it may be, and why it ends."""
        message, most = self._message(request, rng), request.settings.max_tokens
        if most is not None and size_of(message) > most:
            return AssistantMessage((Text("cut"),)), "length"
        return message, "tool_calls" if message.calls else "stop"

    def _failure(self, here: Outside, request: ModelRequest) -> str:
        """How this call fails; the same step fails at most twice."""
        if not self._node.fails or here.stage.calm:
            return ""
        key = f"model {request.run_id} {request.step}"
        here.counts[key] = here.counts.get(key, 0) + 1
        throw = self._world.draw(key, 6) if here.counts[key] < 3 else 5
        return ("at once", "midway", "no end", "", "", "")[throw]

    def _message(self, request: ModelRequest, rng: Any) -> AssistantMessage:
        texts = [message.text for message in request.messages if message.role == "user"]
        root = next((label for text in reversed(texts) for label in re.findall(r"<([^>]*)>", text)[-1:]), "lost")
        turns, step = self._node.turns, request.step
        if step >= len(turns) or request.tool_choice == "none" or not request.tools:
            return AssistantMessage((Text(f"All of {root} is done."),))
        names = enumerate(turns[step])
        return AssistantMessage(tuple(self._call(name, f"{root}.{step}.{i}", i, rng) for i, name in names))

    def _call(self, name: str, label: str, place: int, rng: Any) -> ToolCall:
        given = {"label": label}
        if name.startswith("transfer_to_"):
            given = {"reason": f"<{label}>"}
        elif any(name == kid.name for kid in self._node.kids):
            given = {"task": f"<{label}>"}
        return ToolCall(
            f"{rng.choice(['c', 'c', 'c/', 'c#', 'c%2F'])}{rng.randrange(10**6)}_{place}", name, json.dumps(given)
        )
