"""Of what kind an answer has to be: a time for "when", somebody for "who", a number for "how many".

A tool that was asked may tell of the right thing, and not what was asked of it. Called by `planner` once there is a
result.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from treadle.models.offline.grammar.english import CHANGES, MONTHS, PLACE_WORDS, WEEKDAYS, word_set
from treadle.models.offline.grammar.meaning import same_unit
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import alike, is_function_word, parts, singular, stem, tokens
from treadle.models.offline.plan.results import Field, fields_of, number_of, only_list, rows_of
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool

_WHEN = re.compile(
    r"^\W*(?:and |so |then )?(when\b(?=\W+(?:is|are|was|were|do|does|did|has|have|had|will|can|must|should)\b)|"
    r"(?:on|in|since|until|from|by) (?:which|what) (?:day|date|month|year|time)s?\b|(?:which|what) (?:day|date)s?\b)",
    re.IGNORECASE,
)
_WHO = re.compile(r"^\W*(?:and |so |then )?(who|whom)\b", re.IGNORECASE)
_WHERE = re.compile(r"^\W*(?:and |so |then )?(where)\b", re.IGNORECASE)
_WHICH_THINGS = re.compile(r"^\W*(?:and |so |then )?(?:which|what) (\w+)\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\b(how many)\b", re.IGNORECASE)
# "What is served at breakfast?" asks for things; "What is open today?" may be answered with hours.
_WHAT = re.compile(r"^\W*(?:and |so |then )?(what) (?:is|are|was|were|will be) [a-z]{3,}ed\b", re.IGNORECASE)
# A list of those of which something is so does not tell whether it is so of all: "Are both dryers free?"
_WHOLE = re.compile(
    r"^\W*(?:and |so |then )?(?:is|are|was|were|do|does|did|has|have)\b.*?\b(all|both|every|each)\b", re.IGNORECASE
)
_WHETHER = re.compile(r"^\W*(?:and |so |then )?(is|are|was|were) (?:the )?", re.IGNORECASE)
_WAS_DONE = re.compile(r"^\W*(?:and |so |then )?(?:is|are|was|were|has|have|had)\b.*\b([a-z]+ed)\W*$", re.IGNORECASE)
_DEEDS = frozenset(stem(verb) for group in CHANGES for verb in group)
_WHO_DID = re.compile(r"^\W*(?:and |so |then )?(who)(?: has| had)? ([a-z]+ed) (?:the |our |my )?", re.IGNORECASE)
_WE_DID = re.compile(
    r"^\W*(?:and |so |then )?(?:did|have|had) (i|we|you) (?:already |ever |just )?([a-z]+)\b", re.IGNORECASE
)
_SMALL_PREDICATE = re.compile(
    r"^\W*(?:(?:and|so|please) )?(?:(?:check|see|verify|confirm|find out|tell me) (?:if|whether)|is|are|was|were)"
    r"\b.*\b(in|out|here|there|up|down|on|off|back|away|over)\W*$",
    re.IGNORECASE,
)
_THE_ONE = re.compile(r"^\W*(?:and |so |then )?(?:who|what)(?:['’]s| is| was) (the ([a-z]+))\W*$", re.IGNORECASE)
_TIME = re.compile(
    rf"\d{{1,4}}[-./]\d{{1,2}}|\d{{1,2}}:\d{{2}}|\b(?:[12]\d{{3}}|today|tomorrow|yesterday|never|now|ago|"
    rf"{'|'.join([*MONTHS, *sorted(WEEKDAYS)])})\b|"
    # "Jan Vos" is somebody.
    rf"(?:(?<=\d )|(?<=\d\. )|\b(?=[a-z]{{3}}\W{{1,2}}\d))(?:{'|'.join(month[:3] for month in MONTHS)})\b",
    re.IGNORECASE,
)
_HOW = re.compile(r"\bhow\b", re.IGNORECASE)
_HOW_MANY_OF = re.compile(r"\bhow many ([\w-]+)", re.IGNORECASE)
_COUNTS = word_set(
    "many count counts number numbers quantity quantities qty stock inventory stocked amount amounts total left free "
    "available remaining units pieces balance much level population headcount size sum hand have has per enough vacant"
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\b")
_PLACED = PLACE_WORDS | word_set(
    "address area street road building floor wing hall shelf rack aisle bin bay row slot locker cabinet drawer gate "
    "terminal platform desk seat position latitude longitude lat lon lng path file folder directory url link page line "
    "branch state province continent planet venue home office store shop depot hub dock port berth track field zip "
    "postcode postal found stored located parked at in on department dept team unit section host server node cluster "
    "harbor harbour marina"
)
_IN = re.compile(r"\b(?:in|at|on|near|behind|under|from|to)\b", re.IGNORECASE)
_COSTS = re.compile(r"\b(?:costs?|price|total|how much|come to|pay)\b", re.IGNORECASE)
_PER = re.compile(r"\bper (\w+)", re.IGNORECASE)
_ONE = word_set("piece item unit one article product")
_HOW_MUCH_IS = re.compile(r"^\W*(?:and |so )?(how much) (?:is|are|was|were|for)\b", re.IGNORECASE)
_MONEY = frozenset(
    stem(word)
    for word in word_set(
        "price cost costs amount total fee fare rate value sum balance rent salary charge due subtotal quantity eur "
        "usd gbp money worth net gross tax tip result converted"
    )
)
_SKY = re.compile(
    r"\b(?:rain(?:s|y|ing)?|snow(?:s|y|ing)?|hail(?:s|ing)?|sunny|cloudy|overcast|storm(?:y|s|ing)?|drizzl\w+)\b",
    re.IGNORECASE,
)
_SKIES = frozenset(
    stem(word)
    for word in word_set(
        "rain raining rainy rainfall snow snowing snowfall precipitation precip hail sun sunny sunshine cloud clouds "
        "cloudy cloudiness storm sky condition conditions weather outlook summary description symbol icon drizzle "
        "overcast chance probability wet dry showers"
    )
)
_TIMED = word_set("year month day week quarter hour date time minute timestamp epoch")


def of_another_kind(clause: Clause, result: Any, given: Collection[Any] = ()) -> tuple[int, int] | None:
    """Where a clause asks for a kind of thing that a result does not have; None if it has it, or nothing is asked for
    that could be told from other things.

    Args:
        clause: the clause.
        result: what a tool answered.
        given: what the tool was given, which is no answer where it says it again.
    """
    fields = list(_all_fields(result))
    told = [found for found in fields if found.value not in given]
    if not fields:
        return None
    if only_list(result) and (match := _WHOLE.search(clause.text)) is not None:
        return match.span(1)
    if only_list(result) and (match := _WHETHER.match(clause.text)) is not None:
        # "Was Nova recorded?" is answered by no list of what Nova, the channel, has.
        behind = clause.text[match.end() :].lower()
        if any(isinstance(value, str) and value and behind.startswith(value.lower()) for value in given):
            return match.span(1)
    done = None if isinstance(result, dict | list) else _WAS_DONE.match(clause.text)
    if done is not None and done[1] in given and {stem(done[1]), stem(done[1])[:-1]} & _DEEDS:
        # "Was ticket T5 cancelled?" speaks of no town of that name.
        return done.span(1)
    if (match := _WHAT.search(clause.text)) is not None and told and all(_is_time(found) for found in told):
        return match.span(1)
    for asking, holds in (*_KINDS, (_HOW_MANY, _is_number)):
        match = asking.search(clause.text)
        counted = asking is _HOW_MANY and (isinstance(result, list) or bool(rows_of(result)))
        if match is not None and not counted and not any(holds(found) for found in fields):
            return match.span(1)
    return None


def is_of_the_kind(clause: Clause, told: Sequence[Field]) -> bool:
    """Whether what is told of a result holds the kind of thing that a clause asks for, if it asks for one: of "Who
    placed order 10?" the day on which it was placed is none.

    Args:
        clause: the clause.
        told: the fields that are told.
    """
    return not any(
        asking.search(clause.text) is not None and not any(holds(found) for found in told) for asking, holds in _KINDS
    )


def figure_for_things(clause: Clause, result: Any, tools: Sequence[KnownTool]) -> tuple[int, int] | None:
    """Where a clause asks which things there are, of tools that tell a figure of one: of "Which files are in docs?" a
    size is none."""
    match = _WHICH_THINGS.match(clause.text)
    if match is None or singular(match[1].lower()) == match[1].lower():
        return None
    which = "which" in match.group().lower() and not is_function_word(match[1])
    if which and isinstance(result, dict) and not rows_of(result):
        # Nor are the students of a course its room and its teacher.
        held = {word for found in fields_of(result) for word in (*found.stems, *map(stem, found.path))}
        held |= {word for tool in tools for word in tool.name_stems}
        return None if stem(match[1]) in held else match.span(1)
    if not isinstance(result, int | float):
        return None
    heads = {word for tool in tools for word in (*tool.name_stems[-1:], *(w for o in tool.outputs for w in o.stems))}
    asked = stem(match[1])
    spoken = any(asked in tool.name_stems for tool in tools)
    return match.span(1) if spoken and asked not in heads else None


def figure_of_another(clause: Clause, result: Any, tools: Sequence[KnownTool]) -> tuple[int, int] | None:
    """Where a figure is worked out of what another tool told, and no word asks for it: of "Jo's lost parcels" the cost
    of shipping them is none."""
    if isinstance(result, bool) or number_of(result) is None or len(tools) < 2 or _HOW.search(clause.text):
        return None
    said = [token for token in clause.tokens if not is_function_word(token.text)]
    # A tool that takes numbers only works out what is asked for.
    sums = not any(param.shape == "text" and not param.is_expression for param in tools[0].params)
    if sums or not said or any(alike(token.stem, word) for token in said for word in tools[0].name_stems):
        return None
    return said[0].start, said[-1].end


def rate_of_another(clause: Clause, result: Any, tools: Sequence[KnownTool]) -> tuple[int, int] | None:
    """Where a clause asks what something costs, of a tool that tells what a kind of it is per night or per kilogram,
    and was told by another one which kind that is: of "What does booking 7 cost?" the rate of its room is none."""
    match = _COSTS.search(clause.text)
    if match is None or len(tools) < 2 or number_of(result) is None or isinstance(result, bool):
        return None
    # How many nights, the tool is not told.
    units = _PER.findall(f"{tools[0].spec.description} {' '.join(parts(tools[0].name))}")
    said = {token.stem for token in clause.tokens}
    told = {word for param in tools[0].params if param.shape == "number" for word in param.stems}
    lacking = [unit for unit in units if stem(unit) not in said | told and unit not in _ONE]
    return match.span() if lacking else None


def no_amount_in(clause: Clause, result: Any) -> tuple[int, int] | None:
    """Where a clause asks how much a thing is, of a record of it that holds no amount: of "How much is booking 7 in
    total?" the number of its nights is none."""
    match = _HOW_MUCH_IS.match(clause.text)
    if match is None or not isinstance(result, dict) or rows_of(result):
        return None
    fields = fields_of(result)
    if len(fields) < 2 or any(_MONEY & {*found.stems} for found in fields):
        return None
    said = {token.stem for token in clause.tokens if not is_function_word(token.text)}
    return None if any(said & {*found.stems} for found in fields) else match.span(1)


