"""What a run has taken, and what is known of the size of its next request."""

from decimal import Decimal

import pytest

from treadle import Usage
from treadle.kernel.accounts import MOST_RATIO, Accounts, Ratio, RequestSize

COUNTED = RequestSize(1000, 3, reported=True)


def test_a_call_is_charged_and_an_unknown_price_stays_unknown():
    free = Accounts().charged(Usage(10, 1), None)
    assert (free.usage, free.cost) == (Usage(10, 1), None)
    paid = free.charged(Usage(5, 5), Decimal("0.1")).charged(None, Decimal("0.2"))
    assert (paid.usage, paid.cost) == (Usage(15, 6), Decimal("0.3"))
    assert paid.charged(None, None) == paid


def test_a_reported_request_is_the_size_of_the_next_one_as_far_as_it_goes():
    size = COUNTED.after("m", Usage(1500, 40), 500, True, 5)
    assert (size.tokens, size.messages, size.reported) == (1540, 5, True)


def test_a_request_that_was_not_the_history_adds_what_was_estimated():
    size = COUNTED.after("m", Usage(200, 40), 500, False, 5)
    assert (size.tokens, size.messages, size.reported) == (1540, 5, False)
    assert COUNTED.after("m", Usage(), 0, False, 5) is COUNTED


@pytest.mark.parametrize(
    ("before", "usage", "estimate"),
    [
        (RequestSize(), Usage(1500, 40), 500),
        (COUNTED, Usage(1500, 40, estimated=True), 500),
        (COUNTED, Usage(1500, 40), 0),
        (COUNTED, Usage(900, 40), 500),
    ],
    ids=["the first", "not reported", "nothing estimated", "fewer than before"],
)
def test_what_teaches_nothing(before, usage, estimate):
    assert before.after("m", usage, estimate, True, 5).ratios == {}


def test_a_reply_with_hidden_reasoning_is_no_size_to_compare_with():
    assert not COUNTED.after("m", Usage(1500, 900, reasoning_tokens=800), 500, True, 5).reported


def test_each_model_has_a_ratio_of_its_own():
    size = COUNTED.after("m", Usage(2000, 0), 500, True, 5).after("n", Usage(2250, 0), 500, True, 7)
    assert size.ratios["m"] == Ratio(1000, 500, 1200 / 700)
    assert size.ratios["n"] == Ratio(250, 500)


def test_the_most_that_was_learnt_is_kept_within_bounds():
    assert Ratio().learnt(10**9, 1).most == MOST_RATIO
    assert Ratio().learnt(2000, 1000).learnt(100, 1000).most == pytest.approx(1.83, abs=0.01)
    assert Ratio().learnt(0, 10**9).most == 1


def test_a_call_of_one_token_without_a_price_is_not_paid_and_one_of_none_is():
    assert Accounts().charged(Usage(1, 0), None).unpriced
    assert not Accounts().charged(Usage(), None, calls=1).unpriced
    assert not Accounts().charged(Usage(1, 0), Decimal(0)).unpriced


def test_a_model_that_counts_no_request_has_not_reported_one():
    assert not COUNTED.after("m", Usage(0, 40), 500, True, 5).reported
    assert COUNTED.after("m", Usage(1, 40), 500, True, 5).reported


def test_what_was_learnt_is_kept_and_added_to_by_each_token_more():
    learnt = {"m": Ratio(1.0, 2.0)}
    known = RequestSize(1000, 3, reported=True, ratios=learnt)
    assert known.after("m", Usage(200, 40), 500, False, 5).ratios == learnt
    assert known.after("m", Usage(1000, 40), 500, True, 5).ratios == learnt
    assert known.after("m", Usage(1001, 40), 500, True, 5).ratios == {"m": Ratio(1.0, 2.0).learnt(1, 500)}
    assert known.after("n", Usage(1001, 40), 500, True, 5).ratios == {**learnt, "n": Ratio().learnt(1, 500)}
