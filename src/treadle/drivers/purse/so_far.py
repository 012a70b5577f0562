"""So far: what a run has spent up to now, with the runs below it that are still under way."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol

from msgspec.structs import replace

from treadle.drivers.below import run_id_below
from treadle.drivers.watching import SpentSoFar
from treadle.kernel.accounts import Accounts, Spent
from treadle.kernel.money import NOTHING, minus
from treadle.kernel.state import RunState


class Spender(Protocol):
    """A run, as far as its spending needs to know it; see `treadle.drivers.run.Run`."""

    state: RunState

    @property
    def below(self) -> Mapping[str, "Spender"]:
        """By call, the runs that work on calls of its step under way."""


def spent_so_far(run: Spender) -> SpentSoFar:
    """What `run` has spent, and what is left of its limits."""
    accounts, limits = _accounts(run), run.state.limits
    usage, budget = accounts.usage, limits.budget
    cost = accounts.whole_cost
    usd: Decimal | None = None
    if budget is not None and not accounts.unpriced:
        usd = max(NOTHING, minus(budget, cost or NOTHING))
    tokens = None if limits.tokens is None else max(0, limits.tokens - usage.total_tokens)
    return SpentSoFar(usage, cost, usd, tokens)


def _accounts(run: Spender) -> Accounts:
    """Its accounts with what the runs below have taken that does not stand in them yet."""
    state = run.state
    accounts, calls = state.accounts, () if state.step is None else state.step.calls
    for record in calls:
        child = run.below.get(record.id)
        name = run_id_below(state.run_id, len(state.steps), record.id, record.made)
        if child is not None and child.state.run_id == name:
            below = _accounts(child)
            new = Spent(usage=below.usage, cost=below.cost, unpriced=below.unpriced).less(record.spent)
            accounts = accounts.charged(new.usage, new.cost)
            accounts = replace(accounts, unpriced=accounts.unpriced or new.unpriced)
    return accounts
