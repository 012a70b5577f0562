"""Drawing: how a run takes from the budgets that it was given, beside the limits of the runs that it works for.

The claim of a run is at every moment what it and all that work for it can have taken at most (`claims.py`). Here it is
kept in the row of the run in each purse: raised before a model call, where the purse allows it, and lowered to what was
used once that stands in the journal. So a process that dies in between leaves the higher figure.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import NamedTuple

from treadle.drivers.clock import day
from treadle.drivers.purse.budget import Budget, checked_name, log
from treadle.drivers.purse.claims import Borrower, Claim, paid_elsewhere, used_in
from treadle.drivers.purse.ledger import NOTHING, row_name
from treadle.drivers.purse.reckoning import Reached
from treadle.drivers.purse.rows import BudgetBusy, BudgetLost, BudgetUnavailable, Place, Row
from treadle.kernel.errors import Misuse
from treadle.kernel.money import minus
from treadle.kernel.state import RunState
from treadle.kernel.stop import Stop

Budgets = Budget | Iterable[Budget] | None

_UNKNOWN = Claim(tokens=-1), Claim(tokens=-1)
"""No row has these."""


class Whose(NamedTuple):
    """For whom a run works: the user and the name of the conversation, as far as they were said."""

    user: str | None = None
    conversation: str | None = None


class Share:
    """What one run, with all that work for it, has taken of one purse.

    Attributes:
        run: the run.
        flight: by run, the worst case of its call under way.
        budgets: those that are kept in the purse and that it draws on.
    """

    def __init__(self, budget: Budget, key: str | None, run: Borrower, run_id: str, taken_up: bool) -> None:
        self.run = run
        self.flight: dict[str, Claim] = {}
        self._ledger, self._purse, self._run_id = budget.ledger, budget.series, run_id
        self._row_of, self._may_be_old = budget.row_of, taken_up
        self._fixed, self._key = key, key or ""
        self._base: Claim | None = None if budget.per == "day" else paid_elsewhere(run.state)
        # What an earlier process left stands until this one knows of everything that works for the run.
        self._written: tuple[Claim, Claim] | None = None if taken_up else (NOTHING, NOTHING)
        # For whom a run works stands in its row, and nowhere else.
        self._is_said = taken_up or budget.per not in ("user", "conversation")
        self.budgets = [budget]

    def is_of(self, budget: Budget, key: str | None) -> bool:
        """Whether `budget` has its purse under `key` where this one is."""
        at_one_place = self._ledger.is_same(budget.ledger) and self._purse == budget.series
        return at_one_place and self._fixed == key

    @property
    def key(self) -> str:
        """Whose purse it is."""
        return self._key

    def own(self) -> Claim:
        """What the run claims of this purse."""
        return _money(self.run.claimed) - self._begun()

    def _settled(self) -> Claim:
        """What the run has used in all, without the calls under way."""
        return _money(self.run.claimed - sum(self.flight.values(), NOTHING))

    def others(self) -> Claim:
        """What other runs claim of it."""
        self._begun()
        return self._ledger.others(self._place)

    def is_held(self) -> bool:
        """Whether other runs claim of it what they have not used."""
        self._begun()
        held = self._ledger.held(self._place)
        return held.tokens > 0 or held.usd > 0

    def has_set_aside(self, tokens: int) -> bool:
        """Whether an earlier process may have set that many aside beyond what the run had used by then."""
        used, row = used_in(self.run.state).tokens - self._begun().tokens, self._ledger.row(self._place)
        # One that does not come up to that tells of another time; one beyond that, of a reply that nobody recorded.
        return row is None or row.used.tokens > used or not used <= row.claimed.tokens < used + tokens

    def draw(self, budget: Budget, more: Claim) -> Claim | None:
        """Raises the claim by `more`, unless `budget` does not allow that: what others claim then, else None."""
        row = self._row(more)
        with self._in_doubt():
            refused = self._ledger.draw(self._place, row, budget.most)
        if refused is None:
            self._written, self._is_said = (row.claimed, row.used), True
        return refused

    def begin(self) -> None:
        """Makes the row of a run that has begun and not asked for anything, where it is needed to say whose it is.

        Raises:
            BudgetUnavailable: the file or database cannot be used.
        """
        if not self._is_said:
            self._ledger.settle(self._place, Row(self._begun(), NOTHING, NOTHING), ())
            self._is_said = True

    def write(self) -> None:
        """Sets the row to what is claimed now. What was paid is not lost where that fails: the row is higher then.

        Raises:
            BudgetBusy: another process holds the file or the purse, or a server does not answer.
        """
        if self._written is None and not self.is_over:
            return
        if self._written is not None and (self._base is None or self._written == self._row(NOTHING)[1:]):
            return
        try:
            row = self._row(NOTHING)
            marks = {mark: budget for budget in self.budgets for mark in budget.marks}
            with self._in_doubt():
                sums, told = self._ledger.settle(self._place, row, tuple(marks))
        except BudgetBusy:
            raise
        except BudgetUnavailable as error:
            self.unwritten(error)
            return
        self._written = row.claimed, row.used
        for mark in told:
            marks[mark].tell(mark, marks[mark].balance(self._key, sums))

    @contextmanager
    def _in_doubt(self) -> Iterator[None]:
        try:
            yield
        except BudgetLost:
            # It may have been done, or is done yet. So the row is set anew, also to what it was last known to be.
            if self._written is not None:
                self._written = _UNKNOWN
            raise

    @property
    def is_over(self) -> bool:
        """Whether the run has nothing more to write after what it has used by now."""
        return self.run.state.phase in ("finished", "paused")

    def unwritten(self, error: BudgetUnavailable) -> None:
        """What the run has used could not be written."""
        log.warning("run %s has used less than is set aside for it, which cannot be written: %s", self._run_id, error)

    @property
    def _place(self) -> Place:
        name = self._row_of(self._run_id, _row_name(self.run))
        if self._may_be_old:
            self._ledger.adopt(self._purse, self._run_id, name)
            self._may_be_old = False
        return Place(self._purse, self._key, name)

    def _row(self, more: Claim) -> Row:
        base = self._begun()
        return Row(base, _money(self.run.claimed + more) - base, self._settled() - base)

    def _begun(self) -> Claim:
        """What the run had used when its part of the purse began."""
        if self._base is None:
            self._base = self._begin(day())
        return self._base

    def turn(self) -> None:
        """A new day has a new purse; what is under way counts there too, if more is asked for before it is settled."""
        if self._fixed is not None or day() <= self._key:
            return
        if self._base is not None and self._written is not None:
            settled = self._settled() - self._base
            self._ledger.settle(self._place, Row(self._base, settled, settled), ())
            self._written = NOTHING, NOTHING
        self._base = self._begin(day())

    def _begin(self, key: str) -> Claim:
        known = self._ledger.row(self._place._replace(key=key))
        self._key = key
        if known is not None:
            return known.base
        began = day(self.run.state.started_at or None)
        return paid_elsewhere(self.run.state) if began == key else self._settled()


class Purse:
    """A budget that a run draws on, and its share in it, which may be that of a run that it works for."""

    def __init__(self, budget: Budget, share: Share) -> None:
        self.budget, self.share = budget, share

    def draw(self, worst: Claim, more: Claim, *, priced: bool) -> Stop | None:
        """Sets aside what a call may take; why not, if it does not fit.

        Args:
            worst: what the call may take at most.
            more: by how much the claim of the run rises.
            priced: whether the price of the call is known.

        Raises:
            BudgetUnavailable: the file or database cannot be used.
        """
        if self.budget.usd is not None and not priced:
            return self.budget.unpriced(self.share.key)
        self.share.turn()
        others = self.share.draw(self.budget, more)
        if others is None:
            return None
        return self.budget.refusal(self.share.key, others, self.share.own() + more - worst, worst)

    def left(self) -> tuple[int | None, Decimal | None]:
        """The tokens and dollars that a call may take; None without such a limit.

        Raises:
            BudgetUnavailable: the file or database cannot be used.
        """
        self.share.turn()
        taken, most = self.share.others() + self.share.own(), self.budget.most
        tokens = None if most.tokens is None else max(0, most.tokens - taken.tokens)
        return tokens, None if most.usd is None else max(Decimal(0), minus(most.usd, taken.usd))

    def used_up(self, reason: Reached) -> Stop:
        """Why a run is to come to its end, where only a closing reply can still be paid."""
        return self.budget.used_up(self.share.key, reason, self.share.others() + self.share.own())

    def refused(self, worst: Claim, *, priced: bool) -> Stop | None:
        """Why `draw` would not set aside what the next call of a run may take; None if it would.

        Raises:
            BudgetUnavailable: the file or database cannot be used.
        """
        if self.budget.usd is not None and not priced:
            return self.budget.unpriced(self.share.key)
        self.share.turn()
        others, own = self.share.others(), self.share.own()
        if self.budget.most.allows(others + own + worst):
            return None
        return self.budget.refusal(self.share.key, others, own, worst)

    def is_held(self) -> bool:
        """Whether other runs have something set aside that they may give back.

        Raises:
            BudgetUnavailable: the file or database cannot be used.
        """
        self.share.turn()
        return self.share.is_held()

    def has_set_aside(self, run: Borrower, tokens: int) -> bool:
        """Whether `tokens` may have been set aside for a call of a run that is taken up; of one below another they may.

        Raises:
            BudgetUnavailable: the file or database cannot be used.
        """
        return self.share.run is not run or self.share.has_set_aside(tokens)

    def hold(self, run_id: str, worst: Claim) -> None:
        """A call of this run is under way."""
        self.share.flight[run_id] = worst

    def let_go(self, run_id: str) -> None:
        """It is not."""
        self.share.flight.pop(run_id, None)

    def write(self) -> None:
        """What was used stands in the journal: so it is written here."""
        self.share.write()


def budgets_in(given: Budgets) -> tuple[Budget, ...]:
    """The budgets in an argument.

    Raises:
        Misuse: it is none, and no list of them.
    """
    several = [] if given is None else [given] if not isinstance(given, Iterable) else list(given)
    for one in several:
        if not isinstance(one, Budget):
            raise Misuse(f"budget takes a Budget(usd=…), or a list of them; it was given {one!r:.100}")
    return tuple(several)


def purses_of(
    budgets: Sequence[Budget],
    above: Sequence[Purse],
    whose: Whose,
    run: Borrower,
    run_id: str,
    *,
    taken_up: bool = False,
) -> tuple[Purse, ...]:
    """What a run draws on: its own `budgets`, and those of the runs that it works for, each once.

    Raises:
        Misuse: it is not said whose purse is meant.
    """
    found = list(above)
    for budget in budgets:
        key = _key(budget, whose, run_id)
        share = next((purse.share for purse in found if purse.share.is_of(budget, key)), None)
        if share is None:
            share = Share(budget, key, run, run_id, taken_up)
        elif any(purse.budget is budget and purse.share is share for purse in found):
            continue
        elif budget not in share.budgets:
            share.budgets.append(budget)
        found.append(Purse(budget, share))
    return tuple(found)


def _row_name(run: Borrower) -> str:
    above = run.parent
    return row_name(run.run_id, run.state.started_at, *(() if above is None else ((above.run_id, _row_name(above)),)))


def _key(budget: Budget, whose: Whose, run_id: str) -> str | None:
    """Whose purse of `budget` the run draws on; None where the day says."""
    match budget.per:
        case None:
            return ""
        case "day":
            return None
        case "run":
            return run_id
        case "user" | "conversation":
            return require_whose(budget, whose)


def require_whose(budget: Budget, whose: Whose) -> str:
    """Whose purse is meant, where `budget` has one for each user or conversation; else nothing.

    Raises:
        Misuse: it is not said.
    """
    if budget.per == "user" and whose.user is None:
        raise Misuse(f"{budget!r} has a purse for each user: say whose run this is with user=…")
    if budget.per == "conversation" and whose.conversation is None:
        raise Misuse(f"{budget!r} has a purse for each conversation: give the run its own with conversation=…")
    return (whose.user if budget.per == "user" else whose.conversation) or ""


def whose_run(user: str | None, conversation: str | None) -> Whose:
    """For whom a run works that begins.

    Raises:
        Misuse: the user's name is none.
    """
    return Whose(None if user is None else checked_name("user", user), conversation)


def whose_again(budgets: Iterable[Budget], state: RunState, said: Whose) -> Whose:
    """For whom a run works that is taken up: as it stands in `budgets`, else as is said now.

    Raises:
        Misuse: another user is named now.
        BudgetUnavailable: the file or database of one cannot be used.
    """
    user, conversation, budgets = None, None, tuple(budgets)
    for budget in budgets:
        if budget.per == "user":
            user = user or _key_again(budget, state)
        elif budget.per == "conversation":
            conversation = conversation or _key_again(budget, state)
    begun = state.started
    if any(budget.per == "user" for budget in budgets):
        user = user or begun.user or None
    if None not in (user, said.user) and user != said.user:
        raise Misuse(f"run {state.run_id} counts for user {user!r}, as whose it was begun, and not for {said.user!r}")
    return Whose(
        user or said.user or begun.user or None, conversation or said.conversation or begun.conversation or None
    )


def _key_again(budget: Budget, state: RunState) -> str | None:
    known, purse = budget.ledger.key_of, budget.series
    return known(purse, row_name(state.run_id, state.started_at)) or known(purse, state.run_id)


def _money(claim: Claim) -> Claim:
    """The tokens and dollars of a claim: steps and tool calls are no matter of budgets."""
    return Claim(tokens=claim.tokens, usd=claim.usd)
