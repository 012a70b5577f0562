"""Budgets that a generated run is given along the way: when it begins, first when it is taken up, others, or none.

They are as in a file: they outlive processes, as they stood when the process died. Who takes a run up has as many as it
was begun under, and all that it was left in the middle under; who has fewer, or others, is refused and changes nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from folding import fold_all
from hypothesis import strategies as st
from likely import mostly

from treadle import Budget, Misuse
from treadle.drivers.purse.rows import Entry, Place
from treadle.kernel.money import minus

USER, OTHER = "anna", "ben"


class Written(NamedTuple):
    """A row that was set when the journal held `at` events."""

    at: int
    place: Place
    entry: Entry


class Lasting:
    """The store of a budget, which remembers when its rows were set: `held` is how many events the journal holds."""

    def __init__(self, store: Any, held: Callable[[], int]) -> None:
        self._store, self._held = store, held
        self.written: list[Written] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def change(self, place: Place, decide: Any, marks: Any = ()) -> Any:
        """What `decide` answers; what it leaves is remembered."""

        def decided(look: Any) -> Any:
            answer, entry = decide(look)
            if entry is not None:
                self.written.append(Written(self._held(), place, entry))
            return answer, entry

        return self._store.change(place, decided, marks)


def lasting(budget: Budget, held: Callable[[], int]) -> Budget:
    """`budget`, which remembers when its rows were set."""
    store: Any = Lasting(budget.ledger.store, held)
    budget.ledger.store = store
    return budget


def as_it_stood(budget: Budget, at: int, held: Callable[[], int]) -> Budget:
    """`budget` as a process finds it that comes after one which died when the journal held `at` events."""
    most = budget.most
    again = lasting(Budget(tokens=most.tokens, usd=most.usd, per=budget.per, name=budget.name), held)
    before: Any = budget.ledger.store
    for one in before.written:
        if one.at <= at:
            again.ledger.store.change(one.place, lambda _, entry=one.entry: (None, entry))
            again.ledger.store.written[-1] = one  # type: ignore[attr-defined]
    return again


@dataclass(frozen=True)
class Fund:
    """A budget, as data."""

    tokens: int | None = None
    usd: Decimal | None = None
    per: Any = None

    def budget(self, number: int, held: Callable[[], int]) -> Budget:
        """The budget, which is called by its number."""
        return lasting(Budget(tokens=self.tokens, usd=self.usd, per=self.per, name=f"fund {number}"), held)


amounts = st.sampled_from(
    [{"tokens": 1_000_000}, {"tokens": 12_000}, {"tokens": 4000}, {"usd": Decimal("0.1")}, {"usd": 5}]
)
funds = st.lists(
    st.builds(
        lambda amount, per: Fund(**amount, per=per), amounts, st.sampled_from([None, None, "user", "run", "day"])
    ),
    min_size=1,
    max_size=2,
).map(tuple)
brought = mostly(
    st.lists(st.sampled_from([(), (0,), (1,), (0, 1), (1, 0)]), min_size=1, max_size=3).map(tuple),
    st.sampled_from([((), (0,)), ((), (1,), (0, 1)), ((0,), (0, 1))]),
    times=1,
)


class Period(NamedTuple):
    """The time in which a process had a run: from when the journal held `at` events, and so many were `charged`."""

    at: int
    charged: int
    under: tuple[int, ...]


@dataclass
class Purses:
    """What a trial's run was given, process by process.

    Attributes:
        periods: of which processes it was, in their order.
        refused: how often a process was refused that had too few.
    """

    periods: list[Period] = field(default_factory=list)
    refused: int = 0

    @property
    def begun(self) -> tuple[int, ...]:
        """What the run was begun under."""
        return self.periods[0].under if self.periods else ()

    @property
    def under(self) -> tuple[int, ...]:
        """What the last process had that had the run."""
        return self.periods[-1].under if self.periods else ()

    def drop_after(self, at: int) -> None:
        """Forgets processes that came to nothing."""
        while self.periods and at and self.periods[-1].at >= at:
            self.periods.pop()

    def until(self, at: int, charged: int) -> "Purses":
        """What there was of it when the journal held `at` events."""
        return Purses([replace_charged(one, charged) for one in self.periods if one.at < at])


def replace_charged(one: Period, charged: int) -> Period:
    """`one`, of so many charges at most."""
    return one._replace(charged=min(one.charged, charged))


def next_funds(trial: Any) -> tuple[int, ...]:
    """What the next process has, which is enough to take the run up."""
    setup, purses, root = trial.setup, trial.purses, trial.root
    if not setup.funds or setup.one_step:
        return ()
    wanted = setup.brings[len(purses.periods) % len(setup.brings)]
    wanted = tuple(dict.fromkeys(one % len(setup.funds) for one in wanted))
    if root is None:
        return wanted
    if fold_all(trial.journal.events(root)).phase not in ("paused", "finished"):
        return (*wanted, *(one for one in purses.under if one not in wanted))
    more = [one for one in purses.begun if one not in wanted]
    return (*wanted, *more[: max(0, len(purses.begun) - len(wanted))])


def with_funds(trial: Any, under: tuple[int, ...]) -> dict[str, Any]:
    """What a process gives the run that has these."""
    if not trial.setup.funds or trial.setup.one_step:
        return {}
    budgets = [trial.world.fund(number, trial.setup.funds[number]) for number in under]
    # Whose run it is stands in the journal, and need not be said again.
    said = {} if len(trial.purses.periods) % 2 else {"user": trial.user}
    return {"budget": budgets or None, **said}


async def refused_with_less(trial: Any, root: str) -> None:
    """A process that has less than the run was left under may neither go on with it nor end it."""
    purses, journal = trial.purses, trial.journal
    if not purses.under or fold_all(journal.events(root)).phase in ("paused", "finished"):
        return
    others = [one for one in range(len(trial.setup.funds)) if one not in purses.under]
    later = [one for one in purses.under if one not in purses.begun]
    # As many, and not all those that it was given later.
    instead = [(*[one for one in purses.under if one != given], *others[:1]) for given in later if others]
    lesser = [purses.under[1:], *instead]
    before = len(journal.order), trial.world.balances()
    for what, given in [(what, with_funds(trial, one)) for one in lesser for what in ("resume", "cancel")]:
        try:
            if what == "resume":
                await trial.agent().resume(root, deps=trial.world, **given)
            else:
                await trial.agent().cancel(root, budget=given["budget"])
        except Misuse:
            purses.refused += 1
        except Exception as error:
            if not trial.heard(error):
                trial.wrong.append(f"{what} with too few budgets raises {error!r}, not Misuse")
        else:
            trial.wrong.append(f"{what} with too few budgets is not refused")
        if (len(journal.order), trial.world.balances()) != before:
            trial.wrong.append(f"{what} with too few budgets has changed something")


def budgets_given_are_kept(trial: Any) -> Iterator[str]:
    """While a budget is given, nothing is billed beyond it; when the run rests, nothing is set aside anywhere."""
    root, periods, charges = trial.root, trial.purses.periods, trial.world.ledger.charges
    if root is None or not periods:
        return
    tree = trial.tree(root)

    def billed(until: int, at: int) -> tuple[int, Decimal]:
        # Of a call of a process that was taken over the last is billed before anything else has happened.
        mine = [one for i, one in enumerate(charges) if one.run_id in tree and (i < until or one.at <= at)]
        return sum(one.usage.total_tokens for one in mine), sum((one.usd for one in mine), Decimal(0))

    for period, after in zip(periods, [*periods[1:], None], strict=True):
        before = billed(period.charged, period.at)
        by_then = billed(len(charges), 0) if after is None else billed(after.charged, after.at)
        for number in period.under:
            fund = trial.setup.funds[number]
            if fund.per == "day" and trial.setup.clock:
                continue
            # Of what a process left that had neither limit nor budget nobody knows.
            known = all(one.under for one in periods) or before[0] <= _told(trial, tree, period.at + 1)
            for what, most, had, has in zip(
                ("tokens", "dollars"), (fund.tokens, fund.usd), before, by_then, strict=True
            ):
                if known and most is not None and has > max(most, had):
                    yield f"{has} {what} were billed under a budget of {most}, {had} of them before it was given"
    yield from _at_rest(trial, root, {number for period in periods for number in period.under})


def _told(trial: Any, tree: list[str], at: int) -> int:
    """The tokens that these runs tell when the journal holds so many events."""
    order = trial.journal.order[:at]
    # What a run below has taken stands in that above it once it has ended.
    return max(
        [fold_all([event for whose, event in order if whose == run]).usage.total_tokens for run in tree], default=0
    )


def _at_rest(trial: Any, root: str, ever: set[int]) -> Iterator[str]:
    """`ever` are those that the run was given at any time; its forks, and what it was made of, may have had them."""
    runs = [one for one in whole_family(first_of(trial)) if one.root is not None]
    if trial.journal.failed or any(one.last.result is None for one in runs):
        return
    if not all(trial.ended(run) for run in trial.journal.runs):
        return
    for number in sorted(ever):
        budget = trial.world.fund(number, trial.setup.funds[number])
        purses = [budget.spent(key or None) for key in budget.purses()]
        tokens, held = sum(one.tokens for one in purses), sum(one.held_tokens for one in purses)
        if held or any(one.held_usd for one in purses):
            yield f"{purses} is set aside of fund {number} by runs that rest"
        had = [one for one in runs if any(number in period.under for period in one.purses.periods)]
        here = budget.per != "day" and all(number in one.purses.under for one in had)
        states = [fold_all(trial.journal.events(one.root)) for one in had]
        taken = sum(state.usage.total_tokens - state.accounts.shared.usage.total_tokens for state in states)
        if tokens > taken or (here and tokens != taken):
            yield f"fund {number} tells {tokens} tokens of runs that took {taken}"
        if here and budget.per == "user":
            for user in {one.user for one in had}:
                its = [state for one, state in zip(had, states, strict=True) if one.user == user]
                mine = sum(state.usage.total_tokens - state.accounts.shared.usage.total_tokens for state in its)
                if budget.spent(user).tokens != mine:
                    yield f"fund {number} tells {budget.spent(user)} of {user}, whose runs took {mine}"
        usd = sum(one.usd for one in purses)
        costs = [_own_cost(state) for state in states]
        if None not in costs and (usd > sum(costs) or (here and usd != sum(costs))):
            yield f"fund {number} tells {usd} dollars of runs that cost {sum(costs)}"


def _own_cost(state: Any) -> Any:
    cost, shared = state.accounts.whole_cost, state.accounts.shared
    if not shared.usage.total_tokens:
        return cost
    return None if None in (cost, shared.cost) else minus(cost, shared.cost)


def first_of(trial: Any) -> Any:
    """The trial of the run that this one's was made of in the end."""
    while trial.source is not None:
        trial = trial.source
    return trial


def whole_family(trial: Any) -> Iterator[Any]:
    """A trial and those of its forks, and theirs."""
    yield trial
    for one in trial.forks:
        yield from whole_family(one.trial)
