"""Partial arguments: what can be read of a tool call's arguments while they are still arriving."""

import re
from typing import Any, Final

from msgspec import Struct

from treadle.kernel.calls import parsed
from treadle.models.port import ToolCallCompleted, ToolCallDelta, ToolCallStarted

GROWTH = 1.05
"""The text is read again when it has grown by a twentieth, so that long arguments are not read once for each piece."""


TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
BRACKETS: Final = re.compile(r"[\[\]{}]")
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$")


class PartialArguments(Struct, frozen=True):
    """The arguments of call `id` as far as they have arrived.

    Attributes:
        id: the call's id.
        name: the tool's name.
        arguments: what can be read of them; a number that no float holds is a `Decimal`.
        cut: the keys and places that lead to the value at their end, where that may go on: a text, or a number, of
            which `12` may be the beginning of `1200`. None where nothing that is shown is cut off.
    """

    id: str
    name: str
    arguments: Any
    cut: tuple[str | int, ...] | None = None


class Partial:
    """Collects the pieces of the calls of replies, of a run and of those below it."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str], tuple[str, list[str], int, int]] = {}

    def hear(
        self, event: ToolCallStarted | ToolCallDelta | ToolCallCompleted, run_id: str = ""
    ) -> PartialArguments | None:
        """Takes a piece; what can be read by now, if there is more to read than before.

        Args:
            event: the piece.
            run_id: whose call it is: runs at work beside each other may have calls of one id.
        """
        key = run_id, event.id
        if isinstance(event, ToolCallStarted):
            self._calls[key] = (event.name, [], 0, 0)
            return None
        if key not in self._calls:
            return None
        name, pieces, length, read = self._calls[key]
        if isinstance(event, ToolCallDelta):
            pieces.append(event.json)
            length += len(event.json)
            if length < read * GROWTH:
                self._calls[key] = (name, pieces, length, read)
                return None
            self._calls[key] = (name, pieces, length, length)
        else:
            del self._calls[key]
        return _read(event.id, name, "".join(pieces))


def _read(call_id: str, name: str, text: str) -> PartialArguments | None:
    from jiter import from_json

    try:
        value = _kept(from_json(text.encode(), partial_mode="trailing-strings", float_mode="lossless-float"))
    except ValueError:
        # Not JSON, or nothing of it yet: the tool's own check says what is wrong once all of it is there.
        return None
    return PartialArguments(call_id, name, value, _cut(text, value))


def _kept(value: Any) -> Any:
    """`value` with its numbers as they are in a call that has arrived: a `Decimal` where a float would be another."""
    if isinstance(value, dict):
        return {name: _kept(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_kept(one) for one in value]
    return value if value is None or isinstance(value, str | bool | int) else parsed(str(value))


def _cut(text: str, value: Any) -> tuple[str | int, ...] | None:
    """The way to the value at the end of `value`, if the JSON `text` ends within it and it is shown."""
    bare = TEXT.sub("", text)
    if '"' in bare:
        before = bare[: bare.index('"')].rstrip()
    elif number := NUMBER.search(bare):
        before = bare[: number.start()].rstrip()
    else:
        return None
    open_ones: list[str] = []
    for sign in BRACKETS.findall(before):
        if sign in "{[":
            open_ones.append(sign)
        elif open_ones:
            open_ones.pop()
    if open_ones and open_ones[-1] == "{" and not before.endswith(":"):
        # It is a name, of which nothing is shown yet.
        return None
    way: list[str | int] = []
    for _ in open_ones:
        if not isinstance(value, (dict, list)) or not value:
            return None
        key: Any = next(reversed(value)) if isinstance(value, dict) else len(value) - 1
        way.append(key)
        value = value[key]
    return tuple(way)
