"""Work that takes a while: what is being done is shown at a terminal, and Ctrl-C stops it where it is done."""

import threading
import time
from collections.abc import Callable
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
        _watch(done, doing)
    except KeyboardInterrupt:
        interrupt.set()
        done.wait()
        raise click.Abort from None
    finally:
        thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def _watch(done: threading.Event, doing: list[str]) -> None:
    """Waits for the end of the work, showing what it does."""
    start = time.monotonic()
    with Line() as line:
        while not done.wait(0.2):
            line.show(clean(doing[0]), start)
