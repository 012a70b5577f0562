"""Inside a process that may be killed: the moment at which it dies, its journal, and the ledger of what its tools did.

The ledger is a file of its own, a line for each effect, on the disk before the tool returns: what happened is known
from it, whatever the journal says.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from treadle import SqliteJournal, ToolContext
from treadle.journal import Held
from treadle.kernel.events import Event


class Plan(NamedTuple):
    """When a process dies: at its `number`-th `moment`, or `delay` seconds after it was started ("time").

    `where` is right before it, right after it, or `delay` seconds into it.
    """

    moment: str = "never"
    number: int = 0
    where: str = ""
    delay: float = 0.0


class Upset(Exception):
    """What a function of the application's raises now and then."""


class Stage:
    """What this process may still do, and what it has done."""

    def __init__(self, folder: Path, seed: int, process: int, plan: Plan) -> None:
        self.folder, self.process, self.plan = folder, process, plan
        self.rng = Random(f"process {seed} {process}")
        self.effects = self.appends = 0
        self._upsets = 1 if process in (1, 2) else 0
        self._lock = threading.Lock()
        self.ledger = os.open(folder / "ledger.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what: str, **facts: Any) -> None:
        """Puts a line into the ledger, and waits until it is on the disk."""
        line = json.dumps({"what": what, "process": self.process, **facts})
        os.write(self.ledger, f"{line}\n".encode())
        os.fsync(self.ledger)

    def effect(self, context: ToolContext, label: str) -> None:
        """What a tool does outside, once for each time that this is called."""
        with self._lock:
            self.effects += 1
            hit = self.plan[:2] == ("effect", self.effects)
        self._at(hit, "before")
        self.note(
            "effect",
            run=context.run_id,
            step=context.step,
            call=context.call_id,
            tool=context.tool_name,
            label=label,
            made=context.made,
            attempt=context.attempt,
            key=context.idempotency_key,
        )
        self._at(hit, "inside")
        self._at(hit, "after")

    def upset(self) -> bool:
        """Whether a function of the application's fails here: once a process, in the first two."""
        self._upsets -= 1
        return self._upsets >= 0

    def _at(self, hit: bool, where: str) -> None:
        if hit and self.plan.where == where:
            die(self.plan.delay if where == "inside" else 0)

    def put(
        self, journal: "KilledJournal", run_id: str, seq: int, events: Sequence[Event], held: Held | None
    ) -> "Future[None]":
        """Hands events to the journal, at which the process may die; also right after they were stored."""
        self.appends += 1
        hit = self.plan[:2] == ("append", self.appends)
        self._at(hit, "before")
        self._at(hit, "inside")
        stored = journal.put_now(run_id, seq, events, held)
        stored.add_done_callback(lambda _: self._at(hit, "after"))
        return stored


class KilledJournal(SqliteJournal):
    """The real journal, in a process that may die at any append."""

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        """Hands events over, if the process lives that long."""
        return stage().put(self, run_id, seq, events, held)

    def put_now(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        """Hands events over."""
        return super().put(run_id, seq, events, held)


def die(after: float) -> None:
    """Kills this process, now or `after` some seconds, whatever it is doing by then."""
    if not after:
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    def kill() -> None:
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


_stages: list[Stage] = []


def stage() -> Stage:
    """The stage of this process."""
    return _stages[-1]


def set_stage(one: Stage) -> None:
    """Makes `one` the stage of this process."""
    _stages.append(one)
