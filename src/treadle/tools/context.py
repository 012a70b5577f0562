"""What a tool may know about the call that it is serving, and how a parameter asks for it.

The driver makes a `ToolContext` for each call; a tool that has a parameter for it, or for the dependencies alone
(`Injected`), gets it, and the model never sees that parameter. Neighbours: `signature.py` finds the parameter,
`tool.py` fills it.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Generic

from msgspec import Struct
from typing_extensions import TypeVar

from treadle.event_loop import running_loop
from treadle.kernel.messages import Json, Message
from treadle.kernel.names import escaped

Deps = TypeVar("Deps", covariant=True, default=Any)
_T = TypeVar("_T")
_LIKE_A_STEP = re.compile(r"(?:\A|-)[0-9]+-")


class FromRun:
    """The mark in `Injected`: such a parameter is given the run's dependencies."""


Injected = Annotated[_T, FromRun]
"""`shop: Injected[Shop]` is given what the run was given as `deps=`: checkers see a `Shop`, the model nothing."""


class Cancellation:
    """A flag that a call was given up, readable from a worker thread."""

    __slots__ = ("requested",)

    def __init__(self) -> None:
        self.requested = False


def _unheard(_: str | Json) -> None:
    return None


def _nothing_said() -> Sequence[Message]:
    return ()


_NO_DEPS: Any = None


class ToolContext(Struct, Generic[Deps], frozen=True):
    """The call that a tool is serving; `ToolContext[Shop]` says of what type the dependencies are.

    Attributes:
        run_id: the run; empty outside a run.
        tool_name: the name under which the tool was called.
        call_id: the provider's name of the call.
        step: the step of the run, from 0.
        deadline: when the run must have ended, in Unix seconds; None if there is no limit.
        deps: what the application gave the run for its tools.
        progress: takes what `report` is told.
        attempt: 1 for the first try, 2 for the first retry, and so on.
        cancellation: the flag behind `check_cancelled`.
        history: gives the run's messages so far; none outside a run.
        arguments: those of the call, as they were validated.
        made: 1 for the model's own call, and one more for each call that a reaction had made in its place.
        other: how many of those were other calls, rather than the same one again.
        nonce: of a run whose name somebody chose, what tells it from an earlier one of that name, since deleted; below
            0 where the name follows from what is asked, and to a service is the same again.
        again: what the tool gave when it asked a person in the middle of this call; empty if it did not.
        answer: what the person answered.
        redact: what the run's journal puts texts through, for what the tool itself writes elsewhere, such as into a
            log; None if it keeps them as they are.
    """

    run_id: str = ""
    tool_name: str = ""
    call_id: str = ""
    step: int = 0
    deadline: float | None = None
    deps: Deps = _NO_DEPS
    progress: Callable[[str | Json], None] = _unheard
    attempt: int = 1
    cancellation: Cancellation | None = None
    history: Callable[[], Sequence[Message]] = _nothing_said
    arguments: Mapping[str, Any] = MappingProxyType({})
    made: int = 1
    other: int = 0
    again: str = ""
    answer: Any = None
    redact: Callable[[str], str] | None = None
    nonce: int = 0

    @property
    def idempotency_key(self) -> str:
        """A name for this call that is the same at every retry and after every crash, in sub-runs too.

        It is made of the run, the step and the call, and no two calls of any runs share one, also where a run has the
        name of one that was deleted. Send it to services that take one: what they did under it they do not do again.
        Another call that a reaction made in its place has a key of its own, and so has one that is made again with
        other arguments of a person.
        """
        again = f"+{self.other + 1}" if self.other else ""
        call = escaped(self.call_id)
        # "1-x" in the run "pay" and "x" in the run "pay-0" would be one key: the last step in a key is the call's own.
        call = call.replace("-", "%2D") if _LIKE_A_STEP.search(call) else call
        which = f"~{self.nonce:x}" if self.nonce > 0 else ""
        return f"{self.run_id}-{self.step}-{call}{again}{which}"

    def report(self, progress: str | Json) -> None:
        """Tells whoever watches the run how far the tool has come. May be called from a worker thread."""
        self.progress(progress)

    def check_cancelled(self) -> None:
        """For sync tools that work long: ends the tool if its call was given up meanwhile (a timeout, a cancelled run).

        Raises:
            asyncio.CancelledError: the call was given up; let it pass.
        """
        if self.cancellation is not None and self.cancellation.requested:
            raise asyncio.CancelledError("the call was given up")


def from_thread(progress: Callable[[str | Json], None], cancellation: Cancellation) -> Callable[[str | Json], None]:
    """`progress`, called on the event loop whichever thread reports; silent once the call was given up."""
    loop = running_loop()

    def report(news: str | Json) -> None:
        if not cancellation.requested and not loop.is_closed():
            loop.call_soon_threadsafe(progress, news)

    return report
