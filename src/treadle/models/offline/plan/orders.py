"""Where a clause opens with an order that is none to the tools that are called for it.

"Keep order 7" does not ask what order 7 is, and "Check whether Pia is in" checks nobody in. Called by `account`,
`choice` and `founded`.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from treadle.models.offline.grammar.english import CHANGES, TELLING_VERBS, word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import alike, parts, singular, stem, tokens
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool

Span = tuple[int, int]

# Where they do not open an order, they say no more than "there is".
_ORDERS = word_set("keep hold carry own use run make come go happen follow stand help learn think have let work")
_NO_ORDER = re.compile(
    r"\W*(?:let (?:me|us)\b|have (?:a look|you)\b|work (?:it )?out\b|"
    r"make (?:me )?an? (?:list|table|overview|summary)\b|"
    r"run (?:an? |the |this |my )?(?:check|query|search|report|calculation|numbers)\b|go (?:ahead|through)\b|"
    r"(?:use|run)\b.*\b(?:to|and|for)\b|happen to\b|help me\b|think of\b)",
    re.IGNORECASE,
)
_AWAY = word_set("up down out off away back")
PARTICLES = word_set("up down out off back away over on in left right")
_LEADING_STATE = ("as", "in", "the")
_TAKING = word_set("get give bring take fetch")
_WHETHER = word_set("whether if how when who whose where why which")
_VERB_AND_NAME = re.compile(
    r"\W*(?i:please\s+)?(?P<verb>(?i:look ?up|[a-z]+))\s+"
    r"(?P<what>(?:[\"'“][^\"'“”]+[\"'”]|[\w/.:-]*[./\d][\w/.:-]*|(?:[A-Z][\w-]*\s*)+))(?i:,? please)?[.!\s]*$"
)
_SHOWN = re.compile(
    r"\b(?:(?:show|tell|give|get) (?:me|us)|(?:show|see|get)(?! (?:up|off|out|away|back|rid|to|you|in|on)\b))\b",
    re.IGNORECASE,
)
_POLITE = word_set("please pls plz thx thank thanks you kindly now")
_SAID = ("text", "names", "number")
_BETWEEN = word_set("of is as to the a an")
_MAKING_SURE = word_set("check verify confirm ensure see")
_CHANGING = frozenset().union(*CHANGES)


def ordered_otherwise(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> list[Span]:
    """The verb that a clause opens with, where it orders what none of the tools does: "Hold order 7", "See to it", "Get
    order 7 out"."""
    verb = next((token for token in clause.tokens if token.low == clause.opening), None)
    if verb is None or overlaps(verb.start, verb.end, used):
        return []
    said = {word.low for tool in tools for word in tokens(f"{tool.spec.description} {tool.name.replace('_', ' ')}")}
    if verb.low in _ORDERS:
        plain = verb.low in said or _NO_ORDER.match(clause.text, verb.start) is not None
        return [] if plain else [(verb.start, verb.end)]
    if verb.low == "count" and (counted := _counted(clause, tools, used)) is not None:
        return [counted]
    after = clause.words_after(verb.end, 1)
    last = next((token for token in reversed(clause.tokens) if token.low not in _POLITE), verb)
    noun = any(not tool.may_change and verb.low in parts(tool.name) for tool in tools)
    if noun and after and after[0] in _AWAY - said:
        # "Stock up on nuts" asks for no stock.
        return [(verb.start, verb.end)]
    if verb.low == "see" and after == ("to",):
        return [(verb.start, verb.end)]
    # "Call meeting 7 off", of what calls meetings.
    turned = verb.low in _TAKING or any(tool.may_change for tool in tools)
    away = turned and last.low in _AWAY - said and not overlaps(last.start, last.end, used)
    return [(last.start, last.end)] if away else []


def _made_of_it(tool: KnownTool) -> str | None:
    """What a tool makes of a thing, by the last word of its name: "private" of `make_private`, "Makes a bucket
    private"; None if it says no such thing."""
    made = parts(tool.name)[-1]
    nouns = {noun for param in tool.params for noun in param.nouns}
    told = [token for token in tokens(tool.spec.description) if token.low not in _LEADING_STATE]
    found = any(token.low == made and before.stem in nouns for before, token in pairwise(told))
    # "Marks a mail as read", by its `id`.
    led = rf"\w+ an? [\w-]+ (?:{'|'.join(_LEADING_STATE)}) {re.escape(made)}\b"
    found = found or re.match(led, tool.spec.description.strip(), re.IGNORECASE) is not None
    return made if found and stem(made) not in nouns else None


