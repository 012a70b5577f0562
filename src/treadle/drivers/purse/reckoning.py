"""Reckon: what one more model call may take at most, kept within what is left of the run's tokens and money."""

from decimal import Decimal

from msgspec.structs import replace

from treadle.context.tokens import estimate_text, estimate_tokens, next_tokens
from treadle.drivers.purse.dearest import read_again, unbounded, worst_cost
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Reserve, StepPrepared
from treadle.kernel.messages import ModelSettings, Usage
from treadle.kernel.money import minus, over, times
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.models.errors import ModelError
from treadle.models.extra import longest
from treadle.models.port import Model
from treadle.models.sound import cost_of, count_of
from treadle.models.terms import terms_of

DEFAULT_REPLY_TOKENS = 8192
"""The longest reply that is reckoned with where neither the settings nor the model say how long one may be."""

PLAIN = ModelSettings()
"""Settings that ask for nothing."""

UNBOUNDED = 1 << 40
"""More tokens than any reply has."""

LEAST_REPLY_TOKENS = 16
"""A reply that could not be longer than this is not asked for."""


def capped(state: RunState, event: StepPrepared, model: Model) -> StepPrepared:
    """`event` with the call's worst case in `reserve`, and its reply limited so that this fits what is left."""
    settings = event.settings or state.settings
    asked = _request_tokens(state, event) + read_again(model, settings)
    most = longest(settings) or count_of(model, "max_output_tokens") or DEFAULT_REPLY_TOKENS
    limits, budget = state.limits, state.limits.budget
    room = most
    if limits.tokens is not None:
        room = min(room, limits.tokens - state.usage.total_tokens - asked)
    if budget is not None:
        room = min(room, _affordable(model, settings, asked, minus(budget, state.cost or Decimal(0))))
    reply = max(room, min(most, LEAST_REPLY_TOKENS))
    usd = None if budget is None else worst_price(model, settings, asked, reply)
    return replace(event, settings=replace(settings, max_tokens=reply), reserve=Reserve(asked + reply, usd))


def _request_tokens(state: RunState, event: StepPrepared) -> int:
    if event.messages is not None:
        return state.started.tool_tokens + sum(estimate_tokens(message) for message in event.messages)
    extra = estimate_text(event.note) + estimate_text(event.instructions or "")
    return next_tokens(state) + (extra if extra > 2 else 0)


def _affordable(model: Model, settings: ModelSettings, asked: int, left: Decimal) -> int:
    """How many tokens of reply `left` dollars pay for, once the request is paid. Prices are linear in the reply."""
    request = worst_price(model, settings, asked, 0)
    more = worst_price(model, settings, asked, 1000)
    if request is None or more is None:
        return 0
    if more == request:
        return UNBOUNDED if request <= left else 0
    share = over(minus(left, request), minus(more, request))
    return int(times(share, 1000))


def worst_price(model: Model, settings: ModelSettings, asked: int, reply: int) -> Decimal | None:
    """What a request of `asked` tokens with `settings`, and its `reply`, can cost at most; None if nobody knows."""
    return worst_cost(lambda usage: price_of(model, usage), terms_of(model, settings), asked, reply)


def price_of(model: Model, usage: Usage, settings: ModelSettings = PLAIN) -> Decimal | None:
    """What `usage` costs at `model`; None also where the model fails to say: the call that follows tells why.

    What is estimated has the dearest price on the terms of `settings`, for nobody said which service gave it.
    """
    services = terms_of(model, settings).services if usage.estimated and not usage.service else ()
    try:
        costs = [cost_of(model, replace(usage, service=word)) for word in services] or [cost_of(model, usage)]
    except ModelError:
        return None
    known = [cost for cost in costs if cost is not None]
    return max(known) if len(known) == len(costs) else None


def require_price(model: Model, limits: Limits, settings: ModelSettings) -> None:
    """Raises `Misuse` if `limits` bounds money or tokens and nobody knows what a call with `settings` takes at most."""
    if limits.usd is None and limits.tokens is None:
        return
    kept = f"Limits(usd={limits.usd})" if limits.usd is not None else f"Limits(tokens={limits.tokens})"
    if open_end := unbounded(model, settings):
        raise Misuse(
            f"{kept} cannot be kept: {open_end}. Bound web searches by max_uses= in the tool (Anthropic) or "
            "max_tool_calls= beside it (OpenAI), or leave the limit out"
        )
    if limits.usd is None:
        return
    why, terms = f"the price of {model.name} is not known", terms_of(model, settings)
    try:
        if cost_of(model, Usage(1, 1)) is not None:
            special = [f"{word!r} service" for word in terms.services if word] + ["web searches"] * bool(terms.searches)
            if not special or worst_cost(lambda usage: cost_of(model, usage), terms, 1, 1) is not None:
                return
            why += f" for {' and '.join(special)}"
    except ModelError as error:
        why = str(error)
    raise Misuse(
        f"{kept} cannot be kept: {why}. Give the model a price (price=Price(input=…, output=…), in "
        "dollars per million tokens), or limit tokens instead"
    )
