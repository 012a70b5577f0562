"""A comparison on the terminal: the differences with a bar for how much of them each carries, and what they say."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from treadle.cli.terminal import clean, console, print_table

if TYPE_CHECKING:
    from treadle.analyst import Comparison, Part

_STYLES = {
    "match": "green",
    "minor_diff": "yellow",
    "major_diff": "red",
    "missing_in_a": "magenta",
    "missing_in_b": "magenta",
}
_WIDTH, _PARTS = 10, 5
_HEADING = "of all |A - B|"


def print_comparison(found: "Comparison") -> None:
    """Prints one comparison on standard output."""
    total = found.summary
    click.echo(clean(f"{found.measure}: {found.source_a} (A) against {found.source_b} (B)"))
    if found.filters:
        click.echo(clean(f"where {' and '.join(found.filters)}"))
    click.echo()
    rows: list[list[object]] = []
    if found.dimensions:
        rows = [
            [*(one.key.get(name) for name in found.dimensions), _amount(one.source_a_value),
             _amount(one.source_b_value), _amount(one.diff), _percent(one.percentage_diff),
             _bar(one.absolute_diff / total.total_absolute_diff if total.total_absolute_diff else 0), one.status]
            for one in found.top_differences
        ]  # fmt: skip
    label = ["total", *("" for _ in found.dimensions[1:])] if found.dimensions else []
    totals = [total.total_source_a, total.total_source_b, total.total_diff]
    rows.append([*label, *map(_amount, totals), _percent(total.total_percentage_diff), "", total.total_status])
    figures = ["A", "B", "A - B", "%"]
    columns = [*found.dimensions, *figures, _HEADING, "status"]
    if not _fits([columns, *rows]):
        columns, rows = [*columns[:-2], "status"], [[*row[:-2], row[-1]] for row in rows]
    print_table(columns, rows, right=figures, whole=[*found.dimensions, _HEADING, "status"], styles=_STYLES)
    click.echo()
    if len(found.top_differences) < total.differences:
        count = len(found.top_differences)
        click.echo(f"The {count:,} largest of {total.differences:,} differences; the total is over all.")
    _print_parts(found)
    click.echo(clean(found.interpretation))
    for warning in found.warnings:
        click.echo(clean(f"Warning: {warning.message}"))
    click.echo()


def _fits(rows: Sequence[Sequence[object]]) -> bool:
    """Whether a table of these rows is no wider than the terminal; without one, every table fits."""
    out = console()
    widths = [max(len("" if cell is None else str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return not out.is_terminal or sum(widths) + 3 * len(widths) <= out.width


def _print_parts(found: "Comparison") -> None:
    """Which values of each dimension carry the differences, where that says more than the list of keys."""
    shown = {
        name: parts
        for name, parts in found.by_dimension.items()
        if len(parts) > 1 and any(part.differences > 1 for part in parts)
    }
    if len(found.dimensions) < 2 or not shown:
        return
    rows: list[Sequence[object]] = []
    for name, parts in shown.items():
        rows += [_part(name, part) for part in parts[:_PARTS]]
        if len(parts) > _PARTS:
            rows.append((name, "…", "", "", ""))
    columns = ["where", "value", "|A - B|", "keys that differ", _HEADING]
    print_table(columns, rows, right=["|A - B|", "keys that differ"], whole=["value", _HEADING])
    click.echo()


def _part(name: str, part: "Part") -> tuple[object, ...]:
    value = "(none)" if part.value is None else part.value
    return name, value, _amount(part.absolute_diff), f"{part.differences:,} of {part.rows:,}", _bar(part.share / 100)


def _bar(share: object) -> str:
    """A bar of at most ten characters and the percentage; what is not zero is seen."""
    part = min(max(float(str(share)), 0.0), 1.0)
    full, fraction = divmod(round(part * _WIDTH * 8), 8)
    bar = "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[fraction]
    if part and not bar:
        bar = "▏"
    if not _prints(bar):
        bar = "#" * max(round(part * _WIDTH), 1 if part else 0)
    return f"{bar:<{_WIDTH}} {part * 100:5.1f} %"


def _prints(text: str) -> bool:
    """Whether standard output can show the text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _amount(value: object) -> str:
    return "" if value is None else f"{value:,f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"
