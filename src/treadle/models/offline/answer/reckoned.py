"""What was reckoned from records, in words: the figure, of how many of them, and under which conditions.

Called by `written`.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from treadle.models.offline.plan.reckoning import Reckoning
from treadle.models.offline.plan.results import MONEY, figure
from treadle.models.offline.plan.table import Column, Table
from treadle.models.offline.plan.together import WorkedOut

_PLACES = 2


def told_of_records(table: Table, found: Reckoning, tool: str, listed: Callable[[Sequence[Any]], list[str]]) -> str:
    """The sentence, and the records below it where it speaks of them.

    Args:
        table: the records.
        found: what was reckoned.
        tool: the name of the tool that told them.
        listed: writes records, a line each.
    """
    rows = [table.rows[row] for row in found.rows]
    under = "; ".join(condition.said for condition in found.conditions)
    if found.column is None:
        head = f"{len(rows)} of the {len(table.rows)} that {tool} tells of" + (f" ({under}):" if under else ":")
        if found.operation == "values":
            return "; ".join(_values(table, row, found.asked) for row in found.rows)
        return "\n".join([head, *listed(rows)]) if rows else f"{head[:-1]}."
    unit = table.unit_of(found.column, found.rows, MONEY)
    money = f" {unit}" if unit else ""
    label = found.column.label
    if found.operation == "apart":
        return _apart(table, found, money)
    if found.operation == "most":
        day = found.column.is_day
        which = ("Latest" if found.most else "Earliest") if day else ("Highest" if found.most else "Lowest")
        value = figure(found.column.values[found.rows[0]], found.column.path[-1])
        of = f" (of those with {under})" if under else ""
        of += f" ({found.lacking} without)" if found.lacking else ""
        return "\n".join([f"{which} {label}: {value}{money}{of}", *listed(rows)])
    numbers = [found.column.figures[row] for row in found.rows]
    which, worked_out = ("Sum", sum(numbers, Decimal(0)))
    if found.operation == "mean":
        which, worked_out = "Average", worked_out / len(numbers)
    of = f"of {len(numbers)}" + (f" of the {len(table.rows)}" if under else "") + f" that {tool} tells of"
    of += f"; {found.lacking} without" if found.lacking else ""
    return f"{which} of {label}: {_number(worked_out, numbers, money)} ({of}{f'; {under}' if under else ''})"


def told_of_both(found: WorkedOut) -> str:
    """What the figures told above come to."""
    unit = f" {found.unit}" if found.unit else ""
    more = f" ({found.more} has more)" if found.more else ""
    return f"{found.word}: {_number(found.number, (found.number,), unit)}{more}"


def _apart(table: Table, found: Reckoning, money: str) -> str:
    column = found.column
    if column is None or table.label is None:
        return ""
    more, less = sorted(found.rows, key=lambda row: -column.figures[row])
    each = "; ".join(_values(table, row, (column,)) + money for row in found.rows)
    apart = column.figures[more] - column.figures[less]
    who = f"{table.label.values[more]} has more" if apart else "they are equal"
    return f"{each}. Difference: {_number(apart, [*column.figures.values()], money)} ({who})"


def _values(table: Table, row: int, asked: Sequence[Column]) -> str:
    label = table.label
    called = "" if label is None else str(label.values[row])
    if label is None:
        return ", ".join(f"{each.label} {_value(each.values[row], each)}" for each in table.columns)
    if label is not None and label.figures:
        called = f"{label.label} {called}"
    if table.plain:
        return f"{called}: {', '.join(str(each.values[row]) for each in asked)}"
    return f"{called}: " + ", ".join(f"{each.label} {_value(each.values[row], each)}" for each in asked)


def _value(value: Any, column: Column) -> str:
    return "(none)" if value in (None, "") else figure(value, column.path[-1])


def _number(number: Decimal, of: Sequence[Decimal], unit: str) -> str:
    """A figure as exactly as it is, or to two places more than are whole, and marked so."""
    places = max([_PLACES, *(-int(each.as_tuple().exponent) for each in of)])
    rounded = round(number, places)
    text = f"{rounded:,f}" if abs(number) >= 10_000 else f"{rounded:f}"
    exact = rounded == number
    least = max(-int(each.as_tuple().exponent) for each in of) if exact else places
    while exact and "." in text and text.endswith("0") and len(text.partition(".")[2]) > max(least, 0):
        text = text[:-1]
    return f"{text.rstrip('.')}{unit}" if exact else f"{text}{unit}, rounded"
