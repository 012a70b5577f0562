"""Text tools: a model around a model that has no tool calling of its own, and the equal of those that have.

It sends the inner model a request without tools, in which they are described in words, and reads the calls out of
what the model writes. It does no input or output of its own. Neighbours: `history.py` and `manual.py` write the
request, `reader.py` and the formats read the reply.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Any, Final, Literal, Protocol, assert_never, cast, get_args

from msgspec.structs import replace

from treadle.context.texts import UNIT, estimate_text, text_weight
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    Json,
    Message,
    ModelSettings,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from treadle.models.bounds import check_reply, size_of_piece
from treadle.models.errors import ReplyTooLong, ToolUseFailed
from treadle.models.fixed import fixed_tokens, members
from treadle.models.inner import inner_events
from treadle.models.invalid_call import INVALID_CALL
from treadle.models.port import (
    Model,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    UsageReported,
    held_to,
    is_model,
    longest_reply_of,
)
from treadle.models.profile import ModelProfile, OutputMode, profile_of
from treadle.models.terms import Terms, terms_of
from treadle.models.text_tools.history import History
from treadle.models.text_tools.json import JsonFormat
from treadle.models.text_tools.manual import example, keys_of, manual
from treadle.models.text_tools.own import TextFormat
from treadle.models.text_tools.pieces import Format, Offer
from treadle.models.text_tools.react import ReactFormat
from treadle.models.text_tools.reader import Names, Reader
from treadle.models.text_tools.tags import TagsFormat

FormatName = Literal["json", "react", "tags"]
FORMATS: Final[tuple[FormatName, ...]] = get_args(FormatName)

OFF: Final = "Do not call a tool now: answer without one."
_MOST_STOPS: Final = 4
"""The most stop sequences that OpenAI's API takes, and the servers that follow it."""


