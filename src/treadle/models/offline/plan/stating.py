"""Whether something is so of one record, as a field of it tells: "Is Alba sold?", "Does Berta have a queen?".

No verdict is given: the field is told, by its name. Called by `reckoning`.
"""

from treadle.models.offline.grammar import many
from treadle.models.offline.plan.picking import Picking, says_of
from treadle.models.offline.plan.table import Column, is_called


class Stating(Picking):
    """The field that tells whether what a clause says of a record is so."""

    def _stated(self) -> Column | None:
        """The field, whose words are taken; None if there is none, or more is said than that."""
        match = many.STATED.match(self.text)
        if match is None:
            return None
        having = match["having"] is not None
        if self.table.sole:
            self.called = [0]
        else:
            self._numbered()
            if not self._values():
                return None
        said = [token for token in self._free() if token.low not in many.FILLERS and token.start >= match.end()]
        if len(self.called) != 1 or len(self.conditions) > 1 or (self.conditions and (said or having)):
            return None
        if self.conditions:
            return self.conditions[0].column
        if not said or any(token.end > said[-1].end for token in self.clause.tokens):
            # "Is Alba sold to Kim?"
            return None
        words = self.text[said[0].start : said[-1].end]
        held = [] if having else [c for c in self.table.columns if any(is_called(words, v) for v in c.values)]
        flags = [c for c in self.table.columns if c.is_flag and (c.label == words.lower() or says_of(said[0], c))]
        flags = flags if len(said) == 1 or any(c.label == words.lower() for c in flags) else []
        article = self.text[: said[0].start].split()[-1].lower() in ("a", "an", "the")
        column = self._sole(held or flags or ([named] if having and (named := self._column(said)) is not None else []))
        if column is None or column is self.table.label or (article and not having):
            # Who is a manager does not tell whether he has one.
            return None
        self.taken.append((said[0].start, said[-1].end))
        return column
