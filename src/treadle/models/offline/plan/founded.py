"""Whether a finished call stands on the words of its question, however its arguments were found.

A last look at a call that may change something, by one that knows nothing of how it was planned: what it is told must
be written in the question in one piece, or come from a result or a list of names, and must be no part of the order
itself. Called by `planner`.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

from treadle.models.offline.grammar.deed_words import DEED_NOUNS, DEED_VERBS
from treadle.models.offline.grammar.english import CHANGES, HANDLING_VERBS, PERSON_WORDS, word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import Token, is_function_word, parts, singular, stem, tokens
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.crossed import crossed, is_quoted
from treadle.models.offline.plan.naming import INFORMATION
from treadle.models.offline.plan.orders import PARTICLES, lacks_particle
from treadle.models.offline.plan.spoken_for import unspoken
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.ties import PEOPLE
from treadle.models.offline.plan.toolbox import KnownTool, Param

Span = tuple[int, int]

_LEADING = word_set("of on at in by with from about against under over for to after before during near into onto")
_CHANGING = frozenset().union(*CHANGES)
# What "of" stands behind is a noun, but for what is disposed of.
_NO_ORDER_OF = (DEED_NOUNS | DEED_VERBS | HANDLING_VERBS | _CHANGING | {"report"}) - {"dispose"}
_TURNING, _WAYS = word_set("turn switch"), word_set("on off")
_QUALITIES = {
    stem("size"): word_set("small medium large big tiny huge"),
    stem("priority"): word_set("high low urgent medium normal"),
    stem("color"): word_set("red green blue black white yellow grey gray brown orange pink purple"),
    stem("colour"): word_set("red green blue black white yellow grey gray brown orange pink purple"),
}
_DIRECTLY = re.compile(r"\s+(?:(?:up|down|out|off|on|in)\s+)?(?:the|an?|this|that|my|our|your|his|her|their)\s+")
_ANY = re.compile(r"\ban?\s+$", re.IGNORECASE)
# "Strike that, Hamlet", "Saw you at 5" and not "Close I-95", "Turn on, tune in"
_THAT = re.compile(
    r"\s+(?:(?:that|this|it|them|those|these)\s*(?:[,;:.!]|$)|(?:you|i|he|she|we|they)\b(?![-.]\w))"
    r"|(?:\s+(?:on|off|up|down|in|out))?,",
    re.IGNORECASE,
)
# "Call me Ishmael", "Call Ann a liar"
_NAMED = re.compile(r"\s+(?:me|us|him|her|it|them|myself|this|that)\b|.* an? [\w-]+\W*$", re.IGNORECASE)
# "Remind me of invoice 7" of what reminds its customer
_TO_ME = re.compile(r"\s+(?:me|us|him|her|them|myself|yourself)\s+(?:of|about|that)\b", re.IGNORECASE)
_NUMBERED = word_set("code number no nr")
# By these people are called.
_FIRST_NAMES = word_set(
    "bill mark rob sue grant chase frank rose page skip pat drew nick jack grace hope peg pierce lance josh tuck flip "
    "buck dash trip tip ward wade harry chip ray carol will dean drew guy pearl rod rip hunter reed stew gene bob"
)
_PEOPLE = frozenset(stem(word) for word in PERSON_WORDS | PEOPLE)
# A number is that by itself, or goes there.
_PAID = frozenset(
    stem(word) for word in word_set("money payment amount fund cash sum account wallet balance to from for by with")
)
_UPDATING = word_set("update change modify edit adjust")
# What is called by plain words, as kitchens and goats are.
_CALLED_BY_WORDS = frozenset(
    stem(word)
    for word in word_set(
        "room place area target item thing object product device appliance animal plant dish drink food"
    )
)
_CALLED_BY_A_DEED = frozenset(map(stem, ("task", "todo", "chore", "reminder")))
_EVERY = word_set("all everything everyone everybody both any")
_ANYWHERE = word_set(
    "everywhere anywhere somewhere nowhere elsewhere myself yourself himself herself itself ourselves yourselves "
    "themselves whoever whatever whichever"
)
# "Play dead", "Hold still": how one does it, and nothing that it is done to.
_SO = word_set("dead fair nice dirty safe rough tight loose free clean quiet still sick silly cool")
# "in time", "with care"
_MANNERS = word_set("time advance part vain peace haste full care caution respect pleasure joy love")
_SAID = re.compile(r"\b(?:that|because(?: of)?|saying|says)\b", re.IGNORECASE)
# What may stand beside a word that went into an argument, and is no part of it.
_OPENS = re.compile(r"[\s\"'“”‘’«»„(:;,#]")
_CLOSES = re.compile(r"$|[\s\"'“”‘’«»):;,!?…€$£¥%]|\.(?!\w)")
_MERE = re.compile(r"\W*(?:(?:the|an?|of|my|our)\b\W*)*", re.IGNORECASE)


def unfounded(
    clause: Clause, tool: KnownTool, arguments: dict[str, Any], told: Collection[str], used: Sequence[Span]
) -> list[str]:
    """The words of a clause by which a call is not the one that is asked for; none if it stands on them.

    Args:
        clause: the clause.
        tool: the tool that is to be called.
        arguments: what it is to be called with.
        told: what results and lists have told, which an argument may be as well.
        used: the stretches that went into arguments.
    """
    found = [clause.text[start:end] for start, end in _other_verb(clause, tool, used)]
    found += [clause.text[start:end] for start, end in unspoken(clause, tool, arguments, used)]
    found += _cut_off(clause, used) if tool.change is not None else []
    found += _of_nothing(clause, tool, arguments) + crossed(clause, tool, arguments)
    spare = {word for param in tool.params if param.name not in arguments for word in param.nouns}
    qualities = frozenset[str]().union(*(words for kind, words in _QUALITIES.items() if kind in spare))
    for param in tool.params:
        for text in values_in(arguments.get(param.name)):
            if not isinstance(text, str) or text in {str(each) for each in param.enum}:
                continue
            if _is_the_order(clause, text):
                # "Bill 20 euros" may speak of Bill, and bills nobody.
                found.append(text)
            if text in told:
                continue
            found += _not_written(clause, param, text) or _of_another_kind(clause, tool, param, text)
            found += [text] if _is_no_name(clause, param, text) or _is_no_code(clause, param, text) else []
            if not fits.is_free_text(param) and text.islower() and text in clause.text:
                aside = param.shape == "text" and re.search(rf",\s*(?:just|only)\s+{re.escape(text)}\b", clause.text)
                # Nobody is called "kidding" in "…, just kidding".
                found += [text] if aside else []
            # A quotation that is not closed, or was not opened, does not say what is to be passed.
            found += ['"'] if '"' in text else []
            first, *rest = text.split() or [""]
            if re.search(r"\d|\w\.\w", first) and any(re.fullmatch(r"[a-z-]{4,}", each) for each in rest):
                # "Menu.pdf double-sided" is no file.
                found += rest if not is_quoted(clause, clause.text.find(text)) else []
            if rest and first in qualities:
                # "A large tea" is no drink of that name, where there is a size to be told.
                found.append(first)
    return found


def _of_nothing(clause: Clause, tool: KnownTool, arguments: dict[str, Any]) -> list[str]:
    """The verb of an order that does not say what is done to what, though it lacks no argument: "Stop" of `stop_all`,
    "Strike that", "Update Kim" where nothing is to be other."""
    verb = next((token for token in clause.tokens if token.low == clause.opening), None)
    if verb is None:
        return []
    said = {token.stem for token in clause.tokens if token is not verb}
    alone = not tool.params and len(tool.name_stems) > 1 and not said & {*tool.name_stems}
    options = [p for p in tool.params if not p.required and p.shape != "boolean"]
    same = verb.low in _UPDATING and len(tool.required) == 1 and len(options) > 1
    same = same and not any(param.name in arguments for param in options)
    naming = verb.low == "call" and _NAMED.match(clause.text, verb.end)
    said_to_me = any(fits.is_free_text(param) for param in tool.params if param.name in arguments)
    naming = naming or (not said_to_me and _TO_ME.match(clause.text, verb.end))
    nothing = _is_of_nothing_said(tool, arguments, said)
    return [verb.text] if alone or same or naming or nothing or _THAT.match(clause.text, verb.end) else []


def _is_of_nothing_said(tool: KnownTool, arguments: dict[str, Any], said: Collection[str]) -> bool:
    """Whether an order gives somebody a number, and does not say of what: of "Pay Rosa 500" nobody knows that it is the
    bonus that `pay_bonus` pays."""
    given = [param for param in tool.params if param.name in arguments]
    named = [_PEOPLE & {*param.nouns} for param in given if param.shape != "number"]
    somebody = bool(named) and all(named)
    number = any(param.shape == "number" for param in given)
    taken = {word for param in tool.params for word in (*param.nouns, *param.stems)}
    things = {*tool.name_stems[1:]} - taken - _PEOPLE - _PAID - {stem(word) for word in PARTICLES}
    return somebody and number and bool(things) and not things & {*said}


def values_in(value: Any) -> Iterator[Any]:
    """The single values of an argument or a result, those of lists and fields among them."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from values_in(inner)
    elif value is not None:
        yield value