class Described(Protocol):
    """What has a description for models, such as a `Tool`."""

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of it."""


class TextTools:
    """Gives tools to a model that cannot call them natively, by a protocol in its text.

    The tools are described in the system message, calls and results of the history are written out as text, and the
    calls in the reply are read out of it. What tried to be a call and is none comes back to the model as an error that
    says what is wrong and shows what is right; like any error of a tool, it counts towards
    `Limits.consecutive_errors`, and it is never taken for the answer.

    Args:
        model: the model, or its name, as `Agent` takes it.
        format: how calls are written. "json": an object with name and arguments; "react": Thought, Action, Action
            Input, Observation, Final Answer; "tags": an object between `<tool_call>` tags, which suits the models that
            were trained on it (Hermes, Qwen); or a `TextFormat` of your own.
        name: what it is called in results and journals; the inner model's name by default.

    Raises:
        Misuse: there is no such format, or `model` is none.
    """

    def __init__(self, model: Model | str, format: FormatName | TextFormat = "json", *, name: str = "") -> None:
        if isinstance(model, str):
            from treadle.models.names import model_from_name

            model = model_from_name(model)
        if not is_model(model):
            raise Misuse(f"TextTools takes a model, or the name of one such as 'ollama:llama3'; it was given {model!r}")
        self.model = model
        self.format = format
        self._name = name
        self._form = _form(format)
        self._history = History(self._form)

    @property
    def name(self) -> str:
        """What it was said to be called, else the inner model's name."""
        return self._name or self.model.name

    @property
    def profile(self) -> ModelProfile:
        """What the inner model can do, and tools in words.

        The inner model can be held to a schema only where there are no tools, for then it could not call one.
        """
        inner = profile_of(self.model)
        alone: OutputMode = "native" if inner.output == "native" else "prompted"
        return replace(inner, output=alone, output_beside_tools="prompted", tools=True, parallel_calls=True)

    @property
    def max_output_tokens(self) -> int | None:
        """The longest reply of the inner model; None if it does not say."""
        longest: int | None = getattr(self.model, "max_output_tokens", None)
        return longest

    def longest_reply(self, settings: ModelSettings) -> int | None:
        """The most tokens that a reply of the inner model may have under `settings`; None if it does not say."""
        return longest_reply_of(self.model, settings)

    def held_to(self, settings: ModelSettings, tokens: int) -> ModelSettings:
        """`settings` under which a reply of the inner model has at most `tokens`."""
        return held_to(self.model, settings, tokens)

    def cost(self, usage: Usage) -> Decimal | None:
        """What `usage` costs at the inner model, in dollars; None if it does not know its price."""
        cost: Any = getattr(self.model, "cost", None)
        return None if cost is None else cast("Decimal | None", cost(usage))

    def terms(self, settings: ModelSettings) -> Terms:
        """On what terms the inner model bills a request with `settings`."""
        return terms_of(self.model, settings)

    @property
    def models(self) -> Sequence[Model]:
        """Those that may answer in the inner model's place."""
        return members(self.model)

    def fixed_tokens(self, tools: Sequence[ToolSpec], output_schema: Json | None) -> int:
        """Tokens that a request with these has besides its messages: the manual, and what the inner model says."""
        inner = fixed_tokens(self.model, (), output_schema)
        if not tools:
            return inner
        request = ModelRequest((), tuple(tools), "required", output_schema=output_schema)
        offer = _offer(request)
        # What is longest is a manual that shows how the tool with the longest call is made, and says that it must be.
        longest = max(offer.tools, key=lambda name: len(example(self._form, offer, name)))
        offers = (offer, _offer(replace(request, tool_choice=longest)))
        return inner + max(estimate_text(manual(self._form, one)) for one in offers) + estimate_text(OFF)

    def instructions(self, tools: Sequence[ToolSpec | Described], tool_choice: str = "auto") -> str:
        """What the model is told of `tools` and of how to call them, after the instructions of the agent.

        Args:
            tools: tools, or what is said of them; without any, nothing is.
            tool_choice: as in a request.
        """
        return instructions(self.format, tools, tool_choice)

    def __repr__(self) -> str:
        return f"TextTools({self.model!r}, format={self.format!r})"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Replies to `request`, the whole reply last. Raises `ModelError` for what went wrong outside."""
        if any(tool.name == INVALID_CALL for tool in request.tools):
            raise Misuse(f"no tool can be called {INVALID_CALL!r} with TextTools, which uses the name; rename it")
        if not request.tools and not _has_calls(request.messages):
            async with aclosing(inner_events(self.model, request)) as events:
                async for event in events:
                    yield event
            return
        offer = _offer(request)
        reader = self._reader(request, offer)
        counted, weight, size = Usage(), 0, 0
        try:
            async with aclosing(inner_events(self.model, self._request(request, offer))) as events:
                async for event in events:
                    if isinstance(event, ModelReply):
                        for made in self._ended(event, reader, request, offer):
                            yield made
                    elif isinstance(event, TextDelta):
                        # What is held back until it shows to be a call is seen by nobody above.
                        size += size_of_piece(event)
                        weight += text_weight(event.text)
                        # What is held back until it shows to be a call is paid for as well, and what is too long.
                        received = max(counted.output_tokens, weight // UNIT + 1)
                        told = UsageReported(replace(counted, output_tokens=received, estimated=True))
                        try:
                            check_reply(size)
                        except ReplyTooLong:
                            yield told
                            raise
                        for made in reader.feed(event.text):
                            yield made
                        yield told
                    elif isinstance(event, UsageReported):
                        counted = event.usage
                        yield event
                    else:
                        yield event
        except ToolUseFailed as failure:
            # A server that looks for tool calls although it was given no tools, and shows the one that it found.
            if not failure.failed_text or reader.text:
                raise
            shown = ModelReply(AssistantMessage((Text(failure.failed_text),)), request_id=failure.request_id)
            for made in self._ended(shown, reader, request, offer):
                yield made

    def _reader(self, request: ModelRequest, offer: Offer) -> Reader:
        return Reader(self._form, offer, Names(request.run_id, request.step), example(self._form, offer))

    def _ended(self, whole: ModelReply, reader: Reader, request: ModelRequest, offer: Offer) -> Iterator[ModelEvent]:
        """What of a reply that is whole `reader` has not told yet, and that reply with its calls."""
        text = whole.message.text
        if text.startswith(reader.text):
            yield from reader.feed(text[len(reader.text) :])
        else:
            reader = self._reader(request, offer)
            reader.feed(text)
        yield from reader.close(complete=whole.finish in ("stop", "tool_calls"))
        yield _reply(whole, reader.parts)

    def _request(self, request: ModelRequest, offer: Offer) -> ModelRequest:
        """`request` as the inner model is sent it."""
        messages = self._history.render(request.run_id, request.messages)
        if request.tools:
            told = manual(self._form, offer)
            if messages and isinstance(first := messages[0], SystemMessage):
                messages[0] = SystemMessage(f"{first.content}\n\n{told}")
            else:
                messages.insert(0, SystemMessage(told))
        if offer.choice == "none":
            # At the end, so that the rest stays what the provider has in its cache.
            messages = _with_note(messages, OFF)
        return replace(
            request,
            messages=messages,
            tools=(),
            tool_choice="auto",
            settings=_settings(request.settings, () if profile_of(self.model).stop is False else self._form.stop),
            # A model held to a schema could not call a tool; the answer is checked against it in any case.
            output_schema=request.output_schema if offer.choice == "none" else None,
            passing=max(request.passing, int(offer.choice == "none")),
            usual=None,
        )


def instructions(
    format: FormatName | TextFormat, tools: Sequence[ToolSpec | Described], tool_choice: str = "auto"
) -> str:
    """What a model is told of `tools` in that format; see `TextTools.instructions`."""
    specs = tuple(tool if isinstance(tool, ToolSpec) else tool.spec for tool in tools)
    return manual(_form(format), _offer(ModelRequest((), specs, tool_choice))) if specs else ""


def _form(format: str | TextFormat) -> Format:
    if isinstance(format, TextFormat):
        return format
    match format:
        case "json":
            return JsonFormat()
        case "react":
            return ReactFormat()
        case "tags":
            return TagsFormat()
        case _:
            raise Misuse(
                "TextTools has the formats 'json', 'react' and 'tags', and takes a TextFormat of your own; "
                f"it was given {format!r}"
            )


def _has_calls(messages: Sequence[Message]) -> bool:
    return any(
        isinstance(item, ToolMessage) or (isinstance(item, AssistantMessage) and item.calls) for item in messages
    )


def _offer(request: ModelRequest) -> Offer:
    # What a step takes away stays in the manual, which is what a provider has cached; the messages tell the model.
    described = request.tools if request.usual is None else request.usual.tools
    return Offer(
        {tool.name: tool for tool in described},
        request.tool_choice if request.tools else "none",
        request.settings.parallel_tool_calls is not False,
        keys_of(request.output_schema or {}),
    )


def _settings(settings: ModelSettings, stops: tuple[str, ...]) -> ModelSettings:
    given = settings.stop or ()
    room = max(0, _MOST_STOPS - len(given))
    added = tuple(stop for stop in stops if stop not in given)[:room]
    return replace(settings, stop=(*given, *added) or None, parallel_tool_calls=None)


def _with_note(messages: list[Message], note: str) -> list[Message]:
    last = messages[-1] if messages else None
    if not isinstance(last, UserMessage):
        return [*messages, UserMessage(note)]
    content = last.content
    noted = f"{content}\n\n{note}" if isinstance(content, str) else (*content, Text(note))
    return [*messages[:-1], UserMessage(noted)]


def _reply(whole: ModelReply, parts: list[AssistantPart]) -> ModelReply:
    """The inner model's reply with its text read: what it has beside text comes first, unchanged."""
    kept: list[AssistantPart] = [part for part in whole.message.content if not isinstance(part, Text)]
    message = AssistantMessage((*kept, *parts))
    return replace(whole, message=message, finish=_finish(whole.finish, message.calls))


def _finish(finish: FinishReason, calls: tuple[ToolCall, ...]) -> FinishReason:
    match finish:
        case "stop" | "tool_calls":
            return "tool_calls" if calls else "stop"
        case "length" | "content_filter" | "refusal" | "pause" | "unknown":
            # Text that was cut off may be a call all the same, but not the one that was meant.
            return finish
        case _:
            assert_never(finish)
