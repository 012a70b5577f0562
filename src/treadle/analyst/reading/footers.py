"""Footers: lines of a CSV file with other fields than there are names, as totals and counts of rows often have.

    Account;Amount;Currency
    1000;1.250,00;EUR
    Summe;1.250,00
    *** 1 line

No row has: the engine reads no such line, and one that was cut off is not to be lost. Those that are declared to be
totals are left out of a copy of the file, where an empty line takes the place of each.
"""

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.amounts import BLANKS
from treadle.analyst.reading.copies import written
from treadle.analyst.reading.encodings import opener, quoting
from treadle.analyst.reading.extra_fields import Head, all_fields
from treadle.analyst.reading.faults import other_width
from treadle.analyst.reading.number_spelling import CURRENCIES
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.totals import key_columns
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import scan

_CHECKED = 10_000
_WORD = re.compile(r"[^\W\d_]+")
_NOT_READ = (OSError, UnicodeError, csv.Error)


class Line(Struct, frozen=True):
    """A row of a CSV file, or what stands in the place of one.

    Attributes:
        number: that of its first line, from 1 on.
        lines: how many it has.
        fields: what stands in it.
        text: it, as it stands in the file.
    """

    number: int
    lines: int
    fields: list[str]
    text: str


def without_footers(
    session: Session, source: Source, file: Path, read: Path, head: Head, options: Mapping[str, "exp.Expr"]
) -> Path | None:
    """Returns a copy of a file, from the names on and in UTF-8, without such lines of totals; None if it has none.

    Args:
        session: reads the file, and keeps the copy.
        source: says what marks lines of totals.
        file: the file.
        read: it, or what was made of it for the engine.
        head: how it begins.
        options: how the engine reads it.

    Raises:
        AnalystError: a line with fewer fields is not declared to be one of totals.
    """
    if (file,) in session.cut:
        return session.cut[file,]
    known = _known(source, file)
    if not source.text.totals or source.text.ruled or len(head.names) < 2:
        return None
    if known not in session.cut:
        is_marked = _marked(source, head, session.doubtful.setdefault(known, []))
        is_read = _is_read(session, read, head, options)
        session.cut[known] = None if is_read else _cut(session, source, file, head, is_marked)
    return session.cut[known]


def left_out(session: Session, source: Source, file: Path) -> Sequence[str]:
    """Returns the lines that a source leaves out of a file as totals, and that may be rows that were cut off."""
    return session.doubtful.get(_known(source, file), ())


def _known(source: Source, file: Path) -> tuple[object, ...]:
    return (file, source.text, tuple(key_columns(source)))


def leave_out(session: Session, source: Source, file: Path, head: Head, says_so: Callable[[str], bool]) -> list[Line]:
    """Has a session read a file without any of its lines with fewer fields than there are names, and returns these.

    Args:
        session: reads the file.
        source: what it is of.
        file: the file.
        head: how it begins.
        says_so: whether a line that begins with a text is no row; one with more fields is left out if it is none.
    """
    found: list[Line] = []

    def is_marked(line: Line) -> bool:
        if is_none := len(line.fields) < len(head.names) or says_so(first_text(line.fields)):
            found.append(line)
        return is_none

    session.cut[file,] = _cut(session, source, file, head, is_marked)
    return found


def first_text(fields: Sequence[str]) -> str:
    """Returns what stands first in a line, as marks are compared with it."""
    return next(filter(None, map(plain, fields)), "")


def plain(text: str) -> str:
    """Returns a text without what does not count in a mark."""
    return text.lower().strip(BLANKS).rstrip(f":{BLANKS}")


def _is_read(session: Session, file: Path, head: Head, options: Mapping[str, "exp.Expr"]) -> bool:
    try:
        rows = scan("read_csv", [session.plain(file)], all_fields(head, options))
        session.run(exp.select(exp.Count(this=exp.Star())).from_(rows))
    except AnalystError:
        session.check()
        return False
    return True


