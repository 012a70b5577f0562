"""Journals of one's own: what one raises that is no error of a journal's is told as one, wherever a run asks it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from treadle.journal import JournalError
from treadle.journal.errors import foreign
from treadle.kernel.errors import Misuse

_REMEDY = "When its cause is gone, try again."


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
