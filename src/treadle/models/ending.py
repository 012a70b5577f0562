"""Ending: what is still heard of a reply after its last word or its error, and what one has taken that broke off.

All of it over HTTP, and for a moment only.

Neighbours: `treadle.models.http_model`, which reads replies; `treadle.models.transport`, what they come by.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import anyio

from treadle.context.texts import estimate_text
from treadle.kernel.messages import Json, Usage
from treadle.models.codec import Decoder
from treadle.models.errors import ModelError, ProtocolError
from treadle.models.port import ModelReply
from treadle.models.transport import Reply, Whole

DRAIN_SECONDS: Final = 0.2
HEAR_SECONDS: Final = 1.0


def broken_off(error: ModelError, reply: Reply, decoder: Decoder) -> ModelError:
    """`error`, for a reply that had begun: its provider has read the request, and has made at least what came of it."""
    if error.usage is None:
        try:
            decoder.close()
        except ModelError as early:
            error.usage = early.usage
    if error.usage is None and reply.begun is not None:
        error.usage = Usage(output_tokens=estimate_text(reply.begun) if reply.begun else 0, estimated=True)
    return error


def last_of(decoder: Decoder, reply: Reply, failure: ModelError | None = None) -> ModelReply:
    """The whole reply, of which no more comes. Raises `failure`, else what it lacks, where it is not whole."""
    try:
        return decoder.close()
    except ProtocolError as early:
        error = failure or early
        raise broken_off(error, reply, decoder) from error.__cause__


async def heard_out(reply: Reply, decoder: Decoder, rest: Sequence[Json]) -> None:
    """Lets the decoder hear what comes after an error, for a moment only: the usage may be told last."""
    with anyio.move_on_after(HEAR_SECONDS), suppress(ModelError):
        received: Sequence[Json] | Whole | None = rest
        while received is not None and not isinstance(received, Whole):
            for data in received:
                with suppress(ModelError):
                    decoder.feed(data)
            received = await reply.read()


async def drained(reply: Reply) -> None:
    """Reads a body whose reply is whole to its end, for a moment only, so that its connection can be used again."""
    with anyio.move_on_after(DRAIN_SECONDS), suppress(ModelError):
        while await reply.read() is not None:
            pass
