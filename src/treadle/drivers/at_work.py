"""At work: the tasks in which a run does something, so that none of them waits for the run to come to rest."""

import asyncio
from typing import Any
from weakref import WeakSet


class AtWork:
    """The tasks in which a run, and those that work for it, do something."""

    def __init__(self) -> None:
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()

    def here(self) -> None:
        """This task is one."""
        if (task := asyncio.current_task()) is not None:
            self._tasks.add(task)

    def is_here(self) -> bool:
        """Whether this task is one."""
        return asyncio.current_task() in self._tasks
