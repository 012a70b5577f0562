"""Moments: points in time as a person types them: a date, a date and time, or how long ago."""

import re
import time
from datetime import datetime

import click

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

_AGE = re.compile(r"(\d{1,9})([smhdw])")


def age(text: str) -> float:
    """How long something lasts, as "90d", in seconds; the type of an option.

    Raises:
        click.BadParameter: it is no such text.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is no age: give a number and one of {', '.join(SECONDS)}, such as 90d")
    return float(found[1]) * SECONDS[found[2]]


def moment(text: str) -> float:
    """A point in time, as "2026-11-22", "2026-11-22 14:30" (of this place) or "2h" (ago), in Unix seconds; likewise.

    Raises:
        click.BadParameter: it is no such text.
    """
    if _AGE.fullmatch(text.strip()):
        return time.time() - age(text)
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise click.BadParameter(
            f"{text!r} is no time: give a date (2026-11-22), with or without a time (2026-11-22 14:30), or how long "
            "ago (2h, 7d)"
        ) from error


def in_order(since: float | None, until: float | None) -> None:
    """Holds the two ends of a time against each other.

    Raises:
        click.UsageError: it ends before it begins.
    """
    if since is not None and until is not None and until <= since:
        raise click.UsageError("--until is a time after --since; there can be no run between them")
