"""Held rows: lines of a CSV file that are rows by themselves, and would be one, as they stand in one pair of quotes.

    2;"pipe;6,00
    3;bolt;7,00
    4;cable 5";8,00

Read with quotes these are one row of 8,00. A text that has line breaks in it stands between quotes as well, but its
lines do not all have as many fields as the names, without a text where an amount is. Where they have, only a person
knows, who says so by `quotes: true`. The engine tells whether a file has any such text at all; only then its lines are
looked at.
"""

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from treadle.analyst.declared.errors import AnalystError, HeldRows
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.encodings import in_bytes, opener
from treadle.analyst.reading.extra_fields import Head
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, literal, quoted, scan

_PIECE = 1 << 20
# The engine reads no longer lines.
_LONGEST = 4 << 20
# Such as those of a currency, or of a mark for debit and credit.
_MOST_LETTERS = 3
# A quote may stand behind blanks that begin a field, and one behind a closing quote and blanks does not open a text,
# but goes on with that.
_BLANKS = (*[(b"  ", b" ")] * 3, (b" x", b"x"), (b"x ", b"x"), (b'" "', b'""'))
# What opens and closes nothing becomes one sign, step by step, as `re` takes far longer.
_RUNS = tuple((b"x" * times, b"x") for times in (16, 4, 2, 2, 2))
_MOST_SHAPES = 10_000


def refuse_held_rows(
    session: Session, source: Source, file: Path, read: Path, head: Head, options: Mapping[str, "exp.Expr"]
) -> None:
    """Refuses a file in which lines that are rows by themselves stand in one pair of quotes; once in a session.

    Args:
        session: reads the file.
        source: what it is of; without a measure that is an amount, lines with as many fields as the names are rows.
        file: the file.
        read: it, or what was made of it for the engine.
        head: how it begins.
        options: how the engine reads it.

    Raises:
        HeldRows: it is refused.
    """
    delimiter, encoding = options["delim"].this, options["encoding"].this
    figures = [head.names.index(name) for name in _amounts(source) if name in head.names]
    known = (file, delimiter, *figures)
    asked = source.text.quotes is None and (figures or (source.dimensions and len(head.names) > 1))
    if not asked or known in session.sound:
        return
    lines = _Lines(delimiter, encoding, {len(head.names), len(head.names) + head.extra}, figures)
    end = b"\r" if head.end == "\r" else b"\n"
    sound = all(map(lines.closes_each, _pieces(session, read, encoding, end)))
    if sound or not _may_hold(session, read, head, options):
        session.sound.add(known)
        return
    if held := _held(_pieces(session, read, encoding, end), end, lines):
        _, left_out = session.copies.get(read, (file, 0))
        first, last = (number + left_out for number in held)
        raise HeldRows(
            f"source {source.name!r}: in {file.name} a quote opens in line {first} that closes in line {last}, so that "
            f"these lines would be one row, though each has the fields{' and figures' if figures else ''} of one: "
            f"if quotes are part of its texts, declare 'quotes: false' under 'text'; if this is a text of several "
            f"lines, as others between quotes are, 'quotes: true'; if neither, take this quote out of the file"
        )
    session.sound.add(known)


def _may_hold(session: Session, read: Path, head: Head, options: Mapping[str, "exp.Expr"]) -> bool:
    """Whether a text has a line break, and all the delimiters that lines of it would have as rows; or is not read.

    Where a quote opens in one field and closes in the same of a later line, the row has as many fields as others.
    """
    delimiter = literal(options["delim"].this)
    end = call("chr", exp.Literal.number(13 if head.end == "\r" else 10))
    found: list[exp.Expr] = []
    for text in map(quoted, head.names):
        parts = exp.func("len", call("string_split", text, delimiter.copy()))
        broken = call("contains", text.copy(), end.copy())
        found.append(exp.and_(broken, exp.GTE(this=parts, expression=exp.Literal.number(len(head.names)))))
    try:
        rows = scan("read_csv", [session.plain(read)], options)
        return bool(session.run(exp.select("1").from_(rows).where(exp.or_(*found)).limit(1)))
    except AnalystError:
        session.check()
        return True


def _amounts(source: Source) -> list[str]:
    """The columns of the source that hold amounts, and no texts that are counted or tell a sign."""
    return [
        column
        for measure in source.measures
        if measure.aggregation != "count"
        for column in (measure.formula.amounts if measure.formula else measure.columns)
    ]


