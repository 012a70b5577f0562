"""Money: amounts come to the same under every decimal context that a program may have set."""

from decimal import ROUND_UP, Context, Decimal, FloatOperation, Inexact, InvalidOperation, Rounded, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Limits, Misuse, Price, Usage
from treadle.kernel.money import MOST, dollars, minus, over, plus, times, total
from treadle.models.prices import cost

AMOUNTS = st.decimals(min_value=0, max_value=MOST, allow_nan=False, allow_infinity=False, places=12)
TOKENS = st.integers(0, 10**12)
HOSTILE = [
    Context(prec=3),
    Context(prec=1, rounding=ROUND_UP),
    Context(prec=3, traps=[Inexact, Rounded]),
    Context(prec=28, traps=[FloatOperation, InvalidOperation]),
    Context(prec=2, Emin=-2, Emax=2),
]


@pytest.mark.parametrize("context", HOSTILE, ids=range(len(HOSTILE)))
@given(AMOUNTS, AMOUNTS, TOKENS, st.integers(1, 10**6))
def test_no_amount_depends_on_the_callers_context(context, one, other, count, by):
    def reckoned():
        price = Price(one, other, 0.3)
        usage = Usage(count, count // 7, count // 3, count // 5)
        sums = plus(one, other), minus(one, other), times(one, count), over(one, by), total(one, None, other)
        return *sums, price.of(usage), dollars(0.1), Limits(usd=one).budget

    usual = reckoned()
    with localcontext(context):
        assert reckoned() == usual


@given(AMOUNTS, AMOUNTS, TOKENS)
def test_sums_and_products_are_exact(one, other, count):
    with localcontext(Context(prec=200)):
        assert plus(one, other) == one + other
        assert minus(one, other) == one - other
        assert times(one, count) == one * count


@pytest.mark.parametrize("context", HOSTILE, ids=range(len(HOSTILE)))
def test_a_known_models_price_is_the_same_under_every_context(context):
    usage = Usage(123_457, 98_765, 1_234, 5_678, 9_876)
    usual = cost("anthropic:claude-sonnet-4-5", usage)
    assert usual is not None
    with localcontext(context):
        assert cost("anthropic:claude-sonnet-4-5", usage) == usual


def test_a_sum_with_nothing_known_is_unknown():
    assert total() is total(None, None) is None
    assert total(None, Decimal(2), None, Decimal(3)) == 5


@pytest.mark.parametrize(
    "value",
    ["1", b"1", True, None, -1, -0.5, float("inf"), float("nan"), Decimal("NaN"), Decimal("sNaN"), MOST + 1, 1e300, 1j],
    ids=repr,
)
def test_what_is_no_amount_is_none(value):
    assert dollars(value) is None
    for place in ({"input": value, "output": 1}, {"input": 1, "output": value}):
        with pytest.raises(Misuse, match="takes dollars per million tokens, a number"):
            Price(**place)


def test_a_price_in_words_is_refused_where_it_is_given():
    with pytest.raises(Misuse, match=r"Price\(input=…\) takes dollars per million tokens.*was given 'x'"):
        Price("x", 1)
    with pytest.raises(Misuse, match=r"Price\(cache_read=…\) takes"):
        Price(1, 1, cache_read="0.3")


def test_a_float_is_what_is_written():
    assert str(dollars(0.1)) == "0.1"
    assert str(dollars(-0.0)) == "0.0"
    assert Price(0.1, 0.2).of(Usage(3_000_000, 0)) == Decimal("0.3")
