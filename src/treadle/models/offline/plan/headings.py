"""Whether a description is no sentence but the heading of what is told: "Schedule of a line".

Called by `naming`.
"""

from treadle.models.offline.grammar.deed_words import DEED_NOUNS, DEED_VERBS
from treadle.models.offline.grammar.english import CHANGES, HANDLING_VERBS, TELLING_VERBS, word_set
from treadle.models.offline.grammar.words import is_function_word, is_verb, parts, singular

ARTICLES = word_set("a an the one this all every some any")
STATES = word_set("open free")
# What stands behind a thing, and not behind the verb of an order: "Honey harvested in a year".
BEHIND_THINGS = word_set("of for in on at between with made held sold kept grown built lent paid sent taken given")
_RELATIVE = word_set("that which who whose")
_CHANGING = frozenset().union(*CHANGES)


def without_preposition(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a name without the preposition that it ends with: `price_for`."""
    return words[:-1] if len(words) > 1 and words[-1] in ("of", "for", "in", "at", "by") else words


def is_asked(summary: str) -> bool:
    """Whether a description is a question, as "Is a lift open?" is, to which the tool tells the answer."""
    return summary.endswith("?") and is_function_word((*parts(summary), "")[0])


def is_heading(words: tuple[str, ...], said: tuple[str, ...], returns: str) -> bool:
    """Whether a description is no sentence but names what is told: "Schedule of a line" of `line_schedule`, where the
    line is a thing, so that the name opens with no verb; "Open orders of a customer", "Expiry date of a certificate".
    """
    first, last = words[0], words[-1]
    behind = next((at for at, word in enumerate(said) if word in BEHIND_THINGS | _RELATIVE), 0)
    head = said[:behind]
    if not head or not {*head[1:]}.isdisjoint(ARTICLES):
        return False
    if said[behind] in _RELATIVE:
        # "Seats that are left", but not "Note that a child is absent".
        many = singular(head[-1]) != head[-1] in words
        return many and returns not in ("", "string", "null")
    if len(words) > 1 and head[-1] == last and first not in head:
        owner = said.index(first, behind) if first in said[behind:] else 0
        deed = last in _CHANGING | DEED_VERBS | DEED_NOUNS and returns in ("", "string", "null")
        return owner > behind and said[owner - 1] in ARTICLES and not deed
    many = returns == "array" and singular(last) != last and len(words) > 1 and head == words
    if many and (first in STATES or (first.endswith("ed") and len(first) > len("seed"))):
        return True
    known = {first, singular(first)} & (_CHANGING | DEED_VERBS | DEED_NOUNS | HANDLING_VERBS | TELLING_VERBS)
    one = len(head) > 1 and head[: len(words)] == words and singular(head[-1]) == head[-1]
    return one and returns not in ("", "string", "null") and not known and not is_verb(first)
