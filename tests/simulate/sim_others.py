"""What others do to runs, and what must hold of it: they decide at the same time, end runs, fork them and watch them.

A second person decides otherwise on what the first decides on; another process ends a run that somebody drives, begins
a fork of it, or looks at what is appended.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from sim_stage import Job
from sim_store import Row

from treadle import Misuse
from treadle.kernel.events import ApprovalDecided, Event, ModelReplied, RunForked, RunPaused, ToolReacted
from treadle.kernel.messages import Message, Text, ToolMessage
from treadle.kernel.names import escaped

WORDS = "A person put these arguments in place of yours: "
EDITABLE = frozenset({"look", "put", "pay", "send", "enter"})
"""The tools that take more than a label."""


def begin(world: Any) -> None:
    """Has others come to a world that is about to begin."""
    rng, weather = Random(f"others come {world.stage.seed}"), world.stage.weather
    for _ in range(weather.ends):
        world.stage.timeline.after(0.3 + 6 * rng.random(), _come, world, "end", rng)
    for _ in range(weather.forks):
        world.stage.timeline.after(0.5 + 8 * rng.random(), _come, world, "fork", rng)
    for _ in range(weather.watches):
        world.stage.timeline.after(4 * rng.random(), _come, world, "watch", rng)
    for _ in range(weather.prunes):
        world.stage.timeline.after(1 + 3 * rng.random(), _prune, world, rng, 20)


def _come(world: Any, what: str, rng: Random) -> None:
    runs = [run for some in world.roots.values() for run in some if what != "end" or not world.ended(run)]
    if not runs or not world.stage.processes:
        return
    run_id = rng.choice(runs)
    given: dict[str, Any] = {}
    if what == "fork":
        replied = sum(isinstance(row.event, ModelReplied) for row in world.store.runs[run_id])
        given = {"at": rng.randint(0, replied), "message": f"Now <{run_id[-1]}f> as well."}
    process = rng.choice(world.stage.processes)
    world.stage.note(process.name, f"is to {what}", run_id)
    world.put_to_work(process, Job("", process, run_id, given=given, what=what))


def _prune(world: Any, rng: Random, times: int) -> None:
    """Deletes a run below that waits for somebody, and that the run above waits for; comes again if there is none."""
    last = {one: rows[-1].event for one, rows in world.store.runs.items()}
    waiting = [one for one, event in last.items() if isinstance(event, RunPaused) and event.queued is None]
    below = [one for one in waiting if "." in one and above_of(one) in waiting]
    if below:
        world.store.delete(rng.choice(below))
    elif times and not world.stage.calm:
        world.stage.timeline.after(0.3, _prune, world, rng, times - 1)


def is_given_up(world: Any, one: Job, error: BaseException) -> bool:
    """Has a run ended that waits for one which was deleted, as whoever decides on it is told, or has it go on."""
    gone = any(deleted.startswith(f"{one.run_id}.") for deleted in world.store.gone)
    lost = gone and isinstance(error, Misuse) and "no longer has run" in str(error)
    if lost and world.stage.processes:
        process = world.stage.rng.choice(world.stage.processes)
        world.put_to_work(process, Job("", process, one.run_id, given={}, what="end"))
    return lost


def above_of(run_id: str) -> str:
    """The run that a run works for; empty if it works for none."""
    return run_id.rpartition(".")[0].rpartition(".")[0]


async def done_by_others(world: Any, one: Job) -> Any:
    """What comes of a job that does not carry the run on; None of one that only watches."""
    match one.what:
        case "end":
            ended = await world.agent.cancel(one.run_id)
            if not world.ended(one.run_id):
                world.stage.blame(f"{one.name} is told that {one.run_id} is ended, and it is not")
            return ended
        case "fork":
            return await world.agent.fork(one.run_id, **(one.given or {}))
        case _:
            async for event in world.journal.watch(one.run_id):
                one.seen.append(event)
            return None


def other_arguments(rng: Random, tool: str, label: str) -> dict[str, Any]:
    """What a person puts in place of the arguments of a call."""
    return {"label": label, "more": rng.randint(1, 3)} if tool in EDITABLE else {"label": label}


def decided_otherwise(given: Mapping[str, Any], pending: Sequence[Any]) -> dict[str, Any]:
    """What somebody else decides who is shown the same: yes where the first says no, another answer."""
    kinds = {one.key: one.kind for one in pending}
    approve = {name: None for name in given.get("deny", {})}
    deny = {name: "not so" for name in given.get("approve", {}) if kinds.get(name) == "approval"}
    results = {name: "another answer" for name in given.get("results", {}) if kinds.get(name) == "result"}
    other = {"approve": approve, "deny": deny, "results": results}
    return {name: value for name, value in other.items() if value}


def own_from(run_id: str, rows: Sequence[Row]) -> int:
    """From which row on a run is itself; 0 if it is no fork."""
    forked = (row.number for row in rows if isinstance(row.event, RunForked) and row.event.run_id == run_id)
    return next(forked, 0)


# What was decided.


def decisions_are_somebody_s(world: Any) -> Iterator[str]:
    """Each decision in a journal was made by who wrote it, of that call, and of nothing else."""
    for run_id, rows in world.store.runs.items():
        for row in rows[own_from(run_id, rows) :]:
            event = row.event
            if not isinstance(event, ApprovalDecided) or event.answer is not None:
                continue
            given, path = row.job.given or {}, _path(run_id, event.call_id)
            named = {way: {name.partition("#")[0]: name for name in given.get(way, ())} for way in WAYS}
            passed_on = any(name.startswith(f"{path}/") for names in named.values() for name in names)
            if path not in named["approve" if event.approved else "deny"] and not (event.approved and passed_on):
                yield f"{event} of {run_id} is written by {row.job.name}, who was given {given}"
            elif event.arguments is not None:
                wanted = given["approve"][named["approve"][path]]
                if json.loads(event.arguments) != wanted:
                    yield f"{event} of {run_id} has other arguments than {wanted}"


WAYS = ("approve", "deny", "results")


def _path(run_id: str, call_id: str) -> str:
    """How a call is named to the run at the top."""
    calls = [one.partition("+")[0] for one in run_id.split(".")[2::2]]
    return "/".join([*calls, escaped(call_id)])


def arguments_are_those_that_were_decided(world: Any) -> Iterator[str]:
    """A tool is given what a person said last, or the reaction that had it called; else what the model wrote."""
    # Of a run that was deleted nobody knows what was decided.
    for one in [one for one in world.outside.entered if one.run_id in world.store.runs]:
        last = {}
        for row in world.outside.on_call(one.run_id, one.step, one.call_id):
            event = row.event
            if row.number >= one.start >= 0:
                break
            if isinstance(event, ToolReacted) and event.call is not None:
                last = json.loads(event.call.arguments)
            elif isinstance(event, ApprovalDecided) and event.arguments is not None:
                last = json.loads(event.arguments)
        if one.more != last.get("more", 0):
            yield f"{one.tool}({one.label}) of {one.run_id} is given {one.more}, and decided was {last}"


def untold(messages: Sequence[Message], events: Sequence[Event]) -> Iterator[str]:
    """What a model is not told of the arguments that a person put in place of its own, or told and nobody did."""
    put: dict[str, str | None] = {}
    written, replaced = dict[str, str](), set[str]()
    for event in events:
        match event:
            case ModelReplied(message=message):
                written |= {call.id: call.arguments for call in message.calls}
                put |= {call.id: None for call in message.calls}
            case ToolReacted(action="call", call_id=call_id):
                replaced.add(call_id)
            case ApprovalDecided(approved=True, arguments=str(arguments), call_id=call_id) if call_id not in replaced:
                same = json.loads(arguments) == json.loads(written[call_id])
                put[call_id] = None if same else arguments
    for one in messages:
        if not isinstance(one, ToolMessage) or one.call_id not in put:
            continue
        wanted, first = put[one.call_id], one.content if isinstance(one.content, str) else one.content[0]
        told = first.text if isinstance(first, Text) else str(first)
        if wanted is None and told.startswith(WORDS):
            yield f"the model is told {told!r}, and nobody put that"
        elif wanted is not None and told != f"{WORDS}{wanted}":
            yield f"the model is told {told[:80]!r}, and a person put {wanted}"


# What was seen, and what was shared.


def who_watches_sees_what_is_stored(world: Any) -> Iterator[str]:
    """Each event once, in order, and all of them if nothing came between; the same bytes as are stored."""
    for one in world.jobs:
        if one.what != "watch":
            continue
        stored = [row.event for row in world.store.runs[one.run_id]]
        if one.seen != stored[: len(one.seen)]:
            yield f"{one.name} is shown other events of {one.run_id} than are stored"
        whole = one.faults or one.cancelled or one.process.dead
        if not whole and one.task is not None and one.task.done() and len(one.seen) != len(stored):
            yield f"{one.name} is shown {len(one.seen)} events of {one.run_id}, of {len(stored)}"


def forks_do_nothing_again(world: Any) -> Iterator[str]:
    """A fork runs no tool of a step that it shares, and asks for no reply that it has."""
    for run_id, rows in world.store.runs.items():
        own = own_from(run_id, rows)
        shared = {row.event.step for row in rows[:own] if isinstance(row.event, ModelReplied)} if own else set()
        for one in world.outside.entered if own else ():
            if one.run_id == run_id and one.step in shared:
                yield f"{run_id} runs {one.tool}({one.label}) of step {one.step}, which it shares"
        for (_, asked, step), _ in world.outside.asked.items() if own else ():
            if asked == run_id and step in shared:
                yield f"{run_id} asks for the reply of step {step}, which it shares"
