"""Fences: code in a reply, in which nothing is a call unless the fence says that it may be; and what may become one.

Pure. Neighbours: the formats that look for calls anywhere in a text, `json.py` and `tags.py`.
"""

import re
from typing import Final

LEAD: Final = r"^[ \t]*+(?>(?:(?:[-*+]|\d{1,3}[.)])[ \t]++){0,3})"
"""What may stand before something on its line and changes nothing about it: space, and the marks of list items."""

OPEN: Final = re.compile(
    rf"{LEAD}(?:>[ \t>]*+)?(?P<fence>`{{3,}}+|~{{3,}}+)[ \t]*+(?P<language>[^\s`]*+)[^\n`]*+(?:\n|\Z)", re.MULTILINE
)


def closing(fence: str) -> re.Pattern[str]:
    """What closes a fence that `fence` opened."""
    return re.compile(rf"^[ \t>]*+{fence[0]}{{{len(fence)},}}+[ \t]*+(?:\n|\Z)", re.MULTILINE)


class Tail:
    """Where the end of a growing text may still become something; looked for once, until the text has grown."""

    __slots__ = ("_length", "_pattern", "_start")

    def __init__(self) -> None:
        self._length, self._start, self._pattern = -1, -1, re.compile("")

    def start(self, pattern: re.Pattern[str], text: str, at: int) -> int:
        """Where the first match of `pattern`, which matches at the end only, begins after `at`; else the end."""
        if self._length != len(text) or self._pattern is not pattern or self._start < at:
            match = pattern.search(text, at)
            self._length, self._pattern = len(text), pattern
            self._start = len(text) if match is None else match.start()
        return self._start


def comes_first(held: int, start: re.Match[str]) -> bool:
    """Whether what may still become something begins before what has been found, or is the same code or quote."""
    return held < start.start() or (held == start.start() and start.lastgroup in ("code", "quoted"))
