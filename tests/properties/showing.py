"""What whoever watches a generated run is shown, held against what its journal came to have."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile, zip_longest
from typing import Any

from folding import fold_all

from treadle import PartialArguments, StepCompleted, SubRunEvent
from treadle.drivers.live import Pieces
from treadle.drivers.trace import trace_lines
from treadle.journal.redaction import redacted
from treadle.kernel.events import Event, Happened, ModelFailed, ModelReplied, RunFinished, RunPaused
from treadle.kernel.messages import Text
from treadle.models import TextDelta, ToolCallCompleted, ToolCallDelta, ToolCallStarted

WITHDRAWN = "\x00"


@dataclass
class Shown:
    """What one process was shown of the run at the top, which had `before` events then."""

    before: int
    events: list[Any] = field(default_factory=list)

    def add(self, event: Any) -> None:
        """One more; what is printed of it is a text."""
        assert all(isinstance(line, str) for line in trace_lines(event))
        self.events.append(event)


def what_is_shown_is_what_happened(trial: Any) -> Iterator[str]:
    """Each event is shown once, in order, and no end that is not in the journal; each step once it is complete."""
    root = trial.root
    for shown in trial.shown if root is not None and trial.taken is None else ():
        happened = [one for one in shown.events if isinstance(one, Happened)]
        told = list(redacted(root, 0, happened, trial.journal.redact, ""))
        there = trial.journal.events(root)[shown.before : shown.before + len(told)]
        # Where the journal failed, what it did not take was shown all the same; another process goes on before it.
        kept = [one for one, _ in takewhile(lambda both: both[0] == both[1], zip(told, there, strict=False))]
        if len(kept) < len(told) and not trial.journal.failed:
            yield f"{[_kind(one) for one in told]} were shown, {[_kind(one) for one in there]} are in the journal"
            continue
        ends = [one for one in told[len(kept) :] if isinstance(one, (RunPaused, RunFinished))]
        if ends:
            yield f"{ends} was shown, and is not in the journal"
        yield from _steps(trial, shown, kept)
        yield from _below(trial, shown)
        yield from _texts(shown)


def _steps(trial: Any, shown: Shown, kept: list[Event]) -> Iterator[str]:
    events = trial.journal.events(trial.root)
    done = len(fold_all(events[: shown.before]).steps)
    steps = fold_all(events[: shown.before + len(kept)]).steps
    whole = [one.step for one in shown.events if isinstance(one, StepCompleted)]
    if len(whole) < len(steps) - done or (len(whole) > len(steps) - done and not trial.journal.failed):
        yield f"steps {[one.number for one in whole]} were shown as complete, of {done} to {len(steps)}"
    for step, one in zip(whole, steps[done:], strict=False):
        if trial.journal.redact is None and step != one:
            yield f"step {step} was shown, and came to be {one}"


def _below(trial: Any, shown: Shown) -> Iterator[str]:
    """What runs below did is shown in their order."""
    for run_id in {one.run_id for one in shown.events if isinstance(one, SubRunEvent)}:
        inner = [one.event for one in shown.events if isinstance(one, SubRunEvent) and one.run_id == run_id]
        told = [one for one in inner if isinstance(one, Happened)]
        kept = iter(trial.journal.events(run_id))
        told = list(redacted(run_id, 0, told, trial.journal.redact, ""))
        lost = [one for one in told if not any(one == other for other in kept)]
        if lost and not trial.journal.failed:
            yield f"of {run_id} {[_kind(one) for one in lost]} were shown, and are not in the journal in that order"


def _texts(shown: Shown) -> Iterator[str]:
    """The stream of texts is what the replies say; of what broke off it says so."""
    pieces, said, streamed = Pieces(WITHDRAWN), "", ""
    for event in shown.events:
        said += "".join(pieces.of(event))
        match event:
            case TextDelta(text=text):
                streamed += text
            case ModelReplied(message=message, handed_in=handed_in):
                last = next((part.text for part in reversed(message.content) if isinstance(part, Text)), "")
                if message.text and not said.endswith(last if handed_in else streamed or message.text):
                    yield f"the text {message.text[:80]!r} ends in {said[-80:]!r} as a stream"
                streamed = ""
            case ModelFailed():
                if streamed and not said.endswith(WITHDRAWN):
                    yield f"{streamed[:80]!r} broke off, and the stream does not say so: {said[-80:]!r}"
                streamed = ""


def arguments_arrive_as_they_are(trial: Any) -> Iterator[str]:
    """Of each call that has been streamed, here or below, the last that is told are its arguments, whole."""
    for events in trial.arriving:
        streamed = dict[tuple[str, str], list[str]]()
        for event, after in zip_longest(events, events[1:]):
            run_id, inner = _innermost(event)
            match inner:
                case ToolCallStarted(id=call_id):
                    streamed[run_id, call_id] = []
                case ToolCallDelta(id=call_id, json=piece):
                    streamed[run_id, call_id].append(piece)
                case ToolCallCompleted(id=call_id):
                    try:
                        whole = json.loads("".join(streamed[run_id, call_id]))
                    except ValueError:
                        continue
                    below, told = _innermost(after)
                    last = (told.arguments, told.cut) if isinstance(told, PartialArguments) else None
                    if (below, last) != (run_id, (whole, None)) or told.id != call_id:
                        yield f"call {call_id} of {run_id!r} was streamed with {whole}, and told last is {told}"


def _innermost(event: Any) -> tuple[str, Any]:
    """What an event is about, and the run below that it is of; empty for the run at the top."""
    run_id = ""
    while isinstance(event, SubRunEvent):
        run_id, event = event.run_id, event.event
    return run_id, event


def _kind(event: Event) -> str:
    return type(event).__name__
