"""Hearing: a model's stream is listened to until its whole reply is there, and closed whatever comes of it.

There is one way for all that a model is asked, be it a step or a summary. Neighbours: `treadle.drivers.think` and
`treadle.drivers.compact`, which ask and pay; `treadle.drivers.purse.arrived`, what has come so far.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from treadle.context.storable import storable_text
from treadle.drivers.purse.arrived import Arrived
from treadle.drivers.run import Run
from treadle.event_loop import is_closed
from treadle.models.errors import ModelError, ProtocolError
from treadle.models.port import (
    AttemptFailed,
    Model,
    ModelEvent,
    ModelReply,
    ModelRequest,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.models.sound import sound_event, sound_stream
from treadle.tools.raised import log_raised

TURN = 64
"""Pieces of a reply after which the event loop gets its turn: a stream that never waits is cancelled too."""

_PIECES: frozenset[type] = frozenset({ThinkingDelta, ToolCallStarted, ToolCallDelta, ToolCallCompleted})
"""What is only there to be shown or started early: the whole reply has it all."""


async def whole_reply(
    run: Run,
    model: Model,
    request: ModelRequest,
    arrived: Arrived,
    passed_over: Callable[[AttemptFailed], Awaitable[Arrived]],
    tell: Callable[[ModelEvent], None] | None = None,
) -> ModelReply:
    """The whole reply of `model`, as it came: whoever asked looks at it.

    Args:
        run: for which it is asked.
        model: that is asked, for `request`.
        arrived: takes note of each event.
        passed_over: called where `model` stands for several and the next of them is to be asked; gives what takes note
            of that one, or raises.
        tell: called with each event as it comes, but for the whole reply.

    Raises:
        ProtocolError: the stream ended without a reply.
        BaseException: what `model` raised.
    """
    unheard = _PIECES if tell is None else frozenset()
    pieces, task = 0, asyncio.current_task()
    stream: Any = None
    try:
        stream = sound_stream(model.stream(request))
        async for given in stream:
            pieces += 1
            if not pieces % TURN:
                await asyncio.sleep(0)
            if type(given) in unheard:
                arrived.hear(given)
                continue
            if type(given) is ModelReply:
                # It is the last event; what comes after it cannot take it back.
                arrived.end(given)
                return given
            event = sound_event(given)
            arrived.hear(event)
            if type(event) is AttemptFailed:
                arrived.failed(event.error)
                arrived = await passed_over(event)
            elif tell is not None:
                tell(event)
    except ModelError as error:
        arrived.failed(error)
        raise
    except GeneratorExit as error:
        if is_closed(task):
            raise
        raise unexpected(error, model) from error
    finally:
        await _closed(run, model, stream)
    raise ProtocolError(f"{model.name} ended its stream without a ModelReply, which must be the last event")


def unexpected(error: BaseException, model: Model) -> ModelError:
    """A model that raises anything else is at fault itself; the same call would most likely fail again."""
    words = f"{type(error).__name__}: {error}"
    if isinstance(error, asyncio.CancelledError):
        # Of which Python says nothing.
        words = f"{model.name} cancelled itself while it replied" + (f": {error}" if str(error) else "")
    failure = ModelError(storable_text(words))
    failure.__cause__ = error
    return failure


async def _closed(run: Run, model: Model, stream: Any) -> None:
    """Lets `stream` clean up. That it fails to changes nothing of what it gave."""
    close = getattr(stream, "aclose", None)
    try:
        if close is not None:
            await close()
    except asyncio.CancelledError as error:
        if run.driven.is_cancelled():
            raise
        log_raised("a model's stream cancelled itself as it was closed", error, run.redact, _about(run, model))
    except Exception as error:
        log_raised("a model's stream failed as it was closed", error, run.redact, _about(run, model))


def _about(run: Run, model: Model) -> dict[str, object]:
    """The fields of a line that is logged about a call of a model."""
    return {"run_id": run.run_id, "agent": run.state.agent, "step": len(run.state.steps), "model": model.name}
