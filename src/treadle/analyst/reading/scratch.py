"""Scratch: folders for what a question puts aside, and what is left of those whose process was killed.

A process that is killed on the spot tidies up nothing. So each of these folders has a file that its process holds
locked and that names the drafts it has begun elsewhere; the next process takes away those that nobody holds any more,
with their drafts. Touches the folder for temporary files, and the drafts that are named in there.
"""

import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

_PREFIX = "treadle-put-aside-"
_HELD = "held"


class Scratch:
    """A folder of its own, until it is closed.

    Args:
        drafts: files elsewhere that are to be taken away as well if the process is killed; `.NAME.part`.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, drafts: Sequence[Path] = ()) -> None:
        _take_away_what_is_left(tempfile.gettempdir())
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._held: IO[str] | None = None
        # Where nothing can be locked, the folder is kept by whoever finds it.
        with suppress(OSError):
            self._held = _hold(self.path, json.dumps([str(draft) for draft in drafts]))

    def close(self) -> None:
        """Takes the folder away, with all that is in it."""
        if self._held is not None:
            self._held.close()
        shutil.rmtree(self.path, ignore_errors=True)


@cache
def _take_away_what_is_left(place: str) -> None:
    """Takes away the folders of processes that were killed; once in each process, as there may be many others."""
    for folder in Path(place).glob(f"{_PREFIX}*"):
        with suppress(OSError, ValueError):
            _take_away(folder)


def _take_away(folder: Path) -> None:
    """Takes a folder and its drafts away. Raises OSError or ValueError if it is held, another's, or none of ours."""
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or (sys.platform != "win32" and state.st_uid != os.getuid()):
        return
    held = folder / _HELD
    with held.open("r+", encoding="utf-8") as found:
        drafts = json.load(found)
        if sys.platform != "win32":
            _lock(found)
    if sys.platform == "win32":
        held.unlink()  # which fails as long as somebody has it open
    for draft in map(Path, drafts):
        if draft.name.startswith(".") and draft.suffix == ".part":
            draft.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _hold(folder: Path, text: str) -> IO[str]:
    """Makes the file that says that a folder is in use. Raises OSError if it cannot be locked."""
    held = folder / _HELD
    # It gets its name once it is locked, so that nobody finds it unlocked. On Windows to have it open is to lock it.
    made = held if sys.platform == "win32" else folder / f".{_HELD}"
    found = made.open("w", encoding="utf-8")
    try:
        found.write(text)
        found.flush()
        if sys.platform != "win32":
            _lock(found)
            made.rename(held)
    except BaseException:
        found.close()
        raise
    return found


def _lock(file: IO[str]) -> None:
    """Locks a file until it is closed. Raises OSError if another has it."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
