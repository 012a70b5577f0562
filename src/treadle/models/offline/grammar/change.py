"""How something changed between two times: "grow from January 2023 to January 2024" is asked twice, once for each."""

import re
from dataclasses import dataclass

from treadle.models.offline.grammar.question import Clause, Value

_CHANGING = re.compile(
    r"\b(?:grow(?:s|n|ing|th)?|grew|chang(?:e|es|ed|ing)|increas(?:e|es|ed|ing)|decreas(?:e|es|ed|ing)|ris(?:e|es|en|ing)|"
    r"rose|fall(?:s|en|ing)?|fell|drop(?:s|ped|ping)?|declin(?:e|es|ed|ing)|develop(?:s|ed|ment)?|evolv(?:e|es|ed)|"
    r"difference|compar(?:e|es|ed|ing))\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\b(?:from|between|in|of|for|compare)\s*$", re.IGNORECASE)
_GAP = re.compile(r"^\s*(?:to|and|with|versus|vs\.?|against|until|through|compared (?:to|with))\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Change:
    """The word that asks for a change, and the clause once for the first and once for the second time."""

    word: str
    earlier: str
    later: str


def _written(time: Value) -> str:
    """A time by itself: of "from January to March 2024" the first has no year of its own."""
    period = time.period
    plain = period is not None and period.last is None and period.day is None and not time.text.isdigit()
    return period.as_text(False) if period is not None and plain else time.text


def find_change(clause: Clause) -> Change | None:
    """The change between two times that `clause` asks for, if it asks for one."""
    times = [value for value in clause.values if value.period is not None]
    word = _CHANGING.search(clause.text)
    if word is None or len(times) != 2 or not _GAP.match(clause.text[times[0].end : times[1].start]):
        return None
    before = _BEFORE.search(clause.text[: times[0].start])
    if before is None or (
        before[0].strip().lower() in ("of", "for", "in") and word[0].lower()[:4] not in ("comp", "diff")
    ):
        return None
    texts = []
    for time in times:
        lead = clause.text[: before.start()] if before[0].strip().lower() != "compare" else clause.text[: before.end()]
        text = f"{lead} in {_written(time)}{clause.text[times[1].end :]}"
        place = _CHANGING.search(text)
        texts.append(text if place is None else text[: place.start()] + text[place.end() :].lstrip())
    return Change(word[0], *texts)
