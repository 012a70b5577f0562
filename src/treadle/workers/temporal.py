"""TemporalQueue: a workflow a run in a Temporal cluster, and one activity that drives it."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

from temporalio import activity
from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import PollerBehaviorSimpleMaximum, UnsandboxedWorkflowRunner, Worker

from treadle.agent import Agent
from treadle.drivers.dispatch import Order
from treadle.drivers.unsettled import unsettled
from treadle.event_loop import running_loop
from treadle.journal import RunHeld, UnknownRun
from treadle.journal.ones_own import read_of, standing_of
from treadle.kernel.errors import Misuse
from treadle.workers.deliveries import (
    DEFAULT,
    Delivered,
    Deliveries,
    Deps,
    OrderRefused,
    QueueUnavailable,
    RunRaised,
    about_run,
    at_once,
    checked_seconds,
)
from treadle.workers.temporal_workflow import CANCEL, DECIDE, DRIVE, RAISED, RUN, RunWorkflow

log = logging.getLogger("treadle")

_MIDDLE: Final = 3
"""The priority that Temporal gives where none is said; 5 goes last, and 1 is for runs that had begun."""


_LEAST: Final = 4.0
_USUAL: Final = 10.0
"""Seconds for a step of a workflow: never less, and at most what Temporal gives where nothing is said."""


class TemporalQueue:
    """A queue in a Temporal cluster: each run has a workflow called as it is, and each agent a task queue.

    How many runs of one key are under way at once is not limited; the keys take turns, by Temporal's fairness. A
    priority above 0 goes before, one below 0 after, by two levels at most.

    Args:
        address: the cluster's frontend, such as "localhost:7233", or a `temporalio.client.Client` that is connected.
        namespace: where in the cluster.
        heartbeat: seconds between two signs of life of a worker; silent for one it counts as gone. Below 10, a run that
            is handed to a worker which is stopped may take longer than two to go on elsewhere, by some seconds.

    Raises:
        Misuse: the heartbeat is no number of seconds above 0.
    """

    def __init__(self, address: str | Client, *, namespace: str = "default", heartbeat: float = 10.0) -> None:
        self._address = address if isinstance(address, str) else ""
        self._namespace, self._heartbeat = namespace, checked_seconds("heartbeat", heartbeat)
        self._client = None if isinstance(address, str) else address

    async def accept(self, agent: str) -> None:
        """See `Dispatcher.accept`; Temporal has no such limit."""

    async def dispatch(self, order: Order) -> None:
        """See `Dispatcher.dispatch`.

        Raises:
            QueueUnavailable: the cluster cannot be reached, or refuses.
        """
        client = await self._connected()
        delay = 0.0 if order.at is None else order.at - datetime.now(UTC).timestamp()
        later = delay > 0
        try:
            await client.start_workflow(
                RUN,
                args=[order.run_id, order.agent, self._heartbeat],
                id=workflow_of(order.run_id),
                task_queue=queue_of(order.agent),
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                task_timeout=timedelta(seconds=task_timeout(self._heartbeat)),
                # A signal would begin it before its time.
                start_delay=timedelta(seconds=delay) if later else None,
                start_signal=None if later else "go_on",
                priority=Priority(
                    priority_key=min(5, max(2, _MIDDLE - order.priority)),
                    fairness_key=order.key.encode()[:64].decode(errors="ignore") or None,
                ),
            )
        except RPCError as error:
            if error.status is RPCStatusCode.INVALID_ARGUMENT:
                raise OrderRefused(f"Temporal does not take it: {error}") from error
            raise QueueUnavailable(_unavailable(str(error))) from error

    async def work(
        self,
        agents: Agent[Any, Any] | Iterable[Agent[Any, Any]],
        *,
        concurrency: int | Mapping[str, int] = DEFAULT,
        grace: float = 25.0,
        deps: Deps = None,
    ) -> None:
        """Drives the runs that are queued for `agents`, until it is cancelled.

        Cancelled, it takes no more; each run under way pauses after its step, and another worker goes on with it. What
        is not there after `grace` is left as it is, as if the process had died.

        Args:
            agents: whose runs; each is known by its name.
            concurrency: runs of each agent under way at once in this worker; or by the agent's name.
            grace: seconds that steps under way are given to end when it is cancelled.
            deps: called with the id of a run for what its tools are given as dependencies.

        Raises:
            Misuse: something does not fit; the message says what would.
            QueueUnavailable: the cluster cannot be reached.
        """
        checked_seconds("grace", grace)
        deliveries = Deliveries([agents] if isinstance(agents, Agent) else agents, deps)
        shares = [(name, most) for names, most in at_once(concurrency, deliveries.agents) for name in names]
        client = await self._connected()
        deliveries.check_leases(1.5 * self._heartbeat)
        await deliveries.queue_again(self, datetime.now(UTC).timestamp())
        activities = _Activities(deliveries, self._heartbeat)
        async with asyncio.TaskGroup() as group:
            for name, most in shares:
                worker = Worker(
                    client,
                    task_queue=queue_of(name),
                    workflows=[RunWorkflow],
                    activities=[activities.drive, activities.decide, activities.cancel],
                    workflow_runner=UnsandboxedWorkflowRunner(),
                    max_concurrent_activities=most,
                    # A worker that is stopped is given one run in answer to each request that it has open.
                    activity_task_poller_behavior=PollerBehaviorSimpleMaximum(1),
                    workflow_task_poller_behavior=PollerBehaviorSimpleMaximum(2),
                    # As a rule only as many signs of life are passed on as are needed for the longest silence.
                    max_heartbeat_throttle_interval=timedelta(seconds=self._heartbeat / 8),
                    graceful_shutdown_timeout=timedelta(seconds=grace),
                    # The workflows of a worker that died are others' soon.
                    sticky_queue_schedule_to_start_timeout=timedelta(seconds=self._heartbeat / 10),
                )
                group.create_task(worker.run())
            try:
                await deliveries.keep_queued(self)
            finally:
                deliveries.pausing.pause()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A client of Temporal's has nothing to close."""

    async def _connected(self) -> Client:
        running_loop()
        if self._client is None:
            try:
                self._client = await Client.connect(self._address, namespace=self._namespace)
            except RuntimeError as error:
                raise QueueUnavailable(_unavailable(f"{self._address}: {error}")) from error
        return self._client


