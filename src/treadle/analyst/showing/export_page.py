"""The page of a comparison: one HTML file with everything in it, to be opened offline, printed or sent.

Nothing is fetched and no script runs (the page forbids both to itself); every value is escaped and kept to its own
writing direction. It follows the reader's light or dark setting. Its neighbour `export_chart` draws.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape

from treadle.analyst.showing.classify import money, shown_rate
from treadle.analyst.showing.comparison import Comparison, Part
from treadle.analyst.showing.export_chart import CLASSES, classes_chart, differences_chart
from treadle.visible import seen

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2024; --faint: #60646c; --line: #d9d9e0; --stripe: #f6f6f9;
  --match: #2b8a3e; --minor: #b35c00; --major: #c92a2a; --missing: #5f3dc4; --bar: #3b6fb6; }
@media (prefers-color-scheme: dark) { :root { --paper: #15171a; --ink: #edeef0; --faint: #a6abb3; --line: #3a3f45;
  --stripe: #1d2024; --match: #69db7c; --minor: #ffa94d; --major: #ff8787; --missing: #b197fc; --bar: #74a9e8; } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem }
h3 { font-size: 1rem; font-weight: 600; color: var(--faint); margin: 1.75rem 0 .4rem; break-after: avoid }
p { max-width: 60rem } .faint { color: var(--faint) }
.warnings { border-left: 4px solid var(--minor); padding: 0 0 0 .25rem; margin: 1rem 0 }
.warnings ul { margin: 0; padding: .25rem 0 .25rem 1.5rem }
details { margin: 1rem 0 } summary { cursor: pointer; color: var(--faint) }
details p { margin: .2rem 0 } details li { margin: .75rem 0 }
pre { overflow-x: auto; max-height: 24rem; margin: .35rem 0; padding: .5rem; background: var(--stripe);
  font-size: .8rem }
.scroll { overflow-x: auto } .scroll:focus { outline: 2px solid var(--bar) }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top }
thead th { border-bottom: 2px solid var(--faint); vertical-align: bottom } tr { break-inside: avoid }
tbody tr:nth-child(even) { background: var(--stripe) } tbody th { font-weight: normal }
tfoot th, tfoot td { font-weight: 600; border-top: 2px solid var(--faint) }
table { overflow-wrap: normal } .k > span, thead span { display: inline-block; width: max-content; max-width: 20rem;
  overflow-wrap: anywhere } thead .n > span { max-width: 11rem }
.n { text-align: right } td.n, .bars .n, .s { white-space: nowrap } td.w { min-width: 15rem; font-weight: normal }
.match { color: var(--match) } .minor_diff { color: var(--minor) } .major_diff { color: var(--major) }
.missing_in_a, .missing_in_b { color: var(--missing) }
.classes { margin-bottom: .5rem } svg { display: block; width: 100%; height: 1rem }
.bars { display: grid; grid: auto-flow dense / fit-content(40%) minmax(8rem, 1fr) max-content; gap: .3rem .8rem;
  align-items: center; font-size: .875rem; font-variant-numeric: tabular-nums }
.bars > bdi { grid-column: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.bars > .n { grid-column: 3 } .bars > svg, .ends { grid-column: 2 }
.ends { display: flex; justify-content: space-between; color: var(--faint) }
@media (max-width: 40rem) { body { padding: 1rem } .bars { grid-template-columns: minmax(0, 1fr) max-content }
  .bars > .n { grid-column: 2 } .bars > svg, .ends { grid-column: 1 / 3; margin-bottom: .4rem }
  .k > span { max-width: 9.5rem } th, td { padding: .3rem .4rem } td.w { min-width: 11rem } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --faint: #555; --line: #ccc; --stripe: #fff;
    --match: #2b8a3e; --minor: #b35c00; --major: #c92a2a; --missing: #5f3dc4 }
  @page { size: landscape; margin: 12mm } body { max-width: none; padding: 0; font-size: 10pt }
  .scroll { overflow: visible } table { font-size: 8.5pt; overflow-wrap: anywhere } tfoot { display: table-row-group }
  th, td { padding: .15rem .3rem } td.w { min-width: 8rem }
  .k > span { max-width: 11rem } thead .n > span { max-width: 11rem }
  .bars, [role=img] + .scroll { break-inside: avoid } [role=img] { break-after: avoid } }
"""

# Characters that a page may not hold, or that could not be seen in it.
_UNSEEN = {code: "\ufffd" for code in (*range(9), 11, 12, *range(14, 32), *range(127, 160), 0xFFFE, 0xFFFF)}
_UNSEEN |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
# Marks that turn the writing direction would show the figures after them backwards.
_UNSEEN |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")


def page(found: Comparison, behind: str = "") -> str:
    """Returns the comparison as one self-contained HTML page: its differences, as a table and as a chart.

    Args:
        found: the comparison.
        behind: HTML of the rows behind differences, as `treadle.analyst.asking.export_lines` makes it.
    """
    title = f"{found.source_a} against {found.source_b}"
    sections = "".join(section(one, number) for number, one in enumerate((found, *found.more)))
    return document(title, f"<h1>{isolated(title)}</h1>\n{conditions(found)}{sections}{behind}")


