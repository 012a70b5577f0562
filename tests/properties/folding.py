"""The states of a run that the rules look at, each event folded once.

Some thirty rules look at the same events, and those of a run that was killed begin as those of the run that was not: to
fold them anew for each took a fifth of all the time. That folding anew comes to the same is a rule of its own
(`rules.the_journal_is_the_truth`), which folds with the kernel alone; so do all properties that are about folding.
"""

from collections.abc import Iterable
from operator import is_

from treadle.kernel.events import Event
from treadle.kernel.fold import fold
from treadle.kernel.state import RunState

MOST = 64
_known: dict[int, tuple[list[Event], list[RunState]]] = {}
"""By the identity of a run's first event: its events, which keep that identity, and the state after each."""


def fold_all(events: Iterable[Event]) -> RunState:
    """The state after `events`, from the beginning."""
    events = list(events)
    if not events:
        return RunState()
    known, states = _known.get(id(events[0]), ([], []))
    same = next((i for i, alike in enumerate(map(is_, events, known)) if not alike), min(len(events), len(known)))
    if same == len(events):
        return states[same - 1]
    known, states = known[:same], states[:same]
    for event in events[same:]:
        states.append(fold(states[-1] if states else RunState(), event))
        known.append(event)
    if len(_known) >= MOST:
        _known.clear()
    _known[id(events[0])] = known, states
    return states[-1]
