"""A run that is cancelled at any await leaves nothing behind, and a conversation that goes on."""

import asyncio
import threading
from dataclasses import replace

import anyio
import pytest
from checks import events_of, requests_valid, same, valid
from found import FOUND
from hooks import OfTheApplication
from hypothesis import given
from hypothesis import strategies as st
from journals import SlowJournal
from player import Player, Says
from rules import hold
from toolbox import QUICK, TOOLS, World, hangs
from trial import Outcome, Trial
from worlds import QUESTIONS, Setup, conversation, examples, setups

from treadle import Agent, MemoryJournal, Misuse, RunStopped, tool
from treadle.kernel.events import RunFinished, RunPaused, ToolStarted, decode_event, encode_event
from treadle.kernel.fold import fold_all
from treadle.testing import ScriptedModel
from treadle.tools.server import ServerFailed

NAMES = tuple(one.name for one in (*TOOLS, hangs))


async def ticks(count, task):
    """Lets the loop go round `count` times, or until `task` is done."""
    for _ in range(count):
        if task.done():
            return
        await asyncio.sleep(0)


async def told_before(run):
    """What comes of `run`, whose task is told to stop right before."""
    asyncio.current_task().cancel()
    return await run


def cancelled_after(setup, turns, again):
    """The trial of a run that its caller cancels after so many turns of the loop, and perhaps once more.

    After -1, its task is told so before it awaits anything, as Ctrl-C tells it that is pressed in a function.
    """
    setup = replace(setup, steers=(), one_step=False, paper=replace(setup.paper, fails_at=None, slow=True))
    trial = Trial.of(setup, (*TOOLS, hangs))

    async def whole():
        agent = trial.agent()
        run = agent.run(QUESTIONS[setup.question], conversation=trial.said, deps=trial.world)
        task = asyncio.get_running_loop().create_task(run if turns >= 0 else told_before(run))
        await ticks(turns, task)
        trial.asked_to_stop = not task.done()
        if turns >= 0:
            task.cancel()
        if again is not None:
            await ticks(again, task)
            task.cancel()
        try:
            trial.last = Outcome(await task)
        except RunStopped as stop:
            trial.last = Outcome(stop.result)
        except (Misuse, ServerFailed) as error:
            # An alternative that the agent does not have: the application's own mistake. Or its server is away.
            trial.world.raised.append(str(error))
            trial.last = Outcome(error=error)
        except (asyncio.CancelledError, OfTheApplication, RuntimeError) as error:
            trial.last = Outcome(error=error)
        await trial.nothing_left()
        root = trial.root
        if root is not None and isinstance(trial.last.error, asyncio.CancelledError) and not trial.world.raised:
            assert isinstance(events_of(trial.journal, root)[-1], (RunFinished, RunPaused))

    return trial.carry_out(whole)


@examples(80, shrink=False)
@given(setups(NAMES, max_size=3), st.integers(-1, 120), st.sampled_from([None, 1, 2, 3]))
def test_cancelled_at_any_await(setup, turns, again):
    trial = cancelled_after(setup, turns, again)
    if not trial.world.raised:
        hold(trial)


BUSY = ("a dozen calls of all effects", "two levels of approvals", "an early result is replaced", "calls below count")


@pytest.mark.parametrize("name", BUSY)
def test_cancelled_at_every_await(name):
    for turns in range(-1, 150):
        trial = cancelled_after(FOUND[name], turns, None)
        hold(trial)
        if not trial.asked_to_stop:
            break
    assert turns > 10


@tool(effect="write", needs_approval=True)
async def signs(what: str) -> str:
    """Signs."""
    await asyncio.sleep(0)
    return what


def asks_below(depth, journal):
    """An agent that comes to calls which wait for a person, in itself or so many runs below."""
    waits = [("signs", {"what": "a"}), ("signs", {"what": "b"})]
    script = ScriptedModel(lambda request: "ok" if request.step else waits)
    agent = Agent(script, tools=[signs], name="lowest", journal=None if depth else journal)
    for level in range(depth):
        calls = [(agent.name, {"task": "go"})]
        script = ScriptedModel(lambda request, calls=calls: "ok" if request.step else calls)
        top = level == depth - 1
        agent = Agent(script, tools=[agent.as_tool()], name=f"above{level}", journal=journal if top else None)
    return agent


async def by_task(turns, run):
    task = asyncio.get_running_loop().create_task(run)
    await ticks(turns, task)
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


