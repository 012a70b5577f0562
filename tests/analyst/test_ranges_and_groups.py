"""Ranges in hierarchies, and filters on what is below a group: figures by plain Python, and what is refused."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    DrillRequest,
    Filter,
    Hierarchy,
    Measure,
    QueryRequest,
    RowsRequest,
    Source,
    compare,
    compare_rows,
    drill,
    parse_format,
    query,
)
from treadle.analyst.declared.source import Mapping

from .conftest import QUICK, write_csv, written

pytestmark = pytest.mark.usefixtures("one_engine")

COUNT = Measure(name="rows", column="*", aggregation="count")
GROUPS = {"Result": ("Revenue", "Costs"), "Revenue": ("8000..8999", "100"), "Costs": ("4000 .. 4999", "500..500")}
BOUNDS = {"Revenue": [(8000, 8999), (100, 100)], "Costs": [(4000, 4999), (500, 500)]}
BOUNDS["Result"] = [*BOUNDS["Revenue"], *BOUNDS["Costs"]]


def world(place: Path, number: int) -> tuple[Catalog, list[list[tuple[int, Decimal]]]]:
    """Two sources of accounts, and the hierarchy of GROUPS written out and as SAP keeps it."""
    chance = Random(number)
    accounts = [99, 100, 101, 499, 500, 501, 3999, 4000, 4999, 5000, 7999, 8000, 8500, 8999, 9000, 80000]
    rows = [[(chance.choice(accounts), Decimal(chance.randint(-999, 999)) / 100) for _ in range(30)] for _ in "ab"]
    kinds = [chance.choice(["csv", "sqlite", "duckdb", "json"]) for _ in "ab"]
    account = [
        Dimension(name="account"),
        Dimension(name="account", format=parse_format("alpha(6)")),
        Dimension(name="account", type="integer"),
    ][number % 3]
    padded = [f"{{:0{6 if number % 3 == 1 and chance.random() < 0.5 else 1}}}" for _ in "ab"]
    sources = [
        Source(
            **written(place, name, kinds[at], ("account", "amount"),
                      [(padded[at].format(one), amount) for one, amount in rows[at]]),
            dimensions=(account,),
            measures=(Measure(name="amount", decimals=2, unit="EUR"),),
        )
        for at, name in enumerate("ab")
    ]  # fmt: skip
    table = [("Result", "Revenue", None), ("Result", "Costs", ""), ("Revenue", "8000", "8999"),
             ("Revenue", "100", "100"), ("Costs", "4000", "4999"), ("Costs", "500", "")]  # fmt: skip
    write_csv(place / "nodes.csv", ("item", "from", "to"), table)
    nodes = Source(name="nodes", kind="csv", path="nodes.csv", measures=(COUNT,),
                   dimensions=tuple(Dimension(name=name) for name in ("item", "from", "to")))  # fmt: skip
    trees = [
        Hierarchy(name="written", of="account", groups=GROUPS),
        Hierarchy(name="read", of="account", source="nodes", group="item", member="from", to="to"),
    ]
    return Catalog([*sources, nodes], place, hierarchies=trees), rows


def below(account: int, group: str | None) -> bool:
    if group is None:
        return not below(account, "Result")
    return any(low <= account <= high for low, high in BOUNDS[group])


def summed(rows: list[tuple[int, Decimal]], group: str | None) -> Decimal | None:
    found = [amount for account, amount in rows if below(account, group)]
    return sum(found, Decimal(0)) if found else None


@pytest.mark.parametrize("number", range(3))
def test_subtotals_of_ranges_and_totals_under_a_group_are_the_same(tmp_path: Path, number: int) -> None:
    catalog, rows = world(tmp_path, number)
    request: dict[str, Any] = {"dimensions": ["account"], "subtotals": ["written", "read"]}
    found = compare(catalog, CompareRequest(source_a="a", source_b="b", **request), bounds=QUICK)
    asked = query(catalog, QueryRequest(source="a", **request), bounds=QUICK)
    for name in ("written", "read"):
        for one in found.subtotals[name]:
            assert [one.source_a_value, one.source_b_value] == [summed(side, one.group) for side in rows]
        told = {one["group"]: one["figures"]["amount"] for one in asked.subtotals[name]}
        every = {group: summed(rows[0], group) for group in ("Result", "Revenue", "Costs", None)}
        assert told == {group: value for group, value in every.items() if value is not None}
    group = ["written/Result", "read/revenue", "written/Costs"][number % 3]
    under = [{"dimension": "account", "op": "under", "value": group}]
    expected = [summed(side, group.split("/")[1].title()) for side in rows]
    narrowed = compare(catalog, CompareRequest(source_a="a", source_b="b", dimensions=[], filters=under), bounds=QUICK)
    assert [narrowed.summary.total_source_a, narrowed.summary.total_source_b] == expected
    assert narrowed.filters == (f"account under {group}",)
    only = query(catalog, QueryRequest(source="a", filters=under), bounds=QUICK)
    assert only.totals["amount"] == expected[0]


def small(place: Path, *trees: Hierarchy, rows: Any = (), more: Sequence[Source] = (), **account: Any) -> Catalog:
    for name in "ab":
        write_csv(place / f"{name}.csv", ("account", "amount"), rows or [("1", "1"), ("5", "2"), ("12", "4")])
    dimension = Dimension(name="account", **account)
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=(dimension,),
               measures=(Measure(name="amount", unit="EUR"),))
        for name in "ab"
    ]  # fmt: skip
    return Catalog([*sources, *more], place, hierarchies=trees)


def tree(groups: dict[str, tuple[str, ...]], name: str = "tree") -> Hierarchy:
    return Hierarchy(name=name, of="account", groups=groups)


def total(catalog: Catalog, group: str) -> str:
    found = query(catalog, QueryRequest(source="a", filters=[Filter(dimension="account", op="under", value=group)]))
    return f"{found.totals['amount'].normalize():f}"


def test_what_is_in_two_ranges_is_said_to_be_in_both(tmp_path: Path) -> None:
    catalog = small(tmp_path, tree({"low": ("1..9",), "mid": ("5..20",), "twelve": ("12",)}))
    found = query(catalog, QueryRequest(source="a", dimensions=["account"], subtotals=["tree"]))
    figures = {one["group"]: int(one["figures"]["amount"]) for one in found.subtotals["tree"]}
    assert figures == {"low": 3, "mid": 6, "twelve": 4}
    (warning,) = found.warnings
    assert "12 (in mid and twelve) and 5 (in low and mid) of hierarchy tree" in warning


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ({"low": ("9..1",)}, "hierarchy 'tree': the range 9..1 ends before it begins"),
        ({"low": ("1..A",)}, "hierarchy 'tree': .*not spelled alike"),
        ({"low": ("01.2024..12.2024",)}, "may be a month and its year"),
    ],
)
def test_a_range_that_means_nothing_is_refused(tmp_path: Path, groups: Any, says: str) -> None:
    catalog = small(tmp_path, tree(groups))
    with pytest.raises(AnalystError, match=says):
        query(catalog, QueryRequest(source="a", dimensions=["account"], subtotals=["tree"]))
    with pytest.raises(AnalystError, match=says):
        total(catalog, "low")


def test_a_value_that_no_range_can_place_is_refused(tmp_path: Path) -> None:
    catalog = small(tmp_path, tree({"low": ("1..9",)}), rows=[("1", "1"), ("5A", "2")])
    with pytest.raises(AnalystError, match=r"hierarchy 'tree': the range account between .*'5A', and not a number"):
        query(catalog, QueryRequest(source="a", dimensions=["account"], subtotals=["tree"]))
    with pytest.raises(AnalystError, match="a has '5A' there, and not a number"):
        total(catalog, "low")


@pytest.mark.parametrize("member", ["1..", "..9", "1...9", "1..5..9", ".."])
def test_what_is_nearly_a_range_is_refused(member: str) -> None:
    with pytest.raises(ValueError, match=r"is no range such as 800000\.\.899999"):
        tree({"low": (member,)})


def test_to_needs_a_source(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="takes 'to' only with a 'source'"):
        Hierarchy(name="tree", of="account", groups={"a": ("1",)}, to="to")


def test_a_group_is_found_by_its_name_and_nothing_else(tmp_path: Path) -> None:
    both = tree({"Low": ("1", "5"), "Top": ("Low", "12")}), tree({"LOW": ("1",)}, "other")
    catalog = small(tmp_path, *both)
    assert total(catalog, "tree/low") == "3"
    assert total(catalog, "other/Low") == "1"
    assert total(catalog, " TOP ") == "7"
    with pytest.raises(AnalystError, match="more than one hierarchy: write 'tree/Low' or 'other/LOW'"):
        total(catalog, "low")
    with pytest.raises(
        AnalystError, match="there is no group 'Topp' in tree and other for account; did you mean 'Top'"
    ):
        total(catalog, "Topp")
    with pytest.raises(AnalystError, match="there is no hierarchy of account"):
        total(small(tmp_path), "Top")


def test_a_group_by_two_spellings_of_its_name_is_one(tmp_path: Path) -> None:
    """Under `alpha` group 0001 is account 1, wherever either spelling stands."""
    catalog = small(tmp_path, tree({"Top": ("0001",), "1": ("5",)}), format=parse_format("alpha(4)"))
    assert total(catalog, "Top") == "3"
    assert total(catalog, "1") == total(catalog, "0001".lstrip("0")) == "3"


def test_a_column_may_have_the_name_of_an_end(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ("low", "high", "amount"), [("5", "1", "1"), ("50", "5", "2")])
    source = Source(
        name="a", kind="csv", path="a.csv", measures=(Measure(name="amount"),),
        dimensions=(Dimension(name="account", column="low"), Dimension(name="high")),
    )  # fmt: skip
    assert total(Catalog([source], tmp_path, hierarchies=[tree({"low": ("1..9",)})]), "low") == "1"


def test_rows_without_a_value_are_under_no_group(tmp_path: Path) -> None:
    rows = [("1", "1"), (None, "2"), ("", "4"), ("7", "8")]
    catalog = small(tmp_path, tree({"low": ("1..9",), "none": ("zzz",)}), rows=rows)
    assert total(catalog, "low") == "9"
    found = compare(
        catalog,
        CompareRequest(source_a="a", source_b="b", filters=[Filter(dimension="account", op="under", value="none")]),
    )
    assert any("a has no row with account under none" in claim.message for claim in found.warnings)


def test_mapped_values_and_default_filters_meet_groups(tmp_path: Path) -> None:
    write_csv(tmp_path / "map.csv", ("old", "new", "share"), [("1", "8001", "0.5"), ("1", "4001", "0.5"),
                                                             ("5", "8002", "1"), ("12", "9", "1")])  # fmt: skip
    table = Source(name="map", kind="csv", path="map.csv", measures=(Measure(name="share"),),
                   dimensions=(Dimension(name="old"), Dimension(name="new")))  # fmt: skip
    mapping = Mapping(source="map", old="old", new="new", share="share")
    catalog = small(tmp_path, Hierarchy(name="t", of="account", groups=GROUPS), more=[table], mapping=mapping)
    under = Filter(dimension="account", op="under", value="Result")
    for name in "ab":
        catalog = catalog.having(replace(catalog.source(name), default_filters=(under,)))
    assert f"{query(catalog, QueryRequest(source='a')).totals['amount']:g}" == "3.00"
    assert total(catalog, "Revenue") == "2.5"
    found = compare(catalog, CompareRequest(source_a="a", source_b="b", subtotals=["t"]))
    assert [(one.group, str(one.source_a_value)) for one in found.subtotals["t"]] == [
        ("Result", "3.00"), ("Revenue", "2.50"), ("Costs", "0.50"),
    ]  # fmt: skip
    behind = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"account": "8001"}))
    assert (behind.a.total_rows, str(behind.a.total)) == (1, "0.50")


def test_other_questions_know_groups_too(tmp_path: Path) -> None:
    catalog = small(tmp_path, tree({"low": ("1..9",)}))
    under = Filter(dimension="account", op="under", value="low")
    behind = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"account": "5"}, filters=[under]))
    assert behind.a.filters == ("account under low", "account = 5")
    twice = Catalog(
        [Source(name=one.name, kind="csv", path=one.path, measures=one.measures,
                dimensions=(*one.dimensions, Dimension(name="amounts", column="amount")))
         for one in catalog.sources.values()],
        tmp_path, hierarchies=catalog.hierarchies.values(),
    )  # fmt: skip
    rows = compare_rows(twice, RowsRequest(source_a="a", source_b="b", key=["account"], filters=[under]))
    assert (rows.keys, rows.equal) == (2, 2)
