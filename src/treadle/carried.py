"""Errors on their way to another process, or into a copy: as they were, though `args` is not what made them.

Python makes an exception that was pickled anew by calling its type with `args`. Of one that is made of something else
than its message that raises, where it is read: a `ProcessPoolExecutor` breaks of it, and all that its other processes
found is lost.
"""

from collections.abc import Callable
from typing import Any, Never

Made = tuple[Callable[..., BaseException], tuple[type[BaseException], tuple[Any, ...], dict[str, Any]]]
"""What `__reduce__` returns."""


def as_it_was(error: BaseException) -> Made:
    """For `__reduce__`: the error is made anew from its message and its attributes, and not by its `__init__`."""
    return _again, (type(error), error.args, vars(error))


def stays_here(it: object, instead: str) -> Never:
    """For `__reduce__` of what has locks, threads or a file that is open, of which a copy would be none.

    Raises:
        TypeError: always, as of all that cannot be pickled.
    """
    raise TypeError(f"a {type(it).__name__} can be neither pickled nor copied: {instead}")


def _again(kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error
