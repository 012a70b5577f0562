"""Lists that are worth reading first, or once a name was refused: those of names that nobody has told yet.

Called by `planner`.
"""

from collections.abc import Callable

from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.plan.choice import Chooser
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.toolbox import KnownTool


class Listers:
    """Finds the lists of what tools can be given."""

    def __init__(self, chooser: Chooser, was_read: Callable[[KnownTool], bool]) -> None:
        self._chooser = chooser
        self._was_read = was_read

    def worth_reading(
        self, tool: KnownTool, clause: Clause, filling: Filling, source: KnownTool | None
    ) -> KnownTool | None:
        """A list worth reading first: of names that the call needs and nobody has told yet."""
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
