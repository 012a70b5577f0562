"""Progress: how far a long statement of the engine is, in words: its share, the rows, and the time that is left.

The share is the engine's own estimate, and what follows from it is called "about".
"""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

# Seconds before anything is told of a statement, and between two times.
_PATIENCE, _EVERY = 1.0, 0.5
# Below this share nobody can say how long the rest will take.
_SOME = 3.0


class Progress:
    """Tells what is being done, and of long statements how far they are; use it in a `with` block.

    Args:
        tell: takes the words; called from a thread of its own, too.
        share: returns how much of the current statement is done, in percent; below zero where that is not known.
    """

    def __init__(self, tell: Callable[[str], None], share: Callable[[], float]) -> None:
        self._tell, self._share = tell, share
        self._lock, self._over = threading.Lock(), threading.Event()
        self._doing, self._start, self._last = "", 0.0, 0.0
        self._rows: int | None = None
        self._measured = False
        self._thread = threading.Thread(target=self._watch, name="treadle-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def begin(self, doing: str, *, measured: bool = False, rows: int | None = None) -> None:
        """Tells what is being done from now on.

        Args:
            doing: in a few words.
            measured: whether it is one statement, whose share is worth telling.
            rows: about how many rows that statement reads; None if that is not known.
        """
        with self._lock:
            self._doing, self._measured, self._rows = doing, measured, rows
            self._start, self._last = time.monotonic(), 0.0
            self._tell(doing)

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            with self._lock:
                if self._measured and (text := self._text(time.monotonic(), self._share())):
                    self._tell(text)

    def _text(self, now: float, share: float) -> str:
        if share < self._last:
            # Another statement has taken the place of the one before.
            self._start = now
        self._last = max(share, 0.0)
        gone = now - self._start
        return told(self._doing, share, gone, self._rows) if gone >= _PATIENCE else ""


def told(doing: str, share: float, gone: float, rows: int | None) -> str:
    """Returns how far something is, in words; empty where nothing can be said.

    Args:
        doing: what.
        share: how much of it is done, in percent.
        gone: the seconds that took.
        rows: about how many rows it reads in all.
    """
    if not 0 <= share <= 100:
        return ""
    text = f"{doing}: {share:.0f} %"
    if rows is not None:
        text += f", about {_rounded(rows * share / 100):,} of {_rounded(rows):,} rows"
    if share >= _SOME:
        left = gone * (100 - share) / share
        text += f", about {left:.0f} s left" if left < 90 else f", about {left / 60:.0f} min left"
    return text


def _rounded(rows: float) -> int:
    """A number of rows in three digits, because more of them would look exact."""
    power: int = 10 ** max(0, len(str(int(rows))) - 3)
    return round(rows / power) * power
