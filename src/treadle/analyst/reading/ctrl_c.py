"""Ctrl-C in a query of DuckDB's that the main thread waits for, which the engine tells as an error of its own."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ctrl_c() -> Iterator[None]:
    """Around what the engine does.

    Raises:
        KeyboardInterrupt: in place of the RuntimeError by which the engine says so.
    """
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error
