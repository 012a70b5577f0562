"""What the tests of the text protocols share: three tools, and a model that says a text in given pieces."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from treadle.kernel.messages import AssistantMessage, FinishReason, Text, ToolCall, ToolSpec, UserMessage
from treadle.models.port import ModelEvent, ModelReply, ModelRequest, TextDelta
from treadle.models.text_tools import TextTools

SPECS = (
    ToolSpec(
        "search",
        "Search the web.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "what to look for"},
                "limit": {"type": "integer", "default": 5},
                "where": {"enum": ["news", "books"]},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    ),
    ToolSpec("get_time", "Tell the time.", {"type": "object", "properties": {}, "additionalProperties": False}),
    ToolSpec(
        "add",
        "Add two numbers.",
        {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    ),
)


class Says:
    """A model that says one text in the pieces that it is given."""

    name = "says"

    def __init__(self, text: str, pieces: Sequence[str] | None = None, finish: FinishReason = "stop") -> None:
        self.text, self.pieces, self.finish = text, [text] if pieces is None else pieces, finish
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        for piece in self.pieces:
            yield TextDelta(piece)
        yield ModelReply(AssistantMessage((Text(self.text),) if self.text else ()), finish=self.finish)


class Protocols:
    specs = SPECS
    Says = Says

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def events(self, text: str, format: str, pieces: Sequence[str] | None = None, **asked: Any) -> list[ModelEvent]:
        """What comes of a reply `text`; `asked` is of the request, `finish` of the reply."""
        model = TextTools(Says(text, pieces, asked.pop("finish", "stop")), format)
        request = ModelRequest([UserMessage("?")], asked.pop("tools", SPECS), **asked)

        async def collected() -> list[ModelEvent]:
            return [event async for event in model.stream(request)]

        return self._runner.run(collected())

    def reply(self, text: str, format: str, **asked: Any) -> ModelReply:
        return self.events(text, format, **asked)[-1]

    def parts(self, text: str, format: str, **asked: Any) -> list[Any]:
        """The reply's parts, short: a text, or a (name, arguments) pair for a call."""
        content = self.reply(text, format, **asked).message.content
        return [(part.name, part.arguments) if isinstance(part, ToolCall) else part.text for part in content]


@pytest.fixture(scope="session")
def protocols() -> Iterator[Protocols]:
    # To begin a loop takes as long as to read a short reply.
    with asyncio.Runner() as runner:
        yield Protocols(runner)
