"""Measures by expression in PostgreSQL, through psycopg and through SQLAlchemy: what files say, exactly."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.analyst import AnalystError, Bounds, Catalog, Measure, QueryRequest, Source, query

D = Decimal
QUICK = Bounds(threads=1, seconds=60)
Held = Callable[..., Catalog]


@pytest.fixture
def held(formulas: Any, server: Any, table: Callable[..., Source], monkeypatch: pytest.MonkeyPatch) -> Held:
    from itertools import count

    number = count()
    kinds = [{"VARCHAR": "text"}.get(kind, kind) for kind in formulas.types.values()]

    def made(kind: str, rows: Any, measures: dict[str, str] | None = None) -> Catalog:
        stored = table(f"t{next(number)}", rows, columns=list(formulas.types), types=kinds)
        source = formulas.source("postgres", measures, table=stored.table, dsn_env=stored.dsn_env)
        if kind == "sqlalchemy":
            pytest.importorskip("sqlalchemy")
            monkeypatch.setenv("TREADLE_TEST_URL", server.url())
            source = replace(source, kind="sqlalchemy", dsn_env="TREADLE_TEST_URL")
        return Catalog([source])

    return made


@pytest.mark.parametrize("kind", ["postgres", "sqlalchemy"])
def test_the_same_figures_as_in_files(formulas: Any, held: Held, kind: str) -> None:
    found = query(held(kind, formulas.rows), formulas.request, bounds=QUICK)
    formulas.confirm(found)
    assert not found.warnings


@settings(max_examples=deep(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_expression_is_what_decimals_make_of_it(formulas: Any, held: Held, data: Any) -> None:
    formulas.property(data, lambda rows, measures: query(held("postgres", rows, measures), formulas.request))


def ask(source: Source, expression: str, **more: Any) -> Any:
    measure = Measure(name="net", expression=expression, **more)
    return query(Catalog([replace(source, measures=(measure,))]), QueryRequest(source=source.name), bounds=QUICK)


PRODUCTS = [
    # types of a and b, values, expression, what it is
    (("numeric(18,2)", "numeric(18,3)"), [("1.25", "2.123")], "a * b", "2.65375"),
    (("numeric", "numeric"), [("0.000000000000000001", "0.000000000000000001")], "a * b", "1e-36"),
    (("bigint", "bigint"), [(2**62, 4)], "a * b", str(2**64)),
    (("smallint", "integer"), [(32767, 2**31 - 1)], "a * b + a", str(32767 * 2**31)),
    (("money", "integer"), [("$1,250.10", 2)], "a * b", "2500.20"),
    (("numeric(18,2)", "numeric"), [("1.25", None)], "coalesce(b, a)", "1.25"),
]


@pytest.mark.parametrize(("types", "rows", "expression", "expected"), PRODUCTS)
def test_products_are_exact(table: Any, types: Any, rows: Any, expression: str, expected: str) -> None:
    source = table("t", [("1", *row) for row in rows], columns=("company", "a", "b"), types=("text", *types))
    assert ask(source, expression).totals["net"] == D(expected)


def test_what_is_too_large_is_refused(table: Any) -> None:
    source = table("t", [("1", "9" * 30)], types=("text", "numeric"))
    with pytest.raises(AnalystError, match=r"more than 38 digits|38 at most"):
        ask(source, "amount * amount")


def test_nan_is_left_out_and_told_and_infinity_refused(table: Any) -> None:
    types = ("text", "numeric", "double precision")
    source = table("t", [("1", "NaN", "2"), ("1", "3", "0.5")], columns=("company", "a", "b"), types=types)
    found = ask(source, "a * b")
    assert found.totals["net"] == D("1.5")
    assert any("1 row holds NaN" in warning for warning in found.warnings)
    assert any("approximate" in warning for warning in found.warnings)
    source = table("u", [("1", "0", "Infinity")], columns=("company", "a", "b"), types=types)
    with pytest.raises(AnalystError, match=r"cannot be added up|is no number"):
        ask(source, "a * b")


def test_fixed_length_text_is_compared_without_its_blanks(table: Any) -> None:
    source = table("t", [("H", "1"), ("S", "2")], types=("char(5)", "numeric(18,2)"))
    assert ask(source, "if(company = 'H', amount, 0)").totals["net"] == 1


def test_a_text_in_an_expression_is_a_value_and_not_sql(table: Any) -> None:
    hostile = "x'; DROP TABLE t; -- %s %(p0)s :a"
    source = table("t", [(hostile, "1"), ("y", "2")])
    quoted = hostile.replace("'", "''")
    assert ask(source, f"if(company = '{quoted}', amount, 0)").totals["net"] == 1


def test_what_cannot_be_is_told(table: Any) -> None:
    source = table("t", [("1", "1")])
    with pytest.raises(AnalystError, match="its column 'company' is text; declare"):
        ask(source, "company * 2")
    with pytest.raises(AnalystError, match=r"compares column 'amount' with a text, but it is numeric\(18,2\)"):
        ask(source, "if(amount = 'H', 1, 0)")
    with pytest.raises(AnalystError, match="has no column 'amuont' in its data; did you mean 'amount'"):
        ask(source, "amuont * 2")
