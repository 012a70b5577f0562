"""A description as if it opened with the one verb for what is done: "Opens the gate" for "Used to open or close the
gate".

Called by `toolbox`; `commands` and `naming` read what comes of it.
"""

import re
from itertools import pairwise

from treadle.models.offline.grammar.deed_words import DEED_NOUNS, DEED_VERBS
from treadle.models.offline.grammar.english import (
    CHANGES,
    HANDLING_VERBS,
    MAKING_VERBS,
    PLAIN_VERBS,
    TELLING_VERBS,
    word_set,
)
from treadle.models.offline.grammar.words import is_function_word, is_verb, parts, singular, stem
from treadle.models.offline.plan.headings import ARTICLES

_DETERMINER = r"(?=\s+(?:an?|the|one|this|that|all|every|each|some|any|another|its|your|their)\b)"
# What may stand before the verb and says nothing of what is done.
_BEFORE = re.compile(
    r"(?:this\s+(?:tool|function|helper|method|command|endpoint|action)\s+(?:(?:that|which|to)\s+)?"
    r"|(?:please|either|this|it|can|will|may|to)\s+"
    r"|(?:(?:an?|the|this)\s+)?(?:tool|function|helper|method|command|endpoint|action)\s+(?:that|which|to)\s+"
    r"|(?:is\s+)?used\s+to\s+|(?:lets|let|allows|allow|enables|enable)\s+(?:you|us|one|users?)\s+(?:to\s+)?"
    r"|(?!(?:ear|dai|hour|night|week|month|quarter|year)ly\b)[a-z]+ly\s+)*",
    re.IGNORECASE,
)
_JOINT = r"(?:\s*,\s*(?:and|or)\s+|\s*[,/]\s*|\s+(?:and/or|and|or)\s+)"
_VERBS = re.compile(rf"\W?([a-z]+(?:\)[a-z]+)?(?:{_JOINT}[a-z]+)*){_DETERMINER}", re.IGNORECASE)
# "Opens gates": a verb, as no noun in the plural stands before another.
_PLURAL = re.compile(r"([a-z]+s)\s+([a-z]+)\b", re.IGNORECASE)
_CHANGING = frozenset().union(*CHANGES)
_DOING = _CHANGING - TELLING_VERBS - PLAIN_VERBS
_AND_DOES = re.compile(r"\band (\w+) (?:it|them|an?|the|its|their|everybody|everyone|all)\b")
# "The books and orders the customer has" order nothing, but who "gets it and locks it" does.
_AND_DOES_IT = re.compile(
    r"(?:\b(?:and|then)|[,;]) (?:(\w+s)|(\w+ing)) (?:(?:it|them|everybody|everyone)\b"
    r"|(?:an?|the|its|their) [\w-]+(?=\W*$| (?:of|to|by|for|from|in|on|with|if|at)\b))"
)
# "Given a user, returns the orders", "Takes a user and returns the orders"
_OUT_OF = re.compile(
    r"(?P<how>given|takes?|accepts?|receives?)\s+(?:an?\s+|the\s+|two\s+)?(?P<what>[\w-]+)\b(?P<more>[^.;]*?),?\s+"
    r"(?:and\s+)?"
    r"(?P<told>returns?\s+(?!it\b|them\b).+)",
    re.IGNORECASE | re.DOTALL,
)
# "Accepts an invoice, pays it and returns the receipt", "Takes a seat, reserves and returns it"
_MEANWHILE = re.compile(
    r"(?:,|\band|\bthen|\bor)\s+(?:(?:and|then)\s+)?(?!(?:an?|the|its|their|one|all|every|this|that|two)\b)"
    r"(?P<done>\w+)(?=(?P<alone>\s*$)|\s+(?:it|them|him|her|an?|the|its|their|one|all|every|this|that)\b)",
    re.IGNORECASE,
)
# "Given a user, returns the deposit to them", "Takes a book and returns the book to the shelf"
_GIVEN_BACK = re.compile(
    r"\breturns?\s+\w+\s+\w+\s+to\s+(?:them|him|her|it|their|his)\b"
    r"|\btakes?\s+\w+\s+(\w+)\s+and\s+returns?\s+(?:the|that)\s+\1\b",
    re.IGNORECASE,
)
_AWAY = word_set("up out off down away back over after through")
_TOLD_WITH = frozenset(
    {("look", "up"), ("add", "up"), ("sum", "up"), ("count", "up"), ("look", "through"), ("search", "through")}
    | {(verb, "out") for verb in ("work", "find", "figure", "look", "spell", "list", "read", "make", "print")}
    | {(verb, "back") for verb in ("read", "say", "report", "give")}
    | {(verb, "over") for verb in ("look", "read", "sum", "average")}
)
_SPLIT = re.compile(_JOINT, re.IGNORECASE)
_EITHER = re.compile(r"\bor\b|/", re.IGNORECASE)
# "Has a room cleaned" says what is done, as "Have" does, and no small word; "Has the price of a product" tells it, and
# "Has the customer paid?" asks.
_DONE = (
    r"(?:[a-z]+ed|sent|made|done|built|taken|put|cut|set|brought|paid|sold|shut|swept|"
    r"drawn|thrown|written|driven|frozen|sewn|lit|fed|lent|found)\b"
)
_HAS = re.compile(rf"has(?=\s+(?:an?|the)\b(?!.*(?:\bbeen\b|\?$)).*\b{_DONE})", re.IGNORECASE | re.DOTALL)
_CAUSED = re.compile(rf"have\s+(?:an?|the)\s+(?:(?!that\b|which\b)[\w-]+\s+)+?{_DONE}", re.IGNORECASE)
_CONTROL = re.compile(r"(?:[a-z]+\s+){0,2}(?:control|controller|trigger|button)\s+(?:for|of)\b", re.IGNORECASE)


