"""Price: what a model costs, by kind of token, by the length of the request, by the request and by the service.

Pure. Neighbours: `treadle.models.prices`, which makes prices of the table of known models;
`treadle.models.price_table`, a table of one's own.
"""

import reprlib
from collections.abc import Mapping
from decimal import Decimal
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, Final, Self

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Usage
from treadle.kernel.money import MOST, dollars, over, plus, times
from treadle.models.terms import ELSEWHERE

MILLION: Final = 1_000_000

Amount = float | Decimal
"""Dollars as a person gives them."""

KINDS: Final = ("input", "output", "cache_read", "cache_write", "cache_write_hour", "reasoning", "audio", "image")
"""The kinds of token that may have prices of their own."""


def _check_named(known: Signature, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    try:
        known.bind(None, *given, **named)
    except TypeError as error:
        names = ", ".join([*known.parameters][1:])
        raise Misuse(f"Price(input=…, output=…), in dollars per million tokens: {error}; it takes {names}") from None


class _Named(type):
    """Says which arguments there are by a `Misuse`, as all else about a price is said."""

    # Type checkers know the arguments from `__init__`, which a `__call__` would hide from them.
    if not TYPE_CHECKING:

        def __call__(cls, *given: Any, **named: Any) -> Any:
            try:
                return super().__call__(*given, **named)
            except TypeError:
                _check_named(signature(cls.__init__), given, named)
                raise

        @property
        def __signature__(cls) -> Signature:
            """What it takes, which `help` would look for in `__call__`."""
            known = signature(cls.__init__)
            return known.replace(parameters=[*known.parameters.values()][1:])


class Price(metaclass=_Named):
    """Dollars per million tokens, and what is paid beside them: `Price(input=3, output=15)`, `Price(0, 0)` if free.

    Args:
        input: tokens sent.
        output: tokens received, thinking included.
        cache_read: tokens sent that were read from the provider's cache; as `input` if left out.
        cache_write: tokens sent that were written to it; as `input` if left out.
        cache_write_hour: those of them that are kept for an hour; as `cache_write` if left out.
        reasoning: tokens received that were thinking; as `output` if left out.
        audio: tokens sent that were sound; as `input` if left out.
        image: tokens received that were drawn; as `output` if left out.
        request: dollars for each request; none if left out.
        web_search: dollars for each search of the web that the provider makes. Left out it is unknown: a reply with one
            has no price then, and a request that may make one is refused under a limit in dollars.
        above: prices of long requests, as `{200_000: Price(6, 22.5)}`: with more input tokens than that, every token of
            the request and the reply has that price. Each is a whole price, and none lower than those before; only
            `request` and `web_search` may be left to this one.
        services: prices of other services than the usual, by the word that the provider has for them in its replies:
            `{"priority": Price(6, 30), "flex": Price(1.5, 7.5)}`. Whole prices too, which may have an `above` of their
            own. A service that is not here costs as usual.

    Raises:
        Misuse: a price is negative, not finite, or not a number; text is none. Or `above` or `services` hold what is no
            price, or one that cannot stand there.
    """

    __slots__ = (
        "_longer",
        "above",
        "audio",
        "cache_read",
        "cache_write",
        "cache_write_hour",
        "image",
        "input",
        "output",
        "reasoning",
        "request",
        "services",
        "web_search",
    )

    def __init__(
        self,
        input: Amount,
        output: Amount,
        cache_read: Amount | None = None,
        cache_write: Amount | None = None,
        *,
        cache_write_hour: Amount | None = None,
        reasoning: Amount | None = None,
        audio: Amount | None = None,
        image: Amount | None = None,
        request: Amount | None = None,
        web_search: Amount | None = None,
        above: Mapping[int, "Price"] | None = None,
        services: Mapping[str, "Price"] | None = None,
    ) -> None:
        self.input = _dollars("input", input)
        self.output = _dollars("output", output)
        self.cache_read = self.input if cache_read is None else _dollars("cache_read", cache_read)
        self.cache_write = self.input if cache_write is None else _dollars("cache_write", cache_write)
        hour = cache_write_hour
        self.cache_write_hour = self.cache_write if hour is None else _dollars("cache_write_hour", hour)
        self.reasoning = self.output if reasoning is None else _dollars("reasoning", reasoning)
        self.audio = self.input if audio is None else _dollars("audio", audio)
        self.image = self.output if image is None else _dollars("image", image)
        self.request = None if request is None else _dollars("request", request, "")
        self.web_search = None if web_search is None else _dollars("web_search", web_search, "")
        self.above: Mapping[int, Price] = {start: self._holding(one) for start, one in _by_length(above).items()}
        self.services: Mapping[str, Price] = {word: self._holding(one) for word, one in _by_word(services).items()}
        self._longer = _rising(self)

    def of(self, usage: Usage) -> Decimal | None:
        """What one reply with `usage` costs, in dollars; None if a part of it has no price here.

        That is a search of the web without `web_search`, and what another model did for this one. The price depends on
        the length of the request: the sum of several replies has none.
        """
        price = self
        if word := usage.service:
            # A region that has no price of its own costs as the service does.
            price = self.services.get(word) or self.services.get(word.partition(" ")[0], self)
            if price is self and word in ELSEWHERE:
                return None
        for start, one in price._longer:
            if usage.input_tokens > start:
                price = one
                break
        read, written, hour = usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_hour_tokens
        thought = usage.reasoning_tokens
        anew, said = max(0, usage.input_tokens - read - written), max(0, usage.output_tokens - thought)
        heard, drawn = min(usage.audio_tokens, anew), min(usage.image_tokens, said)
        cost = plus(times(price.input, anew - heard), times(price.output, said - drawn))
        if heard or drawn:
            cost = plus(cost, plus(times(price.audio, heard), times(price.image, drawn)))
        if read:
            cost = plus(cost, times(price.cache_read, read))
        if written:
            cost = plus(cost, times(price.cache_write, max(0, written - hour)))
        if hour:
            cost = plus(cost, times(price.cache_write_hour, hour))
        if thought:
            cost = plus(cost, times(price.reasoning, thought))
        cost = over(cost, MILLION)
        if price.request is not None:
            cost = plus(cost, price.request)
        if not usage.web_searches:
            return cost
        return None if price.web_search is None else plus(cost, times(price.web_search, usage.web_searches))

    def _holding(self, one: "Price") -> "Price":
        """`one`, a price that stands in this one, with what it leaves to this one."""
        held = one._like()
        held.request = self.request if one.request is None else one.request
        held.web_search = self.web_search if one.web_search is None else one.web_search
        held.above = {start: held._holding(longer) for start, longer in one.above.items()}
        held._longer = _rising(held)
        return held

    def _like(self) -> Self:
        """A copy; a price that somebody holds stays as it is."""
        made = object.__new__(type(self))
        for name in Price.__slots__:
            setattr(made, name, getattr(self, name))
        return made

    def __repr__(self) -> str:
        usual = {"cache_read": self.input, "cache_write": self.input, "cache_write_hour": self.cache_write}
        usual |= {"reasoning": self.output, "audio": self.input, "image": self.output}
        fields = [f"input={self.input}", f"output={self.output}"]
        fields += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        fields += [
            f"{name}={value}" for name in ("request", "web_search") if (value := getattr(self, name)) is not None
        ]
        fields += [f"{name}={value}" for name in ("above", "services") if (value := getattr(self, name))]
        return f"Price({', '.join(fields)})"


def _dollars(name: str, value: object, each: str = " per million tokens") -> Decimal:
    amount = dollars(value)
    if amount is None:
        raise Misuse(
            f"Price({name}=…) takes dollars{each}, a number (int, float or Decimal) from 0 to {MOST:,}; "
            f"it was given {reprlib.repr(value)}"
        )
    return amount


def _rising(usual: Price) -> tuple[tuple[int, Price], ...]:
    """The prices of long requests, the longest first.

    A limit in dollars is kept by an estimate that is high. Were a longer request cheaper, it would be low.
    """
    last, before = usual, "the usual price"
    for start, one in sorted(usual.above.items()):
        for kind in KINDS:
            if getattr(one, kind) < getattr(last, kind):
                raise Misuse(f"Price(above=…) has prices that rise; above {start} {kind} costs less than {before}")
        last, before = one, f"above {start}"
    return tuple(sorted(usual.above.items(), reverse=True))


def _checked(prices: object, wanted: str) -> list[tuple[object, Price]]:
    """The prices that stand in another one."""
    if prices is None:
        return []
    if not isinstance(prices, Mapping):
        raise Misuse(f"{wanted}; it was given {reprlib.repr(prices)}")
    for name, one in prices.items():
        if not isinstance(one, Price):
            raise Misuse(f"{wanted}; what stands under {reprlib.repr(name)} is {reprlib.repr(one)}")
        if one.services:
            raise Misuse(
                f"{wanted}; the price under {reprlib.repr(name)} has services of its own, which belong outside"
            )
    return list(prices.items())


def _by_length(above: object) -> dict[int, Price]:
    wanted = (
        "Price(above=…) takes prices by the number of input tokens above which they hold, {200_000: Price(6, 22.5)}"
    )
    found: dict[int, Price] = {}
    for start, one in _checked(above, wanted):
        if isinstance(start, bool) or not isinstance(start, int) or start < 1:
            raise Misuse(f"{wanted}; {reprlib.repr(start)} is no number of tokens from 1")
        if one.above:
            raise Misuse(f"{wanted}; the price above {start} has an above of its own: put all of them into one")
        found[start] = one
    return found


def _by_word(services: object) -> dict[str, Price]:
    wanted = 'Price(services=…) takes prices by the provider\'s word for a service, {"priority": Price(6, 30)}'
    found: dict[str, Price] = {}
    for word, one in _checked(services, wanted):
        if not isinstance(word, str) or not word:
            raise Misuse(f"{wanted}; {reprlib.repr(word)} is no word")
        found[word] = one
    return found
