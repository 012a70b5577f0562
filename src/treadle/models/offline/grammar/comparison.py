"""What a yes-or-no question measures a figure against: "more than 100", "enough for 50", "at most 8".

Finds the number and the relation; nothing is compared here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value

Relation = Literal[">", ">=", "<", "<=", "="]

_WORDED: tuple[tuple[str, Relation], ...] = (
    (r"at least|(?:no|not) (?:less|fewer) than", ">="),
    (r"at most|up to|(?:no|not) more than", "<="),
    (r"(?:more|greater|higher|larger|longer|bigger) (?:[\w-]+ ){0,3}than|over|above|exceeds?|exceeding", ">"),
    (r"(?:less|fewer|lower|smaller|cheaper|shorter) (?:[\w-]+ ){0,3}than|under|below", "<"),
    (r"exactly|equal to|equals?", "="),
)
_BEFORE = tuple((re.compile(rf"\b(?:{pattern})\s*[$€£]?$", re.IGNORECASE), relation) for pattern, relation in _WORDED)
_ENOUGH = re.compile(
    r"\b(?:enough|sufficient|suffice|"
    r"(?:to |can we |could we )?(?:fulfil+|ship|deliver|supply|serve|satisfy|cover|sell)|"
    r"(?:an )?orders? (?:of|for)|need)\b",
    re.IGNORECASE,
)
_WHEN_OR_WHERE = word_set("at in on by during")
_HAVING = re.compile(
    r"^\W*(?:and |also |so )*(?:do|does|have|has|are|is|can|could)\s+(?:we|i|you|they|there)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A number in a yes-or-no question and how a figure is to stand to it; `spans` are the words that say so."""

    number: Value
    relation: Relation
    spans: tuple[tuple[int, int], ...]


def find_comparison(clause: Clause, used: Sequence[tuple[int, int]]) -> Measured | None:
    """What `clause` measures a figure against; None if it asks for no yes or no, or not against one number.

    Args:
        clause: the clause.
        used: the stretches that went into arguments, whose numbers are none to measure against.
    """
    if not clause.is_yes_or_no:
        return None
    free = [
        value
        for value in clause.values
        if value.kind == "number" and not any(value.start < end and start < value.end for start, end in used)
    ]
    if len(free) != 1:
        return None
    number, before = free[0], clause.text[: free[0].start]
    here = (number.start, number.end)
    for pattern, relation in _BEFORE:
        match = pattern.search(before)
        if match is not None:
            return Measured(number, relation, (here, *_words(clause, match)))
    led = clause.words_before(number.start, 1)
    if led and led[0] in _WHEN_OR_WHERE:
        return None
    enough = tuple(match.span() for match in _ENOUGH.finditer(clause.text))
    counts = re.match(r"\s*[^\W\d_]{2,}", clause.text[number.end :]) is not None
    if enough or (counts and _HAVING.match(clause.text)):
        return Measured(number, ">=", (here, *enough))
    # In "Is anything left in block B 7?" nothing is held against the number.
    labels = any(value.end + 1 == number.start and value.kind in ("code", "name") for value in clause.values)
    return None if labels else Measured(number, "=", (here,))


def _words(clause: Clause, match: re.Match[str]) -> list[tuple[int, int]]:
    """The words of a comparison, without the thing that stands between "more" and "than"."""
    inside = [token for token in clause.tokens if match.start() <= token.start < match.end()]
    ends = inside if len(inside) <= 2 or inside[0].low in ("no", "not") else [inside[0], inside[-1]]
    return [(token.start, token.end) for token in ends]
