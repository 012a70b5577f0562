"""Inlet: standard input that ends when this process wants it to, and not only when whoever writes to it does.

The official package reads it in a thread that nothing can cancel: told to stop, a server waited until its client said
one thing more. So the file with the number 0 is one end of a pair of sockets, into whose other end a thread of our own
passes on what comes. What of it is no UTF-8 becomes a character that JSON has nowhere, so that the message is refused:
the package would have put other letters in its place, and a call been made with these.
"""

import os
import socket
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Final

_PIECE: Final = 65_536

_NOWHERE: Final = dict.fromkeys(range(0xDC80, 0xDD00), "\0")


@contextmanager
def ending_input() -> Iterator[Callable[[], None]]:
    """While it is entered, standard input ends once the function that it gives is called, and where it did before."""
    if sys.platform == "win32" or not _is_standard():
        yield lambda: None
        return
    back, outside = os.dup(0), os.dup(0)
    into, out_of = socket.socketpair()

    def end() -> None:
        # Not closed: its number may be another file's before the thread has come to its next piece.
        with suppress(OSError):
            into.shutdown(socket.SHUT_WR)

    def pass_on() -> None:
        text = getincrementaldecoder("utf-8")("surrogateescape")
        try:
            with suppress(OSError), into:
                while piece := os.read(outside, _PIECE):
                    into.sendall(text.decode(piece).translate(_NOWHERE).encode())
                into.sendall(text.decode(b"", final=True).translate(_NOWHERE).encode())
        finally:
            os.close(outside)

    with out_of:
        os.dup2(out_of.fileno(), 0)
    try:
        # A daemon: it may wait for the next piece for as long as the program runs.
        Thread(target=pass_on, name="treadle-input", daemon=True).start()
        yield end
    finally:
        end()
        os.dup2(back, 0)
        os.close(back)


def _is_standard() -> bool:
    try:
        return sys.stdin.fileno() == 0
    except (AttributeError, OSError, ValueError):
        return False
