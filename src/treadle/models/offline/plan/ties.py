"""What ties a value to a parameter: a noun beside it, the preposition that leads it, what the tool says of itself.

A tool that may change something and takes several texts must not get one of them for want of a better: of "Cancel
Ruth's pilates" no word says that pilates is a reason. Called by `arguments` when all is handed out.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from treadle.models.offline.grammar.english import PERSON_WORDS, PLACE_WORDS, TITLE_WORDS, word_set
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import is_function_word, parts, stem, tokens
from treadle.models.offline.plan import affinity as fits
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool, Param

Given = Sequence[tuple[Param, Value]]

_ARTICLES = word_set("a an the one this another new some my our your his her their")
_NAMING = word_set("is are was number no nr id code called named titled")
_OPPOSITE = {"from": ("to", "into", "onto"), "to": ("from",), "into": ("from",), "onto": ("from",)}
_SPEECH = re.compile(
    r"(?:\b(?:because(?: of)?|due to|since|about|regarding|saying|says|concerning|that)\W*(?:the |an? )?|:\s*)$"
)
_SAYING = re.compile(r"(?<=\s)(?:saying|that says|which says|that reads|reading)(?= ?[:,]? ?[\"“'‘«„]?$)")
_UP_TO = re.compile(r"\bup to (?:the )?$", re.IGNORECASE)
_OF_PEOPLE = word_set("for to by of with")
# "Give Bob 3 potions"
_HOW_MUCH_OF_IT = re.compile(r"\s+(?:\d|an?\s)")
_AT = word_set("to into in on onto at")
PEOPLE = word_set(
    "doctor teacher driver nurse agent trainer coach tutor lawyer landlord host sender receiver payee buyer seller "
    "artist author writer composer director painter adopter worker mayor keeper "
    "athlete child adult parent relative heir witness judge hero captain pilot waiter actor "
    "supplier vendor singer technician resident friend"
)
_OF_PLACES = word_set("in at near from to on")
_TITLED = re.compile(r"(?:Mrs?|Ms|Miss|Dr|Prof)\b")
_DIRECTED = word_set("and or to into onto from with without by about against via")
_SETTING = word_set("set change update adjust modify switch")
_FILLING = word_set("fill refill drain empty pump charge inflate deflate dilute")
_LEVELS = word_set("to target level until")
_OBJECT = "<object>"
_MANY = 5


def settle(tool: KnownTool, out: Filling, clause: Clause, render: Callable[[Param, Value], Any]) -> None:
    """Hands out anew what the words tie to other parameters, takes back what nothing ties to its own, and says which
    values may be either.

    Args:
        tool: the tool.
        out: what the clause gives it; changed.
        clause: the clause.
        render: writes a value as a parameter takes it.
    """
    if not out.spread:
        out.given = _handed_out(tool, out.given, clause)
        for param, value in out.given:
            if param.shape == "text" and param.name in out.arguments:
                out.arguments[param.name] = render(param, value)
        for param, value in _untied(tool, out.given, clause):
            if out.arguments.pop(param.name, None) is not None:
                out.used = [span for span in out.used if not overlaps(value.start, value.end, [span])]
    out.used += _leads_spoken_of(tool, out.given, clause)
    out.used += [m.span() for p, v in out.given if fits.is_free_text(p) and (m := _quoted_by(v, clause)) is not None]
    if not out.spread and _loose(tool, out.given):
        # Each of several is looked at by itself.
        out.unclear = _unclear(tool, out.given, clause)


@lru_cache(maxsize=2048)
def _leads(description: str, nouns: tuple[str, ...]) -> frozenset[str]:
    """The words that lead a noun where a tool describes itself: "to" for the channel of "Invites a user to a channel",
    and a sign of its own for the user, whom the verb has right behind it."""
    words = tokens(re.split(r"(?<=[.!?])\s|\n", description.strip(), maxsplit=1)[0])
    found = set()
    for place, word in enumerate(words):
        if word.stem not in nouns:
            continue
        at = place - 1
        while at > 0 and not is_function_word(words[at].text) and words[at].low not in _ARTICLES:
            # "a delivered order", "the shipping address"
            at -= 1
        at -= at > 0 and words[at].low in _ARTICLES
        if at >= 0 and is_function_word(words[at].text):
            found.add(words[at].low)
        elif at == 0:
            found.add(_OBJECT)
    return frozenset(found)


def told_leads(tool: KnownTool, param: Param) -> frozenset[str]:
    """The prepositions that a tool's description has before the noun of a parameter."""
    return _leads(tool.spec.description, own_nouns(param)[-1:])


