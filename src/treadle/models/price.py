"""Price: what a model's tokens cost."""

from decimal import Decimal

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Usage

MILLION = Decimal(1_000_000)


class Price:
    """Dollars per million tokens; reads from and writes to the provider's cache cost as input unless given.

    Args:
        input: tokens sent.
        output: tokens received, thinking included.
        cache_read: tokens sent that were read from the cache.
        cache_write: tokens sent that were written to it.

    Raises:
        Misuse: a price is negative or not a number.
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
        return (
            max(0, plain) * self.input
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
            + usage.output_tokens * self.output
        ) / MILLION

    def __repr__(self) -> str:
        return f"Price(input={self.input}, output={self.output})"


def _dollars(name: str, value: float | Decimal) -> Decimal:
    amount = Decimal(str(value))
    if not amount.is_finite() or amount < 0:
        raise Misuse(f"Price({name}=…) takes dollars per million tokens, 0 or more; it was given {value!r}")
    return amount
