"""Known prices: what tokens cost at a provider, from the table that the `genai-prices` package carries.

Reads the table in the package and never the network. A model that it does not hold has no price: unknown is an answer,
and not the same as free. Neighbours: `treadle.models.price`, a price of one's own; `treadle.models.http_model`.
"""

from decimal import Decimal

from treadle.kernel.messages import Usage


def known_cost(address: str, model: str, usage: Usage) -> Decimal | None:
    """What `usage` costs in dollars, at today's price.

    Args:
        address: the base URL of the server that answers; the same model costs differently elsewhere.
        model: the model's name there.
        usage: the tokens.

    Returns:
        The cost; None if the table does not hold the server or the model.
    """
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    tokens = Tokens(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        return calc_price(tokens, model, provider_api_url=address).total_price
    except (LookupError, ValueError):
        # ValueError: counts that contradict one another, such as more tokens read from the cache than were sent.
        return None
