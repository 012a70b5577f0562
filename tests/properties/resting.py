"""What becomes of a generated run while it rests: it is forked, moved to another journal, or what has ended is deleted.

A run rests where it waits, where its process has died or raised, and where it has ended. A fork is a trial of its own
(`Trial.forks`), with decisions and forks of its own, in the same world and journal; it goes on before the run that it
was made of, beside it, round by round, or after it.
"""

import io
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from folding import fold_all
from funds import OTHER, Period, with_funds
from hypothesis import strategies as st
from journals import journal_of
from texts import FROM_OUTSIDE, GO_ON, QUESTION, hostile

from treadle import Limits, Misuse
from treadle.journal import Wanted, export_runs, family, import_runs
from treadle.kernel.events import Event, RunForked, StepPrepared


@dataclass(frozen=True)
class Rest:
    """What happens at one rest.

    Attributes:
        what: "fork"; "another", a run of another user's of the same agent, under the same budgets; "move", all runs to
            another journal; "prune", what has ended is deleted.
        when: at which rest, from 0.
        at: at which of its steps it is forked, gone round.
        says: whether something is said to the fork; `replaces`, whether a call gets another result.
        begun: whether the fork is recorded first, and taken up then.
        other: what it has otherwise: "model", "instructions" or "limits".
        order: when it goes on: "before", "beside" or "after" the run that it was made of.
    """

    what: str
    when: int = 0
    at: int = 0
    says: bool = False
    replaces: bool = False
    begun: bool = False
    other: tuple[str, ...] = ()
    order: str = "before"


