"""Log: an immutable sequence that grows at its end in constant time.

A run's state is a value, and a new one is made for every event; copying the whole history each time would make a step
dearer the longer the run has been going. A `Log` is a length and a list that it shares with its predecessors: appending
to the newest one extends the shared list in place, appending to an older one copies first. No log is seen to change.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

T = TypeVar("T")


class Unchanging(Sequence[T]):
    """A sequence that is never seen to change, equal to a list or tuple of the same items."""

    __slots__ = ()

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, (type(self), list, tuple)):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"


class Log(Unchanging[T]):
    """An immutable sequence with an `append` that returns a new one.

    Attributes:
        lineage: the same (`is`) for logs of which one is the beginning of the other, so that whoever keeps something
            about a log's items can tell without comparing them that a later log has them. It holds none of them.
    """

    __slots__ = ("_items", "_length", "lineage")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: list[T] = list(items)
        self._length = len(self._items)
        self.lineage = object()

    def append(self, *items: T) -> "Log[T]":
        """The same items and `items` after them."""
        mine, length, log = self._items, self._length, Log.__new__(Log)
        log.lineage = self.lineage
        if len(mine) != length:
            mine, log.lineage = mine[:length], object()
        mine.extend(items)
        log._items, log._length = mine, len(mine)
        return log

    def since(self, start: int) -> Iterator[T]:
        """The items from index `start` on, without looking at those before it."""
        return iter(self._items[start : self._length])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            return self._items[start:stop:step] if step > 0 else [self._items[i] for i in range(start, stop, step)]
        length = self._length
        if -length <= index < length:
            return self._items[index if index >= 0 else length + index]
        raise IndexError(f"index {index} is outside a log of {length} items")
