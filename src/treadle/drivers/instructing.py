"""Instructing: what the function of an agent's instructions says, within the time that its run has."""

import asyncio
import inspect
from typing import Any

from treadle.drivers.configuration import Configuration, RunContext


class TookTooLong(TimeoutError):
    """The function of the instructions took longer than the run has."""


async def instructions_of(config: Configuration, context: RunContext[Any], seconds: float | None) -> Any:
    """The instructions of a run of `config` that is about to begin.

    Args:
        config: the agent.
        context: what a function of instructions is given.
        seconds: that the run has; the function is a part of them. None for no limit.

    Raises:
        TookTooLong: the function took longer; it was cancelled.
    """
    given: Any = config.instructions
    if not callable(given):
        return given
    try:
        async with asyncio.timeout(seconds) as limit:
            found = given(context)
            return await found if inspect.isawaitable(found) else found
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TookTooLong(
            f"the function of the instructions of {config.name} took longer than the {seconds:g} s that its run has, "
            "and was cancelled: the run has not begun"
        ) from error
