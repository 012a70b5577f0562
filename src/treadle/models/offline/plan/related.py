"""What is only told by something else: the class *of Ines*, H3's *site*, *where* H3 is, its *old* site.

The thing beside which it is told is not its name: nobody asked for a class called "Ines", nor for a move to "H3".
Called by `planner` for every call, whoever found its arguments.
"""

import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

from treadle.models.offline.grammar.english import PERSON_WORDS, PLACE_WORDS, word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.affinity import is_free_text
from treadle.models.offline.plan.ties import PEOPLE
from treadle.models.offline.plan.toolbox import KnownTool, Param

# "The city of Bonn" is Bonn.
_CALLED = frozenset(
    stem(word)
    for word in word_set(
        "city town village state province county country region district municipality port island republic kingdom "
        "name title subject topic label month day date year quarter week status state kind type category genre style "
        "language currency unit number code id word phrase term keyword text message reason colour color size"
    )
)
_SETTING = word_set("set change update correct adjust switch make turn edit fix alter amend rename")
_STEPPING = word_set("raise increase lower reduce decrease lift cut reset double halve extend")
_WHICH = word_set(
    "new old other same different next previous former current usual own another original wrong right correct proper "
    "whole entire first second third last final extra additional spare empty full free unused busy broken damaged big "
    "small large little tall short long good bad better best worst nice quiet cheap cheaper expensive nearby nearest "
    "recent late early unpaid overdue open closed inactive active existing missing lost selected chosen given said "
    "remaining favourite favorite similar random suitable particular certain respective more less"
)
_CREATING = word_set("create add register found define invent introduce launch")
_ROLES = word_set(
    "customer client owner tenant guest patient member buyer seller sender recipient supplier vendor manager boss "
    "winner loser driver user employee staff team teacher pupil student parent neighbour neighbor person people "
    "others everyone everybody someone somebody anyone anybody whoever "
    "brother sister mother father mum mom dad parents wife husband partner son daughter child kids family uncle aunt "
    "cousin grandmother grandfather grandma grandpa friend friends girlfriend boyfriend roommate flatmate "
    "colleague colleagues assistant secretary landlord landlady doctor dentist lawyer nurse coach trainer teacher "
    "neighbours neighbors accountant plumber electrician cleaner babysitter contractor visitor passenger"
)
_TAKES_ROLES = frozenset(
    stem(word) for word in word_set("role position job title group audience relation profession team occupation")
)
# What such a parameter takes is no name of anybody.
_REFERENCES = frozenset(
    stem(word)
    for word in word_set(
        "reference ref tracking number no nr serial isbn uuid guid identifier id barcode plate registration vin iban "
        "invoice receipt booking reservation"
    )
)
_ANYBODY = frozenset(map(stem, ("to", "name")))
_PERSONS = frozenset(map(stem, PERSON_WORDS | PEOPLE)) - _ANYBODY
_TOLD_TO = word_set("email mail text message notify remind tell inform invite thank warn alert contact page brief")
_MANY_DOERS = re.compile(r"(?:[a-z]+ )+[a-z]+s|[a-z]+(?:er|or|ist|ant|ent|ee|ian)s")
_OF_SOMEBODY = word_set("of for to by from")
_ARTICLE = r"(?:the|an?|its|his|her|their|my|our|your)"
_WHOSE = re.compile(r"\W*(?:['’]s?|s['’])\s+(?:own\s+)?(\w+)", re.IGNORECASE)
# "Tom's 50", "Tom's to Ann", "the van Tom has to Ann", "Tom's wife's name".
_OF_HIS = re.compile(
    r"['’]s?\s+[$€£]?\d[\d.,]*(?=\W|$)|['’]s(?=\W*(?:$|\s(?:to|for|at|in|on|into|with|by|from|and|or)\b))|"
    r"\s+(?:has|had|owns|holds|uses|called)(?=\s+(?:to|for|on|in|at)\b)|['’]s\s+\w+['’]s(?=\s)"
)
_OF = re.compile(rf"\b(?:(\w+)\s+)?{_ARTICLE}\s+(\w+)\s+of\s+(?:the\s+)?$", re.IGNORECASE)
_WHERE = re.compile(r"\b(?:where|wherever|whoever|whatever|whichever)\s+(?:the\s+)?$", re.IGNORECASE)
_WHAT = re.compile(r"\b(?:what|who|whom|which|how)\s+(?:the\s+)?$", re.IGNORECASE)
# "The ship that carries grain", "the car with the grain".
_THAT = re.compile(r"\b(?:the|an?|any|every)\s+[\w-]+\s+(?:that|with)\s+(?:(?:the|an?)\s+)?$", re.IGNORECASE)
_STAFF = re.compile(r"\s+(?:staff|team|crew|personnel|people|department|employees|workers|members)\b", re.IGNORECASE)
_BEHIND = re.compile(rf"\b{_ARTICLE}\s+$", re.IGNORECASE)
_DESCRIBED = re.compile(
    r"^\W*(?:please\s+)?(\w+)\s+the\s+(\w+)\s+(?:of|at|in|from|with|near|by|for|before|after|behind|beside)\b\s+",
    re.IGNORECASE,
)
_LEADING = word_set("in at on from within near by to into has have had does do did")


