"""Prices: what a known model's tokens cost and how long its context is, from the table in the `genai-prices` package.

Reads the table that is installed (the extra `http`), never the network, and loads it when first asked (about 0.4 s). A
model that it does not hold has no price: unknown is a normal answer, and not the same as free. What is looked up is
kept, so that a step's cost takes a few microseconds. Neighbours: `treadle.models.price`, a price of one's own,
which goes before this one; `treadle.models.providers`, whose addresses tell who serves a model.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Usage
from treadle.kernel.money import NOTHING, over, times
from treadle.models.price import Price
from treadle.models.providers import ALIASES, PROVIDERS
from treadle.models.terms import USUAL

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

KEPT: Final = 1000
"""The most models whose row is kept."""

KINDS: Final[Mapping[str, str]] = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_hour",
    "output_reasoning_mtok": "reasoning",
    "input_audio_mtok": "audio",
    "output_image_mtok": "image",
}
"""What the table calls the kinds of token, and what `Price` does."""

FLEX_AS_USUAL: Final = "//api.groq.com/"
"""Whose "flex" service costs as usual. Source: https://console.groq.com/docs/flex-processing"""

IN_US: Final = ("//api.anthropic.com", Decimal("1.1"))
"""Where inference that is held to the United States ("us") costs more, and how many times as much.

Source: https://platform.claude.com/docs/en/about-claude/pricing#data-residency-pricing
"""

LISTED_AS: Final = (("//api.together.ai/", "//api.together.xyz/"),)
"""Addresses of servers that the table has under another one."""

SERVICES: Final = ("service_tier", "processing", "speed")
"""Under which names the table has other services than the usual."""


def known_cost(address: str, model: str, usage: Usage) -> Decimal | None:
    """What one reply with `usage` costs in dollars, at today's price.

    Args:
        address: the base URL of the server that answers; the same model costs differently elsewhere.
        model: the model's name there.
        usage: the reply's tokens.

    Returns:
        The cost; None if the table does not hold the server, the model, the service that the reply was given by, or
        what a search of the web costs there.
    """
    price = known_price(address, model)
    if price is None:
        return None
    service = usage.service
    if service and service not in price.services and not (service == "flex" and FLEX_AS_USUAL in address):
        return None
    return price.of(usage)


def _dearer(price: Price, factor: Decimal) -> Price:
    """`price` with tokens that cost `factor` times as much."""
    rates: dict[str, Any] = {kind: times(getattr(price, kind), factor) for kind in KINDS.values()}
    above = {start: _dearer(longer, factor) for start, longer in price.above.items()}
    return Price(**rates, request=price.request, web_search=price.web_search, above=above)


def known_price(address: str, model: str) -> Price | None:
    """What `model` costs today at the server with the base URL `address`; None if the table does not hold it.

    Its `services` are those that the table has a price for, as "flex", "priority", "batch" and "fast".
    """
    row = _row(address, model)
    if row is None:
        return None
    return _price(row, datetime.now(UTC), IN_US[0] in address)


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
    provider = PROVIDERS.get(ALIASES.get(label, label))
    return ("" if provider is None else provider.base_url), model


# The table's rows by address and model, and the table that they are of: its users may put another in its place.
_rows: dict[tuple[str, str], "ModelInfo | None"] = {}
_prices: dict[tuple[int, ...], tuple["ModelPrice", Price | None]] = {}
_table: list[Any] = [None]


def is_installed() -> bool:
    """Whether the table is there; without it, no price and no window is known."""
    return find_spec("genai_prices") is not None


def _row(address: str, model: str) -> "ModelInfo | None":
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    table = get_snapshot()
    for now, listed in LISTED_AS:
        address = address.replace(now, listed)
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


def _price(row: "ModelInfo", now: datetime, by_region: bool = False) -> Price | None:
    """What a row says that a model costs at `now`; None if tokens have no price."""
    usual = row.get_prices(now) if isinstance(row.prices, list) else row.prices
    variants = row.price_variants or ()
    # The row that a price belongs to is kept by the table, and the price itself here, so its id stays its own.
    key = (id(usual), *[i for i, one in enumerate(variants) if one.constraint is None or one.constraint.active(now)])
    kept = _prices.get(key)
    if kept is not None:
        return kept[1]
    services: dict[str, Price] = {}
    for place in key[1:]:
        (name, word), *others = variants[place].when.items()
        if name in SERVICES and word not in USUAL and not others:
            served = _plain(row.get_prices(now, {name: word}))
            if served is not None:
                services.setdefault(word, served)
    plain = _plain(usual)
    if by_region and plain is not None:
        services |= {f"{word} us".strip(): _dearer(one, IN_US[1]) for word, one in [("", plain), *services.items()]}
    if len(_prices) >= KEPT:
        _prices.clear()
    _prices[key] = (usual, price := _plain(usual, services))
    return price


def _plain(price: "ModelPrice", services: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a row; None if tokens have none, or one that cannot be told."""
    values: Mapping[str, Any] = vars(price)
    if values.get("input_mtok") is None and values.get("output_mtok") is None:
        return None
    starts = {tier.start for name in KINDS for tier in getattr(values.get(name), "tiers", ())}
    rest: dict[str, Any] = {
        name: over(values[key], 1000)
        for name, key in (("request", "requests_kcount"), ("web_search", "web_searches_kcount"))
        if isinstance(values.get(key), Decimal)
    }
    try:
        above = {start: Price(**_rates(values, start)) for start in starts}
        return Price(**_rates(values, None), **rest, above=above, services=services)
    except Misuse:
        return None


def _rates(values: Mapping[str, Any], above: int | None) -> dict[str, Any]:
    """The price of each kind of token in requests of more than `above` tokens; None for the usual ones."""
    rates: dict[str, Any] = {"input": NOTHING, "output": NOTHING}
    for key, name in KINDS.items():
        value = values.get(key)
        if isinstance(value, Decimal):
            rates[name] = value
        elif value is not None:
            reached = [tier.price for tier in value.tiers if above is not None and tier.start <= above]
            rates[name] = reached[-1] if reached else value.base
    return rates
