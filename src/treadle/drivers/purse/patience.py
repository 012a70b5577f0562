"""Patience: how long a run waits for the file of a budget that another process holds, while everything else goes on."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

from treadle.drivers.purse.rows import BudgetBusy
from treadle.journal.sqlite_file import PATIENCE

T = TypeVar("T")

_LONGEST_PAUSE: Final = 0.05


async def patiently(attempt: Callable[[], T], seconds: float = PATIENCE) -> T:
    """What `attempt` gives, which is made again as long as the file is held, and is one turn of the event loop.

    Between two attempts others have their turn, and the run can be cancelled.

    Args:
        attempt: leaves nothing behind that another attempt would mind.
        seconds: how long it is tried at most; 0 for once.

    Raises:
        BudgetUnavailable: the file is held still, or cannot be used for another reason.
    """
    loop, pause = asyncio.get_running_loop(), 0.001
    end = loop.time() + seconds
    while True:
        try:
            return attempt()
        except BudgetBusy:
            if loop.time() >= end:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def outside(attempt: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Likewise where nobody else has to have a turn: outside of an event loop; in one, `attempt` is made once."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        end = time.monotonic() + seconds
    else:
        return attempt()
    while True:
        try:
            return attempt()
        except BudgetBusy:
            if time.monotonic() >= end:
                raise
        time.sleep(_LONGEST_PAUSE)
