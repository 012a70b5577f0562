"""Counting: what a "how many" asks the number of, where a tool answers with a list of something.

The number of what is listed is an answer only to a question for all of it. Called by `planner` once there is a result.
"""

import re
from collections.abc import Sequence
from typing import Any

from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import Token, is_function_word, is_verb, parts, singular, stem, tokens
from treadle.models.offline.plan.results import asked, fields_of, number_of, only_list, rows_of
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool

_BESIDE = word_set("with including and plus their its")
_HAVING = re.compile(
    r"\b(?:which|what|how many) (?:[\w-]+ ){1,3}?(?:have|has|had|with|are|is|were|was)\b|\bthere\b.*\bwith\b",
    re.IGNORECASE,
)
_ONE_FIGURE = re.compile(
    r"\b(?:how (?:much|many)|in (?:total|all)|(?:the )?(?:total|sum|overall)|altogether|together|combined)\b",
    re.IGNORECASE,
)
_OF_EACH = re.compile(r"\b(?:each|every|per|by|respectively|which)\b", re.IGNORECASE)
_SELECTING = re.compile(
    r"^\W*(?:(?:and|so|then) )?(?:(?:in|on|at|for|to|of|from|by|with) )?"
    r"(?:who|which|whose|how many|(?:is|are|was|were) there)\b",
    re.IGNORECASE,
)
_WITH = re.compile(r"\b(?:with|whether|including|includes|plus|and their|and its)\b|:\s")
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)


def counted_otherwise(
    clause: Clause, result: Any, tools: Sequence[KnownTool], used: Sequence[tuple[int, int]]
) -> tuple[int, int] | None:
    """Where a clause asks how many there are of something else than a tool has listed; None if it does not.

    A tool may speak of rain, and list days with it and without: of "how many days of rain" the days are no number. Nor
    are the car parks that of "how many spaces", which each of them has some of.

    Args:
        clause: the clause.
        result: what a tool answered.
        tools: the tools that were called.
        used: the stretches that went into arguments and comparisons.
    """
    match, listed = many.HOW_MANY.search(clause.text), only_list(result)
    if match is None or not listed:
        return None
    run = _asked(clause, match.end())
    of = next((place for place, token in enumerate(run) if token.low == "of"), len(run))
    called = {word for tool in tools for word in tool.name_stems}
    taken = {word for tool in tools for param in tool.params for word in param.nouns}
    for place, token in enumerate(run):
        if overlaps(token.start, token.end, used) or token.stem in called or token.low == "of":
            continue
        if place and token.stem in taken and overlaps(run[place - 1].start, run[place - 1].end, used):
            # "High priority tickets" are those of a priority.
            continue
        if place == of - 1:
            strange = _is_figure(token, listed) or _is_beside(token, tools)
        else:
            strange = not _is_wording(run[place : place + 2] if place < of else run[of - 1 : place + 1], tools)
        if strange:
            return token.start, token.end
    return None


def not_one_figure(clause: Clause, result: Any) -> tuple[int, int] | None:
    """Where a clause asks for one figure, of a result that has one for each of several things; None if it does not.

    "How much honey is there in total?" is answered by no list of hives with the honey of each.

    Args:
        clause: the clause.
        result: what a tool answered.
    """
    held = {stem for row in only_list(result) for found in fields_of(row) for stem in found.stems}
    said = [found for found in _ONE_FIGURE.finditer(clause.text) if not held & {t.stem for t in tokens(found.group())}]
    if not said or _OF_EACH.search(clause.text):
        return None
    names = [found.name for found in fields_of(result) if number_of(found.value) is not None]
    if any(found.path[1:] and names.count(found.name) > 1 for found in asked(fields_of(result), clause)):
        return said[0].span()
    figures = [row for row in only_list(result) if any(number_of(found.value) is not None for found in fields_of(row))]
    return said[0].span() if len(figures) > 1 and _HOW_MANY.search(clause.text) is None else None


