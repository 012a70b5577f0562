"""Retry-After: how long a provider asks to wait, from its headers or else from its words.

Pure but for the clock that a date needs. Neighbour: `treadle.models.failures`, which puts it into the typed error.
"""

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

# "7.66s", "2m59.5s", "1h0m0s", "20ms": how OpenAI, Groq and others write a span of time.
SPAN: Final = re.compile(r"(?<![\d.])(\d++(?:\.\d++)?)(ms|d|h|m|s)")
SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
WORDS: Final = re.compile(
    r"(?:try again|retry) (?:in|after) (?:((?:\d+(?:\.\d+)?(?:ms|[dhms]))+)|(\d+(?:\.\d+)?) ?sec)", re.IGNORECASE
)
# Numbers above this are points in time, not spans: seconds since 1970, or milliseconds if a thousand times larger.
EPOCH: Final = 1e9


def retry_after(headers: Mapping[str, str], words: str = "", *, limited: bool = True) -> float | None:
    """Seconds to wait before the next attempt; None if the provider did not say, or said what is no wait.

    Looks, in this order, at `retry-after-ms`; `retry-after` (RFC 9110, section 10.2.3: seconds or a date); the
    `x-ratelimit-reset-*` headers of the limits that are used up; words such as "try again in 7.66s"; and, where a limit
    is what is wrong, at the headers of the others. Of no wait at all, and of one that has passed, nothing comes:
    whoever tries again waits as long as without a word.

    Args:
        headers: the response's headers, names in lower case.
        words: the provider's error message.
        limited: whether a limit is what is wrong. Many providers tell how far each is used with whatever they answer.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    wait = milliseconds / 1000 if milliseconds is not None else seconds_of(headers.get("retry-after", ""))
    used_up, others = _resets(headers) if wait is None else ([], [])
    if wait is None:
        wait = max(used_up, default=None)
    if wait is None and (found := WORDS.search(words)):
        wait = seconds_of(found.group(1) or found.group(2))
    if wait is None and limited:
        wait = max(others, default=None)
    return wait if wait is not None and wait > 0 else None


def seconds_of(value: str) -> float | None:
    """The seconds from now that a header's value means: a number, a span ("6m0s") or a date; None if it is neither."""
    value = value.strip()
    number = _number(value)
    if number is not None:
        if number > EPOCH:
            number = (number / 1000 if number > EPOCH * 1000 else number) - time.time()
        return max(0.0, number)
    if value and not SPAN.sub("", value):
        return sum(float(count) * SECONDS[unit] for count, unit in SPAN.findall(value))
    moment = _date(value)
    return None if moment is None else max(0.0, moment.timestamp() - time.time())


def _resets(headers: Mapping[str, str]) -> tuple[list[float], list[float]]:
    """When each limit begins anew: of those that are said to be used up, and of the others."""
    used_up: list[float] = []
    others: list[float] = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        wait = seconds_of(value)
        if wait is not None:
            left = headers.get(name.replace("reset", "remaining"), "").strip()
            (used_up if left in ("0", "0.0") else others).append(wait)
    return used_up, others


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(value: str) -> datetime | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(value)
        except (ValueError, TypeError, IndexError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
