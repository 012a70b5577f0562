"""What OpenAI's protocols write of a telling: all of it, or chunk after chunk."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Final, Protocol

from treadle.kernel.messages import Json
from treadle.serve.fronts import data
from treadle.serve.live import STOPPED
from treadle.serve.protocols import openai_caller as caller
from treadle.serve.protocols import openai_chat, openai_responses
from treadle.serve.protocols.moves import Ended, Move
from treadle.serve.refused import TROUBLE, Refused, refused_by
from treadle.serve.telling import Telling

DONE: Final = b"data: [DONE]\n\n"


class Writer(Protocol):
    """What writes either protocol."""

    def write(self, move: Move) -> Iterator[Json]:
        """The parts that say `move`."""

    def whole(self) -> Json:
        """The whole answer, once all moves are written."""


async def _parts(telling: Telling, writer: Writer) -> AsyncGenerator[Json]:
    async with aclosing(telling.moves()) as moves:
        async for move in moves:
            for part in writer.write(move):
                yield part


async def written(telling: Telling, writer: Writer, *, wait: bool = True) -> None:
    """Writes all that there is to tell, for the whole of it; without `wait`, what there is by now.

    Raises:
        Refused: it was waited for, and the server that carries it out was stopped.
    """
    async with aclosing(telling.moves(wait=wait)) as moves:
        async for move in moves:
            if wait and isinstance(move, Ended) and move.stop == STOPPED:
                raise Refused("unavailable", STOPPED.detail, STOPPED.advice, 5)
            for _ in writer.write(move):
                pass


async def _chunks(telling: Telling, writer: Writer, form: Callable[[Json], bytes]) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(_parts(telling, writer)) as parts:
            async for part in parts:
                yield form(part)
    except TROUBLE as error:
        yield form(caller.error_form(refused_by(error)))


async def chat_chunks(telling: Telling, writer: openai_chat.Writer, usage: bool) -> AsyncGenerator[bytes]:
    """The chunks of a completion; with `usage`, the tokens at their end."""
    async with aclosing(_chunks(telling, writer, data)) as chunks:
        async for chunk in chunks:
            yield chunk
    if usage and writer.has_answer:
        yield data(writer.usage())
    yield DONE


async def response_chunks(telling: Telling, writer: openai_responses.Writer) -> AsyncGenerator[bytes]:
    """The events of a response."""
    for part in writer.open():
        yield _event(part)
    async with aclosing(_chunks(telling, writer, _event)) as chunks:
        async for chunk in chunks:
            yield chunk


def _event(part: Json) -> bytes:
    name = part.get("type", "error")
    return b"event: %b\n%b" % (str(name).encode(), data(part))
