"""Think: one model call, tried again where that may help, with each attempt in the journal.

Retrying is done here and nowhere below, so that it obeys the run's deadline and stands in the record. A reply that
breaks off is asked for again as a whole; `ModelFailed.text` tells whoever watches that what was shown of it is
withdrawn.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from decimal import Decimal

from treadle.drivers.commit import require_lease
from treadle.drivers.configuration import asked_to_wait
from treadle.drivers.hearing import unexpected, whole_reply
from treadle.drivers.purse.arrived import Arrived
from treadle.drivers.purse.claims import claim
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.reckoning import price_of
from treadle.drivers.run import Run
from treadle.kernel.decide import CallModel
from treadle.kernel.errors import Misuse, PassesThrough
from treadle.kernel.events import ErrorInfo, ModelFailed, ModelReplied, RunFinished
from treadle.kernel.messages import ModelSettings, Usage
from treadle.models.errors import ModelError
from treadle.models.port import (
    AttemptFailed,
    Model,
    ModelEvent,
    ModelReply,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.tools.output import cut

ToolCallEvent = ToolCallStarted | ToolCallDelta | ToolCallCompleted

LONGEST_WORDS = 10_000
"""Characters of an error's message that are recorded; its middle is left out where it is longer."""


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
            failure: ModelError = unexpected(error, run.asking.model)
        except (Misuse, PassesThrough):
            raise
        except _Enough:
            return
        except (Exception, SystemExit) as error:
            failure = error if isinstance(error, ModelError) else unexpected(error, run.asking.model)
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


def _reply(run: Run, hear: Callable[[ToolCallEvent], None] | None, attempt: int) -> Awaitable[ModelReply]:
    """The whole reply; its pieces are shown as they come."""
    show = run.audience.show if run.audience.watches else None

    async def passed_over(event: AttemptFailed) -> Arrived:
        run.feed(_passed_over(run, event, attempt))
        run.asking.arrived = arrived = Arrived()
        await run.commit()
        if not await _may_call_again(run):
            raise _Enough
        return arrived

    def tell(event: ModelEvent) -> None:
        if hear is not None and isinstance(event, (ToolCallStarted, ToolCallDelta, ToolCallCompleted)):
            hear(event)
        if show is not None and not isinstance(event, UsageReported):
            show(event)

    watched = hear is not None or show is not None
    asking = run.asking
    return whole_reply(run, asking.model, run.request(), asking.arrived, passed_over, tell if watched else None)


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
