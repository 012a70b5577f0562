"""What must hold of answers that the application may send back: none stands that was, and each was looked at; and of
what is given for the answer of an agent that was asked for one of a type."""

from collections.abc import Iterator
from typing import Any

import msgspec
from below import HELPER
from trial import Trial

from treadle.kernel.events import RunFinished, ToolFinished, ToolReacted


def an_answer_stands_as_it_was_let_pass(trial: Trial) -> Iterator[str]:
    """Of a run that was answered, each `on_answer` that was asked let the last stand that it was shown; its own was
    asked, and shown what the result has."""
    for run in trial.journal.runs:
        last = trial.ended(run)
        if not isinstance(last, RunFinished) or last.stop.reason != "answered":
            continue
        told = {name: (given, stands) for run_id, name, given, stands in trial.world.verdicts if run_id == run}
        for name, (given, stands) in told.items():
            if not stands:
                yield f"{trial.path(run)}: {name} sent {given!r} back, with which it was answered"
        hooks, own = trial.setup.at(trial.path(run)).hooks, f"{trial.path(run)} on_answer"
        handed_on = last.stop.detail.startswith("handed on")
        if hooks.answers is not None and own not in told and not handed_on and not trial.before:
            yield f"{trial.path(run)}: it was answered, and {own} was never asked"
        result = trial.last.result
        if own in told and result is not None and run == trial.root == result.run_id and not handed_on:
            given = told[own][0]
            shown = result.text if result.output is None else result.output
            if given != shown and trial.journal.redact is None:
                yield f"{own} was shown {given!r}, and the result has {shown!r}"


def what_a_typed_agent_below_gave_is_of_its_type(trial: Trial) -> Iterator[str]:
    """An agent that is asked for an answer of a type, and has none when a condition ends it, has failed."""
    for run in trial.journal.runs:
        first: Any = trial.journal.events(run)[0]
        path, last = trial.path(run), trial.ended(run)
        typed = first.parent is not None and path.endswith(f"/{HELPER}") and trial.setup.at(path).output_mode
        if not typed or not isinstance(last, RunFinished) or last.stop.reason == "external_tool":
            continue
        call = first.parent.step, first.parent.call_id
        above = [
            one for one in trial.journal.events(first.parent.run_id) if isinstance(one, ToolFinished | ToolReacted)
        ]
        about = [one for one in above if (one.step, one.call_id) == call]
        if trial.journal.redact is not None or any(isinstance(one, ToolReacted) and one.call for one in about):
            continue
        for one in about:
            if isinstance(one, ToolFinished) and one.spent is not None and not one.is_error and not _fits(one.content):
                yield f"{path}: {one.content!r} was given for its answer; it ended as {last.stop}"


def _fits(content: Any) -> bool:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.MsgspecError, TypeError):
        return False
    return isinstance(found, dict) and isinstance(found.get("n"), int)
