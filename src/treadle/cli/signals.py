"""How a process that serves or works until it is told to end is told so."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def told_to_end(tell: Callable[[signal.Signals], object]) -> Iterator[None]:
    """Calls `tell` at SIGTERM and at Ctrl-C, in the event loop that runs; after it SIGTERM has been obeyed.

    It would get its default back when the loop is closed, and a process that is told again in its last moment would
    seem to have failed.
    """
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        # Windows has none: there Ctrl-C ends it as it does any program.
        with suppress(NotImplementedError):
            loop.add_signal_handler(name, tell, name)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            if loop.remove_signal_handler(signal.SIGTERM):
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
