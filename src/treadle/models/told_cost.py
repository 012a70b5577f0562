"""Told cost: what a server itself says that a reply cost. Pure.

Only where a server is known to mean what it charges: others pass fields of this name on, or estimate. Neighbours:
the decoders of OpenAI's two dialects; `treadle.models.hosts`, which knows the servers.
"""

from decimal import Decimal
from typing import Final

from treadle.kernel.messages import Json
from treadle.kernel.money import dollars, plus
from treadle.models.counts import fields_in

TELLING: Final = frozenset({"openrouter", "perplexity"})
"""The providers that say so, by name; wherever they are reached."""


def cost_in(usage: Json) -> Decimal | None:
    """What a provider says that a reply cost, in dollars.

    OpenRouter says it as a number; with a key of one's own at the provider behind it, both bills count. Perplexity says
    it in parts and in all, with its fees for requests and searches, which no count of tokens tells.

    Sources: https://openrouter.ai/docs/use-cases/usage-accounting,
    https://docs.perplexity.ai/api-reference/chat-completions-post
    """
    if parts := fields_in(usage, "cost"):
        return dollars(parts.get("total_cost"))
    told = dollars(usage.get("cost"))
    if told is None or not usage.get("is_byok"):
        return told
    upstream = dollars(fields_in(usage, "cost_details").get("upstream_inference_cost"))
    return None if upstream is None else plus(told, upstream)
