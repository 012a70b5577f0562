"""Whether each word of an order is spoken for, the small ones too.

The gate for changes, word by word: each stands for a value that goes out, is the tool's own, or is one of a few that
change nothing where they stand. An article stands before a thing, a preposition leads to one as the tool may be led, a
courtesy stands at an end. "Only", "each", "rather" and their like say something, and no call keeps it. Called by
`founded`.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from treadle.models.offline.grammar.adverbs import is_adverb
from treadle.models.offline.grammar.currencies import currency_of
from treadle.models.offline.grammar.english import PERSON_WORDS, word_set
from treadle.models.offline.grammar.meaning import UNITS, is_idle
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import Token, is_function_word, parts, singular, stem, tokens
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.ties import PEOPLE, told_leads
from treadle.models.offline.plan.toolbox import KnownTool

Span = tuple[int, int]

# They change nothing wherever they stand in an order.
_SMALL = word_set(
    """a an the these those all for in on to with into onto of as and please pls plz thx thank thanks kindly too also
    so now right immediately me us my mine our ours you your yours his hers its their theirs him it them her here
    very much ok okay hey hi hello well number nr id s new this that any one"""
)
_ARTICLES = word_set("a an the my our your his her its their this that these those all any new")
_PREPOSITIONS = word_set("for in on to with into onto of as from at by about regarding")
_PRONOUNS = word_set("it them him her me us this that these those")
_BE = word_set("is are was were be been")
# What leads a value otherwise than the tool says would make it another order; those of `_SMALL` are said of anything.
_PRICED = word_set(
    "price rate fee salary cost amount value wage rent bid temperature degrees celsius speed level time hour start "
    "place location room address venue percent when where at"
)
_TAKING = word_set(
    "withdraw take remove delete deduct subtract drop erase eject unsubscribe expel evict order reorder buy purchase "
    "borrow pull draw release clear detach strip unlink disconnect dismiss fire discharge debit collect strike kick "
    "book exclude hide unassign revoke pick fetch request rent hire unlock return copy import download restore load"
)
_BY = word_set("by author writer artist maker owner creator user step delta percent")
_PEOPLE = frozenset(stem(word) for word in PERSON_WORDS | PEOPLE)
_ABOUT = word_set("about topic subject reason regarding note message text")
_OF_A_THING = re.compile(
    r"\w+ (?:the |an? )?(?:[\w-]+ ){0,2}?(?P<what>[\w-]+) of (?:the |an? )(?P<whose>[\w-]+(?: [\w-]+)?)", re.IGNORECASE
)
_SETTING = word_set("set change adjust update")
_SPANS = word_set("week month year quarter decade")
_AFTERWARDS = word_set("up down out off back away only")
_SPOILT = word_set("broken gone sold lost stolen worn torn bent burnt spoilt frozen missing")
_MEASURES = word_set("dutzend pfund gramm tonnen dozen")
_ORDINALS = word_set("second third fourth fifth sixth seventh eighth ninth tenth")
_SO_ON = re.compile(r"\band (?:so (?:on|forth)|the like|more|vice versa)\b\W*$", re.IGNORECASE)
_LATER = re.compile(
    r"\bin (?:about |around )?(?:(?:half )?an?|\d+|a few|a couple of|some) "
    r"(?:second|minute|hour|day|week|month|year)s?\b"
    r"|\bfrom now(?! on)\b",
    re.IGNORECASE,
)
_FOR_NOW = re.compile(r"\bfor (?:now|the (?:moment|present|time being))\b", re.IGNORECASE)
_IN_A_WHILE = re.compile(
    r"\bin (?:about |around )?\d[\d.]* (?:second|minute|hour|day|week|month|year)s?\b", re.IGNORECASE
)
_DELAYS = re.compile(
    r"\b(?:in how many|after|with(?:in| a delay)|delay\w*|later|from now|timers?|wait\w*|snooz\w*|remind\w*)\b",
    re.IGNORECASE,
)
_CUT_OFF = word_set(
    "and or but so with for to at by of in on the a an as from like that which who whose about regarding via per into "
    "onto"
)
_PLACED = word_set("in on")
_HESITATING = re.compile(r"\.{2,}(?!\w)|…")
_POLITE = word_set("please pls plz thx thank thanks you kindly now")


def unspoken(clause: Clause, tool: KnownTool, arguments: dict[str, Any], used: Sequence[Span]) -> list[Span]:
    """What is no part of an order: "Cancel B8 is what I did", "Close 101, I think", "Pay R-7 only".

    Args:
        clause: the order.
        tool: the tool that is to be called.
        arguments: what it is to be called with.
        used: the stretches that went into arguments.
    """
    verb = next((token for token in clause.tokens if token.low == clause.opening), None)
    if verb is None:
        return []
    if clause.asks_whether_to:
        return [(verb.start, verb.end)]
    own = {word.low for word in tokens(f"{tool.spec.description} {tool.name.replace('_', ' ')}")}
    own |= {word for p in tool.params for word in (*parts(p.name), *p.words, *p.stems, *p.nouns)}
    said_of = {word.low for word in tokens(f"{tool.spec.description} {' '.join(parts(tool.name))}")}
    found = [*_about_the_time(clause, tool, used), *_broken_off(clause, verb, own, used)]
    found += _of_its_owner(clause, tool, arguments, verb)
    quoted = [(value.start, value.end) for value in clause.values if value.kind == "quoted"]
    values = [(value.start, value.end) for value in clause.values]
    found += _within_values(clause, own, used, quoted)
    said = any(fits.is_free_text(param) for param in tool.params)
    said = said or any(
        token.low.endswith("ed") and any(w.startswith(token.stem) for w in own) for token in clause.tokens
    )
    # "Record that Mia is adopted by Eva"
    told = _BE if said and clause.words_after(verb.end, 1) == ("that",) else frozenset[str]()
    for before, token in pairwise(clause.tokens):
        if token.start < verb.end or overlaps(token.start, token.end, [*used, *values]):
            continue
        again = before.low == "to" and token.low in (tool.change or ())
        strange = token.low not in _SMALL | told and _is_small(token) and not {token.low, token.stem} & own
        strange = strange and not _may_lead(token, clause, tool)
        strange = strange or (is_adverb(token.low) and token.low not in own | _POLITE | _SMALL)
        strange = strange or _leads_nowhere(token, clause, tool, [*used, *values])
        # "Restart web-1 restarted ok" is what a log says.
        again_so = token.stem == verb.stem or token.low.startswith(verb.low)
        done = token.low.endswith("ed") and again_so and token.low not in own
        done = done or (token.low in ("ok", "okay") and "," not in clause.text[before.end : token.start])
        # "The second engine" is one of several; "stop pumping it" stops no pump.
        which = token.low in _ORDINALS and token.low not in said_of
        doing = before is verb and token.low.endswith("ing") and token.stem != token.low and token.low not in said_of
        if again or strange or done or which or doing:
            found.append((token.start, token.end))
    return found


def _is_small(token: Token) -> bool:
    """Whether a word holds a sentence together or says no more than that something is to be told or done."""
    return is_idle(token.text) or is_function_word(token.text)


def _may_lead(token: Token, clause: Clause, tool: KnownTool) -> bool:
    """Whether a preposition may lead to what stands behind it, to this tool."""
    called = {word for param in tool.params for word in parts(param.name)}
    if any(token.low in re.findall(r"[a-z]+", param.description.lower()) for param in tool.params):
        return True
    if token.low == "from":
        return clause.opening in _TAKING or any(fits.direction(param) == "from" for param in tool.params)
    if token.low == "at":
        return bool(called & _PRICED) or any(map(currency_of, called))
    if token.low == "by":
        # What an amount is changed by, `refusals` knows.
        counted = "".join(clause.words_after(token.end, 1))[:1].isdigit()
        return counted or bool(called & _BY) or any(_PEOPLE & {*param.nouns} for param in tool.params)
    return token.low in ("about", "regarding") and bool(called & _ABOUT)


def _leads_nowhere(token: Token, clause: Clause, tool: KnownTool, values: Sequence[Span]) -> bool:
    """Whether a preposition leads neither to a value nor to a thing that the tool speaks of: "with it", "on me", "as
    one", and "those of B4"; "for me" is a courtesy."""
    behind = [each for each in clause.tokens if each.start >= token.end]
    if token.low in _PRONOUNS and behind and behind[0].low == "of":
        return True
    if token.low not in _PREPOSITIONS or not behind:
        return False
    if token.low == "for" and behind[0].low in ("me", "us"):
        return False
    led = next((each for each in behind if each.low not in _ARTICLES), behind[-1])
    if overlaps(led.start, led.end, values):
        return False
    named = any(led.low in parts(param.name) for param in tool.params)
    return led.low in _PRONOUNS or (is_function_word(led.text) and not named)


