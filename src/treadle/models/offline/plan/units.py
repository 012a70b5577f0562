"""Units to convert from and to: "Convert 5 km to miles", "How many miles are 10 km?".

Of two units the one right at the number is what there is. Each is written as the tool lists it, and one that a tool
with a list of them does not list is none of its. Called by `arguments`.
"""

import re
from collections.abc import Sequence

from treadle.models.offline.grammar.meaning import UNITS, same_unit
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import Token, singular, stem, tokens
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.toolbox import KnownTool, Param

_UNIT = stem("unit")
_SHORT = {
    "lb": "pound",
    "lbs": "pound",
    "oz": "ounce",
    "ft": "foot",
    "m": "meter",
    "g": "gram",
    "l": "liter",
    "mi": "mile",
    "yd": "yard",
    "h": "hour",
    "min": "minute",
    "s": "second",
    "c": "celsius",
    "f": "fahrenheit",
    "k": "kelvin",
}
_INTO = ("to", "into", "in")
_WAYS = ("from", "to")


def fill_units(tool: KnownTool, params: Sequence[Param], clause: Clause, out: Filling) -> None:
    """Fills the unit that a figure of a clause is in and the one that it is to be in, if just these are said.

    Args:
        tool: the tool.
        params: its parameters that are open.
        clause: the clause.
        out: takes the arguments.
    """
    able = [param for param in params if _UNIT in param.stems and param.required and not param.enum]
    ways = [param for way in _WAYS for param in able if fits.direction(param) == way]
    if len(able) != len(_WAYS) or len(ways) != len(_WAYS):
        return
    listed = _listed(tool, able)
    said = [token for token in clause.tokens if _is_unit(token, clause)]
    held = [token for token in said if _is_of_number(token, clause)]
    wanted = [token for token in said if token not in held and _is_wanted(token, clause)]
    if len(said) != len(_WAYS) or len(held) != 1 or len(wanted) != 1:
        return
    for param, token in zip(ways, (held[0], wanted[0]), strict=True):
        text = _as_listed(token, listed)
        if text is None:
            out.unknown[token.text] = tuple(listed)
            continue
        out.arguments[param.name] = text
        out.used.append((token.start, token.end))
        out.telling += 1


def _listed(tool: KnownTool, params: Sequence[Param]) -> list[str]:
    """The units that a tool says it takes."""
    texts = [tool.spec.description, *(param.description for param in params)]
    words = [token.text for text in texts for token in tokens(text)]
    # In "a value in m" the first is none.
    found = [word for word in words if _meant(word) and word.lower() not in _INTO]
    return list(dict.fromkeys(found))


def _meant(word: str) -> frozenset[str]:
    """The words for the unit that a word stands for; empty if it is none."""
    low = word.lower()
    known = same_unit(_SHORT.get(low, low)) or same_unit(singular(low))
    return known or (frozenset({low}) if low in UNITS else frozenset())


def _is_unit(token: Token, clause: Clause) -> bool:
    """Whether a word stands for a unit; a letter only at a number, or where one is asked for."""
    placed = len(token.text) > 1 or _is_of_number(token, clause) or _is_wanted(token, clause)
    return bool(_meant(token.text)) and placed and token.low not in _INTO


def _as_listed(token: Token, listed: Sequence[str]) -> str | None:
    """The unit that a word stands for, as the tool writes it; None if it is none of the tool's."""
    if token.text in listed or len(listed) < len(_WAYS):
        return token.text
    return next((each for each in listed if _meant(each) == _meant(token.text)), None)


def _is_of_number(token: Token, clause: Clause) -> bool:
    """Whether a unit stands right behind a number."""
    numbers = [value for value in clause.values if value.kind == "number" and value.end <= token.start]
    return any(re.fullmatch(r" ?", clause.text[value.end : token.start]) for value in numbers)


def _is_wanted(token: Token, clause: Clause) -> bool:
    """Whether a unit is what a figure is to be in."""
    before = clause.words_before(token.start, 2)
    return before[:1] in [(word,) for word in _INTO] or before == ("many", "how")
