"""Corrections: a call that failed, with what the tool's error says would be right.

Called by `planner`.
"""

from collections.abc import Sequence
from typing import Any

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.words import singular
from treadle.models.offline.plan.outcome import Outcome, Trouble
from treadle.models.offline.plan.toolbox import KnownTool, Toolbox
from treadle.models.offline.plan.transcript import Exchange, hint_of
from treadle.models.offline.plan.vocabulary import replacement


def corrected_by(made: Exchange, tool: KnownTool, arguments: Json, outcome: Outcome) -> Json | None:
    """The arguments with what the error complains of replaced by what it says is valid; None if it does not say."""
    hint = hint_of(made)
    if hint is None:
        return as_written(arguments, outcome)
    kin = {
        param.name
        for param in tool.params
        if any(param.nouns == p.nouns for p in tool.params if p.name == hint.argument)
    }
    hopeless = False

    def mend(value: Any, concerned: bool) -> Any:
        nonlocal hopeless
        if isinstance(value, dict):
            return {key: mend(inner, concerned and key == hint.argument) for key, inner in value.items()}
        if isinstance(value, list):
            return [mend(inner, concerned) for inner in value]
        wrong = str(value) == hint.given or (concerned and hint.available and str(value) not in hint.available)
        if not wrong or isinstance(value, bool) or not isinstance(value, str | int):
            return value
        name = replacement(str(value), hint.nearest if str(value) == hint.given else None, hint.available)
        if name is None:
            hopeless = hopeless or str(value) == hint.given
            return value
        outcome.renamed[str(value)] = name
        return type(value)(name) if isinstance(value, int) and name.isdigit() else name

    corrected = {name: mend(value, name == hint.argument or name in kin) for name, value in arguments.items()}
    return None if hopeless else corrected


def failed_change(exchanges: Sequence[Exchange], box: Toolbox, ordered: KnownTool, again: bool) -> Trouble | None:
    """What went wrong with a change, which is made under no other name then: that is another change than the one that
    was ordered, and one that was cut off may have been made.

    Args:
        exchanges: the calls made for the question so far.
        box: the tools at hand.
        ordered: the tool of the change that is to be made now.
        again: whether that would be the same order under another name, and not another one that is left.
    """
    for made in exchanges:
        tool = box.named(made.tool)
        if made.failed and tool is not None and tool.may_change:
            hint = hint_of(made)
            if not again:
                return Trouble(f"I did not call {ordered.name}, as {made.tool} failed before it.")
            return Trouble(made.message, hint.available if hint else ())
    return None


def as_written(arguments: Json, outcome: Outcome) -> Json | None:
    """The names in the plural that the clause has them in, for a tool that does not know the singular."""
    many = [token for token in outcome.clause.tokens if singular(token.low) != token.low]
    written = {singular(token.low): token.text for token in many}
    plural = {
        name: written.get(value.lower(), value) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    return plural if plural != arguments else None
