"""Think: one model call, tried again where that may help, with each attempt in the journal.

Retrying is done here and nowhere below, so that it obeys the run's deadline and stands in the record. A reply that
breaks off is asked for again as a whole; `ModelFailed.text` tells whoever watches that what was shown of it is
withdrawn.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

from treadle.context.storable import storable_text
from treadle.drivers.commit import require_lease
from treadle.drivers.configuration import asked_to_wait
from treadle.drivers.purse.arrived import Arrived
from treadle.drivers.purse.claims import claim
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.reckoning import price_of
from treadle.drivers.run import Run
from treadle.kernel.decide import CallModel
from treadle.kernel.errors import Misuse, PassesThrough
from treadle.kernel.events import ErrorInfo, ModelFailed, ModelReplied, RunFinished
from treadle.kernel.messages import ModelSettings, Usage
from treadle.models.errors import ModelError, ProtocolError
from treadle.models.port import (
    AttemptFailed,
    Model,
    ModelReply,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.models.sound import sound_event
from treadle.tools.output import cut
from treadle.tools.raised import log_raised

ToolCallEvent = ToolCallStarted | ToolCallDelta | ToolCallCompleted

LONGEST_WORDS = 10_000
"""Characters of an error's message that are recorded; its middle is left out where it is longer."""

TURN = 64
"""Pieces of a reply after which the event loop gets its turn: a stream that never waits is cancelled too."""

_PIECES: frozenset[type] = frozenset({ThinkingDelta, ToolCallStarted, ToolCallDelta, ToolCallCompleted})
"""What is only there to be shown or started early: the whole reply has it all."""


async def think(run: Run, hear: Callable[[ToolCallEvent], None] | None = None) -> None:
    """Calls the model for the step under way, and feeds `ModelReplied`, or `ModelFailed` for each failed attempt.

    `hear` is told of the pieces of tool calls as they arrive.
    """
    attempt = 1
    while True:
        # It may have been taken over while the wait for another attempt went on.
        if run.lease is not None:
            require_lease(run)
        run.asking.arrived = Arrived()
        try:
            event = run.asking.replied(await _reply(run, hear, attempt))
        except asyncio.CancelledError as error:
            if run.driven.is_cancelled():
                # What an earlier attempt failed for is not what ended this one.
                run.error = None
                run.feed(_cut_off(run, attempt))
                raise
            failure: ModelError = _unexpected(error)
        except (Misuse, PassesThrough):
            raise
        except _Enough:
            return
        except (Exception, SystemExit) as error:
            failure = error if isinstance(error, ModelError) else _unexpected(error)
        else:
            run.error = None
            run.feed(event)
            return
        attempt, again = await _again(run, failure, attempt)
        if not again:
            return


async def _again(run: Run, failure: ModelError, attempt: int) -> tuple[int, bool]:
    """Records the failed `attempt` and waits, if the call is to be made again: the next attempt's number."""
    wait = run.config.retries.delay(failure, attempt, seconds_left(run))
    run.error = failure
    run.feed(_failed(run, error_info(failure), attempt, wait, failure.model))
    if wait is None:
        return attempt, False
    await run.commit()
    await asyncio.sleep(wait)
    return attempt + 1, await _may_call_again(run)


async def _may_call_again(run: Run) -> bool:
    """Whether what the attempts so far have taken leaves enough for another, here and in the runs above."""
    prepared = run.state.prepared
    if prepared is None or not isinstance(run.next(), CallModel):
        return False
    refused = await patiently(lambda: claim(run, prepared.reserve))
    if refused is not None:
        run.feed(RunFinished(refused, prepared.decision))
    return refused is None


class _Enough(Exception):
    """A model that stands for several may not ask the next of them: what the last one took leaves too little."""


