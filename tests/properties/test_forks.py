"""A fork at any step of any run: a valid history, the limits kept, nothing done twice, and the source as it was."""

from dataclasses import replace

import msgspec
from checks import requests_valid, valid
from counted import metrics_are_those_of_the_journal
from funds import with_funds
from hypothesis import given
from hypothesis import strategies as st
from looking_back import looking_back_tells_what_was_spent
from rules import hold, time_goes_on
from skilled import differing, skills_hold
from texts import FROM_OUTSIDE, GO_ON, hostile
from traced import spans_are_those_of_the_journal
from trial import Outcome, Trial
from worlds import examples, setups

from treadle.drivers.purse.spending import spending_of
from treadle.kernel.events import ModelReplied, RunForked, ToolStarted
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import Usage
from treadle.kernel.money import total
from treadle.kernel.state import RunState
from treadle.timetravel.replay import replayed


def forked(trial: Trial, at: int, message: str | None, replaced: str | None, steps: int | None = None) -> list[str]:
    """Forks the trial's run at a step, in a process of its own, which leaves it so many `steps`: what is wrong with it.

    As many as the run had left, where it is not said how many.
    """
    journal, world = trial.journal, trial.world
    root = journal.root
    assert root is not None
    before = {run: journal.events(run) for run in journal.runs}
    done, under = len(world.executed), trial.purses.begun
    world.alive += 1
    world.quiet = True
    journal.heal()
    trial.last = Outcome()

    async def fork() -> None:
        results = {} if replaced is None else {replaced: hostile(FROM_OUTSIDE)}
        agent = trial.agent()
        limits = fold_all(before[root]).limits
        if steps is not None:
            limits = msgspec.structs.replace(limits, steps=at + steps)
        trial.last = await trial.caught(
            agent.fork(
                root,
                at=at,
                message=message,
                tool_results=results,
                limits=limits,
                deps=world,
                **with_funds(trial, under),
            )
        )

    trial.carry_out(fork)
    refused = ("cannot be told again", "cannot have another result")
    if replaced is not None and any(words in "".join(trial.wrong) for words in refused):
        # A sub-run of the same reply ended after the call that is to have another result; or it was an early call.
        return []
    wrong = list(trial.wrong)
    for run, events in before.items():
        if journal.events(run) != events:
            wrong.append(f"{run} is not as it was")
    new = [run for run in journal.runs if run not in before and fold_all(journal.events(run)).parent is None]
    if len(new) != 1:
        return [*wrong, f"{len(new)} forks were begun: {trial.last}"]
    wrong += [
        *time_goes_on(trial),
        *skills_hold(trial),
        *spans_are_those_of_the_journal(trial),
        *metrics_are_those_of_the_journal(trial),
        *looking_back_tells_what_was_spent(trial),
    ]
    return wrong + _wrong_in(trial, new[0], at, done) + _wrong_budgets(trial) + _wrong_replay(trial, new[0])


def _wrong_budgets(trial: Trial) -> list[str]:
    """What budgets tell is what was taken, once, of runs that have all ended."""
    wrong = []
    for path, budget in trial.world.budgets.items():
        states = [fold_all(trial.journal.events(run)) for run in trial.journal.runs if trial.path(run) == path]
        if trial.journal.failed or trial.last.result is None or any(state.phase != "finished" for state in states):
            continue
        own = sum(state.usage.total_tokens - state.accounts.shared.usage.total_tokens for state in states)
        if budget.spent().tokens != own:
            wrong.append(f"{path}: {own} tokens were taken, and the budget tells {budget.spent()}")
    return wrong


def _wrong_replay(trial: Trial, run: str) -> list[str]:
    """The fork comes out as it was recorded, by the agent that it was recorded of."""
    found: list[str] = []

    async def replay() -> None:
        limits = trial.limits_of(run)
        anew = await trial.agent().replay(run, deps=trial.world, limits=limits)
        alone = await replayed(trial.journal.events(run), trial.journal)
        found.extend(differing(trial, anew, alone))

    trial.carry_out(replay)
    return found


def _wrong_in(trial: Trial, run: str, at: int, done: int) -> list[str]:
    wrong = []
    events = trial.journal.events(run)
    own = next(i for i, event in enumerate(events) if isinstance(event, RunForked) and event.run_id == run)
    state = RunState()
    for number in range(len(events)):
        state = fold_all(events[number : number + 1], state)
        if number > own and state.phase in ("ready", "prepared", "replied", "finished"):
            valid(list(state.messages))
    for _, _, player in trial.world.players:
        requests_valid(player)
    limits, taken = state.limits, state.accounts
    steps = len(state.steps) + state.sub_steps
    shared = fold_all(events[: own + 1])
    # A step of which calls have other results was made before, and is told again.
    had = len(shared.steps) + (shared.step is not None) + shared.sub_steps
    within = {
        "steps": (steps, limits.steps, had),
        "tool calls": (taken.tool_calls, limits.tool_calls, shared.tool_calls),
        "tokens": (taken.usage.total_tokens, limits.tokens, shared.usage.total_tokens),
    }
    for what, (used, most, had) in within.items():
        if most is not None and used > max(most, had):
            wrong.append(f"{used} {what} of {most}")
    calls = {(event.step, event.call_id) for event in events[:own] if isinstance(event, ToolStarted)}
    again = [one for one in trial.world.executed[done:] if one.run_id == run and (one.step, one.call_id) in calls]
    if [one for one in again if one.step < at]:
        wrong.append(f"what was done before is done again: {again}")
    if any(event.step < at for event in events[own:] if isinstance(event, ModelReplied)):
        wrong.append("a reply of a step before is asked for again")
    return wrong + _wrong_money(trial, run, state)


def _wrong_money(trial: Trial, run: str, state: RunState) -> list[str]:
    if state.phase not in ("finished", "paused"):
        return []

    class Kept:
        async def read(self, run_id: str, start: int = 0):
            return await trial.journal.read(run_id, start)

    import asyncio

    spending = asyncio.run(spending_of(trial.journal.events(run), Kept()))
    own, shared = spending.total, spending.shared_total
    if own.usage + shared.usage != state.usage + Usage():
        return [f"{own.usage} and {shared.usage} come not to {state.usage}"]
    if None not in (own.cost, shared.cost, state.cost) and total(own.cost, shared.cost) != state.cost:
        return [f"{own.cost} and {shared.cost} dollars come not to {state.cost}"]
    if state.accounts.shared.usage != shared.usage + Usage():
        return [f"{state.accounts.shared.usage} were paid elsewhere, and {shared.usage} are told"]
    return []


@examples(50, shrink=False)
@given(setups(max_size=4), st.integers(0, 100), st.integers(0, 100), st.booleans(), st.sampled_from([None, None, 1, 2]))
def test_a_fork_at_any_step_is_a_run_like_any_other(setup, at, call, replaces, steps):
    # An agent that was changed since is another.
    trial = Trial.of(replace(setup, changes=())).carry_out()
    hold(trial)
    root = trial.root
    if root is None or root not in trial.journal.runs:
        # It has not begun, or was deleted while it rested.
        return
    state = fold_all(trial.journal.events(root))
    at %= len(state.steps) + 1
    ended = at == len(state.steps)
    made = [one for one in state.steps[at - 1].calls if one.status != "refused"] if at and replaces else []
    replaced = made[call % len(made)].id if made else None
    wrong = forked(trial, at, hostile(GO_ON) if ended or call % 2 else None, replaced, steps)
    assert not wrong, "\n".join(wrong).encode("utf-8", "backslashreplace").decode()
