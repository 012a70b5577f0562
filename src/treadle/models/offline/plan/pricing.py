"""What several of a thing cost, where a tool tells the price of one and another multiplies.

Called by `planner` when a price is known.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.currencies import money_in
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.founded import values_in
from treadle.models.offline.plan.operands import operation_of
from treadle.models.offline.plan.results import fields_of, headline, number_of
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.together import WorkedOut
from treadle.models.offline.plan.toolbox import KnownTool
from treadle.models.offline.plan.transcript import Exchange

_COSTING = re.compile(r"\b(?:costs?|prices?|how much (?:is|are|for))\b", re.IGNORECASE)
_PRICES = frozenset(stem(word) for word in word_set("price cost"))
_PER = re.compile(r"\bper (\w+)", re.IGNORECASE)
_OF = re.compile(r"(\w+) of(?: the)?", re.IGNORECASE)
_DIGITS = 8
_ONE = word_set("piece item unit one article product")


def number_of_things(clause: Clause, tool: KnownTool, used: Sequence[tuple[int, int]]) -> Value | None:
    """The number of the things of which a clause asks the price, if `tool` tells that of one: 12 of "What do 12 buns
    cost?". A price per kilogram or night is none of one."""
    if not _PRICES & set(tool.name_stems) or _COSTING.search(clause.text) is None or not of_one(tool):
        return None
    free = [v for v in clause.values if v.kind == "number" and not overlaps(v.start, v.end, used)]
    if len(free) != 1 or tool.change is not None:
        return None
    gaps = [clause.text[free[0].end : start].strip() for start, _ in used if start >= free[0].end]
    # "3 packs of ibuprofen", where one pack is what the price is of.
    beside = any(not gap or ((of := _OF.fullmatch(gap)) and stem(of[1]) in tool.told) for gap in gaps)
    return free[0] if beside else None


def times(tools: Sequence[KnownTool], number: int | float, figure: int | float) -> tuple[KnownTool, Json] | None:
    """The tool that multiplies, or works out an expression, and what it is told to multiply two numbers."""
    if (tool := multiplier(tools)) is not None:
        first, second = (param.name for param in tool.params)
        return tool, {first: number, second: figure}
    for tool in tools:
        sole = tool.required[0] if len(tool.required) == 1 else None
        if tool.change is None and sole is not None and sole.is_expression:
            return tool, {sole.name: f"{number} * {figure}"}
    return None


def price_of_all(done: Sequence[Exchange]) -> WorkedOut | None:
    """What the prices of several things come to; None if one tells no single one, or they are in several currencies."""
    figures = [_price(each.result) for each in done]
    money = {code for each in done for value in values_in(each.result) for code in _currencies(value)}
    known = [figure for figure in figures if figure is not None]
    if len(known) < len(figures) or len(money) > 1:
        return None
    # What floats leave behind the last cent is no part of a price.
    return WorkedOut(
        "In total", Decimal(f"{round(sum(known, Decimal(0)), _DIGITS).normalize():f}"), next(iter(money), "")
    )


def of_one(tool: KnownTool) -> bool:
    """Whether what a tool tells of a thing is of one of it, and not of a kilogram or a night."""
    unit = [word for text in (tool.spec.description, " ".join(parts(tool.name))) for word in _PER.findall(text)]
    return not set(unit) - _ONE


def _price(result: Any) -> Decimal | None:
    if (told := headline(result)) is not None or not isinstance(result, dict):
        return told
    totals = [number_of(found.value) for found in fields_of(result) if "total" in found.stems]
    return totals[0] if len(totals) == 1 else None


def _currencies(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (code for _, _, code in money_in(value))


def multiplier(tools: Sequence[KnownTool]) -> KnownTool | None:
    """The tool that multiplies two numbers."""
    return next((tool for tool in tools if tool.change is None and operation_of(tool) == "*"), None)
