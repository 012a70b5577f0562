"""Whether something is so of one record, as a field of it tells: "Is Alba sold?", "Does Berta have a queen?".

No verdict is given: the field is told, by its name, and why it is so where the record says that. Called by `reckoning`.
"""

from collections.abc import Sequence

from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.words import Token
from treadle.models.offline.plan.picking import Picking, says_of
from treadle.models.offline.plan.results import tells_why
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
        flags = [c for c in self.table.columns if c.is_flag and self._is_said_so(c, said, match.end())]
        article = self.text[: said[0].start].split()[-1].lower() in ("a", "an", "the")
        column = self._sole(held or flags or ([named] if having and (named := self._column(said)) is not None else []))
        if column is None or column is self.table.label or (article and not having and not flags):
            # Who is a manager does not tell whether he has one.
            return None
        self.taken.append((said[0].start, said[-1].end))
        return column

    def _told_beside(self, column: Column) -> tuple[Column, ...]:
        """What else is told where a flag is: why it is so."""
        texts = [each for each in self.table.columns if column.is_flag and tells_why(each.stems)]
        return tuple(each for each in texts if all(each.values[row] for row in self.called))

    def _is_said_so(self, column: Column, said: Sequence[Token], start: int) -> bool:
        """Whether a flag is what is said: a word of it alone, or each word of its name, as "on loan" and "bin full"."""
        words = column.label.split()
        free = {token.stem for token in self._free() if token.start >= start and (token in said or token.low in words)}
        return free == {*column.stems} or (len(said) == 1 and says_of(said[0], column) is True)
