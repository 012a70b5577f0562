"""What several figures come to together: "How many cows do Hill Farm and Lake Farm have in total?".

A tool is asked once for each of several things; where their sum is asked for, it is worked out here, or refused.
Called by `planner` and `written`.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.words import stem
from treadle.models.offline.plan.results import headline
from treadle.models.offline.plan.toolbox import KnownTool
from treadle.models.offline.plan.transcript import Exchange

_SUMS = frozenset(stem(word) for word in word_set("total combined overall together altogether"))
_TOGETHER = re.compile(
    r"\s*\b(?:in total|in all|altogether|all together|together|combined)(?=\W*$)|"
    r"(?<=the )(?:combined|total|overall)\s+(?=\w)|(?<=how )(?:many|much) in total\b",
    re.IGNORECASE,
)
# What of two things is no sum of theirs.
NOT_ADDED = frozenset(
    stem(word)
    for word in word_set(
        "rate percent percentage share ratio average mean median temperature humidity speed age level score grade rank "
        "price pressure index chance probability phase date year"
    )
)


def said_together(text: str, tool: KnownTool) -> re.Match[str] | None:
    """Where a clause asks what several figures come to, of a tool that only reads and tells no total itself."""
    match = _TOGETHER.search(text)
    own = match is not None and bool(_SUMS & {stem(word) for word in match.group().lower().split()} & tool.told)
    return match if not own and not tool.may_change else None


def without_each(text: str) -> str:
    """A clause about one of several things without its last "each", which says what a call for each of them does."""
    return re.sub(r"\s+each(?=\W*$)", "", text, flags=re.IGNORECASE)


def total_of(done: Sequence[Exchange], tool: KnownTool) -> Decimal | None:
    """What the figures come to; None if one of them is none, or they are not to be added."""
    figures = [headline(each.result) for each in done]
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(figures) or NOT_ADDED & {*tool.name_stems, *(w for out in tool.outputs for w in out.stems)}:
        return None
    return sum(known, Decimal(0))
