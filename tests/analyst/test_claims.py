"""Every claim of a comparison, over generated pairs of tables, is true by an oracle that shares no line with it; and
its query, run on its own, proves it.

`make claims PAIRS=5000` tries as many pairs, from SEED on; see `claim_oracle` for the oracle.
"""

import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, get_args

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, event, given, seed, settings
from hypothesis import strategies as st

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    Claim,
    CompareRequest,
    Comparison,
    Dimension,
    Filter,
    Hierarchy,
    Measure,
    Source,
    compare,
    page,
)
from treadle.analyst.showing.sentences import SENTENCES, Kind

from .claim_oracle import RANKS, TRIALS, Key, Node, Row, Table, World, below, nodes, total

pytestmark = pytest.mark.usefixtures("one_engine")

PAIRS = int(os.environ.get("TREADLE_CLAIMS", "50"))
FIRST = int(os.environ.get("TREADLE_CLAIMS_SEED", "0"))
_PART = 25
QUICK = Bounds(threads=1)
COLUMNS = ("company", "period", "currency", "amount")
AMOUNTS = [None, *map(Decimal, ("0.00", "0.01", "5.00", "-5.00", "50.00", "500.00", "5000.00", "7.50"))]
COMPANIES = ["1", "2", "3", "10", None]
MONTHS = ["202401", "202402", "202403"]
CODES: list[list[Any]] = [
    ["EUR"],
    ["EUR"],
    ["EUR"],
    ["USD"],
    ["EUR", "USD"],
    ["EUR", None],
    [None],
    ["EUR  "],
    ["eur", "USD"],
]
# The end of a year: special periods, and the balance carried forward into the next.
CLOSING = ["202312", "202313", "202316", "202400", "202401"]
FILTERS: list[tuple[dict[str, Any], str, Callable[[Any], bool]]] = [
    ({"dimension": "period", "value": "202401"}, "period", lambda v: v == "202401"),
    ({"dimension": "company", "op": "in", "value": ["1", "2"]}, "company", lambda v: v in ("1", "2")),
    ({"dimension": "company", "op": "!=", "value": "1"}, "company", lambda v: v != "1"),
    ({"dimension": "period", "op": "between", "value": ["202402", "202403"]}, "period",
     lambda v: v is not None and "202402" <= v <= "202403"),
    ({"dimension": "period", "op": "ytd", "value": "2023013"}, "period",
     lambda v: v is not None and "202301" <= v <= "202313"),
    ({"dimension": "period", "op": "rolling", "value": ["001.2024", 2]}, "period",
     lambda v: v is not None and "202312" <= v <= "202401"),
    ({"dimension": "period", "op": "qtd", "value": "16/2023"}, "period",
     lambda v: v is not None and "202310" <= v <= "202316"),
    ({"dimension": "company", "op": ">=", "value": "9"}, "company", lambda v: v is not None and int(v) >= 9),
    ({"dimension": "company", "op": "is null"}, "company", lambda v: v is None),
    ({"dimension": "company", "value": "77"}, "company", lambda v: v == "77"),
    ({"dimension": "company", "op": "between", "value": ["10", "9"]}, "company", lambda v: False),
]  # fmt: skip
REVERSED = "company between ['10', '9']"
LEFT_OUT = "company != 1"


TREES: list[list[tuple[str, str]]] = [
    [("all", "few"), ("all", "more"), ("few", "1"), ("few", "2"), ("more", "3"), ("more", "10"), ("more", "9")],
    [("few", "1"), ("few", "2"), ("more", "2"), ("more", "3"), ("all", "few"), ("all", "more")],
    [("1", "2"), ("1", "3"), ("3", "10")],
    [("few", "77")],
    [("all", "few"), ("odd", "few"), ("few", "10"), ("few", "0000000001")],
]


def _row(chance: Random, codes: list[Any], periods: list[str]) -> Row:
    return {
        "company": chance.choice(COMPANIES),
        "period": chance.choice(periods),
        "currency": chance.choice(codes),
        "amount": chance.choice(AMOUNTS),
    }