class _Nowhere:
    """Dispatches nothing: the workflow that asks goes on itself."""

    async def accept(self, agent: str) -> None:
        """Any number may be queued."""

    async def dispatch(self, order: Order) -> None:
        """It is on its way."""


class _Activities:
    """What workflows have done by a worker."""

    def __init__(self, deliveries: Deliveries, heartbeat: float) -> None:
        self._deliveries, self._heartbeat = deliveries, heartbeat

    @activity.defn(name=DRIVE)
    async def drive(self, run_id: str, agent: str) -> dict[str, str]:
        """Drives a run, giving signs of life. Cancelled by the workflow, it ends the run; by a shutdown, leaves it."""
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._beat())
            driving = group.create_task(self._delivered(agent, run_id))
            try:
                await asyncio.wait([driving])
            except asyncio.CancelledError:
                why = activity.cancellation_details()
                if why is not None and why.cancel_requested:
                    driving.cancel()
                else:
                    self._deliveries.pausing.give_up(run_id)
                await asyncio.wait([driving])
                raise
            finally:
                beating.cancel()
        found = driving.result()
        if isinstance(found, Exception):
            raise found
        if found.status == "held":
            raise self._held(run_id)
        return {"status": found.status, "reason": found.reason}

    def _held(self, run_id: str) -> ApplicationError:
        """That it is to be tried again soon: its owner may be dead, and its lease not run out yet."""
        later, calm = timedelta(seconds=self._heartbeat / 10), ApplicationErrorCategory.BENIGN
        return ApplicationError(f"run {run_id} goes on elsewhere", type="Held", next_retry_delay=later, category=calm)

    async def _delivered(self, agent: str, run_id: str) -> Delivered | Exception:
        """What has come of a delivery, or its error, which would end the group."""
        try:
            return await self._deliveries.drive(agent, run_id)
        except RunRaised as error:
            return ApplicationError(str(error), type=RAISED, non_retryable=True)
        except Exception as error:
            return error

    async def _beat(self) -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(self._heartbeat / 8)

    @activity.defn(name=DECIDE)
    async def decide(self, run_id: str, agent: str, approve: list[str], deny: list[str]) -> None:
        """Records decisions that came as signals. One that fits no call that waits is logged: nobody waits for it."""
        decider = self._deliveries.agents[agent]
        for approved, denied in [([call], []) for call in approve] + [([], [call]) for call in deny]:
            try:
                await _refuse_what_may_be_old(decider, run_id, approved)
                await decider.resubmit(run_id, to=_Nowhere(), approve=approved, deny=denied)
            except RunHeld as error:
                # It may be held for no longer than another decision about it takes.
                raise self._held(run_id) from error
            except (Misuse, UnknownRun) as error:
                words = "a decision that was signalled to run %s is not taken: %s"
                log.warning(words, run_id, error, extra=about_run(run_id, agent))

    @activity.defn(name=CANCEL)
    async def cancel(self, run_id: str, agent: str) -> str:
        """Ends a run as cancelled, unless it has ended or was deleted: why it ended."""
        try:
            return (await self._deliveries.agents[agent].cancel(run_id)).stop.reason
        except UnknownRun:
            log.warning("run %s is not in the journal: it was deleted", run_id, extra=about_run(run_id, agent))
            return "cancelled"


async def _refuse_what_may_be_old(agent: Agent[Any, Any], run_id: str, approved: Sequence[str]) -> None:
    """A signal is kept while the run is driven, so one by a call's id may be an answer to what was asked before.

    Raises:
        UnknownRun: the journal has no such run.
        Misuse: a call is approved by its id about which something else has been asked since.
    """
    journal = agent.journal
    for one in () if journal is None else await unsettled(standing_of(await read_of(journal, run_id)), journal):
        if (one.kind == "interrupted" or one.asked > 1) and not {one.call_id, one.plain}.isdisjoint(approved):
            raise Misuse(f"something is asked about call {one.call_id!r} again; approve it by its key, {one.key!r}")


def task_timeout(heartbeat: float) -> float:
    """Seconds that a worker has for a step of a workflow, which takes a moment, before another is given it.

    As long as lets a run go on within two heartbeats that was handed to a worker which is stopped. But on a starved
    machine a moment may be seconds, and from the fourth that is not done in time Temporal gives each up to ten minutes.
    """
    return min(_USUAL, max(_LEAST, 0.4 * heartbeat))


def workflow_of(run_id: str) -> str:
    """The id of the workflow of a run."""
    return f"treadle-{run_id}"


def queue_of(agent: str) -> str:
    """The name of the task queue of an agent."""
    return f"treadle-{agent}"


def _unavailable(why: str) -> str:
    return (
        f"Temporal cannot be used: {why}. What was recorded is in the journal; when it is there again, the "
        "workers queue what was not queued, within two minutes, and so does `treadle submit --again RUN`"
    )
