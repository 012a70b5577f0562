"""Limits: which values there are, what is said of any other, and the rows that tell how a run stood to them."""

from decimal import Decimal
from enum import IntEnum

import pytest

from treadle import Decision, Limits, Misuse
from treadle.kernel.money import MOST
from treadle.kernel.stop import ADVICE, Check, Stop, stopped

LARGEST = 2**63 - 1
LEAST = {"steps": 1, "consecutive_errors": 1, "tool_calls": 0, "tokens": 0, "seconds": 0}


class Size(IntEnum):
    """A whole number of a type of its own."""

    BIG = 7


class Seconds(float):
    """A number of a type of its own."""


def test_the_limits_that_have_a_name():
    assert (Limits.simple().steps, Limits.medium().steps, Limits.complex().steps) == (3, 5, 10)
    assert Limits.simple() == Limits(steps=3)


@pytest.mark.parametrize("name", LEAST)
def test_the_least_and_the_largest_are_limits_and_what_lies_beyond_is_not(name):
    for value in (LEAST[name], LARGEST, None):
        assert getattr(Limits(**{name: value}), name) == value
    kind = "a number (int or float)" if name == "seconds" else "a whole number"
    wanted = f"Limits.{name} takes {kind} of at least {LEAST[name]} and at most {LARGEST:,}, or None for no limit; "
    for value in (LEAST[name] - 1, LARGEST + 1, True, "5", Decimal(5), float("inf"), float("nan")):
        with pytest.raises(ValueError, match="takes") as refused:
            Limits(**{name: value})
        assert str(refused.value) == f"{wanted}it was given {value!r}"


def test_half_a_second_is_a_limit_and_half_a_step_is_none():
    assert Limits(seconds=0.5).seconds == 0.5
    with pytest.raises(ValueError, match="whole number"):
        Limits(steps=1.5)


def test_a_number_of_thousands_of_digits_is_not_told_whole():
    with pytest.raises(ValueError, match=r"it was given 10{17}\.\.\.0{18,}$"):
        Limits(steps=10**4000)


def test_numbers_of_other_types_become_plain_ones():
    limits = Limits(steps=Size.BIG, seconds=Seconds(1.5))
    assert (type(limits.steps), limits.steps, type(limits.seconds), limits.seconds) == (int, 7, float, 1.5)
    assert type(Limits(seconds=Size.BIG).seconds) is int


@pytest.mark.parametrize("value", [0, 5, 0.1, Decimal("0.1"), MOST, None])
def test_dollars_are_kept_as_they_were_given(value):
    limits = Limits(usd=value)
    assert (limits.usd, type(limits.usd)) == (value, type(value))
    assert limits.budget == (None if value is None else Decimal(str(value)))


@pytest.mark.parametrize("value", [-1, MOST + 1, True, "5", float("inf"), float("nan"), Decimal("Infinity")])
def test_what_is_no_amount_of_dollars(value):
    with pytest.raises(ValueError, match="takes") as refused:
        Limits(usd=value)
    wanted = "Limits.usd takes a number of dollars (int, float or Decimal) from 0 to 1,000,000,000,000,000, or None for"
    assert str(refused.value) == f"{wanted} no limit; it was given {value!r}"


def test_dollars_of_another_type_become_exact():
    limits = Limits(usd=Seconds(0.1))
    assert (type(limits.usd), limits.usd) == (Decimal, Decimal("0.1"))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("max_steps", "did you mean steps=?"),
        ("turns", "did you mean steps=?"),
        ("max_turns", "did you mean steps=?"),
        ("timeout", "did you mean seconds=?"),
        ("budget", "did you mean usd=?"),
        ("stepz", "it takes steps, tool_calls, seconds, usd, tokens, consecutive_errors"),
    ],
)
def test_a_limit_of_another_name(name, told):
    with pytest.raises(Misuse) as refused:
        Limits(**{name: 1})
    assert str(refused.value) == f"Limits takes no argument {name!r}; {told}"


def test_a_row_for_each_limit_that_is_on_and_then_the_conditions():
    enough = Check("enough", 1, 2)
    decision = Decision("go", "", 3, 4, 1.23456, Decimal("0.5"), 70, 2, (enough,))
    limits = Limits(steps=3, tool_calls=5, seconds=9, usd=Decimal("0.25"), tokens=70, consecutive_errors=1)
    assert list(decision.checks(limits)) == [
        Check("steps", 3, 3, True),
        Check("tool_calls", 4, 5, False),
        Check("seconds", 1.235, 9, False),
        Check("usd", 0.5, 0.25, True),
        Check("tokens", 70, 70, True),
        Check("consecutive_errors", 2, 1, True),
        enough,
    ]
    nothing = Limits(steps=None, tool_calls=None, seconds=None, tokens=None, consecutive_errors=None)
    assert list(decision.checks(nothing)) == [enough]
    assert list(Decision("go").checks(Limits(usd=1)))[3] == Check("usd", None, 1.0, False)


def test_a_stop_brings_the_advice_of_its_reason():
    assert stopped("max_steps", "why") == Stop("max_steps", "why", ADVICE["max_steps"])
    assert stopped("answered") == Stop("answered")
    assert [stopped(reason).finished for reason in ("answered", "condition", "external_tool", "length")] == [
        True,
        True,
        True,
        False,
    ]
