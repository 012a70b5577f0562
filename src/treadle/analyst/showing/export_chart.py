"""Charts of a comparison as inline SVG: how the keys are classed, and where the largest differences are.

Drawings only: every figure in them stands in a table of the page beside them. Colours come from the page's style.
"""

from collections.abc import Callable
from decimal import Decimal

from treadle.analyst.reading.amounts import EXACT
from treadle.analyst.showing.comparison import Comparison, Difference, Summary
from treadle.visible import seen

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
_WIDTH, _MOST = 1000, 15
_HALF = _WIDTH / 2


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
                f'<rect x="{min(at, _WIDTH - 3):.1f}" y="0" width="{max(width, 3):.1f}" height="10" '
                f'fill="{_COLOURS[name]}" stroke="var(--paper)" vector-effect="non-scaling-stroke">'
                f"<title>{shown(f'{label}: {count:,}')}</title></rect>"
            )
        at += width
    described = ", ".join(f"{getattr(total, field):,} {label}" for _, field, label in CLASSES)
    drawing = f'<div class="classes">{_drawing("".join(pieces))}</div>'
    return _figure(f"c{number}", "Keys by class", described, drawing, shown)


def differences_chart(found: Comparison, number: int, shown: Callable[[object], str]) -> str:
    """Returns the largest differences as bars, to the right where A is higher, to the left where B is.

    Labels and figures are text of the page, so that they stay readable however narrow it is; only bars are stretched.

    Args:
        found: the comparison.
        number: sets the drawing's ids apart from those of others on the page.
        shown: makes a value safe to stand in the page.
    """
    listed = [one for one in found.top_differences[:_MOST] if one.absolute_diff] if found.dimensions else []
    if not listed:
        return ""
    largest = max(one.absolute_diff for one in listed)
    bars = "".join(_bar(one, largest, shown) for one in listed)
    ends = '<span></span><span></span><span class="ends"><span>← B higher</span><span>A higher →</span></span>'
    unit = f", in {found.unit}" if found.unit else ", each in its currency" if found.currency else ""
    title = (
        f"The {len(listed)} largest that do not match, A − B{unit}"
        if len(listed) > 1
        else f"The difference, A − B{unit}"
    )
    described = "; ".join(f"{_label(one)}: {one.diff:,f}" for one in listed)
    return _figure(f"d{number}", title, described, f'<div class="bars">{bars}{ends}</div>', shown)


def _bar(one: Difference, largest: Decimal, shown: Callable[[object], str]) -> str:
    width = max(float(EXACT.divide(one.absolute_diff, largest)) * _HALF, 3.0)
    left = _HALF if one.diff > 0 else _HALF - width
    label = _label(one)
    value = f"{one.diff:,f}".replace("-", "−")
    bar = f'<rect x="{left:.1f}" y="0" width="{width:.1f}" height="10" fill="{_COLOURS[one.status]}"/>'
    axis = f'<line x1="{_HALF}" y1="0" x2="{_HALF}" y2="10" stroke="var(--faint)" vector-effect="non-scaling-stroke"/>'
    title = shown(f"{label}: {value}, {one.status.replace('_', ' ')}")
    return f'<bdi title="{title}">{shown(label)}</bdi><span class="n">{shown(value)}</span>{_drawing(bar + axis)}'


def _label(one: Difference) -> str:
    return ", ".join(map(seen, one.key.values()))


def _drawing(body: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">{body}</svg>'


def _figure(name: str, title: str, described: str, body: str, shown: Callable[[object], str]) -> str:
    return (
        f'<h3 id="{name}h">{shown(title)}</h3><div role="img" aria-labelledby="{name}h {name}d">'
        f'<span hidden id="{name}d">{shown(described)}</span>{body}</div>\n'
    )
