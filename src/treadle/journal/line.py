"""A run's line in the index of a journal's database, and the events in its rows, in whatever database that is."""

from collections.abc import Iterable
from math import inf
from typing import Any

import msgspec
from msgspec import Struct

from treadle.journal.chain import seal
from treadle.journal.info import RunInfo, unknown
from treadle.kernel.events import FORMAT, Event, RunStarted, decode_event, encode_event

_lines = msgspec.json.Decoder(RunInfo)


class Line(Struct, frozen=True, gc=False):
    """A run's line in the index.

    Attributes:
        info: the line. Where it is not `sealed`, only its id and start, and the number of events if that can be read.
        head: the hash of the run's last event.
        sealed: whether it is as it was written.
    """

    info: RunInfo
    head: bytes
    sealed: bool


def line_of(run_id: str, at: object, head: bytes, found: bytes, text: bytes) -> Line:
    """The line that stands in the index as `text`, held against its seal.

    Args:
        run_id: the run that its row names.
        at: the start that its row names.
        head: the hash of the run's last event, as its row has it.
        found: the seal.
        text: the line itself.
    """
    started_at = at if isinstance(at, float) else inf
    try:
        info = _lines.decode(text)
    except (msgspec.MsgspecError, ValueError):
        return Line(unknown(run_id, started_at), head, sealed=False)
    if (info.run_id, info.started_at, seal(head, text)) == (run_id, at, found):
        return Line(info, head, sealed=True)
    return Line(msgspec.structs.replace(unknown(run_id, started_at), events=info.events), head, sealed=False)


def sealed(info: RunInfo, head: bytes) -> tuple[bytes, bytes]:
    """The seal and the text of a line, as they are stored."""
    text = msgspec.json.encode(info)
    return seal(head, text), text


def decoded(body: bytes) -> Event:
    """The event of a row.

    Raises:
        ValueError: it is none, or one of a later form; says why.
    """
    try:
        event = decode_event(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ValueError(f"{error}; it was written by a later treadle (update this one), or altered") from error
    if isinstance(event, RunStarted) and event.format > FORMAT:
        raise ValueError(f"it has form {event.format}, this treadle knows {FORMAT}; update treadle")
    return event


def unknown_field(body: bytes, event: Event) -> str:
    """A field of an event as it was written that `event`, which was made of it, does not have; empty if there is none.

    Who reads a run passes such a field over, as it stays where it stands. Who writes the event anew would lose it.
    """
    if encode_event(event) == body:
        return ""
    try:
        return _unknown(msgspec.json.decode(body), event)
    except RecursionError:
        # So deep is only data of the application's, which is kept as it is.
        return ""


def _unknown(written: Any, read: Any) -> str:
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(read, Struct) and isinstance(written, dict):
        names = dict(zip(read.__struct_encode_fields__, read.__struct_fields__, strict=True))
        more: set[str] = written.keys() - names.keys() - {read.__struct_config__.tag_field}
        if more:
            return min(more)
        pairs = ((value, getattr(read, names[name])) for name, value in written.items() if name in names)
    elif isinstance(read, dict) and isinstance(written, dict):
        pairs = ((value, read.get(name)) for name, value in written.items())
    elif isinstance(read, tuple | list) and isinstance(written, list):
        pairs = zip(written, read, strict=False)
    return next((found for pair in pairs if (found := _unknown(*pair))), "")