def who_did_it(clause: Clause, result: Any, given: Collection[Any]) -> tuple[int, int] | None:
    """Where a clause asks who did something to what a tool was asked about, of a result that tells of the deed and not
    of who did it: of "Who hired Ann?" neither the day on which she was hired nor her manager is one."""
    match = _WHO_DID.match(clause.text)
    if match is None or rows_of(result):
        return None
    behind = clause.text[match.end() :].lower()
    to_it = any(isinstance(value, str) and value and behind.startswith(value.lower()) for value in given)
    deed = any(found.stems == (stem(match[2]),) for found in fields_of(result))
    return match.span(1) if to_it and deed else None


def one_of_many(clause: Clause, result: Any) -> tuple[int, int] | None:
    """Where a clause asks for the one that each thing on a list has: "Who is the tenant?" of a list of plots."""
    match, rows = _THE_ONE.match(clause.text), only_list(result)
    if match is None or len(rows) < 2 or singular(match[2].lower()) != match[2].lower():
        return None
    held = {word for row in rows for found in fields_of(row) for word in found.stems}
    return match.span(1) if stem(match[2]) in held else None


def no_number_of(
    clause: Clause, result: Any, tools: Sequence[KnownTool], used: Sequence[tuple[int, int]]
) -> tuple[int, int] | None:
    """Where a clause asks how many there are of what a tool was asked about, of tools that tell other figures of it: of
    "How many lions does the zoo have?" no age of a lion is one."""
    match = _HOW_MANY_OF.search(clause.text)
    if match is None or not overlaps(*match.span(1), used):
        return None
    if (rows := only_list(result)) and all(isinstance(row, dict) for row in rows):
        # What has a day and a figure, but no name, is no one of them.
        told = [found.value for row in rows for found in fields_of(row)]
        return None if any(isinstance(each, str) and not _TIME.search(each) for each in told) else match.span(1)
    if not isinstance(result, dict) or rows_of(result):
        return None
    if same_unit(match[1].lower()):
        # "How many miles is 5 km?" is answered by any number of them.
        return None
    words = {token.low for tool in tools for token in tokens(tool.spec.description)}
    words |= {word for tool in tools for word in parts(tool.name)}
    words |= {word for found in fields_of(result) for word in parts(found.name)}
    return None if _COUNTS & words or not any(tool.change is None for tool in tools) else match.span(1)


