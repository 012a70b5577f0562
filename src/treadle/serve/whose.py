"""Whose: to whom a run belongs, and so who may see it and decide on it. A run that works for another is that one's."""

import re
from collections import OrderedDict
from typing import Final, NamedTuple

from treadle.journal import Journal, JournalError, UnknownRun
from treadle.journal.families import is_there, works_for
from treadle.journal.info import told_by
from treadle.journal.ones_own import read_of
from treadle.kernel.events import Parent
from treadle.serve.refused import Refused, kept, of_journal
from treadle.serve.user import User

_MADE_HERE: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{10}(\.|$)")
"""Ids of runs that no second run ever has."""

_KNOWN: Final = 2_000
"""Runs of which is remembered whose they are, which never changes: half a kilobyte each, for a read of the journal."""

_DEEPEST: Final = 100
"""Runs that work for each other, one below the other, before nobody is taken to own them."""


class Whose(NamedTuple):
    """To whom a run belongs: that of the run at the top."""

    top: str
    owner: str
    agent: str


class Owners:
    """Whose the runs in a journal are.

    Args:
        journal: where they are.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: OrderedDict[str, Whose] = OrderedDict()

    async def seen(self, user: User, run_id: str) -> Whose:
        """Whose the run is. Raises `Refused` if the user may not see it, as if it were not there."""
        there = run_id not in self._known or await kept(is_there(self._journal, run_id))
        whose = await self._whose_of(run_id, 0) if there else None
        if whose is None or not user.may_see(whose.owner, whose.agent):
            raise Refused("not_found", f"there is no run {run_id!r:.200}")
        return whose

    async def decided_on(self, user: User, run_id: str) -> Whose:
        """Whose the run is. Raises `Refused` if the user may not decide on it."""
        whose = await self.seen(user, run_id)
        if not user.may_decide(whose.owner, whose.agent):
            raise Refused("forbidden", f"you may look at run {run_id}, and not decide on it")
        return whose

    async def _whose_of(self, run_id: str, depth: int, link: Parent | None = None) -> Whose | None:
        found = self._known.get(run_id)
        if found is None:
            try:
                events = await read_of(self._journal, run_id)
            except UnknownRun:
                return None
            except JournalError as error:
                raise of_journal(error) from error
            if not works_for(link, events[0].at):
                return None
            line = told_by(events)
            found = Whose(run_id, line.user, line.agent)
            if line.parent is not None:
                above = None if depth > _DEEPEST else await self._whose_of(line.parent.run_id, depth + 1, line.parent)
                found = Whose(run_id, "", "") if above is None else above
            if not _MADE_HERE.match(run_id):
                # A name that somebody chose may be another's run, once this one is deleted.
                return found
            self._known[run_id] = found
            while len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        return found
