"""What "how late", "how warm" and their like ask for: each word for a degree, and the stems of what measures it.

Data, and where a clause says one. Read by `choice`, which finds the tool by it, and by `account`.
"""

import re

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.words import stem

_MEASURED = tuple(
    (word_set(said), frozenset(stem(word) for word in word_set(told)))
    for said, told in (
        ("late delayed", "delay lateness"),
        ("long", "length duration time minutes hours seconds days wait"),
        ("warm hot cold cool", "temperature temp heat"),
        ("high tall", "height altitude elevation"),
        ("old", "age"),
        ("strong", "strength speed wind"),
        ("heavy", "weight mass"),
        ("far", "distance"),
        ("fast", "speed velocity pace"),
        ("deep", "depth"),
        ("wide broad", "width breadth"),
        ("loud", "volume loudness noise"),
        ("expensive dear costly", "price cost fee rate fare"),
        ("humid", "humidity"),
        ("full", "level fill occupancy"),
    )
)
_HOW = re.compile(r"\bhow ([a-z]+)\b", re.IGNORECASE)


def degree_of(text: str) -> tuple[tuple[int, int], frozenset[str]] | None:
    """Where a clause asks for a degree, and the stems of what tells it; None if it asks for none that is known."""
    for match in _HOW.finditer(text):
        told = [told for said, told in _MEASURED if match[1].lower() in said]
        if told:
            return match.span(1), told[0]
    return None