def no_such_weather(clause: Clause, result: Any) -> tuple[int, int] | None:
    """Where a clause asks whether it rains or the sun shines, of a record that tells neither: of a temperature and a
    wind nobody sees that."""
    match = _SKY.search(clause.text)
    if match is None or not clause.is_yes_or_no or not isinstance(result, dict) or rows_of(result):
        return None
    fields = fields_of(result)
    told = {word for found in fields for word in (*found.stems, *map(stem, found.path))}
    named = [found.value for found in fields if isinstance(found.value, str) and number_of(found.value) is None]
    asked = [value.text for value in clause.values]
    # A sky in words may be any: "overcast" is no rain.
    spoken = [text for text in named if text not in asked and not _DATE.match(text)]
    return None if spoken or told & _SKIES else match.span()


def said_yes_to_less(clause: Clause, result: Any, left_out: Sequence[str]) -> tuple[int, int] | None:
    """Where a word stands without which a tool's yes or no would be one to another question: "Does the fern need
    water?" for a tool that tells whether it needs sun."""
    if not isinstance(result, bool) or not left_out:
        return None
    start = clause.text.find(left_out[0])
    return (start, start + len(left_out[0])) if start >= 0 else None


def _all_fields(result: Any) -> Iterator[Field]:
    yield from fields_of(result)
    for name, rows in rows_of(result):
        for row in rows:
            yield from fields_of(row, () if isinstance(row, dict) else (name,))


