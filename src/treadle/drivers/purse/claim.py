"""Claim: what a run has taken, or may take."""

from decimal import Decimal

from msgspec import Struct

from treadle.kernel.money import NOTHING, minus, plus


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
