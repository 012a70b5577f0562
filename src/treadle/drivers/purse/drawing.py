"""Drawing: how a run takes from the budgets that it was given, beside the limits of the runs that it works for.

The claim of a run is at every moment what it and all that work for it can have taken at most (`claims.py`). Here it is
kept in the row of the run in each purse: raised before a model call, where the purse allows it, and lowered to what was
used once that stands in the journal. So a process that dies in between leaves the higher figure.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from treadle.drivers.purse.budget import Budget, checked_name
from treadle.drivers.purse.claims import Borrower, Claim
from treadle.drivers.purse.ledger import row_name
from treadle.drivers.purse.reckoning import Reached
from treadle.drivers.purse.share import Share
from treadle.journal.info import is_served
from treadle.kernel.errors import Misuse
from treadle.kernel.money import minus
from treadle.kernel.state import RunState
from treadle.kernel.stop import Stop

Budgets = Budget | Iterable[Budget] | None


class Whose(NamedTuple):
    """For whom a run works: the user and the name of the conversation, as far as they were said, and what budgets call
    the conversation.
    """

    user: str | None = None
    conversation: str | None = None
    purse: str | None = None


class Purse:
    """A budget that a run draws on, and its share in it, which may be that of a run that it works for."""

    def __init__(self, budget: Budget, share: Share) -> None:
        self.budget, self.share = budget, share

    @property
    def hook(self) -> str:
        """What stands in a journal of a run that draws on it."""
        return self.budget.hook

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


def is_said(budget: Budget, whose: Whose) -> bool:
    """Whether it is said whose purse is meant, where `budget` has one for each user or conversation.

    Who only ends a run need not say it: a budget that its program has got since has nothing of it.
    """
    return {"user": whose.user, "conversation": whose.purse}.get(budget.per or "", "") is not None


def require_whose(budget: Budget, whose: Whose) -> str:
    """Whose purse is meant, where `budget` has one for each user or conversation; else nothing.

    Raises:
        Misuse: it is not said.
    """
    if not is_said(budget, whose):
        how = "say whose run this is with user=…"
        if budget.per == "conversation":
            how = "give the run its own with conversation=… (which agent.step does not take: use run, or another per=)"
        raise Misuse(f"{budget.called} has a purse for each {budget.per}: {how}")
    return (whose.user if budget.per == "user" else whose.purse) or ""


def whose_run(user: str | None, conversation: str | None, origin: str = "") -> Whose:
    """For whom a run works that begins; `origin` is what begins it.

    Raises:
        Misuse: the user's name is none.
    """
    name = None if user is None else checked_name("user", user)
    return Whose(name, conversation, _purse(name, conversation, origin))


def _purse(user: str | None, conversation: str | None, origin: str) -> str | None:
    """What budgets call a conversation. At a server its name is each user's own, and so is what it may take there."""
    if not (user and conversation and is_served(origin)):
        return conversation
    # No two users and names have one purse: the first slash is where the user ends.
    return f"{user.replace('%', '%25').replace('/', '%2F')}/{conversation}"


def whose_again(budgets: Iterable[Budget], state: RunState, said: Whose) -> Whose:
    """For whom a run works that is taken up: as it stands in `budgets`, else as is said now.

    Raises:
        Misuse: another user is named now.
        BudgetUnavailable: the file or database of one cannot be used.
    """
    user, purse, budgets = None, None, tuple(budgets)
    for budget in budgets:
        if budget.per == "user":
            user = user or _key_again(budget, state)
        elif budget.per == "conversation":
            purse = purse or _key_again(budget, state)
    begun = state.started
    if any(budget.per == "user" for budget in budgets):
        user = user or begun.user or None
    if None not in (user, said.user) and user != said.user:
        raise Misuse(f"run {state.run_id} counts for user {user!r}, as whose it was begun, and not for {said.user!r}")
    user = user or said.user or begun.user or None
    named = _purse(begun.user, begun.conversation or None, begun.origin)
    if named is None or said.conversation not in (None, begun.conversation):
        purse = purse or said.purse
    purse = purse or named
    return Whose(user, begun.conversation or None if purse == named else purse, purse)


def _key_again(budget: Budget, state: RunState) -> str | None:
    known, purse = budget.ledger.key_of, budget.series
    return known(purse, row_name(state.run_id, state.started_at)) or known(purse, state.run_id)
