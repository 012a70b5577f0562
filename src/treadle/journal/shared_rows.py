"""The rows of a run that is a fork, the first of which are other runs', in whatever database they are."""

from collections.abc import Generator, Mapping
from sys import maxsize
from typing import Protocol

from treadle.journal.line import Line
from treadle.journal.lineage import Lineage
from treadle.journal.verified import Row, Rows


class OwnRows(Rows, Protocol):
    """The rows that each run itself has."""

    def part(self, run_id: str, start: int, stop: int | None) -> Generator[Row]:
        """The rows from number `start` up to, not including, `stop` (None: to the end), in order.

        Raises:
            Unreadable: the next one cannot be had.
        """


class SharedRows:
    """See `Rows`; of the run with this lineage."""

    def __init__(self, rows: OwnRows, lineage: Lineage) -> None:
        self._rows = rows
        self._lineage = lineage

    def line(self, run_id: str) -> Line | None:
        """See `Rows.line`."""
        return self._rows.line(run_id)

    def has_events(self, run_id: str) -> bool:
        """See `Rows.has_events`."""
        return self._rows.has_events(run_id)

    def events(self, run_id: str, start: int) -> Generator[Row]:
        """See `Rows.events`."""
        for owner, first, stop in self._lineage.within(start):
            yield from self._rows.part(owner, first, stop)

    def ends(self, run_id: str, last: int) -> Mapping[int, Row]:
        """See `Rows.ends`."""
        there: dict[int, Row] = {}
        for owner, first, stop in self._lineage.parts:
            found = self._rows.ends(owner, last)
            there |= {seq: row for seq, row in found.items() if first <= seq < (maxsize if stop is None else stop)}
        return there

    def hash(self, run_id: str, seq: int) -> bytes | None:
        """See `Rows.hash`."""
        return self._rows.hash(self._lineage.owner(seq), seq)

    def can_give(self, run_id: str, seq: int) -> bool:
        """See `Rows.can_give`."""
        return self._rows.can_give(self._lineage.owner(seq), seq)

    def whole(self, body: bytes) -> bytes:
        """See `Rows.whole`."""
        return self._rows.whole(body)

    def of(self, line: Line) -> Rows:
        """See `Rows.of`."""
        return self

    def origin(self, run_id: str) -> str:
        """See `Rows.origin`."""
        return self._lineage.origin
