"""TemporalQueue over a real development server: a workflow a run, decisions and cancellation as signals."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace
from needs import need

need("temporalio", "TREADLE_REQUIRE_TEMPORAL")

from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from treadle import Agent, ask_before, tool
from treadle.journal import MemoryJournal, SqliteJournal
from treadle.journal.holder import this_process
from treadle.kernel.events import ToolStarted
from treadle.kernel.messages import UserMessage
from treadle.testing import ScriptedModel
from treadle.workers.temporal_workflow import CANCEL, DRIVE, RAISED, RUN, RunWorkflow

pytestmark = pytest.mark.anyio


@pytest.fixture
async def file(tmp_path, anyio_backend):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        yield journal


@pytest.fixture
async def queue(cluster):
    from treadle.workers import TemporalQueue

    return TemporalQueue(cluster, heartbeat=1)


class Working:
    """A worker, for as long as the block lasts."""

    def __init__(self, queue, *agents, **more):
        self.work = queue.work(agents, grace=0.2, **more)

    async def __aenter__(self):
        self.task = asyncio.get_running_loop().create_task(self.work)

    async def __aexit__(self, *error):
        self.task.cancel()
        await asyncio.wait([self.task])


async def outcome(cluster, run_id):
    """What the workflow of a run returned."""
    return await cluster.get_workflow_handle(f"treadle-{run_id}").result()


async def waits(agent, run_id):
    """The run, when it waits for a person."""
    while True:
        events = await agent.journal.read(run_id)
        if type(events[-1]).__name__ == "RunPaused" and events[-1].queued is None:
            return await agent.drive(run_id)
        await asyncio.sleep(0.02)


async def tried_again(handle):
    """Returns when an activity of the workflow was tried twice."""
    while True:
        if any(one.attempt > 1 for one in (await handle.describe()).raw_description.pending_activities):
            return
        await asyncio.sleep(0.02)


async def logged(caplog, words):
    """Returns when a line with these words was written."""
    while True:
        if words in caplog.text:
            return
        await asyncio.sleep(0.02)


async def test_each_run_is_driven_once_however_often_it_is_dispatched(clerk, done, file, cluster, queue):
    agent = clerk(file)
    ids = [await agent.submit(f"n{number}", to=queue, key="anna", priority=number) for number in range(6)]
    for run_id in ids:
        await agent.resubmit(run_id, to=queue)
    async with Working(queue, agent):
        assert {await outcome(cluster, run_id) for run_id in ids} == {"answered"}
    assert sorted(done) == [f"n{number}" for number in range(6)]


async def test_decisions_come_as_signals_and_from_the_journal(clerk, done, file, cluster, queue):
    agent = clerk(file)
    signalled, recorded, refused = [await agent.submit(f"ask: {name}", to=queue) for name in ("a", "b", "c")]
    async with Working(queue, agent):
        (call,) = (await waits(agent, signalled)).pending
        handle = cluster.get_workflow_handle(f"treadle-{signalled}")
        await handle.signal("approve", "no such call")
        await handle.signal("approve", call.key)
        await agent.resubmit(recorded, to=queue, approve=(await waits(agent, recorded)).pending)
        (call,) = (await waits(agent, refused)).pending
        await cluster.get_workflow_handle(f"treadle-{refused}").signal("deny", call.key)
        for run_id in (signalled, recorded, refused):
            assert await outcome(cluster, run_id) == "answered"
    assert sorted(done) == ["ask: a", "ask: b"]


@pytest.mark.parametrize("how", ["cancelled", "denied", "deleted"])
async def test_what_becomes_of_a_run_that_waits_without_its_queue_is_seen(
    clerk, file, cluster, queue, monkeypatch, how
):
    """Its workflow waited for ever."""
    monkeypatch.setattr("treadle.workers.temporal_workflow._LOOKS", timedelta(seconds=0.2))
    agent = clerk(file)
    run_id = await agent.submit("ask: pay", to=queue)
    async with Working(queue, agent):
        waiting = await waits(agent, run_id)
        if how == "cancelled":
            await agent.cancel(run_id)
        elif how == "denied":
            await agent.resume(waiting, deny=waiting.pending)
        else:
            await file.delete(run_id)
        found = await asyncio.wait_for(outcome(cluster, run_id), 30)
    assert found == {"cancelled": "cancelled", "denied": "answered", "deleted": "unknown"}[how]


async def test_a_signal_to_a_run_that_another_process_has_is_kept_in_plain_lines(
    clerk, done, file, cluster, queue, caplog
):
    """Each try was a traceback from within."""
    agent = clerk(file)
    run_id = await agent.submit("ask: pay", to=queue)
    elsewhere = replace(this_process(""), name="another")
    async with Working(queue, agent):
        (call,) = (await waits(agent, run_id)).pending
        assert await file.hold(run_id, elsewhere, 60) is None
        handle = cluster.get_workflow_handle(f"treadle-{run_id}")
        await handle.signal("approve", call.key)
        await tried_again(handle)
        file.let_go(run_id, elsewhere)
        assert await outcome(cluster, run_id) == "answered"
    assert done == ["ask: pay"]
    assert "Traceback" not in caplog.text


async def test_nothing_that_was_said_crosses_to_temporal(clerk, file, cluster, queue):
    agent = clerk(file)
    run_id = await agent.submit("a secret of the customer's", to=queue)
    async with Working(queue, agent):
        await outcome(cluster, run_id)
    history = await cluster.get_workflow_handle(f"treadle-{run_id}").fetch_history()
    assert b"secret" not in b"".join(event.SerializeToString() for event in history.events)


@pytest.fixture
def slow(file):
    """An agent whose tool takes its time, and whether it has begun."""
    begun = asyncio.Event()

    @tool(effect="idempotent")
    async def wait() -> str:
        """Waits until the test is over, the first time."""
        if not begun.is_set():
            begun.set()
            await asyncio.sleep(600)
        return "done"

    def says(request):
        return [("wait", {})] if isinstance(request.messages[-1], UserMessage) else "It is done."

    return Agent(ScriptedModel(says), tools=[wait], journal=file, name="slow"), begun


@pytest.mark.parametrize("how", ["signal", "workflow"])
async def test_a_run_is_cancelled_in_the_middle_of_a_step(slow, file, cluster, queue, how):
    agent, begun = slow
    run_id = await agent.submit("go", to=queue)
    async with Working(queue, agent):
        await begun.wait()
        handle = cluster.get_workflow_handle(f"treadle-{run_id}")
        await (handle.signal("cancel") if how == "signal" else handle.cancel())
        assert await outcome(cluster, run_id) == "cancelled"
    assert (await agent.drive(run_id)).stop.reason == "cancelled"


@pytest.mark.parametrize("how", ["signal", "workflow"])
async def test_a_workflow_that_is_cancelled_after_its_run_has_ended_says_how_that_ended(
    clerk, file, cluster, queue, how
):
    """It said that the run was cancelled, which the journal has as answered."""
    agent = clerk(file)
    run_id = await agent.submit("pay", to=queue)
    await agent.drive(run_id)
    handle = cluster.get_workflow_handle(f"treadle-{run_id}")
    await (handle.signal("cancel") if how == "signal" else handle.cancel())
    async with Working(queue, agent):
        assert await outcome(cluster, run_id) == "answered"
    assert (await agent.drive(run_id)).stop.reason == "answered"


async def test_a_run_that_waits_is_cancelled_too(clerk, done, file, cluster, queue):
    agent = clerk(file)
    run_id = await agent.submit("ask: pay", to=queue)
    async with Working(queue, agent):
        await waits(agent, run_id)
        await cluster.get_workflow_handle(f"treadle-{run_id}").signal("cancel")
        assert await outcome(cluster, run_id) == "cancelled"
    assert (await agent.drive(run_id)).stop.reason == "cancelled"
    assert done == []


async def test_a_worker_that_ends_leaves_its_run_to_another(slow, file, cluster, queue):
    agent, begun = slow
    run_id = await agent.submit("go", to=queue)
    async with Working(queue, agent):
        await begun.wait()
    assert (await file.list())[0].status == "running"
    async with Working(queue, agent):
        assert await outcome(cluster, run_id) == "answered"


async def test_a_run_that_another_process_has_is_waited_for_in_plain_lines(
    slow, tmp_path, file, cluster, queue, caplog
):
    """Each try was a traceback from within, ten in each heartbeat, for as long as the lease of a dead worker lasts."""
    agent, begun = slow
    caplog.set_level("INFO")
    run_id = await agent.submit("go", to=queue)
    async with SqliteJournal(tmp_path / "runs.db") as other:
        holder = Agent(agent.model, tools=[*agent.tools.values()], journal=other, name="slow")
        elsewhere = asyncio.get_running_loop().create_task(holder.drive(run_id))
        await begun.wait()
        async with Working(queue, agent):
            await logged(caplog, "goes on elsewhere")
            elsewhere.cancel()
            await asyncio.wait([elsewhere])
            assert await outcome(cluster, run_id) == "cancelled"
    lines = [line for line in caplog.records if "goes on elsewhere" in line.getMessage()]
    assert {(line.run_id, line.agent) for line in lines} == {(run_id, "slow")}
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("heartbeat", [0.1, 10, 100])
async def test_a_starved_machine_has_seconds_for_a_step_of_a_workflow(clerk, file, cluster, heartbeat):
    """Steps that come too late too often are made ten minutes apart."""
    from treadle.workers import TemporalQueue

    run_id = await clerk(file).submit("n1", to=TemporalQueue(cluster, heartbeat=heartbeat))
    described = await cluster.get_workflow_handle(f"treadle-{run_id}").describe()
    config = described.raw_description.execution_config
    assert 4 <= config.default_workflow_task_timeout.ToTimedelta().total_seconds() <= 10


@pytest.mark.parametrize("signal", ["cancel", "approve"])
async def test_a_workflow_whose_run_was_deleted_comes_to_its_end(clerk, file, cluster, queue, signal):
    agent = clerk(file)
    run_id = await agent.submit("ask: a", to=queue)
    async with Working(queue, agent):
        (call,) = (await waits(agent, run_id)).pending
        await file.delete(run_id)
        handle = cluster.get_workflow_handle(f"treadle-{run_id}")
        await handle.signal(signal, *([call.key] if signal == "approve" else []))
        found = await asyncio.wait_for(outcome(cluster, run_id), 20)
    assert found == ("cancelled" if signal == "cancel" else "unknown")


async def test_a_signal_by_its_id_allows_no_call_that_was_cut_off(file, cluster, queue, caplog):
    # It may have been sent before, twice, and have been kept while the call was made.
    paid = []

    @tool(effect="write", needs_approval=True)
    def pay() -> str:
        """Pays."""
        paid.append("paid")
        return "paid"

    def agent(journal):
        script = ScriptedModel(lambda request: "done" if request.step else [("pay", {})])
        return Agent(script, name="clerk", tools=[pay], on_interrupted="ask", journal=journal)

    memory = MemoryJournal()
    first = await agent(memory).run("Pay.")
    await agent(memory).resume(first, approve=first.pending)
    events = list(await memory.read(first.run_id))
    cut = next(at for at, one in enumerate(events) if isinstance(one, ToolStarted)) + 1
    await file.append(first.run_id, 0, events[:cut])
    paid.clear()

    clerk = agent(file)
    await clerk.resubmit(first.run_id, to=queue)
    async with Working(queue, clerk):
        (call,) = (await waits(clerk, first.run_id)).pending
        assert call.kind == "interrupted"
        handle = cluster.get_workflow_handle(f"treadle-{first.run_id}")
        await handle.signal("approve", call.call_id)
        await handle.signal("approve", call.key)
        assert await outcome(cluster, first.run_id) == "answered"
    assert paid == ["paid"]
    assert "approve it by its key" in caplog.text


async def test_what_is_recorded_in_the_moment_in_which_a_run_ends_is_gone_on_with(cluster):
    driven = []

    @activity.defn(name=DRIVE)
    async def drive(run_id: str, agent: str) -> dict[str, str]:
        driven.append(run_id)
        if len(driven) == 1:  # The end stands in the journal, somebody says something more, and only then this is told.
            await cluster.get_workflow_handle(activity.info().workflow_id).signal("go_on")
        return {"status": "finished", "reason": "answered"}

    runner = UnsandboxedWorkflowRunner()
    async with Worker(
        cluster, task_queue="moment", workflows=[RunWorkflow], activities=[drive], workflow_runner=runner
    ):
        ended = await cluster.execute_workflow(RUN, args=["r", "clerk", 10.0], id="moment", task_queue="moment")
    assert (ended, driven) == ("answered", ["r", "r"])


class Raising:
    """A hook that raises, in words that are not to leave the worker, the first few times."""

    def __init__(self, times):
        self.times, self.calls = times, 0

    def __call__(self, answer, context):
        self.calls += 1
        if self.calls <= self.times:
            raise ValueError(f"Zebra: {context.run_id}")


async def attempted(cluster, run_id):
    """How the workflow of a run came to its end, and all that its history has."""
    handle = cluster.get_workflow_handle(f"treadle-{run_id}")
    try:
        found = await handle.result()
    except WorkflowFailureError as error:
        found = f"failed: {error.cause.cause.type}"
    return found, (await handle.fetch_history()).to_json()


@pytest.mark.parametrize(("times", "came"), [(2, "answered"), (9, "failed: Raised")])
async def test_a_run_whose_own_code_raises_is_delivered_so_often_and_left(
    file, cluster, queue, monkeypatch, times, came, caplog
):
    """It was delivered for ever, and the words of the error stood in the cluster for its operators to read."""
    monkeypatch.setattr("treadle.workers.temporal_workflow.ATTEMPTS", 3)
    hook = Raising(times)
    agent = Agent(ScriptedModel(["It is done."]), name="raising", journal=file, on_answer=hook)
    run_id = await agent.submit("go", to=queue)
    async with Working(queue, agent):
        found, history = await attempted(cluster, run_id)
    assert (found, hook.calls) == (came, 3)
    assert "Zebra" not in history
    assert "Zebra" in caplog.text
    if times > 3:
        hook.times = 0
        await agent.resubmit(run_id, to=queue)
        async with Working(queue, agent):
            assert await outcome(cluster, run_id) == "answered"


async def test_a_run_that_its_agent_may_not_take_up_is_left_at_once(file, cluster, queue):
    """It was tried for ever."""
    strict = Agent(ScriptedModel(["Hello."]), name="strict", journal=file, approvals=[ask_before(effect="write")])
    run_id = await strict.submit("go", to=queue)
    async with Working(queue, Agent(ScriptedModel(["Hello."]), name="strict", journal=file)):
        found, _ = await attempted(cluster, run_id)
    assert found == "failed: Misuse"


@pytest.mark.parametrize("how", ["signal", "workflow"])
async def test_a_run_is_cancelled_while_its_next_delivery_is_waited_for(file, cluster, queue, monkeypatch, how):
    monkeypatch.setattr("treadle.workers.temporal_workflow.ATTEMPTS", 30)
    hook = Raising(9)
    agent = Agent(ScriptedModel(["It is done."]), name="raising", journal=file, on_answer=hook)
    run_id = await agent.submit("go", to=queue)
    handle = cluster.get_workflow_handle(f"treadle-{run_id}")
    async with Working(queue, agent):
        while not hook.calls:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.02)
        await (handle.signal("cancel") if how == "signal" else handle.cancel())
        assert await handle.result() == "cancelled"
    assert (await agent.drive(run_id)).stop.reason == "cancelled"


@pytest.mark.parametrize("how", ["signal", "workflow"])
@pytest.mark.parametrize("came", ["raised", "waiting", "queued"])
async def test_an_order_to_cancel_that_comes_as_a_delivery_ends_is_kept(cluster, how, came):
    """The delivery's outcome took its place: the run was driven again, or waited for ever."""
    driven, ended = [], []

    @activity.defn(name=DRIVE)
    async def drive(run_id: str, agent: str) -> dict[str, str]:
        driven.append(run_id)
        handle = cluster.get_workflow_handle(run_id)
        await (handle.signal("cancel") if how == "signal" else handle.cancel())
        # The workflow knows of it by then, and the worker does not yet: it is told with a heartbeat.
        while b"ACTIVITY_TASK_CANCEL_REQUESTED" not in (await handle.fetch_history()).to_json().encode():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        if came == "raised":
            raise ApplicationError("a hook fails", type=RAISED, non_retryable=True)
        return {"status": came, "reason": ""}

    @activity.defn(name=CANCEL)
    async def cancel(run_id: str, agent: str) -> None:
        ended.append(run_id)

    runner = UnsandboxedWorkflowRunner()
    name = f"told-{how}-{came}"
    async with Worker(
        cluster, task_queue=name, workflows=[RunWorkflow], activities=[drive, cancel], workflow_runner=runner
    ):
        given = {"args": [name, "clerk", 60.0], "id": name, "task_queue": name}
        found = await asyncio.wait_for(cluster.execute_workflow(RUN, **given), 20)
    assert (found, driven, ended) == ("cancelled", [name], [name])
