"""Events that are to be stored: in which form, and what they make of their run.

What waits for the disk is there once for each run under way, and the more of it the garbage collector has to look
through, the more often it does, which with many runs costs as much as the writing. So these are none of its objects:
what they hold never leads back to them.
"""

from collections.abc import Sequence
from itertools import count
from math import isfinite

import msgspec
from msgspec import Struct

from treadle.journal.chain import beginning, link
from treadle.journal.errors import EventNotStorable, JournalConflict
from treadle.journal.info import after, begun, told_by
from treadle.journal.line import Line
from treadle.journal.redaction import Redact, redacted
from treadle.journal.verified import Row
from treadle.kernel.events import Event, RunStarted, encode_event


class Batch(Struct, frozen=True, gc=False):
    """Events to store, and the stored form of each."""

    events: Sequence[Event]
    bodies: Sequence[bytes]


def batch_of(run_id: str, seq: int, events: Sequence[Event], redact: Redact | None, where: str) -> Batch:
    """What is needed to store `events`, each text of which is passed through `redact` first.

    Raises:
        RedactionFailed: `redact` raised.
        EventNotStorable: one of them has no JSON form.
    """
    events = tuple(events if redact is None else redacted(run_id, seq, events, redact, where))
    bodies: list[bytes] = []
    try:
        # One after another, so that their number says which of them has none.
        for event in events:
            if not isfinite(event.at):
                raise ValueError(f"its time is {event.at}")
            bodies.append(encode_event(event))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        number, kind = seq + len(bodies), type(events[len(bodies)]).__name__
        raise EventNotStorable(
            f"event {number} ({kind}) of run {run_id!r} cannot be stored in journal {where}: {error}. "
            "What a tool gives the application must be made of JSON's types.",
            where=where,
        ) from error
    return Batch(events, bodies)


class Growth(Struct, frozen=True, gc=False):
    """What an append adds to a run: its new rows, and its line with them."""

    line: Line
    rows: Sequence[Row]


def growth(line: Line | None, run_id: str, seq: int, batch: Batch, where: str) -> Growth | None:
    """What becomes of the run when `batch` comes to it; None if there is nothing in that.

    Args:
        line: the run's line, sealed or told anew; None if there is no such run.
        run_id: the run.
        seq: how many events the writer believes that it has.
        batch: what to store.
        where: the journal, as a person would name it.

    Raises:
        JournalConflict: it has another number of events.
    """
    found = 0 if line is None else line.info.events
    if found != seq:
        raise JournalConflict(run_id, seq, found, where=where)
    if not batch.bodies:
        return None
    rows, head = _linked(beginning(run_id) if line is None else line.head, seq, batch)
    if line is not None:
        info = line.info
    elif isinstance(first := batch.events[0], RunStarted):
        info = begun(first)
    else:
        raise ValueError(f"run {run_id!r} cannot begin with {type(first).__name__}")
    return Growth(Line(after(info, batch.events), head, sealed=True), rows)


def fork_of(shared: Sequence[Event], head: bytes, batch: Batch) -> Growth:
    """What a fork has that shares these events, the last of which has the hash `head`, and begins with `batch`."""
    rows, head = _linked(head, len(shared), batch)
    return Growth(Line(told_by([*shared, *batch.events]), head, sealed=True), rows)


def _linked(head: bytes, seq: int, batch: Batch) -> tuple[list[Row], bytes]:
    """The rows of a batch that comes after `seq` events, the last of which has the hash `head`; and its last hash."""
    rows: list[Row] = []
    for number, event, body in zip(count(seq), batch.events, batch.bodies, strict=False):
        at = float(event.at)
        head = link(head, at, body)
        rows.append((number, at, head, body))
    return rows, head
