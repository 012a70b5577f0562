"""What a tool may tell that does not say what it returns: a field of its result for what a clause asks for.

"What is the status of ticket 4711?" is worth a call of a tool that shows a ticket, and only reads. Whether the ticket
has a status, the result says; without one there is no answer. Called by `planner`.
"""

import re
from collections.abc import Sequence
from typing import Any

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import is_computing, is_turning
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import is_function_word, is_verb, parts, stem, tokens
from treadle.models.offline.plan.account import account
from treadle.models.offline.plan.outcome import Call
from treadle.models.offline.plan.results import fields_of, rows_of
from treadle.models.offline.plan.toolbox import KnownTool
from treadle.models.offline.plan.transcript import Exchange

_WORDS = r"((?:[a-z]+ ){0,2}[a-z]+)(?:,? and (?:the )?((?:[a-z]+ )?[a-z]+))?"
_OF = re.compile(
    r"^\W*(?:please )?(?:(?:wh(?:at|o)(?:['’]s| is| are)|(?:tell|show|give)(?: me)?|get|find|fetch) )?(?:the )?"
    rf"{_WORDS} of\b",
    re.IGNORECASE,
)
_OWN = re.compile(rf"['’]s? {_WORDS}\W*$", re.IGNORECASE)
# These are of many things, and worked out of them.
_LOOKING_UP = (("get",), ("find",), ("show",), ("lookup",), ("look",), ("fetch",), ("read",), ("retrieve",))
_WORKED_OUT = word_set("number count list history sum value worth kind sort type rest half part all each one")


def may_tell(
    clause: Clause, tools: Sequence[KnownTool], calls: Sequence[Call], used: Sequence[tuple[int, int]]
) -> bool:
    """Whether the results of calls may have what a clause asks for, and nothing else of it is left over.

    Args:
        clause: the clause.
        tools: the tools that are called for it.
        calls: the calls to make next.
        used: the stretches that went into arguments, filters and comparisons.
    """
    opaque = all(_looks_up(tool) for tool in tools)
    heads = _heads(clause)
    given = bool(calls) and all(call.arguments for call in calls)
    return opaque and given and bool(heads) and not account(clause, tools, used, heads).forbids


def _looks_up(tool: KnownTool) -> bool:
    """Whether a tool only reads, as it says or is called by a verb for that, and does not say what it returns."""
    plain = tool.spec.changes is None and not tool.may_change and parts(tool.name)[:1] in _LOOKING_UP
    return (tool.spec.changes is False or plain) and not tool.outputs and not _is_filtered(tool)


def told_of(clause: Clause, tools: Sequence[KnownTool], done: Sequence[Exchange]) -> frozenset[str]:
    """The stems of the words for what a clause asks for that results have, of tools that do not say so themselves."""
    opaque = {tool.name for tool in tools if not tool.outputs and tool.change is None}
    results = [made.result for made in done if made.tool in opaque]
    rows = [row for result in results for _, listed in rows_of(result) for row in listed]
    # The price of an order's parcel is none of the order's.
    found = [found for each in (*results, *rows) for found in fields_of(each) if len(found.path) == 1]
    told = [each for result in results if isinstance(result, dict) for each in result.items()]
    named = [word for name, value in told if _is_flat(value) for word in parts(name)]
    return _heads(clause) & frozenset(word for each in found for word in each.stems).union(map(stem, named))


def _is_filtered(tool: KnownTool) -> bool:
    """Whether a tool is asked under filters, of names that are listed elsewhere."""
    return any(param.shape in ("filters", "mapping") for param in tool.params)


def _is_flat(value: Any) -> bool:
    """Whether a value is a list of plain values, such as names."""
    return isinstance(value, list) and bool(value) and not any(isinstance(each, dict | list) for each in value)


def _heads(clause: Clause) -> frozenset[str]:
    """The stems of the words for what is asked for: "status" of "the status of ticket 4711"."""
    match = _OF.match(clause.text) or _OWN.search(clause.text)
    words = [token for said in match.groups() if said for token in tokens(said)] if match is not None else []
    plain = [token for token in words if not is_function_word(token.text)]
    odd = any(is_turning(t.low) or is_computing(t.low) or is_verb(t.low) or t.low in _WORKED_OUT for t in plain)
    return frozenset() if odd else frozenset(token.stem for token in plain)
