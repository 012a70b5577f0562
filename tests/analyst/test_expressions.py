"""Measures by expression: the same figures whatever holds the data, exact, and nothing but what is on the list."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    check,
    compare,
    describe,
    query,
)

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
QUICK = Bounds(threads=1, seconds=60)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "duckdb", "sqlite", "frame", "sqlalchemy"])
def test_the_same_figures_whatever_holds_the_data(formulas: Any, held: Any, kind: str, tmp_path: Path) -> None:
    catalog = held(kind, formulas.rows)
    found = query(catalog, formulas.request, bounds=QUICK)
    # SQLite has no decimals, so that its own sums are approximate.
    formulas.confirm(found, places=6 if kind == "sqlalchemy" else None)
    assert ("approximate" in " ".join(found.warnings)) == (kind == "sqlalchemy")


@settings(max_examples=deep(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), kind=st.sampled_from(["csv", "frame", "sqlite"]))
def test_any_expression_is_what_decimals_make_of_it(formulas: Any, held: Any, kind: str, data: Any) -> None:
    formulas.property(data, lambda rows, measures: query(held(kind, rows, measures), formulas.request, bounds=QUICK))


REFUSED = [
    ("quantity / 100", "divides, which is not exact; multiply instead, by 0.01"),
    ("sum(amount)", r"'SUM\(amount\)' is not allowed in an expression; it may have numbers, columns"),
    ("amount; drop table x", "is not one expression"),
    ("(select 1)", "is not allowed"),
    ("amount::int", "is not allowed"),
    ("cast(amount as int)", "is not allowed"),
    ("t.amount", "is not allowed"),
    ("amount amount2", "is not allowed"),
    ("amount || 'x'", "is not allowed"),
    ("read_csv('/etc/passwd')", "is not allowed"),
    ("?", "is not allowed"),
    (":amount", "is not allowed"),
    ("current_date", "is not allowed"),
    ("*", "is not"),
    ("'1'", "is not allowed"),
    ("1 + 1", "names no column"),
    ('if(dc = "H", amount, 0)', "is compared with \"H\", which is a column; a text stands in single quotes: 'H'"),
    ("if(dc, amount, 0)", "stands where a condition belongs, such as dc = 'H'"),
    ("if(dc = null, amount, 0)", "write 'dc is null'"),
    ("if(dc in ('H', 1), amount, 0)", "with numbers or with texts"),
    ("if(dc in (), amount, 0)", "is not an expression|at least one"),
    ("if(dc in (select 1), amount, 0)", "is not allowed"),
    ("if(debit > credit, 1, 0)", "which is a column"),
    ("if(abs(debit) > 1, 1, 0)", "is not allowed"),
    ("dc = 'H'", "is not allowed"),
    ("round(amount, 13)", "a number of decimals from 0 to 12, not 13"),
    ("round(amount, -1)", "not -1"),
    ("amount * 1e999999999", "has more than 30 digits"),
    ("amount * 1e-40", "has more than 30 digits"),
    ("amount +", "is not an expression"),
    ("", "is not one expression"),
    ("(" * 999, "nested too deeply|not an expression"),
    ("- " * 400 + "amount", "nested too deeply"),
    ("amount" + " + amount" * 2000, "1,000 characters at most"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_what_is_not_on_the_list_is_refused_where_it_stands(tmp_path: Path, expression: str, message: str) -> None:
    import json

    file = tmp_path / "sources.yaml"
    lines = ["sources:", "  t:", "    kind: csv", "    path: t.csv", "    measures:", "      net:"]
    file.write_text("\n".join([*lines, f"        expression: {json.dumps(expression)}"]))
    with pytest.raises(AnalystError, match=message) as caught:
        Catalog.load(file)
    assert str(caught.value).startswith(f"{file}, line 7: sources.t.measures.net.expression: ")
    with pytest.raises(ValueError, match=message) if expression else pytest.raises(AnalystError):
        Measure(name="net", expression=expression)
        raise AnalystError("only a file can have an empty one")


def test_an_expression_takes_the_place_of_a_column() -> None:
    with pytest.raises(ValueError, match="both a column and an expression"):
        Measure(name="net", column="amount", expression="debit - credit")


def test_what_the_data_have_not_is_told(held: Any) -> None:
    catalog = held("csv", [], {"net": "debitt - credit", "gross": "amount"})
    told = check(catalog, catalog.source("t"), bounds=QUICK)
    assert told.problems == ("net: source 't' has no column 'debitt' in its data; did you mean 'debit'?",)


TYPES = [
    ("if(quantity = 'H', 1, 0)", "compares column 'quantity' with a text, but it is INTEGER; write a number"),
    ("if(dc > 1, 1, 0)", "has text that is no number"),
    ("amount * dc", "has text that is no number"),
]


@pytest.mark.parametrize(("expression", "message"), TYPES)
def test_a_column_of_another_type_is_told(held: Any, formulas: Any, expression: str, message: str) -> None:
    catalog = held("duckdb", formulas.rows, {"net": expression})
    with pytest.raises(AnalystError, match=message):
        query(catalog, QueryRequest(source="t"), bounds=QUICK)
    assert message[:30] in check(catalog, catalog.source("t"), bounds=QUICK).problems[0]


def frame(columns: dict[str, Any], expression: str, **more: Any) -> Catalog:
    pyarrow = pytest.importorskip("pyarrow")
    made = Source(name="t", kind="frame", measures=(Measure(name="net", expression=expression, **more),))
    return Catalog.of({"t": pyarrow.table(columns)}, [made])


def net(catalog: Catalog) -> Decimal | None:
    return query(catalog, QueryRequest(source="t"), bounds=QUICK).totals["net"]


def test_products_keep_every_decimal_or_are_refused() -> None:
    # 18 digits times 18 digits: the engine's own type for the product would have 18.
    large = D("9999999999999999.99")
    assert net(frame({"a": [large], "b": [large]}, "a * b")) == D("99999999999999999800000000000000.0001")
    assert net(frame({"a": [2**63 - 1]}, "a * a")) == D((2**63 - 1) ** 2)
    assert net(frame({"a": [D("0.000000000000000001")]}, "a * a")) == D("1e-36")
    with pytest.raises(AnalystError, match="too large to be computed exactly"):
        net(frame({"a": [D(10) ** 19], "b": [D(10) ** 19]}, "a * b"))
    with pytest.raises(AnalystError, match="needs 54 decimals; exact amounts have 38 at most"):
        net(frame({"a": [D("0.000000000000000001")]}, "a * a * a"))


def test_text_is_read_at_the_scale_that_it_needs(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1.234,123456789;0,000000001-\n2;3e2\n")
    yaml = """
