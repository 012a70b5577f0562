"""What several of a thing cost, where a tool tells the price of one and another multiplies.

Called by `planner` when a price is known.
"""

import re
from collections.abc import Sequence

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.operands import operation_of
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.toolbox import KnownTool

_COSTING = re.compile(r"\b(?:costs?|prices?|how much (?:is|are|for))\b", re.IGNORECASE)
_PRICES = frozenset(stem(word) for word in word_set("price cost"))
_PER = re.compile(r"\bper (\w+)", re.IGNORECASE)
_OF = re.compile(r"(\w+) of(?: the)?", re.IGNORECASE)
_ONE = word_set("piece item unit one article product")


def number_of_things(clause: Clause, tool: KnownTool, used: Sequence[tuple[int, int]]) -> Value | None:
    """The number of the things of which a clause asks the price, if `tool` tells that of one: 12 of "What do 12 buns
    cost?". A price per kilogram or night is none of one."""
    unit = [word for text in (tool.spec.description, " ".join(parts(tool.name))) for word in _PER.findall(text)]
    if not _PRICES & set(tool.name_stems) or _COSTING.search(clause.text) is None or set(unit) - _ONE:
        return None
    free = [v for v in clause.values if v.kind == "number" and not overlaps(v.start, v.end, used)]
    if len(free) != 1 or tool.change is not None:
        return None
    gaps = [clause.text[free[0].end : start].strip() for start, _ in used if start >= free[0].end]
    # "3 packs of ibuprofen", where one pack is what the price is of.
    beside = any(not gap or ((of := _OF.fullmatch(gap)) and stem(of[1]) in tool.told) for gap in gaps)
    return free[0] if beside else None


def multiplier(tools: Sequence[KnownTool]) -> KnownTool | None:
    """The tool that multiplies two numbers."""
    return next((tool for tool in tools if tool.change is None and operation_of(tool) == "*"), None)
