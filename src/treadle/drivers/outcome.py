"""Outcome: what has come of a run so far, as it is told to whoever asked for it."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from treadle.drivers.below import Below
from treadle.drivers.configuration import AnswerType, Configuration
from treadle.drivers.output import typed_output
from treadle.journal import Journal, RedactionFailed
from treadle.journal.redaction import redacted
from treadle.kernel.events import Event
from treadle.kernel.fold import fold_all
from treadle.kernel.state import RunState
from treadle.result import RunResult


def as_told(state: RunState, found: RunState, added: Sequence[Event], journal: Journal | None) -> RunState:
    """The state as it is told: of a paused run in a journal that redacts, what that has, which is what goes on.

    Args:
        state: what has happened, folded.
        found: the same when this process took the run up.
        added: the events that it has added since.
        journal: where the run is kept; None if that is nowhere.
    """
    redact = getattr(journal, "redact", None)
    if redact is None or state.phase != "paused" or found.events + len(added) != state.events:
        return state
    try:
        kept = redacted(state.run_id, found.events, added, redact, "")
    except RedactionFailed:
        # Whoever writes it is told.
        return state
    return fold_all(kept, found)


def with_typed_output(result: RunResult[Any], config: Configuration, state: RunState) -> RunResult[Any]:
    """The result of a run of the agent in `config` with its answer as a value of its type, if it has one."""
    output = typed_output(config, state, _handed_to(config, state))
    return result if output is result.output else dataclasses.replace(result, output=output)


def _handed_to(config: Configuration, state: RunState) -> AnswerType | None:
    """The type of the answer of the agent that the conversation was handed on to, if it has one."""
    if not state.handed_on or not state.steps:
        return None
    for record in state.steps[-1].calls:
        tool = config.tools.get(record.doing.name)
        if record.final and tool is not None and isinstance(tool.agent, Below):
            return tool.agent.output_below(config.output)
    return None
