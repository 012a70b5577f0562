"""Bill: what the attempts at one thing that is no step have taken, such as those at a summary, and whether the limits
allow another.
"""

from decimal import Decimal

from treadle.drivers.purse.claims import Borrower, claim
from treadle.drivers.purse.dearest import read_again
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.reckoning import PLAIN, closing_part, price_of, worst_price
from treadle.kernel.events import Reserve
from treadle.kernel.messages import ModelSettings, Usage
from treadle.kernel.money import NOTHING, minus, plus, total
from treadle.models.port import Model


class Bill:
    """Tokens and dollars.

    Attributes:
        usage: their tokens; None if nothing was taken.
        cost: their dollars; None if nothing was taken, or the price of any of it is not known.
        reserve: their worst case with the one that was allowed last, where a limit or a budget bounds it.
    """

    __slots__ = ("cost", "reserve", "usage")

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.cost: Decimal | None = None
        self.reserve: Reserve | None = None

    def add(
        self, model: Model, usage: Usage | None, cost: Decimal | None = None, settings: ModelSettings = PLAIN
    ) -> None:
        """Takes one attempt at `model` with `settings` into account, at what it said that this cost, else its price."""
        if usage is None:
            return
        known = self.usage is None or self.cost is not None
        if cost is None:
            cost = price_of(model, usage, settings)
        self.cost = total(self.cost, cost) if known and cost is not None else None
        self.usage = usage if self.usage is None else self.usage + usage

    async def refused(self, run: Borrower, model: Model, settings: ModelSettings, asked: int) -> str:
        """Reserves one more attempt, as `reserve`; why it may not be made, in words, or empty if it may.

        It leaves what a closing reply of the run takes.

        Args:
            run: for which it is made.
            model: that is asked.
            settings: with what; the longest reply is among them.
            asked: tokens of the request.
        """
        limits, taken, paid = run.state.limits, (self.usage or Usage()).total_tokens, self.cost or NOTHING
        closing, dollars = closing_part(run.state, run.model)
        asked, reply = asked + read_again(model, settings), settings.max_tokens or 0
        worst = worst_price(model, settings, asked, reply)
        if limits.tokens is not None:
            left = limits.tokens - run.state.usage.total_tokens - taken - closing
            if asked + reply > left:
                return f"it may take {asked + reply} tokens, and {left} are left of the run's limit"
        if limits.budget is not None:
            money = minus(limits.budget, plus(plus(run.state.cost or NOTHING, paid), dollars))
            if worst is None:
                return f"the price of {model.name} is not known, and the run's money is limited"
            if worst > money:
                return f"it may cost {worst} dollars, and {money} are left of the run's limit"
        reserve = Reserve(taken + asked + reply, None if worst is None else plus(paid, worst), reply)
        stop = await patiently(lambda: claim(run, reserve))
        bounded = limits.tokens is not None or limits.budget is not None or bool(run.purses)
        self.reserve = reserve if stop is None and bounded else None
        return "" if stop is None else stop.detail
