"""Permissions: what others on this machine may do with a journal's file and its neighbours, said aloud.

A journal makes its file for its owner only. One that is there already, copied or made by hand, has the rights that it
was given, and so have its -wal and -shm files. It is used as it is: a group may share it on purpose.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from treadle.aloud import aloud

log = aloud("treadle.journal")

_told: set[str] = set()


def exposed(path: Path) -> list[str]:
    """What others than the owner may do with the file, its -wal and -shm files and its folder, and what to do about it.

    Empty where there is nothing to be said, no such file, or no such rights on this system. Rights beyond the file
    mode's (access control lists) are not looked at.
    """
    return [*_exposed(path)] if os.name == "posix" else []


def tell_once(path: Path) -> None:
    """Warn of what others may do with the file, the first time that this process comes upon it."""
    if str(path) not in _told:
        _told.add(str(path))
        for line in exposed(path):
            log.warning("%s", line)


def _exposed(path: Path) -> Iterator[str]:
    alike: dict[int, list[str]] = {}
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        alike.setdefault(_mode(file), []).append(str(file))
    for mode, files in alike.items():
        what = [
            f"{deed} by {' and '.join(who)}"
            for deed, group, world in (("read", stat.S_IRGRP, stat.S_IROTH), ("written", stat.S_IWGRP, stat.S_IWOTH))
            if (who := ["its group"] * bool(mode & group) + ["everybody"] * bool(mode & world))
        ]
        if what:
            # Its neighbours take over its rights: that is one thing to be said, and one to be done.
            first, *others = files
            too = f", as can {' and '.join(others)}" if others else ""
            yield (
                f"the journal's file {first} can be {', and '.join(what)} (mode {mode:04o}){too}, and holds all that "
                f"was said in its runs: chmod 600 {' '.join(files)}"
            )
    mode = _mode(path.parent)
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        yield (
            f"the journal's folder {path.parent} can be written by others (mode {mode:04o}), who can put another file "
            f"in the journal's place: chmod go-w {path.parent}"
        )


def _mode(file: Path) -> int:
    """The rights of the file; none if there is no such file."""
    try:
        return stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return 0