def told_by_another(
    clause: Clause,
    tool: KnownTool,
    arguments: dict[str, Any],
    tools: Sequence[KnownTool],
    told: Container[str],
) -> list[str]:
    """The stretches of a clause that tell a thing by another one, which a call takes for the thing itself.

    Args:
        clause: the clause.
        tool: the tool that is to be called.
        arguments: what it is to be called with.
        tools: all tools offered.
        told: the names that results and schemas have told.
    """
    found: list[str] = []
    quoted = {value.text for value in clause.values if value.kind == "quoted"}
    for param in tool.params:
        value = arguments.get(param.name)
        if not isinstance(value, str) or not value or param.enum or value in quoted:
            continue
        for match in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", clause.text, re.IGNORECASE):
            found += _beside(clause.text, match, param, tools)
            if tool.may_change and value not in told:
                found += _named_by_owner(clause, match, tool, param)
                found += _owner_of_it(clause, match, tool, param)
                found += [] if _CREATING & {*parts(clause.text.lower())} else _described_by(clause.text, match, param)
                found += _by_his_part(clause, match, param)
                found += _somebody(clause, match, tool, param)
            if tool.may_change and (of := _OF_HIS.match(clause.text, match.end())) is not None:
                found.append(match.group() + of.group())
            others = {text.lower() for text in arguments.values() if isinstance(text, str)}
            if tool.may_change and (owned := _WHOSE.match(clause.text, match.end())) and owned[1] in others:
                # "Lend Dune's owner"
                found.append(match.group() + owned.group())
            if tool.may_change and (what := _WHAT.search(clause.text[: match.start()])) is not None:
                found.append(what.group() + match.group())
            if tool.may_change and (that := _told_so(clause.text, match, tool, param)):
                found.append(that)
        if tool.may_change and param.shape == "text":
            found += _described(clause.text, value, param)
            if value.islower() and re.match(rf"{_ARTICLE} ", value) and stem(parts(value)[-1]) in param.nouns:
                # "For the same reason" gives none.
                found.append(value)
    return found


def _beside(text: str, match: re.Match[str], param: Param, tools: Sequence[KnownTool]) -> Iterator[str]:
    before, after = text[: match.start()], text[match.end() :]
    owned = _WHOSE.match(after)
    if owned is not None and stem(owned[1].lower()) in param.nouns:
        yield match.group() + owned.group()
    if (led := _WHERE.search(before)) is not None:
        yield led.group() + match.group()
    if (of := _OF.search(before)) is not None:
        noun = stem(of[2].lower())
        other = (of[1] or "").lower() in _LEADING and noun in _names(tools)
        if noun not in _CALLED and (noun in param.nouns or other):
            yield of.group() + match.group()
    if match.group().lower() in _WHICH:
        yield from _described_by(text, match, param)


def _told_so(text: str, match: re.Match[str], tool: KnownTool, param: Param) -> str:
    """What only says which one is meant, or what it has: of "the ship that carries grain" no name is said."""
    that = _THAT.search(text[: match.start()]) if match.group().islower() and not is_free_text(param) else None
    if that is None or (re.search(r"\bwith\s", that.group()) and re.search(r"\bwith\b", tool.spec.description)):
        return ""
    return that.group() + match.group()


def _named_by_owner(clause: Clause, match: re.Match[str], tool: KnownTool, param: Param) -> Iterator[str]:
    """A name where a reference is taken: of "Cancel Nora's booking" and "Send a reminder to Nora" it is whose it is.
    One that stands right behind what is changed, as in "Cancel booking Alpha", may be what it is called."""
    reference = _REFERENCES & {*map(stem, parts(param.name))}
    if not reference or re.search(r"\d", match.group()) or not match.group()[0].isalpha():
        return
    article = _BEHIND.search(clause.text[: match.start()])
    before = (*clause.words_before(article.start() if article is not None else match.start(), 1), "")[0]
    owned = _WHOSE.match(clause.text, match.end())
    name = any(value.kind == "name" and value.text == match.group() for value in clause.values)
    behind = stem(before) in {*tool.name_stems[1:], *param.nouns, *param.stems}
    if owned or before in _OF_SOMEBODY or (name and not behind):
        yield match.group() + (owned.group() if owned else "")


