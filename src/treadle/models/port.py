"""The Model port: what a model is asked, and the events it answers with.

A model is anything with `name` and `stream(request)`, an asynchronous iterator of `ModelEvent`s. Text, thinking and the
arguments of tool calls may come in as many pieces as the model likes, or not at all: only the last event, one
`ModelReply` with the whole message, is required. To write your own:

    class Echo:
        name = "echo"

        async def stream(self, request):
            text = request.messages[-1].text
            yield TextDelta(text)
            yield ModelReply(AssistantMessage((Text(text),)), usage=Usage(1, 1), finish="stop")

What goes wrong outside is raised as a `treadle.models.ModelError`; a model never retries by itself.

It may have more to say of itself, each only if it knows: `profile`, what it can do (`treadle.models.profile`);
`cost(usage)`, in dollars; `terms(settings)`, on what terms a request is billed (by default as the settings say);
`max_output_tokens`, the longest reply there can be; `longest_reply(settings)`, the longest reply to a request with
these settings, and `held_to(settings, tokens)`, the settings under which none is longer than that;
`fixed_tokens(tools, output_schema)`, how many tokens a request with these has at most besides its messages (by default
the length of their descriptions); `models`, those that may answer in its place, if several.
"""

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import Protocol, TypeGuard, final, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import AssistantMessage, FinishReason, Json, Message, ModelSettings, ToolSpec, Usage
from treadle.models.errors import ModelError
from treadle.models.extra import longest


class Usual(Struct, frozen=True, gc=False):
    """How a run asks in its other steps, where a step takes something away and its messages tell the model so.

    What a provider has cached of the run was written with these. A dialect may send them in place of the request's own,
    so that the cached prefix stays valid: a call that the request does not allow is refused when it comes.

    Attributes:
        tools: the tools described in the other steps.
        tool_choice: how the model chooses among them there.
    """

    tools: tuple[ToolSpec, ...]
    tool_choice: str = "auto"


class ModelRequest(Struct, frozen=True, gc=False):
    """One question to a model.

    Attributes:
        messages: the history, the system message (if there is one) first. Read-only; it may share its storage with
            the next step's, of which it is then a prefix.
        tools: the tools that may be called, in a stable order.
        tool_choice: "auto", "none", "required", or the name of the one tool to call.
        settings: how to generate.
        output_schema: the JSON Schema that the final text must satisfy, if one was asked for.
        run_id: the run that asks, for logs and idempotency; empty outside a run.
        step: the number of the step, from 0.
        passing: how many user messages, at the end, are in this request only; what is worth caching ends before them.
        usual: how the run's other steps ask, where this one takes something away and its messages say so; else None.
        held: whether `settings.max_tokens` is what limits leave, and not what was asked for.
        in_words: whether `output_schema` is asked for in the messages alone: no provider is to hold a reply to it.
    """

    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    settings: ModelSettings = ModelSettings()
    output_schema: Json | None = None
    run_id: str = ""
    step: int = 0
    passing: int = 0
    usual: Usual | None = None
    held: bool = False
    in_words: bool = False


class TextDelta(Struct, frozen=True, gc=False):
    """A piece of the reply's text."""

    text: str


class ThinkingDelta(Struct, frozen=True, gc=False):
    """A piece of the model's thinking."""

    text: str


class ToolCallStarted(Struct, frozen=True, gc=False):
    """The model has begun to ask for a tool call."""

    id: str
    name: str


class ToolCallDelta(Struct, frozen=True, gc=False):
    """A piece of the JSON text of the arguments of call `id`."""

    id: str
    json: str


class ToolCallCompleted(Struct, frozen=True, gc=False):
    """The arguments of call `id` are complete."""

    id: str


@final
class AttemptFailed(Struct, frozen=True, gc=False):
    """A model that stands for several: `model`, one of them, could not answer, and another is asked.

    Nothing of a reply has come before it; a run records it as `ModelFailed`.
    """

    model: str
    error: ModelError


@final
class UsageReported(Struct, frozen=True, gc=False):
    """What the provider has counted of this attempt so far, while the reply is arriving.

    The usage of the whole reply takes its place. Where the reply breaks off, or the call is cancelled, it is what is
    known to have been paid for.

    Attributes:
        usage: tokens; where it is `estimated`, a count of 0 is one that the provider has not told.
        cost: dollars, where the provider says what that cost; else None.
        whole: whether it is the count of a reply that has ended, though it cannot be used: nothing is estimated beside.
    """

    usage: Usage
    cost: Decimal | None = None
    whole: bool = False


@final
class ModelReply(Struct, frozen=True, gc=False):
    """The whole reply, always the last event.

    Attributes:
        message: everything that the model said.
        usage: tokens as the provider reported them; None if it did not. Where it is `estimated`, a request or a reply
            of 0 tokens is one that was not reported, and is estimated.
        finish: why the reply ended.
        finish_detail: the provider's own word for it.
        model: the model that answered, as the provider names it; empty if it did not say.
        request_id: the provider's name for this exchange; empty if it has none.
        cost: what it cost, in dollars, where the model knows better than its `cost(usage)`; else None.
    """

    message: AssistantMessage
    usage: Usage | None = None
    finish: FinishReason = "stop"
    finish_detail: str = ""
    model: str = ""
    request_id: str = ""
    cost: Decimal | None = None


ModelEvent = (
    TextDelta
    | ThinkingDelta
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallCompleted
    | UsageReported
    | AttemptFailed
    | ModelReply
)


@runtime_checkable
class Model(Protocol):
    """Anything that replies to requests."""

    @property
    def name(self) -> str:
        """What the model is called in results and journals, such as "anthropic:claude-sonnet-4-5"."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Replies to `request`, the whole reply last. Raises `ModelError` for what went wrong outside."""


def is_model(given: object) -> TypeGuard[Model]:
    """Whether `given` has what a model must have. A class is none, though it has it too."""
    named = isinstance(getattr(given, "name", None), str)
    return named and callable(getattr(given, "stream", None)) and not isinstance(given, type)


def longest_reply_of(model: Model, settings: ModelSettings) -> int | None:
    """The most tokens that a reply of `model` to a request with `settings` may have; None if nobody says."""
    ask = getattr(model, "longest_reply", None)
    if ask is not None:
        own: object = ask(settings)
    else:
        own = longest(settings) or getattr(model, "max_output_tokens", None)
    return own if type(own) is int and own > 0 else None


def held_to(model: Model, settings: ModelSettings, tokens: int) -> ModelSettings:
    """`settings` under which a reply of `model` has at most `tokens`.

    Raises:
        Misuse: the model gives something else.
    """
    hold = getattr(model, "held_to", None)
    held: object = replace(settings, max_tokens=tokens) if hold is None else hold(settings, tokens)
    if not isinstance(held, ModelSettings):
        raise Misuse(f"held_to(settings, tokens) of {model.name} returns ModelSettings; it returned {held!r:.100}")
    return held
