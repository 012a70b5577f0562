"""Lines: runs as lines of JSON, to be moved from one journal to another, of whatever kind.

docs/journal-format.md describes the form. Each run is closed by a line with the number of its events and the last hash
of their chain, and the whole by one with the number of runs, so that what was cut off or altered is noticed.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import IO, NamedTuple

import msgspec
from msgspec import Raw, Struct

from treadle.journal.chain import beginning, link
from treadle.journal.errors import JournalDamaged, JournalError, NotImported, UnknownRun
from treadle.journal.families import families, family, is_there
from treadle.journal.line import decoded, unknown_field
from treadle.journal.ones_own import check_journal, read_of, told_as_its_own
from treadle.journal.port import Journal, check_first
from treadle.journal.redaction import Redact, redacted
from treadle.journal.told_apart import told_apart
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, RunStarted, encode_event

VERSION = 1
"""The version of the form; one that is higher is refused."""

_LONGEST_HEAD = 10_000

TOGETHER = 50
"""Runs that are written at once: they share a commit, where a journal has commits."""


class Line(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line of an export: its head (`treadle_runs`), an event, the end of a run, or the end of all (`runs`).

    Attributes:
        treadle_runs: the version of the form.
        run_id: the run that an event or an end is of.
        seq: the number of the event, from 0.
        event: the event.
        events: how many events the run has.
        hash: the last hash of their chain.
        runs: how many runs there are.
    """

    treadle_runs: int | None = None
    run_id: str | None = None
    seq: int | None = None
    event: Raw = Raw()
    events: int | None = None
    hash: str | None = None
    runs: int | None = None


_lines = msgspec.json.Decoder(Line)


async def export_runs(
    journal: Journal,
    run_ids: Iterable[str] | None = None,
    *,
    on_damage: Callable[[JournalDamaged], object] | None = None,
) -> AsyncIterator[bytes]:
    """The runs as lines of JSON, each with the runs that work for it.

    A run that is under way is exported as far as it is, with those that it has begun by then. Holds one run at a time
    in memory.

    Args:
        journal: where they are.
        run_ids: which; one that is named twice is exported once. None for all; one that is deleted meanwhile is left
            out.
        on_damage: called with what cannot be read, which is then left out; None raises it.

    Raises:
        Misuse: `run_ids` is one text, and no list of ids, or `journal` is none.
        UnknownRun: there is no such run.
        JournalDamaged: a run cannot be read; of it no line was given out.
    """
    check_journal("export_runs", journal)
    if isinstance(run_ids, str):
        raise Misuse(f"export_runs takes a list of ids, such as [{run_ids!r:.100}]; it was given a text")
    done: set[str] = set()
    count = 0
    groups = _groups(journal, run_ids)
    # A journal that cannot be read at all says so before the first line.
    group = await anext(groups, None)
    yield _encoded(Line(treadle_runs=VERSION))
    while group is not None:
        async for run_id in _each(journal, group):
            if run_id in done:
                continue
            done.add(run_id)
            try:
                events = await read_of(journal, run_id)
            except UnknownRun:
                if run_ids is None:
                    continue
                raise
            except JournalDamaged as error:
                if on_damage is None:
                    raise
                on_damage(error)
                continue
            for line in _lines_of(run_id, events):
                yield line
            count += 1
        group = await anext(groups, None)
    yield _encoded(Line(runs=count))


class _Group(NamedTuple):
    """A run and those that work for it; `grows` if it may have begun more since."""

    run_ids: Sequence[str]
    grows: bool = True


async def _groups(journal: Journal, run_ids: Iterable[str] | None) -> AsyncIterator[_Group]:
    """The runs by families."""
    if run_ids is None:
        for lines in await families(journal):
            yield _Group([line.run_id for line in lines], lines[0].status != "finished")
        return
    for run_id in run_ids:
        yield _Group(await family(journal, run_id))


async def _each(journal: Journal, group: _Group) -> AsyncIterator[str]:
    """The runs of a family, and then those that were begun while these were read."""
    given: list[str] = []
    more = group.run_ids
    while more:
        for run_id in more:
            given.append(run_id)
            yield run_id
        try:
            now = await family(journal, given[0]) if group.grows else ()
        except UnknownRun:
            return
        more = [run_id for run_id in now if run_id not in given]


