"""Fallback: several models as one, of which the first that can answers.

It asks one model after the other and never the same one twice in a call: trying again is the driver's. What it
remembers is which model failed lately, so that the next call does not begin with it. Neighbours: `treadle.models.port`;
`treadle.drivers.think`, which tries a failed call again.
"""

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Final

from msgspec import Struct, structs

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json, ModelSettings, ToolSpec, Usage
from treadle.kernel.money import NOTHING, minus, plus
from treadle.models import errors
from treadle.models.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from treadle.models.fixed import fixed_tokens
from treadle.models.inner import inner_events
from treadle.models.port import (
    AttemptFailed,
    Model,
    ModelEvent,
    ModelReply,
    ModelRequest,
    UsageReported,
    held_to,
    is_model,
    longest_reply_of,
)
from treadle.models.profile import ModelProfile, profile_of, profile_of_any
from treadle.models.sound import cost_of
from treadle.models.terms import Terms, terms_of

ENDLESS: Final = 1 << 60
"""More tokens than any model takes."""

MOVES_ON: Final[tuple[type[ModelError], ...]] = (
    RateLimited,
    Overloaded,
    ConnectionFailed,
    ModelTimeout,
    ProtocolError,
    AuthenticationFailed,
)
"""The errors that another model may not have; a request that is bad or filtered is most likely so everywhere."""


class Failure(Struct, frozen=True):
    """How a model failed last.

    Attributes:
        model: the model's name.
        kind: the class of what it raised.
        words: what that said.
        until: when it may be asked again, on the monotonic clock.
        told: whether the provider itself said how long to wait; it is then not asked before, not even as the last one.
    """

    model: str
    kind: type[ModelError]
    words: str
    until: float
    told: bool