def read_deed(summary: str, takes: frozenset[str] = frozenset()) -> tuple[str, frozenset[str]]:
    """The description, with one verb for what is done as its first word if it says so, and the other verbs for it.

    Args:
        summary: the first sentence of what a tool says of itself.
        takes: the stems of the nouns of what it requires.
    """
    out = None if _GIVEN_BACK.search(summary) else _OUT_OF.match(summary)
    out = None if out and any(map(_is_meant, _MEANWHILE.finditer(out["more"]))) else out
    if out is not None and (out["how"].lower() == "given" or stem(out["what"]) in takes):
        # What a tool takes that is its argument is only passed.
        summary = out["told"]
    summary = _HAS.sub("Have", summary, count=1) if _HAS.match(summary) else summary
    if (noun := _CONTROL.match(summary)) is not None:
        return f"Controls the{summary[noun.end() :]}", frozenset()
    opened = _BEFORE.match(summary)
    start = opened.end() if opened is not None else 0
    found = _VERBS.match(summary, start)
    if found is None:
        plural = _PLURAL.match(summary, start)
        doing = plural is not None and singular(plural[1].lower()) in _DOING and singular(plural[2]) != plural[2]
        return (f"{plural[1]} the {summary[plural.start(2) :]}" if plural and doing else summary), frozenset()
    said = [word.replace(")", "") for word in _SPLIT.split(found[1])]
    either = _EITHER.search(found[1]) is not None
    known = either or len(said) == 1 or any(is_verb(word) or singular(word.lower()) in _CHANGING for word in said)
    if not known or any(is_function_word(word) for word in said):
        # "Cars and vans a shop has", "What a room costs"
        return summary, frozenset()
    done = [word for word in said if _is_done(singular(word.lower()))]
    reads = len(done) < len(said) and not either
    if not done or (reads and all(singular(word.lower()) in MAKING_VERBS for word in done)):
        # "Opens and reads a file" tells what is in it.
        return (summary[start:] if len(said) == 1 else summary), frozenset()
    # "Lowers the gate" can be no sum, as "Raises" can.
    first, *others = sorted(done, key=lambda word: singular(word.lower()) in TELLING_VERBS)
    return first + summary[found.end() :], frozenset(singular(word.lower()) for word in others)


def _is_done(verb: str) -> bool:
    return verb in MAKING_VERBS or verb not in TELLING_VERBS | PLAIN_VERBS


def _is_meant(done: re.Match[str]) -> bool:
    """Whether what stands between what a tool takes and what it returns is a verb: "a city and date" has none."""
    verb = singular(done["done"].lower())
    return done["alone"] is None or verb in _CHANGING | DEED_VERBS


def is_done_as_well(name: str, summary: str, begun: tuple[str, str]) -> bool:
    """Whether what a tool is called or described by may be done to something, though its verb is one by which
    tools tell things as well: "Split a sample into parts" of `aliquot`, `round_up`, "Translate a page and publish it".

    Args:
        name: the tool's name.
        summary: the first sentence of its description.
        begun: the verb that opens it, and the word behind that.
    """
    told, article = begun
    verb, said, first = singular(told), parts(summary), (*parts(name), "")[0]
    known = first in TELLING_VERBS | PLAIN_VERBS
    # "Have the cells of a sample counted" counts none itself.
    caused = _CAUSED.match(summary) is not None
    handled = verb in HANDLING_VERBS and article in ARTICLES and not known
    # "Sequencing details for a sample"
    going = told.endswith("ing") and told != first and stem(told) == stem(first) and not known
    particle = (*said, "", "")[1]
    away = verb in TELLING_VERBS and particle in _AWAY and (verb, particle) not in _TOLD_WITH
    # "Report a child as absent"
    away = away or (verb == "report" and article in ARTICLES and "as" in said)
    # "Checks a guest in"
    apart = len(said) == 4 and article in ARTICLES and said[-1] in _AWAY | {"in"} and (verb, said[-1]) not in _TOLD_WITH
    away = away or (verb in TELLING_VERBS and apart)
    return caused or handled or going or away or bool(joined_deeds(name, summary))


def joined_deeds(name: str, summary: str) -> frozenset[str]:
    """The verbs for what is done that a tool's name or description joins to another: "Gets an item and locks it".

    Args:
        name: the tool's name.
        summary: the first sentence of its description.
    """
    joined = {word[1] for word in _AND_DOES.finditer(summary.lower())} - {"print"}
    deeds = (_CHANGING | DEED_VERBS | DEED_NOUNS) - TELLING_VERBS - PLAIN_VERBS
    doing = {singular(word[1]) if word[1] else stem(word[2]) for word in _AND_DOES_IT.finditer(summary.lower())}
    joined |= doing | {verb for verb in deeds if stem(verb) in doing}
    words = parts(name)
    joined |= {word for before, word in pairwise(words) if before in ("and", "or")}
    # What is joined to a verb is one, known or not: `get_and_increment`.
    first, joint, *verb = (*words, "", "", "")[:3]
    also = {*verb} - TELLING_VERBS - PLAIN_VERBS if joint == "and" and first in TELLING_VERBS | PLAIN_VERBS else set()
    return frozenset((joined & deeds) | (also - {""}))