def _within_values(clause: Clause, own: set[str], used: Sequence[Span], quoted: Sequence[Span]) -> Iterator[Span]:
    """What stands inside of a value and is none of it: "partially" of "200 partially euros", "down" of "billing
    down"."""
    for start, end in used:
        inside = [token for token in clause.tokens if start <= token.start and token.end <= end]
        if len(inside) < 2 or overlaps(start, end, quoted):
            continue
        counted = inside[0].text[:1].isdigit()
        for token in inside:
            between = counted and token not in (inside[0], inside[-1])
            strange = is_adverb(token.low) or (between and not _is_of_an_amount(token))
            last = token is inside[-1]
            strange = strange or (last and counted and _counts_another(token))
            strange = strange or (token in (inside[0], inside[-1]) and token.low in _AFTERWARDS)
            strange = strange or (last and not counted and (token.low.endswith("ed") or token.low in _SPOILT))
            # "20 Kilo Eier" are no 20 pieces of what is called so.
            measured = token is inside[0] and clause.text[:start].rstrip()[-1:].isdigit()
            measured = measured and singular(token.low) in UNITS | _MEASURES
            if measured or (strange and token.text.islower() and not {token.low, token.stem} & own):
                yield token.start, token.end


def _counts_another(token: Token) -> bool:
    """Whether a number is said to count what no tool speaks of, unless that is a unit: "10 nights" of days."""
    known = singular(token.low) in UNITS | _SPANS or len(token.low) < 4 or currency_of(token.low)
    return not known and not _is_of_an_amount(token) and token.text.isalpha()


