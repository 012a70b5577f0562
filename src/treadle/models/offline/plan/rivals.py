"""Whether a clause is rather for another of the tools that are offered.

Called by `choice`.
"""

from collections.abc import Sequence

from treadle.models.offline.grammar.english import PLAIN_VERBS, word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import parts, singular
from treadle.models.offline.plan.toolbox import KnownTool

_LENDING = word_set("rent lend loan borrow hire checkout")


def many_are_meant(tool: KnownTool, clause: Clause, tools: Sequence[KnownTool]) -> bool:
    """Whether a clause speaks of many, to a tool that tells of one, where another one tells of many: `animals` of
    "Which animals are in the savanna?", and not `animal`."""
    noun = ("", *parts(tool.name))[-1]
    if singular(noun) != noun or not any(param.shape in ("text", "number") for param in tool.required):
        return False
    names = [parts(other.name)[-1:] for other in tools if other is not tool and other.change is None]
    lists = any(name and name[0] != noun and singular(name[0]) == noun for name in names)
    said = [token for token in clause.tokens if token.low != noun and singular(token.low) == noun]
    # "Invoices I-1 and I-2" are called by their numbers.
    called = any(value.start - token.end == 1 for token in said for value in clause.values)
    return lists and bool(said) and not called


def is_told_by_another(tool: KnownTool, clause: Clause, tools: Sequence[KnownTool]) -> bool:
    """Whether a clause only asks, and a tool that only reads tells what this one may change: `votes`, and not
    `count_vote`."""
    asks = clause.command is None or clause.command in PLAIN_VERBS or clause.command == "list"
    asks = asks and clause.opening not in tool.called
    mine = set(tool.name_stems)
    return (
        asks
        and tool.spec.changes is None
        and any(other.spec.changes is False and set(other.name_stems) <= mine for other in tools)
    )


def commands_another(commanded: str, tools: Sequence[KnownTool]) -> bool:
    """Whether the clause commands a change that a tool is there for: it is no question, then, to any other."""
    if commanded == "return":
        # Where things are lent, to return one is no way to ask for it.
        return any(tool.change is not None and _LENDING & tool.called for tool in tools)
    changing = bool(commanded) and commanded not in PLAIN_VERBS
    return changing and any(tool.change is not None and commanded in tool.change for tool in tools)


def is_called_by_another(tool: KnownTool, commanded: str, tools: Sequence[KnownTool]) -> bool:
    """Whether an order has the verb that a tool is only described by, "Scan the pages of a box and upload them", and
    another one, which may only tell, is called by: `scan` of a box."""
    if commanded not in (tool.change or ()) or commanded in parts(tool.name):
        return False
    taken = {noun for param in tool.required for noun in param.nouns}
    called = [other for other in tools if other.change is None and parts(other.name)[:1] == (commanded,)]
    return any(taken.intersection(param.nouns) for other in called for param in other.required)
