"""What must hold of answers that the application may send back: none stands that was, and each was looked at."""

from collections.abc import Iterator

from trial import Trial

from treadle.kernel.events import RunFinished


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
