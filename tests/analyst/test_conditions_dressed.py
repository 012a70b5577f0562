"""What sources declare crossed with conditions of one side, names over several lines, and what is kept or shown."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    DrillRequest,
    Measure,
    QueryRequest,
    Source,
    TextFormat,
    compare,
    declaration,
    drill,
    parse_format,
    propose,
    query,
)
from treadle.analyst.checks import History, read_checks, run_checks
from treadle.analyst.declared import filters
from treadle.analyst.declared.source import Mapping

from .conftest import QUICK, write_csv

pytestmark = pytest.mark.usefixtures("one_engine")


def source(name: str, spelled: str = "", **more: Any) -> Source:
    dimension = Dimension(name="account", format=parse_format(spelled), mapping=more.pop("mapping", None))
    measure = Measure(name="amount", unit=more.pop("unit", ""), aggregation=more.pop("aggregation", "sum"))
    given = {"kind": "csv", "path": f"{name}.csv"} | more
    return Source(name=name, dimensions=(dimension,), measures=(measure,), **given)


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_condition_on_one_side_reads_values_as_keys_are_read(tmp_path: Path, side: str) -> None:
    """The format of either side holds for both: the key 10 had 2.00 in A, of 3.00 that it had without the condition."""
    other = "b" if side == "a" else "a"
    write_csv(tmp_path / f"{side}.csv", ("account", "amount"), [("10 ", 1), ("10", 2), ("", 7)])
    write_csv(tmp_path / f"{other}.csv", ("account", "amount"), [("10", 3)])
    catalog = Catalog([source(side), source(other, "trim, blank_as_null")], tmp_path)
    for condition in ({"op": "=", "value": "10"}, {"op": "is not null"}):
        alone = {f"filters_{side}": [{"dimension": "account"} | condition]}
        request = CompareRequest(source_a="a", source_b="b", dimensions=["account"], **alone)  # type: ignore[arg-type]
        found = compare(catalog, request, bounds=QUICK)
        (row,) = found.rows
        assert (row.key, row.source_a_value, row.source_b_value) == ({"account": "10"}, 3, 3)
        assert not found.warnings
        behind = drill(catalog, DrillRequest(source_a="a", source_b="b", key=row.key, **alone), bounds=QUICK)  # type: ignore[arg-type]
        assert (behind.a.total, behind.b.total) == (3, 3)


def test_a_default_filter_reads_values_as_keys_are_read(tmp_path: Path) -> None:
    """It was said that, where account is not null in a, b has no row for account (none), and a has."""
    write_csv(tmp_path / "a.csv", ("account", "amount"), [("10", 3), ("", 7)])
    write_csv(tmp_path / "b.csv", ("account", "amount"), [("10", 3)])
    usual = (filters.Filter(dimension="account", op="is not null"),)
    a, b = source("a", default_filters=usual), source("b", "blank_as_null")
    request = CompareRequest(source_a="a", source_b="b", dimensions=["account"])
    found = compare(Catalog([a, b], tmp_path), request, bounds=QUICK)
    assert [row.key for row in found.rows] == [{"account": "10"}]
    assert not found.warnings


def test_mapped_keys_of_a_database_under_a_condition_are_compared(tmp_path: Path, monkeypatch: Any) -> None:
    """They were refused as if the table were not there, where no key meets and only the other side has several."""
    pytest.importorskip("sqlalchemy")
    with closing(sqlite3.connect(tmp_path / "b.db")) as database:
        database.execute("CREATE TABLE t (account TEXT, company TEXT, amount INTEGER)")
        database.execute("INSERT INTO t VALUES ('1', 'x', 5), ('2', 'x', 6)")
        database.commit()
    monkeypatch.setenv("B_URL", f"sqlite:///{tmp_path / 'b.db'}")
    write_csv(tmp_path / "a.csv", ("account", "company", "amount"), [("N", "x", 5), ("M", "x", 1), ("M", "y", 4)])
    write_csv(tmp_path / "map.csv", ("old", "new"), [("1", "K"), ("2", "K")])
    both = (Dimension(name="company"),)
    mapped = Dimension(name="account", mapping=Mapping(source="map", old="old", new="new"))
    amount = (Measure(name="amount"),)
    names = (Dimension(name="old"), Dimension(name="new"))
    count = (Measure(name="rows", column="*", aggregation="count"),)
    sources = [
        Source(name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="account"), *both), measures=amount),
        Source(name="b", kind="sqlalchemy", table="t", dsn_env="B_URL", dimensions=(mapped, *both), measures=amount),
        Source(name="map", kind="csv", path="map.csv", dimensions=names, measures=count),
    ]
    request = CompareRequest(source_a="a", source_b="b", dimensions=["account", "company"], filters={"company": "x"})
    found = compare(Catalog(sources, tmp_path), request, bounds=QUICK)
    assert {row.key["account"]: (row.source_a_value, row.source_b_value) for row in found.rows} == {
        "N": (5, None),
        "M": (1, None),
        "K": (None, 11),
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("inner", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("titles", [0, 2])
def test_a_column_s_name_may_have_a_line_break(tmp_path: Path, end: str, inner: str, titles: int) -> None:
    """As Excel writes it, in another way than lines end: such a file was read as if it had no rows."""
    lines = ["Balances; of January", ""][:titles]
    lines += [f'Account;Posted;"Amount{inner}EUR"', *(f"{100 + at};202401;{at},50" for at in range(5)), ""]
    (tmp_path / "s.csv").write_bytes(end.join(lines).encode())
    (proposal,) = propose(tmp_path / "s.csv")
    assert proposal.source.text.skip == titles
    (tmp_path / "sources.yaml").write_text(declaration([(tmp_path / "s.csv", proposal)], tmp_path))
    found = query(Catalog.load(tmp_path / "sources.yaml"), QueryRequest(source="s"), bounds=QUICK)
    assert ([str(one) for one in found.totals.values()], found.source_rows) == (["12.50"], 5)


def test_files_whose_lines_end_in_several_ways_have_no_break_in_a_name(tmp_path: Path) -> None:
    for number, end in enumerate(("\n", "\r\n")):
        (tmp_path / f"s{number}.csv").write_bytes(end.join(['"the\naccount",amount', "1,5", ""]).encode())
    several = Source(name="s", kind="csv", path="s*.csv", measures=(Measure(name="amount"),))
    with pytest.raises(AnalystError, match="a column's name has a line break, and the lines of its files end in"):
        query(Catalog([several], tmp_path), QueryRequest(source="s"), bounds=QUICK)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("title", ['"two{}lines"{}', '"quoted{}{}', '12" pipes{}{}'])
def test_lines_that_are_skipped_may_have_quotes(tmp_path: Path, title: str, end: str) -> None:
    """A title of two lines within quotes was skipped as one, and the first row taken for the columns' names."""
    text = title.format(end, end) + end.join(["account;amount", "1;5", "2;6", ""])
    (tmp_path / "s.csv").write_bytes(text.encode())
    titled = source("s", text=TextFormat(delimiter=";", skip=2))
    found = query(Catalog([titled], tmp_path), QueryRequest(source="s"), bounds=QUICK)
    assert (found.totals["amount"], found.source_rows) == (11, 2)