def _changed(chance: Random, row: Row) -> list[Row]:
    """What the other side makes of a row."""
    amount = row["amount"]
    match chance.choice(["same"] * 6 + ["gone", "twice", "turned", "tenfold", "off", "late", "other"]):
        case "gone":
            return []
        case "twice":
            return [row, row]
        case "turned":
            return [{**row, "amount": None if amount is None else -amount}]
        case "tenfold":
            return [{**row, "amount": None if amount is None else amount * 10}]
        case "off":
            return [{**row, "amount": (amount or 0) + chance.choice([Decimal("0.01"), Decimal("0.5"), 9, -9])}]
        case "late":
            return [{**row, "period": "202403"}]
        case "other":
            return [{**row, "company": "9"}]
        case _:
            return [row]


def _all(chance: Random, rows: list[Row]) -> list[Row]:
    """What is so of a whole side: its sign, its unit, its spelling, its grain."""

    def times(factor: int) -> list[Row]:
        return [{**row, "amount": None if row["amount"] is None else row["amount"] * factor} for row in rows]

    match chance.choice(["as it is"] * 3 + ["turned", "thousands", "spelled", "coarse", "twice", "few"]):
        case "turned":
            return times(-1)
        case "thousands":
            return times(1000)
        case "spelled":
            form = chance.choice(["{:0>10}", "{}.0"])
            return [{**row, "company": row["company"] and form.format(row["company"])} for row in rows]
        case "coarse":
            return [{**row, "company": chance.choice(["9", None])} for row in rows]
        case "twice":
            return rows + rows
        case "few":
            return rows[:1]
        case _:
            return rows


def questions(chance: Random) -> tuple[World, dict[str, Any]]:
    codes = [chance.choice(CODES) for _ in "ab"]
    periods = CLOSING if chance.random() < 0.3 else MONTHS
    first = [_row(chance, codes[0], periods) for _ in range(chance.choice([0, 1, 2, 4, 6, 8, 10, 12]))]
    second = list(first)
    # A change of the whole is seen where the rows are else alike.
    if chance.random() < 0.5:
        second = [new for row in first for new in _changed(chance, row)]
        second += [_row(chance, codes[1], periods) for _ in range(chance.randint(0, 2))]
    if chance.random() < 0.5:
        second = [{**row, "currency": chance.choice(codes[1])} for row in second]
    second = _all(chance, second)
    tables = [
        Table(
            rows,
            unit=chance.choice(["", "", "", "", "EUR", "TEUR"]),
            currency=chance.random() < 0.5,
            sign=chance.choice([1, 1, 1, 1, -1]),
        )
        for rows in (first, second)
    ]
    for table in tables:
        if chance.random() < 0.1:
            table.default = ("period", "202401")
    few = chance.choice([0, 0, 0, 1, 1, 2])
    filters = _filters(chance, few)
    dimensions = chance.choice([["company"], ["company", "period"], ["period"], [], ["company", "currency"]])
    tolerance = chance.choice([None, "0", "0.5", "10"])
    asked = {"dimensions": dimensions, "filters": [each[0] for each in filters]}
    if tolerance is not None:
        asked["tolerance"] = tolerance
    if "company" in dimensions:
        asked["subtotals"] = [f"tree{at}" for at in range(len(TREES)) if chance.random() < 0.3]
    tests = [(name, test, str(Filter(**given))) for given, name, test in filters]
    return World(tables[0], tables[1], dimensions, tests, Decimal(tolerance or "0.01")), asked


def _filters(chance: Random, count: int) -> list[Any]:
    """So many filters, no two on one dimension."""
    found: dict[str, Any] = {}
    for each in chance.sample(FILTERS, len(FILTERS)):
        if len(found) < count:
            found.setdefault(each[1], each)
    return list(found.values())


