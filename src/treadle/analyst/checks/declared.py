"""Checks as they are declared: what is compared, and what of what is found is a fault. Plain frozen data."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.asking.compare import CompareRequest
from treadle.analyst.declared.errors import unknown
from treadle.analyst.declared.source import Tolerance
from treadle.analyst.reading.amounts import trimmed

Class = Literal["minor", "major", "missing"]
CLASSES: tuple[Class, ...] = get_args(Class)
"""The classes of keys that do not match, the worst last."""

Level = Literal["ignore", "warn", "error"]
LEVELS: tuple[str, ...] = get_args(Level)


class Levels(Struct, frozen=True):
    """How bad a difference of each class is. `missing` is a key that one side lacks."""

    minor: Level = "error"
    major: Level = "error"
    missing: Level = "error"

    @classmethod
    def failing_on(cls, worst: Class) -> "Levels":
        """Returns the levels under which this class and those worse than it are errors, and the others nothing."""
        return cls(*("error" if CLASSES.index(name) >= CLASSES.index(worst) else "ignore" for name in CLASSES))


class Allowed(Struct, frozen=True):
    """How many keys of each class may differ before it counts."""

    minor: int = 0
    major: int = 0
    missing: int = 0


NOTHING = Allowed()


class Known(Struct, frozen=True):
    """A difference that is accounted for.

    Attributes:
        key: which keys: by dimension the values that it may have, as text; None for no value.
        why: the reason, for whoever reads the result.
        up_to: how large it may be, in the measure's unit; None for any size.
        until: the last day on which it is accepted; None for ever.
    """

    key: Mapping[str, tuple[str | None, ...]]
    why: str
    up_to: Decimal | None = None
    until: date | None = None


class Check(Struct, frozen=True, kw_only=True):
    """A comparison that is made again and again, and what of its result is a fault.

    Attributes:
        name: what it is called, in the result and in the history.
        request: what is compared.
        tolerances: thresholds of single measures, by name; they come before those of the request.
        levels: how bad a difference of each class is.
        allow: how many keys of each class may differ.
        known: differences that are accounted for.
        description: what it is for.
    """

    name: str
    request: CompareRequest
    tolerances: Mapping[str, Tolerance] = {}
    levels: Levels = Levels()
    allow: Allowed = Allowed()
    known: tuple[Known, ...] = ()
    description: str = ""


class CheckFile(Struct, frozen=True, kw_only=True):
    """What a checks.yaml declares.

    Attributes:
        path: the file.
        sources: the sources.yaml that its checks are about.
        history: where runs are kept.
        checks: the checks, in their order.
    """

    path: Path
    sources: Path
    history: Path
    checks: tuple[Check, ...]

    def only(self, names: Sequence[str]) -> "CheckFile":
        """Returns the same with the checks of these names alone; all if there are none.

        Raises AnalystError, with the nearest, for a name that no check has.
        """
        there = [check.name for check in self.checks]
        for name in names:
            if name not in there:
                raise unknown("check", "names", name, there, f"in {self.path}")
        return replace(self, checks=tuple(check for check in self.checks if not names or check.name in names))


def told(value: Any) -> str | None:
    """Returns a key's value as it is written in a declaration; None for no value."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return f"{trimmed(value, 0):f}" if isinstance(value, Decimal) else str(value)
