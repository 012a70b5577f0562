"""Bodies: the JSON, or the words, in the bytes that a server sent. Pure.

Neighbours: `treadle.models.transport`, by which the bytes come; `treadle.models.halves`, for half characters in them.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from treadle.kernel.messages import Json
from treadle.models.codec import DONE
from treadle.models.errors import ProtocolError
from treadle.models.halves import decoded

# How each line of an event stream begins that is not blank.
FIELD: Final = re.compile(r"\s*(?::|(?:data|event|id|retry)\s*(?::|$))")
# An event has begun here, and no keep-alive.
STARTED: Final = re.compile(rb"^(?:data|event):", re.MULTILINE)

# What no text has, and nearly all that is compressed.
CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def no_text(data: bytes, headers: Mapping[str, str]) -> str:
    """What `data` is where it is no text, as what is compressed in a way that nobody asked for; empty if it is text.

    A text may quote a control character of a prompt's, and is in UTF-8, which nothing that is compressed is.
    """
    if CONTROL.search(data) is None:
        return ""
    with suppress(UnicodeDecodeError):
        data.decode()
        return ""
    encoding = headers.get("content-encoding", "")
    return f"a body that is no text (content-encoding: {encoding or 'none'}); does a proxy stand between?"


def plain_words(stream: bytes) -> str:
    """What `stream` says where it is no event stream but plain text, as proxies answer; empty if it may be one."""
    lines = stream.decode("utf-8", "replace").splitlines()
    return "" if any(FIELD.match(line) for line in lines) else " ".join(" ".join(lines).split())


def starts_event(stream: bytes) -> bool:
    """Whether `stream` has the name or the data of an event, or the beginning of one: more than keep-alives."""
    return STARTED.search(stream) is not None


def event_json(data: bytes) -> Json:
    """The object in an event's data. Raises `ProtocolError` if there is none."""
    if data.startswith(b"[DONE]"):
        return DONE
    try:
        value = decoded(data)
    except (ValueError, RecursionError) as problem:
        raise ProtocolError(f"the server sent an event that is no JSON ({problem}): {shown_bytes(data)}") from None
    if not isinstance(value, dict):
        raise ProtocolError(f"the server sent an event that is no JSON object: {shown_bytes(data)}")
    return value


def no_object(data: bytes) -> str:
    """What `data` is, which holds no JSON object, and how it begins."""
    try:
        decoded(data)
    except (ValueError, RecursionError):
        return f"cut off or broken: {shown_bytes(data)}"
    return f"no object: {shown_bytes(data)}"


def several(data: bytes) -> list[Json]:
    """The objects in `data` where it is a list of more than one: the events of a stream, as Google sends it by default.

    Where a proxy has taken off what asks for events (`alt=sse`), the first alone would be taken for the whole reply.
    """
    if not data.startswith(b"["):
        return []
    try:
        value = decoded(data)
    except (ValueError, RecursionError):
        return []
    objects = isinstance(value, list) and len(value) > 1 and all(isinstance(one, dict) for one in value)
    return value if objects else []


def json_or_text(data: bytes) -> Json | str:
    """The JSON object in `data` (the first, of a list of objects), else its text."""
    try:
        value = decoded(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else data.decode("utf-8", "replace")


def shown_bytes(data: bytes) -> str:
    """How an error shows the beginning of `data`."""
    return repr(data[:200].decode("utf-8", "replace"))
