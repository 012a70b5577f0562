"""Lists in a result: what it says of one that it holds only a part of, and whether they are what is asked for.

Called by `written`.
"""

from collections.abc import Sequence
from typing import Any

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.results import Field, figure, number_of, rows_of

_TOTALS = word_set("total count found matches matching hits")
_LISTED = word_set("count items results rows records entries found")
_PAGING = word_set("page pages offset limit cursor")
_NEXT = word_set("page cursor token offset link url")
_CUT = word_set("more truncated incomplete partial")


def part_of_a_list(result: Any, fields: Sequence[Field]) -> tuple[str, list[Field]]:
    """What is said before a list that is not whole, and the fields that this leaves; nothing of one that is whole, as
    far as the result tells.

    Args:
        result: what a tool answered.
        fields: its single values.
    """
    lists = rows_of(result) if isinstance(result, dict) else []
    beside = [found for found in fields if len(found.path) == 1]
    paged = any(set(parts(found.name)) & _PAGING - {"pages"} for found in beside)
    if len(lists) != 1 or not any(_is_part(found, len(lists[0][1]), paged) for found in beside):
        return "", list(fields)
    about = [found for found in beside if _is_about(found)]
    # What only a program reads is too long to be told.
    said = ", ".join(
        f"{found.label} {figure(found.value, found.name)}" for found in about if len(str(found.value)) < 20
    )
    return f"This is only a part of the list ({said}).", [found for found in fields if found not in about]


def are_asked_for(lists: Sequence[tuple[str, list[Any]]], clause: Clause) -> bool:
    """Whether lists are what is asked for, and not what is told of one thing beside the rest: the doors that a badge
    opens, where it is asked whose it is."""
    said = {token.stem for token in clause.tokens}
    return any(
        not name or {stem(word) for word in parts(name)} & said or any(isinstance(row, dict) for row in rows)
        for name, rows in lists
    )


def _is_part(found: Field, rows: int, paged: bool) -> bool:
    """Whether a field beside a list says that there is more than is listed.

    A total may as well be of money, a next one a day, and a book has pages: beside them there has to be a page.
    """
    words, number = set(parts(found.name)), number_of(found.value)
    if words & _CUT:
        return found.value is True
    if "next" in words:
        return bool(words & _NEXT) and bool(found.value)
    if "cursor" in words:
        return bool(found.value)
    if "pages" in words:
        return paged and number is not None and number > 1
    counted = bool(words & _TOTALS) and (paged or len(words & (_TOTALS | _LISTED)) > 1)
    return counted and isinstance(found.value, int) and number is not None and number > rows


def _is_about(found: Field) -> bool:
    return bool(set(parts(found.name)) & (_TOTALS | _PAGING | _CUT | {"next"}))
