"""Reckoning: what one more model call may take at most, kept within what is left of the run's tokens and money.

Where a limit is near, a part of what is left is kept for the closing reply, so that a run also ends with an answer
when its money does: a step is made only if a closing reply can be paid after it. Nothing here changes what a model is
told, unless the limit leaves a reply less than it may have.
"""

from decimal import Decimal
from functools import partial
from typing import Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.context.tokens import next_tokens
from treadle.drivers.purse.dearest import read_again, unbounded, worst_cost
from treadle.drivers.purse.request_size import Asking, request_tokens
from treadle.kernel.accounts import Spent
from treadle.kernel.decide import CallModel, decide
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Reserve, StepPrepared
from treadle.kernel.messages import ModelSettings, Usage
from treadle.kernel.money import NOTHING, plus
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.models.errors import ModelError
from treadle.models.port import Model, held_to, longest_reply_of
from treadle.models.prices import is_installed
from treadle.models.profile import MOST_TOKENS
from treadle.models.sound import cost_of
from treadle.models.terms import terms_of

DEFAULT_REPLY_TOKENS: Final = 8192
"""The longest reply that is reckoned with where neither the settings nor the model say how long one may be."""

PLAIN: Final = ModelSettings()
"""Settings that ask for nothing."""

LEAST_REPLY_TOKENS: Final = 16
"""A reply that could not be longer than this is not asked for."""

CLOSING_REPLY_TOKENS: Final = 1024
"""The length of the closing reply that a part of the limits is kept for."""

CLOSING_NOTE_TOKENS: Final = 120
"""What the model is told about a closing reply, rounded up."""


Reached = Literal["max_tokens", "max_cost"]
"""The stop reason of a limit on tokens or money."""


class Reckoned(Struct, frozen=True, gc=False):
    """A request and its longest reply, within limits.

    Attributes:
        event: the step, its reply no longer than the limits allow, its worst case in `reserve`.
        short: the limit that leaves nothing for a closing reply after it; None if there is enough, or none is made.
    """

    event: StepPrepared
    short: Reached | None


def reckoned(config: Asking, state: RunState, event: StepPrepared, model: Model, counted: Model | None) -> Reckoned:
    """`event` with its worst case, held to what the run's limits leave.

    `counted` is the model that replied last and so has counted the history; None if none has in this process.
    """
    settings = event.settings or state.settings
    asked = request_tokens(config, state, event, model, counted) + read_again(model, settings)
    own = _longest(model, settings)
    most = own or _default_reply(settings)
    left = _Left(state, model, settings, asked, closing_tokens(state, most) if event.landing is None else 0)
    reply, least = left.longest(most), min(most, LEAST_REPLY_TOKENS)
    short = left.limit(left.closing) if reply < left.closing else None
    if short is not None:
        # The first step may be the answer: it has all that there is.
        left = _Left(state, model, settings, asked, 0)
        reply = left.longest(most)
    limit = None if reply >= most else left.limit(reply + 1)
    reply = max(reply, least)
    if reply != own:
        settings = held_to(model, settings, reply)
        event = replace(event, settings=settings)
    usd = None if state.limits.budget is None else worst_price(model, settings, asked, reply)
    return Reckoned(replace(event, reserve=Reserve(asked + reply, usd, reply, limit)), short)


class _Left:
    """What the limits of a run leave for a request of `asked` tokens, and for a closing reply of `closing` after it."""

    __slots__ = ("_asked", "_model", "_settings", "_state", "closing")

    def __init__(self, state: RunState, model: Model, settings: ModelSettings, asked: int, closing: int) -> None:
        self._state, self._model, self._settings, self._asked = state, model, settings, asked
        self.closing = closing

    def longest(self, most: int) -> int:
        """The longest reply of at most `most` tokens that fits; 0 if none does."""
        if self._fits(most):
            return most
        low, high = 0, most
        while low < high - 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(middle) else (low, middle)
        return low

    def limit(self, reply: int) -> Reached:
        """Which limit a reply of `reply` tokens would break, or could: the stop reason that it has."""
        tokens = self._state.limits.tokens
        if tokens is not None and (self._tokens(reply) > tokens or self._state.limits.budget is None):
            return "max_tokens"
        return "max_cost"

    def _fits(self, reply: int) -> bool:
        limits = self._state.limits
        if limits.tokens is not None and self._tokens(reply) > limits.tokens:
            return False
        budget, usd = limits.budget, NOTHING if limits.budget is None else self._usd(reply)
        return budget is None or (usd is not None and usd <= budget)

    def _tokens(self, reply: int) -> int:
        after = self._asked + reply + CLOSING_NOTE_TOKENS + self.closing if self.closing else 0
        return self._state.usage.total_tokens + self._asked + reply + after

    def _usd(self, reply: int) -> Decimal | None:
        step = worst_price(self._model, self._settings, self._asked, reply)
        after: Decimal | None = NOTHING
        if self.closing:
            asked = self._asked + reply + CLOSING_NOTE_TOKENS
            after = worst_price(self._model, self._settings, asked, self.closing)
        return None if step is None or after is None else plus(plus(self._state.cost or NOTHING, step), after)


def fits(state: RunState, reserve: Reserve | None) -> bool:
    """Whether the limits of a run leave what is to be set aside."""
    limits = state.limits
    if reserve is None:
        return True
    tokens, usd = state.usage.total_tokens + reserve.tokens, plus(state.cost or NOTHING, reserve.usd or NOTHING)
    return (limits.tokens is None or tokens <= limits.tokens) and (limits.budget is None or usd <= limits.budget)


def closing_tokens(state: RunState, most: int) -> int:
    """The length of the closing reply that a part of the run's limits is kept for; 0 if none would be made."""
    return min(most, CLOSING_REPLY_TOKENS) if state.on_limit == "answer" and state.tools else 0


