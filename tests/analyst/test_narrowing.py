"""What is pushed down lets pass at least every row that the filter lets pass."""

from typing import Any

import duckdb
import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.analyst import Dimension, Filter, Source, parse_format
from treadle.analyst.reading.dialect import Column, Dialect
from treadle.analyst.reading.keys import Key
from treadle.analyst.remote.narrowing import narrowing
from treadle.analyst.sql.parameters import Parameters

PERIODS = st.builds(
    lambda year, part, form: form.format(y=year, p=part),
    st.integers(2018, 2031),
    st.integers(1, 16),
    st.sampled_from(["{y}{p:02}", "{y}{p:03}", "{y}.{p:02}", "{p:02}/{y}", "{p:03}.{y}", "{y}-{p:02}-28"]),
)
TEXTS = st.text(alphabet="0019A a%_\\[!^\u00a0\t", max_size=5) | PERIODS | st.sampled_from(["0001", "1", "0", ""])
FORMATS = ["", "trim", "alpha(4)", "fiscal_period", "trim, fiscal_period", "blank_as_null", "blank_as_null, alpha(4)"]
COLUMN = Dimension(name="x")
SOURCE = Source(name="s", kind="csv", path="s.csv", dimensions=(COLUMN,))


@pytest.fixture(scope="module")
def engine() -> Any:
    with duckdb.connect(":memory:") as connection:
        yield connection


def passes(engine: Any, condition: Any, parameters: Parameters, held: str) -> bool:
    """Whether a row with the text `held` in column x passes."""
    from sqlglot import exp

    rows = exp.select(exp.alias_(exp.cast(parameters.add(held), "VARCHAR"), "x")).subquery("t")
    statement = exp.select("1").from_(rows).where(condition.copy())
    return bool(engine.execute(statement.sql(dialect="duckdb"), parameters.values).fetchall())


def wanted(engine: Any, condition: Filter, key: Key, held: str) -> bool:
    """Whether treadle's own filter lets the row pass."""
    from sqlglot import exp

    from treadle.analyst.asking.stages import Fetched
    from treadle.analyst.reading.table import Table

    parameters = Parameters()
    rows = exp.select(exp.alias_(exp.cast(parameters.add(held), "VARCHAR"), "x")).subquery("t")
    table = Table(rows, {"x": "VARCHAR"})
    side = Fetched(letter="a", index=0, source=SOURCE, conditions=((key, condition),), table=table)
    statement = side.filtered(exp.select("1"), parameters)
    return bool(engine.execute(statement.sql(dialect="duckdb"), parameters.values).fetchall())


@settings(max_examples=deep(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=TEXTS, values=st.lists(TEXTS, min_size=2, max_size=2), form=st.sampled_from(FORMATS), data=st.data())
def test_no_row_is_lost(engine: Any, held: str, values: list[str], form: str, data: Any) -> None:
    if data.draw(st.booleans()):
        values[0] = data.draw(st.sampled_from([held, f" {held}", held.strip().lstrip("0"), f"0{held}", held[:4]]))
    op = data.draw(st.sampled_from(["=", "in", "not in", "between", "is null", "is not null", "like", "!=", "<"]))
    listed = [*values, None] if data.draw(st.booleans()) else values
    value: Any = {"in": listed, "not in": listed, "between": sorted(values), "is null": None, "is not null": None}.get(
        op, values[0]
    )
    if op == "like":
        value = data.draw(st.sampled_from([value, f"{held[:2]}%", True, 1e20]))
        held = data.draw(st.sampled_from([held, str(value)]))
    condition = Filter(dimension="x", op=op, value=value)
    key = Key("x", (COLUMN,), "string", parse_format(form))
    parameters = Parameters()
    found = narrowing(Dialect(""), key, "x", Column("text"), condition, parameters)
    if found is None:
        assert op != "like" or form or "\0" in values[0]
        return
    pushed, own = passes(engine, found.condition, parameters, held), wanted(engine, condition, key, held)
    assert pushed or not own
    if found.exact:
        assert pushed == own


@pytest.mark.parametrize("form", ["", "alpha(10)", "fiscal_period"])
@given(number=st.integers(-10, 10**7) | st.sampled_from([202401, 2024001, 202416]), value=st.text("0124.-", max_size=9))
@settings(max_examples=deep(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_whole_number_is_lost(engine: Any, number: int, value: str, form: str) -> None:
    for asked in (value, str(number), f"000{number}", "2024.01"):
        condition = Filter(dimension="x", value=asked)
        key = Key("x", (COLUMN,), "string", parse_format(form))
        parameters = Parameters()
        found = narrowing(Dialect("trino"), key, "x", Column("integer", 0), condition, parameters)
        if found is not None and wanted(engine, condition, key, str(number)):
            assert number in parameters.values.values()


@pytest.mark.parametrize("held", ["01/24", "Jan 24", "Q1/24", "24-01", "1", " ", "2024 01x"])
def test_what_a_range_of_periods_cannot_place_comes_to_be_refused(engine: Any, held: str) -> None:
    condition = Filter(dimension="x", op="between", value=["202401", "202403"])
    key = Key("x", (COLUMN,), "string", parse_format("fiscal_period"))
    parameters = Parameters()
    found = narrowing(Dialect(""), key, "x", Column("text"), condition, parameters)
    assert found is not None
    assert passes(engine, found.condition, parameters, held)


def test_a_database_leaves_out_the_periods_of_other_years(engine: Any) -> None:
    condition = Filter(dimension="x", op="between", value=["202401", "202403"])
    parameters = Parameters()
    key = Key("x", (COLUMN,), "string", parse_format("fiscal_period"))
    found = narrowing(Dialect(""), key, "x", Column("text"), condition, parameters)
    assert found is not None
    assert not passes(engine, found.condition, parameters, "202312")
