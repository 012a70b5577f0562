"""Raised: what the log is told of an exception that nobody expected of a tool."""

import logging
import traceback
from collections.abc import Callable, Mapping

from treadle.tools.errors import place_of_exception

Redact = Callable[[str], str]
_log = logging.getLogger("treadle")


def log_raised(tool: str, error: BaseException, about: Mapping[str, object], redact: Redact | None) -> None:
    """Writes a line at WARNING, with the traceback.

    Args:
        tool: the tool's name.
        error: what it raised.
        about: the fields of the line.
        redact: given the traceback as text, returns what is written in its place, which is then part of the line: a
            formatter would write the exception as it is. None to leave that to the formatter.
    """
    place = place_of_exception(error)
    if redact is None:
        _log.warning("tool %s: %s", tool, place, exc_info=error, extra=about)
        return
    try:
        told = redact("".join(traceback.format_exception(error)))
    except Exception as raised:
        told = f"(its traceback is left out: redact raised {type(raised).__name__})"
    _log.warning("tool %s: %s\n%s", tool, place, told, extra=about)