rests = st.lists(
    st.builds(
        Rest,
        what=st.sampled_from(["fork", "fork", "fork", "another", "another", "move", "prune"]),
        when=st.sampled_from([0, 0, 0, 1, 1, 2]),
        at=st.integers(0, 5),
        says=st.booleans(),
        replaces=st.sampled_from([False, False, True]),
        begun=st.booleans(),
        other=st.lists(st.sampled_from(["model", "instructions", "limits"]), max_size=2, unique=True).map(tuple),
        order=st.sampled_from(["before", "beside", "after"]),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


MUCH = Limits(steps=30, tool_calls=30, tokens=1_000_000, usd=None, seconds=300)


async def at_rest(trial: Any) -> None:
    """What happens now that the run of a trial rests."""
    number, root = trial.rested, trial.root
    trial.rested += 1
    if root is None or trial.wrong:
        return
    for place, rest in enumerate(trial.setup.rests):
        if rest.when != number:
            continue
        match rest.what:
            case "fork":
                await _fork(trial, rest, trial.setup.rests[place + 1 :])
            case "another":
                await _another(trial, rest, trial.setup.rests[place + 1 :])
            case "move":
                await _move(trial)
            case _:
                await _prune(trial)


async def beside(trial: Any) -> None:
    """The forks that go on beside the run have a round each."""
    for one in trial.forks:
        if one.order == "beside":
            await one.trial.round()


async def after(trial: Any) -> None:
    """The forks that are left come to their ends."""
    for one in trial.forks:
        await one.trial.to_its_end()


@dataclass
class Branch:
    """A fork, or another run: its trial, and when it goes on."""

    trial: Any
    order: str


async def _fork(trial: Any, rest: Rest, rests: tuple[Rest, ...]) -> None:
    journal, root = trial.journal, trial.root
    if root not in journal.runs:
        return
    state = fold_all(journal.events(root))
    at = rest.at % (len(state.steps) + 1)
    ended = at == len(state.steps) and state.phase == "finished"
    given: dict[str, Any] = {"at": at}
    if rest.says or ended:
        given["message"] = hostile(f"{GO_ON} ({len(trial.forks)})")
    made = [one for one in state.steps[at - 1].calls if one.status != "refused"] if at and rest.replaces else []
    if made:
        given["tool_results"] = {made[rest.at % len(made)].id: hostile(FROM_OUTSIDE)}
    child = trial.branch(rests)
    if "model" in rest.other and trial.setup.second is None:
        given["model"] = trial.setup.player(child.world)
    if "instructions" in rest.other and trial.setup.hooks.instructions is None:
        given["instructions"] = hostile("be another")
    if "limits" in rest.other:
        given["limits"] = MUCH
    before = {run: journal.events(run) for run in journal.runs}
    budgets = with_funds(trial, trial.purses.begun)
    child.purses.periods.append(Period(len(journal.order), len(trial.world.ledger.charges), trial.purses.begun))
    child.world.alive += 1
    failed = journal.failed
    error = await child.made(root, given, budgets, begun=rest.begun)
    for run, events in before.items():
        if journal.events(run) != events:
            trial.wrong.append(f"{run} is not as it was before it was forked")
    if child.root is None:
        trial.heard(error)
        if made and isinstance(error, Misuse):
            # A sub-run of the same reply ended after the call that is to have another result; or it was an early call.
            return
        if not (trial.world.raised or journal.failed > failed or error is None):
            trial.wrong.append(f"it cannot be forked at step {at}: {error!r}")
        return
    if "message" in given:
        child.sent.append(given["message"])
    trial.forks.append(Branch(child, rest.order))
    if rest.order == "before":
        await child.to_its_end()


async def _another(trial: Any, rest: Rest, rests: tuple[Rest, ...]) -> None:
    """Somebody else begins a run of the same agent."""
    if trial.setup.one_step:
        return
    child, had = trial.branch(rests), set(trial.journal.roots)
    child.user = OTHER
    child.world.alive += 1
    given = child.brought()
    child.last = await child.caught(child.agent().run(QUESTION, deps=child.world, **given))
    child.own = next((run for run in child.journal.roots if run not in had), None)
    if child.own is None:
        trial.told += child.told
        return
    trial.forks.append(Branch(child, rest.order))
    if rest.order == "before":
        await child.to_its_end()


async def _move(trial: Any) -> None:
    """All runs go to another journal, as lines, and go on there."""
    journal = trial.journal
    with journal.well():
        lines = [line async for line in export_runs(journal)]
    new = journal_of(journal.paper)
    new.heal()
    taken = await import_runs(new, io.BytesIO(b"".join(lines)))
    if sorted(taken) != sorted(journal.runs):
        trial.wrong.append(f"of {journal.runs} only {taken} were moved")
    for run in journal.runs:
        if new.events(run) != journal.events(run):
            trial.wrong.append(f"{run} is another after it was moved")
    journal.becomes(new)


async def _prune(trial: Any) -> None:
    """What docs/deleting.md has a nightly job do."""
    journal = trial.journal
    with journal.well():
        async for run_id in _ended(journal):
            for one in reversed(await family(journal, run_id)):
                await journal.delete(one)


async def _ended(journal: Any) -> AsyncIterator[str]:
    for line in await journal.list(limit=500, wanted=Wanted(status="finished", top=True)):
        yield line.run_id


def owner_of(events: list[Event], step: int) -> str:
    """The run that made a step: of a fork, that which it was made of, if it shares that."""
    owner = getattr(events[0], "run_id", "") if events else ""
    for event in events:
        if isinstance(event, RunForked):
            owner = event.run_id
        if isinstance(event, StepPrepared) and event.step == step:
            break
    return owner


def own_from(events: list[Event], run: str) -> int:
    """From which event on a run is itself; 0 if it is no fork."""
    return next((i for i, one in enumerate(events) if isinstance(one, RunForked) and one.run_id == run), 0)


def forks_hold(trial: Any) -> Iterator[str]:
    """A fork makes nothing again that it shares, and asks nobody for it."""
    asked = {(one.run_id, one.step) for _, _, player in trial.world.players for one in player.requests}
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        own = own_from(events, run)
        if not own:
            continue
        at = len(fold_all(events[:own]).steps)
        again = [
            one for one in trial.world.executed if one.run_id == run and one.step < at and _shared(events[:own], one)
        ]
        if again:
            yield f"a fork at step {at} does again what was done: {again}"
        if any(who == run and step < at for who, step in asked):
            yield f"a fork at step {at} asks for a reply that it has"


def _shared(events: list[Event], one: Any) -> bool:
    return any(
        getattr(event, "call_id", None) == one.call_id and getattr(event, "step", None) == one.step for event in events
    )
