"""Partial arguments: what can be read of a tool call's arguments while they are still arriving."""

from typing import Any

from msgspec import Struct

from treadle.models.port import ToolCallCompleted, ToolCallDelta, ToolCallStarted

GROWTH = 1.05
"""The text is read again when it has grown by a twentieth, so that long arguments are not read once for each piece."""


class PartialArguments(Struct, frozen=True):
    """The arguments of call `id` as far as they have arrived; a text at their end may be cut off."""

    id: str
    name: str
    arguments: Any


class Partial:
    """Collects the pieces of the calls of a reply."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, list[str], int, int]] = {}

    def hear(self, event: ToolCallStarted | ToolCallDelta | ToolCallCompleted) -> PartialArguments | None:
        """Takes a piece; what can be read by now, if there is more to read than before."""
        if isinstance(event, ToolCallStarted):
            self._calls[event.id] = (event.name, [], 0, 0)
            return None
        if event.id not in self._calls:
            return None
        name, pieces, length, read = self._calls[event.id]
        if isinstance(event, ToolCallDelta):
            pieces.append(event.json)
            length += len(event.json)
            if length < read * GROWTH:
                self._calls[event.id] = (name, pieces, length, read)
                return None
            self._calls[event.id] = (name, pieces, length, length)
        else:
            del self._calls[event.id]
        return _read(event.id, name, "".join(pieces))


def _read(call_id: str, name: str, text: str) -> PartialArguments | None:
    from jiter import from_json

    try:
        value = from_json(text.encode(), partial_mode="trailing-strings")
    except ValueError:
        # Not JSON, or nothing of it yet: the tool's own check says what is wrong once all of it is there.
        return None
    return PartialArguments(call_id, name, value)
