"""Claims: what a run may take of the limits of the runs above it, and of budgets, reserved before each model call.

A run's claim is what it has used, what its own sub-runs have claimed, and the worst case of the call it is about to
make. A claim that would break the limit of any run above, or a budget that one of them draws on, is refused, so that
many runs at once cannot together take more than one may; after the call it is settled. All of it happens between two
turns of the event loop: no lock is needed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from treadle.drivers.approvals import budgets_under
from treadle.drivers.heartbeat import Lease
from treadle.drivers.purse.reckoning import Reached, closing_part
from treadle.kernel.accounts import Spent
from treadle.kernel.events import Reserve
from treadle.kernel.money import NOTHING, minus, plus
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits, Stop, counted, stopped
from treadle.models.port import Model

T = TypeVar("T", int, float, Decimal)


class Claim(Struct, frozen=True):
    """Steps, tokens, dollars and tool calls."""

    steps: int = 0
    tokens: int = 0
    usd: Decimal = NOTHING
    calls: int = 0

    def __add__(self, other: "Claim") -> "Claim":
        usd = plus(self.usd, other.usd)
        return Claim(self.steps + other.steps, self.tokens + other.tokens, usd, self.calls + other.calls)

    def __sub__(self, other: "Claim") -> "Claim":
        usd = minus(self.usd, other.usd)
        return Claim(self.steps - other.steps, self.tokens - other.tokens, usd, self.calls - other.calls)


class Shared(Protocol):
    """What a run draws on beside limits; see `treadle.drivers.purse.drawing.Purse`."""

    @property
    def hook(self) -> str:
        """What stands in a journal of a run that draws on it."""

    def draw(self, worst: Claim, more: Claim, *, priced: bool) -> Stop | None:
        """Sets aside what a call may take; why not, if it does not fit."""

    def left(self) -> tuple[int | None, Decimal | None]:
        """The tokens and dollars that a call may take."""

    def used_up(self, reason: Reached) -> Stop:
        """Why a run is to come to its end, where only a closing reply can still be paid."""

    def refused(self, worst: Claim, *, priced: bool) -> Stop | None:
        """Why `draw` would not set aside what the next call of a run may take; None if it would."""

    def is_held(self) -> bool:
        """Whether other runs have something set aside that they may give back."""

    def has_set_aside(self, run: "Borrower", tokens: int) -> bool:
        """Whether that may have been set aside for a call of a run that is taken up."""

    def hold(self, run_id: str, worst: Claim) -> None:
        """A call is under way."""

    def let_go(self, run_id: str) -> None:
        """It is not."""

    def write(self) -> None:
        """What was used stands in the journal."""


class Confirms(Protocol):
    """What asks a journal; see `treadle.drivers.recorder.Recorder`."""

    async def confirm(self) -> None:
        """Raises `JournalError` unless the run is this process's."""

    async def is_last(self) -> bool:
        """Whether nothing has come to the run since."""


class Borrower(Protocol):
    """A run, as far as lending needs to know it; see `treadle.drivers.run.Run`."""

    lent: Claim
    claimed: Claim
    paid: Claim
    state: RunState

    @property
    def purses(self) -> Sequence[Shared]:
        """What it draws on, and what the runs above it do."""

    @property
    def parent(self) -> "Borrower | None":
        """The run that it works for."""

    @property
    def run_id(self) -> str:
        """Its name."""

    @property
    def lease(self) -> Lease | None:
        """Under which it is driven."""

    @property
    def recorder(self) -> Confirms:
        """What asks its journal."""

    @property
    def model(self) -> Model:
        """The model that it asks."""


def used(run: Borrower) -> Claim:
    """What the run itself has used, the step under way and settled sub-runs included."""
    return used_in(run.state)


def used_in(state: RunState) -> Claim:
    """Likewise, of the run in `state`."""
    under_way = state.step is not None and state.step.message is not None
    return Claim(
        len(state.steps) + under_way + state.sub_steps,
        state.usage.total_tokens,
        plus(state.cost or NOTHING, state.accounts.presumed),
        calls_begun(state),
    )


def calls_begun(state: RunState) -> int:
    """The tool calls so far, with those that began early, whose reply arrives still or never came."""
    return state.tool_calls + len(state.early)


def paid_elsewhere(state: RunState) -> Claim:
    """What of it the run has paid of which this one is a fork."""
    shared = state.accounts.shared
    return Claim(tokens=shared.usage.total_tokens, usd=plus(shared.cost or NOTHING, shared.presumed))


