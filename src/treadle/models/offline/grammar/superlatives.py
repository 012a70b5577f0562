"""Which of many is meant: "the cheapest", "the most expensive", "oldest", "the highest rent", and what tells it.

Data, and where a text says one. Read by `plan.reckoning`.
"""

import re
from dataclasses import dataclass

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.words import stem


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in word_set(words))


MADE = _stems("date placed ordered created opened published year built founded issued vintage released born submitted")
"""By when something came to be it is old or new: not by when it is due."""

_SPAN = "duration minutes hours seconds time"
# What is said, what tells it, and whether the most of that is meant.
_DEGREES = tuple(
    (word_set(said), _stems(told), most)
    for said, told, most in (
        ("expensive dear costly pricey", "price cost rate fee fare rent", True),
        ("cheap", "price cost rate fee fare rent", False),
        ("heavy", "weight mass", True),
        ("light", "weight mass", False),
        ("long", f"length pages {_SPAN}", True),
        ("short", f"length pages {_SPAN}", False),
        ("tall", "height", True),
        ("deep", "depth", True),
        ("wide", "width", True),
        ("hot warm", "temperature", True),
        ("cold cool", "temperature", False),
        ("fast quick", "speed", True),
        ("fast quick", _SPAN, False),
        ("slow", "speed", False),
        ("slow", _SPAN, True),
        ("old young new early late recent", "", True),
        ("populous", "population", True),
    )
)
_BY_AGE = {"old": True, "young": False}
_BY_DAY = {"old": False, "early": False, "new": True, "late": True, "recent": True}
_DEEDS = {
    "cost": _stems("price cost rate fee fare rent"),
    "earn": _stems("salary wage pay"),
    "weigh": _stems("weight mass"),
}
_NAMED = {
    "highest": True,
    "largest": True,
    "biggest": True,
    "greatest": True,
    "most": True,
    "maximum": True,
    "lowest": False,
    "smallest": False,
    "least": False,
    "fewest": False,
    "minimum": False,
}
_SIZE = word_set("largest biggest smallest")
_BENT = re.compile(r"\b([a-z]{2,}?)est\b", re.IGNORECASE)
_LED = re.compile(r"\b(most|least) ([a-z]+)\b", re.IGNORECASE)
_PLAIN = re.compile(rf"\b({'|'.join(_NAMED)})\b", re.IGNORECASE)
_COMPARED = re.compile(r"\b(?:(more|less) ([a-z]+)|([a-z]{2,}?)er) than\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Superlative:
    """A word for the most or the least of many, and where it stands.

    Attributes:
        most: whether the most of a figure that is named beside it is meant.
        told: the stems of the names of what tells it, each with whether the most of that is meant; empty if it has to
            be named.
        sized: whether it is the size of the thing, of which there may be one figure.
        start: where it starts.
        end: where it ends.
    """

    most: bool
    told: dict[str, bool]
    sized: bool
    start: int
    end: int


def find_superlatives(text: str) -> list[Superlative]:
    """What a text says that is the most or the least of many, in order; the mayor "of Most" is a city's."""
    found: dict[int, Superlative] = {}
    for match in _LED.finditer(text):
        if told := _told(match[2], match[1].lower() == "most"):
            found[match.start()] = Superlative(True, told, False, *match.span())
    for match in _BENT.finditer(text):
        if told := _told(match[1], True):
            found[match.start()] = Superlative(True, told, False, *match.span())
    for match in _PLAIN.finditer(text):
        if not any(each.start <= match.start() < each.end for each in found.values()):
            said = match[1].lower()
            found[match.start()] = Superlative(_NAMED[said], {}, said in _SIZE, *match.span())
    return [found[start] for start in sorted(found) if start == 0 or not text[start].isupper()]


def find_degree(text: str) -> Superlative | None:
    """What a comparison such as "older than" or "less expensive than" is by; None if it says nothing of that."""
    match = _COMPARED.search(text)
    told = _told(match[2] or match[3], (match[1] or "more").lower() == "more") if match is not None else {}
    return Superlative(True, told, False, *match.span()) if match is not None and told else None


def measures_of_deed(word: str) -> frozenset[str]:
    """The stems of what tells how much something does, as the price does of what it costs; empty for most verbs."""
    return next((told for deed, told in _DEEDS.items() if word.lower() in (deed, f"{deed}s")), frozenset())


def _told(word: str, most: bool) -> dict[str, bool]:
    low = word.lower()
    undoubled = low[:-1] if len(low) > 3 and low[-1] == low[-2] else low
    forms = {low, undoubled, f"{low}e", f"{low[:-1]}y" if low.endswith("i") else low}
    told = {each: up is most for said, names, up in _DEGREES if forms & said for each in names}
    for by, names in ((_BY_AGE, _stems("age")), (_BY_DAY, MADE)):
        said = [up for plain, up in by.items() if plain in forms]
        told |= {each: said[0] is most for each in names} if said else {}
    return told
