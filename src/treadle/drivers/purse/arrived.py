"""Arrived: what has come of a reply while it is arriving, and what is paid for where it breaks off."""

from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from treadle.context.storable import storable_text
from treadle.context.texts import estimate_text
from treadle.context.tokens import estimate_tokens
from treadle.kernel.messages import Usage
from treadle.kernel.money import dollars
from treadle.models.port import ModelReply, TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStarted, UsageReported
from treadle.models.sound import is_sound_usage

GIVEN_UP: Final = frozenset({"cancelled", "model_timeout"})
"""How a call ends on which we gave up: its provider had the request, and may have gone on with it."""


class Arrived:
    """The pieces of a reply, and what its provider has counted.

    Attributes:
        reported: what the provider has counted so far; None if it said nothing.
        cost: dollars that the provider says that this cost; None if it said nothing.
    """

    __slots__ = ("_rest", "_text", "cost", "reported")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._rest: list[str] = []
        self.reported: Usage | None = None
        self.cost: Decimal | None = None

    def hear(self, event: object) -> None:
        """Takes note of an event of the reply, also of one that nobody has looked at: what is no text is no piece.

        What a whole reply reports is known also where nothing else of it can be used.
        """
        match event:
            case TextDelta(text):
                self._text.append(text)
            case ThinkingDelta(text) | ToolCallDelta(_, text) | ToolCallStarted(_, text):
                if isinstance(text, str):
                    self._rest.append(text)
            case UsageReported(usage, cost) | ModelReply(usage=usage, cost=cost):
                if isinstance(usage, Usage) and is_sound_usage(usage):
                    self.reported = usage
                    self.cost = None if cost is None else dollars(cost)
            case _:
                pass

    @property
    def text(self) -> str:
        """The text of it, as a journal can keep it."""
        return storable_text("".join(self._text))

    def usage(self, asked: int, most: int | None, ended: str) -> Usage | None:
        """What is paid for if nothing more comes; None if nothing is.

        A provider charges for all that it sent, thinking and arguments of calls as well as text. What it reported is
        known; the rest is estimated on the high side. Where nothing came, but nobody refused the request either, the
        request itself may be charged for.

        Args:
            asked: tokens of the request, estimated.
            most: tokens of the longest reply that was asked for; None if that was not said.
            ended: how the call ended, as the `kind` of its error.
        """
        sent = [*self._text, *self._rest]
        if not sent and self.reported is None and ended in GIVEN_UP:
            return Usage(asked, 0, estimated=True)
        if not sent and (self.reported is None or not self.reported.estimated):
            return self.reported
        return self.completed(asked, estimate_text("".join(sent)), most)

    def paid(self, reply: ModelReply, asked: int, most: int | None) -> Usage:
        """What a whole reply has taken: as it says, and what it does not say estimated; see `completed`."""
        told = reply.usage
        if told is not None and not (told.estimated and 0 in (told.input_tokens, told.output_tokens)):
            return told
        self.reported = told or self.reported
        received = told.output_tokens if told is not None else 0
        return self.completed(asked, received or estimate_tokens(reply.message), most)

    def completed(self, asked: int, received: int, most: int | None) -> Usage:
        """What was reported, and the rest estimated: `asked` tokens in the request and `received` in the reply.

        An estimate is high; no reply has more than the `most` that was asked for. Of what is reported as an estimate,
        a request of 0 tokens is one that nobody told.
        """
        known = self.reported
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
            output_tokens=max(known.output_tokens, received),
            estimated=True,
        )