def _steps(run: Borrower) -> int | None:
    """The steps that a run and its sub-runs may take before its closing reply."""
    steps = run.state.limits.steps
    return None if steps is None else steps - (run.state.on_limit == "answer")


def claim(run: Borrower, reserve: Reserve | None) -> Stop | None:
    """Reserves one more step of `run` from every run above it and every budget; the reason if one has too little left.

    Raises:
        PassesThrough: a budget cannot be asked; nothing is reserved.
    """
    if run.parent is None and not run.purses:
        return None
    worst, priced = _worst(reserve)
    stop = refused_above(run, reserve)
    if stop is not None:
        return stop
    wanted = used(run) + run.lent + worst
    more = wanted - run.claimed
    for purse in run.purses:
        # What those before one that refuses have set aside is given back with the next commit.
        stop = purse.draw(worst, more, priced=priced)
        if stop is not None:
            return stop
    _set_claim(run, wanted)
    for purse in run.purses:
        purse.hold(run.run_id, worst)
    return None


def refused_above(run: Borrower, reserve: Reserve | None) -> Stop | None:
    """Why the limits of a run above would not reserve the next step of a run; None if all of them would."""
    more = used(run) + run.lent + _worst(reserve)[0] - run.claimed
    stops = (_exceeded(above, used(above) + above.lent + more) for above in _above(run))
    return next((stop for stop in stops if stop is not None), None)


def refused(run: Borrower, reserve: Reserve | None) -> Stop | None:
    """Why a budget would not reserve the next step of a run; None if all of them would.

    Raises:
        PassesThrough: a budget cannot be asked.
    """
    worst, priced = _worst(reserve)
    stops = (purse.refused(worst, priced=priced) for purse in run.purses)
    return next((stop for stop in stops if stop is not None), None)


def _worst(reserve: Reserve | None) -> tuple[Claim, bool]:
    """The worst case of a step, and whether its price is known."""
    if reserve is None:
        return Claim(1), False
    return Claim(1, reserve.tokens, reserve.usd or NOTHING), reserve.usd is not None


def settle(run: Borrower) -> None:
    """Gives back what a reservation did not need; to budgets only as soon as that stands in the journal."""
    if run.parent is not None or run.purses:
        _set_claim(run, used(run) + run.lent)
        for purse in run.purses:
            purse.let_go(run.run_id)


def may_have_asked(run: Borrower, tokens: int) -> bool:
    """Whether a run that is taken up may have made a call of `tokens` at most: none is made that was not set aside.

    Raises:
        PassesThrough: a budget cannot be asked.
    """
    said = defaultdict[str, list[bool]](list)
    for purse in run.purses:
        said[purse.hook].append(purse.has_set_aside(run, tokens))
    # One that the process before did not have tells of another time, and of several of one name nobody knows which.
    under = budgets_under(run.state)
    had = {hook: len(found) for hook, found in said.items()} if under is None else Counter(under)
    return all(sum(found) >= min(len(found), had.get(hook, 0)) for hook, found in said.items())


def one_call_more(run: Borrower) -> None:
    """A tool call has begun while the reply that makes it is arriving: what is set aside for that stays so."""
    if run.parent is not None or run.purses:
        _set_claim(run, run.claimed + Claim(calls=1))


class Within(Struct, frozen=True, gc=False):
    """The state of a run, its limits no wider than what budgets leave, and which of those are tighter than its own."""

    state: RunState
    tokens: Shared | None = None
    usd: Shared | None = None

    def used_up(self, reason: Reached) -> Stop | None:
        """Why the run is to come to its end, if it is a budget that says so."""
        purse = self.tokens if reason == "max_tokens" else self.usd
        return None if purse is None else purse.used_up(reason)


def within(run: Borrower) -> Within:
    """What budgets leave of the limits of `run`.

    Raises:
        PassesThrough: a budget cannot be asked.
    """
    found, limits = Within(run.state), run.state.limits
    for purse in run.purses:
        more, money = purse.left()
        tokens = None if more is None else run.state.usage.total_tokens + more
        usd = None if money is None else plus(run.state.cost or NOTHING, money)
        if tokens is not None and (limits.tokens is None or tokens < limits.tokens):
            limits, found = replace(limits, tokens=tokens), replace(found, tokens=purse)
        if usd is not None and (limits.budget is None or usd < limits.budget):
            limits, found = replace(limits, usd=usd), replace(found, usd=purse)
    return found if limits is run.state.limits else replace(found, state=replace(run.state, limits=limits))


