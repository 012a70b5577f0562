"""Tables: every row on a line where the terminal is wide enough, and nothing lost where it is not.

A column gives way in the order of what it can bear: texts are shortened or wrapped between words, then whole columns
move below their row, under their heading. Ids, figures and amounts are shown with every digit, at any width.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from treadle.cli.terminal import clean, console, shorten, showable, wrapped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GAP = 2
_LEAST = 20
"""Cells below which a text is not squeezed into a column: it is set below the row then."""
_LONGEST = 60
"""Cells of a word for which a column is kept wide enough."""


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    cut: Sequence[str] = (),
    styles: Mapping[str, str] | None = None,
) -> None:
    """Prints a table on standard output; without a terminal every row on one line, however long.

    Args:
        columns: their headings.
        rows: their cells.
        right: the headings of the columns that are aligned to the right.
        whole: the headings of the columns that are never wrapped, besides the first and those.
        cut: the headings of the columns whose texts are shortened to one line rather than wrapped.
        styles: how cells that hold just such a word are shown, where colours are.
    """
    from rich.cells import cell_len

    out = console()
    shown = [[_line("" if cell is None else str(cell)) for cell in row] for row in rows]
    made = []
    for number, heading in enumerate(columns):
        texts = [row[number] for row in shown]
        is_whole = number == 0 or heading in right or heading in whole
        longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
        width = max(map(cell_len, (heading, *texts)))
        least = width if is_whole else min(width, max(cell_len(heading), _LEAST, min(longest, _LONGEST)))
        made.append(_Column(number, heading, width, least, is_whole, heading in right, heading in cut and not is_whole))
    if out.is_terminal:
        _give_way(made, out.width)
    _Printed(out, [one for one in made if one.beside], [one for one in made if not one.beside], styles or {}).all(shown)


@dataclass(slots=True)
class _Column:
    """A column: how wide it is, how wide it must be, and whether it stands beside the others or below."""

    number: int
    heading: str
    width: int
    least: int
    whole: bool
    right: bool
    cut: bool
    beside: bool = field(default=True)


def _give_way(columns: Sequence[_Column], room: int) -> None:
    """Makes the columns as wide as fits into `room` cells, and moves those below for which there is none."""
    leaving = [*reversed([one for one in columns if not one.whole]), *reversed([one for one in columns if one.whole])]
    for one in [None, *(one for one in leaving if one.number)]:
        if one is not None:
            one.beside = False
        there = [each for each in columns if each.beside]
        left = room - _GAP * (len(there) - 1)
        if sum(each.least for each in there) <= left:
            break
    cap = max((each.width for each in there), default=0)
    while cap and sum(min(each.width, max(each.least, cap)) for each in there) > left:
        cap -= 1
    for each in there:
        each.width = min(each.width, max(each.least, cap))
    if len(there) == 1:
        there[0].width = min(there[0].width, room)


@dataclass(slots=True)
class _Printed:
    """A table as it is printed."""

    out: "Console"
    beside: list[_Column]
    below: list[_Column]
    styles: Mapping[str, str]

    def all(self, rows: Iterable[Sequence[str]]) -> None:
        """Prints the headings and the rows."""
        headings = {one.number: one.heading for one in self.beside}
        self._row([headings.get(number, "") for number in range(max(headings) + 1)], "bold")
        if self.out.is_terminal:
            rule = "─" if showable("─") else "-"
            self._print(self._beside([[rule * one.width] for one in self.beside]))
        for row in rows:
            self._row(row)
            for line in self._below(row):
                self._print(line)

    def _row(self, row: Sequence[str], style: str = "") -> None:
        cells = [self._cell(one, row[one.number], style) for one in self.beside]
        for parts in zip_longest(*cells):
            self._print(self._beside([[part or ""] for part in parts]))

    def _cell(self, column: _Column, text: str, style: str) -> list["Text"]:
        from rich.text import Text

        if column.cut:
            text = shorten(text, column.width)
        cell = Text(text, style=style or self.styles.get(text, ""))
        return wrapped(cell, max(1, column.width)) if self.out.is_terminal else [cell]

    def _beside(self, cells: Sequence[Sequence["Text | str"]]) -> "Text":
        from rich.cells import cell_len
        from rich.text import Text

        line = Text()
        for column, (part,) in zip(self.beside, cells, strict=True):
            if line or column is not self.beside[0]:
                line.append(" " * _GAP)
            blank = " " * max(0, column.width - cell_len(part if isinstance(part, str) else part.plain))
            for piece in (blank, part) if column.right else (part, blank):
                line.append(piece)
        return line

    def _below(self, row: Sequence[str]) -> Iterator["Text"]:
        """The cells of the columns that stand below, each after its heading; short ones share a line."""
        from rich.text import Text

        line = Text("  ")
        for column in self.below:
            text = row[column.number]
            if not text:
                continue
            heading = f"{column.heading}: " if column.heading else ""
            if column.cut:
                text = shorten(text, max(_LEAST, self.out.width - len(heading) - 2))
            item = Text.assemble((heading, "dim"), (text, self.styles.get(text, "")))
            if line.plain.strip() and line.cell_len + _GAP + item.cell_len > self.out.width:
                yield line
                line = Text("  ")
            if line.plain.strip():
                line.append(" " * _GAP)
            line.append(item)
            if line.cell_len > self.out.width:
                *above, line = wrapped(item, max(1, self.out.width - 4))
                for at, part in enumerate(above):
                    yield Text("    " if at else "  ").append(part)
                line = Text("    ").append(line)
        if line.plain.strip():
            yield line

    def _print(self, line: "Text") -> None:
        line.rstrip()
        if self.out.is_terminal:
            self.out.print(line, soft_wrap=True)
        else:
            print(line.plain)


def _line(text: str) -> str:
    return clean(text).replace("\n", " ").replace("\t", " ")
