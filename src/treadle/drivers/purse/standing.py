"""Standing: sets the rows of a run that has ended to what stands in the journal.

A process that dies, or finds the file locked, between the end of a run and its last word to a budget leaves there what
was set aside for the call before. Nobody calls a model for the run any more, so that nothing else would lower it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from treadle.drivers.purse.budget import Budget
from treadle.drivers.purse.claims import Claim
from treadle.drivers.purse.rows import Place, Row


class Amiss(NamedTuple):
    """A row that says something else than the journal: `before`, and not `after`."""

    budget: Budget
    place: Place
    before: Row
    after: Row


def amiss(budgets: Iterable[Budget], run_id: str, name: str, used: Claim) -> list[Amiss]:
    """The rows of an ended run that say something else than that it has `used` so much; `name` is what they are called.

    Raises:
        BudgetUnavailable: the file or database of a budget cannot be used.
    """
    found: list[Amiss] = []
    for budget in budgets:
        called = budget.row_of(run_id, name)
        budget.ledger.adopt(budget.series, run_id, called)
        rows = budget.ledger.rows(budget.series, called)
        ends = [*[row.base for _, row in rows[1:]], used]
        for (key, row), end in zip(rows, ends, strict=False):
            taken = end - row.base
            after = Row(row.base, taken, taken)
            if after != row:
                found.append(Amiss(budget, Place(budget.series, key, called), row, after))
    return found


def amend(rows: Iterable[Amiss]) -> None:
    """Sets `rows` right, unless somebody has set them since.

    Raises:
        BudgetUnavailable: the file or database of a budget cannot be used.
    """
    for budget, place, before, after in rows:
        sums, told = budget.ledger.settle(place, after, tuple(budget.marks), (before,))
        for mark in told:
            budget.tell(mark, budget.balance(place.key, sums))
