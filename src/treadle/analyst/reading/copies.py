"""Copies: what is made of a file of text for the engine, in a session's folder and in UTF-8."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from treadle.analyst.declared.errors import DiskFull


class Copy:
    """A copy that is written; of what goes wrong with the file that it is of, whoever reads that says so."""

    def __init__(self, path: Path, out: TextIO) -> None:
        self._path, self._out = path, out

    def write(self, text: str) -> int:
        """Writes a text. Raises DiskFull if it has no room."""
        try:
            return self._out.write(text)
        except OSError as error:
            raise _full(self._path, error) from error


@contextmanager
def written(path: Path) -> Iterator[Copy]:
    """Yields a copy to write to. Raises DiskFull if it has no room."""
    try:
        out = path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise _full(path, error) from error
    try:
        yield Copy(path, out)
    except BaseException:
        with suppress(OSError):
            out.close()
        raise
    try:
        out.close()
    except OSError as error:
        raise _full(path, error) from error


def _full(path: Path, error: OSError) -> DiskFull:
    return DiskFull(
        f"the disk that holds {path.parent} cannot take a copy of a file ({error.strerror}); free some of it, or set "
        f"TMPDIR to a folder on a larger one"
    )