class _Lines:
    """What the lines of a file are, as it is read.

    Args:
        delimiter: what is between fields.
        encoding: that of the file.
        widths: how many fields a row has.
        figures: the places of its amounts.
    """

    def __init__(self, delimiter: str, encoding: str, widths: Collection[int], figures: Sequence[int]) -> None:
        self._delimiter, self._encoding, self._widths, self._figures = delimiter, encoding, widths, figures
        between = re.escape(delimiter)
        self._quoted = re.compile(f'(?:(?<={between})|^) *"(?:[^"]|"")*" *(?={between}|$)')
        kept = delimiter.encode(encoding if encoding == "latin-1" else "utf-8")
        kinds = bytes(sign if sign in b' "\r\n' + kept else ord("x") for sign in range(256))
        self._between_quotes = bytes(set(range(256)) - set(b'"\r\n' + kept))
        self._kinds = kinds if len(kept) == 1 else None
        self.stays_open: Callable[[bytes], bool] = lru_cache(_MOST_SHAPES)(self._stays_open)

    def closes_each(self, piece: bytes) -> bool:
        """Whether each field of these lines has an even number of quotes, so that none is open at the end of its line.

        So are most files with quotes, and this look takes a tenth of the time. One with a delimiter in a text is not.
        """
        return b'"' not in piece.translate(None, self._between_quotes).replace(b'""', b"")

    def shapes(self, piece: bytes) -> bytes:
        """Lines by which quotes open and close as in these, and of which many are alike."""
        blanks = b' "' in piece
        shapes = piece if self._kinds is None else piece.translate(self._kinds)
        if self._delimiter not in "x ":
            for several, one in (*_BLANKS, *_RUNS) if blanks else ((b" ", b"x"), *_RUNS):
                shapes = shapes.replace(several, one)
        return shapes

    def _stays_open(self, shape: bytes) -> bool:
        # Read on, it takes what follows into its last field.
        lines = [self._text(shape) + "\n", ""]
        after_blanks = self._delimiter != " "
        try:
            return len(list(csv.reader(lines, delimiter=self._delimiter, skipinitialspace=after_blanks))) == 1
        except csv.Error:
            return False

    def is_row(self, line: bytes) -> bool:
        """Whether a line has the fields of a row, none of which is a text where an amount is; or is empty."""
        fields = self._fields(line)
        if fields is not None and not self._figures:
            return True
        letters = [sum(map(str.isalpha, fields[at])) for at in self._figures] if fields else []
        most = _MOST_LETTERS if self.has_figure(line) else 0
        return fields is not None and all(count <= most for count in letters)

    def has_figure(self, line: bytes) -> bool:
        """Whether a row has an amount; where there is none to have, whether anything stands in it."""
        fields = self._fields(line)
        if not self._figures:
            return bool(fields)
        return fields is not None and any(any(map(str.isdecimal, fields[at])) for at in self._figures if fields)

    def _fields(self, line: bytes) -> list[str] | None:
        """The fields of a row, none if the line is empty; None if it is no row."""
        text = self._text(line)
        if not text.strip():
            return []
        alone = self._quoted.sub(lambda found: found[0].replace(self._delimiter, " "), text)
        each = (one.split(self._delimiter) for one in (text, alone))
        return next((fields for fields in each if len(fields) in self._widths), None)

    def _text(self, line: bytes) -> str:
        encoding = "utf-8" if self._encoding == "utf-16" else self._encoding
        return line.decode(encoding, errors="replace").rstrip("\r")


def _held(pieces: Iterator[bytes], end: bytes, lines: _Lines) -> tuple[int, int] | None:
    """The first and the last of such lines, by their numbers; None if there are none."""
    number, opened = 0, 0
    held, figure = False, False
    for piece in pieces:
        if not opened and lines.closes_each(piece):
            number += piece.count(end)
            continue
        shapes = lines.shapes(piece).removesuffix(end).split(end)
        if not opened and not any(map(lines.stays_open, set(shapes))):
            number += len(shapes)
            continue
        for line, shape in zip(piece.removesuffix(end).split(end), shapes, strict=True):
            number += 1
            if opened:
                goes_on = lines.stays_open(b'"' + shape)
            elif not lines.stays_open(shape):
                continue
            else:
                opened, held, figure, goes_on = number, True, False, True
            held = held and lines.is_row(line)
            figure = figure or (held and lines.has_figure(line))
            if not goes_on and held and figure:
                return opened, number
            opened = opened if goes_on else 0
    return None


def _pieces(session: Session, file: Path, encoding: str, end: bytes) -> Iterator[bytes]:
    """The file in pieces of whole lines, as text of one byte a sign where that is ASCII."""
    tail = b""
    try:
        with _opened(file, encoding) as opened:
            while read := opened.read(_PIECE):
                session.check()
                piece = tail + (read.encode() if isinstance(read, str) else read)
                cut = piece.rfind(end) + 1
                tail = piece[cut:]
                if cut:
                    yield piece[:cut]
                elif len(tail) > _LONGEST:
                    return
    except (OSError, UnicodeError):
        # What is wrong with it is told by whoever reads the rows.
        return
    if tail:
        yield tail


def _opened(file: Path, encoding: str) -> Any:
    """The file as text if it is of two bytes a sign, else as bytes."""
    return opener(file)(encoding) if encoding == "utf-16" else in_bytes(file)
