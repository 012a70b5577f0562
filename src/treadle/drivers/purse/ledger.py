"""Ledger: what runs have taken of purses that they share, a row a run and purse.

A row holds what a run claims, which is what it and all that work for it have used and the worst case of the calls under
way, and how much of that is used. It is set and never added to: to set it again, after a crash say, counts nothing
twice. Beside the rows stands the sum of each purse, so that to look at one takes no longer the more runs it has had.
What a purse allows, and what its sums come to, is reckoned here and nowhere else; a store keeps it (`rows.py`).
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

from treadle.drivers.purse.claims import Claim
from treadle.drivers.purse.rows import Entry, Look, Mark, Place, Row, Store, Sums

NOTHING = Claim()

_NO_ROW = Row(NOTHING, NOTHING, NOTHING)


def row_name(run_id: str, began: float, above: tuple[str, str] = ("", "")) -> str:
    """What the rows of a run are called: also by when it began, for another run may have had its id.

    Those of a run below another begin like those of that one; `above` are its id and what its rows are called.
    """
    above_id, above_name = above
    return f"{above_name}{run_id.removeprefix(above_id)}@{began!r}"


class Most(NamedTuple):
    """What may be claimed of a purse in all; None where there is no limit."""

    tokens: int | None
    usd: Decimal | None

    def allows(self, total: Claim) -> bool:
        """Whether `total` is within it."""
        return (self.tokens is None or total.tokens <= self.tokens) and (self.usd is None or total.usd <= self.usd)


class Ledger:
    """See the module.

    Args:
        store: where it is kept.

    Every method raises `BudgetUnavailable` where the store cannot be used.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def is_same(self, other: "Ledger") -> bool:
        """Whether both write to one place."""
        return self.store.is_same(other.store)

    def draw(
        self, place: Place, row: Row, most: Most, admit: Callable[[Row | None], None] = lambda _: None
    ) -> Claim | None:
        """Sets the row, unless the purse would then go over `most`: what others claim of it then, else None.

        `admit` is given the row that stands there, while nobody else can set it, and may raise.
        """

        def drawn(look: Look) -> tuple[Claim | None, Entry | None]:
            admit(look.row)
            others = _others(look)
            if not most.allows(others + row.claimed):
                return others, None
            return None, Entry(_sums_with(look, row), row)

        return self.store.change(place, drawn)

    def settle(
        self,
        place: Place,
        row: Row,
        marks: Sequence[Mark],
        before: Sequence[Row] | None = None,
        admit: Callable[[Row | None], None] = lambda _: None,
    ) -> tuple[Sums, list[Mark]]:
        """Sets the row, whatever it comes to: the purse's sums then, and those of `marks` that are to be told now.

        Where `before` is given, the rows as which it may have been left, and somebody else has set the row since, it
        stays as it is. `admit` is as in `draw`.
        """

        def settled(look: Look) -> tuple[tuple[Sums, list[Mark]], Entry | None]:
            admit(look.row)
            # It is the new one where the answer to an earlier try was lost.
            if before is not None and look.row not in (None, row, *before):
                return (look.sums, []), None
            sums = _sums_with(look, row)
            news = [mark for mark in marks if mark.reached(sums.used) and str(mark) not in look.told]
            return (sums, news), Entry(sums, row, [*map(str, news)])

        return self.store.change(place, settled, [*map(str, marks)])

    def others(self, place: Place) -> Claim:
        """What other runs claim of the purse."""
        return _others(self.store.look(place))

    def held(self, place: Place) -> Claim:
        """What other runs claim of the purse and have not used."""
        look = self.store.look(place)
        own = look.row or _NO_ROW
        return (look.sums.claimed - look.sums.used) - (own.claimed - own.used)

    def adopt(self, purse: str, run_id: str, name: str) -> None:
        """Names the rows of a run that is taken up, if it was begun when rows were called by the id alone."""
        if name != run_id and self.rows(purse, run_id) and not self.rows(purse, name):
            self.store.rename(purse, run_id, name)

    def row(self, place: Place) -> Row | None:
        """The row of the run; None if there is none."""
        return self.store.look(place).row

    def rows(self, purse: str, run: str) -> list[tuple[str, Row]]:
        """The rows of a run in the purse, in the order of their keys."""
        return self.store.rows(purse, run)

    def key_of(self, purse: str, run: str) -> str | None:
        """The key under which a run, or one that works for it, has claimed of the purse; None if none has."""
        return self.store.key_of(purse, run)

    def sums(self, purse: str, key: str) -> Sums:
        """What was claimed and used of the purse; nothing if nobody did."""
        return self.store.look(Place(purse, key, "")).sums

    def keys(self, purse: str) -> list[str]:
        """The keys of the purse that anybody has claimed of, sorted."""
        return self.store.keys(purse)

    def set_aside(self, purse: str) -> list[str]:
        """What the rows are called of runs that claim more of the purse than they have used, sorted."""
        return self.store.set_aside(purse)

    def close(self) -> None:
        """Lets go of the store until it is used again. What is only in memory stays."""
        self.store.close()


def _others(look: Look) -> Claim:
    return look.sums.claimed - (look.row or _NO_ROW).claimed


def _sums_with(look: Look, row: Row) -> Sums:
    """What the sums come to where `row` stands in place of the one that was found."""
    sums, before = look.sums, look.row or _NO_ROW
    return Sums(sums.claimed - before.claimed + row.claimed, sums.used - before.used + row.used)