def _cut(session: Session, source: Source, file: Path, head: Head, is_marked: Callable[[Line], bool]) -> Path | None:
    copy = session.folder / f"cut{len(session.cut)}.csv"
    session.copies[copy] = (file, source.text.skip)
    found, width = False, len(head.names)
    widths = {width, width + head.extra}
    try:
        with written(copy) as out:
            for line in _lines(session, source, file):
                is_whole = len(line.fields) in (0, width + head.extra) or _holds_rows(source, line, widths)
                if not is_whole and is_marked(line):
                    found = True
                    out.write((head.end or "\n") * line.lines)
                elif is_whole or len(line.fields) >= width:
                    out.write(line.text)
                else:
                    told = other_width(line.fields, len(line.fields), width, line.text.strip())
                    where = f"{file.name}, line {line.number}"
                    raise AnalystError(f"source {source.name!r}: {where}, cannot be read, {told}")
    except _NOT_READ:
        # What is wrong with it is told by whoever reads the rows.
        return None
    return copy if found else None


def _holds_rows(source: Source, line: Line, widths: Collection[int]) -> bool:
    """Whether lines stand in one pair of quotes, or behind one that is never closed, of which any may be a row."""
    if line.lines < 2:
        return False
    alone = re.split(r"[\r\n]+", line.text)
    read = [csv.reader(alone, delimiter=source.text.delimiter, quoting=csv.QUOTE_NONE)]
    read += [csv.reader([one], delimiter=source.text.delimiter) for one in alone if source.text.has_quotes]
    return any(len(fields) in widths for rows in read for fields in rows)


def _marked(source: Source, head: Head, doubtful: list[str]) -> Callable[[Line], bool]:
    """What tells whether a line is one of totals, as `totals.marks` does of rows.

    One with more fields may be a row of which a text has the delimiter in it, and one of several lines have a row among
    them: a mark is what it begins with, or none. One with fewer may be a row that was cut off: behind the mark, in a
    key, or, where it begins like a mark as a name may, behind the text of another field. It is put among those that
    are doubtful.
    """
    marks = [plain(mark) for mark in source.text.totals]
    any_text = (re.escape(mark).replace("%", ".*").replace("_", ".") for mark in marks if "%" in mark)
    forms = [re.compile(form, re.DOTALL) for form in any_text]
    keys = [head.names.index(column) for column in key_columns(source) if column in head.names]

    def is_mark(text: str) -> bool:
        return bool(text) and (text in marks or any(form.fullmatch(text) for form in forms))

    def is_marked(line: Line) -> bool:
        texts = list(map(plain, line.fields))
        if is_mark(first := first_text(line.fields)):
            if len(texts) < len(head.names) and any(_is_worded(text) for text in texts[texts.index(first) + 1 :]):
                doubtful.append(line.text.strip())
            return True
        is_sure = len(texts) <= len(head.names) + head.extra and line.lines == 1
        by_text = is_sure and any(map(is_mark, texts))
        # Where none of the keys is reached, it may be a row that was cut off.
        reached = [texts[at] for at in keys if at < len(texts)]
        by_none = "" in marks and bool(reached) and not any(reached)
        if len(texts) < len(head.names) and any(texts) and (by_text or (by_none and len(texts) <= max(keys) + 1)):
            doubtful.append(line.text.strip())
        return by_text or by_none

    return is_marked


def _is_worded(text: str) -> bool:
    """Whether a field of a line of totals is more than an amount, its currency or a sign."""
    return any(len(word) > 1 and word.upper() not in CURRENCIES for word in _WORD.findall(text))


def _lines(session: Session, source: Source, file: Path) -> Iterator[Line]:
    """What stands in a file, from the line of names on; it may raise one of `_NOT_READ`."""
    encoding = "utf-8-sig" if source.text.encoding == "utf-8" else source.text.encoding
    taken: list[str] = []

    def kept(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    quotes = quoting(source.text.has_quotes)
    with opener(file)(encoding) as lines:
        for _ in range(source.text.skip):
            lines.readline()
        number = source.text.skip + 1
        for count, fields in enumerate(csv.reader(kept(lines), delimiter=source.text.delimiter, quoting=quotes)):
            if count % _CHECKED == 0:
                session.check()
            yield Line(number, len(taken), fields, "".join(taken))
            number += len(taken)
            taken.clear()
