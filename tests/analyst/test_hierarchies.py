"""Hierarchies: every subtotal is the sum of what is below its group, by plain Python, and what does not add up is said.

The claims about them over generated pairs are judged in `test_claims.py`; here they meet mappings, shares, rates,
currencies, filters, formats and engines.
"""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from declared import COMPANIES

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    Hierarchy,
    Measure,
    QueryRequest,
    QueryResult,
    Source,
    check,
    compare,
    parse_format,
    query,
)
from treadle.analyst.declared.source import Conversion, Mapping

from .claim_oracle import below
from .conftest import QUICK, write_csv, written

pytestmark = pytest.mark.usefixtures("one_engine")

OLD = ["100", "0200", "300", "ü]]'", "500"]
NEW = ["A", "B", "'; DROP", "D"]
CODES = ["EUR", "USD", "GBP"]
RATES = {("USD", "1"): Fraction("0.9"), ("USD", "2"): Fraction("0.8"), ("GBP", "1"): Fraction("1.25"),
         ("GBP", "2"): Fraction("1.5")}  # fmt: skip
COUNT = Measure(name="rows", column="*", aggregation="count")
Row = tuple[Any, ...]
Edges = list[tuple[str, str]]


class World:
    """Two sources of accounts in companies, of which the first may be mapped and converted, and a tree over them."""

    def __init__(self, number: int, place: Path) -> None:
        chance = Random(number)
        self.mapped, self.converted, self.told = (chance.random() < 0.5 for _ in "123")
        self.kinds = [chance.choice(["csv", "json", "sqlite", "duckdb", "parquet"]) for _ in "ab"]
        self.names = NEW if self.mapped else OLD
        self.edges = self._edges(chance)
        shares = {old: chance.choice([[(new, "1")] for new in NEW] + [[("A", "0.3"), ("B", "0.7")]]) for old in OLD}
        self.parts = {old: [(new, Fraction(share)) for new, share in parts] for old, parts in shares.items()}
        self.rows = [[self._row(chance) for _ in range(chance.choice([1, 5, 25]))] for _ in "ab"]
        self.filter = chance.choice([None, None, ("period", "1"), ("account", self.names[0])])
        table = [(old, new, share) for old, parts in shares.items() for new, share in parts]
        sources = [self._source(place, at, rows) for at, rows in enumerate(self.rows)]
        write_csv(place / "map.csv", ("old", "new", "share"), table)
        write_csv(place / "rates.csv", ("code", "period", "rate"), [(*key, float(rate)) for key, rate in RATES.items()])
        write_csv(place / "tree.csv", ("up", "down"), [(None, "none"), *self.edges, self.edges[0]])
        sources += [
            Source(name="map", kind="csv", path="map.csv", measures=(Measure(name="share"),),
                   dimensions=(Dimension(name="old"), Dimension(name="new"))),
            Source(name="rates", kind="csv", path="rates.csv", measures=(Measure(name="rate"),),
                   dimensions=(Dimension(name="code"), Dimension(name="period"))),
            Source(name="edges", kind="csv", path="tree.csv", measures=(COUNT,),
                   dimensions=(Dimension(name="up"), Dimension(name="down"))),
        ]  # fmt: skip
        groups = {up: tuple(down for other, down in self.edges if other == up) for up, _ in self.edges}
        trees = [Hierarchy(name="written", of="account", groups=groups),
                 Hierarchy(name="read", of="Account", source="edges", group="up", member="down")]  # fmt: skip
        self.catalog = Catalog(sources, place, hierarchies=trees)

    def _edges(self, chance: Random) -> Edges:
        groups = [f"g{at}" for at in range(4)]
        edges = [(up, down) for at, up in enumerate(groups) for down in groups[at + 1 :] if chance.random() < 0.4]
        edges += [(chance.choice(groups), name) for name in self.names if chance.random() < 0.8]
        edges += [(chance.choice(groups), chance.choice(self.names)) for _ in range(chance.choice([0, 0, 2]))]
        return list(dict.fromkeys([*edges, ("g3", self.names[1])]))

    def _row(self, chance: Random) -> Row:
        amount = chance.choice([None, Decimal(chance.randint(-(10**7), 10**7)) / 100])
        code = chance.choice(CODES) if self.converted or self.told else "EUR"
        return chance.choice([*OLD, None]), chance.choice("12"), code, amount

    def _source(self, place: Path, at: int, rows: Sequence[Row]) -> Source:
        name = "ab"[at]
        conversion = Conversion(to="EUR", source="rates", currency="code", rate="rate", on=("period",))
        mapping = Mapping(source="map", old="old", new="new", share="share")
        columns = ("account", "period", "currency", "amount")
        return Source(
            **written(place, name, self.kinds[at], columns, rows),
            dimensions=(Dimension(name="account", mapping=mapping if self.mapped else None),
                        Dimension(name="period"), Dimension(name="currency")),
            measures=(Measure(name="amount", decimals=2, currency="currency",
                              conversion=conversion if self.converted else None),),
        )  # fmt: skip

    def figures(self, at: int) -> list[tuple[Any, Any, Fraction | None]]:
        """Account, currency and amount of each row as they are after mapping, conversion and filters."""
        found = []
        for account, period, code, amount in self.rows[at]:
            parts = self.parts[account] if self.mapped and account is not None else [(account, Fraction(1))]
            rate = RATES.get((code, period), Fraction(1)) if self.converted else Fraction(1)
            for name, share in parts:
                if self.filter is None or self.filter[1] == {"period": period, "account": name}[self.filter[0]]:
                    value = None if amount is None else Fraction(amount) * rate * share
                    found.append((name, None if self.converted else code, value))
        return found

    def subtotals(self, at: int, apart: bool) -> dict[tuple[Any, Any], Fraction | None]:
        known = {one for edge in self.edges for one in edge}
        found: dict[tuple[Any, Any], list[Fraction]] = defaultdict(list)
        for name, code, value in self.figures(at):
            groups: list[Any] = [
                up for up in dict.fromkeys(up for up, _ in self.edges) if name in below(up, self.edges)
            ]
            for group in groups if name in known else [None]:
                found[group, code if apart else None] += [] if value is None else [value]
        return {key: sum(values, Fraction(0)) if values else None for key, values in found.items()}

    @property
    def request(self) -> dict[str, Any]:
        filters = [] if self.filter is None else [{"dimension": self.filter[0], "value": self.filter[1]}]
        return {"dimensions": ["account"], "filters": filters, "subtotals": ["written", "read"]}