class FallbackModel:
    """Asks the first of several models, and the next where one fails.

    A model that failed is passed over for a while, by all runs that use this object, unless the others fail too; one
    whose provider said how long to wait is not asked before. The whole reply bears the name of the model that answered,
    which is then in the journal, and what it cost there; the failures before it stand there too (`AttemptFailed`).

    Once a piece of a reply was passed on, the models are not mixed: the error is raised, and whoever tries the call
    again, as runs do, gets the next model.

    Args:
        models: the models, the best first.
        cool_down: seconds for which a model that failed is passed over, if its provider did not say how long.
        on: the errors after which another model is asked. By default those that are the model's own trouble: limits,
            overload, connection, time, protocol and key. With `ContextOverflow` among them, any other model is asked;
            without, only those that are known to have a larger context (`context_window`).

    Raises:
        Misuse: there are no models, or what is in `on` is not an error of models.
    """

    def __init__(
        self, models: Iterable[Model], *, cool_down: float = 60.0, on: Iterable[type[ModelError]] = MOVES_ON
    ) -> None:
        self.models: Sequence[Model] = tuple(models) if isinstance(models, Iterable) else ()
        self.cool_down = cool_down
        self.on = tuple(on) if isinstance(on, Iterable) else (on,)
        if not self.models or not all(map(is_model, self.models)):
            raise Misuse(
                "FallbackModel takes a list of models, such as [AnthropicModel(…), model_from_name('openai:gpt-5')]"
            )
        if not all(isinstance(kind, type) and issubclass(kind, ModelError) for kind in self.on):
            raise Misuse("FallbackModel(on=…) takes classes of treadle.models.ModelError, such as RateLimited")
        if not cool_down >= 0:
            raise Misuse(f"cool_down is a number of seconds, 0 or more; it was given {cool_down!r}")
        # One entry a model, by its place in the chain.
        self._failures: dict[int, Failure] = {}

    @property
    def name(self) -> str:
        """All its models' names; a reply has the name of the one that answered."""
        return f"fallback({', '.join(model.name for model in self.models)})"

    def __repr__(self) -> str:
        return f"FallbackModel([{', '.join(repr(model) for model in self.models)}])"

    @property
    def max_output_tokens(self) -> int | None:
        """The longest reply that one of its models may give; None if one does not say."""
        return self.longest_reply(ModelSettings())

    def longest_reply(self, settings: ModelSettings) -> int | None:
        """The most tokens that a reply of one of its models may have under `settings`; None if one does not say."""
        longest = [longest_reply_of(model, settings) for model in self.models]
        known = [most for most in longest if most is not None]
        return max(known) if len(known) == len(longest) else None

    def held_to(self, settings: ModelSettings, tokens: int) -> ModelSettings:
        """`settings` under which no reply of its models has more than `tokens`.

        What else a model needs for that, such as less thinking, is said to that model alone, when it is asked.
        """
        return structs.replace(settings, max_tokens=tokens)

    @property
    def profile(self) -> ModelProfile:
        """What can be counted on whichever of its models answers; see `profile_of_any`."""
        return profile_of_any([profile_of(model) for model in self.models])

    def cost(self, usage: Usage) -> Decimal | None:
        """The most that `usage` may cost, in dollars; None if the price of one of its models is not known.

        It is the dearest request and the dearest reply, which may be of two models: so it grows evenly with the length
        of the reply, and a reply that is held to what is left of a budget cannot exceed it.
        """
        request = structs.replace(usage, output_tokens=0, reasoning_tokens=0)
        requests, replies = [NOTHING], [NOTHING]
        for model in self.models:
            sent, both = cost_of(model, request), cost_of(model, usage)
            if sent is None or both is None:
                return None
            requests.append(sent)
            replies.append(minus(both, sent))
        return plus(max(requests), max(replies))

    def terms(self, settings: ModelSettings) -> Terms:
        """The terms of all its models together: any of them may answer."""
        all_terms = [terms_of(model, settings) for model in self.models]
        searches = max(terms.searches for terms in all_terms)
        endless = [terms.endless for terms in all_terms if terms.endless]
        if searches and not all([profile_of(model).context_window for model in self.models]):
            endless.append("web_search")
        return Terms(
            tuple(dict.fromkeys(service for terms in all_terms for service in terms.services)),
            any(terms.hour for terms in all_terms),
            searches,
            endless[0] if endless else "",
        )

    def fixed_tokens(self, tools: Sequence[ToolSpec], output_schema: Json | None) -> int:
        """Tokens that a request with these has besides its messages, at that of its models where it is the most."""
        return max(fixed_tokens(model, tools, output_schema) for model in self.models)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Replies to `request`, the whole reply last.

        Raises:
            ModelError: no model could answer, or one failed in the middle of its reply. If any of the failures is one
                that passes, the error is of that kind, and `retry_after` is when the first model can be asked again.
        """
        order, failed = self._order()
        last: AttemptFailed | None = None
        asked: Model | None = None
        window = 0
        for place in order:
            model = self.models[place]
            if window and not (profile_of(model).context_window or 0) > window:
                continue
            if last is not None:
                yield last
            begun, asked = False, model
            try:
                async with aclosing(inner_events(model, _own(model, request))) as events:
                    async for event in events:
                        begun = begun or not isinstance(event, (AttemptFailed, UsageReported))
                        yield _signed(event, model) if isinstance(event, ModelReply) else event
            except ModelError as raised:
                error = _copied(raised)
                error.model = error.model or model
                if not isinstance(error, (*self.on, ContextOverflow)):
                    raise error from raised.__cause__
                failed.append(self._note(place, error))
                if begun:
                    # A request that is too long is made shorter by whoever asks; the next call would come here again.
                    again = len(self.models) > 1 and not isinstance(error, ContextOverflow)
                    told = _passing(error) if again else error
                    told.retry_after = self._wait()
                    raise told from raised.__cause__ if told is error else error
                if isinstance(error, ContextOverflow) and not isinstance(error, self.on):
                    window = profile_of(model).context_window or ENDLESS
                last = AttemptFailed(model.name, error)
            else:
                self._failures.pop(place, None)
                return
        told = _told(failed)
        told.model = asked
        # What the models before it took was said with the failure of each.
        told.usage = None if last is None else last.error.usage
        told.gave_up = last is not None and last.error.gave_up
        raise told from None if last is None else last.error

    def _cooling(self) -> dict[int, Failure]:
        now = time.monotonic()
        return {place: failure for place, failure in self._failures.items() if failure.until > now}

    def _order(self) -> tuple[list[int], list[Failure]]:
        """The places of the models to ask, those that cool down last; the failures of those not to be asked."""
        cooling = self._cooling()
        ready = [place for place in range(len(self.models)) if place not in cooling]
        others = [place for place in sorted(cooling) if not cooling[place].told]
        return ready + others, [failure for failure in cooling.values() if failure.told]

    def _note(self, place: int, error: ModelError) -> Failure:
        """The failure of a model, remembered unless it was the request that was too long for it."""
        wait = self.cool_down if error.retry_after is None else error.retry_after
        failure = Failure(
            self.models[place].name, type(error), str(error), time.monotonic() + wait, error.retry_after is not None
        )
        if not isinstance(error, ContextOverflow):
            self._failures[place] = failure
        return failure

    def _wait(self) -> float | None:
        """Seconds until a model can be asked; None if all cool down, but not all on their provider's word."""
        cooling = self._cooling()
        return _soonest(list(cooling.values())) if len(cooling) == len(self.models) else 0.0


