"""Reckon: what one more model call may take at most, kept within what is left of the run's tokens and money."""

from decimal import Decimal

from msgspec.structs import replace

from treadle.context.tokens import estimate_text, estimate_tokens, next_tokens
from treadle.drivers.purse.budget import Budget
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Reserve, StepPrepared
from treadle.kernel.messages import Usage
from treadle.kernel.money import minus, over, times
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.models.errors import ModelError
from treadle.models.extra import longest
from treadle.models.port import Model
from treadle.models.sound import cost_of, count_of

DEFAULT_REPLY_TOKENS = 8192
"""The longest reply that is reckoned with where neither the settings nor the model say how long one may be."""

UNBOUNDED = 1 << 40
"""More tokens than any reply has."""

LEAST_REPLY_TOKENS = 16
"""A reply that could not be longer than this is not asked for."""


def capped(state: RunState, event: StepPrepared, model: Model) -> StepPrepared:
    """`event` with the call's worst case in `reserve`, and its reply limited so that this fits what is left."""
    settings = event.settings or state.settings
    asked = _request_tokens(state, event)
    most = longest(settings) or count_of(model, "max_output_tokens") or DEFAULT_REPLY_TOKENS
    limits, budget = state.limits, state.limits.budget
    room = most
    if limits.tokens is not None:
        room = min(room, limits.tokens - state.usage.total_tokens - asked)
    if budget is not None:
        room = min(room, _affordable(model, asked, minus(budget, state.cost or Decimal(0))))
    reply = max(room, min(most, LEAST_REPLY_TOKENS))
    usd = None if budget is None else worst_price(model, asked, reply)
    return replace(event, settings=replace(settings, max_tokens=reply), reserve=Reserve(asked + reply, usd))


def _request_tokens(state: RunState, event: StepPrepared) -> int:
    if event.messages is not None:
        return state.started.tool_tokens + sum(estimate_tokens(message) for message in event.messages)
    extra = estimate_text(event.note) + estimate_text(event.instructions or "")
    return next_tokens(state) + (extra if extra > 2 else 0)


def _affordable(model: Model, asked: int, left: Decimal) -> int:
    """How many tokens of reply `left` dollars pay for, once the request is paid. Prices are linear in the reply."""
    request = worst_price(model, asked, 0)
    more = worst_price(model, asked, 1000)
    if request is None or more is None:
        return 0
    if more == request:
        return UNBOUNDED if request <= left else 0
    share = over(minus(left, request), minus(more, request))
    return int(times(share, 1000))


def worst_price(model: Model, asked: int, reply: int) -> Decimal | None:
    """What a request of `asked` tokens and its `reply` can cost at most: all that is sent may be written to a cache."""
    plain = price_of(model, Usage(asked, reply))
    written = price_of(model, Usage(asked, reply, cache_write_tokens=asked))
    return None if plain is None or written is None else max(plain, written)


def price_of(model: Model, usage: Usage) -> Decimal | None:
    """What `usage` costs at `model`; None also where the model fails to say: the call that follows tells why."""
    try:
        return cost_of(model, usage)
    except ModelError:
        return None


def require_price(model: Model, bound: Limits | Budget) -> None:
    """Raises `Misuse` if `bound` bounds money and the price of `model` is not known."""
    if bound.usd is None:
        return
    why = f"the price of {model.name} is not known"
    try:
        if cost_of(model, Usage(1, 1)) is not None:
            return
    except ModelError as error:
        why = str(error)
    what = bound if isinstance(bound, Budget) else f"Limits(usd={bound.usd})"
    raise Misuse(
        f"{what} cannot be kept: {why}. Give the model a price (price=Price(input=…, output=…), in "
        "dollars per million tokens), or limit tokens instead"
    )
