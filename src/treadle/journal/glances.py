"""Glances: how a process sees what others append to a file, for all who watch runs there at once.

Each time one short question is put to the file for all runs that somebody waits for, and only those are read in which
something has happened. Holds no threads and no tasks: while somebody watches, a timer in their event loop.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from treadle.event_loop import running_loop
from treadle.journal.errors import JournalError
from treadle.journal.os_fork import renewed_in_a_child
from treadle.journal.watch import Bell

Ends = dict[str, int | None]
"""By run, the number of its last event; None where there is no such run."""


class Glances:
    """Rings the bell for the runs to which somebody has appended.

    Args:
        bell: knows for which runs somebody waits.
        ask: asks the file how far these runs are.
        every: seconds from one look to the next.
    """

    def __init__(self, bell: Bell, ask: Callable[[Sequence[str]], "Future[Ends]"], every: float) -> None:
        self._bell, self._ask, self._every = bell, ask, every
        renewed_in_a_child(self)
        self.renew()

    def renew(self) -> None:
        """See `Locking.renew`; those who watch are in the parent."""
        self._watchers: Counter[asyncio.AbstractEventLoop] = Counter()
        self._ends: Ends = {}
        self._asked: Future[Ends] | None = None

    @contextmanager
    def going(self) -> Iterator[None]:
        """Looks from time to time, in the running event loop, for as long as anybody there is in here."""
        loop = running_loop()
        self._watchers[loop] += 1
        if self._watchers[loop] == 1:
            loop.call_later(self._every, self._look, loop)
        try:
            yield
        finally:
            self._watchers[loop] -= 1

    def know(self, run_id: str, end: int) -> None:
        """This process has appended to the run, and told who watches it: there is nothing to look for up to `end`."""
        if run_id in self._ends:
            self._ends[run_id] = end

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._watchers[loop] <= 0:
            del self._watchers[loop]
            return
        loop.call_later(self._every, self._look, loop)
        if self._asked is not None and not self._asked.done():
            return
        wanted = self._bell.heard_for()
        try:
            self._asked = asked = self._ask(wanted)
        except JournalError:
            # Whoever reads now is told why.
            self._bell.ring_all()
            return
        asked.add_done_callback(self._answered)

    def _answered(self, asked: "Future[Ends]") -> None:
        before: Ends = self._ends
        try:
            self._ends = found = asked.result()
        except Exception:
            self._bell.ring_all()
            return
        for run_id, end in found.items():
            # One that is looked at for the first time may have gone on since it was read.
            if before.get(run_id, -1) != end:
                self._bell.ring(run_id)
