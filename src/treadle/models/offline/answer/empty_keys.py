"""What was asked for and has no value: it is told as such, or a row would look like a total, and the rest like all."""

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import parts, stem
from treadle.models.offline.plan.results import Field

_NONE = "(none)"


def empty_asked(result: Any, clause: Clause) -> list[Field]:
    """The fields of a result that have no value and are asked for, with a word for that: of "Who is Cy's manager?" the
    department alone would be no answer.

    Args:
        result: what a tool answered.
        clause: what was asked.
    """
    said = {token.stem for token in clause.tokens}
    named = [str(name) for name, value in result.items() if value is None] if isinstance(result, dict) else []
    return [Field((name,), _NONE) for name in named if {stem(word) for word in parts(name)} <= said]


def with_empty_keys(rows: Sequence[Any], arguments: Mapping[str, Any]) -> list[Any]:
    """Returns the rows, with a word where one has no value of its key, or of what the arguments list.

    Args:
        rows: what a tool found.
        arguments: what it was called with.
    """
    asked = {name for value in arguments.values() if isinstance(value, list) for name in value if isinstance(name, str)}
    return [_worded(row, asked) if isinstance(row, dict) else row for row in rows]


def _worded(row: Mapping[str, Any], asked: set[str]) -> dict[str, Any]:
    key = row.get("key")
    named = {"key": _worded(key, set(key))} if isinstance(key, dict) else {}
    return {name: _NONE if value is None and name in asked else value for name, value in row.items()} | named
