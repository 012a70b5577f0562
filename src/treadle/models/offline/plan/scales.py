"""Amounts in another unit of the same scale than a parameter takes: 2 hours for `minutes`, 500 ml for `litres`.

Only where one figure and one parameter are on the scale, and the result is exact. Called by `arguments`.
"""

from fractions import Fraction

from treadle.models.offline.grammar.question import Clause, Value
from treadle.models.offline.grammar.words import parts, stem, tokens
from treadle.models.offline.plan.filling import Filling
from treadle.models.offline.plan.numbers import family, is_other_unit, unit_after
from treadle.models.offline.plan.refusals import is_strange
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.ties import is_led_astray
from treadle.models.offline.plan.toolbox import KnownTool

# How many of the smallest one each is.
_SCALES = tuple(
    {family(stem(name)): Fraction(size) for name, size in scale.items()}
    for scale in (
        {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800},
        {"month": 1, "year": 12},
        {"mg": 1, "g": 1000, "kg": 10**6, "tonne": 10**9},
        {"mm": 1, "cm": 10, "m": 1000, "km": 10**6},
        {"ml": 1, "litre": 1000},
        {"kw": 1, "mw": 1000},
        {"kwh": 1, "mwh": 1000},
    )
)
# "500 m" may be metres, miles, minutes or millions, and a ton is another one in America.
_LOOSE = ("m", "ton")
# "An event of a day" takes its minutes all the same.
_CALENDAR = frozenset(("day", "week", "month", "year"))


def fill_scaled(tool: KnownTool, clause: Clause, out: Filling) -> None:
    """Fills what takes an amount in one unit from one that is told in another.

    Args:
        tool: the tool.
        clause: the clause.
        out: takes the arguments.
    """
    words = {*parts(tool.name), *(token.low for token in tokens(tool.spec.description))} - _CALENDAR
    units = {family(stem(word)) for word in words}
    units |= {family(w) for p in tool.params for w in p.stems if p.shape == "number" or w not in _CALENDAR}
    for scale in _SCALES:
        if len(units & {*scale}) != 1:
            # What converts hours to minutes is not asked for the minutes of 90 minutes.
            continue
        (own,) = units & {*scale}
        able = [
            p
            for p in tool.params
            if p.shape == "number" and own in {family(word) for word in p.stems if word not in _LOOSE}
        ]
        said = [value for value in clause.values if value.kind == "number" and _unit(value, clause) in scale]
        if len(able) != 1 or len(said) != 1 or able[0].name in out.arguments or "per" in able[0].stems:
            continue
        (param,), (value,) = able, said
        if is_strange(tool, param, value, clause) or is_led_astray(tool, param, value, clause):
            continue
        end = next(t.end for t in clause.tokens if t.start >= value.end and family(t.stem) == _unit(value, clause))
        amount = Fraction(value.text.replace(",", "")) * scale[_unit(value, clause)] / scale[own]
        exact = amount.denominator == 1 or ("number" in param.types and Fraction(str(float(amount))) == amount)
        # No month is a twelfth of every year.
        exact = exact and (amount.denominator == 1 or own != family("year"))
        if exact and amount > 0 and not overlaps(value.start, end, out.used):
            out.arguments[param.name] = int(amount) if amount.denominator == 1 else float(amount)
            out.used.append((value.start, end))


def _unit(value: Value, clause: Clause) -> int | None:
    unit, beside = unit_after(value, clause), next((t for t in clause.tokens if t.start >= value.end), None)
    # Two working days are no 48 hours, and a mW is no MW.
    if unit is None or beside is None or beside.stem != unit or beside.text == "mW":
        return None
    return family(unit) if unit not in _LOOSE and is_other_unit(value, clause) is None else None
