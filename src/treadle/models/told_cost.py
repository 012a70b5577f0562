"""Told cost: what a server itself says that a reply cost. Pure.

Only where a server is known to mean what it charges: others pass fields of this name on, or estimate. Neighbours:
the decoders of OpenAI's two dialects; `treadle.models.hosts`, which knows the servers.
"""

from decimal import Decimal

from treadle.kernel.messages import Json
from treadle.kernel.money import dollars, plus
from treadle.models.counts import fields_in


def cost_in(usage: Json) -> Decimal | None:
    """What OpenRouter says that a reply cost, in dollars; with a key of one's own at the provider, both bills.

    Source: https://openrouter.ai/docs/use-cases/usage-accounting
    """
    told = dollars(usage.get("cost"))
    if told is None or not usage.get("is_byok"):
        return told
    upstream = dollars(fields_in(usage, "cost_details").get("upstream_inference_cost"))
    return None if upstream is None else plus(told, upstream)
