"""What several figures come to together: "How many cows do Hill Farm and Lake Farm have in total?".

A tool is asked once for each of several things; where their sum is asked for, it is worked out here, or refused.
Called by `planner` and `written`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Value
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.results import fields_of, headline, number_of
from treadle.models.offline.plan.toolbox import KnownTool
from treadle.models.offline.plan.transcript import Exchange

_SUMS = frozenset(stem(word) for word in word_set("total combined overall together altogether"))
_TOGETHER = re.compile(
    r"\s*\b(?:in total|in all|altogether|all together|together|combined)(?=\W*$)|"
    r"(?<=the )(?:combined|total|overall)\s+(?=\w)|(?<=how )(?:many|much) in total\b",
    re.IGNORECASE,
)
_BOTH = 2
_HAD = frozenset(stem(word) for word in word_set("quantity stock count number available left balance"))
# What of two things is no sum of theirs.
NOT_ADDED = frozenset(
    stem(word)
    for word in word_set(
        "rate percent percentage share ratio average mean median temperature humidity speed age level score grade rank "
        "price pressure index chance probability phase date year"
    )
)


def may_not_be_each(text: str, several: Sequence[Value]) -> str:
    """Why a change may not be meant for each of several that a clause names; empty if it is.

    In "to staging, sorry, dev" the last may stand for the first.
    """
    first, before, last = several[0], several[-2], several[-1]
    if re.search(r"\bor\b", text[first.end : last.start], re.IGNORECASE):
        return f"It is not clear whether '{first.text}' or '{last.text}' is meant."
    if not re.search(r"\b(?:and|plus|also|as well as)\b|&", text[before.end : last.start], re.IGNORECASE):
        return f"It is not clear whether '{last.text}' is meant beside '{before.text}' or in its place."
    return ""


def said_together(text: str, tool: KnownTool) -> re.Match[str] | None:
    """Where a clause asks what several figures come to, of a tool that only reads and tells no total itself."""
    match = _TOGETHER.search(text)
    own = match is not None and bool(_SUMS & {stem(word) for word in match.group().lower().split()} & tool.told)
    return match if not own and not tool.may_change else None


def without_each(text: str) -> str:
    """A clause about one of several things without its last "each", which says what a call for each of them does."""
    return re.sub(r"\s+each(?=\W*$)", "", text, flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """What several figures come to, in words, and its unit.

    Attributes:
        word: what was worked out.
        number: the figure.
        unit: its currency, where all results tell the same; empty if they tell none.
        more: whose figure is the larger, of a difference.
    """

    word: str
    number: Decimal
    unit: str = ""
    more: str = ""


def total_of(done: Sequence[Exchange], tool: KnownTool) -> WorkedOut | None:
    """What the figures come to; None if one of them is none, or they are not to be added."""
    figures = [headline(each.result) for each in done]
    known, unit = [figure for figure in figures if figure is not None], _unit_of(done)
    if len(known) < len(figures) or NOT_ADDED & {*tool.name_stems, *(w for out in tool.outputs for w in out.stems)}:
        return None
    return WorkedOut("In total", sum(known, Decimal(0)), unit) if unit is not None else None


def worked_out(done: Sequence[Exchange], word: str, what: str) -> WorkedOut | None:
    """What two figures come to; None if a result does not tell the one that is asked for, and no other like it.

    Args:
        done: the calls and their results.
        word: what is to be worked out.
        what: the words for the figure; empty where it is a number of things.
    """
    asked = {stem(each) for each in what.split()}
    told: list[tuple[tuple[str, ...], Decimal]] = []
    for made in done:
        fields = [(found, number) for found in fields_of(made.result) if (number := number_of(found.value)) is not None]
        said = [pair for pair in fields if (asked <= set(pair[0].stems) if asked else _HAD & set(pair[0].stems))]
        if not isinstance(made.result, dict | list) and (number := number_of(made.result)) is not None:
            told.append(((), number))
        elif len(said) == 1:
            told.append((said[0][0].path, said[0][1]))
    unit = _unit_of(done)
    names = [next((value for value in made.arguments.values() if isinstance(value, str)), "") for made in done]
    alike = len({path for path, _ in told}) == 1 and len({made.tool for made in done}) == 1
    if len(done) != _BOTH or len(told) != _BOTH or not alike or unit is None or len(set(names)) < _BOTH:
        return None
    one, other = (number for _, number in told)
    if word == "Difference":
        more = names[0] if one > other else names[1] if other > one else ""
        return WorkedOut(word, abs(one - other), unit, more)
    if word == "In total":
        own = {*(stem(part) for path, _ in told for name in path for part in parts(name)), *asked}
        return WorkedOut(word, one + other, unit) if not NOT_ADDED & own else None
    return WorkedOut(word, (one + other) / _BOTH, unit)


def _unit_of(done: Sequence[Exchange]) -> str | None:
    """The currency or unit of several results, empty if they tell none; None if it is not the same in all."""
    told = [{str(f.value) for f in fields_of(made.result) if f.name in ("currency", "unit")} for made in done]
    if any(told) and (any(each != told[0] for each in told) or len(told[0]) > 1):
        return None
    return next(iter(told[0]), "") if told else ""
