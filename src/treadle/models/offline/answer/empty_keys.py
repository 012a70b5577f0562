"""Rows by what they were asked for by: one that has no value there is told as such, or it would look like a total."""

from collections.abc import Mapping, Sequence
from typing import Any

_NONE = "(none)"


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
