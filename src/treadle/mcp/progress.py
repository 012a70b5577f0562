"""Progress: how far a call has come that somebody else asked for, as its client is told."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from treadle.drivers.watching import RunEvent, StepCompleted, ToolProgress
from treadle.kernel.events import ModelReplied, ToolStarted

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

LONGEST = 500
"""Characters of what a client is told at once."""


class News(NamedTuple):
    """Something that happened: in words, and as a number of a `total` where a tool says so of itself."""

    words: str
    done: float | None = None
    total: float | None = None


class Watch:
    """Tells how far a run has come; what nobody takes in time is left out.

    Args:
        news: where it is told.
        is_agent: whether an agent works on it. Then its steps and calls are told, with what its tools report in words
            only, as it is no measure of the whole; otherwise what the one tool reports.
    """

    def __init__(self, news: "MemoryObjectSendStream[News]", *, is_agent: bool) -> None:
        self._news, self._is_agent = news, is_agent
        self._names: dict[str, str] = {}

    def __call__(self, event: RunEvent) -> None:
        """Tells of it, if there is something to tell."""
        found = self._of_agent(event) if self._is_agent else self._of_tool(event)
        if found is None:
            return
        try:
            self._news.send_nowait(found._replace(words=found.words[:LONGEST]))
        except (anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    def _of_agent(self, event: RunEvent) -> News | None:
        match event:
            case StepCompleted(step=step):
                return News(f"step {step.number} is done")
            case ModelReplied(message=message):
                self._names = {call.id: call.name for call in message.calls}
            case ToolStarted(name=name, call_id=call_id):
                return News(f"{name or self._names.get(call_id, call_id)} has begun")
            case ToolProgress(name=name, update=update):
                return News(f"{name}: {update}")
        return None

    def _of_tool(self, event: RunEvent) -> News | None:
        if not isinstance(event, ToolProgress):
            return None
        update = event.update
        if not isinstance(update, dict):
            return News(str(update))
        done, total = _number(update.get("progress")), _number(update.get("total"))
        if done is None:
            return News(str(update))
        message = update.get("message")
        return News(message if isinstance(message, str) else "", done, total)


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


async def tell(context: Any, heard: "MemoryObjectReceiveStream[News]") -> None:
    """Tells the client, whose protocol has the number grow with each report: one that does not is left out, and words
    without a number count as one more, or where there are numbers, as next to nothing.
    """
    last, total = None, None
    async with heard:
        async for words, done, of in heard:
            if done is None:
                done = 1 if last is None else last + 1 if total is None else math.nextafter(last, math.inf)
            elif last is not None and done <= last:
                continue
            else:
                total = of if of is not None else total
            last = done
            await context.session.report_progress(done, total, words or None)
