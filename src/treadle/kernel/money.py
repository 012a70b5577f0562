"""Money: dollars as exact decimals, whatever decimal context the program around treadle has set. Pure.

The operators of `Decimal` round to the context of whoever calls, which a program may have set to three digits, or to
raise where anything is rounded. So dollars are added, subtracted, multiplied and divided here and nowhere else. To
compare them needs no care: that is exact under every context.
"""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from functools import reduce
from math import isfinite
from typing import Final

MONEY: Final = Context(
    prec=60,
    rounding=ROUND_HALF_EVEN,
    Emin=MIN_EMIN,
    Emax=MAX_EMAX,
    capitals=1,
    clamp=0,
    flags=[],
    traps=[InvalidOperation, DivisionByZero, Overflow],
)
"""How dollars are reckoned: with 60 digits, which the tokens of any run times any price do not use up."""

MOST: Final = 10**15
"""More dollars than anything costs; a number above it is a mistake."""

NOTHING: Final = Decimal(0)

plus: Final = MONEY.add
minus: Final = MONEY.subtract
times: Final = MONEY.multiply
over: Final = MONEY.divide


def dollars(value: object) -> Decimal | None:
    """`value` as an amount of dollars; None if it is none: no number, not finite, negative, or above `MOST`.

    A float is taken as it is written: 0.1 is ten cents, and not the binary number next to it.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    if isinstance(value, Decimal):
        finite = value.is_finite()
    else:
        finite = not isinstance(value, float) or isfinite(value)
    if not finite or not 0 <= value <= MOST:
        return None
    # Zero may have a sign, and a subclass has no JSON form.
    return Decimal(repr(float(value)) if isinstance(value, float) else value).copy_abs()


def total(*amounts: Decimal | None) -> Decimal | None:
    """What `amounts` come to, those that are unknown left out; None if all are."""
    known = [amount for amount in amounts if amount is not None]
    return reduce(plus, known) if known else None
