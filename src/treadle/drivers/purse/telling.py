"""Telling: what budgets are told of a run beside its model calls: that it has begun, and what it has used."""

import asyncio
from collections.abc import Sequence
from typing import Final

from treadle.drivers.purse.budget import log
from treadle.drivers.purse.drawing import Purse
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.rows import BudgetBusy, BudgetUnavailable

LAST_WORD: Final = 1.0
"""Seconds that a run waits at most to tell all of its budgets, where nothing else waits for it."""


async def tell_whose(purses: Sequence[Purse], run_id: str) -> None:
    """Tells budgets whose run it is, where that stands nowhere else: before it is in the journal it can be taken up."""
    for purse in purses:
        try:
            await patiently(purse.share.begin, LAST_WORD)
        except BudgetUnavailable as error:
            log.warning("whose run %s is cannot be written: %s", run_id, error, extra={"run_id": run_id})


async def tell_used(purses: Sequence[Purse]) -> None:
    """Tells budgets what was used. Before its end a run does not wait for that: its next call tells it too."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LAST_WORD
    for purse in purses:
        over = purse.share.is_over
        try:
            await patiently(purse.write, max(0.0, end - loop.time()) if over else 0.0)
        except BudgetBusy as error:
            if over:
                purse.share.unwritten(error)
