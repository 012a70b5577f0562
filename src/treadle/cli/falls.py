"""A waterfall on the terminal: a bar for everything that took time, as long as it took, where it began."""

from collections.abc import Sequence
from decimal import Decimal

import click

from treadle.cli.terminal import clean, console, shorten, showable
from treadle.timetravel.bars import Bar
from treadle.timetravel.waterfall import Waterfall, under_way

_LEAST_NAME, _LEAST_BAR, _WIDEST_BAR = 12, 6, 60
_WORDS = {"attempt": "failed: ", "summary": "summary: ", "run": "agent ", "wait": "waits: ", "interrupted": ""}
_FILL = {"step": "─", "model": "█", "attempt": "░", "summary": "▓", "tool": "▒", "run": "▒", "wait": "·"}
_PLAIN = {"step": "-", "model": "#", "attempt": "x", "summary": "s", "tool": "=", "run": "=", "wait": "."}


def print_waterfall(found: Waterfall) -> None:
    """Prints it on standard output; a narrow terminal has no room for bars, and keeps every digit."""
    from rich.cells import cell_len

    starts = under_way(found.bars)
    whole = max([starts[at] + (bar.seconds or 0.0) for at, bar in enumerate(found.bars)], default=0.0)
    figures = [_figures(bar) for bar in found.bars]
    heads = ("seconds", "tokens", "cost")
    widths = [max(len(head), *(len(row[at]) for row in figures), 0) for at, head in enumerate(heads)]
    names = [f"{'  ' * bar.depth}{_WORDS.get(bar.kind, '')}{clean(bar.name)}" for bar in found.bars]
    room = max(console().width, 60) - sum(widths) - 2 * len(widths)
    if not console().is_terminal:
        room = max(map(cell_len, names), default=0) + _WIDEST_BAR
    longest = max([*map(cell_len, names), _LEAST_NAME])
    space = min(_WIDEST_BAR, max(0, room - longest - 2))
    if space < _LEAST_BAR:
        space = min(_WIDEST_BAR, max(0, room - _LEAST_NAME - 2))
    space = space if space >= _LEAST_BAR else 0
    name = max(_LEAST_NAME, min(longest, room - (space + 2 if space else 0)))
    _line(name, space, widths, "", "", heads)
    for at, bar in enumerate(found.bars):
        drawn = _bar(bar, starts[at], whole, space)
        _line(name, space, widths, shorten_start(names[at], name), drawn, figures[at])
    waited = f", of which nobody worked on it for {found.waited:,.2f} s (not in the bars)" if found.waited else ""
    click.echo(f"\n{found.seconds:,.2f} s in all{waited}")
    if any(bar.shared for bar in found.bars):
        click.echo("what is marked with * was done and paid in the run that it is a fork of")


def _line(name: int, space: int, widths: Sequence[int], text: str, bar: str, figures: Sequence[str]) -> None:
    from rich.cells import set_cell_size

    cells = [set_cell_size(text, name), *([f"{bar:<{space}}"] if space else [])]
    cells += [f"{figure:>{width}}" for figure, width in zip(figures, widths, strict=True)]
    click.echo("  ".join(cells).rstrip())


def shorten_start(text: str, most: int) -> str:
    """`text`, indented as it is, on one line of at most `most` characters."""
    inner = text.lstrip(" ")
    indent = min(len(text) - len(inner), most // 2)
    return " " * indent + shorten(clean(inner), most - indent)


def _figures(bar: Bar) -> tuple[str, str, str]:
    """Seconds, tokens and dollars of a bar, with all their digits."""
    took = "under way" if bar.seconds is None else f"{bar.seconds:,.2f}"
    mark = "*" if bar.shared else ""
    if bar.usage is None:
        return f"{mark}{took}", "", ""
    about = "~" if bar.usage.estimated else ""
    return f"{mark}{took}", f"{about}{bar.usage.total_tokens:,}", _dollars(bar.cost, about)


def _dollars(cost: Decimal | None, about: str) -> str:
    return "unknown" if cost is None else f"{about}${cost:f}"


def _bar(bar: Bar, start: float, whole: float, space: int) -> str:
    if not space or bar.kind == "interrupted" or (bar.kind == "wait" and bar.depth == 0):
        return ""
    share = space / whole if whole else 0.0
    begin = min(round(start * share), space - 1)
    length = 1 if bar.seconds is None else max(1, round(bar.seconds * share))
    fill = _FILL[bar.kind] if showable("".join(_FILL.values())) else _PLAIN[bar.kind]
    return " " * begin + fill * min(length, space - begin)