@pytest.mark.parametrize("number", range(8))
def test_every_subtotal_is_the_sum_of_its_leaves(tmp_path: Path, number: int) -> None:
    world = World(number, tmp_path)
    used = {code for at in (0, 1) for _, code, _ in world.figures(at)}
    found = compare(world.catalog, CompareRequest(source_a="a", source_b="b", **world.request), bounds=QUICK)
    sides = [world.subtotals(at, len(used) > 1) for at in (0, 1)]
    for name in ("written", "read"):
        told = {(one.group, one.currency): one for one in found.subtotals[name]}
        assert set(told) == set(sides[0]) | set(sides[1])
        for key, one in told.items():
            values = [None if (value := side.get(key)) is None else value for side in sides]
            assert [_exact(one.source_a_value), _exact(one.source_b_value)] == values
            assert _exact(one.diff) == (values[0] or 0) - (values[1] or 0)
            assert (one.status == "missing_in_b") == (key not in sides[1])
    asked = query(world.catalog, QueryRequest(source="a", **world.request), bounds=QUICK)
    apart = len({code for _, code, _ in world.figures(0)}) > 1
    for groups in asked.subtotals.values():
        rows = {(one["group"], one["key"].get("currency")): _exact(one["figures"]["amount"]) for one in groups}
        assert rows == world.subtotals(0, apart)


def _exact(value: Decimal | None) -> Fraction | None:
    return None if value is None else Fraction(value)


def test_totals_of_a_query_are_told_by_currency(tmp_path: Path) -> None:
    """One sum over several currencies is none; what has no currency of its own is added up all the same."""
    write_csv(tmp_path / "a.csv", ("account", "code", "amount", "pieces"),
              [("1", "EUR", "1.10", "1"), ("1", "USD", "2.20", "2"), ("2", "EUR", "0.05", "3"),
               ("2", None, None, "4")])  # fmt: skip
    source = Source(
        name="a", kind="csv", path="a.csv",
        dimensions=(Dimension(name="account"), Dimension(name="code")),
        measures=(Measure(name="amount", currency="code", decimals=2), Measure(name="pieces")),
    )  # fmt: skip
    catalog = Catalog([source], tmp_path)
    found = query(catalog, QueryRequest(source="a", dimensions=["account"], order=["pieces desc"]), bounds=QUICK)
    assert found.dimensions == ("account", "code")
    assert found.totals == {"amount": None, "pieces": Decimal(10)}
    assert found.totals_by_currency == [
        {"code": "EUR", "amount": Decimal("1.15")},
        {"code": "USD", "amount": Decimal("2.20")},
        {"code": None, "amount": None},
    ]
    assert [list(row.values()) for row in found.rows] == [
        ["2", None, None, Decimal(4)],
        ["2", "EUR", Decimal("0.05"), Decimal(3)],
        ["1", "USD", Decimal("2.20"), Decimal(2)],
        ["1", "EUR", Decimal("1.10"), Decimal(1)],
    ]
    assert found.warnings == (
        "amount of a is told by code (EUR, USD, (none)), as amounts of different currencies are not added up",
    )
    one = query(catalog, QueryRequest(source="a", filters=[{"dimension": "code", "value": "EUR"}]), bounds=QUICK)
    assert (one.totals, one.totals_by_currency) == ({"amount": Decimal("1.15"), "pieces": Decimal(4)}, [])
    pieces = query(catalog, QueryRequest(source="a", measures=["pieces"]), bounds=QUICK)
    assert (pieces.dimensions, pieces.totals) == ((), {"pieces": Decimal(10)})


