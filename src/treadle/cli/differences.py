"""A comparison on the terminal: the differences with a bar for how much of them each carries, and what they say."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from treadle.cli.table import print_table
from treadle.cli.terminal import clean, console, prose, showable
from treadle.visible import seen

if TYPE_CHECKING:
    from treadle.analyst import Claim, Comparison, Part
    from treadle.analyst.asking.row_compare import RowComparison

Cells = Sequence[Sequence[object]]

_STYLES = {
    "match": "green",
    "minor_diff": "yellow",
    "major_diff": "red",
    "missing_in_a": "magenta",
    "missing_in_b": "magenta",
}
# What they are called where there is little room.
_SHORT = {"minor_diff": "minor", "major_diff": "major", "missing_in_a": "not in A", "missing_in_b": "not in B"}
_STYLES |= {short: _STYLES[name] for name, short in _SHORT.items()}
_WIDTH, _NARROW, _PARTS, _KEY = 10, 6, 5, 12
_HEADING, _BY_CURRENCY = "of all |A - B|", "of its currency"
_LINE = 100


def say_conditions(found: "Comparison | RowComparison") -> None:
    """Says under which conditions sources were compared, their default filters among them."""
    if found.filters:
        _say(f"where {' and '.join(found.filters)}")
    for letter, alone in (("A", found.filters_a), ("B", found.filters_b)):
        if alone:
            _say(f"in {letter} only where {' and '.join(alone)}")


def print_comparison(found: "Comparison", explain: bool = False) -> None:
    """Prints one comparison on standard output; with what each sentence rests on if `explain`."""
    total = found.summary
    a, b = ("" if found.unit or not unit else f", in {unit}" for unit in (found.unit_a, found.unit_b))
    _say(f"{found.measure}: {found.source_a} (A{a}) against {found.source_b} (B{b})")
    say_conditions(found)
    click.echo()
    _print_differences(found)
    click.echo()
    if len(found.top_differences) < total.differences:
        count = len(found.top_differences)
        _say(f"The {count:,} largest of {total.differences:,} differences; the total is over all.")
    _print_parts(found)
    _print_subtotals(found)
    _say(found.interpretation)
    for warning in found.warnings:
        _say(f"Warning: {warning.message}")
    click.echo()
    if explain:
        _explain(found)


def _explain(found: "Comparison") -> None:
    """The claims behind the sentences, and the statements that prove them, to be run in DuckDB one after the other."""
    click.echo("-- What each sentence rests on, as SQL for DuckDB. First the keys side by side:")
    for statement in found.sql:
        click.echo(f"{clean(statement)};\n")
    first: dict[str, int] = {}
    for number, claim in enumerate([*found.claims, *found.warnings], 1):
        for line in clean(claim.message).splitlines():
            click.echo(f"-- {number}. {line}")
        click.echo(f"--    {clean(claim.kind)}: {_facts(claim)}")
        if claim.filters:
            click.echo(f"--    where {clean(' and '.join(claim.filters))}")
        before = first.setdefault(claim.sql, number)
        told = f"--    by the query of {before}\n" if before < number else f"{clean(claim.sql)};\n"
        click.echo(told if claim.sql else "")


def _facts(claim: "Claim") -> str:
    """The figures of a claim in a line."""
    told = [f"{name} = {_fact(value)}" for name, value in claim.facts.items() if value not in (None, "", [])]
    return " ".join(clean(", ".join(told)).split())


def _fact(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_fact(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_fact, value))}]"
    return f"{value:f}" if isinstance(value, Decimal) else seen(value)


def _say(text: str) -> None:
    """Prints a sentence, at a terminal in lines that end between words."""
    click.echo(prose(clean(text), most=_LINE))


def _print_differences(found: "Comparison") -> None:
    """The largest differences with their bars, and the total; as much of it as the terminal is wide."""
    keys, heading = list(found.dimensions), _BY_CURRENCY if found.currency else _HEADING
    wholes = [found.absolute_of(one.key) for one in found.top_differences]
    shares = [one.absolute_diff / whole if whole else 0
              for one, whole in zip(found.top_differences, wholes, strict=True)]  # fmt: skip
    rows: list[list[object]] = [
        [*(seen(one.key.get(name)) for name in keys), _amount(one.source_a_value), _amount(one.source_b_value),
         _amount(one.diff), _percent(one.percentage_diff, one.diff), one.status]
        for one in (found.top_differences if keys else ())
    ]  # fmt: skip
    totals = _totals(found)
    rows += totals
    figures = ["A", "B", "A - B", "%"]
    heads = [*keys, *figures, "status"]

    def shaped(heading: str, bars: Sequence[str], named: Mapping[str, str]) -> Cells:
        ends = [*bars, *("" for _ in totals)]
        lines = [[*row[:-1], bar, named.get(str(row[-1]), row[-1])] for row, bar in zip(rows, ends, strict=True)]
        return [[*heads[:-1], heading, heads[-1]], *lines]

    shapes: list[Cells] = [[heads, *rows]]
    if keys:
        narrow = shaped("share", [_blocks(share, _NARROW) for share in shares], _SHORT)
        shapes = [shaped(heading, [_bar(share) for share in shares], {}), narrow, *shapes]
    shapes += [_with_short_keys(one, len(keys)) for one in shapes]
    shape = next((one for one in shapes if _fits(one)), shapes[-1])
    whole = [*keys, heading, "share", "status"]
    print_table([str(head) for head in shape[0]], shape[1:], right=figures, whole=whole, styles=_STYLES)


def _totals(found: "Comparison") -> list[list[object]]:
    """The totals as rows of the table: one, or one a currency."""
    keys, total = list(found.dimensions), found.summary
    if not found.currency:
        label: list[object] = ["total", *("" for _ in keys[1:])] if keys else []
        totals = [total.total_source_a, total.total_source_b, total.total_diff]
        rate = _percent(total.total_percentage_diff, total.total_diff)
        return [[*label, *map(_amount, totals), rate, total.total_status]]
    rows: list[list[object]] = []
    for one in total.by_currency:
        code = seen(one.currency)
        named: list[object] = [code if name == found.currency else "" for name in keys]
        named[0] = f"total {code}" if keys[0] == found.currency else "total"
        amounts = map(_amount, (one.source_a_value, one.source_b_value, one.diff))
        rows.append([*named, *amounts, _percent(one.percentage_diff, one.diff), one.status])
    return rows


def _room(rows: Cells) -> int:
    """How many columns of the terminal a table of these rows leaves; negative if it is too wide."""
    from rich.cells import cell_len

    widths = [max(cell_len("" if cell is None else str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return console().width - sum(widths) - 2 * (len(widths) - 1)


def _fits(rows: Cells) -> bool:
    """Whether a table of these rows is no wider than the terminal; without one, every table fits."""
    return not console().is_terminal or _room(rows) >= 0


def _with_short_keys(rows: Cells, keys: int) -> Cells:
    """The rows with what is too long of their keys left out in the middle; figures keep every digit."""
    from rich.cells import cell_len

    plain = [[*row] for row in rows]
    while (room := _room(plain)) < 0:
        widths = [max(cell_len(str(row[at] or "")) for row in plain) for at in range(keys)]
        longest = max(widths, default=0)
        if longest <= _KEY:
            break
        most = max(_KEY, longest + room, *(width for width in widths if width < longest))
        for row in plain:
            row[:keys] = [_cut(cell, min(most, longest - 1)) for cell in row[:keys]]
    return plain


def _cut(cell: object, most: int) -> object:
    from rich.cells import cell_len, set_cell_size

    text = str(cell or "")
    if cell_len(text) <= most:
        return cell
    end, tail = most // 3, text
    while cell_len(tail) > end:
        tail = tail[1:]
    return f"{set_cell_size(text, most - end - 1).rstrip()}…{tail}"


def _print_parts(found: "Comparison") -> None:
    """Which values of each dimension carry the differences, where that says more than the list of keys."""
    shown = {
        name: parts
        for name, parts in found.by_dimension.items()
        if len(parts) > 1 and any(part.differences > 1 for part in parts)
    }
    if len(found.dimensions) < 2 or not shown:
        return
    heading = _BY_CURRENCY if found.currency else _HEADING
    rows: list[Sequence[object]] = []
    for name, parts in shown.items():
        rows += [_part(name, part) for part in parts[:_PARTS]]
        if len(parts) > _PARTS:
            rows.append((name, "…", "", "", ""))
    columns = ["where", "value", "|A - B|", "keys that differ", heading]
    print_table(columns, rows, right=["|A - B|", "keys that differ"], whole=["value", heading])
    click.echo()


def _part(name: str, part: "Part") -> tuple[object, ...]:
    value = seen(part.value)
    value = value if part.currency is None or part.value == part.currency else f"{value}, {seen(part.currency)}"
    return name, value, _amount(part.absolute_diff), f"{part.differences:,} of {part.rows:,}", _bar(part.share / 100)


def indented(group: str | None, level: int) -> str:
    """The name of a group, with a dot before it for each level that it stands below the first."""
    return "· " * (level - 1) + ("in no group" if group is None else seen(group))


def _print_subtotals(found: "Comparison") -> None:
    """The groups of each hierarchy that was asked for, those below another further to the right."""
    for hierarchy, groups in found.subtotals.items():
        rows: list[Sequence[object]] = []
        for one in groups:
            code = [] if not found.currency else [seen(one.currency)]
            amounts = map(_amount, (one.source_a_value, one.source_b_value, one.diff))
            rows.append([indented(one.group, one.level), *code, *amounts, _percent(one.percentage_diff, one.diff),
                         f"{one.differences:,} of {one.rows:,}", one.status])  # fmt: skip
        figures = ["A", "B", "A - B", "%", "keys that differ"]
        heads = [hierarchy, *([found.currency] if found.currency else []), *figures, "status"]
        print_table(heads, rows, right=figures, whole=["status"], styles=_STYLES)
        click.echo()


def _bar(share: object) -> str:
    """A bar and the percentage."""
    part = float(str(share)) * 100
    told = " <0.1 %" if 0 < part < 0.05 else ">99.9 %" if 99.95 <= part < 100 else f"{part:5.1f} %"
    return f"{_blocks(share, _WIDTH):<{_WIDTH}} {told}"


def _blocks(share: object, width: int) -> str:
    """A bar of at most `width` characters; what is not zero is seen."""
    part = min(max(float(str(share)), 0.0), 1.0)
    full, fraction = divmod(round(part * width * 8), 8)
    bar = "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[fraction]
    if part and not bar:
        bar = "▏"
    return bar if showable(bar) else "#" * max(round(part * width), 1 if part else 0)


def _amount(value: object) -> str:
    return "" if value is None else f"{value:,f}"


def _percent(value: float | None, diff: object) -> str:
    """A percentage; what is not zero does not look like it, nor like 100 what is not."""
    from treadle.analyst.showing.classify import shown_rate

    if value is None:
        return ""
    return "<0.01" if diff and value < 0.005 else shown_rate(value)
