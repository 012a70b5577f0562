"""Every generated run comes out as it was recorded: with its agent, and as far as its journal alone tells."""

import asyncio
from dataclasses import replace

import pytest
from found import FOUND, WRITES, calling
from hypothesis import given
from hypothesis import strategies as st
from rules import hold
from skilled import differing
from trial import Trial
from worlds import examples, setups

from treadle import Agent, Limits, MemoryJournal, Misuse, tool
from treadle.kernel.events import encode_event
from treadle.testing import ScriptedModel
from treadle.timetravel.replay import replayed


def replays(trial: Trial) -> list[str]:
    """What differs when the trial's run is replayed, by an agent made anew and without one."""
    root = trial.root
    if root is None or root not in trial.journal.runs:
        return []
    wrong: list[str] = []
    trial.world.quiet = True
    done, asked = len(trial.world.executed), sum(len(player.requests) for _, _, player in trial.world.players)
    connected = sum(one.connected for one in trial.world.servers.values())
    before = {run: [encode_event(event) for event in trial.journal.events(run)] for run in trial.journal.runs}
    limits = trial.limits_of(root)

    async def replay() -> None:
        found = await trial.agent().replay(root, deps=trial.world, limits=limits)
        alone = await replayed(trial.journal.events(root), trial.journal)
        wrong.extend(differing(trial, found, alone))
        # An agent that has lost its skills is another than the run began with, and that is said.
        forgot = trial.setup.forgotten(trial.world)
        if found.changed and not (forgot and trial.setup.has_skills):
            wrong.append(f"the agent is said to be another: {found}")
        if forgot and trial.setup.skills and not found.changed:
            wrong.append(f"the agent has lost its skills, and is said to be the same: {found}")

    trial.carry_out(replay)
    if len(trial.world.executed) != done:
        wrong.append("a tool was called")
    if sum(one.connected for one in trial.world.servers.values()) != connected:
        wrong.append("a server was started")
    if sum(len(player.requests) for _, _, player in trial.world.players) != asked:
        wrong.append("a model was asked")
    if before != {run: [encode_event(event) for event in trial.journal.events(run)] for run in trial.journal.runs}:
        wrong.append("a journal was written to")
    return wrong + trial.wrong


def hold_again(trial: Trial) -> None:
    wrong = replays(trial)
    assert not wrong, "\n".join(wrong).encode("utf-8", "backslashreplace").decode()


@examples(45, shrink=False)
@given(setups())
def test_every_run_replays_to_the_same_state(setup):
    # An agent that was changed since is another.
    trial = Trial.of(replace(setup, changes=())).carry_out()
    hold(trial)
    hold_again(trial)


@examples(40, shrink=False)
@given(setups(max_size=3, depth=1), st.integers(0, 100))
def test_so_does_one_whose_process_died(setup, cut):
    # An agent that was changed since is another.
    trial = Trial.of(replace(setup, changes=())).carry_out()
    if not trial.journal.order:
        return
    hold_again(trial.killed(1 + cut % len(trial.journal.order)).carry_out())


def test_so_does_one_whose_process_died_as_it_was_cancelled():
    below = calling(WRITES)
    trial = Trial.of(below).carry_out()
    trial.setup = replace(below, cancels=0)
    for at in range(1, 1 + len(trial.journal.order)):
        ended = trial.killed(at).carry_out()
        ended.setup = below
        for again in range(at, 1 + len(ended.journal.order)):
            hold_again(ended.killed(again).carry_out())


@pytest.mark.parametrize("name", FOUND)
def test_so_does_what_was_found(name):
    setup = replace(FOUND[name], changes=())
    hold_again(Trial.of(setup).carry_out())


@tool(effect="read")
async def looks():
    """Looks."""
    await asyncio.sleep(0)
    return "seen"


async def chooses_slowly(context):
    await asyncio.sleep(0)


async def objects_once(answer, context):
    await asyncio.sleep(0)
    return "Say more." if len(context.steps) == 2 else None


def test_a_message_at_any_await_is_replayed():
    hooks = {"prepare_step": chooses_slowly, "on_answer": objects_once, "stop_when": lambda state: False}

    async def sent_after(turns):
        model = ScriptedModel(lambda request: "done" if request.step else [("looks", {})])
        agent = Agent(model, tools=[looks], limits=Limits(tokens=100_000), journal=MemoryJournal(), **hooks)
        async with agent.stream("go") as run:
            for _ in range(turns):
                await asyncio.sleep(0)
            try:
                await run.send("a word")
            except Misuse:
                return False
            async for _ in run:
                pass
        found = await agent.replay(run.run_id)
        assert found.same, f"after {turns} turns: {found}"
        return True

    # By the real clock: where it stands still, it does not show in which moment a step was decided on.
    turns = 0
    while asyncio.run(sent_after(turns)):
        turns += 1
    assert turns > 5
