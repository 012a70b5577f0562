"""Encodings: which one the beginning of a file of text looks like, and how it is opened in one."""

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

_HEAD = 1 << 20
# One sign in so many is a delimiter, a digit or a line break at least, of which UTF-16 has a byte that is zero.
_PLAIN = 10


def beginning(file: Path) -> bytes:
    """Returns the first bytes of a file, unpacked: all that it has up to `_HEAD`."""
    with in_bytes(file) as opened:
        return opened.read(_HEAD)


def is_whole(head: bytes) -> bool:
    """Returns whether nothing follows the beginning of a file."""
    return len(head) < _HEAD


def looks_like(head: bytes) -> str:
    """Returns the encoding that the beginning of a file looks like: utf-8, cp1252 or UTF-16."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = (head[1::2].count(0), head[::2].count(0))
    # A file that a machine was writing when it went down ends in zeros: as many stand on either side.
    if max(zeros) * 2 * _PLAIN > len(head) and max(zeros) > 2 * min(zeros):
        return "utf-16-le" if zeros[0] > zeros[1] else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def opener(file: Path) -> Callable[[str], Any]:
    """What opens a text file, gzipped or not, in a given encoding."""
    return lambda encoding: io.TextIOWrapper(in_bytes(file), encoding=encoding, newline="")


def in_bytes(file: Path) -> io.BufferedIOBase:
    """Opens a file, gzipped or not, to read its bytes; that it cannot be unpacked is an OSError as others are."""
    return _Packed(file) if file.suffix == ".gz" else file.open("rb")


class _Packed(gzip.GzipFile):
    """A packed file, of which a part may be gone, as of one that is still being written or was damaged on its way."""

    def read(self, size: int | None = -1) -> bytes:
        """Returns so many bytes, or all that are left."""
        try:
            return super().read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise self._told(error) from error

    def read1(self, size: int = -1) -> bytes:
        """Returns up to so many bytes."""
        try:
            return super().read1(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise self._told(error) from error

    def _told(self, error: Exception) -> OSError:
        return OSError(
            f"{Path(str(self.name)).name} cannot be unpacked: {error}; look whether all of the file is there, and "
            f"whether it is packed at all"
        )


def quoting(quotes: bool) -> Literal[0, 3]:
    """What the standard library calls it whether fields may stand in quotes."""
    return csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
