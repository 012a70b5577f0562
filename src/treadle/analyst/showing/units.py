"""Units: what the amounts of each side are measured in, and whether the two may stand beside each other.

A unit is what a declaration says, or the one currency that the rows have; nothing else makes one, least of all the
other side. Pure; `currencies` looks at the rows.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Measure
from treadle.analyst.reading.number_spelling import CURRENCIES
from treadle.visible import seen

Origin = Literal["declared", "read", "none"]
_CODE = re.compile(r"[A-Z]{3}")
_MOST_SHOWN = 5


class Unit(Struct, frozen=True):
    """What the amounts of one side are measured in.

    Attributes:
        text: such as "EUR"; empty where it is not known.
        origin: whether it was declared, or is the one currency of the rows.
        currencies: those of the rows, None for rows without one; empty where no column of them is declared.
    """

    text: str = ""
    origin: Origin = "none"
    currencies: tuple[str | None, ...] = ()


class Measured(Struct, frozen=True):
    """What two figures beside each other are measured in.

    Attributes:
        a: the unit of A's figure, empty where it is not known.
        b: the unit of B's figure.
        known: whether the two are known to be of one unit, or nobody speaks of units at all.
    """

    a: str = ""
    b: str = ""
    known: bool = True

    @property
    def both(self) -> str:
        """The unit of a difference, empty where that is not known."""
        return self.a if self.known and self.a == self.b else ""


class Units(Struct, frozen=True):
    """The units of a comparison by one measure.

    Attributes:
        a: that of A.
        b: that of B.
        currency: the number of the key that tells currencies apart, where several meet; None where there is one.
    """

    a: Unit
    b: Unit
    currency: int | None = None

    @property
    def measured(self) -> Measured:
        """That of figures over all keys."""
        if self.currency is not None:
            return Measured(known=False)
        unknown = any(None in unit.currencies for unit in (self.a, self.b))
        return Measured(self.a.text, self.b.text, self.a.text == self.b.text and not unknown)

    def of(self, key: "tuple[object, ...]") -> Measured:
        """That of the figures of one key, given its values."""
        if self.currency is None:
            return self.measured
        code = str(key[self.currency] or "").strip() or None
        if self.a.origin == "declared" or self.b.origin == "declared":
            # Such as thousands, of whatever currency: the two words together would be a guess.
            return Measured(known=code is not None and self.a.text == self.b.text)
        return Measured(known=False) if code is None else Measured(code, code)


def unit_of(measure: Measure, used: "tuple[str | None, ...]") -> Unit:
    """Returns the unit of one side.

    A declared currency that the rows contradict is no unit, nor is one of a number of rows.

    Args:
        measure: its measure.
        used: the currencies of its rows.
    """
    declared = measure.unit.strip()
    if measure.aggregation == "count" and declared in CURRENCIES:
        return Unit(currencies=used)
    if declared and not (_CODE.fullmatch(declared) and used and used != (declared,)):
        return Unit(declared, "declared", used)
    if not declared and len(used) == 1 and used[0] is not None:
        return Unit(used[0], "read", used)
    return Unit(currencies=used)


def spelled_apart(codes: Iterable[str | None], dimension: str, *declared: Measure) -> dict[str, Any]:
    """Returns the facts of currencies that are one but for case and blanks: these, the dimension that has them, and
    one that a measure declares in small letters, which no format of the dimension makes another.

    Args:
        codes: the currencies.
        dimension: what would have to say that they are one; empty if no dimension holds them.
        declared: the measures whose declared units are among the codes.
    """
    known = sorted({code for code in codes if code is not None})
    forms = Counter(code.strip().upper() for code in known)
    apart = [code for code in known if forms[code.strip().upper()] > 1]
    if not apart or not dimension:
        return {}
    small = [unit for unit in (measure.unit.strip() for measure in declared) if unit in apart and unit != unit.upper()]
    facts: dict[str, Any] = {"spelled_apart": apart, "dimension": dimension}
    return facts | ({"declared_as": small[0]} if small else {})


def said_of_spelling(facts: Mapping[str, Any]) -> str:
    """Returns what to do about currencies that are spelled apart, behind a semicolon; empty if there are none."""
    if not (apart := facts.get("spelled_apart")):
        return ""
    shown = ", ".join(map(seen, apart[:_MOST_SHOWN])) + ", …" * (len(apart) > _MOST_SHOWN)
    small = facts.get("declared_as")
    unit = f" and 'unit: {seen(small.upper())}' in place of {seen(small)}" if small else ""
    return (
        f"; {shown} are taken for several because they are spelled so: declare 'format: trim, upper' on dimension "
        f"{facts['dimension']}{unit} if they are one"
    )


def refuse_unlike(
    pair: tuple[Measure, Measure], names: tuple[str, str], units: tuple[str, str], dimension: str = ""
) -> None:
    """Raises AnalystError if two known units differ: amounts of unlike units are not compared.

    Args:
        pair: what they are units of.
        names: what the two sides are called.
        units: what each is in; empty where that is not known.
        dimension: what holds the currency of one of them; empty where both are declared.
    """
    if not all(units) or units[0] == units[1]:
        return
    measure = pair[0]
    column = measure.source_column if measure.source_column.isidentifier() else "amount"
    advice = (
        f"declare for one of them a measure in the other's unit, such as 'expression: {column} * 1000' with its 'unit'"
    )
    if all(map(_CODE.fullmatch, units)):
        advice = "declare for one of them a 'conversion' by a table of rates"
    if spelling := said_of_spelling(spelled_apart(units, dimension, *pair)):
        advice = spelling.removeprefix("; ")
    elif units[0].upper() == units[1].upper():
        advice = "write their units alike if they are one"
    told = " and ".join(f"in {seen(unit)} in {name!r}" for unit, name in zip(units, names, strict=True))
    raise AnalystError(
        f"{measure.name} is {told}: amounts of different units are not compared; {advice}",
        argument="measures",
        given=measure.name,
        units=list(units),
    )
