"""Driven: by which task a run is carried out here, and whether that was told to stop, or leaves the run as it is."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextlib import nullcontext, suppress
from typing import Any, Final, TypeVar

import anyio

from treadle.drivers.own_context import in_own_context
from treadle.event_loop import is_closed
from treadle.kernel.events import Queued
from treadle.kernel.stop import stopped

T = TypeVar("T")

ENDS_A_TASK: Final = (asyncio.CancelledError, KeyboardInterrupt, SystemExit)
"""What ends a task, and its group as it is. Anything else that a function of the application's raises, such as what
pytest skips a test by, which is no `Exception`, is raised outside of a group: that would wrap it."""

_TO_BE_TOLD = 1.0
"""Seconds to wait for the event loop to tell of a deadline that is over, which takes it one turn."""


class Driven:
    """How a run is carried out in this process.

    Args:
        above: how the run is that it works for.

    Attributes:
        order: how it was queued, if a worker drives it.
        deadline: the scope of its time limit, while it is in it.
        cancelled_as: how it ends if it is cancelled.
        given_up: whether this process leaves it as it is, told to or as its journal failed: what is cancelled then is
            as if the process had died.
        ends: whether it was taken up only to be ended, so that nothing more is begun.
        told: whether it is to stop though nobody has cancelled the task that waits for it: a call failed in a way that
            ends those beside it.
    """

    __slots__ = (
        "_above", "_carried", "cancelled_as", "deadline", "ends", "given_up", "order", "told"
    )  # fmt: skip

    def __init__(self, above: "Driven | None" = None) -> None:
        self.order: Queued | None = None
        self.deadline: asyncio.Timeout | None = None
        self.cancelled_as = stopped("cancelled")
        self.given_up = self.told = False
        self.ends: bool = above is not None and above.ends
        self._above = above
        self._carried: dict[asyncio.Task[Any] | None, tuple[asyncio.Task[Any] | None, int]] = {}

    async def carry(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Does `work`, which drives the run, in a task of its own, while this one waits for it.

        What runs in it may cancel its task, and before Python 3.13 a task group that fails leaves its task as if
        somebody had. This one only somebody can cancel who wants the run to stop: nobody could tell these apart in one.

        Raises:
            BaseException: what `work` raises.
            asyncio.CancelledError: this task was cancelled, also where the run had come to its end.
        """
        task = asyncio.current_task()
        cancels = 0 if task is None else task.cancelling()
        begun = False
        waits: asyncio.Future[None] | None = None
        failure: list[BaseException] = []

        async def held() -> None:
            nonlocal begun
            if waits is not None and waits.cancelled():
                return
            begun, own = True, asyncio.current_task()
            self._carried[own] = task, cancels
            try:
                await work()
            except BaseException as error:
                if isinstance(error, GeneratorExit) and is_closed(own):
                    raise
                # What passes through a task may end the event loop.
                failure.append(error)
            finally:
                del self._carried[own]

        # It is waited for right here, and a second cancellation reaches it too, which a group keeps to itself.
        own = asyncio.get_running_loop().create_task(held())
        waits = asyncio.shield(own)
        try:
            await _ended(own, waits)
        except asyncio.CancelledError:
            if begun and not failure:
                raise
            if not begun:
                # It was told before, as by Ctrl-C in a function that it waited for, and finds that out itself.
                self._carried[task] = task, -1
                try:
                    await work()
                finally:
                    del self._carried[task]
        except GeneratorExit:
            # Whoever waits is closed and may wait no more, so that it is left as it is.
            self.given_up = True
            with suppress(RuntimeError):
                own.cancel()
            raise
        if failure:
            if isinstance(failure[0], asyncio.CancelledError):
                # anyio says it again in words of its own, without which its scope would not know it.
                await asyncio.sleep(0)
            raise failure.pop()

    def is_told(self, here: asyncio.Task[Any] | None = None) -> bool:
        """Whether it was told to stop, or a run above it; what a task of its own was told by what runs in it is not.

        Args:
            here: the task that carries out what is asked about; by default this one.
        """
        here = here or asyncio.current_task()
        # A loop by hand may have calls carried out side by side, each for a task that may be cancelled alone; it is
        # carried out itself, as a replay is, by whoever awaits it.
        task, before = self._carried.get(here) or next(reversed(self._carried.values()), (here, 0))
        if self.told or (task is not None and task.cancelling() > before):
            return True
        return self._above is not None and self._above.is_cancelled(task)

    def is_cancelled(self, here: asyncio.Task[Any] | None = None) -> bool:
        """Likewise, or whether its time is up: whether a cancellation that arrives is meant for it."""
        return self.is_told(here) or (self.deadline is not None and self.deadline.expired())

    def is_given_up(self) -> bool:
        """Whether this process leaves it, or a run above it, as it is."""
        return self.given_up or (self._above is not None and self._above.is_given_up())

    def is_queued(self) -> bool:
        """Whether a worker drives it, or a run above it: then nobody waits for its answer here."""
        return self.order is not None or (self._above is not None and self._above.is_queued())

    def goes_on(self) -> bool:
        """Whether nobody has told this run, or one above, to stop, nor its own task anything: most often so."""
        here = asyncio.current_task()
        own = here if here in self._carried else next(reversed(self._carried), None)
        return own is not None and not own.cancelling() and not self.is_told(here)

    async def heed(self) -> None:
        """Lets this run go on, if nobody has told it, or one above, to stop. Where it `goes_on` there is nothing to do.

        Raises:
            asyncio.CancelledError: somebody has, and it has yet to come, or what ran kept it to itself; or the
                application's code has cancelled the task.
        """
        if self.goes_on():
            return
        if self.is_cancelled():
            # One that has yet to come is not to arrive while the end is recorded.
            await asyncio.sleep(0)
            raise asyncio.CancelledError
        await self.forgive()

    def is_late(self) -> bool:
        """Whether the deadline is over: a function of the application's may have held the event loop beyond it."""
        when = None if self.deadline is None else self.deadline.when()
        return when is not None and when <= asyncio.get_running_loop().time()

    async def in_time(self) -> None:
        """Lets nothing more begin where it `is_late`.

        Raises:
            asyncio.CancelledError: the deadline is over, of which the loop has had no time to tell.
        """
        if self.is_late() and self.deadline is not None and not self.deadline.expired():
            await asyncio.sleep(_TO_BE_TOLD)

    async def forgive(self) -> None:
        """Takes what this task was told for the doing of the application's code that has come to its end in it.

        Raises:
            asyncio.CancelledError: that has cancelled the task, and it is yet to come.
        """
        task = asyncio.current_task()
        if task is None or not task.cancelling() or self.is_cancelled():
            return
        try:
            await asyncio.sleep(0)
        finally:
            while task.cancelling() and not self.is_cancelled():
                task.uncancel()

    async def apart(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, a call of a tool: what it sets in its context, or tells its task, ends with it."""
        value, task = await in_own_context(work), asyncio.current_task()
        if task is not None and task.cancelling():
            with suppress(asyncio.CancelledError):
                await self.forgive()
        return value

    async def own(self, function: Callable[..., Any], what: str, *given: Any) -> Any:
        """What a function of the application's gives. That it cancels or closes itself is an error of its own."""
        task = asyncio.current_task()
        try:
            found = function(*given)
            value = await found if inspect.isawaitable(found) else found
            await self.forgive()
        except asyncio.CancelledError as error:
            if self.is_cancelled():
                raise
            raise cancelled_itself(what, error) from error
        except GeneratorExit as error:
            if is_closed(task):
                raise
            raise RuntimeError(f"{what} raised GeneratorExit") from error
        except BaseException:
            await self.forgive()
            raise
        return value


async def _ended(own: asyncio.Task[None], waits: asyncio.Future[None]) -> None:
    """Waits until `own` has ended, at first by `waits`, and tells it each time that this task is cancelled.

    Raises:
        asyncio.CancelledError: `own` had ended, or had not begun.
        GeneratorExit: this task is closed.
    """
    heard = False
    while not own.done():
        try:
            # anyio cancels again at every turn of the loop, which would end what a tool does to clean up, unless it is
            # told that it was heard.
            with anyio.CancelScope(shield=True) if heard else nullcontext():
                await waits
        except asyncio.CancelledError as error:
            if not own.cancel(*error.args):
                raise
            heard, waits = True, asyncio.shield(own)
        except RuntimeError as error:
            # No scope can be left by a task that is closed.
            if isinstance(error.__context__, GeneratorExit):
                raise error.__context__ from None
            raise
    await own


def cancelled_itself(what: str, error: asyncio.CancelledError) -> RuntimeError:
    """What is raised where a function of the application's cancelled what ran it, and nobody else did."""
    fault = RuntimeError(f"{what} cancelled itself")
    fault.__cause__ = error
    return fault