sources:
  t:
    kind: csv
    path: t.csv
    text: {delimiter: ";", decimal: ",", thousands: "."}
    measures:
      net: {expression: "a * b - 1"}
"""
    (tmp_path / "sources.yaml").write_text(yaml)
    expected = D("1234.123456789") * D("-0.000000001") - 1 + 2 * 300 - 1
    assert net(Catalog.load(tmp_path / "sources.yaml")) == expected


def test_floating_columns_stay_approximate_with_a_floor_of_what_they_can_be_off() -> None:
    catalog = frame({"a": [0.1, 3.0], "b": [0.2, 1e6 / 3]}, "a * b")
    found = query(catalog, QueryRequest(source="t"), bounds=QUICK)
    assert abs((found.totals["net"] or D(0)) - D("1000000.02")) < D("1e-3")
    assert "net of t is approximate" in found.warnings[0]


def test_a_difference_of_floats_that_their_spelling_can_make_is_a_match() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    # The product of what is read at ten decimals is off by up to a million times that.
    tables = {"x": {"a": [1e6], "b": [0.12345678901234]}, "y": {"a": [1e6], "b": [0.1234567890]}}
    measure = Measure(name="net", expression="a * b")
    sources = [Source(name=name, kind="frame", measures=(measure,)) for name in tables]
    catalog = Catalog.of({name: pyarrow.table(columns) for name, columns in tables.items()}, sources)
    request = CompareRequest(source_a="x", source_b="y", dimensions=[], tolerance=D(0))
    assert compare(catalog, request, bounds=QUICK).summary.matches == 1
    exact = [Source(name=name, kind="frame", measures=(Measure(name="net", expression="a - 1"),)) for name in tables]
    tables["y"]["a"] = [1e6 + 1]
    catalog = Catalog.of({name: pyarrow.table(columns) for name, columns in tables.items()}, exact)
    assert compare(catalog, request, bounds=QUICK).summary.matches == 0


def test_sign_decimals_and_other_aggregations_hold_for_expressions() -> None:
    columns = {"a": [D("1.50"), D("2.50"), None]}
    found = {
        aggregation: net(frame(columns, "a * 2", aggregation=aggregation, sign=-1, decimals=1))
        for aggregation in ("sum", "min", "max", "avg", "count")
    }
    assert found == {"sum": D(-8), "min": D(-5), "max": D(-3), "avg": D(-4), "count": D(2)}
    assert str(net(frame(columns, "a * 2", decimals=1))) == "8.0"


def test_choices_in_choices_do_not_multiply() -> None:
    expression = "a"
    for at in range(20):
        expression = f"if(b={at},b,{expression})"
    assert net(frame({"a": [0.5, 3.0], "b": [-1, 2]}, expression)) == D("2.5")


def test_a_count_is_never_approximate() -> None:
    catalog = frame({"a": [0.5, 1.5, None]}, "if(a > 1, a, null)", aggregation="count")
    found = query(catalog, QueryRequest(source="t"), bounds=QUICK)
    assert (found.totals, found.warnings) == ({"net": D(1)}, ())


def test_nan_is_left_out_and_told_and_infinity_refused() -> None:
    catalog = frame({"a": [1.0, float("nan")], "b": [2.0, 3.0]}, "a * b")
    found = query(catalog, QueryRequest(source="t"), bounds=QUICK)
    assert found.totals["net"] == 2
    assert any("1 row holds NaN" in warning for warning in found.warnings)
    with pytest.raises(AnalystError, match="floating-point values that cannot be added up: inf"):
        net(frame({"a": [float("inf")], "b": [0.0]}, "a * b"))


def test_it_is_compared_exported_and_described(held: Any, formulas: Any, tmp_path: Path) -> None:
    import json

    a = held("csv", formulas.rows, {"net": "coalesce(debit, 0) - coalesce(credit, 0)"}).source("t")
    b = Source(
        name="u", kind="csv", path="u.csv", dimensions=(Dimension(name="company"),), measures=(Measure(name="net"),)
    )
    (tmp_path / "u.csv").write_text("company,net\n1,59.50\n2,-0.01\n3,1\n")
    out = tmp_path / "out.json"
    request = CompareRequest(source_a="t", source_b="u", dimensions=["company"])
    found = compare(Catalog([a, b], tmp_path), request, bounds=QUICK, exports=[out])
    assert [(row.key["company"], row.status) for row in found.rows if row.status != "match"] == [("3", "missing_in_a")]
    assert json.loads(out.read_text())["summary"]["total_source_a"] == "59.49"
    assert describe(a)["measures"][0]["expression"] == "coalesce(debit, 0) - coalesce(credit, 0)"


def test_names_and_texts_of_an_expression_are_only_that(held: Any, tmp_path: Path) -> None:
    name = 'a "b" :c %s; --'
    quoted = name.replace('"', '""')
    (tmp_path / "t.csv").write_text(f'"{quoted}",dc\n5,"x\'; DROP TABLE t; --"\n7,y\n')
    measure = Measure(name="net", expression=f"if(dc = 'x''; DROP TABLE t; --', \"{quoted}\", 0)")
    source = Source(name="t", kind="csv", path="t.csv", measures=(measure,))
    assert net(Catalog([source], tmp_path)) == 5


Held = Callable[..., Catalog]


@pytest.fixture
def held(formulas: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    """Writes rows of `formulas` to something of a kind, with measures by expression."""
    import sqlite3
    from contextlib import closing
    from itertools import count

    import duckdb

    number = count()

    def made(kind: str, rows: Any, measures: dict[str, str] | None = None) -> Catalog:
        file = tmp_path / f"t{next(number)}.{kind}"
        source = formulas.source(kind, measures)
        columns = list(formulas.types)
        match kind:
            case "csv":
                lines = [",".join("" if cell is None else f'"{cell}"' for cell in row) for row in rows]
                file.write_text("\n".join([",".join(columns), *lines]) + "\n")
            case "json":
                shown = [
                    ", ".join(
                        f'"{column}": '
                        + ("null" if cell is None else f'"{cell}"' if column in ("company", "dc") else cell)
                        for column, cell in zip(columns, row, strict=True)
                    )
                    for row in rows
                ]
                file.write_text("[" + ", ".join("{" + each + "}" for each in shown) + "]")
            case "sqlite" | "sqlalchemy":
                if kind == "sqlalchemy":
                    pytest.importorskip("sqlalchemy")
                    monkeypatch.setenv("TREADLE_TEST_URL", f"sqlite:///{file}")
                with closing(sqlite3.connect(file)) as database:
                    # Text, in a file that is read as it is; SQLite's own arithmetic needs numbers.
                    kinds = formulas.types if kind == "sqlalchemy" else dict.fromkeys(columns, "TEXT")
                    listed = ", ".join(f"{name} {kinds[name]}" for name in columns)
                    database.execute(f"CREATE TABLE t ({listed})")
                    database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
                    database.commit()
            case _:
                with duckdb.connect(str(file) if kind == "duckdb" else ":memory:") as database:
                    listed = ", ".join(f"{name} {kind}" for name, kind in formulas.types.items())
                    database.execute(f"CREATE TABLE t ({listed})")
                    if rows:
                        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
                    if kind == "parquet":
                        database.table("t").write_parquet(str(file))
                    if kind == "frame":
                        pytest.importorskip("pyarrow")
                        return Catalog.of({"t": database.table("t").to_arrow_table()}, [source])
        from msgspec.structs import replace

        return Catalog([replace(source, path="" if kind == "sqlalchemy" else file.name)], tmp_path)

    return made
