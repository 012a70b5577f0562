"""Guarded: the one guard around the decoders of all dialects, so that each reads what should come and no more.

Pure. A decoder takes the fields that its protocol names as they should be. What a server sends in another shape, of
another type, or with half a character, is met here: it ends as a `ProtocolError` that says what came, never as an
exception of Python's, and never as a reply that is not what it is declared to be. Neighbours: `treadle.models.codec`
(the port); the dialects' decoders; `treadle.models.checked`, which looks at whole replies.
"""

import reprlib
from typing import Final

from msgspec.structs import replace

from treadle.kernel.messages import Json
from treadle.models.checked import checked
from treadle.models.codec import Decoder
from treadle.models.errors import ModelError, ProtocolError
from treadle.models.failures import redact
from treadle.models.halves import whole_text
from treadle.models.port import (
    ModelEvent,
    ModelReply,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)

SHAPE_ERRORS: Final = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError)
"""What reading a field that is of another shape than it should be raises."""
SHOWN: Final = 300


class Guarded:
    """A decoder that raises nothing but `ModelError`, and whose reply is what it is declared to be.

    Args:
        provider: who sends the reply, for the words.
        decoder: a dialect's own. Its methods may raise what reading fields of another shape raises (`SHAPE_ERRORS`).
    """

    __slots__ = ("_decoder", "_feed", "_provider")

    def __init__(self, provider: str, decoder: Decoder) -> None:
        self._provider = provider
        self._decoder = decoder
        self._feed = decoder.feed

    @property
    def reported(self) -> UsageReported | None:
        """What the provider has counted of it so far; None if nothing yet, or nothing that can be read."""
        try:
            return self._decoder.reported
        except SHAPE_ERRORS:
            return None

    def feed(self, data: Json) -> list[ModelEvent]:
        """The events in one stream event's data. Raises `ModelError`."""
        if not data:
            return []  # what keeps a connection alive
        try:
            events = self._feed(data)
            for place, event in enumerate(events):
                kind = type(event)
                if kind is TextDelta or kind is ThinkingDelta or kind is ToolCallDelta or kind is ToolCallStarted:
                    events[place] = _shown_whole(event)
            return events
        except SHAPE_ERRORS as fault:
            raise self._misshapen("an event", fault, data) from fault

    def whole(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole JSON body, the `ModelReply` last. Raises `ModelError`."""
        try:
            *events, last = self._decoder.whole(body)
            return [*map(_shown_whole, events), self._checked(last)]
        except SHAPE_ERRORS as fault:
            raise self._misshapen("a reply", fault, body) from fault

    def close(self) -> ModelReply:
        """The whole reply, once the stream has ended. Raises `ModelError`."""
        try:
            return self._checked(self._decoder.close())
        except SHAPE_ERRORS as fault:
            raise self._misshapen("a reply", fault) from fault

    def _checked(self, reply: ModelEvent) -> ModelReply:
        if not isinstance(reply, ModelReply):
            raise TypeError("no reply came last")
        return _counted(checked(reply))

    def _misshapen(self, what: str, fault: Exception, data: Json | None = None) -> ProtocolError:
        # A field that is missing tells nothing without what was there in its place.
        came = "" if data is None else f": {shown(data)}"
        return ProtocolError(f"{self._provider} sent {what} that is not as the protocol has it ({fault!r:.200}){came}")


def ended_early(provider: str, begun: bool) -> ProtocolError:
    """The error for a stream that ended before its reply was whole; `begun` says whether anything of it had come."""
    where = "in the middle of it" if begun else "before anything of it came"
    return ProtocolError(f"{provider}: the stream ended before the reply was whole, {where}")


def no_reply(provider: str, wanted: str, body: Json) -> ModelError:
    """The error for JSON that came whole and is no reply of the dialect; `wanted` says what would be."""
    return ProtocolError(f"{provider} answered with JSON that is {wanted}: {shown(body)}")


def shown(data: object) -> str:
    """What a server sent, as far as an error has room for it, without what looks like a key."""
    return redact(_REPR.repr(data))[:SHOWN]


def _counted(reply: ModelReply) -> ModelReply:
    """`reply`; where it is told to have had a request of no tokens, which none has, as one that nobody has counted.

    An error may well have taken none.
    """
    usage = reply.usage
    return reply if usage is None or usage.input_tokens else replace(reply, usage=replace(usage, estimated=True))


def _shown_whole(event: ModelEvent) -> ModelEvent:
    """`event` without halves of characters; where two of them meet in the whole reply, they are joined there."""
    if isinstance(event, (TextDelta, ThinkingDelta)):
        text = whole_text(event.text)
        return event if text is event.text else type(event)(text)
    if isinstance(event, ToolCallDelta):
        text = whole_text(event.json)
        return event if text is event.json else ToolCallDelta(event.id, text)
    if isinstance(event, ToolCallStarted) and not (isinstance(event.id, str) and isinstance(event.name, str)):
        raise TypeError("the id and the name of a call are texts")
    return event


_REPR: Final = reprlib.Repr()
_REPR.maxdict, _REPR.maxlist, _REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 12, 6, 5, 200, 200
