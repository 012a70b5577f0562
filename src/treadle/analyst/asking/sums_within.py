"""Sums within: figures of a table that are made of its others, and count these twice where all are added up.

Pure. Neighbours: `treadle.analyst.asking.footing`, which says the same of lines that are marked as totals;
`treadle.analyst.asking.propose`.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import combinations, pairwise

from treadle.analyst.asking.columns import Guess
from treadle.analyst.declared.days import BLANKS
from treadle.analyst.declared.scalar import scalar
from treadle.analyst.declared.source import TextFormat
from treadle.analyst.reading.number_spelling import looked_at

# How many rows add up to another by chance in few files.
_ENOUGH = 3
_NOISE = Decimal("0.000001")
# What a figure is named that tells what there is, and not what has come or gone.
_BALANCES = re.compile(
    r"balance|saldo|solde|kontostand|bestand|restschuld|remaining|outstanding|running|cumul|kumul|(?<![a-z])(cum|kum|ytd)",
    re.IGNORECASE,
)


def adds_up_others(guesses: Mapping[str, Guess], samples: Mapping[str, Sequence[str | None]], text: TextFormat) -> str:
    """Returns a question if the last line, or the first, adds up all others in each figure that it has, whatever it
    says of itself.

    Args:
        guesses: what each column is taken for.
        samples: all of its values.
        text: how numbers are written.
    """
    figures, ends = [samples[column] for column in _figures(guesses) if samples[column]], [-1, 0]
    summed = dict.fromkeys(ends, 0)
    for values in figures:
        amounts = [_amount(value, text) for value in values]
        known = [amount for amount in amounts if amount is not None]
        if len(known) < len(amounts) or len(known) <= _ENOUGH:
            return ""
        total, filled = sum(known), sum(map(bool, known))
        ends = [at for at in ends if not _said(values[at]) or abs(total - 2 * known[at]) <= _NOISE]
        if not ends:
            return ""
        summed |= {at: max(summed[at], filled) for at in ends if known[at]}
    at = next((at for at in ends if summed[at] >= _ENOUGH), None)
    if at is None:
        return ""
    keys = [_said(samples[column][at]) for column, each in guesses.items() if each.role == "dimension"]
    mark = next((key for key in keys if any(map(str.isalpha, key))), "")
    advice = f"add 'totals: [{scalar(mark.lower())}]' under 'text'" if mark else "take it out of the file"
    return (
        f"the {'last' if at else 'first'} line, {', '.join(filter(None, keys)) or 'without any key'}, adds up all "
        f"others in each figure that it has: if it is a total, {advice}, as it counts twice"
    )


def runs_on(guesses: Mapping[str, Guess], samples: Mapping[str, Sequence[str | None]], text: TextFormat) -> str:
    """Returns a question if a balance is that of the line before and what has come or gone in one column, or in two.

    Args:
        guesses: what each column is taken for.
        samples: its values, in the order of the rows.
        text: how numbers are written.
    """
    figures = _figures(guesses)
    for balance in filter(_BALANCES.search, figures):
        steps = _steps(samples[balance], text)
        # Most of what does not move it is told apart by these lines alone.
        telling = [at for at, step in enumerate(steps) if step > _NOISE][:_ENOUGH]
        if len(telling) < _ENOUGH:
            continue
        lines = [*telling, *range(telling[-1])]
        amounts = {
            column: [_amount(value, text) for value in samples[column][: telling[-1] + 2]]
            for column in figures
            if column != balance and not _BALANCES.search(column)
        }
        others = {column: [one for one in each if one is not None] for column, each in amounts.items()}
        others = {column: each for column, each in others.items() if len(each) == len(amounts[column])}
        for moved in (*((column,) for column in others), *combinations(others, 2)):
            if any(_moves(steps, [others[column][at:] for column in moved], lines) for at in (0, 1)):
                by = " and ".join(moved)
                return f"{balance} runs on from line to line by {by}, so that its sum says nothing: leave it out"
    return ""


def _steps(balances: Sequence[str | None], text: TextFormat) -> list[Decimal]:
    """By how much each balance differs from the one before, up to one that is none."""
    steps = list[Decimal]()
    for before, after in pairwise(_amount(value, text) for value in balances):
        if before is None or after is None:
            break
        steps.append(abs(after - before))
    return steps


def _moves(steps: Sequence[Decimal], moved: Sequence[Sequence[Decimal]], lines: Sequence[int]) -> bool:
    """Whether a balance differs by what has come in one column, less what has gone in another, in all these lines."""
    return all(abs(steps[at] - abs(moved[0][at] - sum(each[at] for each in moved[1:]))) <= _NOISE for at in lines)


def _figures(guesses: Mapping[str, Guess]) -> list[str]:
    return [column for column, each in guesses.items() if each.role == "measure"]


def _said(value: str | None) -> str:
    return (value or "").strip(BLANKS)


def _amount(value: str | None, text: TextFormat) -> Decimal | None:
    """An amount as it is written, zero for an empty one; nothing for what is none, as NaN is."""
    plain = looked_at(value or "")[0].replace(text.thousands or " ", "").replace(text.decimal, ".")
    plain = f"-{plain[:-1]}" if plain.endswith("-") else plain
    try:
        amount = Decimal(plain or 0)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None
