"""Sameness: are two tool calls the same call, and did they bring the same result?

Arguments are the same if they are the same JSON value, whatever the order of keys and the white space. Results are the
same if they differ only in what counts by itself: the moment, how long it took, which attempt it was, under which id it
was filed. Neither is worked out twice for texts that were looked at lately: what was found is kept under the texts'
hashes, in memories of a fixed size.
"""

import re
from typing import Final

import msgspec

KEPT: Final = 1024
"""How many findings each memory holds before it is emptied."""

SHORT: Final = 2000
"""Arguments up to this length are remembered by their text, longer ones by its hash, so that none is held on to."""

PLACES: Final = 32
"""Results that differ in more places than this are different, whatever stands there."""

REACH: Final = 128
"""How far around a difference something that counts by itself is looked for."""

# A bare number, date or hash does not count by itself: it is as likely to be the answer.
_COUNTS_ONLY: Final = re.compile(
    r"""
    \b(?=[\da-frst])(?:  # what begins with another letter need not be tried: half the time
        \d{4}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?Z|\s?[+-]\d\d:?\d\d)?  # 2026-01-31T10:20:30.5Z
      | \d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b                                 # 10:20:30.500
      | \d+(?:\.\d+)?\s?(?:ns|[µu]s|ms|s|secs?|seconds?)\b               # 12.3 ms
      | [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b     # a UUID
      | 0x[0-9a-f]{6,}\b                                                  # an address in memory
      | (?:(?:request|req|trace|span|correlation)[ _-]?id
          |timestamp|ts|elapsed(?:[ _-]?m?s)?|duration(?:[ _-]?m?s)?|took(?:[ _-]?ms)?
          |(?:attempt|retry|request|call)s?(?:[ _-]?(?:no|number|count))?
        )(?:["']?\s*[:=#]\s*["']?|\s+)(?=[\w.-]*\d)[\w.-]+               # request_id: "8f3a", attempt 3
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)

EXACT: Final = 2**53
"""Up to here each whole number is a float."""


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < EXACT else number


_DECODER: Final = msgspec.json.Decoder(float_hook=_number)

_keys: dict[str | tuple[int, int], int] = {}
_pairs: dict[tuple[int, int, int, int], bool] = {}


def arguments_key(arguments: str) -> int:
    """A number that two argument texts share if, and all but certainly only if, they are the same arguments."""
    known_as = arguments if len(arguments) <= SHORT else (hash(arguments), len(arguments))
    key = _keys.get(known_as)
    if key is None:
        if len(_keys) >= KEPT:
            _keys.clear()
        key = _keys[known_as] = hash(canonical(arguments))
    return key


def canonical(arguments: str) -> str:
    """The same text for the same JSON value, of which 1.0 is 1; text that is not JSON, stripped."""
    text = arguments.strip()
    try:
        return msgspec.json.encode(_DECODER.decode(text or "{}"), order="deterministic").decode()
    except (ValueError, RecursionError):
        return text


def same_result(one: str, other: str) -> bool:
    """Whether two results say the same, apart from what counts by itself."""
    if one == other:
        return True
    pair = (hash(one), len(one), hash(other), len(other))
    known = _pairs.get(pair)
    if known is None:
        if len(_pairs) >= KEPT:
            _pairs.clear()
        known = _pairs[pair] = _differ_in_counts_only(one.strip(), other.strip())
    return known


def _differ_in_counts_only(one: str, other: str) -> bool:
    """Go from difference to difference: cheap where there are few, however long the texts."""
    i = j = 0
    for _ in range(PLACES):
        alike = _alike(one, i, other, j)
        i, j = i + alike, j + alike
        if i == len(one) and j == len(other):
            return True
        here, there = _counted(one, i, alike), _counted(other, j, alike)
        if here is None or there is None or i - here[0] != j - there[0]:
            return False
        i, j = here[1], there[1]
    return one[i:] == other[j:]


def _alike(one: str, i: int, other: str, j: int) -> int:
    """How many characters are the same from `i` and `j` on."""
    limit = min(len(one) - i, len(other) - j)
    alike, size = 0, 64
    while alike + size <= limit and one[i + alike : i + alike + size] == other[j + alike : j + alike + size]:
        alike += size
        size *= 2
    while size:
        if alike + size <= limit and one[i + alike : i + alike + size] == other[j + alike : j + alike + size]:
            alike += size
        size //= 2
    return alike


def _counted(text: str, at: int, back: int) -> tuple[int, int] | None:
    """The begin and end of what counts by itself at `at`, looked for in what comes after the last difference."""
    for found in _COUNTS_ONLY.finditer(text, max(0, at - min(back, REACH)), at + REACH):
        if found.end() >= at:
            return found.span() if found.start() <= at else None
    return None
