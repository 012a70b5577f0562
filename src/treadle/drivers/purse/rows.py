"""Rows: where the ledger of a budget is kept. One port, whatever the place: a file or memory, or a PostgreSQL database.

A store keeps and finds; what a run may take, and what a row and a sum come to, is reckoned in `ledger.py`.
"""

from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from treadle.drivers.purse.claims import Claim
from treadle.kernel.errors import PassesThrough

T = TypeVar("T")


class BudgetUnavailable(PassesThrough):
    """The file or database of a budget cannot be used: it cannot be opened or written, is damaged, or is not treadle's.

    No model is called then: what it would cost could not be set aside. The run can be resumed.

    Attributes:
        where: the file or database; without a password.
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class BudgetBusy(BudgetUnavailable):
    """Another process, or another thread, is writing to the file, or to the purse.

    Attributes:
        patience: seconds for which it is worth trying again.
    """

    patience: ClassVar[float] = 10.0


class BudgetLost(BudgetBusy):
    """The server does not answer any more. What it was asked last may have been done, or not."""

    patience: ClassVar[float] = 30.0


class Place(NamedTuple):
    """Where a row stands: in which purse, under which key of it, of which run (`ledger.row_name`)."""

    purse: str
    key: str
    run: str


class Row(NamedTuple):
    """What a run claims and has used, beyond the `base` that it had used before the row was begun."""

    base: Claim
    claimed: Claim
    used: Claim


class Mark(NamedTuple):
    """Something to be told once, when this much is used."""

    tokens: int | None
    usd: Decimal | None

    def __str__(self) -> str:
        return f"{self.usd} dollars" if self.tokens is None else f"{self.tokens} tokens"

    def reached(self, used: Claim) -> bool:
        """Whether it is to be told."""
        by_tokens = self.tokens is not None and used.tokens >= self.tokens
        return by_tokens or (self.usd is not None and used.usd >= self.usd)


class Sums(NamedTuple):
    """What all runs together claim of a purse, and have used of it."""

    claimed: Claim
    used: Claim


class Look(NamedTuple):
    """A purse at one moment: its sums, the row of one run, None if it has none, and which marks were told."""

    sums: Sums
    row: Row | None
    told: Collection[str] = ()


class Entry(NamedTuple):
    """What a transaction leaves: the sums of the purse, the row of the run, and the marks that are told with that."""

    sums: Sums
    row: Row
    told: Collection[str] = ()


class Store(Protocol):
    """A place for rows. Each method is one transaction, which others see whole or not at all.

    Every method but `close` raises `BudgetUnavailable` where the place cannot be used, and `BudgetBusy` where another
    attempt may go well.
    """

    @property
    def where(self) -> str:
        """The place, as a person would name it; empty in memory."""

    def is_same(self, other: "Store") -> bool:
        """Whether both are one place."""

    def look(self, place: Place) -> Look:
        """The purse and the row at `place`, as they are at one moment; waits for nobody."""

    def change(self, place: Place, decide: Callable[[Look], tuple[T, Entry | None]], marks: Sequence[str] = ()) -> T:
        """What `decide` answers, once what it decided is kept. Nobody else changes the purse meanwhile.

        Args:
            place: what is looked at.
            decide: given what stands there, answers, and says what to leave there; None for all as it is. It is asked
                again where the transaction has to be made again.
            marks: of which it is to know whether they were told.
        """

    def rows(self, purse: str, run: str) -> list[tuple[str, Row]]:
        """The rows of a run in the purse with their keys, sorted by these."""

    def rename(self, purse: str, run: str, name: str) -> None:
        """Calls the rows of `run` by `name`, where there is none of that name."""

    def key_of(self, purse: str, run: str) -> str | None:
        """A key under which `run` has a row in the purse, or one that is named by it and a dot; None if none has."""

    def keys(self, purse: str) -> list[str]:
        """The keys of the purse, sorted."""

    def set_aside(self, purse: str) -> list[str]:
        """The runs that claim more of the purse than they have used, sorted."""

    def close(self) -> None:
        """Lets go of the place until it is used again. What is only in memory stays."""
