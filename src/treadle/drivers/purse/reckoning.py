"""Reckon: what one more model call may take at most, kept within what is left of the run's tokens and money."""

from collections.abc import Sequence
from decimal import Decimal

from msgspec.structs import replace

from treadle.context.tokens import estimate_tokens, most, next_tokens
from treadle.drivers.configuration import Configuration
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Reserve, StepPrepared
from treadle.kernel.messages import Message, Usage, UserMessage
from treadle.kernel.money import minus, over, times
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.models.errors import ModelError
from treadle.models.extra import longest
from treadle.models.fixed import fixed_tokens, members
from treadle.models.port import Model
from treadle.models.sound import cost_of, count_of

DEFAULT_REPLY_TOKENS = 8192
"""The longest reply that is reckoned with where neither the settings nor the model say how long one may be."""

WORDS_OF_REMAINING = (
    "(What is left of this task's limits: 1000 steps, this one included, 1000 tool calls, 100000 seconds, "
    "100000.0000 dollars, 1000000000 tokens.)"
)
"""About what `tell_remaining` tells the model."""

UNBOUNDED = 1 << 40
"""More tokens than any reply has."""

LEAST_REPLY_TOKENS = 16
"""A reply that could not be longer than this is not asked for."""


def capped(
    config: Configuration, state: RunState, event: StepPrepared, model: Model, counted: Model | None
) -> StepPrepared:
    """`event` with the call's worst case in `reserve`, and its reply limited so that this fits what is left.

    `counted` is the model that replied last and so has counted the history; None if none has in this process.
    """
    settings = event.settings or state.settings
    asked = request_tokens(config, state, event, model, counted)
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


def request_tokens(
    config: Configuration, state: RunState, event: StepPrepared, model: Model, counted: Model | None
) -> int:
    """What the request of the step that `event` prepares has at most, if it is asked of `model`.

    What a provider has counted is taken as it said, as long as no model may answer but the one that `counted`: another
    may make more tokens of the same text. Then all is estimated, and what is more of the two is taken.
    """
    told = [event.instructions or "", *([WORDS_OF_REMAINING] if config.tell_remaining else [])]
    if event.messages is None:
        asked = next_tokens(state)
        if _another(config, state, model, counted):
            asked = max(asked, _estimated(config, state, model, state.messages))
    else:
        asked = _estimated(config, state, model, event.messages)
    return asked + sum(estimate_tokens(UserMessage(text)) for text in [event.note, *told] if text)


def _another(config: Configuration, state: RunState, model: Model, counted: Model | None) -> bool:
    """Whether a model may answer that is not the one that counted the history."""
    if counted is None:
        # What another process asked last is not known where a function chooses.
        return len(members(model)) > 1 or model is not config.model or bool(state.steps and config.prepare_step)
    return len(members(model)) > 1 or model is not counted


def _estimated(config: Configuration, state: RunState, model: Model, messages: Sequence[Message]) -> int:
    """The tokens of a request of `messages`, nothing of which is known, by what was learnt at the most."""
    schema = None if config.output is None else config.output.schema
    fixed = config.tool_tokens if model is config.model else fixed_tokens(model, config.specs, schema)
    return round((fixed + sum(estimate_tokens(message) for message in messages)) * most(state))


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


def require_price(model: Model, limits: Limits) -> None:
    """Raises `Misuse` if `limits` bounds money and the price of `model` is not known."""
    if limits.usd is None:
        return
    why = f"the price of {model.name} is not known"
    try:
        if cost_of(model, Usage(1, 1)) is not None:
            return
    except ModelError as error:
        why = str(error)
    raise Misuse(
        f"Limits(usd={limits.usd}) cannot be kept: {why}. Give the model a price (price=Price(input=…, output=…), in "
        "dollars per million tokens), or limit tokens instead"
    )