def own_nouns(param: Param) -> tuple[str, ...]:
    """The nouns of a parameter that its name holds: a plain `name` is a name, and none of what the tool speaks of."""
    return tuple(noun for noun in param.nouns if noun in param.stems) or param.stems


def is_led_astray(tool: KnownTool, param: Param, value: Value, clause: Clause) -> bool:
    """Whether a clause leads a value the other way than the tool says: "to Market Square" is no stop that a bus leaves
    "from"."""
    led, told = fits.led_by(param, value, clause), told_leads(tool, param)
    if value.kind == "number":
        # To heal somebody by 20 points is not to heal him to 20.
        said = {token.low for token in tokens(tool.spec.description)}
        if led == "of" and stem(clause.words_before(value.start, 2)[-1]) in param.nouns:
            # "To a factor of 10"
            behind = clause.words_before(value.start, 5)[2:]
            led = next((word for word in behind if word not in _ARTICLES), led)
        if tool.change is not None and led == "to" and clause.opening in _FILLING and "to" not in said:
            # What is drained to 20 percent is not drained of 20.
            return not _LEVELS & {*parts(param.name)}
        return tool.change is not None and led in ("by", "to") and said & {"by", "to"} == {"to", "by"} - {led}
    if led == "for" and tool.change is not None and "payee" in parts(param.name):
        # "Pay 50 for Will" pays somebody else.
        return "for" not in told
    if led == "of" and tool.change is not None and "of" not in told and param.shape == "text":
        # "Lend the rest of Emma" lends nothing to Emma.
        return bool(told & _AT) and value.kind != "quoted"
    return not fits.direction(param) and led not in told and bool(told & set(_OPPOSITE.get(led, ())))


def _quoted_by(value: Value, clause: Clause) -> re.Match[str] | None:
    """What says no more than that a text follows: "saying" of `a note saying "call me"`."""
    return _SAYING.search(clause.text[: value.start]) if value.kind == "quoted" else None


def _leads_spoken_of(tool: KnownTool, given: Given, clause: Clause) -> list[tuple[int, int]]:
    """Where the words stand that lead a value as the tool's description leads its parameter: "under" in "under a
    name"."""
    found = []
    for param, value in given:
        skipped = [token for token in clause.tokens if token.end <= value.start and token.low not in _ARTICLES]
        leads = [token for token in skipped if token.stem not in own_nouns(param)][-1:]
        found += [(token.start, token.end) for token in leads if token.low in told_leads(tool, param)]
    return found


def is_numbered(tool: KnownTool, param: Param, value: Value, clause: Clause) -> bool:
    """Whether a number says which one of what a tool calls by its noun and the parameter's: "bus 7" for the line of "a
    bus line"."""
    before = clause.words_before(value.start, 1)
    if _UP_TO.search(clause.text[: value.start]) and param.required:
        return any(told.split()[-1] in param.name for told in re.findall(r"\bup to an? \w+", tool.spec.description))
    integer = (
        value.kind == "number" and param.shape == "number" and "number" not in param.types and value.text.isdigit()
    )
    if not integer or not before or is_function_word(before[0]):
        return False
    said = re.findall(
        rf"\b{re.escape(before[0])} (?:(?:of|at) (?:an? |the )?)?(\w+)", tool.spec.description, re.IGNORECASE
    )
    # "Item 2" of "a todo item".
    said += re.findall(rf"\b(\w+) {re.escape(before[0])}\b", tool.spec.description, re.IGNORECASE)
    if not {*param.nouns} - {"number", "id", "no", "nr", stem("name")} and tool.name_stems[-1:] != param.nouns:
        # "Episode 7", of a tool that tells of "an episode" by its `number`.
        said += [param.nouns[0]] if re.search(rf"\ban? {re.escape(before[0])}\b", tool.spec.description, re.I) else []
    return any(stem(word) in param.nouns for word in said)