async def import_runs(journal: Journal, file: IO[bytes]) -> list[str]:
    """Put the runs of an export into a journal: all of them, or none.

    The file is read first to see that all of it is whole, and that none of its runs is there already with other events;
    one that is the same is left as it is. Then once more for those that work for others, as deep as they do, and for
    the others. If the process is killed while they are written, some are there, each whole and with those that work for
    it, and the others are not: the same import again puts in the rest.

    Args:
        journal: where they are put.
        file: what `export_runs` gave, open for reading bytes at its beginning; it must be able to go back there.

    Returns:
        The ids of the runs that were put in, in the order of the file.

    Raises:
        RedactionFailed: the journal's `redact` raised; the journal is as it was.
        Misuse: it is no file that is open for reading, or one that cannot go back; or `journal` is none.
        NotImported: it is no export, was altered or cut off, is of a later version, or has a run that is there already
            with other events; the journal is as it was.
        JournalError: the journal cannot be written; what was written before that is deleted again, where that can be.
    """
    check_journal("import_runs", journal)
    start = _beginning(file)
    above: dict[str, str] = {}
    there: set[str] = set()
    for run_id, events in _runs_in(file):
        above[run_id] = _above(run_id, events)
        if await is_there(journal, run_id):
            if not await _is_same(journal, run_id, events):
                raise NotImported(
                    f"there is another run {run_id!r} in the journal already; delete that one first, or import into "
                    "another"
                )
            there.add(run_id)
    written: list[str] = []
    try:
        for runs in _lowest_first({run_id: one for run_id, one in above.items() if run_id not in there}):
            file.seek(start)
            await _put_all(journal, (one for one in _runs_in(file) if one[0] in runs), written)
    except BaseException:
        for run_id in reversed(written):
            # One that cannot be deleted hinders no other, nor is it what is told.
            with suppress(JournalError), told_as_its_own(journal):
                await journal.delete(run_id)
        raise
    return [run_id for run_id in above if run_id not in there]


async def _is_same(journal: Journal, run_id: str, events: Sequence[Event]) -> bool:
    """Whether the journal has the run as it would have it from this import; a journal that redacts has other words."""
    there = await read_of(journal, run_id)
    if there == events:
        return True
    redact: Redact | None = getattr(journal, "redact", None)
    ways = () if redact is None else (told_apart(events), events)
    return any(there == list(redacted(run_id, 0, one, redact, type(journal).__name__)) for one in ways)


def _above(run_id: str, events: Sequence[Event]) -> str:
    """The run that it works for; empty if it works for none."""
    first = events[0]
    if not isinstance(first, RunStarted) or first.run_id != run_id or first.parent is None:
        return ""
    return first.parent.run_id


def _lowest_first(above: Mapping[str, str]) -> list[set[str]]:
    """Runs by how far they are below others, those that work for others before these.

    A run without those that work for it would have their work done anew if it was taken up then.
    """
    found: dict[int, set[str]] = defaultdict(set)
    for run_id in above:
        over = [run_id]
        while (one := above[over[-1]]) in above and one not in over:
            over.append(one)
        found[len(over)].add(run_id)
    return [found[depth] for depth in sorted(found, reverse=True)]


