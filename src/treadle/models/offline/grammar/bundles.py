"""Several things with a number of each: what "3 rakes and 2 spades" cost together, and "Order 5 rakes and 3 spades";
and orders that differ in their values only: "Charge Ida 12.50 and Gus 8".

Only a question that is nothing but that is read: any other word is one that it turns on. Read by `plan`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treadle.models.offline.grammar.arithmetic import number_words
from treadle.models.offline.grammar.english import CHANGES, PLAIN_VERBS, word_set
from treadle.models.offline.grammar.meaning import UNITS, is_idle, is_turning
from treadle.models.offline.grammar.question import read_clause
from treadle.models.offline.grammar.words import is_function_word, is_verb, singular

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+|[a-z]+(?:-[a-z]+)?)"
_THING = r"[a-z]+(?:-[a-z]+)*(?: [a-z]+(?:-[a-z]+)*){0,2}"
_LIST = rf"(?P<list>{_NUMBER} {_THING}(?:(?:, (?:and )?| and | plus | & ){_NUMBER} {_THING})+)"
_TOGETHER = r"(?: (?:in total|in all|altogether|all together|together|overall))?"
_SUM = r"(?:total|sum|total cost|total price|overall cost|overall price|combined cost|combined price|cost|price)"
_COSTS = tuple(
    re.compile(rf"\W*{form}\W*", re.IGNORECASE)
    for form in (
        rf"(?:what|how much) (?:do|does|would|will) {_LIST} (?:cost|come to)(?: me| us)?{_TOGETHER}",
        rf"(?:what|how much) (?:does|would|will) it cost (?:me |us )?to (?:buy|get) {_LIST}{_TOGETHER}",
        rf"how much (?:is|are|for|would be|will be) {_LIST}{_TOGETHER}",
        rf"(?:(?:what(?: is|['’]s)|calculate|compute|(?:tell|give) me|work out) )?(?:the )?{_SUM} (?:of|for) "
        rf"{_LIST}{_TOGETHER}",
    )
)
_ORDER = re.compile(
    rf"\W*(?:(?:can|could|would|will) you (?:please )?)?(?P<verb>[a-z]+) {_LIST}\W*",
    re.IGNORECASE,
)
_ANY_ORDER = re.compile(
    r"\W*(?:(?:can|could|would|will) you (?:please )?)?(?P<verb>[a-z]+) (?P<list>[^?]+?)[\s.!]*", re.IGNORECASE
)
_POLITE = re.compile(r",? (?:please|pls|thanks|thank you)(?=\W*$)|^\W*(?:please,?|hi,?|hello,?) ", re.IGNORECASE)
_JOINT = re.compile(r", and |, | and | plus | & ", re.IGNORECASE)
_NEXT = re.compile(r"\. ([A-Z])")
_ONE = word_set("a an one")
_CHANGING = frozenset().union(*CHANGES)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The questions that ask for one of the things each, whether it is what they come to that is asked for, and whether
    they only ask."""

    parts: tuple[str, ...]
    summed: bool
    reads: bool


def find_bundle(text: str) -> Bundle | None:
    """The bundle that all of `text` asks for, or orders; None if it is none."""
    text = _POLITE.sub("", text)
    for form in _COSTS:
        if (match := form.fullmatch(text)) is not None and (things := _things(match["list"])):
            return Bundle(
                tuple(f"What {'does' if n == '1' else 'do'} {_said(n, it)} cost?" for n, it in things), True, True
            )
    match = _ORDER.fullmatch(text)
    if match is not None and match["verb"].lower() in _CHANGING and (things := _things(match["list"])):
        return Bundle(tuple(f"{match['verb'].capitalize()} {n} {it}" for n, it in things), False, False)
    match = _ANY_ORDER.fullmatch(text)
    if match is None:
        return None
    reads = match["verb"].lower() in PLAIN_VERBS
    listed = _NEXT.sub(lambda dot: f", {dot[1].lower()}", match["list"]) if reads else match["list"]
    parts = [f"{match['verb']} {each}" for each in _JOINT.split(listed)]
    return Bundle(tuple(parts), False, reads) if _are_parallel(parts, reads) else None


def _are_parallel(parts: Sequence[str], reads: bool) -> bool:
    """Whether orders have the same words but for two values or more each: "Charge Ida 12.50" and "Charge Gus 8"; or
    show a thing each, whose nouns may differ: "Show ticket 5", "Show invoice 7"."""
    clauses = [read_clause(part.lower() if reads else part) for part in parts]
    shapes = {tuple(value.kind for value in clause.values) for clause in clauses}
    words = {
        tuple(t.low for t in clause.tokens if not any(v.start <= t.start < v.end for v in clause.values))
        for clause in clauses
    }
    lengths, values = {len(each) for each in words}, len(clauses[0].values)
    alike = len(lengths) == 1 and values == 1 and len(words) > 1 if reads else len(words) == 1 and values > 1
    return len(shapes) == 1 and alike and len(set(parts)) == len(parts) > 1


def _said(number: str, thing: str) -> str:
    return f"a {thing}" if number == "1" else f"{number} {thing}"


def _things(listed: str) -> Sequence[tuple[str, str]]:
    """Each thing and its number in digits; none if something on the list is not that."""
    found: list[tuple[str, str]] = []
    for each in _JOINT.split(listed):
        number, thing = each.split(" ", 1)
        words = thing.split()
        plain = not any(
            is_function_word(word) or is_turning(word) or is_idle(word) or is_verb(word) or word.lower() in UNITS
            for word in words
        )
        digits = _digits(number)
        if not plain or digits is None or (digits != "1" and singular(words[-1].lower()) == words[-1].lower()):
            return ()
        found.append((digits, thing))
    return found if len({thing.lower() for _, thing in found}) == len(found) else ()


def _digits(number: str) -> str | None:
    if number.lower() in _ONE:
        return "1"
    if number[0].isdigit():
        return number.replace(",", "").lstrip("0") or None
    words = number_words(number)
    return words[0][2] if words and words[0][:2] == (0, len(number)) else None
