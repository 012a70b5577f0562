"""What is reckoned with where nobody has said what a call takes: the most that it may be."""

from decimal import Decimal

import pytest

from treadle import ModelSettings, Usage
from treadle.drivers.purse.reckoning import charge_of, price_of
from treadle.models import ModelError
from treadle.models.terms import Terms

PLAIN = ModelSettings()


class Charging:
    """10 dollars a token, 100 one of a reply; more for what is thought, written to a cache, searched for, or fast."""

    name = "charging"

    def __init__(self, **unknown):
        self.unknown = unknown

    def terms(self, settings):
        return Terms(("", "fast", "slow"), searches=2) if settings is PLAIN else Terms()

    def cost(self, usage):
        if any(getattr(usage, name) == value for name, value in self.unknown.items()):
            return None
        tokens = 10 * usage.input_tokens + 100 * usage.output_tokens
        more = 5 * usage.reasoning_tokens + 3 * usage.cache_write_tokens + 7 * usage.web_searches
        return Decimal(tokens + more) * {"": 1, "fast": 2, "slow": 1}[usage.service]


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(5, 7), 50 + 700),
        (Usage(5, 7, estimated=True), 2 * (50 + 15 + 14 + 700 + 35)),
        (Usage(5, 7, estimated=True, web_searches=1), 2 * (50 + 15 + 14 + 700 + 35)),
        (Usage(5, 7, estimated=True, web_searches=3), 2 * (50 + 15 + 21 + 700 + 35)),
        (Usage(5, 7, cache_write_tokens=2, estimated=True), 2 * (50 + 6 + 700 + 35)),
        (Usage(5, 7, cache_read_tokens=2, estimated=True), 2 * (50 + 700 + 35)),
        (Usage(5, 7, reasoning_tokens=2, estimated=True), 2 * (50 + 700 + 35)),
        (Usage(5, 7, service="slow", estimated=True), 50 + 700 + 35),
    ],
)
def test_what_is_estimated_is_charged_at_the_most_that_it_may_cost(usage, cost):
    assert charge_of(Charging(), usage, PLAIN) == price_of(Charging(), usage, PLAIN) == cost


def test_without_settings_the_usual_terms_hold():
    other = ModelSettings(max_tokens=1)
    assert charge_of(Charging(), Usage(5, 7, estimated=True), other) == 50 + 15 + 700 + 35


def test_what_has_no_price_on_one_of_the_terms_has_none():
    assert charge_of(Charging(service="fast"), Usage(5, 7), PLAIN) == 750
    assert charge_of(Charging(service="fast"), Usage(5, 7, estimated=True), PLAIN) is None
    told = Usage(5, 7, cache_write_tokens=2, estimated=True)
    assert charge_of(Charging(service="fast"), told, PLAIN) is None
    assert charge_of(Charging(reasoning_tokens=7), told, PLAIN) is None


def test_a_price_that_a_model_fails_to_say_is_not_known():
    class Fails(Charging):
        def cost(self, usage):
            raise RuntimeError("a bug")

    assert price_of(Fails(), Usage(5, 7), PLAIN) is None
    with pytest.raises(ModelError):
        charge_of(Fails(), Usage(5, 7), PLAIN)
