"""Work that takes a while: what is being done is shown at a terminal, and Ctrl-C stops it where it is done.

So does SIGTERM, by which a scheduler ends a job: what was put aside on the disk goes with the work.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

import click

from treadle.cli.busy import Line
from treadle.cli.terminal import clean

if TYPE_CHECKING:
    from treadle.analyst import Interrupt

T = TypeVar("T")


def working(work: "Callable[[Interrupt, Callable[[str], None]], T]") -> T:
    """Runs `work(interrupt, tell)` in a thread and returns what it returns.

    What it tells is shown with the seconds gone by, on standard error, if that is a terminal and the work takes longer
    than a moment.

    Raises:
        click.Abort: Ctrl-C was pressed; the work was interrupted and has ended.
        Exception: whatever the work raised.
    """
    from treadle.analyst import Interrupt

    interrupt, done = Interrupt(), threading.Event()
    doing, outcome, failure = ["starting"], list[T](), list[BaseException]()

    def run() -> None:
        try:
            outcome.append(work(interrupt, lambda text: doing.__setitem__(0, text)))
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, name="treadle-working")
    thread.start()
    try:
        # Not a join: one that Ctrl-C interrupts takes the thread for ended from then on (CPython 3.11).
        with _told_to_end():
            _watch(done, doing)
    except KeyboardInterrupt as error:
        interrupt.set()
        done.wait()
        if isinstance(error, _Terminated):
            thread.join()
            signal.raise_signal(signal.SIGTERM)
        raise click.Abort from None
    finally:
        thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


class _Terminated(KeyboardInterrupt):
    """SIGTERM came."""


@contextmanager
def _told_to_end() -> Iterator[None]:
    """Raises `_Terminated` within at the first SIGTERM; a second one ends the process, as it does elsewhere."""
    free = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if not free or threading.current_thread() is not threading.main_thread():
        yield
        return

    def tell(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise _Terminated

    signal.signal(signal.SIGTERM, tell)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _watch(done: threading.Event, doing: list[str]) -> None:
    """Waits for the end of the work, showing what it does."""
    start = time.monotonic()
    with Line() as line:
        while not done.wait(0.2):
            line.show(clean(doing[0]), start)
