"""Exit codes: how a command tells a script what came of it."""

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.kernel.stop import Stop


class ExitCode(IntEnum):
    """What the exit code of `treadle` means."""

    FINISHED = 0
    INTERNAL_ERROR = 1
    USAGE = 2
    STOPPED = 3
    WAITING = 4
    MODEL_ERROR = 5
    DIFFERS = 6
    WARNED = 7
    NOT_RUN = 8
    NOT_KEPT = 9
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def exit_code(stop: "Stop") -> ExitCode:
    """The exit code for a run that ended, or paused, with `stop`."""
    if stop.finished:
        return ExitCode.FINISHED
    match stop.reason:
        case "waiting":
            return ExitCode.WAITING
        case "model_error":
            return ExitCode.MODEL_ERROR
        case "cancelled" | "running":
            return ExitCode.INTERRUPTED
        case _:
            return ExitCode.STOPPED
