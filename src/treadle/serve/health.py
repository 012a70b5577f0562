"""Health: whether what the server tells can be true: its journal can be read, and is the one that it began with.

A file that is removed, or replaced by another, takes its runs with it, and a server that went on would say of each that
it is not there. So nothing is told of runs until the file is back, or the server is started anew.
"""

import asyncio
import logging
import os
import time
from typing import Final

from treadle.journal import Journal, JournalError, SqliteJournal
from treadle.journal.ones_own import page_of
from treadle.journal.sqlite_file import seen
from treadle.serve.refused import Refused, of_journal

log = logging.getLogger("treadle.serve")

_FRESH: Final = 1.0
"""Seconds for which a look at the journal holds: anybody may ask for one."""


class Health:
    """Whether the journal of a server can be used.

    Args:
        journal: the journal.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._path = journal.path if isinstance(journal, SqliteJournal) else None
        self._first: os.stat_result | None = None
        self._lost = False
        self._looking = asyncio.Lock()
        self._looked = -_FRESH

    def begin(self) -> None:
        """Takes the journal's file as it is now for the one that is served."""
        self._first, self._lost = None if self._path is None else seen(self._path), False

    def check(self) -> None:
        """Holds the journal's file against the one that there was. Raises `Refused` if it is gone, or another one."""
        if self._path is None:
            return
        now = seen(self._path)
        if self._first is None:
            # It is made when it is first used.
            self._first = now
            return
        lost = now is None or not os.path.samestat(now, self._first)
        if lost and not self._lost:
            log.error("the journal's file %s was removed or replaced: nothing is told of runs now", self._path)
        self._lost = lost
        if lost:
            raise Refused(
                "unavailable",
                "the journal's file was removed or replaced while the server used it, and its runs with it",
                "Put it back, or start the server anew.",
            )

    async def look(self) -> None:
        """Looks whether the journal can be read. Raises `Refused` if it cannot, or is another one."""
        self.check()
        async with self._looking:
            if time.monotonic() - self._looked < _FRESH:
                return
            try:
                await page_of(self._journal, 1)
            except JournalError as error:
                raise of_journal(error) from error
            self._looked = time.monotonic()
        self.check()