def _cut_off(clause: Clause, used: Sequence[Span]) -> list[str]:
    """What went into an argument without the signs that belong to it: ".env" is no "env", "a/b" no "b". So is
    the small word that a name opens with."""
    found: list[str] = []
    for start, end in used:
        start += len(clause.text[start:end]) - len(clause.text[start:end].lstrip(" :,;"))
        opened = start == 0 or _OPENS.match(clause.text[start - 1]) is not None
        opened = opened or (clause.text[start - 1] in "€$£¥" and clause.text[start].isdigit())
        before = next((token for token in reversed(clause.tokens) if token.end <= start), None)
        taken = before is not None and overlaps(before.start, before.end, used)
        if before is not None and not taken and not is_quoted(clause, before.start) and _opens_a_name(clause, before):
            found.append(clause.text[before.start : end])
        worded = re.search(r"\w", clause.text[start:end]) is not None
        if worded and not (opened and _CLOSES.match(clause.text, end)):
            found.append(clause.text[max(0, start - 1) : end + 1])
    return found


def _opens_a_name(clause: Clause, token: Token) -> bool:
    """Whether a small word is written large where none is that belongs to no name: "A" of "Please hang A Girl"."""
    plain = any(other.text.islower() for other in clause.tokens)
    return plain and token.start > 0 and token.text.istitle() and token.text != "I" and is_function_word(token.text)


