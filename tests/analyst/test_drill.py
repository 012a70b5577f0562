"""The rows behind a key, on both sides, held against plain Python."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    CompareRequest,
    Dimension,
    Filter,
    Measure,
    Source,
    compare,
    parse_format,
)
from treadle.analyst.asking.drill import Drilled, DrillRequest, drill
from treadle.analyst.declared.source import Mapping

from .conftest import QUICK, write_csv, write_json, write_sqlite, write_table

Rows = Sequence[tuple[Any, ...]]
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_engine")]
COLUMNS = ("account", "text", "amount")
HOSTILE = ["100", "0200", None, "", "]]><b>'\"", "=1+1"]
TABLES = st.lists(
    st.tuples(
        st.sampled_from(HOSTILE),
        st.sampled_from(["x", "y", None, "\x07\u202e"]),
        st.one_of(st.none(), st.sampled_from([Decimal(1), Decimal("-1"), Decimal("2.50"), Decimal("1000000.01")])),
    ),
    max_size=12,
)


def source(place: Path, name: str, rows: Rows, kind: str = "csv") -> Source:
    path = place / f"{name}.{kind}"
    path.unlink(missing_ok=True)
    if kind == "csv":
        write_csv(path, COLUMNS, rows)
    elif kind == "json":
        write_json(path, COLUMNS, rows)
    elif kind == "sqlite":
        write_sqlite(path, COLUMNS, rows)
    else:
        write_table(path, COLUMNS, ("VARCHAR", "VARCHAR", "DECIMAL(18, 2)"), rows, parquet=kind == "parquet")
    return Source(
        name=name, kind=kind, path=path.name, table="t" if kind in ("sqlite", "duckdb") else "",  # type: ignore[arg-type]
        dimensions=(Dimension(name="account"), Dimension(name="text")), measures=(Measure(name="amount", decimals=2),),
    )  # fmt: skip


def drilled(place: Path, *sources: Source, **request: Any) -> Drilled:
    asked = DrillRequest(source_a="a", source_b=request.pop("source_b", "b"), **request)
    return drill(Catalog(sources, place), asked, bounds=QUICK)


@settings(max_examples=deep(6), deadline=None)
@given(TABLES, TABLES, st.sampled_from(HOSTILE), st.sampled_from(["csv", "json", "sqlite", "duckdb", "parquet"]))
def test_the_rows_are_those_of_plain_python(a: Rows, b: Rows, account: str | None, kind: str) -> None:
    with TemporaryDirectory() as name:
        place = Path(name)
        found = drilled(place, source(place, "a", a, kind), source(place, "b", b), key={"account": account})
    behind = [[row for row in rows if row[0] == account] for rows in (a, b)]
    for side, rows in zip((found.a, found.b), behind, strict=True):
        seen = Counter((line.values["account"], line.values["text"], line.amount) for line in side.rows)
        assert seen == Counter(rows)
        assert side.total_rows == len(rows)
        amounts = [row[2] for row in rows if row[2] is not None]
        assert side.total == (sum(amounts, Decimal(0)) if amounts else None)
        sizes = [abs(line.amount) if line.amount is not None else -1 for line in side.rows]
        assert sizes == sorted(sizes, reverse=True)
    counts = [Counter(row[2] for row in rows) for rows in behind]
    alone = {amount for amount in counts[0] if amount is not None and counts[0][amount] == counts[1][amount] == 1}
    for side in (found.a, found.b):
        assert {line.amount for line in side.rows if line.pair is not None} == alone
    pairs = [{line.pair: line.amount for line in side.rows if line.pair is not None} for side in (found.a, found.b)]
    assert pairs[0] == pairs[1]
    assert found.pairs == len(alone)


def test_only_so_many_leave_the_engine_and_none_is_paired_then(tmp_path: Path) -> None:
    rows = [("1", str(at), Decimal(at)) for at in range(100)]
    found = drilled(
        tmp_path, source(tmp_path, "a", rows), source(tmp_path, "b", rows[:5]), key={"account": "1"}, limit=10
    )
    assert (len(found.a.rows), found.a.total_rows, found.a.total) == (10, 100, Decimal("4950.00"))
    assert (found.pairs, found.note) == (0, "no rows are paired, because not all of a are shown")
    assert found.a.rows[0].amount == 99
    for limit in (0, 1001):
        with pytest.raises(ValueError, match="limit"):
            DrillRequest(source_a="a", source_b="b", key={}, limit=limit)


def test_a_key_is_spelled_as_the_comparison_spells_it(tmp_path: Path) -> None:
    a = source(tmp_path, "a", [("0000000100", "x", Decimal(5)), ("200", "x", Decimal(6))])
    b = source(tmp_path, "b", [("100", "y", Decimal(5))])
    alpha = Dimension(name="account", format=parse_format("alpha(10)"))
    a = Source(name="a", kind="csv", path="a.csv", dimensions=(alpha, a.dimensions[1]), measures=a.measures)
    found = drilled(tmp_path, a, b, key={"account": "00100"})
    assert [line.values["account"] for line in (*found.a.rows, *found.b.rows)] == ["0000000100", "100"]
    assert found.pairs == 1


def test_columns_that_are_not_declared_are_shown_too(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ("account", "document", "amount"), [("1", "4711", "5.00")])
    a = Source(name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="account"),),
               measures=(Measure(name="amount"),))  # fmt: skip
    found = drilled(tmp_path, a, source(tmp_path, "b", []), key={"account": "1"})
    assert found.a.rows[0].values == {"account": "1", "document": "4711", "amount": "5.00"}
    assert (found.b.rows, found.b.total_rows, found.b.total) == ((), 0, None)


def test_a_mapped_row_shows_its_part(tmp_path: Path) -> None:
    a = source(tmp_path, "a", [("100", "x", Decimal(10))])
    write_csv(tmp_path / "map.csv", ("old", "new", "share"), [("100", "A", "0.25"), ("100", "B", "0.75")])
    table = Source(name="map", kind="csv", path="map.csv", dimensions=(Dimension(name="old"), Dimension(name="new")),
                   measures=(Measure(name="share"),))  # fmt: skip
    mapped = Dimension(name="account", mapping=Mapping(source="map", old="old", new="new", share="share"))
    a = Source(name="a", kind="csv", path="a.csv", dimensions=(mapped, a.dimensions[1]), measures=a.measures)
    found = drilled(tmp_path, a, source(tmp_path, "b", [("A", "y", Decimal("2.5"))]), table, key={"account": "A"})
    assert [(line.values["account"], line.amount) for line in found.a.rows] == [("100", Decimal("2.50"))]
    assert found.pairs == 1


def test_amounts_of_several_currencies_are_neither_added_up_nor_paired_with_each_other(tmp_path: Path) -> None:
    columns = ("account", "currency", "amount")
    write_csv(tmp_path / "a.csv", columns, [("1", "EUR", "5.00"), ("1", "usd", "5.00"), ("1", "USD", "7.00")])
    write_csv(tmp_path / "b.csv", columns, [("1", "USD", "5.00"), ("1", None, "7.00")])
    a, b = (
        Source(name=name, kind="csv", path=f"{name}.csv",
               dimensions=(Dimension(name="account"), Dimension(name="currency")),
               measures=(Measure(name="amount", currency="currency"),))
        for name in "ab"
    )  # fmt: skip
    found = drilled(tmp_path, a, b, key={"account": "1"})
    assert (found.a.total, found.a.currencies, found.b.currencies) == (None, ("EUR", "USD"), ("USD", None))
    assert found.a.figure == "5.00 EUR and 12.00 USD"
    assert [(line.currency, line.amount) for line in found.a.rows if line.pair] == [("USD", Decimal("5.00"))]
    one = drilled(tmp_path, a, b, key={"account": "1", "currency": "EUR"})
    assert (one.a.figure, one.pairs) == ("5.00 EUR", 0)


def test_amounts_are_told_in_the_unit_that_is_declared(tmp_path: Path) -> None:
    """It was told where a column says the currency, and nowhere else."""
    rows = [("1", "x", Decimal(5)), ("1", "y", Decimal(7))]

    def found(*measures: Measure) -> Drilled:
        sides = [source(tmp_path, name, rows) for name in "ab"]
        a, b = (replace(side, measures=(one,)) for side, one in zip(sides, measures, strict=True))
        return drilled(tmp_path, a, b, key={"account": "1"})

    told = found(Measure(name="amount", unit="kEUR"), Measure(name="amount"))
    assert (told.a.unit, told.a.told, told.b.unit, told.b.told) == ("kEUR", "amount 12.00 kEUR", "", "amount 12.00")
    assert [told.to_dict()[side]["unit"] for side in "ab"] == ["kEUR", ""]
    largest, count = Measure(name="amount", unit="EUR", aggregation="max"), Measure(name="amount", aggregation="count")
    of_each = found(largest, largest)
    assert of_each.a.told == "amount, the largest of amounts that add up to 12.00 EUR"
    pieces, money = (replace(count, unit=unit) for unit in ("pieces", "EUR"))
    assert (found(pieces, pieces).a.told, found(money, money).a.told) == ("amount 2 pieces", "amount 2")
    assert (told.pairs, told.note) == (2, "")
    unlike = found(Measure(name="amount", unit="EUR"), Measure(name="amount", unit="kEUR"))
    assert unlike.note == "no rows are paired, because the amounts of A are in EUR and those of B in kEUR"
    assert (unlike.pairs, {line.pair for side in (unlike.a, unlike.b) for line in side.rows}) == (0, {None})


def test_what_cannot_be_asked_is_told(tmp_path: Path) -> None:
    a, b = source(tmp_path, "a", [("1", "x", Decimal(5))]), source(tmp_path, "b", [])
    for request, says in [
        ({"key": {"acount": "1"}}, "did you mean 'account'"),
        ({"key": {}, "measure": "amont"}, "did you mean 'amount'"),
        ({"key": {}, "names": {"x": "y"}}, "there is no dimension or measure 'x'"),
    ]:
        with pytest.raises(AnalystError, match=says):
            drilled(tmp_path, a, b, **request)
    write_csv(tmp_path / "a.csv", COLUMNS, [("1", "x", "five")])
    with pytest.raises(AnalystError, match="no number"):
        drilled(tmp_path, a, b, key={})


def test_a_source_is_drilled_against_itself(tmp_path: Path) -> None:
    a = source(tmp_path, "a", [("1", "x", Decimal(5)), ("2", "x", Decimal(5))])
    request = DrillRequest(source_a="a", source_b="a", key={}, filters_a={"account": "1"}, filters_b={"account": "2"})
    found = drill(Catalog([a], tmp_path), request, bounds=Bounds(threads=1))
    assert (found.a.filters, found.b.filters, found.pairs) == (("account = 1",), ("account = 2",), 1)


async def test_a_model_is_shown_rows_only_when_a_person_agrees(tmp_path: Path) -> None:
    from treadle import Agent
    from treadle.analyst import analyst_skill
    from treadle.testing import ScriptedModel

    catalog = Catalog([source(tmp_path, "a", [("1", "x", Decimal(5))]), source(tmp_path, "b", [])], tmp_path)
    assert "drill" not in [tool.name for tool in analyst_skill(catalog).tools]
    call = [("drill", {"source_a": "a", "source_b": "b", "key": {"account": "1"}})]
    asking = Agent(ScriptedModel([call, "done"]), skills=[analyst_skill(catalog, lines="ask")])
    paused = await asking.run("Which rows?")
    assert (paused.stop.reason, paused.pending[0].tool) == ("waiting", "drill")
    allowed = Agent(ScriptedModel([call, "done"]), skills=[analyst_skill(catalog, lines="allow")])
    done = await allowed.run("Which rows?")
    assert '"total_rows":1' in done.tool_calls_made[0].result.text.replace(" ", "")


async def test_a_model_that_is_told_numbers_is_told_those_of_rows_too(tmp_path: Path) -> None:
    from treadle.analyst import analyst_skill

    catalog = Catalog([source(tmp_path, "a", [("1", "x", Decimal("5.10"))]), source(tmp_path, "b", [])], tmp_path)
    skill = analyst_skill(catalog, lines="allow", numbers=True)
    (tool,) = [tool for tool in skill.tools if tool.name == "drill"]
    told = (await tool.function(source_a="a", source_b="b", key={"account": "1"})).for_model["a"]
    assert (told["total"], told["total_exact"]) == (5.1, "5.10")
    assert (told["rows"][0]["amount"], told["rows"][0]["amount_exact"]) == (5.1, "5.10")
    assert told["rows"][0]["values"]["amount"] == "5.10"


def test_default_filters_hold_beside_a_key_as_they_did_in_the_comparison(tmp_path: Path) -> None:
    """Of a key that the comparison calls missing, because a default filter left its rows out, none are shown."""
    (tmp_path / "a.csv").write_text("company,amount\n1001,5\n1002,7\n")
    (tmp_path / "b.csv").write_text("company,amount\n1001,5\n1002,7\n")
    company, amount = (Dimension(name="company"),), (Measure(name="amount", decimals=2),)
    usual = (Filter(dimension="company", value="1002"),)
    catalog = Catalog(
        [
            Source(name="a", kind="csv", path="a.csv", dimensions=company, measures=amount),
            Source(name="b", kind="csv", path="b.csv", dimensions=company, measures=amount, default_filters=usual),
        ],
        tmp_path,
    )
    found = compare(catalog, CompareRequest(source_a="a", source_b="b"), bounds=QUICK)
    assert [row.status for row in found.rows if row.key == {"company": "1001"}] == ["missing_in_b"]
    behind = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"company": "1001"}), bounds=QUICK)
    assert (behind.a.total_rows, behind.b.total_rows, behind.pairs) == (1, 0, 0)
    assert behind.b.filters == ("company = 1001", "company = 1002")
    asked = DrillRequest(
        source_a="a", source_b="b", key={"company": "1001"}, filters=[{"dimension": "company", "value": "1001"}]
    )
    assert drill(catalog, asked, bounds=QUICK).b.total_rows == 1


@pytest.mark.parametrize(
    ("aggregation", "told"),
    [
        ("sum", "m 61.00"),
        ("avg", "m, the average of amounts that add up to 61.00"),
        ("min", "m, the least of amounts that add up to 61.00"),
        ("max", "m, the largest of amounts that add up to 61.00"),
    ],
)
def test_a_total_is_not_told_as_a_figure_that_it_is_not(tmp_path: Path, aggregation: Any, told: str) -> None:
    write_csv(tmp_path / "a.csv", ("account", "amount"), [("1", 30), ("1", 31)])
    write_csv(tmp_path / "b.csv", ("account", "amount"), [("2", 30)])
    measure = Measure(name="m", column="amount", aggregation=aggregation)
    of: Any = {"kind": "csv", "dimensions": (Dimension(name="account"),), "measures": (measure,)}
    sources = [Source(name=name, path=f"{name}.csv", **of) for name in ("a", "b")]
    found = drilled(tmp_path, *sources, key={"account": "1"})
    assert (found.a.told, found.b.told, found.a.aggregation) == (told, "no m", aggregation)


@pytest.mark.parametrize("kind", ["csv", "json", "sqlite", "duckdb", "parquet", "sqlalchemy"])
def test_a_row_is_one_of_a_number_whatever_its_value(tmp_path: Path, kind: Any, monkeypatch: Any) -> None:
    amounts = [Decimal("30.5"), Decimal("30.5"), None, Decimal("10.25")]
    rows = [("1", "EUR", amount) for amount in amounts]
    written = source(tmp_path, "a", rows, "sqlite" if kind == "sqlalchemy" else kind)
    monkeypatch.setenv("WHERE", f"sqlite:///{tmp_path / 'a.sqlite'}")
    where = {"dsn_env": "WHERE", "path": ""} if kind == "sqlalchemy" else {}
    number = Measure(name="number", column="amount", aggregation="count", currency="text")
    counted = replace(
        written, kind=kind, measures=(number, Measure(name="lines", column="*", aggregation="count")), **where
    )
    other = replace(source(tmp_path, "b", []), measures=counted.measures)
    behind = drilled(tmp_path, counted, other, key={"account": "1"}, measure="number")
    assert (behind.a.told, behind.b.told, behind.a.total) == ("number 3", "number 0", 3)
    told = sorted((line.values["amount"] is None, line.amount) for line in behind.a.rows for _ in range(line.times))
    assert told == [*[(False, 1)] * 3, (True, None)]
    lines = drilled(tmp_path, counted, other, key={"account": "1"}, measure="lines")
    assert (lines.a.told, {line.amount for line in lines.a.rows}) == ("lines 4", {1})


def test_totals_of_several_currencies_are_told_in_the_declared_unit_too(tmp_path: Path) -> None:
    rows = [("1", "EUR", "5"), ("1", "USD", "7")]
    write_csv(tmp_path / "a.csv", ("account", "currency", "amount"), rows)

    def figure(unit: str) -> str:
        measure = Measure(name="amount", unit=unit, currency="currency", decimals=2)
        a = Source(name="a", kind="csv", path="a.csv", measures=(measure,),
                   dimensions=(Dimension(name="account"), Dimension(name="currency")))  # fmt: skip
        return drilled(tmp_path, a, replace(a, name="b"), key={"account": "1"}).a.figure

    assert figure("thousands") == "5.00 EUR and 7.00 USD, each in thousands"
    # A declared currency that the rows contradict is no unit.
    assert figure("EUR") == figure("") == "5.00 EUR and 7.00 USD"


def test_the_key_of_a_row_is_taken_as_the_comparison_tells_it(tmp_path: Path) -> None:
    """Days, times and decimals were no key; decimals that a float has not found no row."""
    types = {
        "day": ("DATE", "2024-01-31"), "moment": ("TIMESTAMP", "2024-01-31 10:00:00.000001"),
        "rate": ("DECIMAL(38, 6)", "12345678901234567890.000001"), "open": ("BOOLEAN", "true"), "code": ("BIGINT", "7"),
    }  # fmt: skip
    columns = [*types, "amount"]
    for name, amount in (("a", "5.00"), ("b", "6.00")):
        rows = [(*(value for _, value in types.values()), amount), (*[None] * len(types), "1.00")]
        kinds = [*(kind for kind, _ in types.values()), "DECIMAL(18, 2)"]
        write_table(tmp_path / f"{name}.db", columns, kinds, rows, parquet=False)
    dimensions = tuple(Dimension(name=name) for name in types)
    a, b = (
        Source(name=name, kind="duckdb", path=f"{name}.db", table="t", dimensions=dimensions,
               measures=(Measure(name="amount"),))
        for name in "ab"
    )  # fmt: skip
    for dimension in types:
        asked = CompareRequest(source_a="a", source_b="b", dimensions=[dimension])
        for row in compare(Catalog([a, b], tmp_path), asked, bounds=QUICK).rows:
            found = drilled(tmp_path, a, b, key=row.key)
            assert (found.a.total, found.b.total) == (row.source_a_value, row.source_b_value), (dimension, row.key)
            assert (found.a.total_rows, found.b.total_rows) == (1, 1)


@pytest.mark.parametrize("kind", ["duckdb", "parquet"])
def test_the_rows_behind_a_figure_of_many_digits_are_shown(tmp_path: Path, kind: Any) -> None:
    """It was refused, the amounts being "too large to be computed exactly", of figures that the comparison had told."""
    amount = Decimal("123456789012345678901234567890.12")
    path = tmp_path / f"wide.{kind}"
    rows = [("1", "x", amount), ("1", "y", Decimal("-0.50"))]
    write_table(path, COLUMNS, ("VARCHAR", "VARCHAR", "DECIMAL(36, 2)"), rows, parquet=kind == "parquet")
    wide = replace(source(tmp_path, "a", []), kind=kind, path=path.name, table="t" * (kind == "duckdb"))
    behind = drilled(tmp_path, wide, replace(wide, name="b"), key={"account": "1"})
    assert [line.values["amount"] for line in behind.a.rows] == [f"{amount:f}", "-0.5"]
    assert (behind.a.total, behind.pairs) == (Decimal("123456789012345678901234567889.62"), 2)


def test_a_key_that_neither_side_has_is_told_as_that(tmp_path: Path) -> None:
    """It was told as "0 pairs", as if there were rows that do not belong together."""
    a, b = (source(tmp_path, name, [("1", "x", "5.00")]) for name in "ab")
    assert drilled(tmp_path, a, b, key={"account": "1 "}).note == (
        "neither a nor b has a row with account '1 ': is each value one that a comparison tells?"
    )
    narrowed = drilled(tmp_path, a, b, key={"account": "1"}, filters={"account": ["2", "3"]})
    assert "with account 1 under these conditions: " in narrowed.note
    assert drilled(tmp_path, a, source(tmp_path, "b", [("2", "x", "5.00")]), key={"account": "1"}).note == ""


def test_amounts_that_add_up_to_nothing_have_their_decimals(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("k,v\nx,5\nx,-5\n")
    s = Source(
        name="s",
        kind="csv",
        path="s.csv",
        dimensions=(Dimension(name="k"),),
        measures=(Measure(name="v", decimals=2, unit="EUR"),),
    )
    found = drill(Catalog([s], tmp_path), DrillRequest(source_a="s", source_b="s", key={"k": "x"}))
    assert found.a.told == "v 0.00 EUR"


@pytest.mark.parametrize("kind", ["csv", "duckdb", "json", "sqlite"])
def test_amounts_are_in_the_currency_that_a_mapping_says(tmp_path: Path, kind: str) -> None:
    """The rows were told in "US$" and in "USD", and none was paired: the comparison has both in USD."""
    first = source(tmp_path, "a", [("1", "US$", Decimal(100)), ("1", "$US", Decimal(5)), ("1", None, Decimal(3))], kind)
    second = source(tmp_path, "b", [("1", "USD", Decimal(100)), ("1", "USD", Decimal(6))])
    write_csv(tmp_path / "codes.csv", ("sign", "code"), [("US$", "USD"), ("$US", "USD")])
    codes = Source(
        name="codes", kind="csv", path="codes.csv", dimensions=(Dimension(name="sign"), Dimension(name="code")),
        measures=(Measure(name="rows", column="*", aggregation="count"),),
    )  # fmt: skip
    text = Dimension(name="text", mapping=Mapping(source="codes", old="sign", new="code"))
    amount = Measure(name="amount", currency="text")
    first = replace(first, dimensions=(first.dimensions[0], text), measures=(amount,))
    catalog = Catalog([first, replace(second, measures=(amount,)), codes], tmp_path)
    found = drill(catalog, DrillRequest(source_a="a", source_b="b", key={"account": "1"}), bounds=QUICK)
    assert list(map(str, found.a.totals_by_currency)) == ["105.00 USD", "3.00 without a currency"]
    assert [(line.values["text"], line.currency, line.pair) for line in found.a.rows] == [
        ("US$", "USD", 1), ("$US", "USD", None), (None, None, None),
    ]  # fmt: skip
