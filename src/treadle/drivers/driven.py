"""Driven: by which task a run is carried out here, and whether that was told to stop, or leaves the run as it is."""

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from treadle.kernel.events import Queued
from treadle.kernel.stop import stopped

_GROUPS_TELL_NOBODY: Final = sys.version_info >= (3, 13)


class Driven:
    """How a run is carried out in this process.

    Args:
        above: how the run is that it works for.

    Attributes:
        order: how it was queued, if a worker drives it.
        cancelled_as: how it ends if it is cancelled.
        given_up: whether this process leaves it as it is, told to or as its journal failed: what is cancelled then is
            as if the process had died.
        cut_off: whether a call failed in a way that ends those beside it, which are cancelled.
    """

    __slots__ = ("_above", "_cancels", "_task", "cancelled_as", "cut_off", "given_up", "order")

    def __init__(self, above: "Driven | None" = None) -> None:
        self.order: Queued | None = None
        self.cancelled_as = stopped("cancelled")
        self.given_up = self.cut_off = False
        self._above = above
        self._task: asyncio.Task[Any] | None = None
        self._cancels = 0

    def begin(self) -> None:
        """This task drives the run from here on: only a cancellation that comes from now on is meant for it."""
        self._task = asyncio.current_task()
        above = self._above
        if above is not None and above._task is self._task:
            self._cancels = above._cancels
        else:
            self._cancels = 0 if self._task is None else self._task.cancelling()

    async def heed(self) -> None:
        """Lets a cancellation come that this task was told before it drove the run, and that is yet to arrive.

        It is meant for the run, as Ctrl-C is that is pressed in a function which the run waits for; one that has come,
        and that whoever drives the run has caught, is not.
        """
        if self._cancels:
            self._cancels -= 1
            await asyncio.sleep(0)
            self._cancels += 1

    def is_cancelled(self) -> bool:
        """Whether it, or a run above it, was told to stop: not a task of its own that what runs in it has cancelled."""
        task = self._task or asyncio.current_task()
        told = self.cut_off or task is None or task.cancelling() > self._cancels
        return told or (self._above is not None and self._above.is_cancelled())

    def is_given_up(self) -> bool:
        """Whether this process leaves it, or a run above it, as it is."""
        return self.given_up or (self._above is not None and self._above.is_given_up())

    def is_queued(self) -> bool:
        """Whether a worker drives it, or a run above it: then nobody waits for its answer here."""
        return self.order is not None or (self._above is not None and self._above.is_queued())

    async def heed_again(self) -> None:
        """Raises a cancellation of this run, or of one above, that a function of the application's kept to itself."""
        if self.is_cancelled():
            # anyio says it again in words of its own, without which its scope would not know it.
            await asyncio.sleep(0)
            raise asyncio.CancelledError

    def told_so_far(self) -> int:
        """How often the task that drives the run was told to stop, but for what was forgiven; for `forgive`."""
        return 0 if self._task is None else self._task.cancelling() - self._cancels

    async def forgive(self, told: int) -> None:
        """Takes what the task that drives the run was told since, and is not yet to come, for the doing of the
        application's code that ran in it meanwhile, and has come to its end.

        Before Python 3.13 a task group that fails leaves its task as if somebody had cancelled it: nobody can tell this
        from a cancellation that the code kept to itself.
        """
        task = self._task
        if _GROUPS_TELL_NOBODY or task is not asyncio.current_task() or self.told_so_far() <= told:
            return
        await asyncio.sleep(0)
        more = self.told_so_far() - told
        driven: Driven | None = self
        while driven is not None:
            if driven._task is task:
                driven._cancels += more
            driven = driven._above

    async def apart(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """What `work` gives, in a task of its own if this one drives the run: what it cancels then is that task.

        Of the task that drives nobody could tell whether `work` cancelled it or whoever waits for the run.
        """
        task = asyncio.current_task()
        if task is not self._task:
            told = 0 if task is None else task.cancelling()
            value = await work()
            if task is not None and task.cancelling() > told and not self.is_cancelled():
                # Of its own doing: what comes after it in this task is not to be cut off by that.
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
            return value
        found: list[tuple[Any, BaseException | None]] = []

        async def held() -> None:
            try:
                found.append((await work(), None))
            except GeneratorExit:
                raise
            except BaseException as error:
                # What passes through a task may end the event loop.
                found.append((None, error))

        # It is waited for right here, and a second cancellation reaches it too, which a group keeps to itself.
        own = asyncio.get_running_loop().create_task(held())
        try:
            await own
        except asyncio.CancelledError:
            if not found:
                raise
        value, error = found.pop()
        try:
            if error is not None:
                raise error
            return value
        finally:
            del error  # its traceback holds this frame

    async def own(self, function: Callable[..., Any], what: str, *given: Any) -> Any:
        """What a function of the application's gives. That it cancels or closes itself is an error of its own."""
        task, told = asyncio.current_task(), self.told_so_far()
        try:
            found = function(*given)
            value = await found if inspect.isawaitable(found) else found
        except asyncio.CancelledError as error:
            if self.is_cancelled():
                raise
            raise cancelled_itself(what, error) from error
        except GeneratorExit as error:
            if is_closed(task):
                raise
            raise RuntimeError(f"{what} raised GeneratorExit") from error
        except BaseException:
            await self.forgive(told)
            raise
        await self.forgive(told)
        return value


def is_closed(task: asyncio.Task[Any] | None) -> bool:
    """Whether a `GeneratorExit` in a coroutine of `task` closes it, so that it may not wait again, and was not raised
    in it: a task that is closed has not its turn.
    """
    try:
        return asyncio.current_task() is not task
    except RuntimeError:
        return True


def cancelled_itself(what: str, error: asyncio.CancelledError) -> RuntimeError:
    """What is raised where a function of the application's cancelled what ran it, and nobody else did."""
    fault = RuntimeError(f"{what} cancelled itself")
    fault.__cause__ = error
    return fault
