"""SSE: server-sent events out of bytes that were cut anywhere.

Pure, and of the event stream format (https://html.spec.whatwg.org/multipage/server-sent-events.html) only what model
providers use: the data. Names, ids and retry times of events are left out, for every provider repeats in the data what
matters. Bytes stay bytes, so that a character cut in two needs no care. Neighbour: `treadle.models.transport`.
"""

from typing import Final

from treadle.models.errors import ProtocolError

MOST_BARE: Final = 1000
"""Lines of JSON that is no event; what is longer is no error, and is left out."""


class EventParser:
    """Collects the data of events, a chunk of bytes at a time.

    Lines may end in LF, CRLF or CR; comments (keep-alives) are left out; several data lines of one event are joined
    with LF; the last event counts even if the stream ends without the blank line that should close it. Google writes an
    error into a stream as JSON that is no event, on lines of its own: that counts as the data of one.

    Args:
        limit: the most bytes that one event may have.
    """

    __slots__ = ("_bare", "_carriage", "_data", "_limit", "_pieces", "_size", "_started")

    def __init__(self, limit: int = 64_000_000) -> None:
        self._pieces: list[bytes] = []
        self._data: list[bytes] = []
        self._bare: list[bytes] = []
        self._size = 0
        self._limit = limit
        self._carriage = False
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` completes. Raises `ProtocolError` for an event that is too long."""
        if not chunk:
            return []
        if self._carriage:
            # The CR was taken for a line's end; an LF right after it belongs to it.
            self._carriage = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._carriage = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        events: list[bytes] = []
        if lines:
            if self._pieces:
                lines[0] = b"".join(self._pieces) + lines[0]
                self._pieces.clear()
            self._size = 0
            for line in lines:
                self._line(line, events)
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > self._limit or sum(map(len, self._data or self._bare)) > self._limit:
            raise ProtocolError(f"the server sent an event of more than {self._limit:,} bytes")
        return events

    def close(self) -> list[bytes]:
        """The data of an event that the stream's end completes."""
        events: list[bytes] = []
        if self._pieces:
            self._line(b"".join(self._pieces), events)
            self._pieces.clear()
        self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[bytes]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and self._data:
            events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
            self._data.clear()
        elif line == b"data":
            self._data.append(b"")
        elif self._bare or (line.startswith(b"{") and not self._data):
            self._bare.append(line)
            if line.startswith(b"}") or (len(self._bare) == 1 and line.endswith(b"}")):
                events.append(b"\n".join(self._bare))
                self._bare.clear()
            elif len(self._bare) > MOST_BARE:
                self._bare.clear()
