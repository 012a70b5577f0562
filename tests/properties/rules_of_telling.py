"""What must hold of a run as it is told to others: to whom its inside is not shown, it is the same run."""

from collections.abc import Iterable, Iterator

from folding import Known, fold_all
from trial import Trial

from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import Event, encode_event
from treadle.kernel.fold import fold
from treadle.kernel.messages import Message, SystemMessage
from treadle.kernel.state import RunState
from treadle.serve.veil import veiled

PROVIDERS = (b"slow down", b"come back tomorrow", b"who are you", b"a bug in the model")
"""What models say as they fail, in the worlds (`player.py`), and nobody else."""


def the_veil_hides_and_changes_nothing(trial: Trial) -> Iterator[str]:
    """The events without what is for whoever runs the agent lead to the same calls, messages and end, and nothing in
    them, below neither, is what a model's provider said as a call failed."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        whole = fold_all(events)
        try:
            shown, wrong = _as_told(events)
        except IllegalEvent as error:
            yield f"{trial.path(run)} cannot be told without its inside: {error}"
            continue
        yield from (f"{trial.path(run)} tells {what}" for what in wrong)
        if _told(shown.messages) != _told(whole.messages) or shown.phase != whole.phase:
            yield f"{trial.path(run)} is another run without its inside"


def _and_as_told(before: tuple[RunState, tuple[str, ...]], event: Event) -> tuple[RunState, tuple[str, ...]]:
    (shown, wrong), told = before, veiled(event)
    encoded = encode_event(told)
    wrong += tuple(f"{words!r}: {told!r:.300}" for words in PROVIDERS if words in encoded)
    return fold(shown, told), wrong


_as_told = Known(_and_as_told, (RunState(), ()))


def _told(messages: Iterable[Message]) -> list[Message]:
    return [one for one in messages if not isinstance(one, SystemMessage)]
