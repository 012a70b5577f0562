"""Meant: keys by what they mean, of rows in which they stand as they are spelled."""

from collections.abc import Sequence

from treadle.analyst.reading.keys import Key
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import named


def meant(rows: "exp.Select", keys: Sequence[Key]) -> "exp.Select":
    """Returns the rows with their keys, columns k0, k1 and on, in the forms by which spellings are the same value.

    Args:
        rows: the rows; it becomes a part of what is returned.
        keys: what its columns k0, k1 and on are.
    """
    forms = {f"k{at}": key.format for at, key in enumerate(keys) if key.type == "string" and key.format.steps}
    if not forms:
        return rows
    names = [column.alias_or_name for column in rows.expressions]
    # A number that several branches of a format look at is made once, in a step of its own.
    made = {f"{name}_number": form.number(exp.column(name)) for name, form in forms.items()}
    numbers = {name: number for name, number in made.items() if number is not None}
    if numbers:
        columns = [named(number, name) for name, number in numbers.items()]
        rows = exp.select(*map(exp.column, names), *columns).from_(rows.subquery("spelled", copy=False), copy=False)
    values = [
        named(forms[name].apply(exp.column(name), f"{name}_number" if f"{name}_number" in numbers else ""), name)
        if name in forms
        else exp.column(name)
        for name in names
    ]
    return exp.select(*values).from_(rows.subquery("numbered", copy=False), copy=False)