def lacks_particle(clause: Clause, tool: KnownTool) -> bool:
    """Whether an order has the verb that a tool is called by, and not the word that belongs to it: "check in" is not
    `check_out`."""
    first, second, *_ = (*parts(tool.name), "", "")
    if clause.opening != first:
        return False
    quoted = [(value.start, value.end) for value in clause.values if value.kind == "quoted"]
    if second and (made := _made_of_it(tool)) is not None:
        said = [token.stem for token in clause.tokens if not overlaps(token.start, token.end, quoted)]
        return not any(alike(word, stem(made)) >= 0.8 for word in said)
    little = (second, f"{second}to")
    return second in PARTICLES and not any(
        token.low in little and not overlaps(token.start, token.end, quoted) for token in clause.tokens
    )


def is_done_to_it(clause: Clause, text: str) -> bool:
    """Whether a text is what an order is to be done to: "lathe" of "Start the lathe"."""
    return re.search(rf"\b{re.escape(clause.opening)} the {re.escape(text)}\b", clause.text, re.IGNORECASE) is not None


def _counted(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> Span | None:
    """The many that are to be counted, of a tool that counts one more: of "Count the votes for Ramos" the votes."""
    ones = {word for tool in tools if "count" in (tool.change or ()) for word in tool.name_stems[1:]}
    for token in clause.tokens:
        many = token.stem in ones and singular(token.low) != token.low
        if many and not overlaps(token.start, token.end, used):
            return token.start, token.end
    return None


def options_left(clause: Clause, tools: Sequence[KnownTool], used: Sequence[Span]) -> list[Span]:
    """The options that an order names and that were given nothing: the label of "with label bug"."""
    found = []
    for tool in (each for each in tools if each.may_change):
        options = {word for p in tool.params if not p.required and p.shape in _SAID for word in p.nouns}
        options -= {*tool.name_stems, *(word for p in tool.params if p.required for word in p.nouns)}
        for place, token in enumerate(clause.tokens):
            done = token.low.endswith("ed") and any(len(w) > 2 and token.low.startswith(w) for w in options)
            if not (done or token.stem in options) or overlaps(token.start, token.end, used):
                continue
            behind = [each for each in clause.tokens[place + 1 :] if each.low not in _BETWEEN][:1]
            near = behind if done else [*clause.tokens[max(0, place - 1) : place], *behind]
            if not any(overlaps(each.start, each.end, used) for each in near):
                found.append((token.start, token.end))
    return found


def asks_whether(clause: Clause) -> bool:
    """Whether what looks like an order asks something: "Check whether Pia is in", "Confirm that it is booked"."""
    verb = next((token for token in clause.tokens if token.low == clause.opening), None)
    after = clause.words_after(verb.end, 1) if verb is not None else ()
    if verb is not None and re.match(r"\W*[\"“'`«]", clause.text[verb.end :]):
        # What is quoted is no part of the order.
        return False
    return verb is not None and (
        bool(_WHETHER.intersection(after)) or (after == ("that",) and verb.low in _MAKING_SURE)
    )


def is_its_name(clause: Clause, tool: KnownTool) -> bool:
    """Whether a clause is the verb that is all of the name of a tool that only tells something, and a name: "Look up
    Kim" of `lookup`; or that of one that reads files, and a file: "Read a.txt" of `read_file`."""
    verb, *rest = parts(tool.name) or ("",)
    said = _VERB_AND_NAME.match(clause.text)
    if said is None or tool.may_change or said["verb"].lower().replace(" ", "") != verb:
        return False
    file = said["what"].lower().strip(" .!?\"'“”")
    return not rest or (rest == ["file"] and "." in file) or (len(rest) == 1 and file.endswith(f".{rest[0]}"))


def tells(verb: str) -> bool:
    """Whether a verb asks for something to be told, where no tool is called by it."""
    return verb in TELLING_VERBS and verb not in _CHANGING


def shows(clause: Clause, tool: KnownTool) -> bool:
    """Whether an order says no more than what it is for: "Show me the flights" is asked of `list_flights` as "the
    flights" is; but not "Give up flights"."""
    return _SHOWN.search(clause.text) is not None and not tool.may_change