def small(place: Path, groups: dict[str, tuple[str, ...]], *, key: Dimension | None = None, **measure: Any) -> Catalog:
    rows = [("1", "10.00"), ("1", "30.00"), ("2", "5.00"), ("0003", "2.00")]
    for name in "ab":
        write_csv(place / f"{name}.csv", ("company", "amount"), rows)
    amount = Measure(name="amount", decimals=2, **measure)
    company = key or Dimension(name="company")
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=(company,), measures=(amount,)) for name in "ab"
    ]
    return Catalog(sources, place, hierarchies=[Hierarchy(name="tree", of="company", groups=groups)])


def both(catalog: Catalog, **request: Any) -> tuple[Comparison, QueryResult]:
    given: dict[str, Any] = {"dimensions": ["company"], "subtotals": ["tree"]} | request
    return (
        compare(catalog, CompareRequest(source_a="a", source_b="b", **given), bounds=QUICK),
        query(catalog, QueryRequest(source="a", **given), bounds=QUICK),
    )


def told(found: tuple[Comparison, QueryResult]) -> dict[Any, Any]:
    compared = {one.group: one.source_a_value for one in found[0].subtotals["tree"]}
    asked = {one["group"]: one["figures"]["amount"] for one in found[1].subtotals["tree"]}
    assert compared == asked
    return compared


def test_a_group_that_is_a_value_too_counts_with_its_own_rows(tmp_path: Path) -> None:
    found = both(small(tmp_path, {"1": ("2", "0003")}))
    assert told(found) == {"1": Decimal("47.00")}


@pytest.mark.parametrize(
    ("aggregation", "figure"), [("avg", "22.50"), ("min", "5.00"), ("max", "30.00"), ("count", "3")]
)
def test_other_figures_than_sums_are_those_of_all_rows_below(tmp_path: Path, aggregation: Any, figure: str) -> None:
    catalog = small(tmp_path, {"top": ("low", "2"), "low": ("1",)}, aggregation=aggregation)
    expected = Decimal("15.00") if aggregation == "avg" else Decimal(figure)
    assert told(both(catalog))["top"] == expected


@pytest.mark.parametrize("key", [
    Dimension(name="company", format=parse_format("alpha(10)")), Dimension(name="company", type="integer"),
])  # fmt: skip
def test_members_are_spelled_as_keys_may_be(tmp_path: Path, key: Dimension) -> None:
    found = both(small(tmp_path, {"Top": ("0001", "2"), "other": ("3", "1.0")}, key=key))
    assert told(found) == {"Top": Decimal("45.00"), "other": Decimal("2.00")}
    assert found[0].warnings == []


def test_what_is_below_a_group_by_two_ways_counts_once_in_it(tmp_path: Path) -> None:
    found = both(small(tmp_path, {"top": ("left", "right"), "left": ("1", "2"), "right": ("1", "0003")}))
    assert told(found) == {
        "top": Decimal("47.00"), "left": Decimal("45.00"), "right": Decimal("42.00"),
    }  # fmt: skip
    says = (
        "1 (in left and right) of hierarchy tree is right below more than one group, whose subtotals each have the "
        "figures: these do not add up"
    )
    assert [claim.message for claim in found[0].warnings] == [says] == list(found[1].warnings)


def test_a_group_of_which_one_side_has_nothing_is_told_to_be_no_key(make: Any, tmp_path: Path) -> None:
    sources = [make("a", [("1", "5"), ("2", "5")]), make("b", [("1", "5")])]
    tree = Hierarchy(name="tree", of="company", groups={"late": ("2",)})
    request = CompareRequest(source_a="a", source_b="b", dimensions=["company"], subtotals=["tree"])
    found = compare(Catalog(sources, tmp_path, hierarchies=[tree]), request, bounds=QUICK)
    assert found.rows[0].reason == "only in a, with 5.00; b has no row for this key"
    assert found.subtotals["tree"][0].reason == "only in a, with 5.00; b has no row for this figure"


