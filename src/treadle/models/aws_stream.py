"""AWS event streams: the binary frames that Bedrock streams in, taken apart into the data of their events.

Pure; a frame may be cut at any byte. The format is that of the Smithy specification, "Amazon Event Stream": lengths of
the frame and of its headers, a checksum of these two, headers, payload, a checksum of all. Neighbours:
`treadle.models.sse`, the same for server-sent events; `treadle.models.client_transport`, which uses it.
"""

import struct
import zlib
from base64 import b64decode
from typing import Any, Final

import msgspec

from treadle.models.errors import ProtocolError

PRELUDE: Final = struct.Struct(">III")
CHECKSUM: Final = 4
# By the number of their type: the bytes that a header's value takes; None for two bytes of length and then as many.
VALUES: Final[tuple[int | None, ...]] = (0, 0, 1, 2, 4, 8, None, None, 8, 16)


class AwsEventParser:
    """Parses one stream; feed it what comes, then close it.

    Args:
        limit: bytes that one frame may have.
    """

    __slots__ = ("_limit", "_rest")

    def __init__(self, limit: int = 64_000_000) -> None:
        self._rest = b""
        self._limit = limit

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` completes; an exception of the service is an event of type `error`.

        Raises:
            ProtocolError: a frame is too long, its checksum is wrong, or it does not hold what it should.
        """
        self._rest += chunk
        events = []
        while (frame := self._frame()) is not None:
            try:
                data = _data(*frame)
            except (ValueError, LookupError, struct.error) as problem:
                raise ProtocolError(f"the server sent a frame that cannot be read: {problem}") from problem
            if data is not None:
                events.append(data)
        return events

    def close(self) -> None:
        """Raises `ProtocolError` if the stream ended inside a frame."""
        if self._rest:
            raise ProtocolError("the stream ended in the middle of a frame")

    def _frame(self) -> tuple[bytes, bytes] | None:
        """The headers and the payload of the first frame that is whole."""
        if len(self._rest) < PRELUDE.size:
            return None
        length, headers, checksum = PRELUDE.unpack_from(self._rest)
        is_frame = zlib.crc32(self._rest[: PRELUDE.size - CHECKSUM]) == checksum
        if not is_frame or not PRELUDE.size + headers + CHECKSUM <= length <= self._limit:
            raise ProtocolError(f"the server sent what is no frame of an event stream: {self._rest[:40]!r}")
        if len(self._rest) < length:
            return None
        frame, self._rest = self._rest[:length], self._rest[length:]
        if zlib.crc32(frame[:-CHECKSUM]) != int.from_bytes(frame[-CHECKSUM:]):
            raise ProtocolError("the server sent a frame whose checksum is wrong")
        begin = PRELUDE.size + headers
        return frame[PRELUDE.size : begin], frame[begin:-CHECKSUM]


def _data(head: bytes, payload: bytes) -> bytes | None:
    """The data that a frame carries; None if it carries none that is known."""
    headers = _headers(head)
    kind = headers.get(":message-type")
    if kind == "event":
        return b64decode(_object(payload)["bytes"]) if headers.get(":event-type") == "chunk" else None
    body = _object(payload)
    code = headers.get(":exception-type") or headers.get(":error-code") or str(kind)
    words = body.get("message") or headers.get(":error-message") or payload.decode("utf-8", "replace")
    return msgspec.json.encode({"type": "error", "error": {"type": code, "message": words}})


def _object(payload: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(payload)
    except msgspec.DecodeError:
        return {}
    return body if isinstance(body, dict) else {}


def _headers(data: bytes) -> dict[str, str]:
    """The headers whose values are text, by name."""
    headers, place = {}, 0
    while place < len(data):
        begin = place + 1 + data[place]
        name, size = data[place + 1 : begin].decode(), VALUES[data[begin]]
        place = begin + 1
        if size is None:
            (size,) = struct.unpack_from(">H", data, place)
            place += 2
            headers[name] = data[place : place + size].decode("utf-8", "replace")
        place += size
    return headers
