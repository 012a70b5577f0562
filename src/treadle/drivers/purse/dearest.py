"""Dearest: what a call costs at most, on the terms that its request asks for.

A model says what a usage costs, by `cost(usage)`. Each kind of token is charged evenly, so the dearest way to send so
many tokens is to send all of them as the dearest kind; likewise for what comes back. A service that is asked for may
be given or not: the dearer counts. Neighbour: `treadle.models.terms`, what a request asks for.
"""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from msgspec.structs import replace

from treadle.kernel.messages import ModelSettings, Usage
from treadle.kernel.money import NOTHING, minus, plus
from treadle.models.port import Model
from treadle.models.profile import profile_of
from treadle.models.terms import Terms, terms_of

Cost = Callable[[Usage], Decimal | None]


def worst_cost(cost: Cost, terms: Terms, asked: int, reply: int) -> Decimal | None:
    """What a request of `asked` tokens and its `reply` cost at most, on `terms`; None if any of it has no price.

    All that is sent may be new to the cache, written to it or read from it; all that comes back may be thinking. It is
    the dearest request and the dearest reply, which may be of two services: so it grows evenly with the reply.
    """
    if terms.endless:
        return None
    requests, replies = [NOTHING], [NOTHING]
    for service in terms.services:
        dearest = _dearest(cost, _ways(asked, terms, service))
        if dearest is None:
            return None
        request, spent = dearest
        requests.append(spent)
        if reply:
            came = (replace(request, output_tokens=reply, reasoning_tokens=thought) for thought in (0, reply))
            whole = _dearest(cost, came)
            if whole is None:
                return None
            replies.append(minus(whole[1], spent))
    return plus(max(requests), max(replies))


def _ways(asked: int, terms: Terms, service: str) -> Iterator[Usage]:
    """All that a request of `asked` tokens may be charged as, if `service` gives the reply."""
    plain = Usage(asked, web_searches=terms.searches, service=service)
    yield plain
    yield replace(plain, cache_read_tokens=asked)
    yield replace(plain, cache_write_tokens=asked)
    if terms.hour:
        yield replace(plain, cache_write_tokens=asked, cache_write_hour_tokens=asked)


def _dearest(cost: Cost, usages: Iterable[Usage]) -> tuple[Usage, Decimal] | None:
    """The dearest of `usages` and what it costs; None if one of them has no price, or there are none."""
    found: tuple[Usage, Decimal] | None = None
    for usage in usages:
        spent = cost(usage)
        if spent is None:
            return None
        if found is None or spent > found[1]:
            found = usage, spent
    return found


def read_again(model: Model, settings: ModelSettings) -> int:
    """The tokens that a model may read beside its request: after each search of the provider's, all there is once more.

    How long the results are nobody knows beforehand; no reading is longer than the model's context window.
    """
    searches = terms_of(model, settings).searches
    return searches * (profile_of(model).context_window or 0) if searches else 0


def unbounded(model: Model, settings: ModelSettings) -> str:
    """What a request may make the provider do of which nobody can say what it takes at most; empty if nothing."""
    terms = terms_of(model, settings)
    if terms.endless:
        return f"{terms.endless} is left to the provider, and nothing bounds what it takes"
    if terms.searches and profile_of(model).context_window is None:
        return f"the web is searched, and how much {model.name} reads then is not known: it has no context_window"
    return ""
