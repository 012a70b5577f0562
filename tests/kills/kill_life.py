"""The life of one run: one process after the other, each of which may be killed, until it has ended.

Each process is a fork of this one, which has no threads, and dies of SIGKILL or comes back. What the journal held when
it died is read from a copy, so that to recover the file is left to the next process.
"""

import asyncio
import gc
import json
import logging
import os
import shutil
import signal
import sqlite3
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from kill_stage import KilledJournal, Plan, Stage, Upset, set_stage, stage
from kill_worlds import World, label_in, said

from treadle import Agent, RunResult
from treadle.kernel.events import Event, RunStarted, decode_event
from treadle.result import Pending

PATIENCE = 60
"""Seconds after which a process that hangs is ended."""

MOST_PROCESSES = 40
MOST_KILLS = 4

Snapshot = dict[str, list[Event]]
"""What a journal held: the events of each run."""


@dataclass
class Life:
    """What became of one run.

    Attributes:
        outcome: how it ended: reason, text, output; empty if it did not.
        ledger: the lines of the ledger.
        before: what the journal held before each process, from the first on, and at the end.
        deaths: the plan of each process that was killed.
        faults: what else went wrong: exceptions, processes that hung.
        seconds: how long the first process took.
    """

    outcome: dict[str, Any] = field(default_factory=dict)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    before: list[Snapshot] = field(default_factory=list)
    deaths: list[Plan] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


def lived(world: World, undisturbed: Life | None = None) -> Life:
    """The life of the run of `world`: undisturbed by itself, or with kills at what happened in the undisturbed one."""
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        return _lived(world, folder, undisturbed)
    finally:
        shutil.rmtree(folder)


def _lived(world: World, folder: Path, undisturbed: Life | None) -> Life:
    life, rng, process = Life(), Random(f"plans {world.seed}"), 0
    while not life.outcome and not life.faults:
        life.before.append(snapshot(folder))
        if undisturbed is not None:
            process += 1
        if process > MOST_PROCESSES:
            life.faults.append(f"it has not ended after {MOST_PROCESSES} processes")
            break
        plan = Plan() if undisturbed is None else _plan(rng, undisturbed, process, len(life.deaths))
        tops = [run_id for run_id, events in life.before[-1].items() if _is_top(events)]
        if len(tops) > 1:
            life.faults.append(f"there are {len(tops)} runs in the place of one")
            break
        here = Stage(folder, world.seed, process, plan)
        begun = time.perf_counter()
        status = forked(partial(_process, world, here, tops[0] if tops else None), here)
        os.close(here.ledger)
        life.seconds = life.seconds or time.perf_counter() - begun
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            life.deaths.append(plan)
        elif status:
            told = folder / "error.txt"
            life.faults.append(f"process {process}: {told.read_text() if told.exists() else 'it hung'}")
        ended = folder / "outcome.json"
        life.outcome = json.loads(ended.read_text()) if ended.exists() else {}
    life.before.append(snapshot(folder))
    life.ledger = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
    return life


def _is_top(events: list[Event]) -> bool:
    return isinstance(events[0], RunStarted) and events[0].parent is None


def _plan(rng: Random, undisturbed: Life, process: int, deaths: int) -> Plan:
    """When a process is to die. The first always is; later ones have less to do, and so die earlier."""
    roll, share, delay = rng.random(), rng.random(), rng.random() ** 2 * 0.004
    alive, where = rng.random(), rng.choice(["before", "inside", "after"])
    if deaths >= MOST_KILLS or (process > 1 and alive < 0.35):
        return Plan()
    early = 1.0 if process == 1 else 0.5
    if roll < 0.4:
        return Plan("append", 1 + int(share * early * undisturbed.outcome["appends"]), where, delay)
    if roll < 0.75:
        return Plan("effect", 1 + int(share * early * max(1, undisturbed.outcome["effects"])), where, delay)
    return Plan("time", delay=share * undisturbed.seconds)


def forked(task: Callable[[], None], here: Stage) -> int:
    """What became of a process that does `task`, killed as its stage says: the status that `os.wait` gives."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(PATIENCE)
            gc.freeze()
            task()
            os._exit(0)
        except BaseException:
            (here.folder / "error.txt").write_text(traceback.format_exc())
        finally:
            os._exit(1)
    if here.plan.moment == "time":
        time.sleep(here.plan.delay)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def snapshot(folder: Path) -> Snapshot:
    """What the journal holds while no process has it open."""
    path = folder / "runs.db"
    if not path.exists() or not path.stat().st_size:
        return {}
    with tempfile.TemporaryDirectory(prefix="kills-copy-") as copies:
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").exists():
                shutil.copyfile(f"{path}{suffix}", f"{copies}/runs.db{suffix}")
        with closing(sqlite3.connect(f"{copies}/runs.db")) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone():
                return {}
            rows = connection.execute("SELECT run_id, body FROM events ORDER BY run_id, seq").fetchall()
    found: Snapshot = {}
    for run_id, body in rows:
        found.setdefault(run_id, []).append(decode_event(body))
    return found


def _process(world: World, here: Stage, run_id: str | None) -> None:
    set_stage(here)
    logging.getLogger("treadle").setLevel(logging.CRITICAL)
    outcome = asyncio.run(_went_on(world, run_id))
    if outcome is not None:
        ended = here.folder / "outcome.tmp"
        ended.write_text(json.dumps(outcome | {"appends": here.appends, "effects": here.effects}))
        ended.rename(here.folder / "outcome.json")


async def _went_on(world: World, run_id: str | None) -> dict[str, Any] | None:
    """What came of the run, as far as this process carried it; None if another is to go on."""
    async with KilledJournal(stage().folder / "runs.db") as journal:
        agent = world.agent(journal)
        try:
            result = await (agent.run("Do <t>.") if run_id is None else agent.resume(run_id))
            while result.stop.reason == "waiting":
                if stage().process and stage().rng.random() < 0.3:
                    return None
                result = await _decided(world, agent, result)
        except Upset:
            return None
    return {"reason": result.stop.reason, "text": result.text, "output": repr(result.output)}


async def _decided(world: World, agent: Agent, result: RunResult) -> RunResult:
    """The run after a person has decided on all that waits, or on some of it."""
    rng, approve, deny, results = stage().rng, {}, {}, {}
    waiting = list(result.pending)
    if stage().process and rng.random() < 0.3:
        waiting = rng.sample(waiting, rng.randint(1, len(waiting)))
    for one in waiting:
        name, label = rng.choice([one.call_id, one.key]), label_in(one.arguments_json)
        throw = world.draw(f"person {label}", 6)
        if one.kind == "interrupted":
            stage().note("asked", run=one.run_id or result.run_id, tool=one.tool, label=label)
            done = _done(one, label)
            if done is None:
                approve[name] = None
            else:
                results[name] = done
        elif one.kind == "result":
            results[name] = f"answer to {label}"
        elif throw == 0:
            deny[name] = "too dear"
        else:
            approve[name] = {"label": label, "amount": 9} if throw == 1 else None
    return await agent.resume(rng.choice([result, result.run_id]), approve=approve, deny=deny, results=results)


def _done(one: Pending, label: str) -> str | None:
    """What a careful person finds in the ledger about a call that was cut off; None if it never happened."""
    lines = map(json.loads, (stage().folder / "ledger.jsonl").read_text().splitlines())
    if any((line["what"], line["tool"], line["label"]) == ("effect", one.tool, label) for line in lines):
        return said(one.tool, label, one.arguments.get("amount", 1))
    return None
