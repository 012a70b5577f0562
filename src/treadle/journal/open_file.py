"""OpenFile: a connection to one of treadle's own SQLite files that is kept open between uses."""

import sqlite3
import weakref
from contextlib import closing
from os import stat_result
from os.path import samestat
from pathlib import Path

from treadle.journal.os_fork import Gate, at_work, closed_before_a_fork, is_torn
from treadle.journal.sqlite_file import RESCUE, FileKind, is_whole, log_of, seen, version_of

_TORN = "was in use in the middle of a fork, which SQLite does not survive"
_SPAWN = 'Start processes with the method "spawn" or "forkserver", or fork while nothing is being written.'
_REPLACED = (
    "was replaced by another file while it was open, and its -wal file, which is no part of that, is still there"
)
_PART = "Move the -wal and -shm files away, which would damage the new file, or put the old one back, and {again}."

_REMOVED = "was removed or moved while it was open, and with it all that was counted there"
_BACK = "Put it back, and {again}. A new one is begun when the program is started again, or closes this one first."


class OpenFile:
    """A connection to the file at `path`; whoever has one sees to it that one thread at a time uses it.

    It is used as `with file as connection`. It is opened at its first use, and again at the next one after a fork, or
    where the file was removed or replaced: what was written to the old one now would be lost without a word. One that
    was put beside the write-ahead log of a file that this process has open is refused: SQLite would take the log for
    its own, and write the old pages over it. So is one that was taken away from its log, which a new one would lose,
    and one that is gone where its kind begins none in its place. It is closed when it is forgotten.

    Args:
        kind: what kind of file it is.
        path: the file.
        patience: seconds to wait for another process that is writing; None for as long as that kind is waited for.
        looks: whether each use begins with a look at the file's version; else its user looks, within a transaction.

    Attributes:
        kind: what kind of file it is; another one of the same tables speaks of it in other words.
    """

    def __init__(self, kind: FileKind, path: Path, *, patience: float | None = None, looks: bool = True) -> None:
        self.kind, self._path, self._patience, self._looks = kind, path, patience, looks
        self._name = str(path)
        self._kept: list[sqlite3.Connection] = []
        self._seen: stat_result | None = None
        self._log: stat_result | None = None
        self._gate: Gate | None = None
        closed_before_a_fork(self)
        with at_work().lock:
            _files.add(self)
        weakref.finalize(self, _close, self._kept)

    def __enter__(self) -> sqlite3.Connection:
        """The connection; a fork waits for the end of its use.

        Raises:
            Exception: the kind's `error`: the file cannot be used. So is what SQLite raises in its use.
        """
        if is_torn():
            raise self.kind.unavailable(self._path, _TORN, _SPAWN)
        gate = self._gate = at_work()
        gate.__enter__()
        try:
            return self._connection()
        except BaseException as error:
            gate.__exit__()
            self.kind.explain(self._path, error)
            raise

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._gate is not None:
            self._gate.__exit__()
        if error is not None:
            self.kind.explain(self._path, error)

    def _connection(self) -> sqlite3.Connection:
        if self._kept:
            self._look_again(self._kept[0])
        if not self._kept:
            self._open()
        return self._kept[0]

    def _open(self) -> None:
        self._see_that_it_may_be_opened(seen(self._name))
        # Another thread closes it before a fork.
        self._kept.append(self.kind.open(self._path, any_thread=True, patience=self._patience))
        self._seen, self._log = seen(self._name), seen(log_of(self._name))

    def _look_again(self, connection: sqlite3.Connection) -> None:
        """Lets go of a file that is not any more as it was opened."""
        now, before = seen(self._name), self._seen
        if now is None or before is None or not samestat(now, before):
            # While the new one is refused the old one stays open: it may be put back.
            self._see_that_it_may_be_opened(now)
            # A new file could have the number of one that nobody holds any more, and be taken for that.
            with closing(self._kept.pop()):
                self._open()
            return
        self._seen = now
        if now.st_size < before.st_size and not is_whole(self._path):
            self.let_go()
            what = f"was cut short while it was open, from {before.st_size:,} to {now.st_size:,} bytes"
            raise self.kind.unavailable(self._path, what, RESCUE)
        if self._looks and version_of(connection) != self.kind.version:
            # A later treadle has brought it up meanwhile: what this one would write there it would take for damage.
            self.let_go()

    def _see_that_it_may_be_opened(self, now: stat_result | None) -> None:
        if now is None:
            self.kind.see_that_no_log_is_left(self._path)
            if self._seen is not None and not self.kind.begins_anew:
                raise self.kind.unavailable(self._path, _REMOVED, _BACK.format(again=self.kind.again))
            return
        log = seen(log_of(self._name))
        if log is None:
            return
        with at_work().lock:
            others = [(one._seen, one._log) for one in _files if one._kept]
        for file, its_log in others:
            if file is not None and its_log is not None and not samestat(now, file) and samestat(log, its_log):
                raise self.kind.unavailable(self._path, _REPLACED, _PART.format(again=self.kind.again))

    def close(self) -> None:
        """Close it until it is used again, as if it had not been open before."""
        with at_work():
            self.let_go()
            self._seen = None

    def let_go(self) -> None:
        """See `Opened.let_go`."""
        _close(self._kept)


_files: "weakref.WeakSet[OpenFile]" = weakref.WeakSet()
"""All of this process, which share what they know of each other's logs; under the lock of `at_work`."""


def _close(kept: list[sqlite3.Connection]) -> None:
    # In a process that was torn, to close what it inherited may wait for ever.
    while kept and not is_torn():
        kept.pop().close()