def _own(model: Model, request: ModelRequest) -> ModelRequest:
    """`request` for one of the models; where limits hold its reply, in the way of this model, and never longer."""
    most = request.settings.max_tokens
    if not request.held or most is None:
        return request
    free = structs.replace(request.settings, max_tokens=None)
    tokens = min(longest_reply_of(model, free) or most, most)
    return structs.replace(request, settings=held_to(model, free, tokens))


def _copied(error: ModelError) -> ModelError:
    """`error` again, to be written on: whoever raised it may raise the same object another time, in another run."""
    # Not by calling its class: a subclass of somebody's own may take other arguments.
    copied = type(error).__new__(type(error), *error.args)
    copied.__dict__.update(error.__dict__)
    copied.args, copied.__cause__ = error.args, error.__cause__
    return copied.with_traceback(error.__traceback__)


def _passing(error: ModelError) -> ModelError:
    """`error` as one that may be tried again: the same model would fail likewise, but another is asked then."""
    if error.retryable:
        return error
    passing = ProtocolError(str(error))
    passing.model, passing.usage, passing.__cause__ = error.model, error.usage, error
    return passing


def _signed(reply: ModelReply, model: Model) -> ModelReply:
    """The reply under the name of the model that gave it, with what it cost there."""
    name = reply.model if isinstance(model, FallbackModel) else model.name
    usage, cost = reply.usage, reply.cost
    # Of what is estimated the rest is completed first; whoever does that charges for all of it, at `answered_by`.
    if cost is None and usage is not None and not usage.estimated:
        cost = cost_of(model, usage)
    return structs.replace(reply, model=name, cost=cost)


def _soonest(failures: Sequence[Failure]) -> float | None:
    """Seconds until the first of the models may be asked again; None unless each was told to wait."""
    if not all(failure.told for failure in failures):
        return None
    return max(0.0, min(failure.until for failure in failures) - time.monotonic())


def _told(failures: Sequence[Failure]) -> ModelError:
    """The error for a call that no model answered: of the kind that is soonest over, if one of them passes at all."""
    passing = [failure for failure in failures if failure.kind.retryable]
    chosen = min(passing, key=lambda failure: (failure.told, failure.until)) if passing else failures[0]
    # A subclass of somebody's own may take other arguments.
    kind: type[ModelError] = next(kind for kind in chosen.kind.__mro__ if kind.__module__ == errors.__name__)
    words = "; ".join(f"{failure.model}: {failure.words}" for failure in failures)
    return kind(
        words if len(failures) == 1 else f"none of {len(failures)} models could answer: {words}",
        retry_after=_soonest(passing) if passing else None,
    )
