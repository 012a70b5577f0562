"""The states of a run that the rules look at, each event folded once.

Some thirty rules look at the same events, and those of a run that was killed begin as those of the run that was not: to
fold them anew for each took a fifth of all the time. That folding anew comes to the same is a rule of its own
(`rules.the_journal_is_the_truth`), which folds with the kernel alone; so do all properties that are about folding.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from treadle.kernel.events import Event
from treadle.kernel.fold import fold
from treadle.kernel.state import RunState

MOST = 5000
S = TypeVar("S")
Followers = dict[int, tuple[Event, S, "Followers[S]"]]
"""Events that came after the same ones, by identity, which they keep here: what came of each, and its followers."""


class Known(Generic[S]):
    """What comes of events, one after the other; that of those which began alike before is known.

    Args:
        step: what comes of one more event.
        start: what comes of none.
    """

    def __init__(self, step: Callable[[S, Event], S], start: S) -> None:
        self._step, self._start = step, start
        self._first: Followers[S] = {}
        self._many = 0

    def __call__(self, events: Iterable[Event]) -> S:
        """What came of all of `events`, from the beginning."""
        if self._many > MOST:
            self._first, self._many = {}, 0
        came, followers = self._start, self._first
        for event in events:
            known = followers.get(id(event))
            if known is None:
                known = followers[id(event)] = event, self._step(came, event), {}
                self._many += 1
            _, came, followers = known
        return came


fold_all = Known(fold, RunState())
"""The state after events, from the beginning."""
