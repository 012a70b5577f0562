"""Arguments with structure: lists of names, groupings, what to sort by.

Filled from a clause and from the names known to be valid; nothing is put in that the clause does not say. Called by
`arguments`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treadle.models.offline.grammar.meaning import COMPUTING
from treadle.models.offline.grammar.question import Clause, Value, is_plain_noun
from treadle.models.offline.grammar.words import Token, is_function_word, likeness, parts, singular, stem

_GROUPING = re.compile(
    r"\b(?:by|per|(?:for )?(?:each|every)(?: one)? of|for (?:each|every)|across|which|each|every|at the|top(?: \d+)?|"
    r"(?:at|on)(?=(?:\W+\w+){1,4}\W+levels?\b)|"
    r"\d+ (?:largest|biggest|highest|lowest|smallest))\s+(?:the\s+|different\s+|single\s+)?"
    r"(\w+(?:\s*(?:,\s*and\s+|,|\band\b|&)\s*(?:by\s+|per\s+)?(?:the\s+)?\w+)*)",
    re.IGNORECASE,
)

_LEVEL = re.compile(r"\s+levels?\b", re.IGNORECASE)
_ABOVE = re.compile(r"\s+(?:groups?|hierarchy|hierarchies|trees?)\b", re.IGNORECASE)
_SUMS = frozenset({"sum", "total"})
_RANKED = re.compile(
    r"\b(?:(?P<up>lowest|smallest|least|bottom|(?:sorted|ordered|rising|in)?\s*(?:ascending|ascending order))|"
    r"top|largest|biggest|highest|greatest|most|(?:sorted|ordered|falling|in)?\s*(?:descending(?: order)?))\b",
    re.IGNORECASE,
)

_ADJECTIVES = re.compile(r"(?:\s+[a-z]+){0,2}\s+", re.IGNORECASE)
_MOST = re.compile(r"\b(?:top|bottom|best|worst|(?:larg|high|low|small|bigg|great)est)\b", re.IGNORECASE)
_EACH_OF = re.compile(r"(?:by|per|for|in|of|each|every)\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mention:
    """A valid name that a clause mentions, in its own words."""

    name: str
    written: str
    start: int
    end: int


def overlaps(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the stretch touches one of `spans`."""
    return any(start < other_end and other_start < end for other_start, other_end in spans)


def mentions(
    clause: Clause, names: Sequence[str], used: Sequence[tuple[int, int]] = (), least: float = 0.84, ties: bool = False
) -> list[Mention]:
    """Where a clause mentions one of `names`, in order; longer wordings win.

    Args:
        clause: the clause.
        names: the valid names.
        used: stretches that are spoken for.
        least: how alike wording and name must be, from 0 to 1; codes may be less alike.
        ties: whether a wording that fits several names equally mentions them all, or none.
    """
    found: list[Mention] = []
    for size in (4, 3, 2, 1):
        for place in range(len(clause.tokens) - size + 1):
            run = clause.tokens[place : place + size]
            start, end = run[0].start, run[-1].end
            taken = [*used, *((mention.start, mention.end) for mention in found)]
            written = clause.text[start:end]
            if overlaps(start, end, taken) or (_loose(run) and not _is_one(clause, written, start, names)):
                continue
            lower = 0.6 if size == 1 and not written.isalpha() else least
            ranked = sorted(((likeness(written, name), name) for name in names), reverse=True)
            best = [name for score, name in ranked if score >= lower and score > ranked[0][0] - 0.02]
            best = [name for name in best if (_is_whole(name, run[0]) if size == 1 else _holds(name, run))]
            if best and (len(best) == 1 or ties or ranked[0][0] >= 0.97):
                found += [Mention(name, written, start, end) for name in (best if ties else best[:1])]
    return sorted(found, key=lambda mention: mention.start)


def _holds(name: str, run: Sequence[Token]) -> bool:
    """Whether every word of a run is a part of the name: of "half fi_reporting", "half" is not."""
    told = [name, *parts(name)]
    return all(is_function_word(token.text) or max(likeness(token.text, part) for part in told) >= 0.6 for token in run)


def _is_one(clause: Clause, written: str, start: int, names: Sequence[str]) -> bool:
    """Whether words that would be loose are one of several words among the names, such as `in_progress`, a name in
    capitals, such as IT, or a "yes" or "no" right behind the verb."""
    if written.lower() in ("yes", "no") and clause.words_before(start, 1) == (clause.opening,):
        return written.lower() in names
    if written.isupper() and written in names and (len(written) > 1 or start > 0):
        return True
    words = parts(written)
    return len(words) > 1 and any(words == parts(name) for name in names)


