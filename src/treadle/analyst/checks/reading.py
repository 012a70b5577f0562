"""Reads a `checks.yaml`. A mistake in it is told with file, line and field, before anything is compared."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from yaml import ScalarNode, SequenceNode

from treadle.analyst.asking.compare import CompareRequest
from treadle.analyst.checks.declared import CLASSES, LEVELS, Allowed, Check, CheckFile, Known, Levels
from treadle.analyst.declared.source import Tolerance
from treadle.analyst.declared.sources_file import (
    Field,
    amount_of,
    filled,
    filters_of,
    is_null,
    one_of,
    opened,
    texts_or_null,
    tolerance_of,
)

KEPT = 20_000
"""How many keys that differ a check keeps, for what is known and what has changed."""


def read_checks(path: str | Path) -> CheckFile:
    """Reads a `checks.yaml`.

    Args:
        path: the file. Paths in it start from its own folder.

    Raises:
        AnalystError: the file cannot be read or is not valid; names file, line and field.
    """
    file = Path(path)
    top = opened(file, "checks")
    values = top.known({"sources": _path, "history": filled, "checks": _checks}, required=("checks",))
    folder = file.resolve().parent
    return CheckFile(
        path=file,
        sources=folder / values.get("sources", "sources.yaml"),
        history=folder / values.get("history", f"{file.stem}.history.db"),
        checks=tuple(values["checks"]),
    )


def _path(field: Field) -> str:
    if not isinstance(field.node, ScalarNode):
        raise field.error("must be the path of a sources.yaml; is this file one itself? One of checks has 'checks'")
    return filled(field)


def _checks(field: Field) -> list[Check]:
    found = [_check(name, entry) for name, entry in field.entries().items()]
    if not found:
        raise field.error("declares no check")
    return found


def _check(name: str, field: Field) -> Check:
    readers: dict[str, Callable[[Field], Any]] = {
        "description": Field.text,
        "compare": _pair,
        "by": _names,
        "measures": _measures,
        "subtotals": _names,
        "names": lambda at: {name: filled(one) for name, one in at.entries().items()},
        "where": filters_of,
        "where_a": filters_of,
        "where_b": filters_of,
        "tolerance": tolerance_of,
        "level": _levels,
        "allow": _allowed,
        "known": lambda at: tuple(_known(item) for item in at.items()),
        "top": _count,
    }
    values = field.known(readers, required=("compare",))
    limits = values.get("tolerance", Tolerance())
    tolerances = values.get("measures", {})
    request = field.build(
        CompareRequest,
        source_a=values["compare"][0],
        source_b=values["compare"][1],
        measures=list(tolerances) or None,
        dimensions=values.get("by"),
        names=values.get("names", {}),
        subtotals=values.get("subtotals", []),
        filters=values.get("where", []),
        filters_a=values.get("where_a", []),
        filters_b=values.get("where_b", []),
        tolerance=limits.absolute,
        relative_tolerance=limits.relative,
        materiality=limits.materiality,
        top=values.get("top", 20),
        keep=KEPT,
    )
    return Check(
        name=name,
        request=request,
        tolerances={measure: one for measure, one in tolerances.items() if one is not None},
        levels=values.get("level", Levels()),
        allow=values.get("allow", Allowed()),
        known=values.get("known", ()),
        description=values.get("description", ""),
    )


def _pair(field: Field) -> tuple[str, str]:
    names = [filled(item) for item in field.items()]
    if len(names) != 2:
        raise field.error("must be a list of two sources, of which the first is the base: [ledger, mart]")
    return names[0], names[1]


def _names(field: Field) -> list[str]:
    return [filled(item) for item in field.items()]


def _measures(field: Field) -> dict[str, Tolerance | None]:
    """Measures as a list of names, or by name with the thresholds of each."""
    if isinstance(field.node, (SequenceNode, ScalarNode)):
        found: dict[str, Tolerance | None] = dict.fromkeys(_names(field))
    else:
        found = {name: None if is_null(at) else tolerance_of(at) for name, at in field.entries().items()}
    if not found:
        raise field.error("names no measure; leave it out for all that both sources have")
    return found


def _levels(field: Field) -> Levels:
    level = one_of(LEVELS)
    if isinstance(field.node, ScalarNode):
        return Levels(*(one_of(LEVELS[1:])(field) for _ in CLASSES))
    return Levels(**field.known(dict.fromkeys(CLASSES, level)))


def _allowed(field: Field) -> Allowed:
    return Allowed(**field.known(dict.fromkeys(CLASSES, _count)))


def _known(field: Field) -> Known:
    readers: dict[str, Callable[[Field], Any]] = {
        "key": lambda at: {name: texts_or_null(one) for name, one in at.entries().items()},
        "why": filled,
        "up_to": amount_of,
        "until": _day,
    }
    values = field.known(readers, required=("key", "why"))
    if not values["key"]:
        raise field.error("'key' names no dimension, which would accept every difference")
    if "up_to" in values and (not values["up_to"].is_finite() or values["up_to"] < 0):
        raise field.error("'up_to' must be a number from 0 on: how large the difference may be, without its sign")
    return Known(**values)


def _count(field: Field) -> int:
    text = field.text().replace("_", "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise field.error(f"{field.text()!r} is not a whole number from 0 on")
    return int(text)


def _day(field: Field) -> date:
    try:
        return date.fromisoformat(field.text().strip())
    except ValueError as error:
        raise field.error(f"{field.text()!r} is not a day such as 2024-03-31") from error
