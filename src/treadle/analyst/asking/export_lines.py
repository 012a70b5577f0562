"""The rows behind differences as a part of a comparison's page: closed until somebody clicks on a key.

Its neighbour `export_page` makes the page, `drill` finds the rows.
"""

from collections.abc import Sequence

from treadle.analyst.asking.drill import Drilled, Lines
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.showing.comparison import Comparison, Difference
from treadle.analyst.showing.export_page import isolated, shown, table
from treadle.visible import seen


def lines_behind(drilled: Sequence[Drilled]) -> str:
    """Returns HTML of the rows behind each key, both sides of each; empty if there is none."""
    if not drilled:
        return ""
    return f"<section><h2>Rows behind the largest differences</h2>\n{''.join(map(_key, drilled))}</section>\n"


def refuse_others(comparison: Comparison, row: Difference, found: Drilled) -> None:
    """Raises AnalystError if the rows that were found are not those that a difference was made of.

    They are looked up after the comparison, of sources that may have changed by then.
    """
    sides = ((found.a, row.rows_a, row.source_a_value), (found.b, row.rows_b, row.source_b_value))
    rounded = any(claim.kind == "approximate" for claim in comparison.warnings)
    for side, count, value in sides:
        added = side.aggregation in ("sum", "count") and not rounded and len(side.totals_by_currency) < 2
        figure = side.total if added else value
        if side.total_rows != count or (figure or 0) != (value or 0):
            raise AnalystError(
                f"{side.source!r} changed after it was compared, so that the rows behind the differences are not those "
                f"that were compared; ask again"
            )


def _key(found: Drilled) -> str:
    key = ", ".join(f"{name} {seen(value)}" for name, value in found.key.items())
    told = found.note or f"{found.pairs:,} pairs: a row of A and one of B that alone have their amount"
    return (
        f"<details><summary>{isolated(key or 'everything')}: {isolated(found.a.measure)}</summary>\n"
        f'<p class="faint">{shown(told)}</p>\n{_side("A", found.a)}{_side("B", found.b)}</details>\n'
    )


def _side(letter: str, side: Lines) -> str:
    count = sum(line.times for line in side.rows)
    many = (
        f"{side.total_rows:,} rows"
        if count == side.total_rows
        else f"the {count:,} largest of {side.total_rows:,} rows"
    )
    title = f"{letter}: {side.source}, {many}, {side.told}"
    if not side.rows:
        return f"<h3>{shown(title)}</h3>\n"
    columns = list(side.rows[0].values)
    rows = [
        [
            "" if line.pair is None else str(line.pair),
            *("" if value is None else isolated(seen(value)) for value in line.values.values()),
            f"{line.times:,}",
            "" if line.amount is None else f"{line.amount:,f}".replace("-", "−"),
        ]
        for line in side.rows
    ]
    return table(title, ["pair", *columns, "times", "figure"], rows, [], figures=2)