def _is_whole(name: str, word: Token) -> bool:
    """Whether a word can stand for a name: "mean" asks for a mean, and is not what "mean_cost" is of."""
    return word.low not in COMPUTING - _SUMS or len(parts(name)) == 1


def _loose(run: Sequence[Token]) -> bool:
    if len(run) == 1:
        return is_function_word(run[0].text) or run[0].text[0].isdigit()
    return any(is_function_word(token.text) for token in (run[0], run[-1])) or any(
        is_function_word(token.text) and token.low not in ("of", "the") for token in run
    )


def groupings(clause: Clause, names: Sequence[str]) -> list[str]:
    """What a clause wants things broken down by: names of `names`, or its own nouns if no names are known."""
    return list(dict.fromkeys(name for name, _, _ in grouping_spans(clause, names)))


def grouping_spans(clause: Clause, names: Sequence[str]) -> list[tuple[str, int, int]]:
    """The same, each with the stretch that says so, its "by" or "per" included."""
    found: list[tuple[str, int, int]] = []
    for match in _GROUPING.finditer(clause.text):
        start = (
            match.start() if not re.search(r"top|\d", match[0][: match.start(1) - match.start()]) else match.start(1)
        )
        for word in re.finditer(r"\w+", match[1]):
            end = match.start(1) + word.end()
            name = ""
            if names:
                best = max(names, key=lambda name: likeness(word[0], name))
                name = best if likeness(word[0], best) >= 0.84 else ""
            elif match[0].lower().startswith(("by", "per", "for")) and is_plain_noun(word[0], stem(word[0])):
                name = singular(word[0].lower())
            if name and name in names and _ABOVE.match(clause.text, end):
                # What stands above the values of a name is not the name.
                continue
            if name:
                level = _LEVEL.match(clause.text, end)
                end = level.end() if level else end
                found.append((name, start, end))
                start = end
    return found


def of_one_table(said: Sequence[tuple[str, int, int]], figures: Sequence[Mention]) -> list[tuple[str, int, int]]:
    """The groupings before the one by which another figure is wanted: "amount per company and hours per account" are
    two tables, of which one call gives the first."""
    first = {figure.name for figure in figures if said and figure.start < said[0][1]}
    for at, (name, start, _) in enumerate(said):
        others = {figure.name for figure in figures if said[0][1] < figure.start < start} - first
        if first and others and name not in {before for before, _, _ in said[:at]}:
            return list(said[:at])
    return list(said)


def value_text(value: Value, digits_only: bool) -> str:
    """A value as text; days and months without hyphens if that is how the data has them."""
    if value.period is None:
        return value.text.replace(",", "") if value.kind == "number" else value.text
    if value.text.isdigit():
        return value.text
    return value.period.as_text(digits_only)


def ranking(clause: Clause, measures: Sequence[str]) -> tuple[str, list[tuple[int, int]]] | None:
    """What "top 5 … by amount" and "sorted descending" sort by, and the stretches that say so; None if nothing does.

    It is the measure said, else the first, with " desc" after it unless upwards.
    """
    match = _RANKED.search(clause.text)
    said = [mention.name for mention in mentions(clause, measures)] or list(measures[:1])
    if match is None or not said:
        return None
    name = said[0] if match["up"] else f"{said[0]} desc"
    return name, [found.span() for found in _RANKED.finditer(clause.text) if bool(found["up"]) == bool(match["up"])]


def plain_number(text: str) -> int | float:
    """The number that a text writes, whole if it has no decimal point."""
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)


def is_ranked_within(clause: Clause, groups: Sequence[tuple[int, int]]) -> bool:
    """Whether so many of one are wanted for each of another, which one list by size is not: of "top 3 accounts per
    company" it has the three largest pairs."""
    ends = [value.end for value in clause.values if value.kind == "number"]
    ends += [match.end() for match in _MOST.finditer(clause.text)]
    between = {start: [clause.text[end:start] for end in ends if end < start] for start, _ in groups}
    said = [clause.text[start:end].strip() for start, end in groups]
    counted = [any(map(_ADJECTIVES.fullmatch, between[start])) for start, _ in groups]
    is_counted = any(one and " " not in text for one, text in zip(counted, said, strict=True))
    return is_counted and any(_EACH_OF.match(text) for text in said)


def content_stems(clause: Clause) -> tuple[str, ...]:
    """The stems of the words of a clause that say what is asked for: no function words, numbers or written names."""
    return tuple(
        token.stem
        for token in clause.tokens
        if (not is_function_word(token.text) or token.low in ("versus", "vs"))
        and not token.text[0].isdigit()
        and not any(value.start <= token.start < value.end for value in clause.values)
    )
