"""Outcome: what has come of a run so far, as it is told to whoever asked for it."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from treadle.drivers.below import Below
from treadle.drivers.configuration import AnswerType, Configuration
from treadle.drivers.output import typed_output
from treadle.journal import Journal, RedactionFailed
from treadle.journal.redaction import redacted
from treadle.kernel.events import Event
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Text
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
    output = typed_output(config, state, list(_handed_to(config, state)))
    return result if output is result.output else dataclasses.replace(result, output=output)


def handed_on(config: Configuration, state: RunState) -> Any:
    """The JSON of the answer that another agent gave to a run of the agent in `config`.

    Raises:
        ValueError: it is of none of the types that it may be of.
    """
    kinds, said = list(_handed_to(config, state)), AssistantMessage((Text(state.text),))
    fault: ValueError | None = None
    for kind in [one for one in (config.output, *kinds) if one is not None]:
        try:
            if state.output is None:
                return kind.read(said).json
            kind.value(state.output)
        except ValueError as error:
            fault = fault or error
        else:
            return state.output
    raise fault or ValueError("no answer of a type was asked for")


def _handed_to(config: Configuration, state: RunState) -> Iterator[AnswerType]:
    """The types that the answer may be of that another agent gave, the most likely first."""
    if not state.handed_on or not state.steps:
        return
    for record in state.steps[-1].calls:
        tool = config.tools.get(record.doing.name)
        if record.final and tool is not None and isinstance(tool.agent, Below):
            yield from tool.agent.answer_types(config.output)
            return
