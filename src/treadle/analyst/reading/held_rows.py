"""Held rows: lines of a CSV file that are rows by themselves, and would be one, as they stand in one pair of quotes.

    2;"pipe;6,00
    3;bolt;7,00
    4;cable 5";8,00

Read with quotes these are one row of 8,00. A text that has line breaks in it stands between quotes as well, but its
lines do not all have as many fields as the names, with a number in each measure.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.staged import opener
from treadle.analyst.reading.table import Demand

_PIECE = 1 << 20
# The engine reads no longer lines.
_LONGEST = 4 << 20
# Such as those of a currency, or of a mark for debit and credit.
_MOST_LETTERS = 3
_LEFT_OUT = {end: bytes(set(range(256)) - set(b'"' + end)) for end in (b"\n", b"\r")}


def refuse_held_rows(
    session: Session, source: Source, file: Path, read: Path, names: Sequence[str], encoding: str, delimiter: str
) -> None:
    """Refuses a file in which lines that are rows by themselves stand in one pair of quotes; once in a session.

    Args:
        session: reads the file.
        source: what it is of; without a measure that is a column nothing tells rows from the lines of a text.
        file: the file.
        read: it, or what was made of it for the engine.
        names: its columns.
        encoding: that of what the engine reads.
        delimiter: what is between fields.

    Raises:
        AnalystError: it is refused.
    """
    measured = [names.index(name) for name in Demand((), source.measures).columns if name in names]
    if not source.text.quotes or not measured or (file, "held") in session.sound:
        return

    def is_row(line: bytes) -> bool:
        return _is_row(_text(line, encoding), delimiter, len(names), measured)

    def is_open(line: bytes) -> bool:
        # Read on, it takes what follows into its last field.
        return len(_rows([_text(line, encoding) + "\n", ""], delimiter)) == 1

    if held := _held(_pieces(session, read, encoding), is_row, is_open):
        _, left_out = session.copies.get(read, (file, 0))
        first, last = (number + left_out for number in held)
        raise AnalystError(
            f"source {source.name!r}: in {file.name} a quote opens in line {first} that closes in line {last}, so that "
            f"these lines would be one row, though each has the fields and figures of one: if quotes are part of its "
            f"texts, declare 'quotes: false' under 'text'; if not, take this one out of the file"
        )
    session.sound.add((file, "held"))


def _held(
    pieces: Iterator[bytes], is_row: Callable[[bytes], bool], is_open: Callable[[bytes], bool]
) -> tuple[int, int] | None:
    """The first and the last of such lines, by their numbers; None if there are none."""
    number, opened, held = 0, 0, False
    for piece in pieces:
        end = b"\n" if b"\n" in piece else b"\r"
        if not opened and not (b'"' in piece and _has_odd_line(piece, end)):
            number += piece.count(end)
            continue
        for line in piece.removesuffix(end).split(end):
            number += 1
            odd = line.count(b'"') % 2 == 1
            if opened:
                held = held and is_row(line)
                if odd and held:
                    return opened, number
                opened = 0 if odd else opened
            elif odd and is_open(line):
                opened, held = number, is_row(line)
    return None


def _has_odd_line(piece: bytes, end: bytes) -> bool:
    """Whether a line has a quote without another; all lines of a file are soon looked at so, as few are unlike."""
    return any(len(quotes) % 2 for quotes in set(piece.translate(None, _LEFT_OUT[end]).split(end)))


def _is_row(text: str, delimiter: str, width: int, measured: Sequence[int]) -> bool:
    """Whether a line has the fields of a row, none of which is a text where a figure is, and a figure."""
    quotes = text.count('"')
    fields = text.split(delimiter) if quotes % 2 or not quotes else next(iter(_rows([text], delimiter)), [])
    if len(fields) != width:
        return False
    figures = [fields[at] for at in measured]
    return all(sum(map(str.isalpha, one)) <= _MOST_LETTERS for one in figures) and any(
        any(map(str.isdecimal, one)) for one in figures
    )


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return []


def _pieces(session: Session, file: Path, encoding: str) -> Iterator[bytes]:
    """The file in pieces of whole lines, as text of one byte a sign where that is ASCII."""
    tail = b""
    try:
        with _opened(file, encoding) as opened:
            while read := opened.read(_PIECE):
                session.check()
                piece = tail + (read.encode() if isinstance(read, str) else read)
                cut = max(piece.rfind(b"\n"), -1 if b"\n" in piece else piece.rfind(b"\r", 0, -1)) + 1
                tail = piece[cut:]
                if cut:
                    yield piece[:cut]
                elif len(tail) > _LONGEST:
                    return
    except (OSError, EOFError, UnicodeError, zlib.error):
        # What is wrong with it is told by whoever reads the rows.
        return
    if tail:
        yield tail


def _opened(file: Path, encoding: str) -> Any:
    """The file as text if it is of two bytes a sign, else as bytes."""
    if encoding == "utf-16":
        return opener(file)(encoding)
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def _text(line: bytes, encoding: str) -> str:
    return line.decode("utf-8" if encoding == "utf-16" else encoding, errors="replace").rstrip("\r")
