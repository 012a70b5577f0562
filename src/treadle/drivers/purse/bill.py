"""Bill: what the attempts at one thing that is no step have taken, such as those at a summary."""

from decimal import Decimal

from treadle.drivers.purse.reckoning import price_of
from treadle.kernel.messages import Usage
from treadle.kernel.money import total
from treadle.models.port import Model


class Bill:
    """Tokens and dollars.

    Attributes:
        usage: their tokens; None if nothing was taken.
        cost: their dollars; None if nothing was taken, or the price of any of it is not known.
    """

    __slots__ = ("cost", "usage")

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.cost: Decimal | None = None

    def add(self, model: Model, usage: Usage | None, cost: Decimal | None = None) -> None:
        """Takes one attempt at `model` into account, at what it said that this cost, else at its price."""
        if usage is None:
            return
        known = self.usage is None or self.cost is not None
        if cost is None:
            cost = price_of(model, usage)
        self.cost = total(self.cost, cost) if known and cost is not None else None
        self.usage = usage if self.usage is None else self.usage + usage
