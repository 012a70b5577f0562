"""Row numbers: how many rows there are, where a list of groups or a comparison would be taken for the answer.

Called by `written`.
"""

import re
from collections.abc import Sequence

from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.records import WHOLE
from treadle.models.offline.plan.results import Field, fields_of, number_of, only_list, rows_of
from treadle.models.offline.plan.toolbox import KnownTool
from treadle.models.offline.plan.transcript import Exchange

_ROW = stem("rows")
_HOW_MANY = re.compile(r"\b(?:how many|number of|count of)\b", re.IGNORECASE)
# Of rows that differ a comparison tells as keys.
_ASKED = re.compile(
    r"\b(?:how many|number of|count of|most|fewest|least|more|fewer|less)(?: the| all| of the)?(?: source)? rows\b"
    r"(?![^.?!]*\b(?:differ|match|miss|agree))",
    re.IGNORECASE,
)
_EACH = re.compile(r"\b(?:by|per|each|every|which|most|fewest|least|more|fewer|less)\b", re.IGNORECASE)


def how_many_are_listed(exchange: Exchange, tool: KnownTool | None, clause: Clause) -> str:
    """ "3 listed:", where it is asked how many there are and a tool lists them, and under which
    defaults; empty otherwise."""
    only, given = only_list(exchange.result), exchange.arguments
    unsaid = [each for each in (tool.params if tool else ()) if each.name not in given and not each.required]
    held = [each for each in unsaid if each.schema.get("default") not in WHOLE]
    by = "".join(f" ({' '.join(parts(each.name))} {each.schema['default']})" for each in held)
    return f"{len(only)} listed{by}:" if only and _HOW_MANY.search(clause.text) is not None else ""


def number_of_rows(subject: str, fields: Sequence[Field], exchange: Exchange, clause: Clause) -> str:
    """How many rows there are, and nothing else, or that the result does not tell; empty where that is not asked.

    Args:
        subject: what was asked about.
        fields: those of the result that do not merely repeat it.
        exchange: the call and its result.
        clause: the question.
    """
    compared = isinstance(exchange.result, dict) and "interpretation" in exchange.result
    listed = [row for name, rows in rows_of(exchange.result) if name == "rows" for row in rows]
    own = [found for row in listed for found in fields_of(row) if _ROW in found.stems]
    if not _ASKED.search(clause.text) or own or not (listed or compared):
        return ""
    counts = [found for found in fields if found.stems[-1:] == (_ROW,) and number_of(found.value) is not None]
    if not (counts or compared):
        # The listed rows may be what was asked about.
        return ""
    of_each = _EACH.search(clause.text)
    if compared or len(counts) != 1 or (of_each and not _HOW_MANY.search(clause.text)):
        return f"I cannot tell that: {exchange.tool} does not say how many rows each has. Ask how many one source has."
    each = f", all together; {exchange.tool} does not tell how many each has" if of_each else ""
    return f"{subject}: {counts[0].label} {counts[0].value}{each}."