def _other_verb(clause: Clause, tool: KnownTool, used: Sequence[Span]) -> list[Span]:
    """Where the verb is another one than the tool's by the little word that belongs to it: "check in" for `check_out`,
    "check" for it, "scale down" for `scale`."""
    verb = next((token for token in clause.tokens if token.low == clause.opening), None)
    if verb is None:
        return []
    after = next((token for token in clause.tokens if token.start >= verb.end), None)
    second = (*parts(tool.name), "", "")[1]
    if lacks_particle(clause, tool):
        return [(verb.start, after.end if after is not None and after.low in PARTICLES else verb.end)]
    said = {token.low for token in clause.tokens if not is_quoted(clause, token.start)}
    called = {token.low for token in tokens(f"{' '.join(parts(tool.name))} {tool.spec.description}")}
    ways = _WAYS & called
    if verb.low in _TURNING and len(ways) == 1 and not ways & said:
        # To turn something on is not to turn it off.
        return [(verb.start, verb.end)]
    things = {*parts(tool.name), *(word for param in tool.params for word in parts(param.name))}
    if after is not None and after.low in INFORMATION - things and not is_quoted(clause, after.start):
        # "Seal details of C-7" seals nothing.
        return [(verb.start, after.end)]
    led = after
    if after is not None and after.low == second and second in PARTICLES:
        # "Check in with member 7" checks nobody in.
        led = next((token for token in clause.tokens if token.start >= after.end), None)
    if led is not None and _is_led(clause, tool, verb.low, led, called):
        # To report on an item is not to report it, and the "attack of the dragon" is no order.
        return [(verb.start, led.end)]
    return []


def _of_another_kind(clause: Clause, tool: KnownTool, param: Param, text: str) -> list[str]:
    """A plain word for a thing, where what the order is done to is another thing: "Lock the car" is none to a tool that
    locks doors, "Turn on the heater" none to one that turns on the lights in a room."""
    verb = next((token for token in clause.tokens if token.low == clause.opening), None)
    place = clause.text.find(text)
    plain = text.islower() and re.fullmatch(r"[a-z -]+", text) is not None
    # "Mark the bins as done" names a task, as nobody names a book.
    plain = plain and not ("title" in parts(param.name) and _CALLED_BY_A_DEED & {*tool.name_stems})
    if verb is None or not plain:
        return []
    if not _DIRECTLY.fullmatch(clause.text[verb.end : max(place, 0)]):
        # "Give Rex a bath", of a tool that gives dogs to families.
        any_one = place > 0 and _ANY.search(clause.text[:place]) is not None and not fits.is_free_text(param)
        known = {token.stem for token in clause.tokens} | _CALLED_BY_WORDS
        return [text] if any_one and not known & {*param.nouns} else []
    verbs = {stem(each) for each in tool.change or () if each == verb.low or each in _CHANGING} | PARTICLES
    things = {word for word in tool.name_stems if word not in verbs}
    said = {token.stem for token in clause.tokens}
    if said & (things | {*param.nouns}) or (_CALLED_BY_WORDS & {*param.nouns} and not things - {*param.nouns}):
        return []
    return [text]


