"""The most that a call may cost: by each way in which what is sent and what comes back may be charged."""

from decimal import Decimal

import pytest

from treadle import ModelSettings
from treadle.drivers.purse.dearest import read_again, unbounded, worst_cost
from treadle.models.terms import Terms

PLAIN = ModelSettings()

PRICES = {
    "input_tokens": 10,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "cache_write_hour_tokens": 0,
    "output_tokens": 100,
    "reasoning_tokens": 0,
    "web_searches": 0,
}


def costs(**more):
    """A dearer kind costs what is said on top, each; a service that is named costs so many dollars more a token."""
    service = more.pop("service", 0)
    prices = PRICES | more

    def cost(usage):
        dear = sum(price * getattr(usage, name) for name, price in prices.items())
        return Decimal(dear + (service * (usage.input_tokens + usage.output_tokens) if usage.service else 0))

    return cost


@pytest.mark.parametrize(
    ("kind", "terms", "sent", "came"),
    [
        ({}, Terms(), 50, 700),
        ({"cache_read_tokens": 3}, Terms(), 65, 700),
        ({"cache_write_tokens": 3}, Terms(), 65, 700),
        ({"cache_write_hour_tokens": 3}, Terms(), 50, 700),
        ({"cache_write_hour_tokens": 3}, Terms(hour=True), 65, 700),
        ({"cache_write_tokens": 3, "cache_write_hour_tokens": 4}, Terms(hour=True), 85, 700),
        ({"reasoning_tokens": 5}, Terms(), 50, 735),
        ({"reasoning_tokens": -5}, Terms(), 50, 700),
        ({"web_searches": 9}, Terms(searches=2), 50 + 18, 700),
        ({"service": 1}, Terms(), 50, 700),
        ({"service": 1}, Terms(("", "fast")), 55, 707),
        ({"service": -1}, Terms(("", "flex")), 50, 700),
    ],
)
def test_the_dearest_of_all_ways_counts(kind, terms, sent, came):
    assert worst_cost(costs(**kind), terms, 5, 7) == sent + came
    assert worst_cost(costs(**kind), terms, 5, 0) == sent


def test_what_has_no_price_in_one_way_has_none():
    def unknown(what):
        return lambda usage: None if what(usage) else Decimal(1)

    fast = Terms(("", "fast"), hour=True)
    assert worst_cost(unknown(lambda usage: False), fast, 5, 7) == 1
    for what in (
        lambda usage: usage.service == "fast",
        lambda usage: usage.cache_read_tokens,
        lambda usage: usage.cache_write_hour_tokens,
        lambda usage: usage.output_tokens,
        lambda usage: usage.reasoning_tokens,
    ):
        assert worst_cost(unknown(what), fast, 5, 7) is None
    assert worst_cost(unknown(lambda usage: False), Terms(endless="code"), 5, 7) is None


class Searching:
    """A model that is asked to search so often."""

    name = "searching"

    def __init__(self, searches, window=500, endless=""):
        self.searches, self.endless = searches, endless
        if window is not None:
            self.context_window = window

    def terms(self, settings):
        assert settings is PLAIN
        return Terms(searches=self.searches, endless=self.endless)


def test_after_each_search_all_there_is_may_be_read_once_more():
    assert [read_again(Searching(searches), PLAIN) for searches in (0, 1, 3)] == [0, 500, 1500]
    assert read_again(Searching(3, window=None), PLAIN) == 0


def test_what_nobody_can_bound_is_named():
    assert (
        unbounded(Searching(0), PLAIN) == unbounded(Searching(2), PLAIN) == unbounded(Searching(0, None), PLAIN) == ""
    )
    assert unbounded(Searching(2, None), PLAIN) == (
        "the web is searched, and how much searching reads then is not known: it has no context_window"
    )
    assert unbounded(Searching(0, endless="code"), PLAIN) == (
        "code is left to the provider, and nothing bounds what it takes"
    )
