"""The events that the tests of journals are made of, and how such a test is run."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from treadle.kernel.events import FORMAT, Event, NudgeGiven, RunFinished, RunPaused, RunResumed, RunStarted
from treadle.kernel.messages import SystemMessage, UserMessage
from treadle.kernel.stop import stopped

P = ParamSpec("P")

FINISHED = RunFinished(at=9.0, stop=stopped("answered"), output={"total": [1, "2", None]})
PAUSED = RunPaused(at=6.0, stop=stopped("waiting", "approve pay"))
RESUMED = RunResumed(at=7.0)


def started(run_id: str = "r", at: float = 1.0, question: str = "why?", **more: Any) -> RunStarted:
    """The beginning of a run."""
    said = (SystemMessage("be brief"), UserMessage("earlier"), UserMessage(question))
    return RunStarted(at=at, run_id=run_id, messages=said, format=FORMAT, **more)


def note(text: str) -> Event:
    """An event that says `text`."""
    return NudgeGiven(at=2.0, text=text)


PATIENCE = 120.0
"""Seconds after which a test that still waits for its journal has failed; none of ours takes a tenth of that."""


def in_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """The test as a plain function, which needs no plugin of pytest, and ends where the journal never answers."""

    async def bounded(*args: P.args, **named: P.kwargs) -> None:
        async with asyncio.timeout(PATIENCE):
            await test(*args, **named)

    @wraps(test)
    def run(*args: P.args, **named: P.kwargs) -> None:
        asyncio.run(bounded(*args, **named))

    return run
