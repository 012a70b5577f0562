"""Claim: a statement about data with what it rests on; the only thing that a sentence can be made of.

    claim = Claim(kind="absent", facts={"side": "mart", …}, filters=("company = 1001",), proof=…)
    claim.message      # "where company = 1001, mart has no row for account 710300, fi has"

Pure; `sentences` has the words of each kind.
"""

from typing import Any

from msgspec import Struct

from treadle.analyst.showing.plain import plain
from treadle.analyst.showing.sentences import SENTENCES, Facts, Kind
from treadle.analyst.sql.proof import NOTHING, Proof


class Claim(Struct, frozen=True, kw_only=True):
    """A statement about data.

    Attributes:
        kind: its name for programs.
        facts: the figures and names that it is made of, by name.
        filters: the conditions under which it holds, those that hold in one source only with its name.
        proof: the query that proves it.
    """

    kind: Kind
    facts: Facts
    filters: tuple[str, ...] = ()
    proof: Proof = NOTHING

    @property
    def sql(self) -> str:
        """The query that proves it, to be run after the statements in `Comparison.sql`; empty for what is said of the
        question alone, such as a unit that nobody declared."""
        return self.proof.text

    @property
    def message(self) -> str:
        """The sentence, which says what the facts say."""
        return SENTENCES[self.kind](self.facts, self.filters)

    def to_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Returns JSON values: kind and sentence; facts, filters and SQL too if `explain`."""
        told: dict[str, Any] = {"kind": self.kind, "message": self.message}
        if explain:
            told |= {"facts": plain(self.facts), "filters": list(self.filters), "sql": self.sql}
        return told
