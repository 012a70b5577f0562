"""Places: where something in a text ends, or the line begins in which it stands. Pure. Neighbours: the formats."""

import re
from typing import Final

_SQUARE: Final = re.compile(r"[\[\]]")


def after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where `pattern` ends that begins at `at`; `at` itself if it does not."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def line_start(text: str, at: int) -> int:
    """Where the last line of `text` begins, but not before `at`."""
    return max(at, text.rfind("\n", at) + 1)


def end_of_brackets(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed, with what is in it taken for plain text; -1 if it is not."""
    depth = 0
    for match in _SQUARE.finditer(text, start):
        depth += 1 if match.group() == "[" else -1
        if depth == 0:
            return match.end()
    return -1
