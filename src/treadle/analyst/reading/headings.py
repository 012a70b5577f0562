"""Headings: what the columns of a file or a frame are called, where the file itself does not tell them apart. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from treadle.analyst.declared.errors import AnalystError

_NUMBERED = re.compile(r"(.*) \(\d+\)", re.DOTALL)


def each_named(header: Sequence[str], where: str) -> list[str]:
    """Returns a name for each column: one without a name is called by its place, and several that have one name, but
    for case, are numbered from the left, as `amount (1)` and `amount (2)`.

    What pandas writes before the first column, and SAP after the last one, has no name.

    Args:
        header: the names as they stand there.
        where: the source and what it is read from, for the error.

    Raises:
        AnalystError: another column is called as one of those that are numbered.
    """
    names = [name or f"column{at}" for at, name in enumerate(header, 1)]
    count = Counter(name.lower() for name in names)
    seen: Counter[str] = Counter()
    for at, name in enumerate(names):
        seen[name.lower()] += 1
        if count[name.lower()] > 1:
            names[at] = f"{name} ({seen[name.lower()]})"
    if twice := twice_in(names):
        raise AnalystError(f"{where} has two columns called {twice!r}; rename one of them there")
    return names


def twice_in(names: Sequence[str]) -> str | None:
    """Returns the first of the names that there is a second time, but for case; None if there is none."""
    count = Counter(name.lower() for name in names)
    return next((name for name in names if count[name.lower()] > 1), None)


def as_written(names: Sequence[str]) -> list[str]:
    """Returns the names as they stand in the file, without the numbers that tell those of one name apart."""
    found = [_NUMBERED.fullmatch(name) for name in names]
    return [one[1] if one and numbered(one[1], names) else name for name, one in zip(names, found, strict=True)]


def numbered(name: str, names: Iterable[str]) -> list[str]:
    """Returns those of the names that columns called `name` were given to tell them apart; empty unless they were."""
    form = re.compile(rf"{re.escape(name)} \(\d+\)", re.IGNORECASE)
    found = [one for one in names if form.fullmatch(one)]
    return found if len(found) > 1 else []