async def by_scope(turns, run):
    # It is cancelled anew at every turn, until it is left.
    async def cancels():
        await ticks(turns, whole)
        scope.cancel()

    with anyio.CancelScope() as scope:
        whole = asyncio.current_task()
        canceller = asyncio.get_running_loop().create_task(cancels())
        await run
    canceller.cancel()
    await asyncio.wait([canceller])
    return scope.cancelled_caught


@pytest.mark.parametrize("how", [by_task, by_scope])
@pytest.mark.parametrize("kind", [SlowJournal, MemoryJournal])
@pytest.mark.parametrize("depth", [0, 2])
def test_a_decision_cancelled_at_every_await_is_not_made_or_ends_the_run(depth, kind, how):
    async def told(turns):
        journal = kind()
        agent = asks_below(depth, journal)
        waits = await agent.run("go")
        before = {run_id: len(events_of(journal, run_id)) for run_id in journal._runs}
        stopped = await how(turns, agent.resume(waits.run_id, approve=waits.pending))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        same_as_before = before == {run_id: len(events_of(journal, run_id)) for run_id in journal._runs}
        # One below that waits for somebody is left as it is.
        assert all(isinstance(events_of(journal, run_id)[-1], (RunFinished, RunPaused)) for run_id in journal._runs)
        assert isinstance(events_of(journal, waits.run_id)[-1], RunFinished) or same_as_before
        assert not dict(await journal.holders([*journal._runs]))
        return stopped

    turns = 0
    while asyncio.run(told(turns)):
        turns += 1
    assert turns > 2


async def left_clean(journal, said, setup):
    """What a cancelled run must leave: no task, a closed journal, a conversation that another run continues.

    A run that had paused before the cancellation came stays paused.
    """
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for run_id in list(journal._runs):
        events = events_of(journal, run_id)
        assert isinstance(events[-1], (RunFinished, RunPaused))
        assert sum(isinstance(event, RunFinished) for event in events) == isinstance(events[-1], RunFinished)
        state = fold_all([decode_event(encode_event(event)) for event in events])
        same(state, fold_all(events))
        if state.phase == "finished":
            valid(list(state.messages))
    valid(said.messages)
    player = Player((Says("", (("x", "look", "{}"),), "tool_calls"), Says("done")))
    result = await Agent(player, tools=QUICK).run("and again", conversation=said, deps=World())
    assert result.stop.reason == "answered"
    requests_valid(player)


def test_a_thread_that_was_given_up_ends_and_its_result_is_dropped():
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    @tool
    def blocks() -> str:
        """Block."""
        begun.set()
        go_on.wait(20)
        ended.set()
        return "late"

    async def run():
        agent = Agent(ScriptedModel([[("blocks", {})]]), tools=[blocks])
        async with agent.stream("go", deps=World()) as live:
            assert await asyncio.to_thread(begun.wait, 20)
            result = await live.cancel()
        assert result.stop.reason == "cancelled"
        assert "unknown" in result.messages[-1].text
        go_on.set()
        assert await asyncio.to_thread(ended.wait, 20)
        assert live.result.messages == result.messages

    asyncio.run(run())


def test_a_cancelled_callers_pause_is_cancelled():
    agent = Agent(ScriptedModel([[("hangs", {})]]), tools=[hangs])

    async def run():
        async with agent.stream("go", deps=World()) as live:
            async for event in live:
                if isinstance(event, ToolStarted):
                    break
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await live.pause()

    asyncio.run(run())


def test_a_live_run_cancelled_before_its_first_turn_is_recorded_and_frees_the_conversation():
    setup = Setup((Says("hello"),))

    async def run():
        player, journal, said = setup.player(), SlowJournal(), conversation()
        agent = setup.agent(player, journal)
        async with agent.stream("go", conversation=said, deps=World()) as live:
            result = await live.cancel()
        assert result.stop.reason == "cancelled"
        assert isinstance(events_of(journal, live.run_id)[-1], RunFinished)
        await left_clean(journal, said, setup)

    asyncio.run(run())


def test_several_runs_cancelled_together():
    async def run():
        journal, runs = SlowJournal(), []
        agent = Setup((Says("", (("a", "hangs", "{}"), ("b", "look", "{}"))),)).agent(
            Player((Says("", (("a", "hangs", "{}"), ("b", "look", "{}")), "tool_calls"),)), journal, (*TOOLS, hangs)
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), asyncio.TaskGroup() as group:
                runs += [group.create_task(agent.run(f"q {i}", deps=World())) for i in range(20)]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert len(journal._runs) == 20
        for run_id in journal._runs:
            events = events_of(journal, run_id)
            assert isinstance(events[-1], RunFinished)
            assert events[-1].stop.reason == "cancelled"
            valid(list(fold_all(events).messages))

    asyncio.run(run())
