"""Disks: whether a file is on one that other machines share, where SQLite's promises do not hold."""

from pathlib import Path
from typing import Final

from treadle.aloud import aloud

log = aloud("treadle.journal")

MOUNTS: Path = Path("/proc/self/mountinfo")
"""Where Linux says what is mounted: https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html"""

SHARED: Final = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs",
        "nfs", "nfs4", "ocfs2", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    }
)  # fmt: skip
"""Kinds of file systems that are served by another machine, or by a program."""

LOCAL: Final = frozenset({"fuse.fuse-overlayfs", "fuse.gocryptfs", "fuse.encfs", "fuse.ntfs-3g"})
"""Kinds that a program serves from a local disk."""

_told: set[Path] = set()


def shared_kind(path: Path) -> str | None:
    """The kind of file system that `path` is on, if it is one that other machines may share.

    None where it is a local one, and where nobody says: only Linux is asked.
    """
    try:
        mounted = MOUNTS.read_text("utf-8", "replace").splitlines()
        place = path.resolve()
    except OSError:
        return None
    found, kind = 0, ""
    for line in mounted:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = Path(_unescaped(fields[4]))
        # What is mounted later over the same place hides what was there.
        if len(point.parts) >= found and place.is_relative_to(point):
            found, kind = len(point.parts), after.split(" ")[0]
    shared = kind not in LOCAL and kind.partition(".")[0] in SHARED
    return kind if shared else None


def warn_of_shared(what: str, path: Path) -> None:
    """Warns, once a file, where `path` is on a disk that other machines may share."""
    if path in _told:
        return
    _told.add(path)
    kind = shared_kind(path)
    if kind is not None:
        log.warning(
            "the %s %s is on a network file system (%s): it may be lost or damaged when two machines write to it, or "
            "when the connection breaks. Put it on a local disk; runs that machines share belong into PostgreSQL",
            what,
            path,
            kind,
        )


def _unescaped(text: str) -> str:
    """A path as the table of mounts writes it: blanks, tabs, line ends and backslashes as octal numbers."""
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text
