"""Pieces: the arguments of a call that Vertex streams value by value, put together by the paths that name them.

Pure. Only where `streamFunctionCallArguments` was asked for. The format is that of
https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/Content#PartialArg; a path is a JSON Path
(RFC 9535) that names one place, such as `$.stops[0].city` or `$['a name']`. Neighbour: `treadle.models.google_stream`.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from treadle.kernel.messages import Json

STEP: Final = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
VALUES: Final = ("stringValue", "numberValue", "boolValue", "nullValue")
SNAKE: Final = ("string_value", "number_value", "bool_value", "null_value")
LONGEST_LIST: Final = 100_000


class Pieces:
    """The arguments of one call under way."""

    __slots__ = ("_arguments", "_texts")

    def __init__(self) -> None:
        self._arguments: Json = {}
        self._texts: dict[str, list[str]] = {}

    def take(self, arguments: Any, pieces: Sequence[Json]) -> None:
        """Takes in arguments that came whole, and pieces. Raises `ValueError` for what is neither."""
        if arguments is not None:
            if not isinstance(arguments, dict):
                raise ValueError("the arguments of a call are no object")
            self._arguments |= arguments
        for piece in pieces:
            self._take(piece)

    def whole(self) -> Json:
        """The arguments, all texts joined."""
        for path, texts in self._texts.items():
            _put(self._arguments, _steps(path), "".join(texts))
        self._texts.clear()
        return self._arguments

    def _take(self, piece: Json) -> None:
        path = piece.get("jsonPath", piece.get("json_path"))
        if not isinstance(path, str):
            raise ValueError("a piece of arguments has no path")
        steps = _steps(path)
        for name, other in zip(VALUES, SNAKE, strict=True):
            if name not in piece and other not in piece:
                continue
            value = piece.get(name, piece.get(other))
            if name == "stringValue":
                self._texts.setdefault(path, []).append(msgspec.convert(value, str))
                value = ""
            _put(self._arguments, steps, None if name == "nullValue" else value)


def _steps(path: str) -> list[str | int]:
    """The names and indices of a path. Raises `ValueError` if it does not name one place below the root."""
    place, steps = 1, list[str | int]()
    while path.startswith("$") and place < len(path) and (found := STEP.match(path, place)):
        name, index, *quoted = found.groups()
        if index is not None:
            steps.append(int(index))
        else:
            text = next((one for one in quoted if one is not None), None)
            steps.append(name if text is None else re.sub(r"\\(.)", r"\1", text))
        place = found.end()
    if not steps or place != len(path):
        raise ValueError(f"{path[:100]!r} names no place in the arguments of a call")
    return steps


def _put(root: Json, steps: Sequence[str | int], value: object) -> None:
    """Puts `value` where `steps` lead, and what must stand on the way there."""
    holder: Any = root
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int) != isinstance(holder, list):
            raise ValueError("a path goes through what is no object or list")
        if isinstance(step, int):
            if step > min(len(holder), LONGEST_LIST):
                raise ValueError("a path leaves items of a list out")
            if step == len(holder):
                holder.append(None)
            present = holder[step]
        else:
            present = holder.get(step)
        if following is None:
            holder[step] = value
        elif present is None:
            holder[step] = [] if isinstance(following, int) else {}
        holder = holder[step]
