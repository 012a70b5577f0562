"""Charts of a comparison as inline SVG: how the keys are classed, and where the largest differences are.

Drawings only: every figure in them stands in a table of the page beside them. Colours come from the page's style.
"""

from collections.abc import Callable
from decimal import Decimal

from treadle.analyst.comparison import Comparison, Difference, Summary

CLASSES = (
    ("match", "matches", "match"),
    ("minor_diff", "minor_differences", "minor difference"),
    ("major_diff", "major_differences", "major difference"),
    ("missing_in_a", "missing_in_a", "missing in A"),
    ("missing_in_b", "missing_in_b", "missing in B"),
)
"""Name of a class, the field of `Summary` that counts it, and what people call it."""

_COLOURS = {
    "match": "var(--match)",
    "minor_diff": "var(--minor)",
    "major_diff": "var(--major)",
    "missing_in_a": "var(--missing)",
    "missing_in_b": "var(--missing)",
}
_WIDTH, _LABELS, _VALUES, _ROW, _MOST = 900, 280, 150, 24, 15


def classes_chart(total: Summary, number: int, shown: Callable[[object], str]) -> str:
    """Returns one bar with a piece for each class of keys, or nothing where there are no keys.

    Args:
        total: the comparison's figures.
        number: sets the drawing's ids apart from those of others on the page.
        shown: makes a value safe to stand in the page.
    """
    if not total.total_rows:
        return ""
    pieces, at = [], 0.0
    for name, field, label in CLASSES:
        count = getattr(total, field)
        width = count / total.total_rows * _WIDTH
        if count:
            # A class that has a key at all is seen.
            pieces.append(
                f'<rect x="{min(at, _WIDTH - 2):.1f}" y="0" width="{max(width, 2):.1f}" height="18" '
                f'fill="{_COLOURS[name]}" stroke="var(--paper)"><title>{shown(f"{label}: {count:,}")}</title></rect>'
            )
        at += width
    described = ", ".join(f"{getattr(total, field):,} {label}" for _, field, label in CLASSES)
    return _drawing(f"c{number}", "Keys by class", described, 18, "".join(pieces), shown)


def differences_chart(found: Comparison, number: int, shown: Callable[[object], str]) -> str:
    """Returns the largest differences as bars, to the right where A is higher, to the left where B is.

    Args:
        found: the comparison.
        number: sets the drawing's ids apart from those of others on the page.
        shown: makes a value safe to stand in the page.
    """
    listed = [one for one in found.top_differences[:_MOST] if one.absolute_diff] if found.dimensions else []
    if not listed:
        return ""
    largest = max(one.absolute_diff for one in listed)
    half = (_WIDTH - _LABELS - _VALUES) / 2
    middle = _LABELS + half
    bars = [_bar(one, at * _ROW, middle, half, largest, shown) for at, one in enumerate(listed)]
    height = len(listed) * _ROW
    axis = f'<line x1="{middle:.1f}" y1="0" x2="{middle:.1f}" y2="{height}" stroke="var(--faint)"/>'
    title = f"The {len(listed)} largest differences, A − B"
    described = "; ".join(f"{_label(one)}: {one.diff:,f}" for one in listed)
    return _drawing(f"d{number}", title, described, height, "".join(bars) + axis, shown)


def _bar(
    one: Difference, top: int, middle: float, half: float, largest: Decimal, shown: Callable[[object], str]
) -> str:
    width = max(float(one.absolute_diff / largest) * half, 1.0)
    left = middle if one.diff > 0 else middle - width
    label = _label(one)
    short = label if len(label) <= 38 else f"{label[:37]}…"
    value = f"{one.diff:,f}".replace("-", "−")
    return (
        f"<g><title>{shown(f'{label}: {value}, {one.status}')}</title>"
        f'<text x="{_LABELS - 8}" y="{top + 16}" text-anchor="end">{shown(short)}</text>'
        f'<rect x="{left:.1f}" y="{top + 4}" width="{width:.1f}" height="{_ROW - 8}" fill="{_COLOURS[one.status]}"/>'
        f'<text x="{_WIDTH}" y="{top + 16}" text-anchor="end">{shown(value)}</text></g>'
    )


def _label(one: Difference) -> str:
    return ", ".join("(none)" if value is None else str(value) for value in one.key.values())


def _drawing(name: str, title: str, described: str, height: int, body: str, shown: Callable[[object], str]) -> str:
    return (
        f'<h3 class="faint" id="{name}h">{shown(title)}</h3><svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" aria-labelledby="{name}h {name}d"><desc id="{name}d">{shown(described)}</desc>'
        f"{body}</svg>\n"
    )
