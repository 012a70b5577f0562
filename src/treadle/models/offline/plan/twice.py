"""One thing that would be two arguments, which is said and not done: called by `planner`."""

from collections.abc import Sequence

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.words import parts
from treadle.models.offline.plan.toolbox import MARKERS, KnownTool, Param, Toolbox
from treadle.models.offline.plan.transcript import Exchange


def taken_twice(box: Toolbox, tool: KnownTool, arguments: Json, done: Sequence[Exchange]) -> str | None:
    """What an option of the tool takes that a tool before it took for something else: of "How many members does Apollo
    have?" Apollo is the project, and no member as well."""
    options = [param for param in tool.params if not param.required and param.name in arguments]
    for exchange in done:
        before = box.named(exchange.tool)
        for given in before.params if before is not None else ():
            value = exchange.arguments.get(given.name)
            shared = [p for p in options if arguments[p.name] == value and not set(p.nouns) & set(given.nouns)]
            if isinstance(value, str) and shared:
                return value
    return None


def told_twice(told: Sequence[tuple[Param, Exchange]], arguments: Json) -> str | None:
    """What is in the way where one value of one result would be two arguments: the rating of one player is not his
    opponent's as well."""
    for place, (param, made) in enumerate(told):
        for other, before in told[:place]:
            if before is made and arguments[other.name] == arguments[param.name]:
                return f"What {made.tool} tells cannot be the {noun_of(other)} and the {noun_of(param)} at once."
    return None


def noun_of(param: Param) -> str:
    """What a parameter is called in a sentence."""
    return " ".join(word for word in parts(param.name) if word not in MARKERS) or param.name
