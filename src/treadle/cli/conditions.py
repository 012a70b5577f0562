"""Conditions as they are written in options: period=202401, company=1001,1002, amount>=5."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from treadle.analyst import Filter

_WHERE = re.compile(r"\s*(?P<dimension>[^=!<>]+?)\s*(?P<op>!=|<=|>=|=|<|>)\s*(?P<value>.*)", re.DOTALL)


def filters_of(option: str, given: Sequence[str]) -> "list[Filter]":
    """Returns the conditions that were given with `option`. Raises click.BadParameter for what is none."""
    from pydantic import ValidationError

    from treadle.analyst import Filter

    found = []
    for item in given:
        try:
            found.append(Filter.model_validate(_condition(option, item)))
        except ValidationError as error:
            raise click.BadParameter(f"{item!r}: {error.errors()[0]['msg']}", param_hint=f"'{option}'") from error
    return found


def _condition(option: str, item: str) -> dict[str, Any]:
    match = _WHERE.fullmatch(item)
    if match is None:
        raise click.BadParameter(f"{item!r} is not NAME=VALUE, such as period=202401", param_hint=f"'{option}'")
    dimension, op, value = match.groups()
    if op in ("=", "!=") and "," in value:
        values = [part.strip() for part in value.split(",")]
        return {"dimension": dimension, "op": "in" if op == "=" else "not in", "value": values}
    return {"dimension": dimension, "op": op, "value": value.strip()}
