"""Prices: what a known model's tokens cost and how long its context is, from the table in the `genai-prices` package.

Reads the table that is installed, never the network, and loads it when first asked (about 0.4 s). A model that it does
not hold has no price: unknown is a normal answer, and not the same as free. What is looked up is kept, so that a step's
cost takes a few microseconds. Neighbours: `treadle.models.price`, a price of one's own, which goes before this one;
`treadle.models.providers`, whose addresses tell who serves a model.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from treadle.kernel.messages import Usage
from treadle.kernel.money import NOTHING, over, plus, times
from treadle.models.price import MILLION
from treadle.models.providers import PROVIDERS

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

KEPT: Final = 1000
"""The most models whose row is kept."""


class Rate(Struct, frozen=True):
    """Dollars per million tokens of one kind.

    Attributes:
        usual: the price.
        tiers: (tokens, price), the largest first: the price of every token once a request has more input tokens.
    """

    usual: Decimal
    tiers: tuple[tuple[int, Decimal], ...] = ()

    def at(self, input_tokens: int) -> Decimal:
        """The price in a request of `input_tokens`."""
        return next((price for start, price in self.tiers if input_tokens > start), self.usual)


class KnownPrice(Struct, frozen=True):
    """What a model costs, as its provider charges: by kind of token, by the length of the request, by the request.

    Attributes:
        input: tokens sent, and those of the kinds below that have no price of their own; None if free.
        output: tokens received; None if free.
        cache_read: tokens read from the provider's cache.
        cache_write: tokens written to it.
        cache_write_hour: tokens written to it to be kept for an hour.
        reasoning: tokens of thinking, where they cost something else than other output.
        request: dollars for each request.
    """

    input: Rate | None
    output: Rate | None
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    cache_write_hour: Rate | None = None
    reasoning: Rate | None = None
    request: Decimal = NOTHING

    def of(self, usage: Usage, *, hour: bool = False) -> Decimal:
        """What one reply with `usage` costs, in dollars.

        Args:
            usage: the reply's tokens; the price depends on the length of its request, so not the sum of several.
            hour: whether what was written to the cache is kept there for an hour.
        """
        size, total = usage.input_tokens, NOTHING
        write = self.cache_write_hour or self.cache_write if hour else self.cache_write
        sent, received = size, usage.output_tokens
        for rate, count in ((self.cache_read, usage.cache_read_tokens), (write, usage.cache_write_tokens)):
            if rate is not None and count:
                total = plus(total, times(rate.at(size), count))
                sent -= count
        if self.reasoning is not None and usage.reasoning_tokens:
            total = plus(total, times(self.reasoning.at(size), usage.reasoning_tokens))
            received -= usage.reasoning_tokens
        if self.input is not None:
            total = plus(total, times(self.input.at(size), max(0, sent)))
        if self.output is not None:
            total = plus(total, times(self.output.at(size), max(0, received)))
        return plus(over(total, MILLION), self.request)


def known_cost(address: str, model: str, usage: Usage, *, hour: bool = False) -> Decimal | None:
    """What one reply with `usage` costs in dollars, at today's price.

    Args:
        address: the base URL of the server that answers; the same model costs differently elsewhere.
        model: the model's name there.
        usage: the reply's tokens.
        hour: whether what was written to the cache is kept there for an hour.

    Returns:
        The cost; None if the table does not hold the server or the model.
    """
    price = known_price(address, model)
    return None if price is None else price.of(usage, hour=hour)


def known_price(address: str, model: str) -> KnownPrice | None:
    """What `model` costs today at the server with the base URL `address`; None if the table does not hold it."""
    row = _row(address, model)
    if row is None:
        return None
    if isinstance(row.prices, list):
        return _flat(row.get_prices(datetime.now(UTC)))
    return _flat(row.prices)


def known_context(address: str, model: str) -> int | None:
    """The most tokens that a request to `model` may have; None if the table does not say."""
    row = _row(address, model)
    return None if row is None else row.context_window


def cost(name: str, usage: Usage) -> Decimal | None:
    """What one reply with `usage` costs at the model called `name`, such as "openai:gpt-5", at its provider's address.

    None for models that the table does not hold, and for those on machines of one's own (`ollama:`, `local:`).
    """
    return known_cost(*_served(name), usage)


def context_window(name: str) -> int | None:
    """The most tokens that a request to the model called `name` may have; None if the table does not say."""
    return known_context(*_served(name))


def _served(name: str) -> tuple[str, str]:
    """Where the model called `name` is served, and its name there."""
    label, _, model = name.partition(":")
    provider = PROVIDERS.get(label)
    return ("" if provider is None else provider.base_url), model


# The table's rows by address and model, and the table that they are of: its users may put another in its place.
_rows: dict[tuple[str, str], "ModelInfo | None"] = {}
_prices: dict[int, tuple["ModelPrice", KnownPrice | None]] = {}
_table: list[Any] = [None]


def _row(address: str, model: str) -> "ModelInfo | None":
    from genai_prices.data_snapshot import get_snapshot

    table = get_snapshot()
    if table is not _table[0]:
        _rows.clear()
        _prices.clear()
        _table[0] = table
    key = (address, model)
    if key in _rows:
        return _rows[key]
    if len(_rows) >= KEPT:
        _rows.clear()
    try:
        found = table.find_provider_model(model, None, None, address)[1] if address and model else None
    except LookupError:
        found = None
    _rows[key] = found
    return found


def _flat(price: "ModelPrice") -> KnownPrice | None:
    """The price as plain rates; None if tokens have none."""
    # The row that a price belongs to is kept by the table, and the price itself here, so its id stays its own.
    kept = _prices.get(id(price))
    if kept is not None:
        return kept[1]
    values: Mapping[str, Any] = vars(price)
    known = None
    if values.get("input_mtok") is not None or values.get("output_mtok") is not None:
        known = KnownPrice(
            _rate(values.get("input_mtok")),
            _rate(values.get("output_mtok")),
            _rate(values.get("cache_read_mtok")),
            _rate(values.get("cache_write_mtok")),
            _rate(values.get("cache_write_1h_mtok")),
            _rate(values.get("output_reasoning_mtok")),
            over(values.get("requests_kcount") or NOTHING, 1000),
        )
    if len(_prices) >= KEPT:
        _prices.clear()
    _prices[id(price)] = (price, known)
    return known


def _rate(value: Any) -> Rate | None:
    if value is None or isinstance(value, Decimal):
        return None if value is None else Rate(value)
    return Rate(value.base, tuple((tier.start, tier.price) for tier in reversed(value.tiers)))
