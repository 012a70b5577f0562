"""Whether each number that a call is given has one reading, and is an amount that its tool takes.

"20.000" is twenty or twenty thousand, "(50)" fifty or a debt of it, and nobody pays somebody less than nothing. Called
by `planner` before a call is planned.
"""

import re
from typing import Any

from treadle.models.offline.grammar.currencies import money_in
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool, Param

# What may be below zero without a word about it.
_SIGNED = frozenset(
    stem(word)
    for word in word_set(
        "temperature celsius fahrenheit degree degrees delta change difference offset adjustment correction shift "
        "latitude longitude lat lon lng altitude elevation balance angle tilt bias gain x y z"
    )
)
_ADJUSTING = word_set("adjust shift offset correct nudge")
_SIGNED_SO = re.compile(r"\bnegative\b|\bbelow zero\b|\bminus\b|[±]|\+/-", re.IGNORECASE)
# Three digits behind one dot: thousands to many, and decimals to others.
_DOTTED = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")
_MARKED = re.compile(r"[(\[~≈<>≤≥=*/^]\s?$")
_MARKED_BEHIND = re.compile(r"[)\]+*/^]|\s?-?(?:ish|odd|plus)\b", re.IGNORECASE)


def in_the_way(tool: KnownTool, clause: Clause, filling: Filling) -> str | None:
    """Why a tool is not called with the numbers that a clause gives it; None if nothing is in the way."""
    for value in clause.values:
        if value.kind != "number" or not overlaps(value.start, value.end, filling.used):
            continue
        if _has_two_readings(tool, clause, value):
            return (
                f"It is not clear whether '{value.text}' is {value.text.rstrip('0').rstrip('.')} or "
                f"{value.text.replace('.', ',')}: please write it without the dot, or with other decimals."
            )
        if tool.may_change and (marked := _marked(clause.text, value)) is not None:
            return f"It is not clear which number '{marked}' is."
        if tool.change is not None and _is_no_percent(tool, clause, value):
            return f"It is not clear whether '{value.text}' is a percentage."
    below = [param for param in tool.params if _is_negative(filling.arguments.get(param.name))]
    if tool.change is None or all(_takes_negative(tool, param) for param in below):
        return None
    name = below[0].name
    return f"{tool.name} does not say that its `{name}` may be below zero, as {filling.arguments[name]} is."


def _is_no_percent(tool: KnownTool, clause: Clause, value: Value) -> bool:
    """Whether something is raised by a number without a percent sign, of a tool that takes a percentage only."""
    numbers = [param for param in tool.params if param.shape == "number"]
    takes = len(numbers) == 1 and bool({"percent", "percentag", "pct"} & set(numbers[0].stems))
    plain = re.match(r"\s*(?:%|per ?cent|percentage)", clause.text[value.end :], re.IGNORECASE) is None
    return takes and plain and clause.words_before(value.start, 1) == ("by",)


def _has_two_readings(tool: KnownTool, clause: Clause, value: Value) -> bool:
    """Whether a number may be one of thousands or have decimals. Where nothing is changed, only zeros at its end, which
    nobody writes behind a point, and an amount of money, which has no three decimals, speak for thousands."""
    if _DOTTED.fullmatch(value.text) is None or re.match(r",\d", clause.text[value.end :]):
        return False
    if tool.change is None and clause.arithmetic is not None:
        return False
    near = [(start - 2, end + 2) for start, end, _ in money_in(clause.text)]
    return tool.may_change or value.text.endswith("0") or overlaps(value.start, value.end, near)


def _marked(text: str, value: Value) -> str | None:
    """A number with the mark beside it by which it may be another one, such as "(50)" or "~50"."""
    before, behind = _MARKED.search(text[: value.start]), _MARKED_BEHIND.match(text, value.end)
    if before is None and behind is None:
        return None
    start = before.start() if before is not None else value.start
    return text[start : behind.end() if behind is not None else value.end]


def _is_negative(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | list):
        return False
    if isinstance(value, list):
        return any(_is_negative(each) for each in value)
    return value < 0


def _takes_negative(tool: KnownTool, param: Param) -> bool:
    """Whether a parameter says that it may be below zero, or is of what may."""
    least = [param.schema[key] for key in ("minimum", "exclusiveMinimum") if key in param.schema]
    if least:
        return all(isinstance(each, int | float) and each < 0 for each in least)
    told = f"{param.description} {tool.spec.description}"
    adjusts = bool(_ADJUSTING & {*parts(tool.name)})
    return adjusts or bool(_SIGNED & {*param.stems, *param.nouns}) or _SIGNED_SO.search(told) is not None
