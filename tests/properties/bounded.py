"""Bounds that generated runs reach: a reply and a `for_app` may have a few characters only."""

from collections.abc import Iterator
from contextlib import contextmanager

from treadle.models import bounds
from treadle.tools import output


@contextmanager
def bounded(most: int | None) -> Iterator[None]:
    """Replies have `most` characters at most, and what tools give the application as many bytes; None for as ever."""
    before = bounds.LONGEST_REPLY, output.MOST_FOR_APP
    if most is not None:
        bounds.LONGEST_REPLY = output.MOST_FOR_APP = most  # type: ignore[misc]
    try:
        yield
    finally:
        bounds.LONGEST_REPLY, output.MOST_FOR_APP = before  # type: ignore[misc]
