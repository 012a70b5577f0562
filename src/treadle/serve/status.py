"""Status: how a run stands, in a word, and what a list is asked for to find runs that stand so. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

from treadle.journal.info import RunInfo, RunStatus
from treadle.kernel.stop import LIMIT_REASONS

Listed = Literal["running", "waiting", "finished", "stopped", "failed", "cancelled", "damaged"]
"""How a run stands by its line alone."""

Status = Listed | Literal["left"]

_KEPT: Final[Mapping[Listed, RunStatus]] = {
    "running": "running",
    "waiting": "waiting",
    "damaged": "damaged",
    **dict.fromkeys(("finished", "stopped", "failed", "cancelled"), "finished"),
}


def listed(line: RunInfo) -> Listed:
    """How a run stands by its line: "running" (or left by its process), "waiting" (for a person), "finished", "stopped"
    (by a limit), "failed", "cancelled" or "damaged".
    """
    if line.status != "finished" or line.stop is None or line.stop.finished:
        return line.status
    reason = line.stop.reason
    return "cancelled" if reason == "cancelled" else "stopped" if reason in LIMIT_REASONS else "failed"


def status_of(line: RunInfo, driven: bool | None = None) -> Status:
    """The same where it was looked at whether somebody drives the run: one that nobody drives is "left"."""
    found = listed(line)
    return "left" if found == "running" and driven is False else found


def kept_as(status: Listed) -> RunStatus:
    """What the journal calls it, which knows of an end that it is one."""
    return _KEPT[status]