def how_plainly(tool: KnownTool, param: Param, value: Value, clause: Clause) -> int:
    """How plainly a clause says that a value is a parameter's: 0 if it does not."""
    # "Lena as white"
    after = re.match(r"[\"”']?\s+(?:as (?:the |an? )?)?([\w-]+)", clause.text[value.end :])
    led = fits.led_by(param, value, clause)
    if value.period is not None and (end := fits.end_of_two(value, clause)):
        return 5 * (end == fits.direction(param))
    if fits.direction(param) and led in _OPPOSITE:
        return 5 * ((led,) in fits.prepositions(param))
    typed = value.kind in ("email", "period", "time") or fits.is_date(param) or fits.is_time(param)
    if typed or (fits.is_version(param) and re.search(r"\d", value.text)):
        return 4 * (fits.affinity(param, value, clause) > 0)
    if (_is_beside(param, value, clause) and led != "of") or (after and stem(after[1]) in own_nouns(param)):
        return 4
    told = told_leads(tool, param)
    people = is_of_people(param)
    person = people and value.kind != "code"
    if led in ("to", "into") and _is_set(param, value, clause):
        return 4
    unsaid = led in ("to", "into") and clause.command in _SETTING and "to" not in told
    if unsaid or is_called_another(tool, param, value, clause):
        # What is set to something has to be said: of "Change Sales to Ute" either may be the department.
        return 0
    if led in told or (led and (led,) == parts(param.description)[:1]):
        # "From where it was seen"; of two that are so led, "for Hamlet for Ms Voss", who has a title is somebody.
        return 3 + (person and _TITLED.match(value.text) is not None)
    if led == "of" and _is_measured(value, clause):
        # "2 tickets of Gala" are of nobody, and of what the tool says that it does something to.
        objects = [each for each in tool.params if _OBJECT in told_leads(tool, each)]
        return 0 if people else 3 * (param in objects or not objects)
    if led == "by" and not people:
        return 0
    if led in ("to", "into") and told & _AT:
        return 2
    if fits.is_free_text(param):
        said = value.kind == "quoted" or _SPEECH.search(clause.text[: value.start].lower())
        return 3 if said else 0
    if value.kind == "quoted" and any(stem(word) in param.nouns for word in TITLE_WORDS):
        return 3
    commanded = _is_commanded(tool, value, clause)
    # "Sell Uwe 2 tickets for Gala"
    given = value.kind == "name" and _HOW_MUCH_OF_IT.match(clause.text, value.end) is not None
    to_another = given and not person and any(is_of_people(each) for each in tool.params)
    bare = not is_function_word(led) or led in ("", *parts(tool.name))
    if _OBJECT in told and commanded and not to_another and bare:
        return 2
    place = any(stem(word) in param.nouns for word in PLACE_WORDS)
    owned = clause.text[value.end : value.end + 2] in ("'s", "’s", "' ", "’ ")
    if value.text.startswith("Dr") and {"doctor", "physician"} & set(param.nouns):
        return 3
    if person and (led in _OF_PEOPLE or owned or _TITLED.match(value.text)):
        return 1 + (bool(_TITLED.match(value.text)) or led == "by")
    if person and given:
        return 2
    if person and value.kind == "name" and [each.kind for each in clause.values].count("name") == 1:
        return 1
    return 1 if place and led in _OF_PLACES else 0


def is_called_another(tool: KnownTool, param: Param, value: Value, clause: Clause) -> bool:
    """Whether a value stands behind the noun of another parameter: S1 of "a picture of satellite S1" is no place."""
    before = next(iter(clause.words_before(value.start, 1)), "")
    if not before or before == clause.opening or stem(before) in {*param.nouns, *param.stems}:
        return False
    return any(stem(before) in own_nouns(other)[-1:] for other in tool.params if other is not param)


def _is_commanded(tool: KnownTool, value: Value, clause: Clause) -> bool:
    """Whether nothing but the tool's own words stands before a value."""
    return not any(
        token.end <= value.start and not is_function_word(token.text) and token.stem not in tool.name_stems
        for token in clause.tokens[1:]
    )


def is_of_people(param: Param) -> bool:
    """Whether what a parameter takes is somebody."""
    return any(stem(word) in param.nouns for word in PERSON_WORDS | PEOPLE)


def _is_measured(value: Value, clause: Clause) -> bool:
    """Whether a value is what a quantity before it is of: the drug of "50 mg of Carprofen"."""
    number = next((v for v in reversed(clause.values) if v.kind == "number" and v.end <= value.start), None)
    return (
        number is not None and re.fullmatch(r"\s*[^\W\d]+\s+of\s+", clause.text[number.end : value.start]) is not None
    )


def _is_beside(param: Param, value: Value, clause: Clause) -> bool:
    """Whether the noun of a parameter, or its whole name, stands before a value."""
    named = clause.words_before(value.start, len(param.stems))
    whole = clause.opening not in named and len(named) == len(param.stems)
    whole = whole and tuple(stem(word) for word in reversed(named)) == param.stems
    nearest = next((w for w in clause.words_before(value.start, 4) if w not in _ARTICLES | _NAMING), "")
    return whole or (stem(nearest) in own_nouns(param) and nearest != clause.opening)


def _is_set(param: Param, value: Value, clause: Clause) -> bool:
    """Whether a clause speaks of what a parameter is, before "to": "the mayor of Husum to Ida", "Husum's mayor to"."""
    said = [token for token in clause.tokens if token.end <= value.start and token.stem in own_nouns(param)]
    return any(
        clause.words_after(token.end, 1) in (("of",), ("for",), ("to",))
        or clause.words_after(token.end, 2) == ("number", "of")
        or clause.text[: token.start].rstrip().endswith(("'s", "’s", "s'"))
        for token in said
    )