def _somebody(clause: Clause, match: re.Match[str], tool: KnownTool, param: Param) -> Iterator[str]:
    """Somebody who is told by what he is: of "Transfer 50 to my brother" nobody's name is said, but where a role is
    what is taken; nor is it of "Block the spammer", of "engineers", or of those who are told something."""
    last = match.group().rpartition(" ")[2]
    behind = _BEHIND.search(clause.text[: match.start()]) is not None
    if (last in _ROLES or stem(last) in _PERSONS) and match.group().islower() and not _TAKES_ROLES & set(param.nouns):
        yield from [match.group()] if behind or clause.opening not in _CREATING else []
    if not match.group().islower() or not re.fullmatch(r"[^\W\d]+(?: [^\W\d]+)*", match.group()):
        return
    if not (behind or _MANY_DOERS.fullmatch(match.group())):
        return
    article = _BEHIND.search(clause.text[: match.start()])
    before = clause.words_before(article.start() if article is not None else match.start(), 1)
    spoken_to = before == (clause.opening,) and clause.opening in _TOLD_TO
    called = {*param.stems} & _ANYBODY and {stem(word) for word in parts(tool.spec.description)} & _PERSONS
    if {*param.nouns} & _PERSONS or spoken_to or called:
        yield match.group()


def _owner_of_it(clause: Clause, match: re.Match[str], tool: KnownTool, param: Param) -> Iterator[str]:
    """Somebody who has what is changed, where a tool is told which one that is: "Retire Noor's van" to a tool that
    takes its plate, and "Give Noor's van to Ben" to one that takes a van. What is set of somebody, as a salary is, or
    done to somebody, is another matter."""
    owned = _WHOSE.match(clause.text, match.end())
    somebody = any(stem(word) in param.nouns for word in PERSON_WORDS | PLACE_WORDS)
    if owned is None or clause.opening in _SETTING | _STEPPING:
        return
    noun = stem(owned[1].lower())
    attributes = [other for other in tool.params if other is not param and noun in other.nouns]
    moved = re.match(r"\s+(?:[a-z]+\s+)?to\b", clause.text[owned.end() :]) is not None
    moved = moved and any(other.shape == "text" and other.required for other in attributes)
    if moved or (noun in tool.name_stems[1:] and not attributes and not somebody):
        yield match.group() + owned.group()


def _described_by(text: str, match: re.Match[str], param: Param) -> Iterator[str]:
    """A plain word between an article and the thing says which one, and is its name only where that is known."""
    behind = re.match(r"\s+(\w+)", text[match.end() :])
    if not match.group().islower() or not match.group().isalpha() or _BEHIND.search(text[: match.start()]) is None:
        return
    if behind is not None and stem(behind[1].lower()) in param.nouns:
        yield match.group() + behind.group()


def _by_his_part(clause: Clause, match: re.Match[str], param: Param) -> Iterator[str]:
    """Somebody whose figure is changed and who is told by what he is: of "the salary of the manager", or of "Sales
    staff", nobody's name is said."""
    text, setting = clause.text, clause.opening in _STEPPING | _SETTING
    somebody = setting and any(stem(word) in param.nouns for word in PERSON_WORDS)
    plain = match.group().islower() and match.group().isalpha()
    staff = _STAFF.match(text, match.end())
    if somebody and (staff is not None or (plain and _BEHIND.search(text[: match.start()]) is not None)):
        yield match.group() + (staff.group() if staff is not None else "")


def _described(text: str, value: str, param: Param) -> Iterator[str]:
    """Where what is to be changed is told by where it is, or whose: "the hive at Ridge", of which no name is said."""
    match = _DESCRIBED.match(text)
    if match is None or match[1].lower() in _SETTING or stem(match[2].lower()) in _CALLED:
        return
    if stem(match[2].lower()) in param.nouns and value.lower() not in parts(match[2]):
        yield match.group().strip()


def _names(tools: Sequence[KnownTool]) -> frozenset[str]:
    return frozenset(noun for tool in tools for param in tool.params if param.shape == "text" for noun in param.nouns)
