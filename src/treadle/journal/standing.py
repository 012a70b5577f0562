"""Standing: how a run stands, in a word that a list can be narrowed by. Pure.

The journal knows of an end that it is one; a line's `stop` says which. These words tell the two together, the same on
the command line and on a server.
"""

from collections.abc import Mapping
from typing import Final, Literal

from treadle.journal.info import RunInfo, RunStatus
from treadle.kernel.stop import LIMIT_REASONS

Standing = Literal["running", "waiting", "finished", "stopped", "failed", "cancelled", "damaged"]
"""How a run stands by its line alone: under way (or left by its process), waiting for a person, done, ended by a limit,
by a failure or by being cancelled, or not to be read."""

ENDED: Final[tuple[Standing, ...]] = ("finished", "stopped", "failed", "cancelled")

_KEPT: Final[Mapping[Standing, RunStatus]] = {
    "running": "running",
    "waiting": "waiting",
    "damaged": "damaged",
    **dict.fromkeys(ENDED, "finished"),
}


def standing(line: RunInfo) -> Standing:
    """How a run stands by its line."""
    if line.status != "finished" or line.stop is None or line.stop.finished:
        return line.status
    reason = line.stop.reason
    return "cancelled" if reason == "cancelled" else "stopped" if reason in LIMIT_REASONS else "failed"


def kept_as(stands: Standing) -> RunStatus:
    """What the journal calls it: the `status` to ask it for, of which some runs may stand otherwise."""
    return _KEPT[stands]