def document(title: str, body: str) -> str:
    """Returns a whole page of the text `title` and the HTML `body`, which may fetch nothing and run no script."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{shown(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def shown(value: object) -> str:
    """A value as text that is safe in HTML and SVG, in content and in quoted attributes."""
    return escape("(none)" if value is None else str(value).translate(_UNSEEN))


def isolated(value: object) -> str:
    """A value, safe in HTML, that keeps its writing direction to itself."""
    return f"<bdi>{shown(value)}</bdi>"


def conditions(found: Comparison) -> str:
    """Which rows were compared."""
    said = [("where", found.filters), (f"in A ({found.source_a}) only", found.filters_a),
            (f"in B ({found.source_b}) only", found.filters_b)]  # fmt: skip
    parts = [f"{shown(label)} {isolated(' and '.join(held))}" for label, held in said if held]
    return f'<p class="faint">{"; ".join(parts) or "all rows"}</p>\n'


def section(found: Comparison, number: int) -> str:
    """A comparison by one measure as a part of a page; `number` tells it apart from others on it."""
    heading = shown(f"{found.measure} ({found.unit})" if found.unit else found.measure)
    warnings = "".join(f"<li>{shown(item.message)}</li>" for item in found.warnings)
    if warnings:
        warnings = f'<div class="warnings" role="note" aria-label="Warnings"><ul>{warnings}</ul></div>\n'
    limits = found.tolerance
    rule = (
        f"Figures match within {money(limits.absolute, found.unit)}. A difference is minor below "
        f"{money(limits.materiality, found.unit)} and below {limits.told_share} of A, else major."
    )
    return (
        f'<section aria-labelledby="m{number}">\n<h2 id="m{number}">{heading}</h2>\n'
        f"<p>{shown(found.interpretation)}</p>\n{warnings}{_proofs(found)}"
        f"{classes_chart(found.summary, number, shown)}{_classes(found)}"
        f"{differences_chart(found, number, shown)}{_differences(found)}{_subtotals(found)}{_parts(found)}"
        f'<p class="faint">{shown(rule)}</p>\n</section>\n'
    )


def _proofs(found: Comparison) -> str:
    """What each sentence rests on: its figures, its conditions and its query, closed until somebody asks."""
    first: dict[str, int] = {}
    items = []
    for number, claim in enumerate([*found.claims, *found.warnings], 1):
        before = first.setdefault(claim.sql, number)
        query = f'<p class="faint">by the query of {before}</p>' if before < number else _query(claim.sql)
        facts = "; ".join(
            f"{name}: {_fact(value)}" for name, value in claim.facts.items() if value not in (None, "", [])
        )
        where = f"; where {isolated(' and '.join(claim.filters))}" if claim.filters else ""
        told = f'<p class="faint">{shown(claim.kind)}: {facts}{where}</p>'
        items.append(f"<li>{shown(claim.message)}{told}{query if claim.sql else ''}</li>")
    made = "".join(_query(statement) for statement in found.sql)
    return (
        f"<details><summary>What each sentence rests on</summary><ol>{''.join(items)}</ol>"
        f"<p>The queries are of the table <code>aligned</code>, a row a key, which this makes (SQL for DuckDB):</p>"
        f"{made}"
        f"</details>\n"
    )


def _query(sql: str) -> str:
    return f'<pre tabindex="0">{shown(sql)}</pre>'


def _fact(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{shown(name)} {_fact(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_fact, value))
    return isolated(f"{value:,f}" if isinstance(value, Decimal) else seen(value))


def _classes(found: Comparison) -> str:
    total = found.summary
    rows = []
    for name, field, label in CLASSES:
        count = getattr(total, field)
        # The rate of matches is rounded with care: all but one of many keys are not 100 %.
        rate = "" if total.match_rate is None else f"{total.match_rate:g}"
        share = rate if name == "match" else _percentage(_share(count, total.total_rows), count)
        rows.append([f'<span class="{name}">{shown(label)}</span>', f"{count:,}", share])
    foot = ["all", f"{total.total_rows:,}", ""]
    return table("", ["class", "keys", "% of keys"], rows, [foot], figures=2)


def _differences(found: Comparison) -> str:
    total, count = found.summary, len(found.top_differences)
    sides = zip("AB", (found.source_a, found.source_b), (found.unit_a, found.unit_b), strict=True)
    own = [f"{letter}: {name}{f' ({unit})' if unit and not found.unit else ''}" for letter, name, unit in sides]
    heads = [*found.dimensions, *own, "A − B", "% of A"]
    rows = []
    for one in found.top_differences:
        figures = [_amount(one.source_a_value), _amount(one.source_b_value), _amount(one.diff)]
        label = one.status.replace("_", " ")
        rows.append(
            [*(isolated(seen(one.key.get(name))) for name in found.dimensions), *figures,
             _percentage(one.percentage_diff, one.diff),
             f'<span class="{one.status}">{shown(label)}</span>', shown(one.reason)]
        )  # fmt: skip
    foot = _totals(found)
    if not found.dimensions:
        heads, rows = ["", *heads], []
    every = f"The {count:,} largest of {total.differences:,} differences" if total.differences > count else (
        f"All {count:,} differences" if count else "Every key matches")  # fmt: skip
    title = f"{every}; the total is over all keys" if found.dimensions else "The totals"
    return table(title, [*heads, "status", "why"], rows, foot, figures=4, words=2)


def _totals(found: Comparison) -> list[list[str]]:
    """The totals as rows below the differences: one, or one a currency."""
    total, apart = found.summary, [""] * (len(found.dimensions) - 1)
    if found.currency:
        return [
            [f"total {isolated(seen(one.currency))}", *apart, _amount(one.source_a_value), _amount(one.source_b_value),
             _amount(one.diff),
             _percentage(one.percentage_diff, one.diff), one.status.replace("_", " "), shown(one.reason)]
            for one in total.by_currency
        ]  # fmt: skip
    totals = [_amount(total.total_source_a), _amount(total.total_source_b), _amount(total.total_diff)]
    state = (total.total_status or "").replace("_", " ")
    rate = _percentage(total.total_percentage_diff, total.total_diff)
    return [["total", *apart, *totals, rate, state, shown(total.total_reason)]]


def _subtotals(found: Comparison) -> str:
    """The groups of each hierarchy that was asked for, with dots before those below another."""
    parts = []
    for hierarchy, groups in found.subtotals.items():
        rows = [
            [f"{'· ' * (one.level - 1)}{isolated('in no group' if one.group is None else seen(one.group))}",
             *([isolated(seen(one.currency))] if found.currency else []),
             _amount(one.source_a_value), _amount(one.source_b_value), _amount(one.diff),
             _percentage(one.percentage_diff, one.diff), f"{one.differences:,}", f"{one.rows:,}",
             f'<span class="{one.status}">{shown(one.status.replace("_", " "))}</span>', shown(one.reason)]
            for one in groups
        ]  # fmt: skip
        heads = [hierarchy, *([found.currency] if found.currency else []), "A", "B", "A − B", "% of A",
                 "keys that differ", "keys", "status", "why"]  # fmt: skip
        parts.append(table(f"Subtotals of {hierarchy}", heads, rows, [], figures=6, words=2))
    return "".join(parts)


def _parts(found: Comparison) -> str:
    return "".join(_part(name, parts, found.currency) for name, parts in found.by_dimension.items() if parts)


def _part(name: str, parts: Sequence[Part], currency: str) -> str:
    apart = currency and currency != name
    rows = [
        [isolated(seen(part.value)), *([isolated(seen(part.currency))] if apart else []), _amount(part.source_a_value),
         _amount(part.source_b_value),
         _amount(part.absolute_diff), _percentage(part.share, part.absolute_diff),
         f"{part.differences:,}", f"{part.rows:,}"]
        for part in parts
    ]  # fmt: skip
    whole = "% of its currency's differences" if currency else "% of all differences"
    heads = [name, *([currency] if apart else []), "A", "B", "|A − B|", whole, "keys that differ", "keys"]
    return table(f"Where the differences are, by {name}", heads, rows, [], figures=6)


def table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    foot: Sequence[Sequence[str]],
    *,
    figures: int,
    words: int = 0,
) -> str:
    """A table whose cells are HTML already; before its last `words` columns stand `figures` columns of numbers."""
    first = len(heads) - figures - words
    kinds = ["k"] * first + ["n"] * figures + ["s", "w"][:words]

    def cell(at: int, text: str, tag: str = "td", scope: str = "") -> str:
        inner = f"<span>{text}</span>" if tag == "th" or kinds[at] == "k" else text
        return f'<{tag}{scope} class="{kinds[at]}">{inner}</{tag}>'

    def row(cells: Sequence[str]) -> str:
        rest = [cell(at, text) for at, text in enumerate(cells) if at]
        named = cell(0, cells[0], "th", ' scope="row"')
        return f"<tr>{named}{''.join(rest)}</tr>"

    head = "".join(cell(at, shown(text), "th", ' scope="col"') for at, text in enumerate(heads))
    body = "\n".join(row(cells) for cells in rows)
    end = f"<tfoot>{''.join(map(row, foot))}</tfoot>" if foot else ""
    label = shown(title or heads[0])
    heading = f"<h3>{shown(title)}</h3>" if title else ""
    return (
        f'{heading}<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table aria-label="{label}">'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody>{end}</table></div>\n"
    )


def _amount(value: Decimal | None) -> str:
    return "" if value is None else f"{value:,f}".replace("-", "−")


def _percentage(value: float | None, part: object) -> str:
    """A percentage; that of a part which is not zero does not look like it, nor that of one which is not all."""
    if value is None:
        return ""
    return "&lt; 0.01" if part and value < 0.005 else shown(shown_rate(value).replace(">", "> "))


def _share(part: int, whole: int) -> float | None:
    return part * 100 / whole if whole else None
