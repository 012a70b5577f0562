"""Price: what a model's tokens cost."""

import reprlib
from decimal import Decimal

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Usage
from treadle.kernel.money import MOST, dollars, over, plus, times

MILLION = 1_000_000


class Price:
    """Dollars per million tokens; reads from and writes to the provider's cache cost as input unless given.

    Args:
        input: tokens sent.
        output: tokens received, thinking included.
        cache_read: tokens sent that were read from the cache.
        cache_write: tokens sent that were written to it.

    Raises:
        Misuse: a price is negative, not finite, or not a number; text is none.
    """

    __slots__ = ("cache_read", "cache_write", "input", "output")

    def __init__(
        self,
        input: float | Decimal,
        output: float | Decimal,
        cache_read: float | Decimal | None = None,
        cache_write: float | Decimal | None = None,
    ) -> None:
        self.input = _dollars("input", input)
        self.output = _dollars("output", output)
        self.cache_read = self.input if cache_read is None else _dollars("cache_read", cache_read)
        self.cache_write = self.input if cache_write is None else _dollars("cache_write", cache_write)

    def of(self, usage: Usage) -> Decimal:
        """What `usage` costs, in dollars."""
        plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        sent = times(self.input, max(0, plain))
        cached = plus(
            times(self.cache_read, usage.cache_read_tokens), times(self.cache_write, usage.cache_write_tokens)
        )
        return over(plus(plus(sent, cached), times(self.output, usage.output_tokens)), MILLION)

    def __repr__(self) -> str:
        return f"Price(input={self.input}, output={self.output})"


def _dollars(name: str, value: float | Decimal) -> Decimal:
    amount = dollars(value)
    if amount is None:
        raise Misuse(
            f"Price({name}=…) takes dollars per million tokens, a number (int, float or Decimal) from 0 to {MOST:,}; "
            f"it was given {reprlib.repr(value)}"
        )
    return amount
