"""A run's line in the index of a journal's database, and the events in its rows, in whatever database that is."""

from math import inf

import msgspec
from msgspec import Struct

from treadle.journal.chain import seal
from treadle.journal.info import RunInfo, unknown
from treadle.kernel.events import FORMAT, Event, RunStarted, decode_event

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
