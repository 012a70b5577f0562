"""Outcome: what has come of a run so far, as it is told to whoever asked for it."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from treadle.drivers.below import below_of, is_kind_of
from treadle.drivers.configuration import AnswerType, Configuration
from treadle.drivers.output import answer_in, as_json, sent_back, typed_output
from treadle.journal import Journal, RedactionFailed
from treadle.journal.redaction import redacted
from treadle.kernel.events import Event
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Json, Text
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
    output = _handed_over(config, state) if state.handed_on else typed_output(config, state)
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


def is_without_answer(config: Configuration, state: RunState, final: bool) -> bool:
    """Whether a run that has finished has no answer of the type that whoever called it asked for.

    An answer that was sent back is none. Where the run was a hand-off (`final`), what came back of it is the end of the
    one above, which says itself that there is no output.
    """
    kind, stop = config.output, state.stop
    if kind is None or stop is None or stop.reason == "external_tool":
        return False
    if stop.reason == "condition" and sent_back(state):
        return True
    # What has been taken for an answer is one, also where it no longer reads as such: redacted, or of a changed type.
    if final or state.output is not None or (stop.reason == "answered" and not state.handed_on):
        return False
    with suppress(ValueError):
        if state.handed_on:
            handed_on(config, state)
        else:
            answer_in(state.steps[-1], kind)
        return False
    return True


def _handed_over(config: Configuration, state: RunState) -> Any:
    """The answer that another agent gave, as a value of the first type that it fits, else its JSON.

    Where that type leaves something of it out, it is of a kind of that type that does not, of an agent further on.
    """
    kinds, given = [*_handed_to(config, state), *([] if config.output is None else [config.output])], state.output
    fitting = list(_fitting(kinds, given)) if given is not None else []
    if not fitting:
        return given
    kind, value = fitting[0]
    narrower = [other for one, other in fitting[1:] if one.kind != kind.kind and is_kind_of(one.kind, kind.kind)]
    return next((one for one in (value, *narrower) if _is_kept(given, as_json(one, given))), value)


def _fitting(kinds: Iterable[AnswerType], given: Json) -> Iterator[tuple[AnswerType, Any]]:
    for kind in kinds:
        with suppress(ValueError):
            yield kind, kind.value(given)


def _is_kept(given: Json, value: Json) -> bool:
    """Whether each key in `given` is in `value` too, which may have more, and other spellings of what stands there."""
    if isinstance(given, dict):
        return isinstance(value, dict) and all(key in value and _is_kept(one, value[key]) for key, one in given.items())
    if isinstance(given, list) and isinstance(value, list):
        return all(map(_is_kept, given, value))
    return True


def _handed_to(config: Configuration, state: RunState) -> Iterator[AnswerType]:
    """The types that the answer may be of that another agent gave, the most likely first."""
    if not state.handed_on or not state.steps:
        return
    for record in state.steps[-1].calls:
        below = below_of(config.tools.get(record.doing.name))
        if record.final and below is not None:
            yield from below.answer_types(config.output)
            return