async def _reply(run: Run, hear: Callable[[ToolCallEvent], None] | None, attempt: int) -> ModelReply:
    """The whole reply; its pieces are shown as they come."""
    reply: ModelReply | None = None
    show = run.audience.show if run.audience.watches else None
    arrived = run.asking.arrived
    unheard = _PIECES if hear is None and show is None else frozenset()
    pieces = 0
    stream: Any = run.asking.model.stream(run.request())
    try:
        async for given in stream:
            pieces += 1
            if not pieces % TURN:
                await asyncio.sleep(0)
            if type(given) in unheard:
                arrived.hear(given)
                continue
            if isinstance(given, ModelReply):
                # `Asking.replied` looks at it. It is the last event; what comes after it cannot take it back.
                reply = given
                arrived.hear(given)
                break
            event = sound_event(given)
            arrived.hear(event)
            if isinstance(event, AttemptFailed):
                run.feed(_passed_over(run, event, attempt))
                run.asking.arrived = arrived = Arrived()
                await run.commit()
                if not await _may_call_again(run):
                    raise _Enough
                continue
            if hear is not None and isinstance(event, (ToolCallStarted, ToolCallDelta, ToolCallCompleted)):
                hear(event)
            if show is not None and not isinstance(event, UsageReported):
                show(event)
    finally:
        await _closed(run, stream)
    if reply is None:
        raise ProtocolError(f"{run.model.name} ended its stream without a ModelReply, which must be the last event")
    return reply


async def _closed(run: Run, stream: Any) -> None:
    """Lets `stream` clean up. That it fails to changes nothing of what it gave."""
    close = getattr(stream, "aclose", None)
    try:
        if close is not None:
            await close()
    except asyncio.CancelledError as error:
        if run.driven.is_cancelled():
            raise
        log_raised("a model's stream cancelled itself as it was closed", error, run.redact, _about(run))
    except Exception as error:
        log_raised("a model's stream failed as it was closed", error, run.redact, _about(run))


def _about(run: Run) -> dict[str, object]:
    """The fields of a line that is logged about a call of a model."""
    return {"run_id": run.run_id, "agent": run.state.agent, "step": len(run.state.steps), "model": run.model.name}


def _cut_off(run: Run, attempt: int) -> ModelReplied | ModelFailed:
    """The record of a call that is cancelled: its reply, if that was whole and only the stream's clean-up was not."""
    whole = run.asking.arrived.whole
    if whole is not None:
        with suppress(ModelError):
            return run.asking.replied(whole)
    info = ErrorInfo("cancelled", "The call was cancelled while the reply was arriving.")
    return _failed(run, info, attempt, None)


def _failed(run: Run, error: ErrorInfo, attempt: int, wait: float | None, failed: Model | None = None) -> ModelFailed:
    """The record of a failed attempt. A provider charges for a reply that broke off, so what came of it is counted."""
    usage, model = run.asking.arrived.usage(run.asking.asked, run.asking.longest_reply, error.kind), failed or run.model
    cost = _cost(run, model, usage)
    return ModelFailed(len(run.state.steps), error, attempt, run.asking.arrived.text, wait, usage, cost, run.model.name)


def _cost(run: Run, model: Model, usage: Usage | None) -> Decimal | None:
    """What a failed attempt at `model` cost: what its provider said, else its price."""
    if usage is None or run.asking.arrived.cost is not None:
        return run.asking.arrived.cost
    return price_of(model, usage, _settings(run))


def _settings(run: Run) -> ModelSettings:
    """With what the call under way was made."""
    prepared = run.state.prepared
    return (None if prepared is None else prepared.settings) or run.state.settings


def _passed_over(run: Run, event: AttemptFailed, attempt: int) -> ModelFailed:
    """The record of a model among several that could not answer, and for which another is asked at once."""
    usage = run.asking.arrived.usage(run.asking.asked, run.asking.longest_reply, event.error.kind)
    cost = _cost(run, event.error.model or run.model, usage)
    info = error_info(event.error)
    return ModelFailed(len(run.state.steps), info, attempt, retry_in=0.0, usage=usage, cost=cost, model=event.model)


def _unexpected(error: BaseException) -> ModelError:
    """A model that raises anything else is at fault itself; the same call would most likely fail again."""
    failure = ModelError(storable_text(f"{type(error).__name__}: {error}"))
    failure.__cause__ = error
    return failure


def seconds_left(run: Run) -> float | None:
    """Seconds to the run's deadline; None if it has none."""
    limits, state = run.state.limits, run.state
    if limits.seconds is None:
        return None
    return max(0.0, limits.seconds - state.elapsed - max(0.0, run.clock.now() - state.now))


def error_info(error: ModelError) -> ErrorInfo:
    """The record of `error`."""
    return ErrorInfo(
        error.kind,
        cut(str(error), LONGEST_WORDS),
        error.retryable,
        error.status,
        error.request_id,
        asked_to_wait(error),
    )
