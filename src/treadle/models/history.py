"""History: a run's messages as a provider or a library wants them, kept from one step to the next.

Each step's messages usually begin with the step before's, and only what follows is turned into the other form. That
they do is told in constant time where they are a `Log` that has grown, else by their being the same objects. Pure but
for what is kept. Neighbours: `treadle.models.codec`, which keeps JSON with it; `treadle.models.langchain`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import is_
from threading import Lock
from typing import Any, Generic, TypeVar

from treadle.kernel.log import Log
from treadle.kernel.messages import Message, SystemMessage

Made = TypeVar("Made", bytearray, list[Any])


class History(Generic[Made]):
    """What the messages of runs became.

    Messages that become one thing, or that must be looked at together, form a group: `joins(previous, message)` says
    whether `message` belongs to the group of `previous`. The last group may still grow, so it alone is made again in
    the next step. System messages have a place of their own in some requests: they are listed, end no group, and
    belong to the one that they stand in.

    What is kept belongs to a key (the run and the model), holds the messages strongly (so that an identity cannot be
    reused), and is bounded: beyond `limit`, the keys used longest ago are forgotten, but never the last. It may be used
    from several threads: a trail is taken out while it is worked on.

    Args:
        empty: makes what is to be filled: `bytearray` or `list`.
        put: puts what a group of messages becomes at the end of what is there.
        joins: whether a message belongs to the group of the one before it; by default never.
        followed: what is put of a group that another follows, which the last one is not; by default all of it.
        weigh: how much of `limit` takes what is there from an index on; by default its length.
        limit: the most to keep, in the unit of `weigh`.
    """

    def __init__(
        self,
        empty: Callable[[], Made],
        put: Callable[[Sequence[Message], Made], None],
        joins: Callable[[Message, Message], bool] = lambda previous, message: False,
        weigh: Callable[[Made, int], int] = lambda made, start: len(made) - start,
        limit: int = 32_000_000,
        followed: Callable[[Sequence[Message]], Sequence[Message]] = lambda group: group,
    ) -> None:
        self._empty: Callable[[], Made] = empty
        self._put: Callable[[Sequence[Message], Made], None] = put
        self._joins = joins
        self._followed = followed
        self._weigh: Callable[[Made, int], int] = weigh
        self._limit = limit
        self._trails: dict[Any, Trail[Made]] = {}
        self._size = 0
        self._lock = Lock()

    @contextmanager
    def follow(self, key: Any, messages: Sequence[Message]) -> "Iterator[Trail[Made]]":
        """What `messages` became. It is the caller's for the length of the block, and must not be changed."""
        trail = self._take(key)
        count = trail.whole(messages)
        place = trail.places[count] if trail.places else 0
        trail.size -= self._weigh(trail.made, place)
        trail.cut(count)
        self._extend(trail, messages)
        trail.size += self._weigh(trail.made, place)
        yield trail
        self._keep(key, trail)

    def _extend(self, trail: "Trail[Made]", messages: Sequence[Message]) -> None:
        joins, put = self._joins, self._put
        made, starts, places = trail.made, trail.starts, trail.places
        base = len(trail.messages)
        new = list(messages.since(base) if isinstance(messages, Log) else islice(messages, base, None))
        trail.messages += new
        start = 0
        spoken: Message | None = None
        for index, message in enumerate(new):
            if type(message) is SystemMessage:
                trail.system.append(message.content)
                continue
            if spoken is not None and not joins(spoken, message):
                starts.append(base + start)
                places.append(len(made))
                put(self._followed(new[start:index]), made)
                start = index
            spoken = message
        if new:
            starts.append(base + start)
            places.append(len(made))
            put(new[start:], made)

    def _take(self, key: Any) -> "Trail[Made]":
        with self._lock:
            trail = self._trails.pop(key, None)
            if trail is None:
                return Trail(self._empty())
            self._size -= trail.size
            return trail

    def _keep(self, key: Any, trail: "Trail[Made]") -> None:
        with self._lock:
            replaced = self._trails.pop(key, None)
            self._trails[key] = trail
            self._size += trail.size - (replaced.size if replaced else 0)
            while self._size > self._limit and len(self._trails) > 1:
                self._size -= self._trails.pop(next(iter(self._trails))).size


class Trail(Generic[Made]):
    """The messages of one run and what they became, group by group.

    Attributes:
        messages: the messages.
        made: what they became, all in one.
        starts: of each group, the index of its first message.
        places: of each group, the index in `made` at which it begins.
        system: the contents of the system messages among them.
        size: what `made` weighs.
    """

    __slots__ = ("_lineage", "made", "messages", "places", "size", "starts", "system")

    def __init__(self, made: Made) -> None:
        self.messages: list[Message] = []
        self.made: Made = made
        self.system: list[str] = []
        self.size = 0
        self._lineage: object = None
        self.starts: list[int] = []
        self.places: list[int] = []

    def whole(self, messages: Sequence[Message]) -> int:
        """How many groups are the same in `messages`: what ended a group must still be there."""
        common, count = self._common(messages), len(self.starts)
        while count and self.starts[count - 1] >= common:
            count -= 1
        return max(count - 1, 0)

    def cut(self, count: int) -> None:
        """Forgets all groups but the first `count`."""
        if count == len(self.starts):
            return
        start, place = self.starts[count], self.places[count]
        if forgotten := sum(type(message) is SystemMessage for message in self.messages[start:]):
            del self.system[-forgotten:]
        del self.messages[start:], self.made[place:], self.starts[count:], self.places[count:]

    def backwards(self) -> Iterator[tuple[int, int]]:
        """Where in `made` each group stands, as start and end, the last group first."""
        end = len(self.made)
        for place in reversed(self.places):
            yield place, end
            end = place

    def _common(self, messages: Sequence[Message]) -> int:
        """How many messages at the start of both are the same objects."""
        lineage = messages.lineage if isinstance(messages, Log) else None
        known, self._lineage = lineage is not None and lineage is self._lineage, lineage
        mine = self.messages
        if known or (len(mine) <= len(messages) and all(map(is_, mine, messages))):
            return min(len(mine), len(messages))
        return next((i for i, same in enumerate(map(is_, mine, messages)) if not same), min(len(mine), len(messages)))