def _is_time(found: Field) -> bool:
    if isinstance(found.value, str):
        return _TIME.search(found.value) is not None
    number = number_of(found.value)
    plain = number is not None and number == number.to_integral_value()
    return plain and (
        bool(_TIMED & set(parts(found.name))) or (not found.path and 1000 <= int(str(found.value)) < 3000)
    )


def done_by_us(clause: Clause, result: Any, tools: Sequence[KnownTool]) -> tuple[int, int] | None:
    """Who it is asked of whether they did what a tool is only called by: of "Did I vote for M4?" the votes on it tell
    nothing, where they have no field for that; nor does a total of "Did we order it?"."""
    match = _WE_DID.match(clause.text)
    if match is None:
        return None
    deed = stem(match[2].lower())
    held = {stem(word) for found in fields_of(result) for word in found.path for word in parts(word)}
    called = any(deed in tool.name_stems for tool in tools)
    figure = isinstance(result, int | float) and type(result) is not bool and "did" in match[0].lower().split()
    figure = figure and re.search(r"\d", clause.text) is None
    # What it costs to buy a thing does not tell whether we did.
    called = called or (figure and any(match[2].lower() in group for group in CHANGES))
    return match.span(1) if called and deed not in held and (figure or isinstance(result, dict)) else None


_STATES = word_set("status state stage phase condition")


def small_predicate(clause: Clause, result: Any, tools: Sequence[KnownTool]) -> tuple[int, int] | None:
    """The small word for what it is asked whether something is so, where nothing tells of it: "Is A-77 out?"."""
    match = _SMALL_PREDICATE.match(clause.text)
    if match is None:
        return None
    fields = [found for row in [result, *only_list(result)] for found in fields_of(row)]
    told = {word for found in fields for name in found.path for word in parts(name)}
    told |= {word for found in fields for word in parts(str(found.value))}
    told |= {word for tool in tools for word in (*parts(tool.name), *parts(tool.spec.description))}
    return None if match[1].lower() in told or not fields else match.span(1)


def what_was_done(clause: Clause, result: Any, tools: Sequence[KnownTool]) -> tuple[int, int] | None:
    """The last word of "Is scooter 12 locked?", where a record has no field and no value for that, nor a status."""
    last = clause.tokens[-1]
    fields = fields_of(result) if isinstance(result, dict) else []
    if not fields or not clause.is_yes_or_no or re.search(r"[a-z]{3}(?:ed|en)$", last.low) is None:
        return None
    told = {word for found in fields for text in (*found.path, str(found.value)) for word in parts(text)}
    told |= {word for tool in tools for param in tool.params for word in parts(param.name)}
    words = {stem(word) for word in told if len(word) > 1}
    alike = any(word.startswith(last.stem) or last.stem.startswith(word) for word in words)
    return None if alike or told & _STATES else (last.start, last.end)


def _is_somebody(found: Field) -> bool:
    return (
        isinstance(found.value, str)
        and number_of(found.value) is None
        and re.search(r"[^\W\d_]", found.value) is not None
    )


def _is_number(found: Field) -> bool:
    return (
        not isinstance(found.value, bool)
        and _DATE.match(str(found.value)) is None
        and re.search(r"\d|\b(?:no|none|nobody|nothing)\b", str(found.value)) is not None
    )


def _is_place(found: Field) -> bool:
    if not isinstance(found.value, str) or number_of(found.value) is not None or _DATE.match(found.value):
        return bool(_PLACED & set(parts(found.name)))
    sentence = " " in found.value.strip() and _IN.search(found.value) is not None
    return not found.name or sentence or bool(_PLACED & set(parts(found.name)))


_KINDS = ((_WHEN, _is_time), (_WHO, _is_somebody), (_WHERE, _is_place))