def _is_led(clause: Clause, tool: KnownTool, verb: str, after: Token, called: Collection[str]) -> bool:
    """Whether a preposition that the tool's own verb does not take stands right behind the verb of an order."""
    named = any(value.start <= after.start < value.end for value in clause.values)
    if after.low not in _LEADING or named:
        return False
    if after.low != "of":
        # "Ship to Oslo" of what takes `to`, but not "Blast at face 2" of what takes a time `at`.
        leads = any(not clause.text[after.end : value.start].strip() for value in clause.values)
        taken = {word for param in tool.params for word in parts(param.name)} if leads else set[str]()
        return after.low not in {*called, *taken}
    told = [*parts(tool.name), "", *(token.low for token in tokens(tool.spec.description))]
    # "Merge of one term into another" describes an order, and is none.
    return verb in _NO_ORDER_OF or all(
        word != "of" or singular(before) not in tool.called | {verb} for before, word in pairwise(told)
    )


def _not_written(clause: Clause, param: Param, text: str) -> list[str]:
    """The words that an argument was made of where it is not written in one piece, or is a part of the order, or only
    a part of what somebody is to be told."""
    if (
        text == clause.reason
        or _is_moment(text)
        or fits.is_zone(param)
        or fits.is_currency(param)
        or fits.is_weekday(param)
    ):
        return []
    wanted = [token.stem for token in tokens(text)]
    if not wanted:
        # Signs alone.
        return [] if text in clause.text else [text]
    spans = [
        (clause.tokens[at].start, clause.tokens[at + len(wanted) - 1].end)
        for at in range(len(clause.tokens) - len(wanted) + 1)
        if [token.stem for token in clause.tokens[at : at + len(wanted)]] == wanted
    ]
    if _flat(text) in _flat(clause.text):
        spans = spans or [(0, 0)]
    if not spans:
        scattered = [token for token in clause.tokens if token.stem in wanted]
        if not scattered:
            return [text]
        return [clause.text[scattered[0].start : scattered[-1].end]]
    quoted = [span for span in spans if is_quoted(clause, span[0])]
    opening = next((token for token in clause.tokens if token.low == clause.opening), None)
    if not quoted and opening is not None and all(span[0] == opening.start and span[1] for span in spans):
        return [text]
    if not quoted and _flat(text) in _EVERY and clause.words_before(spans[0][0], 1) == (clause.opening,):
        # "Remove All" may mean each of them.
        return [text]
    if not quoted and text in _ANYWHERE:
        return [text]
    if not quoted and fits.is_free_text(param) and param.required:
        return _half_said(clause, spans[0])
    return []


def _is_the_order(clause: Clause, text: str) -> bool:
    """Whether a text stands in an order as nothing but its verb."""
    opening = next((token for token in clause.tokens if token.low == clause.opening), None)
    wanted = [token.low for token in tokens(text)]
    places = [token for token in clause.tokens if [token.low] == wanted]
    return opening is not None and places == [opening]


def _is_no_name(clause: Clause, param: Param, text: str) -> bool:
    """Whether a plain word is what a thing is, and not what one is called: "station" of "Go to the station"."""
    plain = text.islower() and " " not in text and not is_quoted(clause, clause.text.find(text))
    # "Bill joined for 20 euros" may tell what Bill did.
    first = clause.words_after(0, 2) == (clause.opening, text) and clause.opening in _FIRST_NAMES
    first = (
        first and clause.tokens[0].text.istitle() and not {stem(word) for word in PERSON_WORDS}.isdisjoint(param.nouns)
    )
    so = text in _SO and clause.words_before(clause.text.find(text), 1) == (clause.opening,)
    so = so or (text in _MANNERS and clause.words_before(clause.text.find(text), 1) in (("in",), ("with",)))
    return plain and (first or so or singular(text) in parts(param.name))


def _is_no_code(clause: Clause, param: Param, text: str) -> bool:
    """Whether a text is a mere word where a code or a number is wanted: "Hamlet" of "Cancel Hamlet", of what takes the
    code of a booking."""
    wanted = _NUMBERED & set(parts(param.name)[-1:]) and not fits.is_free_text(param)
    shown = any(re.search(r"\d", each) is None for each in param.examples)
    led = set(clause.words_before(clause.text.find(text), 1)) & {*parts(param.name)}
    return bool(wanted) and not shown and not led and text.isalpha() and not text.isupper()


def _half_said(clause: Clause, span: Span) -> list[str]:
    """What somebody is to be told, where an argument holds only a part of it: "late" of "that the bus is late"."""
    leads = [match for match in _SAID.finditer(clause.text) if match.end() <= span[0]]
    if leads and _MERE.fullmatch(clause.text[leads[-1].end() : span[0]]) is None:
        return [clause.text[leads[-1].start() : span[1]]]
    return []


def _flat(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def _is_moment(text: str) -> bool:
    """Whether it is a day, a month or a time, which are told in another form than they were written in."""
    return re.fullmatch(r"\d{4}(?:-\d{2}){0,2}|\d{1,2}:\d{2}(?::\d{2})?", text) is not None
