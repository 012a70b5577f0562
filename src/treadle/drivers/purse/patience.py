"""Patience: how long a run waits for the place of a budget that is held or lost, while everything else goes on."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from treadle.drivers.purse.rows import BudgetBusy

T = TypeVar("T")

_LONGEST_PAUSE: Final = 0.05


class RunInDoubt(Exception):
    """The run may be another process's by now, and nothing may be set aside for it before its journal was asked.

    Attributes:
        confirm: asks; raises what the journal says if it is.
    """

    def __init__(self, confirm: Callable[[], Awaitable[None]]) -> None:
        super().__init__("the run may be another process's by now")
        self.confirm = confirm


async def patiently(attempt: Callable[[], T], seconds: float | None = None) -> T:
    """What `attempt` gives, which is made again as long as the place is held, and is one turn of the event loop.

    Between two attempts others have their turn, and the run can be cancelled.

    Args:
        attempt: leaves nothing behind that another attempt would mind.
        seconds: how long it is tried at most; 0 for once, None for as long as the error says that it is worth it.

    Raises:
        BudgetUnavailable: the place is held still, or cannot be used for another reason.
        JournalError: the run that it is for is another process's by now, or nobody can say.
    """
    loop, pause = asyncio.get_running_loop(), 0.001
    begun = loop.time()
    while True:
        try:
            return attempt()
        except RunInDoubt as doubt:
            await doubt.confirm()
            continue
        except BudgetBusy as error:
            if loop.time() - begun >= (error.patience if seconds is None else seconds):
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def outside(attempt: Callable[[], T]) -> T:
    """Likewise where nobody else has to have a turn: outside of an event loop; in one, `attempt` is made once."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        begun = time.monotonic()
    else:
        return attempt()
    while True:
        try:
            return attempt()
        except BudgetBusy as error:
            if time.monotonic() - begun >= error.patience:
                raise
        time.sleep(_LONGEST_PAUSE)