def true_of_some(
    clause: Clause,
    result: Any,
    tools: Sequence[KnownTool],
    used: Sequence[tuple[int, int]],
    left_out: Sequence[str],
) -> tuple[int, int] | None:
    """Where a clause asks for those that have or are something, of a list that has others too; None if it does not.

    "Which concerts have seats left?" is not answered by all of them with their seats, where one of them has none, nor
    "Who has left?" by everybody with the days on which some did.

    Args:
        clause: the clause.
        result: what a tool answered.
        tools: the tools that were called.
        used: the stretches that went into arguments and comparisons.
        left_out: words of the clause that are said to be left out of account.
    """
    having, how_many = _HAVING.search(clause.text), _HOW_MANY.search(clause.text)
    match = _SELECTING.match(clause.text) or having
    lists = [] if isinstance(result, dict) and "totals" in result else rows_of(result)
    rows = [row for row in (lists[0][1] if len(lists) == 1 else ()) if isinstance(row, dict)]
    if match is None or len(rows) < 2:
        return None
    held = {found.name: found for row in rows for found in fields_of(row)}
    flags = {name for name, found in held.items() if isinstance(found.value, bool)}
    said = [token for token in clause.tokens if token.start >= match.end()]
    # "Which alarms are on?" asks for those that are, where that is told of each.
    said = [token for token in said if token.low in flags or not is_function_word(token.text)]
    spare = {token.text for words in left_out for token in tokens(words)}
    said = [t for t in said if t.text not in spare and not overlaps(t.start, t.end, used)]
    stems = {token.stem for token in said}
    fields = {stem for found in held.values() for stem in found.stems}
    beside = frozenset().union(*(_told_beside(tool) for tool in tools)) if only_list(result) else frozenset()
    for token in said:
        if token.stem in beside - fields:
            return token.start, token.end
        for name, found in held.items():
            values = [row.get(name) for row in rows]
            # "How many kilograms" asks for no things that have some.
            counts = how_many is None or (having is not None and token.start >= having.end())
            lacking = [value is False or value in (None, "") or (counts and number_of(value) == 0) for value in values]
            other = [token.stem not in stems_of(value) or not stems_of(value) <= stems for value in values]
            for is_other in (lacking if token.stem in found.stems else (), other):
                if any(is_other) and not all(is_other):
                    return token.start, token.end
    return None


def _told_beside(tool: KnownTool) -> frozenset[str]:
    """The stems of what a tool says only of the things that it lists: "guests with diet, and whether they bring
    somebody"."""
    kind, *further = _WITH.split(tool.summary, maxsplit=1)
    said = {token.stem for text in further for token in tokens(text) if not is_function_word(token.text)}
    named = {stem for param in tool.params for stem in (*param.stems, *param.nouns)}
    return frozenset(said - {token.stem for token in tokens(kind)} - set(tool.name_stems) - named)


def stems_of(value: Any) -> frozenset[str]:
    """The stems of the words of a short text; none of anything else."""
    words = parts(value) if isinstance(value, str) else ()
    return frozenset(stem(word) for word in words) if len(words) <= 3 else frozenset()


def _asked(clause: Clause, start: int) -> list[Token]:
    """The words for what is counted, such as "vacation days" or "days of rain"."""
    run: list[Token] = []
    for token in (each for each in clause.tokens if each.start >= start):
        joins = token.low == "of" and run and run[-1].low != "of"
        # "Days" is what is counted, in "vacation days" too; what follows tells of it, but for "of rain".
        counted = bool(run) and singular(run[-1].low) != run[-1].low
        if not joins and (is_function_word(token.text) or counted or (run and is_verb(token.text))):
            break
        run.append(token)
    return run


def _is_figure(token: Token, listed: Sequence[Any]) -> bool:
    """Whether the word is what each of a list has a number of, and not what tells one from the other."""
    for place, found in enumerate(fields_of(listed[0])):
        own = place == 0 and singular(found.name) == found.name and len(parts(found.name)) == 1
        if token.stem in found.stems and number_of(found.value) is not None and not own:
            return True
    return False


def _is_beside(token: Token, tools: Sequence[KnownTool]) -> bool:
    """Whether the tools say that they tell of it beside what they list: "employees with the days that they have"."""
    for tool in tools:
        said = tokens(tool.spec.description)
        first = next((place for place, each in enumerate(said) if each.stem in tool.name_stems), len(said))
        places = [place for place, each in enumerate(said) if each.stem == token.stem]
        # "Bike stations" are no bikes.
        heads = [place for place in places if place + 1 != first]
        if (places and not heads) or any(each.low in _BESIDE for each in said[first : (*heads, 0)[0]]):
            return True
    return False


def _is_wording(words: Sequence[Token], tools: Sequence[KnownTool]) -> bool:
    """Whether a tool describes itself with these words, one after the other."""
    said = f" {' '.join(word.stem for word in words)} "
    return any(said in f" {' '.join(each.stem for each in tokens(tool.spec.description))} " for tool in tools)
