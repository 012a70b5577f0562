"""What a clause gives a tool: the arguments, the stretches they came from, and what stayed empty."""

from dataclasses import dataclass, field

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.question import Value
from treadle.models.offline.plan.toolbox import Param


@dataclass
class Filling:
    """What a clause gives a tool.

    Attributes:
        arguments: what could be filled.
        missing: the required parameters that could not.
        used: the stretches of the clause that went into arguments.
        renamed: what was written, and the valid name it was taken for.
        unknown: what was written where none of the known names is like it, and those names.
        spread: values joined by "and" of which the tool takes one at a time.
        unclear: two values and the two parameters of which neither says which of them it takes.
        given: the loose values that parameters were given: none that is known to be valid, as a choice is.
        telling: how many known names, conditions and groupings were filled, which speak for the tool by themselves.
        doubtful: how many values were filled though the names known to be valid are others.
    """

    arguments: Json = field(default_factory=dict)
    missing: list[Param] = field(default_factory=list)
    used: list[tuple[int, int]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    spread: tuple[Value, ...] = ()
    unclear: tuple[Value, Value, Param, Param] | None = None
    given: list[tuple[Param, Value]] = field(default_factory=list)
    telling: int = 0
    doubtful: int = 0