def source(folder: Path, name: str, table: Table) -> Source:
    def cell(value: object) -> str:
        return "" if value is None else f'"{value}"'

    lines = [",".join(COLUMNS), *(",".join(cell(row[column]) for column in COLUMNS) for row in table.rows)]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    default = table.default
    return Source(
        name=name,
        kind="csv",
        path=f"{name}.csv",
        dimensions=tuple(Dimension(name=column) for column in COLUMNS[:-1]),
        measures=(
            Measure(
                name="amount", decimals=2, unit=table.unit, sign=table.sign, currency="currency" * table.currency
            ),
        ),
        default_filters=() if default is None else (Filter(dimension=default[0], value=default[1]),),
    )  # fmt: skip


@pytest.mark.parametrize("part", range(FIRST, FIRST + -(-PAIRS // _PART)))
def test_every_claim_is_true(part: int) -> None:
    """In parts, each from a seed of its own, so that any number of pairs can be tried, and one part again."""
    judged = settings(
        max_examples=_PART,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(given(st.integers(0, 2**64))(_judge))
    seed(part)(judged)()


def _judge(number: int) -> None:
    world, asked = questions(Random(number))
    with TemporaryDirectory() as place:
        folder = Path(place)
        catalog = Catalog(
            [source(folder, name, table) for table, name in world.named], folder, hierarchies=hierarchies()
        )
        request = CompareRequest(source_a="a", source_b="b", **asked)
        if world.refused:
            with pytest.raises(AnalystError, match="not compared") as refusal:
                compare(catalog, request, bounds=QUICK)
            every = {code for used in world.used for code in used or () if code} | {world.unit(0), world.unit(1)}
            assert (SPELLED in str(refusal.value)) <= _apart(every)
            assert _apart({world.unit(0), world.unit(1)}) <= (SPELLED in str(refusal.value))
            return
        found = compare(catalog, request, bounds=QUICK)
        assert list(found.dimensions) == world.dimensions
        claims = [*found.claims, *found.warnings]
        for claim in claims:
            own = ("filter_without_rows", "nothing_between", "values_without_rows")
            assert claim.kind in own or list(claim.filters) == [
                *world.asked,
                *_own(world),
            ], claim
            assert TRUE[claim.kind](world, claim), claim
            assert claim.message
            event(claim.kind)
        _complete(world, {claim.kind for claim in claims})
        _added_up(world, found, claims)
        _proved(world, found)
        for row in found.rows:
            assert ("equal" in row.reason) <= world.known(row.key.get("currency"))
        assert "Traceback" not in page(found)


def hierarchies() -> list[Hierarchy]:
    found = []
    for at, edges in enumerate(TREES):
        groups = {group: tuple(member for parent, member in edges if parent == group) for group, _ in edges}
        found.append(Hierarchy(name=f"tree{at}", of="company", groups=groups))
    return found


def _added_up(world: World, found: Comparison, claims: list[Claim]) -> None:
    """Every subtotal is the sum of the keys below its group, and what does not add up is said."""
    for name, groups in found.subtotals.items():
        edges = TREES[int(name[-1])]
        told = {
            (one.group, one.currency): Node(
                (one.source_a_value, one.source_b_value), one.status, one.rows, one.differences, RANKS[one.worst]
            )
            for one in groups
        }
        assert told == nodes(world, edges, "company"), (name, groups)
        at = world.dimensions.index("company")
        values = {key[at] for key in world.keys}
        said = {claim.kind: claim.facts for claim in claims if claim.facts.get("hierarchy") == name}
        alone = values - {one for edge in edges for one in edge}
        assert said.get("in_no_group", {"count": 0})["count"] == len(alone)
        parents = {member: {parent for parent, other in edges if other == member} for _, member in edges}
        shared = {one for one in parents if len(parents[one]) > 1 and below(one, edges) & values}
        assert set(said.get("in_several_groups", {"members": ()})["members"]) == shared


# Of a query alone, of floating-point data, or of more currencies than are drawn; each has a test of its own elsewhere.
ELSEWHERE = {
    "mixed_currencies", "more_currencies", "approximate", "not_a_number", "not_examined", "whole_periods", "begun_days",
    "ordered_as_numbers", "to_be_said", "left_out", "no_periods",
}  # fmt: skip


def test_every_kind_of_claim_has_words_and_a_judge() -> None:
    assert set(get_args(Kind)) == set(SENTENCES) == set(TRUE) | ELSEWHERE
    assert "interpretation" not in Comparison.__struct_fields__


def _own(world: World) -> list[str]:
    fixed = {name for name, _, _ in world.filters}
    return [text for text in world.own if text.split()[0] not in fixed]


def _complete(world: World, kinds: set[str]) -> None:
    """What must not be kept silent."""
    known = [{code for code in used or () if code is not None} for used in world.used]
    assert ("different_currencies" in kinds) == (all(known) and known[0] != known[1])
    assert ("unknown_currency" in kinds) == any(used is not None and None in used for used in world.used)
    assert ("by_currency" in kinds) == (world.split and _both(world))
    assert ("nothing_between" in kinds) == (REVERSED in world.asked)
    assert ("values_without_rows" in kinds) == (_both(world) and _is_idle(world))


def _both(world: World) -> bool:
    return bool(world.passed[0] and world.passed[1])


def _proved(world: World, found: Comparison) -> None:
    """Runs each query on its own, over a database that holds nothing but what the statements before it made."""
    with duckdb.connect() as engine:
        for statement in found.sql:
            engine.execute(statement)
        for claim in [*found.claims, *found.warnings]:
            if claim.sql:
                rows = engine.execute(claim.sql).fetchall()
                assert PROVED.get(claim.kind, lambda world, facts, rows: True)(world, claim.facts, rows), (claim, rows)
            else:
                assert claim.kind in ("unknown_unit", "nothing_between")


def _nothing(world: World, claim: Claim) -> bool:
    return not world.passed[0] and not world.passed[1]


def _one_empty(world: World, claim: Claim) -> bool:
    empty = world.side(claim.facts["empty"])
    other = 1 - empty
    codes = sorted(world.used[other] or [], key=lambda code: (code is None, code)) if world.split else [None]
    sign = world.sides[other].sign
    sums = [total([row["amount"] for row in world.of(other, code)], sign) for code in codes]
    units = [code or "" for code in codes] if world.split else [world.unit(other)]
    return (not world.passed[empty] and bool(world.passed[other])) and list(claim.facts["amounts"]) == list(
        zip(sums, units, strict=True)
    )


def _totals(world: World, claim: Claim) -> bool:
    facts, code = claim.facts, claim.facts.get("currency")
    rows = [world.of(at, code) for at in (0, 1)]
    values = [total([row["amount"] for row in side], table.sign) for side, table in zip(rows, world.sides, strict=True)]
    gap = (values[0] or Decimal(0)) - (values[1] or Decimal(0))
    units = [facts["unit_a"], facts["unit_b"]]
    if world.split:
        mine = [(code or "").strip()] * 2 if not any(world.declared) else ["", ""]
    else:
        mine = [world.unit(0), world.unit(1)]
    both = bool(rows[0] and rows[1])
    equal = "are equal" in claim.message
    return (
        [facts["value_a"], facts["value_b"], facts["difference"]] == [*values, gap]
        and units == mine
        and facts["known"] == world.known(code)
        and facts["status"] == world.classed(bool(rows[0]), bool(rows[1]), *values)
        and equal == (both and not gap and None not in values and world.known(code))
        and ("currency" in facts) == world.split
    )


def _keys(world: World, claim: Claim) -> bool:
    facts, states = claim.facts, [world.status(key) for key in world.keys]
    counts = [facts[name] for name in ("matches", "minor", "major", "missing_in_a", "missing_in_b")]
    named = ["match", "minor_diff", "major_diff", "missing_in_a", "missing_in_b"]
    matches, whole = facts["matches"], len(states)
    told = claim.message.replace(" as numbers", "")
    bands = {
        "more than half of the keys match": matches * 2 > whole,
        "less than half of the keys match": 0 < matches * 2 < whole,
        ", half of the keys match": matches * 2 == whole,
        "none of the keys match": matches == 0,
        " most of the keys match": matches * 10 >= whole * 9,
        "nearly all of the keys match": matches * 100 >= whole * 99,
        f"all {whole} keys match": matches == whole,
        "no key in common": not set(world.groups[0]) & set(world.groups[1]),
        "the one key matches": (matches, whole) == (1, 1),
        "there is one key, and it does not match": (matches, whole) == (0, 1),
    }
    said = [true for words, true in bands.items() if words in told]
    if facts["known"] != (world.split or world.known()) or ("as numbers" in claim.message and facts["known"]):
        return False
    return counts == [states.count(name) for name in named] and facts["total"] == whole and all(said) and bool(said)


def _offset(world: World, claim: Claim) -> bool:
    facts, keys = claim.facts, world.of_currency(claim.facts["currency"])
    gaps = [world.gap(key) for key in keys]
    net, gross = abs(sum(gaps, Decimal(0))), sum(map(abs, gaps), Decimal(0))
    true = (abs(facts["net"]), facts["gross"], facts["more"]) == (net, gross, gross - net) and gross > net
    if facts["only"]:
        return true and net <= world.tolerance < gross
    return true and net > world.tolerance


def _largest(world: World, claim: Claim) -> bool:
    facts, keys = claim.facts, world.differing(claim.facts["currency"])
    key = tuple(facts["key"].values())
    most = max(abs(world.gap(each)) for each in keys)
    if facts["tied"] != (sum(abs(world.gap(each)) == most for each in keys) > 1):
        return False
    return key in keys and facts["difference"] == abs(world.gap(key)) == most and facts["status"] == world.status(key)


def _by_currency(world: World, claim: Claim) -> bool:
    told = [set(claim.facts["currencies_a"]), set(claim.facts["currencies_b"])]
    return world.split and told == world.used


SPELLED = "are taken for several because they are spelled so: declare 'format: trim, upper' on dimension currency"


def _apart(codes: set[Any]) -> bool:
    """Whether any of the currencies are one but for case and blanks."""
    known = {code for code in codes if code}
    return len({code.strip().upper() for code in known}) < len(known)


def _different_currencies(world: World, claim: Claim) -> bool:
    known = [{code for code in used or () if code is not None} for used in world.used]
    if (SPELLED in claim.message) != _apart(known[0] | known[1]):
        return False
    return (set(claim.facts["only_a"]), set(claim.facts["only_b"])) == (known[0] - known[1], known[1] - known[0])


def _unknown_currency(world: World, claim: Claim) -> bool:
    return None in (world.used[world.side(claim.facts["side"])] or ())


def _unknown_unit(world: World, claim: Claim) -> bool:
    side = world.side(claim.facts["side"])
    silent = not world.sides[side].unit and not world.used[side]
    return silent and claim.facts["unit"] == world.unit(1 - side) != ""


def _contradicted_unit(world: World, claim: Claim) -> bool:
    side = world.side(claim.facts["side"])
    used = world.used[side] or set()
    if (SPELLED in claim.message) != _apart({*used, world.sides[side].unit}):
        return False
    return world.sides[side].unit == claim.facts["unit"] and used == set(claim.facts["currencies"]) != {
        claim.facts["unit"]
    }


def _filter_without_rows(world: World, claim: Claim) -> bool:
    facts, side = claim.facts, world.side(claim.facts["side"])
    rows, default = world.sides[side].rows, world.sides[side].default
    tests = {text: (name, test) for name, test, text in world.filters}
    if default is not None:
        tests[f"{default[0]} = {default[1]}"] = (default[0], lambda value: value == default[1])
    name, test = tests[facts["condition"]]
    values = sorted({row[name] for row in rows}, key=lambda value: (value is None, value))
    return name == facts["dimension"] and not any(test(row[name]) for row in rows) and facts["values"] == values[:6]


def _values_without_rows(world: World, claim: Claim) -> bool:
    facts = claim.facts
    told = (facts["left_out"], facts["sides"], facts["dimension"], facts["values"])
    return told == (True, ["a", "b"], "company", ["1"]) and _is_idle(world)


def _is_idle(world: World) -> bool:
    """Whether a question leaves out a company of which neither side has a row under the other conditions."""
    named = {name for name, _, _ in world.filters}
    others = [(name, test) for name, test, text in world.filters if text != LEFT_OUT]
    there = set()
    for table in world.sides:
        default = table.default if table.default is not None and table.default[0] not in named else None
        rows = [row for row in table.rows if default is None or row[default[0]] == default[1]]
        there |= {row["company"] for row in rows if all(test(row[name]) for name, test in others)}
    return LEFT_OUT in world.asked and "1" not in there


def _nothing_between(world: World, claim: Claim) -> bool:
    return claim.facts["condition"] == REVERSED and not any(world.passed)


def _no_rows(world: World, claim: Claim) -> bool:
    return not world.passed[world.side(claim.facts["side"])]


def _spelling(world: World, claim: Claim) -> bool:
    at = world.dimensions.index(claim.facts["dimension"])
    spelled = TRIALS[claim.facts["trial"]]

    def respelled(status: str) -> set[Key]:
        missing = [key for key in world.keys if world.status(key) == status]
        return {(*key[:at], spelled(key[at]), *key[at + 1 :]) for key in missing}

    return claim.facts["count"] == len(respelled("missing_in_a") & respelled("missing_in_b")) > 0


def _granularity(world: World, claim: Claim) -> bool:
    if world.split and claim.facts["dimension"] == "currency":
        return False
    facts, coarse = claim.facts, world.side(claim.facts["coarse"])
    name = facts["dimension"]
    at = world.dimensions.index(name)
    everywhere = {row[name] for row in world.sides[coarse].rows}
    fine = {row[name] for row in world.passed[1 - coarse]}
    rest = [{key[:at] + key[at + 1 :] for key in group} for group in world.groups]
    apart = not set(world.groups[0]) & set(world.groups[1])
    return everywhere == {facts["value"]} and len(fine) > 1 and apart and facts["meeting"] == len(rest[0] & rest[1]) > 0


def _absent(world: World, claim: Claim) -> bool:
    facts, side = claim.facts, world.side(claim.facts["side"])
    name = facts["dimension"]
    lacking = {row[name] for row in world.passed[1 - side]} - {row[name] for row in world.passed[side]}
    whole = ("at all" in claim.message) <= (facts["values"][0] not in {row[name] for row in world.sides[side].rows})
    return facts["count"] == len(lacking) and set(facts["values"]) <= lacking and whole


def _pairs(world: World) -> list[tuple[Decimal, Decimal, Key]]:
    both = [key for key in world.keys if all(key in group for group in world.groups)]
    values = [(*(value or Decimal(0) for value in world.values(key)), key) for key in both]
    return [each for each in values if each[0] or each[1]]


def _pattern(world: World, claim: Claim) -> bool:
    facts, pairs = claim.facts, _pairs(world)
    large = world.side(facts["large"])
    if claim.kind == "sign":
        true = [a == -b for a, b, _ in pairs]
    else:
        true = [each[large] == each[1 - large] * facts["factor"] for each in pairs]
    # Nearly all of what both sides have shows it, or it is not told.
    return (facts["count"], facts["total"]) == (sum(true), len(pairs)) and sum(true) * 10 >= len(pairs) * 9


def _repeated(world: World, claim: Claim) -> bool:
    facts, large = claim.facts, world.side(claim.facts["large"])
    rows = [[group[key].rows for group in world.groups] for _, _, key in _pairs(world)]
    true = [
        each[large] == each[1 - large] * facts["factor"]
        and count[large] == count[1 - large] * facts["factor"]
        and world.status(each[2]) != "match"
        for each, count in zip(_pairs(world), rows, strict=True)
    ]
    differing = [key for key in world.keys if world.status(key) != "match"]
    return (facts["count"], facts["total"]) == (sum(true), len(differing))


def _duplicates(world: World, claim: Claim) -> bool:
    side = world.side(claim.facts["side"])
    once = {tuple(row.items()): row for row in world.passed[side]}.values()
    sums: dict[Key, list[Any]] = {}
    for row in once:
        sums.setdefault(tuple(row[name] for name in world.dimensions), []).append(row["amount"])
    sign, other = world.sides[side].sign, world.groups[1 - side]
    mended = [
        key
        for key, values in sums.items()
        if key in other and world.gap(key) and (total(values, sign) or 0) == (other[key].value or 0)
    ]
    return len(once) < len(world.passed[side]) and 0 < claim.facts["count"] <= len(mended)


def _grouped(world: World, claim: Claim) -> bool:
    """See `_added_up`, which holds them against the tree."""
    return claim.facts["dimension"] == "company" and claim.facts["count"] > 0


TRUE: dict[str, Callable[[World, Claim], bool]] = {
    "nothing": _nothing, "one_empty": _one_empty, "totals": _totals, "keys": _keys, "offset": _offset,
    "largest": _largest, "by_currency": _by_currency, "different_currencies": _different_currencies,
    "unknown_currency": _unknown_currency, "unknown_unit": _unknown_unit, "contradicted_unit": _contradicted_unit,
    "filter_without_rows": _filter_without_rows, "nothing_between": _nothing_between, "no_rows": _no_rows,
    "values_without_rows": _values_without_rows,
    "spelling": _spelling,
    "granularity": _granularity, "absent": _absent, "factor": _pattern, "sign": _pattern, "repeated": _repeated,
    "duplicates": _duplicates, "in_no_group": _grouped, "in_several_groups": _grouped,
}  # fmt: skip

PROVED: dict[str, Callable[[World, Any, list[Any]], bool]] = {
    "totals": lambda world, facts, rows: [
        [row[0], row[1]] for row in rows if not world.split or row[-1] == facts["currency"]
    ] == [[facts["value_a"], facts["value_b"]]],
    "keys": lambda world, facts, rows: sum(row[4] for row in rows) == facts["matches"],
    "offset": lambda world, facts, rows: facts["gross"] in [row[10] for row in rows],
    "largest": lambda world, facts, rows: abs(rows[0][-4]) == facts["difference"],
    "absent": lambda world, facts, rows: len(rows) == facts["count"],
    "spelling": lambda world, facts, rows: rows == [(facts["count"],)],
    "granularity": lambda world, facts, rows: rows == [(facts["meeting"],)],
    "factor": lambda world, facts, rows: rows == [(facts["count"], facts["total"])],
    "sign": lambda world, facts, rows: rows == [(facts["count"], facts["total"])],
    "repeated": lambda world, facts, rows: rows[0][0] == facts["count"],
    "duplicates": lambda world, facts, rows: rows == [(facts["count"],)],
    "in_no_group": lambda world, facts, rows: len(rows) == facts["count"],
    "in_several_groups": lambda world, facts, rows: [row[0] for row in rows] == list(facts["members"]),
    "no_rows": lambda world, facts, rows: rows in ([(None,)], [(0,)]),
    "filter_without_rows": lambda world, facts, rows: [row[0] for row in rows] == facts["values"],
    "unknown_currency": lambda world, facts, rows: None in [row[0] for row in rows],
    "contradicted_unit": lambda world, facts, rows: {row[0] for row in rows} == set(facts["currencies"]),
}  # fmt: skip
