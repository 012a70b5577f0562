"""What must hold of a run as it is told to others: to whom its inside is not shown, it is the same run."""

from collections.abc import Iterable, Iterator

from trial import Trial

from treadle.kernel.errors import IllegalEvent
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import Message, SystemMessage
from treadle.serve.veil import veiled


def the_veil_hides_and_changes_nothing(trial: Trial) -> Iterator[str]:
    """The events without what is for whoever runs the agent lead to the same calls, messages and end."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        whole = fold_all(events)
        try:
            shown = fold_all([veiled(event) for event in events])
        except IllegalEvent as error:
            yield f"{trial.path(run)} cannot be told without its inside: {error}"
            continue
        if _told(shown.messages) != _told(whole.messages) or shown.phase != whole.phase:
            yield f"{trial.path(run)} is another run without its inside"


def _told(messages: Iterable[Message]) -> list[Message]:
    return [one for one in messages if not isinstance(one, SystemMessage)]
