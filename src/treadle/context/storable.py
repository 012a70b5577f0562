"""Storable: events as a journal can keep them, whatever text and values came in from outside. Pure.

Text from outside may hold lone surrogates (a file name in Latin-1 out of `os.listdir`), which no journal, file or
provider takes, and an application may hand over a value that has no JSON form at all. An event is made storable once,
where it comes in, so that the record, the state and what a model is sent are the same.
"""

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.errors import Misuse
from treadle.kernel.events import (
    ApprovalRequested,
    Event,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    StepPrepared,
    ToolFinished,
    ToolStarted,
    decode_event,
    encode_event,
)

E = TypeVar("E", bound=Struct)

_ENCODER: Final = msgspec.json.Encoder()

DEEPEST: Final = 200
"""Levels that what is stored may be nested in. How many can be read depends on Python's version, and on how deep in
calls of its own the reader is: on 3.11 they are 1,000 in all. What one process has written any other must be able to
read."""

_FLAT: Final = 2 * DEEPEST
"""Bytes of JSON that cannot be nested deeper than that, as each level takes two signs at least."""

_TEXTS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))

_OUR_OWN: Final = frozenset(
    {
        ModelReplied,
        ModelFailed,
        ToolStarted,
        ApprovalRequested,
        NudgeGiven,
        RunPaused,
        RunResumed,
        RunForked,
        RunFinished,
    }
)
"""The events in which every value was made, or looked at, by us."""


def storable_text(text: str) -> str:
    """`text` with lone surrogates, which no file and no provider takes, replaced by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def storable_event(event: Event) -> Event:
    """`event` as a journal can keep it: itself, if it can be kept as it is.

    Every lone surrogate in any text in it becomes a question mark. What has no JSON form in a value of the
    application's (`app`, `output`, `settings.extra`) becomes words that name its type.

    Raises:
        Misuse: a value in it is of another type than it must be.
    """
    # To encode it takes less time than to look into it: 0.2 microseconds, and as much for each 1,000 characters.
    if not _has_json(event):
        event = _kept(event)
    if type(event) not in _OUR_OWN and _came_from_outside(event):
        try:
            decode_event(encode_event(event))
        except msgspec.ValidationError as error:
            raise Misuse(f"what was given does not fit, and could not be read from a journal again: {error}") from error
    return event


def _came_from_outside(event: Event) -> bool:
    """Whether there are values in `event` that the application gave as they are, so that their types are in doubt."""
    if type(event) is ToolFinished:
        return type(event.content) is not str
    if type(event) is StepPrepared:
        named = event.settings is not None or event.instructions is not None or event.tool_choice is not None
        return named or event.messages is not None or event.tools is not None
    return True


def storable(message: E) -> E:
    """`message` likewise."""
    return message if _has_json(message) else _kept(message)


def _has_json(value: Any) -> bool:
    """Whether `value` can be stored, and read again by anybody."""
    try:
        data = _ENCODER.encode(value)
    except Exception:
        return False
    return len(data) <= _FLAT or data.count(b"{") + data.count(b"[") <= DEEPEST or _depth(data) <= DEEPEST


def _depth(data: bytes) -> int:
    """Levels that JSON is nested in."""
    deepest = depth = 0
    for sign in _TEXTS.sub(b"", data).translate(None, _NO_BRACKETS):
        if sign in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def _kept(whole: E) -> E:
    """`whole`, an event or a part of one, with each value in it replaced that has no JSON form."""
    values = ((name, getattr(whole, name)) for name in whole.__struct_fields__)
    return replace(whole, **{name: _in_place_of(value) for name, value in values if not _has_json(value)})


def _in_place_of(value: Any) -> Any:
    try:
        if isinstance(value, Struct):
            found: Any = _kept(value)
        elif isinstance(value, tuple):
            found = tuple([_in_place_of(item) for item in value])
        else:
            found = _with_json(value)
    except Exception:
        # It holds itself, is nested too deeply, or raises when it is looked at.
        found = None
    if found is not None and _has_json(found):
        return found
    return {"unstorable": _described(value)} if isinstance(value, dict) else _described(value)


def _with_json(value: Any) -> Any:
    """`value` made of JSON's own types, as far as something in it does not fit."""
    if isinstance(value, str):
        return storable_text(str.__str__(value))
    if isinstance(value, Mapping):
        return each_by_name((_key(key), _with_json(item)) for key, item in value.items())
    if isinstance(value, (list, tuple, Set)):
        return [_with_json(item) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # Subclasses, such as NumPy's, have no JSON form.
        value = int(value) if isinstance(value, int) else float(value)
    if _has_json(value):
        return value
    try:
        plain = msgspec.to_builtins(value)
    except Exception:
        return _described(value)
    return _with_json(plain) if isinstance(plain, (str, dict, list)) else _described(value)


def each_by_name(items: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Values by their names, as a dict: of two whose names were made one the later has a question mark after it."""
    out: dict[Any, Any] = {}
    for name, item in items:
        while name in out:
            name = f"{name}?"
        out[name] = item
    return out


def _key(key: Any) -> Any:
    if isinstance(key, str):
        return storable_text(str.__str__(key))
    return key if _has_json({key: None}) else _described(key)


def _described(value: object) -> str:
    """Words in place of `value`. They do not show it: it may be long, secret, or raise when it is shown."""
    kind = type(value)
    return storable_text(f"({kind.__module__}.{kind.__qualname__}, which has no JSON form)".replace("builtins.", "", 1))
