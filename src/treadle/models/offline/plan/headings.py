"""Whether a description is no sentence but the heading of what is told: "Schedule of a line".

Called by `naming`.
"""

from treadle.models.offline.grammar.deed_words import DEED_NOUNS, DEED_VERBS
from treadle.models.offline.grammar.english import CHANGES, HANDLING_VERBS, PLAIN_VERBS, TELLING_VERBS, word_set
from treadle.models.offline.grammar.words import is_function_word, is_verb, parts, singular

ARTICLES = word_set("a an the one this all every some any")
STATES = word_set("open free")
# What stands behind a thing, and not behind the verb of an order: "Honey harvested in a year".
BEHIND_THINGS = word_set("of for in on at between with made held sold kept grown built lent paid sent taken given")
_RELATIVE = word_set("that which who whose")
# What stands behind a thing in English, by which a heading is known to be one.
_BEHIND_HEADS = BEHIND_THINGS | _RELATIVE | word_set("by per to from as about since near under against")
_OWNING = (("has",), ("have",))
# What opens a heading, or says that something is told, in what other languages tools are often described.
_ABROAD = word_set(
    "der die das le la les el los las il lo gli het zeigt zeige nennt liefert listet sucht findet berechnet affiche "
    "cherche trouve renvoie calcule muestra busca devuelve calcula mostra restituisce"
)
# Words by which a tool is called that are no verbs.
DESCRIBING = word_set(
    "current latest recent upcoming next last previous total average overall maximum minimum net gross daily weekly "
    "monthly quarterly yearly annual available outstanding remaining all"
)
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


def is_told(said: tuple[str, ...], returns: str) -> bool:
    """Whether a description says, in English, that something is told: by a verb for that, or as a heading. What one
    cannot read, as "Storniert eine Bestellung", may do anything.

    Args:
        said: the words of the description.
        returns: the type of what the tool says that it returns.
    """
    told = said[0] if said else ""
    verb = singular(told)
    if is_function_word(told) or told in DESCRIBING | _ABROAD or {told, verb} & (TELLING_VERBS | PLAIN_VERBS):
        return True
    if said[1:2] == ("and",) and singular(said[2]) in TELLING_VERBS:
        # "Opens and reads the menu"
        return True
    behind = next((at for at, word in enumerate(said) if word in _BEHIND_HEADS | ARTICLES), 0)
    # "Cars a shop has"
    heading = behind > 0 and (said[behind] in _BEHIND_HEADS or said[behind + 2 : behind + 3] in _OWNING)
    if is_verb(told) or {told, verb} & (_CHANGING | DEED_VERBS):
        return heading and returns == "array" and verb != told
    return heading or returns == "array"