def test_what_is_in_no_group_is_said_and_told_apart(tmp_path: Path) -> None:
    found = both(small(tmp_path, {"top": ("1",)}))
    assert told(found) == {"top": Decimal("40.00"), None: Decimal("7.00")}
    says = "company 0003, 2 are in no group of hierarchy tree: no group's subtotal has their figures"
    assert [claim.message for claim in found[0].warnings] == [says] == list(found[1].warnings)


@pytest.mark.parametrize(
    ("groups", "way"),
    [
        ({"a": ("a",)}, "a > a"),
        ({"a": ("b", "1"), "b": ("c",), "c": ("a",)}, "a > b > c > a"),
        ({"top": ("a",), "a": ("b",), "b": ("A ",)}, ""),
        ({"001": ("2",), "2": ("1",)}, "1 > 2 > 1"),
    ],
)
def test_circles_are_refused_with_the_way_round(tmp_path: Path, groups: Any, way: str) -> None:
    key = Dimension(name="company", format=parse_format("trim, upper, alpha(10)"))
    catalog = small(tmp_path, groups, key=key)
    with pytest.raises(AnalystError, match="goes round in a circle") as refused:
        both(catalog)
    assert way in str(refused.value)


def test_a_check_of_sources_says_what_is_wrong_with_the_groups_over_them(tmp_path: Path) -> None:
    """A circle was told by the first question about it, and every source was good."""
    catalog = small(tmp_path, {"a": ("b",), "b": ("a",)})
    trees = [*catalog.hierarchies.values(), Hierarchy(name="few", of="company", groups={"few": ("1",)})]
    found = check(Catalog(catalog.sources.values(), tmp_path, hierarchies=trees), catalog.sources["a"], bounds=QUICK)
    (problem,) = found.problems
    assert problem == "tree: hierarchy 'tree' goes round in a circle: a > b > a; a group cannot be below itself"
    assert [text for text in found.warnings if "are in no group of hierarchy few" in text]


def test_a_deep_hierarchy_ends(tmp_path: Path) -> None:
    chain = {f"g{at}": (f"g{at + 1}",) for at in range(99)} | {"g99": ("1",)}
    assert set(told(both(small(tmp_path, chain))).values()) == {Decimal("40.00"), Decimal("7.00")}
    with pytest.raises(AnalystError, match="more than 100 levels deep"):
        both(small(tmp_path, {f"g{at}": (f"g{at + 1}",) for at in range(20_000)}))


def test_names_that_are_not_there_are_refused(tmp_path: Path) -> None:
    catalog = small(tmp_path, {"top": ("1",)})
    with pytest.raises(AnalystError, match="there is no hierarchy 'tre'; did you mean 'tree'"):
        both(catalog, subtotals=["tre"])
    with pytest.raises(AnalystError, match="not among what is asked by: add it to the dimensions"):
        both(catalog, dimensions=[])
    for wrong, says in [
        ({"of": "none", "groups": {"a": ("1",)}}, "which no source has as a dimension"),
        ({"of": "company"}, "needs its 'groups', or the 'source'"),
        ({"of": "company", "source": "a", "group": "company", "member": "none"}, "there is no dimension 'none'"),
        ({"of": "company", "groups": {"a": ("",)}}, "an empty name"),
    ]:
        with pytest.raises((AnalystError, ValueError), match=says):
            Catalog(catalog.sources.values(), tmp_path, hierarchies=[Hierarchy(name="x", **wrong)])


@pytest.mark.parametrize(
    ("rows", "says"),
    [([("top", None)], "has a row without a down: under top"), ([], "has no row with a group"),
     ([(None, "1")], "has no row with a group")],
)  # fmt: skip
def test_a_source_that_is_no_hierarchy_is_refused(tmp_path: Path, rows: list[Row], says: str) -> None:
    write_csv(tmp_path / "tree.csv", ("up", "down"), rows)
    catalog = small(tmp_path, {"top": ("1",)})
    edges = Source(name="edges", kind="csv", path="tree.csv", measures=(COUNT,),
                   dimensions=(Dimension(name="up"), Dimension(name="down")))  # fmt: skip
    tree = Hierarchy(name="tree", of="company", source="edges", group="up", member="down")
    with pytest.raises(AnalystError, match=says):
        both(Catalog([*catalog.sources.values(), edges], tmp_path, hierarchies=[tree]))


@pytest.mark.parametrize(
    ("text", "line"),
    [(COMPANIES.replace("of: company", "off: company"), 6), (COMPANIES.replace("[1, 2, 3]", "{1: 2}"), 9),
     (COMPANIES.replace("[Europe, 4]", "[Europe, '']"), 8), (COMPANIES.replace("groups:", "gruppen:"), 7)],
)  # fmt: skip
def test_a_mistake_in_the_file_is_told_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "sources.yaml").write_text(text)
    with pytest.raises(AnalystError, match=f"line {line}:"):
        Catalog.load(tmp_path / "sources.yaml")
