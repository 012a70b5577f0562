"""A context of its own: context variables that a coroutine sets end with it, though it has no task of its own."""

import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def in_own_context(work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """What `work` gives, which sees the context of whoever awaits it, and changes a copy.

    Raises:
        BaseException: what `work` raises.
    """
    run = copy_context().run
    step: Callable[[], Any] = partial(work.send, None)
    while True:
        try:
            waits_for = run(step)
        except StopIteration as end:
            given: T = end.value
            return given
        try:
            step = partial(work.send, (yield waits_for))
        except GeneratorExit:
            run(work.close)
            raise
        except BaseException as error:
            step = partial(work.throw, error)
