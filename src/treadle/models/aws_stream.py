"""AWS event streams: the binary frames that Bedrock streams in, taken apart into the data of their events.

Pure; a frame may be cut at any byte. The format is that of the Smithy specification, "Amazon Event Stream": lengths of
the frame and of its headers, a checksum of these two, headers, payload, a checksum of all. Neighbours:
`treadle.models.sse`, the same for server-sent events; `treadle.models.transport`, which uses both.
"""

import struct
from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

import msgspec

from treadle.models.errors import ProtocolError

AWS_STREAM: Final = "application/vnd.amazon.eventstream"
"""The content type of such a stream."""

PRELUDE: Final = struct.Struct(">III")
LENGTH: Final = struct.Struct(">I")
CHECKSUM: Final = LENGTH.size
# By the number of their type: the bytes that a header's value takes; None for two bytes of length and then as many.
VALUES: Final[tuple[int | None, ...]] = (0, 0, 1, 2, 4, 8, None, None, 8, 16)
# Headers of this many bytes at most are kept read.
SHORT: Final = 256


class AwsEventParser:
    """Parses one stream; feed it what comes, then close it.

    Args:
        limit: bytes that one frame may have.
    """

    __slots__ = ("_limit", "_rest", "_wanted")

    def __init__(self, limit: int = 64_000_000) -> None:
        self._rest = bytearray()
        self._limit = limit
        self._wanted = PRELUDE.size

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of the events that `chunk` completes, as JSON.

        What Bedrock's InvokeModel streams is the model's own event in a chunk. Any other event is an object with its
        name as `type`, and its fields under that name; an exception of the service is an event of type `error`.

        Raises:
            ProtocolError: a frame is too long, its checksum is wrong, or it does not hold what it should.
        """
        rest = self._rest
        rest += chunk
        if len(rest) < self._wanted:
            return
        # One copy, that everything is cut out of: what is cut out of a bytearray is copied twice.
        data, start, end = bytes(rest), 0, 0
        try:
            while (end := self._end_of_frame(data, start)) > start:
                frame, start = start, end
                if (crc32(data[frame : end - CHECKSUM]),) != LENGTH.unpack_from(data, end - CHECKSUM):
                    raise ProtocolError("the server sent a frame whose checksum is wrong")
                begin = frame + PRELUDE.size
                headed = begin + LENGTH.unpack_from(data, frame + LENGTH.size)[0]
                opening = _opening(data[begin:headed]) if headed - begin <= SHORT else None
                if opening is not None and headed < end - CHECKSUM:
                    yield b"%b%b}" % (opening, data[headed : end - CHECKSUM])
                else:
                    yield from _read(data[begin:headed], data[headed : end - CHECKSUM])
        finally:
            # A frame that cannot be read is left behind with those that were: the next begins where it ends.
            del rest[:start]

    def close(self) -> list[bytes]:
        """No further events. Raises `ProtocolError` if the stream ended inside a frame."""
        if self._rest:
            raise ProtocolError("the stream ended in the middle of a frame")
        return []

    def _end_of_frame(self, data: bytes, start: int) -> int:
        """Where the frame ends that begins at `start`; `start` if it is not whole yet."""
        size = len(data) - start
        if size < PRELUDE.size:
            self._wanted = PRELUDE.size
            return start
        length, headers, checksum = PRELUDE.unpack_from(data, start)
        is_frame = crc32(data[start : start + PRELUDE.size - CHECKSUM]) == checksum
        if not is_frame or not PRELUDE.size + headers + CHECKSUM <= length <= self._limit:
            raise ProtocolError(f"the server sent what is no frame of an event stream: {data[start : start + 40]!r}")
        if size < length:
            self._wanted = length
            return start
        end: int = start + length
        return end


def _read(head: bytes, payload: bytes) -> list[bytes]:
    """The data of the event in a frame, by its headers and its payload; none if it carries none that is known.

    Raises:
        ProtocolError: it does not hold what it should.
    """
    try:
        headers = _headers(head)
        if headers.get(":message-type") != "event":
            return [_exception(headers, payload)]
        name = headers.get(":event-type", "")
        if name == "chunk":
            return [b64decode(_object(payload)["bytes"])]
    except (ValueError, LookupError, struct.error) as problem:
        raise ProtocolError(f"the server sent a frame that cannot be read: {problem}") from None
    opening = _opening(head)
    return [] if opening is None else [b"%b%b}" % (opening, payload or b"{}")]


def _exception(headers: Mapping[str, str], payload: bytes) -> bytes:
    """An exception of the service as an event of type `error`."""
    body = _object(payload)
    code = headers.get(":exception-type") or headers.get(":error-code") or headers.get(":message-type")
    words = body.get("message") or headers.get(":error-message") or payload.decode("utf-8", "replace")
    return msgspec.json.encode({"type": "error", "error": {**body, "type": str(code), "message": words}})


# A stream has a dozen different headers, and one with each event.
@lru_cache(maxsize=64)
def _opening(head: bytes) -> bytes | None:
    """What stands before the payload of an event that is told by its name; None for any other."""
    try:
        headers = _headers(head)
    except (ValueError, LookupError, struct.error):
        return None
    name = headers.get(":event-type", "")
    # The name goes into the JSON as it is.
    if headers.get(":message-type") != "event" or name == "chunk" or not _plain(name):
        return None
    return f'{{"type":"{name}","{name}":'.encode()


def _plain(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name not in ("type", "error")


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