def test_no_figure_has_an_exponent(tmp_path: Path) -> None:
    for name, amount in (("a", "-0.0000000001"), ("b", "0.0000000003")):
        write_csv(tmp_path / f"{name}.csv", ("account", "amount"), [("x", amount)])
    catalog = Catalog([source("a", aggregation="avg"), source("b", aggregation="avg")], tmp_path)
    request = CompareRequest(source_a="a", source_b="b", dimensions=["account"], tolerance="0.0000000001")  # type: ignore[arg-type]
    found = compare(catalog, request, bounds=QUICK)
    asked = query(catalog, QueryRequest(source="a", dimensions=["account"]), bounds=QUICK)
    behind = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"account": "x"}), bounds=QUICK)
    assert asked.to_dict()["rows"] == [{"account": "x", "amount": "-0.0000000001"}]
    assert found.to_dict(numbers=True)["summary"]["total_diff_exact"] == "-0.0000000004"
    for told in (found.to_dict(explain=True), asked.to_dict(), behind.to_dict()):
        assert "E-10" not in json.dumps(told)
        assert "0.0000000001" in json.dumps(told)


def test_units_that_are_unlike_are_refused_as_one_can_see_them(tmp_path: Path) -> None:
    for name in "ab":
        write_csv(tmp_path / f"{name}.csv", ("account", "amount"), [("x", 1)])
    catalog = Catalog([source("a", unit="EUR"), source("b", unit="EUR\u200b")], tmp_path)
    with pytest.raises(AnalystError, match=r"is in EUR in 'a' and in 'EUR\\u200b' in 'b'"):
        compare(catalog, CompareRequest(source_a="a", source_b="b"), bounds=QUICK)


@pytest.mark.parametrize("value", ["", "x\u200b", "1"])
def test_a_check_asks_the_same_however_its_conditions_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """What is shown of a condition is words, which another version may choose otherwise; the question is the same."""
    for name, amount in (("a", 5), ("b", 6)):
        write_csv(tmp_path / f"{name}.csv", ("account", "amount"), [(value, amount), ("2", 1)])
    source_of = {"kind": "csv", "dimensions": {"account": {}}, "measures": {"amount": {}}}
    sources = {name: source_of | {"path": f"{name}.csv"} for name in "ab"}
    sources["b"]["default_filters"] = [{"dimension": "account", "op": "!=", "value": "\u200b"}]
    (tmp_path / "sources.yaml").write_text(json.dumps({"sources": sources}))
    check = {"compare": ["a", "b"], "by": ["account"], "where_a": [{"dimension": "account", "value": value}]}
    (tmp_path / "checks.yaml").write_text(json.dumps({"checks": {"x": check}}))

    def changes() -> Any:
        return run_checks(read_checks(tmp_path / "checks.yaml"), history=History(tmp_path / "h.db")).verdicts[0].changes

    assert changes().since is None
    monkeypatch.setattr(filters, "seen", lambda value: f"<{value}>")
    again = changes()
    assert again.since is not None
    assert (again.new, again.gone, again.same) == ((), (), True)
    check["where_a"] = [{"dimension": "account", "value": "2"}]
    (tmp_path / "checks.yaml").write_text(json.dumps({"checks": {"x": check}}))
    assert changes().since is None
