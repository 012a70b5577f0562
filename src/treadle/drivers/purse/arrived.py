"""Arrived: what has come of a reply while it is arriving, and what is paid for where it breaks off."""

from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from treadle.context.storable import storable_text
from treadle.context.texts import estimate_text
from treadle.context.tokens import estimate_tokens
from treadle.kernel.messages import Usage
from treadle.kernel.money import dollars
from treadle.models.bounds import LONGEST_REPLY, as_far_as_it_is_taken, check_reply, size_of_piece
from treadle.models.counts import with_thinking
from treadle.models.errors import ModelError
from treadle.models.port import (
    ModelReply,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.models.sound import counts_itself, is_sound_usage, tokens_of_reply

ASKED: Final = Usage(estimated=True)
"""What is known of a call that was given up: its provider had the request."""

_PIECES: Final = frozenset({TextDelta, ThinkingDelta, ToolCallStarted, ToolCallDelta, ToolCallCompleted})
"""What says nothing of what is paid for."""


class Arrived:
    """The events of a reply, kept as they come: what is in them is looked at only where somebody needs to know."""

    __slots__ = ("_events", "_size")

    def __init__(self) -> None:
        self._events: list[object] = []
        self._size = 0

    def hear(self, event: object) -> None:
        """Takes note of an event of the reply before the last, also of one that nobody has looked at.

        Raises:
            ReplyTooLong: more has come than any reply may have; this event counts.
        """
        self._events.append(event)
        self._size = size = self._size + size_of_piece(event)
        if size > LONGEST_REPLY:
            check_reply(size)

    def end(self, reply: ModelReply) -> None:
        """Takes note of the whole reply, the last event."""
        self._events.append(reply)

    def failed(self, error: ModelError) -> None:
        """Takes note of what `error` says that the call took, as far as no event has said it before.

        An error may know of more than was heard: words beside it, or a call whose name had not come.
        """
        took, known = error.usage or (ASKED if error.gave_up else None), self._told()
        if took is None or (known is not None and self._ended):
            return
        if known is None:
            self._events.append(UsageReported(took))
        elif took.output_tokens > known[0].output_tokens:
            usage = replace(known[0], output_tokens=took.output_tokens, estimated=True)
            self._events.append(UsageReported(usage, known[1]))

    def given_up(self) -> None:
        """Takes note that nobody waits for the rest."""
        if self.reported is None:
            self._events.append(UsageReported(ASKED))

    @property
    def whole(self) -> ModelReply | None:
        """The whole reply, once it is there."""
        last = self._events[-1] if self._events else None
        return last if isinstance(last, ModelReply) else None

    @property
    def reported(self) -> Usage | None:
        """What the provider has counted so far; None if it said nothing.

        What a whole reply reports is known also where nothing else of it can be used.
        """
        told = self._told()
        return None if told is None else told[0]

    @property
    def cost(self) -> Decimal | None:
        """Dollars that the provider says that this cost; None if it said nothing."""
        whole = self.whole
        if whole is not None and (said := dollars(whole.cost)) is not None:
            return said
        told = self._told()
        return None if told is None or told[1] is None else dollars(told[1])

    def _told(self) -> tuple[Usage, Decimal | None] | None:
        for event in reversed(self._events):
            if type(event) not in _PIECES and isinstance(event, (ModelReply, UsageReported)):
                usage = event.usage
                if is_sound_usage(usage):
                    return usage, event.cost
        return None

    @property
    def text(self) -> str:
        """The text of it, as a journal can keep it: no longer than a reply may be."""
        pieces = [event.text for event in self._events if isinstance(event, TextDelta)]
        return storable_text(as_far_as_it_is_taken("".join(pieces)))

    @property
    def _ended(self) -> bool:
        """Whether what was counted last is a reply to its end."""
        last = self._events[-1]
        return isinstance(last, ModelReply) or (isinstance(last, UsageReported) and last.whole)

    @property
    def _begun(self) -> bool:
        """Whether a piece of it has come, though there may be nothing in it, as in a call whose name follows."""
        return any(type(event) in _PIECES for event in self._events)

    def _received(self) -> int:
        """Tokens of all that it is made of, on the high side: text, thinking, and calls; in pieces, or whole."""
        pieces: list[object] = []
        whole = 0
        for event in self._events:
            match event:
                case TextDelta(text) | ThinkingDelta(text) | ToolCallDelta(_, text) | ToolCallStarted(_, text):
                    pieces.append(text)
                case ModelReply(usage=usage) if not counts_itself(usage):
                    whole = tokens_of_reply(event)
                case _:
                    pass
        return max(whole, estimate_text("".join([piece for piece in pieces if isinstance(piece, str)])))

    def usage(self, asked: int, most: int | None) -> Usage | None:
        """What is paid for if nothing more comes; None if nothing is.

        A provider charges for all that it sent, thinking and arguments of calls as well as text. What it reported is
        known; the rest is estimated on the high side. Of a reply that had begun the request is charged for, and it may
        be where nothing came of what was given up, but nobody refused the request either.

        Args:
            asked: tokens of the request, estimated.
            most: tokens of the longest reply that was asked for; None if that was not said.
        """
        received, reported = self._received(), self.reported
        if reported is not None and not reported.estimated and self._ended:
            return reported
        if not received and (not self._begun if reported is None else not reported.estimated):
            return reported
        return _completed(reported, asked, received, most)

    def paid(self, reply: ModelReply, asked: int, most: int | None) -> Usage:
        """What a whole reply has taken: as it says, and what it does not say estimated; see `_completed`."""
        told = reply.usage
        if told is not None and not (told.estimated and 0 in (told.input_tokens, told.output_tokens)):
            return told
        received = told.output_tokens if told is not None else 0
        if not received:
            # One that was cut off has as many as it may have: of a call that was being written then nothing may come.
            cut = most if reply.finish == "length" else None
            received = estimate_tokens(reply.message) if cut is None else cut
        return _completed(told or self.reported, asked, received, most)


def _completed(known: Usage | None, asked: int, received: int, most: int | None) -> Usage:
    """What is `known`, and the rest estimated: `asked` tokens in the request and `received` in the reply.

    An estimate is high; no reply has more than the `most` that was asked for, unless its thinking alone was reported
    and is more. Of what is reported as an estimate, a request of 0 tokens is one that nobody told.
    """
    if most is not None:
        received = min(received, most)
        if known is not None and known.estimated and known.output_tokens > most:
            known = replace(known, output_tokens=most)
    if known is None:
        return Usage(asked, received, estimated=True)
    if not known.estimated and known.output_tokens >= received:
        return known
    return replace(
        known,
        input_tokens=known.input_tokens or asked if known.estimated else known.input_tokens,
        output_tokens=with_thinking(max(known.output_tokens, received), known.reasoning_tokens),
        estimated=True,
    )
