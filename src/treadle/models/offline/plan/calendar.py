"""Years, quarters and months as whole numbers: "the second quarter of 2023" for `year` and `quarter`."""

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.models.offline.grammar.periods import calendar_parts
from treadle.models.offline.grammar.question import Value
from treadle.models.offline.plan.toolbox import KnownTool, Param


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a field writes times.

    Attributes:
        digits: whether in digits only; None if nobody said.
        by_days: whether each is a day.
        years: whether each is a year.
    """

    digits: bool | None
    by_days: bool
    years: bool


def in_numbers(params: Sequence[Param], value: Value) -> list[tuple[Param, int]]:
    """What a period is for those `params` that take it in parts; nothing if they cannot say all of it."""
    named = {param.stems[0]: param for param in params if len(param.stems) == 1}
    wanted = calendar_parts(value.period) if value.period is not None else {}
    taken = [(named[name], number) for name, number in wanted.items() if name in named and _takes(named[name], number)]
    return taken if len(taken) == len(wanted) else []


def _takes(param: Param, number: int) -> bool:
    """Whether the parameter takes that whole number."""
    return number in param.enum if param.enum else param.shape == "number"


def takes_times(tool: KnownTool) -> bool:
    """Whether a tool can be asked for one time and then for another: one thing, under filters."""
    things = [param for param in tool.required if param.shape == "text"]
    return len(things) <= 1 and any(param.shape in ("filters", "mapping") for param in tool.params)
