"""Raised: what the log is told of an exception of the application's own code, which nobody expected.

Neighbours: `treadle.journal.redaction` keeps texts out of the journal; what is logged of a run goes the same way.
"""

import logging
import traceback
from collections.abc import Callable, Mapping

Redact = Callable[[str], str]
_log = logging.getLogger("treadle")


def log_raised(
    what: str,
    error: BaseException,
    redact: Redact | None,
    about: Mapping[str, object] | None = None,
    *,
    level: int = logging.WARNING,
    log: logging.Logger = _log,
) -> None:
    """Writes a line, with the traceback.

    Args:
        what: the line: what raised, in words of this package's own.
        error: what was raised.
        redact: that of the run's journal: given the traceback as text, it returns what is written in its place, which
            is then part of the line, as a formatter would write the exception as it is. None to leave that to the
            formatter.
        about: the fields of the line.
        level: its level.
        log: where it is written.
    """
    if redact is None:
        log.log(level, "%s", what, exc_info=error, extra=about)
        return
    told = redacted_text("".join(traceback.format_exception(error)), redact)
    log.log(level, "%s\n%s", what, told, extra=about)


def redacted_text(text: str, redact: Redact | None) -> str:
    """`text` as a journal with that `redact` would have it; nothing of it where that raises."""
    if redact is None:
        return text
    try:
        return redact(text)
    except Exception as error:
        return f"(left out: redact raised {type(error).__name__})"
