"""Timeouts: how long a model may take, and the watch that holds it to that.

Neighbours: `treadle.models.http_model`, which waits for everything through a watch.
"""

from collections.abc import Awaitable
from typing import TypeVar

import anyio
from msgspec import Struct

from treadle.kernel.errors import Misuse
from treadle.models.errors import ModelTimeout

T = TypeVar("T")


class Timeouts(Struct, frozen=True):
    """Seconds that a model call may take; None for no limit. What takes longer is cancelled, and `ModelTimeout` raised.

    Attributes:
        total: from the request to the whole reply.
        first_token: from the request to the first piece of the reply. Models that think say nothing for minutes.
        between_tokens: from one sign of life to the next, once the reply has begun; keep-alives are none.
    """

    total: float | None = 600.0
    first_token: float | None = 300.0
    between_tokens: float | None = 120.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            seconds = getattr(self, name)
            number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
            if seconds is not None and not (number and seconds > 0):
                raise Misuse(f"{name} is a number of seconds above 0, or None for no limit; it was given {seconds!r}")


class Watch:
    """Measures one model call against its time limits.

    Args:
        model: the model's name, for the error.
        timeouts: the limits.
        streaming: whether the reply comes in pieces; if not, only the limit on the whole counts.
    """

    __slots__ = ("_due", "_end", "_model", "_timeouts", "begun")

    def __init__(self, model: str, timeouts: Timeouts, streaming: bool = True) -> None:
        self._model = model
        self._timeouts = timeouts
        self._end = _after(timeouts.total)
        self._due = _after(timeouts.first_token if streaming else None)
        self.begun = False

    def token(self) -> None:
        """Notes that a piece of the reply has come."""
        self.begun = True
        self._due = _after(self._timeouts.between_tokens)

    async def wait(self, work: Awaitable[T]) -> T:
        """What `work` gives. Cancels it and raises `ModelTimeout` when a limit passes."""
        with anyio.CancelScope(deadline=min(self._end, self._due)):
            return await work
        raise ModelTimeout(self._passed())

    def _passed(self) -> str:
        if self._end <= self._due:
            return f"{self._model} took longer than {self._timeouts.total:g} s for its reply (the limit `total`)"
        if self.begun:
            limit = f"{self._timeouts.between_tokens:g} s (the limit `between_tokens`)"
            return f"{self._model} stopped in the middle of its reply and sent nothing more for {limit}"
        return f"{self._model} sent no token within {self._timeouts.first_token:g} s (the limit `first_token`)"


def _after(seconds: float | None) -> float:
    return float("inf") if seconds is None else anyio.current_time() + seconds
