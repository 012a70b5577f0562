"""Price: one price knows all that changes a bill, what is left out falls back, and what cannot be is refused."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Misuse, Price, Usage

MILLION = 1_000_000
FULL = Price(
    3,
    15,
    0.3,
    3.75,
    cache_write_hour=6,
    reasoning=20,
    request=0.001,
    web_search=0.01,
    above={200_000: Price(6, 22.5, cache_read=0.6)},
    services={"priority": Price(6, 30), "flex": Price(1.5, 7.5, request=0, above={100_000: Price(2, 8)})},
)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(100_000), "0.301"),
        (Usage(100_000, 1000), "0.316"),
        (Usage(100_000, 1000, reasoning_tokens=400), "0.318"),
        (Usage(100_000, cache_read_tokens=100_000), "0.031"),
        (Usage(100_000, cache_write_tokens=100_000), "0.376"),
        (Usage(100_000, cache_write_tokens=100_000, cache_write_hour_tokens=100_000), "0.601"),
        (Usage(100_000, cache_write_tokens=100_000, cache_write_hour_tokens=40_000), "0.466"),
        (Usage(100_000, web_searches=3), "0.331"),
        (Usage(200_000), "0.601"),
        (Usage(200_001), "1.201006"),
        (Usage(300_000, 1000, cache_read_tokens=100_000, web_searches=1), "1.2935"),
        (Usage(100_000, 1000, service="priority"), "0.631"),
        (Usage(300_000, 1000, service="priority"), "1.831"),
        (Usage(100_000, service="flex"), "0.15"),
        (Usage(100_001, service="flex", web_searches=1), "0.210002"),
        (Usage(100_000, service="a service that nobody knows"), "0.301"),
    ],
)
def test_each_kind_of_token_length_service_and_search_has_its_price(usage, dollars):
    assert FULL.of(usage) == Decimal(dollars)


def test_what_is_left_out_falls_back():
    plain = Price(input=3, output=15)
    for usage in (
        Usage(1000, 100, cache_read_tokens=400),
        Usage(1000, 100, cache_write_tokens=400, cache_write_hour_tokens=100),
        Usage(1000, 100, reasoning_tokens=80),
        Usage(1_000, 100, service="priority"),
    ):
        assert plain.of(usage) == Decimal("0.0045")
    assert Price(3, 15, cache_write=4).of(Usage(10, cache_write_tokens=10, cache_write_hour_tokens=10)) == Decimal(
        "40e-6"
    )
    assert Price(0, 0).of(Usage(10**6, 10**6, 5, 5, 5)) == 0


def test_a_search_without_a_price_is_unknown_and_not_free():
    assert Price(3, 15).of(Usage(10, 10, web_searches=1)) is None
    assert Price(3, 15, web_search=0).of(Usage(10, 10, web_searches=1)) == Decimal("0.00018")


def test_what_another_model_did_has_no_price_here_unless_it_is_given():
    usage = Usage(1_000_000, service="advisor_message")
    assert Price(3, 15).of(usage) is None
    assert Price(3, 15, services={"advisor_message": Price(5, 25)}).of(usage) == 5


def test_a_price_that_stands_in_another_stays_as_it_is():
    long = Price(6, 30)
    Price(3, 15, web_search=0.01, above={100: long})
    assert long.of(Usage(1000, web_searches=1)) is None


def test_prices_do_not_depend_on_the_callers_decimal_context():
    with localcontext(prec=2):
        assert FULL.of(Usage(123_457, 1001, 17, 11, 5)) == FULL_PRICE
    assert FULL.of(Usage(123_457, 1001, 17, 11, 5)) == FULL_PRICE


FULL_PRICE = (
    Decimal("0.001") + (Decimal(123_429) * 3 + 996 * 15 + 17 * Decimal("0.3") + 11 * Decimal("3.75") + 5 * 20) / MILLION
)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Price(-1, 1), r"Price\(input=…\) takes dollars per million tokens"),
        (lambda: Price(1, "1"), "output"),
        (lambda: Price(1, 1, cache_write_hour=float("nan")), "cache_write_hour"),
        (lambda: Price(1, 1, reasoning=True), "reasoning"),
        (lambda: Price(1, 1, request=-0.1), r"request=…\) takes dollars, a number"),
        (lambda: Price(1, 1, web_search="10 cents"), "web_search"),
        (lambda: Price(1, 1, above=[200_000]), "by the number of input tokens"),
        (lambda: Price(1, 1, above={200_000: 2}), "what stands under 200000 is 2"),
        (lambda: Price(1, 1, above={"200k": Price(2, 2)}), "'200k' is no number of tokens"),
        (lambda: Price(1, 1, above={True: Price(2, 2)}), "True is no number of tokens"),
        (lambda: Price(1, 1, above={1: Price(2, 2, above={5: Price(3, 3)})}), "put all of them into one"),
        (lambda: Price(1, 1, above={1: Price(2, 2, services={"flex": Price(3, 3)})}), "belong outside"),
        (lambda: Price(2, 2, above={100: Price(1, 3)}), "above 100 input costs less than the usual price"),
        (lambda: Price(1, 1, above={10: Price(2, 2), 20: Price(2, 1)}), "above 20 output costs less than above 10"),
        (lambda: Price(1, 1, services={"": Price(2, 2)}), "'' is no word"),
        (lambda: Price(1, 1, services={"flex": 0.5}), "'flex' is 0.5"),
    ],
)
def test_what_cannot_be_a_price_is_refused_in_words(make, words):
    with pytest.raises(Misuse, match=words):
        make()


def test_a_price_shows_what_is_special_of_it():
    assert repr(Price(3, 15)) == "Price(input=3, output=15)"
    assert repr(Price(3, 15, 0.3, web_search=0.01)) == "Price(input=3, output=15, cache_read=0.3, web_search=0.01)"
    assert "services={'flex': Price(input=1, output=2)}" in repr(Price(3, 15, services={"flex": Price(1, 2)}))


rates = st.integers(0, 10**7).map(lambda millionths: Decimal(millionths) / MILLION)
counts = st.integers(0, 10**6)


@given(st.lists(rates, min_size=6, max_size=6), st.lists(counts, min_size=5, max_size=5))
def test_a_price_is_the_sum_of_its_parts_exactly(prices, tokens):
    sent, came, read, minutes, hour = tokens
    names = ("input", "output", "cache_read", "cache_write", "cache_write_hour", "reasoning")
    price = Price(**dict(zip(names, prices, strict=True)))
    usage = Usage(sent + read + minutes + hour, came + 7, read, minutes + hour, 7, cache_write_hour_tokens=hour)
    parts = zip(prices, (sent, came, read, minutes, hour, 7), strict=True)
    assert Fraction(price.of(usage)) == sum(Fraction(rate) * count / MILLION for rate, count in parts)


kinds = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    cache_write_tokens=counts,
    cache_write_hour_tokens=counts,
    web_searches=st.integers(0, 3),
    service=st.sampled_from(["", "flex", "priority"]),
)


@given(kinds, kinds, kinds)
def test_usage_adds_up_in_any_grouping_and_takes_away_what_was_added(one, two, three):
    assert (one + two) + three == one + (two + three)
    assert Usage() + one == one + Usage() == one
    less = one + two - two
    assert [getattr(less, name) for name in COUNTS] == [getattr(one, name) for name in COUNTS]


COUNTS = ("input_tokens", "output_tokens", "cache_write_tokens", "cache_write_hour_tokens", "web_searches")
