"""A check whose file, sources and data are edited from run to run: what it says has changed is what plain Python says.

Days of a generated life: rows come and go, amounts turn up in another currency, and somebody edits a threshold, a
condition, what is known, or how the file is read. Only a run that asked the same is held against.

`TREADLE_CHECK_LIVES=60` lives as many.
"""

import json
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from treadle.analyst.checks import Changes, History, Report, read_checks, run_checks

from .conftest import write_csv

LIVES = int(os.environ.get("TREADLE_CHECK_LIVES", "3"))
Row = tuple[str, str, str, int | None]
Key = tuple[str, ...]
Differing = dict[Key, tuple[str, Decimal]]
Figures = dict[Key, int | None]
EDITS: dict[str, list[Any]] = {
    "tolerance": [None, "0", "10"],
    "known": [None, "1", "2"],
    "where": [None, "X"],
    "where_b": [None, "Y"],
    "thousands": ["", " "],
}


def rows_of(chance: Random, codes: list[str]) -> list[Row]:
    amounts = [0, 1, 5, 100, -5, 1000, None]
    return [
        (chance.choice("XYZ"), chance.choice("1234"), chance.choice(codes), chance.choice(amounts))
        for _ in range(chance.randint(0, 8))
    ]


def written(place: Path, sides: dict[str, list[Row]], edited: dict[str, Any]) -> None:
    names = ("company", "account", "currency", "amount")
    for side, rows in sides.items():
        write_csv(place / f"{side}.csv", names, rows)
    sources = {
        side: {
            "kind": "csv", "path": f"{side}.csv", "text": {"thousands": edited["thousands"]},
            "dimensions": {name: {} for name in names[:-1]}, "measures": {"amount": {"currency": "currency"}},
        }
        for side in sides
    }  # fmt: skip
    check: dict[str, Any] = {"compare": ["a", "b"], "by": ["account"]}
    check |= {name: {"company": edited[name]} for name in ("where", "where_b") if edited[name]}
    check |= {"tolerance": edited["tolerance"]} if edited["tolerance"] else {}
    check |= {"known": [{"key": {"account": edited["known"]}, "why": "late"}]} if edited["known"] else {}
    (place / "sources.yaml").write_text(json.dumps({"sources": sources}))
    (place / "checks.yaml").write_text(json.dumps({"checks": {"x": check}}))


def figures(rows: list[Row], split: bool) -> Figures:
    found: Figures = {}
    for _, account, code, amount in rows:
        key = (account, code) if split else (account,)
        before = found.get(key)
        found[key] = before if amount is None else (before or 0) + amount
    return found


def differing(a: Figures, b: Figures, tolerance: Decimal) -> Differing:
    found: Differing = {}
    for key in a | b:
        one, other = a.get(key) or 0, b.get(key) or 0
        gap = Decimal(one - other)
        if key not in a or key not in b:
            found[key] = ("missing_in_a" if key not in a else "missing_in_b", gap)
        elif abs(gap) > tolerance:
            found[key] = ("minor_diff" if abs(gap) < 5000 and abs(gap) * 100 < abs(one) else "major_diff", gap)
    return found


def told(changes: Changes) -> tuple[set[Key], ...]:
    parts = (changes.new, changes.gone, changes.moved)
    return tuple({tuple(str(value) for value in one.key.values()) for one in part} for part in parts)


def asked(sides: dict[str, list[Row]], edited: dict[str, Any]) -> tuple[tuple[Any, ...], Figures, Figures]:
    """What a run asks, by which another is known to ask the same, and the figures of both sides."""
    passed = {
        side: [
            row
            for row in rows
            if edited["where"] in (None, row[0]) and (side == "a" or edited["where_b"] in (None, row[0]))
        ]
        for side, rows in sides.items()
    }
    codes = {row[2] for rows in passed.values() for row in rows}
    split = len(codes) > 1
    question = (*(edited[name] for name in EDITS if name != "known"), split or codes)
    return question, figures(passed["a"], split), figures(passed["b"], split)


@pytest.mark.parametrize("life", range(LIVES))
def test_what_has_changed_is_told_over_edits(tmp_path: Path, life: int) -> None:
    chance = Random(life)
    codes = chance.choice([["EUR"], ["EUR", "USD"]])
    sides = {side: rows_of(chance, codes) for side in "ab"}
    edited = {name: values[0] for name, values in EDITS.items()}
    before: list[tuple[tuple[Any, ...], Differing, Any]] = []
    for day in range(1, 8):
        what = chance.choice(["a", "b", "nothing", *EDITS]) if day > 1 else "nothing"
        if what in sides:
            sides[what] = rows_of(chance, codes)
        elif what in EDITS:
            edited[what] = chance.choice(EDITS[what])
        written(tmp_path, sides, edited)
        now = datetime(2026, 11, day, 12, tzinfo=UTC)
        report: Report = run_checks(read_checks(tmp_path / "checks.yaml"), history=History(tmp_path / "h.db"), now=now)
        (verdict,) = report.verdicts
        if verdict.outcome == "not_run":
            continue
        question, a, b = asked(sides, edited)
        found = differing(a, b, Decimal(edited["tolerance"] or "0.01"))
        changes = verdict.changes
        assert verdict.comparison is not None
        assert changes is not None
        rows = verdict.comparison.rows
        assert {tuple(row.key.values()): (row.status, row.diff) for row in rows if row.status != "match"} == found
        last = next((one for one in reversed(before) if one[0] == question), None)
        whole = (verdict.outcome, a, b)
        if last is None:
            assert changes.note.startswith("first run that asks just this") == bool(before), (day, what)
        else:
            _, old, as_it_was = last
            moved = {key for key in found if key in old and old[key] != found[key]}
            assert told(changes) == (found.keys() - old.keys(), old.keys() - found.keys(), moved), (day, what)
            assert changes.same == (whole == as_it_was), (day, what)
        before.append((question, found, whole))
