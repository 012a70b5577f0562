"""Journals of one's own: what one raises that is no error of a journal's is told as one, wherever it is asked."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from treadle.journal.errors import JournalError, foreign
from treadle.journal.port import Journal
from treadle.kernel.errors import Misuse

_REMEDY = "When its cause is gone, try again."


def is_journal(given: object) -> bool:
    """Whether it is a journal; the class of one is none."""
    return isinstance(given, Journal) and not isinstance(given, type)


def check_journal(what: str, given: object) -> None:
    """Raises `Misuse` unless `what` was given a journal."""
    if not is_journal(given):
        raise Misuse(f"{what} takes a journal such as SqliteJournal(path); it was given {given!r:.100}")


@contextmanager
def told_as_its_own(journal: object) -> Iterator[None]:
    """While `journal` is asked for something.

    Raises:
        JournalUnavailable: it raised what its database raises, or cancelled itself.
    """
    try:
        yield
    except (JournalError, Misuse):
        raise
    except Exception as error:
        raise foreign(error, journal, _REMEDY) from error
    except asyncio.CancelledError as error:
        if not cancels_itself():
            raise
        raise foreign(error, journal, _REMEDY) from error


def cancels_itself() -> bool:
    """Whether a cancellation that is caught here is nobody's but that of what was waited for, such as a pool."""
    task = asyncio.current_task()
    return task is not None and not task.cancelling()
