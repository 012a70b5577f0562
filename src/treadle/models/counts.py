"""Counts: the numbers in what a provider reports as usage, read as far as they are numbers.

Pure. A count that is missing, null or no number is unknown, and unknown is not zero: the usage is then `estimated` and
has 0 for what nobody told, which whoever sent the request and has the reply can estimate. Neighbours: the dialects'
decoders, which know the names of the counts.
"""

from typing import Any

from msgspec.structs import replace

from treadle.kernel.messages import Json, Usage
from treadle.models.profile import MOST_TOKENS


def count_in(fields: Json, name: str) -> int | None:
    """The whole number in field `name`; None if there is none."""
    return count_of(fields.get(name))


def count_of(value: object) -> int | None:
    """The whole number that `value` is, also where it is written as text or as a float; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value) if isinstance(value, str) and not value.strip().isdigit() else value
        count = int(number)
    except (ValueError, OverflowError):
        return None
    exact = isinstance(number, str) or count == number
    return count if exact and 0 <= count <= MOST_TOKENS else None


def part_in(fields: Json, name: str) -> int:
    """The count of what is only a part of another, or most often nothing: 0 where it is not told."""
    return count_in(fields, name) or 0


def fields_in(fields: Json, name: str) -> Json:
    """The object in field `name`; empty if there is none."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def grown(told: Json, later: Json) -> Json:
    """What was `told` of a reply, with what is told `later` of the same.

    Counts grow with the reply: one that is less, null or nothing takes no earlier one back.
    """
    return told | {name: _more(told.get(name), value) for name, value in later.items()}


def _more(before: Any, now: Any) -> Any:
    if isinstance(before, dict) and isinstance(now, dict):
        return grown(before, now)
    least = _number(before)
    if least is None:
        return before if now is None else now
    number = _number(now)
    return before if number is None or number < least else now


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number <= MOST_TOKENS else None


def name_in(fields: Json, name: str) -> str:
    """The text in field `name`, a number as text; empty if there is none. No reply is lost for what it is called."""
    value = fields.get(name)
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def list_in(fields: Json, name: str) -> list[Json]:
    """The objects in the list in field `name`; empty if there is none."""
    value = fields.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def told_usage(usage: Usage, asked: int | None, received: int | None) -> Usage:
    """`usage` with `asked` tokens in the request and `received` in the reply; either is None where it is not known.

    The cache can have no part in a request that is larger than the request: where it has, the request was that large.
    Of a request of unknown size, no part is known either. Thinking that is more than the reply was counted beside it.
    """
    if asked is None:
        usage = replace(usage, cache_read_tokens=0, cache_write_tokens=0, cache_write_hour_tokens=0, audio_tokens=0)
    return replace(
        usage,
        input_tokens=max(asked or 0, usage.cache_read_tokens + usage.cache_write_tokens),
        output_tokens=0 if received is None else with_thinking(received, usage.reasoning_tokens),
        estimated=usage.estimated or asked is None or received is None,
    )


def with_thinking(received: int, thought: int) -> int:
    """The tokens of a reply of which `received` were told: more thinking than that was counted beside it."""
    return received + thought if thought > received else received


def with_total(asked: int | None, received: int | None, total: int | None) -> tuple[int | None, int | None]:
    """`asked` and `received`, told by `total` where one of them is not; thinking may be counted in the total alone."""
    if total is None:
        return asked, received
    if asked is None and received is not None:
        return max(0, total - received), received
    return asked, max(received or 0, total - (asked or 0))