def _loose(tool: KnownTool, given: Given) -> list[tuple[Param, Value]]:
    texts = [(param, value) for param, value in given if param.shape in ("text", "names")]
    return texts if tool.spec.changes is not False and len(texts) > 1 else []


def _untied(tool: KnownTool, given: Given, clause: Clause) -> list[tuple[Param, Value]]:
    """What was given to an option, or to a text of any kind, that the clause does not say is one."""
    loose = _loose(tool, given)
    optional = [(p, v) for p, v in loose if not p.required or fits.is_free_text(p)]
    return [(param, value) for param, value in optional if not how_plainly(tool, param, value, clause)]


def _ranked(tool: KnownTool, loose: Given, clause: Clause) -> list[tuple[int, tuple[Value, ...]]]:
    """The ways in which the values may be handed out to these parameters, the one that the words say most plainly
    first; the one that there is comes first among equals."""
    ways = itertools.permutations(value for _, value in loose)
    sums = [
        (sum(how_plainly(tool, param, value, clause) for (param, _), value in zip(loose, way, strict=True)), way)
        for way in ways
    ]
    return sorted(sums, key=lambda each: -each[0])


def _handed_out(tool: KnownTool, given: Given, clause: Clause) -> list[tuple[Param, Value]]:
    """The same values, each with the parameter that the words tie it to."""
    loose = [(param, value) for param, value in _loose(tool, given) if param.shape == "text"]
    if not 1 < len(loose) <= _MANY:
        return list(given)
    best = _ranked(tool, loose, clause)[0][1]
    return [pair for pair in given if pair not in loose] + [
        (param, value) for (param, _), value in zip(loose, best, strict=True)
    ]


def _unclear(tool: KnownTool, given: Given, clause: Clause) -> tuple[Value, Value, Param, Param] | None:
    """Two values that two parameters were given, of which nothing says which is which; None if there are none."""
    loose = _loose(tool, given)
    unsaid = [pair for pair in loose if not how_plainly(tool, *pair, clause)]
    ranked = _ranked(tool, loose[:_MANY], clause) if loose else []
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        unsaid = [pair for pair, value in zip(loose, ranked[1][1], strict=False) if pair[1] is not value]
    elif (mixed := _mixed_up(loose)) is not None:
        unsaid = list(mixed)
    elif not unsaid or (len(unsaid) == 1 and _may_be_the_rest(unsaid[0][1], clause)):
        return None
    elif [value.kind for _, value in unsaid] == ["quoted"] and all(
        _is_beside(*pair, clause) for pair in loose if pair not in unsaid
    ):
        # 'Label sample L4 "toxic"' says which is the sample.
        return None
    (this, one), (that, other) = (*unsaid, *(pair for pair in loose if pair not in unsaid))[:2]
    return one, other, this, that


def _mixed_up(loose: Given) -> tuple[tuple[Param, Value], tuple[Param, Value]] | None:
    """A mere word for somebody and a name for something else: of "Grant the lab access to Jette" both are the wrong way
    round."""
    people = {stem(word) for word in PERSON_WORDS | PEOPLE}
    somebody = [
        (p, v)
        for p, v in loose
        if people & set(p.nouns) and (v.kind == "code" or (v.kind == "phrase" and v.text.islower()))
    ]
    something = [(p, v) for p, v in loose if not people & set(p.nouns) and v.kind == "name"]
    doctors = [(p, v) for p, v in loose if {"doctor", "physician"} & set(p.nouns) and not v.text.startswith("Dr")]
    titled = [pair for pair in loose if pair[1].text.startswith("Dr.") and pair not in doctors]
    if doctors and titled and not {"doctor", "physician"} & set(titled[0][0].nouns):
        # "Refer Dr. Vogt to Tim Wolf"
        return titled[0], doctors[0]
    return (somebody[0], something[0]) if somebody and something else None


def _may_be_the_rest(value: Value, clause: Clause) -> bool:
    """Whether the one value that nothing ties may be what is left: not if words say what it is to what is done, nor if
    it only stands beside another one, as in "Enroll Mia Chemistry"."""
    led = next((word for word in clause.words_before(value.start, 2) if word not in _ARTICLES), "")
    before = [other for other in clause.values if other.end <= value.start and other.kind != "number"]
    beside = any(clause.text[other.end : value.start].strip(" ,") == "" for other in before)
    return led not in _DIRECTED and not beside