async def _put_all(journal: Journal, runs: Iterator[tuple[str, Sequence[Event]]], written: list[str]) -> None:
    """Write runs, in no order, and note in `written` which are there."""
    while group := list(islice(runs, TOGETHER)):
        outcomes = await asyncio.gather(
            *[_put(journal, run_id, events, written) for run_id, events in group], return_exceptions=True
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome


async def _put(journal: Journal, run_id: str, events: Sequence[Event], written: list[str]) -> None:
    """Write a run, and note in `written` that it is there."""
    try:
        with told_as_its_own(journal):
            redacts = getattr(journal, "redact", None) is not None
            await journal.append(run_id, 0, told_apart(events) if redacts else events)
    except asyncio.CancelledError:
        # The port's word: it is raised only once the events are stored.
        written.append(run_id)
        raise
    written.append(run_id)


def _lines_of(run_id: str, events: Sequence[Event]) -> Iterator[bytes]:
    head = beginning(run_id)
    for seq, event in enumerate(events):
        body = encode_event(event)
        head = link(head, event.at, body)
        yield _encoded(Line(run_id=run_id, seq=seq, event=Raw(body)))
    yield _encoded(Line(run_id=run_id, events=len(events), hash=head.hex()))


def _encoded(line: Line) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _beginning(file: IO[bytes]) -> int:
    """Where the file stands, to go back there.

    Raises:
        Misuse: see `import_runs`.
    """
    try:
        if file.seekable() and file.readable():
            return file.tell()
    except (AttributeError, TypeError, ValueError):
        # It is something else, or closed.
        pass
    raise Misuse(
        f'import_runs takes a file that is open for reading and can go back, such as open("runs.jsonl", "rb"), and not '
        f"this {type(file).__name__}"
    )


def _runs_in(file: IO[bytes]) -> Iterator[tuple[str, Sequence[Event]]]:
    """Each run of an export with its events, once it is known to be whole.

    Raises:
        NotImported: something is wrong, wherever in the file; says in which line.
    """
    # What is no export may have no line at all, and no end.
    _check_head(file.readline(_LONGEST_HEAD))
    rows = enumerate(file, 2)
    seen: set[str] = set()
    events: list[Event] = []
    run_id, head, number = "", b"", 1
    for number, row in rows:
        line = _parsed(row, number)
        if line.runs is not None:
            if events or line.runs != len(seen):
                raise _wrong(number, "runs are missing before it")
            for number, row in rows:
                if row.strip():
                    raise _wrong(number, "it comes after the end")
            return
        if line.run_id is None:
            raise _wrong(number, "it is no line of an export")
        if line.event:
            if not events:
                run_id, head = line.run_id, beginning(line.run_id)
            if line.run_id != run_id or line.seq != len(events):
                raise _wrong(number, f"event {len(events)} of run {run_id!r} is missing before it")
            event = _event(line.event, number)
            events.append(event)
            head = link(head, event.at, bytes(line.event))
            continue
        _check_end(line, number, run_id, events, head)
        if run_id in seen:
            raise _wrong(number, f"run {run_id!r} is there twice")
        seen.add(run_id)
        yield run_id, events
        events = []
    raise _wrong(number + 1, "it is missing: the export was cut off")


def _check_head(row: bytes) -> None:
    """Refuse what is no export, or one of a later version.

    Raises:
        NotImported: it is.
    """
    try:
        version = msgspec.json.decode(row)["treadle_runs"]
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError):
        raise NotImported("it is no export of runs: its first line does not say so") from None
    if type(version) is not int or version < 1:
        raise NotImported(f"it is no export of runs: there is no version {version!r:.100} of the form")
    if version != VERSION:
        raise NotImported(
            f"it was exported by a later treadle (version {version} of the form; this one knows {VERSION}); update it"
        )


def _parsed(row: bytes, number: int) -> Line:
    try:
        return _lines.decode(row)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _wrong(number, f"it is no line of an export ({error})") from error


def _event(raw: Raw, number: int) -> Event:
    body = bytes(raw)
    try:
        event = decoded(body)
    except ValueError as error:
        raise _wrong(number, f"its event cannot be read: {error}") from error
    if unknown := unknown_field(body, event):
        raise _wrong(
            number,
            f"its event has the field {unknown!r:.100}, which would be lost: a later treadle wrote it; update this",
        )
    return event


def _check_end(line: Line, number: int, run_id: str, events: Sequence[Event], head: bytes) -> None:
    """Hold the end of a run against its events.

    Raises:
        NotImported: they do not agree.
    """
    if line.run_id != run_id or line.events != len(events) or not events:
        raise _wrong(number, f"events of run {line.run_id!r} are missing before it")
    if line.hash != head.hex():
        raise _wrong(number, f"run {run_id!r} was altered: its events and its hash do not agree")
    try:
        check_first(run_id, events)
    except ValueError as error:
        raise _wrong(number, str(error)) from error


def _wrong(number: int, what: str) -> NotImported:
    return NotImported(f"line {number}: {what}")
