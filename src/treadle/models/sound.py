"""Sound: what a model says of its own, looked at once where it comes in: its replies, and what it says they cost.

Pure. Anybody may write a model, and Python holds nobody to a type: what is of the wrong kind would otherwise be found
much later, in a tool or in a journal that cannot be read again. What is meant beyond doubt is put right, all else is an
error that says what would be right. Neighbours: `treadle.models.port`, which says what a reply is;
`treadle.models.checked`, for what comes out of JSON.
"""

import reprlib
from collections.abc import AsyncIterable, Mapping
from decimal import Decimal
from inspect import iscoroutine
from operator import index
from typing import Any, Final, TypeGuard, get_args

import msgspec
from msgspec.structs import replace

from treadle.context.tokens import estimate_tokens
from treadle.kernel.messages import (
    COUNTS,
    AssistantMessage,
    AssistantPart,
    FinishReason,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from treadle.kernel.money import MOST, dollars
from treadle.models.bounds import check_reply, size_of_message
from treadle.models.errors import ModelError, UnfinishedReply, UnsoundReply
from treadle.models.once import told_once
from treadle.models.port import (
    AttemptFailed,
    ModelEvent,
    ModelReply,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.models.profile import MOST_TOKENS

FINISHES: Final[frozenset[str]] = frozenset(get_args(FinishReason))


def sound_stream(stream: object) -> AsyncIterable[Any]:
    """`stream`, what a model's `stream(request)` gave, if there are events in it.

    Raises:
        UnsoundReply: there are none, as in what a method without `yield` gives.
    """
    if isinstance(stream, AsyncIterable):
        return stream
    if iscoroutine(stream):
        stream.close()
    raise UnsoundReply(
        "the model's reply cannot be used: stream(request) is to be an asynchronous generator, `async def` with a "
        f"`yield` for each event, the ModelReply last; it gave {_shown(stream)}"
    )


def sound_event(event: object) -> ModelEvent:
    """`event`, if it is one that a model may send; of a `ModelReply`, what `sound_reply` makes of it.

    Raises:
        UnsoundReply: it is none, or what is in it is not what it must be.
        ReplyTooLong: it is a reply that is longer than any may be.
    """
    match event:
        case TextDelta(text) | ThinkingDelta(text):
            fits = type(text) is str
        case ToolCallDelta(id, text) | ToolCallStarted(id, text):
            fits = type(id) is type(text) is str
        case ToolCallCompleted(id):
            fits = type(id) is str
        case UsageReported(usage, cost):
            if not is_sound_usage(usage):
                raise _wrong("UsageReported.usage", "a Usage of whole numbers", usage)
            return event if cost is None else replace(event, cost=_cost("UsageReported", cost))
        case AttemptFailed(model, error):
            fits = type(model) is str and isinstance(error, ModelError)
        case ModelReply():
            return sound_reply(event)
        case _:
            raise _wrong("stream(request)", "events to yield, such as TextDelta and last a ModelReply", event)
    if not fits:
        raise _wrong(type(event).__name__, "text in each of its fields", event)
    return event


def sound_reply(reply: ModelReply) -> ModelReply:
    """`reply`, the same object if each value in it is of its declared type, else with what is meant put in its place.

    Put right are text where a message or its parts belong, a list of parts, whole numbers of tokens as floats, a cost
    as a float or int, and subclasses of text. Lone surrogates are left to `treadle.context.storable`.

    Raises:
        UnfinishedReply: its finish is "unknown": it is not known to be whole.
        UnsoundReply: anything else is not what it must be; the words say what would be right.
        ReplyTooLong: it is longer than any reply may be.
    """
    finish: object = reply.finish
    if finish == "unknown":
        said = f"the word {reply.finish_detail!r:.100}" if reply.finish_detail else "no word for why"
        raise UnfinishedReply(
            f"the reply ended with {said}, which is not known to mean that it is whole; it is not used"
        )
    reply = _put_right(reply)
    if (parts := told_once(reply.message.content)) is not reply.message.content:
        reply = replace(reply, message=AssistantMessage(parts))
    check_reply(size_of_message(reply.message))
    return reply


def _put_right(reply: ModelReply) -> ModelReply:
    finish: object = reply.finish
    if _is_sound(reply):
        return reply
    if not isinstance(finish, str) or finish not in FINISHES:
        words = ", ".join(map(repr, get_args(FinishReason)))
        wanted = f"one of {words}, and a word of the model's own in finish_detail"
        raise _wrong("ModelReply.finish", wanted, finish)
    return replace(
        reply,
        message=AssistantMessage(_parts(reply.message)),
        usage=_usage(reply.usage),
        finish=_text("ModelReply.finish", reply.finish),
        finish_detail=_text("ModelReply.finish_detail", reply.finish_detail),
        model=_text("ModelReply.model", reply.model),
        request_id=_text("ModelReply.request_id", reply.request_id),
        cost=_cost("ModelReply", reply.cost),
    )


def tokens_of_reply(reply: ModelReply) -> int:
    """Tokens of what a model sent as its whole reply, on the high side; 0 where that is nothing of the kind."""
    try:
        return estimate_tokens(_put_right(replace(reply, finish="stop", usage=None, cost=None)).message)
    except (ModelError, TypeError, AttributeError):
        return 0


def counts_itself(usage: object) -> bool:
    """Whether `usage`, that of a whole reply, says how long that is: of what is estimated, 0 tokens are no count."""
    return is_sound_usage(usage) and not (usage.estimated and not usage.output_tokens)


def reported_of(reply: ModelReply) -> UsageReported:
    """What a reply that cannot be used says that it took; where it does not count itself, what it is made of."""
    known = reply.usage if is_sound_usage(reply.usage) else Usage(estimated=True)
    if not counts_itself(known):
        known = replace(known, output_tokens=tokens_of_reply(reply))
    return UsageReported(known, dollars(reply.cost), whole=True)


def cost_of(model: Any, usage: Usage) -> Decimal | None:
    """What `model` says that `usage` costs, in dollars; None if it does not know, or has no `cost`.

    Raises:
        ModelError: its `cost` raised, or returned what is no amount.
    """
    cost = getattr(model, "cost", None)
    if cost is None:
        return None
    try:
        found = cost(usage)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"the price of {_name_of(model)} cannot be told: its cost(usage) raised {type(error).__name__}: {error}"
        ) from error
    if found is None:
        return None
    amount = dollars(found)
    if amount is None:
        if iscoroutine(found):
            found.close()
        raise ModelError(
            f"the price of {_name_of(model)} cannot be told: its cost(usage) returned {_shown(found)}, and must return "
            f"dollars as a Decimal from 0 to {MOST:,}, or None where they are unknown; it may not be async"
        )
    return amount


def _is_sound(reply: ModelReply) -> bool:
    """Whether each value is just what it is declared to be. Called for every reply, so it makes nothing."""
    message, usage, finish = reply.message, reply.usage, reply.finish
    if type(message) is not AssistantMessage or type(message.content) is not tuple:
        return False
    for part in message.content:
        if type(part) is ToolCall:
            if type(part.id) is not str or type(part.name) is not str or type(part.arguments) is not str:
                return False
            if part.item_id is not None and type(part.item_id) is not str:
                return False
        elif type(part) is Text:
            if type(part.text) is not str:
                return False
        elif type(part) is Thinking:
            if not _is_sound_thinking(part):
                return False
        elif (
            type(part) is not Opaque
            or type(part.provider) is not str
            or _no_json(part.value)
            or type(part.shown) is not str
        ):
            return False
    return (
        (usage is None or is_sound_usage(usage))
        and (reply.cost is None or (type(reply.cost) is Decimal and dollars(reply.cost) is not None))
        and type(finish) is str
        and finish in FINISHES
        and type(reply.finish_detail) is type(reply.model) is type(reply.request_id) is str
    )


def _is_sound_thinking(part: Thinking) -> bool:
    rest = (part.signature, part.data, part.id)
    return type(part.text) is str and all([value is None or type(value) is str for value in rest])


def is_sound_usage(usage: object) -> TypeGuard[Usage]:
    """Whether it is a `Usage`, each count is a whole number that can be, and the rest what it is declared to be."""
    return (
        type(usage) is Usage
        and type(usage.input_tokens) is type(usage.output_tokens) is int
        and type(usage.cache_read_tokens) is type(usage.cache_write_tokens) is type(usage.reasoning_tokens) is int
        and 0 <= usage.input_tokens <= MOST_TOKENS
        and 0 <= usage.output_tokens <= MOST_TOKENS
        and 0 <= usage.cache_read_tokens <= MOST_TOKENS
        and 0 <= usage.cache_write_tokens <= MOST_TOKENS
        and 0 <= usage.reasoning_tokens <= MOST_TOKENS
        and type(usage.cache_write_hour_tokens) is type(usage.web_searches) is int
        and 0 <= usage.cache_write_hour_tokens <= MOST_TOKENS
        and 0 <= usage.web_searches <= MOST_TOKENS
        and type(usage.audio_tokens) is type(usage.image_tokens) is int
        and 0 <= usage.audio_tokens <= MOST_TOKENS
        and 0 <= usage.image_tokens <= MOST_TOKENS
        and type(usage.estimated) is bool
        and type(usage.service) is str
    )


def _parts(message: Any) -> tuple[AssistantPart, ...]:
    content = message.content if isinstance(message, AssistantMessage) else message
    if isinstance(content, str):
        return (Text(_text("", content)),) if content else ()
    if not isinstance(message, AssistantMessage):
        raise _wrong("ModelReply.message", 'an AssistantMessage, such as AssistantMessage((Text("hello"),))', message)
    if not isinstance(content, (list, tuple)):
        raise _wrong("AssistantMessage.content", 'a tuple of parts, such as (Text("hello"), ToolCall(…))', content)
    return tuple([_part(part) for part in content])


def _part(part: Any) -> AssistantPart:
    if isinstance(part, str):
        return Text(_text("", part))
    # A subclass would be stored under the same tag, and what it adds be lost.
    if type(part) is Text:
        return Text(_text("Text.text", part.text))
    if type(part) is Thinking:
        rest = [_named(f"Thinking.{name}", getattr(part, name)) for name in ("signature", "data", "id")]
        return Thinking(_text("Thinking.text", part.text), *rest)
    if type(part) is ToolCall:
        id, name, item_id = _text("ToolCall.id", part.id), _text("ToolCall.name", part.name), part.item_id
        return ToolCall(id, name, _arguments(part.arguments), _named("ToolCall.item_id", item_id))
    if type(part) is Opaque:
        wanted = 'a word for what people see or hear of it, such as "image"'
        return Opaque(
            _text("Opaque.provider", part.provider), _json(part.value), _text("Opaque.shown", part.shown, wanted)
        )
    raise _wrong("AssistantMessage.content", "parts that are Text, Thinking, ToolCall or Opaque", part)


def _arguments(value: Any) -> str:
    if isinstance(value, Mapping):
        raise _wrong("ToolCall.arguments", "JSON text, such as json.dumps(arguments)", value)
    return _text("ToolCall.arguments", value, "JSON text, empty for no arguments")


def _json(value: Any) -> dict[str, Any]:
    fault = _no_json(value)
    if fault:
        raise _wrong("Opaque.value", f"a dict that has a JSON form ({fault})", value)
    return {**value}


def _no_json(value: object) -> str:
    """Why `value` is no JSON object; empty if it is one."""
    if not isinstance(value, dict):
        return "it is no dict"
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        # Text that only has to be made storable.
        return ""
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    if not isinstance(usage, Usage):
        raise _wrong("ModelReply.usage", "a Usage(input_tokens=…, output_tokens=…), or None if it is unknown", usage)
    if type(usage.estimated) is not bool:
        raise _wrong("Usage.estimated", "True or False", usage.estimated)
    counts = {name: _tokens(name, getattr(usage, name)) for name in COUNTS}
    return Usage(**counts, estimated=usage.estimated, service=_text("Usage.service", usage.service))


def _tokens(name: str, value: Any) -> int:
    try:
        count = int(value) if isinstance(value, float) and value.is_integer() else index(value)
    except TypeError:
        count = -1
    if isinstance(value, bool) or not 0 <= count <= MOST_TOKENS:
        of_tokens = " of tokens" if name.endswith("_tokens") else ""
        raise _wrong(f"Usage.{name}", f"a whole number{of_tokens}, 0 or more", value)
    return count


def _cost(where: str, value: Any) -> Decimal | None:
    amount = None if value is None else dollars(value)
    if value is not None and amount is None:
        raise _wrong(f"{where}.cost", f"dollars as a Decimal from 0 to {MOST:,}, or None where unknown", value)
    return amount


def _named(where: str, value: Any) -> str | None:
    return None if value is None else _text(where, value, "text, or None")


def _text(where: str, value: object, wanted: str = "text") -> str:
    if not isinstance(value, str):
        raise _wrong(where, wanted, value)
    # What a subclass says of itself by str() may be another text: Finish.STOP.
    return str.__str__(value)


def _wrong(where: str, wanted: str, given: object) -> UnsoundReply:
    return UnsoundReply(f"the model's reply cannot be used: {where} takes {wanted}; it was given {_shown(given)}")


def _shown(value: object) -> str:
    return f"{reprlib.repr(value)}, of type {type(value).__name__}"


def _name_of(model: Any) -> str:
    return str(getattr(model, "name", type(model).__name__))
