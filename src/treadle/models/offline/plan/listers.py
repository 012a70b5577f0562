"""Lists that are worth reading first, or once a name was refused: those of names that nobody has told yet.

Called by `planner`.
"""

import re
from collections.abc import Callable, Sequence

from treadle.models.offline.grammar.english import PERSON_WORDS, PLACE_WORDS, TITLE_WORDS
from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import parts
from treadle.models.offline.plan.choice import Chooser
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.orders import is_done_to_it
from treadle.models.offline.plan.outcome import Outcome
from treadle.models.offline.plan.table import is_called, table_of
from treadle.models.offline.plan.toolbox import KnownTool, Param, Toolbox
from treadle.models.offline.plan.transcript import Exchange
from treadle.models.offline.plan.twice import noun_of

_PROPER = PERSON_WORDS | PLACE_WORDS | TITLE_WORDS


class Listers:
    """Finds the lists of what tools can be given."""

    def __init__(self, chooser: Chooser, was_read: Callable[[KnownTool], bool]) -> None:
        self._chooser = chooser
        self._was_read = was_read

    def worth_reading(
        self, tool: KnownTool, clause: Clause, filling: Filling, source: KnownTool | None
    ) -> KnownTool | None:
        """A list worth reading first: of names that the call needs and nobody has told yet, or of what is to be changed
        where what is named may be another thing: in "Set the salary of Sales to 50" no employee, but a department."""
        for param, value in _named(tool, filling, clause):
            lister = self._chooser.lister(param, tool)
            # A van is hardly called "Rosa", nor a booking "Ines Faber".
            strange = value.kind == "name" and not _PROPER.intersection(parts(param.name))
            # "The cat" and "the Haflinger" are hardly called so.
            strange = strange or _is_the_one(value, clause)
            if lister is not None and (strange or _takes_others(lister, param)) and not self._was_read(lister):
                return lister
        for param in () if filling.unknown else tool.params:
            structured = param.shape in ("names", "filters", "mapping") and not param.enum
            loose = bool(clause.values) or param.shape in ("filters", "mapping")
            needed = structured and (param.required or param.name in filling.arguments or loose)
            lacking = param in filling.missing and param.shape == "text" and source is None
            if not needed and (not lacking or self._chooser.providers(tool, param, clause)):
                continue
            lister = self._chooser.lister(param, tool)
            if lister is not None and not self._was_read(lister):
                return lister
        return None

    def after_a_refusal(self, tool: KnownTool) -> KnownTool | None:
        """A list that tells what a tool would have taken."""
        names = self._chooser.vocabulary.names
        unknown = [p for p in tool.params if p.shape == "text" and not p.enum and not names(p.nouns)]
        listers = [self._chooser.lister(param, tool) for param in unknown]
        return next((lister for lister in listers if lister and not self._was_read(lister)), None)


def another_thing(tool: KnownTool, filling: Filling, clause: Clause, exchanges: Sequence[Exchange]) -> str | None:
    """Why a change is not made to what a list knows as another thing only; None if none is.

    Args:
        tool: the tool that is to be called.
        filling: what the clause gives it.
        clause: the clause.
        exchanges: the calls made so far.
    """
    tables = [table for made in exchanges if not made.failed and (table := table_of(made.result)) is not None]
    for param, value in _named(tool, filling, clause):
        for table in tables:
            found = [column for column in table.columns if any(is_called(value.text, each) for each in column.values)]
            known = [c for c in table.columns if c is table.label or set(param.nouns) & set(c.nouns)]
            if found and known and not any(column in known for column in found):
                return f"'{value.text}' is a {found[0].label}, and no {noun_of(param)}"
    return None


def _named(tool: KnownTool, filling: Filling, clause: Clause) -> list[tuple[Param, Value]]:
    """What is to be changed, where a name alone says it, or a word for the one that there is."""
    given = [(param, value) for param, value in filling.given if param.required and param.shape == "text"]
    given = [pair for pair in given if pair[1].kind in ("name", "code") or _is_the_one(pair[1], clause)]
    return given if tool.change is not None else []


def _is_the_one(value: Value, clause: Clause) -> bool:
    return value.kind in ("name", "phrase") and clause.words_before(value.start, 1) == ("the",)


def _takes_others(lister: KnownTool, param: Param) -> bool:
    """Whether a list can be narrowed by the name of something else, or says with what it tells of each."""
    if re.search(r"\bwith\b.*,", lister.summary) is not None:
        return True
    others = [each for each in lister.params if each.shape == "text" and not each.enum]
    return any(not set(each.nouns) & set(param.nouns) for each in others)


def tells_names(outcome: Outcome, box: Toolbox) -> bool:
    """Whether what is called next is a list that may know the words left over, and be asked about them then."""
    tools = [box.named(call.tool) for call in outcome.calls if not call.arguments]
    listing = [tool for tool in tools if tool is not None and tool.lists]
    if not 0 < len(listing) == len(outcome.calls):
        return False
    if outcome.left is None or not outcome.left.turning:
        return all(tool.change is None and tool.params for tool in listing)
    # Of "Start the lathe" the list of machines tells what the lathe is.
    the_one = len(outcome.left.turning) == 1 and is_done_to_it(outcome.clause, outcome.left.turning[0])
    changes = outcome.tools[0].change is not None and not outcome.left.spare
    return the_one and changes and not any(tool.may_change for tool in listing)
