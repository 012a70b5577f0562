"""The workflow of a run: one activity drives it; where it waits for a person the workflow waits for a signal.

Names cross to Temporal and nothing else: the id of the run, the name of its agent, the ids of calls decided on.
What was said and found is in the journal, so that no limit of Temporal's on the size of payloads and histories binds.
"""

import asyncio
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutError

RUN: Final = "treadle-run"
DRIVE: Final = "treadle-drive"
DECIDE: Final = "treadle-decide"
CANCEL: Final = "treadle-cancel"

RAISED: Final = "Raised"
"""What a failure of the application's own code is called here."""

ATTEMPTS: Final = 6
"""Deliveries of a run whose own code raises, after which it is left: its workflow has failed."""

_EVER: Final = timedelta(days=365)
"""A run's own limits say how long it may take."""

_LOOKS: Final = timedelta(days=1)
"""How often it is looked whether a run that waits was decided on, ended or deleted without a word to its workflow."""

_SOON: Final = timedelta(minutes=1)
_AGAIN: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    maximum_interval=timedelta(minutes=1),
    # A worker that is silent is the workflow's matter: what the server tries again goes to the end of the queue.
    non_retryable_error_types=["Misuse", "TemporalTimeout:Heartbeat"],
)
_SILENT: Final = 1.0
"""Heartbeats after which a worker counts as gone that was not heard of; it is heard of eight times in each."""

_SOONER: Final = 0.5
"""Heartbeats after which a worker counts as gone to which a run was given whose worker had gone.

It may have been given to one that is stopped, and still has a request for work open at the server. Only the first time:
a function that keeps its worker silent for longer must not have its run go round for ever.
"""

_FIRST: Final = Priority(priority_key=1)
"""The priority of a run that was under way: it does not wait behind those that have not begun."""


@workflow.defn(name=RUN)
class RunWorkflow:
    """One run, from its order to its end."""

    def __init__(self) -> None:
        self._go_on = False
        self._approved: list[str] = []
        self._denied: list[str] = []
        self._cancelled = False
        self._driving: asyncio.Future[dict[str, str]] | None = None

    @workflow.run
    async def run(self, run_id: str, agent: str, heartbeat: float) -> str:
        """Has the run driven until it has ended: why it did."""
        names, found = [run_id, agent], dict[str, str]()
        try:
            while not self._is_told_to_end():
                self._go_on = False
                found = await self._drive(names, heartbeat, left=found.get("status") == "queued")
                # What was recorded after a run's end, and before this was told of it, goes on with it.
                if found["status"] not in ("waiting", "queued") and not self._go_on:
                    return found["reason"] or found["status"]
                if found["status"] == "waiting" and not self._is_told_to_end():
                    await self._news()
                if self._approved or self._denied:
                    said = [*names, self._approved, self._denied]
                    self._approved, self._denied = [], []
                    await workflow.execute_activity(
                        DECIDE, args=said, start_to_close_timeout=_SOON, retry_policy=_AGAIN
                    )
        except (ActivityError, asyncio.CancelledError) as error:
            # A cancelled activity may not have begun, and an order to cancel is to stand in the journal.
            if isinstance(error, ActivityError) and not isinstance(error.cause, CancelledError):
                raise
        # It may have ended otherwise before the order reached it; a worker of an older version does not say.
        ended = await workflow.execute_activity(CANCEL, args=names, start_to_close_timeout=_SOON, retry_policy=_AGAIN)
        return str(ended or "cancelled")

    @workflow.signal
    def go_on(self) -> None:
        """Something was recorded in the journal that the run goes on with."""
        self._go_on = True

    @workflow.signal
    def approve(self, call: str) -> None:
        """Allows a call that the run waits for, by its id or key."""
        self._approved.append(call)

    @workflow.signal
    def deny(self, call: str) -> None:
        """Refuses a call that the run waits for, by its id or key."""
        self._denied.append(call)

    @workflow.signal
    def cancel(self) -> None:
        """Ends the run as cancelled, also in the middle of a step."""
        self._cancelled = True
        if self._driving is not None:
            self._driving.cancel()

    async def _news(self) -> None:
        """Waits until the run may be gone on with."""
        try:
            await workflow.wait_condition(self._is_news, timeout=_LOOKS)
        except asyncio.TimeoutError:  # noqa: UP041 - what this raises on every Python
            return

    def _is_news(self) -> bool:
        return self._go_on or self._cancelled or bool(self._approved or self._denied)

    def _is_told_to_end(self) -> bool:
        """Whether the run is to end: by a signal, or as the workflow was cancelled.

        The outcome of a delivery that comes in the same moment keeps that cancellation to itself.
        """
        task = asyncio.current_task()
        return self._cancelled or task is None or task.cancelling() > 0

    async def _drive(self, names: list[str], heartbeat: float, *, left: bool) -> dict[str, str]:
        """Has the run driven until it ends or pauses: what has come of that; `left` where its worker had to end."""
        gone = raised = 0
        while True:
            self._driving = workflow.start_activity(
                DRIVE,
                args=names,
                result_type=dict[str, str],
                start_to_close_timeout=_EVER,
                heartbeat_timeout=timedelta(seconds=(_SOONER if gone == 1 else _SILENT) * heartbeat),
                retry_policy=_AGAIN,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                priority=_FIRST if gone or left else Priority.default,
            )
            try:
                found: dict[str, str] = await self._driving
            except ActivityError as error:
                if isinstance(error.cause, ApplicationError) and error.cause.type == RAISED and raised < ATTEMPTS - 1:
                    raised += 1
                    await self._pause(2**raised)
                    continue
                if not isinstance(error.cause, TimeoutError):
                    raise
                if self._is_told_to_end():
                    # Who was told to end the run is dead; another is not to go on with it instead.
                    raise asyncio.CancelledError from error
                gone += 1
            else:
                return found
            finally:
                self._driving = None

    async def _pause(self, seconds: float) -> None:
        """Waits, unless the run is to end.

        Raises:
            CancelledError: it is.
        """
        if self._is_told_to_end():
            raise asyncio.CancelledError
        try:
            await workflow.wait_condition(lambda: self._cancelled, timeout=seconds)
        except asyncio.TimeoutError:  # noqa: UP041 - what this raises on every Python
            return
        raise asyncio.CancelledError