def closing_part(state: RunState, model: Model) -> tuple[int, Decimal]:
    """The tokens and dollars that are kept for the closing reply of a run that other runs work for."""
    limits = state.limits
    if limits.tokens is None and limits.budget is None:
        return 0, NOTHING
    reply = closing_tokens(state, _longest(model, state.settings) or CLOSING_REPLY_TOKENS)
    if not reply:
        return 0, NOTHING
    asked = next_tokens(state) + CLOSING_NOTE_TOKENS + read_again(model, state.settings)
    usd = NOTHING if limits.budget is None else worst_price(model, state.settings, asked, reply) or NOTHING
    return asked + reply, usd


def _longest(model: Model, settings: ModelSettings) -> int | None:
    most = longest_reply_of(model, settings)
    return None if most is None else max(1, min(most, MOST_TOKENS))


def _default_reply(settings: ModelSettings) -> int:
    """What is reckoned with where nobody says: what it thinks comes on top, where that is said in tokens."""
    thinking = settings.thinking
    return DEFAULT_REPLY_TOKENS + (thinking if isinstance(thinking, int) else 0)


def lost_call(state: RunState, model: Model | None) -> Spent | None:
    """The worst case of a model call that was under way when a process died; None if none was, or no limit bounds it.

    It may have been billed, and nobody can know. A call that does not fit is never made. Where money was not bounded,
    `model` says what it may have cost: the one that was asked, as far as it is known; None where it is not.
    """
    prepared = state.prepared if isinstance(decide(state), CallModel) else None
    reserve = state.asked or (None if prepared is None else prepared.reserve)
    if reserve is None:
        return None
    usage, cost = Usage(reserve.tokens - reserve.reply, reserve.reply, estimated=True), reserve.usd
    if cost is not None or model is None or state.asked is not None or prepared is None:
        return Spent(usage=usage, cost=cost)
    if (prepared.model or state.model) in ("", model.name):
        cost = worst_price(model, prepared.settings or state.settings, usage.input_tokens, usage.output_tokens)
    return Spent(usage=usage, cost=cost)


def worst_price(model: Model, settings: ModelSettings, asked: int, reply: int) -> Decimal | None:
    """What a request of `asked` tokens with `settings`, and its `reply`, can cost at most; None if nobody knows."""
    return price_of(model, Usage(asked, reply, estimated=True), settings)


def charge_of(model: Model, usage: Usage, settings: ModelSettings = PLAIN) -> Decimal | None:
    """What `usage` costs at `model`, None if its price is not known.

    What is estimated is charged at the most that it may cost on the terms of `settings`: nobody said what of it was
    written to a cache, what was thinking, and which service gave it.

    Raises:
        ModelError: the model fails to say.
    """
    plain = cost_of(model, usage)
    if plain is None or not usage.estimated:
        return plain
    terms = terms_of(model, settings)
    if not (usage.cache_read_tokens or usage.cache_write_tokens or usage.reasoning_tokens or usage.service):
        if usage.web_searches > terms.searches:
            terms = replace(terms, searches=usage.web_searches)
        return worst_cost(partial(cost_of, model), terms, usage.input_tokens, usage.output_tokens)
    services = (usage.service,) if usage.service else terms.services
    thought = {usage.reasoning_tokens, usage.output_tokens}
    ways = [replace(usage, service=word, reasoning_tokens=most) for word in services for most in thought]
    costs = [cost_of(model, way) for way in ways]
    known = [cost for cost in costs if cost is not None]
    return max(known) if len(known) == len(costs) else None


def price_of(model: Model, usage: Usage, settings: ModelSettings = PLAIN) -> Decimal | None:
    """Likewise; None also where the model fails to say: the call that follows tells why."""
    try:
        return charge_of(model, usage, settings)
    except ModelError:
        return None


class Bounds(Protocol):
    """What bounds dollars or tokens: limits, or a budget."""

    @property
    def usd(self) -> Decimal | float | None:
        """Dollars."""

    @property
    def tokens(self) -> int | None:
        """Tokens."""


def require_price(model: Model, settings: ModelSettings, bounds: Bounds) -> None:
    """Raises `Misuse` if `bounds` has any and nobody knows what a call of `model` with `settings` takes at most."""
    if bounds.usd is None and bounds.tokens is None:
        return
    # Where a budget is kept is nobody's who may choose another model at a server.
    name = "Limits" if isinstance(bounds, Limits) else "Budget"
    kept = f"{name}(usd={bounds.usd})" if bounds.usd is not None else f"{name}(tokens={bounds.tokens})"
    if open_end := unbounded(model, settings):
        raise Misuse(
            f"{kept} cannot be kept: {open_end}. Leave it out, or the limit; web searches that are asked for are "
            "bounded by max_uses= in the tool (Anthropic) or max_tool_calls= beside it (OpenAI)"
        )
    if bounds.usd is None:
        return
    why, terms = f"the price of {model.name} is not known", terms_of(model, settings)
    fee = ", web_search=…" if terms.searches else ""
    try:
        if cost_of(model, Usage(1, 1)) is not None:
            special = [f"{word!r} service" for word in terms.services if word] + ["web searches"] * bool(terms.searches)
            if not special or worst_cost(partial(cost_of, model), terms, 1, 1) is not None:
                return
            why += f" for {' and '.join(special)}"
    except ModelError as error:
        why = str(error)
    table = "" if is_installed() else ' (the table of prices is not installed: pip install "treadle[http]")'
    raise Misuse(
        f"{kept} cannot be kept: {why}{table}. Give the model a price (price=Price(input=…, output=…{fee}), in dollars "
        f"per million tokens{' and per search' if fee else ''}), or limit tokens instead"
    )
