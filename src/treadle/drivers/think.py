"""Think: one model call, tried again where that may help, with each attempt in the journal.

Retrying is done here and nowhere below, so that it obeys the run's deadline and stands in the record. A reply that
breaks off is asked for again as a whole; `ModelFailed.text` tells whoever watches that what was shown of it is
withdrawn.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec.structs import replace

from treadle.context.storable import storable
from treadle.drivers.asking import Asking, error_info
from treadle.drivers.commit import require_lease
from treadle.drivers.hearing import unexpected, whole_reply
from treadle.drivers.purse.arrived import Arrived
from treadle.drivers.purse.patience import patiently
from treadle.drivers.run import Run
from treadle.kernel.decide import CallModel
from treadle.kernel.errors import Misuse, PassesThrough
from treadle.kernel.events import ErrorInfo, ModelFailed, ModelReplied
from treadle.models.errors import ModelError
from treadle.models.port import (
    AttemptFailed,
    ModelEvent,
    ModelReply,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)

ToolCallEvent = ToolCallStarted | ToolCallDelta | ToolCallCompleted


async def think(run: Run, hear: Callable[[ToolCallEvent], None] | None = None) -> None:
    """Calls the model for the step under way, and feeds `ModelReplied`, or `ModelFailed` for each failed attempt.

    `hear` is told of the pieces of tool calls as they arrive.
    """
    attempt = 1
    while True:
        # It may have been taken over while the wait for another attempt went on.
        require_lease(run)
        run.asking.arrived = Arrived()
        try:
            event = run.asking.replied(await _reply(run, hear, attempt))
        except asyncio.CancelledError as error:
            if run.driven.is_cancelled():
                # What an earlier attempt failed for is not what ended this one.
                run.error = None
                run.feed(_cut_off(run.asking, attempt))
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
    run.feed(run.asking.failed(error_info(failure), attempt, wait, failure.model))
    if wait is None:
        return attempt, False
    await run.commit()
    await asyncio.sleep(wait)
    return attempt + 1, await may_call_again(run)


async def may_call_again(run: Run) -> bool:
    """Whether what the attempts so far have taken leaves enough for another, here and in the runs above."""
    prepared = run.state.prepared
    if prepared is None or not isinstance(run.next(), CallModel):
        return False
    over = await patiently(lambda: run.asking.set_aside_again(prepared))
    if over is not None:
        run.feed(over)
    return over is None


class _Enough(Exception):
    """A model that stands for several may not ask the next of them: what the last one took leaves too little."""


def _reply(run: Run, hear: Callable[[ToolCallEvent], None] | None, attempt: int) -> Awaitable[ModelReply]:
    """The whole reply; its pieces are shown as they come."""
    show = run.audience.show if run.audience.watches else None

    async def passed_over(event: AttemptFailed) -> Arrived:
        run.feed(_passed_over(run, event, attempt))
        run.asking.arrived = arrived = Arrived()
        await run.commit()
        if not await may_call_again(run):
            raise _Enough
        return arrived

    def tell(event: ModelEvent) -> None:
        if hear is not None and (
            type(event) is ToolCallDelta or type(event) is ToolCallStarted or type(event) is ToolCallCompleted
        ):
            hear(event)
        if show is not None and type(event) is not UsageReported:
            # Whoever watches can write down what is shown, as the journal can what comes of it.
            show(storable(event))

    watched = hear is not None or show is not None
    asking = run.asking
    return whole_reply(run, asking.model, run.request(), asking.arrived, passed_over, tell if watched else None)


def _cut_off(asking: Asking, attempt: int) -> ModelReplied | ModelFailed:
    """The record of a call that is cancelled: its reply, if that was whole and only the stream's clean-up was not."""
    whole = asking.arrived.whole
    if whole is not None:
        with suppress(ModelError):
            return asking.replied(whole)
    asking.arrived.given_up()
    info = ErrorInfo("cancelled", "The call was cancelled while the reply was arriving.")
    return asking.failed(info, attempt, None)


def _passed_over(run: Run, event: AttemptFailed, attempt: int) -> ModelFailed:
    """The record of a model among several that could not answer, and for which another is asked at once."""
    failed = run.asking.failed(error_info(event.error), attempt, 0.0, event.error.model)
    return replace(failed, text="", model=event.model)


def seconds_left(run: Run) -> float | None:
    """Seconds to the run's deadline; None if it has none."""
    limits, state = run.state.limits, run.state
    if limits.seconds is None:
        return None
    return max(0.0, limits.seconds - state.elapsed - max(0.0, run.clock.now() - state.now))