def calls_left(run: Borrower) -> int | None:
    """How many more tool calls the limits of `run` and of the runs above it leave; None where none has a limit.

    Below zero where a run was taken up under a limit lower than what it had been allowed.
    """
    left: int | None = None
    one: Borrower | None = run
    while one is not None:
        state = one.state
        limit = state.limits.tool_calls
        if limit is not None:
            free = limit - calls_begun(state) - one.lent.calls
            left = free if left is None else min(left, free)
        one = one.parent
    return left


def calls_allowed(run: Borrower) -> int | None:
    """Likewise, no fewer than none."""
    left = calls_left(run)
    return None if left is None else max(0, left)


def give_back(run: Borrower) -> None:
    """The claim of a sub-run that is over or waits: what it took stands in the parent's own account from here on.

    The runs above the parent keep their claim on it until the parent settles.
    """
    if run.parent is not None:
        run.parent.lent -= run.claimed - run.paid
        run.claimed = run.paid


def paid_before(run: Borrower, spent: Spent) -> None:
    """A sub-run is taken up again of which `spent` stands in its parent's account already."""
    run.paid = run.claimed = Claim(
        spent.steps, spent.usage.total_tokens, plus(spent.cost or NOTHING, spent.presumed), spent.tool_calls
    )
    settle(run)


def left_of(run: Borrower, seconds: float | None, own: Limits) -> Limits | None:
    """The limits of a sub-run of `run`: its `own`, within what is left; None if no step is left.

    `seconds` are those that the run has left.
    """
    limits, taken, steps = run.state.limits, used(run) + run.lent, _steps(run)
    steps = None if steps is None else steps - taken.steps
    if steps is not None and steps < 1:
        return None
    tokens, dollars = closing_part(run.state, run.model)
    usd = None if limits.budget is None else max(NOTHING, minus(limits.budget, plus(taken.usd, dollars)))
    return Limits(
        steps=_least(own.steps, steps),
        tool_calls=_least(own.tool_calls, calls_allowed(run)),
        seconds=_least(own.seconds, seconds),
        usd=_least(own.budget, usd),
        tokens=_least(own.tokens, None if limits.tokens is None else max(0, limits.tokens - taken.tokens - tokens)),
        consecutive_errors=own.consecutive_errors,
    )


def limits_again(run: Borrower, above: Borrower, seconds: float | None, own: Limits) -> Limits:
    """The limits of a sub-run that goes on where those of the run `above` have changed: its `own`, within what is left.

    `seconds` are those that the run above has left; what the sub-run has used so far is not asked for again.
    """
    left, mine = left_of(above, seconds, _NO_LIMITS), used(run)
    if left is None:
        return replace(own, steps=max(1, mine.steps))
    return Limits(
        steps=_least(own.steps, None if left.steps is None else left.steps + mine.steps),
        tool_calls=_least(own.tool_calls, None if left.tool_calls is None else left.tool_calls + mine.calls),
        seconds=_least(own.seconds, None if left.seconds is None else left.seconds + run.state.elapsed),
        usd=_least(own.budget, None if left.budget is None else plus(left.budget, mine.usd)),
        tokens=_least(own.tokens, None if left.tokens is None else left.tokens + mine.tokens),
        consecutive_errors=own.consecutive_errors,
    )


_NO_LIMITS = Limits(steps=None, tool_calls=None, seconds=None, usd=None, tokens=None, consecutive_errors=None)


def _least(one: T | None, other: T | None) -> T | None:
    return other if one is None else one if other is None else min(one, other)


def _above(run: Borrower) -> Iterator[Borrower]:
    above = run.parent
    while above is not None:
        yield above
        above = above.parent


def _set_claim(run: Borrower, wanted: Claim) -> None:
    more = wanted - run.claimed
    run.claimed = wanted
    for above in _above(run):
        above.lent += more
        above.claimed += more


def _exceeded(above: Borrower, total: Claim) -> Stop | None:
    limits, steps, where = above.state.limits, _steps(above), f"by run {above.run_id}, which this run works for"
    if steps is not None and total.steps > steps:
        return stopped("max_steps", f"the limit of {counted(limits.steps, 'step')} is used up {where}.")
    tokens, usd = closing_part(above.state, above.model)
    if limits.tokens is not None and total.tokens + tokens > limits.tokens:
        return stopped("max_tokens", f"the limit of {limits.tokens} tokens would be exceeded {where}.")
    if limits.budget is not None and plus(total.usd, usd) > limits.budget:
        return stopped("max_cost", f"the limit of {counted(limits.budget, 'dollar')} would be exceeded {where}.")
    return None