def _is_of_an_amount(token: Token) -> bool:
    """Whether a word may stand between a number and what it counts: "2 pieces of cake", "4 degrees C"."""
    return is_function_word(token.text) or token.low in UNITS or token.low in ("degree", "degrees", "square", "cubic")


def _of_its_owner(clause: Clause, tool: KnownTool, arguments: dict[str, Any], verb: Token) -> Iterator[Span]:
    """The verb of an order that names only whose the thing is that it is done to: "Split table 5", of what splits "the
    bill of a table"; or from whom it is, right behind it: "Take Bo 20"."""
    after = next((token for token in clause.tokens if token.start >= verb.end and token.low not in _ARTICLES), None)
    if after is None or is_function_word(after.text) or after.text[:1].isdigit() or verb.low in _SETTING:
        return
    said = {token.stem for token in clause.tokens}
    taken = {word for param in tool.params for word in (*param.nouns, *param.stems)}
    done = _OF_A_THING.match(tool.spec.description.strip())
    whose = {stem(word) for word in done["whose"].split()} if done is not None else set[str]()
    if done is not None and taken & whose and not whose & _PEOPLE:
        yield from [(verb.start, verb.end)] if stem(done["what"]) in {*tool.name_stems} - said - taken else []
    for param in tool.params:
        given = arguments.get(param.name)
        if isinstance(given, str) and given.startswith(after.text) and told_leads(tool, param) == {"from"}:
            yield verb.start, after.end


def _about_the_time(clause: Clause, tool: KnownTool, used: Sequence[Span]) -> Iterator[Span]:
    """By what an order is for later, or goes on: "in an hour", "and so on", "Mute it in 2 hours" for 2 hours."""
    said = [*_SO_ON.finditer(clause.text), *_LATER.finditer(clause.text), *_HESITATING.finditer(clause.text)]
    wording = " ".join([*parts(tool.name), tool.spec.description, *(param.description for param in tool.params)])
    quoted = [(value.start, value.end) for value in clause.values if value.kind == "quoted"]
    yield from (match.span() for match in said if not overlaps(*match.span(), used))
    # "Reject it for now" has no reason "now", and "Tell Ann I am fine for now" is told as a whole.
    yield from (m.span() for m in _FOR_NOW.finditer(clause.text) if not any(a < m.start() < b for a, b in used))
    if _DELAYS.search(wording) is None:
        yield from (m.span() for m in _IN_A_WHILE.finditer(clause.text) if not overlaps(*m.span(), quoted))


def _broken_off(clause: Clause, verb: Token, own: set[str], used: Sequence[Span]) -> Iterator[Span]:
    """The small word that an order ends with, which is not all that was to be said: "Close ticket 88 and"; and the
    article behind which no thing stands."""
    last = next((token for token in reversed(clause.tokens) if token.low not in _POLITE), verb)
    placed = last.low in _PLACED & own
    if last.low in _CUT_OFF and not placed and not overlaps(last.start, last.end, used):
        yield last.start, last.end
