"""Holders: the processes that drive runs, and whether one of them is gone.

A process is told from another by its host, its number and when it began: numbers are given again. Where the kernel says
when a process began (Linux), one that is gone is known to be gone at once; elsewhere only if its number is free.
"""

import os
import secrets
import socket
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace


class Holder(Struct, frozen=True):
    """A process that drives runs of a journal.

    Attributes:
        name: tells it from every other, those of the same process among them (each journal object has its own).
        host: the name of its host.
        pid: its number there.
        started: when it began, as its host counts (clock ticks after the start); 0 if the host does not say.
        place: which start of which host, and which numbering of processes there `pid` belongs to; empty if unknown.
        beat_at: when it was last heard of, in Unix seconds.
    """

    name: str
    host: str
    pid: int
    started: int = 0
    place: str = ""
    beat_at: float = 0.0

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process(name: str) -> Holder:
    """The holder that this process is, under `name`."""
    me = _me(os.getpid())
    return replace(me, name=f"{me.name}.{name}")


def is_gone(holder: Holder) -> bool:
    """Whether the process has surely ended: only ever true of one that ran on this host, since its last start."""
    if not _is_known(holder):
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        # It is somebody else's, so it is there.
        pass
    started = _started(holder.pid)
    return started is None or (started != holder.started and holder.started != 0)


def has_let_go(holder: Holder, until: float, now: float) -> bool:
    """Whether a process has no run any more on which it has a lease: it is gone, or was not heard of for so long.

    It was to be heard of by `until`, and the clock shows `now`. If it was last heard of later than that, by more than
    its lease lasts, the clock was set back: what has ended since, as where its host was started again, would have its
    runs until that time comes again.
    """
    if until < now or is_gone(holder):
        return True
    return holder.beat_at - now > until - holder.beat_at and not _is_known(holder)


def _is_known(holder: Holder) -> bool:
    """Whether it can be told here that the process has ended."""
    return os.name == "posix" and (holder.host, holder.place) == (socket.gethostname(), _place())


@cache
def _me(pid: int) -> Holder:
    # By the process, since a forked child has its parent's memory.
    return Holder(secrets.token_hex(8), socket.gethostname(), pid, _started(pid) or 0, _place())


def _started(pid: int) -> int | None:
    """When a process began; 0 if nobody says, None if it has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return 0
    # proc(5): the second field is a name in brackets, which may hold anything; the third is the state, the 22nd the
    # start. Z and X are processes that have ended and are still listed.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


@cache
def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
